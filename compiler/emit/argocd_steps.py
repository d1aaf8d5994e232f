"""Argo CD: how a check becomes steps of kubectl, and which rights on the cluster those steps need.

A guard Job runs the official kubectl image, which has no shell: a step is one kubectl call in a container of its own,
which exits with 0 only when its part of the check holds. This is the one lowering function of this emitter: the Jobs,
their RBAC rules, `tokens` and `read_back` all go through it.

`kubectl wait` is preferred, since it watches; it is told to wait for the object's creation as well (kubectl before 1.36
knows one `--for` only and takes the last: the call then fails at once and the container is started again). Where it has
no words, `kubectl get` prints through a template that calls a template nobody defined while the condition does not
hold: kubectl exits with an error, and the container is started again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from compiler.emit.shell import words
from compiler.model import Check
from compiler.records import dataclass
from compiler.source import parse_path

_RESOURCES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "deployment": ("apps", "deployments"),
        "statefulset": ("apps", "statefulsets"),
        "daemonset": ("apps", "daemonsets"),
        "job": ("batch", "jobs"),
    }
)
_READY: Mapping[str, str] = MappingProxyType(
    {"deployment": "availableReplicas", "statefulset": "readyReplicas", "daemonset": "numberAvailable"}
)
_NOT_YET = '{{template "not yet"}}'
_CREATED = "--for=create"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMEOUT = "--timeout="


@dataclass(frozen=True)
class Step:
    """One kubectl call. `name` says what it does, for the container's name; `waits`: it takes `--timeout`."""

    name: str
    arguments: tuple[str, ...]
    waits: bool = True

    def with_timeout(self, seconds: int) -> list[str]:
        """The arguments of the container."""
        return [*self.arguments, *([f"{_TIMEOUT}{seconds}s"] if self.waits else [])]


@dataclass(frozen=True, order=True)
class Right:
    """Get, list and watch on a resource: on one object of that `name`, or on all when it is None."""

    namespace: str | None  # None: cluster-scoped, or in all namespaces
    group: str
    resource: str
    name: str | None


def lower(check: Check) -> tuple[Step, ...]:
    """The steps that hold `check`, in order; empty when a guard cannot hold it.

    That is so for `every` and `gone` (a guard that has nothing to look at would pass), for `notEquals`, for an empty
    `equals` (kubectl wait has no word for either) and for a path that JSONPath cannot address.
    """
    match check.kind:
        case "crd":
            return (
                _wait(
                    "established",
                    f"customresourcedefinitions.apiextensions.k8s.io/{check.name}",
                    "condition=Established",
                ),
            )
        case "deployment" | "statefulset" | "daemonset":
            return _workload(check)
        case "job":
            return (_wait("complete", *_object(check, "jobs.batch"), "condition=Complete"),)
        case "condition":
            wanted = f"condition={check.type}={check.value or 'True'}"
            return (_wait("condition", *_object(check, _resource(check)), wanted),)
        case "field":
            return _field(check)
        case "nodes":
            return (_nodes(check),)
        case "webhook":
            # A Service whose pods answer has ready addresses; the slices of one Service are found by its label.
            select = f"--selector=kubernetes.io/service-name={check.name}"
            where = (*_where(check), select)
            return (
                _wait(
                    "endpoint",
                    "endpointslices.discovery.k8s.io",
                    *where,
                    "jsonpath={.endpoints[0].conditions.ready}=true",
                ),
            )
        case _:
            return ()


def lower_teardown(check: Check) -> tuple[Step, ...]:
    """The steps that hold `check` before an Application is deleted: `every` (also over nothing) and `gone` as well.

    The API must be there: kubectl fails on a resource that the server does not know.
    """
    if check.kind not in {"every", "gone"}:
        return lower(check)
    where = _where(check) or ("--all-namespaces",)
    if check.kind == "gone":
        return (_get("gone", _resource(check), *where, template=f"{{{{if .items}}}}{_NOT_YET}{{{{end}}}}"),)
    address = _address(check.path or "")
    if address is None:
        return ()
    each = f'{{{{if ne (printf "%v" (index . {address})) {_string(check.value or "")}}}}}{_NOT_YET}{{{{end}}}}'
    return (_get("every", _resource(check), *where, template=f"{{{{range .items}}}}{each}{{{{end}}}}"),)


def tokens(check: Check) -> frozenset[str]:
    """The tokens that `check` leaves in `Wiring.guards`, one a step; empty when a guard cannot hold it."""
    return frozenset(token(step.arguments) for step in lower(check))


def token(arguments: Iterable[str]) -> str:
    """The token of a container's arguments: how long it waits is no part of what it waits for."""
    return words(["kubectl", *(a for a in arguments if not a.startswith(_TIMEOUT))])


