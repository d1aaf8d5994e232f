"""Finding nulls that nobody wrote: a key whose children are all commented out deletes the branch it would have kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compiler.errors import Collector
from compiler.source import Document, Path, dotted

_WRITTEN = ("null", "~", "Null", "NULL")


def warn_of_empty_keys(document: Document, path: Path, found: Collector) -> None:
    """BC1208 for every key at or below `path` of a values tree that has no value; a written `null` is meant."""
    data = document.data
    for step in path:
        data = data[step]
    nulls = list(_nulls(data, path))
    if not nulls:
        return
    lines = (document.text or "").splitlines()
    for at in nulls:
        span = document.span(at)
        line = lines[span.line - 1] if 0 < span.line <= len(lines) else ""
        if line[span.column - 1 :].lstrip().startswith(_WRITTEN):
            continue
        why = " but comments below it" if _comment_follows(lines, span.line) else ""
        found.warn(
            "BC1208",
            f"`{dotted(at[len(path) :])}` has no value{why}: it is null and deletes what it inherits",
            document.at(at),
            fix="remove the key to inherit, write `{}` for an empty map, or `null` if it shall be deleted",
        )


def _nulls(data: Any, at: Path) -> Iterator[Path]:
    if isinstance(data, dict):
        for key, value in data.items():
            if value is None:
                yield (*at, key)
            else:
                yield from _nulls(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _nulls(value, (*at, index))


def _comment_follows(lines: list[str], line: int) -> bool:
    return next((text.lstrip().startswith("#") for text in lines[line:] if text.strip()), False)
