"""Which line of the sources caused a difference, from the traces and origins that both sides carry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from compiler.model import Catalog, ComponentRef, KubeObject, Overlay, Recipe, ResolvedComponent, TraceEntry
from compiler.paths import MISSING, lookup
from compiler.review.diff.model import Entry, Place, SideName
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.sources import Sources
from compiler.review.diff.values import Change, same
from compiler.source import Origin, Path

_MANY = 20  # edits of one file beyond which it is taken as rewritten


class Blame:
    """Answers for one bundle. Without compiled sides (two folders) every answer is None."""

    def __init__(self, base: Snapshot, head: Snapshot, sources: Sources) -> None:
        self.base = base
        self.head = head
        self.sources = sources

    def value(self, old: ResolvedComponent | None, new: ResolvedComponent | None, change: Change) -> Entry:
        """The change of a value with the line that decides it now, or that decided it and is gone."""
        before = _chain(old, change.old_at if change.old is not MISSING else change.new_at)
        after = _chain(new, change.new_at if change.new is not MISSING else change.old_at)
        if change.new is MISSING and before and _inside_list(old, change.old_at):
            return self._entry(change, before[-1], "base", old, change.old_at)  # the line that went
        if after and not _known(after[-1], before):
            entry = self._entry(change, after[-1], "head", new, change.new_at)
            return replace(entry, layer=f"{entry.layer}: {told}") if (told := _nulled(new, change)) else entry
        if before and not _known(before[-1], after):
            return self._entry(change, before[-1], "base", old, change.old_at)
        if after:
            return self._entry(change, after[-1], "head", new, change.new_at)
        return self._entry(change, before[-1], "base", old, change.old_at) if before else Entry(change)

    def object(self, old: KubeObject | None, new: KubeObject | None) -> tuple[Place, ...]:
        """The lines of a manifest that changed, or the line that lists an unchanged manifest; empty: values did it.

        Of a file with several objects only the edits of this object's document, where it has any.
        """
        edits = tuple(p for i in (new, old) if i is not None for p in self.sources.edits(i.source))
        if len(edits) > _MANY:
            return edits[:1]  # a file that was rewritten is one cause
        if edits:
            mine = [p for p in edits if self._inside(p, new if p.side == "head" else old)]
            return tuple(dict.fromkeys(mine or edits))
        if old is not None and new is not None:
            return ()
        side_name: SideName = "base" if new is None else "head"
        snapshot = self.base if new is None else self.head
        item = new or old
        assert item is not None
        component = snapshot.components.get(item.component)
        if component is None or component.resolved is None:
            return ()
        folder = component.resolved.component.origin.document.file.rpartition("/")[0]
        for refs in component.resolved.manifests.values():
            for ref in refs:
                if f"{folder}/{ref.file}" == item.source and self.sources.edited(ref.origin.document.file):
                    place = self.sources.place(ref.origin, side_name)
                    return (place,) if place else ()
        return ()

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

    def _inside(self, place: Place, item: KubeObject | None) -> bool:
        """Whether a line is in the document of an object: from its `---` to the next."""
        if item is None or place.file != item.source:
            return False
        text = self.sources.document(place)
        if len(text) == self.sources.length(place):
            return True
        return any(f"kind: {item.kind}" in line for line in text) and any(_names(line, item.name) for line in text)

    def component(self, name: str, side: SideName) -> Place | None:
        """The line that brings a component (head: now; base: brought it), or that switches it off on the head."""
        snapshot, other = (self.head, self.base) if side == "head" else (self.base, self.head)
        if side == "base" and self.head.plan is not None:
            left = self.head.plan.recipe.components.get(name)
            if left is not None and left.disabled_by is not None:
                return self.sources.place(left.disabled_by, "head")
        if side == "head" and other.plan is not None:
            was = other.plan.recipe.components.get(name)
            if was is not None and was.disabled_by is not None and self.sources.edited(was.disabled_by.document.file):
                return self.sources.place(was.disabled_by, "base")
        view = snapshot.components.get(name)
        if view is None or view.resolved is None:
            return None
        origin = view.resolved.brought_by
        return self._selected(origin, side) or self.sources.place(origin, side)

    def component_field(self, name: str, old_name: str, change: Change) -> Place | None:
        """The line behind a fact of a release: version, namespace, timeout, a gate's readiness."""
        for snapshot, side, who in self._sides(change, name, old_name):
            view = snapshot.components.get(who)
            if view is None or view.resolved is None or snapshot.plan is None:
                continue
            place = self.origins(self._fields(view.resolved, snapshot, change), side)
            if place is not None and self.sources.edited(place.file):
                return place
        return self._edit_of(name)

    def bundle_field(self, change: Change) -> Place | None:
        """The line behind a fact of the bundle: a setting, a constraint, an overlay's words."""
        for snapshot, side, _ in self._sides(change, "", ""):
            if snapshot.plan is None or snapshot.catalog is None:
                return None
            for origin in _bundle_origins(snapshot.plan.recipe, snapshot.catalog, snapshot.bundle, change):
                place = self.sources.place(origin, side)
                if place is not None and self.sources.edited(place.file):
                    unedited = not self.sources.edited_line(place) and origin.path[:2] == ("spec", "profile")
                    return (self._profile_choice() if unedited else None) or place
        if change.steps[0] in {"constraints", "preflight", "profileOwns"}:
            return self._profile_choice()
        return None

    def _profile_choice(self) -> Place | None:
        """The line of the bundle that chooses another value of the profile than before."""
        if self.base.facts.get("profile") == self.head.facts.get("profile") or self.head.catalog is None:
            return None
        entry = self.head.catalog.workspace.bundles.get(self.head.bundle)
        if entry and entry.profile:
            return self.sources.place(entry.origin.down("profile"), "head")
        overlays = _overlays(self.head.plan.recipe, self.head.catalog) if self.head.plan else []
        defaults = (
            self.sources.place(o.origin.down("spec", "profile", "default"), "head") for o in overlays if o.profile
        )
        return next((place for place in defaults if place is not None and self.sources.edited_line(place)), None)

    def origins(self, found: Iterable[Origin | None], side: SideName) -> Place | None:
        """The first of several origins whose line was edited, else whose file was, else the first of all."""
        places = [place for place in (self.sources.place(o, side) for o in found) if place is not None]
        lines = (p for p in places if self.sources.edited_line(p))
        return next(lines, next((p for p in places if self.sources.edited(p.file)), places[0] if places else None))

    def _entry(
        self, change: Change, found: TraceEntry, side: SideName, component: ResolvedComponent | None, at: Path
    ) -> Entry:
        origin = found.origin
        entries = component.trace if component else {}
        depth = next((n for n in range(len(at), 0, -1) if at[:n] in entries), len(at))
        place = self.sources.place(origin.down(*at[depth:]), side)
        if place is not None and not self.sources.edited_line(place) and origin.path[:2] == ("spec", "profile"):
            chosen = self._profile_choice()  # the line stood there before; what is new is that it applies
            if chosen is not None:
                return Entry(change, chosen, f"{found.layer}, which switches on {place}")
        if not self.sources.rewritten(origin.document.file):
            selected = self._selected(origin, side)
            if selected is not None:
                return Entry(change, selected, found.layer)
        return Entry(change, place, found.layer)

    def _selected(self, origin: Origin, side: SideName) -> Place | None:
        """The edited line that takes an unchanged file into the recipe: of a mixin, a values file, a profile."""
        snapshot = self.head if side == "head" else self.base
        if snapshot.plan is None or snapshot.catalog is None or self.sources.rewritten(origin.document.file):
            return None
        file = origin.document.file
        stem = file.rsplit("/", 1)[-1].removesuffix(".yaml")
        candidates: list[Origin] = []
        for overlay in _overlays(snapshot.plan.recipe, snapshot.catalog):
            candidates += [where for name, where in overlay.mixins if name == stem and "/mixins/" in f"/{file}"]
            refs = [
                *overlay.refs,
                *(r for v in (overlay.profile.values.values() if overlay.profile else ()) for r in v.refs),
            ]
            candidates += [
                ref.origin.down("valuesFile")
                for ref in refs
                if ref.values_file and file.endswith(f"/{ref.values_file}")
            ]
            candidates += [overlay.origin.down("spec", "base")] if overlay.base == stem else []
        entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle)
        if entry is not None:
            candidates += [entry.origin.down(key) for key in ("profile", "recipe", "inputs") if getattr(entry, key)]
        places = (self.sources.place(o, side) for o in candidates)
        return next((place for place in places if place is not None and self.sources.edited_line(place)), None)

    def _sides(self, change: Change, name: str, old_name: str) -> list[tuple[Snapshot, SideName, str]]:
        sides: list[tuple[Snapshot, SideName, str]] = [(self.head, "head", name), (self.base, "base", old_name)]
        return sides[::-1] if change.new is MISSING else sides

    def _fields(self, item: ResolvedComponent, snapshot: Snapshot, change: Change) -> Iterator[Origin | None]:
        """Nodes that may have caused a changed fact of a release, the most likely first."""
        yield self._field(item, snapshot, change)
        if change.steps[0] == "health" and change.steps[-1] == "namespace" and snapshot.plan and snapshot.catalog:
            # A check that names no namespace looks into the component's.
            yield _namespace(item, snapshot.plan.recipe, snapshot.catalog)

    def _field(self, item: ResolvedComponent, snapshot: Snapshot, change: Change) -> Origin | None:
        assert snapshot.plan is not None
        assert snapshot.catalog is not None
        own = item.component.origin
        refs = list(_refs(snapshot.plan.recipe, snapshot.catalog, item.name))
        match tuple(str(step) for step in change.steps[:2]):
            case ("chart", "version"):
                chart = item.component.chart
                if chart is not None and chart.version != item.version:
                    return next((r.origin.down("version") for r in refs if r.version == item.version), own)
                return own.down("spec", "chart", "version")
            case ("chart", key):
                return own.down("spec", "chart", key)
            case ("namespace", *_):
                return _namespace(item, snapshot.plan.recipe, snapshot.catalog)
            case ("install", key):
                return own.down("spec", "install", key)
            case ("teardownBefore" | "stuck", *_):
                return own.down("spec", "teardown")
            case ("crdsBefore" | "crdUpgrade" | "keep", *_):
                return own.down("spec", "crds")
            case ("health", check) if check in item.component.checks:
                return item.component.checks[check].origin
            case ("drift", *_):
                return own.down("spec", "drift")
        return None

    def _edit_of(self, name: str) -> Place | None:
        for snapshot in (self.head, self.base):
            view = snapshot.components.get(name)
            if view is not None and view.resolved is not None:
                file = view.resolved.component.origin.document.file
                if self.sources.edited(file):
                    return self.sources.first_edit(file)
        return None


