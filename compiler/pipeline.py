"""The five stages, chained: load -> resolve -> plan -> emit -> write."""

from __future__ import annotations

from pathlib import Path

from compiler.emit import emit
from compiler.load import load
from compiler.model import BundleEntry, Catalog, Files, Flags, Plan
from compiler.plan import plan
from compiler.records import dataclass
from compiler.resolve import resolve
from compiler.write import Drift, WriteReport, compare, write


@dataclass(frozen=True)
class Compiled:
    """A bundle in memory: its plan (which holds the recipe) and its files."""

    plan: Plan
    files: Files


def read_catalog(root: Path) -> Catalog:
    """The sources below a workspace root. Raises UserError (BC1xxx)."""
    return load(root)


def plan_bundle(catalog: Catalog, entry: BundleEntry, flags: Flags) -> Plan:
    """Sources to plan. Raises UserError (BC2xxx, BC3xxx)."""
    return plan(resolve(catalog, entry, flags))


def compile_bundle(catalog: Catalog, entry: BundleEntry, flags: Flags) -> Compiled:
    """Sources to files, nothing written. Raises UserError (BC2xxx to BC4xxx)."""
    planned = plan_bundle(catalog, entry, flags)
    return Compiled(planned, emit(planned))


def write_bundle(compiled: Compiled, target: Path) -> WriteReport:
    """Files to disk, atomically. Raises UserError (BC5xxx)."""
    return write(compiled.files, target)


def check_bundle(compiled: Compiled, target: Path) -> Drift:
    """How the files on disk differ from the compiled ones. Raises UserError (BC5xxx) when they cannot be read."""
    return compare(compiled.files, target)
