"""Flux: how a check becomes an entry of `healthChecks` with a CEL expression, or the arguments of a gate Job.

The one lowering function of this emitter: the gate nodes, `tokens` and `read_back` all go through it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from compiler.model import Check
from compiler.records import dataclass
from compiler.source import parse_path

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
# The grammar of CEL takes these for operators and literals even after a dot.
_CEL_WORDS = frozenset({"in", "true", "false", "null"})

JOB_DONE = "has(status.conditions) && status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')"
"""A Job that has succeeded. Written out, since a Job that is only running counts as current for kstatus."""

_WORKLOADS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "deployment": ("apps/v1", "Deployment"),
        "statefulset": ("apps/v1", "StatefulSet"),
        "daemonset": ("apps/v1", "DaemonSet"),
        "job": ("batch/v1", "Job"),
    }
)


@dataclass(frozen=True)
class Health:
    """An entry of `healthChecks` and the expression for its kind; `current` None leaves the judgement to kstatus.

    An object or a kind that does not exist yet keeps a gate waiting. Flux compares `status.observedGeneration` before
    it evaluates an expression, and an error of an expression (a field that is not there) keeps the gate waiting too.
    """

    api_version: str
    kind: str
    name: str
    namespace: str | None
    current: str | None

    @property
    def group_kind(self) -> tuple[str, str]:
        """What Flux matches expressions by: it ignores the version."""
        group, slash, _ = self.api_version.partition("/")
        return (group if slash else "", self.kind)

    @property
    def token(self) -> str:
        """How the check shows in `Wiring.guards`."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.api_version} {self.kind} {where}: {self.current or 'kstatus'}"


@dataclass(frozen=True)
class Command:
    """Arguments of kubectl in a gate Job: it exits with an error until the check holds, and is started again."""

    arguments: tuple[str, ...]

    @property
    def token(self) -> str:
        """How the check shows in `Wiring.guards`."""
        return "kubectl " + json.dumps(list(self.arguments))


