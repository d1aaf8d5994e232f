"""Argo CD: guard Jobs, one in front of every gated piece, and what they need to run.

A guard is a hook of the Application that it guards. In front of the first piece it is a PreSync hook, which holds the
whole Application; between pieces it is a Sync hook whose wave lies between theirs. Each sync makes the Job anew, so a
gate is asked again on every one. A Job that runs into its deadline fails the sync, which is retried without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from compiler.emit import kubectl_job, names
from compiler.emit.argocd_site import WAVE, Site
from compiler.emit.argocd_steps import Right, Step, lower, lower_teardown, rights
from compiler.errors import Collector, InternalError
from compiler.model import Check, ComponentPlan, Gate, Release

HOOK = "argocd.argoproj.io/hook"
DELETE_POLICY = "argocd.argoproj.io/hook-delete-policy"
POLICIES = "BeforeHookCreation,HookSucceeded,HookFailed"
"""Without HookFailed a retry takes the failed Job of the last attempt for its own."""

ACCOUNT = "gates"

# Before every hook of the chart, whose weights become waves.
_FIRST_WAVE = "-1000"
# A Sync hook shares the wave of what comes before, or has one of its own: pre -1, chart 0, post 2.
_WAVES: Mapping[str, str] = MappingProxyType({"main": "-1", "post": "1"})
_TEARDOWN_TIMEOUT = 1800
_RBAC = "rbac.authorization.k8s.io"
_SHARED = frozenset({"kube-system", "kube-public", "default"})


def jobs(site: Site, component: ComponentPlan, found: Collector) -> list[tuple[str, dict[str, Any]]]:
    """(file name without `.yaml`, Job) of the guards of a component, by piece.

    Records BC4003 for a check that a guard cannot hold.
    """
    result: list[tuple[str, dict[str, Any]]] = []
    releases = site.releases(component)
    first = next((r for r in releases if not r.empty), None)
    for release in releases:
        if release.gate is None:
            continue
        annotations = {HOOK: "PreSync", DELETE_POLICY: POLICIES, WAVE: _FIRST_WAVE}
        if release is not first:
            if release.piece not in _WAVES:
                raise InternalError(f"{release.id} has a gate and is neither the first nor a later piece")
            annotations = {HOOK: "Sync", DELETE_POLICY: POLICIES, WAVE: _WAVES[release.piece]}
        steps = _gate_steps(release.gate, found)
        name = site.name(f"gate-{release.id}")
        result.append((release.id, _job(site, name, component.name, annotations, steps, release.gate.timeout)))
    teardown = teardown_checks(releases)
    if teardown and site.knows(3, 3):
        annotations = {HOOK: "PreDelete", DELETE_POLICY: POLICIES}
        steps = [
            (check.id, name, step.with_timeout(_TEARDOWN_TIMEOUT))
            for check in teardown
            for name, step in _named(_lowered(check, lower_teardown(check), "a guard of a removal", found))
        ]
        name = site.name(f"teardown-{component.name}")
        job = _job(site, name, component.name, annotations, steps, _TEARDOWN_TIMEOUT)
        result.append((f"{component.name}-teardown", job))
    return result


def teardown_checks(releases: Iterable[Release]) -> tuple[Check, ...]:
    """What must hold before an Application with these pieces is deleted: the last piece's conditions first."""
    return tuple(check for release in reversed(list(releases)) for check in release.teardown_before)


