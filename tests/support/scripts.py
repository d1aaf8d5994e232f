"""Running emitted scripts: a bundle on disk, a fake cluster, and what a run did and said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.emit import bundle, deploysh, payload
from compiler.model import Plan
from tests.support import fake_cluster
from tests.support.fake_cluster import Store

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(frozen=True)
class Ran:
    """How a script ended, what it said, and the helm and kubectl calls that it made, in order."""

    status: int
    said: str
    out: str
    calls: list[list[str]]

    def helm(self, verb: str) -> list[str]:
        """The releases that `helm VERB` was called for."""
        calls = [_without_context(c) for c in self.calls if c[0] == "helm"]
        return [c[3] if c[2] == "--install" else c[2] for c in calls if c[1] == verb]

    def changes(self) -> list[list[str]]:
        """The calls that change the cluster."""
        reads = {"get", "version", "config", "show"}
        return [c for c in map(_without_context, self.calls) if c[1] not in reads]


def _without_context(call: list[str]) -> list[str]:
    words = [w for w in call if not w.startswith("--request-timeout")]
    for option in ("--context", "--kube-context"):
        if option in words:
            at = words.index(option)
            words = words[:at] + words[at + 2 :]
    return words


class Cluster:
    """A fake cluster in `folder`: programs `kubectl` and `helm`, and the state they share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("kubectl", "helm"):
            program = self.bin / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {fake_cluster.__file__} {folder} {name} "$@"\n')
            program.chmod(0o755)

    def change(self, **state: Any) -> None:
        """Replace parts of the state: `denied`, `later`, `helm`, `crds`, `version`."""
        store = Store(self.folder)
        store.state.update(state)
        store.save()

    def put(self, resource: str, data: dict[str, Any]) -> None:
        """Create or replace an object."""
        store = Store(self.folder)
        store.put(resource, data)
        store.save()

    def drop(self, resource: str, name: str, namespace: str = "") -> None:
        """Remove an object."""
        store = Store(self.folder)
        store.drop(resource, name, namespace)
        store.save()

    def record(self, name: str, namespace: str, number: int, status: str, **labels: str) -> None:
        """Store a revision of a Helm release."""
        store = Store(self.folder)
        own = {f"bundlec.dev/{key}": value for key, value in labels.items()}
        fake_cluster.record(store, name, namespace, number, status, own)
        store.save()

    def run(self, *command: str | Path, cwd: Path | None = None, stdin: str = "", **env: str) -> Ran:
        """Run a command with the fake programs first on PATH; gates poll every 0 seconds and hold after one look."""
        log = self.folder / "calls"
        log.unlink(missing_ok=True)
        environment = {
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "GATE_POLL": "0.05",
            "GATE_SETTLE": "0",
            **env,
        }
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            input=stdin,
            check=False,
        )
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return Ran(done.returncode, done.stderr, done.stdout, calls)


def write_bundle(plan: Plan, folder: Path) -> Path:
    """The bundle's scripts and payload with checksums in `folder`; scripts are executable."""
    files = {**payload.emit(plan), **deploysh.emit(plan)}
    files["checksums.txt"] = bundle.checksums(files)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if content.startswith(b"#!"):
            os.chmod(path, 0o755)  # noqa: PTH101
    return folder
