"""Every rule of the catalog can fail: each is broken here, by what an operator sets or by what an author changes.

A rule whose id no row here and no other test names fails the last test, so that none is there for show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler import predicates
from compiler.errors import UserError
from compiler.facts import facts
from compiler.load import load
from compiler.model import Assertion, Catalog, Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve, strvals
from compiler.source import parse_path
from tests.conftest import ROOT

GKE, INFERENCE, DYNAMO = "gb200-gke-cos-training", "gb200-gke-cos-inference", "gb200-gke-cos-inference-dynamo"
INSTALLER, KUBEFLOW = f"{GKE}-bundle-installer", f"{GKE}-kubeflow"
SLURM, ACCOUNTED = f"{GKE}-slurm", f"{GKE}-slurm-accounting"
NVKE, OKE, BARE = "gb200-nvke-ubuntu-training", "gb200-oke-training", "gb300-generic-ubuntu-training"
EKS, AKS, KIND, TCPXO = (
    "h100-eks-ubuntu-training",
    "h100-aks-ubuntu-training",
    "h100-kind-training",
    "h100-gke-cos-training-kubeflow",
)

ENV = '[{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}, {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"}'
AMD64_ONLY = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:e226275da6c45816959fe43cde907ee9a85c6a2aa8a429418a4cadef8ecdb86a"
)
RAIL = '{"name": "rail-0", "index": 0, "rootDevice": "0000:03:00.0"}'
TRAINER = "kubeflow-trainer"

# (owner, rule) -> (bundle, what is set: COMPONENT:PATH=VALUE, or =JSON when it begins with a bracket or a brace)
SET: Mapping[tuple[str, str], tuple[str, str]] = {
    ("dynamo-platform", "grove-external"): (DYNAMO, "dynamo-platform:global.grove.install=true"),
    ("dynamo-platform", "kai-external"): (DYNAMO, "dynamo-platform:global.kai-scheduler.install=true"),
    ("gcp-driver-installer", "one-driver-installer"): (INSTALLER, "gpu-operator:driver.enabled=true"),
    ("gcp-driver-installer", "partition-image-arch"): (
        INSTALLER,
        f"gcp-driver-installer:partitionGpuImage={AMD64_ONLY}",
    ),
    ("gpu-operator", "no-operator-driver-on-cos"): (GKE, "gpu-operator:driver.enabled=true"),
    ("gpu-operator", "validator-env"): (NVKE, "gpu-operator:validator.plugin.env=[]"),
    ("gpu-operator", "exporter-config"): (NVKE, "gpu-operator:dcgmExporter.config.data=null"),
    ("grove", "crds-installed"): (DYNAMO, "grove:crdInstaller.enabled=false"),
    ("grove", "gang-scheduler"): (DYNAMO, "grove:config.scheduler.profiles=[]"),
    ("kube-prometheus-stack", "a4x-storage-class"): (
        GKE,
        "kube-prometheus-stack:prometheus.prometheusSpec.retention=1d",
    ),
    ("network-operator", "drain-handoff"): (
        NVKE,
        "network-operator:sriov-network-operator.operator.externalDrainer.enabled=false",
    ),
    ("network-operator", "drainer-deployed"): (
        NVKE,
        "network-operator:maintenance-operator-chart.operatorConfig.deploy=false",
    ),
    ("network-operator", "sriov-config"): (
        NVKE,
        "network-operator:sriov-network-operator.sriovOperatorConfig.deploy=false",
    ),
    ("network-operator", "one-nfd"): (NVKE, "network-operator:nfd.enabled=true"),
    ("network-operator", "device-plugin-config"): (
        OKE,
        "network-operator:nicClusterPolicy.operands.rdmaSharedDevicePlugin.config=null",
    ),
    ("network-operator", "policy-affinity"): (NVKE, "network-operator:nicClusterPolicy.nodeSelectorTerms=[]"),
    ("nodewright-customizations", "tuning-profile"): (GKE, "nodewright-customizations:intent=gaming"),
    ("nodewright-customizations", "tuned-profile"): (EKS, "nodewright-customizations:intent=gaming"),
    ("nodewright-operator", "cos-writable-root"): (
        GKE,
        "nodewright-operator:controllerManager.manager.env.copyDirRoot=/opt",
    ),
    ("nodewright-operator", "cos-reapply"): (
        GKE,
        "nodewright-operator:controllerManager.manager.env.reapplyOnReboot=no",
    ),
    ("nvidia-dra-driver-gpu", "driver-root-gke"): (GKE, "nvidia-dra-driver-gpu:nvidiaDriverRoot=/elsewhere"),
    ("nvidia-dra-driver-gpu", "one-gpu-advertiser"): (NVKE, "nvidia-dra-driver-gpu:resources.gpus.enabled=true"),
    ("nvsentinel", "driver-label-detectable"): (KIND, "nvsentinel:labeler.assumeDriverInstalled=false"),
    ("rdma-modules", "taint-switch"): (NVKE, "rdma-modules:autoTaintNewNodes=perhaps"),
    ("rdma-modules", "nfd-reaches-gated-nodes"): (NVKE, "nfd:worker.tolerations=[]"),
    ("slinky-slurm", "gpu-gres"): (SLURM, "slinky-slurm:controller.extraConfMap.GresTypes=tape"),
    ("slinky-slurm", "shared-class"): (SLURM, "slinky-slurm:storage.home.storageClassName="),
    ("slinky-slurm", "a4x-storage-class"): (
        SLURM,
        "slinky-slurm:controller.podSpec.nodeSelector.kubernetes\\.io/arch=arm64",
    ),
    ("slurm-accounting-mariadb", "one-server"): (ACCOUNTED, "slurm-accounting-mariadb:mariadb.replicas=2"),
    ("sriov-ib-networks", "rail-root-device"): (
        NVKE,
        f"sriov-ib-networks:rails=[{RAIL.replace('0000:03:00.0', 'mlx5_0')}]",
    ),
    ("gb200-gke-cos-training-slurm", "bundled-database"): (ACCOUNTED, "slurm-accounting-mariadb:enabled=false"),
    ("sriov-ib-networks", "vfs-positive"): (NVKE, "sriov-ib-networks:numVfs=0"),
    ("aks", "no-host-mofed"): (AKS, "gpu-operator:driver.rdma.useHostMofed=true"),
    ("gb200-gke-cos-inference", "dra-present"): (INFERENCE, "nvidia-dra-driver-gpu:enabled=false"),
    ("gb200-gke-cos-training", "dra-present"): (GKE, "nvidia-dra-driver-gpu:enabled=false"),
    ("gb300-generic-ubuntu-training", "dra-present"): (BARE, "nvidia-dra-driver-gpu:enabled=false"),
    ("gb200-oke-training", "only-shared-hca"): (
        OKE,
        'network-operator:nicClusterPolicy.operands.nvIpam={"image": "x"}',
    ),
    ("gb200-nvke-ubuntu-training", "four-rails"): (NVKE, f"sriov-ib-networks:rails=[{RAIL}]"),
    ("gb200-nvke-ubuntu-training", "no-bluefield"): (NVKE, f"sriov-ib-networks:rails=[{RAIL.replace('0000', '0006')}]"),
    ("gb300-generic-ubuntu-training", "operator-owns-the-node"): (BARE, "gpu-operator:gdrcopy.enabled=false"),
    ("gb300-generic-ubuntu-training", "no-rdma"): (BARE, "gpu-operator:driver.rdma.enabled=true"),
    ("gb300-generic-ubuntu-training", "no-second-hca-plugin"): (BARE, "gpu-operator:devicePlugin.env=[]"),
    ("nvke", "no-rdma"): (NVKE, "gpu-operator:driver.rdma.enabled=false"),
    ("nvke", "grdma-override-read"): (NVKE, "gpu-operator:driver.kernelModuleConfig.name=mine"),
    ("nvke", "driver-owner"): (NVKE, "gpu-operator:driver.enabled=false"),
    ("nvke", "containerd-file"): (NVKE, "gpu-operator:toolkit.env=[]"),
    ("nvke", "no-unprivileged-env"): (NVKE, "gpu-operator:toolkit.env=[]"),
    ("nvke", "no-volume-mounts"): (
        NVKE,
        f'gpu-operator:toolkit.env={ENV}, {{"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", "value": "true"}}]',
    ),
    ("nvke", "cni-plugins"): (NVKE, "network-operator:nicClusterPolicy.secondaryNetwork.cniPlugins=null"),
    ("nvke", "no-shared-hca"): (
        NVKE,
        'network-operator:nicClusterPolicy.operands.rdmaSharedDevicePlugin={"image": "x", "config": {"configList": []}}',
    ),
    ("nvke", "no-second-vf-plugin"): (
        NVKE,
        'network-operator:nicClusterPolicy.operands.sriovDevicePlugin={"image": "x", "config": {"resourceList": []}}',
    ),
    ("nvke", "policy-nodes"): (
        NVKE,
        'network-operator:nicClusterPolicy.nodeSelectorTerms=[{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]',
    ),
    ("nvke", "ippool-range"): (NVKE, "sriov-ib-networks:ipam.prefix=192.168"),
    ("nvke", "ippool-nodes"): (
        NVKE,
        "sriov-ib-networks:nodeSelector.feature\\.node\\.kubernetes\\.io/rdma\\.available=null,nodeSelector.a=b",
    ),
    ("nvke", "vf-nodes"): (
        NVKE,
        "sriov-ib-networks:nodeSelector.feature\\.node\\.kubernetes\\.io/rdma\\.available=maybe",
    ),
    ("nvke", "vf-count"): (NVKE, "sriov-ib-networks:numVfs=17"),
    ("nvke", "mellanox-plugin-off"): (
        NVKE,
        "network-operator:sriov-network-operator.sriovOperatorConfig.disablePlugins=[]",
    ),
    ("nvke", "one-node-at-a-time"): (
        NVKE,
        "network-operator:maintenance-operator-chart.operatorConfig.maxUnavailable=2",
    ),
}

# (owner, rule) -> (bundle, component, its version): versions that move in lockstep, and floors.
VERSION: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("agentgateway", "lockstep"): (INFERENCE, "agentgateway-crds", "v1.4.0"),
    ("mariadb-operator", "lockstep"): (ACCOUNTED, "mariadb-operator-crds", "26.5.0"),
    ("slurm-accounting-mariadb", "lockstep"): (ACCOUNTED, "mariadb-operator", "26.5.0"),
    ("slinky-slurm-operator", "lockstep"): (SLURM, "slinky-slurm-operator-crds", "1.1.0"),
    ("slinky-slurm", "lockstep"): (SLURM, "slinky-slurm-operator", "1.1.0"),
    ("nvke", "dra-floor"): (NVKE, "nvidia-dra-driver-gpu", "0.5.0"),
}

# (owner, rule) -> (bundle, component, manifest, text of it, what an author writes instead)
TEMPLATE: Mapping[tuple[str, str], tuple[str, str, str, str, str]] = {
    ("network-operator", "policy-name"): (
        NVKE,
        "network-operator",
        "nic-cluster-policy",
        "name: nic-cluster-policy",
        "name: mine",
    ),
    ("nodewright-customizations", "no-reboot"): (
        GKE,
        "nodewright-customizations",
        "tuning-gke",
        "type: service",
        "type: reboot",
    ),
    ("rdma-modules", "no-interrupt"): (
        NVKE,
        "rdma-modules",
        "rdma-modules",
        "    rdma-modules:\n",
        "    rdma-modules:\n      interrupt: {type: reboot}\n",
    ),
    ("rdma-modules", "control-plane-excluded"): (NVKE, "rdma-modules", "rdma-modules", "DoesNotExist", "Exists"),
    ("gb200-gke-cos-inference-dynamo", "a4x-provisioner"): (
        DYNAMO,
        "dynamo-platform",
        "a4x-storage-class",
        "pd.csi.storage.gke.io",
        "filestore.csi.storage.gke.io",
    ),
    ("gb200-gke-cos-training-kubeflow", "rdma-runtime-node"): (
        KUBEFLOW,
        TRAINER,
        "torch-distributed-rdma",
        '"4"',
        '"2"',
    ),
    ("gb200-gke-cos-training-kubeflow", "rdma-runtime-network"): (
        KUBEFLOW,
        TRAINER,
        "torch-distributed-rdma",
        ", 'rdma-3'",
        "",
    ),
    ("gb200-gke-cos-training-kubeflow", "rdma-runtime-nccl"): (
        KUBEFLOW,
        TRAINER,
        "torch-distributed-rdma",
        "gIB",
        "Socket",
    ),
    ("h100-gke-cos-training-kubeflow", "tcpxo-runtime-node"): (TCPXO, TRAINER, "torch-distributed-tcpxo", '"8"', '"4"'),
    ("h100-gke-cos-training-kubeflow", "tcpxo-runtime-network"): (
        TCPXO,
        TRAINER,
        "torch-distributed-tcpxo",
        ", nics.eth8]",
        "]",
    ),
    ("nvke", "grdma-override"): (NVKE, "gpu-operator", "kernel-module-params", "CheckOverride=1", "CheckOverride=0"),
    ("nvke", "vf-infiniband"): (NVKE, "sriov-ib-networks", "rails", "linkType: IB", "linkType: ETH"),
}

# (owner, rule) -> (bundle, what is otherwise than there). Settings that a profile owns or a path that is locked cannot be
# set; who changes the profile or the component's own values meets the rule.
OTHERWISE: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]] = {
    ("gcp-driver-installer", "cos-only"): (INSTALLER, {"os": "ubuntu"}),
    ("gke-gb200-rdma", "gb200-on-gke"): (GKE, {"accelerator": "h100"}),
    ("gke-nccl-tcpxo", "h100-on-gke"): (TCPXO, {"accelerator": "gb200"}),
    ("kube-prometheus-stack", "one-owner-of-the-monitoring-crds"): (NVKE, {"kube-prometheus-stack:crds.enabled": True}),
    ("mariadb-operator", "crds-owner"): (ACCOUNTED, {"mariadb-operator:crds.enabled": True}),
    ("slinky-slurm-operator", "crds-owner"): (SLURM, {"slinky-slurm-operator:crds.enabled": True}),
    ("aks", "one-owner"): (AKS, {"gpu-operator:toolkit.enabled": True}),
    ("oke-ol", "one-owner"): (OKE, {"gpu-operator:toolkit.enabled": True}),
    ("gb200-oke-training", "dra-present"): (OKE, {"nvidia-dra-driver-gpu:enabled": None}),  # None: the component is off
    ("gke-cos", "one-advertiser"): (GKE, {"gpu-operator:devicePlugin.enabled": True}),
}


@pytest.fixture(scope="module")
def real() -> Catalog:
    return load(ROOT)


def broken(catalog: Catalog, bundle: str, flags: Flags | None = None) -> set[str]:
    """The rules that a bundle is told of, as `severity id`."""
    try:
        told = plan(resolve(catalog, entry_for(catalog, bundle), flags or Flags())).warnings
    except UserError as error:
        told = error.diagnostics
    return {f"{d.severity} {d.message.rpartition('(rule `')[2].rstrip('`)')}" for d in told if d.code == "BC3006"}


def rule_of(catalog: Catalog, owner: str, rule: str) -> Assertion:
    of = catalog.components[owner].rules if owner in catalog.components else catalog.overlays[owner].assertions
    (found,) = [assertion for assertion in of if assertion.id == rule]
    return found


def with_(catalog: Catalog, name: str, **changes: Any) -> Catalog:
    return replace(catalog, components={**catalog.components, name: replace(catalog.components[name], **changes)})


@pytest.mark.parametrize("key", SET, ids=":".join)
def test_what_an_operator_sets(real: Catalog, key: tuple[str, str]) -> None:
    bundle, text = SET[key]
    component, _, assigned = text.partition(":")
    parse = strvals.parse_json if assigned.partition("=")[2].startswith(("[", "{")) else strvals.parse
    given = Flags(set=tuple((component, path, value) for path, value in parse(assigned)))
    severity = rule_of(real, *key).severity
    assert f"{severity} {key[1]}" in broken(real, bundle, given)
    if severity == "error":
        assert f"{severity} {key[1]}" not in broken(real, bundle)


@pytest.mark.parametrize("key", VERSION, ids=":".join)
def test_a_version_that_moves_alone(real: Catalog, key: tuple[str, str]) -> None:
    bundle, component, version = VERSION[key]
    chart = real.components[component].chart
    assert chart
    moved = with_(real, component, chart=replace(chart, version=version))
    assert f"error {key[1]}" in broken(moved, bundle)


@pytest.mark.parametrize("key", TEMPLATE, ids=":".join)
def test_what_an_author_writes_into_a_manifest(real: Catalog, key: tuple[str, str]) -> None:
    bundle, component, manifest, text, instead = TEMPLATE[key]
    sources = real.components[component].manifest_sources
    (file,) = [name for name in sources if name.rpartition("/")[2].partition(".")[0] == manifest]
    assert text in sources[file].text
    edited = replace(sources[file], text=sources[file].text.replace(text, instead))
    changed = with_(real, component, manifest_sources={**sources, file: edited})
    assert f"error {key[1]}" in broken(changed, bundle)
    assert f"error {key[1]}" not in broken(real, bundle)


@pytest.mark.parametrize("key", OTHERWISE, ids=":".join)
def test_what_no_operator_can_set(real: Catalog, key: tuple[str, str]) -> None:
    bundle, changes = OTHERWISE[key]
    rule = rule_of(real, *key)
    known = facts(resolve(real, entry_for(real, bundle), Flags()))
    assert predicates.evaluate(rule.that, known)
    for where, value in changes.items():
        component, colon, path = where.partition(":")
        if not colon:
            known = replace(known, recipe={**known.recipe, where: value})
            continue
        of = known.components[component]
        if value is None:
            known = replace(known, components={**known.components, component: replace(of, enabled=False)})
            continue
        known = replace(
            known, components={**known.components, component: replace(of, values=_set(of.values, path, value))}
        )
    assert rule.when is None or predicates.evaluate(rule.when, known)
    assert not predicates.evaluate(rule.that, known)


def _set(values: Any, path: str, value: Any) -> Any:
    step, *rest = parse_path(path)
    inner = _set(values.get(step, {}), ".".join(map(str, rest)), value) if rest else value
    return {**values, step: inner}


def test_the_constraint_that_names_the_class_is_there(real: Catalog) -> None:
    """model-cache-class-named: the constraint is data of the overlay, and a child that clears it is told."""
    rule = rule_of(real, DYNAMO, "model-cache-class-named")
    known = facts(resolve(real, entry_for(real, DYNAMO), Flags()))
    assert predicates.evaluate(rule.that, known)
    assert not predicates.evaluate(rule.that, replace(known, validation={}))


def test_every_rule_can_fail(real: Catalog) -> None:
    rows = {*SET, *VERSION, *TEMPLATE, *OTHERWISE}
    here = Path(__file__)
    others = "".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py") if p != here)
    rules = {(c.name, r.id) for c in real.components.values() for r in c.rules}
    rules |= {(o.name, a.id) for o in real.overlays.values() for a in o.assertions}
    assert rows <= rules
    untold = {f"{owner}:{rule}" for owner, rule in rules - rows if rule not in others}
    assert untold == {f"{DYNAMO}:model-cache-class-named"}
