"""Resolves requirements.txt and requirements-dev.txt from pyproject.toml, pinned and with the hash of every file.

Run as `make lock`. The resolver itself (uv) is pinned here, since it is no part of the environment it describes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

RESOLVER = "uv==0.13.9"
ROOT = Path(__file__).resolve().parents[2]
HEADER = "# Made by `make lock` from pyproject.toml. {what}\n"


def main() -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", RESOLVER], check=True)
    with tempfile.TemporaryDirectory() as folder:
        # The build backend is pinned too: the editable install must not fetch one of its own.
        backend = Path(folder) / "backend.in"
        backend.write_text("setuptools>=77\n")
        runtime = _resolve(folder, "runtime", "pyproject.toml", str(backend))
        pinned = ["--constraint", str(Path(folder) / "runtime.txt")]
        dev = _resolve(folder, "dev", "pyproject.toml", "--extra", "dev", str(backend), *pinned)
    (ROOT / "requirements.txt").write_text(HEADER.format(what="What the compiler runs on.") + runtime)
    (ROOT / "requirements-dev.txt").write_text(HEADER.format(what="The same, with tests and linters.") + dev)


def _resolve(folder: str, name: str, *arguments: str) -> str:
    out = Path(folder) / f"{name}.txt"
    options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"]
    quiet = ["--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, *quiet, *arguments, "--output-file", str(out)]
    subprocess.run(command, check=True, cwd=ROOT)
    return out.read_text()


if __name__ == "__main__":
    main()
