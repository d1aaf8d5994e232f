"""A bundle in the form that is compared: made of a compiled one, or read from the files of an emitted one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from typing import Any, cast

from compiler.durations import format_duration
from compiler.emit.bundle import recipe_document
from compiler.emit.inventory import FILE, check_data, read_inventory
from compiler.errors import Diagnostic, UserError
from compiler.model import Catalog, Chart, Edge, Files, Gate, KubeObject, Piece, Plan, Release, ResolvedComponent
from compiler.pipeline import Compiled
from compiler.records import dataclass
from compiler.review.diff.model import plain
from compiler.source import Span
from compiler.yamlio import load, load_all


@dataclass(frozen=True)
class ReleaseView:
    """A release. `facts` is everything about it but its values, objects, edges and gate.

    `deletion`: (event, effect) of the hooks that run when it is uninstalled.
    """

    id: str
    component: str
    piece: str
    namespace: str
    chart: Chart | None
    facts: Mapping[str, Any]
    objects: tuple[KubeObject, ...]
    deletion: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ComponentView:
    """A component that takes part. `values`: as templates see them; `chart_values`: as Helm gets them."""

    name: str
    version: str | None
    namespace: str
    chart: tuple[str, str] | None  # repository, name
    values: Mapping[str, Any]
    chart_values: Mapping[str, Any]
    resolved: ResolvedComponent | None = None


@dataclass(frozen=True)
class Snapshot:
    """One bundle on one side.

    `facts` are those of the bundle as a whole: the recipe's (no values), settings, namespaces, preflight, health.
    `plan` and `catalog` are there when it was compiled: they hold who wrote what.
    """

    bundle: str
    recipe: str
    facts: Mapping[str, Any]
    components: Mapping[str, ComponentView]
    releases: tuple[ReleaseView, ...]
    edges: tuple[Edge, ...]
    gates: Mapping[str, Gate]
    namespaces: Mapping[str, Mapping[str, str]]
    files: Files
    plan: Plan | None = None
    catalog: Catalog | None = None
    disabled: Mapping[str, str] = field(default_factory=dict)  # component -> reason

    def releases_of(self, component: str) -> tuple[ReleaseView, ...]:
        """The releases of a component, in order."""
        return tuple(r for r in self.releases if r.component == component)


def of_compiled(compiled: Compiled, catalog: Catalog) -> Snapshot:
    """The snapshot of a compiled bundle."""
    plan = compiled.plan
    document = recipe_document(plan.recipe)["spec"]
    facts = {
        **_recipe_facts(plan.recipe.name, document),
        "settings": _settings(plan),
        "preflight": [
            _preflight(
                {
                    "kind": c.kind,
                    "name": c.name,
                    "value": c.value,
                    "severity": c.severity,
                    "text": c.text,
                    **(plain(check_data(c.check)) if c.check else {}),
                }
            )
            for c in plan.preflight
        ],
        "satisfied": dict.fromkeys(plan.satisfied, True),
        "health": {c.name: {check.id: check_data(check) for check in c.health} for c in plan.components},
        "acceleratedSelector": plan.accelerated_selector,
        "readme": {c.name: words for c in plan.recipe.enabled() if (words := _words(c))},
    }
    return Snapshot(
        bundle=plan.bundle,
        recipe=plan.recipe.name,
        facts=facts,
        components={
            c.name: ComponentView(
                c.name,
                c.version,
                c.namespace,
                (c.component.chart.repository, c.component.chart.name) if c.component.chart else None,
                c.values,
                c.chart_values,
                c,
            )
            for c in plan.recipe.enabled()
        },
        releases=tuple(_release(r) for r in plan.releases),
        edges=plan.edges,
        gates={r.id: r.gate for r in plan.releases if r.gate},
        namespaces={n.name: n.labels for n in plan.namespaces},
        files=compiled.files,
        plan=plan,
        catalog=catalog,
        disabled={c.name: c.disabled_reason or "" for c in plan.recipe.components.values() if not c.enabled},
    )


def of_files(files: Files) -> Snapshot:
    """The snapshot of an emitted bundle, from its files alone.

    Raises `UserError`: BC6004 when they are no bundle, BC1001 and others for what is no YAML.
    """
    inventory = read_inventory(files)
    try:
        spec = load(_text(files, FILE), FILE).data["spec"]
        recipe = load(_text(files, "recipe.yaml"), "recipe.yaml").data
        disabled = {c["name"]: c.get("reason", "") for c in recipe["spec"]["components"] if not c["enabled"]}
        components = {c["name"]: _read_component(c, files) for c in recipe["spec"]["components"] if c["enabled"]}
        facts = {
            **_recipe_facts(recipe["metadata"]["name"], recipe["spec"]),
            "settings": {"prefix": spec["prefix"], "deployers": spec["deployers"]},
            "preflight": [_preflight(c) for c in spec.get("preflight", ())],
            "satisfied": dict.fromkeys(spec.get("satisfied", ()), True),
        }
        return Snapshot(
            bundle=inventory.bundle,
            recipe=recipe["metadata"]["name"],
            facts=facts,
            components=components,
            releases=tuple(_read_release(r, files) for r in spec["releases"]),
            edges=inventory.edges,
            gates={gate.id: gate for gate in inventory.gates},
            namespaces={n["name"]: n.get("labels", {}) for n in spec["namespaces"]},
            files=files,
            disabled=disabled,
        )
    except (KeyError, TypeError, AttributeError) as error:
        message = f"the files of {inventory.bundle} cannot be understood: {error!r}"
        raise UserError([Diagnostic("BC6004", message, Span(FILE), "build the bundle again")]) from error


def _text(files: Files, path: str) -> str:
    try:
        return files[path].decode()
    except UnicodeDecodeError as error:
        raise UserError([Diagnostic("BC6004", "the file is no text", Span(path), "build the bundle again")]) from error


def stripped(data: Mapping[str, Any], bundle: str) -> tuple[dict[str, Any], dict[str, str]]:
    """An object without what is no change of its own, and what was taken out, by its path.

    Taken out are labels and annotations that repeat a chart's version, a checksum or the bundle's name.
    """
    noise: dict[str, str] = {}
    metadata = dict(data.get("metadata") or {})
    for key in ("labels", "annotations"):
        words = metadata.get(key)
        if not isinstance(words, Mapping):
            continue
        for word in [w for w in words if _is_noise(w, words[w], bundle)]:
            noise[f"metadata.{key}.{word}"] = str(words[word])
        metadata[key] = {w: v for w, v in words.items() if f"metadata.{key}.{w}" not in noise}
    return {**data, "metadata": metadata}, noise


_VERSION_WORDS = frozenset({"helm.sh/chart", "app.kubernetes.io/version", "bundlec.dev/content"})
_BUNDLE_WORDS = frozenset({"app.kubernetes.io/part-of", "bundlec.dev/bundle"})


def _is_noise(word: str, value: Any, bundle: str) -> bool:
    return word in _VERSION_WORDS or word.startswith("checksum/") or (word in _BUNDLE_WORDS and value == bundle)


def _preflight(data: Mapping[str, Any]) -> dict[str, Any]:
    """A check of the preflight under a name of its own: several singletons may be of one kind."""
    kind, value = data["kind"], data.get("value", "")
    own = value if kind == "singleton" else ""
    told = {"name": " ".join(word for word in (kind, data["name"], own) if word)}
    told |= {"value": value} if value and not own else {}
    told["says"] = f"{data['severity']}: {data['text']}"
    return told | _without(data, "kind", "name", "value", "severity", "text")


def _words(item: ResolvedComponent) -> dict[str, Any]:
    """What a component says in the README of a bundle."""
    component = item.component
    told = {"prerequisites": {note.id: note.text for note in component.prerequisites}}
    return {
        key: value for key, value in {**told, "operations": dict.fromkeys(component.operations, True)}.items() if value
    }


def _recipe_facts(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's document without what components and settings tell themselves; lists keyed where they have names."""
    facts: dict[str, Any] = {"recipe": name}
    for key, value in spec.items():
        if key in {"bundle", "components"}:
            continue
        if key in {"knownGaps", "operations"}:
            facts[key] = dict.fromkeys(value, True)
        elif key == "profile":
            facts[key] = _without(value, "ownedPaths")
            facts["profileOwns"] = dict.fromkeys(value.get("ownedPaths", ()), True)
        else:
            facts[key] = plain(value)
    return facts


