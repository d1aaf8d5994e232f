"""deploy.sh on the GKE bundle with `gpuStack: bundle-installer`: one cluster for each Helm, one scenario after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from compiler.model import Flags
from compiler.pipeline import compile_bundle, read_catalog, write_bundle
from tests.e2e.cluster import GKE, ROOT, Cluster, cluster
from tests.e2e.witness import describe

DEPLOYER = "deploy.sh"
DRIVER = "/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-driver-installer"
OPTED_OUT = "gke-no-default-nvidia-gpu-device-plugin"


@pytest.fixture(scope="module", params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def gke(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp(f"gke-{helm}"), GKE, helm) as made:
        yield made


def test_empty_cluster(gke: Cluster) -> None:
    """GKE bundle (bundle-installer) on an empty cluster: every edge holds, no gpu-operator object before the driver"""
    gke.simulator.faults.unready = {"nvidia-driver-installer"}
    # The driver needs its time; Helm does not wait for it, the gate of gpu-operator does.
    timer = threading.Timer(40, gke.simulator.faults.unready.clear)
    timer.start()
    gke.deploy().expect(0, "15 of 15 releases changed")
    timer.cancel()
    witness = gke.witness()
    assert witness.violations() == []
    early = witness.early(gke.bundle.plan.release("gpu-operator-pre"), "daemonset")
    assert not early, describe(early)
    assert gke.all_deployed(), gke.statuses()
    assert not gke.simulator.errors, gke.simulator.errors[:5]


def test_profile(gke: Cluster) -> None:
    """The profile is switched, and back: what only one of them holds goes and comes, and nothing waits for it"""
    catalog = read_catalog(ROOT)
    other = compile_bundle(
        catalog, replace(catalog.workspace.bundles[GKE], profile={"gpuStack": "gke-default"}), Flags()
    )
    assert gke.api.get(DRIVER) is not None
    gke.deploy("--dry-run").expect(0, "dry run: 0 of 15 releases would change")
    gke.kubectl("label", "nodes", "--all", f"{OPTED_OUT}-")
    write_bundle(other, gke.path)
    try:
        gke.deploy("--prune").expect(0)
        assert gke.api.get(DRIVER) is None
        assert set(gke.statuses().values()) == {"deployed"}
        gke.deploy("--prune").expect(0, "0 of 15 releases changed")
    finally:
        write_bundle(gke.bundle, gke.path)
        gke.kubectl("label", "nodes", "--all", f"{OPTED_OUT}=true")
    gke.mark()
    gke.deploy("--prune").expect(0, "gcp-driver-installer/rollout: holds")
    assert gke.api.get(DRIVER) is not None
    assert gke.all_deployed(), gke.statuses()


def test_undeploy(gke: Cluster, helm: str) -> None:
    """undeploy.sh (Helm 4: with --purge at once): what the service provides stays"""
    gke.undeploy(*(["--purge"] if helm == "helm4" else [])).expect(0)
    assert set(gke.statuses()) == ({r.id for r in gke.bundle.plan.releases if r.keep} if helm == "helm3" else set())
    assert gke.api.get(DRIVER) is None
    networks = gke.api.list("/apis/networking.gke.io/v1/networks")
    assert len(networks) == 5, [n["metadata"]["name"] for n in networks]
