"""Exchanging a folder for a new one: whoever looks sees the old tree or the new one, and nothing is left behind.

A new tree grows beside its target as `.<name>.new-<16 hex digits>`, where only we know of it. When it is complete it is
renamed to `.<name>.old-<the same digits>` and exchanged with the target in one system call; from then on that name
holds the old tree, which is taken apart. A run that dies leaves a folder of one of these names, and the next run
clears it:

    .new-  an unfinished tree: all of it is ours, and goes
    .old-  a finished tree, the old or the new one: back to the target if that is missing; else the files that its
           `checksums.txt` lists go, and what somebody put into it meanwhile is moved into the target

Where the system cannot exchange two folders, renames do it (the target to .old-, .new- to the target); a run that dies
between them leaves no target, and the next one restores it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from compiler.write.ownership import CHECKSUMS, Listing, listing, owned

PATIENCE = 60.0
"""Seconds to wait for another build that writes beside the same target."""

_NO_LOCKS = {errno.EOPNOTSUPP, errno.ENOLCK, errno.EBADF, errno.ENOSYS, errno.EINVAL}  # network file systems
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}
_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2(2)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of `folder` (an advisory one on the folder itself: nothing is created, nothing stays behind).

    Yields False where the file system has no locks. Raises `TimeoutError` when another process holds it for `PATIENCE`
    seconds, and `OSError` when the folder cannot be opened.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _lock(handle, time.monotonic() + PATIENCE)
    finally:
        os.close(handle)


def _lock(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as busy:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another build is writing there") from busy
            time.sleep(0.02)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
        else:
            return True


def fresh(target: Path) -> Path:
    """A new empty folder beside `target` to build its successor in. Raises `OSError`."""
    folder = target.parent / f".{target.name}.new-{os.urandom(8).hex()}"
    os.mkdir(folder, 0o700)
    return folder


def sync(root: Path, written: Iterable[Path]) -> None:
    """Bring the tree below `root`, of which the files `written` are new, to the disk. Raises `OSError`."""
    # One call for the file system: one per file and folder, each with a commit of the journal, takes ten times as long.
    if _syncfs(root):
        return
    folders = [root, *(root / path for path in listing(root).folders)]
    for path in [*written, *reversed(folders)]:
        _fsync(path)


def exchange(new: Path, target: Path) -> None:
    """Put the finished tree `new` (made by `fresh`) in the place of `target`. The old tree stays for `recover`.

    Raises `OSError`; the target is then the old tree, or can be made so by `recover`.
    """
    old = _old(new)
    if not os.path.lexists(target):
        os.rename(new, target)
    else:
        os.rename(new, old)
        if not _renameat2(old, target, _EXCHANGE):
            os.rename(old, new)
            os.rename(target, old)
            os.rename(new, target)
    # The exchange is done; that the disk could not confirm it must not be reported as a build that did not happen.
    with contextlib.suppress(OSError):
        _fsync(target.parent)


def recover(target: Path, only: Path | None = None) -> list[Path]:
    """Clear what a run left beside `target`, this one or one that died. Returns the files of others that were met.

    Those have been moved into `target`; where a file of the same path is there they stay where they were found, and the
    returned path says so. `only` restricts it to the trees of one `fresh` folder, for file systems without locks.
    Raises `OSError`.
    """
    pattern = re.compile(re.escape(f".{target.name}.") + r"(new|old)-[0-9a-f]{16}")
    with os.scandir(target.parent) as entries:
        left = sorted(e.name for e in entries if pattern.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
    if only is not None:
        left = [name for name in left if name in {only.name, _old(only).name}]
    kept: list[Path] = []
    for name in left:
        folder = target.parent / name
        if name.startswith(f".{target.name}.new-"):
            _delete(folder)
        elif not os.path.lexists(target):
            os.rename(folder, target)
        else:
            kept += _take_apart(folder, target)
    return kept


def _old(new: Path) -> Path:
    head, _, digits = new.name.rpartition(".new-")
    return new.with_name(f"{head}.old-{digits}")


def _delete(folder: Path) -> None:
    # Lazy: it loads every compression library there is, and is needed after a crash only.
    import shutil

    _opened(folder)
    shutil.rmtree(folder)


def _opened(folder: Path) -> Listing:
    # A tree keeps its folders' permissions, and those may forbid to take it apart.
    os.chmod(folder, 0o700)
    found = listing(folder)
    for path in sorted(found.folders, key=len):
        if found.folders[path] & 0o300 != 0o300:
            os.chmod(folder / path, 0o700)
    return found


def _take_apart(folder: Path, target: Path) -> list[Path]:
    found = _opened(folder)
    ours = owned((folder / CHECKSUMS).read_bytes()) if CHECKSUMS in found.files else {}
    kept: list[Path] = []
    for path in sorted({*found.files, *found.others} - ({CHECKSUMS} & found.files.keys())):
        if path in ours and path in found.files:
            os.unlink(folder / path)
        else:
            kept.append(_rescue(folder / path, target / path))
    stuck = any(folder in path.parents for path in kept)
    for path in sorted(found.folders, key=len, reverse=True):
        # Not empty: a file that is kept here, or one that came this very moment; the next run sees to it.
        with contextlib.suppress(OSError):
            os.rmdir(folder / path)
    if not stuck:
        # checksums.txt goes last: whoever finds half a tree still knows what in it is ours.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / CHECKSUMS)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return kept


def _rescue(found: Path, wanted: Path) -> Path:
    # A folder of that path may have become a file, or the path may be taken: then it stays where it is.
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        if not _renameat2(found, wanted, _NOREPLACE):
            if os.path.lexists(wanted):
                return found
            os.rename(found, wanted)
    except (FileExistsError, NotADirectoryError):
        return found
    return wanted


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    # False when the system cannot do that; every other failure is an `OSError`.
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        number = errno.ENOSYS
    else:
        if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
            return True
        number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Folders cannot be synced everywhere; a file that cannot is a write that failed.
        if error.errno not in {errno.EINVAL, errno.EBADF} or not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise
    finally:
        os.close(handle)


def _syncfs(folder: Path) -> bool:
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return False
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if call(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(handle)
    return True
