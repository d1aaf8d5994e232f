"""The Helm plugin `diff`, without which `helmfile apply` does nothing: the machine's own, or a stand-in.

`plugins` brings a folder for HELM_PLUGINS. A helm-diff that is installed for this user's Helm is taken; it is no part
of Helm, and of no package here. The stand-in is this file, run by Helm: it answers `helm diff upgrade` as helmfile
reads it, by comparing what Helm renders with what it has installed. As helm-diff does, it has the API server validate
what is rendered, unless it is told `--disable-validation`. Standard library only.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path


def plugins(folder: Path) -> Path:
    """A folder of Helm plugins with one named `diff` in it, made below `folder` if there is none."""
    data = os.environ.get("HELM_DATA_HOME") or Path.home() / ".local" / "share" / "helm"
    installed = Path(os.environ.get("HELM_PLUGINS") or Path(data) / "plugins")
    for about in sorted(installed.glob("*/plugin.yaml")):
        if "name: diff" in about.read_text().replace('"', "").splitlines():
            return installed
    place = folder / "helm-plugins" / "diff"
    place.mkdir(parents=True, exist_ok=True)
    (place / "plugin.yaml").write_text(
        "name: diff\nversion: 3.15.11\nusage: compare\ndescription: compare\n"
        f'command: "{sys.executable} {Path(__file__).resolve()}"\n'
    )
    return place.parent


def main() -> int:
    """Status 0: no difference; 2: some, if --detailed-exitcode asks for it; 1: it cannot be told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["upgrade"])
    parser.add_argument("name")
    parser.add_argument("chart")
    flags = ("--allow-unreleased", "--detailed-exitcode", "--disable-validation", "--plain-http", "--reset-values")
    for flag in (*flags, "--color", "--no-color", "--no-hooks"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--context", type=int)
    passed = ("--namespace", "--kube-context", "--version", "--kube-version")
    for option in passed:
        parser.add_argument(option)
    parser.add_argument("--values", action="append", default=[])
    told = parser.parse_args()
    where = [f"{option}={value}" for option in passed[:2] if (value := getattr(told, _field(option)))]
    render = [f"{option}={value}" for option in passed[2:] if (value := getattr(told, _field(option)))]
    render += [f"--values={path}" for path in told.values] + (["--plain-http"] if told.plain_http else [])
    if not told.disable_validation:
        version = subprocess.run([_helm(), "version", "--short"], check=True, capture_output=True, text=True).stdout
        render.append("--validate" if version.startswith("v3.") else "--dry-run=server")
    old = _run("get", "manifest", told.name, *where)
    if old.returncode and "not found" not in old.stderr:
        return _failed(old)
    new = _run("template", told.name, told.chart, "--no-hooks", *where, *render)
    if new.returncode:
        return _failed(new)
    lines = [_lines(old.stdout if not old.returncode else ""), _lines(new.stdout)]
    difference = [line for line in difflib.unified_diff(*lines, n=0, lineterm="") if line[:2] not in ("--", "++", "@@")]
    print(f"{told.namespace}, {told.name}: {len(difference)} lines differ" if difference else "")
    return 2 if difference and told.detailed_exitcode else 0


def _field(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _helm() -> str:
    return os.environ.get("HELM_BIN", "helm")


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_helm(), *words], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def _failed(done: subprocess.CompletedProcess[str]) -> int:
    print(done.stderr, file=sys.stderr)
    return 1


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() not in ("", "---")]


if __name__ == "__main__":
    sys.exit(main())
