"""Flux itself, on bundles out of Git: its own controllers, gates without anybody's help, the audit log as witness."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from compiler.model import Flags
from compiler.pipeline import Compiled, compile_bundle, read_catalog, write_bundle
from tests.e2e.binaries import MissingError
from tests.e2e.cluster import GKE, NVKE, ROOT, Run, cluster
from tests.e2e.flux.controllers import (
    HELM,
    HELM_RELEASES,
    KUSTOMIZATIONS,
    KUSTOMIZE,
    REQUEUE,
    SOURCE,
    Flux,
    is_ready,
    programs,
    ready,
    wait_for,
)  # fmt: skip
from tests.e2e.witness import Witness, describe, reference

DEPLOYER = "Flux"
# Helm inside helm-controller tells no name of its own when it sends objects.
AGENTS = (HELM, KUSTOMIZE, "Go-http-client")
SECONDS = 420
POOLS = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"
POLICY = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
DOMAINS = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
GATE = "gate-sriov-ib-networks"
SMALLER = (
    ("network-operator", ("nicClusterPolicy", "version"), "network-operator-v26.7.0-1"),
    ("sriov-ib-networks", ("ipam", "perNodeBlockSize"), 40),
)


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    try:
        programs(build=False)
    except MissingError as missing:
        pytest.skip(f"Flux: {missing}")


@pytest.fixture(scope="module")
def nvke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    with cluster(tmp_path_factory.mktemp("flux-nvke"), NVKE, "helm4", pulled=True) as made:
        running = Flux(made)
        running.start()
        yield running


@pytest.fixture(scope="module")
def gke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    with cluster(tmp_path_factory.mktemp("flux-gke"), GKE, "helm4", pulled=True) as made:
        running = Flux(made)
        running.start()
        yield running


def test_dead_operator(nvke: Flux) -> None:
    """NVKE bundle on an empty cluster, the operator dead: its gate fails and is tried again, nothing passes it."""
    made = nvke.made
    made.simulator.faults.dead = {"network-operator"}
    made.simulator.faults.crd = 15
    nvke.apply()
    wait_for(lambda: _reason(nvke, GATE) == "HealthCheckFailed", SECONDS, lambda: nvke.pending(nvke.head))
    said = ready(nvke.kustomization(GATE) or {}).get("message", "")
    assert "NicClusterPolicy/nic-cluster-policy status: 'Unknown'" in said, said
    assert "CustomResourceDefinition/ippools.nv-ipam.nvidia.com status: 'NotFound'" in said, said
    assert made.api.get(f"{HELM_RELEASES}/{nvke.prefix}-sriov-ib-networks") is None
    sent = [e for e in _witness(nvke).deployer() if reference(e)[0] == "nv-ipam.nvidia.com"]
    assert not sent, describe(sent)


def test_heals(nvke: Flux) -> None:
    """The operator is back, its CRD late: the gate opens within seconds, the bundle arrives without anyone's help."""
    made = nvke.made
    made.simulator.faults.dead = set()
    nvke.converge(nvke.head, seconds=SECONDS)
    witness = _witness(nvke)
    assert witness.violations() == []
    assert made.all_deployed(), made.statuses()
    release = made.bundle.plan.release("sriov-ib-networks")
    assert release.gate is not None
    held = max(witness.held(c.check) or "" for c in release.gate.checks)
    first = witness.first_write(release)
    opened = ready(nvke.kustomization(GATE) or {})["lastTransitionTime"]
    # An attempt looks every 5 s; between two attempts there are 10 s; the dependant looks every REQUEUE seconds.
    assert _seconds(held, opened) < 20, (held, opened)
    assert first
    assert _seconds(opened, first) < REQUEUE + 15, (opened, first)
    pools = [e for e in witness.deployer() if reference(e)[:2] == ("nv-ipam.nvidia.com", "ippools")]
    assert len(pools) >= 4, describe(pools)
    assert not made.simulator.errors, made.simulator.errors[:5]


def test_applied_again(nvke: Flux) -> None:
    """The root is applied again, and a commit elsewhere arrives: nothing of any release is written."""
    made = nvke.made
    made.mark()
    nvke.apply()
    nvke.converge(nvke.commit("Elsewhere"), seconds=180)
    assert _records(nvke) == set()
    assert made.all_deployed(), made.statuses()


