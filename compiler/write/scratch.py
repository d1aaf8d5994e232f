"""Files of a past state, laid out in a folder of their own for as long as they are read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def scratch(files: Mapping[str, bytes], links: Mapping[str, str]) -> Iterator[Path]:
    """A temporary folder with these files and symbolic links (relative POSIX path -> content or target).

    It is removed at the end. Raises ValueError for a path that leads out of it.
    """
    with tempfile.TemporaryDirectory(prefix="bundlec-") as name:
        root = Path(name).resolve()
        for path in sorted({*files, *links}):
            target = root / path
            if ".." in target.parts or not target.is_relative_to(root):
                raise ValueError(f"{path} leads out of the folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in files:
                target.write_bytes(files[path])
            else:
                os.symlink(links[path], target)
        yield root
