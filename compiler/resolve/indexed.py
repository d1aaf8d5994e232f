"""Assignments that go through a list, `a.b[0].c`: lists replace as a whole, so the new list is made of the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.errors import Collector
from compiler.paths import MISSING, lookup
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, kind, merge
from compiler.resolve.values import own_layers
from compiler.source import Path, dotted


def assigned(draft: Draft, path: Path, layer: Layer, collector: Collector) -> Mapping[str, Any] | None:
    """The data of a layer that assigns one item: the list as the layers of `draft` give it, with that item set.

    `layer` holds the value at `path`, keys and indexes alike. Records BC2005 where the path meets a value of another
    type, and BC2006 for an index that would leave a gap; None then.
    """
    head = path[: next(n for n, step in enumerate(path) if isinstance(step, int))]
    value: Any = layer.data
    for step in path:
        value = value[step]
    tree = merge([*own_layers(draft, Collector()), *draft.layers]).tree
    old = lookup(tree, head)
    made = _put(draft, old, path, len(head), value, layer, collector)
    if made is MISSING:
        return None
    for step in reversed(head):
        made = {step: made}
    data: Mapping[str, Any] = made
    return data


def _put(draft: Draft, old: Any, path: Path, at: int, value: Any, layer: Layer, collector: Collector) -> Any:
    # The new value of the node at path[:at]; MISSING after a finding.
    nothing = old is MISSING or old is None
    here = f"`{draft.name}:{dotted(path[:at])}`"
    wanted = kind(value) if at == len(path) else "list" if isinstance(path[at], int) else "map"
    if not nothing and value is not None and kind(old) != wanted:
        message = f"{here} is a {kind(old)}, and `{dotted(path)}` makes it a {wanted}"
        collector.error("BC2005", message, layer.origin, fix=f"give a {kind(old)} with --set-json, or another path")
        return MISSING
    if at == len(path):
        return value
    step = path[at]
    if isinstance(step, int):
        items = [] if nothing else list(old)
        if step > len(items):
            message = f"{here} has {len(items)} items, so `[{step}]` would leave a gap"
            collector.error(
                "BC2006",
                message,
                layer.origin,
                fix=f"the next index is {len(items)}; Helm would fill the gap with null",
            )
            return MISSING
        new = _put(draft, items[step] if step < len(items) else MISSING, path, at + 1, value, layer, collector)
        return MISSING if new is MISSING else [*items[:step], new, *items[step + 1 :]]
    fields = {} if nothing else dict(old)
    new = _put(draft, fields.get(step, MISSING), path, at + 1, value, layer, collector)
    return MISSING if new is MISSING else {**fields, step: new}