def readiness_origins(snapshot: Snapshot, provider: str, seconds: int) -> Iterator[Origin]:
    """Where the deadline of a gate's check may come from: refs that override it, then the component."""
    view = snapshot.components.get(provider)
    if view is None or view.resolved is None or snapshot.plan is None or snapshot.catalog is None:
        return
    for ref in _refs(snapshot.plan.recipe, snapshot.catalog, provider):
        if ref.readiness.timeout == seconds:
            yield ref.origin.down("readiness", "timeout")
    component = view.resolved.component
    for readiness in (component.readiness_ready, component.readiness_api):
        if readiness is not None and readiness.timeout == seconds:
            yield readiness.origin.down("timeout")
    for readiness in (component.readiness_ready, component.readiness_api):
        if readiness is not None:
            yield readiness.origin


def _chain(component: ResolvedComponent | None, path: Path) -> tuple[TraceEntry, ...]:
    """What every layer did at a path, or at the list that holds it."""
    if component is None:
        return ()
    for length in range(len(path), 0, -1):
        entries = component.trace.get(path[:length])
        if entries:
            return entries
    return ()


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


def _names(line: str, name: str) -> bool:
    """Whether a line of a manifest gives an object its name."""
    return re.search(rf"\bname: *[\"']?{re.escape(name)}(?![\w.-])", line) is not None


