"""The short diff of `build --check`: the first lines that differ, of the files that tell most."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_LINES = 40  # of all files together
_FILE = 12  # of one file
_LARGE = 256 * 1024  # bytes; comparing lines takes time that grows with the square
_HASH = re.compile(r"'?\bh?[0-9a-f]{8,64}\b'?")
_REPEATS = 2  # the rank of files that differ in hashes only
_REPEATING = ("checksums.txt", "bundle.yaml", "recipe.yaml")  # they differ whenever another file does


def short_diff(folders: Iterable[tuple[str, Path, Mapping[str, bytes], Iterable[str]]]) -> Iterator[str]:
    """Changed lines, `-` on disk and `+` compiled. `folders` are (name, place, compiled files, changed paths).

    The same change of the same file in several bundles is shown once, whatever its hashes are. Files that only repeat
    another's change are left out, unless there is nothing else. What had no room is counted.
    """
    found: dict[tuple[str, ...], tuple[int, str, list[str]]] = {}
    for name, place, files, paths in folders:
        for path in paths:
            lines = _changed(place / path, files[path])
            masked = [_HASH.sub("", line) for line in lines if not line.startswith("@@")]
            if lines:
                found.setdefault((path, *masked), (_rank(path, masked), f"{name}/{path}", lines))
    first = min((rank for rank, _, _ in found.values()), default=0)
    room, left = _LINES, 0
    for rank, title, lines in sorted(found.values(), key=lambda item: item[0]):
        if rank == _REPEATS != first:
            break
        if room <= 0:
            left += 1
            continue
        cut = lines[: min(_FILE, room)]
        room -= len(cut)
        yield f"--- {title}"
        yield from cut
        if len(cut) < len(lines):
            yield f"    and {len(lines) - len(cut)} lines more"
    if left:
        yield f"and changes of {left} file{'s' if left > 1 else ''} more"


def _rank(path: str, masked: Iterable[str]) -> int:
    """What components hold first, then what deploys them, then what only repeats both."""
    signs: dict[str, list[str]] = {"-": [], "+": []}
    for line in masked:
        signs.setdefault(line[:1], []).append(line[1:])
    if path in _REPEATING or (signs["-"] == signs["+"] != []):
        return _REPEATS
    return 0 if path.startswith("components/") else 1


def _changed(place: Path, compiled: bytes) -> list[str]:
    """Hunks without context; nothing of what is no regular file."""
    try:
        if place.is_symlink() or not place.is_file():
            return []
        old = place.read_bytes()
    except OSError:
        return []
    if max(len(old), len(compiled)) > _LARGE:
        return [f"    {len(old)} bytes on disk, {len(compiled)} compiled"]
    before, after = (content.decode("utf-8", "replace").removesuffix("\n").split("\n") for content in (old, compiled))
    hunks = difflib.unified_diff(before, after, n=0, lineterm="")
    return [_printable(line) for number, line in enumerate(hunks) if number >= 2]  # its own two head lines


def _printable(line: str) -> str:
    """At most a terminal's width or two, and nothing that steers the terminal."""
    text = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
    return text if len(text) <= 160 else f"{text[:157]}..."
