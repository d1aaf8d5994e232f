"""deploy.sh and undeploy.sh on the NVKE bundle: one cluster for each Helm, the scenarios one after the other on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.model import Flags
from compiler.pipeline import compile_bundle, read_catalog, write_bundle
from tests.e2e.api import Object
from tests.e2e.cluster import NVKE, ROOT, Cluster, cluster, kill
from tests.e2e.witness import describe, reference

DEPLOYER = "deploy.sh"


@pytest.fixture(scope="module", params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def nvke(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp(f"nvke-{helm}"), NVKE, helm) as made:
        yield made


def test_empty_cluster(nvke: Cluster) -> None:
    """NVKE bundle on an empty cluster: every edge holds."""
    nvke.deploy().expect(0, "16 of 16 releases changed")
    witness = nvke.witness()
    assert witness.violations() == []
    plan = nvke.bundle.plan
    pools = [e for e in witness.deployer() if reference(e)[:2] == ("nv-ipam.nvidia.com", "ippools")]
    assert len(pools) >= 4, describe(pools)
    first = min(e["requestReceivedTimestamp"] for e in pools)
    gate = plan.release("sriov-ib-networks").gate
    assert gate is not None
    checks = {c.check.id.rpartition("/")[2]: witness.held(c.check) for c in gate.checks}
    assert "" < (checks["crd-ippools"] or "") < first
    assert "" < (checks["policy-ready"] or "") < first
    assert nvke.all_deployed(), nvke.statuses()
    assert not nvke.simulator.errors, nvke.simulator.errors[:5]


def test_nothing_to_do(nvke: Cluster) -> None:
    """A rerun with nothing to do writes nothing of a release, and still gates."""
    nvke.mark()
    run = nvke.deploy().expect(
        0, "0 of 16 releases changed", "gate sriov-ib-networks", "network-operator/policy-ready: holds"
    )
    written = [e for e in nvke.witness(since_mark=True).deployer() if reference(e)[1] != "namespaces"]
    assert not written, describe(written)
    assert run.seconds < 120


def test_dry_run(nvke: Cluster) -> None:
    """--dry-run and --health change nothing."""
    nvke.mark()
    nvke.deploy("--dry-run", "--force").expect(0, "dry run: 16 of 16 releases would change")
    health = nvke.deploy("--health")
    written = nvke.witness(since_mark=True).deployer()
    assert not written, describe(written)
    # What is not played here: metrics APIs, which nothing serves.
    failing = [line for line in health.output.splitlines() if "FAIL" in line and "-metrics:" not in line]
    assert not failing, failing


def test_selection(nvke: Cluster) -> None:
    """--only and --from select; --force upgrades what is unchanged."""
    nvke.mark()
    nvke.deploy("--only", "nfd", "--force").expect(0, "1 of 1 releases changed")
    nvke.deploy("--from", "nvsentinel").expect(0, "0 of 2 releases changed")
    records = {
        reference(e)[3].split(".")[4] for e in nvke.witness(since_mark=True).deployer() if reference(e)[1] == "secrets"
    }
    assert records == {"nfd"}
    nvke.deploy("--only", "nothing-of-that-name").expect(2, "no component or release")


def test_hand_made(nvke: Cluster, helm: str) -> None:
    """What people did by hand is put back: a revision of Helm's, and a field in an object that Helm owns"""
    nvke.run("helm", "rollback", "nfd", "1", "-n", "node-feature-discovery").expect(0)
    nvke.deploy("--only", "nfd").expect(0, "1 of 1 releases changed")
    nvke.deploy("--only", "nfd").expect(0, "0 of 1 releases changed")
    deployment = "/apis/apps/v1/namespaces/node-feature-discovery/deployments/nfd-master"
    nvke.kubectl("-n", "node-feature-discovery", "scale", "deployment", "nfd-master", "--replicas=2")
    run = nvke.deploy("--only", "nfd", "--force").expect(0, "1 of 1 releases changed")
    assert ("taking them back" in run.output) == (helm == "helm4"), run.output
    found = nvke.api.get(deployment)
    assert found
    assert found["spec"]["replicas"] == 1


