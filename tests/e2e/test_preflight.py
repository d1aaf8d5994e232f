"""The preflight on a real API server: it refuses, with exit status 4, before anything is sent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.api import ApiError, Object
from tests.e2e.charts import crd_of
from tests.e2e.cluster import GKE, NVKE, Cluster, cluster
from tests.e2e.front import claiming
from tests.e2e.simulator import CRDS

DEPLOYER = "deploy.sh"


@pytest.fixture(scope="module")
def nvke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("preflight-nvke"), NVKE, "helm4") as made:
        yield made


def test_old_kubernetes(nvke: Cluster, tmp_path: Path) -> None:
    """The preflight refuses Kubernetes 1.33 (a server in front of this one that says so)"""
    with claiming(nvke.plane, "1.33.7", tmp_path) as config:
        nvke.deploy(KUBECONFIG=str(config)).expect(4, "FAIL  K8s.server.version >= 1.34: v1.33.7", "1 to settle first")
    with claiming(nvke.plane, "1.34.0", tmp_path) as config:
        nvke.run("preflight.sh", KUBECONFIG=str(config)).expect(0, "ok    K8s.server.version >= 1.34: v1.34.0")
    assert not nvke.witness().deployer()


def test_foreign_operator(nvke: Cluster) -> None:
    """The preflight refuses a foreign Network Operator"""
    crds = Path(os.environ["BUNDLEC_CRDS"])
    nvke.api.create(CRDS, crd_of(crds, "nicclusterpolicies.mellanox.com", "NicClusterPolicy", "Cluster", ("v1alpha1",)))
    policy: Object = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "theirs"},
        "spec": {},
    }
    for _ in range(50):
        try:
            nvke.api.create("/apis/mellanox.com/v1alpha1/nicclusterpolicies", policy)
            break
        except ApiError:
            time.sleep(0.2)
    nvke.deploy().expect(4, "network-operator must be the only owner", "theirs", "1 to settle first")
    assert not nvke.witness().deployer()


def test_missing_network(tmp_path: Path) -> None:
    """The preflight refuses a missing Network, and GPU pools that did not opt out of the service's device plugin"""
    with cluster(tmp_path / "c", GKE, "helm3") as gke:
        gke.run("preflight.sh").expect(0)
        gke.api.delete("/apis/networking.gke.io/v1/networks/rdma-2")
        run = gke.deploy().expect(4, "rdma-2", "1 to settle first")
        assert not [line for line in run.output.splitlines() if "FAIL" in line and "rdma-2" not in line], run.output
        gke.kubectl("label", "nodes", "--all", "gke-no-default-nvidia-gpu-device-plugin-")
        gke.deploy().expect(4, "gpuStack=gke-default")
        assert not [e for e in gke.witness().deployer() if e["objectRef"]["resource"] != "nodes"]
