"""`new`: source files that compile as they are, to begin with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import say
from compiler.cli.session import WORKSPACE_FILE, Session
from compiler.errors import Diagnostic, UserError

if TYPE_CHECKING:
    from compiler.model import Catalog

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _name(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter("lower-case letters, digits and `-`, at most 63, a letter or digit at both ends")
    return value


name_argument = click.argument("name", callback=_name)


@click.group()
def new() -> None:
    """Write a new component, overlay, mixin or bundle that compiles as it stands, and say what to do next."""


@new.command()
@name_argument
@click.option("--chart", nargs=3, metavar="REPOSITORY NAME VERSION", help="A Helm chart instead of own manifests.")
@click.pass_obj
def component(session: Session, name: str, chart: tuple[str, str, str] | None) -> None:
    """A folder below components/: of a chart with --chart, else of one manifest."""
    from compiler import scaffold

    catalog = session.catalog()
    _refuse_taken(session, f"component `{name}`", catalog.components.get(name), Path("components") / name)
    files = scaffold.component(name, chart, _schema(session, "component", Path("components") / name))
    _write(session, files)
    say(f"a recipe takes it with one line below `componentRefs` of an overlay: - name: {name}", err=True)


def _criteria(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, str]:
    from compiler.model import CRITERIA

    found: dict[str, str] = {}
    for part in value.split(",") if value else ():
        key, equals, wanted = part.partition("=")
        if key not in CRITERIA or key == "nodes" or not equals or not wanted:
            raise click.BadParameter(f"`{part}` is not KEY=VALUE with a key of {', '.join(CRITERIA[:-1])}")
        found[key] = wanted
    return found


@new.command()
@name_argument
@click.option("--base", metavar="OVERLAY", help="What it builds on; default: the one that states most of its criteria.")
@click.option("--criteria", callback=_criteria, metavar="KEY=VALUE,...", help="Default: read from the name.")
@click.pass_obj
def overlay(session: Session, name: str, base: str | None, criteria: dict[str, str]) -> None:
    """A recipe, or a step towards several: gb200-gke-cos-inference is read as accelerator, service, os and intent."""
    from compiler import pipeline, scaffold
    from compiler.model import Flags
    from compiler.resolve import entry_for
    from compiler.resolve.criteria import is_recipe

    catalog = session.catalog()
    _refuse_taken(session, f"overlay `{name}`", catalog.overlays.get(name), None)
    (file,) = scaffold.overlay(catalog, name, base, criteria, None)
    files = scaffold.overlay(catalog, name, base, criteria, _schema(session, "overlay", Path(file).parent))
    _refuse_taken(session, f"overlay `{name}`", None, Path(file))
    _write(session, files)
    again = session.catalog()
    rest = scaffold.unread(name, catalog, criteria)
    if rest:
        say(f"no criterion was read from {', '.join(rest)} of the name; --criteria KEY=VALUE gives one", err=True)
    if is_recipe(again.overlays[name]):
        entry = entry_for(again, name)
        # A recipe's name may be too long for a prefix; the entry of a bundle has one of its own.
        prefix = scaffold.short_prefix(name, {b.prefix or b.name for b in again.workspace.bundles.values()})
        pipeline.compile_bundle(again, replace(entry, prefix=prefix), Flags())
        say(f"it is a recipe: bundlec new bundle NAME --recipe {name}; bundlec build NAME", err=True)
    else:
        say("it is no recipe yet: it states no criteria of its own", err=True)


@new.command()
@name_argument
@click.pass_obj
def mixin(session: Session, name: str) -> None:
    """A part that overlays share: constraints and components."""
    from compiler import scaffold

    catalog = session.catalog()
    _refuse_taken(session, f"mixin `{name}`", catalog.mixins.get(name), Path("mixins") / f"{name}.yaml")
    _write(session, scaffold.mixin(name, _schema(session, "mixin", Path("mixins"))))
    say(f"an overlay takes it with `mixins: [{name}]`", err=True)


@new.command()
@name_argument
@click.option("--recipe", required=True, help="What it renders (bundlec list).")
@click.option(
    "--prefix", callback=lambda c, p, v: v if v is None else _name(c, p, v), help="Default: its name, or short."
)
@click.pass_obj
def bundle(session: Session, name: str, recipe: str, prefix: str | None) -> None:
    """An entry of bundlec.yaml: a recipe for one cluster."""
    from compiler import pipeline, scaffold
    from compiler.model import Flags
    from compiler.resolve import entry_for

    catalog = session.catalog()
    entries = catalog.workspace.bundles
    _refuse_taken(session, f"bundle `{name}`", entries.get(name), None)
    if recipe not in catalog.overlays:
        entry_for(catalog, recipe)  # says what is near
    taken = {b.prefix or b.name for b in entries.values()}
    file = _root(session) / WORKSPACE_FILE
    text = scaffold.bundle(
        catalog.workspace.origin.document,
        file.read_text(encoding="utf-8"),
        name,
        recipe,
        prefix or scaffold.short_prefix(name, taken),
    )
    _write(session, {WORKSPACE_FILE: text})
    again: Catalog = session.catalog()
    pipeline.compile_bundle(again, again.workspace.bundles[name], Flags())
    say(f"bundlec build {name} writes it", err=True)


def _root(session: Session) -> Path:
    assert session.root is not None  # the catalog was read
    return session.root


def _schema(session: Session, kind: str, folder: Path) -> str | None:
    """The schema for editors, relative to the file; None where the tree lacks it (`bundlec schema` prints it)."""
    schema = _root(session) / "compiler" / "schemas" / f"{kind}.schema.json"
    return os.path.relpath(schema, _root(session) / folder) if schema.is_file() else None


def _refuse_taken(session: Session, what: str, known: Any, path: Path | None) -> None:
    there = path is not None and os.path.lexists(_root(session) / path)
    if known is not None or there:
        at = known.origin.span() if known is not None else None
        where = f"; {path} is there" if at is None else ""
        raise UserError([Diagnostic("BC1203", f"{what} exists already{where}", at, "choose another name")])


def _write(session: Session, files: Mapping[str, str]) -> None:
    from compiler.write import replace_file

    for name, text in files.items():
        target = _root(session) / name
        try:
            replace_file(target, text.encode())
        except OSError as error:
            message = f"{name} cannot be written: {error.strerror}"
            raise UserError([Diagnostic("BC5002", message, None, "look at the folder's permissions")]) from error
        say(session.shown(target))
