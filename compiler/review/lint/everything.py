"""Every recipe compiled on every deployer: all bundles, all recipes without one, all values of their profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compiler import pipeline
from compiler.errors import Collector, Diagnostic, UserError
from compiler.model import DEPLOYERS, BundleEntry, Catalog, Flags, InputSpec, Overlay, Plan
from compiler.records import dataclass
from compiler.resolve import recipes
from compiler.resolve.criteria import chain, effective, maximal_leaves
from compiler.review.lint.findings import Findings

_ALL = Flags(deployers=DEPLOYERS)
# Where the workspace names no repository: the files that need one are compiled as well, and thrown away.
_GIT = ("https://git.example.com/bundles.git", "main")


@dataclass(frozen=True)
class Compiled:
    """A plan of a variant. `name` is the bundle or recipe, `bundle` tells whether bundlec.yaml lists it."""

    name: str
    bundle: bool
    plan: Plan


@dataclass(frozen=True)
class _Variant:
    name: str
    entry: BundleEntry
    flags: Flags
    bundle: bool


def compile_all(catalog: Catalog, findings: Findings) -> list[Compiled]:
    """The plans of all variants that compile, with all deployers; errors and warnings go to `findings`.

    Records BC7007 for a recipe whose required input no bundle sets.
    """
    done: list[Compiled] = []
    plans = pipeline.Plans(catalog)
    for variant in _variants(catalog, findings):
        findings.compilations += 1
        try:
            item = pipeline.compile_bundle(catalog, variant.entry, variant.flags, plans)
        except UserError as error:
            for found in error.diagnostics:
                span = found.span or variant.entry.origin.span()
                findings.add(replace(found, span=span), variant.name)
            continue
        for warning in item.plan.warnings:
            findings.add(warning, variant.name)
        done.append(Compiled(variant.name, variant.bundle, item.plan))
    return done


def _variants(catalog: Catalog, findings: Findings) -> Iterator[_Variant]:
    chosen: dict[str, set[str]] = {}
    prefixes = {b.prefix or b.name for b in catalog.workspace.bundles.values()}
    prefix = next(p for p in ("lint", *(f"lint{n}" for n in range(len(prefixes) + 1))) if p not in prefixes)
    for entry in catalog.workspace.bundles.values():
        if entry.recipe is not None:
            chosen.setdefault(entry.recipe, set()).update(entry.profile.values() or {""})
        yield _Variant(entry.name, _with_git(catalog, entry), _ALL, bundle=True)
    for overlay in recipes(catalog):
        overlays = applied(catalog, overlay)
        inputs = _inputs(catalog, overlay, overlays, findings)
        if inputs is None:
            continue
        entry = BundleEntry(overlay.name, overlay.origin, overlay.name, {}, prefix, {}, inputs, {}, (), {})
        entry = _with_git(catalog, entry)
        profile = next((o.profile for o in overlays if o.profile is not None), None)
        seen = chosen.get(overlay.name, set())
        if profile is None:
            if overlay.name not in chosen:
                yield _Variant(overlay.name, entry, _ALL, bundle=False)
            continue
        covered = {profile.default if value == "" else value for value in seen}
        for value in profile.values:
            if value not in covered:
                flags = Flags(profile={profile.name: value}, deployers=DEPLOYERS)
                yield _Variant(f"{overlay.name} with {profile.name}={value}", entry, flags, bundle=False)


def applied(catalog: Catalog, overlay: Overlay) -> list[Overlay]:
    """The overlays that a recipe is made of, in no particular order."""
    criteria = effective(catalog.overlays, Collector())
    leaves = maximal_leaves(catalog.overlays, criteria, criteria[overlay.name])
    found = {o.name: o for leaf in (*leaves, overlay.name) for o in chain(catalog.overlays, leaf)}
    return list(found.values())


def _inputs(catalog: Catalog, overlay: Overlay, overlays: list[Overlay], findings: Findings) -> dict[str, Any] | None:
    """The required inputs of a recipe as some bundle sets them; None when a bundle of its own will do, or none does."""
    specs: dict[str, InputSpec] = {spec.name: spec for o in overlays for spec in o.inputs}
    entries = list(catalog.workspace.bundles.values())
    entries.sort(key=lambda entry: entry.recipe != overlay.name)
    given: dict[str, Any] = {}
    for name, spec in sorted(specs.items()):
        if not spec.required or spec.default is not None:
            continue
        setter = next((entry for entry in entries if name in entry.inputs), None)
        if setter is None:
            findings.add(
                Diagnostic(
                    "BC7007",
                    f"recipe `{overlay.name}` needs the input `{name}`, and no bundle sets it: nothing compiles it",
                    spec.origin.span(),
                    f"add a bundle of it to bundlec.yaml, with `inputs: {{{name}: ...}}`",
                    "warning",
                )
            )
            return None
        given[name] = setter.inputs[name]
    return given


def _with_git(catalog: Catalog, entry: BundleEntry) -> BundleEntry:
    git = {**catalog.workspace.settings.get("git", {}), **entry.settings.get("git", {})}
    if git.keys() & {"url", "revision"}:
        return entry
    url, revision = _GIT
    return replace(entry, settings={**entry.settings, "git": {**git, "url": url, "revision": revision}})
