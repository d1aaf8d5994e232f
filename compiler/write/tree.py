"""Files -> disk. A build changes its folder as a whole or not at all, and only what differs.

Unchanged files keep their inode's content and time stamp (they are hard-linked into the new tree), so that tools which
watch time stamps see what really changed. Files that the folder's own `checksums.txt` does not list are somebody
else's: they stop the build before anything is touched.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from compiler.errors import Diagnostic, UserError
from compiler.model import Files
from compiler.records import dataclass
from compiler.source import Span
from compiler.write import swap
from compiler.write.ownership import CHECKSUMS, Listing, check_files, executable, foreign, listing, owned

_SPAN = 1 << 20  # bytes that one write(2) is asked to take


@dataclass(frozen=True)
class WriteReport:
    """What a build did to its folder: relative POSIX paths, sorted. `edited` are those of `changed` and `removed` that
    somebody had edited by hand since they were built.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()

    @property
    def touched(self) -> bool:
        """Whether anything on disk differs from before."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True)
class Drift:
    """How a folder differs from what the sources compile to: relative POSIX paths, sorted.

    `modes` are files of the right content that are executable and should not be, or the reverse.
    """

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether there is no difference."""
        return not (self.missing or self.changed or self.extra or self.modes)

    def lines(self, folder: str = "") -> tuple[str, ...]:
        """One line a file, a verb before its path (below `folder`, when given), sorted by path."""
        verbs = {"missing": self.missing, "changed": self.changed, "not ours": self.extra, "mode": self.modes}
        found = sorted((path, verb) for verb, paths in verbs.items() for path in paths)
        return tuple(f"{verb:<8}  {folder and folder + '/'}{path}" for path, verb in found)


def write(files: Files, target: Path) -> WriteReport:
    """Make `target` hold exactly `files`, atomically, and say what changed. Nothing is touched when nothing differs.

    `files` has a `checksums.txt` that covers all others. Content that begins `#!` is written 0755, all other 0644,
    whatever the umask; of a file that is there only the executable bit counts, as in Git.

    Raises `UserError` BC5001 when a file in `target` belongs to nobody, BC5002 when the target cannot be written (it is
    unchanged then); `InternalError` when `files` is not well-formed. Files that turn up in `target` while it is written
    are kept, and reported as BC5001 after the bundle is in place.
    """
    check_files(files)
    place = Path(os.path.abspath(target))  # not resolved: a symbolic link is refused below, not followed
    with _failures(target, "written"):
        if not place.name:
            raise IsADirectoryError(errno.EISDIR, "the root of the file system")
        os.makedirs(place.parent, exist_ok=True)
        with swap.locked(place.parent) as exclusive:
            if exclusive:
                # What was moved into the target is found below, among the files of others.
                _refuse_late([path for path in swap.recover(place) if place not in path.parents], place, target)
            found = _present(place, target)
            report = _difference(files, place, found)
            if report.touched:
                late = _replace(files, place, report, found, exclusive=exclusive)
                _refuse_late(late, place, target)
    return report


def compare(files: Files, target: Path) -> Drift:
    """How `target` differs from `files`; a target that does not exist lacks all of them. Reads only.

    Raises `UserError` BC5001 when `target` is no folder, BC5002 when it cannot be read.
    """
    place = Path(os.path.abspath(target))
    with _failures(target, "read"):
        found = _walk(place, target) or Listing()
        changed: list[str] = []
        modes: list[str] = []
        for path in sorted(files.keys() & found.files.keys()):
            if not _same_bytes(place, path, files[path], found):
                changed.append(path)
            elif not _same_mode(path, files[path], found):
                modes.append(path)
    changed += [path for path in found.others if path in files]
    missing = files.keys() - found.files.keys() - set(found.others)
    extra = {*found.files, *found.others} - files.keys()
    return Drift(tuple(sorted(missing)), tuple(sorted(changed)), tuple(sorted(extra)), tuple(modes))


def read(target: Path) -> Files:
    """The files in `target` by relative POSIX path, sorted. Symbolic links are not followed.

    Raises `UserError` BC6004 when `target` is no folder, BC6003 for whatever is neither a regular file nor a folder,
    BC1006 when a file cannot be read.
    """
    if not target.is_dir():
        raise UserError(
            [Diagnostic("BC6004", "no such folder", Span(str(target)), "name the folder of a bundle, such as out/NAME")]
        )
    try:
        found = listing(target)
        if found.others:
            fix = "a bundle holds regular files only"
            raise UserError([Diagnostic("BC6003", "not a regular file", _at(target, p), fix) for p in found.others])
        return {path: _bytes(target, path) for path in sorted(found.files)}
    except OSError as error:
        raise UserError([Diagnostic("BC1006", error.strerror or str(error), Span(str(target)))]) from error


def wrong_modes(target: Path, files: Files) -> tuple[str, ...]:
    """Those of `files`, as `read` gave them, that are executable and should not be, or the reverse.

    Raises `UserError` BC1006 when the folder cannot be read.
    """
    try:
        found = listing(target)
    except OSError as error:
        raise UserError([Diagnostic("BC1006", error.strerror or str(error), Span(str(target)))]) from error
    return tuple(path for path in sorted(files.keys() & found.files.keys()) if not _same_mode(path, files[path], found))


