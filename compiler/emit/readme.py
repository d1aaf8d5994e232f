"""`README.md` of a bundle: what it is, what it needs, its order, and how to apply and remove it with each deployer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from compiler import graph
from compiler.durations import format_duration
from compiler.emit import names
from compiler.emit.templates import environment
from compiler.model import Check, Files, Plan, PreflightCheck, Release
from compiler.versions import parse_version

if TYPE_CHECKING:
    from jinja2 import Environment

FILE = "README.md"
# What Markdown reads as markup in a line: `|` ends a cell, `<` begins HTML, `_` counts outside of words only.
_MARKUP = re.compile(r"([\\`*\[<|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#>+-])")
# Hooks that Argo CD runs at each sync; those at deletion it runs when Helm does, from 3.3 on.
_HOOK = re.compile("install|upgrade|rollback")
_CODE_SPAN = re.compile(r"(`[^`]+`)")


def emit(plan: Plan, files: Files) -> Files:
    """`README.md`. `files` are the bundle's other files: only what is there is described."""
    text = _environment().get_template("README.md.j2").render(_context(plan, files))
    return {FILE: (text.rstrip("\n") + "\n").encode()}


def placeholder_host(url: str) -> bool:
    """Whether `url` names a host that is reserved for examples, which nobody can read a bundle from."""
    scp = re.fullmatch(r"[^@/:]+@(?P<host>[^/:]+):.*", url)
    host = (scp["host"] if scp else urlsplit(url).hostname) or ""
    return host in {"example.com", "example.org", "example.net"} or host.endswith(
        (".example.com", ".example.org", ".example.net", ".example")
    )


def inline(text: object) -> str:
    """`text` for a line of prose or a cell of a table: on one line, nothing read as markup but code in backticks."""
    parts = _CODE_SPAN.split(" ".join(str(text).split()))
    return "".join(code(part[1:-1]) if odd % 2 else _MARKUP.sub(r"\\\1", part) for odd, part in enumerate(parts))


def code(text: object) -> str:
    """`text` as inline code, also in a cell of a table."""
    flat = " ".join(str(text).split()).replace("|", "\\|")
    fence = "``" if "`" in flat else "`"
    return f"{fence} {flat} {fence}" if len(fence) > 1 else f"`{flat}`"


def _context(plan: Plan, files: Files) -> dict[str, Any]:
    recipe, settings = plan.recipe, plan.settings
    enabled = recipe.enabled()
    return {
        "plan": plan,
        "recipe": recipe,
        "settings": settings,
        "files": files,
        "deployers": settings.deployers,
        "releases": plan.releases,
        "payload": _payload,
        "disabled": [c for c in recipe.components.values() if not c.enabled],
        "prerequisites": _said(
            [("", note.text) for note in recipe.prerequisites],
            [(c.name, note.text) for c in enabled for note in c.component.prerequisites],
        ),
        "operations": _said(
            [("", text) for text in recipe.operations],
            [(c.name, text) for c in enabled for text in c.component.operations],
        ),
        "preflight": [c for c in plan.preflight if c.kind != "unchecked"],
        "unchecked": [c for c in plan.preflight if c.kind == "unchecked"],
        "gates": [row for release in plan.releases for row in _gate_rows(release)],
        "picture": graph.mermaid(plan),
        "soft": list(_soft(plan)),
        "kept": [r.id for r in plan.releases if r.keep],
        "hooks": [(r, h) for r in plan.releases for h in r.hooks if _HOOK.search(h.event)],
        "inputs": [(key, json.dumps(value, sort_keys=True)) for key, value in sorted(recipe.inputs.items())],
        "gates_namespace": names.gates_namespace(plan),
        "limits": list(_limits(plan)),
        # The field of the Applications that says so came with it.
        "retry_refreshes": (parse_version(settings.argocd.min_version) or ()) >= (3, 2),
        "placeholder": settings.git is not None and placeholder_host(settings.git.url),
        "wanted": _wanted,
    }


def _payload(release: Release) -> str:
    if release.chart is None:
        return "nothing to apply" if release.empty else "manifests of this bundle"
    return f"{release.chart.repository.rstrip('/')}/{release.chart.name}"


def _said(*groups: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(component or "", text) pairs, each text once: what the recipe says needs no component to say it again."""
    once: dict[str, str] = {}
    for group in groups:
        for component, text in group:
            once.setdefault(text, component)
    return [(component, text) for text, component in once.items()]


def _gate_rows(release: Release) -> Iterator[tuple[Release, list[str], str, str]]:
    """(release, what it waits for, of which component, how long and what then), alike checks in one row."""
    rows: dict[tuple[str, str], list[Check]] = {}
    for item in release.gate.checks if release.gate else ():
        outcome = "fails" if item.on_timeout == "fail" else "warns and goes on"
        within = f"{format_duration(item.timeout)}, then {outcome}"
        if item.scope == "install":
            within += ", first installation only"
        rows.setdefault((item.provider, within), []).append(item.check)
    for (provider, within), checks in rows.items():
        yield release, graph.summary(checks), provider, within


def _wanted(check: PreflightCheck) -> str:
    return graph.describe(check.check) if check.check else check.value


def _soft(plan: Plan) -> Iterator[tuple[str, str]]:
    """(provider, dependant) components whose order Argo CD keeps by sync wave alone."""
    component_of = {r.id: r.component for r in plan.releases}
    guarded = {(component_of[e.provider], component_of[e.dependant]) for e in plan.edges if e.hard}
    pairs = dict.fromkeys((component_of[e.provider], component_of[e.dependant]) for e in plan.edges if not e.hard)
    return (pair for pair in pairs if pair[0] != pair[1] and pair not in guarded)


def _limits(plan: Plan) -> Iterator[str]:
    """What of the gates a deployer reads in its own way, for the deployers and checks of this bundle."""
    checks = [item for r in plan.releases if r.gate for item in r.gate.checks]
    for deployer, word in (("argocd", "Argo CD"), ("flux", "Flux")):
        if deployer not in plan.settings.deployers:
            continue
        if any(item.on_timeout == "warn" for item in checks):
            yield f"{word} has no deadline after which it goes on: a gate that would warn waits until its check holds"
        if any(item.scope == "install" for item in checks):
            yield f"{word} asks the gates of a first installation at every change"


@cache
def _environment() -> Environment:
    made = environment()
    filters: dict[str, Callable[[object], str]] = {"inline": inline, "code": code}
    made.filters.update(filters)
    return made
