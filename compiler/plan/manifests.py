"""Renders the manifests of a recipe into labelled, namespaced objects.

Nothing renders unless a ref or the component lists it. Static files come parsed from the catalog; `*.j2` files are
Jinja2 (StrictUndefined, sandboxed). Either way the result is data, checked and dumped again by the emitters.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from compiler import predicates, yamlio
from compiler.deleted import deleted_in
from compiler.errors import Collector, UserError
from compiler.model import CRITERIA, PIECES, Facts, KubeObject, ManifestRef, Piece, Recipe, ResolvedComponent
from compiler.plain import plain
from compiler.plan import objects
from compiler.plan.scope import namespaced
from compiler.plan.template_lines import in_template
from compiler.source import Document, Origin, Span

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")


class Renderer:
    """Renders the templates of a recipe; `render` is the only door to Jinja2 for manifests."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def context(self, component: ResolvedComponent) -> Mapping[str, Any]:
        """What a template sees: values, inputs, recipe, component."""
        profile = self._recipe.profile
        return {
            "values": component.values,
            "inputs": self._recipe.inputs,
            "recipe": {
                "name": self._recipe.name,
                "bundle": self._recipe.bundle,
                "criteria": {key: self._recipe.criteria.get(key, "") for key in CRITERIA},
                "profile": {profile.name: profile.value} if profile else {},
            },
            "component": {
                "name": component.name,
                "namespace": component.namespace,
                "version": component.version or "",
            },
        }

    def render(self, text: str, file: str, component: ResolvedComponent, collector: Collector) -> str | None:
        """The rendered text, or None after recording BC3007."""
        import jinja2

        try:
            return _template(text).render(self.context(component))
        except jinja2.TemplateSyntaxError as error:
            fix = "correct the template: `{{ value }}`, `{% if ... %}`, `{# comment #}`"
            collector.error("BC3007", f"template syntax: {error.message}", Span(file, error.lineno, 1), fix=fix)
        except Exception as error:  # noqa: BLE001 - whatever an expression of a template raises is the template's
            line = _template_line(error)
            asked = text.splitlines()[line - 1 : line] if isinstance(error, jinja2.UndefinedError) else []
            gone = deleted_in(component, asked[0]) if asked else None
            if gone is not None:
                note = (Span(file, line, 1), "it is read here")
                collector.error(
                    "BC3007",
                    f"{gone}, and a template of the component reads it",
                    gone.entry.origin,
                    key=True,
                    fix=gone.fix,
                    notes=[note],
                )
                return None
            collector.error(
                "BC3007",
                f"`{component.name}` cannot render this template: {error}",
                Span(file, line, 1 if line else 0),
                fix="declare the value with a default in the component's values.yaml, or correct the expression",
            )
        return None


@lru_cache(maxsize=256)  # bundles share their templates, and compiling one costs more than rendering it
def _template(text: str) -> Template:
    return _environment().from_string(text)


@cache
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    env = SandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    env.filters["to_yaml"] = lambda value: yamlio.dump(plain(_defined(value))).rstrip("\n")
    env.filters["to_json"] = lambda value: json.dumps(plain(_defined(value)), separators=(",", ":"), ensure_ascii=False)
    env.filters["b64encode"] = lambda value: base64.b64encode(str(value).encode()).decode()
    return env


def _defined(value: Any) -> Any:
    """`value` itself; an undefined one raises its own error, which names it."""
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        str(value)
    return value


