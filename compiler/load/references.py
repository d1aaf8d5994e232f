"""Checks across files: names, aliases, references, cycles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import BundleEntry, Component, ComponentRef, Overlay, Predicate
from compiler.source import Origin

RESERVED = frozenset({"deployer", "all"})
MAX_COMPONENT_NAME = 48
"""Helm allows 53 characters for a release, and the releases of a component end in `-pre` and `-post`."""
MAX_NAME = 63
MAX_CHAIN = 10
"""Overlays from the root to a recipe, both counted: of a longer chain nobody can tell any more who decides."""
_OWN_PARTS = frozenset({"gates", "namespaces", "root"})
"""What follows the prefix in names of objects that belong to no component."""


def check_component_names(components: Mapping[str, Component], found: Collector) -> None:
    """BC1202 for names too long or reserved, BC1203 for aliases and pieces that meet another component's name."""
    owners: dict[str, tuple[str, Origin]] = {}
    for name, component in components.items():
        at = component.origin.down("metadata", "name")
        _length(name, MAX_COMPONENT_NAME, "Helm allows 53 with `-post`", at, found)
        _reserved(name, at, found)
        for suffix in ("-pre", "-post"):
            if name.endswith(suffix) and name.removesuffix(suffix) in components:
                found.error(
                    "BC1203",
                    f"`{name}` is also a release of the component `{name.removesuffix(suffix)}`",
                    at,
                    fix="choose another name",
                )
        owners[name.lower()] = (name, at)
    for name, component in components.items():
        for index, alias in enumerate(component.aliases):
            at = component.origin.down("spec", "aliases", index)
            _reserved(alias, at, found)
            other = owners.get(alias.lower())
            if other is not None:
                found.error(
                    "BC1203",
                    f"the alias `{alias}` is taken by {other[0]} (letter case does not count)",
                    at,
                    fix="choose another alias, or remove it",
                    notes=((other[1], "taken here"),),
                )
            else:
                owners[alias.lower()] = (name, at)


def check_prefixes(bundles: Iterable[BundleEntry], components: Iterable[str], found: Collector) -> None:
    """BC1203 for a prefix that continues another one so that an object of both bundles could have one name.

    Objects are named `<prefix>-<part>`: prefix `a` with the component `b-c` and prefix `a-b` with `c` meet in `a-b-c`.
    """
    prefixes = {bundle.prefix or bundle.name: bundle for bundle in bundles}
    releases = {f"{name}{suffix}" for name in components for suffix in ("", "-pre", "-post")}
    parts = _OWN_PARTS | releases | {f"{kind}-{name}" for kind in ("gate", "teardown") for name in releases}
    for prefix, bundle in sorted(prefixes.items()):
        for other in sorted(p for p in prefixes if prefix.startswith(f"{p}-")):
            rest = prefix.removeprefix(f"{other}-")
            shared = sorted(part for part in parts if f"{rest}-{part}" in parts)
            if shared:
                found.error(
                    "BC1203",
                    f"the prefixes `{prefix}` and `{other}` of bundle `{prefixes[other].name}` could both name an "
                    f"object `{prefix}-{shared[0]}`",
                    bundle.origin.down("prefix" if bundle.prefix else "name"),
                    fix="give one of the bundles another `prefix`",
                    notes=((prefixes[other].origin, "the other bundle"),),
                )


def check_name_length(name: str, at: Origin, found: Collector) -> None:
    """BC1202 for a name that is no DNS label because of its length."""
    _length(name, MAX_NAME, "a DNS label", at, found)


