"""`bundlec verify` on a copy of the NVKE bundle: whoever weakens the gate of sriov-ib-networks by hand is told.

The IPPool CRD exists only once the operator has reconciled the NicClusterPolicy, so all four deployers have to hold
sriov-ib-networks until network-operator-post is ready. Each case below takes that away from one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.bundle import Bundle
from tests.bundles.cli import Bundlec
from tests.bundles.tamper import (
    Files,
    Tamper,
    deleted,
    dropped,
    edited,
    moved_before,
    replaced,
    without_case,
    without_line,
)
from tests.support.trees import with_checksums

GUARD = "argocd/guards/sriov-ib-networks/sriov-ib-networks.yaml"
STEPS = "spec.template.spec.initContainers"
APP = "argocd/apps/sriov-ib-networks.yaml"
GATE = "flux/graph/gate-sriov-ib-networks.yaml"
NODE = "flux/graph/sriov-ib-networks.yaml"


def release(data: Any) -> Any:
    """sriov-ib-networks in helmfile.yaml."""
    (found,) = [r for r in data["releases"] if r["name"] == "sriov-ib-networks"]
    return found


def hook(data: Any) -> Any:
    """Its gate."""
    (found,) = [h for h in release(data)["hooks"] if h["name"] == "gate"]
    return found


def annotate(key: str, value: str) -> Callable[[Any], None]:
    return lambda data: data["metadata"]["annotations"].update({f"argocd.argoproj.io/{key}": value})


# What the message says: a check that the gate lost, or what is out of order.
CRD = "does not wait for: CRD ippools.nv-ipam.nvidia.com is Established"
POLICY = "does not wait for: NicClusterPolicy nic-cluster-policy: status.state is ready"
ORDER = "is not held"
BEHIND = "the gate of sriov-ib-networks is not behind network-operator-post"

CASES: dict[str, list[tuple[str, Tamper, str]]] = {
    "deploy.sh": [
        ("the gate's line", without_line("deploy.sh", "gate sriov-ib-networks"), CRD),
        ("the gate too early", moved_before("deploy.sh", "gate sriov-ib-networks", "gate network-operator-post"), CRD),
        ("the order", moved_before("deploy.sh", "(gate|release) sriov-ib-networks.*", "gate network-operator-"), ORDER),
        ("the table's entry", without_case("lib/gate", "sriov-ib-networks"), CRD),
        ("the check of the CRD", without_line("lib/gate", r"gate_crd .* ippools\.nv-ipam\.nvidia\.com .*"), CRD),
    ],
    "helmfile": [
        ("the hook", edited("helmfile.yaml", lambda d: release(d)["hooks"].remove(hook(d))), CRD),
        ("the hook too late", edited("helmfile.yaml", lambda d: hook(d).update(events=["postsync"])), CRD),
        ("another gate", replaced("helmfile.yaml", "    - sriov-ib-networks\n  - name: prep", "    - x\n  - name: prep"), CRD),
        ("the need", edited("helmfile.yaml", lambda d: release(d)["needs"].pop()), ORDER),
        ("the check of the policy", without_line("lib/gate", "gate_field network-operator/policy-ready .*"), POLICY),
        ("another policy", replaced("lib/gate", " nic-cluster-policy ", " other "), POLICY),
        ("another state", replaced("lib/gate", "'{.status.state}' equals ready ", "'{.status.state}' equals error "), POLICY),
        ("a warning only", replaced("lib/gate", "policy-ready 1200 fail", "policy-ready 1200 warn"), POLICY),
        ("a shorter deadline", replaced("lib/gate", "policy-ready 1200 fail", "policy-ready 12 fail"), POLICY),
    ],
    "argocd": [
        ("the guard's file", deleted(GUARD), CRD),
        ("the guard's source", dropped(APP, "spec.sources", "argocd/guards"), CRD),
        ("the step for the CRD", dropped(GUARD, STEPS, "ippools.nv-ipam.nvidia.com"), CRD),
        ("the step for the policy", dropped(GUARD, STEPS, "nic-cluster-policy"), POLICY),
        ("the hook too late", edited(GUARD, annotate("hook", "PostSync")), CRD),
        ("no hook", edited(GUARD, lambda d: d["metadata"]["annotations"].pop("argocd.argoproj.io/hook")), CRD),
        ("the wave", edited(APP, annotate("sync-wave", "10")), ORDER),
    ],
    "flux": [
        ("the gate", dropped("flux/graph/kustomization.yaml", "resources", "gate-sriov-ib-networks.yaml"), CRD),
        ("the wait for the gate", dropped(NODE, "spec.dependsOn", "nvt-gate-sriov-ib-networks"), CRD),
        ("the health check of the CRD", dropped(GATE, "spec.healthChecks", "ippools.nv-ipam.nvidia.com"), CRD),
        ("the health check of the policy", dropped(GATE, "spec.healthChecks", "NicClusterPolicy"), POLICY),
        ("the policy's state", dropped(GATE, "spec.healthCheckExprs", "NicClusterPolicy"), POLICY),
        ("the gate too early", dropped(GATE, "spec.dependsOn", "nvt-network-operator-post"), BEHIND),
        ("no health checks at all", edited(GATE, lambda d: d["spec"].update(wait=True)), CRD),
    ],
}  # fmt: skip


def test_an_untouched_bundle_holds(bundle: Bundle, bundlec: Bundlec) -> None:
    done = bundlec("verify", bundle.folder)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{bundle.folder}: checksums, files and order hold\n"


@pytest.mark.parametrize(
    ("deployer", "tamper", "says"),
    [pytest.param(d, tamper, says, id=f"{d}: {what}") for d, cases in CASES.items() for what, tamper, says in cases],
)
def test_a_weakened_gate_fails_the_order_proof(
    nvke: Bundle, bundlec: Bundlec, tree: Callable[[Files], Path], deployer: str, tamper: Tamper, says: str
) -> None:
    files = dict(nvke.files)
    tamper(files)
    done = bundlec("verify", tree(with_checksums(files)))
    assert done.status == 1
    findings = [line for line in done.err.splitlines() if "[BC" in line]
    # The checksums are right: it is the order proof that fails.
    assert {line.partition("[")[2].partition("]")[0] for line in findings} == {"BC6001"}
    # It names the deployer, what is lost, and the edge.
    said = [line for line in findings if f"[BC6001] {deployer}: " in line and says in line]
    assert said
    assert says == BEHIND or any("sriov-ib-networks after network-operator-post" in line for line in said)


@pytest.mark.parametrize("deployer", CASES)
def test_without_new_checksums_the_file_is_named_too(
    nvke: Bundle, bundlec: Bundlec, tree: Callable[[Files], Path], deployer: str
) -> None:
    files = dict(nvke.files)
    CASES[deployer][0][1](files)
    (path,) = [path for path in nvke.files if files.get(path) != nvke.files[path]]
    done = bundlec("verify", tree(files))
    assert done.status == 1
    assert (f"[BC6002] {path} is not what was built" in done.err) or (f"[BC6003] {path} is missing" in done.err)
    assert "[BC6001]" in done.err


def test_a_gate_that_the_inventory_lost(nvke: Bundle, bundlec: Bundlec, tree: Callable[[Files], Path]) -> None:
    """Nobody can hide a gate by taking it out of bundle.yaml as well: the edge is still there and asks for one."""
    files = dict(nvke.files)
    dropped("bundle.yaml", "spec.gates", "'release': 'sriov-ib-networks'")(files)
    done = bundlec("verify", tree(with_checksums(files)))
    assert done.status == 1
    assert "[BC6001] sriov-ib-networks after network-operator-post (until ready; " in done.err
    assert "needs a gate in front of sriov-ib-networks, and bundle.yaml holds none" in done.err


def test_a_release_that_a_deployer_lost(nvke: Bundle, bundlec: Bundlec, tree: Callable[[Files], Path]) -> None:
    files = dict(nvke.files)
    without_line("deploy.sh", "release sriov-ib-networks .*")(files)
    done = bundlec("verify", tree(with_checksums(files)))
    assert done.status == 1
    assert "[BC6001] deploy.sh: the release sriov-ib-networks is not applied" in done.err


def test_a_file_too_many_and_a_file_too_few(nvke: Bundle, bundlec: Bundlec, tree: Callable[[Files], Path]) -> None:
    """Case 75: the checksums are closed-world."""
    files = dict(nvke.files)
    files["components/extra/values.yaml"] = b"{}\n"
    del files["examples/four-rail-pod.yaml"]
    done = bundlec("verify", tree(files))
    assert done.status == 1
    assert "[BC6003] components/extra/values.yaml does not belong to the bundle" in done.err
    assert "[BC6003] examples/four-rail-pod.yaml is missing" in done.err
