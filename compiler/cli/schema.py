"""`schema`: the JSON Schemas of the source files and of what commands print."""

from __future__ import annotations

import click

from compiler.cli.output import as_json, say, table
from compiler.cli.session import Session, format_option


@click.command()
@click.argument("kind", required=False)
@format_option("text", "json")
@click.pass_obj
def schema(session: Session, kind: str | None) -> None:
    """Print the JSON Schema of a kind, complete in itself; without KIND the list of them (as JSON: all schemas)."""
    from compiler.errors import did_you_mean
    from compiler.load.export import kinds, standalone

    known = kinds()
    if kind is not None:
        name = next((k for k in known if k.lower() == kind.lower()), None)
        if name is None:
            near = did_you_mean(kind.capitalize(), known) or f"one of {', '.join(known)}"
            raise click.BadParameter(f"there is no schema of `{kind}`: {near}", param_hint="KIND")
        say(as_json(standalone(name)))
    elif session.form == "json":
        say(as_json({name: standalone(name) for name in known}))
    else:
        say(table([{"kind": name, "what": title} for name, title in known.items()], ("kind", "what")))