def access(site: Site) -> dict[str, dict[str, Any]]:
    """File name without `.yaml` -> namespace, account and rights of the guards; empty when the bundle has no guard."""
    wanted = _wanted(site)
    if wanted is None:
        return {}
    namespace = names.gates_namespace(site.plan)
    metadata = {"name": namespace, "labels": site.labels()}
    objects: dict[str, dict[str, Any]] = {
        "namespace": {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {**site.labels(), "pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
        "serviceaccount": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": namespace, "labels": site.labels()},
        },
    }
    scopes: dict[str | None, list[Right]] = {}
    owned = {n.name for n in site.plan.namespaces} | _SHARED
    for right in sorted(wanted, key=lambda r: (r.namespace or "", r.group, r.resource, r.name or "")):
        # A Role needs its namespace to be there.
        scopes.setdefault(right.namespace if right.namespace in owned else None, []).append(right)
    for scope, rules in scopes.items():
        kind = "Role" if scope else "ClusterRole"
        where = {**metadata, **({"namespace": scope} if scope else {})}
        suffix = f"-{scope}" if scope else ""
        head = {"apiVersion": f"{_RBAC}/v1"}
        objects[f"{kind.lower()}{suffix}"] = {**head, "kind": kind, "metadata": where, "rules": _rules(rules)}
        objects[f"{kind.lower()}binding{suffix}"] = {
            **head,
            "kind": f"{kind}Binding",
            "metadata": where,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        }
    return objects


def _wanted(site: Site) -> set[Right] | None:
    """What the guards of the bundle read; None when it has none."""
    gated = [check.check for release in site.plan.releases if release.gate for check in release.gate.checks]
    if site.knows(3, 3):
        gated += teardown_checks(site.plan.releases)
    return {right for check in gated for right in rights(check)} if gated else None


def _rules(wanted: Sequence[Right]) -> list[dict[str, Any]]:
    """One rule a resource; a right on all objects of it swallows those on single ones."""
    named: dict[tuple[str, str], set[str | None]] = {}
    for right in wanted:
        named.setdefault((right.group, right.resource), set()).add(right.name)
    rules: list[dict[str, Any]] = []
    for (group, resource), found in named.items():
        rule: dict[str, Any] = {"apiGroups": [group], "resources": [resource]}
        if None not in found:
            rule["resourceNames"] = sorted(name for name in found if name is not None)
        rules.append({**rule, "verbs": ["get", "list", "watch"]})
    return rules


def _gate_steps(gate: Gate, found: Collector) -> list[tuple[str, str, list[str]]]:
    return [
        (item.check.id, name, step.with_timeout(item.timeout))
        for item in gate.checks
        for name, step in _named(_lowered(item.check, lower(item.check), f"the gate of `{gate.id}`", found))
    ]


def _named(steps: tuple[Step, ...]) -> Iterable[tuple[str, Step]]:
    """The only step of a check needs no name beside the check's."""
    return ((step.name if len(steps) > 1 else "", step) for step in steps)


def _lowered(check: Check, steps: tuple[Step, ...], where: str, found: Collector) -> tuple[Step, ...]:
    if not steps:
        wanted = f"`{check.op}`" if check.kind == "field" and check.op == "notEquals" else f"`{check.kind}`"
        found.error(
            "BC4003",
            f"Argo CD cannot hold the check `{check.id}` ({wanted}) in {where}: its guard is kubectl alone",
            check.origin,
            fix="ask for one object, with `field` and `equals` or with `condition`; or leave argocd out of `deployers`",
        )
    return steps


def _job(
    site: Site,
    name: str,
    component: str,
    annotations: dict[str, str],
    steps: Sequence[tuple[str, str, list[str]]],
    timeout: int,
) -> dict[str, Any]:
    labels = site.labels(component)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": names.gates_namespace(site.plan),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "activeDeadlineSeconds": timeout,
            "backoffLimit": kubectl_job.FOREVER,  # the deadline alone is to end it
            "template": {"metadata": {"labels": dict(labels)}, "spec": _pod(site, steps)},
        },
    }


def _pod(site: Site, steps: Sequence[tuple[str, str, list[str]]]) -> dict[str, Any]:
    gates = site.plan.settings.gates
    taken: set[str] = set()
    before = [
        kubectl_job.container(gates, _unique(f"{check}-{step}", taken), arguments) for check, step, arguments in steps
    ]
    done = kubectl_job.container(gates, _unique("done", taken), ["version", "--client"])
    return kubectl_job.pod(gates, ACCOUNT, [done], before)


def _unique(text: str, taken: set[str]) -> str:
    """`text` as the name of a container of the pod: a DNS label that no other one has."""
    base = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:55].rstrip("-")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name
