"""Argo CD: the Applications: a root, one for the namespaces, one with several sources for each component.

The pieces of a component are sources of one Application; their objects carry sync waves, which hold within an
Application. The waves of the Applications themselves order their creation and their removal; by default they hold
nothing back, since Argo CD does not judge the health of Applications. No field equals its default: the API drops such a
field, and the root would differ from Git for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from compiler.emit import payload
from compiler.emit.argocd_site import API, FINALIZER, WAVE, Site
from compiler.model import ComponentPlan, Drift, Release

APPS = "argocd/apps"
RBAC = "argocd/rbac"
ROOT = "root"
NAMESPACES = "namespaces"
WAVES_HOLD = "bundlec.dev/waves"
"""Annotation of the root: `health` says that Argo CD judges the health of Applications, so that waves hold."""

_NAMESPACES_WAVE = "0"


def guards_folder(component: str) -> str:
    """The folder of a component's guards, relative to the bundle."""
    return f"argocd/guards/{component}"


def root(site: Site) -> dict[str, Any]:
    """The Application of Applications; the one object that people apply themselves."""
    application = _application(site, ROOT, None, None)
    if site.settings.waves == "health":
        application["metadata"]["annotations"] = {WAVES_HOLD: "health"}
    application["spec"] = {
        "project": site.settings.project,
        "destination": site.own_destination(),
        "source": site.source(path=site.path(APPS)),
        # Argo CD adds finalizers of its own to an Application whose charts have hooks for their removal.
        "ignoreDifferences": [
            {"group": "argoproj.io", "kind": "Application", "jsonPointers": ["/metadata/finalizers"]}
        ],
        "syncPolicy": _sync_policy(site, []),
    }
    return application


def namespaces(site: Site, *, guards: bool) -> dict[str, Any]:
    """The Application of the namespaces, and of what guards need to run."""
    application = _application(site, NAMESPACES, None, _NAMESPACES_WAVE)
    folders = [*([NAMESPACES] if site.plan.namespaces else []), *([RBAC] if guards else [])]
    application["spec"] = {
        "project": site.settings.project,
        "destination": site.destination(),
        "sources": [site.source(path=site.path(folder)) for folder in folders],
        "syncPolicy": _sync_policy(site, ["ServerSideApply=true"]),
    }
    return application


def component(site: Site, item: ComponentPlan, guarded: Collection[str]) -> dict[str, Any]:
    """The Application of a component; `guarded` are the components that have guards."""
    releases = site.releases(item)
    application = _application(site, item.name, item.name, str(10 * (item.level + 1)))
    drift = [d for release in releases for d in release.drift]
    options = ["ServerSideApply=true", "SkipDryRunOnMissingResource=true"]
    if drift:
        options.append("RespectIgnoreDifferences=true")
    namespace = releases[0].namespace
    sources = [_source(site, release, namespace) for release in releases]
    reference: dict[str, str] = {}
    if any(not release.local for release in releases):
        reference["ref"] = "values"
    if item.name in guarded:
        reference["path"] = site.path(guards_folder(item.name))
    if reference:
        sources.append(site.source(**reference))
    application["spec"] = {
        "project": site.settings.project,
        "destination": site.destination(namespace),
        "sources": sources,
        **({"ignoreDifferences": [_ignored(d) for d in drift]} if drift else {}),
        "syncPolicy": _sync_policy(site, options, empty=all(release.empty for release in releases)),
    }
    return application


def _application(site: Site, what: str, component: str | None, wave: str | None) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Application",
        "metadata": {
            "name": site.name(what),
            "namespace": site.settings.namespace,
            "labels": site.labels(component),
            **({"annotations": {WAVE: wave}} if wave is not None else {}),
            "finalizers": [FINALIZER],
        },
    }


def _source(site: Site, release: Release, namespace: str) -> dict[str, Any]:
    helm: dict[str, Any] = {"releaseName": release.id}
    if release.namespace != namespace:
        helm["namespace"] = release.namespace
    folder = payload.directory(release)
    if release.chart is None:
        return site.source(path=site.path(folder), helm=helm)
    files = [f"{folder}/values.yaml", *([values_file(release)] if hook_values(release) else [])]
    helm["valueFiles"] = [f"$values/{site.path(file)}" for file in files]
    return {
        "repoURL": release.chart.repository.removeprefix("oci://"),
        "chart": release.chart.name,
        "targetRevision": release.chart.version,
        "helm": helm,
    }


def values_file(release: Release) -> str:
    """Where the values stand that only Argo CD lays over those of a chart."""
    return f"{payload.directory(release)}/values-argocd.yaml"


def hook_values(release: Release) -> Mapping[str, Any]:
    """Values that switch off the hooks that may not run on a first installation; {} when there are none.

    Argo CD runs upgrade hooks at every sync, the first one included; Helm and Flux on upgrades only.
    """
    values: Mapping[str, Any] = {}
    for hook in release.hooks:
        if hook.on_first_install == "skip":
            values = _laid_over(values, hook.values)
    return values


def _laid_over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _laid_over(below, value)
        else:
            merged[key] = value
    return merged


def _sync_policy(site: Site, options: list[str], *, empty: bool = False) -> dict[str, Any]:
    settings = site.settings
    automated: dict[str, bool] = {}
    if settings.prune:
        automated["prune"] = True
    if settings.self_heal:
        automated["selfHeal"] = True
    if empty:
        # Without it Argo CD refuses to prune the last object.
        automated["allowEmpty"] = True
    # Without a limit the first failures of a new cluster would be the last tries.
    retry: dict[str, Any] = {"limit": -1, "backoff": {"duration": "15s", "factor": 2, "maxDuration": "3m"}}
    if site.knows(3, 2):
        retry["refresh"] = True
    return {"automated": automated, **({"syncOptions": options} if options else {}), "retry": retry}


def _ignored(drift: Drift) -> dict[str, Any]:
    where = {"group": drift.group, "kind": drift.kind, "name": drift.name, "namespace": drift.namespace}
    return {**{key: value for key, value in where.items() if value}, "jsonPointers": list(drift.paths)}
