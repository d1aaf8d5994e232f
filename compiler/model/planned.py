"""The plan, deployer-neutral, and the order that emitted files hold when they are read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from compiler.errors import Diagnostic
from compiler.model.checks import Check
from compiler.model.component import Chart, Drift, Hook, Install, Singleton, Stuck
from compiler.model.recipe import Recipe
from compiler.model.settings import Settings
from compiler.model.vocabulary import OnTimeout, Piece, Scope, Until
from compiler.records import dataclass
from compiler.source import Origin


@dataclass(frozen=True)
class Namespace:
    """A namespace that the bundle owns; `labels` are merged over its components. Never kube-system or default."""

    name: str
    labels: Mapping[str, str]
    components: tuple[str, ...]


@dataclass(frozen=True)
class KubeObject:
    """A rendered object of one of our own manifests, labelled and namespaced, ready to be dumped."""

    data: Mapping[str, Any]
    component: str
    piece: Piece
    source: str  # the manifest file, relative to the workspace root
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def api_version(self) -> str:
        """`group/version`, or `v1` for the core group."""
        return str(self.data["apiVersion"])

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        head, slash, _ = self.api_version.partition("/")
        return head if slash else ""

    @property
    def kind(self) -> str:
        """The kind."""
        return str(self.data["kind"])

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.data["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """metadata.namespace; None when the object is cluster-scoped."""
        value = self.data["metadata"].get("namespace")
        return None if value is None else str(value)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two objects the same one in a cluster (the API version does not)."""
        return (self.group, self.kind, self.namespace or "", self.name)


@dataclass(frozen=True)
class GateCheck:
    """A check of a gate, with whose readiness it is and how long it may take (seconds)."""

    check: Check
    provider: str  # component name
    timeout: int
    on_timeout: OnTimeout
    scope: Scope


@dataclass(frozen=True)
class Gate:
    """What must hold in the cluster before the release `id` is touched. One gate a release at most.

    `after` are the releases whose outcome it watches: no deployer may start probing before they are applied.
    """

    id: str  # the dependant's release id
    after: tuple[str, ...]
    checks: tuple[GateCheck, ...]

    @property
    def timeout(self) -> int:
        """The longest deadline of its checks, in seconds."""
        return max(c.timeout for c in self.checks)


@dataclass(frozen=True)
class Reason:
    """Why an edge exists. `kind`: declared | api | runtime-api | piece. `text` is stable and names no source line."""

    kind: str
    text: str
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Edge:
    """`dependant` (a release id) waits for `provider` (a release id). An edge until `api`/`ready` is held by a gate."""

    provider: str
    dependant: str
    until: Until
    reasons: tuple[Reason, ...]

    @property
    def hard(self) -> bool:
        """Whether every deployer must hold it: api, runtime-api and ready edges. Plain ones may be soft on Argo CD."""
        return self.until != "applied" or any(r.kind == "runtime-api" for r in self.reasons)


