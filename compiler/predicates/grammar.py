"""The words of the predicate language."""

from __future__ import annotations

from typing import Any

SUBJECTS = (
    "all",
    "any",
    "not",
    "recipe",
    "profile",
    "input",
    "component",
    "validation",
    "constraint",
    "value",
    "objects",
)
OPERATORS = (
    "exists",
    "equals",
    "notEquals",
    "in",
    "contains",
    "matches",
    "version",
    "atLeast",
    "atMost",
    "sameAs",
)
QUANTIFIERS = ("every", "some", "none", "count")
OBJECT_KEYS = ("group", "kind", "name", "namespace", "component")
COUNTS = ("atLeast", "atMost", "equals")


def is_number(value: Any) -> bool:
    """Whether the value is a number; a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def noun(value: Any) -> str:
    """The value as a message names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the string "{value}"'
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"
