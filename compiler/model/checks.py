"""Predicates, assertions and readiness checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from compiler.records import dataclass
from compiler.source import Origin


@dataclass(frozen=True)
class Predicate:
    """A parsed `when:` / `that:`; `component` is who a leading-dot value path belongs to. See predicates.py."""

    form: Mapping[str, Any]
    origin: Origin
    component: str | None = None


@dataclass(frozen=True)
class Assertion:
    """A rule over the composed recipe: `that` must hold whenever `when` does."""

    id: str
    that: Predicate
    when: Predicate | None
    message: str
    severity: str
    origin: Origin
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One readiness condition. `kind` is the key that the format uses; the other fields are set as that kind needs.

    crd: `name` | deployment, statefulset, daemonset, job: `namespace`, `name`, `min_nodes`, `min_ready`
    field: `group`..`namespace`, `path`, `op` (equals, notEquals, present), `value`
    condition: `group`..`namespace`, `type`, `value` (the wanted status: "True", ...)
    every: `group`..`resource`, `namespace`, `path`, `value` | gone: `group`, `resource`, `namespace`
    nodes: `selector` (a kubectl label selector), `min_nodes` | webhook: `name` (of the Service), `namespace`

    In a Plan the check is bound: `namespace` is filled in, `name: rendered` is resolved, `min_nodes` is final.
    """

    id: str
    kind: str
    origin: Origin = field(compare=False, repr=False)
    name: str | None = None
    namespace: str | None = None
    group: str = ""
    version: str = ""
    object_kind: str = ""
    resource: str = ""
    path: str | None = None
    op: str | None = None
    value: str | None = None
    type: str | None = None
    selector: str | None = None
    min_nodes: int | None = None
    min_ready: int | None = None
    when: Predicate | None = None
