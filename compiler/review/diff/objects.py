"""Kubernetes objects compared by identity, each difference as a short unified hunk."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compiler.model import KubeObject
from compiler.paths import Where
from compiler.records import dataclass
from compiler.review.diff.model import ObjectChange, Status, plain
from compiler.review.diff.snapshot import stripped
from compiler.review.diff.values import Steps, aligned, changes, name_of_items, same, shown_path
from compiler.source import walk
from compiler.yamlio import dump, load

_CONTEXT = 2  # unchanged lines around a change


@dataclass(frozen=True)
class Pair:
    """An object on both sides; None where a side does not have it. `status` as in `ObjectChange`."""

    old: KubeObject | None
    new: KubeObject | None
    status: Status


def pairs(old: Iterable[KubeObject], new: Iterable[KubeObject]) -> tuple[Pair, ...]:
    """The objects of two sides put together: by identity; then what differs only in its namespace, or in its name."""
    before = {item.identity: item for item in old}
    after = {item.identity: item for item in new}
    found = [Pair(before[i], after[i], "changed") for i in before if i in after]
    gone = [item for i, item in before.items() if i not in after]
    come = [item for i, item in after.items() if i not in before]
    likenesses: tuple[tuple[Status, Callable[[KubeObject], Any]], ...]
    likenesses = (("moved", _without_namespace), ("renamed", _without_name))
    for status, likeness in likenesses:
        for item in list(gone):
            alike = [other for other in come if likeness(other) == likeness(item)]
            twins = [other for other in gone if likeness(other) == likeness(item)]
            if len(alike) == 1 and len(twins) == 1:
                found.append(Pair(item, alike[0], status))
                gone.remove(item)
                come.remove(alike[0])
    found += [Pair(item, None, "removed") for item in gone]
    found += [Pair(None, item, "added") for item in come]
    return tuple(sorted(found, key=lambda p: _order(p.new or p.old)))


def difference(pair: Pair, bundles: tuple[str, str]) -> ObjectChange | None:
    """What differs in a pair, or None. `bundles` are the names of the bundle on both sides (labels repeat them)."""
    old, old_noise = stripped(pair.old.data, bundles[0]) if pair.old else (None, {})
    new, new_noise = stripped(pair.new.data, bundles[1]) if pair.new else (None, {})
    noise = tuple(sorted(k for k in {*old_noise, *new_noise} if old_noise.get(k) != new_noise.get(k)))
    item = pair.new or pair.old
    assert item is not None
    change = ObjectChange(item.group, item.kind, item.namespace or "", item.name, "changed", (), noise)
    if old is None or new is None:
        text = dump(plain(new if old is None else old)).splitlines()
        sign = "+" if old is None else "-"
        return replace(
            change, status="added" if old is None else "removed", hunk=tuple(sign + line for line in text), noise=()
        )
    if same(old, new) and pair.status == "changed":
        return change if noise else None
    was = ""
    if pair.status != "changed":
        assert pair.old is not None
        was = f"{pair.old.namespace}/{pair.old.name}" if pair.old.namespace else pair.old.name
    return replace(change, status=pair.status, hunk=hunk(old, new), was=was)


def hunk(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Lines of a unified diff of two objects; each `@@` line names the path of the first change below it.

    Keys and named list items are compared in the order of the old side; a list whose order changes is told in words.
    """
    left, right = plain(old), aligned(plain(old), plain(new))
    a, b = dump(left).splitlines(), dump(right).splitlines()
    paths = _paths(dump(left)), _paths(dump(right))
    lines: list[str] = []
    for group in difflib.SequenceMatcher(None, a, b).get_grouped_opcodes(_CONTEXT):
        tag, i1, _, j1, _ = next(op for op in group if op[0] != "equal")
        where = _at(paths[0], i1, left) if tag == "delete" else _at(paths[1], j1, right)
        lines.append(f"@@ {where} @@" if where else "@@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in a[i1:i2]]
            else:
                lines += [f"-{line}" for line in a[i1:i2]]
                lines += [f"+{line}" for line in b[j1:j2]]
    for change in changes(old, new):
        if change.order:
            lines.append(f"@@ {change.path} @@")
            lines.append(f"-order: {', '.join(change.old)}")
            lines.append(f"+order: {', '.join(change.new)}")
    return tuple(lines)


def text_hunk(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Lines of a unified diff of two texts, without its file names."""
    return tuple(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]


def _paths(text: str) -> list[tuple[str | int, ...]]:
    """The path of the node that begins at or before each line."""
    document = load(text, "")
    first: dict[int, tuple[str | int, ...]] = {}
    for number, path in enumerate(walk(document.data)):
        first[document.marks[4 * number]] = path
    result: list[tuple[str | int, ...]] = []
    at: tuple[str | int, ...] = ()
    for line in range(1, text.count("\n") + 1):
        at = first.get(line, at)
        result.append(at)
    return result


def _at(paths: list[tuple[str | int, ...]], line: int, data: Any) -> str:
    """The path of a line for people: that of the mapping it belongs to, items of lists by their names."""
    path = paths[min(line, len(paths) - 1)][:-1] if paths else ()
    steps: Steps = ()
    for step in path:
        named = name_of_items(data, ()) if isinstance(step, int) else None
        item = data[step]
        steps = (*steps, Where(named, str(item[named])) if named else step)
        data = item
    return shown_path(steps)


def _order(item: KubeObject | None) -> tuple[str, str, str, str]:
    assert item is not None
    return (item.kind, item.group, item.namespace or "", item.name)


def _without_namespace(item: KubeObject) -> tuple[str, str, str]:
    return (item.group, item.kind, item.name)


def _without_name(item: KubeObject) -> tuple[str, str, str, str]:
    content = {key: value for key, value in item.data.items() if key != "metadata"}
    return (item.group, item.kind, item.namespace or "", dump(plain(content)))
