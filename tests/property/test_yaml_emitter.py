"""The writer writes the bytes of libyaml's emitter, which it asks about single strings only."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from yaml import events
from yaml._yaml import CEmitter

from compiler import yamlio
from compiler.yamlio.scalars import needs_quotes, number_text
from tests.property.test_yaml_roundtrip import documents, text

LITERAL = re.compile(r"[^\s\x85\u2028\u2029](?:[^\r\x0b\x0c\x85\u2028\u2029]*[^\s])?\n?")
BREAK = re.compile("[\n\r\x85\u2028\u2029]")


def libyaml(given: list[Any], *, literal: bool = True) -> str:
    """The documents, every node of them an event for libyaml."""
    stream = io.StringIO()
    emitter = CEmitter(stream, width=-1, allow_unicode=True)
    emitter.emit(events.StreamStartEvent())
    for number, data in enumerate(given):
        emitter.emit(events.DocumentStartEvent(explicit=number > 0))
        for event in of(data, literal=literal):
            emitter.emit(event)
        emitter.emit(events.DocumentEndEvent(explicit=False))
    emitter.emit(events.StreamEndEvent())
    return stream.getvalue()


def of(node: Any, *, literal: bool) -> Iterator[events.Event]:
    if isinstance(node, dict):
        yield events.MappingStartEvent(None, None, True, flow_style=not node)
        for key, value in node.items():
            yield from of(key, literal=False)
            yield from of(value, literal=literal)
        yield events.MappingEndEvent()
    elif isinstance(node, list):
        yield events.SequenceStartEvent(None, None, True, flow_style=not node)
        for value in node:
            yield from of(value, literal=literal)
        yield events.SequenceEndEvent()
    elif isinstance(node, str):
        block = literal and "\n" in node and LITERAL.fullmatch(node)
        style = "|" if block else '"' if BREAK.search(node) else None
        yield events.ScalarEvent(None, None, (not needs_quotes(node), True), node, style=style)
    else:
        words = {None: "null", True: "true", False: "false"}
        plain = words[node] if node is None or isinstance(node, bool) else number_text(node)
        yield events.ScalarEvent(None, None, (True, True), plain)


@settings(max_examples=1000)
@given(documents)
@example({"a": {"k" * 200: {"x": "y" * 300}}, "k" * 129: ["a", ["b"], {"c": [1]}, {}], "é" * 65: "x", "é" * 64: 1})
@example({"a\nb": "c", "d": {"e\nf": "x\ny", "g\n": ["x\ny"], "h\n": [], "i\n": {}, "j\n": None}})
@example([["x\ny  \nz", "x\n\n  y\n", [{"a": "x\ny\n"}]], {"a": "x\ty\nz", "b": "x\n\ty", "d": "a\n \nb"}])
def test_documents(data: Any) -> None:
    assert yamlio.dump(data) == libyaml([data])
    several = [data, {}, [], data, {"a": 1}]
    assert yamlio.dump_all(several) == libyaml(several)


@settings(max_examples=2000)
@given(text | st.text("ab:#- '\"?,\n\t[]{}&*!|>%@`~=.0123é\u2028", max_size=12))
@example("---")
@example("a: b")
@example("a #b")
@example("http://x/y?z#q")
@example("x" * 2000 + " y" * 500)
def test_strings(one: str) -> None:
    for data in ([one], {"k": one}, {one: "v"}, {one: {"x": one}}, {one: [one]}):
        assert yamlio.dump(data) == libyaml([data])
    assert yamlio.dump(one) == libyaml([[one]], literal=False)[2:]
