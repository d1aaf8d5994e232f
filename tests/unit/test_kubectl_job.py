"""The pods with kubectl: what Argo CD's guards and Flux' gate Jobs share."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.emit import kubectl_job
from compiler.model import GateSettings
from compiler.model.vocabulary import switch

GATES = GateSettings(
    image="m.example.org/kubectl:v1",
    pull_secrets=("pull",),
    node_selector={"z": "1", "a": "2"},
    tolerations=({"operator": "Exists"},),
    priority_class="high",
)


def test_the_settings_reach_the_pod() -> None:
    first, last = (kubectl_job.container(GATES, name, ["version"]) for name in ("first", "last"))
    spec = kubectl_job.pod(GATES, "asker", [last], [first])
    assert spec["serviceAccountName"] == "asker"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert list(spec["nodeSelector"]) == ["a", "z"]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "high"
    assert (spec["initContainers"], spec["containers"]) == ([first], [last])
    assert last["image"] == "m.example.org/kubectl:v1"


def test_a_pod_of_the_defaults_is_restricted_and_has_a_writable_home() -> None:
    spec = kubectl_job.pod(GateSettings(), "asker", [kubectl_job.container(GateSettings(), "kubectl", ["version"])])
    assert not spec.keys() & {"imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName", "initContainers"}
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (mount,) = container["volumeMounts"]
    assert {"name": "HOME", "value": mount["mountPath"]} in container["env"]
    assert mount["name"] in {volume["name"] for volume in spec["volumes"]}


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, True), (False, False), ("true", True), ("False", False), (1, None), (0, None), ("yes", None), ({}, None)],
)
def test_what_switches_a_component(value: Any, said: bool | None) -> None:
    assert switch(value) is said
