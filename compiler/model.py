"""The values that flow through the pipeline: Catalog -> Recipe -> Plan -> Files.

Everything here is frozen and plain: a stage takes one of these and returns the next. The first half mirrors the source
files (field names are the formats' in snake_case); the second half is what the stages compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from compiler.errors import Diagnostic
from compiler.source import Document, Origin, Path

Until: TypeAlias = Literal["applied", "api", "ready"]
Piece: TypeAlias = Literal["pre", "main", "post"]
OnTimeout: TypeAlias = Literal["fail", "warn"]
Scope: TypeAlias = Literal["always", "install"]
Files: TypeAlias = Mapping[str, bytes]
"""Relative POSIX path -> content; content that begins with `#!` is executable."""

PIECES: tuple[Piece, ...] = ("pre", "main", "post")
DEPLOYERS: tuple[str, ...] = ("deploy.sh", "helmfile", "argocd", "flux")
CRITERIA: tuple[str, ...] = ("service", "accelerator", "os", "intent", "platform", "nodes")


# ---------------------------------------------------------------------------------------------------------------------
# Predicates and checks


@dataclass(frozen=True)
class Predicate:
    """A parsed `when:` / `that:`; `component` is who a leading-dot value path belongs to. See predicates.py."""

    form: Mapping[str, Any]
    origin: Origin
    component: str | None = None


@dataclass(frozen=True)
class Assertion:
    """A rule over the composed recipe: `that` must hold whenever `when` does."""

    id: str
    that: Predicate
    when: Predicate | None
    message: str
    severity: str
    origin: Origin
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One readiness condition. `kind` is the key that the format uses; the other fields are set as that kind needs.

    crd: `name` | deployment, statefulset, daemonset, job: `namespace`, `name`, `min_nodes`, `min_ready`
    field: `group`..`namespace`, `path`, `op` (equals, notEquals, present), `value`
    condition: `group`..`namespace`, `type`, `value` (the wanted status: "True", ...)
    every: `group`..`resource`, `namespace`, `path`, `value` | gone: `group`, `resource`, `namespace`
    nodes: `selector` (a kubectl label selector), `min_nodes` | webhook: `name` (of the Service), `namespace`

    In a Plan the check is bound: `namespace` is filled in, `name: rendered` is resolved, `min_nodes` is final.
    """

    id: str
    kind: str
    origin: Origin = field(compare=False, repr=False)
    name: str | None = None
    namespace: str | None = None
    group: str = ""
    version: str = ""
    object_kind: str = ""
    resource: str = ""
    path: str | None = None
    op: str | None = None
    value: str | None = None
    type: str | None = None
    selector: str | None = None
    min_nodes: int | None = None
    min_ready: int | None = None
    when: Predicate | None = None


# ---------------------------------------------------------------------------------------------------------------------
# Source files


@dataclass(frozen=True)
class Chart:
    """A remote Helm chart. `repository` is an https:// or oci:// URL without the chart's name."""

    repository: str
    name: str
    version: str


@dataclass(frozen=True)
class NamespaceSpec:
    name: str
    labels: Mapping[str, str]
    owner: str | None
    origin: Origin


@dataclass(frozen=True)
class ManifestRef:
    """A manifest file that a component or a ref lists, relative to the component's folder."""

    file: str
    when: Predicate | None
    origin: Origin


@dataclass(frozen=True)
class ManifestSource:
    """A manifest file as read: parsed documents when it is static, the template's text when it is `*.j2`."""

    file: str  # relative to the workspace root
    text: str
    documents: tuple[Document, ...] | None


@dataclass(frozen=True)
class Crd:
    """A CRD that a component brings. `source` is the format's `from`; `after` is set for run-time CRDs only."""

    name: str
    group: str
    kind: str
    scope: str
    source: str
    versions: tuple[str, ...]
    when: Predicate | None
    shared: bool
    owner: bool
    keep: bool
    upgrade: str
    apply_before: bool
    after_group: str | None
    after_kind: str | None
    after_path: str | None
    after_check: str | None
    origin: Origin


@dataclass(frozen=True)
class ApiUse:
    """An API that a chart's own objects use (`requires`) or a CR that it makes (`creates`)."""

    group: str
    kind: str
    name: str | None
    namespace: str | None
    own_crd: bool
    when: Predicate | None
    origin: Origin


@dataclass(frozen=True)
class Need:
    """A dependency as written: in `needs` of a component or in `dependencyRefs` of a ref."""

    component: str
    until: Until
    when: Predicate | None
    reason: str | None
    remove: bool
    origin: Origin


