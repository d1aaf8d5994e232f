"""Durations, read and written."""

from __future__ import annotations

import pytest

from compiler.durations import format_duration, parse_duration


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (45, "45s"), (900, "15m"), (5400, "1h30m"), (3661, "1h1m1s")])
def test_a_duration_is_written_as_it_is_read(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds
