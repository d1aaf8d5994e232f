"""Flux: the nodes of the graph, one Kustomization each: namespaces, releases, and the gates between them.

Flux orders Kustomizations only (`dependsOn`), and a Kustomization is ready when what it applied is ready (`wait`) or
when the objects that it names are (`healthChecks`). A gate is one that applies nothing and names what must be up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compiler.durations import format_duration
from compiler.emit import flux_release, names
from compiler.emit.flux_checks import Command, Health, lower
from compiler.emit.flux_jobs import ACCESS, ACCESS_FOLDER, job_health
from compiler.emit.flux_site import GRAPH, KUSTOMIZE_API, SOURCE_API, Site, git_reference, git_url
from compiler.errors import Collector
from compiler.graph import describe
from compiler.model import Check, Gate, Release

NAMESPACES = "namespaces"
ROOT = "root"
GATES_FOLDER = "flux/gates"
"""The folder of gates that apply nothing; a gate with Jobs has a folder of its own below."""

# A waiting Kustomization holds a worker of the controller (there are four by default), so an attempt of a gate is short
# and soon repeated; 30s is the shortest that Flux knows.
_GATE_TIMEOUT = "1m"
_GATE_RETRY = "10s"
MARGIN = 60  # seconds that a node waits longer than Helm may take, so that it sees how the release ended


@dataclass
class GateNode:
    """A gate Kustomization in the making: no two expressions for one group and kind."""

    what: str  # its name without the prefix
    release: Release
    health: list[Health] = field(default_factory=list)
    jobs: list[tuple[str, Command]] = field(default_factory=list)  # (name of the Job without the prefix, what it runs)

    def takes(self, health: Health) -> bool:
        """Whether Flux could tell this check from those that the node holds already: it goes by group and kind."""
        return all(h.group_kind != health.group_kind or h.current == health.current for h in self.health)

    @property
    def folder(self) -> str:
        """What the node applies, relative to the bundle."""
        return f"{GATES_FOLDER}/{self.release.id}" if self.jobs else GATES_FOLDER


def gate_nodes(site: Site, gate: Gate, release: Release) -> list[GateNode]:
    """The nodes that stand for a gate: one, or more where one Kustomization cannot hold all of its checks.

    Raises `UserError` BC4003 for checks that Flux cannot hold.
    """
    found = Collector()
    nodes: list[GateNode] = []
    for item in gate.checks:
        lowered = lower(item.check)
        if lowered is None:
            found.error(
                "BC4003",
                f"`{release.id}` waits for a check that Flux cannot hold: {describe(item.check)} ({item.check.id})",
                item.check.origin,
                fix=_alternative(item.check),
            )
            continue
        job = f"gate-{release.id}-{item.check.id}"
        health = job_health(site, job) if isinstance(lowered, Command) else lowered
        node = next((n for n in nodes if n.takes(health)), None)
        if node is None:
            taken = {n.what for n in nodes}
            what = f"gate-{release.id}-{item.check.id}" if nodes else f"gate-{release.id}"
            node = GateNode(f"gate-{release.id}-{item.provider}-{item.check.id}" if what in taken else what, release)
            nodes.append(node)
        if health not in node.health:
            node.health.append(health)
        if isinstance(lowered, Command):
            node.jobs.append((job, lowered))
    found.raise_if_failed()
    return nodes


def _alternative(check: Check) -> str:
    if check.kind in {"every", "gone"}:
        return "`every` and `gone` serve scripts and health only: use `field` or `condition` of one named object"
    return 'write the path with names, `[0]` and `["a.b/c"]` only, beginning with a name such as `status`'


def root(site: Site) -> list[dict[str, Any]]:
    """The source (unless it exists already) and the root Kustomization: what `kubectl apply -f flux/root.yaml` brings.

    Deleting the root by hand leaves the nodes alone: Flux would delete them all at once, in no order.
    """
    settings, git = site.settings, site.plan.settings.git
    documents: list[dict[str, Any]] = []
    if not settings.source_existing:
        assert git is not None  # settings were checked
        spec: dict[str, Any] = {
            "interval": settings.source_interval,
            "url": git_url(git.url),
            "ref": git_reference(git.revision),
        }
        if settings.source_secret:
            spec["secretRef"] = {"name": settings.source_secret}
        documents.append(
            {"apiVersion": SOURCE_API, "kind": "GitRepository", "metadata": site.metadata(site.source), "spec": spec}
        )
    fields = {
        "prune": True,
        "deletionPolicy": "Orphan",
        "interval": "10m",
        "retryInterval": "1m",
        "timeout": "5m",
        "wait": False,
    }
    documents.append(_kustomization(site, ROOT, GRAPH, fields))
    return documents


def namespaces(site: Site) -> dict[str, Any]:
    """The node of the bundle's namespaces. It never deletes one, whatever happens to the node."""
    fields = {"prune": False, "interval": "10m", "retryInterval": "30s", "timeout": "1m", "wait": True}
    return _kustomization(site, NAMESPACES, "namespaces", fields, remote=True)


