"""Building overlays and mixins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.load.node import Node
from compiler.load.parts import Parts
from compiler.model import CRITERIA, ClusterApi, InputSpec, Mixin, Overlay, Profile, ProfileValue

WILDCARDS = frozenset({"", "any", "*"})
"""What a criterion says that asks for nothing, beside null, 0 and being absent; in any case of letters."""


def criteria_of(raw: Mapping[str, Any]) -> dict[str, str | int]:
    """The criteria that really ask for something, in the order of `CRITERIA`."""
    stated: dict[str, str | int] = {}
    for key in CRITERIA:
        value = raw.get(key)
        if isinstance(value, str):
            value = value.strip()
        if not value or (isinstance(value, str) and value.lower() in WILDCARDS):
            continue
        stated[key] = value
    return stated


def build_overlay(name: str, root: Node, parts: Parts) -> Overlay:
    """The overlay that `root` (a valid overlay document) describes."""
    spec = root.down("spec")
    criteria, profile = spec.find("criteria"), spec.find("profile")
    return Overlay(
        name=name,
        origin=root.origin,
        base=spec.get("base"),
        abstract=spec.get("abstract", False),
        match=spec.get("match", criteria is not None),
        maturity=spec.get("maturity", "preview"),
        description=spec.get("description", ""),
        known_gaps=spec.strings("knownGaps"),
        criteria=criteria_of(criteria.data) if criteria else {},
        criteria_origin=criteria.origin if criteria else root.origin,
        mixins=tuple((n.data, n.origin) for n in spec.items("mixins")),
        inputs=tuple(_input(key, node, parts) for key, node in spec.pairs("inputs")),
        constraints=parts.constraints(spec),
        cluster_provides=tuple(_cluster_api(n, parts) for n in spec.items("clusterProvides")),
        prerequisites=tuple(parts.note(n) for n in spec.items("prerequisites")),
        operations=spec.strings("operations"),
        refs=parts.component_refs(spec),
        profile=_profile(profile, parts) if profile else None,
        assertions=parts.assertions(spec, "assertions"),
        validation=spec.get("validation", {}),
    )


def build_mixin(name: str, root: Node, parts: Parts) -> Mixin:
    """The mixin that `root` (a valid mixin document) describes."""
    spec = root.down("spec")
    return Mixin(name, root.origin, parts.constraints(spec), parts.component_refs(spec))


def _input(name: str, node: Node, parts: Parts) -> InputSpec:
    effects = node.find("effects")
    return InputSpec(
        name=name,
        type=node.data["type"],
        enum=tuple(node.get("enum", ())),
        required=node.get("required", False),
        default=node.get("default"),
        description=node.get("description", ""),
        schema=node.get("schema"),
        distinct=node.get("distinct", False),
        effects={value: parts.component_refs(effects, value) for value in effects.data} if effects else {},
        origin=node.origin,
    )


def _cluster_api(node: Node, parts: Parts) -> ClusterApi:
    check = node.find("check")
    kind = node.data["kind"]
    name = node.get("name")
    check_id = "-".join(part.lower() for part in (kind, name) if part)
    return ClusterApi(node.data["group"], kind, name, parts.check(check, check_id) if check else None, node.origin)


def _profile(node: Node, parts: Parts) -> Profile:
    return Profile(
        name=node.data["name"],
        description=node.get("description", ""),
        default=node.data["default"],
        values={key: _profile_value(key, value, parts) for key, value in node.pairs("values")},
        origin=node.origin,
    )


def _profile_value(name: str, node: Node, parts: Parts) -> ProfileValue:
    return ProfileValue(
        name=name,
        advertiser=node.get("advertiser", ""),
        constraints=parts.constraints(node),
        refs=parts.component_refs(node),
        origin=node.origin,
    )
