"""One file of our own, replaced at once: readers see the old content or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, in a folder that may be missing. Raises `OSError`; the old content stays then."""
    os.makedirs(path.parent, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(data)
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def take_back(path: Path, data: bytes | None, until: Path) -> None:
    """Make `path` hold `data` again; None: it was not there, and folders that are empty go, too, up to `until`.

    Raises `OSError`.
    """
    if data is not None:
        replace_file(path, data)
        return
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == until or any(folder.iterdir()):
            return
        folder.rmdir()
