"""Pictures of a plan: the order as text, as a Mermaid flowchart and as a DOT graph.

The text and DOT show every release and edge; Mermaid, made for the README, shows components and leaves out plain edges
that follow from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from compiler.durations import format_duration
from compiler.model import Check, Edge, Gate, GateCheck, Plan, Release
from compiler.records import dataclass


def text(plan: Plan) -> str:
    """The order of deployment: each release with its level, what it waits for and why, and its gate."""
    levels = levels_of(plan)
    into = _by_dependant(plan.edges)
    counted = [
        _count(len(plan.releases), "release"),
        _count(1 + max(levels.values(), default=-1), "level"),
        _count(len(plan.edges), "edge"),
        _count(sum(r.gate is not None for r in plan.releases), "gate"),
    ]
    lines = [f"{plan.bundle}: {', '.join(counted)}", ""]
    width = max((len(r.id) for r in plan.releases), default=0)
    digits = len(str(len(plan.releases)))
    indent = " " * (digits + 2)
    for number, release in enumerate(plan.releases, 1):
        lines.append(f"{number:>{digits}}  {release.id:<{width}}  level {levels[release.id]}  {_payload(release)}")
        for edge in into.get(release.id, ()):
            kind = f"until {edge.until}" if edge.until != "applied" else "applied"
            lines.append(f"{indent}  after {edge.provider} ({kind})")
            lines.extend(f"{indent}    {reason.kind}: {reason.text}" for reason in edge.reasons)
        if release.gate:
            lines.append(f"{indent}  gate")
            lines.extend(f"{indent}    {_gate_line(check)}" for check in release.gate.checks)
    if plan.satisfied:
        lines += ["", "satisfied", *(f"  {sentence}" for sentence in plan.satisfied)]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Picture:
    """What a picture of the order shows: components, gates between them, and plain edges that nothing else says.

    `notes` are the gates inside a component, in words; `gates` hold (release, components behind it, its words).
    """

    components: tuple[str, ...]
    notes: Mapping[str, tuple[str, ...]]
    gates: tuple[tuple[Release, tuple[str, ...], tuple[str, ...]], ...]
    plain: tuple[tuple[str, str], ...]


def picture(plan: Plan) -> Picture:
    """The order of a plan, reduced to what a reader can take in."""
    component_of = {r.id: r.component for r in plan.releases}
    within: dict[str, tuple[str, ...]] = {}
    gated: list[tuple[Release, tuple[str, ...], tuple[str, ...]]] = []
    for release in plan.releases:
        if release.gate is None:
            continue
        words = tuple(_brief(release.gate))
        providers = _providers(release, release.gate, plan, component_of)
        if providers:
            gated.append((release, providers, words))
        else:
            within[release.component] = (*within.get(release.component, ()), *words)
    behind_gate = {(p, release.component) for release, providers, _ in gated for p in providers}
    plain = _reduced(
        {
            (component_of[e.provider], component_of[e.dependant])
            for e in plan.edges
            if component_of[e.provider] != component_of[e.dependant]
        },
        [c.name for c in plan.components],
        behind_gate,
    )
    return Picture(
        tuple(c.name for c in plan.components),
        within,
        tuple(gated),
        tuple(pair for pair in plain if pair not in behind_gate),
    )


def mermaid(plan: Plan) -> str:
    """A Mermaid flowchart of the components. Hexagons are gates; dotted arrows are order without a gate."""
    shown = picture(plan)
    lines = ["flowchart LR"]
    for name in shown.components:
        notes = "".join(f"<br/>{_quoted(note)}" for note in shown.notes.get(name, ()))
        lines.append(f'  {_node(name)}["{_quoted(name)}{notes}"]')
    for release, providers, words in shown.gates:
        label = "<br/>".join(map(_quoted, words))
        lines.append(f'  {_node(release.id, "g")}{{{{"{label}"}}}}')
        lines.extend(f"  {_node(p)} --> {_node(release.id, 'g')}" for p in providers)
        lines.append(f"  {_node(release.id, 'g')} ==> {_node(release.component)}")
    lines.extend(f"  {_node(a)} -.-> {_node(b)}" for a, b in shown.plain)
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """A Graphviz digraph of every release, its edges (solid when a gate holds them) and gates."""
    lines = [f"digraph {_dot(plan.bundle)} {{", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for component in plan.components:
        ids = [r for r in plan.releases if r.component == component.name]
        if len(ids) == 1:
            lines.append(f"  {_dot(ids[0].id)};")
            continue
        inner = " ".join(f"{_dot(r.id)};" for r in ids)
        lines.append(f"  subgraph {_dot('cluster_' + component.name)} {{ label={_dot(component.name)}; {inner} }}")
    for release in plan.releases:
        if release.gate:
            label = "\n".join(describe(c.check) for c in release.gate.checks)
            gate = _dot(f"gate {release.id}")
            lines.append(f"  {gate} [shape=hexagon, label={_dot(label)}];")
            lines.extend(f"  {_dot(provider)} -> {gate};" for provider in release.gate.after)
            lines.append(f"  {gate} -> {_dot(release.id)} [style=bold];")
    for edge in plan.edges:
        style = "" if edge.hard else ", style=dashed"
        lines.append(f"  {_dot(edge.provider)} -> {_dot(edge.dependant)} [label={_dot(edge.until)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def levels_of(plan: Plan) -> Mapping[str, int]:
    """Release id -> length of the longest chain of edges that leads to it."""
    into = _by_dependant(plan.edges)
    levels: dict[str, int] = {}
    for release in plan.releases:  # providers come first
        levels[release.id] = 1 + max((levels.get(e.provider, 0) for e in into.get(release.id, ())), default=-1)
    return levels


def describe(check: Check) -> str:
    """What `check` waits for, in words, with all that tells it from other checks."""
    where = f"{check.namespace}/{check.name}" if check.namespace else check.name
    there = f" in {check.namespace}" if check.namespace else ""
    resource = f"{check.resource}.{check.group}" if check.group else check.resource
    match check.kind:
        case "crd":
            return f"CRD {check.name} is Established"
        case "deployment" | "statefulset" | "daemonset":
            minimum = [
                _count(number, unit)
                for number, unit in ((check.min_nodes, "node"), (check.min_ready, "ready pod"))
                if number is not None
            ]
            return f"{check.kind} {where} is rolled out" + (f", at least {' and '.join(minimum)}" if minimum else "")
        case "job":
            return f"job {where} is complete"
        case "field":
            wanted = {"equals": f"is {check.value}", "notEquals": f"is not {check.value}", "present": "is set"}
            return f"{check.object_kind} {where}: {check.path} {wanted[check.op or 'present']}"
        case "condition":
            return f"{check.object_kind} {where}: condition {check.type} is {check.value}"
        case "every":
            return f"every {check.object_kind}{there}: {check.path} is {check.value}"
        case "gone":
            return f"no {resource}{there} left"
        case "nodes":
            return f"{_count(check.min_nodes or 1, 'node')} with {check.selector}"
        case "webhook":
            return f"webhook {where} answers"
        case _:
            return f"{check.kind} {where}"


def summary(checks: Iterable[Check]) -> list[str]:
    """Several checks in words, in order, the CRDs of one API group taken together."""
    told: dict[str, list[str]] = {}
    for check in checks:
        plural, _, group = (check.name or "").partition(".")
        if check.kind == "crd" and group:
            told.setdefault(f"CRDs of {group}: ", []).append(plural)
        else:
            told.setdefault(describe(check), [])
    return [words + ", ".join(plurals) for words, plurals in told.items()]


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _by_dependant(edges: Iterable[Edge]) -> Mapping[str, list[Edge]]:
    table: dict[str, list[Edge]] = {}
    for edge in edges:
        table.setdefault(edge.dependant, []).append(edge)
    return table


def _payload(release: Release) -> str:
    if release.chart:
        return f"{release.chart.name} {release.chart.version}"
    return f"{_count(len(release.objects), 'object')}" if release.objects else "nothing to apply"


def _gate_line(check: GateCheck) -> str:
    notes = [check.provider, f"within {format_duration(check.timeout)}"]
    if check.on_timeout == "warn":
        notes.append("else a warning")
    if check.scope == "install":
        notes.append("first installation only")
    return f"{describe(check.check)} ({', '.join(notes)})"


def _brief(gate: Gate) -> list[str]:
    # A namespace makes a label of the picture twice as wide, and does not help anybody to understand the order.
    return summary(replace(item.check, namespace=None) for item in gate.checks)


def _providers(release: Release, gate: Gate, plan: Plan, component_of: Mapping[str, str]) -> tuple[str, ...]:
    """The other components that a gate waits for, in order of deployment."""
    behind = {component_of[a] for a in gate.after} | {c.provider for c in gate.checks}
    return tuple(c.name for c in plan.components if c.name in behind and c.name != release.component)


def _reduced(edges: set[tuple[str, str]], order: Sequence[str], keep: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """`edges` without those that a longer path says already, sorted; edges of `keep` always stay.

    `order` lists the nodes, providers first. What a node reaches is a bit set over it.
    """
    bit = {name: 1 << number for number, name in enumerate(order)}
    after: dict[str, set[str]] = {}
    for a, b in edges | keep:
        after.setdefault(a, set()).add(b)
    reach: dict[str, int] = {}
    for name in reversed(order):
        reach[name] = 0
        for below in after.get(name, ()):
            reach[name] |= bit[below] | reach.get(below, 0)

    def implied(a: str, b: str) -> bool:
        return any(reach[c] & bit[b] for c in after[a] if c != b)

    return sorted((a, b) for a, b in edges if (a, b) in keep or not implied(a, b))


def _node(name: str, prefix: str = "c") -> str:
    # A prefix keeps clear of the words of the Mermaid grammar (`end`, `graph`, ...).
    return f"{prefix}_{name.replace('-', '_').replace('.', '_')}"


def _quoted(label: str) -> str:
    return label.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


def _dot(label: str) -> str:
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