@dataclass(frozen=True)
class Conflict:
    component: str
    when: Predicate | None
    reason: str
    origin: Origin


@dataclass(frozen=True)
class Singleton:
    group: str
    kind: str
    name: str


@dataclass(frozen=True)
class Readiness:
    """`readiness.api` or `readiness.ready`: check ids, deadline in seconds, and what a missed deadline means."""

    checks: tuple[str, ...]
    timeout: int
    on_timeout: OnTimeout
    scope: Scope
    origin: Origin


@dataclass(frozen=True)
class Install:
    """`timeout` in seconds; `wait`: workloads | none."""

    timeout: int = 900
    wait: str = "workloads"
    wait_for_jobs: bool = True


@dataclass(frozen=True)
class Hook:
    event: str
    name: str
    effect: str
    on_first_install: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Drift:
    group: str
    kind: str
    name: str | None
    namespace: str | None
    paths: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Stuck:
    group: str
    kind: str
    namespace: str | None
    finalizer: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Teardown:
    before: tuple[Check, ...] = ()
    keep_crds: bool = True
    stuck: tuple[Stuck, ...] = ()


@dataclass(frozen=True)
class Note:
    """A prerequisite (with a check, maybe) or an operational remark."""

    id: str
    text: str
    check: Check | None = None


@dataclass(frozen=True)
class RequiredValue:
    path: str
    when: Predicate | None
    message: str
    origin: Origin


@dataclass(frozen=True)
class Component:
    """components/<name>/component.yaml and the files beside it."""

    name: str
    origin: Origin
    display_name: str
    description: str
    aliases: tuple[str, ...]
    klass: str
    namespace: NamespaceSpec
    chart: Chart | None
    values: Document | None
    values_files: Mapping[str, Document]
    manifest_values: tuple[str, ...]
    required_values: tuple[RequiredValue, ...]
    locked_paths: Mapping[str, str]
    chart_defaults: tuple[str, ...]
    manifests: Mapping[str, tuple[ManifestRef, ...]]  # by piece
    manifest_sources: Mapping[str, ManifestSource]  # by path relative to the component's folder
    crds: tuple[Crd, ...]
    requires: tuple[ApiUse, ...]
    creates: tuple[ApiUse, ...]
    needs: tuple[Need, ...]
    conflicts: tuple[Conflict, ...]
    singletons: tuple[Singleton, ...]
    checks: Mapping[str, Check]
    readiness_api: Readiness | None
    readiness_ready: Readiness | None
    health: tuple[str, ...]
    install: Install
    hooks: tuple[Hook, ...]
    drift: tuple[Drift, ...]
    upgrade_notes: tuple[tuple[str, str], ...]
    upgrade_before: tuple[str, ...]
    teardown: Teardown
    scheduling: Mapping[str, Any]
    storage: Mapping[str, tuple[str, ...]]
    critical_pods: Predicate | None  # set when the component's pods use system-*-critical under that condition
    disruptive: tuple[tuple[Predicate | None, str], ...]
    images: tuple[Mapping[str, str], ...]
    mixin_paths: tuple[str, ...]
    risks: tuple[tuple[str, str], ...]
    rules: tuple[Assertion, ...]
    prerequisites: tuple[Note, ...]
    operations: tuple[str, ...]
    examples: tuple[ManifestRef, ...]
    subcharts: Mapping[str, Predicate | None]


@dataclass(frozen=True)
class ReadinessOverride:
    """What a ref changes of a component's readiness (both `api` and `ready`); None keeps the component's."""

    timeout: int | None = None
    on_timeout: OnTimeout | None = None
    min_nodes: int | None = None
    scope: Scope | None = None


@dataclass(frozen=True)
class ComponentRef:
    """An entry of `componentRefs`. `overrides` never holds `enabled`/`install` at its top: the loader moved them."""

    name: str
    origin: Origin
    enabled: bool | None
    version: str | None
    version_reason: str | None
    namespace: str | None
    values_file: str | None
    overrides: Mapping[str, Any]
    overrides_origin: Origin | None
    dependency_refs: tuple[Need, ...]
    pre_manifests: tuple[ManifestRef, ...]
    manifests: tuple[ManifestRef, ...]
    readiness: ReadinessOverride
    health_check_skip: str | None


@dataclass(frozen=True)
class Constraint:
    name: str
    value: str
    severity: str
    remediation: str | None
    origin: Origin


@dataclass(frozen=True)
class ClusterApi:
    """An API that the cluster itself provides; with a check it becomes part of preflight."""

    group: str
    kind: str
    name: str | None
    check: Check | None
    origin: Origin


