"""A component as its folder says it; field names are the format's in snake_case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.model.checks import Assertion, Check, Predicate
from compiler.model.vocabulary import OnTimeout, Scope, Until
from compiler.records import dataclass
from compiler.source import Document, Origin


@dataclass(frozen=True)
class Chart:
    """A remote Helm chart. `repository` is an https:// or oci:// URL without the chart's name.

    `plain_http`: the registry behind oci:// is asked without TLS; only a mirror can be so.
    """

    repository: str
    name: str
    version: str
    plain_http: bool = False


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
    purge: bool
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
    """An object of which a cluster holds one; `when` says under which values the component makes it."""

    group: str
    kind: str
    name: str
    when: Predicate | None = None


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
    scheduling: Mapping[str, Any]  # by scope, as written; `when` is a Predicate or None
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