def check_overlays(
    overlays: Mapping[str, Overlay],
    known_overlays: Collection[str],
    known_mixins: Collection[str],
    found: Collector,
) -> None:
    """BC1204 for unknown bases and mixins, BC1205 for cycles, BC1103 for a second root, BC1211 for a chain too long.

    The known names hold those of files with findings of their own, which no Overlay or Mixin was made of.
    """
    roots = [o for o in overlays.values() if o.base is None]
    if len(roots) > 1:
        root = next((o for o in roots if o.name == "base"), roots[0])
        for other in roots:
            if other is not root:
                found.error(
                    "BC1103",
                    f"`base` is missing in {other.name}",
                    other.origin.down("spec"),
                    fix=f"write `base: {root.name}`; only the root has none",
                    key=True,
                )
    for overlay in overlays.values():
        if overlay.base is not None and overlay.base not in known_overlays:
            _unknown("overlay", overlay.base, overlay.origin.down("spec", "base"), known_overlays, found)
        for mixin, at in overlay.mixins:
            if mixin not in known_mixins:
                _unknown("mixin", mixin, at, known_mixins, found)
    for cycle in _cycles(overlays):
        chain = " -> ".join((*cycle, cycle[0]))
        first, *others = (overlays[name].origin.down("spec", "base") for name in cycle)
        notes = tuple((at, f"base: {overlays[name].base}") for at, name in zip(others, cycle[1:], strict=True))
        found.error("BC1205", f"overlays build on each other: {chain}", first, notes=notes, fix="remove one `base`")
    for overlay in overlays.values():
        chain_of = _chain(overlays, overlay.name)
        if len(chain_of) == MAX_CHAIN + 1:  # told once, where it becomes too long
            found.error(
                "BC1211",
                f"`{overlay.name}` is the {len(chain_of)}th of a chain of overlays, and {MAX_CHAIN} may build on each "
                f"other: {' <- '.join(reversed(chain_of))}",
                overlay.origin.down("spec", "base"),
                fix="share by a wildcard overlay or a mixin, or join two of them",
            )


def check_components_known(
    components: Iterable[Component],
    refs: Iterable[ComponentRef],
    predicates: Iterable[Predicate],
    known: Collection[str],
    found: Collector,
) -> None:
    """BC1204 for components that the catalog does not hold. `conflicts` may name foreign ones."""
    for component in components:
        owner = component.namespace.owner
        if owner is not None and owner not in known:
            _unknown("component", owner, component.namespace.origin.down("owner"), known, found)
        for need in component.needs:
            if need.component not in known:
                _unknown("component", need.component, need.origin.down("component"), known, found)
    for ref in refs:
        if ref.name not in known:
            _unknown("component", ref.name, ref.origin.down("name"), known, found)
        for need in ref.dependency_refs:
            if need.component not in known:
                _unknown("component", need.component, need.origin, known, found)
    for predicate in predicates:
        for name, at in _named(predicate.form, predicate.origin):
            if name not in known:
                _unknown("component", name, at, known, found)


def _named(form: Mapping[str, Any], at: Origin) -> Iterator[tuple[str, Origin]]:
    """The components that a predicate names, each with its place."""
    for key in ("all", "any"):
        for index, below in enumerate(form.get(key, ())):
            yield from _named(below, at.down(key, index))
    if "not" in form:
        yield from _named(form["not"], at.down("not"))
    if "component" in form:
        yield form["component"], at.down("component")
    for key in ("value", "sameAs"):
        text = form.get(key)
        if text is not None and not text.startswith("."):
            yield text.partition(":")[0], at.down(key)
    if "component" in form.get("objects", ()):
        yield form["objects"]["component"], at.down("objects", "component")


def _chain(overlays: Mapping[str, Overlay], name: str) -> list[str]:
    """An overlay and what it builds on, root last, no further than needed; empty where that is a cycle."""
    found: list[str] = []
    at: str | None = name
    while at is not None and at in overlays and len(found) <= MAX_CHAIN + 1:
        if at in found:
            return []
        found.append(at)
        at = overlays[at].base
    return found


def _cycles(overlays: Mapping[str, Overlay]) -> Iterator[tuple[str, ...]]:
    """Every cycle of `base` once, beginning with its smallest name."""
    done: set[str] = set()
    for name in sorted(overlays):
        chain: list[str] = []
        at: str | None = name
        while at is not None and at in overlays and at not in done and at not in chain:
            chain.append(at)
            at = overlays[at].base
        if at is not None and at in chain:
            cycle = chain[chain.index(at) :]
            start = cycle.index(min(cycle))
            yield (*cycle[start:], *cycle[:start])
        done.update(chain)


def _length(name: str, limit: int, why: str, at: Origin, found: Collector) -> None:
    if len(name) > limit:
        fix = f"shorten it by {len(name) - limit}"
        found.error("BC1202", f"`{name}` has {len(name)} characters; {limit} at most ({why})", at, fix=fix)


def _reserved(name: str, at: Origin, found: Collector) -> None:
    if name.lower() in RESERVED:
        found.error("BC1202", f"`{name}` is reserved: the command line uses it", at, fix="choose another name")


def _unknown(what: str, name: str, at: Origin, known: Collection[str], found: Collector) -> None:
    fix = did_you_mean(name, known) or f"the catalog has no {what} of a similar name"
    found.error("BC1204", f"unknown {what} `{name}`", at, fix=fix)
