"""Two snapshots of one bundle -> everything that differs between them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compiler.emit.payload import as_emitted
from compiler.model import Files, KubeObject
from compiler.paths import MISSING
from compiler.review.diff import risks
from compiler.review.diff.blame import Blame
from compiler.review.diff.files import file_changes, wiring_objects
from compiler.review.diff.health import health_changes
from compiler.review.diff.model import BundleDiff, ComponentDiff, Entry, ObjectChange, Place, Risk, Status
from compiler.review.diff.objects import Pair, difference, pairs
from compiler.review.diff.order import links, order_changes
from compiler.review.diff.snapshot import ComponentView, ReleaseView, Snapshot, renamed
from compiler.review.diff.sources import Sources
from compiler.review.diff.values import Change, changes, same
from compiler.review.diff.words import count, size_of
from compiler.versions import parse_version


def compare(base: Snapshot, head: Snapshot, sources: Sources) -> BundleDiff:
    """What differs between a bundle on the base's side and on the head's. `status` is `same` when no file does."""
    name, old_name = head.bundle, base.bundle if base.bundle != head.bundle else None
    prefixes = (str(base.facts["settings"]["prefix"]), str(head.facts["settings"]["prefix"]))
    files = file_changes(base.files, head.files, (base.bundle, head.bundle), prefixes)
    if not files:
        return BundleDiff(name, "same", recipe=head.recipe)
    blame = Blame(base, head, sources)
    names = _component_names(base, head)
    shifted = renamed(base, dict(_release_names(base, head, names)), {a: b for a, b in names if a and b and a != b})
    order = (*order_changes(shifted, head, blame), *health_changes(base, head, names, blame))
    found: list[Risk] = []
    components: list[ComponentDiff] = []
    everything = _object_pairs(base, head, names)
    for old, new in names:
        mine = [pair for pair in everything if _owner(pair) in (("new", new), ("old", old))]
        diff, dangers = _component(old, new, base, head, mine, blame)
        found += dangers
        if diff is not None:
            components.append(diff)
    fields = tuple(Entry(c, blame.bundle_field(c)) for c in _bundle_changes(base, head))
    found += risks.of_bundle(base, head, fields, order)
    found += risks.of_renamed(base, head)
    wiring = wiring_objects(_prefixed(base, head), head.files, files)
    found += risks.of_objects(wiring, "", blame, with_component=True)
    return BundleDiff(
        name=name,
        status="renamed" if old_name else "changed",
        old_name=old_name,
        recipe=head.recipe,
        risks=risks.ordered(found),
        components=tuple(components),
        fields=fields,
        order=order,
        links=links(shifted, head),
        files=tuple(replace(f, at=blame.file(f.path)) if f.path.startswith("examples/") else f for f in files),
        charts=sum(1 for old, new in names if old and new and _chart(base, old) != _chart(head, new)),
    )


def _prefixed(base: Snapshot, head: Snapshot) -> Files:
    """The files of the base with names as the head's prefix makes them: a renamed object is no new right."""
    old, new = (str(s.facts["settings"]["prefix"]) for s in (base, head))
    if old == new:
        return base.files
    names = re.compile(rb"(?<![\w-])" + re.escape(old.encode()) + rb"(?=-)")
    return {path: names.sub(lambda _: new.encode(), content) for path, content in base.files.items()}


def whole(snapshot: Snapshot, *, added: bool) -> BundleDiff:
    """A bundle that only one side has."""
    size = f"{count(len(snapshot.components), 'component')}, {count(len(snapshot.releases), 'release')}"
    found = []
    if not added:
        text = f"bundle {snapshot.bundle} is removed; clusters that were deployed from it keep running, unmanaged"
        found.append(Risk("bundle-removed", "high", "", text, (("", "undeploy first, or hand over what runs there"),)))
    status: Status = "added" if added else "removed"
    return BundleDiff(snapshot.bundle, status, recipe=snapshot.recipe, risks=tuple(found), size=size)


def likeness(base: Snapshot, head: Snapshot) -> float:
    """0 to 1: how much of two bundles is the same, by releases and their content; to recognise a renamed one."""
    left, right = ({(r.id, _content(s, r)) for r in s.releases} for s in (base, head))
    return len(left & right) / max(len(left | right), 1)


def _content(snapshot: Snapshot, release: ReleaseView) -> str:
    view = snapshot.components[release.component]
    return f"{release.chart} {release.namespace} {sorted(view.chart_values)} {len(release.objects)}"


def _component_names(base: Snapshot, head: Snapshot) -> list[tuple[str | None, str | None]]:
    """(name on the base, name on the head) of every component, a renamed one as one; in order of deployment."""
    gone = [name for name in base.components if name not in head.components]
    come = [name for name in head.components if name not in base.components]
    twins: dict[str, str] = {}
    for new in come:
        alike = [old for old in gone if old not in twins.values() and _alike(base, old, head, new)]
        if len(alike) == 1:
            twins[new] = alike[0]
    order = list(dict.fromkeys(r.component for r in head.releases))
    found: list[tuple[str | None, str | None]] = [
        (name if name in base.components else twins.get(name), name) for name in order
    ]
    return found + [(name, None) for name in gone if name not in twins.values()]


