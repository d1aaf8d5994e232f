"""Which line of the sources caused a difference, from the traces and origins that both sides carry.

A cause is an edited line. Where the line that decides now was not edited, the cause is what it won over and went, or
what took it into the recipe; where neither is known, it is the only edit that can have reached the bundle, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compiler.model import Check, KubeObject, ResolvedComponent, TraceEntry
from compiler.paths import MISSING, lookup
from compiler.review.diff import exact, origins
from compiler.review.diff.edits import Edits
from compiler.review.diff.model import Entry, Place, SideName
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.sources import Sources
from compiler.review.diff.values import Change, same
from compiler.review.reads import reads
from compiler.source import Origin, Path

_MANY = 20  # edits of one file beyond which it is taken as rewritten
_Said = tuple[TraceEntry, SideName]


class Blame:
    """Answers for one bundle. Without compiled sides (two folders) every answer is None."""

    def __init__(self, base: Snapshot, head: Snapshot, sources: Sources) -> None:
        self.base = base
        self.head = head
        self.sources = sources
        self.edits = Edits(base, head, sources)
        self._read: dict[tuple[SideName, str], list[Path]] = {}

    def value(self, old: ResolvedComponent | None, new: ResolvedComponent | None, change: Change) -> Entry:
        """The change of a value with the line that decides it now, or that decided it and is gone."""
        before = _chain(old, change.old_at if change.old is not MISSING else change.new_at)
        after = _chain(new, change.new_at if change.new is not MISSING else change.old_at)
        said = list(_deciding(before, after, gone=change.new is MISSING and _inside_list(old, change.old_at)))
        if not said:
            return Entry(change, self._only(new or old, old))
        shown = said[0]
        if MISSING in (change.old, change.new) and (path := self._path(old, new, change)) is not None:
            return Entry(change, path, shown[0].layer)
        decider = self._place(shown, old, new, change)
        for entry, side in said:
            place = self._edited(entry, side, old, new, change)
            if place is not None:
                told = _nulled(new, change) if entry is shown[0] and shown[1] == "head" else ""
                return Entry(change, place, f"{entry.layer}: {told}" if told else entry.layer)
            place = self.edits.chosen(entry.origin)
            if place is not None:
                break
        cause = place or self._only(new or old, old)
        if cause is None:
            return Entry(change, decider, shown[0].layer)
        kept = decider is not None and shown[1] == "head" and decider != cause
        return Entry(change, cause, f"{shown[0].layer}, which brings in {decider}" if kept else shown[0].layer)

    def object(self, old: KubeObject | None, new: KubeObject | None) -> tuple[Place, ...]:
        """The lines of a manifest that changed, or the line that lists an unchanged manifest; empty: values did it.

        Of a file with several objects only the edits of this object's document, where it has any.
        """
        edits = tuple(p for i in (new, old) if i is not None for p in self.sources.edits(i.source))
        if old is None or new is None:
            item = new or old
            assert item is not None
            both = item.source in self.sources.base and item.source in self.sources.head
            listed = self._list(item, "base" if new is None else "head") if both or not edits else None
            if listed is not None or not edits:
                return (listed,) if listed is not None else ()
        if len(edits) > _MANY:
            return edits[:1]  # a file that was rewritten is one cause
        mine = [p for p in edits if self._inside(p, new if p.side == "head" else old)]
        return tuple(dict.fromkeys(mine or edits))

    def _list(self, item: KubeObject, side: SideName) -> Place | None:
        """The edited line that lists the manifest of an object, or that takes such a line in."""
        view = (self.base if side == "base" else self.head).components.get(item.component)
        if view is None or view.resolved is None:
            return None
        folder = view.resolved.component.origin.document.file.rpartition("/")[0]
        lists = [r for found in view.resolved.manifests.values() for r in found if f"{folder}/{r.file}" == item.source]
        return self._caused((ref.origin, side) for ref in lists)

    def read(self, old: KubeObject | None, new: KubeObject | None, values: Iterable[Entry]) -> tuple[Place, ...]:
        """The lines of the values, of all that changed, that the template of an object reads."""
        entries = list(values)
        places: dict[Place, None] = {}
        for item, side in ((new, "head"), (old, "base")):
            for path in self._reads(item, "head" if side == "head" else "base"):
                for entry in entries:
                    at = entry.change.new_at if side == "head" else entry.change.old_at
                    if entry.at is not None and path[:1] == ("values",) and _meet(path[1:], at):
                        places[entry.at] = None
        edited = [place for place in places if self.sources.edited_line(place)]
        if edited:
            return tuple(edited[:1] if len(edited) > _MANY else edited)
        item_ = new or old
        only = self.edits.only(item_.component) if item_ is not None else None
        return (only,) if only else ()

    def _reads(self, item: KubeObject | None, side: SideName) -> list[Path]:
        """What the template of an object looks at."""
        snapshot = self.head if side == "head" else self.base
        view = snapshot.components.get(item.component) if item is not None else None
        if item is None or view is None or view.resolved is None or snapshot.plan is None:
            return []
        if (side, item.source) not in self._read:
            sources = view.resolved.component.manifest_sources.values()
            source = next((s for s in sources if s.file == item.source), None)
            found = reads(snapshot.plan.recipe, view.resolved, source) if source is not None else []
            self._read[side, item.source] = found
        return self._read[side, item.source]

    def line_of(self, old: KubeObject | None, new: KubeObject | None, words: Iterable[str]) -> Place | None:
        """The edited line of a manifest that holds one of `words`, the first word that any line holds."""
        item = new or old
        side: SideName = "base" if new is None else "head"
        assert item is not None
        if not self.sources.edited(item.source):
            return None
        lines = [p for p in self.sources.lines(item.source, side) if self.sources.edited_line(p)]
        lines = [p for p in lines if self._inside(p, item)] or lines
        return next((p for word in words for p in lines if word in p.text and not p.text.startswith("#")), None)

    def component(self, name: str, side: SideName) -> Place | None:
        """The line that brings a component (head: now; base: brought it), or that switches it off or on again."""
        snapshot, other = (self.head, self.base) if side == "head" else (self.base, self.head)
        there: SideName = "base" if side == "head" else "head"
        switched = other.plan.recipe.components.get(name) if other.plan is not None else None
        found: list[tuple[Origin | None, SideName]] = []
        if switched is not None:
            found.append((switched.disabled_by, there))
        view = snapshot.components.get(name)
        brought = view.resolved.brought_by if view is not None and view.resolved is not None else None
        found.append((brought, side))
        place = self._first((at, where) for at, where in found if at is not None)
        if place is None:
            chosen = (self.edits.chosen(at) for at, _ in found if at is not None)
            place = next((p for p in chosen if p is not None), None)
        return place or self.edits.only() or (self.sources.place(brought, side) if brought is not None else None)

    def component_field(self, name: str, old_name: str, change: Change) -> Place | None:
        """The line behind a fact of a release: version, namespace, timeout, a gate's readiness."""
        new = origins.of_component_field(name, self.head, change)
        old = origins.of_component_field(old_name, self.base, change)
        here = exact.of_component_fact(name, self.head, change, head=True)
        there = exact.of_component_fact(old_name, self.base, change, head=False)
        place = self._first(_both(change, there, here)) or self._caused(_both(change, old, new))
        return place or self.edits.only(name, old_name) or self.edits.choice()

    def bundle_field(self, change: Change) -> Place | None:
        """The line behind a fact of the bundle: a setting, a constraint, an overlay's words."""
        new, old = (origins.of_bundle_field(side, change) for side in (self.head, self.base))
        follows = change.steps[0] != "settings"  # a setting is as it is written
        here, there = (exact.of_bundle_fact(side, change) for side in (self.head, self.base))
        place = self._first(_both(change, there, here)) or self._caused(_both(change, old, new), chosen=follows)
        if place is None and not follows:
            steps = tuple(str(step) for step in change.steps[1:])
            wider = (self._setting(*steps[:length]) for length in range(len(steps) - 1, 0, -1))
            place = next((p for p in wider if p is not None), None)
        return place or (self.edits.choice() if follows else None) or self.edits.only()

    def file(self, path: str) -> Place | None:
        """The line behind an example, whose manifest is of the component that offers it."""
        name = path.removeprefix("examples/")
        for snapshot in (self.head, self.base):
            for item in snapshot.plan.recipe.enabled() if snapshot.plan is not None else ():
                folder = item.component.origin.document.file.rpartition("/")[0]
                for ref in item.component.examples:
                    if ref.file.rsplit("/", 1)[-1].removesuffix(".j2") == name:
                        edits = self.sources.edits(f"{folder}/{ref.file}")
                        return edits[0] if edits else self._first([(ref.origin, "head")]) or self.edits.only(item.name)
        return None

    def edge(
        self,
        found: Iterable[Origin | None],
        side: SideName,
        names: Sequence[str],
        *,
        stays: bool = False,
        by_object: bool = False,
    ) -> Place | None:
        """The line behind an edge between two components: what declares it, else what switches gates, else which
        manifests they have, else their only edit. Where one has other releases than before, its manifests come first,
        unless the edge `stays` between the same two; and where the edge is there for an object (`by_object`).
        """
        split = [name for name in names if by_object or self._split(name)]
        declared = [(at, side) for at in found if at is not None]
        first = self._first(self._listed(split)) if by_object or not stays else None
        place = first or self._caused(declared) or self._setting("gates", "ready") or self._first(self._listed(names))
        only = (self.edits.only(name) for name in names)
        return place or next((p for p in only if p is not None), None) or self.edits.choice()

    def _listed(self, names: Iterable[str]) -> Iterator[tuple[Origin, SideName]]:
        """Where the manifests of components are listed."""
        return ((at, s) for n in names for s, snapshot in self._both_sides() for at in origins.of_pieces(n, snapshot))

    def _split(self, name: str) -> bool:
        """Whether a component that both sides have is made of other pieces than before."""
        old, new = ({r.piece for r in side.releases_of(name)} for side in (self.base, self.head))
        return bool(old and new) and old != new

    def check(self, provider: str, now: Check | None, was: Check | None) -> Place | None:
        """The line behind a check of a component: the one that lists it, where it came or went, else its own."""
        place = self._listed_check(provider, now, was) or self.check_itself(provider, now, was)
        return place or self.readiness(provider)

    def _listed_check(self, provider: str, now: Check | None, was: Check | None) -> Place | None:
        item = now or was
        if item is None or (now is not None and was is not None):
            return None
        return self._first(
            (at, s) for s, side in self._both_sides() for at in exact.of_listing(side, provider, item.id)
        )

    def listing(self, checks: Iterable[tuple[str, str]]) -> Place | None:
        """The edited line that takes one of several checks, (provider, id), into a readiness or that took it."""
        found = (
            (at, s)
            for name, key in checks
            for s, side in self._both_sides()
            for at in exact.of_listing(side, name, key)
        )
        return self._first(found)

    def check_itself(self, provider: str, now: Check | None, was: Check | None) -> Place | None:
        """The edited line of a check, or of what decides where it looks."""
        sides: tuple[tuple[Check | None, Snapshot, SideName], ...]
        sides = ((now, self.head, "head"), (was, self.base, "base"))
        return self._first((at, s) for c, snapshot, s in sides if c for at in origins.of_check(c, snapshot, provider))

    def limit(self, provider: str, key: str, now: int | str, was: int | str) -> Place | None:
        """The line behind `timeout` (in seconds), `onTimeout` or `scope` of what a gate waits for."""
        sides: tuple[tuple[Snapshot, SideName, int | str], ...] = ((self.head, "head", now), (self.base, "base", was))
        said = [(at, v == value, s) for shot, s, value in sides for v, at in exact.of_limit(shot, provider, key)]
        place = self._first((at, side) for at, fits, side in said if fits)
        if place is None and key == "timeout":
            place = self._setting("gates", "timeoutScale")
        return place or self._first((at, side) for at, _, side in said) or self.readiness(provider)

    def readiness(self, provider: str) -> Place | None:
        """The line behind what a component's readiness asks for."""
        found = ((at, s) for s, side in self._both_sides() for at in origins.of_readiness(side, provider))
        return self._first(found) or self._setting("gates", "timeoutScale") or self.edits.only(provider)

    def _setting(self, *steps: str) -> Place | None:
        return self._first((at, s) for s, side in self._both_sides() for at in origins.of_setting(side, steps))

    def _both_sides(self) -> tuple[tuple[SideName, Snapshot], ...]:
        return (("head", self.head), ("base", self.base))

    def _inside(self, place: Place, item: KubeObject | None) -> bool:
        """Whether a line is in the document of an object: from its `---` to the next."""
        if item is None or place.file != item.source:
            return False
        text = self.sources.document(place)
        if len(text) == self.sources.length(place):
            return True
        return any(f"kind: {item.kind}" in line for line in text) and any(_names(line, item.name) for line in text)

    def _first(self, found: Iterable[tuple[Origin | None, SideName]]) -> Place | None:
        """The first edited line inside any of several nodes."""
        places = (self.sources.inside(at, side) for at, side in found if at is not None)
        return next((place for place in places if place is not None), None)

    def _caused(self, found: Iterable[tuple[Origin, SideName]], *, chosen: bool = True) -> Place | None:
        """The first edited line inside any of several nodes, or the one that takes an unedited node in."""
        for at, side in found:
            place = self.sources.inside(at, side) or (self.edits.chosen(at) if chosen else None)
            if place is not None:
                return place
        return None

    def _path(self, old: ResolvedComponent | None, new: ResolvedComponent | None, change: Change) -> Place | None:
        """The edited line of a component that names a path to which settings are written, or named it."""
        sides: tuple[tuple[Snapshot, SideName, ResolvedComponent | None, Path], ...]
        sides = ((self.head, "head", new, change.new_at), (self.base, "base", old, change.old_at))
        return self._first((o, s) for shot, s, item, at in sides if item for o in exact.of_path(shot, item.name, at))

    def _only(self, item: ResolvedComponent | None, old: ResolvedComponent | None) -> Place | None:
        return self.edits.only(item.name if item else None, old.name if old else None)

    def _edited(
        self,
        said: TraceEntry,
        side: SideName,
        old: ResolvedComponent | None,
        new: ResolvedComponent | None,
        change: Change,
    ) -> Place | None:
        origin = _written(said.origin)
        component, at = (new, change.new_at) if side == "head" else (old, change.old_at)
        exact = origin.down(*_below(component, at))
        return self.sources.inside(exact, side) or (self.sources.inside(origin, side) if exact != origin else None)

    def _place(
        self, said: _Said, old: ResolvedComponent | None, new: ResolvedComponent | None, change: Change
    ) -> Place | None:
        entry, side = said
        component, at = (new, change.new_at) if side == "head" else (old, change.old_at)
        return self.sources.place(entry.origin.down(*_below(component, at)), side)


