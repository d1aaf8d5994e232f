"""What overlays say besides components: constraints, validation phases, assertions, and what merely adds up."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from compiler.errors import Collector
from compiler.model import Assertion, ClusterApi, Constraint, Note, Overlay

POOL_LABEL = "NodeTopology.gpu-nodes.label"
"""A reading that tells pools of GPU nodes apart: it decides between the values of a profile, never about a recipe."""

_PHASES = ("readiness", "deployment", "performance", "conformance")


def constraints(overlays: Sequence[Overlay]) -> dict[str, Constraint]:
    """By name; a later overlay replaces a constraint as a whole."""
    return {c.name: c for overlay in overlays for c in overlay.constraints}


def refuse_pool_labels(constraints: Iterable[Constraint], collector: Collector) -> None:
    """Record BC2013 for a constraint of an overlay or mixin on the label of GPU pools."""
    for constraint in constraints:
        if constraint.name == POOL_LABEL:
            collector.error(
                "BC2013",
                f"`{POOL_LABEL}` belongs to the values of a profile and to `validation.readiness`",
                constraint.origin,
                fix="move it there",
            )


def known_gaps(overlays: Sequence[Overlay]) -> tuple[str, ...]:
    """All of them, in order, each once."""
    return tuple(dict.fromkeys(gap for overlay in overlays for gap in overlay.known_gaps))


def operations(overlays: Sequence[Overlay]) -> tuple[str, ...]:
    """All of them, in order, each once."""
    return tuple(dict.fromkeys(text for overlay in overlays for text in overlay.operations))


def prerequisites(overlays: Sequence[Overlay]) -> tuple[Note, ...]:
    """By id, in the order met; a later overlay replaces a note as a whole."""
    return tuple({note.id: note for overlay in overlays for note in overlay.prerequisites}.values())


def cluster_provides(overlays: Sequence[Overlay]) -> tuple[ClusterApi, ...]:
    """By group, kind and name, sorted; a later overlay replaces an entry as a whole."""
    found = {(a.group, a.kind, a.name or ""): a for overlay in overlays for a in overlay.cluster_provides}
    return tuple(found[key] for key in sorted(found))


def assertions(overlays: Sequence[Overlay], collector: Collector) -> dict[str, Assertion]:
    """By id; a later overlay may replace one with a reason. Records BC2012 where the reason is missing."""
    found: dict[str, Assertion] = {}
    for overlay in overlays:
        for assertion in overlay.assertions:
            earlier = found.get(assertion.id)
            if earlier is not None and assertion.reason is None:
                collector.error(
                    "BC2012",
                    f"assertion `{assertion.id}` replaces an inherited one and gives no reason",
                    assertion.origin,
                    fix="add `reason:`, or choose another id",
                    notes=[(earlier.origin, "the inherited one")],
                )
            found[assertion.id] = assertion
    return found


def validation(overlays: Sequence[Overlay]) -> dict[str, dict[str, Any]]:
    """The validation phases, merged field by field.

    `checks` and `constraints` are unions (a constraint by name, the later one wins), an explicit empty list clears
    what was there, and what an overlay leaves out is inherited. The other fields are replaced as a whole.
    """
    phases: dict[str, dict[str, Any]] = {name: {} for name in _PHASES}
    for overlay in overlays:
        for name, phase in overlay.validation.items():
            merged = phases[name]
            for field, value in (phase or {}).items():
                if field == "checks":
                    merged[field] = _union(merged.get(field, ()), value, lambda check: check)
                elif field == "constraints":
                    merged[field] = _union(merged.get(field, ()), value, _constraint_name)
                else:
                    merged[field] = value
    return {name: phase for name, phase in phases.items() if phase}


def _union(old: Iterable[Any], new: Sequence[Any], key: Callable[[Any], Hashable]) -> list[Any]:
    # An empty list that is written out clears; otherwise by key, in the order met.
    return list({key(item): item for item in (*old, *new)}.values()) if new else []


def _constraint_name(constraint: Mapping[str, Any]) -> str:
    return str(constraint["name"])