def _alike(base: Snapshot, old: str, head: Snapshot, new: str) -> bool:
    """Whether two components of different names are one that was renamed: the same chart, or much the same objects."""
    before, after = base.components[old], head.components[new]
    if before.chart is not None or after.chart is not None:
        return before.chart == after.chart
    left, right = (
        {(o.group, o.kind, o.name) for r in s.releases_of(name) for o in r.objects}
        for s, name in ((base, old), (head, new))
    )
    if len(left & right) * 2 >= len(left | right) > 0:
        return True
    kinds = [sorted((group, kind) for group, kind, _ in side) for side in (left, right)]
    return kinds[0] == kinds[1] != [] and same(before.values, after.values)


def _release_names(
    base: Snapshot, head: Snapshot, names: Iterable[tuple[str | None, str | None]]
) -> Iterator[tuple[str, str]]:
    for old, new in names:
        if old and new and old != new:
            pieces = {r.piece: r.id for r in head.releases_of(new)}
            yield from ((r.id, pieces[r.piece]) for r in base.releases_of(old) if r.piece in pieces)


def _object_pairs(base: Snapshot, head: Snapshot, names: Iterable[tuple[str | None, str | None]]) -> tuple[Pair, ...]:
    """Objects matched within a component first, so that one that moves with it is one change."""
    found: list[Pair] = []
    rest: tuple[list[KubeObject], list[KubeObject]] = ([], [])
    for old, new in names:
        sides = [
            [replace(o, data=as_emitted(o)) for r in s.releases_of(name) for o in r.objects] if name else []
            for s, name in ((base, old), (head, new))
        ]
        for pair in pairs(*sides):
            if pair.old and pair.new:
                found.append(pair)
            else:
                rest[0].extend([pair.old] if pair.old else [])
                rest[1].extend([pair.new] if pair.new else [])
    # What is left may have gone from one component to another; only the same identity counts there.
    before = {o.identity: o for o in rest[0]}
    for item in rest[1]:
        old_item = before.pop(item.identity, None)
        found.append(Pair(old_item, item, "changed" if old_item else "added"))
    found += [Pair(item, None, "removed") for item in before.values()]
    return tuple(found)


def _owner(pair: Pair) -> tuple[str, str]:
    """The side and the component that tells of an object."""
    if pair.new is not None:
        return "new", pair.new.component
    assert pair.old is not None
    return "old", pair.old.component


def _component(
    old: str | None, new: str | None, base: Snapshot, head: Snapshot, mine: Sequence[Pair], blame: Blame
) -> tuple[ComponentDiff | None, list[Risk]]:
    before = base.components.get(old) if old else None
    after = head.components.get(new) if new else None
    changed = [c for c in (_object(pair, base, head, blame) for pair in mine) if c is not None]
    noise: dict[str, int] = {}
    for change in changed:
        for path in change.noise:
            noise[path] = noise.get(path, 0) + 1
    objects = tuple(c for c in changed if c.hunk or c.status != "changed")
    if before is None or after is None:
        return _one_sided(before, after, base, head, objects, mine, blame)
    values = tuple(blame.value(before.resolved, after.resolved, c) for c in _value_changes(before, after))
    fields = tuple(
        Entry(c, blame.component_field(after.name, before.name, c))
        for c in changes(_facts(base, before.name), _facts(head, after.name))
    )
    follows = next((entry.at for entry in fields if entry.change.path == "namespace"), None)
    objects = tuple(_by_values(item, mine, values, follows, blame) for item in objects)
    if not (values or fields or changed or before.name != after.name):
        return None, []
    dangers = [
        *risks.of_component(before, after, base, head, fields, blame),
        *risks.of_values(after.resolved, before.resolved, values, head, after.name),
        *risks.of_objects(mine, after.name, blame, with_component=before.namespace != after.namespace),
    ]
    diff = ComponentDiff(
        name=after.name,
        status="renamed" if before.name != after.name else "changed",
        old_name=before.name if before.name != after.name else None,
        old_version=before.version,
        new_version=after.version,
        values=values,
        fields=fields,
        objects=objects,
        notes=_notes(before, after),
        noise=dict(sorted(noise.items())),
        at=blame.component(after.name, "head") if before.name != after.name else None,
    )
    return diff, dangers


