"""Flux: the folder of a release, `flux/releases/<release id>/`: a HelmRelease, its chart source and its values.

A source stands beside the one HelmRelease that uses it, named like it, though two releases may read one repository: a
shared source would be one more node that everything waits for, and its removal would need an order of its own.

What a release brings stands in its HelmRelease, so that it changes when the node of the release has its turn. A chart
in Git would change under its HelmRelease with the commit, before the gates of that commit: Flux upgrades at once when
the chart's version moves. Manifests of ours are therefore values of a chart that only prints them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from compiler.durations import format_duration
from compiler.emit import payload
from compiler.emit.flux_site import HELM_API, SOURCE_API, VERBATIM, Site
from compiler.errors import Diagnostic, UserError
from compiler.model import Chart, Drift, Release
from compiler.source import Path, dotted
from compiler.yamlio import dump

FOLDER = "flux/releases"
NAME_REFERENCE = "flux/name-reference.yaml"
VALUES_LIMIT = 1 << 20
"""Bytes that an object of the API server may hold, and with it a ConfigMap of values, or a HelmRelease."""

# The text is printed, not templated: braces in rules, dashboards and scripts reach the cluster unchanged.
_TEMPLATE = """\
{{- range $path, $manifest := .Values.manifests }}
---
{{ $manifest }}
{{- end }}
"""
_VERSION = f"0.1.0-h{hashlib.sha256(_TEMPLATE.encode()).hexdigest()[:8]}"


def folder(release: Release) -> str:
    """The folder of the node of a release, relative to the bundle."""
    return f"{FOLDER}/{release.id}"


def files(site: Site, release: Release) -> dict[str, bytes]:
    """The files of a release's folder. Raises `UserError`: BC4001 for names, BC4004 for what is over 1 MiB."""
    here = folder(release)
    name = site.name(release.id)
    kustomization: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": site.settings.namespace,
        "resources": ["release.yaml"],
    }
    result = {f"{here}/release.yaml": _yaml(_helm_release(site, release, name))}
    if release.chart is not None:
        kustomization["resources"].append("source.yaml")
        # The name of the generated ConfigMap ends in a hash of the values: a change of values is then a change of the
        # HelmRelease, and whoever waits for it waits for the upgrade.
        kustomization["configMapGenerator"] = [
            {
                "name": f"{name}-values",
                "files": [f"values.yaml=../../../{payload.directory(release)}/values.yaml"],
                "options": {"labels": site.metadata(name, release.component)["labels"], "annotations": dict(VERBATIM)},
            }
        ]
        kustomization["configurations"] = ["../../name-reference.yaml"]
        result[f"{here}/source.yaml"] = _yaml(_source(site, release.chart, name, release.component))
        _check_size(site, release)
    else:
        # Named like the local chart of the other deployers: Flux installs anew what changes the name of its chart.
        chart = {"apiVersion": "v2", "name": release.id, "version": _VERSION}
        result[f"{here}/chart/Chart.yaml"] = _yaml(chart)
        result[f"{here}/chart/templates/all.tpl"] = _TEMPLATE.encode()
        if release.objects:
            kustomization.update(_manifests_as_values(release))
            _check_manifests(release)
    result[f"{here}/kustomization.yaml"] = _yaml(kustomization)
    return result


def _manifests_as_values(release: Release) -> dict[str, Any]:
    """The Kustomize configuration that carries the text of the manifests into the values of the HelmRelease."""
    name = "manifests"
    paths = [path for path, _ in payload.manifest_files(release)]
    return {
        "configMapGenerator": [
            {
                "name": name,
                "files": [f"../../../{path}" for path in paths],
                "options": {
                    "disableNameSuffixHash": True,
                    # A helper of this build: it is not applied.
                    "annotations": {"config.kubernetes.io/local-config": "true"},
                },
            }
        ],
        "replacements": [
            {
                "source": {"kind": "ConfigMap", "name": name, "fieldPath": "data"},
                "targets": [
                    {
                        "select": {"kind": "HelmRelease"},
                        "fieldPaths": ["spec.values.manifests"],
                        "options": {"create": True},
                    }
                ],
            }
        ],
    }


def name_reference() -> bytes:
    """The Kustomize configuration that carries the hashed name of a ConfigMap into a HelmRelease."""
    fields = [{"path": "spec/valuesFrom/name", "kind": "HelmRelease"}]
    return _yaml({"nameReference": [{"kind": "ConfigMap", "version": "v1", "fieldSpecs": fields}]})


