"""Mixins: parts that several recipes share, applied after all overlays.

Mixins may add; they may not override. Every collision is an error, so that the order in which they are listed cannot
matter: the same name of a constraint, and on a component that something else brings, anything but further manifests,
further dependencies, and values at paths that the component opens to mixins (`mixinPaths`) and that nobody has set.
They are applied in order of name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.errors import Collector
from compiler.model import Catalog, Component, ComponentRef, Constraint, Mixin, Overlay, ReadinessOverride
from compiler.resolve import draft as drafting
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, leaves, overlap
from compiler.source import Origin, Path, dotted, parse_path


def met(overlays: Sequence[Overlay]) -> tuple[str, ...]:
    """Names of the mixins that the overlays ask for, in the order met, each once."""
    return tuple(dict.fromkeys(name for overlay in overlays for name, _ in overlay.mixins))


def apply(
    catalog: Catalog,
    names: Sequence[str],
    drafts: dict[str, Draft],
    constraints: dict[str, Constraint],
    collector: Collector,
) -> None:
    """Add the mixins to the components and constraints of the overlays. Records BC2004 for every collision."""
    mixins = [catalog.mixins[name] for name in sorted(names)]
    for mixin in mixins:
        for constraint in mixin.constraints:
            first = constraints.setdefault(constraint.name, constraint)
            if first is not constraint:
                collector.error(
                    "BC2004",
                    f"mixin `{mixin.name}` states the constraint `{constraint.name}`, which is there already",
                    constraint.origin,
                    fix="state it in one place; a mixin overrides nothing",
                    notes=[(first.origin, "the other one")],
                )
    refs: dict[str, list[tuple[Mixin, ComponentRef]]] = {}
    for mixin in mixins:
        for ref in mixin.refs:
            refs.setdefault(ref.name, []).append((mixin, ref))
    for name, wanted in sorted(refs.items()):
        _join(catalog.components[name], wanted, drafts, collector)


def _join(
    component: Component, wanted: list[tuple[Mixin, ComponentRef]], drafts: dict[str, Draft], found: Collector
) -> None:
    # On a component that the overlays do not have, one mixin may say everything; the others only add to it.
    bringer: tuple[Mixin, ComponentRef] | None = None
    if component.name not in drafts:
        bringer = next(((m, r) for m, r in wanted if any(_beyond(component, r))), wanted[0])
        mixin, ref = bringer
        layer = layer_name(mixin)
        drafts[component.name] = drafting.start(component, ref, layer)
        drafting.apply(drafts[component.name], ref, layer, found)
    draft = drafts[component.name]
    for mixin, ref in wanted:
        if bringer is not None and ref is bringer[1]:
            continue
        problems = list(_beyond(component, ref)) + list(_taken(draft, ref))
        for what, at, other in problems:
            found.error(
                "BC2004",
                f"mixin `{mixin.name}` {what} `{component.name}`, which {draft.brought_layer} brings",
                at,
                fix="a mixin may only add manifests, dependencies and values at the component's `mixinPaths`",
                notes=[(other or draft.brought_by, "it collides with this")],
            )
        if not problems:
            drafting.apply(draft, ref, layer_name(mixin), found)


def layer_name(mixin: Mixin) -> str:
    """What the trace calls the mixin."""
    return f"mixin {mixin.name}"


def _beyond(component: Component, ref: ComponentRef) -> Iterator[tuple[str, Origin, Origin | None]]:
    # What a ref says that only the one who brings a component may say.
    said: Mapping[str, object] = {
        "enabled": ref.enabled,
        "version": ref.version,
        "namespace": ref.namespace,
        "valuesFile": ref.values_file,
        "healthCheckSkip": ref.health_check_skip,
        "readiness": None if ref.readiness == ReadinessOverride() else ref.readiness,
    }
    for field, value in said.items():
        if value is not None:
            yield f"sets `{field}` of", ref.origin.down(field), None
    for need in ref.dependency_refs:
        if need.remove:
            yield f"removes the dependency on `{need.component}` of", need.origin, None
    allowed = [parse_path(path) for path in component.mixin_paths]
    for path, _ in leaves(ref.overrides):
        if not any(path[: len(open_)] == open_ for open_ in allowed):
            yield f"sets the value `{dotted(path)}`, no `mixinPaths` of", _origin(ref, path), None


def _taken(draft: Draft, ref: ComponentRef) -> Iterator[tuple[str, Origin, Origin | None]]:
    # What a ref adds although somebody else has said something else.
    for path, _ in leaves(ref.overrides):
        other = _setter(draft.layers, path) or _setter(_values_file(draft), path)
        if other is not None:
            yield f"sets the value `{dotted(path)}`, which is set already, of", _origin(ref, path), other
    for piece, files in (("pre", ref.pre_manifests), (drafting.last_piece(draft.component), ref.manifests)):
        for manifest in files:
            known = draft.manifests.get(piece, {}).get(manifest.file)  # type: ignore[call-overload]
            if known is not None and not drafting.same_predicate(known.when, manifest.when):
                yield f"lists the manifest `{manifest.file}` under another condition in", manifest.origin, known.origin


def _setter(layers: Sequence[Layer], path: Path) -> Origin | None:
    for layer in layers:
        for taken, _ in leaves(layer.data):
            if overlap(taken, path):
                return layer.origin.down(*taken)
    return None


def _values_file(draft: Draft) -> list[Layer]:
    document = draft.component.values_files.get(draft.values_file) if draft.values_file else None
    if document is None or not document.data or document == draft.component.values:
        return []
    return [Layer(document.file, document.data, document.at(), own=True)]


def _origin(ref: ComponentRef, path: Path) -> Origin:
    return (ref.overrides_origin or ref.origin).down(*path)
