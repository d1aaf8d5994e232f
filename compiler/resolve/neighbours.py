"""Two bundles of one workspace may meet on one cluster: what they own must have different names (case 70).

Each Argo CD and Flux object is named `<prefix>-<what>`. Prefixes are unique, and still `a-b` + `c` is `a` + `b-c`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.errors import Collector
from compiler.model import BundleEntry, Catalog, Flags, Settings
from compiler.resolve.settings import Written

_OWN = ("root", "namespaces", "gates", "access")
_PIECES = ("", "-pre", "-post")


def check(
    catalog: Catalog, entry: BundleEntry, chosen: Settings, components: Iterable[str], collector: Collector
) -> None:
    """Record BC4001 for a name that this bundle and another one of the workspace would both give to their objects.

    `components` are those of this bundle; the other one may have any of the catalog.
    """
    mine = set(_names(components))
    for other in catalog.workspace.bundles.values():
        theirs = other.prefix or other.name
        if other.name == entry.name or theirs == chosen.prefix:  # equal prefixes are reported with the settings
            continue
        clash = _clash(chosen.prefix, mine, theirs, set(_names(catalog.components)))
        if clash is not None:
            collector.error(
                "BC4001",
                f"`{clash}` would be a name of this bundle (prefix `{chosen.prefix}`) and of bundle `{other.name}` "
                f"(prefix `{theirs}`)",
                entry.origin.down("prefix" if entry.prefix else "name"),
                fix="set another `prefix` on one of them",
                notes=[(other.origin, f"bundle `{other.name}`")],
            )
        if "flux" in chosen.deployers and not chosen.flux.source_existing:
            _check_source(catalog, entry, other, chosen, collector)


def _names(components: Iterable[str]) -> Iterator[str]:
    yield from _OWN
    for component in components:
        for piece in _PIECES:
            yield f"{component}{piece}"
            yield f"gate-{component}{piece}"
        yield f"teardown-{component}"


def _clash(prefix: str, mine: set[str], other: str, theirs: set[str]) -> str | None:
    # The longer prefix begins with the shorter one and a dash, or no two names can be equal.
    if other.startswith(f"{prefix}-"):
        rest = other[len(prefix) + 1 :]
        return min((f"{other}-{name}" for name in theirs if f"{rest}-{name}" in mine), default=None)
    if prefix.startswith(f"{other}-"):
        rest = prefix[len(other) + 1 :]
        return min((f"{prefix}-{name}" for name in mine if f"{rest}-{name}" in theirs), default=None)
    return None


def _check_source(
    catalog: Catalog, entry: BundleEntry, other: BundleEntry, chosen: Settings, collector: Collector
) -> None:
    # A source that two bundles make is removed together with one of them.
    written = Written(catalog, other, Flags())
    flux = written.section("flux")
    source = flux.get("source", {})
    theirs = source.get("name", other.prefix or other.name)
    same_place = flux.get("namespace", chosen.flux.namespace) == chosen.flux.namespace
    if source.get("existing", False) or not same_place or "flux" not in written.tree.get("deployers", ["flux"]):
        return
    if theirs == (chosen.flux.source_name or chosen.prefix):
        collector.error(
            "BC4001",
            f"this bundle and `{other.name}` would both make the Flux source `{theirs}`",
            entry.origin,
            fix="leave out `flux.source.name`, or set `flux.source.existing: true` and create the source yourself",
            notes=[(other.origin, f"bundle `{other.name}`")],
        )
