"""The pods that ask questions of a cluster with kubectl: guards of Argo CD, gate Jobs of Flux."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.model import GateSettings

FOREVER = 2**31 - 1
"""The largest backoffLimit. A Job counts the restarts of its containers against it, and a question never gives up."""

_HOME = "/tmp"  # noqa: S108 - kubectl's discovery cache, in a volume of the pod


def pod(
    gates: GateSettings, account: str, containers: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The spec of a pod under the account: `before` one after the other, then `containers`; see `container`.

    A container that fails is started again, the ones before it are not.
    """
    spec: dict[str, Any] = {"serviceAccountName": account, "restartPolicy": "OnFailure"}
    if gates.pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in gates.pull_secrets]
    if gates.node_selector:
        spec["nodeSelector"] = dict(sorted(gates.node_selector.items()))
    if gates.tolerations:
        spec["tolerations"] = [dict(toleration) for toleration in gates.tolerations]
    if gates.priority_class:
        spec["priorityClassName"] = gates.priority_class
    spec["securityContext"] = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    if before:
        spec["initContainers"] = list(before)
    spec["containers"] = list(containers)
    spec["volumes"] = [{"name": "home", "emptyDir": {}}]
    return spec


def container(gates: GateSettings, name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """A container of such a pod that runs kubectl; it fits the Pod Security Standard `restricted`."""
    return {
        "name": name,
        "image": gates.image,
        "args": list(arguments),
        "env": [{"name": "HOME", "value": _HOME}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "home", "mountPath": _HOME}],
    }
