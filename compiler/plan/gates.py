"""Gates: which checks stand in front of a release, bound to the objects and namespaces of this bundle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler import predicates
from compiler.errors import Collector
from compiler.model import Check, Crd, Facts, GateCheck, Predicate, Readiness, Recipe, ResolvedComponent
from compiler.plan.apis import Rendered
from compiler.source import Origin

CRD_TIMEOUT = 300
"""Seconds that a CRD of a chart may take to be Established when the provider's `readiness.api` says nothing."""

_WORKLOADS = frozenset({"deployment", "statefulset", "daemonset", "job"})
_NAMESPACED = _WORKLOADS | {"webhook"}


class Binder:
    """Turns checks as written into checks of this bundle.

    Fills in the namespace, resolves `name: rendered`, settles `minNodes`, and drops what does not apply here: a
    `when` that does not hold, an object that this bundle does not render.
    """

    def __init__(self, recipe: Recipe, rendered: Rendered, facts: Facts) -> None:
        self._recipe = recipe
        self._rendered = rendered
        self._facts = facts
        crds = [crd for c in recipe.components.values() for crd in c.component.crds]
        self._namespaced_kinds = {(crd.group, crd.kind) for crd in crds if crd.scope == "Namespaced"}

    def bind(self, component: ResolvedComponent, checks: Iterable[Check]) -> tuple[Check, ...]:
        """The bound checks, in order; one written check may become none or several."""
        result: list[Check] = []
        for check in checks:
            if not self.holds(check.when):
                continue
            for bound in self._named(component, check if check.when is None else replace(check, when=None)):
                if bound.namespace is None and self._namespaced(bound):
                    bound = replace(bound, namespace=component.namespace)  # noqa: PLW2901
                minimum = self._minimum(component, bound)
                if bound.kind == "nodes" and minimum == 0:
                    continue  # an empty pool is fine here
                known = minimum is None or minimum == bound.min_nodes
                result.append(bound if known else replace(bound, min_nodes=minimum))
        return tuple(result)

    def holds(self, when: Predicate | None) -> bool:
        """Whether a condition holds in this bundle; none always does."""
        return when is None or predicates.evaluate(when, self._facts)

    def by_id(self, component: ResolvedComponent, ids: Iterable[str]) -> tuple[Check, ...]:
        """The bound checks of a component by their ids."""
        return self.bind(component, [component.component.checks[i] for i in ids])

    def readiness(self, component: ResolvedComponent, stage: Readiness | None) -> tuple[GateCheck, ...]:
        """The checks of `readiness.api` or `readiness.ready` with deadline and consequences, the ref's changes
        applied.
        """
        if stage is None:
            return ()
        change = component.readiness
        timeout = self.seconds(change.timeout if change.timeout is not None else stage.timeout)
        return tuple(
            GateCheck(
                check, component.name, timeout, change.on_timeout or stage.on_timeout, change.scope or stage.scope
            )
            for check in self.by_id(component, stage.checks)
        )

    def established(self, component: ResolvedComponent, crd: Crd) -> GateCheck:
        """The check that a CRD is Established, with the deadline of the stage that brings it."""
        spec = component.component
        stage = spec.readiness_ready if crd.source == "image" else spec.readiness_api
        timeout = component.readiness.timeout or (stage.timeout if stage else CRD_TIMEOUT)
        check = Check(id=f"crd-{crd.name.partition('.')[0]}", kind="crd", name=crd.name, origin=crd.origin)
        return GateCheck(check, component.name, self.seconds(timeout), "fail", "always")

    def seconds(self, timeout: int) -> int:
        """A deadline under this bundle's `gates.timeoutScale`, at least one second."""
        return max(1, round(timeout * self._recipe.settings.gates.timeout_scale))

    def _namespaced(self, check: Check) -> bool:
        """Whether the one object that a check looks at lies in a namespace: it is the component's if none is said."""
        if check.kind in ("field", "condition"):
            return (check.group, check.object_kind) in self._namespaced_kinds
        return check.kind in _NAMESPACED

    def _named(self, component: ResolvedComponent, check: Check) -> list[Check]:
        """`name: rendered` stands for every object of that kind that the component renders."""
        if check.name != "rendered":
            return [check]
        found: list[Check] = []
        for objects in self._rendered.get(component.name, {}).values():
            for made in objects:
                if check.kind in _WORKLOADS:
                    same = made.group in ("apps", "batch") and made.kind.lower() == check.kind
                else:
                    same = (made.group, made.kind) == (check.group, check.object_kind)
                if same:
                    found.append(replace(check, name=made.name, namespace=made.namespace))
        return found

    def _minimum(self, component: ResolvedComponent, check: Check) -> int | None:
        """How many nodes a check asks for: the ref's word, the check's, the bundle's, else 1.

        `gates.minNodes: 0` of a bundle says that its pool may be empty, and wins over all of them.
        """
        if check.kind not in ("daemonset", "nodes"):
            return check.min_nodes
        general = self._recipe.settings.gates.min_nodes
        if general == 0:
            return 0
        for said in (component.readiness.min_nodes, check.min_nodes, general):
            if said is not None:
                return said
        return 1


def merged(checks: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """The checks without repetition: of two that ask the same, the stricter stays (longer deadline, `fail`,
    `always`).
    """
    result: dict[Check, GateCheck] = {}
    for item in checks:
        key = replace(item.check, id="")
        first = result.get(key)
        if first is None:
            result[key] = item
            continue
        result[key] = replace(
            first,
            timeout=max(first.timeout, item.timeout),
            on_timeout="fail" if "fail" in (first.on_timeout, item.on_timeout) else "warn",
            scope="always" if "always" in (first.scope, item.scope) else "install",
        )
    return tuple(result.values())


def nothing_to_wait_for(dependant: str, provider: str, until: str, origin: Origin | None, collector: Collector) -> None:
    """Record BC3015: an edge asks for more than `applied`, and the provider declares nothing that could be looked
    at.
    """
    collector.error(
        "BC3015",
        f"`{dependant}` waits until `{provider}` is `{until}`, but `{provider}` declares no `readiness.{until}`",
        origin,
        fix=f"add `readiness.{until}` to component `{provider}`, or wait until `applied`",
    )
