"""The one node of the sources that a difference comes from, where the difference itself says which.

One side's answer, the most likely first. `origins` knows the wider nodes, for where nothing here was edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from compiler.model import Component, Crd
from compiler.paths import lookup
from compiler.review.diff import origins
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.values import Change
from compiler.source import Origin, Path, parse_path

# What of a CRD decides a fact of a release, the most likely first.
_OF_CRDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "keep": ("keep", "purge", "from", "when"),
        "crdsBefore": ("from", "applyBefore", "when"),
        "crdsOnUpgrade": ("upgrade", "from", "shared", "owner", "when"),
        "crdUpgrade": ("upgrade", "from", "shared", "owner", "when"),
    }
)
# Sections of component.yaml whose texts are the paths that settings are written to.
_PATHS = ("scheduling", "storage", "images")


def of_component_fact(name: str, snapshot: Snapshot, change: Change, *, head: bool) -> Iterator[Origin]:
    """Where a fact of a component's releases is written; `head` tells which address of the change counts."""
    component = _component(snapshot, name)
    if component is None:
        return
    spec = component.origin.down("spec")
    steps = tuple(str(step) for step in change.steps)
    at = change.new_at if head else change.old_at
    if steps[0] in {"pre", "main", "post"}:
        steps, at = steps[1:], at[1:]
    if not steps:
        return
    if steps[0] in _OF_CRDS:
        if steps[0] == "keep":
            yield spec.down("teardown", "keepCRDs")
        yield from _of_crds([c for c in component.crds if c.name in steps[1:]] or component.crds, _OF_CRDS[steps[0]])
    elif steps[0] == "drift":
        yield spec.down(*at)
    elif steps[0] == "stuck":
        yield spec.down("teardown", *at)
    elif steps[0] == "teardownBefore":
        yield from (check.origin for check in component.teardown.before if check.id in steps[1:])
    elif steps[0] == "hooks":
        for number, hook in enumerate(component.hooks):
            if f"{hook.event} {hook.name}" in steps[1:]:
                yield from (spec.down("hooks", number, key) for key in ("effect", "name", "event"))
    elif steps[0] == "health" and len(steps) > 1:
        if len(steps) == 2:  # it came or went as a whole
            yield from of_listing(snapshot, name, steps[1])
        if steps[1] in component.checks:
            check = component.checks[steps[1]].origin
            if steps[-1] == "namespace":
                yield check.down(*steps[2:])
                yield from _of_namespace(snapshot, name)
            yield check


def of_bundle_fact(snapshot: Snapshot, change: Change) -> Iterator[Origin]:
    """Where a sentence of a README, or something that overlays or components ask of a cluster, is written."""
    if snapshot.plan is None or snapshot.catalog is None:
        return
    recipe = snapshot.plan.recipe
    specs = [overlay.origin.down("spec") for overlay in origins.overlays(recipe, snapshot.catalog)]
    specs += [snapshot.catalog.mixins[name].origin.down("spec") for name in recipe.mixins]
    components = {item.name: item.component.origin.down("spec") for item in recipe.enabled()}
    words = [str(getattr(step, "value", step)) for step in change.steps]
    if words[0] == "readme" and len(words) > 3:
        yield from _items([components[words[1]]] if words[1] in components else [], words[2], words[3:4])
    elif words[0] in {"prerequisites", "operations", "knownGaps"} and len(words) > 1:
        yield from _items([*specs, *components.values()], words[0], words[1:2])
    elif words[0] == "preflight" and len(words) > 1:
        named = words[1].split()
        both = [*specs, *components.values()]
        yield from _items(both, "prerequisites", named)
        yield from _items(both, "singleton", named)


def of_listing(snapshot: Snapshot, provider: str, check: str) -> Iterator[Origin]:
    """Where the readiness of a component lists a check."""
    component = _component(snapshot, provider)
    for readiness in (component.readiness_ready, component.readiness_api) if component is not None else ():
        if readiness is not None and check in readiness.checks:
            yield readiness.origin.down("checks", readiness.checks.index(check))


def of_limit(snapshot: Snapshot, provider: str, key: str) -> Iterator[tuple[Any, Origin]]:
    """(what is written, where) of `timeout`, `onTimeout` or `scope` of a readiness: in refs, then in the component."""
    component = _component(snapshot, provider)
    if component is None or snapshot.plan is None or snapshot.catalog is None:
        return
    attribute = "on_timeout" if key == "onTimeout" else key
    for ref in origins.refs(snapshot.plan.recipe, snapshot.catalog, provider):
        if (said := getattr(ref.readiness, attribute)) is not None:
            yield said, ref.origin.down("readiness", key)
    for readiness in (component.readiness_ready, component.readiness_api):
        if readiness is not None:
            yield getattr(readiness, attribute), readiness.origin.down(key)


def of_path(snapshot: Snapshot, name: str, path: Path) -> Iterator[Origin]:
    """Where a component says that settings of placement, storage or mirrors are written to a path of its values."""
    component = _component(snapshot, name)
    if component is None:
        return
    spec = component.origin.down("spec")
    for key in _PATHS:
        section = spec.down(key)
        for below, text in _texts(lookup(section.document.data, section.path), ()):
            if text and path[: len(steps := _parsed(text))] == steps:
                yield section.down(*below)


def _of_namespace(snapshot: Snapshot, name: str) -> Iterator[Origin]:
    item = snapshot.components[name].resolved
    if item is not None and snapshot.plan is not None and snapshot.catalog is not None:
        yield origins.of_namespace(item, snapshot.plan.recipe, snapshot.catalog)


def _component(snapshot: Snapshot, name: str) -> Component | None:
    view = snapshot.components.get(name)
    return view.resolved.component if view is not None and view.resolved is not None else None


def _of_crds(crds: Any, keys: tuple[str, ...]) -> Iterator[Origin]:
    found: list[Crd] = list(crds)
    yield from (crd.origin.down(key) for key in keys for crd in found)


def _items(specs: list[Origin], key: str, names: list[str]) -> Iterator[Origin]:
    """The items of lists that are one of the names, or are called so."""
    for spec in specs:
        items = lookup(spec.document.data, (*spec.path, key))
        for number, item in enumerate(items if isinstance(items, (list, tuple)) else ()):
            called = [item.get("id", item.get("name"))] if isinstance(item, Mapping) else [item]
            called += [item["kind"]] if isinstance(item, Mapping) and "kind" in item else []
            if all(name in names for name in called):
                yield spec.down(key, number)


def _texts(data: Any, at: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(value, (*at, key))
    elif isinstance(data, (list, tuple)):
        for number, value in enumerate(data):
            yield from _texts(value, (*at, number))
    elif isinstance(data, str):
        yield at, data


def _parsed(text: str) -> Path:
    try:
        return parse_path(text)
    except ValueError:  # a sentence, such as why selectors are fixed
        return (text,)
