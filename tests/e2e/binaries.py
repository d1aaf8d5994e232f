"""The programs of a control plane: etcd, kube-apiserver, kube-controller-manager.

Out of `KUBEBUILDER_ASSETS` when that is set (as envtest does it), else built once with Go from the modules that
`controlplane/go.mod` pins, and kept in `~/.cache/bundlec/e2e/`, keyed by what they are built from.

    python tests/e2e/binaries.py    builds what is missing and prints where the programs are
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULE = Path(__file__).resolve().parent / "controlplane"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bundlec" / "e2e"
PACKAGES = {
    "etcd": "./etcd",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
GO = (1, 24)  # what go.mod asks for


class MissingError(Exception):
    """There is no control plane here; the text says why."""


def programs(*, build: bool = True) -> dict[str, Path]:
    """Where each program is. MissingError: this machine has none and cannot build them."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        folder = Path(assets)
        absent = sorted(name for name in PACKAGES if not os.access(folder / name, os.X_OK))
        # Setup tools of envtest bring no kube-controller-manager: that one is built, if it can be.
        if absent not in ([], ["kube-controller-manager"]):
            raise MissingError(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(absent)}")
        built = _built(absent, build=build) if absent else {}
        return {**{name: folder / name for name in PACKAGES}, **built}
    return _built(list(PACKAGES), build=build)


def _built(names: list[str], *, build: bool) -> dict[str, Path]:
    version, key = identity()
    folder = CACHE / f"{version}-{key}"
    absent = [name for name in names if not os.access(folder / name, os.X_OK)]
    if absent:
        go = shutil.which("go")
        if go is None:
            raise MissingError(
                f"no {', '.join(absent)}: set KUBEBUILDER_ASSETS, or install Go {GO[0]}.{GO[1]} to build them"
            )
        if not build:
            raise MissingError(f"no {', '.join(absent)} in {folder}: `make e2e` builds them")
        for name in absent:
            _build(go, name, version, folder)
    return {name: folder / name for name in names}


def identity() -> tuple[str, str]:
    """Version of Kubernetes, and a digest of what the programs are built from."""
    text = (MODULE / "go.mod").read_text()
    match = re.search(r"k8s\.io/kubernetes v(\S+)", text)
    if match is None:
        raise MissingError(f"{MODULE}/go.mod pins no k8s.io/kubernetes")
    sources = [text, (MODULE / "go.sum").read_text(), (MODULE / "etcd" / "main.go").read_text()]
    return match[1], hashlib.sha256("\0".join(sources).encode()).hexdigest()[:8]


def _build(go: str, name: str, version: str, folder: Path) -> None:
    started = time.monotonic()
    print(
        f"e2e: building {name} of Kubernetes {version} with Go, once; this takes minutes", file=sys.stderr, flush=True
    )
    major, minor, _ = version.split(".", 2)
    about = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamp = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in about.items())
    folder.mkdir(parents=True, exist_ok=True)
    jobs = max(1, min(len(os.sched_getaffinity(0)), 8))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
        target = Path(scratch) / name
        # One module cache and one build cache with whatever else this user builds: packages are shared by the programs.
        command = [go, "build", "-p", str(jobs), "-mod=readonly", "-ldflags", f"-s -w {stamp}", "-o", str(target)]
        done = subprocess.run(
            ["nice", "-n", "2", *command, PACKAGES[name]],
            cwd=MODULE, check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            raise MissingError(f"{name} cannot be built: {done.stdout.strip()[-600:]}")
        target.replace(folder / name)
    print(f"e2e: built {name} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        for program, path in programs().items():
            print(f"{program}\t{path}")
    except MissingError as missing:
        sys.exit(f"e2e: {missing}")
