"""Argo CD: checks as steps of kubectl: what is emitted, and that the real kubectl means by it what we do."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.emit.argocd_steps import Right, lower, lower_teardown, rights, token, tokens
from compiler.model import Check
from tests.support.kube_api import Api, served
from tests.support.plans import GONE, INSTALLER, IPPOOL_CRD, POLICY_READY, STATES, check

POLICY = {
    "group": "mellanox.com",
    "version": "v1alpha1",
    "object_kind": "NicClusterPolicy",
    "resource": "nicclusterpolicies",
}
NAMED = check("field", **POLICY, name="p", path='metadata.labels["a.b/c"]', op="present")
READY = check("condition", **POLICY, name="p", type="Ready", value="True")
WEBHOOK = check("webhook", name="svc", namespace="a")
NODES = check("nodes", selector="gpu=true", min_nodes=1)
NOT_YET = '{{template "not yet"}}{{end}}'
UNMET = "--output=go-template={{if or (ne .metadata.generation .status.observedGeneration)"
BEHIND = (
    "(lt .status.numberAvailable .status.desiredNumberScheduled) "
    '(and (ne .spec.updateStrategy.type "OnDelete") '
    "(lt .status.updatedNumberScheduled .status.desiredNumberScheduled))"
)


def daemonset(**fields: Any) -> Check:
    return check("daemonset", namespace="kube-system", name="d", **fields)


def shown(item: Check) -> list[str]:
    return [" ".join(step.arguments) for step in lower(item)]


@pytest.mark.parametrize(
    ("item", "steps"),
    [
        (
            IPPOOL_CRD,
            [
                (
                    "wait customresourcedefinitions.apiextensions.k8s.io/ippools.nv-ipam.nvidia.com "
                    "--for=create --for=condition=Established"
                )
            ],
        ),
        (
            POLICY_READY,
            [
                (
                    "wait nicclusterpolicies.mellanox.com/nic-cluster-policy "
                    "--for=create --for=jsonpath={.status.state}=ready"
                )
            ],
        ),
        (
            NAMED,
            [r"wait nicclusterpolicies.mellanox.com/p --for=create --for=jsonpath={.metadata.labels['a\.b/c']}"],
        ),
        (READY, ["wait nicclusterpolicies.mellanox.com/p --for=create --for=condition=Ready=True"]),
        (
            check("deployment", namespace="a", name="d"),
            [
                "wait deployments.apps/d --namespace=a --for=create --for=condition=Available",
                "rollout status deployments.apps/d --namespace=a",
            ],
        ),
        (
            check("deployment", namespace="a", name="d", min_ready=2),
            [
                "wait deployments.apps/d --namespace=a --for=create --for=jsonpath={.status.availableReplicas}",
                f"get deployments.apps/d --namespace=a {UNMET} (lt .status.availableReplicas 2)}}}}{NOT_YET}",
            ],
        ),
        (
            check("statefulset", namespace="a", name="s"),
            [
                "wait statefulsets.apps/s --namespace=a --for=create --for=jsonpath={.status.readyReplicas}",
                (
                    f"get statefulsets.apps/s --namespace=a {UNMET} (or (lt .status.readyReplicas .spec.replicas) "
                    '(and (ne .spec.updateStrategy.type "OnDelete") '
                    f"(lt .status.updatedReplicas .spec.replicas)))}}}}{NOT_YET}"
                ),
            ],
        ),
        (
            INSTALLER,
            [
                (
                    "wait daemonsets.apps/nvidia-driver-installer --namespace=kube-system "
                    "--for=create --for=jsonpath={.status.numberAvailable}"
                ),
                (
                    f"get daemonsets.apps/nvidia-driver-installer --namespace=kube-system {UNMET} "
                    f"(lt .status.desiredNumberScheduled 1) (or {BEHIND})}}}}{NOT_YET}"
                ),
            ],
        ),
        (
            daemonset(min_nodes=0),
            [
                "wait daemonsets.apps/d --namespace=kube-system --for=create",
                (
                    f"get daemonsets.apps/d --namespace=kube-system {UNMET} (lt .status.desiredNumberScheduled 0) "
                    f"(and .status.desiredNumberScheduled (or {BEHIND}))}}}}{NOT_YET}"
                ),
            ],
        ),
        (
            daemonset(min_nodes=4, min_ready=2),
            [
                "wait daemonsets.apps/d --namespace=kube-system --for=create --for=jsonpath={.status.numberAvailable}",
                (
                    f"get daemonsets.apps/d --namespace=kube-system {UNMET} (lt .status.desiredNumberScheduled 4) "
                    f"(lt .status.numberAvailable 2)}}}}{NOT_YET}"
                ),
            ],
        ),
        (
            check("job", namespace="a", name="j"),
            ["wait jobs.batch/j --namespace=a --for=create --for=condition=Complete"],
        ),
        (NODES, ["wait nodes --selector=gpu=true --for=jsonpath={.metadata.name}"]),
        (
            check("nodes", selector="gpu=true", min_nodes=3),
            ["get nodes --selector=gpu=true --output=go-template={{if lt (len .items) 3}}" + NOT_YET],
        ),
        (
            WEBHOOK,
            [
                (
                    "wait endpointslices.discovery.k8s.io --namespace=a --selector=kubernetes.io/service-name=svc "
                    "--for=jsonpath={.endpoints[0].conditions.ready}=true"
                )
            ],
        ),
    ],
)
def test_every_kind_of_check_has_its_steps(item: Check, steps: list[str]) -> None:
    assert shown(item) == steps
    assert tokens(item) == {token(step.with_timeout(7)) for step in lower(item)}


@pytest.mark.parametrize(
    "item",
    [
        STATES,
        GONE,
        check("field", **POLICY, name="p", path="status.state", op="notEquals", value="x"),
        check("field", **POLICY, name="p", path="status.state", op="equals", value=""),
        check("field", **POLICY, name="p", path='status["a b"]', op="present"),
    ],
)
def test_what_no_guard_can_hold_has_no_token(item: Check) -> None:
    assert lower(item) == ()
    assert tokens(item) == frozenset()


def test_teardown_knows_every_and_gone() -> None:
    assert [step.arguments for step in lower_teardown(STATES)] == [
        (
            "get",
            "sriovnetworknodestates.sriovnetwork.openshift.io",
            "--namespace=nvidia-network-operator",
            (
                '--output=go-template={{range .items}}{{if ne (printf "%v" (index . "status" "syncStatus")) '
                '"Succeeded"}}{{template "not yet"}}{{end}}{{end}}'
            ),
        )
    ]
    everywhere = check("gone", group="mellanox.com", resource="nicclusterpolicies")
    assert [step.arguments for step in lower_teardown(everywhere)] == [
        (
            "get",
            "nicclusterpolicies.mellanox.com",
            "--all-namespaces",
            f"--output=go-template={{{{if .items}}}}{NOT_YET}",
        )
    ]


def test_rights_are_those_of_the_named_objects() -> None:
    assert rights(INSTALLER) == (Right("kube-system", "apps", "daemonsets", "nvidia-driver-installer"),)
    assert rights(POLICY_READY) == (Right(None, "mellanox.com", "nicclusterpolicies", "nic-cluster-policy"),)
    assert rights(NODES) == (Right(None, "", "nodes", None),)
    assert rights(WEBHOOK) == (Right("a", "discovery.k8s.io", "endpointslices", None),)


# ---------------------------------------------------------------------------------------------------------------------
# The real kubectl


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with served() as found:
        yield found


Put = Callable[[Api], None]


def put(resource: str, name: str, namespace: str = "", **content: Any) -> Put:
    return lambda api: api.put(resource, name, namespace, **content)


def established(status: str) -> Put:
    conditions = [{"type": "Established", "status": status}]
    crd = "customresourcedefinitions.apiextensions.k8s.io"
    return put(crd, "ippools.nv-ipam.nvidia.com", status={"conditions": conditions})


def policy(state: str | None, **metadata: Any) -> Put:
    status = {} if state is None else {"state": state, "conditions": [{"type": "Ready", "status": state}]}
    name = "nic-cluster-policy" if state == "ready" or state == "notReady" else "p"
    return put("nicclusterpolicies.mellanox.com", name, status=status, metadata=metadata)


def counted(**counters: int) -> dict[str, int]:
    """Kubernetes leaves out counters that are zero."""
    return {name: number for name, number in counters.items() if number}


def rolled(nodes: int, available: int, updated: int, strategy: str = "RollingUpdate", observed: int = 1) -> Put:
    counters = counted(numberAvailable=available, updatedNumberScheduled=updated)
    status = {"observedGeneration": observed, "desiredNumberScheduled": nodes, **counters}
    return put("daemonsets.apps", "d", "kube-system", spec={"updateStrategy": {"type": strategy}}, status=status)


def stateful(ready: int, updated: int, strategy: str = "RollingUpdate") -> Put:
    spec = {"replicas": 2, "updateStrategy": {"type": strategy}}
    counters = counted(readyReplicas=ready, updatedReplicas=updated)
    return put("statefulsets.apps", "s", "a", spec=spec, status={"observedGeneration": 1, "replicas": 2, **counters})


def deployed(replicas: int, available: int) -> Put:
    conditions = [{"type": "Available", "status": "True" if available else "False"}]
    status = {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "conditions": conditions}
    if available:
        status["availableReplicas"] = available
    return put("deployments.apps", "d", "a", spec={"replicas": replicas}, status=status)


def node(name: str) -> Put:
    return put("nodes", name, metadata={"labels": {"gpu": "true"}})


def slice_(*ready: bool) -> Put:
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": r}} for r in ready] or None
    labels = {"kubernetes.io/service-name": "svc"}
    return put("endpointslices.discovery.k8s.io", "svc-1", "a", metadata={"labels": labels}, endpoints=endpoints)


def state(name: str, value: str | None) -> Put:
    status = {} if value is None else {"syncStatus": value}
    resource = "sriovnetworknodestates.sriovnetwork.openshift.io"
    return put(resource, name, "nvidia-network-operator", status=status)


def holds(kubectl: Path, api: Api, item: Check, *, teardown: bool = False, seconds: int = 1) -> bool:
    """Whether all steps of a check exit with 0 now; each may wait for `seconds`."""
    for step in lower_teardown(item) if teardown else lower(item):
        command = [kubectl, f"--server={api.url}", f"--cache-dir=/nonexistent/{id(api)}", *step.with_timeout(seconds)]
        environment = {"HOME": "/nonexistent"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment, check=False)
        if done.returncode:
            assert "error" in (done.stderr + done.stdout).lower() or "timed out" in done.stderr, done
            return False
    return True


CASES: list[tuple[str, Check, list[Put], bool]] = [
    ("crd missing", IPPOOL_CRD, [], False),
    ("crd not established", IPPOOL_CRD, [established("False")], False),
    ("crd established", IPPOOL_CRD, [established("True")], True),
    ("policy missing", POLICY_READY, [], False),
    ("policy without status", POLICY_READY, [put("nicclusterpolicies.mellanox.com", "nic-cluster-policy")], False),
    ("policy not ready", POLICY_READY, [policy("notReady")], False),
    ("policy ready", POLICY_READY, [policy("ready")], True),
    ("label present", NAMED, [policy("x", labels={"a.b/c": "1"})], True),
    ("label absent", NAMED, [policy("x", labels={"a.b/d": "1"})], False),
    ("condition true", READY, [policy("True")], True),
    ("condition false", READY, [policy("False")], False),
    ("daemonset missing", daemonset(min_nodes=1), [], False),
    ("daemonset before its controller", daemonset(min_nodes=1), [put("daemonsets.apps", "d", "kube-system")], False),
    ("case 39: no node matches", daemonset(min_nodes=1), [rolled(0, 0, 0)], False),
    ("an empty pool is accepted", daemonset(min_nodes=0), [rolled(0, 0, 0)], True),
    ("a pool that is not empty is waited for", daemonset(min_nodes=0), [rolled(2, 0, 2)], False),
    ("the controller has not looked yet", daemonset(min_nodes=0), [rolled(0, 0, 0, observed=0)], False),
    ("daemonset up", daemonset(min_nodes=1), [rolled(2, 2, 2)], True),
    ("daemonset half up", daemonset(min_nodes=1), [rolled(2, 1, 2)], False),
    ("daemonset half updated", daemonset(min_nodes=1), [rolled(2, 2, 1)], False),
    ("OnDelete is not updated by itself", daemonset(min_nodes=1), [rolled(2, 2, 0, "OnDelete")], True),
    ("OnDelete has to be up", daemonset(min_nodes=1), [rolled(2, 1, 0, "OnDelete")], False),
    ("enough nodes", daemonset(min_nodes=2), [rolled(2, 2, 2)], True),
    ("too few nodes", daemonset(min_nodes=3), [rolled(2, 2, 2)], False),
    ("one ready is enough", daemonset(min_nodes=1, min_ready=1), [rolled(2, 1, 1)], True),
    ("two ready are wanted", daemonset(min_nodes=1, min_ready=2), [rolled(2, 1, 1)], False),
    ("statefulset up", check("statefulset", namespace="a", name="s"), [stateful(2, 2)], True),
    ("statefulset half up", check("statefulset", namespace="a", name="s"), [stateful(1, 2)], False),
    ("statefulset half updated", check("statefulset", namespace="a", name="s"), [stateful(2, 1)], False),
    ("statefulset OnDelete", check("statefulset", namespace="a", name="s"), [stateful(2, 0, "OnDelete")], True),
    ("deployment up", check("deployment", namespace="a", name="d"), [deployed(2, 2)], True),
    ("deployment down", check("deployment", namespace="a", name="d"), [deployed(2, 0)], False),
    ("one of two wanted", check("deployment", namespace="a", name="d", min_ready=1), [deployed(2, 1)], True),
    ("none yet", check("deployment", namespace="a", name="d", min_ready=1), [deployed(2, 0)], False),
    ("no node", NODES, [], False),
    ("nodes", NODES, [node("a"), node("b")], True),
    ("two of three nodes", check("nodes", selector="gpu=true", min_nodes=3), [node("a"), node("b")], False),
    ("two of two nodes", check("nodes", selector="gpu=true", min_nodes=2), [node("a"), node("b")], True),
    ("no endpoint slice", WEBHOOK, [], False),
    ("no endpoint", WEBHOOK, [slice_()], False),
    ("endpoint not ready", WEBHOOK, [slice_(False)], False),
    ("endpoint", WEBHOOK, [slice_(True)], True),
]


@pytest.mark.tools
@pytest.mark.parametrize(("item", "objects", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_kubectl_takes_the_steps_for_the_check(
    tool: Callable[[str], Path], api: Api, item: Check, objects: list[Put], expected: bool
) -> None:
    api.objects.clear()
    for action in objects:
        action(api)
    assert holds(tool("kubectl"), api, item) is expected


@pytest.mark.tools
@pytest.mark.parametrize(
    ("item", "objects", "expected"),
    [
        (STATES, [], True),
        (STATES, [state("a", "Succeeded"), state("b", "Succeeded")], True),
        (STATES, [state("a", "Succeeded"), state("b", "InProgress")], False),
        (STATES, [state("a", None)], False),
        (check("gone", group="mellanox.com", resource="nicclusterpolicies"), [], True),
        (check("gone", group="mellanox.com", resource="nicclusterpolicies"), [policy("x")], False),
    ],
)
def test_kubectl_takes_the_steps_for_the_condition_of_removal(
    tool: Callable[[str], Path], api: Api, item: Check, objects: list[Put], expected: bool
) -> None:
    api.objects.clear()
    for action in objects:
        action(api)
    assert holds(tool("kubectl"), api, item, teardown=True) is expected


@pytest.mark.tools
def test_kubectl_sees_a_change_while_it_waits(tool: Callable[[str], Path], api: Api) -> None:
    api.objects.clear()
    policy("notReady")(api)
    later = threading.Timer(0.4, policy("ready"), (api,))
    later.start()
    assert holds(tool("kubectl"), api, POLICY_READY, seconds=15)  # it ends as soon as the change is there
    later.join()
