"""The five stages, chained: load -> resolve -> plan -> emit -> write."""

from __future__ import annotations

from pathlib import Path

from compiler.emit import emit
from compiler.errors import Collector, UserError
from compiler.load import load
from compiler.model import BundleEntry, Catalog, Files, Flags, Plan
from compiler.plan import collide, plan
from compiler.records import dataclass
from compiler.resolve import beside, resolve
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
    _refuse_collisions(catalog, entry, planned)
    return Compiled(planned, emit(planned))


def _refuse_collisions(catalog: Catalog, entry: BundleEntry, planned: Plan) -> None:
    """Raises UserError (BC3017) for what this bundle and another one for the same cluster would both own."""
    found = Collector()
    order = list(catalog.workspace.bundles)
    for other, why in beside(catalog, entry):
        try:
            theirs = plan_bundle(catalog, other, Flags())
        except UserError:
            continue  # told when that one is compiled
        # In the order of bundlec.yaml, so that the finding is the same whichever of the two is compiled.
        pair = sorted([(entry, planned), (other, theirs)], key=lambda one: order.index(one[0].name))
        collide(pair[0], pair[1], why, found)
    found.raise_if_failed()


def write_bundle(compiled: Compiled, target: Path) -> WriteReport:
    """Files to disk, atomically. Raises UserError (BC5xxx)."""
    return write(compiled.files, target)


def check_bundle(compiled: Compiled, target: Path) -> Drift:
    """How the files on disk differ from the compiled ones. Raises UserError (BC5xxx) when they cannot be read."""
    return compare(compiled.files, target)
