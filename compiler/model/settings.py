"""The settings of one bundle: bundlec.yaml merged with the bundle's entry and the flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from compiler.records import dataclass


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
    """`poll` is for the scripts, the Job's fields for Argo CD and Flux; `ready: off` makes of `ready` `applied`."""

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
    """`source` is a prefix of what is fetched from `target` instead: an URL of charts, or a registry of images."""

    source: str
    target: str
    plain_http: bool


@dataclass(frozen=True)
class Place:
    """Where a class of pods runs. `tolerations` None: not said; an empty tuple is said, too."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True)
class PlacementSettings:
    """`workload_gate` is a taint {key, value?, effect}, `nodes` the number of accelerated nodes."""

    system: Place = field(default_factory=Place)
    accelerated: Place = field(default_factory=Place)
    workload_selector: Mapping[str, str] = field(default_factory=dict)
    workload_gate: Mapping[str, str] | None = None
    nodes: int | None = None


@dataclass(frozen=True)
class StorageSettings:
    """Names of storage classes: `storage_class` for claims of one pod, `shared_class` for those of several."""

    storage_class: str | None = None
    shared_class: str | None = None


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
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