def _both(change: Change, old: Iterable[Origin], new: Iterable[Origin]) -> list[tuple[Origin, SideName]]:
    """What two sides offer, the side first that has the changed thing."""
    sides: list[list[tuple[Origin, SideName]]] = [[(at, "head") for at in new], [(at, "base") for at in old]]
    return [item for side in (sides[::-1] if change.new is MISSING else sides) for item in side]


def _deciding(before: tuple[TraceEntry, ...], after: tuple[TraceEntry, ...], *, gone: bool) -> Iterator[_Said]:
    """What was said on either side, what decides first; what both sides say alike comes last.

    `gone`: an item of a list went, which shows only where it was.
    """
    new: list[_Said] = [(e, "head") for e in reversed(after) if not _known(e, before)]
    old: list[_Said] = [(e, "base") for e in reversed(before) if not _known(e, after)]
    if gone and before:
        yield before[-1], "base"
    # A line on top of the chain that is new decides; else what was on top and went; else what is left on top.
    top = after and not _known(after[-1], before)
    yield from (*new, *old) if top else (*old, *new)
    yield from ((e, "head") for e in reversed(after) if _known(e, before))
    if not after:
        yield from ((e, "base") for e in reversed(before) if _known(e, after))


def _chain(component: ResolvedComponent | None, path: Path) -> tuple[TraceEntry, ...]:
    """What every layer did at a path, or at what holds it: a list, or a map that was put in its place or deleted."""
    if component is None:
        return ()
    for length in range(len(path), 0, -1):
        entries = component.trace.get(path[:length])
        if entries and length < len(path):
            entries = tuple(e for e in entries if not isinstance(e.value, Mapping))
        if entries:
            return entries
    return ()


