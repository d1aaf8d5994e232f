"""Building a Component out of component.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from compiler.durations import parse_duration
from compiler.errors import did_you_mean
from compiler.load.node import Node
from compiler.load.parts import Parts
from compiler.model import (
    PIECES,
    Chart,
    Check,
    Component,
    Conflict,
    Crd,
    Drift,
    Hook,
    Install,
    ManifestRef,
    NamespaceSpec,
    OnTimeout,
    Readiness,
    RequiredValue,
    Scope,
    Singleton,
    Stuck,
    Teardown,
)
from compiler.source import Origin, parse_path


def build_component(
    name: str,
    root: Node,
    checks: Node | None,
    parts: Parts,
    *,
    partial: bool,
) -> Component:
    """The component that `root` (a valid component.yaml) describes; `checks` is its checks.yaml.

    Files are not read here: `values`, `values_files` and `manifest_sources` are empty. `partial` says that something
    was cut out of the file, so that a check that is not there may have been. Records BC1203, BC1207, BC1209.
    """
    return _Builder(name, root.down("spec"), checks, parts, partial).component(root.origin)


class _Builder:
    def __init__(self, name: str, spec: Node, checks: Node | None, parts: Parts, partial: bool) -> None:
        self.name = name
        self.spec = spec
        self.parts = parts
        self.partial = partial
        self.check_nodes = dict(spec.pairs("checks"))
        for check_id, node in _top_pairs(checks):
            if check_id in self.check_nodes:
                parts.found.error(
                    "BC1203",
                    f"the check `{check_id}` stands in component.yaml too",
                    node.origin,
                    key=True,
                    notes=((self.check_nodes[check_id].origin, "here"),),
                )
            self.check_nodes[check_id] = node
        self.checks = {k: parts.check(n, k, component=name) for k, n in self.check_nodes.items()}
        install = spec.find("install")
        self.install = _install(install) if install else Install()

    def component(self, origin: Origin) -> Component:
        spec, parts, name = self.spec, self.parts, self.name
        chart, namespace = spec.find("chart"), spec.down("namespace")
        readiness, critical = spec.find("readiness"), spec.find("criticalPods")
        disruptive, upgrade = spec.find("disruptive"), spec.get("upgrade", {})
        storage = spec.get("storage", {})
        self._main_manifests(chart)
        self._without_chart(chart)
        self._value_paths()
        return Component(
            name=name,
            origin=origin,
            display_name=spec.get("displayName", name),
            description=spec.get("description", ""),
            aliases=spec.strings("aliases"),
            klass=spec.get("class", "core"),
            namespace=NamespaceSpec(
                namespace.data["name"], namespace.get("labels", {}), namespace.get("owner"), namespace.origin
            ),
            chart=Chart(chart.data["repository"].rstrip("/"), chart.data["name"], chart.data["version"])
            if chart
            else None,
            values=None,
            values_files={},
            manifest_values=spec.strings("manifestValues"),
            required_values=tuple(
                RequiredValue(n.data["path"], parts.when(n, component=name), n.data["message"], n.origin)
                for n in spec.items("requiredValues")
            ),
            locked_paths={n.data["path"]: n.data["reason"] for n in spec.items("lockedPaths")},
            chart_defaults=spec.strings("chartDefaults"),
            manifests=self._manifests(),
            manifest_sources={},
            crds=tuple(self._crd(n) for n in spec.items("crds")),
            requires=tuple(parts.api(n, component=name) for n in spec.items("requires")),
            creates=tuple(parts.api(n, component=name) for n in spec.items("creates")),
            needs=tuple(parts.need(n, "component", component=name) for n in spec.items("needs")),
            conflicts=tuple(
                Conflict(n.data["component"], parts.when(n, component=name), n.data["reason"], n.origin)
                for n in spec.items("conflicts")
            ),
            singletons=tuple(
                Singleton(n.data["group"], n.data["kind"], n.data["name"], parts.when(n, component=name))
                for n in spec.items("singleton")
            ),
            checks=self.checks,
            readiness_api=self._readiness(readiness, "api"),
            readiness_ready=self._readiness(readiness, "ready"),
            health=tuple(self._ids(spec, "health")) if "health" in spec else tuple(sorted(self.checks)),
            install=self.install,
            hooks=tuple(
                Hook(
                    n.data["event"],
                    n.data["name"],
                    n.data["effect"],
                    n.get("onFirstInstall", "ok"),
                    n.get("values", {}),
                )
                for n in spec.items("hooks")
            ),
            drift=tuple(
                Drift(
                    n.data["group"],
                    n.data["kind"],
                    n.get("name"),
                    n.get("namespace"),
                    n.strings("paths"),
                    n.data["reason"],
                )
                for n in spec.items("drift")
            ),
            upgrade_notes=tuple((n["to"], n["text"]) for n in upgrade.get("notes") or ()),
            upgrade_before=tuple(upgrade.get("before") or ()),
            teardown=self._teardown(),
            scheduling=self._scheduling(),
            storage={key: tuple(storage.get(key) or ()) for key in ("class", "sharedClass")},
            critical_pods=self._critical(critical),
            disruptive=((parts.when(disruptive, component=name), disruptive.data["text"]),) if disruptive else (),
            images=tuple({"path": n.data["path"], "form": n.get("form", "ref")} for n in spec.items("images")),
            mixin_paths=spec.strings("mixinPaths"),
            risks=tuple((n.data["path"], n.data["text"]) for n in spec.items("risks")),
            rules=parts.assertions(spec, "rules", component=name),
            prerequisites=tuple(parts.note(n, component=name) for n in spec.items("prerequisites")),
            operations=spec.strings("operations"),
            examples=parts.manifests(spec, "examples", component=name),
            subcharts={n.data["name"]: parts.when(n, component=name) for n in spec.items("subcharts")},
        )

    def _value_paths(self) -> None:
        nodes = [n for key in ("manifestValues", "chartDefaults", "mixinPaths") for n in self.spec.items(key)]
        nodes += [
            n.down("path") for key in ("requiredValues", "lockedPaths", "images", "risks") for n in self.spec.items(key)
        ]
        for _, scope in self.spec.pairs("scheduling"):
            nodes += [n for key in ("nodeSelector", "tolerations", "nodeCount") for n in scope.items(key)]
            nodes += [n.down("path") for n in scope.items("taints")]
        storage = self.spec.find("storage")
        nodes += [n for key in ("class", "sharedClass") for n in storage.items(key)] if storage else []
        for node in nodes:
            try:
                parse_path(node.data)
            except ValueError as error:
                self.parts.found.error("BC1102", str(error), node.origin)

    def _manifests(self) -> Mapping[str, tuple[ManifestRef, ...]]:
        manifests = self.spec.find("manifests")
        if manifests is None:
            return dict.fromkeys(PIECES, ())
        return {piece: self.parts.manifests(manifests, piece, component=self.name) for piece in PIECES}

    def _main_manifests(self, chart: Node | None) -> None:
        manifests = self.spec.find("manifests")
        if chart is not None and manifests is not None and manifests.get("main"):
            self.parts.found.error(
                "BC1102",
                "`main` manifests stand instead of a chart, and this component has one",
                manifests.down("main").origin,
                fix="list them under `pre` or `post`",
                key=True,
            )

    def _without_chart(self, chart: Node | None) -> None:
        # Whatever is said of a chart's objects is said of nothing. A file with a finding of its own may have had one.
        if chart is not None or self.partial:
            return
        about = [node for key in ("requires", "creates", "hooks", "subcharts") for node in self.spec.items(key)]
        about += [n.down("from") for n in self.spec.items("crds") if n.data["from"] in ("crds", "templates", "hook")]
        for node in about:
            field = next(str(step) for step in node.path[1:] if isinstance(step, str))
            self.parts.found.error(
                "BC1102",
                f"`{field}` tells of a chart, and this component has none",
                node.origin,
                fix="remove it; of its own manifests bundlec reads the kinds"
                if field != "crds"
                else "write `from: manifests`",
            )

    def _scheduling(self) -> Mapping[str, Any]:
        # As written, with the predicates read.
        scopes = self.spec.pairs("scheduling")
        return {key: {**node.data, "when": self.parts.when(node, component=self.name)} for key, node in scopes}

    def _critical(self, node: Node | None) -> Any:
        if node is None:
            return None
        # Without a condition it holds in every recipe.
        when = self.parts.when(node, component=self.name)
        return when or self.parts.predicate(
            Node({"component": self.name, "enabled": True}, node.document, node.path), component=self.name
        )

    def _crd(self, node: Node) -> Crd:
        after = node.get("after", {})
        if "check" in after and not self._known(after["check"]):
            self._unknown_check(after["check"], node.down("after", "check").origin)
        name: str = node.data["name"]
        return Crd(
            name=name,
            group=name.partition(".")[2],
            kind=node.data["kind"],
            scope=node.data["scope"],
            source=node.data["from"],
            versions=node.strings("versions"),
            when=self.parts.when(node, component=self.name),
            shared=node.get("shared", False),
            owner=node.get("owner", False),
            keep=node.get("keep", False),
            purge=node.get("purge", True),
            upgrade=node.get("upgrade", "apply"),
            apply_before=node.get("applyBefore", False),
            after_group=after.get("group"),
            after_kind=after.get("kind"),
            after_path=after.get("path"),
            after_check=after.get("check"),
            origin=node.origin,
        )

    def _readiness(self, parent: Node | None, key: str) -> Readiness | None:
        node = parent.find(key) if parent else None
        if node is None:
            return None
        timeout = node.get("timeout")
        return Readiness(
            checks=tuple(self._ids(node, "checks")),
            timeout=self.install.timeout if timeout is None else parse_duration(timeout),
            on_timeout=cast("OnTimeout", node.get("onTimeout", "fail")),
            scope=cast("Scope", node.get("scope", "always")),
            origin=node.origin,
        )

    def _teardown(self) -> Teardown:
        node = self.spec.find("teardown")
        if node is None:
            return Teardown()
        before: list[Check] = []
        for index, item in enumerate(node.items("before")):
            if not isinstance(item.data, str):
                before.append(self.parts.check(item, f"teardown-{index + 1}", component=self.name))
            elif item.data in self.checks:
                before.append(self.checks[item.data])
            elif not self._known(item.data):
                self._unknown_check(item.data, item.origin)
        stuck = tuple(
            Stuck(n.data["group"], n.data["kind"], n.get("namespace"), n.data["finalizer"], n.strings("commands"))
            for n in node.items("stuck")
        )
        return Teardown(tuple(before), node.get("keepCRDs", True), stuck)

    def _ids(self, node: Node, key: str) -> Iterator[str]:
        for item in node.items(key):
            if not self._known(item.data):
                self._unknown_check(item.data, item.origin)
            yield item.data

    def _known(self, check_id: str) -> bool:
        return check_id in self.checks or self.partial

    def _unknown_check(self, check_id: str, at: Origin) -> None:
        fix = did_you_mean(check_id, self.checks)
        if fix is None and self.checks:
            fix = f"checks of this component: {', '.join(self.checks)}"
        self.parts.found.error("BC1207", f"{self.name} has no check `{check_id}`", at, fix=fix)


def _install(node: Node) -> Install:
    timeout = node.get("timeout")
    return Install(
        timeout=Install.timeout if timeout is None else parse_duration(timeout),
        wait=node.get("wait", "workloads"),
        wait_for_jobs=node.get("waitForJobs", True),
    )


def _top_pairs(node: Node | None) -> Iterator[tuple[str, Node]]:
    if node is not None:
        for key in node.data:
            yield key, node.down(key)
