"""The command line. Flags in, exit status out; the work is done by the stages that `pipeline` chains.

Exit status: 0 ok, 1 the input is wrong, 2 usage, 3 a bug of ours, 4 drift found, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.errors import BundlecError, Diagnostic, DriftError, UserError

if TYPE_CHECKING:
    from compiler.model import BundleEntry, Catalog, Flags
    from compiler.report import Style

WORKSPACE_FILE = "bundlec.yaml"


@dataclass(frozen=True)
class Place:
    """Where the command runs: the workspace root, and how paths below it are shown."""

    root: Path

    def shown(self, path: Path) -> str:
        """`path` relative to the current folder when it lies below it."""
        try:
            return str(path.resolve().relative_to(Path.cwd()))
        except ValueError:
            return str(path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="bundlec", prog_name="bundlec")
@click.option(
    "-C", "--workspace", type=click.Path(path_type=Path), help="Folder that holds bundlec.yaml; default: here or above."
)
@click.pass_context
def cli(context: click.Context, workspace: Path | None) -> None:
    """Compile recipes into GitOps bundles for GPU Kubernetes clusters.

    A recipe is a composition of overlays, mixins and components; a bundle is what it renders to: plain files for
    deploy.sh,
    helmfile, Argo CD and Flux.
    """
    context.obj = workspace


def _profiles(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    result: dict[str, str] = {}
    for value in values:
        name, equals, choice = value.partition("=")
        if not equals or not name or not choice:
            raise click.BadParameter(f"`{value}` is not name=value")
        if result.setdefault(name, choice) != choice:
            raise click.BadParameter(f"profile `{name}` is given twice")
    return result


_profile = click.option(
    "--profile", callback=_profiles, multiple=True, metavar="NAME=VALUE", help="Choose a value of the recipe's profile."
)
_format = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@cli.command()
@click.argument("bundles", nargs=-1, metavar="[BUNDLE|RECIPE]...")
@click.option("--all", "everything", is_flag=True, help="Every bundle of bundlec.yaml.")
@click.option(
    "--deployer",
    "deployers",
    multiple=True,
    metavar="NAME",
    help="deploy.sh, helmfile, argocd or flux; repeat for several.",
)
@_profile
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write <DIR>/<bundle> instead of the workspace's out folder.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 4 when the files on disk are not what the sources compile to."
)
@click.pass_obj
def build(
    workspace: Path | None,
    bundles: tuple[str, ...],
    everything: bool,
    deployers: tuple[str, ...],
    profile: dict[str, str],
    out: Path | None,
    check: bool,
) -> None:
    """Compile bundles and write them, atomically; files that nobody owns are never touched.

    A name is a bundle of bundlec.yaml, or a recipe. Flags that change the content (--profile, --deployer) need --out,
    since what is committed must follow from the sources alone.
    """
    from compiler import pipeline
    from compiler.model import Flags

    if everything == bool(bundles):
        raise click.UsageError("name bundles, or give --all" if not everything else "give names or --all, not both")
    with _reported(workspace) as place:
        catalog = pipeline.read_catalog(place.root)
        flags = Flags(profile=profile, deployers=deployers or None)
        chosen = _entries(catalog, bundles, everything=everything)
        compiled = []
        failed: list[Diagnostic] = []
        for entry in chosen:
            try:
                compiled.append(pipeline.compile_bundle(catalog, entry, flags))
                _refuse_unreproducible(catalog, entry, flags, out)
            except UserError as error:
                failed += [d for d in error.diagnostics if d not in failed]
        if failed:
            raise UserError(failed)
        folder = out if out is not None else place.root / catalog.workspace.out
        drift: list[str] = []
        for item in compiled:
            target = folder / item.plan.bundle
            _warn(item.plan.warnings, place)
            if check:
                drift += pipeline.check_bundle(item, target).lines(place.shown(target))
                continue
            report = pipeline.write_bundle(item, target)
            _say_written(item.plan, report, place.shown(target))
        if drift:
            raise DriftError(
                f"{len(drift)} files are not what the sources compile to; `bundlec build --all` writes them", drift
            )
        if check:
            click.echo(f"{len(compiled)} bundles are what the sources compile to")
        else:
            _say_repository(item.plan.settings.git.url for item in compiled if item.plan.settings.git)


@cli.command("list")
@_format
@click.pass_obj
def list_(workspace: Path | None, form: str) -> None:
    """The bundles of bundlec.yaml and the recipes that can be compiled."""
    from compiler import pipeline
    from compiler.resolve import recipes

    with _reported(workspace) as place:
        catalog = pipeline.read_catalog(place.root)
        rows = [
            {
                "bundle": e.name,
                "recipe": e.recipe or "",
                "profile": ",".join(f"{k}={v}" for k, v in sorted(e.profile.items())),
            }
            for e in catalog.workspace.bundles.values()
        ]
        known = recipes(catalog)
        if form == "json":
            _json({"bundles": rows, "recipes": [overlay.name for overlay in known]})
            return
        _table(rows, ("bundle", "recipe", "profile"))
        click.echo()
        described = [{"recipe": o.name, "maturity": o.maturity, "description": o.description} for o in known]
        _table(described, ("recipe", "maturity", "description"))


@cli.command()
@click.argument("name", metavar="BUNDLE|RECIPE")
@_profile
@click.pass_obj
def resolve(workspace: Path | None, name: str, profile: dict[str, str]) -> None:
    """Print the resolved recipe: criteria, overlays, components with their final values."""
    from compiler import pipeline
    from compiler.emit.bundle import recipe_document
    from compiler.model import Flags
    from compiler.resolve import resolve as resolve_entry
    from compiler.yamlio import dump

    with _reported(workspace) as place:
        catalog = pipeline.read_catalog(place.root)
        (entry,) = _entries(catalog, (name,))
        click.echo(dump(recipe_document(resolve_entry(catalog, entry, Flags(profile=profile)))), nl=False)


@cli.command()
@click.argument("name", metavar="BUNDLE|RECIPE")
@_profile
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True)
@click.pass_obj
def graph(workspace: Path | None, name: str, profile: dict[str, str], form: str) -> None:
    """Print the order of deployment: every edge with its reasons, every gate with its checks."""
    from compiler import graph as draw
    from compiler import pipeline
    from compiler.model import Flags

    with _reported(workspace) as place:
        catalog = pipeline.read_catalog(place.root)
        (entry,) = _entries(catalog, (name,))
        plan = pipeline.plan_bundle(catalog, entry, Flags(profile=profile))
        _warn(plan.warnings, place)
        click.echo({"text": draw.text, "mermaid": draw.mermaid, "dot": draw.dot}[form](plan).rstrip("\n"))


@cli.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
def verify(folders: tuple[Path, ...]) -> None:
    """Verify emitted bundles: checksums both ways, and that every deployer's files hold every edge and gate.

    Needs the bundle's folder only, no sources.
    """
    from compiler import proof
    from compiler.write import read

    with _reported(None, needed=False):
        found: list[Diagnostic] = []
        for folder in folders:
            found += [_below(d, folder) for d in proof.verify(read(folder))]
        if found:
            raise UserError(found)
        for folder in folders:
            click.echo(f"{folder}: checksums, files and order hold")


def _entries(catalog: Catalog, names: tuple[str, ...], *, everything: bool = False) -> list[BundleEntry]:
    from compiler.resolve import entry_for

    if everything:
        return list(catalog.workspace.bundles.values())
    found: dict[str, BundleEntry] = {}
    missing: list[Diagnostic] = []
    for name in names:
        try:
            found[name] = entry_for(catalog, name)
        except UserError as error:
            missing += error.diagnostics
    if missing:
        raise UserError(missing)
    return list(found.values())


def _refuse_unreproducible(catalog: Catalog, entry: BundleEntry, flags: Flags, out: Path | None) -> None:
    """Flags that change the content may not end up in the committed folder."""
    if out is not None:
        return
    changing = [f"--profile {k}={v}" for k, v in flags.profile.items() if entry.profile.get(k) != v]
    if flags.deployers is not None:
        from compiler.model import DEPLOYERS

        own = entry.settings.get("deployers", catalog.workspace.settings.get("deployers", DEPLOYERS))
        if set(own) != set(flags.deployers):
            changing.append("--deployer " + " --deployer ".join(flags.deployers))
    if changing:
        raise UserError(
            [
                Diagnostic(
                    "BC5003",
                    f"{' '.join(changing)} changes the content of bundle `{entry.name}`",
                    entry.origin.span(),
                    f"give --out DIR, or write it into an entry of {WORKSPACE_FILE}",
                )
            ]
        )


def _below(item: Diagnostic, folder: Path) -> Diagnostic:
    """A diagnostic of a file of a bundle, its place shown from here."""
    from dataclasses import replace

    if item.span is None or not item.span.file:
        return item
    return replace(item, span=replace(item.span, file=str(folder / item.span.file)))


@contextmanager
def _reported(workspace: Path | None, *, needed: bool = True) -> Iterator[Place]:
    """Turns errors into text on stderr and an exit status; gives the workspace."""
    root = Path.cwd()
    try:
        if needed:
            root = _root(workspace)
        yield Place(root)
    except UserError as error:
        from compiler import report

        click.echo(report.diagnostics(error.diagnostics, root, _style()), err=True)
        number = sum(1 for d in error.diagnostics if d.severity == "error")
        click.echo(f"\n{number} error{'s' if number != 1 else ''}; nothing was written", err=True)
        sys.exit(error.exit_code)
    except DriftError as error:
        for line in error.paths:
            click.echo(line, err=True)
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except BundlecError as error:
        click.echo(f"bundlec: internal error: {error}\nThis is a bug of bundlec, not of your input.", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _root(workspace: Path | None) -> Path:
    start = workspace if workspace is not None else Path.cwd()
    for folder in [start] if workspace is not None else [start, *start.parents]:
        if (folder / WORKSPACE_FILE).is_file():
            return folder.resolve()
    raise UserError(
        [
            Diagnostic(
                "BC1210",
                f"no {WORKSPACE_FILE} in {start}" + ("" if workspace else " or above"),
                None,
                "run bundlec inside a workspace, or name one with -C DIR",
            )
        ]
    )


def _style() -> Style:
    from compiler.report import plain

    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        return plain
    return lambda text, colour: (
        click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour, bold=True)
    )


def _warn(found: tuple[Diagnostic, ...], place: Place) -> None:
    if found:
        from compiler import report

        click.echo(report.diagnostics(found, place.root, _style()), err=True)


def _say_written(plan: Any, done: Any, target: str) -> None:
    from compiler import report

    click.echo(report.written(plan, done, target, _style() if sys.stdout.isatty() else report.plain))


def _say_repository(urls: Iterator[str]) -> None:
    from urllib.parse import urlsplit

    for url in sorted(set(urls)):
        host = urlsplit(url).hostname or ""
        if host == "example.com" or host.endswith(".example.com"):
            click.echo(
                f"note: the bundles read themselves from {url}; set `git.url` in {WORKSPACE_FILE} to your repository",
                err=True,
            )


def _table(rows: list[dict[str, str]], columns: tuple[str, ...]) -> None:
    width = {c: max([len(c), *(len(r[c]) for r in rows)]) for c in columns}
    for row in [{c: c.upper() for c in columns}, *rows]:
        click.echo("  ".join(row[c].ljust(width[c]) for c in columns).rstrip())


def _json(data: Any) -> None:
    import json

    click.echo(json.dumps(data, indent=2))


def main() -> None:
    """The console script: `cli`, with ^C as status 130 and anything unforeseen as status 3 without a traceback."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("BUNDLEC_DEBUG"):
            raise
        click.echo(
            f"bundlec: internal error: {type(error).__name__}: {error}\n"
            "This is a bug of bundlec, not of your input. BUNDLEC_DEBUG=1 shows the traceback.",
            err=True,
        )
        sys.exit(3)


if __name__ == "__main__":
    main()
