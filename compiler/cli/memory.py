"""Whether a build would change nothing, told without compiling: the same sources, the same compiler, the same result.

A build that left every bundle as it is on disk is remembered under `.bundlec/`: a digest over all source files, the
compiler and the command's options, the checksums of each bundle, what lay beside the bundles, and what was said. When
the next build finds the same digest, every bundle on disk byte by byte as its checksums say, and the same beside them,
it says the same again. The file is never needed for correctness: without it, or when anything in it does not fit, the
bundles are compiled.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.model import Catalog, Files

_FILE = Path(".bundlec") / "builds.json"
_SOURCES = ("bundlec.yaml", "overlays", "mixins", "components")
_LIBRARIES = ("yaml", "jinja2")  # what writes bytes of a bundle beside the compiler
_KEPT = 20  # builds with different options that are remembered


class Memory:
    """What earlier builds of a workspace with these `options` (of the command line) left and said."""

    def __init__(self, root: Path, options: Mapping[str, Any]) -> None:
        self._root = root
        self._key = hashlib.blake2b(repr(sorted(options.items())).encode()).hexdigest()
        self._data: list[str] = []
        self._before = ""

    def recall(self) -> list[tuple[str, bool]] | None:
        """What to say, when a build would change nothing; None when the bundles must be compiled."""
        told = self._read().get(self._key)
        try:
            # Taken before a source is read: what is edited from now on is not what this run builds.
            self._data = list(told["data"]) if isinstance(told, dict) else []
            self._before = self._digest(self._data)
            if not isinstance(told, dict) or told["digest"] != self._before:
                return None
            holds = all(_names(Path(folder)) == names for folder, names in told["beside"].items()) and all(
                _holds(Path(target), digest) for target, digest in told["targets"].items()
            )
            return [(str(text), bool(err)) for text, err in told["said"]] if holds else None
        except (OSError, AttributeError, KeyError, TypeError, ValueError):
            return None

    def keep(
        self,
        catalog: Catalog,
        built: Sequence[tuple[Path, Files]],
        said: Sequence[tuple[str, bool]],
        beside: Sequence[Path] = (),
    ) -> None:
        """Remember a build: the sources as `recall` found them, bundles by folder, what to say when nothing changed.

        `beside` are folders of which `said` depends on what else lies in them.
        """
        from compiler.write import ownership, replace_file

        source = catalog.workspace.origin.document.data
        data = [str(folder) for folder in source.get("spec", {}).get("data", [])]
        try:
            entry = {
                # Which folders count is known once they were read; then it is the next build that is remembered.
                "digest": self._before if data == self._data else "",
                "data": data,
                "targets": {str(path.absolute()): _sha256(files[ownership.CHECKSUMS]) for path, files in built},
                "beside": {str(folder.absolute()): _names(folder) for folder in beside},
                "said": said,
            }
            kept = {key: value for key, value in self._read().items() if key != self._key}
            kept = dict(list(kept.items())[-_KEPT + 1 :])
            replace_file(self._root / _FILE, json.dumps({**kept, self._key: entry}).encode())
        except (OSError, TypeError, ValueError):
            return  # a memory that cannot be kept is none

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self._root / _FILE).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _digest(self, data: Sequence[str]) -> str:
        """Over every source file by content, over the compiler and its libraries by size and time of their files."""
        state = hashlib.blake2b()
        for place in (self._root / name for name in (*_SOURCES, *data)):
            for path in _files(place):
                state.update(f"{path}\0".encode("utf-8", "surrogateescape"))
                if not Path(path).is_file():  # a pipe would be read for ever; what it is among the sources, load says
                    raise OSError(errno.EINVAL, "no regular file", path)
                state.update(hashlib.blake2b(Path(path).read_bytes()).digest())
        libraries = (find_spec(name) for name in _LIBRARIES)
        origins = [found.origin for found in libraries if found is not None and found.origin is not None]
        state.update(sys.version.encode())
        for path in [*_files(Path(__file__).parent.parent), *origins]:
            if not path.endswith(".pyc"):
                found = Path(path).stat()
                state.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
        return state.hexdigest()


def _files(place: Path) -> Iterator[str]:
    """Every file at or below `place`, in a fixed order."""
    if place.is_file():
        yield str(place)
    for folder, folders, names in os.walk(place, followlinks=True):
        folders.sort()
        for name in sorted(names):
            yield f"{folder}/{name}"


def _names(folder: Path) -> list[str]:
    """What lies in a folder, hidden entries aside. Raises OSError."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208 - names are wanted


def _holds(target: Path, digest: str) -> bool:
    """Whether a folder holds the bundle of that digest and nothing else, in bytes and modes."""
    from compiler.write import ownership

    content = (target / ownership.CHECKSUMS).read_bytes()
    if target.is_symlink() or _sha256(content) != digest:
        return False
    claimed = ownership.owned(content)
    found = ownership.listing(target)
    if found.others or found.files.keys() != {*claimed, ownership.CHECKSUMS}:
        return False
    for path, wanted in claimed.items():
        data = (target / path).read_bytes()
        if _sha256(data) != wanted or ownership.executable(data) != bool(found.files[path].st_mode & 0o100):
            return False
    return True


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
