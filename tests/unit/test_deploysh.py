"""deploy.sh and undeploy.sh: the order that they hold, and what they do with a (fake) cluster."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import deploysh, payload, undeploy
from compiler.errors import UserError
from compiler.model import Files, Install, Plan
from compiler.tools import run
from tests.support.fake_cluster import Store, crd
from tests.support.plans import IPPOOL_CRD, release, settings, small_plan
from tests.support.scripts import CRDS, Cluster, Ran, write_bundle

ORDER = [r.id for r in small_plan().releases]
NETWORK = "nvidia-network-operator"
GPU_NODE = {"cloud.google.com/gke-accelerator": "x", "gke-no-default-nvidia-gpu-device-plugin": "true"}
INSTALLER = {
    "metadata": {"name": "nvidia-driver-installer", "namespace": "kube-system", "generation": 1},
    "status": {"observedGeneration": 1, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1},
}
CHART_CRD = "kind: CustomResourceDefinition\nmetadata:\n  name: sriovibnetworks.sriovnetwork.openshift.io\n"


def policy(state: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "nic-cluster-policy", "labels": {"bundlec.dev/bundle": "demo"}},
        "status": {"state": state},
    }


# What the operators do after an installation: (calls later, resource, object).
EFFECTS = {
    "install gcp-driver-installer": [[3, "daemonsets.apps", INSTALLER]],
    "install network-operator": [[0, CRDS, crd("nicclusterpolicies.mellanox.com", kind="NicClusterPolicy")]],
    "install network-operator-post": [
        [1, "nicclusterpolicies.mellanox.com", policy("notReady")],
        [3, CRDS, crd("ippools.nv-ipam.nvidia.com", established=False)],
        [5, CRDS, crd("ippools.nv-ipam.nvidia.com")],
        [7, "nicclusterpolicies.mellanox.com", policy("ready")],
    ],
}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(tmp_path / "cluster")
    info = {"osImage": "Ubuntu 24.04.3 LTS", "kernelVersion": "6.8.0"}
    cluster.put("nodes", {"metadata": {"name": "gpu-0", "labels": GPU_NODE}, "status": {"nodeInfo": info}})
    cluster.change(crds=CHART_CRD, helm={"effects": EFFECTS})
    return cluster


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(small_plan(), tmp_path / "bundle")


def helm(cluster: Cluster, **plan: Any) -> None:
    cluster.change(helm={"effects": EFFECTS, **plan})


def settled(cluster: Cluster, bundle: Path) -> None:
    """A cluster on which the whole bundle is installed."""
    ran = cluster.run(bundle / "deploy.sh", "--skip-preflight")
    assert ran.status == 0, ran.said


def content(name: str) -> str:
    return payload.content_hash(small_plan().release(name))


def state(cluster: Cluster, name: str, namespace: str) -> list[tuple[str, str, str]]:
    """(revision, status, content) of the stored revisions."""
    secrets = Store(cluster.folder).state["objects"].get("secrets", {}).values()
    labels = [s["metadata"]["labels"] for s in secrets if s["metadata"]["namespace"] == namespace]
    return [(x["version"], x["status"], x.get("bundlec.dev/content", "")) for x in labels if x["name"] == name]


# --- reading back ----------------------------------------------------------------------------------------------------


def test_read_back_of_the_small_plan():
    plan = small_plan()
    wiring = deploysh.read_back(deploysh.emit(plan))
    assert list(wiring.releases) == ORDER
    assert wiring.hard == set(pairwise(ORDER))
    assert not wiring.soft
    for item in plan.releases:
        for held in item.gate.checks if item.gate else ():
            assert deploysh.tokens(held.check) <= wiring.guards[item.id]


def mutant(old: str, new: str, path: str = "deploy.sh") -> Files:
    files = deploysh.emit(small_plan())
    assert files[path].count(old.encode()) == 1, old
    return {**files, path: files[path].replace(old.encode(), new.encode())}


def holds(files: Files) -> bool:
    """Whether the files hold the late CRD's edge: its provider first, and the gate in front of the dependant."""
    wiring = deploysh.read_back(files)
    order = wiring.releases
    before = {"network-operator-post", "sriov-ib-networks"} <= set(order) and (
        order.index("network-operator-post") < order.index("sriov-ib-networks")
    )
    return before and deploysh.tokens(IPPOOL_CRD) <= wiring.guards.get("sriov-ib-networks", frozenset())


RELEASE = next(x for x in deploysh.emit(small_plan())["deploy.sh"].decode().splitlines() if "release sriov-ib" in x)
GATE = "  gate sriov-ib-networks\n"


def test_the_edge_of_the_late_crd_holds():
    assert holds(deploysh.emit(small_plan()))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (GATE, "", "deploy.sh"),
        (GATE, "  # gate sriov-ib-networks\n", "deploy.sh"),
        (GATE, "  gate network-operator-post\n", "deploy.sh"),
        (GATE + RELEASE, RELEASE + "\n" + GATE.rstrip(), "deploy.sh"),  # the gate behind the release
        (RELEASE + "\n", "", "deploy.sh"),
        ("gate_crd network-operator/ippools 2700 fail always ippools", "gate_crd a 2700 fail always pools", "lib/gate"),
        ("gate_crd network-operator/ippools 2700", "gate_crd network-operator/ippools never", "lib/gate"),
        ("ippools.nv-ipam.nvidia.com || return", "ippools.nv-ipam.nvidia.com", "lib/gate"),
        ("releases() {", "other() {", "deploy.sh"),
    ],
)
def test_a_lost_gate_is_seen(old: str, new: str, path: str):
    assert not holds(mutant(old, new, path))


def test_a_release_above_its_provider_is_seen():
    files = mutant(GATE + RELEASE + "\n", "")
    first = "  release cert-manager "
    moved = files["deploy.sh"].replace(first.encode(), (GATE + RELEASE + "\n" + first).encode())
    assert not holds({**files, "deploy.sh": moved})


def test_a_changed_deadline_is_seen():
    changed = mutant("gate_crd network-operator/ippools 2700", "gate_crd network-operator/ippools 1", "lib/gate")
    assert deploysh.read_back(changed) != deploysh.read_back(deploysh.emit(small_plan()))


