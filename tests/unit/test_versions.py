"""Version constraints, held against node-semver where the two grammars mean the same."""

from __future__ import annotations

import nodesemver
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.versions import Term, VersionError, parse_expression, parse_version, satisfies


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.34.1-gke.100", (1, 34, 1)),
        ("v26.7.1", (26, 7, 1)),
        ("6.8.0-1028-nvidia-64k", (6, 8, 0)),
        ("1.34", (1, 34)),
        ("24", (24,)),
        ("1.2.3+build", (1, 2, 3)),
        (" 1.2 ", (1, 2)),
        ("1.2.3.4", None),
        ("v", None),
        ("ubuntu", None),
        ("1.2.x", None),
        ("", None),
    ],
)
def test_versions(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_version(text) == numbers


@pytest.mark.parametrize(
    ("actual", "expression", "expected"),
    [
        ("1.34.9", "> 1.34", False),
        ("1.34.9", "<= 1.34", True),
        ("1.34.0", ">= 1.34", True),
        ("v1.34.1-gke.100", ">= 1.34", True),
        ("1.34", ">= 1.34.2", True),  # the lower precision of the two
        ("1.33.9", ">=1.34", False),
        ("1.34.2", "== 1.34", False),
        ("1.34.0", "== 1.34", True),
        ("24.04", "== 24.4", True),
        ("24.04", "24.4", False),
        ("24.04", "24.04", True),
        ("ubuntu", "ubuntu", True),
        ("ubuntu", "!= cos", True),
        ("Ubuntu", "== ubuntu", False),
        ("5", "== 5.0", True),
        ("5.0", "== 5", False),  # the operand does not look like a version: compared as text
        ("0.5.1", ">= 0.5.1, < 1", True),
        ("1.0.0", ">= 0.5.1, < 1", False),
        ("a,b", "a,b", True),
        ("x", "!x", False),
        ("!x", "!x", True),
        ("k=true", "k=true", True),
    ],
)
def test_satisfies(actual: str, expression: str, expected: bool) -> None:
    assert satisfies(actual, expression) is expected


@pytest.mark.parametrize(
    "expression", ["", "  ", ">=", ">= ", ">= 1,", ">= 1, 2", ">= x", "> 1.2.3.4", "=1", "~1.2", "^1", "=> 1"]
)
def test_expressions_that_are_not_well_formed(expression: str) -> None:
    with pytest.raises(VersionError):
        parse_expression(expression)


def test_an_undecidable_order_is_an_error() -> None:
    with pytest.raises(VersionError):
        satisfies("ubuntu", ">= 1")


def test_terms() -> None:
    assert parse_expression(">=1.2, != 1.5.0") == (Term(">=", "1.2", (1, 2)), Term("!=", "1.5.0", (1, 5, 0)))


number = st.integers(0, 40)
full = st.tuples(number, number, number).map(lambda t: ".".join(map(str, t)))
partial = st.lists(number, min_size=1, max_size=3).map(lambda t: ".".join(map(str, t)))


@given(full, st.sampled_from([">=", "<=", ">", "<"]), partial)
def test_ordering_agrees_with_node_semver(actual: str, operator: str, operand: str) -> None:
    expected = nodesemver.satisfies(actual, f"{operator}{operand}", loose=False)
    assert satisfies(actual, f"{operator} {operand}") is expected


@given(full, full, st.sampled_from(["==", "!="]))
def test_equality_agrees_with_node_semver(actual: str, operand: str, operator: str) -> None:
    expected = nodesemver.satisfies(actual, f"={operand}", loose=False)
    assert satisfies(actual, f"{operator} {operand}") is (expected is (operator == "=="))


@given(full, st.lists(st.tuples(st.sampled_from([">=", "<=", ">", "<"]), partial), min_size=1, max_size=3))
def test_several_terms_must_all_hold(actual: str, terms: list[tuple[str, str]]) -> None:
    whole = satisfies(actual, ", ".join(f"{o}{v}" for o, v in terms))
    assert whole is all(satisfies(actual, f"{o} {v}") for o, v in terms)
