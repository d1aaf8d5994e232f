"""The pieces that several kinds share: predicates, assertions, checks, constraints, notes, refs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from compiler import predicates
from compiler.durations import parse_duration
from compiler.errors import Collector
from compiler.load.node import Node
from compiler.model import (
    ApiUse,
    Assertion,
    Check,
    ComponentRef,
    Constraint,
    ManifestRef,
    Need,
    Note,
    OnTimeout,
    Predicate,
    ReadinessOverride,
    Scope,
    Until,
    vocabulary,
)
from compiler.source import Origin
from compiler.versions import VersionError, parse_expression

_CHECK_KINDS = (
    "crd",
    "deployment",
    "statefulset",
    "daemonset",
    "job",
    "field",
    "condition",
    "every",
    "gone",
    "nodes",
    "webhook",
)
_ALIASES_OF_ENABLED = ("enabled", "install")


@dataclass
class Parts:
    """Builds the shared pieces. `predicates` gathers every predicate met, so that their references can be checked."""

    found: Collector
    predicates: list[Predicate] = field(default_factory=list)

    def predicate(self, node: Node, *, component: str | None = None, objects: bool = False) -> Predicate:
        """A predicate; BC1209 for what is wrong with it."""
        before = len(self.found.found)
        predicate = predicates.parse(node.data, node.origin, self.found, component=component, objects=objects)
        if len(self.found.found) == before:
            self.predicates.append(predicate)
        return predicate

    def when(self, node: Node, *, component: str | None = None, objects: bool = False) -> Predicate | None:
        """The predicate below `when`, if any."""
        below = node.find("when")
        return self.predicate(below, component=component, objects=objects) if below else None

    def assertion(self, node: Node, *, component: str | None = None) -> Assertion:
        """An entry of assertions, rules or policies."""
        return Assertion(
            id=node.data["id"],
            that=self.predicate(node.down("that"), component=component, objects=True),
            when=self.when(node, component=component, objects=True),
            message=node.data["message"],
            severity=node.get("severity", "error"),
            origin=node.origin,
            reason=node.get("reason"),
        )

    def assertions(self, node: Node, key: str, *, component: str | None = None) -> tuple[Assertion, ...]:
        """The list below `key`; an id that stands twice is BC1203."""
        result = tuple(self.assertion(item, component=component) for item in node.items(key))
        self.unique(((a.id, a.origin.down("id")) for a in result), "assertion")
        return result

    def check(self, node: Node, name: str, *, component: str | None = None) -> Check:
        """A check; its namespace stays open, since the component's may be changed by a ref."""
        kind = next(k for k in _CHECK_KINDS if k in node)
        when = self.when(node, component=component)
        if kind == "crd":
            return Check(id=name, kind=kind, origin=node.origin, name=node.data[kind], when=when)
        body = node.down(kind)
        op = next((o for o in ("equals", "notEquals", "present") if o in body), None) if kind == "field" else None
        value = body.get("status", "True") if kind == "condition" else body.get(op or "equals")
        nodes = body.get("min", 1) if kind == "nodes" else body.get("minNodes")
        return Check(
            id=name,
            kind=kind,
            origin=node.origin,
            name=body.get("service") if kind == "webhook" else body.get("name"),
            namespace=body.get("namespace"),
            group=body.get("group", ""),
            version=body.get("version", ""),
            object_kind=body.get("kind", ""),
            resource=body.get("resource", ""),
            path=body.get("path"),
            op=op,
            value=None if op == "present" else value,
            type=body.get("type"),
            selector=body.get("selector"),
            min_nodes=nodes,
            min_ready=body.get("minReady"),
            when=when,
        )

    def note(self, node: Node, *, component: str | None = None) -> Note:
        """A prerequisite."""
        check = node.find("check")
        name = node.data["id"]
        return Note(name, node.data["text"], self.check(check, name, component=component) if check else None)

    def constraint(self, node: Node) -> Constraint:
        """A constraint; BC2013 when its expression is not well-formed."""
        value = node.data["value"]
        try:
            parse_expression(value)
        except VersionError as error:
            fix = 'write it like ">= 1.34", ">= 1.34, < 2", or a plain text that must be the same'
            self.found.error("BC2013", str(error), node.down("value").origin, fix=fix)
        return Constraint(node.data["name"], value, node.get("severity", "error"), node.get("remediation"), node.origin)

    def constraints(self, node: Node, key: str = "constraints") -> tuple[Constraint, ...]:
        """The list below `key`; a name that stands twice is BC1203."""
        result = tuple(self.constraint(item) for item in node.items(key))
        self.unique(((c.name, c.origin.down("name")) for c in result), "constraint")
        return result

    def manifest(self, node: Node, *, component: str | None = None) -> ManifestRef:
        """A manifest or example file: its name, or a mapping with `file` and `when`."""
        if isinstance(node.data, str):
            return ManifestRef(node.data, None, node.origin)
        return ManifestRef(node.data["file"], self.when(node, component=component), node.origin)

    def manifests(self, node: Node, key: str, *, component: str | None = None) -> tuple[ManifestRef, ...]:
        """The list below `key`."""
        return tuple(self.manifest(item, component=component) for item in node.items(key))

    def api(self, node: Node, *, component: str | None = None) -> ApiUse:
        """An entry of `requires` or `creates`."""
        return ApiUse(
            group=node.data["group"],
            kind=node.data["kind"],
            name=node.get("name"),
            namespace=node.get("namespace"),
            own_crd=node.get("ownCRD", False),
            when=self.when(node, component=component),
            origin=node.origin,
        )

    def need(self, node: Node, key: str, *, component: str | None = None) -> Need:
        """An edge: the name of a component, or a mapping that names it below `key`."""
        if isinstance(node.data, str):
            return Need(node.data, "applied", None, None, remove=False, origin=node.origin)
        return Need(
            component=node.data[key],
            until=cast("Until", node.get("until", "applied")),
            when=self.when(node, component=component),
            reason=node.get("reason"),
            remove=node.get("remove", False),
            origin=node.origin,
        )

    def component_ref(self, node: Node) -> ComponentRef:
        """An entry of componentRefs, of a profile value or of an input's effects.

        `when:` inside a ref may name the component's own values with a leading dot.
        """
        name = node.data["name"]
        overrides = node.find("overrides")
        values = dict(overrides.data) if overrides else {}
        enabled = self._enabled(node, overrides, values)
        readiness = node.find("readiness")
        return ComponentRef(
            name=name,
            origin=node.origin,
            enabled=enabled,
            version=node.get("version"),
            version_reason=node.get("reason"),
            namespace=node.get("namespace"),
            values_file=node.get("valuesFile"),
            overrides=values,
            overrides_origin=overrides.origin if overrides else None,
            dependency_refs=tuple(self.need(n, "name", component=name) for n in node.items("dependencyRefs")),
            pre_manifests=self.manifests(node, "preManifestFiles", component=name),
            manifests=self.manifests(node, "manifestFiles", component=name),
            readiness=self._readiness(readiness) if readiness else ReadinessOverride(),
            health_check_skip=node.get("healthCheckSkip"),
        )

    def component_refs(self, node: Node, key: str = "componentRefs") -> tuple[ComponentRef, ...]:
        """The list below `key`; a component that stands twice is BC1203."""
        result = tuple(self.component_ref(item) for item in node.items(key))
        self.unique(((r.name, r.origin.down("name")) for r in result), "component")
        return result

    def unique(self, names: Any, what: str) -> None:
        """Record BC1203 for every name that stands twice in one list; `names` yields (name, origin)."""
        seen: dict[str, Origin] = {}
        for name, origin in names:
            if name in seen:
                self.found.error(
                    "BC1203",
                    f"the {what} `{name}` stands twice in one list",
                    origin,
                    fix="merge the two entries",
                    notes=((seen[name], "here first"),),
                )
            else:
                seen[name] = origin

    def _enabled(self, node: Node, overrides: Node | None, values: dict[str, Any]) -> bool | None:
        """`enabled` of a ref, wherever it was written; its aliases are taken out of `values`."""
        said: dict[bool, Origin] = {}
        if node.get("enabled") is not None:
            said[node.data["enabled"]] = node.down("enabled").origin
        for alias in _ALIASES_OF_ENABLED:
            if overrides is None or alias not in values:
                continue
            value = values.pop(alias)
            origin = overrides.down(alias).origin
            if value is None:
                continue
            switched = vocabulary.switch(value)
            if switched is None:
                self.found.error(
                    "BC1102",
                    f"`{alias}` at the top of overrides switches the component: true or false",
                    origin,
                )
                continue
            said.setdefault(switched, origin)
        if len(said) > 1:
            one, other = said.values()
            self.found.error(
                "BC1203", "one ref both enables and disables the component", other, notes=((one, "and here"),)
            )
        return next(iter(said), None)

    def _readiness(self, node: Node) -> ReadinessOverride:
        timeout = node.get("timeout")
        return ReadinessOverride(
            timeout=None if timeout is None else parse_duration(timeout),
            on_timeout=cast("OnTimeout | None", node.get("onTimeout")),
            min_nodes=node.get("minNodes"),
            scope=cast("Scope | None", node.get("scope")),
        )
