"""`build`: compile bundles, then write or compare them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.knobs import Knobs, knob_options, shown
from compiler.cli.output import as_json, diagnostic_json, say, style
from compiler.cli.session import (
    WORKSPACE_FILE,
    DeployerName,
    FolderName,
    Session,
    complete_name,
    entries,
    find_root,
    format_option,
    profile_option,
)
from compiler.errors import Diagnostic, DriftError, UserError
from compiler.source import Span

if TYPE_CHECKING:
    from compiler.cli.memory import Memory
    from compiler.model import BundleEntry, Catalog, Flags
    from compiler.pipeline import Compiled
    from compiler.write import WriteReport

_BUNDLE = ("bundle.yaml", "checksums.txt")


@click.command()
@click.argument("bundles", nargs=-1, metavar="[BUNDLE|RECIPE]...", shell_complete=complete_name)
@click.option("--all", "everything", is_flag=True, help=f"Every bundle of {WORKSPACE_FILE}.")
@click.option(
    "--deployer",
    "deployers",
    multiple=True,
    type=DeployerName(),
    metavar="NAME",
    help="deploy.sh, helmfile, argocd or flux; repeat for several.",
)
@profile_option
@knob_options
@click.option(
    "--out",
    type=FolderName(),
    help="Write <DIR>/<bundle> instead of the workspace's out folder.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 4 when the files on disk are not what the sources compile to."
)
@format_option("text", "json")
@click.pass_obj
def build(
    session: Session,
    bundles: tuple[str, ...],
    everything: bool,
    deployers: tuple[str, ...],
    profile: dict[str, str],
    knobs: Knobs,
    out: Path | None,
    check: bool,
) -> None:
    """Compile bundles and write them, atomically; files that nobody owns are never touched.

    A name is a bundle of bundlec.yaml, or a recipe. Flags that change the content (--profile, --deployer, --set, ...)
    need --out, since what is committed must follow from the sources alone.
    """
    if everything == bool(bundles):
        raise click.UsageError("name bundles, or give --all" if not everything else "give names or --all, not both")
    session.outcome = "" if check else "nothing was written"
    memory = _memory(session)
    said = None if check else memory.recall()
    if said is not None:
        for text, err in said:
            say(text, err=err)
        return
    catalog = session.catalog()
    chosen = list(catalog.workspace.bundles.values()) if everything else entries(catalog, bundles)
    if not chosen:
        at = catalog.workspace.origin.span()
        fix = "name a recipe (`bundlec list` prints them), or add an entry to `bundles`"
        raise UserError([Diagnostic("BC2001", f"{WORKSPACE_FILE} lists no bundle: nothing to build", at, fix)])
    if out is not None and out.resolve() == session.folder(catalog, None).resolve():
        out = None  # the committed folder by its name
    if out is not None:
        _refuse_place(session, out)
    compiled, warnings = _compile(catalog, chosen, knobs.flags(profile, deployers), out)
    session.warn(warnings)
    folder = session.folder(catalog, out)
    whole = everything and out is None
    leftover = _leftover(catalog, folder) if whole else []
    if check:
        _check(session, compiled, folder, leftover)
    else:
        done = _write(session, compiled, folder)
        notes = _notes(session, compiled, leftover)
        for text, err in [*_told(session, done), *notes]:
            say(text, err=err)
        again = [(item, target, type(what)(unchanged=tuple(item.files))) for item, target, what in done]
        found = session.told([*catalog.warnings, *warnings])
        built = [(target, item.files) for item, target, _ in done]
        memory.keep(catalog, built, [*found, *_told(session, again), *notes], [folder] if whole else [])


def _memory(session: Session) -> Memory:
    """What earlier builds left, by all that decides what a build does and how it says so."""
    from compiler.cli.memory import Memory

    session.root = find_root(session.workspace)
    options = {k: v for k, v in click.get_current_context().params.items() if k != "check"}
    look = [style(err=err)("x", "bold") for err in (False, True)]
    return Memory(session.root, {**options, "here": os.getcwd(), "look": look})  # noqa: PTH109 - as the shell has it


def _compile(
    catalog: Catalog, chosen: Sequence[BundleEntry], flags: Flags, out: Path | None
) -> tuple[list[Compiled], list[Diagnostic]]:
    """All bundles, and their warnings, each once. Raises UserError with the findings of all bundles, each once."""
    from compiler import pipeline

    compiled: list[Compiled] = []
    errors, warnings = _Findings(len(chosen)), _Findings(len(chosen))
    plans = pipeline.Plans(catalog)
    for entry in chosen:
        try:
            item = pipeline.compile_bundle(catalog, entry, flags, plans)
            _refuse_unreproducible(catalog, entry, flags, out, item)
        except UserError as error:
            # What no line of the sources is to blame for concerns the bundle as a whole.
            at = entry.origin.span()
            errors.add((d if d.span else replace(d, span=at) for d in error.diagnostics), entry.name)
            continue
        warnings.add(item.plan.warnings, entry.name)
        compiled.append(item)
    if errors.bundles:
        raise UserError(errors.sorted())
    return compiled, warnings.sorted()


@dataclass
class _Findings:
    """Findings of several bundles, each once, with the bundles that have it."""

    number: int
    bundles: dict[Diagnostic, list[str]] = field(default_factory=dict)

    def add(self, found: Iterable[Diagnostic], bundle: str) -> None:
        for item in found:
            self.bundles.setdefault(item, []).append(bundle)

    def sorted(self) -> list[Diagnostic]:
        ordered = sorted(self.bundles, key=lambda d: (d.span or Span(""), d.code, d.message))
        return [self._told(item) for item in ordered]

    def _told(self, item: Diagnostic) -> Diagnostic:
        names = self.bundles[item]
        if len(names) == self.number:
            return item
        return replace(item, notes=(*item.notes, (Span(""), f"in bundle {', '.join(names)}")))


def _refuse_unreproducible(
    catalog: Catalog, entry: BundleEntry, flags: Flags, out: Path | None, compiled: Compiled
) -> None:
    """Flags that change the content may not end up in the committed folder. Raises UserError (BC5003)."""
    from compiler import pipeline
    from compiler.model import Flags as NoFlags

    if out is not None or flags == NoFlags():
        return
    if pipeline.compile_bundle(catalog, entry, NoFlags()).files == compiled.files:
        return
    message = f"{shown(flags)} changes the content of bundle `{entry.name}`"
    fix = f"give --out DIR, or write it into an entry of {WORKSPACE_FILE}"
    raise UserError([Diagnostic("BC5003", message, entry.origin.span(), fix)])


def _refuse_place(session: Session, out: Path) -> None:
    """--out may not lie where the next run would read its files as sources, or as part of a bundle: BC5001."""
    place, root = out.resolve(), (session.root or Path()).resolve()
    source = next((name for name in ("overlays", "mixins", "components") if place.is_relative_to(root / name)), None)
    try:
        bundle = next((p for p in (place, *place.parents) if all((p / name).is_file() for name in _BUNDLE)), None)
        place.is_dir()
    except OSError as error:
        raise click.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from error
    if source is not None or bundle is not None:
        what = f"among the sources below {source}/" if source else f"in the bundle {session.shown(bundle or out)}"
        fix = "name a folder of its own with --out"
        raise UserError([Diagnostic("BC5001", f"--out {out} lies {what}", None, fix)])


def _leftover(catalog: Catalog, folder: Path) -> list[Path]:
    """What lies in the workspace's out folder beside the bundles that bundlec.yaml lists; hidden entries aside."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in found if path.name not in catalog.workspace.bundles and not path.name.startswith(".")]


