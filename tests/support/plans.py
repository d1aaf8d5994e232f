"""A small hand-made Plan with one of everything that emitters must carry: remote chart by https and by OCI, pre and post
pieces, a late CRD behind a gate, a DaemonSet gate, an empty release, CRDs in templates, CRDs applied before, drift."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compiler.model import (
    ArgoSettings,
    Chart,
    Check,
    ComponentPlan,
    Drift,
    Edge,
    FluxSettings,
    Gate,
    GateCheck,
    GateSettings,
    GitSettings,
    Install,
    KubeObject,
    Namespace,
    Plan,
    PreflightCheck,
    Reason,
    Recipe,
    Release,
    Settings,
    Singleton,
    Stuck,
)
from compiler.source import built_in

AT = built_in("test")


def settings(**changes: Any) -> Settings:
    """Settings with every section filled in; `changes` replace fields."""
    values: dict[str, Any] = {
        "prefix": "demo",
        "deployers": ("deploy.sh", "helmfile", "argocd", "flux"),
        "git": GitSettings("https://git.example.com/platform/bundles.git", "main", "out/demo"),
        "argocd": ArgoSettings(),
        "flux": FluxSettings(),
        "gates": GateSettings(),
    }
    return Settings(**{**values, **changes})


def check(kind: str, **fields: Any) -> Check:
    """A bound check."""
    return Check(id=fields.pop("id", kind), kind=kind, origin=AT, **fields)


def kube(component: str, piece: str, data: dict[str, Any]) -> KubeObject:
    """An object with the labels that the plan stage gives."""
    metadata = data.setdefault("metadata", {})
    metadata["labels"] = {
        "app.kubernetes.io/name": component,
        "app.kubernetes.io/part-of": "demo",
        "bundlec.dev/bundle": "demo",
        "bundlec.dev/component": component,
        **metadata.get("labels", {}),
    }
    return KubeObject(data, component, piece, f"components/{component}/manifests/x.yaml")  # type: ignore[arg-type]


POLICY_READY = check(
    "field",
    id="policy-ready",
    group="mellanox.com",
    version="v1alpha1",
    object_kind="NicClusterPolicy",
    resource="nicclusterpolicies",
    name="nic-cluster-policy",
    path="status.state",
    op="equals",
    value="ready",
)
IPPOOL_CRD = check("crd", id="ippools", name="ippools.nv-ipam.nvidia.com")
INSTALLER = check("daemonset", id="installer", namespace="kube-system", name="nvidia-driver-installer", min_nodes=1)
STATES = check(
    "every",
    id="states-succeeded",
    group="sriovnetwork.openshift.io",
    version="v1",
    object_kind="SriovNetworkNodeState",
    resource="sriovnetworknodestates",
    namespace="nvidia-network-operator",
    path="status.syncStatus",
    op="equals",
    value="Succeeded",
)
GONE = check(
    "gone",
    id="no-ib-networks",
    group="sriovnetwork.openshift.io",
    resource="sriovibnetworks",
    namespace="nvidia-network-operator",
)


def release(id: str, component: str, piece: str, namespace: str, **fields: Any) -> Release:  # noqa: A002
    """A release with the usual defaults."""
    values: dict[str, Any] = {
        "chart": None,
        "values": {},
        "objects": (),
        "needs": (),
        "gate": None,
        "install": Install(),
        "crds_before": (),
        "crd_upgrade": "replace",
        "keep": False,
        "drift": (),
        "teardown_before": (),
        "stuck": (),
    }
    return Release(id, component, piece, namespace, **{**values, **fields})  # type: ignore[arg-type]


def recipe(name: str = "demo", **changes: Any) -> Recipe:
    """A Recipe without components: emitters read its descriptive fields and settings only."""
    values: dict[str, Any] = {
        "bundle": name,
        "name": name,
        "criteria": {"service": "nvke", "accelerator": "gb200"},
        "overlays": ("base", name),
        "mixins": (),
        "maturity": "preview",
        "description": "A demo.",
        "known_gaps": ("Nothing is known.",),
        "profile": None,
        "inputs": {},
        "constraints": {},
        "cluster_provides": (),
        "prerequisites": (),
        "operations": (),
        "assertions": (),
        "validation": {},
        "components": {},
        "settings": settings(),
    }
    return Recipe(**{**values, **changes})


def plain_http(plan: Plan, release_id: str) -> Plan:
    """The plan with the chart of that release in a registry without TLS."""
    return replace(
        plan,
        releases=tuple(
            replace(r, chart=replace(r.chart, plain_http=True)) if r.id == release_id and r.chart else r
            for r in plan.releases
        ),
    )


def small_plan(**recipe_changes: Any) -> Plan:
    """cert-manager (CRDs in templates), gcp-driver-installer, an empty release, gpu-operator (pre + chart), kai-scheduler
    (OCI), network-operator (chart + post), sriov-ib-networks (behind the IPPool gate)."""
    nvidia = "https://helm.ngc.nvidia.com/nvidia"
    releases = (
        release(
            "cert-manager", "cert-manager", "main", "cert-manager", keep=True,
            chart=Chart("https://charts.jetstack.io", "cert-manager", "v1.20.2"),
            values={"crds": {"enabled": True}, "fullnameOverride": "cert-manager"},
        ),
        release(
            "gcp-driver-installer", "gcp-driver-installer", "main", "kube-system",
            objects=(kube("gcp-driver-installer", "main", {
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": {"name": "nvidia-driver-installer", "namespace": "kube-system"},
                "spec": {"selector": {"matchLabels": {"k8s-app": "x"}}, "template": {"metadata": {"labels": {"k8s-app": "x"}}, "spec": {
                    "containers": [{"name": "a", "image": "pause:3.8", "command": ["sh", "-c", "echo ${HOME} {{ x }}\n---\nend\n"]}]}}},
            }),),
        ),
        release("old-thing", "old-thing", "main", "kube-system"),
        release(
            "gpu-operator-pre", "gpu-operator", "pre", "gpu-operator", needs=("cert-manager", "gcp-driver-installer"),
            objects=(kube("gpu-operator", "pre", {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "params", "namespace": "gpu-operator"},
                "data": {"nvidia.conf": "options nvidia NVreg_GrdmaPciTopoCheckOverride=1\n", "tag": "72225e2", "y": "y"}}),),
            gate=Gate("gpu-operator-pre", ("gcp-driver-installer",), (GateCheck(INSTALLER, "gcp-driver-installer", 1800, "fail", "always"),)),
        ),
        release(
            "gpu-operator", "gpu-operator", "main", "gpu-operator", needs=("gpu-operator-pre",),
            chart=Chart(nvidia, "gpu-operator", "v26.7.1"), values={"driver": {"version": "580.173.02", "enabled": False}},
            drift=(Drift("apiextensions.k8s.io", "CustomResourceDefinition", "computedomains.resource.nvidia.com", None, ("/spec",), "two owners"),),
            crd_upgrade="skip",
        ),
        release(
            "kai-scheduler", "kai-scheduler", "main", "kai-scheduler", needs=("gpu-operator",),
            chart=Chart("oci://ghcr.io/kai-scheduler/kai-scheduler", "kai-scheduler", "v0.16.9"),
            values={"global": {"tolerations": [{"operator": "Exists"}]}}, install=Install(600, "none", False),
        ),
        release(
            "network-operator", "network-operator", "main", "nvidia-network-operator", needs=("cert-manager",),
            chart=Chart(nvidia, "network-operator", "26.7.0"), values={"nfd": {"enabled": False}},
            crds_before=("sriovibnetworks.sriovnetwork.openshift.io",), teardown_before=(GONE,),
        ),
        release(
            "network-operator-post", "network-operator", "post", "nvidia-network-operator", needs=("network-operator",),
            objects=(kube("network-operator", "post", {
                "apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"},
                "spec": {"nvIpam": {"image": "nvidia-k8s-ipam", "repository": "nvcr.io/nvidia/mellanox", "version": "network-operator-v26.7.0"}}}),),
            teardown_before=(STATES,),
            stuck=(Stuck("maintenance.nvidia.com", "NodeMaintenance", None, "maintenance.nvidia.com/finalizer",
                         ("kubectl get nodemaintenances.maintenance.nvidia.com -A",)),),
        ),
        release(
            "sriov-ib-networks", "sriov-ib-networks", "main", "nvidia-network-operator", needs=("network-operator-post",),
            objects=(kube("sriov-ib-networks", "main", {
                "apiVersion": "nv-ipam.nvidia.com/v1alpha1", "kind": "IPPool",
                "metadata": {"name": "nv-ipam-pool-rail-0", "namespace": "nvidia-network-operator"},
                "spec": {"subnet": "10.255.0.0/22", "perNodeBlockSize": 50, "gateway": "10.255.0.1"}}),),
            gate=Gate("sriov-ib-networks", ("network-operator-post",), (
                GateCheck(IPPOOL_CRD, "network-operator", 2700, "fail", "always"),
                GateCheck(POLICY_READY, "network-operator", 2700, "fail", "always"))),
        ),
    )  # fmt: skip
    edges = (
        Edge("cert-manager", "gpu-operator-pre", "applied", (Reason("declared", "gpu-operator needs cert-manager"),)),
        Edge("gcp-driver-installer", "gpu-operator-pre", "ready", (Reason("declared", "the driver must be on the node"),)),
        Edge("gpu-operator-pre", "gpu-operator", "applied", (Reason("piece", "gpu-operator follows its own pre piece"),)),
        Edge("gpu-operator", "kai-scheduler", "applied", (Reason("declared", "GPU labels first"),)),
        Edge("cert-manager", "network-operator", "applied", (Reason("declared", "network-operator needs cert-manager"),)),
        Edge("network-operator", "network-operator-post", "applied", (Reason("piece", "post follows main"),)),
        Edge("network-operator-post", "sriov-ib-networks", "ready", (
            Reason("declared", "sriov-ib-networks needs network-operator"),
            Reason("runtime-api", "IPPool exists only once NicClusterPolicy asks for nvIpam"))),
    )  # fmt: skip
    owned: dict[str, list[str]] = {}
    for r in releases:
        owned.setdefault(r.namespace, []).append(r.component)
    return Plan(
        recipe=recipe(**recipe_changes),
        namespaces=tuple(
            Namespace(n, {"pod-security.kubernetes.io/enforce": "privileged"} if n == "gpu-operator" else {}, tuple(dict.fromkeys(c)))
            for n, c in sorted(owned.items())
            if n != "kube-system"
        ),
        components=(
            ComponentPlan("cert-manager", ("cert-manager",), (check("deployment", namespace="cert-manager", name="cert-manager"),), 0),
            ComponentPlan("gcp-driver-installer", ("gcp-driver-installer",), (INSTALLER,), 0),
            ComponentPlan("old-thing", ("old-thing",), (), 0),
            ComponentPlan("gpu-operator", ("gpu-operator-pre", "gpu-operator"), (), 1),
            ComponentPlan("kai-scheduler", ("kai-scheduler",), (), 2),
            ComponentPlan("network-operator", ("network-operator", "network-operator-post"), (POLICY_READY,), 1),
            ComponentPlan("sriov-ib-networks", ("sriov-ib-networks",), (IPPOOL_CRD,), 2),
        ),
        releases=releases,
        edges=edges,
        preflight=(
            PreflightCheck("version", "K8s.server.version", ">= 1.34", "error", "Kubernetes 1.34 or newer"),
            PreflightCheck("label", "NodeTopology.gpu-nodes.label", "gke-no-default-nvidia-gpu-device-plugin=true", "error", "label the pool"),
            PreflightCheck("singleton", "NicClusterPolicy", "nic-cluster-policy", "error", "a second Network Operator",
                           singleton=Singleton("mellanox.com", "NicClusterPolicy", "nic-cluster-policy")),
            PreflightCheck("unchecked", "OS.sysctl./proc/sys/kernel/osrelease", ">= 6.8", "warning", "kernel"),
        ),
        examples=(("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n"),),
        satisfied=("prometheus-adapter needs kube-prometheus-stack, which is disabled: counts as satisfied",),
    )  # fmt: skip