def test_a_line_that_is_no_release_is_refused():
    with pytest.raises(UserError) as caught:
        deploysh.read_back(mutant(GATE, "  if false; then gate sriov-ib-networks; fi\n"))
    assert [d.code for d in caught.value.diagnostics] == ["BC6004"]


def test_nothing_is_read_from_the_inventory():
    assert deploysh.read_back({"bundle.yaml": b"releases: []\n"}).releases == ()


def test_removal_is_the_reverse():
    assert list(undeploy.read_order(deploysh.emit(small_plan()))) == ORDER[::-1]


def test_emitting_twice_gives_the_same_bytes():
    assert deploysh.emit(small_plan()) == deploysh.emit(small_plan())


def test_minimum_helm_of_the_bundle():
    def minimum(version: str) -> list[str]:
        text = deploysh.emit(small_plan(settings=settings(helm_min_version=version)))["lib/releases.sh"].decode()
        return [line for line in text.splitlines() if line.startswith("HELM_MIN_")]

    assert minimum("3.19.0") == ["HELM_MIN_3=3.19.0", "HELM_MIN_4=4.1"]
    assert minimum("4.2") == ["HELM_MIN_3=4.2", "HELM_MIN_4=4.2"]


# --- a whole run -----------------------------------------------------------------------------------------------------


