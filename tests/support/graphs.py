"""Random plans: components of one to three pieces, edges of every kind, gates with checks of every kind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from compiler.model import Chart, Check, ComponentPlan, Edge, Gate, GateCheck, Namespace, Plan, Reason, Release
from tests.support.plans import check, kube, recipe, release

KINDS = ("crd", "deployment", "statefulset", "daemonset", "job", "field", "present", "condition", "nodes", "webhook")


def some_check(kind: str, number: int) -> Check:
    """A check of a kind, different from that of any other number."""
    name, custom = f"x{number}", {"group": "example.dev", "version": "v1", "object_kind": "Thing", "resource": "things"}
    match kind:
        case "crd":
            return check("crd", id=name, name=f"things{number}.example.dev")
        case "field":
            return check("field", id=name, name=name, path="status.state", op="equals", value="ready", **custom)
        case "present":
            return check("field", id=name, name=name, namespace="a", path="status.replicas", op="present", **custom)
        case "condition":
            return check("condition", id=name, name=name, type="Ready", value="True", **custom)
        case "nodes":
            return check("nodes", id=name, selector=f"example.dev/pool={number}", min_nodes=1)
        case "daemonset":
            return check("daemonset", id=name, name=name, namespace="a", min_nodes=1 + number % 3)
        case _:
            return check(kind, id=name, name=name, namespace="a")


def _object(component: str, piece: str, number: int) -> object:
    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"m{number}", "namespace": "a"},
        "data": {"a": "b"},
    }
    return kube(component, piece, data)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan that the plan stage could have made: providers first, a gate wherever an edge is hard."""
    size = draw(st.integers(1, 9))
    number = 0
    releases: list[Release] = []
    edges: list[Edge] = []
    components: list[ComponentPlan] = []
    pieces: dict[str, list[str]] = {}
    levels: dict[str, int] = {}
    for index in range(size):
        name = f"c{index}"
        own: list[Release] = []
        if draw(st.booleans()):
            own.append(release(f"{name}-pre", name, "pre", "a", objects=(_object(name, "pre", index),)))
        if draw(st.booleans()):
            own.append(release(name, name, "main", "a", chart=Chart("https://charts.example.dev", name, "1.0.0")))
        else:
            own.append(release(name, name, "main", "a", objects=(_object(name, "main", 100 + index),)))
        if draw(st.booleans()):
            own.append(release(f"{name}-post", name, "post", "a", objects=(_object(name, "post", 200 + index),)))
        incoming: dict[str, list[Edge]] = {item.id: [] for item in own}
        after = draw(st.lists(st.sampled_from(list(pieces)), max_size=3, unique=True)) if pieces else []
        for provider in after:
            until = draw(st.sampled_from(["applied", "applied", "api", "ready"]))
            reason = "runtime-api" if until == "ready" and draw(st.booleans()) else "declared"
            incoming[own[0].id].append(Edge(pieces[provider][-1], own[0].id, until, (Reason(reason, provider),)))
        for before, item in pairwise(own):
            until = "api" if item.piece == "post" and draw(st.booleans()) else "applied"
            incoming[item.id].append(Edge(before.id, item.id, until, (Reason("piece", name),)))
        for item in own:
            hard = [edge for edge in incoming[item.id] if edge.hard]
            checks: list[GateCheck] = []
            for edge in hard:
                for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)):
                    number += 1
                    provider = edge.provider.removesuffix("-post").removesuffix("-pre")
                    checks.append(GateCheck(some_check(kind, number), provider, 60 * number, "fail", "always"))
            releases.append(
                replace(
                    item,
                    needs=tuple(sorted({edge.provider for edge in incoming[item.id]})),
                    gate=Gate(item.id, tuple(sorted({e.provider for e in hard})), tuple(checks)) if checks else None,
                )
            )
            edges += incoming[item.id]
        pieces[name] = [item.id for item in own]
        levels[name] = 1 + max((levels[provider] for provider in after), default=-1)
        components.append(ComponentPlan(name, tuple(pieces[name]), (), levels[name]))
    return Plan(
        recipe=recipe(),
        namespaces=(Namespace("a", {}, tuple(pieces)),),
        components=tuple(components),
        releases=tuple(releases),
        edges=tuple(edges),
        preflight=(),
        examples=(),
        satisfied=(),
    )
