"""Trees compared: types count, lists are matched by names, nothing is lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.paths import MISSING
from compiler.review.diff.values import aligned, changes, same
from compiler.review.diff.words import arrow


def told(old: Any, new: Any) -> list[str]:
    return [f"{c.path}: {arrow(c)}" for c in changes(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (True, 1, "a: true -> 1"),
        (False, 0, "a: false -> 0"),
        (1, 1.0, "a: 1 -> 1.0"),
        ("1.30", 1.3, 'a: "1.30" -> 1.3'),
        ("true", True, 'a: "true" -> true'),
        (None, "", 'a: null -> ""'),
        ({}, [], "a: {} -> []"),
        ({"b": 1}, {}, "a.b: 1 -> (none)"),
        (None, {"b": 1}, 'a: null -> {"b": 1}'),
        ({"b": True}, {"b": 1}, "a.b: true -> 1"),
        ([True], [1], "a: [true] -> [1]"),
    ],
)
def test_types_count(old: Any, new: Any, expected: str):
    assert told({"a": old}, {"a": new}) == [expected]


def test_a_branch_that_only_one_side_has_is_told_by_its_leaves():
    assert told({}, {"a": {"b": 1, "c": {"d": [1], "e": {}}}}) == [
        "a.b: (none) -> 1",
        "a.c.d: (none) -> [1]",
        "a.c.e: (none) -> {}",
    ]


def test_items_of_lists_are_matched_by_name():
    old = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    new = {"env": [{"name": "NEW", "value": "0"}, {"name": "A", "value": "1"}, {"name": "B", "value": "3"}]}
    assert told(old, new) == ['env[name=B].value: "2" -> "3"', 'env[name=NEW]: (none) -> {"name": "NEW", "value": "0"}']


def test_another_order_of_named_items_is_a_change_of_its_own():
    old = [{"name": "A"}, {"name": "B"}]
    assert told({"x": old}, {"x": old[::-1]}) == ["x: order A, B -> B, A"]


def test_names_that_stand_twice_do_not_match_items():
    """Two tolerations of one key are two items; both are kept apart."""
    old = [{"key": "gpu", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]
    new = [*old, {"key": "gpu", "effect": "PreferNoSchedule"}]
    assert told({"t": old}, {"t": new}) == ['t[2]: (none) -> {"key": "gpu", "effect": "PreferNoSchedule"}']


def test_an_item_put_in_front_is_one_change():
    old = [{"from": 1}, {"from": 2}]
    assert told({"x": old}, {"x": [{"from": 0}, *old]}) == ['x[0]: (none) -> {"from": 0}']


def test_long_lists_are_told_by_what_came_and_went():
    old = [f"item-number-{n}" for n in range(20)]
    assert told({"x": old}, {"x": [*old[1:], "new"]}) == ['x: list -"item-number-0" +"new"']


def test_long_texts_are_shown_where_they_differ():
    (only,) = told({"x": "a" * 500 + "1"}, {"x": "a" * 500 + "2"})
    assert 'a1" ->' in only
    assert only.endswith('a2"')
    assert len(only) < 200


def test_aligned_keeps_every_item():
    old = {"c": [{"name": "b", "v": 1}, {"name": "a"}], "z": 1, "y": 2}
    new = {"y": 2, "z": 1, "c": [{"name": "a"}, {"name": "n"}, {"name": "b", "v": 2}]}
    found = aligned(old, new)
    assert list(found) == ["c", "z", "y"]
    assert [item["name"] for item in found["c"]] == ["b", "a", "n"]


SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "1", "true", "a"]) | st.just(1.0)
KEYS = st.sampled_from(["a", "b", "name", "x.y"])
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


@given(TREES, TREES)
def test_no_change_is_told_exactly_when_the_sides_are_the_same(old: Any, new: Any):
    assert (changes(old, new) == ()) == same(old, new)


@given(TREES)
def test_a_copy_is_the_same(tree: Any):
    assert changes(tree, copy.deepcopy(tree)) == ()


@given(st.dictionaries(KEYS, TREES, max_size=4), st.dictionaries(KEYS, TREES, max_size=4))
def test_what_is_told_leads_from_one_side_to_the_other(old: dict[str, Any], new: dict[str, Any]):
    """Every address of a change holds what the change says, on its side."""
    for change in changes(old, new):
        if change.order:
            continue
        for side, address, value in ((old, change.old_at, change.old), (new, change.new_at, change.new)):
            if value is not MISSING:
                found: Any = side
                for step in address:
                    found = found[step]
                assert same(found, value)
