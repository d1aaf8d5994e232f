"""The nodes of the sources that a difference may come from, the most likely first: one side's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from compiler.model import Catalog, Check, ComponentRef, Overlay, Recipe, ResolvedComponent
from compiler.paths import MISSING
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.values import Change
from compiler.source import Origin, Path

# Where bundlec.yaml writes a setting that is called otherwise once it is read.
_WRITTEN: Mapping[Path, Path] = MappingProxyType(
    {
        ("helmMinVersion",): ("helm", "minVersion"),
        ("helmExtraArgs",): ("helm", "extraArgs"),
        ("helmfileMinVersion",): ("helmfile", "minVersion"),
        ("argocd", "server"): ("argocd", "destination", "server"),
        ("argocd", "clusterName"): ("argocd", "destination", "name"),
        ("flux", "sourceKind"): ("flux", "source", "kind"),
        ("flux", "sourceName"): ("flux", "source", "name"),
        ("flux", "sourceExisting"): ("flux", "source", "existing"),
        ("flux", "sourceSecret"): ("flux", "source", "secretRef"),
        ("flux", "sourceInterval"): ("flux", "source", "interval"),
        ("gates", "image"): ("gates", "job", "image"),
        ("gates", "pullSecrets"): ("gates", "job", "pullSecrets"),
        ("gates", "nodeSelector"): ("gates", "job", "nodeSelector"),
        ("gates", "tolerations"): ("gates", "job", "tolerations"),
        ("gates", "priorityClass"): ("gates", "job", "priorityClass"),
        ("placement", "workloadSelector"): ("placement", "workload", "selector"),
        ("placement", "workloadGate"): ("placement", "workload", "gate"),
        ("storage", "storageClass"): ("storage", "class"),
    }
)


def overlays(recipe: Recipe, catalog: Catalog) -> list[Overlay]:
    """The overlays of a recipe, the last one that applies first."""
    return [catalog.overlays[name] for name in reversed(recipe.overlays) if name in catalog.overlays]


def refs(recipe: Recipe, catalog: Catalog, name: str) -> Iterator[ComponentRef]:
    """The refs of a component, the last one that applies first."""
    for mixin in reversed(recipe.mixins):
        yield from (ref for ref in catalog.mixins[mixin].refs if ref.name == name)
    for overlay in overlays(recipe, catalog):
        yield from (ref for ref in overlay.refs if ref.name == name)


def of_namespace(item: ResolvedComponent, recipe: Recipe, catalog: Catalog) -> Origin:
    """What names the namespace of a component: the ref that moves it, or the component itself."""
    moved = (r.origin.down("namespace") for r in refs(recipe, catalog, item.name) if r.namespace == item.namespace)
    return next(moved, item.component.namespace.origin.down("name"))


def of_setting(snapshot: Snapshot, steps: Path) -> Iterator[Origin]:
    """Where a setting of the bundle is written: in its entry, then for all bundles."""
    if snapshot.catalog is None:
        return
    entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle)
    holders = [*([entry.origin] if entry else []), snapshot.catalog.workspace.origin.down("spec")]
    known = next((n for n in range(len(steps), 0, -1) if steps[:n] in _WRITTEN), 0)
    path = (*_WRITTEN[steps[:known]], *steps[known:]) if known else steps
    yield from (at for holder in holders if holds(at := holder.down(*path)))


def of_pieces(name: str, snapshot: Snapshot) -> Iterator[Origin]:
    """Where it is written which manifests a component has, and so which releases."""
    view = snapshot.components.get(name)
    if view is None or view.resolved is None or snapshot.plan is None or snapshot.catalog is None:
        return
    yield from (ref.origin for found in view.resolved.manifests.values() for ref in found)
    said = refs(snapshot.plan.recipe, snapshot.catalog, name)
    yield from (r.origin.down(key) for r in said for key in ("preManifestFiles", "manifestFiles"))
    yield view.resolved.component.origin.down("spec", "manifests")


def of_component_field(name: str, snapshot: Snapshot, change: Change) -> Iterator[Origin]:
    """Where a fact of a component's releases may be written: version, namespace, time limits, readiness."""
    view = snapshot.components.get(name)
    if view is None or view.resolved is None or snapshot.plan is None or snapshot.catalog is None:
        return
    item, recipe, catalog = view.resolved, snapshot.plan.recipe, snapshot.catalog
    spec = item.component.origin.down("spec")
    said = list(refs(recipe, catalog, name))
    steps = tuple(str(step) for step in change.steps)
    if steps[0] in {"pre", "main", "post"}:
        yield from of_pieces(name, snapshot)
        steps = steps[1:]
    match steps[:2]:
        case ("chart", "version"):
            yield from (r.origin.down("version") for r in said if r.version is not None)
            yield spec.down("chart", "version")
        case ("chart", key):
            yield spec.down("chart", key)
            yield from of_setting(snapshot, ("mirrors",))
        case ("namespace", *_):
            yield of_namespace(item, recipe, catalog)
        case ("install", key):
            yield spec.down("install", key)
        case ("teardownBefore" | "stuck", *_):
            yield spec.down("teardown")
        case ("hooks", *_):
            yield spec.down("hooks")
        case ("crdsBefore" | "crdsOnUpgrade" | "crdUpgrade" | "keep", *_):
            yield spec.down("crds")
            yield spec.down("teardown")
        case ("drift", *_):
            yield spec.down("drift")
        case ("health", check):
            yield from _of_health(item, snapshot, check)


