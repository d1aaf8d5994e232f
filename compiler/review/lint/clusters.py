"""Bundles of which nobody can tell whether they meet on one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compiler.errors import Diagnostic
from compiler.model import Catalog
from compiler.resolve import has_place
from compiler.review.lint.everything import Compiled

_SHOWN = 4  # names of bundles


def unplaced(catalog: Catalog, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7009, a note, for the bundles that say of no cluster where they go and have a component with another in common.

    The cluster that Argo CD or Flux runs in has one name wherever that is, so that two such bundles may be for one
    cluster or for two. Of two services they are for two.
    """
    bundles = [item for item in compiled if item.bundle]
    silent = [item for item in bundles if not has_place(catalog, catalog.workspace.bundles[item.name])]
    found = [item for item in silent if any(_alike(item, other) for other in bundles if other is not item)]
    if found:
        names = [f"`{item.name}`" for item in found]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        one = len(names) == 1
        yield Diagnostic(
            "BC7009",
            f"{', '.join(names[:_SHOWN])}{more} {'does' if one else 'do'} not say for which cluster, "
            f"and {'another bundle brings' if one else 'bring'} the same components: "
            "two of them for one cluster would not be refused",
            catalog.workspace.origin.down("spec", "bundles").span(key=True),
            "give each entry `cluster: NAME`, or a destination of its own",
            "note",
        )


def _alike(one: Compiled, other: Compiled) -> bool:
    services = {str(item.plan.recipe.criteria["service"]) for item in (one, other) if _says(item.plan.recipe.criteria)}
    return len(services) < 2 and not _names(one).isdisjoint(_names(other))


def _says(criteria: Mapping[str, object]) -> bool:
    return criteria.get("service") not in (None, "", "any", "*")


def _names(item: Compiled) -> set[str]:
    return {component.name for component in item.plan.components}
