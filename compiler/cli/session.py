"""What the commands of one run share: the workspace, its catalog, what is said about findings; and common options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compiler.cli.output import as_json, diagnostic_json, say, style
from compiler.errors import Diagnostic, UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from compiler.model import BundleEntry, Catalog, Workspace

WORKSPACE_FILE = "bundlec.yaml"
MOST_SHOWN = 100
"""Findings that are printed for people; a file of some other kind may have thousands."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Session:
    """One run of the command line.

    `workspace` is what -C names, `root` the workspace that was found, `form` the format of the results, `outcome` what
    to say below errors, `workspace_read` what bundlec.yaml says once it was read.
    """

    workspace: Path | None = None
    root: Path | None = None
    form: str = "text"
    outcome: str = ""
    workspace_read: Workspace | None = None

    def catalog(self) -> Catalog:
        """The catalog of the workspace; its warnings are printed. Raises UserError (BC1xxx)."""
        from compiler import pipeline

        self.root = find_root(self.workspace)
        catalog = pipeline.read_catalog(self.root)
        self.workspace_read = catalog.workspace
        self.warn(catalog.warnings)
        return catalog

    def folder(self, catalog: Catalog, out: Path | None) -> Path:
        """The folder of bundles: --out, which is relative to where we are, or the workspace's."""
        return out if out is not None else (self.root or Path()) / catalog.workspace.out

    def shown(self, path: Path) -> str:
        """`path` relative to the current folder when it lies below it."""
        from compiler import report

        return report.shown(str(path), Path(), _here())

    def warn(self, found: Sequence[Diagnostic]) -> None:
        """Print warnings, but for those that the workspace waives."""
        for text, err in self.told(found):
            say(text, err=err)

    def told(self, found: Sequence[Diagnostic]) -> list[tuple[str, bool]]:
        """What `warn` prints, as (text, whether it goes to stderr)."""
        left = self._not_waived(found)
        return [(self._text(left), True)] if left else []

    def _not_waived(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        """What `lint.waivers` of bundlec.yaml does not cover.

        On whatever day: what a command says follows from the sources alone, and `lint` tells of a waiver that ran out.
        """
        if not found or self.workspace_read is None:
            return list(found)
        from compiler.review.lint.waivers import waivers

        accepted = waivers(self.workspace_read)
        return [d for d in found if d.severity == "error" or not any(waiver.covers(d) for waiver in accepted)]

    def report(self, found: Sequence[Diagnostic]) -> None:
        """Print findings, errors among them, and their number; with `--format json` also as the result."""
        if self.form == "json":
            try:
                say(as_json({"diagnostics": diagnostic_json(found)}))
            except UserError as error:
                found = [*found, *error.diagnostics]
        text = self._text(found[:MOST_SHOWN])
        if len(found) > MOST_SHOWN:
            text += f"\n\n... and {len(found) - MOST_SHOWN} more"
        number = sum(1 for d in found if d.severity == "error")
        counted = f"{number} error{'s' if number != 1 else ''}"
        say(f"{text}\n\n{counted}{self.outcome and '; ' + self.outcome}", err=True)

    def _text(self, found: Sequence[Diagnostic]) -> str:
        from compiler import report

        try:
            here = Path.cwd()
        except OSError:  # it is gone; that may be what there is to tell
            here = Path("/")
        return report.diagnostics(found, self.root or here, style(err=True), here=here)


def find_root(workspace: Path | None) -> Path:
    """The folder of bundlec.yaml: `workspace`, or the current folder or one above. Raises UserError (BC1210)."""
    start = workspace if workspace is not None else _here()
    for folder in [start] if workspace is not None else [start, *start.parents]:
        # Also when it is no file, or a link to nothing: then that is what is wrong with it.
        if os.path.lexists(folder / WORKSPACE_FILE):
            return folder.resolve()
    where = f"{start}" if workspace is not None else f"{start} or above"
    fix = "run bundlec inside a workspace, or name one with -C DIR"
    raise UserError([Diagnostic("BC1210", f"there is no {WORKSPACE_FILE} in {where}", None, fix)])


def entries(catalog: Catalog, names: Iterable[str]) -> list[BundleEntry]:
    """The bundles or recipes of these names, each once. Raises UserError (BC2001) with all unknown ones."""
    from compiler.resolve import entry_for

    found: dict[str, BundleEntry] = {}
    missing: list[Diagnostic] = []
    for name in dict.fromkeys(names):
        try:
            found[name] = entry_for(catalog, name)
        except UserError as error:
            missing += error.diagnostics
    if missing:
        raise UserError(missing)
    return list(found.values())


def complete_name(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Bundles and recipes that begin with what was typed; none when the sources cannot be read."""
    from click.shell_completion import CompletionItem

    from compiler import pipeline
    from compiler.resolve import recipes

    try:
        catalog = pipeline.read_catalog(find_root(context.find_root().params.get("workspace")))
    except (UserError, OSError):
        return []
    names = {*catalog.workspace.bundles, *(overlay.name for overlay in recipes(catalog))}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


class DeployerName(click.ParamType):  # type: ignore[type-arg]  # not generic in older releases of click
    """One of the deployers."""

    name = "deployer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself. Raises click.BadParameter with the closest or all of the names."""
        from compiler.errors import did_you_mean
        from compiler.model import DEPLOYERS

        if value not in DEPLOYERS:
            near = did_you_mean(value, DEPLOYERS)
            self.fail(f"`{value}` is none of {', '.join(DEPLOYERS)}" + (f"; {near}" if near else ""), param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """The deployers that begin with what was typed."""
        from click.shell_completion import CompletionItem

        from compiler.model import DEPLOYERS

        return [CompletionItem(name) for name in DEPLOYERS if name.startswith(incomplete)]


class FolderName(click.Path):
    """A folder that need not exist, as a `Path`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder. Raises click.BadParameter for "": a variable that nobody set would mean the current folder."""
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


def _profiles(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    result: dict[str, str] = {}
    for value in values:
        name, equals, choice = value.partition("=")
        if not equals or not name or not choice:
            raise click.BadParameter(f"`{value}` is not NAME=VALUE")
        if result.setdefault(name, choice) != choice:
            raise click.BadParameter(f"profile `{name}` is given twice, as `{result[name]}` and as `{choice}`")
    return result


profile_option = click.option(
    "--profile", callback=_profiles, multiple=True, metavar="NAME=VALUE", help="Choose a value of the recipe's profile."
)
"""--profile NAME=VALUE, as a dict."""

name_argument = click.argument("name", metavar="BUNDLE|RECIPE", shell_complete=complete_name)
"""One bundle or recipe."""


def format_option(*forms: str) -> Callable[[F], F]:
    """--format, the first of `forms` being the default; it is kept in the session, not passed on."""

    def keep(context: click.Context, _: click.Parameter, value: str) -> None:
        context.ensure_object(Session).form = value

    return click.option(
        "--format",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        expose_value=False,
        callback=keep,
        help="Format of the result.",
    )


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        message = f"the current folder cannot be read: {error.strerror}"
        raise UserError([Diagnostic("BC1210", message, None, "change to a folder that exists")]) from error
