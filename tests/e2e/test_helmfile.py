"""helmfile on the NVKE bundle, with both Helms: `sync` on an empty cluster, a gate, `destroy`."""

from __future__ import annotations

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
def synced(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp(f"helmfile-sync-{helm}"), NVKE, helm) as made:
        yield made


def test_sync(synced: Cluster) -> None:
    """`sync` on an empty cluster: every edge holds"""
    synced.simulator.faults.crd = 15
    synced.helmfile("sync").expect(0, "policy-ready: holds")
    assert synced.witness().violations() == []
    assert synced.all_deployed(), synced.statuses()


def test_sync_again(synced: Cluster) -> None:
    """`sync` again: gates hold anew, everything stays deployed"""
    synced.helmfile("--selector", "name=sriov-ib-networks", "sync").expect(0, "policy-ready: holds")
    assert synced.all_deployed(), synced.statuses()


def test_dead_operator(synced: Cluster) -> None:
    """A gate that is not met stops the release it holds back, with a diagnosis"""
    synced.simulator.faults.dead = {"network-operator"}
    synced.simulator.settle()
    policy = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
    synced.api.merge(f"{policy}/status", {"status": {"state": "notReady"}})
    synced.mark()
    run = synced.helmfile("--selector", "name=sriov-ib-networks", "sync", GATE_TIMEOUT_SCALE="0.01")
    assert run.status != 0
    run.expect(run.status, "NOT met within 12s", "object  nicclusterpolicies", "next    kubectl --context e2e get")
    written = [e for e in synced.witness(since_mark=True).deployer() if reference(e)[1] != "namespaces"]
    assert not written, describe(written)
    synced.simulator.faults.dead = set()


def test_destroy_keeps(synced: Cluster) -> None:
    """`destroy` of what carries CRDs is refused without BUNDLEC_PURGE=1"""
    run = synced.helmfile("--selector", "name=nodewright-operator", "destroy")
    assert run.status != 0
    assert "nodewright-operator carries CRDs" in run.output, run.output[-2000:]
    assert synced.all_deployed(), synced.statuses()


def test_destroy(synced: Cluster) -> None:
    """`destroy` goes in reverse order, with the waits of the teardown; with CRDs only when purging is asked for"""
    synced.mark()
    synced.helmfile("--selector", "bundlec.dev/teardown!=keep", "destroy").expect(0)
    assert set(synced.statuses()) == {r.id for r in synced.bundle.plan.releases if r.keep}
    synced.helmfile("destroy", BUNDLEC_PURGE="1").expect(0)
    assert synced.statuses() == {}
    witness = synced.witness(since_mark=True)
    gone: dict[str, str] = {}
    for event in witness.deployer():
        if event["verb"] == "delete" and reference(event)[1] == "secrets":
            gone.setdefault(reference(event)[3].split(".")[4], event["requestReceivedTimestamp"])
    for edge in synced.bundle.plan.edges:
        if edge.provider in gone and edge.dependant in gone:
            assert gone[edge.dependant] < gone[edge.provider], edge
    # A drain ran once the policies were gone; the operator stayed until it had ended.
    states = [
        (e["stageTimestamp"], e["requestObject"]["status"]["syncStatus"])
        for e in witness.events
        if reference(e)[1] == "sriovnetworknodestates" and e["objectRef"].get("subresource") == "status"
    ]
    assert {status for _, status in states} == {"InProgress", "Succeeded"}, states
    assert max(states)[0] < gone["network-operator"], (states, gone)
