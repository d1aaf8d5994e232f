"""Finding and reading source files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from compiler import yamlio
from compiler.errors import Collector, UserError, did_you_mean
from compiler.load.cache import Cache, digest
from compiler.source import Document, Origin, Span


class Reader:
    """Reads files below a workspace root. What cannot be read or parsed is recorded, and the answer is None then."""

    def __init__(self, root: Path, cache: Cache, found: Collector) -> None:
        self.root = root
        self._prefix = f"{root}{os.sep}"
        self.cache = cache
        self.found = found

    def named(self, path: Path) -> str:
        """The path as messages name it: relative to the root, with `/`."""
        text = str(path)
        if text.startswith(self._prefix):
            return text[len(self._prefix) :].replace(os.sep, "/")
        return PurePosixPath(os.path.relpath(path, self.root)).as_posix()

    def text(self, path: Path, at: Origin | None = None) -> tuple[str, str] | None:
        """Text and digest of a file. Records BC1006 when it cannot be read and BC1001 when it is not UTF-8.

        `at` is who names the file; a missing one is reported there, as BC1206.
        """
        file = self.named(path)
        try:
            data = _read(path)
        except OSError as error:
            if at is not None and isinstance(error, (FileNotFoundError, IsADirectoryError)):
                fix = self._nearby(path) or "create it, or correct the path"
                self.found.error("BC1206", f"there is no file {file}", at, fix=fix)
            else:
                self.unreadable(path, error)
            return None
        try:
            return data.decode("utf-8-sig"), digest(data)
        except UnicodeDecodeError as error:
            before = data[: error.start]
            column = len(before) - (before.rfind(b"\n") + 1) + 1
            self.found.error(
                "BC1001", "the file is not UTF-8", Span(file, before.count(b"\n") + 1, column), fix="save it as UTF-8"
            )
            return None

    def unreadable(self, path: Path, error: OSError) -> None:
        """Record BC1006 for a file or folder."""
        file = self.named(path)
        self.found.error(
            "BC1006",
            f"cannot be read: {error.strerror}",
            Span(file, 1, 1),
            fix="replace it by a regular file that can be read, or remove it",
        )

    def document(
        self, path: Path, at: Origin | None = None, check: Callable[[Document], bool] | None = None
    ) -> Document | None:
        """The one YAML document of a file.

        `check` says whether it is free of findings; only then it is cached, and `check` is not asked again for a cached
        one.
        """
        read = self.text(path, at)
        if read is None:
            return None
        text, key = read
        file = self.named(path)
        cached = self.cache.get(file, key, text)
        if cached:
            return cached[0]
        try:
            document = yamlio.load(text, file)
        except UserError as error:
            self.found.found += error.diagnostics
            return None
        if check is None or check(document):
            self.cache.put(file, key, (document,))
        return document

    def documents(self, path: Path, at: Origin) -> tuple[str, tuple[Document, ...]] | None:
        """Text and documents of a static manifest file."""
        read = self.text(path, at)
        if read is None:
            return None
        text, key = read
        file = self.named(path)
        documents = self.cache.get(file, key, text)
        if documents is None:
            try:
                documents = yamlio.load_all(text, file)
            except UserError as error:
                self.found.found += error.diagnostics
                return None
            self.cache.put(file, key, documents)
        return text, documents

    def yaml_files(self, folder: Path, *, deep: bool) -> Iterator[Path]:
        """YAML files of a folder in sorted order, hidden ones left out; `deep` descends. A missing one holds none.

        Links to folders are not followed, since they may lead back here; BC1206 says so.
        """
        for entry in self._entries(folder):
            if entry.name.endswith((".yaml", ".yml")):
                yield Path(entry.path)
            elif deep and entry.is_dir(follow_symlinks=False):
                yield from self.yaml_files(Path(entry.path), deep=True)
            elif deep and entry.is_symlink() and self._is_folder(entry):
                file = self.named(Path(entry.path))
                fix = "list the folder that holds overlays/ in `data` of bundlec.yaml"
                self.found.error("BC1206", f"{file} is a link to a folder and is not followed", Span(file), fix=fix)

    def folders(self, folder: Path) -> Iterator[Path]:
        """Folders of a folder in sorted order, hidden ones left out."""
        return (Path(entry.path) for entry in self._entries(folder) if self._is_folder(entry))

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:  # a link that leads to itself
            self.unreadable(Path(entry.path), error)
            return False

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.unreadable(folder, error)
            return []
        for entry in [e for e in found if not _is_text(e.name)]:
            file = self.named(Path(entry.path))
            self.found.error("BC1202", "the file's name is not UTF-8", Span(file), fix="rename it")
            found.remove(entry)
        return found

    def _nearby(self, path: Path) -> str | None:
        try:
            return did_you_mean(path.name, (p.name for p in path.parent.iterdir() if p.name != path.name))
        except OSError:
            return None


def inside(folder: Path, name: str) -> Path | None:
    """The file `name` of a folder, or None when it leads out of it (absolute, `..`, or a link)."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or "\\" in name:
        return None
    path = at = folder / relative
    while at != folder:
        if os.path.islink(at):  # noqa: PTH114 - unlike Path.is_symlink it has an answer for every name
            try:
                return path if path.resolve().is_relative_to(folder.resolve()) else None
            except (OSError, RuntimeError):  # it leads to itself; reading it will say so
                return path
        at = at.parent
    return path


def _read(path: Path) -> bytes:
    # A pipe or a device would be read for ever.
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return path.read_bytes()


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
