"""The inventory `bundle.yaml`, the resolved recipe `recipe.yaml`, the README and the checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from compiler.emit import gatelib, payload, readme
from compiler.emit.inventory import API_VERSION, check_data, checks_data, edge_data, gate_data, read_inventory
from compiler.model import Chart, Files, Plan, Recipe, Release, ResolvedComponent
from compiler.plain import plain
from compiler.yamlio import dump

__all__ = ["CHECKSUMS", "checksums", "emit", "read_inventory", "recipe_document"]

CHECKSUMS = "checksums.txt"


def emit(plan: Plan, files: Files) -> Files:
    """`bundle.yaml`, `recipe.yaml` and `README.md` for a bundle whose other files are `files`."""
    recipe = dump(recipe_document(plan.recipe)).encode()
    inventory = dump(_inventory(plan, files, recipe)).encode()
    return {"recipe.yaml": recipe, "bundle.yaml": inventory, **readme.emit(plan, files)}


def checksums(files: Files) -> bytes:
    """`checksums.txt`: the sha256 of every other file, sorted by path, as `sha256sum --check` reads it."""
    lines = [f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files) if path != CHECKSUMS]
    return "".join(lines).encode()


def _inventory(plan: Plan, files: Files, recipe: bytes) -> dict[str, Any]:
    source = plan.recipe
    spec: dict[str, Any] = {
        "recipe": {"name": source.name, "file": "recipe.yaml", "sha256": hashlib.sha256(recipe).hexdigest()},
        "criteria": dict(source.criteria),
        "overlays": list(source.overlays),
        **_optional("mixins", list(source.mixins)),
        **_optional("profile", {source.profile.name: source.profile.value} if source.profile else {}),
        "prefix": plan.settings.prefix,
        "deployers": list(plan.settings.deployers),
        "namespaces": [
            {"name": n.name, **_optional("labels", dict(sorted(n.labels.items()))), "components": list(n.components)}
            for n in plan.namespaces
        ],
        "releases": [dict(_release(release, files, plan.settings.gates.timeout_scale)) for release in plan.releases],
        "edges": [edge_data(edge) for edge in plan.edges],
        "gates": [gate_data(release.gate) for release in plan.releases if release.gate],
        **_optional("satisfied", list(plan.satisfied)),
        **_optional(
            "preflight",
            [
                {
                    "kind": c.kind,
                    "name": c.name,
                    **_optional("value", c.value),
                    "severity": c.severity,
                    "text": c.text,
                    **(check_data(c.check) if c.check else {}),
                }
                for c in plan.preflight
            ],
        ),
    }
    return {"apiVersion": API_VERSION, "kind": "Bundle", "metadata": {"name": plan.bundle}, "spec": spec}


def _release(release: Release, files: Files, scale: float) -> Iterator[tuple[str, Any]]:
    yield "id", release.id
    yield "component", release.component
    yield "piece", release.piece
    yield "namespace", release.namespace
    if release.chart is not None:
        yield "chart", _chart(release.chart)
        values = f"{payload.directory(release)}/values.yaml"
        yield "values", {"file": values, "sha256": hashlib.sha256(files[values]).hexdigest()}
    elif release.empty:
        yield "empty", True
    yield "content", payload.content_hash(release)
    if release.keep:
        yield "keep", True
    if release.teardown_before:
        yield "teardown", checks_data(gatelib.teardown_checks(release, scale))


def _chart(chart: Chart) -> dict[str, str]:
    return {"repository": chart.repository, "name": chart.name, "version": chart.version}


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as `recipe.yaml` holds it (kind Recipe)."""
    spec = {
        "bundle": recipe.bundle,
        "maturity": recipe.maturity,
        **_optional("description", recipe.description),
        **_optional("knownGaps", list(recipe.known_gaps)),
        "criteria": dict(recipe.criteria),
        "overlays": list(recipe.overlays),
        **_optional("mixins", list(recipe.mixins)),
        **_optional("profile", dict(_profile(recipe))),
        **_optional("inputs", plain(recipe.inputs)),
        **_optional(
            "constraints",
            [
                {"name": c.name, "value": c.value, "severity": c.severity, **_optional("remediation", c.remediation)}
                for c in recipe.constraints.values()
            ],
        ),
        **_optional(
            "clusterProvides",
            [{"group": a.group, "kind": a.kind, **_optional("name", a.name)} for a in recipe.cluster_provides],
        ),
        **_optional("prerequisites", [{"id": note.id, "text": note.text} for note in recipe.prerequisites]),
        **_optional("operations", list(recipe.operations)),
        "components": [dict(_component(component)) for component in recipe.components.values()],
        **_optional("validation", {phase: plain(said) for phase, said in recipe.validation.items()}),
    }
    return {"apiVersion": API_VERSION, "kind": "Recipe", "metadata": {"name": recipe.name}, "spec": spec}


def _profile(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    if recipe.profile:
        yield "name", recipe.profile.name
        yield "value", recipe.profile.value
        yield from _optional("advertiser", recipe.profile.advertiser).items()
        yield "ownedPaths", [f"{component}:{path}" for component, path in recipe.profile.owned_paths]


def _component(item: ResolvedComponent) -> Iterator[tuple[str, Any]]:
    yield "name", item.name
    yield "enabled", item.enabled
    if not item.enabled:
        yield from _optional("reason", item.disabled_reason).items()
        return
    yield from _optional("version", item.version).items()
    yield "namespace", item.namespace
    if item.component.chart is not None:
        chart = item.component.chart
        yield "chart", {"repository": chart.repository, "name": chart.name}
    yield from _optional("values", plain(item.values)).items()
    yield from _optional("healthCheckSkip", item.health_check_skip).items()


def _optional(key: str, value: Any) -> Mapping[str, Any]:
    """The entry, or nothing when there is nothing to say."""
    return {key: value} if value or value is False else {}
