"""Flux: `flux/remove.sh`. Flux ignores dependsOn when things are deleted, so the order of removal is a script's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.emit import flux_jobs, flux_nodes, gatelib, shell
from compiler.emit.flux_site import SOURCE_API, Site
from compiler.model import Files, Release

SCRIPT = "flux/remove.sh"

_WORDS = 10  # release RELEASE COMPONENT NAMESPACE OBJECT SECONDS KEEP TEARDOWN || return
_SMALL = 180  # seconds for a node without a release; its attempts are short


def emit(site: Site, gates: Mapping[str, Sequence[str]], nodes: Sequence[str]) -> Files:
    """The removal script. `gates`: release id -> its gate nodes, `nodes`: all nodes; names without the prefix."""
    stuck = ((r.id, list(_hints(r))) for r in site.plan.releases)
    source = f"gitrepositories.{SOURCE_API.partition('/')[0]}"
    script = shell.render(
        "flux-remove.sh",
        title=shell.Script(site.plan.bundle),
        bundle=site.plan.bundle,
        names=" ".join(sorted({name for r in site.plan.releases for name in (r.id, r.component)})),
        namespace=site.settings.namespace,
        removals=shell.script((f"{step} || return" for step in _steps(site, gates, nodes)), 2),
        stuck=shell.cases(stuck),
        root=site.name(flux_nodes.ROOT),
        source=None if site.settings.source_existing else shell.Script(shell.words([source, site.source])),
    )
    return {SCRIPT: script}


def read_back(files: Files) -> tuple[tuple[str, ...], dict[str, frozenset[str]]]:
    """The releases in the order in which the script removes them, and what it waits for before each (see Wiring)."""
    lines = [
        line
        for line in shell.read_body(files.get(SCRIPT, b"").decode(), "removals")
        if line[0] == "release" and len(line) == _WORDS and line[-2:] == ["||", "return"]
    ]
    teardown = gatelib.read_teardown(files)
    waits = {line[1]: teardown.get(line[1], frozenset()) for line in lines if line[7] == "yes"}
    return tuple(line[1] for line in lines), waits


def _steps(site: Site, gates: Mapping[str, Sequence[str]], nodes: Sequence[str]) -> Iterator[str]:
    for release in reversed(site.plan.releases):
        keep, teardown = ("yes" if flag else "no" for flag in (release.keep, release.teardown_before))
        seconds = 2 * (release.install.timeout + flux_nodes.MARGIN)  # an attempt that is under way ends first
        where = [release.id, release.component, release.namespace, site.name(release.id)]
        yield shell.words(["release", *where, seconds, keep, teardown])
        for gate in gates.get(release.id, ()):
            yield shell.words(["gate", site.name(gate), _SMALL])
    for what in (flux_jobs.ACCESS, flux_nodes.NAMESPACES, flux_nodes.ROOT):
        if what in nodes or what == flux_nodes.ROOT:
            yield shell.words(["rest", site.name(what), _SMALL])


def _hints(release: Release) -> Iterator[str]:
    for item in release.stuck:
        what = f"{item.kind}.{item.group}" if item.group else item.kind
        yield shell.words(["say", f"  {what} may wait for the finalizer {item.finalizer}; look, and free it by hand:"])
        for command in item.commands:
            yield shell.words(["say", f"    {command}"])
