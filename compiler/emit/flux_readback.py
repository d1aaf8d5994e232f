"""Flux: the order that emitted files hold, read from `flux/` alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compiler.emit import flux_remove
from compiler.emit.flux_checks import JOB_DONE, Command, Health
from compiler.emit.flux_site import GRAPH
from compiler.model import Files, Wiring
from compiler.records import dataclass
from compiler.yamlio import load_all


@dataclass(frozen=True)
class _Node:
    """A Kustomization of the graph: the releases that it brings, what it holds back for, what it waits for."""

    releases: tuple[str, ...]
    tokens: frozenset[str]
    depends: tuple[str, ...]
    waits: bool  # whether it is ready only when what it applied is
    faults: tuple[str, ...]


def read_back(files: Files) -> Wiring:
    """The releases of `flux/graph/`, the pairs that dependsOn orders (through gates), and the checks before each.

    And the order of `flux/remove.sh`, with what it waits for. A dependsOn that names no node is a fault: its owner
    waits for ever. So is a chart in Git that holds more than a template: the commit upgrades it at once, and not the
    turn of its node. Raises `UserError` BC1001 for text that is not YAML.
    """
    paths = sorted(files)
    nodes = {name: _node(spec, base, files, paths) for name, spec, base in _kustomizations(files)}
    hard: set[tuple[str, str]] = set()
    guards: dict[str, frozenset[str]] = {}
    behind: dict[str, frozenset[str]] = {}
    faults: list[str] = []
    for name, node in nodes.items():
        missing = [depends for depends in node.depends if depends not in nodes]
        faults += [f"the Kustomization {name} waits for {depends}, which is not there" for depends in missing]
        faults += node.faults
        if not node.releases:
            continue
        providers, tokens = _before(name, nodes)
        hard.update((provider, release) for provider in providers for release in node.releases)
        if tokens:
            guards.update(dict.fromkeys(node.releases, tokens))
            behind.update(dict.fromkeys(node.releases, _gates_behind(node, nodes)))
    releases = tuple(release for node in nodes.values() for release in node.releases)
    removal, partings = flux_remove.read_back(files)
    return Wiring(releases, frozenset(hard), frozenset(), guards, behind, tuple(faults), removal, partings)


def _gates_behind(node: _Node, nodes: Mapping[str, _Node]) -> frozenset[str]:
    """The releases that every gate of a node waits for."""
    gates = [depends for depends in node.depends if depends in nodes and nodes[depends].tokens]
    return frozenset.intersection(*(frozenset(_before(gate, nodes)[0]) for gate in gates)) if gates else frozenset()


def _before(name: str, nodes: Mapping[str, _Node]) -> tuple[set[str], frozenset[str]]:
    """The releases that a node waits for directly or through nodes without releases, and the checks of those."""
    providers: set[str] = set()
    tokens: frozenset[str] = frozenset()
    seen: set[str] = set()
    open_ = list(nodes[name].depends)
    while open_:
        current = open_.pop()
        node = nodes.get(current)
        if node is None or current in seen:
            continue
        seen.add(current)
        if node.releases:
            if node.waits:
                providers.update(node.releases)
            continue
        tokens |= node.tokens
        open_.extend(node.depends)
    return providers, tokens


def _kustomizations(files: Files) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """(name, spec, the bundle's folder in the source) of the nodes that the root really applies."""
    for root in _objects(files, "flux/root.yaml", "Kustomization"):
        path = str(root["spec"].get("path", "")).removeprefix("./")
        if not path.endswith(GRAPH) or root["spec"].get("suspend"):
            continue
        base = path.removesuffix(GRAPH)
        for item in _built(files, GRAPH, "Kustomization"):
            yield item["metadata"]["name"], item["spec"], base


def _node(spec: Mapping[str, Any], base: str, files: Files, paths: Sequence[str]) -> _Node:
    folder = str(spec.get("path", "")).removeprefix("./").removeprefix(base)
    suspended = bool(spec.get("suspend"))
    items = [i for i in _built(files, folder, "HelmRelease") if not suspended and not i["spec"].get("suspend")]
    releases = tuple(str(item["spec"]["releaseName"]) for item in items)
    faults = tuple(
        f"the release {item['spec']['releaseName']} is upgraded by any commit that changes {path}, before its gates"
        for item in items
        for path in _ungated(item["spec"], base, paths)
    )
    # A readyExpr takes the place of the check that the dependency is ready.
    depends = tuple(d["name"] for d in spec.get("dependsOn", ()) if "readyExpr" not in d)
    waits = bool(spec.get("wait"))
    tokens = frozenset(_tokens(spec, folder, files)) if not waits and not suspended else frozenset[str]()
    return _Node(releases, tokens, depends, waits, faults)


def _ungated(spec: Mapping[str, Any], base: str, paths: Sequence[str]) -> Iterator[str]:
    """The content of a release's chart in Git, but for Chart.yaml and the one template that every such chart has."""
    chart = spec.get("chart", {}).get("spec", {})
    if chart.get("sourceRef", {}).get("kind") in {"GitRepository", "Bucket"}:
        folder = str(chart.get("chart", "")).removeprefix("./").removeprefix(base)
        start, end = (bisect_left(paths, f"{folder}{after}") for after in "/0")  # `0` comes right after `/`
        shell = (f"{folder}/Chart.yaml", f"{folder}/templates/all.tpl")
        yield from (path for path in paths[start:end] if path not in shell)


def _tokens(spec: Mapping[str, Any], folder: str, files: Files) -> Iterator[str]:
    """One token for every health check (Flux ignores them beside `wait`), with the expression that applies to it."""
    expressions: dict[tuple[str, str], str] = {}
    for entry in spec.get("healthCheckExprs", ()):
        expressions[Health(entry["apiVersion"], entry["kind"], "", None, None).group_kind] = entry["current"]
    commands = {
        (item["metadata"].get("namespace"), item["metadata"]["name"]): Command(tuple(container["args"]))
        for item in _built(files, folder, "Job")
        for container in item["spec"]["template"]["spec"]["containers"]
    }
    for entry in spec.get("healthChecks", ()):
        health = Health(entry["apiVersion"], entry["kind"], entry["name"], entry.get("namespace"), None)
        current = expressions.get(health.group_kind)
        command = commands.get((health.namespace, health.name))
        if command is not None and health.kind == "Job" and current == JOB_DONE:
            yield command.token
        else:
            yield Health(health.api_version, health.kind, health.name, health.namespace, current).token


def _built(files: Files, folder: str, kind: str) -> Iterator[Mapping[str, Any]]:
    """The objects of a kind that the `kustomization.yaml` of a folder lists."""
    for kustomization in _objects(files, f"{folder}/kustomization.yaml", "Kustomization"):
        for resource in kustomization.get("resources", ()):
            yield from _objects(files, f"{folder}/{resource}", kind)


def _objects(files: Files, path: str, kind: str) -> Iterator[Mapping[str, Any]]:
    if path not in files:
        return
    for document in load_all(files[path].decode(), path, strict=False):
        if isinstance(document.data, dict) and document.data.get("kind") == kind:
            yield document.data
