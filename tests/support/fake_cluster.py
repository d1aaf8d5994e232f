"""A `kubectl` and a `helm` without a cluster: small programs whose cluster is a folder, for the logic of the scripts.

Run as a program (`fake_cluster.py kubectl get ...`) this file imports nothing but the standard library, so that a call
costs some 15 ms. What the real programs print was taken from them; the tests in e2e/ run the same
scripts against the real ones.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

BUILT_IN = {
    "namespaces": ("Namespace", False), "nodes": ("Node", False), "pods": ("Pod", True), "secrets": ("Secret", True),
    "configmaps": ("ConfigMap", True), "events": ("Event", True), "daemonsets.apps": ("DaemonSet", True),
    "deployments.apps": ("Deployment", True), "statefulsets.apps": ("StatefulSet", True), "jobs.batch": ("Job", True),
    "customresourcedefinitions.apiextensions.k8s.io": ("CustomResourceDefinition", False),
    "endpointslices.discovery.k8s.io": ("EndpointSlice", True),
}  # fmt: skip


class Failed(Exception):  # noqa: N818
    """What the program prints before it exits with 1."""


class Store:
    """Objects in `folder`, with what the test wants to happen to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.json"
        empty = {"objects": {}, "calls": 0, "later": [], "denied": [], "helm": {}, "crds": "", "version": "v1.34.2"}
        self.state: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else empty

    def save(self) -> None:
        partial = self.file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(self.state))
        partial.replace(self.file)

    # Objects by resource ("ippools.nv-ipam.nvidia.com"), then "namespace/name".

    def put(self, resource: str, data: dict[str, Any]) -> None:
        meta = data.setdefault("metadata", {})
        key = f"{meta.get('namespace', '')}/{meta['name']}"
        self.state["objects"].setdefault(resource, {})[key] = data
        if resource.startswith("customresourcedefinitions."):
            self.state["objects"].setdefault(meta["name"], {})

    def drop(self, resource: str, name: str, namespace: str = "") -> None:
        self.state["objects"].get(resource, {}).pop(f"{namespace}/{name}", None)
        if resource.startswith("customresourcedefinitions."):
            self.state["objects"].pop(name, None)

    def kinds(self) -> dict[str, str]:
        """Every name a resource can be called by -> resource."""
        table = {}
        for resource, (kind, _) in BUILT_IN.items():
            name, _, group = resource.partition(".")
            for called in (name, name.removesuffix("s"), kind.lower()):
                table[called] = table[f"{called}.{group}" if group else called] = resource
        crds = self.state["objects"].get("customresourcedefinitions.apiextensions.k8s.io", {})
        for data in crds.values():
            resource = data["metadata"]["name"]
            name, _, group = resource.partition(".")
            spec = data.get("spec", {})
            for called in (name, spec.get("names", {}).get("kind", name).lower()):
                table[called] = table[f"{called}.{group}"] = resource
                for version in spec.get("versions", [{"name": "v1"}, {"name": "v1alpha1"}]):
                    table[f"{called}.{version['name']}.{group}"] = resource
        return table

    def resource(self, word: str) -> str:
        found = self.kinds().get(word.lower())
        if found is None:
            raise Failed(f'error: the server doesn\'t have a resource type "{word.partition(".")[0]}"')
        if found in self.state["denied"]:
            raise Failed(f'Error from server (Forbidden): {found} is forbidden: User "x" cannot list resource')
        return found

    def tick(self) -> None:
        """One more call: what the test scheduled for now happens."""
        self.state["calls"] += 1
        due = [x for x in self.state["later"] if x[0] <= self.state["calls"]]
        self.state["later"] = [x for x in self.state["later"] if x[0] > self.state["calls"]]
        for _, resource, data in due:
            if data.get("deleted"):
                self.drop(resource, data["name"], data.get("namespace", ""))
            else:
                self.put(resource, data)


# ---------------------------------------------------------------------------------------------------------------------
# kubectl


def kubectl(store: Store, arguments: list[str], stdin: str) -> str:
    words, options = _split(arguments)
    match words[0]:
        case "config":
            return "fake\n"
        case "version":
            return "Client Version: v1.34.0\n"
        case "get" if "raw" in options:
            return json.dumps({"gitVersion": store.state["version"]}, indent=2)
        case "get":
            return _get(store, words[1:], options)
        case "delete":
            return _delete(store, words[1:], options)
        case "apply":
            return _apply(store, options, stdin)
        case _:
            raise Failed(f'error: unknown command "{words[0]}" for "kubectl"')


def _split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    flags = {
        "--all-namespaces",
        "-A",
        "--ignore-not-found",
        "--no-headers",
        "--server-side",
        "--force-conflicts",
        "--show-labels",
    }
    short = {"-n": "namespace", "-o": "output", "-l": "selector", "-f": "filename"}
    words, options, rest = [], {}, list(arguments)
    while rest:
        word = rest.pop(0)
        if word in flags:
            options[word.lstrip("-")] = "true"
        elif word in short:
            options[short[word]] = rest.pop(0)
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            options[name] = value if equals else rest.pop(0)
        else:
            words.append(word)
    return words, options


