"""Stage 2, resolve: Catalog + bundle entry -> Recipe, components with final values and a trace of who set what."""

from __future__ import annotations

from compiler.errors import Collector, InternalError
from compiler.model import BundleEntry, Catalog, Flags, Overlay, Recipe
from compiler.resolve.criteria import is_recipe, unknown_recipe
from compiler.resolve.neighbours import beside, has_place
from compiler.resolve.recipe import compose

__all__ = ["beside", "entry_for", "has_place", "recipes", "resolve"]


def resolve(catalog: Catalog, entry: BundleEntry, flags: Flags) -> Recipe:
    """The recipe of a bundle entry, under the flags of the command line.

    Raises UserError with every finding (BC2xxx; BC4xxx for settings). Pure: the same input gives an equal recipe, and
    nothing of the catalog is changed.
    """
    collector = Collector()
    recipe = compose(catalog, entry, flags, collector)
    collector.raise_if_failed()
    if recipe is None:
        raise InternalError(f"bundle {entry.name} selects nothing, and no finding says why")
    return recipe


def entry_for(catalog: Catalog, name: str) -> BundleEntry:
    """The bundle of that name in bundlec.yaml, or else the entry `{name: RECIPE, recipe: RECIPE}`.

    Raises UserError BC2001 when it is neither a bundle nor a recipe.
    """
    entry = catalog.workspace.bundles.get(name)
    if entry is not None:
        return entry
    overlay = catalog.overlays.get(name)
    if overlay is None or not is_recipe(overlay):
        collector = Collector()
        unknown_recipe(catalog, name, collector)
        collector.raise_if_failed()
        raise InternalError(f"{name} is no recipe, and no finding says so")
    return BundleEntry(
        name=name,
        origin=overlay.origin,
        recipe=name,
        criteria={},
        prefix=None,
        profile={},
        inputs={},
        set={},
        disable=(),
        settings={},
    )


def recipes(catalog: Catalog) -> tuple[Overlay, ...]:
    """The overlays that can be asked for, sorted by name: those that take part in matching and are not abstract."""
    return tuple(overlay for _, overlay in sorted(catalog.overlays.items()) if is_recipe(overlay))
