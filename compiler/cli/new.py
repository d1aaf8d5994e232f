"""`new`: source files that compile as they are, to begin with."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
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
        if found.setdefault(key, wanted) != wanted:
            raise click.BadParameter(f"`{key}` is given twice, as `{found[key]}` and as `{wanted}`")
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

    def compiles(again: Catalog) -> None:
        if not is_recipe(again.overlays[name]):
            return
        entry = entry_for(again, name)
        # A recipe's name may be too long for a prefix; the entry of a bundle has one of its own.
        prefix = scaffold.short_prefix(name, {b.prefix or b.name for b in again.workspace.bundles.values()})
        pipeline.compile_bundle(again, replace(entry, prefix=prefix), Flags())

    again = _write(session, files, compiles)
    rest = scaffold.unread(name, catalog, criteria)
    if rest:
        say(f"no criterion was read from {', '.join(rest)} of the name; --criteria KEY=VALUE gives one", err=True)
    if is_recipe(again.overlays[name]):
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
    # Where it must have inputs, those of another bundle of the recipe show what they look like.
    like = next((b for b in entries.values() if b.recipe == recipe and b.inputs), None)
    file = _root(session) / WORKSPACE_FILE
    text = scaffold.bundle(
        catalog.workspace.origin.document,
        file.read_text(encoding="utf-8"),
        name,
        recipe,
        prefix or scaffold.short_prefix(name, taken),
        like.inputs if like and scaffold.needs_inputs(catalog, recipe) else {},
    )

    def compiles(again: Catalog) -> None:
        pipeline.compile_bundle(again, again.workspace.bundles[name], Flags())

    _write(session, {WORKSPACE_FILE: text}, compiles)
    if like and scaffold.needs_inputs(catalog, recipe):
        say(f"its inputs are those of {like.name}: set your own", err=True)
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


def _write(session: Session, files: Mapping[str, str], check: Callable[[Catalog], None] | None = None) -> Catalog:
    """Write the files and read the catalog with them; where it or `check` has a finding, they are taken back."""
    from compiler.write import replace_file, take_back

    root = _root(session)
    before = {name: _content(root / name) for name in files}
    try:
        for name, text in files.items():
            replace_file(root / name, text.encode())
        again = session.catalog()
        if check is not None:
            check(again)
    except OSError as error:
        message = f"{error.filename or next(iter(files))} cannot be written: {error.strerror}"
        raise UserError([Diagnostic("BC5002", message, None, "look at the folder's permissions")]) from error
    except UserError as error:
        for name, data in before.items():
            take_back(root / name, data, root)
        session.outcome = "nothing was written"
        raise UserError([_elsewhere(d, files) for d in error.diagnostics]) from error
    for name in files:
        say(session.shown(root / name))
    return again


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _elsewhere(found: Diagnostic, files: Mapping[str, str]) -> Diagnostic:
    # The place is gone with the file, and what stands there now is not what was found.
    gone = found.span is not None and found.span.file in files
    return replace(found, span=None) if gone else found
