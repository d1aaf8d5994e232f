"""The gate library: what it reads back, and what its probes and loop do with a (fake) cluster."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import gatelib
from compiler.errors import UserError
from compiler.model import Check, Gate, GateCheck, GateSettings, Plan
from compiler.tools import run
from tests.support.fake_cluster import Store, crd, jsonpath
from tests.support.plans import GONE, IPPOOL_CRD, POLICY_READY, STATES, check, plain_http, settings, small_plan
from tests.support.scripts import CRDS, Cluster, Ran

POLICIES = "nicclusterpolicies.mellanox.com"
NODE_STATES = "sriovnetworknodestates.sriovnetwork.openshift.io"
ON = {
    "group": "mellanox.com",
    "version": "v1alpha1",
    "object_kind": "NicClusterPolicy",
    "resource": "nicclusterpolicies",
}
EVERY_KIND = (
    check("crd", name="things.x.example"),
    check("deployment", name="d", namespace="n"),
    check("statefulset", name="s", namespace="n", min_ready=2),
    check("daemonset", name="a", namespace="n", min_nodes=0),
    check("job", name="j", namespace="n"),
    check("field", id="equals", **ON, name="p", path="status.state", op="equals", value="ready"),
    check("field", id="not", **ON, name="p", namespace="n", path='status["a.b/c"]', op="notEquals", value="it's"),
    check("field", id="present", **ON, name="p", path="status.list[0].x", op="present"),
    check("condition", **ON, name="p", type="Ready", value="True"),
    STATES,
    GONE,
    check("nodes", selector="nvidia.com/gpu.present=true,!x", min_nodes=2),
    check("webhook", name="w", namespace="n"),
)


def with_gate(*checks: GateCheck, **plan: Any) -> Plan:
    """The small plan with these checks in front of sriov-ib-networks."""
    base = replace(small_plan(), **plan)
    gate = Gate("sriov-ib-networks", ("network-operator-post",), checks)
    return replace(base, releases=(*base.releases[:-1], replace(base.releases[-1], gate=gate)))


def gate_check(item: Check, timeout: int = 60, on_timeout: str = "fail", scope: str = "always") -> GateCheck:
    return GateCheck(item, "network-operator", timeout, on_timeout, scope)  # type: ignore[arg-type]


# --- reading back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", EVERY_KIND, ids=lambda c: f"{c.kind}-{c.id}")
def test_every_kind_of_check_is_read_back(item: Check):
    plan = with_gate(gate_check(item))
    files = gatelib.emit(plan)
    assert gatelib.tokens(item) <= gatelib.read_gates(files)["sriov-ib-networks"]


@pytest.mark.parametrize("item", EVERY_KIND, ids=lambda c: f"{c.kind}-{c.id}")
def test_every_changed_argument_is_seen(item: Check):
    """Change each argument of the emitted line in turn; the token must be gone."""
    files = dict(gatelib.emit(with_gate(gate_check(item))))
    line = gatelib.gate_line(gate_check(item))
    words = shlex.split(line)
    for at in range(5, len(words)):
        changed = [*words[:at], words[at] + "x", *words[at + 1 :]]
        mutant = replaced(files, line, shlex.join(changed))
        assert not gatelib.tokens(item) <= gatelib.read_gates(mutant)["sriov-ib-networks"]


def replaced(files: Mapping[str, bytes], old: str, new: str, path: str = "lib/gate") -> dict[str, bytes]:
    assert files[path].count(old.encode()) == 1
    return {**files, path: files[path].replace(old.encode(), new.encode())}


CRD_LINE = "      gate_crd network-operator/ippools 2700 fail always ippools.nv-ipam.nvidia.com || return\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CRD_LINE, ""),
        (CRD_LINE, "#" + CRD_LINE),
        (CRD_LINE, CRD_LINE.replace(" || return", "")),  # a failure would not stop the release
        (CRD_LINE, CRD_LINE.replace(" || return", " || true")),
        ("gate_crd network-operator/ippools", "gate_gone network-operator/ippools"),
        ("gate_crd network-operator/ippools", "probe_crd network-operator/ippools"),
        ("ippools 2700 fail", "ippools x fail"),
        ("ippools 2700 fail always", "ippools 2700 perhaps always"),
        ("ippools 2700 fail always", "ippools 2700 fail never"),
        ("gates_of() {", "gates() {"),
        ("    sriov-ib-networks)\n      gate_crd", "    sriov)\n      gate_crd"),
    ],
)
def test_a_check_that_was_lost_is_seen(old: str, new: str):
    mutant = replaced(gatelib.emit(small_plan()), old, new)
    assert not gatelib.tokens(IPPOOL_CRD) <= gatelib.read_gates(mutant).get("sriov-ib-networks", frozenset())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ippools 2700", "ippools 2"),
        ("ippools 2700 fail", "ippools 2700 warn"),
        ("fail always ippools", "fail install ippools"),
    ],
)
def test_a_changed_deadline_or_meaning_is_seen(old: str, new: str):
    """The token of the check stays, that of its whole line goes."""
    files = gatelib.emit(small_plan())
    assert gatelib.read_gates(replaced(files, old, new)) != gatelib.read_gates(files)


def test_gates_in_the_table_are_those_of_the_plan():
    plan = small_plan()
    table = gatelib.read_gates(gatelib.emit(plan))
    assert set(table) == {r.id for r in plan.releases if r.gate}
    for release in plan.releases:
        if release.gate:
            wanted = {gatelib.gate_line(c) for c in release.gate.checks}
            wanted |= {t for c in release.gate.checks for t in gatelib.tokens(c.check)}
            assert table[release.id] == wanted


def test_teardown_is_read_back():
    table = gatelib.read_teardown(gatelib.emit(small_plan()))
    assert gatelib.tokens(STATES) <= table["network-operator-post"]
    assert gatelib.tokens(GONE) <= table["network-operator"]


def test_teardown_deadline_follows_the_scale_of_the_bundle():
    slow = small_plan(settings=settings(gates=GateSettings(timeout_scale=1.5)))
    assert b"states-succeeded 2700 fail" in gatelib.emit(slow)["lib/gate"]


@pytest.mark.parametrize("path", ["", "a..b", "items[*].x", 'env[name="x"].value'])
def test_a_path_that_is_no_single_value_is_an_error(path: str):
    bad = replace(POLICY_READY, path=path)
    with pytest.raises(UserError) as caught:
        gatelib.emit(with_gate(gate_check(bad)))
    assert [d.code for d in caught.value.diagnostics] == ["BC3011"]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("status.state", "{.status.state}"),
        ("status.list[0].x", "{.status.list[0].x}"),
        ('metadata.labels["app.kubernetes.io/name"]', "{.metadata.labels.app\\.kubernetes\\.io/name}"),
    ],
)
def test_json_path(path: str, template: str):
    assert gatelib.json_path(replace(POLICY_READY, path=path)) == template


def test_chart_of_a_mirror_without_tls():
    plan = plain_http(small_plan(), "kai-scheduler")
    assert gatelib.chart_words(plan.release("kai-scheduler"))[-1] == "--plain-http"
    assert "--plain-http" not in gatelib.chart_words(plan.release("gpu-operator"))


def test_no_gates_at_all_is_still_a_script(tmp_path: Path):
    plan = replace(small_plan(), releases=small_plan().releases[:1], namespaces=())
    write(plan, tmp_path)
    for name in ("gate", "prepare"):
        run(["bash", "-n", tmp_path / "lib" / name])
    assert Cluster(tmp_path / "c").run(tmp_path / "lib/gate", "cert-manager").status == 0
    assert Cluster(tmp_path / "d").run(tmp_path / "lib/prepare", "cert-manager").changes() == []


# --- probes ----------------------------------------------------------------------------------------------------------


def write(plan: Plan, folder: Path) -> None:
    for name, content in gatelib.emit(plan).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    for namespace in plan.namespaces:
        (folder / "namespaces").mkdir(exist_ok=True)
        (folder / f"namespaces/{namespace.name}.yaml").write_text(
            f"kind: Namespace\nmetadata:\n  name: {namespace.name}\n"
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(tmp_path / "cluster")
    cluster.put(CRDS, crd(POLICIES, kind="NicClusterPolicy"))
    return cluster


def look(cluster: Cluster, folder: Path, item: Check, *options: str, **env: str) -> Ran:
    """Evaluate one check as the gate of sriov-ib-networks with a deadline of one look."""
    write(with_gate(gate_check(item, timeout=0)), folder)
    return cluster.run(folder / "lib/gate", *options, "sriov-ib-networks", **env)


def policy(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "generation": status.pop("generation", 1)}, "status": status}


def workload(kind: str, spec: dict[str, Any], generation: int = 2, observed: int = 2, **status: Any) -> tuple[str, Any]:
    meta = {"name": "w", "namespace": "n", "generation": generation}
    return kind, {"metadata": meta, "spec": spec, "status": {"observedGeneration": observed, **status}}


def daemonset(want: int, updated: int, available: int | None, **more: Any) -> tuple[str, Any]:
    status = {"desiredNumberScheduled": want, "updatedNumberScheduled": updated}
    if available is not None:  # Kubernetes leaves a count of zero out
        status["numberAvailable"] = available
    strategy = {"updateStrategy": {"type": more.pop("strategy", "RollingUpdate")}}
    return workload("daemonsets.apps", strategy, **status, **more)


def deployment(
    want: int, updated: int | None, available: int | None, total: int | None = None, **more: Any
) -> tuple[str, Any]:
    status = {
        "replicas": total if total is not None else updated,
        "updatedReplicas": updated,
        "availableReplicas": available,
    }
    return workload(
        "deployments.apps", {"replicas": want}, **{k: v for k, v in status.items() if v is not None}, **more
    )


def field(op: str, value: str | None = None, path: str = "status.state") -> Check:
    return check("field", **ON, name="p", path=path, op=op, value=value)


READY = check("condition", **ON, name="p", type="Ready", value="True")
DS, DEPLOY = check("daemonset", name="w", namespace="n", min_nodes=1), check("deployment", name="w", namespace="n")
STS, JOB = check("statefulset", name="w", namespace="n"), check("job", name="w", namespace="n")
HOOK = check("webhook", name="w", namespace="n")


def slice_(*ready: bool | None) -> tuple[str, Any]:
    ends = [
        {"addresses": [f"10.0.0.{n}"], "conditions": {} if r is None else {"ready": r}} for n, r in enumerate(ready)
    ]
    meta = {"name": "w-abc", "namespace": "n", "labels": {"kubernetes.io/service-name": "w"}}
    return "endpointslices.discovery.k8s.io", {"metadata": meta, "endpoints": ends}


def node(**labels: str) -> tuple[str, Any]:
    return "nodes", {"metadata": {"name": "gpu-0", "labels": labels}}


def state(name: str, status: str) -> tuple[str, Any]:
    return NODE_STATES, {
        "metadata": {"name": name, "namespace": "nvidia-network-operator"},
        "status": {"syncStatus": status},
    }


IS_READY = {"type": "Ready", "status": "True"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
NODE_STATE_CRD = (CRDS, crd(NODE_STATES, kind="SriovNetworkNodeState"))
Q = "nvidia.com/gpu.present"


@pytest.mark.parametrize(
    ("item", "objects", "holds"),
    [
        (IPPOOL_CRD, [], False),
        (IPPOOL_CRD, [(CRDS, crd("ippools.nv-ipam.nvidia.com", established=False))], False),
        (IPPOOL_CRD, [(CRDS, crd("ippools.nv-ipam.nvidia.com"))], True),
        (IPPOOL_CRD, [(CRDS, {"metadata": {"name": "ippools.nv-ipam.nvidia.com"}})], False),
        (DS, [], False),
        (DS, [daemonset(1, 1, 1)], True),
        (DS, [daemonset(0, 0, None)], False),  # nothing matches: rolled out for everyone else
        (replace(DS, min_nodes=0), [daemonset(0, 0, None)], True),
        (replace(DS, min_nodes=0), [], False),
        (replace(DS, min_nodes=2), [daemonset(1, 1, 1)], False),
        (DS, [daemonset(2, 2, 1)], False),
        (DS, [daemonset(2, 1, 2)], False),
        (DS, [daemonset(2, 0, 2, strategy="OnDelete")], True),
        (DS, [daemonset(2, 2, 2, generation=3)], False),
        (replace(DS, min_ready=1), [daemonset(2, 2, 1)], True),
        (replace(DS, min_ready=1), [daemonset(2, 2, None)], False),
        (DEPLOY, [], False),
        (DEPLOY, [deployment(2, 2, 2)], True),
        (DEPLOY, [deployment(2, 2, 1)], False),
        (DEPLOY, [deployment(2, None, None)], False),
        (DEPLOY, [deployment(2, 1, 2)], False),
        (DEPLOY, [deployment(2, 2, 2, total=3)], False),  # an old pod is still there
        (DEPLOY, [deployment(0, None, None)], False),  # scaled to zero serves nothing
        (DEPLOY, [deployment(2, 2, 2, observed=1)], False),
        (replace(DEPLOY, min_ready=1), [deployment(2, 2, 1)], True),
        (replace(DEPLOY, min_ready=3), [deployment(2, 2, 2)], False),
        (STS, [], False),
        (STS, [workload("statefulsets.apps", {"replicas": 1}, updatedReplicas=1, readyReplicas=1)], True),
        (STS, [workload("statefulsets.apps", {"replicas": 2}, updatedReplicas=1, readyReplicas=2)], False),
        (STS, [workload("statefulsets.apps", {"replicas": 2, **ON_DELETE}, readyReplicas=2)], True),
        (STS, [workload("statefulsets.apps", {"replicas": 2}, updatedReplicas=2)], False),
        (JOB, [], False),
        (JOB, [workload("jobs.batch", {}, conditions=[{"type": "Complete", "status": "True"}])], True),
        (JOB, [workload("jobs.batch", {}, conditions=[{"type": "Failed", "status": "True"}])], False),
        (JOB, [workload("jobs.batch", {})], False),
        (field("equals", "ready"), [], False),
        (field("equals", "ready"), [(POLICIES, policy(state="ready"))], True),
        (field("equals", "ready"), [(POLICIES, policy(state="notReady"))], False),
        (field("equals", "ready"), [(POLICIES, policy())], False),
        (field("equals", "ready"), [(POLICIES, policy(state="ready", generation=2, observedGeneration=1))], False),
        (field("equals", "ready"), [(POLICIES, policy(state="ready", generation=2, observedGeneration=2))], True),
        (field("equals", "true"), [(POLICIES, policy(state=True))], True),
        (field("equals", "3"), [(POLICIES, policy(state=3))], True),
        (field("equals", "a|b"), [(POLICIES, policy(state="a|b"))], True),
        (field("notEquals", "error"), [(POLICIES, policy(state="ready"))], True),
        (field("notEquals", "error"), [(POLICIES, policy(state="error"))], False),
        (field("notEquals", "error"), [(POLICIES, policy())], False),  # nothing is no answer
        (field("present"), [(POLICIES, policy(state="x"))], True),
        (field("present"), [(POLICIES, policy())], False),
        (field("equals", "y", 'status.labels["a.b/c"]'), [(POLICIES, policy(labels={"a.b/c": "y"}))], True),
        (READY, [(POLICIES, policy(conditions=[IS_READY]))], True),
        (READY, [(POLICIES, policy(conditions=[{"type": "Ready", "status": "False", "message": "a|b"}]))], False),
        (READY, [(POLICIES, policy(conditions=[{"type": "Other", "status": "True"}]))], False),
        (READY, [(POLICIES, policy())], False),
        (READY, [(POLICIES, policy(generation=2, conditions=[{**IS_READY, "observedGeneration": 1}]))], False),
        (READY, [(POLICIES, policy(generation=2, observedGeneration=1, conditions=[IS_READY]))], False),
        (replace(READY, value="False"), [(POLICIES, policy(conditions=[{"type": "Ready", "status": "False"}]))], True),
        (STATES, [], False),
        (STATES, [NODE_STATE_CRD], False),  # every of nothing
        (STATES, [NODE_STATE_CRD, state("a", "Succeeded"), state("b", "Succeeded")], True),
        (STATES, [NODE_STATE_CRD, state("a", "Succeeded"), state("b", "InProgress")], False),
        (GONE, [], True),
        (GONE, [(CRDS, crd("sriovibnetworks.sriovnetwork.openshift.io"))], True),
        (check("nodes", selector=f"{Q}=true,!x", min_nodes=1), [node(**{Q: "true"})], True),
        (check("nodes", selector=f"{Q}=true,!x", min_nodes=1), [node(**{Q: "true", "x": ""})], False),
        (check("nodes", selector=f"{Q}=true", min_nodes=2), [node(**{Q: "true"})], False),
        (HOOK, [], False),
        (HOOK, [slice_(True)], True),
        (HOOK, [slice_(False)], False),
        (HOOK, [slice_(False, True)], True),
        (HOOK, [slice_(None)], True),
        (HOOK, [slice_()], False),
    ],
)  # fmt: skip
def test_probe(cluster: Cluster, tmp_path: Path, item: Check, objects: list[tuple[str, Any]], holds: bool):
    for resource, data in objects:
        cluster.put(resource, data)
    ran = look(cluster, tmp_path, item)
    assert ran.status == (0 if holds else 1), ran.out
    assert ran.changes() == []
    assert ("holds after" in ran.out) is holds


def test_gone_with_something_left(cluster: Cluster, tmp_path: Path):
    cluster.put(CRDS, crd("sriovibnetworks.sriovnetwork.openshift.io"))
    left = {"metadata": {"name": "rail-0", "namespace": "nvidia-network-operator"}}
    cluster.put("sriovibnetworks.sriovnetwork.openshift.io", left)
    ran = look(cluster, tmp_path, GONE)
    assert ran.status == 1
    assert "1 left: rail-0" in ran.out


# --- the loop --------------------------------------------------------------------------------------------------------


def gate(cluster: Cluster, folder: Path, *checks: GateCheck, options: tuple[str, ...] = (), **env: str) -> Ran:
    write(with_gate(*checks), folder)
    return cluster.run(folder / "lib/gate", *options, "sriov-ib-networks", **env)


def test_waits_for_a_late_crd_and_then_for_the_field(cluster: Cluster, tmp_path: Path):
    cluster.change(
        later=[
            [3, CRDS, crd("ippools.nv-ipam.nvidia.com", established=False)],
            [5, CRDS, crd("ippools.nv-ipam.nvidia.com")],
            [7, POLICIES, policy()],
            [9, POLICIES, policy(state="notReady")],
            [12, POLICIES, policy(state="ready")],
        ]
    )
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD), gate_check(field("equals", "ready")))
    assert ran.status == 0
    said = [line.partition("network-operator/")[2] for line in ran.out.splitlines()]
    assert [s.split(": ", 2)[-1].split(",")[0] for s in said if "holds" not in s][-3:] == [
        'Error from server (NotFound): nicclusterpolicies.mellanox.com "p" not found',
        "is ''",
        "is 'notReady'",
    ]
    assert ["holds after" in s for s in said].count(True) == 2


def test_a_status_has_to_hold_twice(cluster: Cluster, tmp_path: Path):
    """A stale `ready` that is read once right after a change does not open the gate."""
    cluster.put(POLICIES, policy(state="ready"))
    cluster.change(later=[[2, POLICIES, policy(state="notReady")], [6, POLICIES, policy(state="ready")]])
    ran = gate(cluster, tmp_path, gate_check(field("equals", "ready")))
    assert ran.status == 0
    assert "is 'notReady'" in ran.out
    assert len(ran.calls) == 7


def test_a_crd_has_to_hold_once(cluster: Cluster, tmp_path: Path):
    cluster.put(CRDS, crd("ippools.nv-ipam.nvidia.com"))
    assert len(gate(cluster, tmp_path, gate_check(IPPOOL_CRD)).calls) == 1


def test_deadline_names_object_status_and_next_command(cluster: Cluster, tmp_path: Path):
    cluster.put(POLICIES, policy(state="notReady", reason="waiting for pods"))
    ran = gate(cluster, tmp_path, gate_check(field("equals", "ready"), timeout=0), KUBE_CONTEXT="prod")
    assert ran.status == 1
    assert ran.out.splitlines()[1:] == [
        "gate sriov-ib-networks: network-operator/field: NOT met within 0s",
        "  object  nicclusterpolicies.v1alpha1.mellanox.com p",
        '  status  {"state":"notReady","reason":"waiting for pods"}',
        "  next    kubectl --context prod get nicclusterpolicies.v1alpha1.mellanox.com p -o yaml",
        "  next    kubectl --context prod describe nicclusterpolicies.v1alpha1.mellanox.com p",
        "  last    is 'notReady', wants 'ready'",
    ]


def test_deadline_of_a_daemonset_without_nodes_says_so(cluster: Cluster, tmp_path: Path):
    kind, data = daemonset(0, 0, None)
    cluster.put(kind, data)
    ran = gate(cluster, tmp_path, gate_check(DS, timeout=0))
    assert "0 nodes match (min 1)" in ran.out
    assert "is the pool scaled to zero?" in ran.out


def test_deadline_of_a_daemonset_shows_pods_that_are_not_ready(cluster: Cluster, tmp_path: Path):
    kind, data = daemonset(2, 2, 1)
    data["spec"]["selector"] = {"matchLabels": {"app": "w"}}
    cluster.put(kind, data)
    for name, shown in (("w-1", "1/1 Running 0 5m"), ("w-2", "0/1 CrashLoopBackOff 7 5m")):
        cluster.put("pods", {"metadata": {"name": name, "namespace": "n", "labels": {"app": "w"}}, "shown": shown})
    ran = gate(cluster, tmp_path, gate_check(DS, timeout=0))
    assert "  pod     w-2 0/1 CrashLoopBackOff restarts=7" in ran.out
    assert "w-1" not in ran.out


@pytest.mark.parametrize("item", EVERY_KIND, ids=lambda c: f"{c.kind}-{c.id}")
def test_every_kind_has_a_diagnosis(cluster: Cluster, tmp_path: Path, item: Check):
    if item.kind == "gone":
        cluster.put(CRDS, crd("sriovibnetworks.sriovnetwork.openshift.io"))
        cluster.put(
            "sriovibnetworks.sriovnetwork.openshift.io",
            {"metadata": {"name": "r", "namespace": "nvidia-network-operator"}},
        )
    ran = look(cluster, tmp_path, item)
    assert ran.status == 1
    assert "  next    kubectl " in ran.out
    assert "  last    " in ran.out


def test_deadlines_of_one_gate_count_from_its_start(cluster: Cluster, tmp_path: Path):
    """The second check does not get its time once more: the gate has one deadline."""
    cluster.change(later=[[6, CRDS, crd("ippools.nv-ipam.nvidia.com")]])
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 60), gate_check(field("equals", "ready"), 1), GATE_POLL="0.3")
    assert ran.status == 1
    assert "field: NOT met within 1s" in ran.out
    assert len([c for c in ran.calls if "p" in c and "describe" not in c]) == 2  # one look, and one for the diagnosis


def test_scale_of_deadlines(cluster: Cluster, tmp_path: Path):
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 2), GATE_TIMEOUT_SCALE="0.5")
    assert "NOT met within 1s" in ran.out
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 2), GATE_TIMEOUT_SCALE="a lot")
    assert ran.status == 2
    assert "GATE_TIMEOUT_SCALE is 'a lot'" in ran.out


def test_warn_goes_on_and_checks_the_rest(cluster: Cluster, tmp_path: Path):
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0, "warn"), gate_check(field("equals", "ready"), 0))
    assert ran.status == 1
    assert "network-operator/ippools: WARNING: going on without it" in ran.out
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0, "warn"))
    assert ran.status == 0


def test_access_denied_ends_the_wait(cluster: Cluster, tmp_path: Path):
    cluster.change(denied=[POLICIES])
    ran = gate(cluster, tmp_path, gate_check(field("equals", "ready"), 600))
    assert ran.status == 2
    assert "access denied: Error from server (Forbidden)" in ran.out
    assert len(ran.calls) == 3
    assert gate(cluster, tmp_path, gate_check(field("equals", "ready"), 600, "warn")).status == 0


def test_first_installation_only(cluster: Cluster, tmp_path: Path):
    late = gate_check(IPPOOL_CRD, 0, scope="install")
    assert gate(cluster, tmp_path, late).status == 1
    cluster.record("sriov-ib-networks", "nvidia-network-operator", 1, "failed")
    assert gate(cluster, tmp_path, late).status == 1
    cluster.record("sriov-ib-networks", "nvidia-network-operator", 2, "deployed")
    ran = gate(cluster, tmp_path, late)
    assert ran.status == 0
    assert "sriov-ib-networks is installed" in ran.out
    assert gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0)).status == 1


def test_a_passing_look_at_the_deadline_is_given_its_second_look(cluster: Cluster, tmp_path: Path):
    cluster.put(POLICIES, policy(state="ready"))
    assert gate(cluster, tmp_path, gate_check(field("equals", "ready"), 0)).status == 0


def test_warnings_of_kubectl_do_not_end_up_in_values(cluster: Cluster, tmp_path: Path):
    cluster.put(POLICIES, policy(state="ready"))
    program = cluster.bin / "kubectl"
    program.write_text(program.read_text().replace("exec", "echo 'Warning: v1alpha1 is deprecated' >&2\nexec"))
    assert gate(cluster, tmp_path, gate_check(field("equals", "ready"), 0)).status == 0


# --- lib/gate as a program -------------------------------------------------------------------------------------------


def test_output_is_standard_output_for_helmfile(cluster: Cluster, tmp_path: Path):
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0))
    assert ran.out
    assert not ran.said


def test_a_release_without_a_gate_passes_at_once(cluster: Cluster, tmp_path: Path):
    write(small_plan(), tmp_path)
    ran = cluster.run(tmp_path / "lib/gate", "cert-manager")
    assert (ran.status, ran.out, ran.calls) == (0, "", [])


@pytest.mark.parametrize("arguments", [(), ("",), ("no-such",), ("--what",), ("--context", "x")])
def test_wrong_usage(cluster: Cluster, tmp_path: Path, arguments: tuple[str, ...]):
    write(small_plan(), tmp_path)
    ran = cluster.run(tmp_path / "lib/gate", *arguments)
    assert ran.status == 2
    assert ran.calls == []


def test_context_is_passed_on(cluster: Cluster, tmp_path: Path):
    for options, env in ((("--context", "prod"), {}), ((), {"KUBE_CONTEXT": "prod"})):
        (call,) = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0), options=options, **env).calls
        assert call[:3] == ["kubectl", "--context", "prod"]
    for env in ({}, {"KUBE_CONTEXT": "prod"}):  # helmfile's word, also that it means the current one
        (call,) = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0), options=("--context", ""), **env).calls
        assert "--context" not in call


@pytest.mark.parametrize("options", [(), ("--context", "")])
def test_what_helm_takes_for_the_context_counts(cluster: Cluster, tmp_path: Path, options: tuple[str, ...]):
    (call,) = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0), options=options, HELM_KUBECONTEXT="prod").calls
    assert call[:3] == ["kubectl", "--context", "prod"]
    ran = gate(cluster, tmp_path, gate_check(IPPOOL_CRD, 0), options=options, HELM_KUBEAPISERVER="https://x")
    assert (ran.status, ran.calls) == (2, [])


def test_works_from_any_folder_and_through_a_strange_path(cluster: Cluster, tmp_path: Path):
    folder = tmp_path / "it's a $(bundle)"
    cluster.put(CRDS, crd("ippools.nv-ipam.nvidia.com"))
    write(with_gate(gate_check(IPPOOL_CRD)), folder)
    assert cluster.run("lib/gate", "sriov-ib-networks", cwd=folder).status == 0
    assert cluster.run("./gate", "sriov-ib-networks", cwd=folder / "lib", CDPATH="/tmp").status == 0
    assert cluster.run(folder / "lib/gate", "sriov-ib-networks", cwd=Path("/")).status == 0


def test_teardown_holds_when_the_api_or_every_object_is_gone(cluster: Cluster, tmp_path: Path):
    write(small_plan(), tmp_path)
    teardown = lambda: cluster.run(tmp_path / "lib/gate", "--teardown", "network-operator-post")  # noqa: E731
    assert teardown().status == 0
    cluster.put(*NODE_STATE_CRD)
    assert "no object of this kind" in teardown().out
    cluster.put(*state("a", "InProgress"))
    cluster.change(later=[[Store(cluster.folder).state["calls"] + 3, *state("a", "Succeeded")]])
    ran = teardown()
    assert ran.status == 0
    assert "0 of 1 are 'Succeeded'; not nvidia-network-operator/a=InProgress" in ran.out


def test_teardown_waits_for_the_dust_to_settle(cluster: Cluster, tmp_path: Path):
    """Right after a deletion the old success can still be read: it has to hold for a while."""
    write(small_plan(), tmp_path)
    cluster.put(*NODE_STATE_CRD)
    cluster.put(*state("a", "Succeeded"))
    cluster.change(later=[[2, *state("a", "InProgress")], [5, *state("a", "Succeeded")]])
    ran = cluster.run(tmp_path / "lib/gate", "--teardown", "network-operator-post", GATE_SETTLE="1")
    assert ran.status == 0
    assert "not nvidia-network-operator/a=InProgress" in ran.out


def test_an_api_out_of_reach_is_not_an_absent_one(cluster: Cluster, tmp_path: Path):
    """A look that fails for another reason, or a CRD that is there, is no proof that objects are gone."""
    write(small_plan(), tmp_path)
    gone = replace(GONE, id="g")
    cluster.change(denied=[CRDS])
    assert look(cluster, tmp_path, gone).status == 1  # the CRD cannot be looked up
    cluster.change(denied=[])
    (cluster.bin / "kubectl").write_text("#!/bin/sh\necho 'The connection to the server was refused' >&2\nexit 1\n")
    assert look(cluster, tmp_path, gone).status == 1


# --- lib/prepare -----------------------------------------------------------------------------------------------------

CHART_CRDS = """\
---
# Source: crds/a.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    name: decoy
  labels:
    name: sriovibnetworks.sriovnetwork.openshift.io
  name: nicclusterpolicies.mellanox.com
