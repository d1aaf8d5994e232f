"""deploy.sh: the releases in order, each behind its gate; with the scripts that belong to it.

    deploy.sh, undeploy.sh, preflight.sh, lib/releases.sh, and the gate library (see gatelib)

What differs between bundles stands in a few tables of one command a line; everything else is the same text everywhere.
"""

from __future__ import annotations

from itertools import pairwise

from compiler.emit import gatelib, payload, preflight, shell, undeploy
from compiler.emit.gatelib import gate_tokens, tokens
from compiler.errors import Diagnostic, UserError
from compiler.model import Files, Plan, Release, Wiring

__all__ = ["emit", "gate_tokens", "read_back", "tokens"]


def emit(plan: Plan) -> Files:
    """The scripts of the bundle. Raises `UserError` (BC3011) for a check that no probe can look at."""
    settings = plan.settings
    lines: list[str] = []
    for release in plan.releases:
        if release.gate is not None:
            lines.append(shell.words(("gate", release.id)))
        lines.append(_release_line(release))
    health = [
        f"healthy {shell.words([component.name])} {gatelib.once_line(f'{component.name}/{check.id}', check)}"
        for component in plan.components
        for check in component.health
    ]
    return {
        "deploy.sh": shell.render(
            "deploy.sh",
            title=shell.Script(plan.bundle),
            releases=shell.body(lines),
            health=shell.body(health),
        ),
        "lib/releases.sh": shell.render(
            "releases.sh",
            bundle=plan.bundle,
            helm_min=settings.helm_min_version,
            helm_min_4=settings.helm_min_version if settings.helm_min_version.startswith("4.") else _HELM_4,
            helm_extra_args=shell.Script(shell.words(settings.helm_extra_args)),
        ),
        **undeploy.emit(plan),
        **preflight.emit(plan),
        **gatelib.emit(plan),
    }


def read_back(files: Files) -> Wiring:
    """The order of deploy.sh: each release after the one before it, held back by the gate on the line in front of it.

    And that of undeploy.sh, which asks `lib/gate` for the conditions of every removal.

    Raises `UserError` (BC6004) when the table of releases holds anything but gates and releases.
    """
    text = files.get("deploy.sh", b"").decode()
    table = gatelib.read_gates(files)
    order: list[str] = []
    guards: dict[str, frozenset[str]] = {}
    gate = ""
    for line in shell.read_body(text, "releases"):
        if line[0] == "gate" and len(line) == 2:
            gate = line[1]
        elif line[0] == "release" and len(line) > _CHART:
            order.append(line[1])
            if gate == line[1]:
                guards[gate] = table.get(gate, frozenset())
            gate = ""
        elif line != [":"]:
            raise UserError([Diagnostic("BC6004", f"deploy.sh holds a line that is no release: {shell.words(line)}")])
    hard = frozenset(pairwise(order))
    removal, partings = undeploy.read_order(files), gatelib.read_teardown(files)
    return Wiring(tuple(order), hard, frozenset(), guards, removal=removal, partings=partings)


_HELM_4 = "4.1"  # the oldest Helm 4 that the scripts are made for
_CHART = 8  # release ID COMPONENT NAMESPACE CONTENT TIMEOUT WAIT TEARDOWN CHART


def _release_line(release: Release) -> str:
    install = release.install
    wait = "none" if install.wait == "none" else "jobs" if install.wait_for_jobs else "workloads"
    chart = (f"./{payload.directory(release)}",) if release.local else gatelib.chart_words(release)
    head = ["release", release.id, release.component, release.namespace, payload.content_hash(release)]
    return shell.words([*head, install.timeout, wait, payload.teardown(release), *chart])
