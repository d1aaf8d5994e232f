"""Who needs which API, and who brings it: the edges that follow from the objects themselves.

For our own manifests the kinds are read from the objects; for charts, which are not rendered at compile time, from the
component's `crds`, `requires` and `creates`. An API is brought by Kubernetes itself, by a CRD of a component of the
recipe (in a chart, a manifest, or at run time by an operator), or by the cluster (`clusterProvides`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compiler import predicates
from compiler.errors import Collector
from compiler.model import PIECES, Crd, Facts, KubeObject, Piece, Reason, Recipe
from compiler.plan.scope import BUILT_IN_GROUPS
from compiler.records import dataclass
from compiler.source import Origin, Span

Rendered = Mapping[str, Mapping[Piece, tuple[KubeObject, ...]]]
"""Component -> piece -> objects, as manifests.render returns it."""


@dataclass(frozen=True)
class Use:
    """A component's piece uses an API. `what` says it in words, for diagnostics and reasons."""

    component: str
    piece: Piece
    group: str
    kind: str
    what: str
    origin: Origin | None
    chart: bool = False  # the chart itself, not a manifest of ours


@dataclass(frozen=True)
class ApiEdge:
    """`dependant`'s piece needs `crd`, which `provider` brings with its piece `provider_piece`."""

    dependant: str
    piece: Piece
    provider: str
    provider_piece: Piece
    crd: Crd
    reason: Reason

    @property
    def runtime(self) -> bool:
        """Whether the CRD only appears once an operator has reconciled a custom resource."""
        return self.reason.kind == "runtime-api"


def api_edges(recipe: Recipe, rendered: Rendered, facts: Facts, collector: Collector) -> tuple[ApiEdge, ...]:
    """The edges that APIs ask for, one per (dependant, piece, CRD), in the order of components and pieces.

    An edge inside one component (`provider == dependant`) is returned only from its main to its post piece.
    Records BC3003 (nothing brings it), BC3005 (two owners), BC3014 (its creator is not asked for it), BC3016 (it cannot
    be there yet).
    """
    brought = _brought(recipe, facts, collector)
    provided = {(api.group, api.kind) for api in recipe.cluster_provides}
    result: dict[tuple[str, Piece, str], ApiEdge] = {}
    missing: dict[tuple[str, str, str], list[Use]] = {}
    unasked: dict[str, tuple[str, Crd, list[Use]]] = {}
    for use in _uses(recipe, rendered, facts):
        if use.group in BUILT_IN_GROUPS:
            continue
        providers = brought.get((use.group, use.kind), {})
        if not providers:
            if (use.group, use.kind) not in provided:
                missing.setdefault((use.component, use.group, use.kind), []).append(use)
            continue
        provider = _provider(use, providers)
        crd = providers[provider]
        piece: Piece = "main"
        kind = "api"
        if crd.source == "image":
            kind = "runtime-api"
            creator = _creator(recipe, rendered, facts, provider, crd)
            if creator is None:
                unasked.setdefault(crd.name, (provider, crd, []))[2].append(use)
                continue
            provider, piece = creator
        elif crd.source == "manifests":
            piece = _piece_with_crd(rendered, provider, crd)
        if provider == use.component and PIECES.index(use.piece) <= PIECES.index(piece):
            if not use.chart:
                _report_too_early(use, crd, piece, collector)
            continue  # what a chart uses of its own CRDs is the chart's own affair
        reason = Reason(kind, f"{use.what} uses {use.group}/{use.kind}, {_brings(provider, crd)}", use.origin)
        result.setdefault(
            (use.component, use.piece, crd.name), ApiEdge(use.component, use.piece, provider, piece, crd, reason)
        )
    for uses in missing.values():
        _report_missing(recipe, uses, collector)
    for provider, crd, uses in unasked.values():
        _report_unasked(rendered, provider, crd, uses, collector)
    return tuple(result.values())


