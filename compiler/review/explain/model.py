"""The answers, as data. `as_data` turns any of them into what `--format json` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from compiler.paths import MISSING
from compiler.records import dataclass
from compiler.source import Origin


@dataclass(frozen=True)
class Place:
    """A place in a source file. `file` is None for what no file wrote; `word` says then what did (a flag)."""

    file: str | None
    line: int | None
    column: int | None
    word: str

    def __str__(self) -> str:
        return self.word


def place(origin: Origin | None, *, key: bool = False) -> Place | None:
    """The place that an origin names, of its key with `key=True`; None for None."""
    if origin is None:
        return None
    span = origin.span(key=key)
    if span.file.startswith("<"):
        return Place(None, None, None, span.file.strip("<>"))
    return Place(span.file, span.line or None, span.column or None, str(span))


@dataclass(frozen=True)
class Step:
    """What one layer (an overlay, a mixin, a bundle entry, a flag ...) did, in words, and where."""

    layer: str
    what: str
    at: Place | None


@dataclass(frozen=True)
class ComponentStory:
    """A component of a recipe: who brought it, who gave its version, who switched it off, who else speaks of it."""

    name: str
    enabled: bool
    version: str | None
    namespace: str
    brought: Step
    versioned: Step | None
    disabled: Step | None
    steps: tuple[Step, ...]  # everybody who says something about it, in order of application


@dataclass(frozen=True)
class RecipeStory:
    """What a recipe is made of, in order of application."""

    bundle: str
    recipe: str
    criteria: Mapping[str, Any]
    overlays: tuple[Step, ...]
    mixins: tuple[Step, ...]
    inputs: tuple[Step, ...]
    profile: Step | None
    settings: tuple[Step, ...]
    components: tuple[ComponentStory, ...]


@dataclass(frozen=True)
class Link:
    """One link of the chain of a value. `rule` is how this layer's word met the ones before it."""

    layer: str
    rule: str
    value: Any
    at: Place | None


@dataclass(frozen=True)
class Leaf:
    """A value below the one that was asked for, and the layer that gave it."""

    path: str
    value: Any
    layer: str
    at: Place | None


@dataclass(frozen=True)
class ValueStory:
    """Where a value comes from. `chain` holds who spoke, the winner last; `value` is MISSING when it is gone."""

    component: str
    path: str
    value: Any
    winner: Link | None
    chain: tuple[Link, ...]
    items: tuple[Leaf, ...]  # of a list
    below: tuple[Leaf, ...]  # of a map
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Read:
    """A value that a template looked at while it was rendered. `set` is false when there was nothing."""

    path: str
    set: bool
    value: Any
    layer: str | None
    at: Place | None


@dataclass(frozen=True)
class ObjectStory:
    """Who renders an object. `source` is None for what the compiler makes itself, `rendered` False inside a chart."""

    object: str
    component: str
    release: str
    source: str | None
    at: Place | None
    listed: Step | None
    emitted: str | None
    rendered: bool
    reads: tuple[Read, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cause:
    """A reason of an edge: its kind (declared, api, runtime-api, piece), the sentence, and the line behind it."""

    kind: str
    text: str
    at: Place | None


@dataclass(frozen=True)
class Hold:
    """What a deployer does for an edge or a gate. `hard`: the dependant cannot start before the provider succeeded."""

    deployer: str
    hard: bool
    text: str


@dataclass(frozen=True)
class CheckStory:
    """A check of a gate."""

    id: str
    text: str
    provider: str
    timeout: str
    on_timeout: str
    scope: str
    at: Place | None


@dataclass(frozen=True)
class EdgeStory:
    """Why one release waits for another, and how far."""

    provider: str
    dependant: str
    until: str
    causes: tuple[Cause, ...]
    checks: tuple[CheckStory, ...]
    holds: tuple[Hold, ...]


@dataclass(frozen=True)
class GateStory:
    """A gate: what it waits for, which edges put it there, how each deployer holds it."""

    id: str
    after: tuple[str, ...]
    checks: tuple[CheckStory, ...]
    edges: tuple[EdgeStory, ...]
    holds: tuple[Hold, ...]


@dataclass(frozen=True)
class OrderStory:
    """Why `first` comes before `second`: the shortest chain of edges; empty when nothing orders the two."""

    first: str
    second: str
    chain: tuple[EdgeStory, ...]
    notes: tuple[str, ...]


def as_data(value: Any) -> Any:
    """An answer as plain dicts and lists; names in camelCase, nothing (`MISSING`) as null."""
    if value is MISSING:
        return None
    if is_dataclass(value):
        return {_camel(f.name): as_data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(item) for item in value]
    return value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m[1].upper(), name)
