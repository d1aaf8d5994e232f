"""`list`, `resolve` and `graph`: commands that print what the sources say and write nothing."""

from __future__ import annotations

import click

from compiler.cli.knobs import Knobs, knob_options
from compiler.cli.output import as_json, say, table
from compiler.cli.session import Session, entries, format_option, name_argument, profile_option


@click.command("list")
@format_option("text", "json")
@click.pass_obj
def list_(session: Session) -> None:
    """The bundles of bundlec.yaml and the recipes that can be compiled."""
    from compiler.resolve import recipes

    catalog = session.catalog()
    bundles = catalog.workspace.bundles.values()
    known = recipes(catalog)
    if session.form == "json":
        said = [
            {"bundle": b.name, "recipe": b.recipe, "criteria": dict(b.criteria), "profile": dict(b.profile)}
            for b in bundles
        ]
        told = [{"recipe": o.name, "maturity": o.maturity, "description": o.description} for o in known]
        say(as_json({"bundles": said, "recipes": told}))
        return
    rows = [{"bundle": b.name, "recipe": b.recipe or _pairs(b.criteria), "profile": _pairs(b.profile)} for b in bundles]
    said_of = [{"recipe": o.name, "maturity": o.maturity, "description": o.description} for o in known]
    say(table(rows, ("bundle", "recipe", "profile")))
    say("\n" + table(said_of, ("recipe", "maturity", "description")))


@click.command()
@name_argument
@profile_option
@knob_options
@format_option("yaml", "json")
@click.pass_obj
def resolve(session: Session, name: str, profile: dict[str, str], knobs: Knobs) -> None:
    """Print the resolved recipe: criteria, overlays, components with their final values."""
    from compiler.emit.bundle import recipe_document
    from compiler.resolve import resolve as resolve_entry
    from compiler.yamlio import dump

    catalog = session.catalog()
    (entry,) = entries(catalog, [name])
    recipe = resolve_entry(catalog, entry, knobs.flags(profile))
    session.warn(recipe.warnings)
    document = recipe_document(recipe)
    say(as_json(document) + "\n" if session.form == "json" else dump(document), nl=False)


@click.command()
@name_argument
@profile_option
@knob_options
@format_option("text", "mermaid", "dot", "svg")
@click.pass_obj
def graph(session: Session, name: str, profile: dict[str, str], knobs: Knobs) -> None:
    """Print the order of deployment: every edge with its reasons, every gate with its checks."""
    from compiler import graph as draw
    from compiler import pipeline

    catalog = session.catalog()
    (entry,) = entries(catalog, [name])
    plan = pipeline.plan_bundle(catalog, entry, knobs.flags(profile))
    session.warn(plan.warnings)
    if session.form == "svg":
        from compiler.svg import svg

        say(svg(plan).rstrip("\n"))
        return
    picture = {"text": draw.text, "mermaid": draw.mermaid, "dot": draw.dot}[session.form]
    say(picture(plan).rstrip("\n"))


def _pairs(items: object) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(dict(items).items()))  # type: ignore[call-overload]
