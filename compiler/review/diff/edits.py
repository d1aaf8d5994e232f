"""Which edits of the sources can have reached a bundle, where no difference names its line by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from compiler.model import Catalog
from compiler.review.diff.model import Place, SideName
from compiler.review.diff.origins import overlays
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.sources import Sources
from compiler.source import Document, Origin, Path

_NOT_OURS = ("bundles", "lint", "out")  # sections of bundlec.yaml that no bundle follows from


class Edits:
    """The edited lines that one bundle can follow from."""

    def __init__(self, base: Snapshot, head: Snapshot, sources: Sources) -> None:
        self.sources = sources
        self.sides: tuple[tuple[Snapshot, SideName], ...] = ((head, "head"), (base, "base"))
        for snapshot, side in self.sides:
            for document in _documents(snapshot, snapshot.catalog) if snapshot.catalog is not None else ():
                sources.know(document, side)

    def only(self, component: str | None = None, old_name: str | None = None) -> Place | None:
        """The one edit that can be behind a change: of a component, or of the bundle as a whole. None: there are more.

        Where a component has edits of its own, in its folder or in a ref, the others do not count.
        """
        names = {component, old_name} - {None}
        if names:
            own = [place for place, whose in self._all if whose in names]
            if own:
                return own[0] if len(own) == 1 else None
        wide = [place for place, whose in self._all if whose is None or not names]
        return wide[0] if len(wide) == 1 else None

    def chosen(self, origin: Origin) -> Place | None:
        """The edited line that takes an unedited node into the recipe, or that took it: of a mixin, a values file, a
        base, a profile or an input.
        """
        found = (self.sources.inside(at, side) for s, side in self.sides for at in _choices(s, origin))
        place = next((place for place in found if place is not None), None)
        if place is None and not all(origin.document.file in files for files in self._applied):
            keys = ("recipe", "criteria")
            places = (self.sources.inside(at.down(key), side) for at, side in self._entries() for key in keys)
            place = next((place for place in places if place is not None), None)
        return place

    def _entries(self) -> Iterator[tuple[Origin, SideName]]:
        """The bundle's entry on both sides."""
        for snapshot, side in self.sides:
            entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle) if snapshot.catalog is not None else None
            if entry is not None:
                yield entry.origin, side

    @cached_property
    def _applied(self) -> tuple[set[str], ...]:
        """The files of the overlays and mixins that apply, and all others but those, of each side."""
        found = []
        for snapshot, _ in self.sides:
            if snapshot.plan is None or snapshot.catalog is None:
                continue
            catalog, recipe = snapshot.catalog, snapshot.plan.recipe
            choosable = {overlay.origin.document.file for overlay in catalog.overlays.values()}
            choosable |= {mixin.origin.document.file for mixin in catalog.mixins.values()}
            applied = {o.origin.document.file for o in overlays(recipe, catalog)}
            applied |= {catalog.mixins[name].origin.document.file for name in recipe.mixins}
            found.append({*self.sources.base, *self.sources.head} - (choosable - applied))
        return tuple(found)

    def choice(self) -> Place | None:
        """The edited line that chooses another recipe, profile or input for the bundle."""
        keys = ("recipe", "criteria", "profile", "inputs", "disable")
        found = [(at.down(key), side) for at, side in self._entries() for key in keys]
        for snapshot, side in self.sides:
            if snapshot.plan is not None and snapshot.catalog is not None:
                profiles = (overlay.profile for overlay in overlays(snapshot.plan.recipe, snapshot.catalog))
                found += [(profile.origin.down("default"), side) for profile in profiles if profile is not None]
        places = (self.sources.inside(at, side) for at, side in found)
        return next((place for place in places if place is not None), None)

    @cached_property
    def _all(self) -> list[tuple[Place, str | None]]:
        """(first line, component) of each run of edited lines; the component when nothing else follows from it."""
        found: dict[Place, str | None] = {}
        for snapshot, side in self.sides:
            if snapshot.plan is None or snapshot.catalog is None:
                continue
            documents = {d.file: d for d in _documents(snapshot, snapshot.catalog)}
            for file, owner in self._files(snapshot, snapshot.catalog):
                for place in self.sources.edits(file):
                    document = documents.get(file)
                    if place.side != side and not (side == "head" and document is None):
                        continue
                    path = self.sources.path_of(document, place) if document is not None else ()
                    if document is snapshot.catalog.workspace.origin.document and not _ours(path, snapshot):
                        continue
                    found.setdefault(place, owner or _whose(document, path))
        return list(found.items())

    def _files(self, snapshot: Snapshot, catalog: Catalog) -> Iterator[tuple[str, str | None]]:
        assert snapshot.plan is not None
        recipe = snapshot.plan.recipe
        yield catalog.workspace.origin.document.file, None
        for overlay in overlays(recipe, catalog):
            yield overlay.origin.document.file, None
        for mixin in recipe.mixins:
            yield catalog.mixins[mixin].origin.document.file, None
        for item in recipe.enabled():
            folder = item.component.origin.document.file.rpartition("/")[0]
            used = {f"{folder}/{ref.file}" for refs in item.manifests.values() for ref in refs}
            for file in sorted({*self.sources.base, *self.sources.head}):
                if file.startswith(f"{folder}/") and ("/manifests/" not in file or file in used):
                    yield file, item.name


