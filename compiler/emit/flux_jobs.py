"""Flux: gate Jobs, for what no health check can say because it names no object (nodes by their labels).

A health check of a Kustomization can only name objects, so a Job with kubectl asks the question and the gate names the
Job. The Job never fails: it starts its container again until the answer is yes. Once done it is removed after a while,
and the next reconciliation of the gate makes it anew, so that the question is asked again for a later revision.
"""

from __future__ import annotations

from typing import Any

from compiler.emit import kubectl_job, names
from compiler.emit.flux_checks import JOB_DONE, Command, Health
from compiler.emit.flux_site import Site

ACCESS = "gates"
ACCESS_FOLDER = "flux/access"
"""Namespace, ServiceAccount and rights of the Jobs; a node of its own, since several gates may hold Jobs."""

_TIME_TO_LIVE = 300  # seconds


def job_health(site: Site, what: str) -> Health:
    """The health check of a gate Job: it is complete."""
    return Health("batch/v1", "Job", site.name(what), names.gates_namespace(site.plan), JOB_DONE)


def job(site: Site, what: str, command: Command, component: str) -> dict[str, Any]:
    """A Job that runs kubectl with the arguments of `command` until it succeeds."""
    gates = site.plan.settings.gates
    container = kubectl_job.container(gates, "kubectl", command.arguments)
    pod = kubectl_job.pod(gates, names.gates_namespace(site.plan), [container])
    metadata = site.metadata(site.name(what), component, names.gates_namespace(site.plan))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": kubectl_job.FOREVER,
            "ttlSecondsAfterFinished": _TIME_TO_LIVE,
            "template": {"metadata": {"labels": dict(metadata["labels"])}, "spec": pod},
        },
    }


def access_objects(site: Site) -> list[dict[str, Any]]:
    """Namespace, ServiceAccount and the right to read nodes: all that a gate Job may do."""
    name = names.gates_namespace(site.plan)
    cluster_wide = {**site.metadata(name)}
    del cluster_wide["namespace"]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": cluster_wide},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": site.metadata(name, namespace=name)},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": cluster_wide,
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster_wide,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
        },
    ]
