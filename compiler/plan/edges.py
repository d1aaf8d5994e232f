"""Edges that people declared: `needs` of components and `dependencyRefs` of refs."""

from __future__ import annotations

from compiler import predicates
from compiler.errors import Collector, did_you_mean
from compiler.model import Facts, Need, Reason, Recipe, Until
from compiler.records import dataclass


@dataclass(frozen=True)
class Declared:
    """`dependant` waits for `provider` (component names) until `until`."""

    dependant: str
    provider: str
    until: Until
    reason: Reason


def declared(recipe: Recipe, facts: Facts, collector: Collector) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    """The declared edges between enabled components, and a sentence for each that counts as satisfied.

    Records BC3001 for every need that the recipe does not declare, and BC3012 where a core component needs an ops one.
    """
    edges: list[Declared] = []
    satisfied: list[str] = []
    for component in recipe.enabled():
        for need in component.needs:
            if need.when is not None and not predicates.evaluate(need.when, facts):
                continue
            provider = recipe.components.get(need.component)
            if provider is None:
                collector.error(
                    "BC3001",
                    f"`{component.name}` needs `{need.component}`, which this recipe does not declare",
                    need.origin,
                    fix=did_you_mean(need.component, recipe.components)
                    or f"add `{need.component}` to `componentRefs`, or remove the dependency",
                )
                continue
            if not provider.enabled:
                satisfied.append(
                    f"{component.name} needs {need.component}, which is disabled here: the edge counts as satisfied"
                )
                continue
            if component.component.klass == "core" and provider.component.klass != "core":
                collector.error(
                    "BC3012",
                    f"`{component.name}` is of class core and needs `{need.component}`, which is not",
                    need.origin,
                    fix="make the provider core, or the dependant ops",
                )
            edges.append(
                Declared(
                    component.name,
                    need.component,
                    _until(need.until, recipe),
                    Reason("declared", _why(component.name, need), need.origin),
                )
            )
    return tuple(edges), tuple(sorted(set(satisfied)))


def _until(until: Until, recipe: Recipe) -> Until:
    """`gates.ready: off` makes `ready` edges plain ones; `api` edges stay, since nothing can be applied without the
    API.
    """
    return "applied" if until == "ready" and not recipe.settings.gates.ready else until


def _why(dependant: str, need: Need) -> str:
    text = need.reason or f"{dependant} needs {need.component}"
    if need.when is not None:
        text += f" (when {predicates.describe(need.when)})"
    return text
