"""Values and changes as short text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compiler.paths import MISSING
from compiler.review.diff.values import Change, leaves

_ROOM = 72  # characters of a value that are shown


def arrow(change: Change) -> str:
    """`old -> new`, `(none) -> new`, `old -> (none)`; long values around their first difference."""
    if change.order:
        return f"order {', '.join(change.old)} -> {', '.join(change.new)}"
    old, new = change.old, change.new
    if _scalars(old) and _scalars(new) and len(str(old)) + len(str(new)) > _ROOM:
        gone, come = [i for i in old if not _in(i, new)], [i for i in new if not _in(i, old)]
        told = [f"-{_json(i)}" for i in gone] + [f"+{_json(i)}" for i in come]
        return "list " + (" ".join(told) if told else "in another order")
    left, right = text_of(old), text_of(new)
    if len(left) > _ROOM or len(right) > _ROOM:
        left, right = _windows(left, right)
    return f"{left} -> {right}"


def brief(change: Change) -> str:
    """`old -> new` of single values; whether it came, went or changed of everything else."""
    plain = all(not isinstance(v, (dict, list, tuple)) for v in (change.old, change.new))
    return arrow(change) if plain and not change.order else change.verb


def text_of(value: Any) -> str:
    """A value on one line, types visible: `"1"` is text, `1` a number; `(none)` where there is nothing."""
    if value is MISSING:
        return "(none)"
    return _json(value)


def count(number: int, unit: str) -> str:
    """`1 value`, `3 values`."""
    if number == 1:
        return f"1 {unit}"
    return f"{number} {unit[:-1]}ies" if unit.endswith("y") else f"{number} {unit}s"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def size_of(values: Mapping[str, Any]) -> int:
    """How many values a tree sets."""
    return leaves(values) if values else 0


def _windows(left: str, right: str) -> tuple[str, str]:
    """Both texts cut to what surrounds their first difference."""
    first = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = min(max(0, first - _ROOM // 3), max(0, max(len(left), len(right)) - _ROOM))

    def cut(text: str) -> str:
        part = text[start : start + _ROOM]
        return ("..." if start else "") + part + (f"... ({len(text)} characters)" if start + _ROOM < len(text) else "")

    return cut(left), cut(right)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=list)


def _scalars(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not any(isinstance(i, (dict, list, tuple)) for i in value)


def _in(item: Any, items: Any) -> bool:
    return any(type(item) is type(other) and item == other for other in items)