def _get(store: Store, words: list[str], options: dict[str, str]) -> str:
    resource = store.resource(words[0])
    objects = store.state["objects"].get(resource, {})
    output = options.get("output", "")
    if len(words) > 2:
        return "".join(_get(store, [words[0], name], options) for name in words[1:])
    if len(words) == 1:
        everywhere = "all-namespaces" in options or "A" in options
        namespaced = BUILT_IN.get(resource, ("", None))[1]
        if namespaced is None:
            namespaced = any(not k.startswith("/") for k in objects)
        wanted = None if everywhere or not namespaced else options.get("namespace", "default")
        items = [o for k, o in sorted(objects.items()) if wanted is None or k.split("/")[0] == wanted]
        items = [o for o in items if _selected(o, options.get("selector", ""))]
        field, _, only = options.get("field-selector", "").partition("=")
        items = [o for o in items if field != "metadata.name" or o["metadata"]["name"] == only]
        if output.startswith("jsonpath="):
            return jsonpath(output.removeprefix("jsonpath="), {"items": items})
        return "".join(f"{o['metadata']['name']} {o.get('shown', '')}\n" for o in items)
    name = words[1]
    item = objects.get(f"{options.get('namespace', '')}/{name}") or objects.get(f"/{name}")
    if item is None:
        if "ignore-not-found" in options:
            return ""
        raise Failed(f'Error from server (NotFound): {resource} "{name}" not found')
    if output == "name":
        return f"{resource}/{item['metadata']['name']}\n"
    if output.startswith("go-template="):
        labels = item["spec"].get("selector", {}).get("matchLabels", {})
        return "".join(f"{k}={v}," for k, v in sorted(labels.items()))
    return jsonpath(output.removeprefix("jsonpath="), item)


def _selected(item: dict[str, Any], selector: str) -> bool:
    labels = item["metadata"].get("labels", {})
    for part in filter(None, re.split(r",(?![^(]*\))", selector)):
        if " in (" in part:
            key, _, values = part.rstrip(")").partition(" in (")
            good = labels.get(key) in values.split(",")
        elif "!=" in part:
            key, _, value = part.partition("!=")
            good = labels.get(key) != value
        elif "=" in part:
            key, _, value = part.partition("=")
            good = labels.get(key) == value
        else:
            good = (part.lstrip("!") in labels) is not part.startswith("!")
        if not good:
            return False
    return True


def _delete(store: Store, words: list[str], options: dict[str, str]) -> str:
    resource = store.resource(words[0])
    said = ""
    for name in words[1:]:
        if f"{options.get('namespace', '')}/{name}" in store.state["objects"].get(resource, {}):
            store.drop(resource, name, options.get("namespace", ""))
            said += f"{words[0]} {name} deleted\n"
        elif "ignore-not-found" not in options:
            raise Failed(f'Error from server (NotFound): {resource} "{name}" not found')
    return said


def _apply(store: Store, options: dict[str, str], stdin: str) -> str:
    if options["filename"] == "-":
        texts = [stdin]
    else:
        path = Path(options["filename"])
        texts = [p.read_text() for p in (sorted(path.iterdir()) if path.is_dir() else [path])]
    for text in texts:
        for document in re.split(r"^---.*$", text, flags=re.MULTILINE):
            kind = re.search(r"^kind: (\S+)", document, re.MULTILINE)
            name = re.search(r"^ +name: \"?([^\"\s]+)", document, re.MULTILINE)
            if kind is None or name is None:
                continue
            if kind[1] == "Namespace":
                store.put("namespaces", {"metadata": {"name": name[1]}, "status": {"phase": "Active"}})
            else:
                store.put("customresourcedefinitions.apiextensions.k8s.io", crd(name[1]))
    return ""


def crd(name: str, *, established: bool = True, kind: str | None = None) -> dict[str, Any]:
    """A CustomResourceDefinition as the scripts see it."""
    names = {"kind": kind or name.partition(".")[0].removesuffix("s")}
    condition = {"type": "Established", "status": "True" if established else "False"}
    return {"metadata": {"name": name}, "spec": {"names": names}, "status": {"conditions": [condition]}}


# ---------------------------------------------------------------------------------------------------------------------
# kubectl's JSONPath, as far as the scripts use it

_STEP = re.compile(r"""\.((?:[^.\[\\]|\\.)+)|\[(\*|\d+)\]|\[\?\(@((?:\.(?:[^.=\\)]|\\.)+)+)(?:=="([^"]*)")?\)\]""")


def jsonpath(template: str, data: Any) -> str:
    text, _ = _run(re.findall(r"\{(?:[^{}\"]|\"[^\"]*\")*\}|[^{]+", template), 0, data)
    return text


