"""From components and their edges to releases and theirs: pieces, direct needs, gates.

An edge lands on the provider's last piece (on its chart for `api`), starts at the dependant's first, and skips pieces
that render nothing: those are emitted, so that what they held is pruned, but nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from compiler import predicates
from compiler.errors import Collector
from compiler.model import (
    PIECES,
    Check,
    Crd,
    Drift,
    Edge,
    Facts,
    Gate,
    GateCheck,
    KubeObject,
    Piece,
    Reason,
    Recipe,
    Release,
    ResolvedComponent,
    Until,
)
from compiler.plan.apis import ApiEdge, Rendered, owned_crds
from compiler.plan.edges import Declared
from compiler.plan.gates import Binder, merged, nothing_to_wait_for

_RANK: Mapping[Until, int] = {"applied": 0, "api": 1, "ready": 2}


@dataclass
class _Wait:
    """What is known of one (provider release, dependant release) pair while edges are gathered."""

    until: Until = "applied"
    reasons: list[Reason] = field(default_factory=list)
    checks: list[GateCheck] = field(default_factory=list)

    def add(self, until: Until, reason: Reason, checks: Iterable[GateCheck] = ()) -> None:
        if _RANK[until] > _RANK[self.until]:
            self.until = until
        if reason.text not in [r.text for r in self.reasons]:
            self.reasons.append(reason)
        self.checks += checks


class ReleaseBuilder:
    """Builds the releases of a recipe in the given order of components."""

    def __init__(self, recipe: Recipe, rendered: Rendered, facts: Facts, binder: Binder, collector: Collector) -> None:
        self._recipe = recipe
        self._rendered = rendered
        self._facts = facts
        self._binder = binder
        self._collector = collector
        self._waits: dict[str, dict[str, _Wait]] = {}
        self._owned = owned_crds(recipe, facts)

    def build(
        self, order: Iterable[str], declared: Iterable[Declared], apis: Iterable[ApiEdge]
    ) -> tuple[tuple[Release, ...], tuple[Edge, ...]]:
        """Releases in order of deployment and the edges between them, by dependant in that order.

        Records BC3015 for an edge that asks for more than `applied` of a provider that declares nothing to look at.
        """
        names = list(order)
        ids = [release_id(name, piece) for name in names for piece in self.pieces(name)]
        for name in names:
            self._join_pieces(name)
        for edge in declared:
            self._declare(edge)
        for api in apis:
            self._require(api)
        place = {release: number for number, release in enumerate(ids)}
        releases = tuple(self._release(name, piece, place) for name in names for piece in self.pieces(name))
        edges = tuple(
            Edge(provider, dependant, wait.until, tuple(sorted(wait.reasons, key=lambda r: (r.kind, r.text))))
            for dependant in ids
            for provider, wait in sorted(self._waits.get(dependant, {}).items(), key=lambda item: place[item[0]])
        )
        return releases, edges

    def pieces(self, name: str) -> list[Piece]:
        """The pieces that a component has, rendered or empty; the main one always."""
        rendered = self._rendered.get(name, {})
        return [piece for piece in PIECES if piece == "main" or piece in rendered]

    def empty(self, name: str) -> bool:
        """Whether a component applies nothing at all in this recipe."""
        return not self._full(name)

    def _full(self, name: str) -> list[Piece]:
        """The pieces that apply something."""
        component = self._recipe.components[name].component
        rendered = self._rendered.get(name, {})
        return [p for p in self.pieces(name) if rendered.get(p) or (p == "main" and component.chart is not None)]

    def _wait(self, provider: str, dependant: str) -> _Wait:
        return self._waits.setdefault(dependant, {}).setdefault(provider, _Wait())

    def _join_pieces(self, name: str) -> None:
        full = self._full(name)
        for before, after in pairwise(full):
            reason = Reason("piece", f"{release_id(name, after)} follows {release_id(name, before)}")
            wait = self._wait(release_id(name, before), release_id(name, after))
            component = self._recipe.components[name]
            checks = self._binder.readiness(component, component.component.readiness_api) if after == "post" else ()
            wait.add("api" if checks else "applied", reason, checks)

    def _declare(self, edge: Declared) -> None:
        dependant, provider = self._full(edge.dependant), self._full(edge.provider)
        if not dependant or not provider:
            return
        target = self._recipe.components[edge.provider]
        piece = provider[-1]
        checks: tuple[GateCheck, ...] = ()
        until = edge.until
        if until == "ready":
            checks = self._binder.readiness(target, target.component.readiness_ready)
            if target.component.readiness_ready is None:
                nothing_to_wait_for(edge.dependant, edge.provider, until, edge.reason.origin, self._collector)
        elif until == "api":
            piece = "main" if "main" in provider else piece
            checks = self._api_checks(target, self._crds(target))
            if not checks:
                nothing_to_wait_for(edge.dependant, edge.provider, until, edge.reason.origin, self._collector)
        if not checks:
            until = "applied"  # every check was bound to something that this bundle does not render
        self._wait(release_id(edge.provider, piece), release_id(edge.dependant, dependant[0])).add(
            until, edge.reason, checks
        )

    def _require(self, edge: ApiEdge) -> None:
        dependant = self._full(edge.dependant)
        if not dependant:
            return
        provider = self._recipe.components[edge.provider]
        owner = self._recipe.components[self._crd_owner(edge)]
        checks = [self._binder.established(owner, edge.crd)]
        if edge.runtime:
            checks += self._binder.readiness(owner, owner.component.readiness_ready)
        else:
            checks += self._binder.readiness(provider, provider.component.readiness_api)
        first = edge.piece if edge.dependant == edge.provider else dependant[0]
        wait = self._wait(release_id(edge.provider, edge.provider_piece), release_id(edge.dependant, first))
        wait.add("ready" if edge.runtime else "api", edge.reason, checks)

    def _crd_owner(self, edge: ApiEdge) -> str:
        """Whose CRD it is: the creating custom resource of a run-time CRD may be another component's."""
        for component in self._recipe.enabled():
            if edge.crd in component.component.crds:
                return component.name
        return edge.provider

    def _crds(self, component: ResolvedComponent) -> list[Crd]:
        return [
            replace(crd, shared=False) if self._inherits(crd) else crd
            for crd in component.component.crds
            if crd.source != "image" and (crd.when is None or predicates.evaluate(crd.when, self._facts))
        ]

    def _inherits(self, crd: Crd) -> bool:
        """Whether a shared CRD falls to a component that does not own it: the owner takes no part, and somebody has to
        bring it up to date.
        """
        return crd.shared and not crd.owner and crd.name not in self._owned

    def _drift(self, component: ResolvedComponent) -> tuple[Drift, ...]:
        """What GitOps may not compare. A CRD that falls to this component is no longer another one's to change."""
        mine = {crd.name for crd in component.component.crds if self._inherits(crd)}
        return tuple(d for d in component.component.drift if d.kind != "CustomResourceDefinition" or d.name not in mine)

    def _crds_before(self, component: ResolvedComponent, crds: Iterable[Crd]) -> tuple[str, ...]:
        """CRDs that are applied before Helm is asked: those that say so, and those of which the chart has objects
        itself while nothing waits for the release; Helm 4 then does not wait until they are Established, either.
        """
        spec = component.component
        unawaited = {
            (api.group, api.kind)
            for api in spec.creates
            if spec.install.wait == "none"
            and api.own_crd
            and (api.when is None or predicates.evaluate(api.when, self._facts))
        }
        wanted = [crd for crd in crds if crd.apply_before or (crd.group, crd.kind) in unawaited]
        return tuple(sorted(crd.name for crd in wanted if crd.source == "crds"))

    def _api_checks(self, component: ResolvedComponent, crds: Iterable[Crd]) -> tuple[GateCheck, ...]:
        declared = self._binder.readiness(component, component.component.readiness_api)
        return declared or tuple(self._binder.established(component, crd) for crd in crds)

    def _release(self, name: str, piece: Piece, place: Mapping[str, int]) -> Release:
        component = self._recipe.components[name]
        spec = component.component
        this = release_id(name, piece)
        waits = self._waits.get(this, {})
        providers = sorted(waits, key=lambda p: place[p])
        gated = [p for p in providers if waits[p].checks]
        chart = spec.chart if piece == "main" else None
        objects = self._rendered.get(name, {}).get(piece, ())
        crds = self._crds(component) if piece == "main" else []
        if chart is not None and component.version is not None:
            chart = replace(chart, version=component.version)
        last = (self._full(name) or ["main"])[-1]
        before = self._crds_before(component, crds) if chart is not None else ()
        return Release(
            id=this,
            component=name,
            piece=piece,
            namespace=component.namespace,
            chart=chart,
            values=component.chart_values if chart is not None else {},
            objects=objects,
            needs=tuple(providers),
            gate=Gate(this, tuple(gated), merged(c for p in gated for c in waits[p].checks)) if gated else None,
            install=spec.install,
            crds_before=before,
            crds_on_upgrade=_upgraded(crds, before) if chart is not None else (),
            crd_upgrade="skip" if any((c.shared and not c.owner) or c.upgrade == "never" for c in crds) else "replace",
            keep=_keeps(component, crds, objects),
            drift=self._drift(component) if chart is not None else (),
            hooks=spec.hooks if chart is not None else (),
            teardown_before=self._teardown(component, piece, last),
            stuck=spec.teardown.stuck if piece in ("main", last) else (),
        )

    def _teardown(self, component: ResolvedComponent, piece: Piece, last: Piece) -> tuple[Check, ...]:
        """What must hold before this piece is removed.

        Everything holds before the component's last piece goes, the first to be removed. Only what the component itself
        renders cannot be gone by then: that is asked for before the chart, its operator, goes.
        """
        bound = self._binder.bind(component, component.component.teardown.before)
        return tuple(check for check in bound if piece == ("main" if self._own(component, check) else last))

    def _own(self, component: ResolvedComponent, check: Check) -> bool:
        """Whether a `gone` check is about a kind of which the component renders objects."""
        if check.kind != "gone":
            return False
        name = f"{check.resource}.{check.group}"
        kinds = {(o.group, o.kind) for made in self._rendered.get(component.name, {}).values() for o in made}
        return any(
            crd.name == name and (crd.group, crd.kind) in kinds
            for c in self._recipe.enabled()
            for crd in c.component.crds
        )


def _upgraded(crds: Iterable[Crd], before: Collection[str]) -> tuple[str, ...]:
    """CRDs that an upgrade brings up to date: of crds/, not another component's, not to be left alone (`never`)."""
    mine = [crd for crd in crds if crd.source == "crds" and crd.upgrade != "never" and (crd.owner or not crd.shared)]
    return tuple(sorted(crd.name for crd in mine if crd.name not in before))


def _keeps(component: ResolvedComponent, crds: Iterable[Crd], objects: Iterable[KubeObject]) -> bool:
    """Whether uninstalling this release would delete CRDs, and with them every custom resource of the cluster."""
    if not component.component.teardown.keep_crds:
        return False
    return any(crd.source == "templates" for crd in crds) or any(o.kind == "CustomResourceDefinition" for o in objects)


def release_id(component: str, piece: Piece) -> str:
    """`<component>`, `<component>-pre` or `<component>-post`."""
    return component if piece == "main" else f"{component}-{piece}"
