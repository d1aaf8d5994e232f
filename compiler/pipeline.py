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


class Plans:
    """The plans of one run: a bundle is compared with all others of its cluster, and each is planned once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, Plan | UserError] = {}

    def plan(self, entry: BundleEntry, flags: Flags) -> Plan:
        """As `plan_bundle`; what bundlec.yaml lists is kept."""
        if flags != Flags() or self._catalog.workspace.bundles.get(entry.name) is not entry:
            return plan_bundle(self._catalog, entry, flags)
        made = self._made.get(entry.name)
        if made is None:
            try:
                made = plan_bundle(self._catalog, entry, flags)
            except UserError as error:
                made = error
            self._made[entry.name] = made
        if isinstance(made, UserError):
            raise made
        return made


def compile_bundle(catalog: Catalog, entry: BundleEntry, flags: Flags, plans: Plans | None = None) -> Compiled:
    """Sources to files, nothing written. Raises UserError (BC2xxx to BC4xxx).

    Who compiles several bundles of a catalog gives the same `plans` to all.
    """
    plans = plans or Plans(catalog)
    planned = plans.plan(entry, flags)
    _refuse_collisions(catalog, entry, planned, plans)
    return Compiled(planned, emit(planned))


def _refuse_collisions(catalog: Catalog, entry: BundleEntry, planned: Plan, plans: Plans) -> None:
    """Raises UserError (BC3017) for what this bundle and another one for the same cluster would both own."""
    found = Collector()
    order = list(catalog.workspace.bundles)
    for other, why in beside(catalog, entry):
        try:
            theirs = plans.plan(other, Flags())
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
