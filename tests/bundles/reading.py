"""What each deployer would apply, read from its own files only: never from the plan, never from bundle.yaml."""

from __future__ import annotations

import hashlib
import posixpath
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from tests.bundles.bundle import Bundle, canonical

OUR_CHART = "./components/"


@dataclass(frozen=True, order=True)
class Remote:
    """A release of a chart that is fetched. `values` is the digest of the values file that the deployer hands over."""

    release: str
    namespace: str
    repository: str
    chart: str
    version: str
    values: str


@dataclass(frozen=True, order=True)
class Local:
    """A release of a chart of the bundle; `objects` are the chart's manifests."""

    release: str
    namespace: str
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Applied:
    """In the deployer's own order, where it has one."""

    releases: list[Remote | Local]
    namespaces: list[str]  # canonical objects, sorted


@cache
def read(deployer: str, bundle: Bundle) -> Applied:
    return {"deploy.sh": deploy_sh, "helmfile": helmfile, "argocd": argocd, "flux": flux}[deployer](bundle)


# --- deploy.sh: its own table and its own library put the helm commands together; only helm itself is not run


_HELM = r"""
set -euo pipefail
source lib/gates.sh
source lib/releases.sh
eval "$(sed -n '/^releases() {/,/^}/p' deploy.sh)"
exec 3>&1
run_helm() { printf '%s\0' "$@" >&3; printf '\n' >&3; }
LOG=$(mktemp)
watch_pods() { :; }
read_state() { :; }
gate() { :; }
release() { helm_install "$1" "$3" "$4" "${@:5}"; }
releases
"""