def lower(check: Check) -> Health | Command | None:
    """What holds `check` on Flux; None when nothing can (`every`, `gone`, or a path that CEL cannot address)."""
    name, namespace = check.name or "", check.namespace
    match check.kind:
        case "crd":
            return Health("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, None, None)
        case "deployment" | "statefulset" | "daemonset" | "job":
            return Health(*_WORKLOADS[check.kind], name, namespace, _workload(check))
        case "field":
            expression = _field(check)
            return Health(_api_version(check), check.object_kind, name, namespace, expression) if expression else None
        case "condition":
            wanted = _all(
                f"c.type == {cel_string(check.type or '')} && c.status == {cel_string(check.value or 'True')}",
                "(!has(c.observedGeneration) || c.observedGeneration >= metadata.generation)",
            )
            expression = f"has(status.conditions) && status.conditions.exists(c, {wanted})"
            return Health(_api_version(check), check.object_kind, name, namespace, expression)
        case "webhook":
            # An EndpointSlice has a generated name, which a health check cannot give; Endpoints have the Service's.
            expression = "subsets.exists(s, has(s.addresses) && size(s.addresses) > 0)"
            return Health("v1", "Endpoints", name, namespace, expression)
        case "nodes":
            return _nodes(check)
        case _:
            return None


def tokens(check: Check) -> frozenset[str]:
    """The token that `check` leaves in `Wiring.guards`; empty when Flux cannot hold it."""
    lowered = lower(check)
    return frozenset() if lowered is None else frozenset({lowered.token})


def cel_string(text: str) -> str:
    """`text` as a CEL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + "'"


def _api_version(check: Check) -> str:
    return f"{check.group}/{check.version}" if check.group else check.version


def _workload(check: Check) -> str:
    """The same judgement as that of the scripts. Kubernetes leaves out counters that are zero, so each is asked for."""
    on_delete = "has(spec.updateStrategy) && spec.updateStrategy.type == 'OnDelete'"
    match check.kind, check.min_ready:
        case "job", _:
            return JOB_DONE
        case "deployment", None:
            return _all(
                "has(spec.replicas) && spec.replicas > 0",
                _at_least("updatedReplicas", "spec.replicas"),
                _at_least("availableReplicas", "spec.replicas"),
                "status.replicas <= status.updatedReplicas",
            )
        case "statefulset", None:
            return _all(
                "has(spec.replicas) && spec.replicas > 0",
                f"({on_delete} || {_at_least('updatedReplicas', 'spec.replicas')})",
                _at_least("readyReplicas", "spec.replicas"),
            )
        case "deployment", minimum:
            return _at_least("availableReplicas", str(minimum))
        case "statefulset", minimum:
            return _at_least("readyReplicas", str(minimum))
        case _, minimum:
            wanted = "status.desiredNumberScheduled"
            up = (
                _all(
                    f"({on_delete} || {_at_least('updatedNumberScheduled', wanted)})",
                    _at_least("numberAvailable", wanted),
                )
                if minimum is None
                else _at_least("numberAvailable", str(minimum))
            )
            nodes = 1 if check.min_nodes is None else check.min_nodes
            if nodes == 0 and not minimum:
                return f"has({wanted}) && ({wanted} == 0 || {up})"
            return _all(_at_least("desiredNumberScheduled", str(nodes)), up)


def _all(*terms: str) -> str:
    return " && ".join(terms)


def _at_least(counter: str, wanted: str) -> str:
    return f"has(status.{counter}) && status.{counter} >= {wanted}"


def _field(check: Check) -> str | None:
    address = _address(check.path or "")
    if address is None:
        return None
    there, value = address
    wanted = check.value or ""
    if check.op == "equals":
        return _all(*there, _equal(value, wanted))
    there.append(f"{value} != null")
    if check.op == "notEquals":
        alternatives = [f"{value} != {literal}" for literal in _literals(wanted)]
        return _all(*there, *alternatives)
    return _all(*there, f"{value} != ''")


def _equal(value: str, wanted: str) -> str:
    alternatives = [f"{value} == {literal}" for literal in _literals(wanted)]
    return alternatives[0] if len(alternatives) == 1 else f"({' || '.join(alternatives)})"


def _literals(wanted: str) -> list[str]:
    # A check writes values as kubectl prints them: `true` and `3` may stand for a boolean, a number or a string.
    native = [wanted] if wanted in {"true", "false"} or _NUMBER.fullmatch(wanted) else []
    return [*native, cel_string(wanted)]


def _address(path: str) -> tuple[list[str], str] | None:
    """(conditions that each step is there, expression of the value) for a dotted path; None when CEL has no word."""
    try:
        steps = parse_path(path)
    except ValueError:
        return None
    if not steps or not isinstance(steps[0], str) or not _is_name(steps[0]):
        return None
    value, there = steps[0], []
    for step in steps[1:]:
        if isinstance(step, int):
            there.append(f"size({value}) > {step}")
            value = f"{value}[{step}]"
        elif _is_name(step):
            value = f"{value}.{step}"
            there.append(f"has({value})")
        else:
            key = cel_string(step)
            there.append(f"{key} in {value}")
            value = f"{value}[{key}]"
    return there, value


def _is_name(step: str) -> bool:
    return _IDENTIFIER.fullmatch(step) is not None and step not in _CEL_WORDS


def _nodes(check: Check) -> Command:
    minimum = 1 if check.min_nodes is None else check.min_nodes
    select = ("get", "nodes", f"--selector={check.selector}")
    if minimum == 0:
        return Command((*select, "--output=name"))
    # The image has no shell to count with; kubectl fails on an index that is out of range, so the last wanted node is
    # asked for by its index.
    return Command((*select, f"--output=jsonpath={{.items[{minimum - 1}].metadata.name}}"))
