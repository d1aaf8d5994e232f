"""What a recipe is made of: overlays and mixins in order and why each is there; components and who brought them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.errors import Collector, InternalError
from compiler.model import BundleEntry, Catalog, ComponentRef, Flags, Overlay, Recipe, ResolvedComponent
from compiler.resolve import criteria as matching
from compiler.resolve import mixins
from compiler.resolve.draft import overlay_layer
from compiler.resolve.inputs import as_text
from compiler.review.explain.model import ComponentStory, RecipeStory, Step, place
from compiler.source import Origin, built_in


def story(catalog: Catalog, entry: BundleEntry, flags: Flags, recipe: Recipe) -> RecipeStory:
    """The story of a recipe that `entry` resolves to."""
    overlays = [catalog.overlays[name] for name in recipe.overlays]
    said = list(statements(catalog, entry, flags, recipe))
    return RecipeStory(
        bundle=recipe.bundle,
        recipe=recipe.name,
        criteria=dict(recipe.criteria),
        overlays=_overlays(catalog, entry, recipe, overlays),
        mixins=tuple(_mixins(catalog, recipe, overlays)),
        inputs=tuple(_inputs(entry, recipe, overlays)),
        profile=_profile(recipe),
        settings=tuple(_entry(entry)),
        components=tuple(_component(c, said) for c in recipe.components.values()),
    )


def statements(
    catalog: Catalog, entry: BundleEntry, flags: Flags, recipe: Recipe
) -> Iterator[tuple[str, str, ComponentRef | None, Step]]:
    """(component, layer, ref, step) of everything that is said about components, in order of application.

    The ref is None for what a bundle entry or a flag says.
    """
    for layer, ref in refs(catalog, recipe):
        yield ref.name, layer, ref, Step(layer, _says(ref), place(ref.origin))
    layer = f"bundle {entry.name}"
    for index, (name, reason) in enumerate(entry.disable):
        at = entry.origin.down("disable", index)
        yield _named(catalog, name), layer, None, Step(layer, f"disables it: {reason}", place(at))
    for name, values in entry.set.items():
        what = f"sets {', '.join(values)}"
        yield _named(catalog, name), layer, None, Step(layer, what, place(entry.origin.down("set", name), key=True))
    for name, path, value in flags.set:
        text = f"--set {name}:{'.'.join(map(str, path))}"
        yield _named(catalog, name), "--set", None, Step("--set", f"sets it to {value!r}", place(built_in(text)))


def refs(catalog: Catalog, recipe: Recipe) -> Iterator[tuple[str, ComponentRef]]:
    """(layer, ref) of overlays, mixins, input effects and the profile, in order of application."""
    overlays = [catalog.overlays[name] for name in recipe.overlays]
    for overlay in overlays:
        yield from ((overlay_layer(overlay.name), ref) for ref in overlay.refs)
    for name in sorted(recipe.mixins):
        mixin = catalog.mixins[name]
        yield from ((mixins.layer_name(mixin), ref) for ref in mixin.refs)
    specs = {spec.name: spec for overlay in overlays for spec in overlay.inputs}
    for name, value in recipe.inputs.items():
        text = as_text(value)
        yield from ((f"input {name}={text}", ref) for ref in specs[name].effects.get(text, ()))
    if recipe.profile is not None:
        layer = f"profile {recipe.profile.name}={recipe.profile.value}"
        declared = next((o.profile for o in overlays if o.profile is not None), None)
        if declared is not None:
            yield from ((layer, ref) for ref in declared.values[recipe.profile.value].refs)


def _overlays(catalog: Catalog, entry: BundleEntry, recipe: Recipe, overlays: Sequence[Overlay]) -> tuple[Step, ...]:
    found = Collector()
    effective = matching.effective(catalog.overlays, found)
    selection = matching.select(catalog, entry, found)
    if selection is None:
        raise InternalError(f"{recipe.bundle} resolves, and selects nothing")
    leaves = set(matching.maximal_leaves(catalog.overlays, effective, selection.criteria))
    steps = []
    for overlay in overlays:
        if overlay.name in leaves:
            why = _match(overlay, effective[overlay.name], selection.criteria, asked=overlay.name == recipe.name)
        else:
            children = [o.name for o in overlays if o.base == overlay.name]
            why = f"base of {', '.join(children)}"
        origin = overlay.criteria_origin if overlay.criteria else overlay.origin
        steps.append(Step(overlay.name, why, place(origin, key=bool(overlay.criteria))))
    return tuple(steps)


def _match(overlay: Overlay, own: Mapping[str, str | int], query: Mapping[str, str | int], *, asked: bool) -> str:
    pairs = [f"{key}={value}" for key, value in own.items() if key != "nodes"]
    text = "the recipe itself" if asked else f"matches {', '.join(pairs)}" if pairs else "matches every recipe"
    opened = [key for key in query if key not in own and key != "nodes"]
    if opened:
        text += f"; leaves {', '.join(opened)} open"
    if not asked and overlay.base:
        text += f" (on {overlay.base})"
    return text


def _mixins(catalog: Catalog, recipe: Recipe, overlays: Sequence[Overlay]) -> Iterator[Step]:
    for name in sorted(recipe.mixins):
        asking = [(o.name, origin) for o in overlays for mixin, origin in o.mixins if mixin == name]
        lines = ", ".join(f"{overlay} ({place(origin)})" for overlay, origin in asking)
        yield Step(name, f"asked for by overlay {lines}", place(catalog.mixins[name].origin))


def _inputs(entry: BundleEntry, recipe: Recipe, overlays: Sequence[Overlay]) -> Iterator[Step]:
    specs = {spec.name: spec for overlay in overlays for spec in overlay.inputs}
    for name, value in recipe.inputs.items():
        given = name in entry.inputs
        at = entry.origin.down("inputs", name) if given else specs[name].origin.down("default")
        what = f"{as_text(value)}, set by bundle {entry.name}" if given else f"{as_text(value)}, its default"
        yield Step(name, what, place(at))


def _profile(recipe: Recipe) -> Step | None:
    chosen = recipe.profile
    if chosen is None:
        return None
    at = place(chosen.origin)
    path = chosen.origin.path
    how = "its default" if path[-1:] == ("default",) else "a flag" if at is None or at.file is None else "the bundle"
    word = how if how == "its default" else f"chosen by {how}"
    return Step(f"{chosen.name}={chosen.value}", f"{word}; owns {len(chosen.owned_paths)} values", at)


def _entry(entry: BundleEntry) -> Iterator[Step]:
    layer = f"bundle {entry.name}"
    for index, (name, reason) in enumerate(entry.disable):
        yield Step(layer, f"disables {name}: {reason}", place(entry.origin.down("disable", index)))
    for name, values in entry.set.items():
        what = f"sets {', '.join(values)} of {name}"
        yield Step(layer, what, place(entry.origin.down("set", name), key=True))


def _component(
    component: ResolvedComponent, said: Sequence[tuple[str, str, ComponentRef | None, Step]]
) -> ComponentStory:
    mine = [(layer, ref, step) for name, layer, ref, step in said if name == component.name]
    bringer = next((layer for layer, ref, _ in mine if ref is not None and ref.origin == component.brought_by), "")
    disabled = None
    if not component.enabled:
        disabled = Step(component.disabled_reason or "", "switches it off", place(component.disabled_by))
    return ComponentStory(
        name=component.name,
        enabled=component.enabled,
        version=component.version,
        namespace=component.namespace,
        brought=Step(bringer, "brings it", place(component.brought_by)),
        versioned=_version(component, [(layer, ref) for layer, ref, _ in mine if ref is not None]),
        disabled=disabled,
        steps=tuple(step for _, _, step in mine),
    )


def _version(component: ResolvedComponent, refs_of: Sequence[tuple[str, ComponentRef]]) -> Step | None:
    if component.component.chart is None:
        return None
    for layer, ref in reversed(refs_of):
        if ref.version is not None:
            what = f"{ref.version}: {ref.version_reason}" if ref.version_reason else ref.version
            return Step(layer, what, place(ref.origin.down("version")))
    at: Origin = component.component.origin.down("spec", "chart", "version")
    return Step(f"component {component.name}", component.component.chart.version, place(at))


def _says(ref: ComponentRef) -> str:
    """What a ref says, in a few words."""
    words: list[str] = []
    if ref.enabled is not None:
        words.append("switches it on" if ref.enabled else "switches it off")
    words += [f"version {ref.version}"] if ref.version else []
    words += [f"namespace {ref.namespace}"] if ref.namespace else []
    words += [f"values file {ref.values_file}"] if ref.values_file else []
    words += [f"values of {', '.join(ref.overrides)}"] if ref.overrides else []
    needs = [f"{'no longer ' if need.remove else ''}{need.component}" for need in ref.dependency_refs]
    words += [f"needs {', '.join(needs)}"] if needs else []
    files = [manifest.file.rpartition("/")[2] for manifest in (*ref.pre_manifests, *ref.manifests)]
    words += [f"manifests {', '.join(files)}"] if files else []
    words += [f"no health check: {ref.health_check_skip}"] if ref.health_check_skip else []
    return "; ".join(words) or "lists it"


def _named(catalog: Catalog, word: str) -> str:
    """The component that people call `word`: its name or an alias, in any case."""
    for name, component in catalog.components.items():
        if word.lower() in {name.lower(), *(alias.lower() for alias in component.aliases)}:
            return name
    return word
