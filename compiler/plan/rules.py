"""Conflicts between components, and the assertions of overlays, components and the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compiler import predicates
from compiler.deleted import Deleted, deleted
from compiler.errors import Collector
from compiler.model import Assertion, Facts, KubeObject, Recipe, ResolvedComponent
from compiler.source import Origin, Path


def check(recipe: Recipe, facts: Facts, objects: tuple[KubeObject, ...], collector: Collector) -> None:
    """Record BC3004 for components that exclude each other and BC3006 for assertions that do not hold.

    `facts` hold the rendered objects, and `objects` are the same with their origins. A finding stands where the
    offending value was written, when that is known; the rule is a note then. Where some objects could not be rendered,
    `facts` hold none, and what looks at objects is not judged.
    """
    told: set[frozenset[str]] = set()
    for component in recipe.enabled():
        for conflict in component.component.conflicts:
            other = recipe.components.get(conflict.component)
            if other is None or not other.enabled or {component.name, other.name} in told:
                continue
            if conflict.when is not None and not predicates.evaluate(conflict.when, facts):
                continue
            told.add(frozenset({component.name, other.name}))
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
        if facts.objects is None and _reads_objects(assertion):
            continue
        if assertion.when is not None and not predicates.evaluate(assertion.when, facts):
            continue
        if not predicates.evaluate(assertion.that, facts):
            _report(recipe, assertion, objects, collector)


def _reads_objects(assertion: Assertion) -> bool:
    forms = [p.form for p in (assertion.when, assertion.that) if p is not None]
    return any(key == "objects" for form in forms for key, _ in _leaves(form))


def _report(recipe: Recipe, assertion: Assertion, objects: tuple[KubeObject, ...], collector: Collector) -> None:
    rule = f"{assertion.message} (rule `{assertion.id}`)"
    fix = f"the rule asks for {predicates.describe(assertion.that)}"
    culprits = list(_culprits(recipe, assertion, objects))
    off = _disabled(recipe, assertion, objects)
    if off:
        # Whoever switched it off can mend it; the values of the component are as they should be, and nobody reads them.
        names = " and ".join(f"`{component.name}`" for component in off)
        rule = f"{names} {'is' if len(off) == 1 else 'are'} disabled, and a rule looks at it: {rule}"
        fix = f"enable it; {fix}"
        culprits = [*(c.disabled_by or c.brought_by for c in off), *culprits]
    at = culprits[0] if culprits else assertion.origin
    notes: list[tuple[Origin, str]] = [(origin, "this takes part") for origin in culprits[1:]]
    gone = _deleted(recipe, assertion)
    if gone is not None:
        rule, fix = f"{gone}, and a rule looks at it: {rule}", f"{gone.fix}; {fix}"
    if culprits:
        notes.append((assertion.origin, f"rule `{assertion.id}` is here"))
    collector.error("BC3006", rule, at, severity=assertion.severity, fix=fix, notes=notes)


def _deleted(recipe: Recipe, assertion: Assertion) -> Deleted | None:
    """What a null took away of the values that the assertion looks at."""
    for key, form in _leaves(assertion.that.form):
        if key == "value":
            component = recipe.components.get(_component_of(assertion, str(form)))
            if component is not None and component.enabled:
                found = deleted(component, _steps(str(form)))
                if found is not None:
                    return found
    return None


def _steps(address: str) -> Path:
    return tuple((address[1:] if address.startswith(".") else address.partition(":")[2]).split("."))


def _disabled(recipe: Recipe, assertion: Assertion, objects: tuple[KubeObject, ...]) -> tuple[ResolvedComponent, ...]:
    """The disabled components that the assertion looks at: their values, or objects that only they bring."""
    names: dict[str, None] = {}
    for key, form in _leaves(assertion.that.form):
        if key == "value":
            names[_component_of(assertion, str(form))] = None
        elif key == "component":
            names[form] = None
        elif not any(_selects(form, made) for made in objects):
            kind = (form.get("group"), form.get("kind"))
            brings = [
                c.name for c in recipe.components.values() for crd in c.component.crds if (crd.group, crd.kind) == kind
            ]
            names.update(dict.fromkeys([form["component"]] if "component" in form else brings))
    found = (recipe.components.get(name) for name in names)
    return tuple(c for c in found if c is not None and not c.enabled)


def _component_of(assertion: Assertion, address: str) -> str:
    """The component that the address of a value names; `.path` means the one that the rule belongs to."""
    return (assertion.that.component or "") if address.startswith(".") else address.partition(":")[0]


def _culprits(recipe: Recipe, assertion: Assertion, objects: tuple[KubeObject, ...]) -> Iterator[Origin]:
    """Where the values and objects that the assertion looks at were written, without repetition."""
    seen: set[str] = set()
    for key, form in _leaves(assertion.that.form):
        found: list[Origin] = []
        if key == "value":
            found = list(_value_origins(recipe, assertion, str(form)))
        elif key == "objects":
            found = [o.origin for o in objects if o.origin is not None and _selects(form, o)]
        elif key == "component" and form in recipe.components and recipe.components[form].enabled:
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
    component = recipe.components.get(_component_of(assertion, address))
    if component is None or not component.enabled:
        return  # nobody reads the values of a disabled component
    steps = _steps(address)
    entries = component.trace.get(steps)
    if entries is None:
        # a branch: the first leaf below it says who wrote it
        below = [key for key in component.trace if key[: len(steps)] == steps]
        entries = component.trace[below[0]] if below else None
    if entries:
        yield entries[-1].origin
