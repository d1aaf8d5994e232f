"""Values that an operator sets beside one of nearly the same name: `driver.versoin` where `driver.version` is set.

What a chart reads is not known here, so that such a value is legal; that it is meant is unlikely, and it does nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compiler.errors import Collector
from compiler.model import Component
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, leaves, merge
from compiler.resolve.values import own_layers
from compiler.source import Path, dotted, parse_path

_CLOSE = 0.84
"""Of difflib's ratio: one letter too many, too few or two exchanged in a word of seven."""
_SHORTEST = 4


def warn(draft: Draft, layer: Layer, collector: Collector) -> None:
    """Record a warning BC2018 for each key of `layer` that no earlier layer has and that is close to one of theirs."""
    declared: dict[str, Any] = {}
    for path in _declared(draft.component):
        _insert(declared, path)
    known = merge([Layer("declared", declared, layer.origin), *own_layers(draft, Collector()), *draft.layers]).tree
    told: set[Path] = set()
    for path, value in leaves(layer.data):
        # A null of a name that is not there is an error of its own.
        found = _misspelt(known, layer.data, path) if value is not None else None
        if found is None or found[0] in told:
            continue
        at, meant = found
        told.add(at)
        collector.warn(
            "BC2018",
            f"`{draft.name}:{dotted(at)}` ({layer.name}) is new to the component, beside `{meant}`",
            layer.origin.down(*at),
            fix=f"did you mean `{dotted((*at[:-1], meant))}`?",
        )


def _misspelt(known: Mapping[str, Any], data: Mapping[str, Any], path: Path) -> tuple[Path, str] | None:
    node: Any = known
    said: Any = data
    for number, step in enumerate(path):
        if not isinstance(node, dict) or not isinstance(step, str):
            return None
        if step in node:
            node, said = node[step], said[step]
            continue
        # What the layer sets as well is no slip of the pen, and keys of labels and the like are anybody's.
        others = [key for key in node if key not in said and not _free(key)]
        if len(step) < _SHORTEST or _free(step):
            return None
        for close in difflib.get_close_matches(step, others, n=3, cutoff=_CLOSE):
            if re.sub(r"[0-9]+", "", close) != re.sub(r"[0-9]+", "", step):
                return path[: number + 1], close
        return None
    return None


def _free(key: str) -> bool:
    return "/" in key or "." in key


def _declared(component: Component) -> Iterator[Path]:
    for text in (*component.chart_defaults, *component.manifest_values, *component.mixin_paths):
        yield parse_path(text)
    for paths in component.storage.values():
        yield from (parse_path(text) for text in paths)
    for scope in component.scheduling.values():
        for key in ("nodeSelector", "tolerations", "nodeCount"):
            yield from (parse_path(text) for text in scope.get(key, ()))


def _insert(tree: dict[str, Any], path: Path) -> None:
    # An empty map: nothing merges over it that would be of another kind, since only keys matter here.
    for step in path:
        tree = tree.setdefault(str(step), {})