@cache
def helm_commands(bundle: Bundle) -> list[list[str]]:
    """The arguments of every `helm upgrade` of deploy.sh, in order."""
    done = subprocess.run(
        ["bash", "-c", _HELM], cwd=bundle.folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\0")[:-1] for line in done.stdout.splitlines()]


def deploy_sh(bundle: Bundle) -> Applied:
    releases: list[Remote | Local] = []
    for words in helm_commands(bundle):
        upgrade, install, release, chart, *rest = words
        assert (upgrade, install) == ("upgrade", "--install")
        option = dict(pairwise(rest))
        namespace = option["--namespace"]
        if chart.startswith(f"{bundle.folder}/"):
            assert "--values" not in option
            releases.append(_local(bundle, release, namespace, chart.removeprefix(f"{bundle.folder}/")))
            continue
        if "--repo" in option:
            repository, name = option["--repo"], chart
        else:
            repository, name = posixpath.split(chart)
        values = option["--values"].removeprefix(f"{bundle.folder}/")
        releases.append(_remote(bundle, release, namespace, repository, name, option["--version"], values))
    assert '-f "$BUNDLE_DIR/namespaces"' in bundle.files["lib/prepare"].decode()
    return Applied(releases, _namespaces(bundle, "namespaces"))


# --- helmfile


def helmfile(bundle: Bundle) -> Applied:
    state = bundle.one("helmfile.yaml")
    repositories = {item["name"]: item["url"] for item in state["repositories"]}
    releases: list[Remote | Local] = []
    for item in state["releases"]:
        release, namespace, chart = item["name"], item["namespace"], item["chart"]
        hooks = {hook["name"]: hook["command"] for hook in item.get("hooks", [])}
        # `prepare` makes the namespaces; what lies in kube-system needs none of them.
        assert namespace == "kube-system" or hooks["prepare"] == "./lib/prepare"
        if chart.startswith(OUR_CHART):
            assert "values" not in item
            releases.append(_local(bundle, release, namespace, chart.removeprefix("./")))
            continue
        head, name = posixpath.split(chart)
        repository = head if head.startswith("oci://") else repositories[head]
        (values,) = item["values"]
        releases.append(_remote(bundle, release, namespace, repository, name, item["version"], values))
    return Applied(releases, _namespaces(bundle, "namespaces"))


# --- Argo CD


def applications(bundle: Bundle) -> dict[str, Any]:
    """The Applications below the root's path, by component ("namespaces" for that one)."""
    root = bundle.one("argocd/root.yaml")
    path = in_bundle(bundle, root["spec"]["source"]["path"])
    return {posixpath.basename(p).removesuffix(".yaml"): bundle.one(p) for p in bundle.under(f"{path}/")}


def argocd(bundle: Bundle) -> Applied:
    releases: list[Remote | Local] = []
    namespaces: list[str] = []
    for name, app in applications(bundle).items():
        target = app["spec"]["destination"].get("namespace", "")
        for source in app["spec"]["sources"]:
            helm = source.get("helm")
            if "chart" in source:
                # Argo CD wants OCI registries without a scheme.
                repository = source["repoURL"] if "://" in source["repoURL"] else f"oci://{source['repoURL']}"
                # A second file switches off hooks that only Argo CD would run too early; the values are the first one's.
                values, *_ = [in_bundle(bundle, v.removeprefix("$values/")) for v in helm["valueFiles"]]
                assert any(s.get("ref") == "values" for s in app["spec"]["sources"])
                version = source["targetRevision"]
                releases.append(
                    _remote(bundle, helm["releaseName"], target, repository, source["chart"], version, values)
                )
            elif helm is not None:
                assert set(helm) == {"releaseName"}
                releases.append(_local(bundle, helm["releaseName"], target, in_bundle(bundle, source["path"])))
            elif name == "namespaces" and source["path"].endswith("/namespaces"):
                namespaces += _namespaces(bundle, in_bundle(bundle, source["path"]))
    return Applied(releases, namespaces)


# --- Flux


def nodes(bundle: Bundle) -> dict[str, Any]:
    """The Kustomizations that the root applies, by name."""
    (root,) = [d for d in bundle.documents("flux/root.yaml") if d["kind"] == "Kustomization"]
    return {item["metadata"]["name"]: item for item in kustomize(bundle, in_bundle(bundle, root["spec"]["path"]))}


def kustomize(bundle: Bundle, folder: str) -> Iterator[Any]:
    """The objects that the `resources` of a folder name. (The real Kustomize runs in test_kustomize.py.)"""
    for name in bundle.one(f"{folder}/kustomization.yaml")["resources"]:
        yield from bundle.documents(f"{folder}/{name}")


def flux(bundle: Bundle) -> Applied:
    releases: list[Remote | Local] = []
    namespaces: list[str] = []
    for node in nodes(bundle).values():
        folder = in_bundle(bundle, node["spec"]["path"])
        if f"{folder}/kustomization.yaml" not in bundle.files:
            namespaces += _namespaces(bundle, folder)  # Flux takes every file of such a folder
            continue
        objects = {(o["kind"], o["metadata"]["name"]): o for o in kustomize(bundle, folder)}
        for (kind, _), item in objects.items():
            if kind == "HelmRelease":
                releases.append(_helm_release(bundle, folder, item["spec"], objects))
    return Applied(releases, namespaces)


def _helm_release(bundle: Bundle, folder: str, spec: Any, objects: dict[tuple[str, str], Any]) -> Remote | Local:
    release, namespace = spec["releaseName"], spec["targetNamespace"]
    assert spec["storageNamespace"] == namespace  # where `helm list` and deploy.sh look
    if "chart" in spec:
        chart, ref = spec["chart"]["spec"], spec["chart"]["spec"]["sourceRef"]
        if ref["kind"] == "GitRepository":
            assert "valuesFrom" not in spec
            assert "values" not in spec
            in_bundle(bundle, chart["chart"])
            return Local(release, namespace, tuple(sorted(_manifest_values(bundle, folder))))
        source = objects[ref["kind"], ref["name"]]
        repository, name, version = source["spec"]["url"], chart["chart"], chart["version"]
    else:
        source = objects[spec["chartRef"]["kind"], spec["chartRef"]["name"]]
        repository, name = posixpath.split(source["spec"]["url"])
        version = source["spec"]["ref"]["tag"]
    (values,) = spec["valuesFrom"]
    assert values["kind"] == "ConfigMap"
    (generator,) = bundle.one(f"{folder}/kustomization.yaml")["configMapGenerator"]
    assert generator["name"] == values["name"]
    key, _, path = generator["files"][0].partition("=")
    assert key == "values.yaml"
    path = posixpath.normpath(f"{folder}/{path}")
    return _remote(bundle, release, namespace, repository, name, version, path)


def _manifest_values(bundle: Bundle, folder: str) -> Iterator[str]:
    """The objects whose text a kustomization carries into the values that a HelmRelease's chart prints."""
    own = bundle.one(f"{folder}/kustomization.yaml")
    for generator in own.get("configMapGenerator", ()):
        (replacement,) = own["replacements"]
        assert replacement["source"] == {"kind": "ConfigMap", "name": generator["name"], "fieldPath": "data"}
        (target,) = replacement["targets"]
        assert target["fieldPaths"] == ["spec.values.manifests"]
        assert ".Values.manifests" in bundle.files[f"{folder}/chart/templates/all.tpl"].decode()
        for path in generator["files"]:
            yield from (canonical(o) for o in bundle.documents(posixpath.normpath(f"{folder}/{path}")))


# --- shared


def in_bundle(bundle: Bundle, path: str) -> str:
    """A path of the Git repository as a path of the bundle; it must lie in it and exist."""
    path = posixpath.normpath(path)
    inside = path.removeprefix(f"out/{bundle.name}/")
    assert inside != path, f"{path} lies outside the bundle"
    assert (bundle.folder / inside).exists(), f"{path} does not exist"
    return inside


def _remote(
    bundle: Bundle, release: str, namespace: str, repository: str, chart: str, version: str, values: str
) -> Remote:
    digest = hashlib.sha256(bundle.files[values.removeprefix("./")]).hexdigest()
    return Remote(release, namespace, repository, chart, version, digest)


def _local(bundle: Bundle, release: str, namespace: str, folder: str) -> Local:
    assert f"{folder}/Chart.yaml" in bundle.files, f"{folder} is no chart"
    paths = bundle.under(f"{folder}/manifests/")
    return Local(release, namespace, tuple(sorted(canonical(o) for p in paths for o in bundle.documents(p))))


def _namespaces(bundle: Bundle, folder: str) -> list[str]:
    return sorted(canonical(o) for p in bundle.under(f"{folder}/") for o in bundle.documents(p))
