"""Argo CD: the Applications and what they lead to."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler import tools
from compiler.emit import argocd
from compiler.model import ArgoSettings, GitSettings, Hook
from compiler.yamlio import load
from tests.support.argocd import (
    application,
    applications,
    bundle,
    data,
    guards,
    problems,
    with_argocd,
    with_settings,
)
from tests.support.crds import faults
from tests.support.plans import small_plan


def test_the_files_of_a_bundle() -> None:
    assert sorted(path for path in argocd.emit(small_plan()) if path.startswith("argocd/")) == [
        "argocd/apps/cert-manager.yaml",
        "argocd/apps/gcp-driver-installer.yaml",
        "argocd/apps/gpu-operator.yaml",
        "argocd/apps/kai-scheduler.yaml",
        "argocd/apps/namespaces.yaml",
        "argocd/apps/network-operator.yaml",
        "argocd/apps/old-thing.yaml",
        "argocd/apps/sriov-ib-networks.yaml",
        "argocd/guards/gpu-operator/gpu-operator-pre.yaml",
        "argocd/guards/sriov-ib-networks/sriov-ib-networks.yaml",
        "argocd/optional/argocd-cm.yaml",
        "argocd/rbac/clusterrole.yaml",
        "argocd/rbac/clusterrolebinding.yaml",
        "argocd/rbac/namespace.yaml",
        "argocd/rbac/role-kube-system.yaml",
        "argocd/rbac/rolebinding-kube-system.yaml",
        "argocd/rbac/serviceaccount.yaml",
        "argocd/remove.sh",
        "argocd/root.yaml",
    ]


def test_the_application_of_a_component() -> None:
    text = argocd.emit(small_plan())["argocd/apps/gpu-operator.yaml"].decode()
    assert (
        text
        == """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: demo-gpu-operator
  namespace: argocd
  labels:
    app.kubernetes.io/name: gpu-operator
    app.kubernetes.io/part-of: demo
    bundlec.dev/bundle: demo
    bundlec.dev/component: gpu-operator
  annotations:
    argocd.argoproj.io/sync-wave: '20'
  finalizers:
  - resources-finalizer.argocd.argoproj.io
spec:
  project: default
  destination:
    server: https://kubernetes.default.svc
    namespace: gpu-operator
  sources:
  - repoURL: https://git.example.com/platform/bundles.git
    targetRevision: main
    path: out/demo/components/gpu-operator-pre
    helm:
      releaseName: gpu-operator-pre
  - repoURL: https://helm.ngc.nvidia.com/nvidia
    chart: gpu-operator
    targetRevision: v26.7.1
    helm:
      releaseName: gpu-operator
      valueFiles:
      - $values/out/demo/components/gpu-operator/values.yaml
  - repoURL: https://git.example.com/platform/bundles.git
    targetRevision: main
    ref: values
    path: out/demo/argocd/guards/gpu-operator
  ignoreDifferences:
  - group: apiextensions.k8s.io
    kind: CustomResourceDefinition
    name: computedomains.resource.nvidia.com
    jsonPointers:
    - /spec
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
    syncOptions:
    - ServerSideApply=true
    - SkipDryRunOnMissingResource=true
    - RespectIgnoreDifferences=true
    retry:
      limit: -1
      backoff:
        duration: 15s
        factor: 2
        maxDuration: 3m