def test_update(nvke: Flux) -> None:
    """A commit changes the provider and its dependant: the gate closes for it, opens once, nothing else is upgraded."""
    made = nvke.made
    made.simulator.faults.dead = {"network-operator"}
    made.simulator.settle()
    made.api.merge(f"{POLICY}/status", {"status": {"state": "notReady"}})
    made.mark()
    head = _commit(nvke, Flags(set=SMALLER), "A newer provider, smaller blocks")
    wait_for(lambda: is_ready(nvke.kustomization("network-operator-post") or {}, head), 120, lambda: nvke.pending(head))
    assert "network-operator-v26.7.0-1" in str(made.api.get(POLICY))
    for _ in range(40):  # two looks of a gate, one of a dependant
        assert _block_sizes(nvke) == {50}
        assert not is_ready(nvke.kustomization(GATE) or {}, head)
        time.sleep(0.5)
    assert _records(nvke) == {"network-operator-post"}
    made.simulator.faults.dead = set()
    nvke.converge(head, seconds=180)
    assert _block_sizes(nvke) == {40}
    assert _records(nvke) == {"network-operator-post", "sriov-ib-networks"}
    witness = _witness(nvke, since_mark=True)
    release = made.bundle.plan.release("sriov-ib-networks")
    assert release.gate is not None
    (policy,) = [c.check for c in release.gate.checks if c.check.kind == "field"]
    assert "" < (witness.held(policy) or "") < (witness.first_write(release) or "")


def test_left(nvke: Flux) -> None:
    """A component leaves the bundle: its release and nodes go with the commit, nothing else is touched."""
    made = nvke.made
    made.mark()
    head = _commit(nvke, Flags(set=SMALLER), "Without nvsentinel", disable=(("nvsentinel", "not wanted here"),))
    wait_for(lambda: nvke.kustomization("nvsentinel") is None, 120, lambda: nvke.pending(head))
    wait_for(lambda: "nvsentinel" not in made.statuses(), 60, made.statuses)
    wait_for(lambda: is_ready(nvke.kustomization("root") or {}, head), 60, lambda: nvke.pending(head))
    assert nvke.kustomization("gate-nvsentinel") is None
    assert _records(nvke) == {"nvsentinel"}


def test_left_in_order(nvke: Flux) -> None:
    """flux/remove.sh --only, then the commit without them: in order, conditions first, and they do not come back"""
    made = nvke.made
    made.mark()
    names = ("kube-prometheus-stack", "prometheus-adapter")
    run = _remove(nvke, "--yes", *(word for name in names for word in ("--only", name))).expect(0, "is suspended")
    assert _witness(nvke, since_mark=True).removal_violations() == []
    assert not {*names} & set(made.statuses())
    gone = {"nvsentinel": "not wanted here", **dict.fromkeys(names, "not wanted here")}
    head = _commit(nvke, Flags(set=SMALLER), "Without metrics", disable=tuple(gone.items()))
    wake = run.output.splitlines()[-1].partition(" patch ")[2]
    made.kubectl("--namespace", "flux-system", "patch", *shlex.split(wake))
    wait_for(lambda: is_ready(nvke.kustomization("root") or {}, head), 120, lambda: nvke.pending(head))
    assert all(nvke.kustomization(name) is None for name in (*names, "gate-kube-prometheus-stack"))
    assert set(made.statuses()) == {r.id for r in made.bundle.plan.releases if r.component not in gone}


def test_killed(nvke: Flux) -> None:
    """SIGKILL to each controller in the middle of an upgrade: started again, they bring the bundle to its end."""
    made = nvke.made
    made.mark()
    made.hold("nfd-master")
    head = _commit(nvke, Flags(set=(("nfd", ("commonLabels",), {"team": "x"}),)), "Back, and a label")
    deadline = time.monotonic() + 180
    while not made.api.list("/api/v1/secrets", labelSelector="owner=helm,status=pending-upgrade"):
        assert time.monotonic() < deadline, nvke.pending(head)
    for name in (HELM, KUSTOMIZE, SOURCE):
        nvke.end(name)
    assert "pending-upgrade" in made.statuses().values(), made.statuses()
    made.simulator.faults.unready = set()
    for name in (SOURCE, KUSTOMIZE, HELM):
        nvke.run(name)
    nvke.converge(head, seconds=SECONDS)
    assert _block_sizes(nvke) == {50}
    assert made.all_deployed(), made.statuses()
    assert _records(nvke) >= {"network-operator-post", "sriov-ib-networks", "nfd", "nvsentinel"}


def test_removal_dry_run(nvke: Flux) -> None:
    """flux/remove.sh --dry-run tells the order and changes nothing."""
    made = nvke.made
    made.mark()
    told = _remove(nvke, "--dry-run").expect(0, "nothing was changed").output
    assert told.index("would remove nvt-sriov-ib-networks") < told.index("would remove nvt-network-operator-post")
    written = _witness(nvke, since_mark=True).writes("kubectl/")
    assert not written, describe(written)


def test_removal_stuck(nvke: Flux) -> None:
    """flux/remove.sh: a stuck finalizer is reported with what people can do, not forced; its operator stays."""
    made = nvke.made
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "theirs", "finalizers": ["resource.nvidia.com/computeDomain"]},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "theirs"}}},
    }
    made.api.create(DOMAINS, domain)
    made.api.delete(f"{DOMAINS}/theirs")
    made.mark()
    _remove(nvke, "--yes", GATE_TIMEOUT_SCALE="0.005").expect(
        3, "1 left: theirs", "nvidia-dra-driver-gpu is not removed", "resource.nvidia.com/computeDomain", "stopped"
    )
    statuses = made.statuses()
    assert "sriov-ib-networks" not in statuses
    assert statuses["nvidia-dra-driver-gpu"] == statuses["network-operator"] == "deployed"


