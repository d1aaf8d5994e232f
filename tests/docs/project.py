"""A copy of the project in which the commands of its documents run, without a network."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import Block, commands

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = "/tmp/bundles"
NETWORK = re.compile(
    r"\b(git (clone|fetch|push|pull)|helm (install|upgrade|repo)|kubectl|curl|pip|make (test|tools|dev|lock))\b"
)


def made(root: Path) -> Path:
    """A copy of the project below `root` whose `make` and `.venv` need no network: they run the compiler of the copy."""
    for name in ("compiler", "overlays", "mixins", "components"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("bundlec.yaml", "Makefile", "pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, root)
    bin_ = root / ".venv/bin"
    bin_.mkdir(parents=True)
    for name, words in (("python", ""), ("bundlec", " -m compiler.cli")):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} exec {sys.executable}{words} "$@"\n')
        program.chmod(0o755)
    (root / ".venv/.path").write_text(str(root))
    (root / ".venv/.runtime").touch()
    return root


def run(block: Block, copy: Path, status: int = 0) -> str:
    """Standard output of a shell block, run as it stands but for the folder outside of the tree.

    Every command must succeed, or, of a block with one command, end with `status`.
    """
    assert not any(NETWORK.search(command) for command in commands(block)), f"line {block.line} needs a network"
    text = block.text.replace(OUTSIDE, str(copy.parent / "bundles"))
    path = f"{copy}/.venv/bin:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(copy), "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=copy,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, f"line {block.line}: {block.text}\n{done.stdout}{done.stderr}"
    return done.stdout
