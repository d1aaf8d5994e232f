"""What all deployers share: values, local charts, namespaces, examples. Values and manifests stand once in a bundle."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from compiler.emit import names
from compiler.errors import Collector, InternalError
from compiler.model import Files, KubeObject, Namespace, Plan, Release
from compiler.plain import plain
from compiler.yamlio import dump

WAVES: Mapping[str, str] = MappingProxyType({"pre": "-1", "post": "2"})
"""Argo CD sync waves of the pieces that stand beside a chart in one Application; inert for every other deployer."""

# Manifests are read, not templated: braces in rules, dashboards and scripts reach the cluster unchanged.
_TEMPLATE = """\
{{- range $path, $_ := .Files.Glob "manifests/*.yaml" }}
---
{{ $.Files.Get $path }}
{{- end }}
"""

_WAVE = "argocd.argoproj.io/sync-wave"
_ATTEMPTS = 4
_LONGEST = 200  # characters of a file name before `.yaml`; file systems allow 255 bytes


def emit(plan: Plan) -> Files:
    """`components/`, `namespaces/` and `examples/` of the bundle.

    Raises `UserError`: BC4001 for release ids, namespaces and labels over their limits, BC4004 for a release that holds
    a CRD together with an object of that CRD (Helm maps all objects of a chart before it applies the first).
    """
    names.check(plan)
    found = Collector()
    files: dict[str, bytes] = {}
    for release in plan.releases:
        _check_crds(release, found)
        for path, content in _content(release).items():
            files[f"{directory(release)}/{path}"] = content
        if release.local:
            files[f"{directory(release)}/Chart.yaml"] = _yaml(
                {"apiVersion": "v2", "name": release.id, "version": chart_version(release)}
            )
    found.raise_if_failed()
    for namespace in plan.namespaces:
        files[namespace_file(namespace.name)] = _yaml(_namespace(plan, namespace))
    for name, text in plan.examples:
        files[f"examples/{name}"] = text.encode()
    return files


def directory(release: Release) -> str:
    """The folder of a release, relative to the bundle: `components/<release id>`."""
    return f"components/{release.id}"


def manifest_files(release: Release) -> list[tuple[str, KubeObject]]:
    """(file relative to the bundle, object) of every object of a local release, in order of the files' names."""
    return [(f"{directory(release)}/manifests/{name}.yaml", item) for name, item in _file_names(release)]


def as_emitted(item: KubeObject) -> dict[str, Any]:
    """An object as its file holds it: keys in one order, and the wave of its piece for Argo CD."""
    data: dict[str, Any] = plain(item.data)
    wave = WAVES.get(item.piece)
    if wave is not None:
        metadata = data["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), _WAVE: wave}
        data["metadata"] = plain(metadata)
    return data


def namespace_file(name: str) -> str:
    """The file of a namespace, relative to the bundle: `namespaces/<name>.yaml`."""
    return f"namespaces/{name}.yaml"


def content_hash(release: Release) -> str:
    """8 hex digits that change exactly when what the release brings to the cluster changes.

    Over chart reference, values and CRDs applied before for a remote chart, over the objects for a local one; the order
    of keys and the form of the YAML do not count. It stands in the version of local charts and in the label
    `bundlec.dev/content` of the Helm release.
    """
    text = release.content if release.chart is not None else f"[{json.dumps(_TEMPLATE)},{release.content}]"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def teardown(release: Release) -> str:
    """How a release is removed once its bundle no longer holds it; its label `bundlec.dev/teardown`.

    keep: by hand only, since it carries CRDs in templates; wait: by the undeploy.sh that came with it only, since it
    knows the conditions of the removal; first: objects of ours, before the charts that bring their kinds; remove: a
    chart; last: what a chart was given before it was installed.
    """
    if release.keep:
        return "keep"
    if release.teardown_before:
        return "wait"
    if release.piece == "pre":
        return "last"
    return "first" if release.local else "remove"


def chart_version(release: Release) -> str:
    """`0.1.0-h<content hash>`, the version of a local chart: every deployer sees a change and only a change."""
    return f"0.1.0-h{content_hash(release)}"


def _content(release: Release) -> dict[str, bytes]:
    """The release's files but for Chart.yaml, relative to its folder."""
    if not release.local:
        return {"values.yaml": _yaml(plain(release.values))}
    files = {"templates/all.yaml": _TEMPLATE.encode()}
    for name, item in _file_names(release):
        files[f"manifests/{name}.yaml"] = _yaml(as_emitted(item))
    return files


def _file_names(release: Release) -> list[tuple[str, KubeObject]]:
    """A file name without `.yaml` for every object, unique within the release and independent of their order.

    `<kind>-<name>`; objects that would share it get their namespace, then their group added. Names are compared in
    lower case, since some file systems do.
    """
    left = sorted(release.objects, key=lambda o: o.identity)
    result: dict[str, KubeObject] = {}
    for attempt in range(_ATTEMPTS):
        by_name: dict[str, list[KubeObject]] = {}
        for item in left:
            by_name.setdefault(_file_name(item, attempt), []).append(item)
        left = []
        for name, items in by_name.items():
            if len(items) > 1 or name in result:
                left.extend(items)
            else:
                result[name] = items[0]
    if left:
        raise InternalError(f"objects of one identity in {release.id}: {[o.identity for o in left]}")
    return sorted(result.items())


def _file_name(item: KubeObject, attempt: int) -> str:
    kind, namespace = item.kind, item.namespace or "cluster"
    match attempt:
        case 0:
            text = f"{kind}-{item.name}"
        case 1:
            text = f"{kind}-{namespace}-{item.name}"
        case 2:
            text = f"{kind}.{item.group or 'core'}-{namespace}-{item.name}"
        case _:
            text = f"{kind}-{item.name}-{hashlib.sha256(json.dumps(item.identity).encode()).hexdigest()[:8]}"
    # RBAC names may hold `:` and capitals; nothing else of a Kubernetes name needs care.
    text = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def _namespace(plan: Plan, namespace: Namespace) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace.name,
            "labels": {
                "app.kubernetes.io/part-of": plan.bundle,
                "bundlec.dev/bundle": plan.bundle,
                **dict(sorted(namespace.labels.items())),
            },
            # A namespace outlives its bundle: it may hold what others put there.
            "annotations": {
                "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
                "helm.sh/resource-policy": "keep",
                "kustomize.toolkit.fluxcd.io/prune": "disabled",
            },
        },
    }


def _check_crds(release: Release, found: Collector) -> None:
    brought = {
        (o.data["spec"]["group"], o.data["spec"]["names"]["kind"]): o
        for o in release.objects
        if o.kind == "CustomResourceDefinition" and o.group == "apiextensions.k8s.io"
    }
    for item in release.objects:
        crd = brought.get((item.group, item.kind))
        if crd is not None:
            found.error(
                "BC4004",
                f"`{release.id}` holds the CRD {crd.name} and an object of it, {item.kind} {item.name}; "
                "Helm cannot install both at once",
                item.origin,
                fix="list the CRD's manifest under `pre`",
            )


def _yaml(data: Any) -> bytes:
    return dump(data).encode()