def _settings(plan: Plan) -> dict[str, Any]:
    # Names as bundlec.yaml has them; what users named below (labels of a selector) stays as it is.
    told: dict[str, Any] = {}
    for key, value in asdict(plan.settings).items():
        inner = {_camel(k): v for k, v in value.items()} if isinstance(value, dict) else value
        told[_camel(key)] = plain(inner)
    return told


def _camel(word: str) -> str:
    head, *rest = word.split("_")
    return head + "".join(part.title() for part in rest)


def _release(release: Release) -> ReleaseView:
    facts: dict[str, Any] = {
        **_chart_facts(release.chart),
        "namespace": release.namespace,
        "keep": release.keep,
        "install": {
            "timeout": format_duration(release.install.timeout),
            "wait": release.install.wait,
            "waitForJobs": release.install.wait_for_jobs,
        },
        "crdsBefore": dict.fromkeys(release.crds_before, True),
        "crdUpgrade": release.crd_upgrade,
        # Why it drifts is in no emitted file.
        "drift": [_without(asdict(item), "reason") for item in release.drift],
        "teardownBefore": {check.id: check_data(check) for check in release.teardown_before},
        "stuck": [plain(asdict(item)) for item in release.stuck],
        # What hooks do on deletion is in no emitted file.
        "hooks": {f"{hook.event} {hook.name}": hook.effect for hook in release.hooks if "delete" not in hook.event},
        "crdsOnUpgrade": dict.fromkeys(release.crds_on_upgrade, True),
    }
    return ReleaseView(
        release.id,
        release.component,
        release.piece,
        release.namespace,
        release.chart,
        facts,
        release.objects,
        tuple((hook.event, hook.effect) for hook in release.hooks if "delete" in hook.event),
    )


