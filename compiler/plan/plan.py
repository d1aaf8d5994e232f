"""The steps of planning, in order. Each lives in the module that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from compiler.errors import Collector
from compiler.facts import facts as facts_of
from compiler.model import ComponentPlan, Plan, Recipe
from compiler.plan import apis, edges, manifests, namespaces, order, preflight, rules
from compiler.plan.apis import ApiEdge
from compiler.plan.edges import Declared
from compiler.plan.gates import Binder
from compiler.plan.releases import ReleaseBuilder, release_id
from compiler.source import Origin, Span

_LOST = ("BC1206", "BC3007", "BC3008")  # of a manifest that gives no objects


def plan(recipe: Recipe) -> Plan:
    """The plan of a recipe: rendered, checked, ordered, gated.

    Raises UserError with every finding: BC3001 missing dependency, BC3002 cycle, BC3003 missing API, BC3004
    conflict, BC3005 two owners of a CRD, BC3006 assertion, BC3007-BC3009 and BC3013 manifests, BC3010 namespaces,
    BC3012 class, BC3014 run-time API that nobody asks for, BC3015 nothing to wait for, BC3016 an object before its API.
    """
    collector = Collector()
    facts = facts_of(recipe)
    rendered = manifests.render(recipe, facts, collector)
    examples = manifests.examples(recipe, facts, collector)
    objects = tuple(o for pieces in rendered.values() for made in pieces.values() for o in made)
    with_objects = replace(facts, objects=tuple((o.component, o.data) for o in objects))
    if any(found.code in _LOST for found in collector.found):  # what looks at objects would say nothing true
        rules.check(recipe, facts, objects, collector)
        edges.declared(recipe, facts, collector)
        collector.raise_if_failed()
    rules.check(recipe, with_objects, objects, collector)
    owned = namespaces.namespaces(recipe, objects, collector)
    declared, satisfied = edges.declared(recipe, facts, collector)
    required = apis.api_edges(recipe, rendered, facts, collector)

    binder = Binder(recipe, rendered, facts)
    builder = ReleaseBuilder(recipe, rendered, facts, binder, collector)
    empty = {c.name for c in recipe.enabled() if builder.empty(c.name)}
    waits = _component_waits(declared, required, empty)
    names = [c.name for c in recipe.enabled()]
    ordered = order.order(names, waits)
    if len(ordered) < len(names):
        _report_cycle(names, waits, declared, required, collector)
        collector.raise_if_failed()
    releases, release_edges = builder.build(ordered, declared, required)
    collector.raise_if_failed()

    levels = order.levels(ordered, waits)
    components = recipe.components
    idle = tuple(
        f"{edge.dependant} needs {edge.provider}, which applies nothing here: nothing waits for it"
        for edge in declared
        if edge.provider in empty
    )
    return Plan(
        recipe=recipe,
        namespaces=owned,
        components=tuple(
            ComponentPlan(
                name,
                tuple(release_id(name, piece) for piece in builder.pieces(name)),
                binder.by_id(components[name], components[name].component.health),
                levels[name],
            )
            for name in ordered
        ),
        releases=releases,
        edges=release_edges,
        preflight=preflight.preflight(recipe, binder),
        examples=examples,
        satisfied=(*satisfied, *idle),
        warnings=(*recipe.warnings, *collector.warnings),
        accelerated_selector=preflight.accelerated_selector(recipe),
        crds=apis.crd_names(recipe, facts),
    )


def _component_waits(
    declared: Sequence[Declared], required: Sequence[ApiEdge], empty: set[str]
) -> Mapping[str, frozenset[str]]:
    """Dependant -> providers, over components; what applies nothing neither waits nor is waited for."""
    result: dict[str, set[str]] = {}
    every: list[Declared | ApiEdge] = [*declared, *required]
    for edge in every:
        # A component may bring and use an API; a dependency on itself is a cycle.
        own = edge.dependant == edge.provider and isinstance(edge, ApiEdge)
        if not own and not {edge.dependant, edge.provider} & empty:
            result.setdefault(edge.dependant, set()).add(edge.provider)
    return {name: frozenset(providers) for name, providers in result.items()}


def _report_cycle(
    names: Iterable[str],
    waits: Mapping[str, frozenset[str]],
    declared: Sequence[Declared],
    required: Sequence[ApiEdge],
    collector: Collector,
) -> None:
    cycle = order.shortest_cycle(names, waits)
    every: list[Declared | ApiEdge] = [*declared, *required]
    notes: list[tuple[Origin | Span, str]] = []
    for dependant, provider in pairwise(cycle):
        for edge in every:
            if (edge.dependant, edge.provider) == (dependant, provider):
                notes.append((edge.reason.origin or Span(""), f"{dependant} waits for {provider}: {edge.reason.text}"))
                break
    collector.error(
        "BC3002",
        "components wait for each other: " + " -> ".join(cycle),
        notes[0][0] if notes else None,
        fix="remove one of these dependencies",
        notes=notes,
    )