def _known(entry: TraceEntry, chain: Iterable[TraceEntry]) -> bool:
    """Whether the same layer said the same on the other side."""
    return any(e.layer == entry.layer and e.action == entry.action and same(e.value, entry.value) for e in chain)


def _overlays(recipe: Recipe, catalog: Catalog) -> list[Overlay]:
    return [catalog.overlays[name] for name in reversed(recipe.overlays) if name in catalog.overlays]


def _refs(recipe: Recipe, catalog: Catalog, name: str) -> Iterator[ComponentRef]:
    """The refs of a component, the last one that applies first."""
    for mixin in reversed(recipe.mixins):
        yield from (ref for ref in catalog.mixins[mixin].refs if ref.name == name)
    for overlay in _overlays(recipe, catalog):
        yield from (ref for ref in overlay.refs if ref.name == name)


def _namespace(item: ResolvedComponent, recipe: Recipe, catalog: Catalog) -> Origin:
    """What names the namespace of a component: the ref that moves it, or the component itself."""
    moved = (r.origin.down("namespace") for r in _refs(recipe, catalog, item.name) if r.namespace == item.namespace)
    return next(moved, item.component.namespace.origin.down("name"))


def _bundle_origins(recipe: Recipe, catalog: Catalog, bundle: str, change: Change) -> Iterator[Origin]:
    """Nodes that may have caused a changed fact of a bundle, the most likely first; none for what only follows."""
    head = str(change.steps[0])
    rest = tuple(step for step in change.steps[1:] if isinstance(step, str))
    entry = catalog.workspace.bundles.get(bundle)
    holders = [*([entry.origin] if entry else []), catalog.workspace.origin.down("spec")]
    if head == "settings":
        exact = (holder.down(*rest) for holder in holders)
        yield from (origin for origin in exact if _holds(origin))
        yield from (origin for holder in holders if rest and _holds(origin := holder.down(rest[0])))
    elif head == "switchedOff":
        item = recipe.components.get(rest[0])
        yield from [item.disabled_by] if item is not None and item.disabled_by is not None else []
    elif head == "namespaces":
        for item in recipe.enabled():
            if item.namespace == rest[0]:
                label = item.component.namespace.origin.down("labels", *rest[1:2])
                yield label if len(rest) > 1 and _holds(label) else _namespace(item, recipe, catalog)
    elif head == "constraints":
        yield from (c.origin for c in recipe.constraints.values() if f"[name={c.name}]" in change.path)
    elif head in {"profile", "inputs", "recipe"} and entry is not None:
        yield from (origin for key in (head, "recipe") if _holds(origin := entry.origin.down(key)))
    for overlay in _overlays(recipe, catalog):
        origin = overlay.origin.down("spec", head)
        if head not in {"settings", "preflight"} and _holds(origin):
            items = overlay.origin.document.data["spec"][head]
            number = items.index(rest[0]) if isinstance(items, list) and rest and rest[0] in items else None
            yield origin if number is None else origin.down(number)


def _holds(origin: Origin) -> bool:
    data: Any = origin.document.data
    for step in origin.path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
