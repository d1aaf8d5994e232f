"""Flux: `flux/remove.sh`. Flux ignores dependsOn when things are deleted, so the order of removal is a script's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.emit import flux_jobs, flux_nodes, shell
from compiler.emit.flux_site import KUSTOMIZE_API, SOURCE_API, Site
from compiler.model import Files, Release

SCRIPT = "flux/remove.sh"

_SMALL = 180  # seconds for a node that only waits: an attempt that is under way ends first


def emit(site: Site, gates: Mapping[str, Sequence[str]], nodes: Sequence[str]) -> Files:
    """The removal script. `gates`: release id -> its gate nodes, `nodes`: all nodes; names without the prefix."""
    stuck = ((r.id, list(_hints(r))) for r in site.plan.releases)
    script = shell.render(
        "flux-remove.sh",
        namespace=site.settings.namespace,
        steps=shell.script((f"{step} || return" for step in _steps(site, gates, nodes)), 2),
        stuck=shell.cases(stuck),
        done=f"the bundle {site.plan.bundle} is removed",
    )
    return {SCRIPT: script}


def _steps(site: Site, gates: Mapping[str, Sequence[str]], nodes: Sequence[str]) -> Iterator[str]:
    kustomizations = f"kustomizations.{KUSTOMIZE_API.partition('/')[0]}"
    # The root would bring back what is removed.
    yield shell.words(["suspend", kustomizations, site.name(flux_nodes.ROOT)])
    for release in reversed(site.plan.releases):
        teardown = "yes" if release.teardown_before else "no"
        seconds = 2 * (release.install.timeout + flux_nodes.MARGIN)
        keep = "yes" if release.keep else "no"
        yield shell.words(["remove_release", release.id, site.name(release.id), seconds, keep, teardown])
        for gate in gates.get(release.id, ()):
            yield shell.words(["remove_node", site.name(gate), _SMALL])
    for what in (flux_jobs.ACCESS, flux_nodes.NAMESPACES):
        if what in nodes:
            yield shell.words(["remove_node", site.name(what), _SMALL])
    yield shell.words(["remove_node", site.name(flux_nodes.ROOT), _SMALL])
    if not site.settings.source_existing:
        source = f"gitrepositories.{SOURCE_API.partition('/')[0]}"
        yield shell.words(["kube", "delete", source, site.source, "--ignore-not-found"])


def _hints(release: Release) -> Iterator[str]:
    for item in release.stuck:
        what = f"{item.kind}.{item.group}" if item.group else item.kind
        yield shell.words(["say", f"  {what} may wait for the finalizer {item.finalizer}; look, and free it by hand:"])
        for command in item.commands:
            yield shell.words(["say", f"    {command}"])