def test_empty_cluster(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 0, ran.said
    assert ran.helm("upgrade") == ORDER
    assert ran.changes()[0][:2] == ["kubectl", "apply"]  # namespaces come first
    said = ran.said
    assert said.index("preflight of the bundle demo") < said.index("[1/9] cert-manager: installing")
    assert said.index("[8/9] network-operator-post") < said.index("network-operator/ippools: ")
    assert said.index("policy-ready: holds") < said.index("[9/9] sriov-ib-networks: installing")
    assert "9 of 9 releases changed, 0 unchanged" in said
    for item in small_plan().releases:
        assert state(cluster, item.id, item.namespace) == [("1", "deployed", payload.content_hash(item))]


def test_helm_command_of_each_kind_of_release(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh")
    commands = {c[3]: c[4:] for c in ran.calls if c[:3] == ["helm", "upgrade", "--install"]}
    values = str(bundle / "components")
    common = ["--history-max", "10", "--labels"]
    assert commands["cert-manager"] == [
        "cert-manager", "--repo", "https://charts.jetstack.io", "--version", "v1.20.2", "--namespace", "cert-manager",
        "--timeout", "900s", *common,
        f"bundlec.dev/bundle=demo,bundlec.dev/content={content('cert-manager')},bundlec.dev/teardown=keep,bundlec.dev/revision=1",
        "--values", f"{values}/cert-manager/values.yaml", "--wait", "--wait-for-jobs",
    ]  # fmt: skip
    assert commands["kai-scheduler"] == [
        "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler", "--version", "v0.16.9",
        "--namespace", "kai-scheduler", "--timeout", "600s", *common,
        f"bundlec.dev/bundle=demo,bundlec.dev/content={content('kai-scheduler')},bundlec.dev/teardown=remove,bundlec.dev/revision=1",
        "--values", f"{values}/kai-scheduler/values.yaml",
    ]  # fmt: skip
    assert commands["sriov-ib-networks"][:3] == [f"{values}/sriov-ib-networks", "--namespace", NETWORK]
    assert "--values" not in commands["sriov-ib-networks"]


@pytest.mark.parametrize(
    ("version", "flag"), [("v3.18.6", "--wait"), ("v3.19.0+g1", "--wait"), ("v4.1.4", "--wait=legacy")]
)
def test_wait_strategy(cluster: Cluster, bundle: Path, version: str, flag: str):
    """case 78: on Helm 4 a bare --wait would wait for custom resources."""
    helm(cluster, version=version)
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager")
    (command,) = [c for c in ran.calls if c[:2] == ["helm", "upgrade"]]
    assert flag in command
    assert not {"--force", "--atomic", "--create-namespace"} & set(command)


def test_workloads_without_jobs(cluster: Cluster, tmp_path: Path):
    plan = replace(small_plan(), releases=(replace(small_plan().releases[0], install=Install(60, "workloads", False)),))
    ran = cluster.run(write_bundle(plan, tmp_path / "b") / "deploy.sh")
    (command,) = [c for c in ran.calls if c[:2] == ["helm", "upgrade"]]
    assert "--wait" in command
    assert "--wait-for-jobs" not in command


@pytest.mark.parametrize("version", ["v3.18.5", "v3.9.0", "v2.17.0", "v4.0.9", "v5.0.0"])
def test_helm_that_is_too_old_or_unknown(cluster: Cluster, bundle: Path, version: str):
    helm(cluster, version=version)
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 1
    assert f"this is {version}" in ran.said
    assert ran.changes() == []


def test_second_run_changes_nothing_but_looks_at_every_gate(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 0
    assert ran.helm("upgrade") == []
    assert "0 of 9 releases changed, 9 unchanged" in ran.said
    assert ran.said.count("holds after") == 3


def test_gate_stops_an_unchanged_release_too(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    cluster.put("nicclusterpolicies.mellanox.com", policy("notReady"))
    ran = cluster.run(bundle / "deploy.sh", GATE_TIMEOUT_SCALE="0.0001")
    assert ran.status == 3
    assert "[9/9]" not in ran.said


def test_force_upgrades_all(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    assert cluster.run(bundle / "deploy.sh", "--force").helm("upgrade") == ORDER


def test_only_a_changed_release_is_upgraded(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    plan = small_plan()
    changed = replace(plan.release("gpu-operator"), values={"driver": {"enabled": True}})
    plan = replace(plan, releases=tuple(changed if r.id == changed.id else r for r in plan.releases))
    ran = cluster.run(write_bundle(plan, bundle) / "deploy.sh")
    assert ran.status == 0
    assert ran.helm("upgrade") == ["gpu-operator"]
    assert [s[1] for s in state(cluster, "gpu-operator", "gpu-operator")] == ["superseded", "deployed"]


def test_extra_arguments_of_helm_are_words(cluster: Cluster, tmp_path: Path):
    hostile = f"--description=$(touch {tmp_path}/run) 'x'"
    plan = small_plan(settings=settings(helm_extra_args=("--force-conflicts", hostile)))
    ran = cluster.run(write_bundle(plan, tmp_path / "b") / "deploy.sh", "--only", "cert-manager")
    (command,) = [c for c in ran.calls if c[:2] == ["helm", "upgrade"]]
    assert command[-2:] == ["--force-conflicts", hostile]
    assert not (tmp_path / "run").exists()


# --- failures --------------------------------------------------------------------------------------------------------


def test_gate_that_is_not_met(cluster: Cluster, bundle: Path):
    helm(cluster, effects={k: v for k, v in EFFECTS.items() if "post" not in k})
    ran = cluster.run(bundle / "deploy.sh", GATE_TIMEOUT_SCALE="0.0001")
    assert ran.status == 3
    assert ran.helm("upgrade") == ORDER[:-1]
    assert "network-operator/ippools: NOT met" in ran.said
    assert (
        ran.said.splitlines()[-1]
        == "error: stopped at sriov-ib-networks; to go on: ./deploy.sh --from sriov-ib-networks"
    )
    helm(cluster)
    cluster.put(CRDS, crd("ippools.nv-ipam.nvidia.com"))
    cluster.put("nicclusterpolicies.mellanox.com", policy("ready"))
    again = cluster.run(bundle / "deploy.sh", "--from", "sriov-ib-networks")
    assert (again.status, again.helm("upgrade")) == (0, ["sriov-ib-networks"])


def test_gate_that_may_not_be_read(cluster: Cluster, bundle: Path):
    cluster.change(denied=["daemonsets.apps"])
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 1
    assert "access denied" in ran.said


def test_failed_release_shows_pods_and_events_and_how_to_go_on(cluster: Cluster, bundle: Path):
    helm(cluster, fail={"gpu-operator": [["failed", "Error: context deadline exceeded"]]})
    pod = {"metadata": {"name": "gpu-operator-1", "namespace": "gpu-operator"}, "shown": "0/1 ImagePullBackOff 0 5m"}
    event = {
        "metadata": {"name": "e", "namespace": "gpu-operator"},
        "involvedObject": {"kind": "Pod", "name": "gpu-operator-1"},
        "message": "image not found",
    }
    cluster.put("pods", pod)
    cluster.put("events", event)
    ran = cluster.run(bundle / "deploy.sh", "--context", "prod")
    assert ran.status == 1
    assert ran.helm("upgrade") == ORDER[:5]
    tail = ran.said.splitlines()[-7:]
    assert tail == [
        "Error: context deadline exceeded",
        "gpu-operator: NOT installed",
        "  pods    gpu-operator-1 0/1 ImagePullBackOff",
        "  events  Pod/gpu-operator-1: image not found",
        "  next    kubectl --context prod -n gpu-operator get pods -o wide",
        "  next    kubectl --context prod -n gpu-operator get events --sort-by .lastTimestamp",
        "error: stopped at gpu-operator; to go on: ./deploy.sh --context prod --from gpu-operator",
    ]


MISSING = 'Error: unable to build kubernetes objects: no matches for kind "IPPool"\nensure CRDs are installed first'


def test_kind_that_is_unknown_for_a_moment_is_tried_again(cluster: Cluster, bundle: Path):
    helm(cluster, fail={"sriov-ib-networks": [["", MISSING], ["", MISSING]]})
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 0
    assert ran.helm("upgrade").count("sriov-ib-networks") == 3


def test_webhook_that_does_not_answer_yet_is_tried_again_from_a_clean_record(cluster: Cluster, bundle: Path):
    failed = 'Error: INSTALLATION FAILED: failed calling webhook "v.x": connection refused'
    helm(cluster, fail={"sriov-ib-networks": [["failed", failed]]})
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 0
    assert state(cluster, "sriov-ib-networks", NETWORK) == [("1", "deployed", content("sriov-ib-networks"))]


def test_another_failure_is_not_tried_again(cluster: Cluster, bundle: Path):
    helm(cluster, fail={"cert-manager": [["failed", "Error: values don't meet the specifications"]] * 3})
    assert cluster.run(bundle / "deploy.sh").helm("upgrade") == ["cert-manager"]


def test_a_field_that_others_changed_is_taken_back(cluster: Cluster, bundle: Path):
    conflict = 'Error: conflict occurred while applying object x: conflicts with "kubectl": .spec.replicas'
    settled(cluster, bundle)
    helm(cluster, fail={"cert-manager": [["failed", conflict]]})
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager", "--force")
    assert ran.status == 0, ran.said
    upgrades = [call for call in ran.calls if call[:2] == ["helm", "upgrade"]]
    assert ["--force-conflicts" in call for call in upgrades] == [False, True]
    helm(cluster, fail={"cert-manager": [["failed", conflict]] * 2})
    assert cluster.run(bundle / "deploy.sh", "--only", "cert-manager", "--force").status == 1


def test_a_revision_that_others_made_is_none_of_ours(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    # Helm hands the labels of a revision on to the next one.
    labels = {"bundle": "demo", "content": content("cert-manager"), "teardown": "keep", "revision": "1"}
    cluster.record("cert-manager", "cert-manager", 2, "deployed", **labels)
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.helm("upgrade") == ["cert-manager"]
    assert cluster.run(bundle / "deploy.sh").helm("upgrade") == []


def test_a_revision_that_helmfile_made_is_ours(cluster: Cluster, bundle: Path):
    labels = {"bundle": "demo", "content": content("cert-manager"), "teardown": "keep"}
    cluster.record("cert-manager", "cert-manager", 4, "deployed", **labels)
    assert cluster.run(bundle / "deploy.sh", "--only", "cert-manager").helm("upgrade") == []


def test_helm_and_kubectl_go_to_one_cluster(cluster: Cluster, bundle: Path):
    for script in ("deploy.sh", "undeploy.sh"):
        ran = cluster.run(bundle / script, "--dry-run", HELM_KUBECONTEXT="prod")
        assert ran.status == 0, ran.said
        asked = [call for call in ran.calls if call[0] == "kubectl"]
        assert asked
        assert all(call[1:3] == ["--context", "prod"] for call in asked)
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager", "--skip-preflight", HELM_KUBECONTEXT="prod")
    (call,) = [call for call in ran.calls if "upgrade" in call]
    assert call[:3] == ["helm", "--kube-context", "prod"]
    ran = cluster.run(bundle / "deploy.sh", HELM_KUBEAPISERVER="https://elsewhere")
    assert (ran.status, ran.changes()) == (2, [])


def test_what_cannot_work_is_said_before_anything_is_touched(cluster: Cluster, tmp_path: Path, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh", TMPDIR=str(tmp_path / "none"))
    assert (ran.status, ran.changes()) == (1, [])
    assert "set TMPDIR" in ran.said
    ran = cluster.run(write_bundle(small_plan(), tmp_path / "a,b") / "deploy.sh")
    assert (ran.status, ran.changes()) == (1, [])
    assert "move the bundle" in ran.said


def test_the_command_to_go_on_is_the_one_that_stopped(cluster: Cluster, bundle: Path):
    fail = {"cert-manager": [["failed", "Error: no"]] * 3}
    for options, wanted in (
        (["--only", "cert-manager", "--force", "--skip-preflight"], " --only cert-manager --force --skip-preflight"),
        (["--prune", "--skip-checksums"], " --prune --skip-checksums"),
        (["--context", "prod"], " --context prod --from cert-manager"),
    ):
        helm(cluster, fail=fail)
        ran = cluster.run(bundle / "deploy.sh", *options)
        assert ran.said.splitlines()[-1] == f"error: stopped at cert-manager; to go on: ./deploy.sh{wanted}"


def test_tries_end(cluster: Cluster, bundle: Path):
    helm(cluster, fail={"cert-manager": [["", MISSING]] * 9})
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 1
    assert ran.helm("upgrade") == ["cert-manager"] * 6


# --- recovery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "reason"), [("pending-install", "left pending-install"), ("failed", "its first installation failed")]
)
def test_first_installation_that_was_cut_short(cluster: Cluster, bundle: Path, status: str, reason: str):
    cluster.record("cert-manager", "cert-manager", 1, status, bundle="demo", content=content("cert-manager"))
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager")
    assert ran.status == 0, ran.said
    assert f"cert-manager: {reason}" in ran.said
    assert ["kubectl", "delete", "secret", "sh.helm.release.v1.cert-manager.v1", "-n", "cert-manager"] in ran.calls
    assert ran.helm("uninstall") == []
    assert state(cluster, "cert-manager", "cert-manager") == [("1", "deployed", content("cert-manager"))]


def test_upgrade_that_was_cut_short(cluster: Cluster, bundle: Path):
    cluster.record("cert-manager", "cert-manager", 9, "superseded", bundle="demo", content="00000000")
    cluster.record("cert-manager", "cert-manager", 10, "deployed", bundle="demo", content="00000001")
    cluster.record(
        "cert-manager", "cert-manager", 11, "pending-upgrade", bundle="demo", content=content("cert-manager")
    )
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager")
    assert ran.status == 0, ran.said
    assert ["helm", "rollback", "cert-manager", "10", "--namespace", "cert-manager", "--no-hooks"] in ran.calls
    assert ran.helm("upgrade") == ["cert-manager"]
    assert not any(c[1] in ("delete", "uninstall") for c in ran.calls)


def test_later_failure_is_simply_upgraded(cluster: Cluster, bundle: Path):
    """The label of a failed revision says what was tried, not what is there."""
    cluster.record("cert-manager", "cert-manager", 1, "deployed", bundle="demo", content="00000001")
    cluster.record("cert-manager", "cert-manager", 2, "failed", bundle="demo", content=content("cert-manager"))
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager")
    assert (ran.status, ran.helm("upgrade")) == (0, ["cert-manager"])
    assert not any(c[1] in ("delete", "rollback") for c in ran.calls)


def test_revisions_are_compared_as_numbers(cluster: Cluster, bundle: Path):
    cluster.record("cert-manager", "cert-manager", 9, "superseded", bundle="demo", content="00000000")
    labels = {"bundle": "demo", "content": content("cert-manager"), "teardown": "keep", "revision": "10"}
    cluster.record("cert-manager", "cert-manager", 10, "deployed", **labels)
    assert cluster.run(bundle / "deploy.sh", "--only", "cert-manager").helm("upgrade") == []


def test_release_that_is_being_removed_stops(cluster: Cluster, bundle: Path):
    cluster.record("cert-manager", "cert-manager", 1, "uninstalling", bundle="demo")
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager")
    assert ran.status == 1
    assert "finish that first: ./undeploy.sh --only cert-manager" in ran.said
    assert ran.helm("upgrade") == []


def test_state_that_cannot_be_read_stops(cluster: Cluster, bundle: Path):
    cluster.change(denied=["secrets"])
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 1
    assert "cert-manager: its state cannot be read: Error from server (Forbidden)" in ran.said
    assert ran.helm("upgrade") == []


def test_records_in_config_maps(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh", "--only", "cert-manager", HELM_DRIVER="configmap")
    assert any(c[1:4] == ["--request-timeout=20s", "get", "configmap"] for c in ran.calls)
    assert cluster.run(bundle / "deploy.sh", HELM_DRIVER="sql").status == 1


# --- selection -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--only", "cert-manager"], ["cert-manager"]),
        (["--only=gpu-operator"], ["gpu-operator-pre", "gpu-operator"]),
        (["--only", "gpu-operator-pre"], ["gpu-operator-pre"]),
        (["--only", "kai-scheduler", "--only", "cert-manager"], ["cert-manager", "kai-scheduler"]),
        (["--from", "kai-scheduler"], ORDER[5:]),
        (["--from", "gpu-operator"], ORDER[3:]),
        (["--from", "network-operator-post"], ORDER[7:]),
        (["--from", "kai-scheduler", "--only", "network-operator"], ["network-operator", "network-operator-post"]),
    ],
)
def test_selection(cluster: Cluster, bundle: Path, arguments: list[str], wanted: list[str]):
    settled(cluster, bundle)
    ran = cluster.run(bundle / "deploy.sh", "--force", *arguments)
    assert ran.status == 0, ran.said
    assert ran.helm("upgrade") == wanted
    assert ("sriov-ib-networks: network-operator/ippools: holds" in ran.said) is ("sriov-ib-networks" in wanted)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", ""],
        ["--only="],
        ["--only"],
        ["--from", ""],
        ["--only", "no-such"],
        ["--only", "cert-manager", "--only", "no-such"],
        ["--from", "sriov-ib-networks", "--only", "cert-manager"],
        ["--from", "no-such"],
        ["--context", ""],
        ["--what"],
        ["cert-manager"],
        ["--prune", "--only", "cert-manager"],
        ["--health", "--only", "kai-scheduler"],
    ],
)
def test_nothing_selected_is_an_error(cluster: Cluster, bundle: Path, arguments: list[str]):
    """case 57: an empty selection is not everything."""
    ran = cluster.run(bundle / "deploy.sh", *arguments)
    assert ran.status == 2, ran.said
    assert ran.changes() == []


def test_scale_that_is_no_number_is_wrong_usage(cluster: Cluster, bundle: Path):
    assert cluster.run(bundle / "deploy.sh", GATE_TIMEOUT_SCALE="x").status == 2


@pytest.mark.parametrize("poll", ["abc", "0", "0.0", "-1", "5s", "."])
def test_pause_that_is_none_is_wrong_usage(cluster: Cluster, bundle: Path, poll: str):
    """`sleep` would fail or return at once, and the gates would ask the API server without a pause."""
    for script in ("deploy.sh", "undeploy.sh"):
        ran = cluster.run(bundle / script, GATE_POLL=poll)
        assert (ran.status, ran.calls) == (2, [])
    ran = cluster.run(bundle / "lib" / "gate", "sriov-ib-networks", GATE_POLL=poll)
    assert (ran.status, ran.calls) == (2, [])
    assert f"GATE_POLL is '{poll}', wants" in ran.out


# --- what changes nothing --------------------------------------------------------------------------------------------


def test_dry_run(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh", "--dry-run")
    assert ran.status == 0, ran.said
    assert ran.changes() == []
    assert "[9/9] sriov-ib-networks: installing in namespace nvidia-network-operator" in ran.said
    assert "  wait  network-operator/ippools: Error from server (NotFound)" in ran.said
    assert "dry run: 9 of 9 releases would change" in ran.said
    settled(cluster, bundle)
    assert "dry run: 0 of 9 releases would change" in cluster.run(bundle / "deploy.sh", "--dry-run").said


def test_health(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = cluster.run(bundle / "deploy.sh", "--health")
    assert ran.status == 1
    assert ran.changes() == []
    assert [line[:6] for line in ran.said.splitlines()[1:-1]] == ["  FAIL", "  ok  ", "  ok  ", "  ok  "]
    assert ran.said.splitlines()[-1] == "3 of 4 health checks hold"
    assert cluster.run(bundle / "deploy.sh", "--health", "--only", "network-operator").status == 0


@pytest.mark.parametrize("option", [["--from", "gpu-operator"], ["--prune"], ["--force"]])
def test_health_refuses_what_it_would_ignore(cluster: Cluster, bundle: Path, option: list[str]):
    ran = cluster.run(bundle / "deploy.sh", "--health", *option)
    assert (ran.status, ran.calls) == (2, []), ran.said


def test_help_needs_no_cluster(bundle: Path, tmp_path: Path):
    for script in ("deploy.sh", "undeploy.sh", "preflight.sh"):
        result = run([bundle / script, "--help"], env={"PATH": "/usr/bin:/bin"})
        assert result.text.startswith(f"usage: ./{script}")
        assert "Exit status: 0" in result.text


# --- before anything is applied --------------------------------------------------------------------------------------


def test_preflight_refuses(cluster: Cluster, bundle: Path):
    cluster.change(version="v1.33.1")
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 4
    assert "FAIL  K8s.server.version >= 1.34: v1.33.1" in ran.said
    assert ran.changes() == []
    assert cluster.run(bundle / "deploy.sh", "--skip-preflight").status == 0


@pytest.mark.parametrize("change", ["edit", "remove", "add"])
def test_files_that_are_not_what_was_compiled(cluster: Cluster, bundle: Path, change: str):
    """case 75: changed, missing and extra files all stop the run before anything is applied."""
    target = bundle / "components/gpu-operator/values.yaml"
    if change == "edit":
        target.write_text("driver: {enabled: true}\n")
    elif change == "remove":
        target.unlink()
    else:
        (bundle / "components/sriov-ib-networks/manifests/ippool-extra.yaml").write_text("kind: IPPool\n")
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 5
    assert ran.changes() == []
    if change != "remove":
        assert cluster.run(bundle / "deploy.sh", "--skip-checksums").status == 0


def test_namespace_that_is_being_deleted_is_waited_for(cluster: Cluster, bundle: Path):
    cluster.put("namespaces", {"metadata": {"name": "gpu-operator"}, "status": {"phase": "Terminating"}})
    ran = cluster.run(bundle / "deploy.sh", GATE_TIMEOUT_SCALE="0.001")
    assert ran.status == 1
    assert "namespaces: still being deleted" in ran.said
    assert ran.changes() == []


def test_missing_program(bundle: Path, tmp_path: Path):
    empty = tmp_path / "bin"
    empty.mkdir()
    for name in ("bash", "dirname", "sha256sum", "find", "awk", "cat", "env"):
        (empty / name).symlink_to(
            subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        )
    result = run([bundle / "deploy.sh"], env={"PATH": str(empty)}, check=False)
    assert result.returncode == 1
    assert b"kubectl is not on PATH" in result.stderr


# --- CRDs before a release -------------------------------------------------------------------------------------------


def test_crds_are_applied_before_their_release(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh")
    changes = ran.changes()
    at = next(i for i, c in enumerate(changes) if c[:4] == ["helm", "upgrade", "--install", "network-operator"])
    assert changes[at - 1] == [
        "kubectl",
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=bundlec",
        "-f",
        "-",
    ]
    again = cluster.run(bundle / "deploy.sh")
    assert not [c for c in again.changes() if c[-1] == "-"]


def test_crd_that_the_chart_does_not_hold_stops_its_release(cluster: Cluster, bundle: Path):
    cluster.change(crds="kind: CustomResourceDefinition\nmetadata:\n  name: other.x.example\n")
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 1
    assert ran.helm("upgrade") == ORDER[:6]


# --- context, folders ------------------------------------------------------------------------------------------------


def test_context_reaches_every_call(cluster: Cluster, bundle: Path):
    ran = cluster.run(bundle / "deploy.sh", "--context", "prod")
    assert ran.status == 0
    local = [["helm", "version"], ["helm", "show"]]
    for call in ran.calls:
        option = "--context" if call[0] == "kubectl" else "--kube-context"
        assert call[1:3] == [option, "prod"] or call[:2] in local, call
    assert "context prod" in ran.said


def test_works_from_any_folder_and_keeps_a_relative_kubeconfig(cluster: Cluster, tmp_path: Path):
    bundle = write_bundle(small_plan(), tmp_path / "a b$(c)'d")
    (tmp_path / "kube").write_text("here")
    program = cluster.bin / "kubectl"
    program.write_text(program.read_text().replace("exec", '[ "$(cat "${KUBECONFIG%%:*}")" = here ] || exit 9\nexec'))
    for cwd, script in ((tmp_path, f"{bundle.name}/deploy.sh"), (tmp_path, bundle / "deploy.sh")):
        ran = cluster.run(script, cwd=cwd, KUBECONFIG="kube:other", CDPATH="/")
        assert ran.status == 0, ran.said


# --- releases that left the bundle -----------------------------------------------------------------------------------


def leftovers(cluster: Cluster) -> None:
    names = [
        ("old-pre", "x", "last"),
        ("old-post", "x", "first"),
        ("older", "x", "remove"),
        ("old", "x", "remove"),
        ("crds", "y", "keep"),
        ("cert-manager", "elsewhere", "remove"),
    ]
    for name, namespace, teardown in names:
        cluster.record(name, namespace, 1, "deployed", bundle="demo", teardown=teardown)
        cluster.change(calls=Store(cluster.folder).state["calls"] + 1)
    cluster.record("foreign", "x", 1, "deployed", bundle="another")
    cluster.record("unlabelled", "x", 1, "deployed")


def test_leftovers_are_listed(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    leftovers(cluster)
    ran = cluster.run(bundle / "deploy.sh")
    assert ran.status == 0
    assert ran.helm("uninstall") == []
    listed = [line for line in ran.said.splitlines() if line.startswith("no longer in this bundle: ")]
    assert len(listed) == 6
    assert not any(word in ran.said for word in ("foreign", "unlabelled"))


def test_prune_removes_our_objects_first_then_the_newest_and_spares_crds(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    leftovers(cluster)
    ran = cluster.run(bundle / "deploy.sh", "--prune")
    assert ran.status == 0, ran.said
    assert ran.helm("uninstall") == ["old-post", "cert-manager", "old", "older", "old-pre"]
    assert "y/crds; it carries CRDs" in ran.said
    assert state(cluster, "cert-manager", "cert-manager")


def test_prune_in_a_dry_run_only_lists(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    leftovers(cluster)
    assert cluster.run(bundle / "deploy.sh", "--prune", "--dry-run").changes() == []


@pytest.mark.parametrize("arguments", [[], ["--prune"], ["--prune", "--dry-run"]])
def test_prune_leaves_what_waits_for_the_cluster_to_the_bundle_that_held_it(
    cluster: Cluster, tmp_path: Path, bundle: Path, arguments: list[str]
):
    """Its conditions are in the old bundle's lib/gate; dependants and providers stay with it."""
    settled(cluster, bundle)
    gone = {"network-operator", "network-operator-post", "sriov-ib-networks"}
    plan = small_plan()
    plan = replace(plan, releases=tuple(r for r in plan.releases if r.id not in gone))
    ran = cluster.run(write_bundle(plan, tmp_path / "later") / "deploy.sh", *arguments)
    assert ran.status == (1 if arguments == ["--prune"] else 0), ran.said
    assert ran.changes() == [] if "--dry-run" in arguments else ran.helm("uninstall") == []
    assert "the removal of network-operator-post network-operator has to wait for the cluster" in ran.said
    (fix,) = [line for line in ran.said.splitlines() if "./undeploy.sh" in line]
    assert {f"--only {name}" in fix for name in gone} == {True}


def test_a_release_that_got_conditions_is_labelled(cluster: Cluster, bundle: Path, tmp_path: Path):
    plan = small_plan()
    bare = tuple(replace(r, teardown_before=()) for r in plan.releases)
    settled(cluster, write_bundle(replace(plan, releases=bare), tmp_path / "before"))
    waits = [r.id for r in plan.releases if payload.teardown(r) == "wait"]
    assert waits
    assert cluster.run(bundle / "deploy.sh").helm("upgrade") == waits
    assert cluster.run(bundle / "deploy.sh").helm("upgrade") == []


# --- removal ---------------------------------------------------------------------------------------------------------

STATES = "sriovnetworknodestates.sriovnetwork.openshift.io"


def node_state(status: str) -> tuple[str, dict[str, Any]]:
    return STATES, {"metadata": {"name": "gpu-0", "namespace": NETWORK}, "status": {"syncStatus": status}}


def remove(cluster: Cluster, bundle: Path, *arguments: str, **env: str) -> Ran:
    return cluster.run(bundle / "undeploy.sh", "--yes", *arguments, **env)


def test_removal_in_reverse_order_keeps_crds_and_namespaces(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = remove(cluster, bundle)
    assert ran.status == 0, ran.said
    assert ran.helm("uninstall") == ORDER[:0:-1]  # cert-manager carries CRDs
    assert {c[1] for c in ran.changes()} == {"uninstall"}
    assert "done; 1 releases with CRDs stay" in ran.said
    for call in ran.calls:
        if call[1] == "uninstall":
            assert {"--ignore-not-found", "--wait", "--cascade", "foreground"} <= set(call)


def test_removal_with_helm_4_polls(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    helm(cluster, version="v4.1.4")
    ran = remove(cluster, bundle, "--only", "kai-scheduler")
    (command,) = [c for c in ran.calls if c[:2] == ["helm", "uninstall"]]
    assert "--wait=legacy" in command


def test_removal_twice(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    remove(cluster, bundle)
    ran = remove(cluster, bundle)
    assert ran.status == 0
    assert ran.changes() == []
    assert ran.said.count("not installed") == 8


def test_removal_waits_for_the_cluster(cluster: Cluster, bundle: Path):
    """The operator stays until every node is done with the change that the removal of its networks caused."""
    settled(cluster, bundle)
    cluster.put(CRDS, crd(STATES, kind="SriovNetworkNodeState"))
    cluster.put(*node_state("InProgress"))
    calls = Store(cluster.folder).state["calls"]
    cluster.change(later=[[calls + 9, *node_state("Succeeded")]])
    ran = remove(cluster, bundle)
    assert ran.status == 0
    assert "0 of 1 are 'Succeeded'" in ran.said
    assert ran.helm("uninstall")[:3] == ["sriov-ib-networks", "network-operator-post", "network-operator"]


def test_removal_that_is_stuck_shows_how_to_recover_and_forces_nothing(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    cluster.put(CRDS, crd(STATES, kind="SriovNetworkNodeState"))
    cluster.put(*node_state("InProgress"))
    cluster.put(CRDS, crd("nodemaintenances.maintenance.nvidia.com", kind="NodeMaintenance"))
    hung = {"name": "gpu-0", "namespace": NETWORK, "finalizers": ["maintenance.nvidia.com/finalizer"]}
    cluster.put(
        "nodemaintenances.maintenance.nvidia.com", {"metadata": {**hung, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    cluster.put("nodemaintenances.maintenance.nvidia.com", {"metadata": {**hung, "name": "alive"}})
    ran = remove(cluster, bundle, GATE_TIMEOUT_SCALE="0.0001")
    assert ran.status == 3
    assert ran.helm("uninstall") == ["sriov-ib-networks"]
    assert (
        f"stuck: NodeMaintenance {NETWORK}/gpu-0 wait(s) for the finalizer maintenance.nvidia.com/finalizer" in ran.said
    )
    assert "  kubectl get nodemaintenances.maintenance.nvidia.com -A" in ran.said
    assert "alive" not in ran.said
    assert {c[1] for c in ran.changes()} == {"uninstall"}


def test_helm_that_cannot_remove_stops_the_rest(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    helm(cluster, stuck=["network-operator"])
    ran = remove(cluster, bundle)
    assert ran.status == 1
    assert ran.helm("uninstall") == ["sriov-ib-networks", "network-operator-post", "network-operator"]
    assert ran.said.splitlines()[-1] == "error: stopped at network-operator; once that is settled: ./undeploy.sh"


def test_purge(cluster: Cluster, tmp_path: Path):
    """Releases with CRDs, the CRDs that the bundle brings, and namespaces in which nobody else has a release."""
    plan = replace(small_plan(), crds=("ippools.nv-ipam.nvidia.com", "not.there.example"))
    bundle = write_bundle(plan, tmp_path / "bundle")
    settled(cluster, bundle)
    cluster.record("foreign", "kai-scheduler", 1, "deployed")
    ran = remove(cluster, bundle, "--purge")
    assert ran.status == 0, ran.said
    assert ran.helm("uninstall") == ORDER[::-1]
    gone = {
        kind: [w for c in ran.calls if c[1:3] == ["delete", kind] for w in c[3 : c.index("--ignore-not-found")]]
        for kind in ("namespace", "customresourcedefinition")
    }
    assert gone["namespace"] == ["cert-manager", "gpu-operator", NETWORK]
    assert gone["customresourcedefinition"] == list(plan.crds)
    assert "namespace kai-scheduler: stays, it holds the releases foreign" in ran.said
    left = Store(cluster.folder).state["objects"][CRDS]
    assert "/ippools.nv-ipam.nvidia.com" not in left
    assert "/nicclusterpolicies.mellanox.com" in left


def test_a_purge_does_not_go_behind_the_back_of_those_who_keep_the_bundle(cluster: Cluster, bundle: Path):
    kept = {"metadata": {"name": "demo-x", "namespace": "argocd", "labels": {"bundlec.dev/bundle": "demo"}}}
    for kind in ("applications.argoproj.io", "helmreleases.helm.toolkit.fluxcd.io"):
        cluster.put(CRDS, crd(kind, kind="X"))
        cluster.put(kind, kept)
        ran = remove(cluster, bundle, "--purge")
        assert (ran.status, ran.changes()) == (1, [])
        assert "argocd/remove.sh or flux/remove.sh first" in ran.said
        cluster.drop(kind, "demo-x", "argocd")


def test_releases_that_helm_recorded_elsewhere_are_not_taken_for_gone(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = remove(cluster, bundle, HELM_DRIVER="configmap")
    assert (ran.status, ran.changes()) == (1, [])
    assert "set HELM_DRIVER=secret" in ran.said


def test_a_removal_of_parts_goes_on_with_them(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    helm(cluster, stuck=["sriov-ib-networks"])
    ran = remove(cluster, bundle, "--only", "sriov-ib-networks")
    assert ran.said.splitlines()[-1].endswith("once that is settled: ./undeploy.sh --only sriov-ib-networks")


def test_removal_dry_run(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = cluster.run(bundle / "undeploy.sh", "--dry-run", "--purge")
    assert ran.status == 0
    assert ran.changes() == []
    assert "[1/9] sriov-ib-networks: would be removed from namespace nvidia-network-operator" in ran.said
    assert "then the CRDs" in ran.said


def test_removal_asks(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    ran = cluster.run(bundle / "undeploy.sh", stdin="demo\n")
    assert ran.status == 2  # nobody to ask: standard input is no terminal
    assert ran.changes() == []
    for answer, status in (("no\n", 1), ("demo\n", 0)):
        ran = cluster.run(
            "script",
            "-qec",
            shlex.join([str(bundle / "undeploy.sh"), "--only", "kai-scheduler"]),
            "/dev/null",
            stdin=answer,
        )
        assert ran.status == status
        assert bool(ran.changes()) is not bool(status)


@pytest.mark.parametrize(
    "arguments", [["--only", ""], ["--only", "no-such"], ["--what"], ["--purge", "--only", "cert-manager"]]
)
def test_removal_wrong_usage(cluster: Cluster, bundle: Path, arguments: list[str]):
    ran = remove(cluster, bundle, *arguments)
    assert (ran.status, ran.changes()) == (2, [])


def test_removal_of_one_component(cluster: Cluster, bundle: Path):
    settled(cluster, bundle)
    assert remove(cluster, bundle, "--only", "gpu-operator").helm("uninstall") == ["gpu-operator", "gpu-operator-pre"]


@pytest.mark.parametrize(("labels", "owner"), [({}, "no bundle"), ({"bundle": "other"}, "the bundle other")])
def test_removal_spares_what_the_bundle_did_not_install(
    cluster: Cluster, bundle: Path, labels: dict[str, str], owner: str
):
    settled(cluster, bundle)
    cluster.record("kai-scheduler", "kai-scheduler", 1, "deployed", **labels)
    ran = remove(cluster, bundle, "--purge")
    assert (ran.status, ran.changes()) == (1, [])
    assert "kai-scheduler/kai-scheduler" in ran.said
    ran = remove(cluster, bundle)
    assert ran.status == 1
    assert ran.helm("uninstall") == [name for name in ORDER[:0:-1] if name != "kai-scheduler"]
    assert f"kai-scheduler: stays (--force-foreign removes it), since it is of {owner}" in ran.said
    assert remove(cluster, bundle, "--force-foreign").helm("uninstall") == ["kai-scheduler"]


# --- processes -------------------------------------------------------------------------------------------------------


def test_interrupted_while_helm_works(cluster: Cluster, bundle: Path):
    """Ctrl-C ends the run with 130, whatever Helm makes of it, and leaves no process or file behind."""
    program = cluster.bin / "helm"
    real = program.read_text()
    program.write_text(
        "#!/bin/bash\ncase $1 in upgrade) trap 'exit 1' INT; touch \"$HOME/at-work\"; sleep 20 >&- 2>&- & wait; esac\n"
        + real.partition("\n")[2]
    )
    scratch = cluster.folder / "tmp"
    scratch.mkdir()
    env = {"PATH": f"{cluster.bin}:/usr/bin:/bin", "HOME": str(cluster.folder), "TMPDIR": str(scratch)}
    started = time.monotonic()
    command = [str(bundle / "deploy.sh"), "--skip-preflight"]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (cluster.folder / "at-work").exists() and time.monotonic() - started < 15:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert list(scratch.iterdir()) == []
    left = subprocess.run(["ps", "-o", "args=", "-g", str(process.pid)], capture_output=True, text=True, check=False)
    assert "deploy.sh" not in left.stdout
    assert time.monotonic() - started < 15


def test_a_run_holds_no_pipe_open_after_its_end(cluster: Cluster, bundle: Path):
    """The process that reports on waiting pods must not keep a CI job's log open."""
    started = time.monotonic()
    ran = cluster.run(bundle / "deploy.sh", "--skip-preflight")
    assert ran.status == 0
    assert time.monotonic() - started < 25


# --- form ------------------------------------------------------------------------------------------------------------

SCRIPTS = ("deploy.sh", "undeploy.sh", "preflight.sh", "lib/gates.sh", "lib/gate", "lib/prepare", "lib/releases.sh")


def hostile() -> Plan:
    """The small plan with a release whose every word wants to be run."""
    trap = "$(touch run);`touch run` 'x' \"y\" \\ -z"
    bad = release("x", trap, "main", trap, install=Install(1, "none", False))
    base = small_plan(settings=settings(helm_extra_args=(trap,)))
    return replace(base, releases=(*base.releases, bad))


@pytest.mark.tools
@pytest.mark.parametrize("plan", [small_plan(), hostile(), replace(small_plan(), preflight=(), components=())])
def test_scripts_are_clean(plan: Plan, tmp_path: Path, tool: Any):
    """case 72: bash -n and shellcheck, for hostile words too."""
    write_bundle(plan, tmp_path)
    paths = [tmp_path / name for name in SCRIPTS]
    for path in paths:
        run(["bash", "-n", path])
    run([tool("shellcheck"), "-x", *paths])


def test_hostile_words_are_only_words(cluster: Cluster, tmp_path: Path):
    bundle = write_bundle(hostile(), tmp_path / "b")
    ran = cluster.run(bundle / "deploy.sh", "--only", "x", "--skip-preflight", cwd=tmp_path)
    assert ran.helm("upgrade") == ["x"]
    assert not list(tmp_path.rglob("run"))


def test_scripts_keep_to_old_bash():
    """Nothing newer than bash 4.2, and no plain expansion of an array that may be empty: `set -u` ends such a bash."""
    texts: Mapping[str, bytes] = deploysh.emit(small_plan())
    for name in SCRIPTS:
        text = texts[name].decode()
        for word in (
            "@Q}",
            "@A}",
            "local -n",
            "declare -n",
            "wait -n",
            "mapfile -d",
            "inherit_errexit",
            "EPOCHSECONDS",
        ):
            assert word not in text, (name, word)
    for array in ("ONLY", "HELM_EXTRA_ARGS", "CRDS"):
        for name in SCRIPTS:
            lines = [x for x in texts[name].decode().splitlines() if f'"${{{array}[@]}}"' in x]
            assert all(f'${{{array}[@]+"${{{array}[@]}}"}}' in x or 'for name in "${ONLY[@]}"' in x for x in lines), (
                lines
            )
