"""Pictures of a plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compiler import graph
from compiler.model import Check, Edge, Gate, GateCheck, Plan, Reason
from tests.support.plans import GONE, INSTALLER, IPPOOL_CRD, POLICY_READY, STATES, check, small_plan


def with_edges(*edges: tuple[str, str]) -> Plan:
    plan = small_plan()
    extra = tuple(Edge(a, b, "applied", (Reason("declared", "x"),)) for a, b in edges)
    return replace(plan, edges=(*plan.edges, *extra))


def test_the_text_tells_order_reasons_and_gates() -> None:
    text = graph.text(small_plan())
    assert text.startswith("demo: 9 releases, 4 levels, 7 edges, 2 gates\n")
    assert "9  sriov-ib-networks      level 3  1 object\n" in text
    assert (
        "     after network-operator-post (until ready)\n"
        "       declared: sriov-ib-networks needs network-operator\n"
        "       runtime-api: IPPool exists only once NicClusterPolicy asks for nvIpam\n"
        "     gate\n"
        "       CRD ippools.nv-ipam.nvidia.com is Established (network-operator, within 45m)\n"
    ) in text
    assert "prometheus-adapter needs kube-prometheus-stack" in text


def test_levels_are_the_longest_chains() -> None:
    levels = graph.levels_of(with_edges(("kai-scheduler", "sriov-ib-networks")))
    assert levels["cert-manager"] == levels["old-thing"] == 0
    assert levels["kai-scheduler"] == 3
    assert levels["sriov-ib-networks"] == 4


def test_a_gate_says_what_becomes_of_it() -> None:
    gate = Gate("kai-scheduler", ("gpu-operator",), (GateCheck(INSTALLER, "x", 45, "warn", "install"),))
    plan = small_plan()
    plan = replace(plan, releases=tuple(replace(r, gate=gate) if r.id == gate.id else r for r in plan.releases))
    assert "(x, within 45s, else a warning, first installation only)" in graph.text(plan)


def test_mermaid_draws_components_and_gates() -> None:
    lines = graph.mermaid(small_plan()).splitlines()
    assert lines[0] == "flowchart LR"
    assert '  g_gpu_operator_pre{{"daemonset nvidia-driver-installer is rolled out, at least 1 node"}}' in lines
    assert "  c_gcp_driver_installer --> g_gpu_operator_pre" in lines
    assert "  g_gpu_operator_pre ==> c_gpu_operator" in lines
    assert "  c_cert_manager -.-> c_network_operator" in lines
    assert not any("c_network_operator_post" in line for line in lines)


def test_mermaid_leaves_out_what_follows() -> None:
    lines = graph.mermaid(with_edges(("cert-manager", "kai-scheduler"), ("cert-manager", "gpu-operator"))).splitlines()
    assert "  c_cert_manager -.-> c_kai_scheduler" not in lines  # by way of gpu-operator
    assert lines.count("  c_cert_manager -.-> c_gpu_operator") == 1
    assert "  c_gpu_operator -.-> c_kai_scheduler" in lines


def test_every_node_of_a_mermaid_edge_is_declared() -> None:
    text = graph.mermaid(small_plan())
    declared = set(re.findall(r"^  ([cg]_\w+)[\[{]", text, re.MULTILINE))
    used = {name for line in text.splitlines() for name in re.findall(r"\b[cg]_\w+", re.sub(r'".*"', "", line))}
    assert used == declared


def test_a_gate_between_the_pieces_of_one_component_is_a_note_on_it() -> None:
    gate = Gate(
        "network-operator-post",
        ("network-operator",),
        (GateCheck(IPPOOL_CRD, "network-operator", 60, "fail", "always"),),
    )
    plan = small_plan()
    plan = replace(plan, releases=tuple(replace(r, gate=gate) if r.id == gate.id else r for r in plan.releases))
    text = graph.mermaid(plan)
    assert '  c_network_operator["network-operator<br/>CRDs of nv-ipam.nvidia.com: ippools"]' in text
    assert "g_network_operator_post" not in text


def test_labels_cannot_break_out_of_a_picture() -> None:
    nasty = replace(POLICY_READY, value='a"]; <b>x</b> #1\\')
    gate = Gate("kai-scheduler", ("gpu-operator",), (GateCheck(nasty, "gpu-operator", 60, "fail", "always"),))
    plan = small_plan()
    plan = replace(plan, releases=tuple(replace(r, gate=gate) if r.id == gate.id else r for r in plan.releases))
    (line,) = [line for line in graph.mermaid(plan).splitlines() if line.startswith("  g_kai_scheduler{{")]
    assert line.count('"') == 2
    assert "<b>" not in line
    (line,) = [line for line in graph.dot(plan).splitlines() if line.startswith('  "gate kai-scheduler" [')]
    assert r'a\"]; <b>x</b> #1\\"]' in line


def test_dot_shows_releases_and_the_kind_of_each_edge() -> None:
    text = graph.dot(small_plan())
    assert text.startswith('digraph "demo" {\n')
    assert text.endswith("}\n")
    assert text.count("{") == text.count("}")
    assert '  "network-operator-post" -> "sriov-ib-networks" [label="ready"];' in text
    assert '  "cert-manager" -> "network-operator" [label="applied", style=dashed];' in text
    assert '  "network-operator-post" -> "gate sriov-ib-networks";' in text
    assert 'subgraph "cluster_gpu-operator"' in text


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (IPPOOL_CRD, "CRD ippools.nv-ipam.nvidia.com is Established"),
        (INSTALLER, "daemonset kube-system/nvidia-driver-installer is rolled out, at least 1 node"),
        (check("deployment", name="a", namespace="b"), "deployment b/a is rolled out"),
        (check("statefulset", name="a", min_ready=2), "statefulset a is rolled out, at least 2 ready pods"),
        (check("job", name="a", namespace="b"), "job b/a is complete"),
        (POLICY_READY, "NicClusterPolicy nic-cluster-policy: status.state is ready"),
        (replace(POLICY_READY, op="notEquals"), "NicClusterPolicy nic-cluster-policy: status.state is not ready"),
        (replace(POLICY_READY, op="present"), "NicClusterPolicy nic-cluster-policy: status.state is set"),
        (check("condition", object_kind="X", name="a", type="Ready", value="True"), "X a: condition Ready is True"),
        (STATES, "every SriovNetworkNodeState in nvidia-network-operator: status.syncStatus is Succeeded"),
        (GONE, "no sriovibnetworks.sriovnetwork.openshift.io in nvidia-network-operator left"),
        (check("nodes", selector="a=b", min_nodes=2), "2 nodes with a=b"),
        (check("webhook", name="a", namespace="b"), "webhook b/a answers"),
    ],
)
def test_a_check_in_words(item: Check, words: str) -> None:
    assert graph.describe(item) == words


def test_the_crds_of_one_group_are_told_together() -> None:
    crds = [check("crd", name=f"{plural}.example.dev") for plural in ("as", "bs")]
    assert graph.summary([crds[0], POLICY_READY, crds[1], IPPOOL_CRD]) == [
        "CRDs of example.dev: as, bs",
        "NicClusterPolicy nic-cluster-policy: status.state is ready",
        "CRDs of nv-ipam.nvidia.com: ippools",
    ]
