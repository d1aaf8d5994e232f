"""A cursor over a source document: the value, and who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compiler.records import dataclass
from compiler.source import Document, Origin, Path


@dataclass(frozen=True)
class Node:
    """A value of a document that its schema accepts, so the readers below need no type checks of their own.

    `data` may have been pruned of what the schema refused; `document` and `path` still name the place in the file.
    """

    data: Any
    document: Document
    path: Path = ()

    @property
    def origin(self) -> Origin:
        """Who wrote this node."""
        return Origin(self.document, self.path)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.data, dict) and key in self.data

    def down(self, *steps: str | int) -> Node:
        """The node below; it must be there."""
        data = self.data
        for step in steps:
            data = data[step]
        return Node(data, self.document, self.path + steps)

    def find(self, key: str) -> Node | None:
        """The node below `key`, or None when it is absent or null."""
        value = self.data.get(key)
        return None if value is None else Node(value, self.document, (*self.path, key))

    def get(self, key: str, default: Any = None) -> Any:
        """The plain value below `key`; the default when it is absent or null."""
        value = self.data.get(key)
        return default if value is None else value

    def items(self, key: str) -> Iterator[Node]:
        """The nodes of the list below `key`; none when it is absent."""
        for index, value in enumerate(self.data.get(key) or ()):
            yield Node(value, self.document, (*self.path, key, index))

    def pairs(self, key: str) -> Iterator[tuple[str, Node]]:
        """Keys and nodes of the mapping below `key`; none when it is absent."""
        for name, value in (self.data.get(key) or {}).items():
            yield name, Node(value, self.document, (*self.path, key, name))

    def strings(self, key: str) -> tuple[str, ...]:
        """The list of strings below `key`."""
        return tuple(self.data.get(key) or ())
