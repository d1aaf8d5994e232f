"""As much of a Kubernetes API as kubectl asks for to get, to wait and to see a rollout: discovery, objects, watches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

# Resource with group -> (version, kind, namespaced).
RESOURCES = {
    "nodes": ("v1", "Node", False),
    "daemonsets.apps": ("v1", "DaemonSet", True),
    "deployments.apps": ("v1", "Deployment", True),
    "statefulsets.apps": ("v1", "StatefulSet", True),
    "jobs.batch": ("v1", "Job", True),
    "endpointslices.discovery.k8s.io": ("v1", "EndpointSlice", True),
    "customresourcedefinitions.apiextensions.k8s.io": ("v1", "CustomResourceDefinition", False),
    "nicclusterpolicies.mellanox.com": ("v1alpha1", "NicClusterPolicy", False),
    "sriovnetworknodestates.sriovnetwork.openshift.io": ("v1", "SriovNetworkNodeState", True),
}


class Api:
    """Objects by (resource, namespace, name); `url` is where kubectl finds them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.url = ""
        self.revision = 1

    def put(self, resource: str, name: str, namespace: str = "", **content: Any) -> None:
        """Create or replace an object."""
        version, kind, _ = RESOURCES[resource]
        group = resource.partition(".")[2]
        self.revision += 1
        metadata = {"generation": 1, **content.pop("metadata", {})}
        metadata |= {"name": name, "uid": name, "resourceVersion": str(self.revision)}
        if namespace:
            metadata["namespace"] = namespace
        head = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "metadata": metadata}
        self.objects[resource, namespace, name] = {**head, **content}

    def select(self, resource: str, namespace: str, query: dict[str, str]) -> list[dict[str, Any]]:
        """The objects of a list or watch."""
        wanted = dict(p.split("=", 1) for p in filter(None, query.get("labelSelector", "").split(",")))
        name = query.get("fieldSelector", "").removeprefix("metadata.name=")
        return [
            item
            for (kind, where, called), item in list(self.objects.items())
            if kind == resource
            and (not namespace or where == namespace)
            and (not name or called == name)
            and wanted.items() <= item["metadata"].get("labels", {}).items()
        ]


@contextmanager
def served() -> Iterator[Api]:
    """An API on a local port."""
    api = Api()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    api: Api
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        match url.path.strip("/").split("/"):
            case ["api"]:
                self.answer({"kind": "APIVersions", "versions": ["v1"]})
            case ["apis"]:
                self.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()})
            case ["api", version]:
                self.answer(_resources("", version))
            case ["apis", group, version]:
                self.answer(_resources(group, version))
            case ["api", _, *rest]:
                self.resource("", rest, query)
            case ["apis", group, _, *rest]:
                self.resource(group, rest, query)
            case _:
                self.missing(url.path)

    def resource(self, group: str, rest: list[str], query: dict[str, str]) -> None:
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = f"{rest[0]}.{group}" if group else rest[0]
        if len(rest) > 1:
            item = self.api.objects.get((resource, namespace, rest[1]))
            self.answer(item) if item is not None else self.missing(f'{resource} "{rest[1]}"')
        elif query.get("watch") in {"1", "true"}:
            self.watch(resource, namespace, query)
        else:
            version, kind, _ = RESOURCES[resource]
            head = {"kind": f"{kind}List", "apiVersion": f"{group}/{version}" if group else version}
            metadata = {"resourceVersion": str(self.api.revision)}
            self.answer({**head, "metadata": metadata, "items": self.api.select(resource, namespace, query)})

    def watch(self, resource: str, namespace: str, query: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen: dict[str, str] = {}
        first = self.api.select(resource, namespace, query)
        initial = query.get("sendInitialEvents") == "true"
        until = time.monotonic() + 10
        try:
            for item in first:
                seen[item["metadata"]["name"]] = item["metadata"]["resourceVersion"]
                if initial:
                    self.event("ADDED", item)
            if initial:
                version, kind, _ = RESOURCES[resource]
                group = resource.partition(".")[2]
                end = {"resourceVersion": str(self.api.revision), "annotations": {"k8s.io/initial-events-end": "true"}}
                head = {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}
                self.event("BOOKMARK", {**head, "metadata": end})
            while time.monotonic() < until:
                time.sleep(0.02)
                for item in self.api.select(resource, namespace, query):
                    name, revision = item["metadata"]["name"], item["metadata"]["resourceVersion"]
                    if seen.get(name) != revision:
                        self.event("MODIFIED" if name in seen else "ADDED", item)
                        seen[name] = revision
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def event(self, kind: str, item: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()

    def missing(self, what: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        self.answer({**status, "message": f"{what} not found"}, 404)

    def answer(self, data: Any, code: int = 200) -> None:
        body = json.dumps(data).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _groups() -> list[dict[str, Any]]:
    versions = {r.partition(".")[2]: version for r, (version, _, _) in RESOURCES.items() if "." in r}
    groups = []
    for group, version in versions.items():
        entry = {"groupVersion": f"{group}/{version}", "version": version}
        groups.append({"name": group, "versions": [entry], "preferredVersion": entry})
    return groups


def _resources(group: str, version: str) -> dict[str, Any]:
    found = [
        {
            "name": r.partition(".")[0],
            "singularName": "",
            "kind": kind,
            "namespaced": namespaced,
            "verbs": ["get", "list"],
        }
        for r, (_, kind, namespaced) in RESOURCES.items()
        if r.partition(".")[2] == group
    ]
    return {"kind": "APIResourceList", "groupVersion": f"{group}/{version}" if group else version, "resources": found}
