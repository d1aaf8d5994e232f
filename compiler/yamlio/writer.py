"""Writing YAML: one form for every file that the compiler emits.

Block style, two spaces, sequences at the level of their key (as kubectl and kustomize print them), keys in the order
given, literal blocks for text of several lines, no aliases, no line folding. Every scalar means the same to a YAML 1.1
reader, a YAML 1.2 reader and Go's YAML; see scalars.py. The bytes are those of PyYAML's emitter, libyaml, set that way.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from yaml._yaml import CEmitter
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
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

# ASCII that libyaml leaves plain in a block: no `: `, no ` #`, no indicator at the start, one blank between words.
_PLAIN = re.compile(r"[A-Za-z0-9_/$](?:[!-9;-~]|:(?=[!-~])| (?=[!\"$-~]))*")

# A string is shown to libyaml as the item of a list.
_BEFORE = (
    StreamStartEvent(),
    DocumentStartEvent(explicit=False),
    SequenceStartEvent(None, None, True, flow_style=False),
)
_AFTER = (SequenceEndEvent(), DocumentEndEvent(explicit=False), StreamEndEvent())

_SIMPLE_KEY = 128
"""Bytes of a key that libyaml writes as `key: value`; a longer one becomes `? key`, and its value follows below."""


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
    lines: list[str] = []
    writer = _Writer(lines.append, literal=literal)
    for number, data in enumerate(documents):
        lead = "--- " if number and not data else ""
        if number and data:
            lines.append("---\n")
        try:
            writer.node(data, "", lead)
        except (OutOfRangeError, UnicodeError, TypeError, RecursionError) as error:
            raise _refused(data, error) from error
    return "".join(lines)


class _Writer:
    """Writes the nodes of a block, line by line. `pad` indents the lines of a node, `lead` stands before its first one.

    The lines are those of libyaml's emitter, at a fraction of its cost: a call for every node of a bundle is too many.
    It is asked how to write a string, once for all files that hold it.
    """

    def __init__(self, write: Callable[[str], None], *, literal: bool) -> None:
        self.write = write
        self.literal = literal

    def node(self, value: Any, pad: str, lead: str) -> None:
        """A node on the line that `lead` begins: the root, an item of a list, or what follows a `? key`."""
        kind = type(value)
        if kind is str:
            self.write(f"{lead}{self.string(value, pad)}\n")
        elif value and (kind is dict or isinstance(value, Mapping)):
            self.mapping(value, pad, lead)
        elif value and (kind is list or kind is tuple):
            self.sequence(value, pad, lead)
        else:
            self.write(f"{lead}{self.scalar(value, pad)}\n")

    def mapping(self, value: Mapping[str, Any], pad: str, lead: str) -> None:
        write, string = self.write, self.string
        below = pad + "  "
        for key, child in value.items():
            head = _key(key)
            kind = type(child)
            if head[-1] != ":":
                write(f"{lead}? {head}\n")
                self.node(child, below, pad + ": ")
            elif kind is str:
                write(f"{lead}{head} {string(child, below)}\n")
            elif child and (kind is dict or isinstance(child, Mapping)):
                write(f"{lead}{head}\n")
                self.mapping(child, below, below)
            elif child and (kind is list or kind is tuple):
                write(f"{lead}{head}\n")
                self.sequence(child, pad, pad)
            else:
                write(f"{lead}{head} {self.scalar(child, below)}\n")
            lead = pad

    def sequence(self, value: Sequence[Any], pad: str, lead: str) -> None:
        below = pad + "  "
        for child in value:
            self.node(child, below, lead + "- ")
            lead = pad

    def scalar(self, value: Any, pad: str) -> str:
        kind = type(value)
        if isinstance(value, str):  # markupsafe.Markup and other subclasses, too
            return self.string(str.__str__(value), pad)
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is int or kind is float:
            return number_text(value)
        if isinstance(value, Mapping):
            return "{}"
        if kind is list or kind is tuple:
            return "[]"
        raise TypeError(f"a {kind.__name__}")

    def string(self, text: str, pad: str) -> str:
        """A string as it follows its key or dash; the lines of a literal block begin with `pad`."""
        written = _string(text, self.literal)
        if "\n" not in written:
            return written
        head, *lines = written.split("\n")
        return "\n".join([head, *(f"{pad}{line}" if line else "" for line in lines)])


@lru_cache(maxsize=1 << 13)
def _key(key: str) -> str:
    """`key:`, or the key alone when it is to stand behind a `?`."""
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r}")
    text = _string(str.__str__(key), False)
    return f"{text}:" if len(key.encode()) <= _SIMPLE_KEY and not _BREAK.search(key) else text


@lru_cache(maxsize=1 << 15)  # the files of a bundle share most of their strings
def _string(text: str, literal: bool) -> str:
    """The text of a scalar; of a literal block, whose lines are not indented, if that is asked for and can be."""
    plain = not needs_quotes(text)
    if plain and _PLAIN.fullmatch(text):
        return text
    style = "|" if literal and "\n" in text and _LITERAL.fullmatch(text) else '"' if _BREAK.search(text) else None
    stream = io.StringIO()
    emitter = CEmitter(stream, width=-1, allow_unicode=True)
    # The first flag tells libyaml whether the plain form would be read back as this string.
    scalar = ScalarEvent(None, None, (plain, True), text, style=style)
    for event in (*_BEFORE, scalar, *_AFTER):
        emitter.emit(event)
    item = stream.getvalue()[len("- ") : -len("\n")]
    return "\n".join(line.removeprefix("  ") for line in item.split("\n"))


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