def of_check(check: Check, snapshot: Snapshot, provider: str) -> Iterator[Origin]:
    """Where a check of a component may be written, or what it looks at may be decided."""
    yield check.origin
    view = snapshot.components.get(provider)
    if view is not None and view.resolved is not None and snapshot.plan is not None and snapshot.catalog is not None:
        # A check that names no namespace looks into the component's.
        yield of_namespace(view.resolved, snapshot.plan.recipe, snapshot.catalog)
        for ref in refs(snapshot.plan.recipe, snapshot.catalog, provider):
            yield ref.origin.down("readiness")
    yield from of_setting(snapshot, ("gates", "minNodes"))


def of_readiness(snapshot: Snapshot, provider: str) -> Iterator[Origin]:
    """Where the readiness of a component is written: refs that override it, then the component."""
    view = snapshot.components.get(provider)
    if view is None or view.resolved is None or snapshot.plan is None or snapshot.catalog is None:
        return
    component = view.resolved.component
    yield from (r.origin.down("readiness") for r in refs(snapshot.plan.recipe, snapshot.catalog, provider))
    yield from (r.origin for r in (component.readiness_ready, component.readiness_api) if r is not None)
    yield component.origin.down("spec", "readiness")


def of_bundle_field(snapshot: Snapshot, change: Change) -> Iterator[Origin]:
    """Where a fact of a bundle may be written: a setting, a constraint, an overlay's words."""
    if snapshot.plan is None or snapshot.catalog is None:
        return
    recipe, catalog = snapshot.plan.recipe, snapshot.catalog
    head = str(change.steps[0])
    rest = tuple(step for step in change.steps[1:] if isinstance(step, str))
    entry = catalog.workspace.bundles.get(snapshot.bundle)
    if head == "settings":
        yield from of_setting(snapshot, rest)
        yield from of_setting(snapshot, ("mirrors",)) if rest == ("gates", "image") else ()
        yield from [entry.origin.down("name")] if rest == ("prefix",) and entry is not None else []
    elif head == "switchedOff":
        off = recipe.components.get(rest[0])
        yield from [off.disabled_by] if off is not None and off.disabled_by is not None else []
    elif head == "namespaces":
        for item in recipe.enabled():
            if item.namespace == rest[0]:
                label = item.component.namespace.origin.down("labels", *rest[1:2])
                name = of_namespace(item, recipe, catalog)
                # Labels that go may do so with the namespace.
                both = (name, label) if change.new is MISSING else (label, name)
                yield from (at for at in both if holds(at))
                yield item.brought_by  # it may be new
    elif head == "acceleratedSelector":
        yield from of_setting(snapshot, ("placement", "accelerated"))
    elif head in {"constraints", "preflight"}:
        named = change.path.partition("[name=")[2].partition("]")[0]
        known = [c.origin for c in recipe.constraints.values() if c.name in {named, named.partition(" ")[2]}]
        known += [api.origin for api in recipe.cluster_provides if f"{api.kind}.{api.group}" in named]
        yield from known
        if head == "preflight" and not known:
            specs = [o.origin.down("spec") for o in overlays(recipe, catalog)]
            specs += [c.component.origin.down("spec") for c in recipe.enabled()]
            yield from (spec.down(key) for spec in specs for key in ("prerequisites", "singleton"))
    elif head == "readme":
        said = recipe.components.get(rest[0])
        yield from [said.component.origin.down("spec", *rest[1:2])] if said is not None else []
    elif head == "overlays":
        yield from (overlay.origin.down("metadata", "name") for overlay in overlays(recipe, catalog))
    elif head in {"profile", "inputs", "recipe"} and entry is not None:
        yield from (at for key in (head, "recipe") if holds(at := entry.origin.down(key)))
    for overlay in overlays(recipe, catalog):
        origin = overlay.origin.down("spec", head)
        if head not in {"settings", "preflight"} and holds(origin):
            items = overlay.origin.document.data["spec"][head]
            number = items.index(rest[0]) if isinstance(items, list) and rest and rest[0] in items else None
            yield origin if number is None else origin.down(number)
    if head in {"prerequisites", "operations"}:
        yield from (c.component.origin.down("spec", head) for c in recipe.enabled())


def holds(origin: Origin) -> bool:
    """Whether there is such a node."""
    data: Any = origin.document.data
    for step in origin.path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _of_health(item: ResolvedComponent, snapshot: Snapshot, check: str) -> Iterator[Origin]:
    if check in item.component.checks:
        yield from of_check(item.component.checks[check], snapshot, item.name)
    yield from of_readiness(snapshot, item.name)