def test_elsewhere(nvke: Cluster, tmp_path: Path) -> None:
    """From another directory, with a context, and with a list of kubeconfigs."""
    other = tmp_path / "other"
    other.write_text(
        nvke.plane.kubeconfig.read_text().replace("e2e", "elsewhere").replace('"server": "https', '"server": "http')
    )
    run = nvke.deploy("--context", "e2e", "--only", "sriov-ib-networks", KUBECONFIG=f"{other}:{nvke.plane.kubeconfig}")
    run.expect(0, "context e2e", "policy-ready: holds", "0 of 1 releases changed")
    refused = nvke.run("deploy.sh", "--only", "nfd", "--skip-preflight", "--context", "nobody", cwd=tmp_path)
    assert refused.status == 1, refused.output


def test_checksums(nvke: Cluster) -> None:
    """A file that was changed by hand is refused before anything is sent."""
    values = nvke.path / "components" / "gpu-operator" / "values.yaml"
    text = values.read_text()
    nvke.mark()
    try:
        values.write_text(text + "# by hand\n")
        nvke.deploy().expect(5, "checksums.txt")
    finally:
        values.write_text(text)
    assert not nvke.witness(since_mark=True).deployer()


def test_pending_upgrade(nvke: Cluster) -> None:
    """A release left pending-upgrade by a SIGKILL is rolled back and upgraded."""
    _kill_pending(nvke, "kube-prometheus-stack", "--only", "kube-prometheus-stack", "--force")
    nvke.deploy("--only", "kube-prometheus-stack").expect(0, "rolling back")
    assert nvke.all_deployed(), nvke.statuses()


def test_prune(nvke: Cluster) -> None:
    """A component that left the bundle is listed, and removed by --prune only."""
    catalog = read_catalog(ROOT)
    entry = replace(catalog.workspace.bundles[NVKE], disable=(("nvsentinel", "not wanted here"),))
    smaller = compile_bundle(catalog, entry, Flags())
    write_bundle(smaller, nvke.path)
    try:
        nvke.deploy("--from", "sriov-ib-networks").expect(0, "no longer in this bundle: nvsentinel/nvsentinel")
        assert nvke.statuses()["nvsentinel"] == "deployed"
        nvke.deploy("--prune").expect(0, "nvsentinel/nvsentinel: removing")
        assert "nvsentinel" not in nvke.statuses()
    finally:
        write_bundle(nvke.bundle, nvke.path)
    nvke.deploy().expect(0, "1 of 16 releases changed")


def test_stuck_finalizer(nvke: Cluster) -> None:
    """undeploy.sh: a stuck finalizer is reported with what people can do, not forced; its operator stays."""
    path = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
    domain: Object = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "theirs", "finalizers": ["resource.nvidia.com/computeDomain"]},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "theirs"}}},
    }
    nvke.api.create(path, domain)
    nvke.api.delete(f"{path}/theirs")
    nvke.mark()
    nvke.undeploy("--only", "nvidia-dra-driver-gpu", GATE_TIMEOUT_SCALE="0.005").expect(
        3, "1 left: theirs", "stuck: ComputeDomain default/theirs", "resource.nvidia.com/computeDomain", "stopped at"
    )
    assert not nvke.witness(since_mark=True).deployer()
    assert nvke.statuses()["nvidia-dra-driver-gpu"] == "deployed"
    nvke.api.merge(f"{path}/theirs", {"metadata": {"finalizers": None}})


def test_stuck_drain(nvke: Cluster) -> None:
    """undeploy.sh: a drain that does not end is reported with the commands of recovery; the operators stay"""
    path = "/apis/maintenance.nvidia.com/v1alpha1/namespaces/default/nodemaintenances"
    drain: Object = {
        "apiVersion": "maintenance.nvidia.com/v1alpha1",
        "kind": "NodeMaintenance",
        "metadata": {"name": "drain", "finalizers": ["maintenance.nvidia.com/finalizer"]},
        "spec": {"nodeName": "gpu-0", "requestorID": "sriov.example"},
    }
    nvke.api.create(path, drain)
    nvke.api.delete(f"{path}/drain")
    nvke.mark()
    run = nvke.undeploy(GATE_TIMEOUT_SCALE="0.02").expect(
        3,
        "network-operator/no-node-maintenance: NOT met",
        "stuck: NodeMaintenance default/drain",
        "kubectl delete nodemaintenance '<name>' -n '<namespace>' --wait=false",
        """kubectl patch nodemaintenance '<name>' -n '<namespace>' --type=merge -p '{"metadata":{"finalizers":null}}'""",
        "kubectl uncordon '<node>'",
        "stopped at network-operator-post",
    )
    # What depends on it was removed before; then the policies were out of sync for a while, and that was waited for.
    assert "sriov-ib-networks" not in nvke.statuses()
    assert "node-states-synced: holds" in run.output
    assert {"network-operator", "network-operator-post"} <= set(nvke.statuses())
    held = nvke.api.request("GET", f"{path}/drain")["metadata"]
    assert held["finalizers"] == ["maintenance.nvidia.com/finalizer"]
    assert not [e for e in nvke.witness(since_mark=True).deployer() if reference(e)[1] == "nodemaintenances"]
    # By hand, as it said.
    patch = ["patch", "nodemaintenance", "drain", "-n", "default", "--type=merge"]
    nvke.kubectl(*patch, "-p", '{"metadata":{"finalizers":null}}')


