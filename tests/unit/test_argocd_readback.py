"""Argo CD: the order that is read back from the files, and that nothing can be taken away unseen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from compiler.emit import argocd
from tests.support.argocd import (
    CRD_READY,
    bundle,
    change,
    gated,
    problems,
    with_argocd,
)
from tests.support.plans import INSTALLER, IPPOOL_CRD, POLICY_READY, small_plan


def test_the_order_of_the_plan_is_read_back() -> None:
    plan = small_plan()
    wiring = argocd.read_back(bundle(plan))
    assert set(wiring.releases) == {r.id for r in plan.releases}
    assert wiring.hard == {("gpu-operator-pre", "gpu-operator"), ("network-operator", "network-operator-post")}
    assert ("cert-manager", "gpu-operator-pre") in wiring.soft
    assert ("network-operator-post", "sriov-ib-networks") in wiring.soft
    assert ("cert-manager", "sriov-ib-networks") not in wiring.soft
    assert {release: argocd.tokens(INSTALLER) <= held for release, held in wiring.guards.items()} == {
        "gpu-operator-pre": True,
        "gpu-operator": True,
        "sriov-ib-networks": False,
    }
    assert wiring.guards["sriov-ib-networks"] >= argocd.tokens(IPPOOL_CRD) | argocd.tokens(POLICY_READY)
    assert problems(plan, bundle(plan)) == []


def test_waves_hold_only_where_argo_cd_is_said_to_judge_applications() -> None:
    soft, hard = argocd.read_back(bundle(small_plan())), argocd.read_back(bundle(with_argocd(waves="health")))
    assert soft.soft
    assert hard.soft == frozenset()
    assert hard.hard == soft.hard | soft.soft


def drop_annotation(name: str) -> Callable[[Any], None]:
    return lambda item: item["metadata"]["annotations"].pop(name)


def annotate(name: str, value: str) -> Callable[[Any], None]:
    return lambda item: item["metadata"]["annotations"].update({name: value})


def containers(edit: Callable[[list[Any]], None]) -> Callable[[Any], None]:
    return lambda item: edit(item["spec"]["template"]["spec"]["initContainers"])


GUARD = "argocd/guards/sriov-ib-networks/sriov-ib-networks.yaml"
POST_GUARD = "argocd/guards/network-operator/network-operator-post.yaml"
APP = "argocd/apps/sriov-ib-networks.yaml"
POST = "components/network-operator-post/manifests/nicclusterpolicy-nic-cluster-policy.yaml"
HOOK = "argocd.argoproj.io/hook"
WAVE = "argocd.argoproj.io/sync-wave"


@pytest.mark.parametrize(
    ("path", "edit", "finding"),
    [
        (GUARD, drop_annotation(HOOK), "the gate of sriov-ib-networks"),
        (GUARD, annotate(HOOK, "PostSync"), "the gate of sriov-ib-networks"),
        (GUARD, containers(lambda steps: steps.pop()), "(policy-ready)"),
        (GUARD, containers(lambda steps: steps[0]["args"].__setitem__(1, "crd/other")), "(ippools)"),
        (
            GUARD,
            containers(lambda steps: steps[1]["args"].__setitem__(3, "--for=jsonpath={.status.state}=x")),
            "(policy",
        ),
        (GUARD, containers(lambda steps: steps[1]["args"].remove("--for=jsonpath={.status.state}=ready")), "(policy"),
        (APP, lambda app: app["spec"]["sources"].pop(), "the gate of sriov-ib-networks"),
        (APP, lambda app: app["spec"]["sources"][1].update(path="out/demo/argocd/guards/gpu-operator"), "(ippools)"),
        (APP, lambda app: app["spec"]["sources"].pop(0), "sriov-ib-networks is not applied"),
        (APP, annotate(WAVE, "20"), "sriov-ib-networks after network-operator-post"),
        (POST_GUARD, annotate(WAVE, "2"), "(crd-policies)"),
        (POST_GUARD, drop_annotation(HOOK), "(crd-policies)"),
        (POST, drop_annotation(WAVE), "network-operator-post after network-operator"),
        (POST, annotate(WAVE, "-1"), "network-operator-post after network-operator"),
        ("argocd/root.yaml", lambda root: root["spec"]["source"].update(path="out/demo/argocd"), "is not applied"),
    ],
)
def test_what_somebody_takes_away_is_found(path: str, edit: Callable[[Any], None], finding: str) -> None:
    plan = gated("network-operator-post", CRD_READY)
    edges = tuple(
        dataclasses.replace(e, until="api") if e.dependant == "network-operator-post" else e for e in plan.edges
    )
    plan = dataclasses.replace(plan, edges=edges)
    files = bundle(plan)
    assert problems(plan, files) == []
    assert any(finding in message for message in problems(plan, change(files, path, edit)))


def test_a_guard_or_application_that_is_gone_is_found() -> None:
    plan = small_plan()
    files = bundle(plan)
    for path, finding in ((GUARD, "the gate of sriov-ib-networks"), (APP, "sriov-ib-networks is not applied")):
        left = {name: content for name, content in files.items() if name != path}
        assert any(finding in message for message in problems(plan, left))


def test_how_long_a_guard_waits_is_no_part_of_what_it_waits_for() -> None:
    plan, files = small_plan(), bundle(small_plan())

    def longer(job: Any) -> None:
        for step in job["spec"]["template"]["spec"]["initContainers"]:
            step["args"][-1] = "--timeout=9999s"

    assert problems(plan, change(files, GUARD, longer)) == []
