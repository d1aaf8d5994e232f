"""What the catalog offers: bundles and recipes with their figures, and docs/catalog.md, which is written from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from compiler.errors import UserError
from compiler.model import BundleEntry, Catalog, Component, Flags, Plan, Recipe
from compiler.plan import plan
from compiler.records import dataclass
from compiler.resolve import entry_for, recipes, resolve

_HEAD = """\
# Catalog

Everything that a recipe can be made of. `make docs` writes this page from the sources.
"""
_EDGES = """\
Over all recipes, between components: what waits for what, how far, and why. `applied` is the release itself, `api` that
its API admits objects, `ready` that its operands are up. Within a component its pieces follow each other.
"""


@dataclass(frozen=True)
class Row:
    """A bundle or recipe. `components` is the number of enabled ones; None: it does not compile by itself.

    `profile` is (name, selected value, other values), empty when the recipe has none.
    """

    name: str
    recipe: str
    criteria: Mapping[str, str | int]
    components: int | None
    profile: tuple[str, ...]
    maturity: str
    description: str


def bundle_rows(catalog: Catalog) -> tuple[Row, ...]:
    """The bundles of bundlec.yaml, in its order."""
    return tuple(_row(catalog, entry) for entry in catalog.workspace.bundles.values())


def recipe_rows(catalog: Catalog) -> tuple[Row, ...]:
    """The recipes that can be asked for, by name."""
    return tuple(_row(catalog, _plain(catalog, overlay.name)) for overlay in recipes(catalog))


def document(catalog: Catalog) -> str:
    """docs/catalog.md. Raises UserError when a recipe cannot be planned."""
    plans = {o.name: _plan(catalog, o.name) for o in recipes(catalog)}
    parts = [_HEAD, "## Recipes\n", *_recipe_tables(catalog, plans)]
    parts += ["## Components\n", _components(catalog, plans), "## Edges\n", _EDGES, _edges(plans)]
    return "\n".join(parts)


def _plan(catalog: Catalog, name: str) -> Plan:
    return plan(resolve(catalog, _plain(catalog, name), Flags()))


def _plain(catalog: Catalog, name: str) -> BundleEntry:
    # The recipe itself, also where a bundle of that name sets something; required inputs come from a bundle.
    entry = entry_for(replace(catalog, workspace=replace(catalog.workspace, bundles={})), name)
    bundles = sorted(catalog.workspace.bundles.values(), key=lambda b: b.name != name)
    required = {spec.name for spec in catalog.overlays[name].inputs if spec.required}
    given = next((b.inputs for b in bundles if b.recipe == name and required <= b.inputs.keys()), {})
    return replace(entry, inputs={key: value for key, value in given.items() if key in required})


def _row(catalog: Catalog, entry: BundleEntry) -> Row:
    try:
        found: Recipe | None = resolve(catalog, entry, Flags())
    except UserError:
        found = None
    if found is None:
        return Row(entry.name, entry.recipe or "", entry.criteria, None, (), "", "")
    return Row(
        name=entry.name,
        recipe=found.name,
        criteria=found.criteria,
        components=len(found.enabled()),
        profile=_profile(catalog, found),
        maturity=found.maturity,
        description=found.description,
    )


def _profile(catalog: Catalog, recipe: Recipe) -> tuple[str, ...]:
    if recipe.profile is None:
        return ()
    values = next(
        p.values
        for name in recipe.overlays
        for p in [catalog.overlays[name].profile]
        if p and p.name == recipe.profile.name
    )
    others = sorted(value for value in values if value != recipe.profile.value)
    return (recipe.profile.name, recipe.profile.value, *others)


def _recipe_tables(catalog: Catalog, plans: Mapping[str, Plan]) -> Iterator[str]:
    rows = []
    for name, planned in plans.items():
        recipe = planned.recipe
        criteria = ", ".join(f"{key} {value}" for key, value in recipe.criteria.items())
        profile = _profile(catalog, recipe)
        chosen = f"{profile[0]}: **{profile[1]}**, {', '.join(profile[2:])}" if profile else ""
        rows.append((f"`{name}`", criteria, str(len(recipe.enabled())), chosen.rstrip(", "), recipe.maturity))
    yield _table(("recipe", "criteria", "components", "profile (default in bold)", "maturity"), rows)
    for name, planned in plans.items():
        recipe = planned.recipe
        yield f"### {name}\n"
        if recipe.description:
            yield f"{recipe.description.strip()}\n"
        made_of = " → ".join(f"`{o}`" for o in recipe.overlays)
        mixed = f"; mixins {', '.join(f'`{m}`' for m in recipe.mixins)}" if recipe.mixins else ""
        yield f"Overlays {made_of}{mixed}.\n"
        yield f"In order of deployment: {', '.join(c.name for c in planned.components)}.\n"
        if recipe.known_gaps:
            yield "Known gaps:\n\n" + "".join(f"- {gap.strip()}\n" for gap in recipe.known_gaps)


def _components(catalog: Catalog, plans: Mapping[str, Plan]) -> str:
    used: dict[str, int] = {}
    for planned in plans.values():
        for component in planned.recipe.enabled():
            used[component.name] = used.get(component.name, 0) + 1
    rows = [
        (
            f"`{name}`",
            _source(component),
            component.namespace.name,
            component.klass,
            f"{used.get(name, 0)} of {len(plans)}",
            component.description.strip(),
        )
        for name, component in sorted(catalog.components.items())
    ]
    return _table(("component", "chart and pin", "namespace", "class", "in recipes", "what for"), rows)


def _source(component: Component) -> str:
    chart = component.chart
    if chart is None:
        return "own manifests"
    return f"{chart.name} {chart.version} ({chart.repository})"


def _edges(plans: Mapping[str, Plan]) -> str:
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name, planned in plans.items():
        of = {release.id: release.component for release in planned.releases}
        for edge in planned.edges:
            dependant, provider = of[edge.dependant], of[edge.provider]
            if dependant != provider:
                why = "; ".join(reason.text for reason in edge.reasons)
                users = found.setdefault((dependant, provider, edge.until, why), [])
                if name not in users:
                    users.append(name)
    rows = [
        (f"`{dependant}`", f"`{provider}`", until, why, "all" if len(users) == len(plans) else ", ".join(users))
        for (dependant, provider, until, why), users in sorted(found.items())
    ]
    return _table(("component", "waits for", "until", "because", "in"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
