"""The answers in words, for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from compiler.paths import MISSING
from compiler.report import Style, plain
from compiler.review.explain.model import (
    CheckStory,
    ComponentStory,
    EdgeStory,
    GateStory,
    Hold,
    Leaf,
    ObjectStory,
    OrderStory,
    RecipeStory,
    Step,
    ValueStory,
)

_ROOM = 60  # characters of a value in a table


def recipe(story: RecipeStory, style: Style = plain) -> str:
    """The overlays, mixins, inputs, profile and components of a recipe."""
    criteria = " ".join(f"{key}={value}" for key, value in story.criteria.items())
    head = f"{story.bundle}: recipe {story.recipe}" if story.bundle != story.recipe else story.recipe
    lines = [style(head, "bold") + (f"  ({criteria})" if criteria else "")]
    sections = (
        ("overlays, in order of application", story.overlays),
        ("mixins, after all overlays", story.mixins),
        ("inputs", story.inputs),
        ("profile", (story.profile,) if story.profile else ()),
        ("the bundle's own settings, last", story.settings),
    )
    for title, steps in sections:
        if steps:
            lines += ["", style(title, "bold"), *_steps(steps)]
    on = [c for c in story.components if c.enabled]
    off = [c for c in story.components if not c.enabled]
    lines += ["", style(f"components ({len(on)})", "bold")]
    lines += [line for component in on for line in _component(component)]
    if off:
        lines += ["", style(f"switched off ({len(off)})", "bold")]
        lines += [line for component in off for line in _component(component)]
    return "\n".join(lines)


def component(story: ComponentStory, leaves: Iterable[Leaf], style: Style = plain) -> str:
    """One component with everything that is set of it."""
    lines = [style(story.name, "bold"), *list(_component(story))[1:]]
    rows = list(leaves)
    lines += ["", style(f"values ({len(rows)})", "bold"), *_leaves(rows)]
    return "\n".join(lines)


def value(story: ValueStory, style: Style = plain) -> str:
    """A value, its winner and the chain that it overrode."""
    name = f"{story.component}:{story.path}" if story.path else story.component
    if story.value is MISSING:
        head = f"{style(name, 'bold')} is not set"
    elif story.below:
        head = f"{style(name, 'bold')} is a map of {_counted(len(story.below), 'value')}"
    elif isinstance(story.value, list):
        head = f"{style(name, 'bold')} is a list of {_counted(len(story.value), 'item')}"
    else:
        head = f"{style(name, 'bold')} = {shown(story.value)}"
    lines = [head]
    if story.winner is not None:
        lines.append(f"  {_at(story.winner.at)}  {story.winner.layer}")
    if story.chain:
        lines += ["", "first to last, the last one wins"]
        lines += _table(
            [
                [link.layer, link.rule, "" if isinstance(link.value, dict) else shown(link.value, _ROOM), _at(link.at)]
                for link in story.chain
            ]
        )
    if story.items:
        lines += ["", "items"]
        lines += _table([[f"[{n}]", shown(i.value, _ROOM), i.layer, _at(i.at)] for n, i in enumerate(story.items)])
    if story.below:
        lines += ["", "values below", *_leaves(story.below)]
    lines += [f"note: {note}" for note in story.notes]
    return "\n".join(lines)


def objects(stories: Iterable[ObjectStory], style: Style = plain) -> str:
    """Who renders each object, and what its template read."""
    return "\n\n".join("\n".join(_object(story, style)) for story in stories)


def edges(stories: Iterable[EdgeStory], style: Style = plain) -> str:
    """Edges with their reasons, checks, and what each deployer does."""
    return "\n\n".join("\n".join(_edge(story, style)) for story in stories)


def gate(story: GateStory, style: Style = plain) -> str:
    """A gate: its checks, why they are there, and what each deployer does."""
    lines = [f"{style(f'gate {story.id}', 'bold')}: after {', '.join(story.after)}", "", "waits until"]
    lines += _checks(story.checks)
    lines += ["", "because"]
    for edge in story.edges:
        lines.append(f"  {edge.dependant} after {edge.provider} (until {edge.until})")
        lines += [f"    {cause.kind}: {cause.text}  {_at(cause.at)}".rstrip() for cause in edge.causes]
    return "\n".join([*lines, "", *_holds(story.holds)])


def order(story: OrderStory, style: Style = plain) -> str:
    """Why one comes before the other."""
    lines: list[str] = list(story.notes)
    if story.chain:
        steps = " -> ".join([story.chain[0].provider, *(edge.dependant for edge in story.chain)])
        lines.append(f"{style(f'{story.first} before {story.second}', 'bold')}: {steps}")
        for edge in story.chain:
            lines += ["", *_edge(edge, style)]
    return "\n".join(lines)


def shown(value: Any, room: int | None = None) -> str:
    """A value on one line, types visible; cut to `room` characters."""
    if value is MISSING:
        return "(nothing)"
    text = json.dumps(value, ensure_ascii=False, default=list)
    return text if room is None or len(text) <= room else f"{text[: room - 3]}..."


def _steps(steps: Iterable[Step]) -> list[str]:
    return _table([[step.layer, _at(step.at), step.what] for step in steps])


def _component(story: ComponentStory) -> Iterator[str]:
    yield f"  {story.name}" + (f" {story.version}" if story.version else "") + f", namespace {story.namespace}"
    rows = []
    if story.versioned is not None:
        rows.append(["version", story.versioned.layer, _at(story.versioned.at), story.versioned.what])
    for number, step in enumerate(story.steps):
        rows.append(["brought by" if number == 0 else "and", step.layer, _at(step.at), step.what])
    if story.disabled is not None:
        rows.append(["off", story.disabled.layer, _at(story.disabled.at), ""])
    yield from (f"  {line}" for line in _table(rows))


def _object(story: ObjectStory, style: Style) -> Iterator[str]:
    yield style(story.object, "bold") + ("" if story.rendered else "  (inside a chart)")
    yield f"  component  {story.component}"
    if story.release:
        yield f"  release    {story.release}"
    if story.source is not None:
        yield f"  file       {_at(story.at) or story.source}"
    elif story.at is not None:
        yield f"  declared   {story.at}"
    if story.listed is not None:
        yield f"  listed by  {story.listed.layer}  {_at(story.listed.at)}"
    if story.emitted is not None:
        yield f"  emitted    {story.emitted}"
    yield from (f"  note       {note}" for note in story.notes)
    if story.reads:
        yield f"  reads {_counted(len(story.reads), 'value')}"
        rows = [
            [
                read.path,
                "(not set)" if not read.set else "" if read.value is MISSING else shown(read.value, _ROOM),
                read.layer or "",
                _at(read.at),
            ]
            for read in story.reads
        ]
        yield from (f"  {line}" for line in _table(rows))


def _edge(story: EdgeStory, style: Style) -> Iterator[str]:
    until = "applied" if story.until == "applied" else f"until {story.until}"
    yield f"{style(f'{story.dependant} after {story.provider}', 'bold')} ({until})"
    yield from (f"  {cause.kind}: {cause.text}  {_at(cause.at)}".rstrip() for cause in story.causes)
    if story.checks:
        yield "  gate"
        yield from (f"  {line}" for line in _checks(story.checks))
    yield from (f"  {line}" for line in _holds(story.holds))


def _checks(checks: Iterable[CheckStory]) -> list[str]:
    return [
        f"  {check.text} ({check.provider}, within {check.timeout}"
        + (", else a warning" if check.on_timeout == "warn" else "")
        + (", first installation only" if check.scope == "install" else "")
        + f")  {_at(check.at)}".rstrip()
        for check in checks
    ]


def _holds(holds: Iterable[Hold]) -> list[str]:
    return _table([[hold.deployer, "hard" if hold.hard else "soft", hold.text] for hold in holds], indent="")


def _leaves(rows: Iterable[Leaf]) -> list[str]:
    return _table([[row.path, shown(row.value, _ROOM), row.layer, _at(row.at)] for row in rows])


def _table(rows: list[list[str]], indent: str = "  ") -> list[str]:
    """Rows with columns as wide as their widest cell, but the last; no line ends in blanks."""
    if not rows:
        return []
    width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [indent + "  ".join(c.ljust(w) for c, w in zip(row, width, strict=True)).rstrip() for row in rows]


def _at(at: object) -> str:
    return "" if at is None else str(at)


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
