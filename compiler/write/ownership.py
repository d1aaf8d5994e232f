"""Which files of a folder are ours: those that its `checksums.txt` lists, and `checksums.txt` itself.

Everything that decides about deleting or overwriting asks here, so that a file which somebody else put into a bundle's
folder is never lost.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from compiler.errors import InternalError
from compiler.records import dataclass

CHECKSUMS = "checksums.txt"
_LINE = re.compile(rb"([0-9a-f]{64})  ([^\r\n]+)")
_PATH = re.compile(r"[ -\[\]-~]+")  # printable ASCII without the backslash: the same name on every file system


@dataclass(frozen=True)
class Listing:
    """What lies in a folder, without following a symbolic link.

    `files` are regular files by relative POSIX path, `others` everything that is neither a regular file nor a folder,
    `folders` every folder below the root. Modes are permission bits.
    """

    files: Mapping[str, os.stat_result] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)


def listing(root: Path) -> Listing:
    """Everything below `root`, which must be a folder. Raises `OSError`."""
    files: dict[str, os.stat_result] = {}
    others: list[str] = []
    folders: dict[str, int] = {}
    todo = [("", str(root))]
    while todo:
        prefix, folder = todo.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders[path] = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                    todo.append((path + "/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    files[path] = entry.stat(follow_symlinks=False)
                else:
                    others.append(path)
    return Listing(files, tuple(sorted(others)), folders)


def owned(checksums: bytes) -> dict[str, str]:
    """Digest by path of the files that a `checksums.txt` claims.

    Lines that are none (the markers of a merge conflict, say) are passed over: a bundle that was merged by hand is
    still ours, and the next build sets it right.
    """
    found: dict[str, str] = {}
    for line in checksums.split(b"\n"):
        match = _LINE.fullmatch(line.rstrip(b"\r"))
        path = match[2].decode("utf-8", "replace") if match else ""
        if match and path_problem(path) is None:
            found[path] = match[1].decode()
    return found


def foreign(found: Listing, claimed: Iterable[str]) -> list[str]:
    """Paths in `found` that nobody owns, sorted; a folder without any owned file stands for its content, as `name/`."""
    ours = {CHECKSUMS, *claimed}
    kept = set(found.files) & ours
    shared = {"/".join(path.split("/")[:depth]) for path in kept for depth in range(1, path.count("/") + 1)}
    named: set[str] = set()
    for path in [*found.others, *(set(found.files) - ours)]:
        steps = path.split("/")
        alone = (depth for depth in range(1, len(steps)) if "/".join(steps[:depth]) not in shared)
        top = next(alone, None)
        named.add(path if top is None else "/".join(steps[:top]) + "/")
    return sorted(named)


def path_problem(path: str) -> str | None:
    """What is wrong with a relative POSIX path of a bundle, or None."""
    if not _PATH.fullmatch(path):
        return "not printable ASCII, or with a backslash"
    steps = path.split("/")
    if any(step in {"", ".", ".."} for step in steps):
        return "absolute, or with an empty, `.` or `..` step"
    if any(len(step) > 255 for step in steps):
        return "a step of more than 255 characters"
    return None


def check_files(files: Mapping[str, bytes]) -> None:
    """Raise `InternalError` unless `files` fit any file system and their `checksums.txt` covers them exactly."""
    spelling: dict[str, str] = {}
    for path in sorted(files):
        problem = path_problem(path)
        if problem:
            raise InternalError(f"path {path!r}: {problem}")
        steps = path.split("/")
        for depth in range(1, len(steps) + 1):
            part = "/".join(steps[:depth])
            if spelling.setdefault(part.casefold(), part) != part:
                raise InternalError(f"path {path!r} and {spelling[part.casefold()]!r} differ in case only")
            if depth < len(steps) and part in files:
                raise InternalError(f"path {part!r} is a file and a folder")
    claimed = owned(files.get(CHECKSUMS, b""))
    actual = {path: hashlib.sha256(data).hexdigest() for path, data in files.items() if path != CHECKSUMS}
    if claimed != actual:
        wrong = sorted(path for path in {*claimed, *actual} if claimed.get(path) != actual.get(path))
        raise InternalError(f"{CHECKSUMS} does not cover the files: {', '.join(wrong)}")


def executable(data: bytes) -> bool:
    """Whether a file of this content is written executable: it begins with `#!`."""
    return data[:2] == b"#!"