def _present(place: Path, target: Path) -> Listing:
    """What the target holds, all of it ours; raises `UserError` BC5001 otherwise."""
    # A folder of thousands of files that no build made is not walked just to say so.
    strange = place.is_dir() and not (place / CHECKSUMS).is_file() and any(place.iterdir())
    if strange and not place.is_symlink():
        message = f"the folder is not empty and holds no {CHECKSUMS}: no build of ours made it"
        raise UserError([Diagnostic("BC5001", message, Span(str(target)), "name an empty or a new folder with --out")])
    found = _walk(place, target) or Listing()
    fix = "move it out of the bundle's folder, or delete it; nothing was written"
    message = "not part of the bundle: a build would delete it"
    strangers = foreign(found, _claims(place, found))
    if strangers:
        raise UserError([Diagnostic("BC5001", message, _at(target, path), fix) for path in strangers])
    return found


def _walk(place: Path, target: Path) -> Listing | None:
    if not os.path.lexists(place):
        return None
    if place.is_symlink() or not place.is_dir():
        what = "a symbolic link" if place.is_symlink() else "a file"
        fix = "name the folder itself with --out"
        raise UserError([Diagnostic("BC5001", f"the target is {what}, not a folder", Span(str(target)), fix)])
    return listing(place)


def _claims(place: Path, found: Listing) -> Mapping[str, str]:
    return owned(_bytes(place, CHECKSUMS)) if CHECKSUMS in found.files else {}


def _difference(files: Files, place: Path, found: Listing) -> WriteReport:
    there = found.files.keys()
    same = {
        path
        for path in files.keys() & there
        if _same_bytes(place, path, files[path], found) and _same_mode(path, files[path], found)
    }
    changed = (files.keys() & there) - same
    removed = there - files.keys()
    # checksums.txt lists no digest of itself; whoever edits it is found by the lines that are wrong then.
    claims = {path: digest for path, digest in _claims(place, found).items() if path in changed | removed}
    edited = {p for p, digest in claims.items() if hashlib.sha256(_bytes(place, p)).hexdigest() != digest}
    groups = (files.keys() - there, changed, removed, same, edited)
    return WriteReport(*(tuple(sorted(group)) for group in groups))


def _same_bytes(place: Path, path: str, data: bytes, found: Listing) -> bool:
    return found.files[path].st_size == len(data) and _bytes(place, path) == data


def _same_mode(path: str, data: bytes, found: Listing) -> bool:
    return bool(found.files[path].st_mode & 0o100) == executable(data)


def _replace(files: Files, place: Path, report: WriteReport, found: Listing, *, exclusive: bool) -> list[Path]:
    """Build the new tree, exchange it, clear the old one. Returns files of others that turned up meanwhile."""
    new = swap.fresh(place)
    mine = None if exclusive else new
    try:
        _build(files, place, new, set(report.unchanged), found)
        swap.sync(new, (new / path for path in (*report.added, *report.changed)))
        swap.exchange(new, place)
    except BaseException:
        # What is left is cleared by the next run in any case; the first failure is the one to report.
        with suppress(OSError):
            swap.recover(place, mine)
        raise
    return swap.recover(place, mine)


def _build(files: Files, place: Path, new: Path, unchanged: set[str], found: Listing) -> None:
    # Names as text: joining them as `Path` takes longer than making the folders.
    folders = _folders(files)
    for folder in folders:
        os.mkdir(f"{new}/{folder}")
    for path, data in sorted(files.items()):
        if not (path in unchanged and _linked(f"{place}/{path}", f"{new}/{path}")):
            _create(f"{new}/{path}", data, found.files[path] if path in unchanged else None)
    # Deepest first and last of all: a folder may be closed to writing, and keeps that. Else 0755 whatever the umask.
    for folder in reversed(folders):
        os.chmod(f"{new}/{folder}", found.folders.get(folder, 0o755))
    os.chmod(new, os.stat(place).st_mode & 0o7777 if os.path.lexists(place) else 0o755)


def _folders(files: Iterable[str]) -> list[str]:
    steps = (path.split("/") for path in files)
    return sorted({"/".join(step[:depth]) for step in steps for depth in range(1, len(step))})


def _linked(old: str, new: str) -> bool:
    # Not every file system has hard links, and Linux refuses one to a file of another user: then it is a copy.
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}:
            return False
        raise
    return True


def _create(path: str, data: bytes, like: os.stat_result | None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest[:_SPAN]) :]
        os.fchmod(handle, 0o755 if executable(data) else 0o644)
        if like is not None:
            os.utime(handle, ns=(like.st_atime_ns, like.st_mtime_ns))
    finally:
        os.close(handle)


def _bytes(place: Path, path: str) -> bytes:
    handle = os.open(f"{place}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as stream:
        return stream.read()


def _refuse_late(late: Iterable[Path], place: Path, target: Path) -> None:
    fix = "move it out of the bundle's folder, or delete it; the bundle was written and the file is kept"
    message = "turned up while the bundle was written"
    spans = [_at(target, p.relative_to(place).as_posix()) if place in p.parents else Span(str(p)) for p in late]
    if spans:
        raise UserError([Diagnostic("BC5001", message, span, fix) for span in spans])


def _at(target: Path, path: str) -> Span:
    return Span(f"{target}/{path}")


@contextmanager
def _failures(target: Path, verb: str) -> Iterator[None]:
    """Turn an `OSError` into the user's error about `target`: a full or read-only disk is no bug of ours."""
    try:
        yield
    except OSError as error:
        message = f"cannot be {verb}: {error.strerror or error}"
        fix = "check free space, permissions and --out; the folder is as it was"
        raise UserError([Diagnostic("BC5002", message, Span(str(target)), fix)]) from error
