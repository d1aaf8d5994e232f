"""Argo CD: where the bundle lies in Git and in the cluster, and the settings that decide it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from compiler.emit import names
from compiler.errors import Collector
from compiler.model import ArgoSettings, Chart, ComponentPlan, GitSettings, Plan, Release
from compiler.records import dataclass
from compiler.versions import parse_version

API = "argoproj.io/v1alpha1"
WAVE = "argocd.argoproj.io/sync-wave"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""Deleting an Application that carries it deletes its objects first, CRDs excepted."""

FLOOR = (3, 1)
"""The oldest Argo CD that the files are for: it knows SkipDryRunOnMissingResource for a whole Application."""

_IN_CLUSTER = "https://kubernetes.default.svc"


@dataclass(frozen=True)
class Site:
    """The bundle's place: names, paths and references that all of its Argo CD objects share."""

    plan: Plan
    git: GitSettings
    base: str  # folder of the bundle in the repository; "" is its root
    by_id: Mapping[str, Release]

    @property
    def settings(self) -> ArgoSettings:
        """The Argo CD settings of the bundle."""
        return self.plan.settings.argocd

    def knows(self, *version: int) -> bool:
        """Whether every Argo CD that the bundle is for has what came with `version`."""
        return (parse_version(self.settings.min_version) or FLOOR) >= version

    def name(self, what: str) -> str:
        """`<prefix>-<what>`. Raises `UserError` BC4001 when it is too long."""
        return names.derived(self.plan, what)

    def path(self, folder: str) -> str:
        """A folder or file of the bundle, relative to the root of the repository."""
        return posixpath.join(self.base, folder)

    def releases(self, component: ComponentPlan) -> list[Release]:
        """The pieces of a component in order."""
        return [self.by_id[release_id] for release_id in component.releases]

    def source(self, **fields: Any) -> dict[str, Any]:
        """A source of an Application that lies in the bundle's repository."""
        return {"repoURL": self.git.url, "targetRevision": self.git.revision, **fields}

    def labels(self, component: str | None = None) -> dict[str, str]:
        """The labels of an object of ours."""
        labels = {"app.kubernetes.io/part-of": self.plan.bundle, "bundlec.dev/bundle": self.plan.bundle}
        if component is not None:
            labels = {"app.kubernetes.io/name": component, **labels, "bundlec.dev/component": component}
        return labels

    def destination(self, namespace: str | None = None) -> dict[str, str]:
        """The cluster that the bundle is for, and the namespace of what names none itself."""
        settings = self.settings
        cluster = (
            {"name": settings.cluster_name} if settings.cluster_name else {"server": settings.server or _IN_CLUSTER}
        )
        return {**cluster, **({"namespace": namespace} if namespace else {})}

    def own_destination(self) -> dict[str, str]:
        """The cluster that Argo CD runs in, where Applications live."""
        return {"server": _IN_CLUSTER, "namespace": self.settings.namespace}


def site_of(plan: Plan) -> Site:
    """The site of a plan.

    Raises `UserError` with every setting that Argo CD needs (BC4002) or cannot honour (BC4003).
    """
    found = Collector()
    settings, git, at = plan.settings.argocd, plan.settings.git, plan.recipe.setting_at
    base = ""
    if git is None:
        found.error(
            "BC4002",
            "argocd reads the bundle from Git: no repository is set",
            at("deployers"),
            fix="set `git` in bundlec.yaml",
        )
    else:
        base = posixpath.normpath(git.path or ".").lstrip("/")
        base = "" if base == "." else base
        if base.split("/")[0] == "..":
            found.error(
                "BC4002",
                f"`git.path` leads out of the repository: {git.path}",
                at("git.path"),
                fix="name a folder inside it",
            )
    version = parse_version(settings.min_version)
    if version is None or version < FLOOR:
        found.error(
            "BC4003",
            f"`argocd.minVersion: {settings.min_version}`: the emitted objects use what came with Argo CD 3.1",
            at("argocd.minVersion"),
            fix='set `argocd.minVersion: "3.1"` or newer',
        )
    if settings.server and settings.cluster_name and settings.server != _IN_CLUSTER:
        found.error(
            "BC4003",
            "`argocd.destination` has a server and a name; Argo CD takes one of them",
            at("argocd.destination"),
            fix="remove one of them",
        )
    for release in plan.releases:
        chart = release.chart
        if chart is not None and chart.plain_http:
            found.error(
                "BC4003",
                f"{release.id}: Argo CD takes plain HTTP for {chart.repository} from its own repository settings alone",
                at(_mirror(plan, chart)),
                fix="serve the mirror over HTTPS, or leave argocd out of `deployers`",
            )
    found.raise_if_failed()
    assert git is not None
    return Site(plan, git, base, {release.id: release for release in plan.releases})


def _mirror(plan: Plan, chart: Chart) -> str:
    """The setting that made a chart come over plain HTTP."""
    address = f"{chart.repository}/{chart.name}"
    fitting = [(len(m.target), i) for i, m in enumerate(plan.settings.mirrors) if address.startswith(m.target)]
    return f"mirrors[{max(fitting)[1]}].plainHTTP" if fitting else "mirrors"
