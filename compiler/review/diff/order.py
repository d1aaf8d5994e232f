"""Edges, gates and the order of two bundles compared: in words, and as the arrows of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compiler.durations import format_duration
from compiler.emit.inventory import check_data
from compiler.graph import describe
from compiler.model import Edge, Gate, GateCheck
from compiler.review.diff.blame import Blame
from compiler.review.diff.model import Link, OrderChange, Place, SideName
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.values import same
from compiler.review.diff.words import listed

_Key = tuple[str, str]


def order_changes(base: Snapshot, head: Snapshot, blame: Blame) -> tuple[OrderChange, ...]:
    """What changes in the edges and gates of releases that both sides have, and in their order.

    Edges and gates of a release that came or went go with it, unless a release that stays waits for it.
    """
    found = [*_edges(base, head, blame), *_gates(base, head, blame), *_sequence(base, head)]
    return tuple(found)


def links(base: Snapshot, head: Snapshot) -> tuple[Link, ...]:
    """The arrows of a picture: every edge that came, went or waits otherwise, and what stands between their ends."""
    old, new = _by_ends(base.edges), _by_ends(head.edges)
    found: list[Link] = []
    for ends in sorted({*old, *new}):
        before, after = old.get(ends), new.get(ends)
        if after is not None and (before is None or before.until != after.until):
            found.append(Link(*ends, _label(after), "added"))
        if before is not None and (after is None or before.until != after.until):
            found.append(Link(*ends, _label(before), "removed"))
    touched = {name for link in found for name in (link.provider, link.dependant)}
    drawn = {(link.provider, link.dependant) for link in found}
    kept = (ends for ends in sorted(new) if ends not in drawn and set(ends) <= touched)
    return (*found, *(Link(*ends, _label(new[ends]), "kept") for ends in kept))


def _edges(base: Snapshot, head: Snapshot, blame: Blame) -> Iterable[OrderChange]:
    old, new = _by_ends(base.edges), _by_ends(head.edges)
    stay = {r.id for r in head.releases} & {*(r.id for r in base.releases), *_ids(base)}
    gone = {ends: edge for ends, edge in old.items() if ends not in new and ends[1] in stay}
    come = {ends: edge for ends, edge in new.items() if ends not in old and ends[1] in stay}
    for ends in sorted(come):
        edge = come[ends]
        twin = next((e for e in sorted(gone) if e[1] == ends[1] and _kinds(gone[e]) == _kinds(edge)), None)
        at = _edge_place(edge, "head", blame)
        if twin is not None:
            del gone[twin]
            text = f"{edge.dependant} waits for {edge.provider} instead of {twin[0]}{_why(edge)}"
            yield OrderChange("edge", "retargeted", edge.dependant, text, at, edge.hard)
        else:
            text = f"{edge.dependant} now waits for {edge.provider}{_why(edge)}"
            yield OrderChange("edge", "added", edge.dependant, text, at, edge.hard)
    for ends in sorted(gone):
        edge = gone[ends]
        text = f"{edge.dependant} no longer waits for {edge.provider}{_why(edge)}"
        yield OrderChange("edge", "removed", edge.dependant, text, _edge_place(edge, "base", blame), edge.hard)
    for ends in sorted(old.keys() & new.keys()):
        before, after = old[ends], new[ends]
        if before == after:
            continue
        sides = [{(r.kind, r.text) for r in edge.reasons} for edge in (before, after)]
        lost = bool(sides[0] - sides[1]) and not sides[1] - sides[0]  # the reason that went says why
        at = _edge_place(before if lost else after, "base" if lost else "head", blame, stays=True)
        if before.until != after.until:
            text = f"{after.dependant} waits for {after.provider} until it is {_state(after)}; before: {_state(before)}"
            status = "weakened" if before.hard and not after.hard else "changed"
            yield OrderChange("edge", status, after.dependant, text, at, hard=True)
        elif [(r.kind, r.text) for r in before.reasons] != [(r.kind, r.text) for r in after.reasons]:
            text = f"{after.dependant} still waits for {after.provider}, for another reason{_why(after)}"
            yield OrderChange("edge", "reason", after.dependant, text, at, after.hard)


def _gates(base: Snapshot, head: Snapshot, blame: Blame) -> Iterable[OrderChange]:
    old_ids, new_ids = {r.id for r in base.releases} | _ids(base), {r.id for r in head.releases}
    for release in sorted({*base.gates, *head.gates}):
        before, after = base.gates.get(release), head.gates.get(release)
        if release not in old_ids or release not in new_ids:
            continue  # told with the release
        if before is None and after is not None:
            text = f"a new gate holds back {release}: {_checks(after)}"
            yield OrderChange("gate", "added", release, text, _gate_place(after, "head", blame))
        elif after is None and before is not None:
            text = f"the gate in front of {release} is gone: {_checks(before)}"
            yield OrderChange("gate", "removed", release, text, _gate_place(before, "base", blame))
        elif before is not None and after is not None:
            yield from _gate(release, before, after, blame)


def _gate(release: str, before: Gate, after: Gate, blame: Blame) -> Iterable[OrderChange]:
    old = {(c.provider, c.check.id): c for c in before.checks}
    new = {(c.provider, c.check.id): c for c in after.checks}
    subject = f"the gate in front of {release}"
    more = [new[key] for key in new if key not in old]
    less = [old[key] for key in old if key not in new]
    if more:
        text = f"{subject} also waits for: {'; '.join(_told(c) for c in more)}"
        yield OrderChange(
            "gate", "extended", release, text, _more_place(replace(after, checks=tuple(more)), "head", blame)
        )
    if less:
        text = f"{subject} no longer waits for: {'; '.join(_told(c) for c in less)}"
        at = _more_place(replace(before, checks=tuple(less)), "base", blame)
        yield OrderChange("gate", "weakened", release, text, at)
    deadlines: dict[tuple[str, int, int], list[GateCheck]] = {}
    for key in [k for k in new if k in old]:
        was, now = old[key], new[key]
        if not same(check_data(was.check), check_data(now.check)):
            text = f"gate of {release}: now waits for {describe(now.check)} instead of {describe(was.check)}"
            yield OrderChange("gate", "retargeted", release, text, _check_place(now, was, blame))
        if was.timeout != now.timeout:
            deadlines.setdefault((key[0], was.timeout, now.timeout), []).append(now)
        for word, a, b in (("onTimeout", was.on_timeout, now.on_timeout), ("scope", was.scope, now.scope)):
            if a != b:
                text = f"{subject}, `{key[1]}` of {key[0]}: {word} {a} -> {b}"
                status = "weakened" if b in {"warn", "install"} else "changed"
                yield OrderChange("gate", status, release, text, blame.limit(key[0], word, b, a))
    for (provider, was_seconds, seconds), items in deadlines.items():
        what = f"its check {items[0].check.id}" if len(items) == 1 else f"{len(items)} checks"
        text = (
            f"{subject} gives {provider} {format_duration(seconds)} to meet {what}; "
            f"before: {format_duration(was_seconds)}"
        )
        at = blame.limit(provider, "timeout", seconds, was_seconds)
        yield OrderChange("gate", "deadline", release, text, at)
    if before.after != after.after and old.keys() == new.keys():
        text = f"the gate in front of {release} watches {', '.join(after.after)}; before: {', '.join(before.after)}"
        yield OrderChange("gate", "retargeted", release, text, _gate_place(after, "head", blame))


def _sequence(base: Snapshot, head: Snapshot) -> Iterable[OrderChange]:
    """Releases that both sides have and that are deployed at another time relative to the others."""
    names = [r.id for r in head.releases]
    common = [r.id for r in base.releases if r.id in set(names)]
    now = [name for name in names if name in set(common)]
    stay = _longest_common(common, now)
    moved: list[list[str]] = []  # what follows the same one before and now moved with it
    for place, name in enumerate(now):
        if name in stay:
            continue
        was = common.index(name)
        if place and was and now[place - 1] == common[was - 1] and now[place - 1] not in stay:
            moved[-1].append(name)
        else:
            moved.append([name])
    for names in moved:
        place, was = now.index(names[0]), common.index(names[0])
        after = f"after {now[place - 1]}" if place else "first"
        before = f"after {common[was - 1]}" if was else "first"
        verb = "is" if len(names) == 1 else "are"
        text = f"{listed(names)} {verb} deployed {after}; before: {before}"
        yield OrderChange("order", "changed", names[0], text, None, hard=False)


def _longest_common(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """The largest set of names whose order is the same in two arrangements of the same names."""
    place = {name: number for number, name in enumerate(old)}
    chains: list[list[str]] = []
    best: list[str] = []
    for name in new:
        longest: list[str] = []
        for chain in chains:
            if place[chain[-1]] < place[name] and len(chain) > len(longest):
                longest = chain
        chains.append([*longest, name])
        best = chains[-1] if len(chains[-1]) > len(best) else best
    return set(best)


def _ids(snapshot: Snapshot) -> set[str]:
    """Release ids that edges and gates of a snapshot speak of (they may have been renamed)."""
    return {e.dependant for e in snapshot.edges} | {e.provider for e in snapshot.edges} | set(snapshot.gates)


def _by_ends(edges: Iterable[Edge]) -> Mapping[_Key, Edge]:
    return {(e.provider, e.dependant): e for e in edges}


def _kinds(edge: Edge) -> Any:
    return sorted({r.kind for r in edge.reasons})


def _label(edge: Edge) -> str:
    return "" if edge.until == "applied" and not edge.hard else "gate" if edge.hard else edge.until


def _state(edge: Edge) -> str:
    return {"applied": "applied", "api": "serving its API", "ready": "ready"}[edge.until]


def _why(edge: Edge) -> str:
    reasons = "; ".join(f"{r.kind}: {r.text}" for r in edge.reasons)
    until = "" if edge.until == "applied" else f"until it is {_state(edge)}"
    inside = ", ".join(part for part in (until, reasons) if part)
    return f" ({inside})" if inside else ""


def _checks(gate: Gate) -> str:
    return "; ".join(_told(c) for c in gate.checks)


def _told(item: GateCheck) -> str:
    words = [f"within {format_duration(item.timeout)}"]
    words += ["else a warning"] if item.on_timeout == "warn" else []
    words += ["first installation only"] if item.scope == "install" else []
    return f"{describe(replace(item.check))} ({', '.join(words)})"


def _edge_place(edge: Edge, side: SideName, blame: Blame, *, stays: bool = False) -> Place | None:
    if side == "base":
        # The provider may have left, and with it every edge to it.
        provider = next((r.component for r in blame.base.releases if r.id == edge.provider), None)
        if provider is not None and provider not in blame.head.components:
            return blame.component(provider, "base")
    snapshot = blame.head if side == "head" else blame.base
    ends = {r.id: r.component for r in snapshot.releases}
    names = [ends[name] for name in (edge.dependant, edge.provider) if name in ends]
    other = blame.base if side == "head" else blame.head
    twin = _by_ends(other.edges).get((edge.provider, edge.dependant))
    known = {(r.kind, r.text) for r in twin.reasons} if twin is not None else set()
    reasons = [r for r in edge.reasons if (r.kind, r.text) not in known] or edge.reasons
    # For the sake of an object whose manifest only one side has: where it is listed says why.
    rendered = {item.source for release in other.releases for item in release.objects}
    files = {r.origin.document.file for r in reasons if r.origin is not None}
    by_object = all(r.kind in {"api", "runtime-api"} for r in reasons) and not files <= rendered
    return blame.edge([r.origin for r in reasons], side, names, stays=stays, by_object=by_object)


def _check_place(now: GateCheck | None, was: GateCheck | None, blame: Blame) -> Place | None:
    item = now or was
    assert item is not None
    return blame.check(item.provider, now.check if now else None, was.check if was else None)


def _gate_place(gate: Gate, side: SideName, blame: Blame) -> Place | None:
    """The edge that brought the gate or took it along, else a check that was edited."""
    snapshot = blame.head if side == "head" else blame.base
    providers = {r.id for r in snapshot.releases if r.component in {c.provider for c in gate.checks}}
    edges = [e for e in snapshot.edges if e.dependant == gate.id and e.provider in providers]
    other = _by_ends((blame.base if side == "head" else blame.head).edges)
    places = (_edge_place(e, side, blame, stays=(e.provider, e.dependant) in other) for e in edges)
    found = next((p for p in places if p is not None), None)
    return found or _gate_check_place(gate, side, blame)


def _more_place(gate: Gate, side: SideName, blame: Blame) -> Place | None:
    """What made a gate ask for more, or for less: the list of checks, an edge, a check's condition, what is left."""
    place = blame.listing((c.provider, c.check.id) for c in gate.checks)
    if place is None and _other_edge(gate, side, blame):
        place = _gate_place(gate, side, blame)
    return place or _gate_check_place(gate, side, blame) or _gate_place(gate, side, blame)


def _other_edge(gate: Gate, side: SideName, blame: Blame) -> bool:
    """Whether an edge that brings the gate's checks came, went or waits otherwise."""
    here, there = (blame.head, blame.base) if side == "head" else (blame.base, blame.head)
    providers = {r.id for r in here.releases if r.component in {c.provider for c in gate.checks}}
    sides = ({(e.provider, e.dependant): e.until for e in s.edges if e.dependant == gate.id} for s in (here, there))
    old, new = ({ends: until for ends, until in side.items() if ends[0] in providers} for side in sides)
    return old != new


def _gate_check_place(gate: Gate, side: SideName, blame: Blame) -> Place | None:
    """A check of a gate that was edited, or the readiness that asks for it."""
    both = ((c, None) if side == "head" else (None, c) for c in gate.checks)
    return next((p for now, was in both if (p := _check_place(now, was, blame)) is not None), None)