def rights(check: Check) -> tuple[Right, ...]:
    """What the steps of `check` must be allowed to read."""
    match check.kind:
        case "crd":
            return (Right(None, "apiextensions.k8s.io", "customresourcedefinitions", check.name),)
        case "deployment" | "statefulset" | "daemonset" | "job":
            return (Right(check.namespace, *_RESOURCES[check.kind], check.name),)
        case "nodes":
            return (Right(None, "", "nodes", None),)
        case "webhook":
            return (Right(check.namespace, "discovery.k8s.io", "endpointslices", None),)
        case "every" | "gone":
            return (Right(check.namespace, check.group, check.resource, None),)
        case _:
            return (Right(check.namespace, check.group, check.resource, check.name),)


def _workload(check: Check) -> tuple[Step, ...]:
    group, resource = _RESOURCES[check.kind]
    target = _object(check, f"{resource}.{group}")
    ready = _READY[check.kind]
    if check.kind == "deployment" and not check.min_ready:
        # A rollout of nothing is done at once, hence the condition as well.
        return (_wait("available", *target, "condition=Available"), Step("rollout", ("rollout", "status", *target)))
    minimum = (1 if check.min_nodes is None else check.min_nodes) if check.kind == "daemonset" else None
    # Left out by Kubernetes while zero, so that being there means one pod at least.
    first = _wait("created", *target) if minimum == 0 else _wait("available", *target, f"jsonpath={{.status.{ready}}}")
    unmet = ["ne .metadata.generation .status.observedGeneration"]
    if minimum is not None:
        unmet.append(f"lt .status.desiredNumberScheduled {minimum}")
    if check.min_ready:
        unmet.append(f"lt .status.{ready} {check.min_ready}")  # that many instead of all
    elif minimum == 0:
        unmet.append(f"and .status.desiredNumberScheduled (or {_behind(check.kind)})")
    else:
        unmet.append(f"or {_behind(check.kind)}")
    conditions = " ".join(f"({condition})" for condition in unmet)
    return (first, _get("rollout", *target, template=f"{{{{if or {conditions}}}}}{_NOT_YET}{{{{end}}}}"))


def _behind(kind: str) -> str:
    """Conditions of a template under which a rollout is not done.

    `kubectl rollout status` would watch instead of looking, but refuses the strategy OnDelete, which operators use for
    drivers; such a workload is never updated by itself. A counter that is not there yet is an error of the template,
    and so behind as well.
    """
    wanted = ".status.desiredNumberScheduled" if kind == "daemonset" else ".spec.replicas"
    updated = "updatedNumberScheduled" if kind == "daemonset" else "updatedReplicas"
    stale = f'and (ne .spec.updateStrategy.type "OnDelete") (lt .status.{updated} {wanted})'
    return f"(lt .status.{_READY[kind]} {wanted}) ({stale})"


def _field(check: Check) -> tuple[Step, ...]:
    path = _json_path(check.path or "")
    if path is None or check.op == "notEquals" or (check.op == "equals" and not check.value):
        return ()
    wanted = f"jsonpath={path}" if check.op == "present" else f"jsonpath={path}={check.value}"
    return (_wait("field", *_object(check, _resource(check)), wanted),)


def _nodes(check: Check) -> Step:
    minimum = 1 if check.min_nodes is None else check.min_nodes
    select = ("nodes", f"--selector={check.selector}")
    if minimum <= 1:
        # Every node has a name; no node at all is an error.
        return Step("nodes", ("wait", *select, "--for=jsonpath={.metadata.name}"))
    return _get("nodes", *select, template=f"{{{{if lt (len .items) {minimum}}}}}{_NOT_YET}{{{{end}}}}")


def _wait(name: str, *target_and_condition: str) -> Step:
    """`kubectl wait` for creation, and for the condition that stands last (without one: for creation alone)."""
    *target, condition = target_and_condition
    if condition.startswith(("condition=", "jsonpath=")):
        # Creation cannot be waited for by label.
        created = () if any(t.startswith("--selector=") for t in target) else (_CREATED,)
        return Step(name, ("wait", *target, *created, f"--for={condition}"))
    return Step(name, ("wait", *target_and_condition, _CREATED))


def _get(name: str, *target: str, template: str) -> Step:
    return Step(name, ("get", *target, f"--output=go-template={template}"), waits=False)


def _resource(check: Check) -> str:
    return f"{check.resource}.{check.group}" if check.group else check.resource


def _object(check: Check, resource: str) -> tuple[str, ...]:
    return (f"{resource}/{check.name}", *_where(check))


def _where(check: Check) -> tuple[str, ...]:
    return (f"--namespace={check.namespace}",) if check.namespace else ()


def _json_path(path: str) -> str | None:
    """A dotted path as kubectl's JSONPath; None when it has no word for a step."""
    try:
        steps = parse_path(path)
    except ValueError:
        return None
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _IDENTIFIER.fullmatch(step):
            text += f".{step}"
        elif re.fullmatch(r"[A-Za-z0-9_./-]+", step):
            text += "['" + step.replace(".", "\\.") + "']"
        else:
            return None
    return f"{{{text}}}" if text else None


def _address(path: str) -> str | None:
    """A dotted path as arguments of the template function `index`."""
    try:
        steps = parse_path(path)
    except ValueError:
        return None
    return " ".join(str(s) if isinstance(s, int) else _string(s) for s in steps) or None


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
