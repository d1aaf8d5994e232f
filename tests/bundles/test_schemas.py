"""Every emitted object against its schema, strictly: an API server prunes a misspelt field in silence."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.bundle import Bundle, documents, identity
from tests.support import builtin
from tests.support.crds import faults

CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding", "StorageClass", "CustomResourceDefinition"}
"""The built-in kinds of the bundles that have no namespace."""


def custom(item: Any) -> bool:
    return not builtin.known(item)


def test_built_in_objects_are_valid(bundle: Bundle) -> None:
    seen = set()
    for path, item in bundle.objects():
        if not custom(item):
            assert builtin.faults(item) == [], path
            seen.add(item["kind"])
    assert {"Namespace", "Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"} <= seen


def test_custom_resources_are_valid(bundle: Bundle, crds: Path) -> None:
    seen = set()
    for path, item in bundle.objects():
        if custom(item):
            assert faults(crds, item) == [], path
            seen.add(item["kind"])
    ours = {o.kind for r in bundle.plan.releases for o in r.objects if custom(o.data)}
    deployers = {"Application", "Kustomization", "GitRepository", "HelmRelease", "HelmRepository", "OCIRepository"}
    assert seen == ours | deployers
    assert bool(ours) == (bundle.name != "h100-kind-training")


def test_examples_are_valid(bundle: Bundle, crds: Path) -> None:
    paths = [path for path in bundle.files if path.startswith("examples/")]
    assert bool(paths) == ("kubeflow" in bundle.name or "nvke" in bundle.name)
    for path in paths:
        for item in documents(bundle.files[path].decode(), path):
            if custom(item):
                # An example may leave the namespace to whoever applies it.
                item["metadata"].setdefault("namespace", "default")
                assert faults(crds, item) == [], path
            else:
                assert builtin.faults(item) == [], path


@pytest.mark.parametrize(
    ("name", "path", "value", "fault_at"),
    [
        ("nic-cluster-policy", "spec.nodeAffinity.required", [], "spec.nodeAffinity"),
        ("sriov-network-rail-0", "spec.pKey", "0x8001", "spec"),
        ("infiniband-sriov-rail-0", "spec.priority", 100, "spec.priority"),
        ("nv-ipam-pool-rail-0", "spec.nodeSelector.matchLabels", {}, "spec.nodeSelector"),
        ("rdma-modules", "spec.packages.rdma-modules.version", 1.1, "spec.packages.rdma-modules.version"),
        ("rdma-modules", "metadata.namespace", "nodewright", "metadata"),
        ("nvidia-kernel-module-params", "spec", {}, ""),
    ],
)
def test_a_mistake_would_be_seen(nvke: Bundle, crds: Path, name: str, path: str, value: Any, fault_at: str) -> None:
    (item,) = [o for release in nvke.local_releases() for o in nvke.manifests(release) if o["metadata"]["name"] == name]
    *parents, last = path.split(".")
    reduce(lambda data, key: data[key], parents, item)[last] = value
    found = faults(crds, item) if custom(item) else builtin.faults(item)
    assert {fault.partition(": ")[0] for fault in found} == {fault_at}


def test_a_namespaced_object_says_its_namespace(bundle: Bundle) -> None:
    """Of the built-in kinds; for custom resources the CRD's scope is part of the validation above."""
    for path, item in bundle.objects():
        if not custom(item):
            assert ("namespace" in item["metadata"]) == (item["kind"] not in CLUSTER_SCOPED), path


def test_names_and_labels_keep_their_limits(bundle: Bundle) -> None:
    """Case 69."""
    for path, item in bundle.objects():
        meta = item["metadata"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", meta["name"]), path
        # The names of Applications, Kustomizations, HelmReleases and Jobs become label values.
        assert len(meta["name"]) <= 63, path
        for key, value in meta.get("labels", {}).items():
            assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value), f"{path}: {key}"
    for release in bundle.plan.releases:
        assert len(release.id) <= 53


def test_our_labels_are_on_everything_and_in_no_selector(bundle: Bundle) -> None:
    for path, item in bundle.objects():
        labels = item["metadata"]["labels"]
        assert labels["bundlec.dev/bundle"] == labels["app.kubernetes.io/part-of"] == bundle.name, path
        if path.startswith("components/"):
            assert labels["bundlec.dev/component"] == labels["app.kubernetes.io/name"], path
        assert "bundlec.dev" not in str(_selectors(item)), path


def _selectors(data: Any) -> list[Any]:
    if isinstance(data, dict):
        own = [value for key, value in data.items() if "elector" in key]
        return own + [found for value in data.values() for found in _selectors(value)]
    if isinstance(data, list):
        return [found for value in data for found in _selectors(value)]
    return []


def test_no_two_files_hold_one_object_of_a_deployer(bundle: Bundle) -> None:
    """Case 25. Argo CD and Flux are two ways, never used together, so each is looked at by itself."""
    for mine, other in (("argocd/", "flux/"), ("flux/", "argocd/")):
        seen: dict[Any, str] = {}
        for path, item in bundle.objects():
            if not path.startswith(other):
                assert identity(item) not in seen, f"{path} and {seen.get(identity(item))} ({mine})"
                seen[identity(item)] = path


def test_nothing_unfinished_is_left_in_a_file(bundle: Bundle) -> None:
    """Case 60: no placeholder, no unrendered template, no null in an object."""
    for path, item in bundle.objects():
        text = str(item)
        for leaf in _leaves(item):
            if str(leaf).startswith("--output=go-template="):  # a guard hands it to kubectl
                text = text.replace(repr(leaf), "")
        assert not re.search(r"\{\{|\{%|YOUR_|TODO|CHANGEME|<[a-z-]+>", text), path
        assert None not in _leaves(item), path


def _leaves(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return [leaf for value in data.values() for leaf in _leaves(value)]
    if isinstance(data, list):
        return [leaf for value in data for leaf in _leaves(value)]
    return [data]
