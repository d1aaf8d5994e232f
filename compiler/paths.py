"""Looking things up by path, and paths that stand for several nodes.

A plain path is what `source.parse_path` reads; a pattern may hold two more steps: `rails[*].name` (every item) and
`env[name="NCCL_NET"].value` (the items whose `name` is that text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from compiler.records import dataclass
from compiler.source import Path

_STEP = re.compile(
    r"""(?P<dot>\.)?(?P<name>[^.\[\]"]+)"""
    r"""|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\[(?P<all>\*)\]"""
    r"""|\["(?P<quoted>[^"]*)"\]"""
    r"""|\[(?P<key>[^.\[\]"=]+)="(?P<value>[^"]*)"\]"""
)


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""What `lookup` and `select` give where there is nothing. A null is not missing."""


@dataclass(frozen=True)
class Every:
    """The step `[*]`: every item of a list."""


@dataclass(frozen=True)
class Where:
    """The step `[key="value"]`: the items of a list whose `key` is that text."""

    key: str
    value: str


Pattern: TypeAlias = tuple[str | int | Every | Where, ...]
"""A path that may stand for several nodes."""


def parse_pattern(text: str) -> Pattern:
    """The steps of a path that may hold `[*]` and `[key="value"]`. Raises ValueError."""
    steps: list[str | int | Every | Where] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        # A dot stands between a name and what is before it, and nowhere else.
        if match is None or (match["name"] is not None and (match["dot"] is None) != (at == 0)):
            raise ValueError(f"`{text}` is no path: unexpected `{text[at]}` at character {at + 1}")
        if match["name"] is not None:
            steps.append(match["name"])
        elif match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["all"] is not None:
            steps.append(Every())
        elif match["quoted"] is not None:
            steps.append(match["quoted"])
        else:
            steps.append(Where(match["key"], match["value"]))
        at = match.end()
    return tuple(steps)


def lookup(data: Any, path: Path) -> Any:
    """The value at `path`, or `MISSING`. A null on the way is missing, a null at the end is None."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(data, Mapping) or step not in data:
                return MISSING
        elif not isinstance(data, (list, tuple)) or step >= len(data):
            return MISSING
        data = data[step]
    return data


def select(data: Any, pattern: Pattern) -> Iterator[Any]:
    """All values that `pattern` stands for; `MISSING` for every branch on which there is none, and never nothing."""
    if not pattern:
        yield data
        return
    step, rest = pattern[0], pattern[1:]
    if isinstance(step, (str, int)):
        below = lookup(data, (step,))
        if below is MISSING:
            yield MISSING
        else:
            yield from select(below, rest)
        return
    items = list(data) if isinstance(data, (list, tuple)) else []
    if isinstance(step, Where):
        items = [i for i in items if isinstance(i, Mapping) and i.get(step.key) == step.value]
    if not items:
        yield MISSING
    for item in items:
        yield from select(item, rest)