def crd_names(recipe: Recipe, facts: Facts) -> tuple[str, ...]:
    """The names of the CRDs that the recipe's components bring, sorted, without those whose `when` does not hold.

    A CRD with `purge: false` is left out: others use it, too, so not even purging may delete it.
    """
    active = [crd for _, crd in _active(recipe, facts)]
    kept = {crd.name for crd in active if not crd.purge}
    return tuple(sorted({crd.name for crd in active} - kept))


def owned_crds(recipe: Recipe, facts: Facts) -> frozenset[str]:
    """The names of the CRDs of which a component that takes part is the owner."""
    return frozenset(crd.name for _, crd in _active(recipe, facts) if crd.owner)


def _active(recipe: Recipe, facts: Facts) -> Iterator[tuple[str, Crd]]:
    for component in recipe.enabled():
        for crd in component.component.crds:
            if crd.when is None or predicates.evaluate(crd.when, facts):
                yield component.name, crd


def _uses(recipe: Recipe, rendered: Rendered, facts: Facts) -> list[Use]:
    found: list[Use] = []
    for component in recipe.enabled():
        for piece, objects in rendered.get(component.name, {}).items():
            found += [Use(component.name, piece, o.group, o.kind, f"{o.kind} {o.name}", o.origin) for o in objects]
        spec = component.component
        own = {(crd.group, crd.kind) for crd in spec.crds}
        for api in (*spec.requires, *spec.creates):
            if api.own_crd and (api.group, api.kind) in own:
                continue
            if api.when is None or predicates.evaluate(api.when, facts):
                found.append(Use(component.name, "main", api.group, api.kind, "the chart", api.origin, chart=True))
    return found


def _brought(recipe: Recipe, facts: Facts, collector: Collector) -> dict[tuple[str, str], dict[str, Crd]]:
    """(group, kind) -> component -> CRD, over what is active in this recipe. Settles ownership of shared CRDs."""
    result: dict[tuple[str, str], dict[str, Crd]] = {}
    for component, crd in _active(recipe, facts):
        result.setdefault((crd.group, crd.kind), {})[component] = crd
    for providers in result.values():
        if len(providers) < 2:
            continue
        owners = [name for name, crd in providers.items() if crd.owner]
        unshared = [name for name, crd in providers.items() if not crd.shared]
        if len(owners) != 1 or unshared:
            names = ", ".join(f"`{name}`" for name in sorted(providers))
            crds = [providers[name] for name in sorted(providers)]
            collector.error(
                "BC3005",
                f"CRD {crds[0].name} is brought by {names}, and {len(owners) or 'none'} of them owns it",
                crds[0].origin,
                fix="mark it `shared: true` in each of them and `owner: true` in exactly one",
                notes=[(crd.origin, "also brought here") for crd in crds[1:]],
            )
    return result


def _provider(use: Use, providers: Mapping[str, Crd]) -> str:
    """Which of several providers a use waits for: itself, else the owner, else the only one."""
    if use.component in providers:
        return use.component
    owners = sorted(name for name, crd in providers.items() if crd.owner)
    return owners[0] if owners else min(providers)


def _creator(recipe: Recipe, rendered: Rendered, facts: Facts, provider: str, crd: Crd) -> tuple[str, Piece] | None:
    """Who makes the operator create a run-time CRD: (component, piece); None when nobody does."""
    if crd.after_kind is None:
        return provider, "main"
    for name, pieces in rendered.items():
        for piece, objects in pieces.items():
            if any(_asks(o, crd) for o in objects):
                return name, piece
    for component in recipe.enabled():
        for api in component.component.creates:
            wanted = (api.group, api.kind) == (crd.after_group, crd.after_kind)
            if wanted and (api.when is None or predicates.evaluate(api.when, facts)):
                return component.name, "main"
    return None


