"""Argo CD: the health checks of the optional ConfigMap, run as Lua 5.1."""

from __future__ import annotations

import dataclasses
from typing import Any

import lupa.lua51
import pytest

from compiler.emit import argocd
from compiler.model import Plan
from tests.support.argocd import data, gated
from tests.support.plans import POLICY_READY, check, small_plan

FILE = "argocd/optional/argocd-cm.yaml"
KEY = "resource.customizations.health."
SOURCES = [
    {"repoURL": "https://charts.example.com", "chart": "x", "targetRevision": "1.0.0", "helm": {"releaseName": "x"}},
    {"repoURL": "https://git.example.com/bundles.git", "targetRevision": "v1", "ref": "values", "path": "guards/x"},
]


def scripts(plan: Plan | None = None) -> dict[str, str]:
    found = data(argocd.emit(plan or small_plan()), FILE)["data"]
    return {key.removeprefix(KEY): text for key, text in found.items()}


def health(script: str, item: dict[str, Any]) -> tuple[str, str]:
    """What a script says of an object: status and message."""
    lua = lupa.lua51.LuaRuntime(register_eval=False)
    result = lua.eval(f"function(obj) {script} end")(_table(lua, item))
    return result["status"], result["message"]


def _table(lua: Any, item: Any) -> Any:
    if isinstance(item, dict):
        return lua.table_from({key: _table(lua, value) for key, value in item.items()})
    if isinstance(item, list):
        return lua.table_from([_table(lua, value) for value in item])
    return item


def application(**status: Any) -> dict[str, Any]:
    """An Application of several sources that is synced and healthy but for `status`."""
    usual = {
        "health": {"status": "Healthy"},
        "sync": {"status": "Synced", "comparedTo": {"sources": SOURCES, "source": {"repoURL": ""}}},
        "operationState": {"phase": "Succeeded"},
    }
    merged = {**usual, **status}
    return {"spec": {"sources": SOURCES}, "status": {key: value for key, value in merged.items() if value is not None}}


def other(**changes: str) -> dict[str, Any]:
    return {"status": "Synced", "comparedTo": {"sources": [{**SOURCES[0], **changes}, SOURCES[1]]}}


@pytest.mark.parametrize(
    ("item", "status", "message"),
    [
        ({"spec": {"sources": SOURCES}}, "Progressing", "not compared yet"),
        (application(health=None), "Progressing", "not compared yet"),
        (application(sync={"status": "Synced"}), "Progressing", "other sources"),
        (application(sync=other(targetRevision="0.9.0")), "Progressing", "other sources"),
        (application(sync=other(chart="y")), "Progressing", "other sources"),
        (
            application(sync={"status": "Synced", "comparedTo": {"sources": SOURCES[:1]}}),
            "Progressing",
            "other sources",
        ),
        (application(operationState={"phase": "Running", "message": "guard"}), "Progressing", "sync Running: guard"),
        (application(operationState={"phase": "Failed"}), "Progressing", "sync Failed"),
        (application(sync={**other(), "status": "OutOfSync"}), "Progressing", "OutOfSync"),
        (application(health={"status": "Degraded", "message": "pods"}), "Degraded", "pods"),
        (application(health={"status": "Healthy"}), "Healthy", ""),
        (application(operationState=None), "Healthy", ""),
        # Argo CD fills in what it knows beside what was asked for.
        (application(sync=other(helm="as it was")), "Healthy", ""),
    ],
)
def test_an_application_is_healthy_when_its_status_is_about_its_spec(
    item: dict[str, Any], status: str, message: str
) -> None:
    found = health(scripts()["argoproj.io_Application"], item)
    assert found[0] == status
    assert message in found[1]


def test_an_application_with_one_source() -> None:
    source = {"repoURL": "https://git.example.com/bundles.git", "path": "x", "targetRevision": "v1"}
    status = {"health": {"status": "Healthy"}, "sync": {"status": "Synced", "comparedTo": {"source": source}}}
    script = scripts()["argoproj.io_Application"]
    assert health(script, {"spec": {"source": source}, "status": status})[0] == "Healthy"
    assert health(script, {"spec": {"source": {**source, "path": "y"}}, "status": status})[0] == "Progressing"


def policy(name: str, status: dict[str, Any] | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, **({} if status is None else {"status": status})}


@pytest.mark.parametrize(
    ("item", "status"),
    [
        (policy("nic-cluster-policy", None), "Progressing"),
        (policy("nic-cluster-policy", {}), "Progressing"),
        (policy("nic-cluster-policy", {"state": "notReady"}), "Progressing"),
        (policy("nic-cluster-policy", {"state": "ready"}), "Healthy"),
        (policy("another", {"state": "ignore"}), "Healthy"),
    ],
)
def test_a_custom_resource_is_healthy_in_the_state_that_a_check_asks_for(item: dict[str, Any], status: str) -> None:
    assert health(scripts()["mellanox.com_NicClusterPolicy"], item)[0] == status


def test_several_checks_of_one_kind_are_one_script() -> None:
    number = dataclasses.replace(POLICY_READY, id="n", path='status["a.b"][1].c', value="3")
    found = scripts(gated("sriov-ib-networks", POLICY_READY, number))
    assert sorted(found) == ["argoproj.io_Application", "mellanox.com_NicClusterPolicy"]
    script = found["mellanox.com_NicClusterPolicy"]
    status = {"state": "ready", "a.b": [{"c": 1}, {"c": 3}]}
    assert health(script, policy("nic-cluster-policy", status)) == ("Healthy", "")
    status = {"state": "ready", "a.b": [{"c": 3}, {"c": 1}]}
    assert health(script, policy("nic-cluster-policy", status))[0] == "Progressing"


def test_kinds_that_argo_cd_knows_are_left_alone() -> None:
    built_in = check(
        "field",
        group="",
        version="v1",
        object_kind="Node",
        resource="nodes",
        name="a",
        path="x",
        op="equals",
        value="y",
    )
    assert sorted(scripts(gated("sriov-ib-networks", built_in))) == [
        "argoproj.io_Application",
        "mellanox.com_NicClusterPolicy",  # asked for by a health check
    ]
