"""Argo CD itself, on bundles out of Git: its own controllers, guards with their own rights, the audit log as witness."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.model import Flags
from compiler.pipeline import Compiled, compile_bundle, read_catalog, write_bundle
from tests.e2e.api import Object
from tests.e2e.argocd.controllers import ArgoCD, argocd, phase, programs
from tests.e2e.binaries import MissingError
from tests.e2e.cluster import GKE, NVKE, ROOT, cluster
from tests.e2e.witness import Event, Witness, describe, reference

DEPLOYER = "Argo CD"
AGENTS = ("argocd",)
SECONDS = 420


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    try:
        programs(build=False)
    except MissingError as missing:
        pytest.skip(f"Argo CD: {missing}")


@pytest.fixture(scope="module")
def nvke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    with cluster(tmp_path_factory.mktemp("nvke"), NVKE, "helm4", pulled=True) as made, argocd(made) as running:
        yield running


@pytest.fixture(scope="module")
def gke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    with cluster(tmp_path_factory.mktemp("gke"), GKE, "helm4", pulled=True) as made, argocd(made) as running:
        yield running


def test_empty_cluster(nvke: ArgoCD) -> None:
    """NVKE bundle on an empty cluster, the IPPool CRD late: every hard edge holds, the root waits for nobody."""
    made = nvke.made
    made.simulator.faults.crd = 60
    nvke.apply_root()
    waiting = nvke.wait(
        lambda found: phase(found, "root") == "Succeeded" and phase(found, "sriov-ib-networks") == "Running",
        180,
        "the root is done while a guard waits",
    )
    assert set(waiting) >= {c.name for c in made.bundle.plan.components}
    nvke.wait(nvke.converged, SECONDS, "the bundle is up")
    witness = _witness(nvke)
    assert witness.gate_violations() == []
    pools = [e for e in witness.deployer() if reference(e)[:2] == ("nv-ipam.nvidia.com", "ippools")]
    assert len(pools) >= 4, describe(pools)
    first = min(e["requestReceivedTimestamp"] for e in pools)
    gate = made.bundle.plan.release("sriov-ib-networks").gate
    assert gate is not None
    checks = {c.check.id.rpartition("/")[2]: witness.held(c.check) for c in gate.checks}
    assert "" < (checks["crd-ippools"] or "") < first
    assert "" < (checks["policy-ready"] or "") < first
    assert not made.simulator.errors, made.simulator.errors[:5]


def test_one_component(nvke: ArgoCD) -> None:
    """A commit that changes one component syncs that one only, and is gated again."""
    made = nvke.made
    made.simulator.faults.dead = {"network-operator"}
    made.api.merge(
        "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy/status", {"status": {"state": "notReady"}}
    )
    before = nvke.wait(nvke.converged, 60, "nothing is under way")
    made.mark()
    changed = (("sriov-ib-networks", ("ipam", "perNodeBlockSize"), 40),)
    head = _commit(nvke, _compiled(NVKE, Flags(set=changed)), "Smaller blocks")
    nvke.wait(lambda found: phase(found, "sriov-ib-networks") == "Running", 60, "the change is seen")
    nvke.hold(lambda found: phase(found, "sriov-ib-networks") == "Running", 15, "the guard holds the change")
    assert {p["spec"]["perNodeBlockSize"] for p in made.api.list("/apis/nv-ipam.nvidia.com/v1alpha1/ippools")} == {50}
    made.simulator.faults.dead = set()
    after = nvke.wait(nvke.converged, 120, "the change is applied")
    assert {p["spec"]["perNodeBlockSize"] for p in made.api.list("/apis/nv-ipam.nvidia.com/v1alpha1/ippools")} == {40}
    synced = {name for name, item in after.items() if _started(item) != _started(before[name])}
    assert synced == {"sriov-ib-networks"}
    assert head in after["sriov-ib-networks"]["status"]["operationState"]["syncResult"]["revisions"]
    witness = _witness(nvke, since_mark=True)
    mine = witness.objects(made.bundle.plan.release("sriov-ib-networks"))
    others = [e for e in _outside(witness.deployer()) if reference(e) not in mine and reference(e)[1] != "jobs"]
    assert not others, describe(others)


def test_removal_script(nvke: ArgoCD) -> None:
    """argocd/remove.sh: reverse order, conditions first; what carries CRDs stays."""
    made = nvke.made
    made.mark()
    run = made.run(str(made.path / "argocd" / "remove.sh"), "--yes", timeout=400).expect(
        0, "stays, since its chart carries CRDs"
    )
    assert "nvt-root stays, asleep" in run.output
    plan = made.bundle.plan
    stay = {c.name for c in plan.components if any(plan.release(r).keep for r in c.releases)}
    assert set(nvke.applications()) == {"root", "namespaces", *stay}
    witness = _witness(nvke, since_mark=True)
    assert witness.removal_violations() == []
    assert made.api.list("/apis/nv-ipam.nvidia.com/v1alpha1/ippools") == []


def test_gke(gke: ArgoCD) -> None:
    """GKE bundle (bundle-installer) on an empty cluster: no gpu-operator object before the driver is rolled out."""
    made = gke.made
    made.simulator.faults.unready = {"nvidia-driver-installer"}
    gke.apply_root()
    timer = threading.Timer(60, made.simulator.faults.unready.clear)
    timer.start()
    gke.wait(gke.converged, SECONDS, "the bundle is up")
    timer.cancel()
    witness = _witness(gke)
    assert witness.gate_violations() == []
    gate = made.bundle.plan.release("gpu-operator-pre").gate
    assert gate is not None
    (driver,) = [c.check for c in gate.checks if c.check.kind == "daemonset"]
    rolled_out = witness.held(driver)
    assert rolled_out
    mine = {
        where
        for release in made.bundle.plan.releases
        if release.component == "gpu-operator"
        for where in witness.objects(release)
        if where[1] != "resourcequotas"
    }
    early = [e for e in witness.deployer() if reference(e) in mine and e["requestReceivedTimestamp"] < rolled_out]
    assert not early, describe(early)
    assert not made.simulator.errors, made.simulator.errors[:5]


def test_retries(tmp_path: Path) -> None:
    """An operator is dead for longer than the guards' deadlines: syncs fail and are tried again until it heals."""
    flags = Flags(settings=(("--timeout-scale", {"gates": {"timeoutScale": 0.02}}),))
    with cluster(tmp_path / "c", NVKE, "helm4", pulled=True, flags=flags) as made, argocd(made) as running:
        made.simulator.faults.dead = {"network-operator"}
        running.apply_root()
        running.wait(lambda found: _tries(found, "sriov-ib-networks") >= 2, 240, "the guard failed twice")
        found = running.applications()
        assert phase(found, "root") == "Succeeded"
        assert made.api.list("/apis/nv-ipam.nvidia.com/v1alpha1/ippools") == []
        made.simulator.faults.dead = set()
        running.wait(running.converged, SECONDS, "healed without anybody's help")
        assert _witness(running).gate_violations() == []


def _compiled(name: str, flags: Flags) -> Compiled:
    catalog = read_catalog(ROOT)
    return compile_bundle(catalog, catalog.workspace.bundles[name], flags)


def _commit(running: ArgoCD, bundle: Compiled, message: str) -> str:
    """Puts another state of the bundle into Git; the commit."""
    write_bundle(bundle, running.made.path)
    return running.made.publish(message)


def _witness(running: ArgoCD, *, since_mark: bool = False) -> Witness:
    return replace(running.made.witness(since_mark=since_mark), agents=AGENTS)


def _outside(events: list[Event]) -> list[Event]:
    """Without what Argo CD writes about itself."""
    return [e for e in events if reference(e)[0] != "argoproj.io" and reference(e)[2] != "argocd"]


def _started(application: Object) -> str:
    return str(application["status"]["operationState"]["startedAt"])


def _tries(found: dict[str, Object], name: str) -> int:
    return int(((found.get(name, {}).get("status") or {}).get("operationState") or {}).get("retryCount", 0))
