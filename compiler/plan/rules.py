"""Conflicts between components, and the assertions of overlays, components and the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compiler import predicates
from compiler.errors import Collector
from compiler.model import Assertion, Facts, KubeObject, Recipe
from compiler.source import Origin


def check(recipe: Recipe, facts: Facts, objects: tuple[KubeObject, ...], collector: Collector) -> None:
    """Record BC3004 for components that exclude each other and BC3006 for assertions that do not hold.

    `facts` hold the rendered objects, and `objects` are the same with their origins. A finding stands where the
    offending value was written, when that is known; the rule is a note then.
    """
    for component in recipe.enabled():
        for conflict in component.component.conflicts:
            other = recipe.components.get(conflict.component)
            if other is None or not other.enabled:
                continue
            if conflict.when is not None and not predicates.evaluate(conflict.when, facts):
                continue
            collector.error(
                "BC3004",
                f"`{component.name}` and `{other.name}` exclude each other: {conflict.reason}",
                other.brought_by,
                fix="disable or remove one of them",
                notes=[
                    (component.brought_by, f"`{component.name}` comes from here"),
                    (conflict.origin, "the conflict is declared here"),
                ],
            )
    for assertion in recipe.assertions:
        if assertion.when is not None and not predicates.evaluate(assertion.when, facts):
            continue
        if not predicates.evaluate(assertion.that, facts):
            _report(recipe, assertion, objects, collector)


def _report(recipe: Recipe, assertion: Assertion, objects: tuple[KubeObject, ...], collector: Collector) -> None:
    culprits = list(_culprits(recipe, assertion, objects))
    at = culprits[0] if culprits else assertion.origin
    notes: list[tuple[Origin, str]] = [(origin, "this takes part") for origin in culprits[1:]]
    if culprits:
        notes.append((assertion.origin, f"rule `{assertion.id}` is here"))
    collector.error(
        "BC3006",
        f"{assertion.message} (rule `{assertion.id}`)",
        at,
        severity=assertion.severity,
        fix=f"the rule asks for {predicates.describe(assertion.that)}",
        notes=notes,
    )


def _culprits(recipe: Recipe, assertion: Assertion, objects: tuple[KubeObject, ...]) -> Iterator[Origin]:
    """Where the values and objects that the assertion looks at were written, without repetition."""
    seen: set[str] = set()
    for key, form in _leaves(assertion.that.form):
        found: list[Origin] = []
        if key == "value":
            found = list(_value_origins(recipe, assertion, str(form)))
        elif key == "objects":
            found = [o.origin for o in objects if o.origin is not None and _selects(form, o)]
        elif key == "component" and form in recipe.components:
            found = [recipe.components[form].brought_by]
        for origin in found:
            if str(origin) not in seen:
                seen.add(str(origin))
                yield origin


def _selects(selector: Mapping[str, Any], made: KubeObject) -> bool:
    """Whether an `objects` selector means this object; keys that it leaves out match anything."""
    is_ = {
        "group": made.group,
        "kind": made.kind,
        "name": made.name,
        "namespace": made.namespace,
        "component": made.component,
    }
    return all(is_[key] == wanted for key, wanted in selector.items())


def _leaves(form: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(form, dict):
        for key, value in form.items():
            if key in ("value", "objects", "component", "sameAs"):
                yield ("value" if key == "sameAs" else key), value
            else:
                yield from _leaves(value)
    elif isinstance(form, list):
        for value in form:
            yield from _leaves(value)


def _value_origins(recipe: Recipe, assertion: Assertion, address: str) -> Iterator[Origin]:
    name, _, path = (f"{assertion.that.component}:{address[1:]}" if address.startswith(".") else address).partition(":")
    component = recipe.components.get(name)
    if component is None:
        return
    steps = tuple(path.split("."))
    entries = component.trace.get(steps)
    if entries is None:
        # a branch: the first leaf below it says who wrote it
        below = [key for key in component.trace if key[: len(steps)] == steps]
        entries = component.trace[below[0]] if below else None
    if entries:
        yield entries[-1].origin
