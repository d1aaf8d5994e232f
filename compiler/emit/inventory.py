"""The inventory of a bundle, `bundle.yaml`: what is applied, in which order, behind which gates; and its reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compiler.durations import format_duration, parse_duration
from compiler.emit.gatelib import teardown_checks
from compiler.errors import Diagnostic, UserError
from compiler.model import Check, Edge, Files, Gate, GateCheck, Plan, Reason
from compiler.records import dataclass
from compiler.source import Document, Span
from compiler.yamlio import load

FILE = "bundle.yaml"
API_VERSION = "bundlec.dev/v1alpha1"

_WORKLOADS = ("deployment", "statefulset", "daemonset", "job")


@dataclass(frozen=True)
class Inventory:
    """What a bundle promises. `releases` are in order of deployment; `edges` and `gates` as in the plan."""

    bundle: str
    deployers: tuple[str, ...]
    releases: tuple[str, ...]
    edges: tuple[Edge, ...]
    gates: tuple[Gate, ...]
    recipe_digest: str  # sha256 of recipe.yaml, hexadecimal
    teardown: tuple[tuple[str, tuple[GateCheck, ...]], ...] = ()  # release id -> what its removal waits for


def inventory_of(plan: Plan, recipe_digest: str = "") -> Inventory:
    """The inventory of a plan: what `read_inventory` gives for the emitted bundle."""
    scale = plan.settings.gates.timeout_scale
    return Inventory(
        plan.bundle,
        plan.settings.deployers,
        tuple(r.id for r in plan.releases),
        plan.edges,
        tuple(r.gate for r in plan.releases if r.gate),
        recipe_digest,
        tuple((r.id, teardown_checks(r, scale)) for r in plan.releases if r.teardown_before),
    )


def read_inventory(files: Files) -> Inventory:
    """Parse `bundle.yaml`. Raises `UserError` BC6004 when it is missing or is not the inventory of a bundle."""
    if FILE not in files:
        raise _not_a_bundle(f"{FILE} is missing", "name the folder of a bundle that bundlec wrote")
    document = load(files[FILE].decode("utf-8", "replace"), FILE)
    data = document.data
    if not isinstance(data, dict) or (data.get("apiVersion"), data.get("kind")) != (API_VERSION, "Bundle"):
        raise _not_a_bundle(f"{FILE} is not of kind Bundle, {API_VERSION}", "build the bundle again")
    try:
        spec = data["spec"]
        return Inventory(
            data["metadata"]["name"],
            tuple(spec["deployers"]),
            tuple(item["id"] for item in spec["releases"]),
            tuple(_edge(item) for item in spec["edges"]),
            tuple(_gate(item, document, number) for number, item in enumerate(spec["gates"])),
            spec["recipe"]["sha256"],
            tuple((r["id"], _checks(r["teardown"], document)) for r in spec["releases"] if "teardown" in r),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_a_bundle(f"{FILE} cannot be understood: {error!r}", "build the bundle again") from error


def edge_data(edge: Edge) -> dict[str, Any]:
    """An edge as `bundle.yaml` holds it."""
    return {
        "provider": edge.provider,
        "dependant": edge.dependant,
        "until": edge.until,
        "hard": edge.hard,
        "reasons": [{"kind": reason.kind, "text": reason.text} for reason in edge.reasons],
    }


def gate_data(gate: Gate) -> dict[str, Any]:
    """A gate as `bundle.yaml` holds it."""
    return {
        "release": gate.id,
        "after": list(gate.after),
        "checks": checks_data(gate.checks),
    }


def checks_data(checks: Iterable[GateCheck]) -> list[dict[str, Any]]:
    """The checks of a gate, or of a release's removal, as `bundle.yaml` holds them."""
    return [
        {
            "id": item.check.id,
            "provider": item.provider,
            "timeout": format_duration(item.timeout),
            "onTimeout": item.on_timeout,
            "scope": item.scope,
            **check_data(item.check),
        }
        for item in checks
    ]


