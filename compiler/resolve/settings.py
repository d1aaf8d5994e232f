"""Settings of a bundle: built-in < bundlec.yaml < the bundle's entry < flags. Maps merge, lists replace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from compiler.durations import parse_duration
from compiler.errors import Collector, did_you_mean
from compiler.model import (
    DEPLOYERS,
    ArgoSettings,
    BundleEntry,
    Catalog,
    Flags,
    FluxSettings,
    GateSettings,
    GitSettings,
    Place,
    PlacementSettings,
    Settings,
    StorageSettings,
)
from compiler.paths import MISSING, lookup
from compiler.resolve import forms, mirrors
from compiler.resolve.merge import Layer, LayerTrace, merge
from compiler.source import Origin, Path, built_in
from compiler.versions import parse_version

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OLDEST: Mapping[tuple[str, str], str] = {
    ("argocd", "minVersion"): ArgoSettings.min_version,
    ("flux", "minVersion"): FluxSettings.min_version,
    ("helm", "minVersion"): Settings.helm_min_version,
    ("helmfile", "minVersion"): Settings.helmfile_min_version,
}
# Maps that are one value: `server` and `name` of a destination exclude each other, and a taint is a taint.
_WHOLE: Sequence[Path] = (("argocd", "destination"), ("placement", "workload", "gate"))
T = TypeVar("T")


def settings(catalog: Catalog, entry: BundleEntry, flags: Flags, collector: Collector) -> tuple[Settings, Written]:
    """The settings of a bundle, and who wrote them.

    Records BC1102 for what Kubernetes would not take, BC4001 for a prefix that is no DNS label or that another bundle
    has, BC4002 for a Git repository that is only half given, and BC4003 for what cannot be honoured: a version below
    the supported one, an unknown deployer, a mirror that nothing can be read from.
    """
    merged = Written(catalog, entry, flags)
    forms.check(merged, collector)
    for (section, key), oldest in _OLDEST.items():
        _check_version(merged, section, key, oldest, collector)
    deployers = _deployers(merged, flags, collector)
    _check_helm(merged, deployers, collector)
    chosen = Settings(
        prefix=_prefix(catalog, entry, collector),
        deployers=deployers,
        git=_git(merged, catalog, entry, deployers, collector),
        argocd=_argocd(merged.section("argocd")),
        flux=_flux(merged.section("flux")),
        gates=_gates(merged.section("gates")),
        mirrors=mirrors.read(merged.tree.get("mirrors", ()), merged.origin, collector),
        placement=_placement(merged.section("placement")),
        storage=_storage(merged.section("storage")),
        **_given(
            {
                "helm_min_version": (merged.section("helm"), "minVersion", str),
                "helm_extra_args": (merged.section("helm"), "extraArgs", tuple),
                "helmfile_min_version": (merged.section("helmfile"), "minVersion", str),
            }
        ),
    )
    return chosen, merged


class Written:
    """The raw sections of bundlec.yaml, of the entry and of the flags, merged, and who wrote what."""

    def __init__(self, catalog: Catalog, entry: BundleEntry, flags: Flags) -> None:
        workspace = {key: value for key, value in catalog.workspace.settings.items() if key != "lint"}
        layers = [
            Layer("bundlec.yaml", workspace, catalog.workspace.origin.down("spec")),
            Layer(f"bundle {entry.name}", entry.settings, entry.origin),
            *(Layer(given, sections, built_in(given)) for given, sections in flags.settings),
        ]
        for path in _WHOLE:
            said = [layer for layer in layers if lookup(layer.data, path) is not MISSING]
            for layer in said[:-1]:
                layers[layers.index(layer)] = Layer(layer.name, _without(layer.data, path), layer.origin)
        self.layers = tuple(layers)
        self._entry = entry
        self.tree = merge(self.layers).tree

    def section(self, name: str) -> Mapping[str, Any]:
        """A section as merged; empty when nobody wrote it."""
        section: Mapping[str, Any] = self.tree.get(name, {})
        return section

    def origin(self, path: Path) -> Origin:
        """Who wrote the node at `path` last."""
        return LayerTrace(self.layers)[path][-1].origin

    def said(self, path: Path) -> Origin | None:
        """Who wrote the node at `path` last, or what it lies in if that is no map; None when nobody did."""
        if path in (("name",), ("prefix",)):
            key = "prefix" if path == ("prefix",) and self._entry.prefix else "name"
            return self._entry.origin.down(key)
        for end in range(len(path), 0, -1):
            node = lookup(self.tree, path[:end])
            if node is not MISSING and (end == len(path) or not isinstance(node, dict)):
                trace = LayerTrace(self.layers)
                known = next(path[:n] for n in range(end, 0, -1) if path[:n] in trace)
                return trace[known][-1].origin.down(*path[len(known) :])
        return None


def _without(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    key, rest = str(path[0]), path[1:]
    return {k: _without(v, rest) if k == key else v for k, v in data.items() if k != key or rest}


def _given(wanted: Mapping[str, tuple[Mapping[str, Any], str, Callable[[Any], Any]]]) -> dict[str, Any]:
    # Only what is written, so that the dataclasses' own defaults are the built-in settings.
    return {field: read(section[key]) for field, (section, key, read) in wanted.items() if key in section}


def _same(value: T) -> T:
    return value


def _argocd(section: Mapping[str, Any]) -> ArgoSettings:
    given = _given(
        {
            "namespace": (section, "namespace", str),
            "project": (section, "project", str),
            "min_version": (section, "minVersion", str),
            "self_heal": (section, "selfHeal", bool),
            "prune": (section, "prune", bool),
            "waves": (section, "waves", str),
        }
    )
    if "destination" in section:
        destination = section["destination"]
        given |= {"server": destination.get("server"), "cluster_name": destination.get("name")}
    return ArgoSettings(**given)


def _flux(section: Mapping[str, Any]) -> FluxSettings:
    source = section.get("source", {})
    return FluxSettings(
        **_given(
            {
                "namespace": (section, "namespace", str),
                "source_kind": (source, "kind", str),
                "source_name": (source, "name", str),
                "source_existing": (source, "existing", bool),
                "source_secret": (source, "secretRef", str),
                "source_interval": (source, "interval", str),
                "min_version": (section, "minVersion", str),
                "service_account": (section, "serviceAccount", str),
                "kube_config": (section, "kubeConfig", str),
            }
        )
    )


def _gates(section: Mapping[str, Any]) -> GateSettings:
    job = section.get("job", {})
    return GateSettings(
        **_given(
            {
                "ready": (section, "ready", bool),
                "poll": (section, "poll", parse_duration),
                "timeout_scale": (section, "timeoutScale", float),
                "min_nodes": (section, "minNodes", int),
                "image": (job, "image", str),
                "pull_secrets": (job, "pullSecrets", tuple),
                "node_selector": (job, "nodeSelector", _same),
                "tolerations": (job, "tolerations", tuple),
                "priority_class": (job, "priorityClass", str),
            }
        )
    )


def _placement(section: Mapping[str, Any]) -> PlacementSettings:
    workload = section.get("workload", {})
    return PlacementSettings(
        system=_place(section.get("system", {})),
        accelerated=_place(section.get("accelerated", {})),
        **_given(
            {
                "workload_selector": (workload, "selector", _same),
                "workload_gate": (workload, "gate", _same),
                "nodes": (section, "nodes", int),
            }
        ),
    )


def _place(section: Mapping[str, Any]) -> Place:
    return Place(
        **_given({"node_selector": (section, "nodeSelector", _same), "tolerations": (section, "tolerations", tuple)})
    )


def _storage(section: Mapping[str, Any]) -> StorageSettings:
    return StorageSettings(
        **_given({"storage_class": (section, "class", str), "shared_class": (section, "sharedClass", str)})
    )


def _git(
    merged: Written, catalog: Catalog, entry: BundleEntry, deployers: tuple[str, ...], collector: Collector
) -> GitSettings | None:
    section = merged.section("git")
    missing = [key for key in ("url", "revision") if key not in section]
    if missing:
        if section.keys() & {"url", "revision"} and {"argocd", "flux"} & set(deployers):
            collector.error(
                "BC4002",
                f"`git.{missing[0]}` is not set, and argocd and flux read the bundle from Git",
                merged.origin(("git",)),
                key=True,
                fix=f"add `{missing[0]}` to `git`",
            )
        return None
    folder = str(section.get("path", catalog.workspace.out))
    steps = [step for step in folder.split("/") if step not in ("", ".")]
    if folder.startswith("/") or ".." in steps:
        at = merged.origin(("git", "path")) if "path" in section else catalog.workspace.origin.down("spec", "out")
        fix = "`git.path` is the folder of the bundles, relative to the repository's root"
        collector.error("BC1206", f"`{folder}` does not lie inside the repository", at, fix=fix)
    return GitSettings(section["url"], section["revision"], "/".join([*steps, entry.name]))


def _deployers(merged: Written, flags: Flags, collector: Collector) -> tuple[str, ...]:
    chosen = flags.deployers if flags.deployers is not None else merged.tree.get("deployers", DEPLOYERS)
    for name in chosen:
        if name not in DEPLOYERS:
            at = built_in(f"--deployer {name}") if flags.deployers is not None else merged.origin(("deployers",))
            fix = did_you_mean(name, DEPLOYERS) or f"one of: {', '.join(DEPLOYERS)}"
            collector.error("BC4003", f"there is no deployer `{name}`", at, fix=fix)
    return tuple(deployer for deployer in DEPLOYERS if deployer in chosen)


def _prefix(catalog: Catalog, entry: BundleEntry, collector: Collector) -> str:
    prefix = entry.prefix or entry.name
    at = entry.origin.down("prefix" if entry.prefix else "name")
    if not _LABEL.fullmatch(prefix):
        fix = "lower-case letters, digits and `-`, beginning and ending with a letter or digit"
        collector.error("BC4001", f"the prefix `{prefix}` is no DNS label", at, fix=fix)
    for other in catalog.workspace.bundles.values():
        if other.name != entry.name and (other.prefix or other.name) == prefix:
            collector.error(
                "BC4001",
                f"the prefix `{prefix}` is that of bundle `{other.name}` as well",
                at,
                fix="set another `prefix` on one of them: both would own the same Argo CD and Flux objects",
                notes=[(other.origin, f"bundle `{other.name}`")],
            )
    return prefix


def _check_helm(merged: Written, deployers: tuple[str, ...], collector: Collector) -> None:
    # They may change what is installed, and controllers call no helm command that could take them.
    refused = [deployer for deployer in deployers if deployer in ("argocd", "flux")]
    if merged.section("helm").get("extraArgs") and refused:
        collector.error(
            "BC4003",
            f"`helm.extraArgs` are words of the helm command, which {' and '.join(refused)} "
            f"{'does' if len(refused) == 1 else 'do'} not run",
            merged.origin(("helm", "extraArgs")),
            key=True,
            fix="remove it, or limit `deployers` to deploy.sh and helmfile",
        )


def _check_version(merged: Written, section: str, key: str, oldest: str, collector: Collector) -> None:
    written = merged.section(section).get(key)
    if written is None:
        return
    have, need = parse_version(written), parse_version(oldest)
    assert need is not None
    if have is None or have < need[: len(have)]:
        what = f"is below {oldest}, the oldest supported one" if have else "is no version"
        at = merged.origin((section, key))
        collector.error("BC4003", f"`{section}.{key}: {written}` {what}", at, fix=f'"{oldest}" or newer')
