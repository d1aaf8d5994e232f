"""The sources of both sides as text: which file and which line was edited, and what stands there."""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from compiler.model import Catalog
from compiler.paths import MISSING, lookup
from compiler.review.diff.model import Place, SideName
from compiler.review.diff.values import same
from compiler.source import Document, Origin, Path, Span, walk

_LARGEST = 1 << 20  # bytes of a file that nobody reads
_Opcodes = Sequence[tuple[str, int, int, int, int]]


class _Nodes:
    """The nodes of a document in their order, and the line each begins in."""

    def __init__(self, document: Document) -> None:
        self.paths = list(walk(document.data))
        self.lines = [document.marks[at] for at in range(0, min(4 * len(self.paths), len(document.marks)), 4)]
        self.index = {path: number for number, path in enumerate(self.paths[: len(self.lines)])}

    def extent(self, path: Path) -> tuple[int, int] | None:
        """The first and the last line of a node with all below it; None when there is no such node."""
        start = self.index.get(path)
        if start is None:
            return None
        after = start + 1
        while after < len(self.lines) and self.paths[after][: len(path)] == path:
            after += 1
        first = self.lines[start]
        return first, max(first, self.lines[after] - 1) if after < len(self.lines) else 1 << 30

    def at(self, line: int) -> Path:
        """The last node that begins in a line or before it."""
        return self.paths[max(bisect.bisect_right(self.lines, line) - 1, 0)]


@dataclass(frozen=True)
class Sources:
    """The text of every source file on both sides, by its path relative to the workspace."""

    base: Mapping[str, str]
    head: Mapping[str, str]
    _edits: dict[str, _Opcodes] = field(default_factory=dict, repr=False, compare=False)
    _split: dict[tuple[str, SideName], list[str]] = field(default_factory=dict, repr=False, compare=False)
    _data: dict[tuple[str, SideName], Any] = field(default_factory=dict, repr=False, compare=False)
    _nodes: dict[tuple[str, SideName], _Nodes] = field(default_factory=dict, repr=False, compare=False)

    def edited(self, file: str) -> bool:
        """Whether the file differs between the sides."""
        return self.base.get(file) != self.head.get(file)

    def edited_line(self, place: Place) -> bool:
        """Whether the line of a place is one of those that differ."""
        if not self.edited(place.file):
            return False
        tag, _, _, _, _ = self._block(place.file, place.line, place.side)
        return tag != "equal"

    def place(self, origin: Origin | Span | None, side: SideName) -> Place | None:
        """The line of an origin; None for values that no file wrote.

        A line of the base that another one replaced is told as that one: there it can be looked at.
        """
        if origin is None:
            return None
        span = origin.span(key=True) if isinstance(origin, Origin) else origin
        if span.file.startswith("<"):
            return None
        if side == "base" and span.file in self.head and self.edited(span.file):
            tag, i1, _, j1, j2 = self._block(span.file, span.line, "base")
            if tag == "replace":
                return self._at(span.file, min(j1 + span.line - 1 - i1, j2 - 1) + 1, "head")
        return self._at(span.file, span.line, side)

    def know(self, document: Document, side: SideName) -> None:
        """Remember what a file says on a side, so that `inside` sees which nodes of an edited line are as before."""
        self._data[document.file, side] = document.data

    def inside(self, origin: Origin, side: SideName) -> Place | None:
        """The first edited line of a node that says something; None when no line of the node was edited.

        Lines of the base that others replaced are told as those, and those that only the head has are found there. Of
        several nodes in one line those count that say something else than before.
        """
        file = origin.document.file
        other = self._data.get((file, "base" if side == "head" else "head"))
        before, now = lookup(other, origin.path), lookup(origin.document.data, origin.path)
        if other is not None and now is not MISSING and before is not MISSING and same(before, now):
            return None
        extent = self._node(origin.document, side).extent(origin.path) if self.edited(file) else None
        if extent is None:
            return None
        for place in self._runs(file, side, *extent):
            if _says(place.text):
                return place
        return None

    def path_of(self, document: Document, place: Place) -> Path:
        """The path of the node that a line of a document belongs to."""
        return self._node(document, place.side).at(place.line)

    def _node(self, document: Document, side: SideName) -> _Nodes:
        found = self._nodes.get((document.file, side))
        if found is None:
            found = self._nodes[document.file, side] = _Nodes(document)
        return found

    def _runs(self, file: str, side: SideName, first: int, last: int) -> Iterator[Place]:
        """The edited lines between two lines of a side."""
        for tag, i1, i2, j1, j2 in self._blocks(file):
            start, end = (i1, i2) if side == "base" else (j1, j2)
            if tag == "equal" or end < first or start >= last:
                continue
            for line in range(max(start + 1, first), min(end, last) + 1):
                if side == "base" and tag == "replace":
                    yield self._at(file, min(j1 + line - 1 - i1, j2 - 1) + 1, "head")
                else:
                    yield self._at(file, line, side)

    def first_edit(self, file: str) -> Place | None:
        """The first line of a file that differs: on the head's side, or on the base's where lines only went."""
        if not self.edited(file):
            return None
        if file not in self.base or file not in self.head:
            return self._at(file, 1, "base" if file in self.base else "head")
        tag, i1, _, j1, _ = next((block for block in self._blocks(file) if block[0] != "equal"), ("delete", 0, 0, 0, 0))
        return self._at(file, i1 + 1, "base") if tag == "delete" else self._at(file, j1 + 1, "head")

    def edits(self, file: str) -> tuple[Place, ...]:
        """The first line that says something of each run of edited lines; comments alone count when nothing else does.

        A file that only one side has is one edit, of its first line.
        """
        if not self.edited(file) or file not in self.base or file not in self.head:
            first = self.first_edit(file)
            return (first,) if first else ()
        found: list[Place] = []
        for tag, i1, i2, j1, j2 in self._blocks(file):
            if tag == "equal":
                continue
            lines = [self._at(file, n, "head") for n in range(j1 + 1, j2 + 1)]
            lines += [self._at(file, n, "base") for n in range(i1 + 1, i2 + 1)]
            found += [place for place in lines if _says(place.text)][:1]
        first = self.first_edit(file)
        return tuple(found) or ((first,) if first else ())

    def lines(self, file: str, side: SideName) -> tuple[Place, ...]:
        """Every line of a file on a side; none when the side does not have it."""
        there = file in (self.base if side == "base" else self.head)
        return tuple(self._at(file, n + 1, side) for n in range(len(self._lines(file, side)))) if there else ()

    def document(self, place: Place) -> list[str]:
        """The lines of the YAML document that a line is in, from the one after its `---` to the next."""
        lines = self._lines(place.file, place.side)
        first, last = place.line, place.line
        while first > 0 and not lines[first - 1].startswith("---"):
            first -= 1
        while last < len(lines) and not lines[last].startswith("---"):
            last += 1
        return lines[first:last]

    def length(self, place: Place) -> int:
        """The number of lines of the file of a place."""
        return len(self._lines(place.file, place.side))

    def _lines(self, file: str, side: SideName) -> list[str]:
        found = self._split.get((file, side))
        if found is None:
            text = (self.base if side == "base" else self.head).get(file, "")
            found = self._split[file, side] = text.split("\n")
        return found

    def _at(self, file: str, line: int, side: SideName) -> Place:
        lines = self._lines(file, side)
        return Place(file, line, side, lines[line - 1].strip() if 0 < line <= len(lines) else "")

    def _block(self, file: str, line: int, side: SideName) -> tuple[str, int, int, int, int]:
        for block in self._blocks(file):
            _, i1, i2, j1, j2 = block
            first, end = (i1, i2) if side == "base" else (j1, j2)
            if first < line <= end:
                return block
        return ("equal", 0, 0, 0, 0)

    def _blocks(self, file: str) -> _Opcodes:
        if file not in self._edits:
            old, new = (side.get(file, "").split("\n") for side in (self.base, self.head))
            # Lines that stand everywhere (`---`, `kind: ConfigMap`) are left out of the search: it would be quadratic.
            self._edits[file] = difflib.SequenceMatcher(None, old, new).get_opcodes()
        return self._edits[file]


