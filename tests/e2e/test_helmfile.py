"""helmfile on the NVKE bundle, with both Helms: sync, rerun, destroy."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.cluster import NVKE, TOOLS, Cluster, cluster
from tests.e2e.witness import describe, reference

DEPLOYER = "helmfile"

pytestmark = pytest.mark.skipif(not (TOOLS / "helmfile").exists(), reason="no helmfile (make tools HELMFILE=1)")


@pytest.fixture(scope="module", params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def nvke(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp(f"helmfile-{helm}"), NVKE, helm) as made:
        yield made


def _helmfile(nvke: Cluster, *arguments: str, **env: str):
    return nvke.run("helmfile", "--file", str(nvke.path / "helmfile.yaml"), "--kube-context", "e2e", *arguments, **env)


def test_sync(nvke: Cluster) -> None:
    """`sync` on an empty cluster: every edge holds."""
    nvke.simulator.faults.crd = 15
    _helmfile(nvke, "sync").expect(0, "policy-ready: holds")
    assert nvke.witness().violations() == []
    assert nvke.all_deployed(), nvke.statuses()


def test_sync_again(nvke: Cluster) -> None:
    """`sync` again: gates hold anew, everything stays deployed."""
    _helmfile(nvke, "--selector", "name=sriov-ib-networks", "sync").expect(0, "policy-ready: holds")
    assert nvke.all_deployed(), nvke.statuses()


def test_dead_operator(nvke: Cluster) -> None:
    """A gate that is not met stops the release it holds back; its hook uses the same context."""
    nvke.simulator.faults.dead = {"network-operator"}
    time.sleep(2)  # it may be at it right now
    policy = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
    nvke.api.merge(f"{policy}/status", {"status": {"state": "notReady"}})
    nvke.mark()
    config = nvke.folder / "nobody-first"
    config.write_text(
        nvke.plane.kubeconfig.read_text().replace('"current-context": "e2e"', '"current-context": "nobody"')
    )
    run = _helmfile(
        nvke, "--selector", "name=sriov-ib-networks", "sync", GATE_TIMEOUT_SCALE="0.01", KUBECONFIG=str(config)
    )
    assert run.status != 0
    assert "NOT met within 12s" in run.output
    written = [e for e in nvke.witness(since_mark=True).deployer() if reference(e)[1] != "namespaces"]
    assert not written, describe(written)
    nvke.simulator.faults.dead = set()


def test_destroy(nvke: Cluster) -> None:
    """`destroy` goes in reverse order, with the waits; what carries CRDs is refused without BUNDLEC_PURGE=1."""
    nvke.mark()
    _helmfile(nvke, "destroy", BUNDLEC_PURGE="1").expect(0)
    gone: dict[str, str] = {}
    for event in nvke.witness(since_mark=True).deployer():
        if event["verb"] == "delete" and reference(event)[1] == "secrets":
            gone.setdefault(reference(event)[3].split(".")[4], event["requestReceivedTimestamp"])
    for edge in nvke.bundle.plan.edges:
        if edge.provider in gone and edge.dependant in gone:
            assert gone[edge.dependant] < gone[edge.provider], edge
    assert nvke.statuses() == {}