def _asks(made: KubeObject, crd: Crd) -> bool:
    """Whether an object is the one after which the CRD appears, with the path that asks for it."""
    if (made.group, made.kind) != (crd.after_group, crd.after_kind):
        return False
    value: Any = made.data
    for step in (crd.after_path or "").split(".") if crd.after_path else ():
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return value is not None


def _report_too_early(use: Use, crd: Crd, piece: Piece, collector: Collector) -> None:
    """An object in the release that brings its CRD, or in one before: Helm refuses a release with an unknown kind."""
    where = "the same release as" if use.piece == piece else "a release before"
    brings = f"the {crd.after_kind} after which CRD {crd.name} appears" if crd.after_kind else f"CRD {crd.name}"
    if crd.source == "manifests":
        fix = "list the CRD's file in `preManifestFiles` (`manifests.pre`), or the object's in `manifestFiles`"
    elif piece == "post":
        fix = "move it to a component of its own, which then waits for the CRD"
    else:
        fix = "list it in `manifestFiles` (`manifests.post`): the chart comes first there"
    collector.error(
        "BC3016",
        f"{use.what} of `{use.component}` stands in {where} {brings}: Helm refuses a release with an unknown kind",
        use.origin,
        fix=fix,
    )


def _report_unasked(rendered: Rendered, provider: str, crd: Crd, uses: list[Use], collector: Collector) -> None:
    makers = [
        made
        for pieces in rendered.values()
        for objects in pieces.values()
        for made in objects
        if (made.group, made.kind) == (crd.after_group, crd.after_kind)
    ]
    names = ", ".join(use.what for use in uses)
    if makers:
        missing = f"{makers[0].kind} `{makers[0].name}` has no `{crd.after_path}`"
    else:
        missing = f"no {crd.after_kind} is in the bundle"
    collector.error(
        "BC3014",
        f"{names} need CRD {crd.name}, which `{provider}` creates at run time after a {crd.after_kind} with "
        f"`{crd.after_path}`, but {missing}",
        makers[0].origin if makers else uses[0].origin,
        fix=f"set `{crd.after_path}` in the {crd.after_kind}, or leave out what needs the CRD",
        notes=[(use.origin or Span(""), f"{use.what} of `{use.component}`") for use in uses],
    )


def _piece_with_crd(rendered: Rendered, provider: str, crd: Crd) -> Piece:
    for piece, objects in rendered.get(provider, {}).items():
        if any(o.kind == "CustomResourceDefinition" and o.name == crd.name for o in objects):
            return piece
    return "main"


def _brings(provider: str, crd: Crd) -> str:
    if crd.source != "image":
        return f"a CRD of {provider}"
    return f"a CRD that {provider} creates at run time" + (f" after {crd.after_kind}" if crd.after_kind else "")


def _report_missing(recipe: Recipe, uses: list[Use], collector: Collector) -> None:
    """One finding for all objects of a component that use an API which nothing brings."""
    use = uses[0]
    what = f"{use.what} of `{use.component}` uses"
    if len(uses) > 1:
        what = f"{use.what} and {len(uses) - 1} more of `{use.component}` use"
    message = f"nothing brings the API {use.group}/{use.kind} that {what}"
    fix = "add the component that brings it, or list it in the recipe's `clusterProvides`"
    could = [
        component
        for component in recipe.components.values()
        if any((crd.group, crd.kind) == (use.group, use.kind) for crd in component.component.crds)
    ]
    notes: list[tuple[Origin, str]] = []
    off = [component for component in could if not component.enabled]
    if off:
        message = f"`{off[0].name}` is disabled: {message}"
        notes = [(component.disabled_by or component.brought_by, "it is disabled here") for component in off]
        fix = f"enable `{off[0].name}`, or disable `{use.component}` as well"
    elif could:
        fix = f"component `{could[0].name}` brings it only under a condition that does not hold here"
    collector.error("BC3003", message, use.origin, fix=fix, notes=notes)
