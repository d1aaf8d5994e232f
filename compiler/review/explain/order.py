"""Why one release waits for another: the edge, the gate, the shortest chain, and what each deployer does for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from compiler.durations import format_duration
from compiler.errors import Diagnostic, UserError, did_you_mean
from compiler.graph import describe
from compiler.model import Edge, Gate, GateCheck, Plan
from compiler.review.explain.holds import of_edge, of_gate
from compiler.review.explain.model import Cause, CheckStory, EdgeStory, GateStory, OrderStory, place


def edges(plan: Plan, first: str, second: str) -> tuple[EdgeStory, ...]:
    """The edges between two releases or components, in either direction. Raises UserError (BC2016) without one."""
    left, right = _releases(plan, first), _releases(plan, second)
    found = [
        edge
        for edge in plan.edges
        if (edge.provider in left and edge.dependant in right) or (edge.provider in right and edge.dependant in left)
    ]
    if not found:
        known = [f"{e.dependant} after {e.provider}" for e in plan.edges if {e.provider, e.dependant} & (left | right)]
        near = "; ".join(known[:4])
        fix = f"`--order {first} {second}` shows the chain between them" + (
            f"; edges of the two: {near}" if near else ""
        )
        raise UserError([Diagnostic("BC2016", f"no edge joins `{first}` and `{second}` directly", None, fix)])
    return tuple(_edge(plan, edge) for edge in found)


def gate(plan: Plan, word: str) -> GateStory:
    """The gate of a release (or of a component's first gated piece). Raises UserError (BC2016) when there is none."""
    gates = {release.id: release.gate for release in plan.releases if release.gate is not None}
    ids = [word] if word in gates else [r for r in gates if r in _releases(plan, word, known=gates)]
    if not ids:
        fix = did_you_mean(word, gates) or f"gates stand in front of {', '.join(gates) or 'nothing'}"
        raise UserError([Diagnostic("BC2016", f"no gate stands in front of `{word}`", None, fix)])
    item = gates[ids[0]]
    behind = [edge for edge in plan.edges if edge.dependant == item.id and edge.provider in item.after]
    return GateStory(
        id=item.id,
        after=item.after,
        checks=tuple(map(_check, item.checks)),
        edges=tuple(_edge(plan, edge) for edge in behind),
        holds=of_gate(plan, item),
    )


def order(plan: Plan, first: str, second: str) -> OrderStory:
    """Why one comes before the other: the shortest chain of edges, whichever of the two is the earlier.

    Without a chain, the notes say what decides instead. Raises UserError (BC2016) for a name that the plan lacks.
    """
    left, right = _releases(plan, first), _releases(plan, second)
    if left & right:  # a component's chart is called like the component
        left, right = ({word} & {release.id for release in plan.releases} for word in (first, second))
    if not left or not right or left & right:
        raise UserError([Diagnostic("BC2016", f"`{first}` and `{second}` are the same release", None, "name two")])
    chain = _shortest(plan.edges, left, right)
    if chain:
        return OrderStory(first, second, tuple(_edge(plan, e) for e in chain), ())
    chain = _shortest(plan.edges, right, left)
    if chain:
        note = f"it is the other way round: {second} comes before {first}"
        return OrderStory(second, first, tuple(_edge(plan, e) for e in chain), (note,))
    place_of = {release.id: number for number, release in enumerate(plan.releases, 1)}
    a, b = min(place_of[r] for r in left), min(place_of[r] for r in right)
    earlier, later = (first, second) if a < b else (second, first)
    note = (
        f"nothing orders the two. In deploy.sh and helmfile {earlier} (step {min(a, b)}) stands before "
        f"{later} (step {max(a, b)}), since what is ready goes in order of name; Argo CD and Flux may run both at once"
    )
    return OrderStory(earlier, later, (), (note,))


def _edge(plan: Plan, edge: Edge) -> EdgeStory:
    item = next((r.gate for r in plan.releases if r.id == edge.dependant), None)
    checks: tuple[CheckStory, ...] = ()
    if item is not None and edge.until != "applied":
        component = next(r.component for r in plan.releases if r.id == edge.provider)
        mine = [check for check in item.checks if check.provider == component]
        # A CRD that an operator creates at run time is another component's than the release that asks for it.
        checks = tuple(map(_check, mine or item.checks))
    return EdgeStory(
        provider=edge.provider,
        dependant=edge.dependant,
        until=edge.until,
        causes=tuple(Cause(r.kind, r.text, place(r.origin)) for r in edge.reasons),
        checks=checks,
        holds=of_edge(plan, edge),
    )


def _check(item: GateCheck) -> CheckStory:
    return CheckStory(
        id=item.check.id,
        text=describe(item.check),
        provider=item.provider,
        timeout=format_duration(item.timeout),
        on_timeout=item.on_timeout,
        scope=item.scope,
        at=place(item.check.origin),
    )


def _releases(plan: Plan, word: str, known: Mapping[str, Gate | None] | None = None) -> set[str]:
    """The release of that id, or else all releases of the component. Raises UserError (BC2016)."""
    ids = {release.id for release in plan.releases}
    of_component = {release.id for release in plan.releases if release.component == word}
    if of_component:
        return of_component
    if word in ids:
        return {word}
    component = plan.recipe.components.get(word)
    names = known if known is not None else {*ids, *(r.component for r in plan.releases)}
    fix = did_you_mean(word, names) or f"one of: {', '.join(sorted(ids))}"
    if component is not None and not component.enabled:
        fix = f"`{word}` is switched off: {component.disabled_reason}"
    raise UserError([Diagnostic("BC2016", f"the plan has no release and no component `{word}`", None, fix)])


def _shortest(all_edges: Iterable[Edge], start: set[str], goal: set[str]) -> list[Edge]:
    """The shortest chain of edges from one set of releases to another; of equals, the first in order of deployment."""
    after: dict[str, list[Edge]] = {}
    for edge in all_edges:
        after.setdefault(edge.provider, []).append(edge)
    came: dict[str, Edge | None] = dict.fromkeys(sorted(start))
    queue = deque(sorted(start))
    while queue:
        name = queue.popleft()
        for edge in after.get(name, ()):
            if edge.dependant in came:
                continue
            came[edge.dependant] = edge
            if edge.dependant in goal:
                return list(reversed(list(_back(came, edge.dependant))))
            queue.append(edge.dependant)
    return []


def _back(came: Mapping[str, Edge | None], name: str) -> Iterator[Edge]:
    edge = came[name]
    while edge is not None:
        yield edge
        edge = came[edge.provider]