def _helm_release(site: Site, release: Release, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "releaseName": release.id,
        "targetNamespace": release.namespace,
        "storageNamespace": release.namespace,
        "interval": "1h",
        "timeout": format_duration(release.install.timeout),
        **_chart(site, release, name),
        # Readiness of custom resources is what gates are for; the newer strategy would wait for them inside an install.
        "waitStrategy": {"name": "legacy"},
        "install": _action(release, "Create"),
        "upgrade": _action(release, "Skip"),
        "uninstall": {"deletionPropagation": "foreground"},
        "driftDetection": _drift(release.drift),
        **site.access(remote=True),
    }
    if release.chart is not None:
        spec["valuesFrom"] = [{"kind": "ConfigMap", "name": f"{name}-values"}]
    return {
        "apiVersion": HELM_API,
        "kind": "HelmRelease",
        "metadata": site.metadata(name, release.component),
        "spec": spec,
    }


def _chart(site: Site, release: Release, name: str) -> dict[str, Any]:
    chart = release.chart
    if chart is None:
        # Its version stays, so that no commit upgrades anything by itself.
        return {
            "chart": {
                "spec": {
                    "chart": site.path(f"{folder(release)}/chart"),
                    "reconcileStrategy": "ChartVersion",
                    "interval": site.settings.source_interval,
                    "sourceRef": site.source_ref(),
                }
            }
        }
    if chart.repository.startswith("oci://"):
        return {"chartRef": {"kind": "OCIRepository", "name": name}}
    return {
        "chart": {
            "spec": {
                "chart": chart.name,
                "version": chart.version,
                "interval": "1h",
                "sourceRef": {"kind": "HelmRepository", "name": name},
            }
        }
    }


def _action(release: Release, crds_of_others: str) -> dict[str, Any]:
    action: dict[str, Any] = {}
    if release.chart is not None:
        action["crds"] = "CreateReplace" if release.crd_upgrade == "replace" else crds_of_others
    if release.install.wait == "none":
        action["disableWait"] = True
    elif not release.install.wait_for_jobs:
        action["disableWaitForJobs"] = True
    action["strategy"] = {"name": "RetryOnFailure", "retryInterval": "30s"}
    return action


def _drift(drift: tuple[Drift, ...]) -> dict[str, Any]:
    detection: dict[str, Any] = {"mode": "warn"}
    if drift:
        detection["ignore"] = [
            {
                "paths": list(entry.paths),
                "target": {
                    key: value
                    for key, value in (
                        ("group", entry.group),
                        ("kind", entry.kind),
                        ("name", entry.name),
                        ("namespace", entry.namespace),
                    )
                    if value
                },
            }
            for entry in drift
        ]
    return detection


def _source(site: Site, chart: Chart, name: str, component: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"interval": "1h", "url": chart.repository}
    kind = "HelmRepository"
    if chart.repository.startswith("oci://"):
        kind = "OCIRepository"
        spec["url"] = f"{chart.repository.rstrip('/')}/{chart.name}"
        # A registry takes no `+` in a tag; Helm pushes `_` instead.
        spec["ref"] = {"tag": chart.version.replace("+", "_")}
        spec["layerSelector"] = {
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "operation": "copy",
        }
        if chart.plain_http:
            spec["insecure"] = True
    return {
        "apiVersion": SOURCE_API,
        "kind": kind,
        "metadata": site.metadata(name, component),
        "spec": spec,
    }


def _check_size(site: Site, release: Release) -> None:
    # YAML is at most a few times longer than the plain text, and most values are far from the limit.
    size = len(dump(release.values).encode()) if len(str(release.values)) > VALUES_LIMIT // 8 else 0
    if size > VALUES_LIMIT:
        path = _largest(release.values)
        component = site.plan.recipe.components.get(release.component)
        said = component.trace.get(path) if component else None
        raise UserError(
            [
                Diagnostic(
                    "BC4004",
                    f"the values of `{release.id}` take {size} bytes, a ConfigMap holds {VALUES_LIMIT}; "
                    f"the largest is `{dotted(path)}`",
                    said[-1].origin.span() if said else None,
                    fix="move what is large into a manifest of the component",
                )
            ]
        )


def _check_manifests(release: Release) -> None:
    if sum(len(str(item.data)) for item in release.objects) <= VALUES_LIMIT // 8:
        return
    sizes = {item.identity: len(dump(item.data).encode()) for item in release.objects}
    size = sum(sizes.values())
    if size > VALUES_LIMIT:
        largest = max(release.objects, key=lambda item: sizes[item.identity])
        raise UserError(
            [
                Diagnostic(
                    "BC4004",
                    f"the manifests of `{release.id}` take {size} bytes, a HelmRelease holds {VALUES_LIMIT}; "
                    f"the largest is {largest.kind} {largest.name}",
                    largest.origin.span() if largest.origin else None,
                    fix="list some of them under another piece (`pre`, `main`, `post`), or in a component of their own",
                )
            ]
        )


def _largest(values: Mapping[str, Any]) -> Path:
    """The path of the largest value that is no map."""
    path: Path = ()
    below: Any = values
    while isinstance(below, Mapping) and below:
        tree = below
        key = max(sorted(tree), key=lambda key: len(str(tree[key])))
        path, below = (*path, key), tree[key]
    return path


def _yaml(data: Any) -> bytes:
    return dump(data).encode()
