"""What the tests of cases share: a built catalog, and charts that print what Helm makes of values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.yamlio import load_all
from tests.support.scratch import Change, bundlec, told, write_catalog

LEAF = "overlays/leaf.yaml"
WORKSPACE = "bundlec.yaml"
ALPHA = "components/alpha/component.yaml"
BETA = "components/beta/component.yaml"
GAMMA = "components/gamma/component.yaml"


def built(root: Path, changes: Mapping[str, Change]) -> Path:
    """The folder of bundle `demo` of the changed catalog, which must compile for all four deployers."""
    ran = bundlec("build", "--all", cwd=write_catalog(root, changes))
    assert ran.status == 0, ran.err
    assert bundlec("verify", root / "out/demo", cwd=root).status == 0
    return root / "out/demo"


def refused(root: Path, changes: Mapping[str, Change]) -> list[str]:
    """The findings of the changed catalog, which must not compile: `place: [code] message | fix`."""
    ran = bundlec("build", "--all", cwd=write_catalog(root, changes))
    assert ran.status == 1, ran.out
    assert not (root / "out").exists()
    return told(ran.err)


def run(*command: str | Path) -> str:
    """Standard output of a program that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_helm_reads(helm: Path, folder: Path, values: Path, defaults: str = "") -> Any:
    """The values that the templates of a chart see: of its own `defaults`, and of a values file."""
    chart = folder / "probe"
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: probe, version: 0.1.0}")
    (chart / "values.yaml").write_text(defaults)
    (chart / "templates/all.yaml").write_text("seen: {{ .Values | toJson | quote }}\n")
    text = run(helm, "template", "probe", chart, "--values", values)
    (document,) = load_all(text, "helm", strict=False)
    return json.loads(document.data["seen"])


def rendered(helm: Path, chart: Path) -> list[dict[str, Any]]:
    """The objects that Helm renders of a local chart, in order."""
    text = run(helm, "template", chart.name, chart, "--namespace", "elsewhere")
    return [document.data for document in load_all(text, "helm", strict=False)]


def documents(path: Path) -> list[Any]:
    """The documents of an emitted YAML file."""
    return [document.data for document in load_all(path.read_text(), str(path), strict=False)]
