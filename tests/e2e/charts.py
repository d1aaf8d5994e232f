"""Stand-ins for the charts that a bundle names: name, version and CRDs as told, and the workloads that checks look at.

What is in a stand-in follows from the component's own description (`crds`, `checks`, `creates`, `requires`), and from
the CRDs in a folder; what an operator would make at run time is left to the simulator.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compiler.facts import facts as facts_of
from compiler.model import Check, Plan, Release
from compiler.predicates import evaluate
from compiler.yamlio import dump, load_all

# Workloads that an operator makes, not its chart.
OPERATED = {
    "nvidia-operator-validator",
    "prometheus-kube-prometheus-prometheus",
    "alertmanager-kube-prometheus-alertmanager",
}
# Served by workloads that do not run here: an API that never answers would block the discovery of all others.
NOT_SERVED = {"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}

WORKLOADS = {"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}


@dataclass(frozen=True)
class StandIn:
    """A packaged chart, and the objects in its templates."""

    repository: str
    name: str
    version: str
    archive: bytes
    objects: tuple[dict[str, Any], ...]


def stand_ins(plan: Plan, crds: Path) -> list[StandIn]:
    """One for each remote chart of the plan; `crds` is a folder of CRDs, a file each, `<plural>.<group>.yaml`."""
    return [_stand_in(plan, release, crds) for release in plan.releases if release.chart is not None]


def _stand_in(plan: Plan, release: Release, folder: Path) -> StandIn:
    assert release.chart is not None
    component = plan.recipe.components[release.component].component
    facts = facts_of(plan.recipe)
    in_crds, in_templates = [], []
    for crd in component.crds:
        if crd.source == "image" or not (crd.when is None or evaluate(crd.when, facts)):
            continue
        item = crd_of(folder, crd.name, crd.kind, crd.scope, crd.versions)
        if crd.keep:
            item["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
        (in_crds if crd.source == "crds" else in_templates).append(item)
    objects = [*in_templates, *_workloads(plan, release)]
    for api in (*component.creates, *component.requires):
        if api.kind in NOT_SERVED or not (api.when is None or evaluate(api.when, facts)):
            continue
        if api in component.requires and any(o["kind"] == api.kind for o in objects):
            continue
        custom = _custom(folder, api.group, api.kind, api.name or release.id, api.namespace or release.namespace)
        if custom is not None and custom not in objects:
            objects.append(custom)
    chart = release.chart
    return StandIn(
        chart.repository,
        chart.name,
        chart.version,
        _package(chart.name, chart.version, in_crds, objects),
        tuple(objects),
    )


def _workloads(plan: Plan, release: Release) -> Iterator[dict[str, Any]]:
    mine = next(c for c in plan.components if c.name == release.component)
    checks: list[Check] = [*mine.health]
    checks += [g.check for r in plan.releases if r.gate for g in r.gate.checks if g.provider == release.component]
    seen = set()
    deployments = []
    for check in checks:
        if check.kind in WORKLOADS and check.name and check.name not in OPERATED | seen:
            seen.add(check.name)
            deployments += [check.name] if check.kind == "deployment" else []
            yield _workload(WORKLOADS[check.kind], check.name, check.namespace or release.namespace)
    for check in checks:
        if check.kind == "webhook" and check.name and check.name not in {f"service/{n}" for n in seen}:
            key = f"service/{check.name}"
            if key in seen:
                continue
            seen.add(key)
            behind = check.name if check.name in deployments else deployments[0]
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": check.name, "namespace": check.namespace or release.namespace},
                "spec": {"selector": {"app": behind}, "ports": [{"port": 443, "targetPort": 9443}]},
            }


def _workload(kind: str, name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            **({} if kind == "DaemonSet" else {"replicas": 1}),
            **({"serviceName": name} if kind == "StatefulSet" else {}),
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{"name": "main", "image": "stand-in"}],
                    "tolerations": [{"operator": "Exists"}],
                },
            },
        },
    }


def crd_of(folder: Path, name: str, kind: str, scope: str, versions: tuple[str, ...] = ()) -> dict[str, Any]:
    """The CRD of a folder, or one that lets everything pass when the folder has none of that name."""
    found = _crds(folder).get(name)
    if found is not None:
        return dict(json.loads(found))
    plural, _, group = name.partition(".")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version, "served": True, "storage": index == 0,
                    "schema": {"openAPIV3Schema": anything}, "subresources": {"status": {}},
                }
                for index, version in enumerate(versions or ("v1alpha1",))
            ],
        },
    }  # fmt: skip


@cache
def _crds(folder: Path) -> dict[str, str]:
    """CRDs by name, as JSON; a status is not part of what is installed."""
    result = {}
    for file in sorted(folder.glob("*.yaml")):
        for document in load_all(file.read_text(), str(file), strict=False):
            if isinstance(document.data, dict):
                data = {key: value for key, value in document.data.items() if key != "status"}
                result[data["metadata"]["name"]] = json.dumps(data)
    return result


def _custom(folder: Path, group: str, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
    """The smallest object of a kind that its CRD admits; None for a kind that the folder does not know."""
    for text in _crds(folder).values():
        spec = json.loads(text)["spec"]
        if (spec["group"], spec["names"]["kind"]) == (group, kind):
            version = next(v for v in spec["versions"] if v["storage"])
            schema = version["schema"]["openAPIV3Schema"]
            metadata = {"name": name, **({"namespace": namespace} if spec["scope"] == "Namespaced" else {})}
            item = {"apiVersion": f"{group}/{version['name']}", "kind": kind, "metadata": metadata}
            body = schema["properties"].get("spec")
            return {**item, "spec": _smallest(body)} if body else item
    return None


def _smallest(schema: dict[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {key: _smallest(schema["properties"][key]) for key in schema.get("required", [])}
        case "array":
            return [_smallest(schema["items"]) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return "x" * max(1, schema.get("minLength", 1))


def _package(name: str, version: str, crds: list[Any], objects: list[Any]) -> bytes:
    """A chart's archive, the same bytes for the same content. Objects are read as files: nothing is a template."""
    files = {"Chart.yaml": json.dumps({"apiVersion": "v2", "name": name, "version": version, "type": "application"})}
    files |= {f"crds/{crd['metadata']['name']}.yaml": dump(crd) for crd in crds}
    files |= {f"files/{index:03}.json": json.dumps(item) for index, item in enumerate(objects)}
    files["templates/all.yaml"] = (
        '{{ range $path, $_ := .Files.Glob "files/*" }}\n---\n{{ $.Files.Get $path }}\n{{ end }}\n'
    )
    files["values.yaml"] = "{}\n"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)
