"""Reading YAML: from libyaml's events straight to plain data, with positions and all findings of a file at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from compiler.errors import Collector
from compiler.source import Document, Span
from compiler.yamlio.scalars import DoubtfulError, OutOfRangeError, go_value, plain_value

MAX_DEPTH = 100
"""Nesting beyond this is an error: nobody reads it, and every later stage may recurse."""

# Aliases of third-party YAML are expanded; a "billion laughs" file is not.
_MAX_EXPANDED = 200_000

_TEMPLATE = re.compile(r"\{\{|\{%")
_OCTAL = re.compile(r"0[oO]?[0-7]+")
_TAG = "tag:yaml.org,2002:"
_TAG_VALUES: Mapping[str, Callable[[str], Any]] = {
    _TAG + "str": str,
    _TAG + "int": go_value,
    _TAG + "float": lambda text: float(go_value(text)),
    _TAG + "bool": go_value,
    _TAG + "null": lambda _: None,
    _TAG + "timestamp": str,
    _TAG + "binary": str,
    "!": str,
}


class _Abort(Exception):  # noqa: N818 - control flow, never seen outside
    """The rest of the file cannot be read; the finding is recorded."""


def load(text: str, file: str) -> Document:
    """Parse the one YAML document of a source file of ours.

    `file` names it in messages. An empty file gives the data None. Raises `UserError` with every finding of the file:
    BC1001 syntax, BC1002 duplicate keys, BC1003 doubtful scalars and keys that are no strings, BC1004 numbers out of
    range, BC1005 anchors, aliases, tags, merge keys and further documents.
    """
    reader = _Reader(text, file, strict=True)
    documents = reader.documents()
    for extra in documents[1:]:
        reader.found.error(
            "BC1005", "a second document in a file that holds one", extra.span(), fix="split the file at `---`"
        )
    reader.found.raise_if_failed()
    return documents[0] if documents else Document(file, None, (1, 1, 1, 1), text)


def load_all(text: str, file: str, *, strict: bool = True) -> tuple[Document, ...]:
    """Parse a stream of YAML documents; empty and comment-only ones are left out.

    `strict` is the rule for files of ours (see `load`). Without it the text is third-party YAML: plain scalars mean
    what they mean to Go (Helm), the last of duplicate keys wins, anchors and merge keys are expanded, keys become
    strings, and the documents carry no positions. Raises `UserError` with every finding.
    """
    reader = _Reader(text, file, strict=strict)
    documents = reader.documents()
    reader.found.raise_if_failed()
    return tuple(d for d in documents if d.data is not None)


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, file: str, *, strict: bool) -> None:
        self.text = text
        self.file = file
        self.strict = strict
        self.found = Collector()
        self.marks: list[int] = []
        self.anchors: dict[str, Any] = {}
        self.expanded = 0
        self.depth = 0

    def documents(self) -> list[Document]:
        result: list[Document] = []
        try:
            parser = CParser(self.text.removeprefix("\ufeff"))
            self.next: Callable[[], Any] = parser.get_event
            while type(event := self.next()) is not StreamEndEvent:
                if type(event) is DocumentStartEvent:
                    self.marks, self.anchors, self.expanded = [], {}, 0
                    data = self.node(self.next(), None)
                    result.append(Document(self.file, data, tuple(self.marks), self.text))
        except _Abort:
            pass
        except (YAMLError, UnicodeError) as error:
            self.syntax_error(error)
        return result

    def node(self, event: Any, key: tuple[int, int] | None) -> Any:
        kind = type(event)
        if kind is ScalarEvent:
            if self.strict:
                mark = event.start_mark
                line, column = mark.line + 1, mark.column + 1
                self.marks += (*(key or (line, column)), line, column)
            value = self.scalar(event)
            if event.anchor is not None:
                self.anchor(event, value)
            return value
        if kind is AliasEvent:
            return self.alias(event, key)
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        if self.strict:
            self.marks += (*(key or (line, column)), line, column)
            if event.tag is not None:
                self.refuse(event, f"the tag `{event.tag}`", "remove it")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            at = Span(self.file, line, column)
            self.found.error("BC1005", f"nested deeper than {MAX_DEPTH} levels", at, fix="flatten the structure")
            raise _Abort
        data = self.sequence() if kind is SequenceStartEvent else self.mapping()
        self.depth -= 1
        if event.anchor is not None:
            self.anchor(event, data)
        return data

    def sequence(self) -> list[Any]:
        data: list[Any] = []
        while type(event := self.next()) is not SequenceEndEvent:
            data.append(self.node(event, None))
        return data

    def mapping(self) -> dict[str, Any]:
        data: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        merged: list[Any] = []
        while type(event := self.next()) is not MappingEndEvent:
            mark = event.start_mark
            place = (mark.line + 1, mark.column + 1)
            is_merge = type(event) is ScalarEvent and event.value == "<<" and event.implicit[0]
            key = "<<" if is_merge else self.key(event)
            if is_merge and self.strict:
                self.refuse(event, "a merge key", "write the keys out")
            if is_merge and not self.strict:
                merged.append(self.node(self.next(), place))
                continue
            if key in places and self.strict:
                self.duplicate(key, places[key], place)
                # Positions of the second value are of no use, since the document is refused.
                self.node(self.next(), place)
                continue
            places[key] = place
            data[key] = self.node(self.next(), place)
        for source in merged:
            for one in source if isinstance(source, list) else [source]:
                if isinstance(one, dict):
                    data = {**one, **data}
        return data

    def key(self, event: Any) -> str:
        if type(event) is not ScalarEvent:
            self.found.error(
                "BC1003" if self.strict else "BC1005",
                "a mapping key that is not a string",
                self.at(event),
                fix=self.template_hint(event.start_mark.line) or "write the key as a plain string",
            )
            marks = list(self.marks)
            self.node(event, None)
            self.marks = marks
            return ""
        before = len(self.found.found)
        value = self.scalar(event)
        if event.anchor is not None:
            self.anchor(event, value)
        if isinstance(value, str):
            return value
        if self.strict:
            if len(self.found.found) == before:
                self.found.error(
                    "BC1003",
                    f"the mapping key `{event.value}` is not a string",
                    self.at(event),
                    fix=f'quote it: "{event.value}"',
                )
            return str(event.value)
        # As Go turns such a map into JSON. Identity, since True == 1.
        return "true" if value is True else "false" if value is False else "null" if value is None else str(value)

    def scalar(self, event: Any) -> Any:
        text: str = event.value
        try:
            if event.tag is not None:
                return self.tagged(event, text)
            if not event.implicit[0]:
                return text
            return plain_value(text) if self.strict else go_value(text)
        except DoubtfulError as doubt:
            fix = f'quote it: "{text}"'
            octal = go_value(text) if _OCTAL.fullmatch(text) else None
            if isinstance(octal, int):
                fix += f", or write the decimal {octal}"
            self.found.error("BC1003", f"plain `{text}` is {doubt}", self.at(event), fix=fix)
        except OutOfRangeError as error:
            self.found.error(
                "BC1004",
                f"`{text if len(text) < 40 else text[:36] + '...'}`: {error}",
                self.at(event),
                fix="quote it if it is text",
            )
        return text

    def tagged(self, event: Any, text: str) -> Any:
        convert = _TAG_VALUES.get(event.tag)
        if self.strict or convert is None:
            self.refuse(event, f"the tag `{event.tag}`", "remove it")
            return text
        try:
            return convert(text)
        except (TypeError, ValueError):
            self.found.error("BC1001", f"`{text}` does not fit its tag `{event.tag}`", self.at(event))
            return text

    def anchor(self, event: Any, value: Any) -> None:
        if self.strict:
            self.refuse(event, f"the anchor `&{event.anchor}`", "write the value out where it is used")
        self.anchors[event.anchor] = value

    def alias(self, event: Any, key: tuple[int, int] | None) -> Any:
        if self.strict:
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            self.marks += (*(key or (line, column)), line, column)
            self.refuse(event, f"the alias `*{event.anchor}`", "write the value out")
            return None
        if event.anchor not in self.anchors:
            self.found.error("BC1001", f"the alias `*{event.anchor}` has no anchor before it", self.at(event))
            raise _Abort
        return self.copy(self.anchors[event.anchor], event)

    def copy(self, value: Any, event: Any) -> Any:
        self.expanded += 1
        if self.expanded > _MAX_EXPANDED:
            self.found.error("BC1005", f"aliases expand to more than {_MAX_EXPANDED} nodes", self.at(event))
            raise _Abort
        if isinstance(value, dict):
            return {k: self.copy(v, event) for k, v in value.items()}
        if isinstance(value, list):
            return [self.copy(v, event) for v in value]
        return value

    def at(self, event: Any) -> Span:
        return Span(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def refuse(self, event: Any, what: str, fix: str) -> None:
        self.found.error("BC1005", f"{what} is not accepted here", self.at(event), fix=fix)

    def duplicate(self, key: str, first: tuple[int, int], second: tuple[int, int]) -> None:
        self.found.error(
            "BC1002",
            f"the key `{key}` stands twice in one mapping: lines {first[0]} and {second[0]}",
            Span(self.file, *second),
            fix="merge the two or remove one",
            notes=((Span(self.file, *first), f"`{key}` stands here first"),),
        )

    def template_hint(self, line: int) -> str | None:
        lines = self.text.splitlines()[line : line + 1]
        return "a template is named *.yaml.j2" if lines and _TEMPLATE.search(lines[0]) else None

    def syntax_error(self, error: Exception) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        context = getattr(error, "context", None)
        position = getattr(error, "position", None)
        if mark is not None:
            line, column = mark.line + 1, mark.column + 1
        elif isinstance(position, int) and position >= 0:
            # libyaml counts bytes of UTF-8 here.
            before = self.text.removeprefix("\ufeff").encode(errors="replace")[:position].decode(errors="replace")
            line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        else:
            line, column = 1, 1
        rows = self.text.splitlines()
        row = rows[line - 1] if line <= len(rows) else ""
        fix = self.template_hint(line - 1)
        if fix is None and "\t" in row[:column]:
            fix = "indent with spaces, not with tabs"
        # libyaml stands on `@`, but behind `*`.
        near = row[max(column - 2, 0) : column]
        if fix is None and (near.startswith(("*", "&")) or near.endswith(("@", "`", "%"))):
            fix = "quote text that begins with a special character"
        message = f"{problem} ({context})" if context else str(problem)
        at = Span(self.file, line, column)
        self.found.error("BC1001", message, at, fix=fix or "correct the YAML here or just before")
