"""Plain scalars: what our reader accepts means the same to everybody, and what would not is quoted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError as RuamelError

from compiler import yamlio

number_like = st.one_of(
    st.from_regex(r"\A[-+]?[0-9._:eExXoObBaAfF]{1,12}\Z"),
    st.from_regex(r"\A[-+.]?[0-9]{1,4}([.:_e-][0-9]{1,3}){0,3}\Z"),
    st.from_regex(r"\A0[xXoObB_]?[0-9a-f]{1,6}\Z"),
    st.sampled_from(
        [
            "y",
            "N",
            "yes",
            "On",
            "off",
            "TRUE",
            "null",
            "~",
            "=",
            "<<",
            ".inf",
            "-.INF",
            ".NaN",
            "_",
            "-_",
            "-",
            "..",
            ".",
        ]
    ),
)


def pyyaml(text: str) -> Any:
    return yaml.safe_load(f"[{text}]")[0] if text else None


def ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(f"[{text}]")[0] if text else None


def is_plain(text: str) -> bool:
    """Whether the text is one plain scalar; `0:` is a mapping and `-` is nothing."""
    try:
        (item,) = yaml.compose(f"[{text}]").value
    except (yaml.YAMLError, ValueError):
        return False
    return isinstance(item, yaml.ScalarNode) and item.value == text


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@settings(max_examples=600)
@given(number_like)
@example("1e3")
@example("0o17")
@example("08")
@example("1_000")
@example("0x1f")
@example("+.5")
@example("._1")
@example("0o_")
@example("0x__")
def test_what_the_reader_accepts_plain_means_the_same_to_yaml_1_1_and_1_2(text: str) -> None:
    try:
        value = yamlio.plain_value(text)
    except (yamlio.DoubtfulError, yamlio.OutOfRangeError):
        return
    if is_plain(text):
        assert same(pyyaml(text), value)
        assert same(ruamel(text), value)
        assert same(yamlio.go_value(text), value)


@settings(max_examples=600)
@given(number_like)
@example("72225e2")
@example("-_")
@example("0b11")
@example("2024-01-01")
@example("1:30.5")
def test_a_plain_scalar_that_some_reader_takes_for_no_string_needs_quotes(text: str) -> None:
    readings: list[Any] = []
    for read in (pyyaml, ruamel, yamlio.go_value):
        try:
            readings.append(read(text))
        except (yaml.YAMLError, RuamelError, ValueError):
            readings.append(None)  # unreadable plain, such as a broken date
    if any(not isinstance(r, str) for r in readings):
        assert yamlio.needs_quotes(text) or any(c in text for c in ":-") or text in "-?"


@given(st.dates(), st.datetimes())
def test_dates_need_quotes(day: dt.date, moment: dt.datetime) -> None:
    assert yamlio.needs_quotes(day.isoformat())
    assert yamlio.needs_quotes(moment.isoformat())
    assert yamlio.needs_quotes(moment.isoformat(" "))