def access(site: Site) -> dict[str, Any]:
    """The node of the namespace and the rights of gate Jobs."""
    fields = {"prune": True, "interval": "10m", "retryInterval": "30s", "timeout": "1m", "wait": True}
    return _kustomization(site, ACCESS, ACCESS_FOLDER, fields, remote=True)


def gate(site: Site, node: GateNode, depends: list[str]) -> dict[str, Any]:
    """The Kustomization of a gate. It is ready when every object that it names is, and is tried again for ever."""
    expressions = {h.group_kind: (h.api_version, h.kind, h.current) for h in node.health if h.current}
    fields: dict[str, Any] = {
        "prune": True,
        "interval": "10m",
        "retryInterval": _GATE_RETRY,
        "timeout": _GATE_TIMEOUT,
        "wait": False,
        "healthChecks": [
            {
                "apiVersion": h.api_version,
                "kind": h.kind,
                "name": h.name,
                **({"namespace": h.namespace} if h.namespace else {}),
            }
            for h in node.health
        ],
    }
    if expressions:
        fields["healthCheckExprs"] = [
            {"apiVersion": version, "kind": kind, "current": current} for version, kind, current in expressions.values()
        ]
    if node.jobs:
        fields["force"] = True  # a Job is immutable: a changed one is made anew
    return _kustomization(site, node.what, node.folder, fields, depends, node.release.component, remote=True)


def release(site: Site, item: Release, depends: list[str]) -> dict[str, Any]:
    """The Kustomization of a release: ready when the HelmRelease and its source are."""
    fields = {
        "prune": True,
        # A release with CRDs in its templates takes every object of these CRDs with it: removed on purpose only.
        "deletionPolicy": "Orphan" if item.keep else "WaitForTermination",
        "interval": "30m",
        "retryInterval": "1m",
        "timeout": format_duration(item.install.timeout + MARGIN),
        "wait": True,
    }
    return _kustomization(site, item.id, flux_release.folder(item), fields, depends, item.component)


def check_names(site: Site, whats: Iterator[tuple[str, str]]) -> None:
    """Check that no two nodes would share a name or a file. Raises `UserError` BC4001."""
    names.unique(site.plan, ((site.name(what), meaning) for what, meaning in whats))


def _kustomization(
    site: Site,
    what: str,
    folder: str,
    fields: dict[str, Any],
    depends: list[str] | None = None,
    component: str | None = None,
    *,
    remote: bool = False,
) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if depends:
        spec["dependsOn"] = [{"name": site.name(d), "namespace": site.settings.namespace} for d in depends]
    return {
        "apiVersion": KUSTOMIZE_API,
        "kind": "Kustomization",
        "metadata": site.metadata(site.name(what), component),
        "spec": {
            **spec,
            "sourceRef": site.source_ref(),
            "path": site.path(folder),
            **fields,
            **site.access(remote=remote),
        },
    }
