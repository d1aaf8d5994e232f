"""The order of every recipe and the gates in it, as `bundlec graph` shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tests.bundles import second
from tests.bundles.bundle import Bundle
from tests.bundles.cli import ROOT, Bundlec
from tests.bundles.reading import Local, nodes, read

GKE = [
    "cert-manager",
    "gcp-driver-installer",
    "gke-gb200-rdma",
    "nfd",
    "nodewright-operator",
    "nodewright-customizations",
    "prometheus-operator-crds",
    "kube-prometheus-stack",
    "gpu-operator-pre",
    "gpu-operator",
    "k8s-ephemeral-storage-metrics",
    "kai-scheduler",
    "nvidia-dra-driver-gpu",
    "nvsentinel",
    "prometheus-adapter",
]
GKE_KUBEFLOW = [
    *GKE[: GKE.index("nvidia-dra-driver-gpu")],
    "kubeflow-trainer",
    "kubeflow-trainer-post",
    *GKE[GKE.index("nvidia-dra-driver-gpu") :],
]
GKE_SLURM = [
    *GKE,
    "slinky-slurm-operator-crds",
    "slinky-slurm-operator",
    "slinky-slurm-pre",
    "slinky-slurm",
]
GKE_SLURM_ACCOUNTING = [
    *GKE_SLURM[: GKE_SLURM.index("nfd")],
    "mariadb-operator-crds",
    "mariadb-operator",
    *GKE_SLURM[GKE_SLURM.index("nfd") : GKE_SLURM.index("slinky-slurm-pre")],
    "slurm-accounting-mariadb",
    "slinky-slurm-pre",
    "slinky-slurm",
]
GKE_INFERENCE = [
    "agentgateway-crds-pre",
    "agentgateway-crds",
    "cert-manager",
    "agentgateway",
    "agentgateway-post",
    *GKE[GKE.index("cert-manager") + 1 :],
]
GKE_DYNAMO = [
    *GKE_INFERENCE[: GKE_INFERENCE.index("nfd")],
    "grove",
    *GKE_INFERENCE[GKE_INFERENCE.index("nfd") : GKE_INFERENCE.index("nvidia-dra-driver-gpu")],
    "dynamo-platform",
    "dynamo-platform-post",
    *GKE_INFERENCE[GKE_INFERENCE.index("nvidia-dra-driver-gpu") :],
]
NVKE = [
    "cert-manager",
    "nfd",
    "nodewright-operator",
    "prometheus-operator-crds",
    "kube-prometheus-stack",
    "k8s-ephemeral-storage-metrics",
    "prometheus-adapter",
    "rdma-modules",
    "gpu-operator-pre",
    "gpu-operator",
    "kai-scheduler",
    "network-operator",
    "network-operator-post",
    "nvidia-dra-driver-gpu",
    "nvsentinel",
    "sriov-ib-networks",
]
NVKE_KUBEFLOW = [
    *NVKE[: NVKE.index("network-operator")],
    "kubeflow-trainer",
    "kubeflow-trainer-post",
    *NVKE[NVKE.index("network-operator") :],
]
ORDERS = {
    "gb200-gke-cos-training": GKE,
    "gb200-gke-cos-training-bundle-installer": GKE,
    "gb200-gke-cos-training-kubeflow": GKE_KUBEFLOW,
    "gb200-gke-cos-training-slurm": GKE_SLURM,
    "gb200-gke-cos-training-slurm-accounting": GKE_SLURM_ACCOUNTING,
    "gb200-gke-cos-inference": GKE_INFERENCE,
    "gb200-gke-cos-inference-dynamo": GKE_DYNAMO,
    "gb200-nvke-ubuntu-training": NVKE,
    "gb200-nvke-ubuntu-training-kubeflow": NVKE_KUBEFLOW,
    **second.ORDERS,
}

# Dependant -> what stands directly in front of it, and how far it waits.
EVERYWHERE = {
    "kube-prometheus-stack": {"prometheus-operator-crds": "api"},
    "k8s-ephemeral-storage-metrics": {"kube-prometheus-stack": "applied", "prometheus-operator-crds": "api"},
    "prometheus-adapter": {"kube-prometheus-stack": "applied"},
    "gpu-operator": {"gpu-operator-pre": "applied"},
    "kai-scheduler": {"gpu-operator": "applied"},
    "nvidia-dra-driver-gpu": {"gpu-operator": "applied"},
    "nvsentinel": {"cert-manager": "applied", "gpu-operator": "applied", "prometheus-operator-crds": "api"},
}
GPU_OPERATOR = {
    "cert-manager": "applied",
    "kube-prometheus-stack": "applied",
    "nfd": "applied",
    "prometheus-operator-crds": "api",
}
GKE_EDGES = {
    **EVERYWHERE,
    "nodewright-customizations": {"nodewright-operator": "api"},
    "gpu-operator-pre": {**GPU_OPERATOR, "nodewright-customizations": "applied"},
}
NVKE_EDGES = {
    **EVERYWHERE,
    "rdma-modules": {"nfd": "applied", "nodewright-operator": "api"},
    "gpu-operator-pre": {**GPU_OPERATOR, "rdma-modules": "ready"},
    "network-operator": {"cert-manager": "applied", "nfd": "api", "rdma-modules": "ready"},
    "network-operator-post": {"network-operator": "api"},
    "sriov-ib-networks": {"network-operator": "api", "network-operator-post": "ready"},
}
INSTALLER_EDGES = {
    **GKE_EDGES,
    "gke-gb200-rdma": {"gcp-driver-installer": "applied"},
    "gpu-operator-pre": {**GKE_EDGES["gpu-operator-pre"], "gcp-driver-installer": "ready"},
}
SLURM_EDGES = {
    **GKE_EDGES,
    "slinky-slurm-operator": {"cert-manager": "api", "slinky-slurm-operator-crds": "api"},
    "slinky-slurm-pre": {
        "nvidia-dra-driver-gpu": "api",
        "slinky-slurm-operator": "api",
        "slinky-slurm-operator-crds": "api",
    },
    "slinky-slurm": {"slinky-slurm-pre": "applied"},
}
INFERENCE_EDGES = {
    **GKE_EDGES,
    "agentgateway-crds": {"agentgateway-crds-pre": "applied"},
    "agentgateway": {"agentgateway-crds": "api", "agentgateway-crds-pre": "api", "cert-manager": "applied"},
    "agentgateway-post": {"agentgateway": "api"},
}
EDGES = {
    "gb200-gke-cos-training": GKE_EDGES,
    "gb200-gke-cos-training-bundle-installer": INSTALLER_EDGES,
    "gb200-gke-cos-training-kubeflow": {
        **GKE_EDGES,
        "kubeflow-trainer": {
            "cert-manager": "applied",
            "gpu-operator": "applied",
            "kube-prometheus-stack": "applied",
            "prometheus-operator-crds": "api",
        },
        "kubeflow-trainer-post": {"kubeflow-trainer": "api"},
    },
    "gb200-gke-cos-training-slurm": SLURM_EDGES,
    "gb200-gke-cos-training-slurm-accounting": {
        **SLURM_EDGES,
        "mariadb-operator": {"mariadb-operator-crds": "api"},
        "slurm-accounting-mariadb": {"mariadb-operator": "api", "mariadb-operator-crds": "api"},
        "slinky-slurm-pre": {**SLURM_EDGES["slinky-slurm-pre"], "slurm-accounting-mariadb": "applied"},
    },
    "gb200-gke-cos-inference": INFERENCE_EDGES,
    "gb200-gke-cos-inference-dynamo": {
        **INFERENCE_EDGES,
        "dynamo-platform": {
            "cert-manager": "applied",
            "gpu-operator": "applied",
            "grove": "api",
            "kai-scheduler": "api",
            "kube-prometheus-stack": "applied",
            "prometheus-operator-crds": "api",
        },
        "dynamo-platform-post": {"dynamo-platform": "applied"},
    },
    "gb200-nvke-ubuntu-training": NVKE_EDGES,
    "gb200-nvke-ubuntu-training-kubeflow": {
        **NVKE_EDGES,
        "kubeflow-trainer": {
            "gpu-operator": "applied",
            "kube-prometheus-stack": "applied",
            "prometheus-operator-crds": "api",
        },
        "kubeflow-trainer-post": {"kubeflow-trainer": "api"},
    },
    **second.EDGES,
}


@dataclass
class Shown:
    """What `graph` says about a release."""

    after: dict[str, str] = field(default_factory=dict)
    gate: list[str] = field(default_factory=list)


def parse(text: str) -> dict[str, Shown]:
    """The releases in the order in which `graph` prints them."""
    releases: dict[str, Shown] = {}
    current = Shown()
    for line in text.splitlines():
        if found := re.match(r" *\d+  (\S+) ", line):
            current = releases[found[1]] = Shown()
        elif found := re.match(r" +after (\S+) \((?:until )?(\w+)\)", line):
            current.after[found[1]] = found[2]
        elif found := re.match(r" {8}(.+ \(\S+, within \w+\))$", line):
            current.gate.append(found[1])
    return releases


def graph(bundlec: Bundlec, *arguments: str) -> dict[str, Shown]:
    done = bundlec("-C", ROOT, "graph", *arguments)
    assert done.status == 0, done.err
    return parse(done.out)


def test_every_bundle_has_its_expectation(bundle: Bundle) -> None:
    assert bundle.name in ORDERS


@pytest.mark.parametrize("name", ORDERS)
def test_the_order(bundlec: Bundlec, name: str) -> None:
    assert list(graph(bundlec, name)) == ORDERS[name]


@pytest.mark.parametrize("name", ORDERS)
def test_the_edges(bundlec: Bundlec, name: str) -> None:
    shown = graph(bundlec, name)
    assert {release: item.after for release, item in shown.items() if item.after} == EDGES[name]
    # A gate stands where something is to be waited for, and nowhere else.
    gated = {release for release, after in EDGES[name].items() if set(after.values()) - {"applied"}}
    assert {release for release, item in shown.items() if item.gate} == gated


def test_deploy_sh_and_helmfile_list_them_in_that_order(bundle: Bundle) -> None:
    for deployer in ("deploy.sh", "helmfile"):
        assert [r.release for r in read(deployer, bundle).releases] == ORDERS[bundle.name]


# --- gpuStack: who installs the driver


@pytest.mark.parametrize(
    ("profile", "edges"), [("gke-default", GKE_EDGES), ("bundle-installer", INSTALLER_EDGES)], ids=str
)
def test_the_profile_decides_what_waits_for_the_installer(
    bundlec: Bundlec, profile: str, edges: dict[str, dict[str, str]]
) -> None:
    shown = graph(bundlec, "gb200-gke-cos-training", "--profile", f"gpuStack={profile}")
    assert list(shown) == GKE
    assert {release: item.after for release, item in shown.items() if item.after} == edges


def test_with_bundle_installer_the_driver_is_on_the_nodes_before_gpu_operator(gke_installer: Bundle) -> None:
    (driver,) = [
        c for c in gke_installer.plan.release("gpu-operator-pre").gate.checks if c.provider == "gcp-driver-installer"
    ]
    assert (driver.check.kind, driver.check.namespace, driver.check.name) == (
        "daemonset",
        "kube-system",
        "nvidia-driver-installer",
    )
    assert driver.check.min_nodes == 1
    # The four deployers' own words for it.
    gate = gke_installer.files["lib/gate"].decode()
    assert (
        "gate_daemonset gcp-driver-installer/rollout 1800 fail always nvidia-driver-installer kube-system 1 ''" in gate
    )
    guard = gke_installer.files["argocd/guards/gpu-operator/gpu-operator-pre.yaml"].decode()
    assert "daemonsets.apps/nvidia-driver-installer" in guard
    node = nodes(gke_installer)["gktbi-gate-gpu-operator-pre"]["spec"]
    assert {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "nvidia-driver-installer",
        "namespace": "kube-system",
    } in node["healthChecks"]
    assert {"name": "gktbi-gcp-driver-installer", "namespace": "flux-system"} in node["dependsOn"]


def test_with_gke_default_nothing_waits_for_the_installer(gke: Bundle) -> None:
    assert [e for e in gke.plan.edges if "gcp-driver-installer" in (e.provider, e.dependant)] == []
    assert "gcp-driver-installer/" not in gke.files["lib/gate"].decode()
    for path in gke.under("argocd/guards/", "flux/graph/gate-"):
        assert "driver-installer" not in gke.files[path].decode(), path


@pytest.mark.parametrize("deployer", ["deploy.sh", "helmfile", "argocd", "flux"])
def test_with_gke_default_the_installer_is_emitted_empty(gke: Bundle, gke_installer: Bundle, deployer: str) -> None:
    """So that a cluster that switches back to gke-default has its DaemonSet pruned."""

    def installer(bundle: Bundle) -> Local:
        (found,) = [r for r in read(deployer, bundle).releases if r.release == "gcp-driver-installer"]
        assert isinstance(found, Local)
        return found

    assert installer(gke) == Local("gcp-driver-installer", "kube-system", ())
    (daemonset,) = installer(gke_installer).objects
    assert '"name": "nvidia-driver-installer"' in daemonset


def test_argocd_prunes_to_nothing_where_a_component_is_empty(gke: Bundle, gke_installer: Bundle) -> None:
    """An automated sync refuses to remove the last object unless it is allowed to."""
    path = "argocd/apps/gcp-driver-installer.yaml"
    assert gke.one(path)["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True, "allowEmpty": True}
    assert gke_installer.one(path)["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}
