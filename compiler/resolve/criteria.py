"""Which overlays make up a recipe: inheritance of criteria, matching, maximal leaves, order of application.

Matching is asymmetric: a criterion that an overlay leaves open matches anything, one that the query leaves open matches
only overlays that leave it open too. `nodes` takes no part in matching and counts for specificity only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from compiler.errors import Collector, did_you_mean
from compiler.model import CRITERIA, BundleEntry, Catalog, Overlay
from compiler.paths import lookup
from compiler.records import dataclass

Criteria: TypeAlias = Mapping[str, str | int]


@dataclass(frozen=True)
class Selection:
    """What a bundle entry selects: the leaf that names the recipe, and all overlays in order of application."""

    leaf: Overlay
    criteria: Criteria
    overlays: tuple[Overlay, ...]


def is_recipe(overlay: Overlay) -> bool:
    """Whether an overlay can be asked for by name."""
    return overlay.match and not overlay.abstract


def chain(overlays: Mapping[str, Overlay], name: str) -> tuple[Overlay, ...]:
    """The overlay and all it builds on, root first. The catalog holds no cycle and no unknown base."""
    found: list[Overlay] = []
    at: str | None = name
    while at is not None:
        found.append(overlays[at])
        at = overlays[at].base
    return tuple(reversed(found))


def effective(overlays: Mapping[str, Overlay], collector: Collector) -> dict[str, Criteria]:
    """The criteria of every overlay with those of its bases, in the order of `CRITERIA`.

    A child may add or repeat a criterion; one that changes an inherited criterion, or opens it again, is BC2002.
    """
    done: dict[str, Criteria] = {}
    for name in sorted(overlays):
        for overlay in chain(overlays, name):
            if overlay.name not in done:
                inherited = done[overlay.base] if overlay.base else {}
                _refuse_changes(overlay, inherited, overlays, collector)
                merged = {**overlay.criteria, **inherited}
                done[overlay.name] = {key: merged[key] for key in CRITERIA if key in merged}
    return done


def _refuse_changes(overlay: Overlay, inherited: Criteria, overlays: Mapping[str, Overlay], found: Collector) -> None:
    written = lookup(overlay.criteria_origin.document.data, overlay.criteria_origin.path)
    for key, value in inherited.items():
        opened = key not in overlay.criteria and isinstance(written, dict) and key in written
        if opened or overlay.criteria.get(key, value) != value:
            giver = next(o for o in chain(overlays, overlay.name) if key in o.criteria)
            says = "any" if opened else overlay.criteria[key]
            found.error(
                "BC2002",
                f"overlay `{overlay.name}` says {key}: {says}, but inherits {key}: {value} from `{giver.name}`",
                overlay.criteria_origin.down(key),
                fix=f"write {key}: {value} or leave it out; for another {key} build on another base",
                notes=[(giver.criteria_origin.down(key), f"{key}: {value} is stated here")],
            )


def maximal_leaves(overlays: Mapping[str, Overlay], criteria: Mapping[str, Criteria], query: Criteria) -> list[str]:
    """The overlays that match `query` and that no other match builds on: names, least specific first, then by name."""
    matched = [name for name, overlay in overlays.items() if overlay.match and _matches(criteria[name], query)]
    below = {o.name for name in matched for o in chain(overlays, name)[:-1]}
    return sorted((name for name in matched if name not in below), key=lambda name: (len(criteria[name]), name))


def _matches(criteria: Criteria, query: Criteria) -> bool:
    return all(query.get(key) == value for key, value in criteria.items() if key != "nodes")


def select(catalog: Catalog, entry: BundleEntry, collector: Collector) -> Selection | None:
    """The overlays of a bundle entry; None when there is no telling, which is recorded.

    BC2001: the recipe is unknown, or no recipe fits the criteria. BC2002: contradicting criteria. BC2003: the recipe is
    not a maximal match of its own criteria. A stated criterion that no applied overlay has is BC2001 as well: it would
    be dropped in silence.
    """
    overlays = catalog.overlays
    criteria = effective(overlays, collector)
    if entry.recipe is not None:
        leaf = overlays.get(entry.recipe)
        if leaf is None or not is_recipe(leaf):
            unknown_recipe(catalog, entry.recipe, collector, at=entry)
            return None
        query = criteria[leaf.name]
        leaves = maximal_leaves(overlays, criteria, query)
        if leaf.name not in leaves:
            _report_shadowed(overlays, leaves, leaf, collector)
            return None
    else:
        query = {key: entry.criteria[key] for key in CRITERIA if key in entry.criteria}
        leaves = maximal_leaves(overlays, criteria, query)
        if not _covered(overlays, criteria, leaves, query, entry, collector):
            return None
        leaf = overlays[leaves[-1]]
        if leaf.abstract:
            _report_abstract(overlays, criteria, leaf, query, entry, collector)
            return None
    applied: dict[str, Overlay] = {}
    for name in leaves:
        applied.update((o.name, o) for o in chain(overlays, name) if o.name not in applied)
    return Selection(leaf, query, tuple(applied.values()))


def unknown_recipe(catalog: Catalog, name: str, collector: Collector, *, at: BundleEntry | None = None) -> None:
    """Record BC2001 for a name that is no recipe: unknown, abstract, or kept out of matching."""
    overlay = catalog.overlays.get(name)
    known = [o.name for o in catalog.overlays.values() if is_recipe(o)]
    children = sorted(o.name for o in catalog.overlays.values() if is_recipe(o) and o.base == name)
    notes = [] if overlay is None else [(overlay.origin, "the overlay is here")]
    if at is None:
        known += catalog.workspace.bundles
        message = f"there is no bundle and no recipe `{name}`"
    else:
        message = f"there is no recipe `{name}`"
    if overlay is not None:
        why = "is abstract" if overlay.abstract else "takes no part in matching (it has no criteria, or `match: false`)"
        message = f"`{name}` is no recipe: it {why}"
    fix = f"recipes that build on it: {', '.join(children)}" if children else did_you_mean(name, known)
    where = at.origin.down("recipe") if at is not None else overlay.origin if overlay is not None else None
    collector.error("BC2001", message, where, fix=fix or "`bundlec list` prints all of them", notes=notes if at else [])


def _report_shadowed(overlays: Mapping[str, Overlay], leaves: Iterable[str], leaf: Overlay, found: Collector) -> None:
    others = [overlays[n] for n in leaves if any(o.name == leaf.name for o in chain(overlays, n))]
    found.error(
        "BC2003",
        f"`{leaf.name}` cannot be asked for: {_names(others)} builds on it and matches the same criteria",
        leaf.criteria_origin,
        fix="give the other one a criterion more, or `match: false`, or ask for it instead",
        notes=[(o.origin, f"`{o.name}` is here") for o in others],
    )


def _covered(
    overlays: Mapping[str, Overlay],
    criteria: Mapping[str, Criteria],
    leaves: Iterable[str],
    query: Criteria,
    entry: BundleEntry,
    found: Collector,
) -> bool:
    honoured = {key for name in leaves for key in criteria[name]}
    missing = [key for key in query if key != "nodes" and key not in honoured]
    for key in missing:
        rest = {k: v for k, v in query.items() if k not in (key, "nodes")}
        having = [name for name, overlay in overlays.items() if overlay.match and key in criteria[name]]
        near = sorted(name for name in having if _compatible(criteria[name], rest))
        same = [n for n in near if criteria[n][key] == query[key]]
        if same:
            extra = {k: v for k, v in criteria[same[0]].items() if k not in query and k != "nodes"}
            fix = f"`{same[0]}` would match with {', '.join(f'{k}: {v}' for k, v in extra.items())} as well"
        elif near:
            fix = f"values of {key} beside these criteria: {', '.join(sorted({str(criteria[n][key]) for n in near}))}"
        else:
            values = {str(criteria[name][key]) for name in having}
            fix = did_you_mean(str(query[key]), values) or f"no overlay has a {key} beside these criteria; leave it out"
        found.error(
            "BC2001",
            f"no overlay that matches honours {key}: {query[key]}",
            entry.origin.down("criteria", key),
            fix=fix,
        )
    if not missing and not any(True for _ in leaves):
        found.error("BC2001", "no overlay matches these criteria", entry.origin.down("criteria"))
        return False
    return not missing


def _compatible(criteria: Criteria, query: Criteria) -> bool:
    return all(criteria.get(key, value) == value for key, value in query.items())


def _report_abstract(
    overlays: Mapping[str, Overlay],
    criteria: Mapping[str, Criteria],
    leaf: Overlay,
    query: Criteria,
    entry: BundleEntry,
    found: Collector,
) -> None:
    further: list[str] = sorted(
        name for name, overlay in overlays.items() if is_recipe(overlay) and _extends(criteria[name], query)
    )
    found.error(
        "BC2001",
        f"these criteria select no recipe: the closest overlay, `{leaf.name}`, is abstract",
        entry.origin.down("criteria"),
        fix=f"add criteria; recipes that these fit: {', '.join(further)}" if further else "name a recipe instead",
        notes=[(leaf.origin, "the overlay is here")],
    )


def _extends(criteria: Criteria, query: Criteria) -> bool:
    return all(criteria.get(key) == value for key, value in query.items() if key != "nodes")


def _names(overlays: Iterable[Overlay]) -> str:
    return " and ".join(f"`{o.name}`" for o in overlays)