def test_removal_script(nvke: Flux) -> None:
    """flux/remove.sh, run again once that is settled: reverse order, conditions first; what carries CRDs stays."""
    made = nvke.made
    made.api.merge(f"{DOMAINS}/theirs", {"metadata": {"finalizers": None}})
    _remove(nvke, "--yes").expect(0, "done")
    witness = _witness(nvke, since_mark=True)
    assert witness.removal_violations() == []
    gone: dict[str, str] = {}
    for event in witness.deployer():
        if event["verb"] == "delete" and reference(event)[1] == "secrets":
            gone.setdefault(reference(event)[3].split(".")[4], event["requestReceivedTimestamp"])
    order = [r.id for r in made.bundle.plan.releases if r.id in gone]
    assert [name for name, _ in sorted(gone.items(), key=lambda item: item[1])] == order[::-1]
    kept = {r.id for r in made.bundle.plan.releases if r.keep}
    assert set(made.statuses()) == kept
    assert {"network-operator", "gpu-operator"} <= set(gone)
    states = [e for e in witness.events if reference(e)[1] == "sriovnetworknodestates"]
    synced = max(
        (e["stageTimestamp"] for e in states if e["requestObject"]["status"]["syncStatus"] == "Succeeded"), default=""
    )
    assert synced < gone["network-operator"]
    assert made.api.list(KUSTOMIZATIONS) == made.api.list(HELM_RELEASES) == []
    assert made.kubectl("get", "crd", "ippools.nv-ipam.nvidia.com", "nicclusterpolicies.mellanox.com", "-o", "name")
    assert made.kubectl("get", "namespace", "nvidia-network-operator", "-o", "name")


def test_removal_again(nvke: Flux) -> None:
    """flux/remove.sh a second time does nothing; applied again, the bundle comes back."""
    made = nvke.made
    made.mark()
    told = _remove(nvke, "--yes").expect(0, "done").output
    assert "stays in the cluster" not in told, told
    assert _records(nvke) == set()
    nvke.apply()
    nvke.converge(nvke.head, seconds=SECONDS)
    assert made.all_deployed(), made.statuses()


def test_gke(gke: Flux) -> None:
    """GKE bundle (bundle-installer) on an empty cluster: no gpu-operator object before the driver is rolled out."""
    made = gke.made
    made.simulator.faults.unready = {"nvidia-driver-installer"}
    timer = threading.Timer(60, made.simulator.faults.unready.clear)
    timer.start()
    gke.apply()
    gke.converge(gke.head, seconds=SECONDS)
    timer.cancel()
    witness = _witness(gke)
    assert witness.violations() == []
    early = witness.early(made.bundle.plan.release("gpu-operator-pre"), "daemonset")
    assert not early, describe(early)
    assert made.all_deployed(), made.statuses()
    assert not made.simulator.errors, made.simulator.errors[:5]


def test_gke_purge(gke: Flux) -> None:
    """GKE bundle: flux/remove.sh --purge removes every release, in reverse order."""
    made = gke.made
    made.mark()
    _remove(gke, "--yes", "--purge").expect(0, "done")
    assert _witness(gke, since_mark=True).removal_violations() == []
    assert made.statuses() == {}


def _commit(running: Flux, flags: Flags, message: str, **changes: Any) -> str:
    """Another state of the bundle, committed: with flags, and with changes of its entry; the commit."""
    catalog = read_catalog(ROOT)
    entry = replace(catalog.workspace.bundles[running.made.bundle.plan.bundle], **changes)
    bundle: Compiled = compile_bundle(catalog, entry, flags)
    write_bundle(bundle, running.made.path)
    return running.commit(message)


def _remove(running: Flux, *arguments: str, **env: str) -> Run:
    return running.made.run(str(running.made.path / "flux" / "remove.sh"), *arguments, timeout=SECONDS, **env)


def _witness(running: Flux, *, since_mark: bool = False) -> Witness:
    return replace(running.made.witness(since_mark=since_mark), agents=AGENTS)


def _records(running: Flux) -> set[str]:
    """The releases whose record Helm wrote since the mark."""
    return {
        reference(e)[3].split(".")[4]
        for e in _witness(running, since_mark=True).deployer()
        if reference(e)[1] == "secrets" and reference(e)[3].startswith("sh.helm.release.v1.")
    }


def _reason(running: Flux, what: str) -> str:
    return str(ready(running.kustomization(what) or {}).get("reason"))


def _block_sizes(running: Flux) -> set[int]:
    return {pool["spec"]["perNodeBlockSize"] for pool in running.made.api.list(POOLS)}


def _seconds(earlier: str, later: str) -> float:
    """From one time of the API to another; an object's has no fraction of a second."""
    return (datetime.fromisoformat(later[:19]) - datetime.fromisoformat(earlier[:19])).total_seconds()