@dataclass(frozen=True)
class InputSpec:
    name: str
    type: str
    enum: tuple[Any, ...]
    required: bool
    default: Any
    description: str
    schema: Mapping[str, Any] | None
    effects: Mapping[str, tuple[ComponentRef, ...]]
    origin: Origin


@dataclass(frozen=True)
class ProfileValue:
    name: str
    advertiser: str
    constraints: tuple[Constraint, ...]
    refs: tuple[ComponentRef, ...]
    origin: Origin


@dataclass(frozen=True)
class Profile:
    name: str
    description: str
    default: str
    values: Mapping[str, ProfileValue]
    origin: Origin


@dataclass(frozen=True)
class Overlay:
    """overlays/**/<name>.yaml. `criteria` holds only what is really stated (wildcards are left out)."""

    name: str
    origin: Origin
    base: str | None
    abstract: bool
    match: bool
    maturity: str
    description: str
    known_gaps: tuple[str, ...]
    criteria: Mapping[str, str | int]
    criteria_origin: Origin
    mixins: tuple[tuple[str, Origin], ...]
    inputs: tuple[InputSpec, ...]
    constraints: tuple[Constraint, ...]
    cluster_provides: tuple[ClusterApi, ...]
    prerequisites: tuple[Note, ...]
    operations: tuple[str, ...]
    refs: tuple[ComponentRef, ...]
    profile: Profile | None
    assertions: tuple[Assertion, ...]
    validation: Mapping[str, Any]


@dataclass(frozen=True)
class Mixin:
    name: str
    origin: Origin
    constraints: tuple[Constraint, ...]
    refs: tuple[ComponentRef, ...]


@dataclass(frozen=True)
class BundleEntry:
    """An entry of `bundles` in bundlec.yaml. `settings` are its raw setting sections, merged later over the
    workspace's.
    """

    name: str
    origin: Origin
    recipe: str | None
    criteria: Mapping[str, str | int]
    prefix: str | None
    profile: Mapping[str, str]
    inputs: Mapping[str, Any]
    set: Mapping[str, Mapping[str, Any]]
    disable: tuple[tuple[str, str], ...]  # (component, reason)
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Workspace:
    """bundlec.yaml. `settings` are its raw setting sections (deployers, git, argocd, flux, helm, helmfile, gates,
    ...).
    """

    origin: Origin
    out: str
    bundles: Mapping[str, BundleEntry]
    settings: Mapping[str, Any]
    policies: tuple[Assertion, ...]


@dataclass(frozen=True)
class Catalog:
    """Everything that the source files say. The only thing that later stages know of the disk."""

    workspace: Workspace
    components: Mapping[str, Component]
    overlays: Mapping[str, Overlay]
    mixins: Mapping[str, Mixin]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Flags:
    """What the command line adds to a bundle entry. It wins over every file.

    `set` holds (component or alias, value path, value), in the order given; `deployers` None keeps the bundle's.
    """

    profile: Mapping[str, str] = field(default_factory=dict)
    deployers: tuple[str, ...] | None = None
    set: tuple[tuple[str, Path, Any], ...] = ()


# ---------------------------------------------------------------------------------------------------------------------
# Settings of one bundle (bundlec.yaml merged with the bundle entry and the flags)


@dataclass(frozen=True)
class GitSettings:
    """Where the emitted bundle is read from; `path` is the folder that holds it, relative to the repository's root."""

    url: str
    revision: str
    path: str


@dataclass(frozen=True)
class ArgoSettings:
    namespace: str = "argocd"
    project: str = "default"
    server: str | None = "https://kubernetes.default.svc"
    cluster_name: str | None = None
    min_version: str = "3.1"
    self_heal: bool = True
    prune: bool = True
    waves: str = "soft"


@dataclass(frozen=True)
class FluxSettings:
    namespace: str = "flux-system"
    source_kind: str = "GitRepository"
    source_name: str | None = None  # default: the bundle's prefix
    source_existing: bool = False
    source_secret: str | None = None
    source_interval: str = "1m"
    min_version: str = "2.8"
    service_account: str | None = None
    kube_config: str | None = None


@dataclass(frozen=True)
class GateSettings:
    """`poll` and the Job's fields serve the scripts and the Argo CD guards; `ready: off` turns `until: ready` into
    applied.
    """

    ready: bool = True
    poll: int = 5
    timeout_scale: float = 1.0
    min_nodes: int | None = None
    image: str = "registry.k8s.io/kubectl:v1.36.3"
    pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str | None = None


