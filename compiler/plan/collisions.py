"""What two bundles of one cluster would both own (case 70): found when compiling, where a deployer finds it at night.

Helm refuses the second owner of an object half-way through an installation; two Applications that heal themselves, or
two Kustomizations, turn it over for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler import predicates
from compiler.errors import Collector
from compiler.facts import facts
from compiler.model import BundleEntry, KubeObject, Plan

_SHOWN = 6


def collide(first: tuple[BundleEntry, Plan], second: tuple[BundleEntry, Plan], why: str, collector: Collector) -> None:
    """Record BC3017 for each kind of thing that both bundles bring, at the entry of the second.

    Releases of one component and all that a chart names after them; objects of our own manifests; CRDs; namespaces; and
    components that exclude each other. `why` says what puts the bundles on one cluster.
    """
    (one, ours), (other, theirs) = first, second
    names = [{c.name for c in plan.components} for plan in (ours, theirs)]
    both = names[0] & names[1]
    releases = [{(r.namespace, r.id) for r in plan.releases if r.component not in both} for plan in (ours, theirs)]
    objects = [{_identity(o) for o in _objects(plan, both)} for plan in (ours, theirs)]
    spaces = [{n.name for n in plan.namespaces if set(n.components) - both} for plan in (ours, theirs)]
    # A CRD of a component that both have goes with that component.
    told = {crd.name for name in both for crd in ours.recipe.components[name].component.crds}
    crds = (set(ours.crds) & set(theirs.crds)) - told
    for what, found, fix in (
        ("the components", both, "`disable` each in one of them"),
        ("the releases", {f"{n}/{i}" for n, i in releases[0] & releases[1]}, "`disable` one, or rename the component"),
        ("the objects", objects[0] & objects[1], "leave each to one of them"),
        ("the CRDs", crds, "leave each to one of them"),
        (
            "the namespaces",
            spaces[0] & spaces[1],
            "list the Namespace in `clusterProvides` of one recipe, or use another",
        ),
        ("what excludes each other,", set(_conflicts(ours, theirs)), "leave one of them out"),
    ):
        if found:
            collector.error(
                "BC3017",
                f"`{one.name}` and `{other.name}` share a cluster ({why}), and both bring {what} {_told(found)}",
                other.origin,
                fix=f"{fix}; if these are two clusters, name them with `cluster`",
                notes=[(one.origin, f"bundle `{one.name}`")],
            )


def _objects(plan: Plan, but_of: set[str]) -> Iterable[KubeObject]:
    return (o for release in plan.releases if release.component not in but_of for o in release.objects)


def _identity(made: KubeObject) -> str:
    where = f" in {made.namespace}" if made.namespace else ""
    return f"{made.kind}{'.' + made.group if made.group else ''} {made.name}{where}"


def _conflicts(ours: Plan, theirs: Plan) -> Iterable[str]:
    for plan, beside in ((ours, theirs), (theirs, ours)):
        known, there = facts(plan.recipe), {c.name for c in beside.components}
        for component in plan.recipe.enabled():
            for conflict in component.component.conflicts:
                holds = conflict.when is None or predicates.evaluate(conflict.when, known)
                if holds and conflict.component in there:
                    yield " and ".join(sorted((component.name, conflict.component)))


def _told(found: set[str]) -> str:
    names = [f"`{name}`" for name in sorted(found)]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest
