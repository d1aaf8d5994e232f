"""Flux: one Kustomization per release and per gate, ordered by dependsOn; one HelmRelease per release.

    flux/root.yaml                   source and root Kustomization, the only thing that is applied by hand
    flux/graph/                      the nodes: one Kustomization a file
    flux/releases/<release id>/      HelmRelease, chart source, values
    flux/gates/, flux/access/        what gates apply: nothing, or Jobs and their rights
    flux/remove.sh                   removal in reverse order

A post-manifest is a release of its own: beside its HelmRelease in one Kustomization, it would block both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compiler.emit import flux_jobs, flux_nodes, flux_release, flux_remove, gatelib
from compiler.emit.flux_checks import tokens
from compiler.emit.flux_nodes import GateNode
from compiler.emit.flux_readback import read_back
from compiler.emit.flux_site import GRAPH, Site, site_of
from compiler.errors import Diagnostic, UserError
from compiler.model import Files, GateCheck, Plan
from compiler.yamlio import dump, dump_all

__all__ = ["emit", "gate_tokens", "read_back", "tokens"]


def emit(plan: Plan) -> Files:
    """`flux/`, and `lib/` that the removal script uses.

    Raises `UserError` with every finding: BC4001 for names, BC4002 and BC4003 for settings, BC4003 for checks that Flux
    cannot hold, BC4004 for values that do not fit.
    """
    site = site_of(plan)
    files: dict[str, bytes] = {}
    gates: dict[str, list[GateNode]] = {}
    found: list[Diagnostic] = []
    for release in plan.releases:
        try:
            if release.gate is not None:
                gates[release.id] = flux_nodes.gate_nodes(site, release.gate, release)
            files.update(flux_release.files(site, release))
        except UserError as error:
            found.extend(error.diagnostics)
    if found:
        raise UserError(list(dict.fromkeys(found)))
    flux_nodes.check_names(site, _meanings(plan, gates))
    graph = _graph(site, gates)
    files["flux/root.yaml"] = dump_all(flux_nodes.root(site)).encode()
    for what, node in graph.items():
        files[f"{GRAPH}/{what}.yaml"] = dump(node).encode()
    files[f"{GRAPH}/kustomization.yaml"] = _resources([f"{what}.yaml" for what in graph])
    if any(r.chart for r in plan.releases):
        files[flux_release.NAME_REFERENCE] = flux_release.name_reference()
    files.update(_gate_files(site, gates))
    files.update(gatelib.emit(plan))
    files.update(flux_remove.emit(site, {r: [n.what for n in nodes] for r, nodes in gates.items()}, list(graph)))
    return files


def gate_tokens(item: GateCheck) -> frozenset[str]:
    """The tokens of a check of a gate: those of the check, since there are no deadlines here."""
    return tokens(item.check)


def _graph(site: Site, gates: dict[str, list[GateNode]]) -> dict[str, dict[str, Any]]:
    """The nodes by their name without the prefix, in order of deployment."""
    plan = site.plan
    graph: dict[str, dict[str, Any]] = {}
    first: list[str] = []
    if plan.namespaces:
        graph[flux_nodes.NAMESPACES] = flux_nodes.namespaces(site)
        first = [flux_nodes.NAMESPACES]
    if _has_jobs(gates):
        graph[flux_jobs.ACCESS] = flux_nodes.access(site)
    for release in plan.releases:
        nodes = gates.get(release.id, [])
        for node in nodes:
            assert release.gate is not None
            access = [flux_jobs.ACCESS] if node.jobs else []
            graph[node.what] = flux_nodes.gate(site, node, [*first, *access, *release.gate.after])
        depends = [*first, *release.needs, *(n.what for n in nodes)]
        graph[release.id] = flux_nodes.release(site, release, depends)
    return graph


def _gate_files(site: Site, gates: dict[str, list[GateNode]]) -> Files:
    files: dict[str, bytes] = {}
    nodes = [node for some in gates.values() for node in some]
    if any(not node.jobs for node in nodes):
        files[f"{flux_nodes.GATES_FOLDER}/kustomization.yaml"] = _resources([])
    for node in nodes:
        if node.jobs:
            jobs = [flux_jobs.job(site, what, command, node.release.component) for what, command in node.jobs]
            files[f"{node.folder}/job.yaml"] = dump_all(jobs).encode()
            files[f"{node.folder}/kustomization.yaml"] = _resources(["job.yaml"])
    if _has_jobs(gates):
        files[f"{flux_jobs.ACCESS_FOLDER}/access.yaml"] = dump_all(flux_jobs.access_objects(site)).encode()
        files[f"{flux_jobs.ACCESS_FOLDER}/kustomization.yaml"] = _resources(["access.yaml"])
    return files


def _has_jobs(gates: dict[str, list[GateNode]]) -> bool:
    return any(node.jobs for nodes in gates.values() for node in nodes)


def _meanings(plan: Plan, gates: dict[str, list[GateNode]]) -> Iterator[tuple[str, str]]:
    """(node name without the prefix, what it stands for) of all nodes, for the check that no two are the same."""
    yield flux_nodes.ROOT, "the root Kustomization"
    yield flux_nodes.NAMESPACES, "the Kustomization of the namespaces"
    yield flux_jobs.ACCESS, "the Kustomization of the gates' rights"
    for release in plan.releases:
        yield release.id, f"the release `{release.id}`"
        for node in gates.get(release.id, []):
            yield node.what, f"a gate of the release `{release.id}`"


def _resources(names: list[str]) -> bytes:
    return dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names}).encode()
