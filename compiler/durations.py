"""Durations as the source files write them: 30s, 5m, 1h30m. The schemas refuse one of no length."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(?=.)(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")


def parse_duration(text: str) -> int:
    """The seconds of a duration. Raises ValueError when it is not one."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is no duration; write it like 30s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: int) -> str:
    """`seconds` as a duration: 45s, 15m, 1h30m."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number]
    return "".join(parts) or "0s"
