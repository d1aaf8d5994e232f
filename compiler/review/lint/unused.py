"""Source files that nothing uses: overlays, mixins, components, values files, manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from compiler.errors import Diagnostic
from compiler.model import Catalog, Component
from compiler.resolve import recipes
from compiler.review.lint.everything import Compiled, applied
from compiler.source import Origin, Span

_YAML = (".yaml", ".yml", ".yaml.j2", ".yml.j2")
_OWN = ("component.yaml", "checks.yaml")


def unused(catalog: Catalog, root: Path, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7001 for everything below `root` that no recipe can reach."""
    asked = {name for overlay in catalog.overlays.values() for name, _ in overlay.mixins}
    for name, mixin in catalog.mixins.items():
        if name not in asked:
            yield _finding(f"no overlay asks for the mixin `{name}`", mixin.origin, "remove it, or list it in `mixins`")
    reached = {o.name for recipe in recipes(catalog) for o in applied(catalog, recipe)}
    reached |= {name for item in compiled for name in item.plan.recipe.overlays}
    for name, overlay in catalog.overlays.items():
        if name not in reached:
            why = "its criteria match none" if overlay.match else "none builds on it, and it takes no part in matching"
            fix = "remove it, or give it the criteria of a recipe"
            yield _finding(f"no recipe is made of the overlay `{name}`: {why}", overlay.origin, fix)
    spoken = {ref.name for overlay in catalog.overlays.values() for ref in overlay.refs}
    spoken |= {ref.name for mixin in catalog.mixins.values() for ref in mixin.refs}
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