def _write(session: Session, compiled: Sequence[Compiled], folder: Path) -> list[tuple[Compiled, Path, WriteReport]]:
    """Write every bundle that can be written. Raises UserError (BC5xxx) when one cannot."""
    from compiler import pipeline

    done: list[tuple[Compiled, Path, WriteReport]] = []
    failed: list[Diagnostic] = []
    for item in compiled:
        target = folder / item.plan.bundle
        try:
            done.append((item, target, pipeline.write_bundle(item, target)))
        except UserError as error:
            failed += error.diagnostics
    changed = [target.name for _, target, what in done if what.touched]
    if failed:
        session.outcome = f"written: {', '.join(changed)}" if changed else "nothing was written"
        raise UserError(failed)
    return done


def _told(session: Session, done: Sequence[tuple[Compiled, Path, WriteReport]]) -> list[tuple[str, bool]]:
    """What to say of bundles that were written: (text, whether it goes to stderr)."""
    from compiler import report

    if session.form == "json":
        return [(as_json({"bundles": [_written(*one, session) for one in done], "diagnostics": []}), False)]
    look = style(err=False)
    return [("\n".join(report.written(item.plan, what, session.shown(at), look) for item, at, what in done), False)]


def _notes(session: Session, compiled: Sequence[Compiled], leftover: Sequence[Path]) -> list[tuple[str, bool]]:
    """Remarks for people, below what was done."""
    old = [
        f"note: {session.shown(path)} is no bundle that {WORKSPACE_FILE} lists; remove it, or list it"
        for path in leftover
    ]
    urls = {item.plan.settings.git.url for item in compiled if item.plan.settings.git}
    return [(text, True) for text in [*old, *_examples(urls)]]