def check_data(check: Check) -> dict[str, Any]:
    """A bound check in the notation of the source files: one key, its kind."""
    return {check.kind: check.name if check.kind == "crd" else dict(_fields(check))}


def check_of(identifier: str, data: Mapping[str, Any], document: Document) -> Check:
    """The inverse of `check_data`; keys that are no kind of check are left alone. Raises KeyError, ValueError."""
    kind = next((key for key in data if key in _KINDS), None)
    if kind is None:
        raise ValueError(f"the check {identifier} is of no known kind")
    body = data[kind]
    fields: dict[str, Any] = {"name": body} if kind == "crd" else {}
    for key, value in (body if isinstance(body, dict) else {}).items():
        if key in _COMPARISONS:
            fields["op"], fields["value"] = key, None if key == "present" else value
        else:
            fields[_ATTRIBUTES[kind, key] if (kind, key) in _ATTRIBUTES else _ATTRIBUTES["", key]] = value
    return Check(id=identifier, kind=kind, origin=document.at(), **fields)


_KINDS = ("crd", *_WORKLOADS, "field", "condition", "every", "gone", "nodes", "webhook")
_COMPARISONS = ("equals", "notEquals", "present")
# (kind or "", key of the notation) -> attribute of Check
_ATTRIBUTES: Mapping[tuple[str, str], str] = {
    ("", "group"): "group",
    ("", "version"): "version",
    ("", "kind"): "object_kind",
    ("", "resource"): "resource",
    ("", "namespace"): "namespace",
    ("", "name"): "name",
    ("", "path"): "path",
    ("", "type"): "type",
    ("", "minNodes"): "min_nodes",
    ("", "minReady"): "min_ready",
    ("condition", "status"): "value",
    ("nodes", "selector"): "selector",
    ("nodes", "min"): "min_nodes",
    ("webhook", "service"): "name",
}


def _fields(check: Check) -> Iterator[tuple[str, Any]]:
    if check.kind in {"field", "condition", "every", "gone"}:
        yield "group", check.group
        if check.kind != "gone":
            yield "version", check.version
            yield "kind", check.object_kind
        yield "resource", check.resource
    if check.kind == "nodes":
        yield "selector", check.selector
        yield from _given("min", check.min_nodes)
        return
    yield from _given("namespace", check.namespace)
    yield from _given("service" if check.kind == "webhook" else "name", check.name)
    if check.kind in _WORKLOADS:
        yield from _given("minNodes", check.min_nodes)
        yield from _given("minReady", check.min_ready)
    elif check.kind == "condition":
        yield "type", check.type
        yield from _given("status", check.value)
    elif check.kind in {"field", "every"}:
        yield "path", check.path
        op = check.op or "equals"
        yield op, True if op == "present" else check.value


def _given(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value is not None:
        yield key, value


def _edge(data: Mapping[str, Any]) -> Edge:
    reasons = tuple(Reason(reason["kind"], reason["text"]) for reason in data["reasons"])
    edge = Edge(data["provider"], data["dependant"], data["until"], reasons)
    if edge.hard != data["hard"]:
        raise ValueError(f"the edge {edge.provider} -> {edge.dependant} says hard: {data['hard']}")
    return edge


def _gate(data: Mapping[str, Any], document: Document, number: int) -> Gate:
    checks = _checks(data["checks"], document)
    if not checks:
        raise ValueError(f"gate {number} has no checks")
    return Gate(data["release"], tuple(data["after"]), checks)


def _checks(items: Iterable[Mapping[str, Any]], document: Document) -> tuple[GateCheck, ...]:
    return tuple(
        GateCheck(
            check_of(item["id"], item, document),
            item["provider"],
            parse_duration(item["timeout"]),
            item["onTimeout"],
            item["scope"],
        )
        for item in items
    )


def _not_a_bundle(message: str, fix: str) -> UserError:
    return UserError([Diagnostic("BC6004", message, Span(FILE), fix)])