@dataclass(frozen=True)
class Release:
    """One piece of one component: a Helm release of a remote chart or of a local chart made of our manifests.

    `chart` is None for a local one, whose content is `objects` (may be empty: then the release prunes what it held and
    nothing waits for it). `values` are those of a remote chart. `needs` are release ids of the direct edges.
    `crds_before`: names of CRDs to apply server-side from the chart before the release (`applyBefore`).
    `crds_on_upgrade`: names of CRDs in the chart's crds/ that Helm, which never updates them, leaves to the scripts.
    `crd_upgrade`: replace | skip, what Flux does with the chart's crds/ on upgrade. `keep`: stays at teardown unless
    purged, since it carries CRDs in templates.
    """

    id: str
    component: str
    piece: Piece
    namespace: str
    chart: Chart | None
    values: Mapping[str, Any]
    objects: tuple[KubeObject, ...]
    needs: tuple[str, ...]
    gate: Gate | None
    install: Install
    crds_before: tuple[str, ...]
    crd_upgrade: str
    keep: bool
    drift: tuple[Drift, ...]
    teardown_before: tuple[Check, ...]  # must hold before this release is removed
    stuck: tuple[Stuck, ...]
    crds_on_upgrade: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = ()  # of the chart, where GitOps runs them at other times than Helm

    @cached_property
    def content(self) -> str:
        """What it brings to the cluster, as JSON with sorted keys: chart, CRDs before it and values, or the objects.

        Every deployer asks, and values and objects are large: so it is kept.
        """
        data: list[Any] = [o.data for o in sorted(self.objects, key=lambda o: o.identity)]
        if self.chart is not None:
            chart = self.chart
            data = [chart.repository, chart.name, chart.version, sorted(self.crds_before), self.values]
        return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=dict)

    @property
    def local(self) -> bool:
        """Whether the chart is made by us from `objects`."""
        return self.chart is None

    @property
    def empty(self) -> bool:
        """A local release that renders no object."""
        return self.local and not self.objects


@dataclass(frozen=True)
class PreflightCheck:
    """Something to look at before anything is applied.

    `kind`: version (K8s.server.version) | os | kernel | label (NodeTopology.gpu-nodes.label) | check | singleton |
    unchecked
    """

    kind: str
    name: str
    value: str
    severity: str
    text: str
    check: Check | None = None
    singleton: Singleton | None = None


@dataclass(frozen=True)
class ComponentPlan:
    """What is said about a component as a whole: its releases in order and its health checks, bound."""

    name: str
    releases: tuple[str, ...]
    health: tuple[Check, ...]
    level: int  # longest path from a root, for deployers that run in parallel


@dataclass(frozen=True)
class Plan:
    """Deployer-neutral: what is applied, in which order, behind which gates. All order decisions are made here.

    `releases` are in order of deployment. `satisfied` tells of edges to disabled or empty components, as sentences.
    `accelerated_selector` is a kubectl label selector for the GPU nodes, "" when the recipe does not know one. `crds`
    are the names of all CRDs that the bundle brings, sorted.
    """

    recipe: Recipe
    namespaces: tuple[Namespace, ...]
    components: tuple[ComponentPlan, ...]  # in order of deployment
    releases: tuple[Release, ...]
    edges: tuple[Edge, ...]
    preflight: tuple[PreflightCheck, ...]
    examples: tuple[tuple[str, str], ...]  # (file name, YAML text)
    satisfied: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = ()
    accelerated_selector: str = ""
    crds: tuple[str, ...] = ()

    @property
    def bundle(self) -> str:
        """The bundle's name."""
        return self.recipe.bundle

    @property
    def settings(self) -> Settings:
        """The bundle's settings."""
        return self.recipe.settings

    def release(self, release_id: str) -> Release:
        """The release of that id. Raises KeyError."""
        for release in self.releases:
            if release.id == release_id:
                return release
        raise KeyError(release_id)


@dataclass(frozen=True)
class Wiring:
    """The order that the emitted files of one deployer enforce, read from the files alone.

    `hard` and `soft` hold (provider release id, dependant release id): hard when the dependant cannot start before the
    provider succeeded. `guards` maps a release id to the tokens of the checks that hold it back (see `tokens` of each
    emitter): a gate that is missing or lost a check shows here. Where a gate is a thing of its own and could start
    earlier than its release, `behind` maps the release id to the releases that the gate waits for. `faults` are
    sentences on files that contradict each other.

    `removal` holds the release ids in the order in which the deployer's script removes them; None: no script does.
    `partings` maps a release id to the tokens of the checks that its removal waits for; None: that was not read.
    """

    releases: tuple[str, ...]
    hard: frozenset[tuple[str, str]]
    soft: frozenset[tuple[str, str]]
    guards: Mapping[str, frozenset[str]]
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    removal: tuple[str, ...] | None = None
    partings: Mapping[str, frozenset[str]] | None = None
