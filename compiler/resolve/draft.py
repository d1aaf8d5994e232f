"""A component while it is composed: the refs of overlays and mixins fold into it one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from compiler.errors import Collector, did_you_mean
from compiler.model import (
    Component,
    ComponentRef,
    ManifestRef,
    Need,
    Piece,
    Predicate,
    ReadinessOverride,
    Until,
)
from compiler.resolve.merge import Layer
from compiler.source import Origin

_STRENGTH: Mapping[Until, int] = {"applied": 0, "api": 1, "ready": 2}


@dataclass
class Draft:
    """The state of one component between two layers. `layers` are its values, first to last, without its own files."""

    component: Component
    brought_by: Origin
    brought_layer: str
    needs: list[Need]
    enabled: bool = True
    switched_by: Origin | None = None
    reason: str | None = None
    version: str | None = None
    namespace: str | None = None
    values_file: str | None = None
    values_file_origin: Origin | None = None
    layers: list[Layer] = field(default_factory=list)
    manifests: dict[Piece, dict[str, ManifestRef]] = field(default_factory=dict)
    readiness: ReadinessOverride = field(default_factory=ReadinessOverride)
    health_check_skip: str | None = None

    @property
    def name(self) -> str:
        """The component's name."""
        return self.component.name


def start(component: Component, ref: ComponentRef, layer: str) -> Draft:
    """The draft of a component that `ref` brings into the recipe; the ref itself is not applied yet."""
    return Draft(component, ref.origin, layer, list(component.needs))


def apply(draft: Draft, ref: ComponentRef, layer: str, collector: Collector) -> None:
    """Fold one ref into the draft: what it says wins, what it leaves out stays, lists of files and edges grow.

    Records BC2012 for a version without a reason, BC2006 for what can have no effect.
    """
    if ref.enabled is not None:
        switch(draft, enabled=ref.enabled, origin=ref.origin.down("enabled"), reason=layer)
    if ref.version is not None:
        _set_version(draft, ref, collector)
    draft.namespace = ref.namespace or draft.namespace
    if ref.values_file is not None:
        draft.values_file, draft.values_file_origin = ref.values_file, ref.origin.down("valuesFile")
    draft.health_check_skip = ref.health_check_skip or draft.health_check_skip
    said = {f.name: getattr(ref.readiness, f.name) for f in fields(ref.readiness)}
    said = {name: value for name, value in said.items() if value is not None}
    if said:
        draft.readiness = replace(draft.readiness, **said)
    if ref.overrides:
        draft.layers.append(Layer(layer, ref.overrides, ref.overrides_origin or ref.origin))
    for need in ref.dependency_refs:
        _add_need(draft, need, collector)
    for manifest in ref.pre_manifests:
        draft.manifests.setdefault("pre", {})[manifest.file] = manifest
    for manifest in ref.manifests:
        draft.manifests.setdefault(last_piece(draft.component), {})[manifest.file] = manifest


def overlay_layer(name: str) -> str:
    """What the trace calls the layer of an overlay."""
    return f"overlay {name}"


def switch(draft: Draft, *, enabled: bool, origin: Origin, reason: str | None) -> None:
    """Switch the component on or off; the last one to say so is remembered."""
    draft.enabled, draft.switched_by, draft.reason = enabled, origin, reason


def last_piece(component: Component) -> Piece:
    """Where the `manifestFiles` of a ref go: after the chart, or into the one piece of a component without a chart."""
    return "main" if component.chart is None else "post"


def manifests(draft: Draft) -> dict[str, tuple[ManifestRef, ...]]:
    """The manifests by piece: those of the refs, and where these list none of a piece, the component's own."""
    own = draft.component.manifests
    found = {piece: tuple(files.values()) for piece, files in draft.manifests.items() if files}
    return {piece: found.get(piece) or own.get(piece, ()) for piece in ("pre", "main", "post")}


def same_predicate(left: Predicate | None, right: Predicate | None) -> bool:
    """Whether two `when:` say the same, wherever they stand."""
    if left is None or right is None:
        return left is right
    return left.form == right.form and left.component == right.component


def _set_version(draft: Draft, ref: ComponentRef, collector: Collector) -> None:
    at = ref.origin.down("version")
    if draft.component.chart is None:
        collector.error(
            "BC2006", f"`{ref.name}` has no chart, so `version` changes nothing", at, fix="remove it", key=True
        )
    elif ref.version_reason is None:
        collector.error(
            "BC2012",
            f"`{ref.name}` is pinned to {draft.component.chart.version} by the component; {ref.version} needs a reason",
            at,
            fix="add `reason:`, or change the pin in component.yaml",
            notes=[(draft.component.origin, "the component is here")],
        )
    draft.version = ref.version


def _add_need(draft: Draft, need: Need, collector: Collector) -> None:
    if need.remove:
        kept = [n for n in draft.needs if n.component != need.component]
        if len(kept) == len(draft.needs):
            collector.error(
                "BC2006",
                f"`{draft.name}` inherits no dependency on `{need.component}` that could be removed",
                need.origin,
                fix=did_you_mean(need.component, _components(draft.needs)) or "remove the entry",
            )
        draft.needs = kept
        return
    for index, known in enumerate(draft.needs):
        if known.component == need.component and same_predicate(known.when, need.when):
            draft.needs[index] = _stronger(known, need)
            return
    draft.needs.append(need)


def _stronger(known: Need, new: Need) -> Need:
    # One edge that waits as long as the more demanding of the two, with the reasons of both.
    winner = new if _STRENGTH[new.until] > _STRENGTH[known.until] else known
    reasons = dict.fromkeys(n.reason for n in (known, new) if n.reason is not None)
    return replace(winner, reason="; ".join(reasons) or None)


def _components(needs: Iterable[Need]) -> list[str]:
    return sorted({n.component for n in needs})
