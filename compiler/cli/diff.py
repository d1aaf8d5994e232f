"""`diff`: what a change of the sources changes in the bundles."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli.output import as_json, say
from compiler.cli.session import Session, complete_name, find_root, format_option

if TYPE_CHECKING:
    from compiler.errors import Diagnostic
    from compiler.review.diff.model import Report

_INVENTORY = "bundle.yaml"


@click.command()
@click.argument("names", nargs=-1, metavar="[BUNDLE|RECIPE]... | DIR DIR", shell_complete=complete_name)
@click.option("--all", "everything", is_flag=True, help="Every bundle of bundlec.yaml on either side (the default).")
@click.option(
    "--base",
    metavar="REV",
    help="Compare with the merge base of the head and this revision; default: the main branch.",
)
@click.option("--exact", is_flag=True, help="Compare with the revision of --base itself.")
@click.option(
    "--head",
    default="worktree",
    show_default=True,
    metavar="REV|worktree",
    help="The other side; `worktree` holds uncommitted and untracked files, too.",
)
@click.option("--exit-code", is_flag=True, help="Exit 4 when any emitted file differs.")
@format_option("text", "md", "json")
@click.pass_obj
def diff(
    session: Session,
    names: tuple[str, ...],
    everything: bool,
    base: str | None,
    exact: bool,
    head: str,
    exit_code: bool,
) -> int:
    """Show what changes on the cluster between two revisions of the sources, or between two emitted bundles.

    Both sides are compiled by this bundlec. Exit 1 when the head does not compile; the report says why.
    """
    if everything and names:
        raise click.UsageError("give names or --all, not both")
    folders = _folders(names)
    if folders is not None:
        if base is not None or exact or head != "worktree":
            raise click.UsageError("--base, --exact and --head do not go with two folders")
        report = _of_folders(folders)
    else:
        from compiler.review.diff.sides import of_revisions

        session.root = find_root(session.workspace)
        command = _command(session, names, base, head, exact=exact)
        report = of_revisions(session.root, names, base, head, exact=exact, command=command)
    _show(session, report)
    if report.failed:
        return 1
    return 4 if exit_code and report.differs else 0


def _folders(names: tuple[str, ...]) -> tuple[Path, Path] | None:
    """Two folders of bundles, when that is what was given."""
    if len(names) != 2:
        return None
    old, new = map(Path, names)
    named = (old / _INVENTORY).is_file() or (new / _INVENTORY).is_file()
    return (old, new) if named and old.is_dir() and new.is_dir() else None


def _of_folders(folders: tuple[Path, Path]) -> Report:
    from compiler.errors import Diagnostic, UserError
    from compiler.review.diff.report import of_two
    from compiler.review.diff.snapshot import of_files
    from compiler.source import Span
    from compiler.write import read
    from compiler.write.ownership import CHECKSUMS

    both = [read(folder) for folder in folders]
    lacking = [folder for folder, files in zip(folders, both, strict=True) if CHECKSUMS not in files]
    if lacking:
        fix = "name the folder of a bundle that bundlec wrote"
        message = f"the folder holds no {CHECKSUMS}: no build of ours made it, or not as it is"
        raise UserError([Diagnostic("BC6004", message, Span(str(folder)), fix) for folder in lacking])
    sides = []
    for folder, files in zip(folders, both, strict=True):
        try:
            sides.append(of_files(files))
        except UserError as error:  # its files are those of the folder, not of the workspace
            raise UserError([_below(folder, item) for item in error.diagnostics]) from error
    old, new = sides
    command = shlex.join(["bundlec", "diff", *map(str, folders)])
    return of_two(old, new, (str(folders[0]), str(folders[1])), command)


def _below(folder: Path, item: Diagnostic) -> Diagnostic:
    from dataclasses import replace

    return replace(item, span=replace(item.span, file=f"{folder}/{item.span.file}")) if item.span else item


def _command(session: Session, names: tuple[str, ...], base: str | None, head: str, *, exact: bool) -> str:
    words = ["bundlec", *(["-C", str(session.workspace)] if session.workspace else []), "diff", *names]
    words += ["--base", base] if base is not None else []
    words += ["--exact"] if exact else []
    words += ["--head", head] if head != "worktree" else []
    return shlex.join(words)


def _show(session: Session, report: Report) -> None:
    if session.form == "json":
        from compiler.review.diff.render_json import data

        say(as_json(data(report)))
    elif session.form == "md":
        from compiler.review.diff.render_md import markdown

        say(markdown(report), nl=False)
    else:
        from compiler.review.diff.render_text import text

        say(text(report), nl=False)