def _written(origin: Origin) -> Origin:
    """The node of a source that a layer came from: a setting reaches value paths that it does not name."""
    while origin.path and not origins.holds(origin):
        origin = Origin(origin.document, origin.path[:-1])
    return origin


def _below(component: ResolvedComponent | None, at: Path) -> Path:
    """The steps from the node that the trace knows to a path."""
    entries = component.trace if component else {}
    return at[next((n for n in range(len(at), 0, -1) if at[:n] in entries), len(at)) :]


def _inside_list(component: ResolvedComponent | None, path: Path) -> bool:
    """Whether a path leads into a list, which layers set as a whole."""
    return component is not None and path not in component.trace


def _nulled(component: ResolvedComponent | None, change: Change) -> str:
    """What a null did to a value that is gone, and to the chart's own default; empty when no null took it."""
    if component is None or change.new not in (MISSING, None):
        return ""
    for length in range(1, len(change.old_at) + 1):
        at = change.old_at[:length]
        said = component.trace.get(at, ())
        if said and said[-1].action in {"deleted", "null"} and isinstance(lookup(component.values, at[:-1]), Mapping):
            written = lookup(component.chart_values, at) is None
            default = "the chart's default with it" if written else "the chart's own default may apply"
            return "deleted by null" + (f"; {default}" if component.component.chart else "")
    return ""


def _meet(left: Path, right: Path) -> bool:
    """Whether one of two paths is the other or lies below it."""
    shorter = min(len(left), len(right))
    return left[:shorter] == right[:shorter]


def _names(line: str, name: str) -> bool:
    """Whether a line of a manifest gives an object its name."""
    return re.search(rf"\bname: *[\"']?{re.escape(name)}(?![\w.-])", line) is not None


def _known(entry: TraceEntry, chain: Iterable[TraceEntry]) -> bool:
    """Whether the same layer said the same on the other side."""
    return any(e.layer == entry.layer and e.action == entry.action and same(e.value, entry.value) for e in chain)