"""
    )


def test_the_root_leads_to_the_applications_and_ignores_the_finalizers_that_argo_cd_adds() -> None:
    root = data(argocd.emit(with_argocd(server="https://gpu.example.com")), "argocd/root.yaml")
    assert root["metadata"]["name"] == "demo-root"
    assert root["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]
    assert root["spec"]["source"]["path"] == "out/demo/argocd/apps"
    assert root["spec"]["destination"] == {"server": "https://kubernetes.default.svc", "namespace": "argocd"}
    assert root["spec"]["ignoreDifferences"] == [
        {"group": "argoproj.io", "kind": "Application", "jsonPointers": ["/metadata/finalizers"]}
    ]


def test_namespaces_and_the_rights_of_guards_come_first() -> None:
    spec = application(argocd.emit(small_plan()), "namespaces")["spec"]
    assert [source["path"] for source in spec["sources"]] == ["out/demo/namespaces", "out/demo/argocd/rbac"]
    waves = {
        path: int(item["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for path, item in applications(argocd.emit(small_plan()))
    }
    assert min(waves, key=lambda path: waves[path]) == "argocd/apps/namespaces.yaml"


def test_case_62_an_oci_chart_has_no_scheme() -> None:
    source, reference = application(argocd.emit(small_plan()), "kai-scheduler")["spec"]["sources"]
    assert source["repoURL"] == "ghcr.io/kai-scheduler/kai-scheduler"
    assert source["chart"] == "kai-scheduler"
    assert reference == {
        "repoURL": "https://git.example.com/platform/bundles.git",
        "targetRevision": "main",
        "ref": "values",
    }


def test_the_pieces_of_a_component_share_its_application() -> None:
    spec = application(argocd.emit(small_plan()), "network-operator")["spec"]
    assert [s.get("helm", {}).get("releaseName") for s in spec["sources"]] == [
        "network-operator",
        "network-operator-post",
        None,
    ]


def test_a_component_that_renders_nothing_may_be_pruned_to_the_last_object() -> None:
    files = argocd.emit(small_plan())
    assert application(files, "old-thing")["spec"]["syncPolicy"]["automated"]["allowEmpty"] is True
    assert "allowEmpty" not in application(files, "cert-manager")["spec"]["syncPolicy"]["automated"]


def test_settings_reach_the_applications() -> None:
    plan = with_settings(
        small_plan(),
        git=GitSettings("git@git.example.com:platform/bundles.git", "v7", "."),
        argocd=ArgoSettings(namespace="gitops", project="gpu", server=None, cluster_name="gpu-1", self_heal=False),
    )
    item = application(argocd.emit(plan), "sriov-ib-networks")
    assert item["metadata"]["namespace"] == "gitops"
    assert item["spec"]["project"] == "gpu"
    assert item["spec"]["destination"] == {"name": "gpu-1", "namespace": "nvidia-network-operator"}
    assert item["spec"]["syncPolicy"]["automated"] == {"prune": True}
    assert [source["path"] for source in item["spec"]["sources"]] == [
        "components/sriov-ib-networks",
        "argocd/guards/sriov-ib-networks",
    ]
    assert {source["targetRevision"] for source in item["spec"]["sources"]} == {"v7"}
    assert problems(plan, bundle(plan)) == []


@pytest.mark.parametrize(
    ("version", "refresh", "teardown"), [("3.1", False, False), ("3.2", True, False), ("3.3", True, True)]
)
def test_no_field_is_newer_than_the_oldest_argo_cd(version: str, refresh: bool, teardown: bool) -> None:
    files = argocd.emit(with_argocd(min_version=version))
    retry = application(files, "cert-manager")["spec"]["syncPolicy"]["retry"]
    assert retry.get("refresh", False) is refresh
    hooks = {guard["metadata"]["annotations"]["argocd.argoproj.io/hook"] for _, guard in guards(files)}
    assert ("PreDelete" in hooks) is teardown


def test_every_source_in_git_is_there() -> None:
    files = bundle(small_plan())
    for _, item in applications(files):
        for source in item["spec"]["sources"]:
            if "path" in source:
                folder = posixpath.relpath(source["path"], "out/demo")
                assert any(path.startswith(f"{folder}/") for path in files), source
            for value_file in source.get("helm", {}).get("valueFiles", ()):
                assert value_file.removeprefix("$values/out/demo/") in files


def test_no_field_of_an_application_is_one_that_the_api_drops() -> None:
    """A field that is empty or false is dropped by the API: the root would be out of sync for ever."""
    for version in ("3.1", "3.3"):
        for path, item in applications(argocd.emit(with_argocd(min_version=version))):
            assert list(empty(item)) == [], path


def empty(item: Any, at: str = "") -> Iterator[str]:
    if item in (None, False, "", [], {}):
        yield at
    elif isinstance(item, dict):
        for key, value in item.items():
            yield from empty(value, f"{at}.{key}")
    elif isinstance(item, list):
        for value in item:
            yield from empty(value, f"{at}[]")


@pytest.mark.parametrize("version", ["3.1", "3.3"])
def test_applications_are_what_the_crd_says(crds: Path, version: str) -> None:
    files = argocd.emit(with_argocd(min_version=version, waves="health"))
    for path, item in [*applications(files), ("root", data(files, "argocd/root.yaml"))]:
        assert faults(crds, item) == [], path


@pytest.mark.tools
def test_helm_renders_the_sources_with_their_waves(helm: Path, tmp_path: Path) -> None:
    """What Argo CD's repository server does with a source that is a chart of ours."""
    files = bundle(small_plan())
    for path, content in files.items():
        target = tmp_path / "out/demo" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    waves: dict[str, set[str | None]] = {}
    for _, item in applications(files):
        for source in item["spec"]["sources"]:
            if "path" in source and "helm" in source:
                release = source["helm"]["releaseName"]
                text = tools.run([helm, "template", release, tmp_path / source["path"], "--include-crds"]).text
                rendered = [load(part, release).data for part in text.split("\n---\n") if part.strip("- \n")]
                waves[release] = {
                    o["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave") for o in rendered if o
                }
    assert waves == {
        "gcp-driver-installer": {None},
        "gpu-operator-pre": {"-1"},
        "network-operator-post": {"2"},
        "old-thing": set(),
        "sriov-ib-networks": {None},
    }


def test_case_28_an_upgrade_hook_that_may_not_run_at_first_is_switched_off():
    """Argo CD runs pre-upgrade hooks at every sync, the first one included; Helm's own deployers do not."""
    hook = Hook("pre-upgrade", "upgrade-crd", "applies CRDs", "skip", {"operator": {"upgradeCRD": False}})
    other = Hook("pre-install", "check", "looks", "ok", {"operator": {"check": False}})
    plan = small_plan()
    releases = tuple(
        dataclasses.replace(r, hooks=(hook, other)) if r.id == "gpu-operator" else r for r in plan.releases
    )
    files = argocd.emit(dataclasses.replace(plan, releases=releases))
    sources = load(files["argocd/apps/gpu-operator.yaml"].decode(), "x").data["spec"]["sources"]
    (chart,) = [source for source in sources if "chart" in source]
    path = "components/gpu-operator/values-argocd.yaml"
    assert chart["helm"]["valueFiles"][1:] == [f"$values/out/demo/{path}"]
    assert load(files[path].decode(), "x").data == {"operator": {"upgradeCRD": False}}
