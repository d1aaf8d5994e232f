"""Laws of merging layered values."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import Collector
from compiler.paths import MISSING, lookup
from compiler.predicates import strictly_equal
from compiler.resolve.merge import Layer, LayerTrace, kind, leaves, merge
from compiler.resolve.nulls import settle
from compiler.source import Document

KEYS = st.sampled_from(["a", "b", "c", "d.e"])
SCALARS = st.one_of(st.booleans(), st.integers(-1, 2), st.sampled_from(["", "1", "x", 1.0]))
LISTS = st.lists(SCALARS, max_size=2)


def trees(*leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of three levels at most with these leaves."""
    value = st.one_of(*leaf)
    for _ in range(2):
        value = st.one_of(*leaf, st.dictionaries(KEYS, value, max_size=3))
    return st.dictionaries(KEYS, value, max_size=3)


PLAIN = trees(SCALARS, LISTS)
NULLED = trees(SCALARS, LISTS, st.none())


def layer(data: dict[str, Any], name: str = "a layer") -> Layer:
    """A layer of a file of its own."""
    return Layer(name, data, Document(f"{name}.yaml", data).at())


def layers(*data: dict[str, Any]) -> list[Layer]:
    """Layers named by their number."""
    return [layer(d, f"layer {number}") for number, d in enumerate(data)]


def merged(*data: dict[str, Any]) -> Any:
    """The merged tree of layers."""
    return merge(layers(*data)).tree


def values(*data: dict[str, Any], defaults: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """Values and chart values of layers."""
    stack = layers(*data)
    return settle(merge(stack), stack, LayerTrace(stack), defaults=defaults, ours=(), collector=Collector())


@given(NULLED)
def test_an_empty_layer_changes_nothing(data: dict[str, Any]) -> None:
    assert strictly_equal(merged(data, {}), data)
    assert strictly_equal(merged({}, data), data)


@given(NULLED)
def test_merging_a_layer_with_itself_changes_nothing(data: dict[str, Any]) -> None:
    assert strictly_equal(merged(data, data), data)


@given(NULLED, NULLED)
def test_the_later_layer_wins_at_each_of_its_leaves(one: dict[str, Any], other: dict[str, Any]) -> None:
    result = merged(one, other)
    for path, value in leaves(other):
        if value != {}:  # an empty map adds nothing to a map
            assert strictly_equal(lookup(result, path), value)


@given(NULLED, NULLED)
def test_what_the_later_layer_does_not_mention_stays(one: dict[str, Any], other: dict[str, Any]) -> None:
    result = merged(one, other)
    for path, value in leaves(one):
        mentioned = any(
            lookup(other, path[:n]) is not MISSING and kind(lookup(other, path[:n])) != "map"
            for n in range(1, len(path) + 1)
        )
        if not mentioned and lookup(other, path) is MISSING:
            assert strictly_equal(lookup(result, path), value)


@given(st.lists(NULLED, max_size=4))
def test_nothing_that_goes_in_is_changed(data: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(data)
    values(*data, defaults=(("a", "b"), ("c",)))
    assert strictly_equal(data, before)


@given(PLAIN, PLAIN, PLAIN)
def test_merging_is_associative_without_nulls_and_clashes(
    one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]
) -> None:
    if merge(layers(one, two, three)).clashes or merge(layers(two, three)).clashes:
        return
    assert strictly_equal(merged(merged(one, two), three), merged(one, merged(two, three)))


@given(st.lists(NULLED, max_size=4))
def test_no_tombstone_in_the_values(data: list[dict[str, Any]]) -> None:
    final, _ = values(*data)
    assert all(value is not None for _, value in leaves(final))


@given(st.lists(NULLED, min_size=1, max_size=4))
def test_the_last_entry_of_the_trace_is_the_value(data: list[dict[str, Any]]) -> None:
    stack = layers(*data)
    tree, trace = merge(stack).tree, LayerTrace(stack)
    for path, value in leaves(tree):
        last = trace[path][-1]
        if value is None:
            assert last.action in ("deleted", "null")
        elif value == {} and last.action == "merged":
            continue  # the last layer deleted its last key
        else:
            assert last.action in ("set", "replaced")
            assert strictly_equal(last.value, value)
            assert strictly_equal(lookup(last.origin.document.data, last.origin.path), value)
            assert last.origin.path == path


@given(st.lists(NULLED, min_size=1, max_size=4))
def test_what_is_gone_ends_in_deleted(data: list[dict[str, Any]]) -> None:
    stack = layers(*data)
    tree, trace = merge(stack).tree, LayerTrace(stack)
    for path, entries in trace.items():
        gone = lookup(tree, path) in (MISSING, None)
        assert gone is (entries[-1].action in ("deleted", "null"))


@given(PLAIN, PLAIN)
def test_a_map_over_a_tombstone_starts_from_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    final, chart = values({"k": old}, {"k": None}, {"k": new})
    assert strictly_equal(final, {"k": new})
    assert strictly_equal(chart, {"k": new})


def helm(chart: dict[str, Any], given_values: dict[str, Any]) -> dict[str, Any]:
    """What Helm makes of a chart's defaults and the values it is given: a null deletes a default, else it stays."""
    result = dict(chart)
    for key, value in given_values.items():
        if value is None and key in chart:
            del result[key]
        elif isinstance(value, dict) and isinstance(chart.get(key), dict):
            result[key] = helm(chart[key], value)
        else:
            result[key] = value
    return result


@given(PLAIN, st.lists(NULLED, max_size=3))
def test_helm_arrives_at_the_merge_of_defaults_and_layers(chart: dict[str, Any], data: list[dict[str, Any]]) -> None:
    # With all defaults of the chart listed, what Helm computes from the emitted values is what a merge of the chart's
    # defaults and all layers says.
    if merge(layers(chart, *data)).clashes:
        return
    defaults = tuple(path for path, _ in leaves(chart))
    _, emitted = values(*data, defaults=defaults)
    wanted, _ = values(chart, *data)
    assert strictly_equal(_pruned(helm(chart, emitted)), _pruned(wanted))


@given(PLAIN, PLAIN, NULLED)
def test_a_default_of_the_chart_does_not_come_back_through_a_reset(
    chart: dict[str, Any], new: dict[str, Any], last: dict[str, Any]
) -> None:
    data = [{"k": None}, {"k": new}, {"k": last}]
    if merge(layers(*data)).clashes:
        return
    _, emitted = values(*data, defaults=tuple(path for path, _ in leaves({"k": chart})))
    wanted, _ = values(*data)
    assert strictly_equal(_pruned(helm({"k": chart}, emitted)), _pruned(wanted))


def _pruned(data: dict[str, Any]) -> dict[str, Any]:
    # Empty maps mean the same as nothing to a template that ranges over them; deletion may leave either behind.
    result = {key: _pruned(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in result.items() if value != {} or isinstance(value, list)}
