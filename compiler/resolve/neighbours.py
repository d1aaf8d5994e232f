"""Two bundles of one workspace may meet on one cluster: they may not own one object (case 70).

Prefixes, which most names begin with, are compared when the workspace is read. Here is what settings decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from compiler.errors import Collector
from compiler.model import ArgoSettings, BundleEntry, Catalog, Flags, FluxSettings, Settings
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


def beside(catalog: Catalog, entry: BundleEntry) -> tuple[tuple[BundleEntry, str], ...]:
    """The other bundles of the workspace that certainly go to the cluster of this one, and what says so.

    `cluster` of the entries decides where both have it. Otherwise an equal Argo CD destination does, or an equal
    `flux.kubeConfig`: names that one workspace gives to one cluster. The cluster that a controller runs in has no name.
    """
    if entry.name not in catalog.workspace.bundles:
        return ()
    mine = None
    found: list[tuple[BundleEntry, str]] = []
    for other in catalog.workspace.bundles.values():
        if other.name == entry.name:
            continue
        if entry.cluster is not None and other.cluster is not None:
            if entry.cluster == other.cluster:
                found.append((other, f"cluster: {entry.cluster}"))
            continue
        mine = _addresses(catalog, entry) if mine is None else mine
        same = mine & _addresses(catalog, other) if mine else None
        found += [(other, why) for why in islice(sorted(same or ()), 1)]
    return tuple(found)


def has_place(catalog: Catalog, entry: BundleEntry) -> bool:
    """Whether an entry says which cluster it is for, by `cluster` or by an address that no other cluster has."""
    return entry.cluster is not None or bool(_addresses(catalog, entry))


def _addresses(catalog: Catalog, entry: BundleEntry) -> set[str]:
    """What the settings of an entry call its cluster, as they write it."""
    return set(_called(catalog, entry))


def _called(catalog: Catalog, entry: BundleEntry) -> Iterator[str]:
    # Without merging all settings of every other bundle: most say nothing of the kind.
    if not any(
        "destination" in said.get("argocd", {}) or "kubeConfig" in said.get("flux", {})
        for said in (entry.settings, catalog.workspace.settings)
    ):
        return
    written = Written(catalog, entry, Flags()).tree
    deployers = written.get("deployers", ("argocd", "flux"))
    destination = written.get("argocd", {}).get("destination", {})
    if "argocd" in deployers and "name" in destination:
        yield f"argocd.destination.name: {destination['name']}"
    if "argocd" in deployers and destination.get("server", ArgoSettings.server) != ArgoSettings.server:
        yield f"argocd.destination.server: {destination['server']}"
    flux = written.get("flux", {})
    if "flux" in deployers and "kubeConfig" in flux:
        yield f"flux.kubeConfig: {flux['kubeConfig']} in {flux.get('namespace', FluxSettings.namespace)}"


def _source_name(catalog: Catalog, entry: BundleEntry) -> str:
    # Without merging all settings of every other bundle.
    name = entry.prefix or entry.name
    for settings in (catalog.workspace.settings, entry.settings):
        name = settings.get("flux", {}).get("source", {}).get("name", name)
    return name
