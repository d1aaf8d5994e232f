"""Who renders an object: the component, the release and the template file, and the values that the template read."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from compiler import predicates
from compiler.emit import payload
from compiler.errors import Diagnostic, UserError
from compiler.model import Catalog, KubeObject, ManifestRef, Plan, Recipe, Release, ResolvedComponent
from compiler.paths import MISSING, lookup
from compiler.review.explain.model import ObjectStory, Read, Step, place
from compiler.review.explain.recipe import refs
from compiler.review.explain.value import winner
from compiler.review.reads import reads
from compiler.source import Origin, Path, dotted


def stories(catalog: Catalog, plan: Plan, word: str) -> tuple[ObjectStory, ...]:
    """The stories of the objects that `word` names: Kind/namespace/name, or Kind/name for any namespace or none.

    The kind may carry its group (`Role.rbac.authorization.k8s.io`) and be in any case. Objects inside charts are known
    as far as the component declares them (`crds`, `creates`). Raises UserError (BC2016) when nothing fits.
    """
    kind, _, rest = word.partition("/")
    if not kind or not rest:
        fix = "write it like Deployment/monitoring/grafana, or ClusterRole/reader"
        raise UserError([Diagnostic("BC2016", f"`{word}` is not Kind/namespace/name", None, fix)])
    namespace, slash, name = rest.rpartition("/")
    wanted = (kind.lower(), namespace if slash else None, name)
    found = [
        _rendered(catalog, plan, release, path, made)
        for release in plan.releases
        if release.local
        for path, made in payload.manifest_files(release)
        if _fits(wanted, made.kind, made.group, made.namespace or "", made.name)
    ]
    found += _namespaces(plan, wanted)
    found += _declared(plan, wanted)
    if not found:
        known = sorted({*(_called(o) for r in plan.releases for o in r.objects), *_namespace_names(plan)})
        near = difflib.get_close_matches(word, known, n=4, cutoff=0.5) or [k for k in known if k.endswith(f"/{name}")]
        close = f"the closest: {', '.join(f'`{n}`' for n in near)}; " if near else ""
        charts = sum(1 for r in plan.releases if not r.local)
        message = f"the bundle renders no object `{word}`"
        note = f"objects inside the {charts} charts are rendered by Helm, and not known here"
        raise UserError([Diagnostic("BC2016", message, None, close + note)])
    return tuple(found)


def _rendered(catalog: Catalog, plan: Plan, release: Release, file: str, made: KubeObject) -> ObjectStory:
    component = plan.recipe.components[release.component]
    ref = _ref(component, release, made)
    source = next((s for s in component.component.manifest_sources.values() if s.file == made.source), None)
    if ref is None or source is None:
        note = "made by the compiler, since the component asks for it"
        return ObjectStory(
            _called(made),
            component.name,
            release.id,
            None,
            place(made.origin),
            None,
            file,
            rendered=True,
            reads=(),
            notes=(note,),
        )
    notes = [] if ref.when is None else [f"rendered when {predicates.describe(ref.when)}"]
    return ObjectStory(
        object=_called(made),
        component=component.name,
        release=release.id,
        source=made.source,
        at=place(made.origin),
        listed=Step(_lister(catalog, plan.recipe, component, ref), "lists the file", place(ref.origin)),
        emitted=file,
        rendered=True,
        reads=tuple(_read(plan.recipe, component, path) for path in reads(plan.recipe, component, source)),
        notes=tuple(notes),
    )


def _ref(component: ResolvedComponent, release: Release, made: KubeObject) -> ManifestRef | None:
    for ref in component.manifests.get(release.piece, ()):
        source = component.component.manifest_sources.get(ref.file)
        if source is not None and source.file == made.source:
            return ref
    return None


def _lister(catalog: Catalog, recipe: Recipe, component: ResolvedComponent, ref: ManifestRef) -> str:
    for layer, said in refs(catalog, recipe):
        if said.name == component.name and any(r is ref for r in (*said.pre_manifests, *said.manifests)):
            return layer
    return f"component {component.name}"


def _read(recipe: Recipe, component: ResolvedComponent, path: Path) -> Read:
    if path[0] == "values":
        inner = path[1:]
        value = lookup(component.values, inner)
        entry = winner(component, inner) if inner else None
        layer, at = (entry.layer, place(entry.origin)) if entry is not None else (None, None)
        return Read(dotted(path), value is not MISSING, value, layer, at)
    value = lookup({"inputs": recipe.inputs}, path) if path[0] == "inputs" else MISSING
    told = path[0] != "inputs" or value is not MISSING
    return Read(dotted(path), told, value, "the recipe", None)


def _namespaces(plan: Plan, wanted: tuple[str, str | None, str]) -> Iterator[ObjectStory]:
    for namespace in plan.namespaces:
        if not _fits(wanted, "Namespace", "", "", namespace.name):
            continue
        owner = plan.recipe.components[namespace.components[0]]
        yield ObjectStory(
            object=f"Namespace/{namespace.name}",
            component=owner.name,
            release="",
            source=None,
            at=place(owner.component.namespace.origin),
            listed=None,
            emitted=payload.namespace_file(namespace.name),
            rendered=True,
            reads=(),
            notes=(f"shared by {', '.join(namespace.components)}; applied before every release, and never removed",),
        )


def _declared(plan: Plan, wanted: tuple[str, str | None, str]) -> Iterator[ObjectStory]:
    """What components say about objects inside their charts."""
    for component in plan.recipe.enabled():
        chart = component.component.chart
        if chart is None:
            continue
        for crd in component.component.crds:
            if crd.source != "manifests" and _fits(
                wanted, "CustomResourceDefinition", "apiextensions.k8s.io", "", crd.name
            ):
                how = {"crds": "in the chart's crds/", "templates": "in the chart's templates", "hook": "by a hook"}
                note = how.get(crd.source, "at run time, by the operator")
                name = f"CustomResourceDefinition/{crd.name}"
                yield _inside(component, name, crd.origin, f"brought {note} ({chart.name} {component.version})")
        for api in component.component.creates:
            if api.name and _fits(wanted, api.kind, api.group, api.namespace or "", api.name):
                note = f"created by the chart ({chart.name} {component.version})"
                name = "/".join(filter(None, (api.kind, api.namespace, api.name)))
                yield _inside(component, name, api.origin, note)


def _inside(component: ResolvedComponent, name: str, origin: Origin, note: str) -> ObjectStory:
    at = place(origin)
    return ObjectStory(
        name, component.name, component.name, None, at, None, None, rendered=False, reads=(), notes=(note,)
    )


def _fits(wanted: tuple[str, str | None, str], kind: str, group: str, namespace: str, name: str) -> bool:
    word, in_namespace, called = wanted
    same_kind = word in {kind.lower(), f"{kind}.{group}".lower()}
    return same_kind and name == called and (in_namespace is None or in_namespace == namespace)


def _called(made: KubeObject) -> str:
    return "/".join(filter(None, (made.kind, made.namespace, made.name)))


def _namespace_names(plan: Plan) -> Sequence[str]:
    return [f"Namespace/{namespace.name}" for namespace in plan.namespaces]