def _says(line: str) -> bool:
    """Whether a line without its outer blanks is more than nothing, a comment or the end of a document."""
    return bool(line) and not line.startswith(("#", "{#")) and line != "---"


def texts(catalog: Catalog, root: FilePath) -> dict[str, str]:
    """File -> text of every source file of the catalog that lies below `root`.

    Of components' folders every file that is text, whether the catalog uses it or not: a values file that is used now
    may have lain there before.
    """
    found: dict[str, str] = {}

    def add(document: Document | None) -> None:
        if document is not None and document.text is not None:
            found[document.file] = document.text

    add(catalog.workspace.origin.document)
    for overlay in catalog.overlays.values():
        add(overlay.origin.document)
    for mixin in catalog.mixins.values():
        add(mixin.origin.document)
    for component in catalog.components.values():
        add(component.origin.document)
        for document in (component.values, *component.values_files.values()):
            add(document)
        for check in component.checks.values():
            add(check.origin.document)
        for source in component.manifest_sources.values():
            found[source.file] = source.text
        folder = component.origin.document.file.rpartition("/")[0]
        found |= {name: text for name, text in _others(root, folder) if name not in found}
    return dict(sorted(found.items()))


def _others(root: FilePath, folder: str) -> Iterator[tuple[str, str]]:
    """(name, text) of the text files below a folder of the workspace."""
    for path in sorted((root / folder).rglob("*")):
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                content = path.read_bytes()
                yield f"{folder}/{path.relative_to(root / folder).as_posix()}", content.decode().replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError):
            continue  # no text, or nothing that the catalog was made of
