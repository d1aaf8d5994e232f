"""deploy.sh when something goes wrong: each scenario on a cluster of its own, with one Helm or the other."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.e2e.api import Object
from tests.e2e.cluster import GKE, NVKE, NVKE_LABELS, Cluster, cluster, kill
from tests.e2e.simulator import CRDS, add_nodes, node
from tests.e2e.witness import describe, reference

DEPLOYER = "deploy.sh"
NETWORK = ["cert-manager", "nfd", "nodewright-operator", "rdma-modules", "network-operator", "sriov-ib-networks"]
ONLY = [word for name in NETWORK for word in ("--only", name)]


HELM3 = pytest.mark.parametrize("helm", ["helm3"])
HELM4 = pytest.mark.parametrize("helm", ["helm4"])
BOTH = pytest.mark.parametrize("helm", ["helm3", "helm4"])


@pytest.fixture
def nvke(helm: str, tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "c", NVKE, helm) as made:
        yield made


@HELM3
def test_late_crd(nvke: Cluster) -> None:
    """The IPPool CRD comes 60 s late: nothing of its kind is sent before, and the run goes on."""
    nvke.simulator.faults.crd = 60
    nvke.deploy(*ONLY).expect(0, "network-operator/crd-ippools: holds")
    witness = nvke.witness()
    gate = nvke.bundle.plan.release("sriov-ib-networks").gate
    assert gate is not None
    first = witness.first_write(nvke.bundle.plan.release("sriov-ib-networks"))
    assert first
    for check in gate.checks:
        held = witness.held(check.check)
        assert "" < (held or "") < first, (check.check.id, held, first)


@HELM4
def test_dead_operator(nvke: Cluster) -> None:
    """The operator is dead: the gate times out with a diagnosis, exit status 3; a rerun heals."""
    nvke.simulator.faults.dead = {"network-operator"}
    run = nvke.deploy(*ONLY, GATE_TIMEOUT_SCALE="0.03").expect(
        3,
        "NOT met within 36s",
        "object  nicclusterpolicies",
        "nic-cluster-policy",
        "next    kubectl",
        "stopped at sriov-ib-networks; to go on: ./deploy.sh --only cert-manager --only nfd",
    )
    assert "  status  " in run.output
    assert "3 a gate" in (nvke.path / "README.md").read_text()  # what the exit status means
    written = [e for e in nvke.witness().deployer() if reference(e)[0] == "nv-ipam.nvidia.com"]
    assert not written, describe(written)
    nvke.simulator.faults.dead = set()
    nvke.deploy(*ONLY).expect(0, "1 of 7 releases changed")


@HELM3
def test_no_gpu_node(helm: str, tmp_path: Path) -> None:
    """No GPU node: the preflight refuses; past it, the gate says that no node matches."""
    with cluster(tmp_path / "c", GKE, helm, nodes=0) as gke:
        gke.deploy().expect(4, "gke-no-default-nvidia-gpu-device-plugin")
        assert not gke.witness().deployer()
        run = gke.deploy(
            "--skip-preflight",
            "--only",
            "gcp-driver-installer",
            "--only",
            "prometheus-operator-crds",
            "--only",
            "gpu-operator",
            GATE_TIMEOUT_SCALE="0.01",
        )
        run.expect(
            3,
            "0 nodes match",
            "is the pool scaled to zero?",
            "stopped at gpu-operator-pre; to go on: ./deploy.sh --only",
        )


@HELM4
def test_no_node_to_prepare(helm: str, tmp_path: Path) -> None:
    """NodeWright says `complete` for zero nodes: the gate asks for a node that has the modules, and holds"""
    with cluster(tmp_path / "c", NVKE, helm, nodes=0) as nvke:
        add_nodes(nvke.api, [node("system-0", {})])
        run = nvke.deploy("--skip-preflight", *ONLY, GATE_TIMEOUT_SCALE="0.03")
        run.expect(3, "rdma-modules/modules-complete: holds", "rdma-modules/rdma-nodes: NOT met within 36s")
        run.expect(
            3, "feature.node.kubernetes.io/rdma.available=true", "next    kubectl", "stopped at network-operator; "
        )
        status = nvke.kubectl("get", "nodewright", "rdma-modules", "-o", "jsonpath={.status.status}")
        assert status == "complete"
        assert "network-operator" not in nvke.statuses()
        add_nodes(nvke.api, [node("gpu-0", NVKE_LABELS)])
        nvke.deploy(*ONLY).expect(0, "rdma-modules/rdma-nodes: holds", "3 of 7 releases changed")


@HELM4
def test_killed(nvke: Cluster) -> None:
    """SIGKILL at ten random moments, each followed by a rerun; the last one converges"""
    chance = random.Random(20261130)
    seen: set[str] = set()
    with ExitStack() as orphans:
        for number in range(10):
            # Without --force, the later ones would find nothing to do. Half of them die at a random time, the others
            # while Helm is at a random release: how fast the machine is decides where a time falls.
            forced = number % 2 == 1
            before = nvke.pending()
            process = nvke.start(["deploy.sh", *ONLY, *(["--force"] if forced else [])])
            orphans.callback(process.communicate)
            if forced:
                release = chance.choice(NETWORK)
                while process.poll() is None and release not in {name for name, _ in nvke.pending() - before}:
                    pass
            else:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=chance.uniform(1, 16))
            if number % 3 == 2:
                process.kill()  # the script alone: its Helm goes on beside the next run
            else:
                kill(process)
            process.wait()
            seen |= set(nvke.statuses().values())
        assert any(status.startswith("pending-") for status in seen), f"none was killed at work: {seen}"
    nvke.deploy(*ONLY).expect(0)
    statuses = nvke.statuses()
    assert set(statuses.values()) == {"deployed"}, statuses
    assert len(statuses) == 7
    nvke.deploy(*ONLY).expect(0, "0 of 7 releases changed")
    # Nothing was uninstalled to get there.
    removed = [
        e for e in nvke.witness().deployer()
        if e["verb"] == "delete" and reference(e)[1] in ("customresourcedefinitions", "namespaces", "deployments")
    ]  # fmt: skip
    assert not removed, describe(removed)


@HELM3
def test_restarted_server(nvke: Cluster) -> None:
    """The API server is restarted half way: the run goes on, or a rerun heals it."""
    nvke.simulator.faults.crd = 20
    process = nvke.start(["deploy.sh", *ONLY])
    restarted = False
    while process.poll() is None and not restarted:
        if nvke.statuses().get("network-operator-post") == "deployed":
            nvke.plane.restart_apiserver()
            restarted = True
        time.sleep(0.5)
    output, _ = process.communicate()
    assert restarted, output
    # It is the gate that runs while the server is away: it must outlive that.
    assert process.returncode == 0, output
    nvke.deploy(*ONLY).expect(0, "0 of 7 releases changed")


@BOTH
def test_pending_install(nvke: Cluster) -> None:
    """A release left pending-install by a SIGKILL is installed again, without uninstalling."""
    nvke.simulator.faults.unready = {"nfd-master"}
    process = nvke.start(["deploy.sh", "--only", "nfd", "--skip-preflight"])
    try:
        deadline = time.monotonic() + 120
        while nvke.statuses().get("nfd") != "pending-install" or not _exists(nvke, "nfd-master"):
            assert process.poll() is None
            assert time.monotonic() < deadline
    finally:
        kill(process)
        process.communicate()
    before = _uid(nvke, "nodefeatures.nfd.k8s-sigs.io")
    nvke.simulator.faults.unready = set()
    nvke.deploy("--only", "nfd").expect(0, "left pending-install", "installing again")
    assert nvke.statuses() == {"nfd": "deployed"}
    assert _uid(nvke, "nodefeatures.nfd.k8s-sigs.io") == before


@HELM3
def test_namespaces(nvke: Cluster) -> None:
    """A namespace that existed keeps its labels; one that is terminating is waited for."""
    nvke.api.create("/api/v1/namespaces", {"metadata": {"name": "node-feature-discovery", "labels": {"team": "x"}}})
    nvke.api.create("/api/v1/namespaces", {"metadata": {"name": "gpu-operator"}})
    held: Object = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    nvke.api.create("/api/v1/namespaces/gpu-operator/configmaps", held)
    nvke.api.delete("/api/v1/namespaces/gpu-operator")
    path = "/api/v1/namespaces/gpu-operator/configmaps/held"
    threading.Timer(
        8,
        lambda: nvke.kubectl(
            "-n", "gpu-operator", "patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
        ),
    ).start()
    nvke.deploy("--only", "nfd").expect(0, "waiting for the deletion of gpu-operator")
    assert nvke.api.get(path) is None
    labels = nvke.api.request("GET", "/api/v1/namespaces/node-feature-discovery")["metadata"]["labels"]
    assert labels["team"] == "x"
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def _exists(nvke: Cluster, deployment: str) -> bool:
    return nvke.api.get(f"/apis/apps/v1/namespaces/node-feature-discovery/deployments/{deployment}") is not None


def _uid(nvke: Cluster, crd: str) -> str:
    return str(nvke.api.request("GET", f"{CRDS}/{crd}")["metadata"]["uid"])