def _one_sided(
    before: ComponentView | None,
    after: ComponentView | None,
    base: Snapshot,
    head: Snapshot,
    objects: tuple[ObjectChange, ...],
    mine: Sequence[Pair],
    blame: Blame,
) -> tuple[ComponentDiff, list[Risk]]:
    view, snapshot = (after, head) if after is not None else (before, base)
    assert view is not None
    dangers: list[Risk] = []
    if after is None:
        dangers += risks.of_removed(view.name, base, head, blame)
    else:
        dangers += risks.of_values(after.resolved, None, (), head, after.name)
    dangers += risks.of_objects([p for p in mine if p.new is not None], view.name, blame)
    diff = ComponentDiff(
        name=view.name,
        status="removed" if after is None else "added",
        old_version=before.version if before else None,
        new_version=after.version if after else None,
        objects=objects,
        size=_size(view, snapshot),
        at=blame.component(view.name, "base" if after is None else "head"),
    )
    return diff, dangers


def _object(pair: Pair, base: Snapshot, head: Snapshot, blame: Blame) -> ObjectChange | None:
    found = difference(pair, (base.bundle, head.bundle))
    if found is None:
        return None
    if pair.old and pair.new and pair.old.component != pair.new.component and pair.status == "changed":
        found = replace(found, status="moved", was=f"component {pair.old.component}")
    at, *more = blame.object(pair.old, pair.new) or (None,)
    return replace(found, at=at, more=tuple(more))


def _by_values(
    item: ObjectChange, mine: Sequence[Pair], values: Sequence[Entry], follows: Place | None, blame: Blame
) -> ObjectChange:
    """An object whose manifest nobody edited, with the lines of the values that its template reads.

    `follows` is the line that moved the component, and the object with it.
    """
    if item.at is not None:
        return item
    if follows is not None and item.status == "moved":
        return replace(item, at=follows)
    pair = next((p for p in mine if (p.new or p.old) and _same_object(p.new or p.old, item)), None)
    at, *more = (blame.read(pair.old, pair.new, values) if pair is not None else ()) or (None,)
    return replace(item, at=at, more=tuple(more))


def _same_object(found: KubeObject | None, item: ObjectChange) -> bool:
    return found is not None and found.identity == (item.group, item.kind, item.namespace, item.name)


def _value_changes(before: ComponentView, after: ComponentView) -> tuple[Change, ...]:
    """Changes of what the chart gets, and of what only templates see."""
    found = {c.path: c for c in changes(before.values, after.values)}
    for change in changes(before.chart_values, after.chart_values):
        if change.old is None or change.new is None or change.path not in found:
            found[change.path] = change
    return tuple(found.values())


def _facts(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """The facts of a component's releases: those of its chart, and of other pieces what differs from them."""
    releases = snapshot.releases_of(name)
    main = next((r for r in releases if r.piece == "main"), releases[0] if releases else None)
    if main is None:
        return {}
    facts = dict(main.facts)
    for release in releases:
        if release is not main:
            own = {k: v for k, v in release.facts.items() if facts.get(k, MISSING) != v and k != "namespace"}
            facts[release.piece] = own or True
    health = snapshot.facts.get("health", {}).get(name)
    return {**facts, "health": health} if health else facts


def _bundle_changes(base: Snapshot, head: Snapshot) -> Iterator[Change]:
    left, right = (
        {
            **{key: value for key, value in s.facts.items() if key != "health"},
            "namespaces": {name: dict(labels) for name, labels in s.namespaces.items()},
            "switchedOff": dict(s.disabled),
        }
        for s in (base, head)
    )
    for change in changes(left, right):
        # A folder that ends in the bundle's name follows from that name.
        derived = change.path == "settings.git.path" and base.bundle != head.bundle
        follows = derived and str(change.old).removesuffix(base.bundle) == str(change.new).removesuffix(head.bundle)
        if not follows:
            yield change


def _notes(before: ComponentView, after: ComponentView) -> tuple[str, ...]:
    """What the component says about an upgrade between the two versions."""
    if before.version == after.version or after.resolved is None:
        return ()
    old, new = parse_version(before.version or ""), parse_version(after.version or "")
    if old is None or new is None or new < old:
        return ()
    component = after.resolved.component
    told = risks.skipped(before, after)  # then the risk tells it
    notes = [f"before the upgrade: {text}" for text in component.upgrade_before if not told]
    for to, text in component.upgrade_notes:
        at = parse_version(to)
        if at is not None and old < at <= new:
            notes.append(f"upgrade to {to}: {text}")
    return tuple(notes)


def _size(view: ComponentView, snapshot: Snapshot) -> str:
    releases = snapshot.releases_of(view.name)
    chart = f"chart {view.chart[0]} {view.chart[1]} {view.version}, " if view.chart else ""
    objects = sum(len(r.objects) for r in releases)
    ids = {r.id for r in releases}
    waits = sorted({e.provider for e in snapshot.edges if e.dependant in ids} - ids)
    parts = [f"namespace {view.namespace}", count(len(releases), "release"), count(size_of(view.chart_values), "value")]
    parts += [count(objects, "object")] if objects else []
    parts += [f"after {', '.join(waits)}"] if waits else []
    return chart + ", ".join(parts)


def _chart(snapshot: Snapshot, name: str) -> Any:
    view = snapshot.components[name]
    return (view.chart, view.version) if view.chart else None