def _template_line(error: BaseException) -> int:
    """The line of the template in which `error` was raised; 0 when it cannot be told."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def render(recipe: Recipe, facts: Facts, collector: Collector) -> dict[str, dict[Piece, tuple[KubeObject, ...]]]:
    """Component name -> piece -> objects. A piece is present when it has files or a quota, even if nothing renders.

    Records BC3007 (template), BC3008 (no object that a cluster takes), BC3009 (two of one identity), BC3013 (null).
    """
    renderer = Renderer(recipe)
    scopes = {
        (crd.group, crd.kind): crd.scope == "Namespaced"
        for component in recipe.components.values()
        for crd in component.component.crds
    }
    result: dict[str, dict[Piece, tuple[KubeObject, ...]]] = {}
    seen: dict[tuple[str, str, str, str], KubeObject] = {}
    for component in recipe.enabled():
        pieces: dict[Piece, tuple[KubeObject, ...]] = {}
        for piece in PIECES:
            refs = component.manifests.get(piece, ())
            quota = piece == "pre" and _wants_quota(component, facts)
            if not refs and not quota:
                continue
            found: list[KubeObject] = [_quota(component, recipe)] if quota else []
            for ref in refs:
                if ref.when is not None and not predicates.evaluate(ref.when, facts):
                    continue
                for document in _documents(renderer, component, ref, collector):
                    made = _object(document, component, piece, recipe, scopes, collector)
                    if made is not None:
                        found.append(made)
            for made in found:
                first = seen.setdefault(made.identity, made)
                if first is not made:
                    collector.error(
                        "BC3009",
                        f"{made.kind} {_place(made)} is rendered twice",
                        made.origin,
                        fix="keep it in one file; two components may not own one object",
                        notes=[(first.origin or Span(first.source), "the other one")],
                    )
            pieces[piece] = tuple(found)
        result[component.name] = pieces
    return result


def examples(recipe: Recipe, facts: Facts, collector: Collector) -> tuple[tuple[str, str], ...]:
    """(file name, YAML text) of the examples that the enabled components offer under this recipe, sorted by name."""
    renderer = Renderer(recipe)
    found: dict[str, str] = {}
    for component in recipe.enabled():
        for ref in component.component.examples:
            if ref.when is not None and not predicates.evaluate(ref.when, facts):
                continue
            documents = [d.data for d in _documents(renderer, component, ref, collector)]
            name = ref.file.rsplit("/", 1)[-1].removesuffix(".j2")
            found[name] = yamlio.dump_all(documents)
    return tuple(sorted(found.items()))


def _documents(
    renderer: Renderer, component: ResolvedComponent, ref: ManifestRef, collector: Collector
) -> Iterator[Document]:
    source = component.component.manifest_sources.get(ref.file)
    if source is None:
        collector.error(
            "BC1206",
            f"component `{component.name}` has no manifest `{ref.file}`",
            ref.origin,
            fix="paths are relative to the component's folder",
        )
        return
    if source.documents is not None:
        yield from source.documents
        return
    text = renderer.render(source.text, source.file, component, collector)
    if text is None:
        return
    try:
        for document in yamlio.load_all(text, source.file):
            yield in_template(document, text, source.text)
    except UserError as error:
        for found in error.diagnostics:
            line = found.span.line if found.span else 0
            where = f" (line {line} of the rendered text)" if line else ""
            rendered = text.splitlines()[line - 1 : line]
            fix = found.fix or (f"that line is `{rendered[0].strip()}`" if rendered else "the text ends too early")
            collector.error(
                "BC3007", f"renders to YAML that is refused: {found.message}{where}", Span(source.file), fix=fix
            )


def _object(
    document: Document,
    component: ResolvedComponent,
    piece: Piece,
    recipe: Recipe,
    scopes: Mapping[tuple[str, str], bool],
    collector: Collector,
) -> KubeObject | None:
    """The document as an object of ours: checked, in a namespace, labelled. Never touches the document's data."""
    data = document.data
    if not objects.well_formed(document, collector):
        return None
    metadata = dict(data["metadata"])
    made = KubeObject(data, component.name, piece, document.file)
    in_namespace = scopes.get((made.group, made.kind), namespaced(made.group, made.kind))
    if in_namespace:
        metadata.setdefault("namespace", component.namespace)
    elif in_namespace is False:
        metadata.pop("namespace", None)
    metadata["labels"] = _labels(component, recipe, metadata.get("labels", {}))
    made = KubeObject({**data, "metadata": metadata}, component.name, piece, document.file, document.at())
    objects.check(made, component, collector)
    return made


def _labels(component: ResolvedComponent, recipe: Recipe, given: Mapping[str, str]) -> dict[str, str]:
    return {
        **given,
        "app.kubernetes.io/name": given.get("app.kubernetes.io/name", component.name),
        "app.kubernetes.io/part-of": recipe.bundle,
        "bundlec.dev/bundle": recipe.bundle,
        "bundlec.dev/component": component.name,
    }


def _wants_quota(component: ResolvedComponent, facts: Facts) -> bool:
    wanted = component.component.critical_pods
    return wanted is not None and predicates.evaluate(wanted, facts)


def _quota(component: ResolvedComponent, recipe: Recipe) -> KubeObject:
    """Admits pods of the system-*-critical classes, which some clouds refuse outside kube-system without a quota."""
    data = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "gcp-critical-pods",
            "namespace": component.namespace,
            "labels": _labels(component, recipe, {}),
        },
        "spec": {
            "hard": {"pods": "1000"},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": list(CRITICAL_CLASSES)},
                ],
            },
        },
    }
    origin: Origin = component.component.origin.down("spec", "criticalPods")
    return KubeObject(data, component.name, "pre", component.component.origin.document.file, origin)


def _place(made: KubeObject) -> str:
    return f"{made.namespace}/{made.name}" if made.namespace else made.name