@dataclass(frozen=True)
class Mirror:
    source: str
    target: str
    plain_http: bool


@dataclass(frozen=True)
class Settings:
    prefix: str
    deployers: tuple[str, ...]
    git: GitSettings | None
    argocd: ArgoSettings
    flux: FluxSettings
    gates: GateSettings
    helm_min_version: str = "3.18.6"
    helm_extra_args: tuple[str, ...] = ()
    helmfile_min_version: str = "1.4.2"
    mirrors: tuple[Mirror, ...] = ()


# ---------------------------------------------------------------------------------------------------------------------
# Recipe: what resolve returns


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One layer's say about one value path. `action`: set | replaced | merged | deleted | null."""

    layer: str
    origin: Origin
    action: str
    value: Any


Trace: TypeAlias = Mapping[Path, tuple[TraceEntry, ...]]
"""Value path -> who set it, first layer first; the last entry is the winner."""


@dataclass(frozen=True)
class ResolvedComponent:
    """A component of a recipe with its final values.

    `values` are the merged values without tombstones (what templates and predicates see); `chart_values` are what is
    written for Helm (no manifestValues; a null only where it deletes a default of the chart itself).
    """

    name: str
    component: Component
    enabled: bool
    disabled_by: Origin | None
    disabled_reason: str | None
    brought_by: Origin
    version: str | None
    namespace: str
    values: Mapping[str, Any]
    chart_values: Mapping[str, Any]
    trace: Trace
    manifests: Mapping[str, tuple[ManifestRef, ...]]  # by piece; `when` not yet evaluated
    needs: tuple[Need, ...]  # the component's own and the refs', `remove` already applied, `when` not yet evaluated
    readiness: ReadinessOverride
    health_check_skip: str | None


@dataclass(frozen=True)
class SelectedProfile:
    name: str
    value: str
    advertiser: str
    owned_paths: tuple[tuple[str, str], ...]  # (component, dotted path)
    origin: Origin


@dataclass(frozen=True)
class Recipe:
    """A composed recipe. `components` holds the disabled ones too; iterate `enabled()` for the rest."""

    bundle: str
    name: str
    criteria: Mapping[str, str | int]
    overlays: tuple[str, ...]  # in order of application
    mixins: tuple[str, ...]
    maturity: str
    description: str
    known_gaps: tuple[str, ...]
    profile: SelectedProfile | None
    inputs: Mapping[str, Any]
    constraints: Mapping[str, Constraint]  # sorted by name
    cluster_provides: tuple[ClusterApi, ...]
    prerequisites: tuple[Note, ...]
    operations: tuple[str, ...]
    assertions: tuple[Assertion, ...]  # of the overlays, the components (`rules`) and the workspace (`policies`)
    validation: Mapping[str, Any]
    components: Mapping[str, ResolvedComponent]  # sorted by name
    settings: Settings

    def enabled(self) -> tuple[ResolvedComponent, ...]:
        """The components that take part, sorted by name."""
        return tuple(c for c in self.components.values() if c.enabled)


@dataclass(frozen=True)
class ComponentFacts:
    enabled: bool
    version: str | None
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """What predicates may look at. `objects` is None before rendering: then an `objects` predicate is an error."""

    recipe: Mapping[str, Any]  # name and the criteria
    profile: Mapping[str, str]
    inputs: Mapping[str, Any]
    components: Mapping[str, ComponentFacts]
    validation: Mapping[str, Any]
    constraints: Mapping[str, str]
    objects: tuple[tuple[str, Mapping[str, Any]], ...] | None = None  # (component, object)


# ---------------------------------------------------------------------------------------------------------------------
# Plan: what plan returns


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
    `crd_upgrade`: replace | skip, what Flux does with the chart's crds/ on upgrade. `keep`: stays at teardown unless
    purged,
    since it carries CRDs in templates.
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
    `accelerated_selector` is a kubectl label selector for the GPU nodes, "" when the recipe does not know one.
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


# ---------------------------------------------------------------------------------------------------------------------
# Read back: what the files of one deployer really hold


@dataclass(frozen=True)
class Wiring:
    """The order that the emitted files of one deployer enforce, read from the files alone.

    `hard` and `soft` hold (provider release id, dependant release id): hard when the dependant cannot start before the
    provider succeeded. `guards` maps a release id to the tokens of the checks that hold it back (see `tokens` of each
    emitter): a gate that is missing or lost a check shows here.
    """

    releases: tuple[str, ...]
    hard: frozenset[tuple[str, str]]
    soft: frozenset[tuple[str, str]]
    guards: Mapping[str, frozenset[str]]
