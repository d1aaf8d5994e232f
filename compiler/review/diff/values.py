"""What differs between two trees of plain data: strict about types, and aware of lists whose items have names."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from compiler.paths import MISSING, Where
from compiler.records import dataclass
from compiler.source import Path, dotted

Steps: TypeAlias = tuple[str | int | Where, ...]
"""A path for people: items of a list are named by what identifies them, where something does."""

# What tells the items of a list apart, the first that does for all items of both sides.
_NAMES = ("name", "key", "id", "mountPath", "devicePath", "containerPort", "port", "topologyKey", "host", "ip", "path")


@dataclass(frozen=True)
class Change:
    """One difference. `old` or `new` is `MISSING` where a side has nothing there.

    `steps` is for people; `old_at` and `new_at` are the addresses in the two trees. `order`: the items of a list are
    the same, and `old` and `new` are their names in the two orders.
    """

    steps: Steps
    old: Any
    new: Any
    old_at: Path
    new_at: Path
    order: bool = False

    @property
    def path(self) -> str:
        """The steps as text: `containers[name=driver].image`."""
        return shown_path(self.steps)

    @property
    def verb(self) -> str:
        """Added | removed | changed | order."""
        if self.order:
            return "order"
        return "added" if self.old is MISSING else "removed" if self.new is MISSING else "changed"


def same(left: Any, right: Any) -> bool:
    """Whether two trees mean the same: types count (`true` is not 1, `"1.30"` is not 1.3), the order of keys not."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def changes(old: Any, new: Any) -> tuple[Change, ...]:
    """Every difference of two trees, down to scalars, in the order of the old tree, then of the new one.

    Items of lists are matched by what names them, else by their likeness, so that one new item is one change.
    A branch that only one side has is one change for each scalar, list or empty map in it.
    """
    return tuple(_changes(old, new, (), (), ()))


def shown_path(steps: Steps) -> str:
    """Steps as text."""
    text = ""
    plain: list[str | int] = []
    for step in steps:
        if isinstance(step, Where):
            text = _joined(text, dotted(tuple(plain))) + f"[{step.key}={step.value}]"
            plain = []
        else:
            plain.append(step)
    return _joined(text, dotted(tuple(plain)))


def name_of_items(old: Sequence[Any], new: Sequence[Any]) -> str | None:
    """The key whose value tells the items of each of two lists apart, or None."""
    items = [*old, *new]
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _NAMES:
        if all(isinstance(item.get(key), (str, int)) for item in items):
            sides = [[str(item[key]) for item in side] for side in (old, new)]
            if all(len(set(side)) == len(side) for side in sides):
                return key
    return None


def aligned(old: Any, new: Any) -> Any:
    """`new` with keys and named list items in the order of `old`, so that a text diff shows differences only."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [key for key in old if key in new] + [key for key in new if key not in old]
        return {key: aligned(old.get(key), new[key]) for key in keys}
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        key = name_of_items(old, new)
        if key is None:
            return [aligned(a, b) for a, b in zip(old, new, strict=True)] if len(old) == len(new) else list(new)
        before = {str(item[key]): item for item in old}
        place = {name: number for number, name in enumerate(before)}
        ordered = sorted(new, key=lambda item: place.get(str(item[key]), len(place)))
        return [aligned(before.get(str(item[key])), item) for item in ordered]
    return new


def leaves(data: Any) -> int:
    """How many scalars, lists and empty maps a tree holds."""
    if isinstance(data, Mapping) and data:
        return sum(leaves(value) for value in data.values())
    return 0 if data is MISSING else 1


def _changes(old: Any, new: Any, steps: Steps, old_at: Path, new_at: Path) -> Iterator[Change]:
    if old is not MISSING and new is not MISSING and same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            left, right = old.get(key, MISSING), new.get(key, MISSING)
            yield from _changes(left, right, (*steps, key), (*old_at, key), (*new_at, key))
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        yield from _lists(old, new, steps, old_at, new_at)
    elif isinstance(only := new if old is MISSING else old, Mapping) and only and MISSING in (old, new):
        for key, value in only.items():
            left, right = (MISSING, value) if old is MISSING else (value, MISSING)
            yield from _changes(left, right, (*steps, key), (*old_at, key), (*new_at, key))
    else:
        yield Change(steps, old, new, old_at, new_at)


def _lists(old: Sequence[Any], new: Sequence[Any], steps: Steps, old_at: Path, new_at: Path) -> Iterator[Change]:
    key = name_of_items(old, new)
    if key is not None:
        yield from _named(old, new, key, steps, old_at, new_at)
    elif all(isinstance(item, Mapping) for item in (*old, *new)) and old and new:
        matcher = difflib.SequenceMatcher(None, [_text(i) for i in old], [_text(i) for i in new], autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                continue
            for n in range(max(i2 - i1, j2 - j1)):
                i, j = i1 + n, j1 + n
                before, after = old[i] if i < i2 else MISSING, new[j] if j < j2 else MISSING
                step = i if before is not MISSING else j
                if MISSING in (before, after):  # an item comes or goes as a whole
                    yield Change((*steps, step), before, after, (*old_at, step), (*new_at, step))
                else:
                    yield from _changes(before, after, (*steps, step), (*old_at, i), (*new_at, j))
    else:
        yield Change(steps, old, new, old_at, new_at)


def _named(
    old: Sequence[Any], new: Sequence[Any], key: str, steps: Steps, old_at: Path, new_at: Path
) -> Iterator[Change]:
    before = {str(item[key]): (number, item) for number, item in enumerate(old)}
    after = {str(item[key]): (number, item) for number, item in enumerate(new)}
    for name in [*before, *(name for name in after if name not in before)]:
        i, left = before.get(name, (0, MISSING))
        j, right = after.get(name, (0, MISSING))
        step = Where(key, name)
        if MISSING in (left, right):
            yield Change((*steps, step), left, right, (*old_at, i), (*new_at, j))
        else:
            yield from _changes(left, right, (*steps, step), (*old_at, i), (*new_at, j))
    common = [name for name in before if name in after]
    now = [name for name in after if name in before]
    if common != now:
        yield Change(steps, common, now, old_at, new_at, order=True)


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True, default=dict)


def _joined(text: str, more: str) -> str:
    return text + (f".{more}" if text and more and not more.startswith("[") else more)
