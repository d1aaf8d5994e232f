"""Two revisions compiled: everything between a Git revision and the comparison."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from compiler import pipeline
from compiler.errors import Diagnostic, UserError
from compiler.model import BundleEntry, Catalog, Flags
from compiler.resolve import entry_for
from compiler.review.diff.model import Report
from compiler.review.diff.report import Side, report
from compiler.review.diff.revisions import CACHE, Repository, base_of, checked_out, repository, revision
from compiler.review.diff.snapshot import Snapshot, of_compiled
from compiler.review.diff.sources import Sources, texts

WORKTREE = "worktree"
"""What --head is called when it is not a revision: the files as they lie there, uncommitted and untracked ones too."""


def of_revisions(
    root: Path, names: Sequence[str], base: str | None, head: str, *, exact: bool = False, command: str = ""
) -> Report:
    """The comparison of a workspace between two states.

    `names` are bundles or recipes, none = every bundle that either side lists. Raises UserError: BC6005 for revisions
    that cannot be read, BC2001 for a name that neither side knows. What does not compile is in the report.
    """
    repo = repository(root)
    at, notes = base_of(repo, base, "HEAD" if head == WORKTREE else head, exact=exact)
    cache = _cache(root)
    with contextlib.ExitStack() as stack:
        old = compiled(stack.enter_context(checked_out(repo, at, cache)), names, at.label)
        new = _head(repo, root, names, head, cache, stack)
    unknown = [n for n in names if not (_knows(old, n) or _knows(new, n))]
    if unknown and not (old[0].errors or new[0].errors):
        raise UserError([_unknown(name) for name in unknown])
    sources = Sources(old[1], new[1])
    return report(old[0], new[0], sources, command, notes)


def compiled(root: Path, names: Sequence[str], label: str) -> tuple[Side, dict[str, str]]:
    """One side: its bundles, and the texts of its sources. Nothing is raised for what does not compile."""
    try:
        catalog = pipeline.read_catalog(root)
    except UserError as error:
        return Side(label, errors=_errors(error)), {}
    found: dict[str, Snapshot] = {}
    broken: dict[str, tuple[Diagnostic, ...]] = {}
    plans = pipeline.Plans(catalog)
    for entry in _entries(catalog, names):
        try:
            found[entry.name] = of_compiled(pipeline.compile_bundle(catalog, entry, Flags(), plans), catalog)
        except UserError as error:
            broken[entry.name] = _errors(error)
    return Side(label, found, broken), texts(catalog, root)


def _head(
    repo: Repository, root: Path, names: Sequence[str], head: str, cache: bytes | None, stack: contextlib.ExitStack
) -> tuple[Side, dict[str, str]]:
    if head == WORKTREE:
        return compiled(root, names, "the working tree")
    at = revision(repo, head)
    return compiled(stack.enter_context(checked_out(repo, at, cache)), names, at.label)


def _entries(catalog: Catalog, names: Sequence[str]) -> list[BundleEntry]:
    if not names:
        return list(catalog.workspace.bundles.values())
    found = []
    for name in dict.fromkeys(names):
        with contextlib.suppress(UserError):  # the other side may know it
            found.append(entry_for(catalog, name))
    return found


def _knows(side: tuple[Side, dict[str, str]], name: str) -> bool:
    return name in side[0].bundles or name in side[0].broken


def _unknown(name: str) -> Diagnostic:
    return Diagnostic(
        "BC2001", f"`{name}` is no bundle and no recipe on either side", None, "`bundlec list` prints them"
    )


def _errors(error: UserError) -> tuple[Diagnostic, ...]:
    return tuple(d for d in error.diagnostics if d.severity == "error")


def _cache(root: Path) -> bytes | None:
    """The parsed sources of the work tree: an entry is used only for a file of the same content."""
    try:
        return (root / CACHE).read_bytes()
    except OSError:
        return None
