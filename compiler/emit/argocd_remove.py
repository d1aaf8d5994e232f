"""Argo CD: `argocd/remove.sh`. Waves order a removal, but nothing in Argo CD waits for its conditions."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.emit import argocd_apps, gatelib, shell
from compiler.emit.argocd_site import Site
from compiler.model import ComponentPlan, Files, Release

SCRIPT = "argocd/remove.sh"

_WORDS = 7  # component COMPONENT APPLICATION SECONDS KEEP [RELEASE...] || return
_MARGIN = 300  # seconds over those that the installation may take
_SMALL = 300  # for an Application of Applications or of namespaces


def script(site: Site, *, namespaces: bool) -> bytes:
    """The removal script; `namespaces`: there is an Application for them."""
    root = site.name(argocd_apps.ROOT)
    return shell.render(
        "argocd-remove.sh",
        title=shell.Script(site.plan.bundle),
        bundle=site.plan.bundle,
        names=" ".join(sorted(c.name for c in site.plan.components)),
        namespace=site.settings.namespace,
        removals=shell.script((f"{step} || return" for step in _steps(site, root, namespaces=namespaces)), 2),
        stuck=shell.cases((c.name, list(_hints(site, c))) for c in site.plan.components),
        root=root,
    )


def read_back(files: Files) -> list[tuple[str, dict[str, frozenset[str]]]]:
    """The Applications in the order in which the script removes them, and what it waits for: release -> tokens."""
    teardown = gatelib.read_teardown(files)
    return [
        (line[2], {release: teardown.get(release, frozenset()) for release in line[5:-2]})
        for line in shell.read_body(files.get(SCRIPT, b"").decode(), "removals")
        if line[0] == "component" and len(line) >= _WORDS and line[-2:] == ["||", "return"]
    ]


def _steps(site: Site, root: str, *, namespaces: bool) -> Iterator[str]:
    for component in reversed(site.plan.components):
        releases = site.releases(component)[::-1]
        seconds = _MARGIN + sum(release.install.timeout for release in releases)
        keep = "yes" if any(release.keep for release in releases) else "no"
        conditions = [release.id for release in releases if release.teardown_before]
        yield shell.words(["component", component.name, site.name(component.name), seconds, keep, *conditions])
    if namespaces:
        yield shell.words(["rest", site.name(argocd_apps.NAMESPACES), _SMALL])
    yield shell.words(["rest", root, _SMALL])


def _hints(site: Site, component: ComponentPlan) -> Iterator[str]:
    seen: set[str] = set()
    for release in site.releases(component):
        for line in _lines(release):
            if line not in seen:
                seen.add(line)
                yield shell.words(["say", line])


def _lines(release: Release) -> Iterator[str]:
    for item in release.stuck:
        what = f"{item.kind}.{item.group}" if item.group else item.kind
        yield f"  {what} may wait for the finalizer {item.finalizer}; look, and free it by hand:"
        for command in item.commands:
            yield f"    {command}"
