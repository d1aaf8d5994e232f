"""Argo CD: guard Jobs, their rights, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import kubernetes_validate
import pytest

from compiler.emit import argocd
from compiler.model import ArgoSettings, Check, GateSettings, GitSettings
from tests.support.argocd import (
    CRD_READY,
    OPERATOR,
    application,
    bundle,
    data,
    gated,
    refused,
    with_argocd,
    with_settings,
)
from tests.support.plans import INSTALLER, IPPOOL_CRD, POLICY_READY, STATES, check, plain_http, small_plan


def test_the_guard_in_front_of_a_component() -> None:
    plan = with_settings(
        small_plan(),
        gates=GateSettings(
            image="registry.example.com/kubectl:v1.36.3",
            pull_secrets=("mirror",),
            node_selector={"pool": "system"},
            tolerations=({"operator": "Exists"},),
            priority_class="system-cluster-critical",
        ),
    )
    job = data(argocd.emit(plan), "argocd/guards/sriov-ib-networks/sriov-ib-networks.yaml")
    assert job["metadata"] == {
        "name": "demo-gate-sriov-ib-networks",
        "namespace": "demo-gates",
        "labels": {
            "app.kubernetes.io/name": "sriov-ib-networks",
            "app.kubernetes.io/part-of": "demo",
            "bundlec.dev/bundle": "demo",
            "bundlec.dev/component": "sriov-ib-networks",
        },
        "annotations": {
            "argocd.argoproj.io/hook": "PreSync",
            "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation,HookSucceeded,HookFailed",
            "argocd.argoproj.io/sync-wave": "-1000",
        },
    }
    assert job["spec"]["activeDeadlineSeconds"] == 2700
    # Each restart of a container counts against it.
    assert job["spec"]["backoffLimit"] == 2**31 - 1
    pod = job["spec"]["template"]["spec"]
    assert {key: pod[key] for key in pod if key not in {"initContainers", "containers"}} == {
        "serviceAccountName": "gates",
        "restartPolicy": "OnFailure",
        "imagePullSecrets": [{"name": "mirror"}],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [{"name": "home", "emptyDir": {}}],
    }
    crd = "customresourcedefinitions.apiextensions.k8s.io/ippools.nv-ipam.nvidia.com"
    wait = ["--for=create", "--for=condition=Established", "--timeout=2700s"]
    assert pod["initContainers"][0] == {
        "name": "ippools",
        "image": "registry.example.com/kubectl:v1.36.3",
        "args": ["wait", crd, *wait],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "home", "mountPath": "/tmp"}],
    }
    assert [c["name"] for c in pod["initContainers"]] == ["ippools", "policy-ready"]
    assert [c["args"] for c in pod["containers"]] == [["version", "--client"]]


def test_the_guard_of_a_post_piece_lies_between_the_waves() -> None:
    files = bundle(gated("network-operator-post", CRD_READY, OPERATOR))
    job = data(files, "argocd/guards/network-operator/network-operator-post.yaml")
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "Sync"
    assert job["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "1"
    wiring = argocd.read_back(files)
    assert set(wiring.guards) == {"gpu-operator", "gpu-operator-pre", "network-operator-post", "sriov-ib-networks"}
    assert wiring.guards["network-operator-post"] >= argocd.tokens(CRD_READY) | argocd.tokens(OPERATOR)


def test_the_guard_between_pre_and_chart_shares_the_wave_of_pre() -> None:
    plan = gated("gpu-operator", IPPOOL_CRD, after="gpu-operator-pre")
    wiring = argocd.read_back(bundle(plan))
    assert argocd.tokens(IPPOOL_CRD) <= wiring.guards["gpu-operator"]
    assert not argocd.tokens(IPPOOL_CRD) & wiring.guards["gpu-operator-pre"]


def test_an_empty_first_piece_needs_no_guard_of_its_own() -> None:
    plan = gated("gpu-operator", INSTALLER)
    releases = tuple(
        dataclasses.replace(r, objects=(), gate=None) if r.id == "gpu-operator-pre" else r for r in plan.releases
    )
    files = bundle(dataclasses.replace(plan, releases=releases))
    job = data(files, "argocd/guards/gpu-operator/gpu-operator.yaml")
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync"


def test_containers_of_one_pod_have_different_names() -> None:
    twins = [dataclasses.replace(IPPOOL_CRD, id="Same.Id", name=f"{n}.example.com") for n in "ab"]
    long = dataclasses.replace(IPPOOL_CRD, id="x" * 80, name="c.example.com")
    job = data(
        argocd.emit(gated("sriov-ib-networks", *twins, long)), "argocd/guards/sriov-ib-networks/sriov-ib-networks.yaml"
    )
    names = [c["name"] for c in job["spec"]["template"]["spec"]["initContainers"]]
    assert names == ["same-id", "same-id-2", "x" * 55]


def test_rights_are_exactly_what_the_guards_read() -> None:
    webhook = check("webhook", id="w", name="svc", namespace="nvidia-network-operator")
    foreign = check("deployment", id="d", name="d", namespace="elsewhere")
    nodes = check("nodes", id="n", selector="a=b", min_nodes=1)
    files = argocd.emit(gated("sriov-ib-networks", IPPOOL_CRD, CRD_READY, webhook, foreign, nodes))
    read = {"verbs": ["get", "list", "watch"]}
    assert data(files, "argocd/rbac/clusterrole.yaml")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], **read},
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": ["ippools.nv-ipam.nvidia.com", "nicclusterpolicies.mellanox.com"],
            **read,
        },
        # Nobody here owns its namespace: a Role in it might have nowhere to go.
        {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["d"], **read},
    ]
    assert data(files, "argocd/rbac/role-nvidia-network-operator.yaml")["rules"] == [
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], **read}
    ]
    assert data(files, "argocd/rbac/role-kube-system.yaml")["rules"] == [
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["nvidia-driver-installer"], **read}
    ]
    for path in ("rolebinding-kube-system", "clusterrolebinding"):
        assert data(files, f"argocd/rbac/{path}.yaml")["subjects"] == [
            {"kind": "ServiceAccount", "name": "gates", "namespace": "demo-gates"}
        ]


def test_without_guards_there_are_no_rights() -> None:
    plan = small_plan()
    files = argocd.emit(
        dataclasses.replace(plan, releases=tuple(dataclasses.replace(r, gate=None) for r in plan.releases))
    )
    assert not [path for path in files if path.startswith(("argocd/rbac/", "argocd/guards/"))]
    assert [s["path"] for s in application(files, "namespaces")["spec"]["sources"]] == ["out/demo/namespaces"]


@pytest.mark.parametrize("version", ["3.1", "3.3"])
def test_kubernetes_accepts_guards_and_rights(version: str) -> None:
    plan = dataclasses.replace(
        gated("network-operator-post", CRD_READY, OPERATOR),
        recipe=with_argocd(min_version=version).recipe,
    )
    files = argocd.emit(plan)
    for path in files:
        if path.startswith(("argocd/guards/", "argocd/rbac/", "argocd/optional/")):
            kubernetes_validate.validate(data(files, path), "1.34", strict=True)


def test_the_guard_of_a_removal_asks_the_last_piece_first() -> None:
    files = argocd.emit(with_argocd(min_version="3.3"))
    job = data(files, "argocd/guards/network-operator/network-operator-teardown.yaml")
    assert job["metadata"]["name"] == "demo-teardown-network-operator"
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreDelete"
    steps = [c["args"][:2] for c in job["spec"]["template"]["spec"]["initContainers"]]
    assert steps == [
        ["get", "sriovnetworknodestates.sriovnetwork.openshift.io"],
        ["get", "sriovibnetworks.sriovnetwork.openshift.io"],
    ]
    rules = data(files, "argocd/rbac/role-nvidia-network-operator.yaml")["rules"]
    assert [(r["resources"], "resourceNames" in r) for r in rules] == [
        (["sriovibnetworks"], False),
        (["sriovnetworknodestates"], False),
    ]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [STATES, dataclasses.replace(POLICY_READY, op="notEquals")],
)
def test_a_check_that_no_guard_can_hold(item: Check) -> None:
    (found,) = refused(gated("sriov-ib-networks", item))
    assert found.code == "BC4003"
    assert f"`{item.id}`" in found.message
    assert "sriov-ib-networks" in found.message
    assert "equals" in (found.fix or "")


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"git": None}, "BC4002", "Git"),
        ({"git": GitSettings("https://x", "main", "../other")}, "BC4002", "git.path"),
        ({"argocd": ArgoSettings(min_version="3.0")}, "BC4003", "argocd.minVersion"),
        ({"argocd": ArgoSettings(min_version="latest")}, "BC4003", "argocd.minVersion"),
        ({"argocd": ArgoSettings(server="https://a", cluster_name="b")}, "BC4003", "destination"),
    ],
)
def test_settings_that_argo_cd_needs_or_cannot_honour(changes: dict[str, Any], code: str, word: str) -> None:
    found = refused(with_settings(small_plan(), **changes))
    assert {d.code for d in found} == {code}
    assert all(word in d.message and d.fix for d in found)


def test_argo_cd_cannot_be_told_of_a_registry_without_tls() -> None:
    (found,) = refused(plain_http(small_plan(), "kai-scheduler"))
    assert found.code == "BC4003"
    assert "plain HTTP" in found.message


def test_case_69_a_name_that_is_too_long_comes_with_a_prefix_that_fits() -> None:
    (found,) = refused(with_settings(small_plan(), prefix="p" * 50))
    assert found.code == "BC4001"
    assert "prefix" in (found.fix or "")


@pytest.mark.parametrize("name", ["root", "namespaces"])
def test_case_69_a_component_does_not_take_the_name_of_another_application(name: str) -> None:
    plan = small_plan()
    components = tuple(dataclasses.replace(c, name=name) if c.name == "old-thing" else c for c in plan.components)
    (found,) = refused(dataclasses.replace(plan, components=components))
    assert found.code == "BC4001"
    assert f"demo-{name}" in found.message
