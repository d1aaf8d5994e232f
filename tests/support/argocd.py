"""Plans and files for the tests of the Argo CD emitter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compiler.emit import argocd, payload
from compiler.emit.inventory import inventory_of
from compiler.errors import Diagnostic, UserError
from compiler.model import ArgoSettings, Check, Files, Gate, GateCheck, Plan
from compiler.proof import prove
from compiler.yamlio import dump, load
from tests.support.plans import check, settings, small_plan

CRD_READY = check("crd", id="crd-policies", name="nicclusterpolicies.mellanox.com")
OPERATOR = check(
    "deployment", id="operator", namespace="nvidia-network-operator", name="network-operator", min_nodes=None
)


def with_settings(plan: Plan, **changes: Any) -> Plan:
    return dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, settings=settings(**changes)))


def with_argocd(**changes: Any) -> Plan:
    return with_settings(small_plan(), argocd=ArgoSettings(**changes))


def gated(name: str, *checks: Check, after: str = "network-operator") -> Plan:
    """The small plan, with these checks in front of one release."""
    plan = small_plan()
    gate = Gate(name, (after,), tuple(GateCheck(c, "network-operator", 600, "fail", "always") for c in checks))
    releases = tuple(dataclasses.replace(r, gate=gate) if r.id == name else r for r in plan.releases)
    return dataclasses.replace(plan, releases=releases)


def bundle(plan: Plan) -> dict[str, bytes]:
    return {**payload.emit(plan), **argocd.emit(plan)}


def data(files: Files, path: str) -> Any:
    return load(files[path].decode(), path).data


def application(files: Files, name: str) -> Any:
    return data(files, f"argocd/apps/{name}.yaml")


def change(files: dict[str, bytes], path: str, edit: Callable[[Any], None]) -> dict[str, bytes]:
    """The files with one of them edited."""
    item = data(files, path)
    edit(item)
    return {**files, path: dump(item).encode()}


def problems(plan: Plan, files: Files) -> list[str]:
    """What the order proof finds wrong with the files."""
    return [d.message for d in prove(inventory_of(plan), {"argocd": argocd.read_back(files)})]


def refused(plan: Plan) -> tuple[Diagnostic, ...]:
    with pytest.raises(UserError) as caught:
        argocd.emit(plan)
    return caught.value.diagnostics


def applications(files: Files) -> Iterator[tuple[str, Any]]:
    yield from ((path, data(files, path)) for path in sorted(files) if path.startswith("argocd/apps/"))


def guards(files: Files) -> Iterator[tuple[str, Any]]:
    yield from ((path, data(files, path)) for path in sorted(files) if path.startswith("argocd/guards/"))