def _written(item: Compiled, target: Path, what: WriteReport, session: Session) -> dict[str, Any]:
    return {
        "bundle": item.plan.bundle,
        "recipe": item.plan.recipe.name,
        "path": session.shown(target),
        "added": what.added,
        "changed": what.changed,
        "removed": what.removed,
        "edited": what.edited,
        "unchanged": len(what.unchanged),
    }


def _check(session: Session, compiled: Sequence[Compiled], folder: Path, leftover: Sequence[Path]) -> None:
    from compiler import pipeline
    from compiler.cli.drift import short_diff

    lines: list[str] = []
    told: list[dict[str, Any]] = []
    failed: list[Diagnostic] = []
    changed: list[tuple[str, Path, Mapping[str, bytes], tuple[str, ...]]] = []
    for item in compiled:
        target = folder / item.plan.bundle
        try:
            drift = pipeline.check_bundle(item, target)
        except UserError as error:
            failed += error.diagnostics
            continue
        if len(drift.missing) == len(item.files):
            lines.append(f"missing   {session.shown(target)}/ ({len(item.files)} files)")
        else:
            lines += drift.lines(session.shown(target))
            changed.append((session.shown(target), target, item.files, drift.changed))
        differing = {"missing": drift.missing, "changed": drift.changed, "extra": drift.extra, "modes": drift.modes}
        told.append({"bundle": item.plan.bundle, "path": session.shown(target), **differing})
    if failed:
        raise UserError(failed)
    unlisted = [f"{session.shown(path)}{'/' if path.is_dir() else ''}" for path in leftover]
    lines += [f"{'unlisted':<8}  {path}" for path in unlisted]
    if session.form == "json":
        say(as_json({"bundles": told, "unlisted": unlisted, "diagnostics": diagnostic_json([])}))
    elif lines:
        hunks = list(short_diff(changed))
        say("\n".join([*lines, *(["", *hunks] if hunks else [])]))
    if lines:
        number = f"{len(lines)} difference{'s' if len(lines) != 1 else ''}"
        fixes = ["`bundlec build` writes the files"] if len(lines) > len(unlisted) else []
        fixes += [f"list in {WORKSPACE_FILE} or remove what is unlisted"] if unlisted else []
        raise DriftError(f"{number} from what the sources compile to; {', '.join(fixes)}", lines)
    if session.form != "json":
        count = len(compiled)
        say(f"{count} bundle{' is' if count == 1 else 's are'} what the sources compile to")


def _examples(urls: Iterable[str]) -> list[str]:
    """A remark for each repository that cannot be the user's own."""
    return [
        f"note: the bundles read themselves from {url}; set `git.url` in {WORKSPACE_FILE} to your repository"
        for url in sorted(urls)
        if f".{_host(url)}".endswith(".example.com")
    ]


def _host(url: str) -> str:
    """The host of a repository: `https://user@host:443/path`, `ssh://...` or the scp form `user@host:path`."""
    rest = url.partition("://")[2] or url
    return rest.partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
