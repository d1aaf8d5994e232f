"""Argo CD: one Application of Applications over the shared charts and values, with guard Jobs as gates.

argocd/root.yaml                      applied by hand, once
argocd/apps/{namespaces,<component>}.yaml
argocd/guards/<component>/<release id>.yaml   the gate in front of a piece
argocd/rbac/                          namespace, account and rights of the guards
argocd/remove.sh                      removal in reverse order, conditions first
argocd/optional/argocd-cm.yaml        health checks that make waves between Applications hold
"""

from __future__ import annotations

from typing import Any

from compiler.emit import argocd_apps, argocd_guards, argocd_health, argocd_readback, argocd_remove, gatelib, names
from compiler.emit.argocd_site import Site, site_of
from compiler.emit.argocd_steps import tokens
from compiler.errors import Collector
from compiler.model import Files, GateCheck, Plan
from compiler.yamlio import dump

__all__ = ["emit", "gate_tokens", "read_back", "tokens"]

read_back = argocd_readback.read_back


def emit(plan: Plan) -> Files:
    """The Argo CD files of a bundle, and the gate library, which the removal script asks.

    Raises `UserError`: BC4001 for names, BC4002 and BC4003 for settings, BC4003 for a check that no guard can hold.
    """
    site = site_of(plan)
    found = Collector()
    files: dict[str, bytes] = dict(gatelib.emit(plan))
    guarded: set[str] = set()
    jobs: list[tuple[str, str]] = []
    for component in plan.components:
        for name, job in argocd_guards.jobs(site, component, found):
            guarded.add(component.name)
            jobs.append((job["metadata"]["name"], f"the guard {name}"))
            files[f"{argocd_apps.guards_folder(component.name)}/{name}.yaml"] = _yaml(job)
    found.raise_if_failed()
    _check_names(site, jobs)
    access = argocd_guards.access(site)
    for name, item in access.items():
        files[f"{argocd_apps.RBAC}/{name}.yaml"] = _yaml(item)
    files["argocd/root.yaml"] = _yaml(argocd_apps.root(site))
    has_namespaces = bool(plan.namespaces or access)
    if has_namespaces:
        files[f"{argocd_apps.APPS}/{argocd_apps.NAMESPACES}.yaml"] = _yaml(
            argocd_apps.namespaces(site, guards=bool(access))
        )
    for component in plan.components:
        files[f"{argocd_apps.APPS}/{component.name}.yaml"] = _yaml(argocd_apps.component(site, component, guarded))
    for release in plan.releases:
        if values := argocd_apps.hook_values(release):
            files[argocd_apps.values_file(release)] = _yaml(values)
    files[argocd_health.FILE] = _yaml(argocd_health.config_map(site))
    files[argocd_remove.SCRIPT] = argocd_remove.script(site, namespaces=has_namespaces)
    return files


def gate_tokens(item: GateCheck) -> frozenset[str]:
    """The tokens of a check of a gate: those of the check."""
    return tokens(item.check)


def _check_names(site: Site, jobs: list[tuple[str, str]]) -> None:
    applications = [(site.name(c.name), f"the component {c.name}") for c in site.plan.components]
    applications += [
        (site.name(argocd_apps.ROOT), "the root Application"),
        (site.name(argocd_apps.NAMESPACES), "the Application of the namespaces"),
    ]
    names.unique(site.plan, applications)
    names.unique(site.plan, jobs)


def _yaml(data: Any) -> bytes:
    return dump(data).encode()
