"""Trees for tests of the write stage."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def with_checksums(files: dict[str, bytes]) -> dict[str, bytes]:
    """`files` and the `checksums.txt` that covers them (instead of one that is among them)."""
    covered = sorted((path, data) for path, data in files.items() if path != "checksums.txt")
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in covered]
    return {**files, "checksums.txt": "".join(lines).encode()}


def snapshot(root: Path) -> dict[str, object]:
    """Everything below `root`: content of files, target of links, None for folders. Empty when there is no `root`."""
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(root):
        for name in sorted([*folders, *names]):
            path = Path(folder, name)
            key = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[key] = f"-> {path.readlink()}"
            else:
                found[key] = path.read_bytes() if path.is_file() else None
    return found


def contents(root: Path) -> dict[str, object]:
    """The files below `root` with their content."""
    return {path: data for path, data in snapshot(root).items() if data is not None}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def beside(target: Path) -> list[str]:
    """Names beside `target`."""
    return sorted(path.name for path in target.parent.iterdir() if path.name != target.name)
