"""The faults that a compiler like this one meets most often: each number has a test that names it.

A test names a case as `test_case_07_...` or with the words `case 7` in its docstring or a comment beside its data.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

CASES = {
    1: "digits that lose their quotes",
    2: "single letters that are booleans",
    3: "base-60 integers",
    5: "versions as floats",
    6: "dates",
    7: "duplicate keys",
    8: "anchors and shared lists in output",
    9: "types of values given on the side",
    11: "null: delete, keep or tombstone",
    12: "a key with comments below",
    13: "falsy values that do not override",
    15: "a scalar over a map or list",
    19: "separators of documents",
    20: "braces in static manifests",
    21: "variables under Flux",
    24: "a template parsed as YAML",
    30: "a custom resource before its definition",
    31: "needs across helmfiles",
    32: "a disabled component that is still ordered",
    33: "a missing dependency that looks like a cycle",
    34: "real cycles",
    36: "siblings that a value makes wait",
    38: "a definition that appears at run time",
    42: "a gate that does nothing",
    47: "ties in the order",
    51: "empty is not any",
    52: "a criterion that nobody honours",
    57: "an empty selection that means everything",
    60: "output with placeholders",
    66: "a namespace made twice",
    69: "names too long or ambiguous",
}


def named() -> dict[int, list[str]]:
    """Case -> the test files that name it."""
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"def test_\w*?case((?:_(?:and_)?\d+)+)", text)
        words = re.findall(r"\bcases? ((?:\d+)(?:(?:, | and )\d+)*)", text, re.IGNORECASE)
        for number in {int(n) for group in (*names, *words) for n in re.findall(r"\d+", group)}:
            found.setdefault(number, []).append(path.relative_to(TESTS).as_posix())
    return found


@pytest.mark.parametrize("number", CASES, ids=[f"{number}: {what}" for number, what in CASES.items()])
def test_a_test_names_the_case(number: int):
    assert named().get(number), f"no test names case {number} ({CASES[number]})"


def test_the_table_is_complete():
    assert len(CASES) == 31
