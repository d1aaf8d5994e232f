"""Argo CD itself, on bundles out of Git: its own controllers, guards with their own rights, the audit log as witness."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.model import Flags
from compiler.pipeline import Compiled, compile_bundle, read_catalog, write_bundle
from tests.e2e.api import Object
from tests.e2e.argocd.controllers import ArgoCD, argocd, phase, programs, synced
from tests.e2e.binaries import MissingError
from tests.e2e.cluster import GKE, NVKE, ROOT, cluster
from tests.e2e.witness import Event, Witness, describe, reference

DEPLOYER = "Argo CD"
AGENTS = ("argocd",)
SECONDS = 420
POOLS = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"
# Deadlines of a minute instead of twenty: guards that fail are looked at, too.
SHORT = (("gates", {"gates": {"timeoutScale": 0.05}}),)


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    try:
        programs(build=False)
    except MissingError as missing:
        pytest.skip(f"Argo CD: {missing}")


@pytest.fixture(scope="module")
def nvke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    folder = tmp_path_factory.mktemp("nvke")
    with cluster(folder, NVKE, "helm4", pulled=True, flags=Flags(settings=SHORT)) as made, argocd(made) as running:
        yield running


@pytest.fixture(scope="module")
def gke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    with cluster(tmp_path_factory.mktemp("gke"), GKE, "helm4", pulled=True) as made, argocd(made) as running:
        yield running


def test_empty_cluster(nvke: ArgoCD) -> None:
    """NVKE bundle on an empty cluster, its operator dead at first: guards hold, fail, and are tried again until it heals."""
    made = nvke.made
    made.simulator.faults.dead = {"network-operator"}
    nvke.apply_root()
    waiting = nvke.wait(lambda found: _tries(found, "sriov-ib-networks") >= 2, SECONDS, "the guard failed twice")
    # Nobody waits for it but what needs it; the root can take what is committed meanwhile.
    assert set(waiting) >= {c.name for c in made.bundle.plan.components}
    head = made.publish("Another commit")
    nvke.wait(lambda found: synced(found["root"], head), 60, "the root goes on")
    assert made.api.list(POOLS) == []
    made.simulator.faults.dead = set()
    nvke.wait(nvke.converged, SECONDS, "healed without anybody's help")
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
    made.simulator.settle()
    made.api.merge(
        "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy/status", {"status": {"state": "notReady"}}
    )
    before = nvke.wait(nvke.converged, 60, "nothing is under way")
    made.mark()
    changed = (("sriov-ib-networks", ("ipam", "perNodeBlockSize"), 40),)
    head = _commit(nvke, _compiled(NVKE, Flags(set=changed, settings=SHORT)), "Smaller blocks")
    nvke.wait(lambda found: phase(found, "sriov-ib-networks") == "Running", 60, "the change is seen")
    nvke.hold(lambda found: phase(found, "sriov-ib-networks") == "Running", 15, "the guard holds the change")
    assert {p["spec"]["perNodeBlockSize"] for p in made.api.list(POOLS)} == {50}
    made.simulator.faults.dead = set()
    after = nvke.wait(nvke.converged, 120, "the change is applied")
    assert {p["spec"]["perNodeBlockSize"] for p in made.api.list(POOLS)} == {40}
    changed_ones = {name for name, item in after.items() if _started(item) != _started(before[name])}
    assert changed_ones == {"sriov-ib-networks"}
    assert head in after["sriov-ib-networks"]["status"]["operationState"]["syncResult"]["revisions"]
    witness = _witness(nvke, since_mark=True)
    mine = witness.objects(made.bundle.plan.release("sriov-ib-networks"))
    others = [e for e in _outside(witness.deployer()) if reference(e) not in mine and reference(e)[1] != "jobs"]
    assert not others, describe(others)


def test_left_in_order(nvke: ArgoCD) -> None:
    """argocd/remove.sh --only, then the commit without them: in order, and they do not come back."""
    made = nvke.made
    made.mark()
    names = ("kube-prometheus-stack", "prometheus-adapter")
    only = [word for name in names for word in ("--only", name)]
    run = made.run(str(made.path / "argocd" / "remove.sh"), "--yes", *only, timeout=400).expect(0, "nvt-root is asleep")
    assert _witness(nvke, since_mark=True).removal_violations() == []
    nvke.hold(lambda found: not {*names} & set(found), 15, "the root sleeps")
    gone = tuple((name, "not wanted here") for name in names)
    head = _commit(nvke, _compiled(NVKE, Flags(settings=SHORT), disable=gone), "Without metrics")
    made.run("sh", "-c", run.output.splitlines()[-1], cwd=made.path).expect(0)
    nvke.wait(lambda found: synced(found["root"], head), 120, "the root is awake")
    nvke.hold(lambda found: not {*names} & set(found), 15, "they are not in Git")
    assert made.api.get("/apis/apps/v1/namespaces/monitoring/deployments/kube-prometheus-operator") is None


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
    assert made.api.list(POOLS) == []


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
    early = witness.early(made.bundle.plan.release("gpu-operator-pre"), "daemonset")
    assert not early, describe(early)
    assert not made.simulator.errors, made.simulator.errors[:5]


def test_deletion_of_an_object(gke: ArgoCD) -> None:
    """An object that somebody deletes comes back; nothing else is written, and no gate is asked."""
    made = gke.made
    gke.wait(gke.converged, 60, "nothing is under way")
    made.mark()
    path = "/api/v1/namespaces/gpu-operator/configmaps/nvidia-kernel-module-params"
    made.api.delete(path)
    gke.wait(lambda found: made.api.get(path) is not None and gke.converged(found), 90, "the object is back")
    written = {reference(e)[1] for e in _outside(_witness(gke, since_mark=True).deployer())}
    assert written == {"configmaps"}


@pytest.mark.parametrize("version", ["3.1", "3.3"])
def test_wrong_gate(gke: ArgoCD, version: str) -> None:
    """A gate that cannot hold, and the commit that mends it: taken by the next try from 3.2 on, else by hand (README)."""
    made = gke.made
    newer = {"argocd": {"minVersion": version}}
    if version != "3.1":
        _commit(gke, _compiled(GKE, Flags(settings=(("argocd", newer),))), "Another Argo CD")
        gke.wait(gke.converged, 120, "the Applications are those of the other Argo CD")
    before = gke.wait(gke.converged, 60, "nothing is under way")
    name = f"parameters-{version.replace('.', '-')}"
    values = (("gpu-operator", ("driver", "kernelModuleConfig", "name"), name),)
    # The guard has 14 s, and wants more nodes than there are.
    wrong = {**newer, "gates": {"timeoutScale": 0.008, "minNodes": 5}}
    _commit(gke, _compiled(GKE, Flags(set=values, settings=(("wrong", wrong),))), "Wrong")
    gke.wait(lambda found: phase(found, "gpu-operator") == "Running", 60, "the change is seen")
    bundle = _compiled(GKE, Flags(set=values, settings=(("argocd", newer),)))
    head = _commit(gke, bundle, "Mended")
    wanted = f"/api/v1/namespaces/gpu-operator/configmaps/{name}"
    if version == "3.1":
        gke.wait(lambda found: _tries(found, "gpu-operator") >= 2, 180, "the old commit is tried again")
        assert made.api.get(wanted) is None
        (command,) = [line for line in (made.path / "README.md").read_text().splitlines() if '"Terminating"' in line]
        made.run("bash", "-c", command.replace("APPLICATION", "gktbi-gpu-operator")).expect(0)
    after = gke.wait(gke.converged, 180, "the newest commit is there")
    assert made.api.get(wanted) is not None
    assert head in after["gpu-operator"]["status"]["operationState"]["syncResult"]["revisions"]
    # Two of its CRDs are in the driver's chart as well: a sync of one leaves the other alone.
    changed_ones = {key for key, item in after.items() if _started(item) != _started(before[key])}
    assert changed_ones == {"gpu-operator"}


def test_deletion_of_the_root(gke: ArgoCD) -> None:
    """Argo CD 3.3, deletion of the root: waves go backwards, PreDelete guards run, namespaces stay."""
    made = gke.made
    newer = Flags(settings=(("argocd", {"argocd": {"minVersion": "3.3"}}),))
    _commit(gke, _compiled(GKE, newer), "Guards of removals")
    gke.wait(gke.converged, 120, "the guards of removals are there")
    made.mark()
    made.kubectl("--namespace", "argocd", "delete", "applications.argoproj.io", "gktbi-root", "--wait=false")
    gke.wait(lambda found: not found, SECONDS, "all is gone")
    witness = _witness(gke, since_mark=True)
    assert witness.removal_violations() == []
    # That they hold is not asserted: Argo CD takes one that its cache does not show yet for one that is done.
    guards = {reference(e)[3] for e in witness.deployer() if reference(e)[1] == "jobs" and e["verb"] == "create"}
    assert guards == {"gktbi-teardown-nodewright-operator", "gktbi-teardown-nvidia-dra-driver-gpu"}
    kept = {n.name for n in made.bundle.plan.namespaces}
    assert kept <= {n["metadata"]["name"] for n in made.api.list("/api/v1/namespaces")}


def test_waves(tmp_path: Path) -> None:
    """`waves: health` with the health checks of the bundle: plain edges hold, too, and the root waits as long as it takes."""
    flags = Flags(settings=(("argocd", {"argocd": {"waves": "health"}}),))
    with cluster(tmp_path / "c", NVKE, "helm4", pulled=True, flags=flags) as made, argocd(made) as running:
        made.simulator.faults.dead = {"network-operator"}
        made.kubectl("apply", "--server-side", "--filename", str(made.path / "argocd" / "optional" / "argocd-cm.yaml"))
        running.apply_root()
        running.wait(lambda found: "network-operator" in found, SECONDS, "the wave of the dead operator")
        running.hold(lambda found: "sriov-ib-networks" not in found, 30, "the next wave is held")
        assert phase(running.applications(), "root") == "Running"
        made.simulator.faults.dead = set()
        running.wait(running.converged, SECONDS, "the root goes on without anybody's help")
        witness = _witness(running)
        assert witness.gate_violations() == []
        assert witness.wave_violations() == []


def _compiled(name: str, flags: Flags, **changes: Any) -> Compiled:
    catalog = read_catalog(ROOT)
    return compile_bundle(catalog, replace(catalog.workspace.bundles[name], **changes), flags)


def _commit(running: ArgoCD, bundle: Compiled, message: str) -> str:
    """Puts another state of the bundle into Git, and tells Argo CD as a webhook would; the commit."""
    write_bundle(bundle, running.made.path)
    head = running.made.publish(message)
    running.refresh()
    return head


def _witness(running: ArgoCD, *, since_mark: bool = False) -> Witness:
    return replace(running.made.witness(since_mark=since_mark), agents=AGENTS)


def _outside(events: list[Event]) -> list[Event]:
    """Without what Argo CD writes about itself."""
    return [e for e in events if reference(e)[0] != "argoproj.io" and reference(e)[2] != "argocd"]


def _started(application: Object) -> str:
    return str(application["status"]["operationState"]["startedAt"])


def _tries(found: dict[str, Object], name: str) -> int:
    return int(((found.get(name, {}).get("status") or {}).get("operationState") or {}).get("retryCount", 0))
