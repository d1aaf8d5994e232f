"""Overlays, mixins and the workspace as their files say them: what load returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from compiler.errors import Diagnostic
from compiler.model.checks import Assertion, Check
from compiler.model.component import Component, ManifestRef, Need, Note
from compiler.model.vocabulary import OnTimeout, Scope
from compiler.records import dataclass
from compiler.source import Origin, Path


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
    distinct: bool
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
    workspace's; `cluster` is what people call the cluster that it is for.
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
    cluster: str | None = None


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
    `settings` holds (the flag as given, raw setting sections), in the order given.
    """

    profile: Mapping[str, str] = field(default_factory=dict)
    deployers: tuple[str, ...] | None = None
    set: tuple[tuple[str, Path, Any], ...] = ()
    settings: tuple[tuple[str, Mapping[str, Any]], ...] = ()
