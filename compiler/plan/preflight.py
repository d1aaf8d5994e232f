"""What must be true of the cluster before anything is applied, as read-only checks.

Sources: the recipe's constraints (only those that a few API reads can answer are checked, the rest is said to be
unchecked), prerequisites and `clusterProvides` with a check, and the components' singletons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.model import Check, PreflightCheck, Recipe
from compiler.plan.gates import Binder

_KINDS: Mapping[str, str] = {
    "K8s.server.version": "version",
    "OS.release.ID": "os",
    "OS.release.VERSION_ID": "os",
    "OS.sysctl./proc/sys/kernel/osrelease": "kernel",
    "NodeTopology.gpu-nodes.label": "label",
}

ACCELERATED_SELECTOR = "!node-role.kubernetes.io/control-plane"
"""Nodes whose OS and kernel count while no placement names the accelerated ones: on a fresh cluster no label tells GPU
nodes yet, and control-plane nodes may carry GPU labels that they do not earn."""


def accelerated_selector(recipe: Recipe) -> str:
    """The GPU nodes as kubectl selects them: by the placement's labels, or else all that are no control plane."""
    labels = recipe.settings.placement.accelerated.node_selector
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or ACCELERATED_SELECTOR


def preflight(recipe: Recipe, binder: Binder) -> tuple[PreflightCheck, ...]:
    """The checks in the order: constraints by name, what the cluster provides, prerequisites, singletons."""
    result: list[PreflightCheck] = []
    for constraint in recipe.constraints.values():
        kind = _KINDS.get(constraint.name, "unchecked")
        text = constraint.remediation or f"{constraint.name} must be {constraint.value}"
        result.append(PreflightCheck(kind, constraint.name, constraint.value, constraint.severity, text))
    for api in recipe.cluster_provides:
        if api.check is not None:
            what = f"{api.kind}.{api.group}" + (f" {api.name}" if api.name else "")
            result.append(_check(what, f"the cluster must provide {what}", api.check))
    for note in recipe.prerequisites:
        result += [_check(note.id, note.text, check) for check in (note.check,) if check is not None]
    for component in recipe.enabled():
        for note in component.component.prerequisites:
            if note.check is not None:
                result += [_check(note.id, note.text, bound) for bound in binder.bind(component, [note.check])]
        for singleton in component.component.singletons:
            if not binder.holds(singleton.when):
                continue
            what = f"{singleton.kind} {singleton.name}"
            text = f"{component.name} must be the only owner of {what}: remove the other installation"
            found = PreflightCheck(
                "singleton", singleton.kind, singleton.name, "error", text, singleton=replace(singleton, when=None)
            )
            result.append(found)
    return _unique(result)


def _check(name: str, text: str, check: Check) -> PreflightCheck:
    return PreflightCheck("check", name, "", "error", text, check=replace(check, when=None))


def _unique(checks: list[PreflightCheck]) -> tuple[PreflightCheck, ...]:
    """Without the repetition that arises when `clusterProvides` and a prerequisite name one object."""
    seen: set[object] = set()
    result: list[PreflightCheck] = []
    for item in checks:
        key = replace(item.check, id="") if item.check else (item.kind, item.name, item.value)
        if key not in seen:
            seen.add(key)
            result.append(item)
    return tuple(result)
