"""Source files that nothing uses: mixins, components, values files, manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from compiler.errors import Diagnostic
from compiler.model import Catalog, Component
from compiler.review.explain.recipe import refs
from compiler.review.lint.everything import Compiled
from compiler.source import Origin, Span

_YAML = (".yaml", ".yml", ".yaml.j2", ".yml.j2")
_OWN = ("component.yaml", "checks.yaml")


def unused(catalog: Catalog, root: Path, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7001 for everything below `root` that no recipe can reach."""
    asked = {name for overlay in catalog.overlays.values() for name, _ in overlay.mixins}
    for name, mixin in catalog.mixins.items():
        if name not in asked:
            yield _finding(f"no overlay asks for the mixin `{name}`", mixin.origin, "remove it, or list it in `mixins`")
    spoken = {ref.name for overlay in catalog.overlays.values() for ref in overlay.refs}
    spoken |= {ref.name for mixin in catalog.mixins.values() for ref in mixin.refs}
    spoken |= {
        name for item in compiled for name, _ in ((ref.name, layer) for layer, ref in refs(catalog, item.plan.recipe))
    }
    for name, component in catalog.components.items():
        if name not in spoken:
            fix = "remove its folder, or list it in `componentRefs`"
            yield _finding(f"no overlay and no mixin brings the component `{name}`", component.origin, fix)
        else:
            yield from _files(component, root)


def _files(component: Component, root: Path) -> Iterator[Diagnostic]:
    folder = Path(component.origin.document.file).parent
    used = {source.file for source in component.manifest_sources.values()}
    used |= {document.file for document in (component.values, *component.values_files.values()) if document}
    used |= {(folder / name).as_posix() for name in _OWN}
    for path in sorted((root / folder).rglob("*")):
        file = (folder / path.relative_to(root / folder)).as_posix()
        if not path.is_file() or not file.endswith(_YAML) or file in used:
            continue
        if "/" in file.removeprefix(f"{folder.as_posix()}/"):
            what, fix = "lists this manifest", "list it in `manifests` or `manifestFiles`, or remove it"
        else:
            what, fix = "names this values file", "name it in `valuesFile`, or remove it"
        yield Diagnostic("BC7001", f"nothing {what} of `{component.name}`", Span(file), fix, "warning")


def _finding(message: str, origin: Origin, fix: str) -> Diagnostic:
    return Diagnostic("BC7001", message, origin.span(), fix, "warning")