def _chart_facts(chart: Chart | None) -> dict[str, Any]:
    return {"chart": asdict(chart)} if chart else {}


def _read_component(data: Mapping[str, Any], files: Files) -> ComponentView:
    name, chart = data["name"], data.get("chart")
    path = f"components/{name}/values.yaml"
    values = load(_text(files, path), path).data or {} if path in files else {}
    pair = (chart["repository"], chart["name"]) if chart else None
    return ComponentView(name, data.get("version"), data["namespace"], pair, data.get("values", {}), values)


def _read_release(data: Mapping[str, Any], files: Files) -> ReleaseView:
    chart = Chart(**data["chart"]) if "chart" in data else None
    folder = f"components/{data['id']}/manifests/"
    objects = []
    for path in sorted(path for path in files if path.startswith(folder)):
        for found in (document.data for document in load_all(_text(files, path), path) if document.data is not None):
            if not is_object(found):
                message = "the file holds something that is no Kubernetes object"
                raise UserError([Diagnostic("BC6004", message, Span(path), "build the bundle again")])
            objects.append(KubeObject(found, data["component"], cast("Piece", data["piece"]), path))
    facts = {**_chart_facts(chart), "namespace": data["namespace"], "keep": data.get("keep", False)}
    return ReleaseView(data["id"], data["component"], data["piece"], data["namespace"], chart, facts, tuple(objects))


def is_object(data: Any) -> bool:
    """Whether data are a Kubernetes object with a name."""
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    return isinstance(metadata, Mapping) and "name" in metadata and "apiVersion" in data and "kind" in data


def _without(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: plain(value) for key, value in data.items() if key not in keys}


def renamed(snapshot: Snapshot, names: Mapping[str, str], components: Mapping[str, str]) -> Snapshot:
    """The snapshot with its edges and gates in terms of other release ids and components (old -> new)."""
    if not names:
        return snapshot
    words = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, sorted({*names, *components}))) + r")(?![\w-])")

    def told(text: str) -> str:
        return words.sub(lambda m: components.get(m[1]) or names[m[1]], text)

    def of(items: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(item, item) for item in items)

    edges = tuple(
        replace(
            e,
            provider=names.get(e.provider, e.provider),
            dependant=names.get(e.dependant, e.dependant),
            reasons=tuple(replace(r, text=told(r.text)) for r in e.reasons),
        )
        for e in snapshot.edges
    )
    gates = {
        names.get(i, i): replace(
            gate,
            id=names.get(i, i),
            after=of(gate.after),
            checks=tuple(replace(c, provider=components.get(c.provider, c.provider)) for c in gate.checks),
        )
        for i, gate in snapshot.gates.items()
    }
    return replace(snapshot, edges=edges, gates=gates)
