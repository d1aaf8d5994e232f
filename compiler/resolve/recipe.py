"""Stage 2, resolve: a bundle entry of a catalog -> Recipe.

Order of application: the overlays, the mixins, the effects of inputs, the profile, the bundle's `disable` and `set`,
the flags. Values of a component are layered in that order over its own values file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compiler import predicates
from compiler.deleted import deleted
from compiler.errors import Collector, UserError
from compiler.facts import facts
from compiler.model import (
    Assertion,
    BundleEntry,
    Catalog,
    Chart,
    ComponentFacts,
    Constraint,
    Facts,
    Flags,
    Overlay,
    Predicate,
    Recipe,
    ResolvedComponent,
)
from compiler.paths import MISSING, lookup
from compiler.resolve import (
    bundle,
    criteria,
    facets,
    inputs,
    mirrors,
    mixins,
    neighbours,
    placement,
    profile,
    settings,
    values,
)
from compiler.resolve import draft as drafting
from compiler.resolve.draft import Draft, overlay_layer
from compiler.resolve.profile import Choice
from compiler.source import parse_path


def compose(catalog: Catalog, entry: BundleEntry, flags: Flags, collector: Collector) -> Recipe | None:
    """The recipe of a bundle entry; None when the entry does not even select overlays. Findings go to `collector`."""
    chosen, written = settings.settings(catalog, entry, flags, collector)
    selection = criteria.select(catalog, entry, collector)
    if selection is None:
        return None
    overlays = selection.overlays
    drafts = _drafts(catalog, overlays, collector)
    constraints = facets.constraints(overlays)
    mixed = mixins.met(overlays)
    mixins.apply(catalog, mixed, drafts, constraints, collector)
    facets.refuse_pool_labels(constraints.values(), collector)
    given, specs = inputs.choose(overlays, entry, collector)
    inputs.apply(specs, given, drafts, collector)
    choice = profile.choose(overlays, entry, flags, collector)
    if choice is not None:
        profile.apply(choice, drafts, collector)
        constraints.update((c.name, c) for c in choice.value.constraints)
    sayings = bundle.switch(catalog, entry, flags, drafts, choice, collector)
    before = _before_values(selection.leaf.name, selection.criteria, choice, given, drafts)
    placement.apply(chosen.placement, chosen.storage, written, drafts, before, choice, collector)
    chosen, charts = mirrors.apply(catalog, chosen, written.origin, drafts, collector)
    bundle.assign(sayings, choice, collector)
    neighbours.check(catalog, entry, chosen, collector)
    recipe = Recipe(
        bundle=entry.name,
        name=selection.leaf.name,
        criteria=selection.criteria,
        overlays=tuple(o.name for o in overlays),
        mixins=mixed,
        maturity=selection.leaf.maturity,
        description=selection.leaf.description,
        known_gaps=facets.known_gaps(overlays),
        profile=choice.selected() if choice else None,
        inputs=given,
        constraints=_sorted(constraints),
        cluster_provides=facets.cluster_provides(overlays),
        prerequisites=facets.prerequisites(overlays),
        operations=facets.operations(overlays),
        assertions=_assertions(catalog, overlays, drafts, collector),
        validation=facets.validation(overlays),
        components={name: _resolve(drafts[name], charts.get(name), collector) for name in sorted(drafts)},
        settings=chosen,
        written=written.said,
    )
    known = facts(recipe)
    _require_values(recipe, known, collector)
    if not collector.failed:
        placement.check(recipe, known, collector)
    return replace(recipe, warnings=collector.warnings)


def _before_values(
    name: str, criteria: Mapping[str, Any], choice: Choice | None, given: Mapping[str, Any], drafts: Mapping[str, Draft]
) -> Facts:
    return Facts(
        recipe={"name": name, **criteria},
        profile={choice.profile.name: choice.value.name} if choice else {},
        inputs=given,
        components={n: ComponentFacts(d.enabled, d.version, {}) for n, d in drafts.items()},
        validation={},
        constraints={},
    )


def _drafts(catalog: Catalog, overlays: Sequence[Overlay], collector: Collector) -> dict[str, Draft]:
    drafts: dict[str, Draft] = {}
    for overlay in overlays:
        layer = overlay_layer(overlay.name)
        for ref in overlay.refs:
            if ref.name not in drafts:
                drafts[ref.name] = drafting.start(catalog.components[ref.name], ref, layer)
            drafting.apply(drafts[ref.name], ref, layer, collector)
    return drafts


def _resolve(draft: Draft, chart: Chart | None, collector: Collector) -> ResolvedComponent:
    component = draft.component
    final, chart_values, trace = values.final(draft, collector)
    if chart is not None:
        component = replace(component, chart=chart)
    return ResolvedComponent(
        name=component.name,
        component=component,
        enabled=draft.enabled,
        disabled_by=None if draft.enabled else draft.switched_by,
        disabled_reason=None if draft.enabled else draft.reason,
        brought_by=draft.brought_by,
        version=draft.version or (component.chart.version if component.chart else None),
        namespace=draft.namespace or component.namespace.name,
        values=final,
        chart_values=chart_values,
        trace=trace,
        manifests=drafting.manifests(draft),
        needs=tuple(draft.needs),
        readiness=draft.readiness,
        health_check_skip=draft.health_check_skip,
    )


def _assertions(
    catalog: Catalog, overlays: Sequence[Overlay], drafts: Mapping[str, Draft], collector: Collector
) -> tuple[Assertion, ...]:
    rules = [rule for name in sorted(drafts) if drafts[name].enabled for rule in drafts[name].component.rules]
    return (*facets.assertions(overlays, collector).values(), *rules, *catalog.workspace.policies)


def _require_values(recipe: Recipe, known: Facts, collector: Collector) -> None:
    # Presence decides: an empty string or `false` is a value.
    for component in recipe.enabled():
        for required in component.component.required_values:
            if lookup(component.values, parse_path(required.path)) is not MISSING:
                continue
            if required.when is not None and not _holds(required.when, known, collector):
                continue
            gone = deleted(component, parse_path(required.path))
            collector.error(
                "BC2010",
                f"{gone or f'`{component.name}:{required.path}` is not set'}: {required.message}",
                gone.entry.origin if gone else component.brought_by,
                key=gone is not None,
                fix=gone.fix
                if gone
                else f"set it in `overrides` of an overlay, or in `set: {{{component.name}: ...}}` of the bundle",
                notes=[(required.origin, "it is required here")],
            )


def _holds(predicate: Predicate, known: Facts, collector: Collector) -> bool:
    try:
        return predicates.evaluate(predicate, known)
    except UserError as error:
        collector.found += error.diagnostics
        return False


def _sorted(constraints: Mapping[str, Constraint]) -> dict[str, Constraint]:
    return {name: constraints[name] for name in sorted(constraints)}
