"""Writing YAML: one form for every file that the compiler emits.

Block style, two spaces, sequences at the level of their key (as kubectl and kustomize print them), keys in the order
given, literal blocks for text of several lines, no aliases, no line folding. Every scalar means the same to a YAML 1.1
reader, a YAML 1.2 reader and Go's YAML; see scalars.py.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from yaml._yaml import CEmitter
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from compiler.errors import Diagnostic, InternalError, UserError
from compiler.source import Path, dotted
from compiler.yamlio.scalars import OutOfRangeError, needs_quotes, number_text

# Text that a literal block carries unchanged through every reader. Leading blanks need an indentation hint and several
# trailing line breaks a `+`, which readers and editors treat unequally; other line breaks than \n are not kept.
_LITERAL = re.compile(r"[^\s\x85\u2028\u2029](?:[^\r\x0b\x0c\x85\u2028\u2029]*[^\s])?\n?")

# What some reader takes for a line break, and may fold: only double quotes carry it safely.
_BREAK = re.compile("[\n\r\x85\u2028\u2029]")

_BLOCK_MAP = MappingStartEvent(None, None, True, flow_style=False)
_FLOW_MAP = MappingStartEvent(None, None, True, flow_style=True)
_MAP_END = MappingEndEvent()
_BLOCK_SEQ = SequenceStartEvent(None, None, True, flow_style=False)
_FLOW_SEQ = SequenceStartEvent(None, None, True, flow_style=True)
_SEQ_END = SequenceEndEvent()
_NULL = ScalarEvent(None, None, (True, True), "null")
_TRUE = ScalarEvent(None, None, (True, True), "true")
_FALSE = ScalarEvent(None, None, (True, True), "false")


def dump(data: Any) -> str:
    """`data` as one YAML document, without `---` and ending in a line break.

    Accepts mappings with string keys, lists, tuples, str, int, float, bool and None. Raises `UserError`: BC1004 for
    floats that are not finite and integers beyond 2**53, BC1003 for keys that are no strings, BC1001 for text that is
    not Unicode.
    """
    if isinstance(data, (Mapping, list, tuple)):
        return dump_all([data])
    # At the root a scalar would bring a document end marker with it, so it is written as a list item; on one line, so
    # that a template can put it anywhere.
    return _dump([[data]], literal=False)[2:]


def dump_all(documents: Iterable[Any]) -> str:
    """Several documents with `---` between them; see `dump`. The documents are mappings or lists."""
    return _dump(documents, literal=True)


def _dump(documents: Iterable[Any], *, literal: bool) -> str:
    stream = io.StringIO()
    emitter = CEmitter(stream, width=-1, allow_unicode=True)
    emitter.emit(StreamStartEvent())
    for number, data in enumerate(documents):
        writer = _Writer(emitter, literal=literal)
        emitter.emit(DocumentStartEvent(explicit=number > 0))
        try:
            writer.node(data)
        except (OutOfRangeError, UnicodeError, TypeError, RecursionError) as error:
            raise _refused(data, error) from error
        emitter.emit(DocumentEndEvent(explicit=False))
    emitter.emit(StreamEndEvent())
    return stream.getvalue()


class _Writer:
    """Feeds the nodes of one document to libyaml's emitter; scalar events are shared between equal strings."""

    def __init__(self, emitter: CEmitter, *, literal: bool) -> None:
        self.emit = emitter.emit
        self.literal = literal
        self.keys: dict[str, ScalarEvent] = {}
        self.strings: dict[str, ScalarEvent] = {}

    def node(self, value: Any) -> None:
        kind = type(value)
        if kind is str:
            event = self.strings.get(value)
            if event is None:
                literal = self.literal and "\n" in value and _LITERAL.fullmatch(value)
                event = self.strings[value] = _string(value, literal=bool(literal))
            self.emit(event)
        elif kind is dict:
            self.mapping(value)
        elif kind is list or kind is tuple:
            self.sequence(value)
        elif value is None:
            self.emit(_NULL)
        elif kind is bool:
            self.emit(_TRUE if value else _FALSE)
        elif kind is int or kind is float:
            self.emit(ScalarEvent(None, None, (True, True), number_text(value)))
        elif isinstance(value, Mapping):
            self.mapping(value)
        elif isinstance(value, str):  # markupsafe.Markup and other subclasses
            self.node(str.__str__(value))
        else:
            raise TypeError(f"a {kind.__name__}")

    def mapping(self, value: Mapping[str, Any]) -> None:
        emit, keys, node = self.emit, self.keys, self.node
        emit(_BLOCK_MAP if value else _FLOW_MAP)
        for key, child in value.items():
            event = keys.get(key)
            if event is None:
                if not isinstance(key, str):
                    raise TypeError(f"the key {key!r}")
                event = keys[key] = _string(str.__str__(key), literal=False)
            emit(event)
            node(child)
        emit(_MAP_END)

    def sequence(self, value: Sequence[Any]) -> None:
        self.emit(_BLOCK_SEQ if value else _FLOW_SEQ)
        for child in value:
            self.node(child)
        self.emit(_SEQ_END)


@lru_cache(maxsize=1 << 15)  # the files of a bundle share most of their strings; events are never changed
def _string(text: str, *, literal: bool) -> ScalarEvent:
    style = "|" if literal else '"' if _BREAK.search(text) else None
    # The first flag tells libyaml whether the plain form would be read back as this string.
    return ScalarEvent(None, None, (not needs_quotes(text), True), text, style=style)


def _refused(data: Any, error: Exception) -> UserError | InternalError:
    """The error with the path of the value that cannot be written."""
    for path, value, is_key in _leaves(data, (), 0):
        if is_key:
            return UserError(
                [Diagnostic("BC1003", f"the key {value!r} at `{dotted(path)}` is not a string", fix="quote it")]
            )
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                number_text(value)
            except OutOfRangeError as reason:
                return UserError(
                    [Diagnostic("BC1004", f"{dotted(path)}: {reason}", fix="write it as a string if it is text")]
                )
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            return UserError([Diagnostic("BC1001", f"{dotted(path)}: text that is not Unicode")])
    return InternalError(f"{error} cannot be written as YAML")


def _leaves(data: Any, at: Path, depth: int) -> Iterable[tuple[Path, Any, bool]]:
    if depth > 500:
        return
    if isinstance(data, Mapping):
        for key, value in data.items():
            if not isinstance(key, str):
                yield at, key, True
            elif any("\ud800" <= c <= "\udfff" for c in key):
                yield at, key, False
            else:
                yield from _leaves(value, (*at, key), depth + 1)
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _leaves(value, (*at, index), depth + 1)
    else:
        yield at, data, False