spec:
  group: mellanox.com
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: # of the second
    annotations: {}
    name: "sriovibnetworks.sriovnetwork.openshift.io" # quoted
spec:
  description: |
    a block that holds a line like
    ---
    metadata:
      name: decoy
  names:
    name: decoy
--- # a comment
kind: ConfigMap
metadata:
  name: sriovibnetworks.sriovnetwork.openshift.io
"""


def select(folder: Path, text: str, *names: str) -> tuple[int, str, str]:
    write(small_plan(), folder)
    result = run(
        ["bash", "-c", f'. {shlex.quote(str(folder))}/lib/prepare; select_crds "$@"', "x", *names],
        stdin=text,
        check=False,
    )
    return result.returncode, result.text, result.stderr.decode()


def test_select_crds(tmp_path: Path):
    status, text, _ = select(tmp_path, CHART_CRDS, "sriovibnetworks.sriovnetwork.openshift.io")
    assert status == 0
    assert text == "---\n" + CHART_CRDS.split("---\n", 2)[2].partition("--- # a comment")[0]
    status, text, _ = select(
        tmp_path,
        CHART_CRDS.replace("\n", "\r\n"),
        "nicclusterpolicies.mellanox.com",
        "sriovibnetworks.sriovnetwork.openshift.io",
    )
    assert status == 0
    assert text.count("kind: CustomResourceDefinition") == 2
    assert "kind: ConfigMap" not in text


def test_select_crds_of_files_with_nothing_between_them(tmp_path: Path):
    """Helm 3 prints the files of crds/ one after the other as they are."""
    file = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {0}\nspec:\n  group: {0}\n"
    text = "".join(file.format(name) for name in ("a.example.com", "b.example.com", "c.example.com"))
    status, found, _ = select(tmp_path, text, "c.example.com", "a.example.com")
    assert status == 0
    assert found == "".join("---\n" + file.format(name) for name in ("a.example.com", "c.example.com"))


def test_select_crds_fails_on_a_name_that_the_chart_does_not_hold(tmp_path: Path):
    status, _, error = select(tmp_path, CHART_CRDS, "decoy", "nicclusterpolicies.mellanox.com")
    assert status == 1
    assert error == "the chart holds no CRD decoy\n"


def prepare(cluster: Cluster, folder: Path, *arguments: str, **env: str) -> Ran:
    write(small_plan(), folder)
    return cluster.run(folder / "lib/prepare", *arguments, **env)


def test_prepare_applies_namespaces_and_the_named_crds(cluster: Cluster, tmp_path: Path):
    cluster.change(crds=CHART_CRDS)
    ran = prepare(cluster, tmp_path, "network-operator", "--context", "prod")
    assert ran.status == 0, ran.out
    manager = ["--server-side", "--force-conflicts", "--field-manager=bundlec", "-f"]
    assert ran.changes() == [
        ["kubectl", "apply", *manager, str(tmp_path / "namespaces")],
        ["kubectl", "apply", *manager, "-"],
    ]
    repo = "https://helm.ngc.nvidia.com/nvidia"
    assert ["helm", "show", "crds", "network-operator", "--repo", repo, "--version", "26.7.0"] in ran.calls
    found = Store(cluster.folder).state["objects"]
    assert set(found["namespaces"]) == {"/cert-manager", "/gpu-operator", "/kai-scheduler", "/nvidia-network-operator"}
    assert "/sriovibnetworks.sriovnetwork.openshift.io" in found[CRDS]


def test_case_64_crds_are_updated_where_they_are_there_already(tmp_path: Path):
    """Helm installs what is in crds/ and never touches it again."""
    names = ("nicclusterpolicies.mellanox.com", "sriovibnetworks.sriovnetwork.openshift.io")
    plan = small_plan()
    releases = tuple(
        replace(r, crds_before=(), crds_on_upgrade=names) if r.id == "network-operator" else r for r in plan.releases
    )
    write(replace(plan, releases=releases), tmp_path)
    cluster = Cluster(tmp_path / "cluster")
    cluster.change(crds=CHART_CRDS)
    fresh = cluster.run(tmp_path / "lib/prepare", "network-operator")
    assert fresh.status == 0, fresh.out
    assert len(fresh.changes()) == 1  # the namespaces
    assert not [call for call in fresh.calls if call[0] == "helm"]
    cluster.put(CRDS, crd(names[0], kind="NicClusterPolicy"))  # of an earlier version, which had but one of them
    again = cluster.run(tmp_path / "lib/prepare", "network-operator")
    assert again.status == 0, again.out
    apply = ["kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=bundlec", "-f", "-"]
    assert again.changes()[1:] == [apply]
    assert {f"/{name}" for name in names} <= set(Store(cluster.folder).state["objects"][CRDS])


def test_prepare_of_a_release_without_crds(cluster: Cluster, tmp_path: Path):
    assert len(prepare(cluster, tmp_path, "cert-manager").changes()) == 1
    assert prepare(cluster, tmp_path).status == 2


def test_prepare_fails_when_the_chart_lacks_a_crd(cluster: Cluster, tmp_path: Path):
    cluster.change(crds="kind: CustomResourceDefinition\nmetadata:\n  name: other.x.example\n")
    ran = prepare(cluster, tmp_path, "network-operator")
    assert ran.status == 1
    assert "the chart holds no CRD sriovibnetworks.sriovnetwork.openshift.io" in ran.out
    assert len(ran.changes()) == 1


def test_prepare_waits_for_a_namespace_that_is_being_deleted(cluster: Cluster, tmp_path: Path):
    cluster.put("namespaces", {"metadata": {"name": "gpu-operator"}, "status": {"phase": "Terminating"}})
    cluster.put("namespaces", {"metadata": {"name": "elsewhere"}, "status": {"phase": "Terminating"}})
    cluster.change(later=[[3, "namespaces", {"deleted": True, "name": "gpu-operator"}]])
    ran = prepare(cluster, tmp_path, "cert-manager")
    assert ran.status == 0
    assert "waiting for the deletion of gpu-operator to end" in ran.out
    assert "elsewhere" not in ran.out


def test_prepare_gives_up_on_a_namespace_that_stays(cluster: Cluster, tmp_path: Path):
    cluster.put("namespaces", {"metadata": {"name": "gpu-operator"}, "status": {"phase": "Terminating"}})
    ran = prepare(cluster, tmp_path, "cert-manager", GATE_TIMEOUT_SCALE="0.001")
    assert ran.status == 1
    assert "still being deleted after 0s: gpu-operator" in ran.out
    assert ran.changes() == []


# --- form ------------------------------------------------------------------------------------------------------------


@pytest.mark.tools
def test_scripts_are_clean(tmp_path: Path, tool: Any):
    write(with_gate(*map(gate_check, EVERY_KIND)), tmp_path)
    for name in ("gates.sh", "gate", "prepare"):
        run(["bash", "-n", tmp_path / "lib" / name])
    run([tool("shellcheck"), "-x", *(tmp_path / "lib" / n for n in ("gates.sh", "gate", "prepare"))])


def test_hostile_words_are_only_words(cluster: Cluster, tmp_path: Path):
    """case 72: nothing in a check is run by the shell."""
    trap = f"$(touch {tmp_path}/run);`touch {tmp_path}/run` 'x' \"y\" \\ | & \n #"
    cluster.put(POLICIES, policy(state=trap))
    assert look(cluster, tmp_path, field("equals", trap)).status == 0
    assert look(cluster, tmp_path, replace(field("equals", trap), name=trap, id=trap)).status == 1
    assert not (tmp_path / "run").exists()


def test_the_fake_reads_json_paths():
    data = {"items": [{"a": {"b.c/d": 1}, "l": [{"t": "x", "s": True}, {"t": "y"}]}, {"a": {}}]}
    assert jsonpath('{range .items[*]}{.a.b\\.c/d}={.l[?(@.t=="x")].s};{"\\n"}{end}', data) == "1=true;\n=;\n"
    assert jsonpath("{range .items[?(@.l)]}{.l[1].t}{end}{.none}", data) == "y"
