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
from collections.abc import Mapping
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
    version, _ = identity()
    major, minor, _ = version.split(".", 2)
    about = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamp = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in about.items())
    packages = {name: PACKAGES[name] for name in names}
    return of_module(MODULE, packages, "k8s.io/kubernetes", stamp=stamp, build=build)


def identity() -> tuple[str, str]:
    """Version of Kubernetes, and a digest of what the programs are built from."""
    return identity_of(MODULE, "k8s.io/kubernetes")


def identity_of(module: Path, pinned: str) -> tuple[str, str]:
    """Version of `pinned`, a module that go.mod in `module` requires, and a digest of all that the programs are of."""
    text = (module / "go.mod").read_text()
    match = re.search(rf"{re.escape(pinned)} v(\S+)", text)
    if match is None:
        raise MissingError(f"{module}/go.mod pins no {pinned}")
    programs_of = sorted(path for path in module.rglob("*.go") if path.name != "tools.go")
    sources = [text, (module / "go.sum").read_text(), *(path.read_text() for path in programs_of)]
    return match[1], hashlib.sha256("\0".join(sources).encode()).hexdigest()[:8]


def of_module(
    module: Path, packages: Mapping[str, str], pinned: str, *, stamp: str = "", build: bool = True
) -> dict[str, Path]:
    """Where the programs of a Go module of ours are: name -> package that it is built from.

    Each is built once and kept in the cache. `pinned` is the module that gives the folder its version, `stamp` are
    arguments for the linker. MissingError: it is not there, and `build` is off, or Go is missing, or fails.
    """
    version, key = identity_of(module, pinned)
    where = "" if module == MODULE else f"{module.name}-"
    folder = CACHE / f"{where}{version}-{key}"
    absent = [name for name in packages if not os.access(folder / name, os.X_OK)]
    if absent:
        go = shutil.which("go")
        if go is None:
            hint = "set KUBEBUILDER_ASSETS, or " if module == MODULE else ""
            raise MissingError(f"no {', '.join(absent)}: {hint}install Go {GO[0]}.{GO[1]} to build them")
        if not build:
            raise MissingError(f"no {', '.join(absent)} in {folder}: `make e2e` builds them")
        for name in absent:
            _build(go, module, name, packages[name], folder, stamp)
    return {name: folder / name for name in packages}


def _build(go: str, module: Path, name: str, package: str, folder: Path, stamp: str) -> None:
    started = time.monotonic()
    print(f"e2e: building {name} of {folder.name} with Go, once; this takes minutes", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = max(1, min(len(os.sched_getaffinity(0)), 8))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
        target = Path(scratch) / name
        # One module cache and one build cache with whatever else this user builds: packages are shared by the programs.
        flags = ["-mod=readonly", "-ldflags", f"-s -w {stamp}".strip()]
        command = [go, "build", "-p", str(jobs), *flags, "-o", str(target), package]
        done = subprocess.run(
            ["nice", "-n", "2", *command],
            cwd=module, check=False, stdin=subprocess.DEVNULL,
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
