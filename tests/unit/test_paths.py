"""Paths into values, plain and with wildcards."""

from __future__ import annotations

import pytest

from compiler.paths import MISSING, Every, Where, lookup, parse_pattern, select

DATA = {
    "rails": [{"name": "a", "n": 1}, {"name": "b"}, "text"],
    "labels": {"a.b/c": "x"},
    "none": None,
    "empty": [],
    "deep": [[1, 2], [3]],
}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a.b-c", ("a", "b-c")),
        ("a[0].b", ("a", 0, "b")),
        ('a["b.c/d"].e', ("a", "b.c/d", "e")),
        ("a[*].b", ("a", Every(), "b")),
        ('a[name="x.y"].b', ("a", Where("name", "x.y"), "b")),
        ("[0][1]", (0, 1)),
        ('[""]', ("",)),
    ],
)
def test_patterns(text: str, steps: tuple[object, ...]) -> None:
    assert parse_pattern(text) == steps


@pytest.mark.parametrize("text", [".a", "a.", "a..b", "a[", "a[b]", 'a["b', "a]b", "a[0]b", "a[-1]", 'a.["b"]'])
def test_patterns_that_are_not_well_formed(text: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        parse_pattern(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), DATA),
        (("rails", 0, "n"), 1),
        (("rails", 1, "n"), MISSING),
        (("rails", 9), MISSING),
        (("rails", "n"), MISSING),
        (("rails", 2, "n"), MISSING),
        (("none",), None),
        (("none", "x"), MISSING),
        (("labels", "a.b/c"), "x"),
        (("labels", 0), MISSING),
    ],
)
def test_lookup(path: tuple[str | int, ...], value: object) -> None:
    assert lookup(DATA, path) is value or lookup(DATA, path) == value


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rails[*].n", [1, MISSING, MISSING]),
        ('rails[name="a"].n', [1]),
        ('rails[name="z"].n', [MISSING]),
        ("empty[*]", [MISSING]),
        ("nothing[*].x", [MISSING]),
        ("none", [None]),
        ("deep[*][*]", [1, 2, 3]),
        ("deep[*][1]", [2, MISSING]),
    ],
)
def test_select(text: str, values: list[object]) -> None:
    assert list(select(DATA, parse_pattern(text))) == values