def _documents(snapshot: Snapshot, catalog: Catalog) -> Iterator[Document]:
    assert snapshot.plan is not None
    yield catalog.workspace.origin.document
    yield from (overlay.origin.document for overlay in overlays(snapshot.plan.recipe, catalog))
    yield from (catalog.mixins[name].origin.document for name in snapshot.plan.recipe.mixins)
    for item in snapshot.plan.recipe.enabled():
        values = (item.component.values, *item.component.values_files.values())
        yield from (item.component.origin.document, *(document for document in values if document is not None))


def _ours(path: Path, snapshot: Snapshot) -> bool:
    """Whether a node of bundlec.yaml is the bundle's: of its own entry, or of what holds for all."""
    assert snapshot.catalog is not None
    entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle)
    if entry is not None and path[: len(entry.origin.path)] == entry.origin.path:
        return True
    return path[:1] != ("spec",) or len(path) < 2 or path[1] not in _NOT_OURS


def _whose(document: Document | None, path: Path) -> str | None:
    """The component whose ref holds a node."""
    data: Any = document.data if document is not None else None
    before: str | int = ""
    for step in path:
        data = data[step]
        if before == "componentRefs":
            return str(data["name"]) if isinstance(data, dict) and "name" in data else None
        before = step
    return None


def _choices(snapshot: Snapshot, origin: Origin) -> Iterator[Origin]:
    """The nodes that take a file, or a part of it, into the recipe."""
    if snapshot.plan is None or snapshot.catalog is None:
        return
    file = origin.document.file
    stem = file.rsplit("/", 1)[-1].removesuffix(".yaml")
    entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle)
    part = origin.path[1] if len(origin.path) > 1 and origin.path[0] == "spec" else ""
    if entry is not None and part in {"profile", "inputs"}:
        yield entry.origin.down(str(part))
    for overlay in overlays(snapshot.plan.recipe, snapshot.catalog):
        if part == "profile" and overlay.profile is not None:
            yield overlay.profile.origin.down("default")
        if part == "inputs" and overlay.origin.document.file == file and len(origin.path) > 2:
            yield overlay.origin.down("spec", "inputs", origin.path[2], "default")
        if "/mixins/" in f"/{file}":
            yield from (where for name, where in overlay.mixins if name == stem)
        chosen = overlay.profile.values.values() if overlay.profile else ()
        for ref in (*overlay.refs, *(ref for value in chosen for ref in value.refs)):
            if ref.values_file and file.endswith(f"/{ref.values_file}"):
                yield ref.origin.down("valuesFile")
        if overlay.base == stem:
            yield overlay.origin.down("spec", "base")
