"""Loading a catalog: every source file below a workspace root, read, checked and linked."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from compiler.errors import Collector, Diagnostic, UserError
from compiler.load.cache import Cache
from compiler.load.component import build_component
from compiler.load.files import Reader, inside
from compiler.load.node import Node
from compiler.load.nulls import warn_of_empty_keys
from compiler.load.overlay import build_mixin, build_overlay
from compiler.load.parts import Parts
from compiler.load.references import (
    check_component_names,
    check_components_known,
    check_name_length,
    check_overlays,
    check_prefixes,
)
from compiler.load.schema import Schemas
from compiler.load.workspace import FILE, build_workspace
from compiler.model import Catalog, Component, ComponentRef, ManifestSource, Mixin, Overlay, Workspace
from compiler.source import Document, Origin, Span

T = TypeVar("T")

# What a cache entry depends on, beside the file and the schemas.
_CODE = ("yamlio/reader.py", "yamlio/scalars.py", "load/cache.py", "load/schema.py")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_TEMPLATE, _STATIC = (".yaml.j2", ".yml.j2"), (".yaml", ".yml")


def load(root: Path) -> Catalog:
    """Everything that the source files below `root` (the folder of bundlec.yaml) say.

    Raises `UserError` with every finding of every file (BC10xx, BC11xx, BC12xx, BC2013). Warnings travel in the
    catalog.
    """
    if not os.path.lexists(root / FILE):
        raise UserError(
            [Diagnostic("BC1210", f"there is no {FILE} here", Span(FILE), fix="run in the folder that holds it")]
        )
    return _Loader(root).catalog()


@dataclass
class _Found:
    """The names of one kind, each with the file that claims it, and what could be built."""

    places: dict[str, Origin] = field(default_factory=dict)

    def claim(self, name: str, at: Origin, what: str, found: Collector) -> bool:
        """Whether the name is new; BC1203 when another file has it."""
        if name in self.places:
            found.error(
                "BC1203",
                f"two {what}s are named `{name}`",
                at,
                fix="rename one",
                notes=((self.places[name], "the other one"),),
            )
            return False
        self.places[name] = at
        return True


class _Loader:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.found = Collector()
        self.schemas = Schemas()
        self.cache = Cache(root / ".bundlec" / "cache", _salt(self.schemas))
        self.reader = Reader(root, self.cache, self.found)
        self.parts = Parts(self.found)

    def catalog(self) -> Catalog:
        workspace, roots = self.workspace()
        overlay_names, mixin_names, component_names = _Found(), _Found(), _Found()
        overlays: dict[str, Overlay] = {}
        mixins: dict[str, Mixin] = {}
        components: dict[str, tuple[Component, Path]] = {}
        for root in roots:
            self.named_files(root / "overlays", "Overlay", overlay_names, overlays, build_overlay, deep=True)
            self.named_files(root / "mixins", "Mixin", mixin_names, mixins, build_mixin, deep=False)
            self.components(root / "components", component_names, components)
        refs = list(_refs(overlays, mixins))
        refs_of: dict[str, list[ComponentRef]] = {}
        for ref in refs:
            refs_of.setdefault(ref.name, []).append(ref)
        complete = {
            name: self.files(component, folder, refs_of.get(name, []))
            for name, (component, folder) in sorted(components.items())
        }
        check_component_names(complete, self.found)
        if workspace is not None:
            check_prefixes(workspace.bundles.values(), complete, self.found)
        check_overlays(overlays, overlay_names.places, mixin_names.places, self.found)
        check_components_known(complete.values(), refs, self.parts.predicates, component_names.places, self.found)
        for ref in refs:
            if ref.overrides_origin is not None:
                warn_of_empty_keys(ref.overrides_origin.document, ref.overrides_origin.path, self.found)
        self.cache.save()
        if self.found.failed or workspace is None:
            self.found.raise_if_failed()
            raise AssertionError("a workspace was refused without a finding")
        return Catalog(
            workspace,
            complete,
            dict(sorted(overlays.items())),
            dict(sorted(mixins.items())),
            warnings=self.found.warnings,
        )

    def workspace(self) -> tuple[Workspace | None, list[Path]]:
        """bundlec.yaml, and the folders that hold sources: the root and those that `data` names."""
        read = self.typed(self.root / FILE, "Workspace")
        roots = [self.root]
        if read is None:
            return None, roots
        node, _ = read
        for item in node.down("spec").items("data"):
            folder = self.root / item.data
            try:
                there = folder.is_dir()
            except (OSError, ValueError):  # a name that no folder can have
                there = False
            if there:
                roots.append(folder)
            else:
                fix = "name a folder with overlays/, mixins/ or components/, relative to bundlec.yaml"
                self.found.error("BC1206", f"there is no folder `{item.data}`", item.origin, fix=fix)
        workspace = build_workspace(node, self.parts)
        for bundle in workspace.bundles.values():
            if bundle.set:
                warn_of_empty_keys(node.document, (*bundle.origin.path, "set"), self.found)
        return workspace, roots

    def typed(self, path: Path, kind: str) -> tuple[Node, bool] | None:
        """A document of a kind, and whether something was cut out of it; None when nothing is left of it."""
        checked: list[Any] = []

        def valid(document: Document) -> bool:
            checked.append(self.schemas.check(document, kind, self.found))
            return checked[0] is document.data

        document = self.reader.document(path, check=valid)
        if document is None:
            return None
        data = checked[0] if checked else document.data
        return None if data is None else (Node(data, document), data is not document.data)

    def named_files(
        self,
        folder: Path,
        kind: str,
        names: _Found,
        built: dict[str, T],
        build: Callable[[str, Node, Parts], T],
        *,
        deep: bool,
    ) -> None:
        """Overlays or mixins: the file's stem is the name."""
        for path in self.reader.yaml_files(folder, deep=deep):
            name, file = path.stem, self.reader.named(path)
            if path.suffix != ".yaml":
                self.found.error("BC1201", f"{file} is not read", Span(file), fix=f"rename it to {name}.yaml")
                continue
            if not names.claim(name, Document(file, None).at(), kind.lower(), self.found):
                continue
            read = self.typed(path, kind)
            if read is None:
                continue
            node, _ = read
            self.same_name(node, name, f"{name}.yaml")
            check_name_length(name, node.origin, self.found)
            built[name] = build(name, node, self.parts)

    def same_name(self, node: Node, name: str, place: str) -> None:
        metadata = node.data.get("metadata") or {}
        stated = metadata.get("name")
        if stated is not None and stated != name:
            self.found.error(
                "BC1201",
                f"metadata.name is `{stated}`, but the name of the file or folder makes it `{name}`",
                node.down("metadata", "name").origin,
                fix=f"write `name: {name}`, or rename {place}" if _NAME.fullmatch(name) else f"rename {place}",
            )

    def components(self, folder: Path, names: _Found, built: dict[str, tuple[Component, Path]]) -> None:
        for path in self.reader.folders(folder):
            name, file = path.name, path / "component.yaml"
            if not os.path.lexists(file):
                if any(path.iterdir()):
                    shown = self.reader.named(path)
                    fix = "write its component.yaml, or remove the folder"
                    self.found.error("BC1201", f"{shown} holds no component.yaml", Span(shown), fix=fix)
                    names.places.setdefault(name, Document(shown, None).at())  # who names it is not wrong
                continue
            if not names.claim(name, Document(self.reader.named(file), None).at(), "component", self.found):
                continue
            read = self.typed(file, "Component")
            if read is None:
                continue
            node, partial = read
            checks: Node | None = None
            if os.path.lexists(path / "checks.yaml"):
                read = self.typed(path / "checks.yaml", "Checks")
                checks, lost = read if read is not None else (None, True)
                partial = partial or lost
            self.same_name(node, name, f"the folder {name}")
            if "namespace" in node.down("spec"):
                built[name] = build_component(name, node, checks, self.parts, partial=partial), path

    def files(self, component: Component, folder: Path, refs: list[ComponentRef]) -> Component:
        """The component together with the values files and manifests that it or a ref names."""
        spec = component.origin.document.data["spec"]
        named = spec.get("values") if isinstance(spec, dict) else None
        at = component.origin.down("spec", "values") if named else None
        values = self.values(folder, named or "values.yaml", at)
        others: dict[str, Document] = {}
        for ref in refs:
            if ref.values_file is not None and ref.values_file not in others:
                document = self.values(folder, ref.values_file, ref.origin.down("valuesFile"))
                if document is not None:
                    others[ref.values_file] = document
        manifests = [m for piece in component.manifests.values() for m in piece]
        manifests += component.examples
        for ref in refs:
            manifests += (*ref.pre_manifests, *ref.manifests)
        sources: dict[str, ManifestSource] = {}
        for manifest in manifests:
            if manifest.file not in sources:
                source = self.manifest(folder, manifest.file, manifest.origin)
                if source is not None:
                    sources[manifest.file] = source
        return replace(component, values=values, values_files=others, manifest_sources=sources)

    def path(self, folder: Path, name: str, at: Origin | None) -> Path | None:
        path = inside(folder, name)
        if path is None:
            fix = "move the file into the component's folder, and name it relative to that"
            where = at or Span(self.reader.named(folder / name), 1, 1)
            self.found.error("BC1206", f"`{name}` leads out of the component's folder", where, fix=fix)
        return path

    def values(self, folder: Path, name: str, at: Origin | None) -> Document | None:
        path = self.path(folder, name, at)
        if path is None or (at is None and not os.path.lexists(path)):
            return None
        document = self.reader.document(path, at)
        if document is None:
            return None
        if document.data is None:
            return Document(document.file, {}, document.marks, document.text)
        if not isinstance(document.data, dict):
            self.found.error("BC1102", "a values file holds a mapping", document.span())
            return None
        warn_of_empty_keys(document, (), self.found)
        return document

    def manifest(self, folder: Path, name: str, at: Origin) -> ManifestSource | None:
        path = self.path(folder, name, at)
        if path is None:
            return None
        if name.endswith(_TEMPLATE):
            read = self.reader.text(path, at)
            return None if read is None else ManifestSource(self.reader.named(path), read[0], None)
        if name.endswith(_STATIC):
            static = self.reader.documents(path, at)
            return None if static is None else ManifestSource(self.reader.named(path), *static)
        self.found.error("BC1102", f"`{name}` is no manifest: it must end in .yaml or .yaml.j2", at)
        return None


def _refs(overlays: Mapping[str, Overlay], mixins: Mapping[str, Mixin]) -> Iterator[ComponentRef]:
    """Every ref of the catalog: of overlays, their profiles and inputs, and of mixins."""
    for overlay in overlays.values():
        yield from overlay.refs
        if overlay.profile is not None:
            for value in overlay.profile.values.values():
                yield from value.refs
        for spec in overlay.inputs:
            for effects in spec.effects.values():
                yield from effects
    for mixin in mixins.values():
        yield from mixin.refs


def _salt(schemas: Schemas) -> str:
    state = hashlib.blake2b(schemas.digest.encode(), digest_size=16)
    package = Path(__file__).resolve().parents[1]
    for name in _CODE:
        state.update((package / name).read_bytes())
    return state.hexdigest()
