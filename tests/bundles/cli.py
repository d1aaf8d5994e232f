"""The command as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Done:
    """How a run of `bundlec` ended, and what it printed."""

    status: int
    out: str
    err: str


Bundlec = Callable[..., Done]


def run(*arguments: str | Path) -> Done:
    command = [sys.executable, "-m", "compiler.cli", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd="/", env=env)
    return Done(done.returncode, done.stdout, done.stderr)
