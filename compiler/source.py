"""Source documents: plain data plus, on demand, the file:line:column of every node.

Data stays plain (dict, list, str, int, float, bool, None), so that merging, schema checks and templates need no wrapper
types. Positions live beside it, addressed by the path of a node, and are only looked up when somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

from compiler.records import dataclass

Path: TypeAlias = tuple[str | int, ...]
"""Address of a node inside a document: mapping keys and list indexes from the root."""


@dataclass(frozen=True, order=True)
class Span:
    """A place in a source file. `line` and `column` count from 1; 0 means "the file as a whole"."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Document:
    """One parsed YAML document of one source file.

    `file` is the POSIX path relative to the workspace root. `marks` holds four integers per node in document order
    (key line, key column, value line, value column; root and list items repeat the value's position as the key's),
    which is compact enough to cache and is only unfolded when a position is asked for.
    """

    file: str
    data: Any
    marks: Sequence[int] = field(default=(), repr=False, compare=False)
    text: str | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _index(self) -> Mapping[Path, tuple[int, int, int, int]]:
        table: dict[Path, tuple[int, int, int, int]] = {}
        marks = self.marks
        for number, path in enumerate(walk(self.data)):
            at = 4 * number
            if at + 4 > len(marks):
                break
            table[path] = (marks[at], marks[at + 1], marks[at + 2], marks[at + 3])
        return table

    def span(self, path: Path = (), *, key: bool = False) -> Span:
        """The position of the value at `path` (of its key with `key=True`), or of its nearest ancestor."""
        while path and path not in self._index:
            path = path[:-1]
        mark = self._index.get(path)
        if mark is None:
            return Span(self.file, 1, 1)
        return Span(self.file, mark[0], mark[1]) if key else Span(self.file, mark[2], mark[3])

    def at(self, path: Path = ()) -> Origin:
        """The origin that names the node at `path` of this document."""
        return Origin(self, path)


@dataclass(frozen=True)
class Origin:
    """Who wrote a value: a node of a source document. Cheap to carry around; the span is computed when asked for."""

    document: Document = field(repr=False)
    path: Path = ()

    def span(self, *, key: bool = False) -> Span:
        """file:line:column of the node (of its key with `key=True`)."""
        return self.document.span(self.path, key=key)

    def down(self, *steps: str | int) -> Origin:
        """The origin of a node below this one."""
        return Origin(self.document, self.path + steps)

    def __str__(self) -> str:
        return str(self.span())


def built_in(what: str) -> Origin:
    """An origin for values that no file wrote: the compiler's own defaults, or a command-line flag (`--set`)."""
    return Origin(Document(f"<{what}>", None))


def walk(data: Any, at: Path = ()) -> Iterator[Path]:
    """Paths of all nodes in document order: the node itself, then its children (the order of `Document.marks`)."""
    yield at
    if isinstance(data, dict):
        for key, value in data.items():
            yield from walk(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from walk(value, (*at, index))


def dotted(path: Path) -> str:
    """`path` as people write it: `spec.rails[0].name`; keys that hold a dot are put in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or not step:
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text


_STEP = re.compile(r'\["([^"]*)"\]|\[([0-9]+)\]|\.([^.\[\]"]+)')


def parse_path(text: str) -> Path:
    """The inverse of `dotted`: `a.b`, `a["b.c/d"]`, `a[0]` as steps; "" is the root. Raises ValueError otherwise."""
    rest = f".{text}" if text and not text.startswith("[") else text
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ValueError(f'`{text}` is not a dotted path such as `driver.rdma.enabled` or `labels["a.b/c"]`')
        quoted, index, plain = match.groups()
        steps.append(int(index) if index is not None else plain if plain is not None else quoted)
        at = match.end()
    return tuple(steps)
