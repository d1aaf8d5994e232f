"""Namespaces of a bundle: one owner each, labels merged, never kube-system or default."""

from __future__ import annotations

from compiler.errors import Collector
from compiler.model import KubeObject, Namespace, Recipe, ResolvedComponent
from compiler.plan.scope import SYSTEM_NAMESPACES
from compiler.source import Origin


def namespaces(recipe: Recipe, objects: tuple[KubeObject, ...], collector: Collector) -> tuple[Namespace, ...]:
    """The namespaces that the bundle brings, sorted by name.

    Records BC3010: two owners, labels that contradict each other, an object in a namespace that nothing brings, or a
    manifest that makes a namespace of its own.
    """
    users: dict[str, list[ResolvedComponent]] = {}
    for component in recipe.enabled():
        users.setdefault(component.namespace, []).append(component)
    provided = {api.name for api in recipe.cluster_provides if (api.group, api.kind) == ("", "Namespace")}
    result: list[Namespace] = []
    for name, components in sorted(users.items()):
        if name in SYSTEM_NAMESPACES or name in provided:
            continue
        owners = {c.component.namespace.owner for c in components if c.component.namespace.owner} & set(
            recipe.components
        )
        if len(owners) > 1:
            collector.error(
                "BC3010",
                f"namespace `{name}` has {len(owners)} owners: {', '.join(sorted(owners))}",
                components[0].component.namespace.origin,
                fix="name the same `namespace.owner` in every component that shares it",
            )
        result.append(Namespace(name, _labels(name, components, collector), tuple(c.name for c in components)))
    known = {n.name for n in result} | SYSTEM_NAMESPACES | provided
    for made in objects:
        if made.namespace is not None and made.namespace not in known:
            collector.error(
                "BC3010",
                f"{made.kind} `{made.name}` lives in namespace `{made.namespace}`, which nothing in the bundle brings",
                made.origin,
                fix="use the namespace of a component, or list the Namespace in the recipe's `clusterProvides`",
            )
        if (made.group, made.kind) == ("", "Namespace"):
            collector.error(
                "BC3010",
                f"a manifest makes namespace `{made.name}`",
                made.origin,
                fix="remove it: namespaces come from the components' `namespace` field, labels included",
            )
    return tuple(result)


def _labels(name: str, components: list[ResolvedComponent], collector: Collector) -> dict[str, str]:
    merged: dict[str, tuple[str, Origin]] = {}
    for component in components:
        spec = component.component.namespace
        if spec.name != name:
            continue  # a ref moved the component here; its labels were meant for another namespace
        for key, value in spec.labels.items():
            other, where = merged.setdefault(key, (value, spec.origin))
            if other != value:
                collector.error(
                    "BC3010",
                    f"namespace `{name}`: label `{key}` is `{other}` and `{value}`",
                    spec.origin.down("labels", key),
                    fix="the components that share a namespace must agree on its labels",
                    notes=[(where.down("labels", key), f"`{other}` is set here")],
                )
    return {key: value for key, (value, _) in sorted(merged.items())}