def _run(parts: list[str], at: int, data: Any) -> tuple[str, int]:
    text = ""
    while at < len(parts):
        part = parts[at]
        at += 1
        if not part.startswith("{"):
            text += part
        elif part == "{end}":
            return text, at
        elif part.startswith("{range "):
            for item in _select(data, part[7:-1].strip()):
                more, _ = _run(parts, at, item)
                text += more
            depth = 1
            while depth:
                depth += parts[at].startswith("{range ") - (parts[at] == "{end}")
                at += 1
        elif part.startswith('{"'):
            text += json.loads(part[1:-1])
        else:
            text += " ".join(_shown(v) for v in _select(data, part[1:-1]))
    return text, at


def _select(data: Any, path: str) -> list[Any]:
    found, at = [data], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise Failed(f"error: error parsing jsonpath {path}")
        at = step.end()
        name, index, condition, value = step.groups()
        if name is not None:
            key = name.replace("\\", "")
            found = [v[key] for v in found if isinstance(v, dict) and key in v]
        elif index == "*":
            found = [x for v in found for x in v]
        elif index is not None:
            found = [v[int(index)] for v in found if len(v) > int(index)]
        else:
            found = [
                x
                for v in found
                for x in v
                if (values := _select(x, condition)) and (value is None or [value] == [_shown(y) for y in values])
            ]
    return found


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


# ---------------------------------------------------------------------------------------------------------------------
# helm


def helm(store: Store, arguments: list[str]) -> str:
    words, options = _split(
        [w for w in arguments if w not in {"--install", "--wait", "--wait=legacy", "--wait-for-jobs", "--no-hooks"}]
    )
    plan = store.state["helm"]
    match words[0]:
        case "version":
            return str(plan.get("version", "v3.18.6"))
        case "show":
            return str(store.state["crds"])
        case "upgrade":
            return _upgrade(store, words[1], options)
        case "rollback":
            for secret in _revisions(store, words[1], options["namespace"]):
                labels = secret["metadata"]["labels"]
                if labels["status"].startswith("pending"):
                    labels["status"] = "superseded"
            return "Rollback was a success!\n"
        case "uninstall":
            if words[1] in plan.get("stuck", []):
                raise Failed("Error: 1 error occurred: * timed out waiting for the condition")
            for secret in _revisions(store, words[1], options["namespace"]):
                store.drop("secrets", secret["metadata"]["name"], options["namespace"])
            _happen(store, f"uninstall {words[1]}")
            return ""
        case _:
            raise Failed(f'Error: unknown command "{words[0]}" for "helm"')


def _upgrade(store: Store, name: str, options: dict[str, str]) -> str:
    namespace = options["namespace"]
    revisions = _revisions(store, name, namespace)
    if revisions and revisions[-1]["metadata"]["labels"]["status"].startswith("pending"):
        raise Failed("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress")
    number = len(revisions) + 1
    failures = store.state["helm"].get("fail", {}).get(name, [])
    status, text = failures.pop(0) if failures else ("deployed", "")
    if status:
        for secret in revisions:
            if secret["metadata"]["labels"]["status"] == "deployed" and status == "deployed":
                secret["metadata"]["labels"]["status"] = "superseded"
        record(store, name, namespace, number, status, dict(p.split("=") for p in options["labels"].split(",")))
    if text:
        raise Failed(text)
    _happen(store, f"install {name}")
    return f"NAME: {name}\n"


def record(store: Store, name: str, namespace: str, number: int, status: str, labels: dict[str, str]) -> None:
    """Store the record of a revision as Helm does."""
    meta = {
        "name": f"sh.helm.release.v1.{name}.v{number}",
        "namespace": namespace,
        "creationTimestamp": f"2026-01-01T00:{store.state['calls'] // 60 % 60:02}:{store.state['calls'] % 60:02}Z",
        "labels": {"owner": "helm", "name": name, "version": str(number), "status": status, **labels},
    }
    store.put("secrets", {"metadata": meta})


def _revisions(store: Store, name: str, namespace: str) -> list[dict[str, Any]]:
    secrets = store.state["objects"].get("secrets", {}).values()
    mine = [
        s for s in secrets if s["metadata"]["namespace"] == namespace and s["metadata"]["labels"].get("name") == name
    ]
    return sorted(mine, key=lambda s: int(s["metadata"]["labels"]["version"]))


def _happen(store: Store, what: str) -> None:
    for delay, resource, data in store.state["helm"].get("effects", {}).get(what, []):
        store.state["later"].append([store.state["calls"] + delay, resource, data])


def main() -> int:
    folder, program, *arguments = sys.argv[1:]
    with Path(folder, "calls").open("a") as log:
        log.write(json.dumps([program, *arguments]) + "\n")
    store = Store(Path(folder))
    store.tick()
    context = "--context" if program == "kubectl" else "--kube-context"
    if context in arguments:
        del arguments[(at := arguments.index(context)) : at + 2]
    try:
        stdin = sys.stdin.read() if "-f" in arguments and "-" in arguments else ""
        sys.stdout.write(kubectl(store, arguments, stdin) if program == "kubectl" else helm(store, arguments))
    except Failed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        store.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
