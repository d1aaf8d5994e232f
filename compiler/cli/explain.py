"""`explain`: why a recipe, a value, an object or an order is as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from compiler.cli.knobs import Knobs, knob_options
from compiler.cli.output import as_json, say, style
from compiler.cli.session import Session, entries, format_option, name_argument, profile_option

_USES = """\b
bundlec explain RECIPE                  overlays, mixins and components, and who brought them
bundlec explain RECIPE COMPONENT        all values of a component, each with its line
bundlec explain RECIPE COMPONENT PATH   one value: its line, and the chain that it overrode
"""


@click.command(epilog=_USES)
@name_argument
@click.argument("component", required=False)
@click.argument("path", required=False)
@click.option("--object", "object_", metavar="KIND/[NAMESPACE/]NAME", help="Who renders this object, and from what.")
@click.option("--edge", nargs=2, metavar="A B", help="The edge between two releases or components.")
@click.option("--gate", metavar="ID", help="What a release is held back for, and why.")
@click.option("--order", nargs=2, metavar="A B", help="Why A comes before B: the shortest chain of reasons.")
@profile_option
@knob_options
@format_option("text", "json")
@click.pass_obj
def explain(
    session: Session,
    name: str,
    component: str | None,
    path: str | None,
    object_: str | None,
    edge: tuple[str, str] | None,
    gate: str | None,
    order: tuple[str, str] | None,
    profile: dict[str, str],
    knobs: Knobs,
) -> None:
    """Answer "why": what a recipe is made of, which line gave a value, who renders an object, why A precedes B."""
    from compiler import pipeline
    from compiler.resolve import resolve
    from compiler.review.explain import objects, text, value
    from compiler.review.explain import order as ordering
    from compiler.review.explain import recipe as composed

    asked = [option for option in (object_, edge, gate, order) if option is not None]
    if len(asked) > 1 or (asked and component):
        raise click.UsageError("ask one thing: COMPONENT [PATH], --object, --edge, --gate or --order")
    look = style(err=False)
    catalog = session.catalog()
    (entry,) = entries(catalog, [name])
    flags = knobs.flags(profile)
    if asked:
        plan = pipeline.plan_bundle(catalog, entry, flags)
        if object_ is not None:
            found = objects.stories(catalog, plan, object_)
            _answer(session, found, text.objects(found, look))
        elif edge is not None:
            joined = ordering.edges(plan, *edge)
            _answer(session, joined, text.edges(joined, look))
        elif gate is not None:
            held = ordering.gate(plan, gate)
            _answer(session, held, text.gate(held, look))
        elif order is not None:
            chain = ordering.order(plan, *order)
            _answer(session, chain, text.order(chain, look))
        return
    recipe = resolve(catalog, entry, flags)
    if component is None:
        told = composed.story(catalog, entry, flags, recipe)
        _answer(session, told, text.recipe(told, look))
        return
    resolved = value.component_of(catalog, recipe, component)
    if path is not None:
        said = value.story(recipe, resolved, path)
        _answer(session, said, text.value(said, look))
        return
    told = composed.story(catalog, entry, flags, recipe)
    mine = next(c for c in told.components if c.name == resolved.name)
    leaves = tuple(value.below(resolved))
    _answer(session, {"component": mine, "values": leaves}, text.component(mine, leaves, look))


def _answer(session: Session, data: Any | Sequence[Any], words: str) -> None:
    from compiler.review.explain.model import as_data

    say(as_json(as_data(data)) if session.form == "json" else words)
