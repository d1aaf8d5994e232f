"""Two bundles of one workspace may meet on one cluster: they may not own one object (case 70).

Prefixes, which most names begin with, are compared when the workspace is read. Here is what settings decide.
"""

from __future__ import annotations

from compiler.errors import Collector
from compiler.model import BundleEntry, Catalog, Flags, FluxSettings, Settings
from compiler.resolve.settings import Written


def check(catalog: Catalog, entry: BundleEntry, chosen: Settings, collector: Collector) -> None:
    """Record BC4001 for a Flux source that this bundle and another one would both make.

    It is removed together with one of them, and the other one stands still.
    """
    if "flux" not in chosen.deployers or chosen.flux.source_existing:
        return
    mine = (chosen.flux.namespace, chosen.flux.source_name or chosen.prefix)
    for other in catalog.workspace.bundles.values():
        if other.name == entry.name or (other.prefix or other.name) == chosen.prefix:
            continue  # an equal prefix is reported with the settings
        if _source_name(catalog, other) != mine[1]:
            continue
        written = Written(catalog, other, Flags())
        flux = written.section("flux")
        source = flux.get("source", {})
        same_place = flux.get("namespace", FluxSettings.namespace) == mine[0]
        if same_place and not source.get("existing", False) and "flux" in written.tree.get("deployers", ["flux"]):
            collector.error(
                "BC4001",
                f"this bundle and `{other.name}` would both make the Flux source `{mine[1]}`",
                entry.origin,
                fix="leave out `flux.source.name`, or set `flux.source.existing: true` and create the source yourself",
                notes=[(other.origin, f"bundle `{other.name}`")],
            )


def _source_name(catalog: Catalog, entry: BundleEntry) -> str:
    # Without merging all settings of every other bundle.
    name = entry.prefix or entry.name
    for settings in (catalog.workspace.settings, entry.settings):
        name = settings.get("flux", {}).get("source", {}).get("name", name)
    return name
