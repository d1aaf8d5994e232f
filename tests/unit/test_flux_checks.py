"""Flux: what a check becomes, and how its expression judges objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compiler.emit import flux
from compiler.emit.flux_checks import Command, Health, cel_string, lower
from compiler.model import Check
from tests.support.plans import GONE, INSTALLER, IPPOOL_CRD, POLICY_READY, STATES, check

NODES = check("nodes", id="gpu-nodes", selector="nvidia.com/gpu.present=true,!x", min_nodes=3)
WEBHOOK = check("webhook", name="cert-manager-webhook", namespace="cert-manager")
DAEMONSET = check("daemonset", name="x", namespace="ns", min_nodes=1)
DEPLOYMENT = check("deployment", name="x", namespace="ns")
STATEFULSET = replace(DEPLOYMENT, kind="statefulset")
JOB = replace(DEPLOYMENT, kind="job")
READY = check(
    "condition",
    group="nvidia.com",
    version="v1",
    object_kind="ClusterPolicy",
    resource="clusterpolicies",
    name="cluster-policy",
    type="Ready",
    value="True",
)


def field(path: str, op: str, value: str | None = None) -> Check:
    return replace(POLICY_READY, path=path, op=op, value=value)


def conditions(*found: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "status": {"conditions": list(found)}}


def daemonset(strategy: str = "RollingUpdate", **status: int) -> dict[str, Any]:
    return {"spec": {"updateStrategy": {"type": strategy}}, "status": status}


def replicas(wanted: int, **status: int) -> dict[str, Any]:
    return {"spec": {"replicas": wanted}, "status": status}


ROLLED_OUT = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
UP = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
ODD = 'it\'s \\ "x"\n'
COUNT = {"status": {"count": 3}}
LIST = {"status": {"nodes": [{"name": "a"}, {"name": "b"}]}}

SAMPLES: list[tuple[Check, dict[str, Any], bool]] = [
    (POLICY_READY, {"status": {"state": "ready"}}, True),
    (POLICY_READY, {"status": {"state": "notReady"}}, False),
    (POLICY_READY, {"status": {}}, False),
    (field("status.on", "equals", "true"), {"status": {"on": True}}, True),
    (field("status.on", "equals", "true"), {"status": {"on": "true"}}, True),
    (field("status.on", "equals", "true"), {"status": {"on": False}}, False),
    (field("status.count", "equals", "3"), COUNT, True),
    (field("status.count", "equals", "4"), COUNT, False),
    (field("status.count", "notEquals", "3"), COUNT, False),
    (field("status.count", "notEquals", "4"), COUNT, True),
    (field("status.count", "notEquals", "3"), {"status": {}}, False),
    (field("status.count", "notEquals", "3"), {"status": {"count": None}}, False),
    (field("status.ready", "present"), {"status": {"ready": 0}}, True),
    (field("status.ready", "present"), {"status": {"ready": ""}}, False),
    (field("status.ready", "present"), {"status": {}}, False),
    (field("status.nodes[1].name", "equals", "b"), LIST, True),
    (field("status.nodes[0].name", "equals", "b"), LIST, False),
    (field("status.nodes[2].name", "equals", "b"), LIST, False),
    (field('metadata.labels["a.b/c"]', "equals", ODD), {"metadata": {"labels": {"a.b/c": ODD}}}, True),
    (field('metadata.labels["a.b/c"]', "equals", ODD), {"metadata": {"labels": {}}}, False),
    (field("status.in", "equals", "x"), {"status": {"in": "x"}}, True),
    (READY, conditions({"type": "Ready", "status": "True"}), True),
    (READY, conditions({"type": "Ready", "status": "False"}), False),
    (READY, conditions({"type": "Other", "status": "True"}), False),
    (READY, conditions({"type": "Ready", "status": "True", "observedGeneration": 1}), False),
    (READY, conditions({"type": "Ready", "status": "True", "observedGeneration": 2}), True),
    (DAEMONSET, daemonset(**ROLLED_OUT), True),
    (DAEMONSET, daemonset(desiredNumberScheduled=0), False),
    (DAEMONSET, daemonset(**{**ROLLED_OUT, "numberAvailable": 1}), False),
    (DAEMONSET, daemonset(desiredNumberScheduled=2, numberAvailable=2), False),
    (DAEMONSET, daemonset("OnDelete", desiredNumberScheduled=2, numberAvailable=2), True),
    (replace(DAEMONSET, min_nodes=0), daemonset(desiredNumberScheduled=0), True),
    (replace(DAEMONSET, min_nodes=0), daemonset(**{**ROLLED_OUT, "numberAvailable": 1}), False),
    (replace(DAEMONSET, min_nodes=3), daemonset(**ROLLED_OUT), False),
    (replace(DAEMONSET, min_ready=1), daemonset(**{**ROLLED_OUT, "numberAvailable": 1}), True),
    (replace(DAEMONSET, min_ready=3), daemonset(**ROLLED_OUT), False),
    (DEPLOYMENT, replicas(2, **UP), True),
    (DEPLOYMENT, replicas(2, **{**UP, "replicas": 3}), False),
    (DEPLOYMENT, replicas(2, **{**UP, "availableReplicas": 1}), False),
    (DEPLOYMENT, replicas(0), False),
    (replace(DEPLOYMENT, min_ready=1), replicas(2, availableReplicas=1), True),
    (replace(DEPLOYMENT, min_ready=1), replicas(2), False),
    (STATEFULSET, replicas(2, **UP), True),
    (STATEFULSET, replicas(2, **{**UP, "readyReplicas": 1}), False),
    (replace(STATEFULSET, min_ready=1), replicas(2, readyReplicas=1), True),
    (JOB, conditions({"type": "Complete", "status": "True"}), True),
    (JOB, conditions({"type": "Failed", "status": "True"}), False),
    (JOB, {"status": {"startTime": "2026-01-01T00:00:00Z"}}, False),
    (WEBHOOK, {"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}, True),
    (WEBHOOK, {"subsets": [{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]}, False),
]


def current(item: Check) -> str:
    lowered = lower(item)
    assert isinstance(lowered, Health)
    assert lowered.current is not None
    return lowered.current


@pytest.mark.parametrize(("item", "sample", "expected"), SAMPLES)
def test_an_expression_judges_a_status(item: Check, sample: dict[str, Any], expected: bool) -> None:
    import cel

    assert cel.evaluate(current(item), sample) is expected


@pytest.mark.parametrize("item", [POLICY_READY, READY, DAEMONSET, DEPLOYMENT, STATEFULSET, JOB, WEBHOOK])
def test_case_41_an_object_without_status_does_not_open_a_gate(item: Check) -> None:
    import cel

    try:
        result = cel.evaluate(current(item), {"metadata": {"generation": 1}, "spec": {}})
    except RuntimeError:  # for Flux an error means: not yet
        result = False
    assert result is False


def test_the_plain_field_check_is_the_proved_expression() -> None:
    assert current(POLICY_READY) == "has(status.state) && status.state == 'ready'"


def test_a_string_of_cel_cannot_be_left() -> None:
    assert cel_string("a'b\\c\n\x00é") == "'a\\'b\\\\c\\U0000000a\\U00000000é'"


def test_an_empty_pool_may_pass() -> None:
    lowered = lower(replace(NODES, min_nodes=0))
    assert lowered == Command(("get", "nodes", f"--selector={NODES.selector}", "--output=name"))


def test_every_kind_of_check_is_held_or_refused() -> None:
    held = [IPPOOL_CRD, DEPLOYMENT, STATEFULSET, DAEMONSET, JOB, POLICY_READY, READY, NODES, WEBHOOK]
    assert all(len(flux.tokens(item)) == 1 for item in held)
    assert [flux.tokens(item) for item in (STATES, GONE)] == [frozenset(), frozenset()]
    assert len({item.kind for item in (*held, STATES, GONE)}) == 11


@pytest.mark.parametrize("path", ['status.pools[name="a"].state', '["a.b"].c', ""])
def test_a_path_that_cel_cannot_address_is_not_held(path: str) -> None:
    assert lower(field(path, "equals", "ready")) is None


def test_tokens_tell_apart_what_differs() -> None:
    some = [
        POLICY_READY,
        field("status.state", "notEquals", "ready"),
        field("status.state", "present"),
        field("status.state", "equals", "done"),
        field("status.other", "equals", "ready"),
        replace(POLICY_READY, name="x"),
        replace(POLICY_READY, namespace="x"),
        INSTALLER,
        replace(INSTALLER, min_nodes=2),
        replace(INSTALLER, namespace="x"),
        NODES,
        replace(NODES, min_nodes=1),
        replace(NODES, selector="x"),
        IPPOOL_CRD,
    ]
    assert len({token for item in some for token in flux.tokens(item)}) == len(some)
