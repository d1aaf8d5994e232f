"""Layered values: maps merge, lists and scalars replace, null is a tombstone; and who did it.

Presence decides, never truth: `false`, `0`, `""`, `[]` and `{}` override like anything else. Nothing that goes in is
changed: a result shares the branches that nobody touched and copies the maps on the way to what somebody did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from compiler.model import TraceEntry
from compiler.records import dataclass
from compiler.source import Origin, Path


@dataclass(frozen=True)
class Layer:
    """Values that one source gives to one component.

    `name` is for people ("overlay gke-cos"), `origin` is the node that holds `data`. `own` layers are files of the
    component's folder.
    """

    name: str
    data: Mapping[str, Any]
    origin: Origin
    own: bool = False


@dataclass(frozen=True)
class Clash:
    """A layer writes a scalar, map or list where an earlier one wrote another of the three."""

    path: Path
    before: Any
    after: Any
    layer: Layer


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    `tree` holds null where a key was deleted last. `resets` are the paths where a map was written over a tombstone:
    below them, what the layers before the tombstone (and the chart itself) hold is gone.
    """

    tree: Mapping[str, Any]
    resets: tuple[Path, ...]
    clashes: tuple[Clash, ...]


def merge(layers: Sequence[Layer]) -> Merged:
    """Merge `layers`, first to last. Never raises and never changes its input: clashes are in the result."""
    run = _Run(None)
    tree = run.all(layers)
    return Merged(tree, tuple(run.resets), tuple(run.clashes))


class LayerTrace(Mapping[Path, tuple[TraceEntry, ...]]):
    """The trace of a merge: per value path, what every layer did there, first layer first.

    Nodes of all kinds have entries; the last one tells the truth about the result: a path that is gone ends in
    `deleted` or `null`. It is computed on first use, since a build without errors never looks.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = tuple(layers)

    @cached_property
    def _table(self) -> dict[Path, tuple[TraceEntry, ...]]:
        log: dict[Path, list[TraceEntry]] = {}
        _Run(log).all(self._layers)
        return {path: tuple(entries) for path, entries in log.items()}

    def __getitem__(self, path: Path) -> tuple[TraceEntry, ...]:
        return self._table[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def leaves(data: Mapping[str, Any], at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The path and value of everything that is no map with content: scalars, lists, nulls, empty maps."""
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def overlap(left: Path, right: Path) -> bool:
    """Whether one of two paths is the other or lies below it."""
    shorter = min(len(left), len(right))
    return left[:shorter] == right[:shorter]


def kind(value: Any) -> str:
    """`map`, `list` or `scalar`."""
    return "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"


class _Run:
    # One pass over the layers; the same code with and without a log, so that values and trace cannot disagree.

    def __init__(self, log: dict[Path, list[TraceEntry]] | None) -> None:
        self.log = log
        self.resets: list[Path] = []
        self.clashes: list[Clash] = []

    def all(self, layers: Sequence[Layer]) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for layer in layers:
            tree = self.lay(tree, layer.data, (), layer)
        return tree

    def lay(self, old: Mapping[str, Any], new: Mapping[str, Any], at: Path, layer: Layer) -> dict[str, Any]:
        out = dict(old)
        for key, value in new.items():
            path = (*at, key)
            before = out.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                self.note(path, layer, "merged", value)
                out[key] = self.lay(before, value, path, layer)
                continue
            if before is not None and value is not None and kind(before) != kind(value):
                self.clashes.append(Clash(path, before, value, layer))
            if isinstance(value, dict) and before is None and key in out:
                self.resets.append(path)
            if self.log is not None:
                self.replace(path, before, value, layer)
            out[key] = value
        return out

    def replace(self, path: Path, before: Any, value: Any, layer: Layer) -> None:
        if isinstance(before, dict):
            at = layer.origin.down(*path)
            for below in _nodes(before, path):
                self.note(below, layer, "deleted", None, at)
        if isinstance(value, dict):
            self.note(path, layer, "set" if before is None else "replaced", value)
            for key, child in value.items():
                self.replace((*path, key), None, child, layer)
        elif value is None:
            assert self.log is not None
            self.note(path, layer, "deleted" if path in self.log else "null", None)
        else:
            self.note(path, layer, "set" if before is None else "replaced", value)

    def note(self, path: Path, layer: Layer, action: str, value: Any, at: Origin | None = None) -> None:
        if self.log is not None:
            entry = TraceEntry(layer.name, at or layer.origin.down(*path), action, value)
            self.log.setdefault(path, []).append(entry)


def _nodes(data: Mapping[str, Any], at: Path) -> Iterator[Path]:
    # Everything alive strictly below `at`; tombstones are dead already.
    for key, value in data.items():
        if value is not None:
            yield (*at, key)
            if isinstance(value, dict):
                yield from _nodes(value, (*at, key))
