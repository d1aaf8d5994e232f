"""What becomes of tombstones: values without them for templates and predicates, and what is written for Helm.

Helm deletes a key by null only where the chart's own defaults hold that key; anywhere else the null stays in the values
and may reach an object, where Helm 4's server-side apply refuses it. So a null is written exactly where a default of
the chart is to go, and is dropped where it took away a value of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from compiler.errors import Collector
from compiler.model import Trace
from compiler.paths import MISSING, lookup
from compiler.resolve.merge import Layer, Merged, leaves
from compiler.source import Path, dotted

_CLOSE = 0.6  # of difflib's ratio of two keys
_MANY = 3  # paths that end alike, in one message


def settle(
    merged: Merged,
    layers: Sequence[Layer],
    trace: Trace,
    *,
    defaults: Sequence[Path],
    ours: Sequence[Path],
    collector: Collector,
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The values without tombstones, and the values to write for the chart.

    `defaults` are paths that the chart's own values hold, `ours` the paths that only our templates read. A null that
    deletes neither a default of the chart nor a value of a layer is recorded as BC2009.
    """
    values = _strip(merged.tree)
    chart = values
    for path in ours:
        chart = _without(chart, path)
    for path in _nulls(merged.tree):
        if any(default[: len(path)] == path for default in defaults):
            chart = _with(chart, path, None)
        elif all(lookup(layer.data, path) in (MISSING, None) for layer in layers):
            entry = trace[path][-1]
            alive = [p for p, value in leaves(merged.tree) if value is not None]
            near = _near(path, {p[:n] for p in (*alive, *defaults) for n in range(1, len(p) + 1)})
            collector.error(
                "BC2009",
                f"`{dotted(path)}: null` ({entry.layer}) deletes nothing: no earlier layer sets it, "
                "and the component lists no such default of its chart",
                entry.origin,
                key=True,
                fix=f"did you mean {' or '.join(f'`{dotted(p)}`' for p in near)}?"
                if near
                else "remove it; or add it to `chartDefaults` of the component when the chart's values.yaml holds it",
            )
    for path, inside in _listed_nulls(merged.tree):
        entry = trace[path][-1]
        collector.error(
            "BC2009",
            f"the null at `{dotted((*path, *inside))}` ({entry.layer}) deletes nothing: lists do not merge",
            entry.origin.down(*inside),
            fix="remove it from the list",
        )
    for path in merged.resets:
        for default in defaults:
            if default[: len(path)] == path:
                chart = _hide(chart, path, default)
    return values, chart


def _near(path: Path, known: Collection[Path], at: Path = ()) -> list[Path]:
    """What was meant by a path that is not known: one with another key where it leaves what is known, or one that it
    ends, or that ends it. Names that are far from each other have only their place in common, which is no reason.
    """
    from difflib import get_close_matches  # lazy: most runs have nothing to suggest

    here, rest = path[len(at)], path[len(at) + 1 :]
    keys = {str(p[len(at)]): p[len(at)] for p in known if len(p) > len(at) and p[: len(at)] == at}
    for close in [here] if here in keys.values() else get_close_matches(str(here), sorted(keys), n=3, cutoff=_CLOSE):
        found = (*at, keys[str(close)])
        if not rest:
            return [found]
        below = _near((*found, *rest), known, found) if (*found, *rest) not in known else [(*found, *rest)]
        if below:
            return below
    if at:
        return []
    ends = sorted(p for p in known if len(p) > len(path) and p[-len(path) :] == path)
    return ends if 0 < len(ends) <= _MANY else [path[n:] for n in range(1, len(path)) if path[n:] in known][:1]


def _hide(chart: Mapping[str, Any], reset: Path, default: Path) -> Mapping[str, Any]:
    # A map was written over a tombstone at `reset`: a default of the chart below it must not come back.
    node = lookup(chart, reset)
    for length in range(len(reset), len(default)):
        if not isinstance(node, dict):
            return chart
        if default[length] not in node:
            return _with(chart, default[: length + 1], None)
        node = node[default[length]]
    return chart


def _nulls(node: Mapping[str, Any], at: Path = ()) -> Iterator[Path]:
    for key, value in node.items():
        if value is None:
            yield (*at, key)
        elif isinstance(value, dict):
            yield from _nulls(value, (*at, key))


def _listed_nulls(node: Mapping[str, Any], at: Path = ()) -> Iterator[tuple[Path, Path]]:
    # (path of a list, path of a null inside it)
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _listed_nulls(value, (*at, key))
        elif isinstance(value, list):
            for inside in _nulls_below(value, ()):
                yield (*at, key), inside


def _nulls_below(node: Any, at: Path) -> Iterator[Path]:
    if node is None:
        yield at
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _nulls_below(value, (*at, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _nulls_below(value, (*at, index))


def _strip(node: Mapping[str, Any]) -> Mapping[str, Any]:
    # Shares every branch that holds no tombstone. Lists are left alone: a null in one is an error, reported elsewhere.
    out: dict[str, Any] | None = None
    for key, value in node.items():
        if value is None:
            out = dict(node) if out is None else out
            del out[key]
        elif isinstance(value, dict):
            kept = _strip(value)
            if kept is not value:
                out = dict(node) if out is None else out
                out[key] = kept
    return node if out is None else out


def _without(node: Mapping[Any, Any], path: Path) -> Mapping[Any, Any]:
    # The map without the value at `path`, and without the maps that became empty by that.
    if not path:
        return {}
    head, rest = path[0], path[1:]
    if head not in node:
        return node
    if rest:
        child = node[head]
        kept = _without(child, rest) if isinstance(child, dict) else child
        if kept is child:
            return node
        if kept:
            return {**node, head: kept}
    return {key: value for key, value in node.items() if key != head}


def _with(node: Mapping[Any, Any], path: Path, value: Any) -> Mapping[Any, Any]:
    head, rest = path[0], path[1:]
    if not rest:
        return {**node, head: value}
    child = node.get(head)
    return {**node, head: _with(child if isinstance(child, dict) else {}, rest, value)}
