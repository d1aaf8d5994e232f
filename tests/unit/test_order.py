from __future__ import annotations

from compiler.plan.order import levels, order, shortest_cycle


def test_alphabetical_among_the_ready() -> None:
    needs = {"b": ["z"], "a": ["z"], "c": []}
    assert order(["a", "b", "c", "z"], needs) == ["c", "z", "a", "b"]


def test_case_47_order_does_not_depend_on_the_order_of_nodes() -> None:
    needs = {"gpu": {"nfd", "cert"}, "dra": {"gpu"}, "kai": {"gpu"}}
    nodes = ["kai", "nfd", "dra", "gpu", "cert"]
    assert order(nodes, needs) == order(sorted(nodes), needs) == ["cert", "nfd", "gpu", "dra", "kai"]


def test_case_33_an_unknown_name_is_no_node() -> None:
    assert order(["a"], {"a": ["missing"]}) == ["a"]


def test_case_34_the_shortest_cycle_is_found() -> None:
    needs = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["c"], "e": ["a"]}
    assert len(order("abcde", needs)) < 5
    assert shortest_cycle("abcde", needs) == ["c", "d", "c"]


def test_case_34_a_node_that_needs_itself() -> None:
    assert shortest_cycle(["a", "b"], {"b": ["b"], "a": ["b"]}) == ["b", "b"]


def test_no_cycle() -> None:
    assert shortest_cycle("ab", {"a": ["b"]}) == []


def test_levels_are_longest_paths() -> None:
    needs = {"b": ["a"], "c": ["b", "a"], "d": ["a"]}
    assert levels(order("abcd", needs), needs) == {"a": 0, "b": 1, "c": 2, "d": 1}
