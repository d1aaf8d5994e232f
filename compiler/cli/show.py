"""`list`, `resolve` and `graph`: commands that print what the sources say and write nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.knobs import Knobs, knob_options
from compiler.cli.output import as_json, say, table
from compiler.cli.session import Session, entries, format_option, name_argument, profile_option

if TYPE_CHECKING:
    from compiler.review.catalog import Row


@click.command("list")
@format_option("text", "json", "md")
@click.pass_obj
def list_(session: Session) -> None:
    """The bundles of bundlec.yaml and the recipes that can be compiled; as md: the whole catalog, components too."""
    from compiler.review.catalog import bundle_rows, document, recipe_rows

    catalog = session.catalog()
    if session.form == "md":
        say(document(catalog), nl=False)
        return
    bundles, known = bundle_rows(catalog), recipe_rows(catalog)
    if session.form == "json":
        said = {
            "bundles": [_said(row, "bundle") for row in bundles],
            "recipes": [_said(row, "recipe") for row in known],
        }
        say(as_json(said))
        return
    columns = ("criteria", "components", "profile", "maturity")
    say(
        table(
            [{"bundle": b.name, "recipe": b.recipe, **_cells(b)} for b in bundles], ("bundle", "recipe", *columns[1:])
        )
    )
    say("\n" + table([{"recipe": r.name, **_cells(r)} for r in known], ("recipe", *columns, "description")))


def _said(row: Row, kind: str) -> dict[str, Any]:
    profile = (
        {"name": row.profile[0], "value": row.profile[1], "others": list(row.profile[2:])} if row.profile else None
    )
    named = {"bundle": row.name, "recipe": row.recipe} if kind == "bundle" else {"recipe": row.name}
    return {
        **named,
        "criteria": dict(row.criteria),
        "components": row.components,
        "profile": profile,
        "maturity": row.maturity,
        "description": row.description,
    }


def _cells(row: Row) -> dict[str, str]:
    return {
        "criteria": _pairs(row.criteria),
        "components": "does not compile" if row.components is None else str(row.components),
        "profile": f"{row.profile[0]}={'|'.join(row.profile[1:])}" if row.profile else "",
        "maturity": row.maturity,
        "description": row.description.partition("\n")[0],
    }


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


def _pairs(items: Mapping[str, object]) -> str:
    return ",".join(f"{key}={value}" for key, value in items.items())