def test_undeploy(nvke: Cluster) -> None:
    """undeploy.sh, run again: reverse order, operators last, CRDs and namespaces stay"""
    # The mark is that of the run that was stopped: both together are one removal.
    nvke.undeploy().expect(0, "releases with CRDs stay")
    witness = nvke.witness(since_mark=True)
    gone: dict[str, str] = {}
    for event in witness.deployer():
        if event["verb"] == "delete" and reference(event)[1] == "secrets":
            gone.setdefault(reference(event)[3].split(".")[4], event["requestReceivedTimestamp"])
    order = [r.id for r in nvke.bundle.plan.releases if r.id in gone]
    assert [name for name, _ in sorted(gone.items(), key=lambda item: item[1])] == order[::-1]
    kept = {r.id for r in nvke.bundle.plan.releases if r.keep}
    assert set(nvke.statuses()) == kept
    assert {"network-operator", "gpu-operator", "sriov-ib-networks"} <= set(gone)
    states = [
        (e["stageTimestamp"], e["requestObject"]["status"]["syncStatus"])
        for e in witness.events
        if reference(e)[1] == "sriovnetworknodestates" and e["objectRef"].get("subresource") == "status"
    ]
    assert {status for _, status in states} == {"InProgress", "Succeeded"}, states
    operator = [e for e in witness.deployer() if e["verb"] == "delete" and reference(e)[3] == "network-operator"]
    removed = min(e["requestReceivedTimestamp"] for e in operator)
    assert max(states)[0] < removed
    # Its operands are gone, finalizers and all, before the operator goes.
    operands = {"sriovibnetworks", "sriovnetworknodepolicies", "ippools", "nicclusterpolicies"}
    written = {r: max(e["stageTimestamp"] for e in witness.events if reference(e)[1] == r) for r in operands}
    assert max(written.values()) < removed, (written, removed)
    assert nvke.kubectl("get", "crd", "ippools.nv-ipam.nvidia.com", "nicclusterpolicies.mellanox.com", "-o", "name")
    assert nvke.kubectl("get", "namespace", "nvidia-network-operator", "-o", "name")


def test_undeploy_again(nvke: Cluster) -> None:
    """undeploy.sh twice is fine; --purge removes the rest."""
    nvke.undeploy().expect(0)
    nvke.undeploy("--purge").expect(0)
    assert nvke.statuses() == {}
    left = {c["metadata"]["name"] for c in _crds(nvke)}
    # What comes with some configurations only, or is shared, may be somebody else's, and stays.
    components = nvke.bundle.plan.recipe.enabled()
    purged = {c.name for k in components for c in k.component.crds if c.when is None and not c.shared and c.purge}
    assert len(purged) > 20
    assert not left & purged, left & purged
    assert "gpu-operator" not in nvke.kubectl("get", "namespaces", "-o", "name")


def _crds(nvke: Cluster) -> list[Object]:
    return nvke.api.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")


def _kill_pending(nvke: Cluster, release: str, *arguments: str) -> None:
    """Runs deploy.sh and kills it, with Helm, as soon as Helm has recorded that it is at this release."""
    for _ in range(5):  # Helm may have come to its end when the signal arrives
        before = nvke.pending()
        process = nvke.start(["deploy.sh", *arguments])
        while process.poll() is None and release not in {name for name, _ in nvke.pending() - before}:
            pass
        kill(process)
        output, _ = process.communicate()
        if nvke.statuses()[release] == "pending-upgrade":
            return
    raise AssertionError(f"not caught in the act:\n{output[-4000:]}")
