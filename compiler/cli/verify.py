"""`verify`: whether bundles on disk are what was built, and hold their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli.output import as_json, say
from compiler.cli.session import Session, format_option
from compiler.errors import Diagnostic, UserError
from compiler.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compiler.model import Files


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@format_option("text", "json")
@click.pass_obj
def verify(session: Session, folders: tuple[Path, ...]) -> None:
    """Verify emitted bundles: checksums both ways, modes, and that every deployer's files hold every edge and gate.

    Needs the bundles' folders only, no sources.
    """
    from compiler import proof
    from compiler.write import read, wrong_modes

    found: list[Diagnostic] = []
    for folder in folders:
        try:
            files = read(folder)
            found += [_below(d, folder) for d in (*proof.verify(files), *_modes(wrong_modes(folder, files), files))]
        except UserError as error:
            found += error.diagnostics
    if found:
        raise UserError(found)
    if session.form == "json":
        say(as_json({"bundles": [str(folder) for folder in folders], "diagnostics": []}))
    else:
        say("\n".join(f"{folder}: checksums, files and order hold" for folder in folders))


def _modes(paths: Iterable[str], files: Files) -> Iterator[Diagnostic]:
    """What is executable and was not built so, or the reverse: content that begins with `#!` is."""
    for path in paths:
        runs = files[path].startswith(b"#!")
        message = f"{path} is {'not ' if runs else ''}executable, and was {'' if runs else 'not '}built so"
        yield Diagnostic("BC6002", message, Span(path), f"chmod {'+x' if runs else '-x'} {path}, or build it again")


def _below(item: Diagnostic, folder: Path) -> Diagnostic:
    """A diagnostic of a file of a bundle, its place shown from here."""
    if item.span is None or not item.span.file:
        return item
    return replace(item, span=replace(item.span, file=str(folder / item.span.file)))
