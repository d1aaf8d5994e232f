"""Merging layered values and the trace of who set what."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.errors import Collector
from compiler.resolve.merge import Layer, LayerTrace, leaves, merge, overlap
from compiler.resolve.nulls import settle
from compiler.source import Document, parse_path


def layer(name: str, data: dict[str, Any]) -> Layer:
    return Layer(name, data, Document(f"{name}.yaml", data).at())


def layers(*data: dict[str, Any]) -> list[Layer]:
    return [layer(f"layer{number}", d) for number, d in enumerate(data, 1)]


def settled(
    *data: dict[str, Any], defaults: tuple[str, ...] = (), ours: tuple[str, ...] = ()
) -> tuple[Any, Any, list[str]]:
    stack, found = layers(*data), Collector()
    values, chart = settle(
        merge(stack),
        stack,
        LayerTrace(stack),
        defaults=[parse_path(p) for p in defaults],
        ours=[parse_path(p) for p in ours],
        collector=found,
    )
    return values, chart, [f"{d.code} {d.span}" for d in found.found]


@pytest.mark.parametrize("falsy", [False, 0, "", [], 0.0])
def test_a_falsy_value_overrides(falsy: Any) -> None:
    """case 13"""
    before: Any = ["x"] if isinstance(falsy, list) else True
    assert merge(layers({"driver": {"enabled": before}}, {"driver": {"enabled": falsy}})).tree == {
        "driver": {"enabled": falsy}
    }


def test_an_empty_map_adds_nothing_to_a_map() -> None:
    assert merge(layers({"a": {"b": 1}}, {"a": {}})).tree == {"a": {"b": 1}}


def test_lists_replace() -> None:
    """case 16"""
    assert merge(layers({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]})).tree == {
        "tolerations": [{"key": "b"}]
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [({"enabled": True}, False), (False, {"enabled": True}), ([1], {"a": 1}), ({"a": 1}, [1]), ("x", ["x"]), ([], 1)],
)
def test_types_clash(before: Any, after: Any) -> None:
    """case 15"""
    (clash,) = merge(layers({"a": {"toolkit": before}}, {"a": {"toolkit": after}})).clashes
    assert (clash.path, clash.layer.name) == (("a", "toolkit"), "layer2")
    assert merge(layers({"a": before}, {"a": None}, {"a": after})).clashes == ()


def test_scalars_of_different_types_do_not_clash() -> None:
    assert merge(layers({"a": 1}, {"a": "1"}, {"a": True})).clashes == ()


def test_trace_tells_what_every_layer_did() -> None:
    stack = layers(
        {"a": {"b": 1, "c": {"d": 2}}},
        {"a": {"b": 2}},
        {"a": {"c": None}},
        {"a": {"c": {"e": 3}}, "x": None},
    )
    trace = LayerTrace(stack)
    told = {path: [(e.layer, e.action, e.value) for e in entries] for path, entries in trace.items()}
    assert told == {
        ("a",): [
            ("layer1", "set", {"b": 1, "c": {"d": 2}}),
            ("layer2", "merged", {"b": 2}),
            ("layer3", "merged", {"c": None}),
            ("layer4", "merged", {"c": {"e": 3}}),
        ],
        ("a", "b"): [("layer1", "set", 1), ("layer2", "replaced", 2)],
        ("a", "c"): [("layer1", "set", {"d": 2}), ("layer3", "deleted", None), ("layer4", "set", {"e": 3})],
        ("a", "c", "d"): [("layer1", "set", 2), ("layer3", "deleted", None)],
        ("a", "c", "e"): [("layer4", "set", 3)],
        ("x",): [("layer4", "null", None)],
    }
    assert len(trace) == len(told)
    assert str(trace["a", "b"][-1].origin) == "layer2.yaml:1:1"
    assert trace["a", "b"][-1].origin.path == ("a", "b")
    # who deleted the branch is who deleted what was in it
    assert trace["a", "c", "d"][-1].origin.path == ("a", "c")


def test_a_null_over_a_value_of_ours_drops_the_key() -> None:
    """case 11: the chart has no default there, so no null may be written."""
    assert settled({"storage": {"emptyDir": {"medium": "Memory"}}}, {"storage": {"emptyDir": None, "pvc": {}}}) == (
        {"storage": {"pvc": {}}},
        {"storage": {"pvc": {}}},
        [],
    )


def test_a_null_over_a_default_of_the_chart_is_written() -> None:
    values, chart, found = settled(
        {"controller": {"affinity": {"nodeAffinity": None}}}, defaults=("controller.affinity.nodeAffinity",)
    )
    assert (values, chart, found) == (
        {"controller": {"affinity": {}}},
        {"controller": {"affinity": {"nodeAffinity": None}}},
        [],
    )


def test_a_null_above_a_default_of_the_chart_is_written_where_it_stands() -> None:
    _, chart, found = settled({"affinity": {"x": 1}}, {"affinity": None}, defaults=("affinity.node.required",))
    assert (chart, found) == ({"affinity": None}, [])


def test_a_null_below_a_listed_default_deletes_nothing() -> None:
    """Helm keeps a null under a default `{}`, so a listed parent is not enough."""
    _, chart, found = settled({"affinity": {"node": None}}, defaults=("affinity",))
    assert (chart, found) == ({"affinity": {}}, ["BC2009 layer1.yaml:1:1"])


def test_a_null_that_deletes_nothing() -> None:
    stack, found = layers({"driver": {"rdma": True}}, {"driver": {"rmda": None}}), Collector()
    settle(merge(stack), stack, LayerTrace(stack), defaults=(), ours=(), collector=found)
    (one,) = found.found
    assert (one.code, one.fix) == ("BC2009", "did you mean `driver.rdma`?")
    assert "(layer2)" in one.message


@pytest.mark.parametrize(
    ("null", "fix"),
    [
        ({"driver": {"nothing": None}}, None),  # `driver.version` has but the place in common
        ({"driver": {"versoin": None}}, "did you mean `driver.version`?"),
        ({"drivr": {"version": None}}, "did you mean `driver.version`?"),
        ({"drivr": {"versoin": None}}, "did you mean `driver.version`?"),
        ({"drivr": {"nothing": None}}, None),
        ({"afinity": None}, "did you mean `affinity`?"),  # not all the way down to what the chart holds
        ({"afinity": {"node": None}}, "did you mean `affinity.node`?"),
        ({"node": {"required": None}}, "did you mean `affinity.node.required`?"),
        ({"required": None}, "did you mean `affinity.node.required`?"),
        ({"values": {"driver": {"version": None}}}, "did you mean `driver.version`?"),
        ({"enabled": None}, None),  # too many
        ({"gone": {"a": None}, "gome": None}, None),  # what is deleted as well is no suggestion
    ],
)
def test_what_a_null_that_deletes_nothing_may_have_meant(null: Any, fix: str | None) -> None:
    parts = {name: {"enabled": True} for name in "abcd"}
    stack, found = layers({"driver": {"version": "1", "rdma": True}, **parts, "gone": {"a": 1}}, null), Collector()
    default = (("affinity", "node", "required"),)
    settle(merge(stack), stack, LayerTrace(stack), defaults=default, ours=(), collector=found)
    (one,) = found.found
    assert one.code == "BC2009"
    assert (one.fix if "did you mean" in str(one.fix) else None) == fix


def test_a_null_may_be_repeated() -> None:
    assert settled({"a": 1, "b": 2}, {"a": None}, {"a": None}) == ({"b": 2}, {"b": 2}, [])


def test_a_later_layer_starts_from_nothing() -> None:
    """case 11: defaults of the chart below the tombstone must not come back either."""
    values, chart, found = settled(
        {"s": {"emptyDir": {"medium": "Memory"}, "old": 1}},
        {"s": None},
        {"s": {"pvc": {"size": "5Gi"}}},
        defaults=("s.emptyDir.medium", "s.pvc.size", "s.pvc.class"),
    )
    assert values == {"s": {"pvc": {"size": "5Gi"}}}
    assert chart == {"s": {"pvc": {"size": "5Gi", "class": None}, "emptyDir": None}}
    assert found == []


@pytest.mark.parametrize("value", [[None], [{"a": None}], [{"a": [1, None]}]])
def test_a_null_in_a_list_deletes_nothing(value: Any) -> None:
    _, _, found = settled({"env": [1]}, {"env": value})
    assert found == ["BC2009 layer2.yaml:1:1"]
    assert settled({"env": value}, {"env": [1]})[2] == []


def test_values_of_ours_never_reach_the_chart() -> None:
    values, chart, _ = settled(
        {"a4x": {"create": True}, "driver": {"extra": {"x": 1}, "enabled": True}, "only": {"ours": 1}, "kept": {}},
        ours=("a4x", "driver.extra.x", "only.ours", "absent.path", "kept.x"),
    )
    assert values["driver"] == {"extra": {"x": 1}, "enabled": True}
    assert chart == {"driver": {"enabled": True}, "kept": {}}


def test_untouched_branches_are_shared_and_inputs_stay_as_they_are() -> None:
    base = {"big": {"branch": [1, 2]}, "small": {"x": 1}}
    tree = merge(layers(base, {"small": {"x": None}})).tree
    assert tree["big"] is base["big"]
    assert base == {"big": {"branch": [1, 2]}, "small": {"x": 1}}


def test_leaves_and_overlap() -> None:
    assert list(leaves({"a": {"b": 1, "c": {}}, "d": [1], "e": None})) == [
        (("a", "b"), 1),
        (("a", "c"), {}),
        (("d",), [1]),
        (("e",), None),
    ]
    assert overlap(("a",), ("a", "b"))
    assert overlap(("a", "b"), ("a",))
    assert overlap((), ("a",))
    assert not overlap(("a", "b"), ("a", "c"))
