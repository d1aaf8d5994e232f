"""Placement and storage: settings written at the value paths that components declare for them.

A setting is a layer of its own between the profile and what a bundle sets, so that an explicit value wins. Selectors
replace what was there: they say where pods go, and labels of two sources together may match no node at all.
Tolerations are added to those that the recipe gives the component: it runs nowhere without them (the taint of arm64
nodes, one that it removes itself), and one toleration more never keeps a pod away. The gate of workloads is a taint, so
that it is also tolerated by whatever has to run on a node for the gate to be lifted there.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compiler import predicates
from compiler.errors import Collector
from compiler.model import Component, Facts, PlacementSettings, Recipe, ResolvedComponent, StorageSettings
from compiler.paths import MISSING, lookup
from compiler.records import dataclass
from compiler.resolve import profile as profiles
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, merge
from compiler.resolve.profile import Choice
from compiler.resolve.settings import Written
from compiler.resolve.values import own_layers
from compiler.source import Origin, Path, dotted, parse_path


@dataclass(frozen=True)
class _Setting:
    """A setting that is set: its path in bundlec.yaml, its value by form, and where components declare its paths."""

    path: Path
    value: Any
    scope: str  # system | accelerated | workload | storage
    key: str  # nodeSelector | tolerations | taints | nodeCount | class | sharedClass
    follows: bool = False  # it goes with the setting before it, and may find no reader


def apply(
    placement: PlacementSettings,
    storage: StorageSettings,
    written: Written,
    drafts: Mapping[str, Draft],
    facts: Facts,
    choice: Choice | None,
    collector: Collector,
) -> None:
    """Write every setting to the enabled components that declare a path for it.

    `facts` know the recipe, the profile and the inputs; values are not known yet.

    Records BC2006 for a setting that none of them reads, and BC2008 for a path that a profile owns.
    """
    enabled = [drafts[name] for name in sorted(drafts) if drafts[name].enabled]
    for setting in _settings(placement, storage):
        origin = written.origin(setting.path)
        reached = False
        for draft in enabled:
            for path, value in _targets(draft.component, setting, facts):
                reached = True
                layer = Layer(dotted(setting.path), _tree(draft, path, value, setting), origin)
                if choice is not None:
                    profiles.guard(choice, draft.name, layer, collector)
                draft.layers.append(layer)
        if not reached and not setting.follows:
            _report_unread(setting, origin, enabled, collector)


def check(recipe: Recipe, facts: Facts, collector: Collector) -> None:
    """Record BC2010 for a component that must have a node selector and has none, and a warning for a disruptive one
    that runs on every node.
    """
    for component in recipe.enabled():
        for scope in ("system", "accelerated", "workload"):
            _require(component, scope, collector)
        missing = _without_selector(component, "accelerated")
        for when, text in component.component.disruptive:
            if missing and (when is None or predicates.evaluate(when, facts)):
                collector.warn(
                    "BC2017",
                    f"`{component.name}` is not limited to any nodes. {text}",
                    component.brought_by,
                    fix=f"set `placement.accelerated.nodeSelector` (--accelerated-node-selector), or {_shown(missing)}",
                )


def _settings(placement: PlacementSettings, storage: StorageSettings) -> Iterator[_Setting]:
    for scope, place in (("system", placement.system), ("accelerated", placement.accelerated)):
        if place.node_selector:
            yield _Setting(("placement", scope, "nodeSelector"), place.node_selector, scope, "nodeSelector")
        if place.tolerations is not None:
            yield _Setting(("placement", scope, "tolerations"), list(place.tolerations), scope, "tolerations")
    if placement.workload_selector:
        path = ("placement", "workload", "selector")
        yield _Setting(path, placement.workload_selector, "workload", "nodeSelector")
    if placement.workload_gate is not None:
        path, gate = ("placement", "workload", "gate"), placement.workload_gate
        yield _Setting(path, gate, "workload", "taints")
        yield _Setting(path, [toleration(gate)], "workload", "tolerations", follows=True)
    if placement.nodes is not None:
        yield _Setting(("placement", "nodes"), placement.nodes, "", "nodeCount")
    for key, name in (("class", storage.storage_class), ("sharedClass", storage.shared_class)):
        if name is not None:
            yield _Setting(("storage", key), name, "storage", key)


def _targets(component: Component, setting: _Setting, facts: Facts) -> Iterator[tuple[Path, Any]]:
    # The paths of a component that read the setting, and the value in the form that each wants.
    if setting.scope == "storage":
        for path in component.storage.get(setting.key, ()):
            yield parse_path(path), setting.value
        return
    scopes = [setting.scope] if setting.scope else ["system", "accelerated", "workload"]
    for scope in scopes:
        when = component.scheduling.get(scope, {}).get("when")
        if when is not None and not predicates.evaluate(when, facts):
            continue
        for item in component.scheduling.get(scope, {}).get(setting.key, ()):
            if setting.key == "taints":
                yield parse_path(item["path"]), setting.value if item["form"] == "object" else taint(setting.value)
            else:
                yield parse_path(item), setting.value


def taint(value: Mapping[str, str]) -> str:
    """A taint as kubectl writes it: `key=value:effect`."""
    return f"{value['key']}{'=' + value['value'] if value.get('value') else ''}:{value['effect']}"


def toleration(gate: Mapping[str, str]) -> dict[str, str]:
    """The toleration {key, operator, value?, effect} of a taint {key, value?, effect}, and of no other one."""
    said = {"operator": "Equal", "value": gate["value"]} if gate.get("value") else {"operator": "Exists"}
    return {"key": gate["key"], **said, "effect": gate["effect"]}


def _tolerated(before: Sequence[Any], item: Any) -> bool:
    # Whether pods that have the tolerations `before` tolerate whatever `item` does.
    return item in before or any(_covers(other, item) for other in before if isinstance(other, dict))


def _covers(wide: Mapping[str, Any], narrow: Any) -> bool:
    # Kubernetes: no key with Exists is every taint, no effect is every effect; seconds end a toleration.
    if not isinstance(narrow, Mapping) or wide.get("operator") != "Exists":
        return False
    if "tolerationSeconds" in wide or "tolerationSeconds" in narrow:
        return False
    return wide.get("key") in (None, "", narrow.get("key")) and wide.get("effect") in (None, "", narrow.get("effect"))


def _tree(draft: Draft, path: Path, value: Any, setting: _Setting) -> dict[str, Any]:
    # A copy for each path: nothing may be shared between two places of the output.
    node: Any = copy.deepcopy(dict(value) if isinstance(value, Mapping) else value)
    if isinstance(node, (dict, list)):
        before = lookup(merge([*own_layers(draft, Collector()), *draft.layers]).tree, path)
        if isinstance(node, dict) and isinstance(before, dict):
            node = {**{key: None for key in before if key not in node and before[key] is not None}, **node}
        elif isinstance(node, list) and isinstance(before, list):
            # What somebody asks for is written wherever it is not; what only follows, where it is needed.
            there = _tolerated if setting.follows else operator.contains
            node = [*copy.deepcopy(before), *(item for item in node if not there(before, item))]
    for step in reversed(path):
        node = {str(step): node}
    tree: dict[str, Any] = node
    return tree


def _report_unread(setting: _Setting, origin: Origin, enabled: Sequence[Draft], collector: Collector) -> None:
    reasons = [
        (d.component.origin, f"`{d.name}`: {fixed}")
        for d in enabled
        for fixed in [d.component.scheduling.get(setting.scope, {}).get("fixed")]
        if fixed
    ]
    collector.error(
        "BC2006",
        f"no component of this recipe reads `{dotted(setting.path)}`",
        origin,
        key=True,
        fix="remove it; in bundlec.yaml move it to the bundles whose components read it",
        notes=reasons,
    )


def _require(component: ResolvedComponent, scope: str, collector: Collector) -> None:
    rule = component.component.scheduling.get(scope, {}).get("require", False)
    missing = _without_selector(component, scope)
    if not rule or not missing:
        return
    why = "it must be told its nodes"
    if rule == "withStorageClass":
        classes = [parse_path(p) for paths in component.component.storage.values() for p in paths]
        claimed = [path for path in classes if lookup(component.values, path) not in (MISSING, None, "")]
        missing = [path for path in missing if any(_nearest(path, claim, component, scope) for claim in claimed)]
        if not missing:
            return
        why = f"its volumes bind it to one zone (`{dotted(claimed[0])}`), so it must be told its nodes"
    collector.error(
        "BC2010",
        f"`{component.name}` has no node selector, and {why}",
        component.brought_by,
        fix=f"set `placement.{scope}.nodeSelector` (--{scope}-node-selector), or {_shown(missing)}",
        notes=[(component.component.origin, f"`scheduling.{scope}.require` of the component")],
    )


def _nearest(path: Path, claim: Path, component: ResolvedComponent, scope: str) -> bool:
    # Whether no selector path of the component lies closer to the claim: they belong to one pod then.
    paths = [parse_path(p) for p in component.component.scheduling[scope].get("nodeSelector", ())]
    return _common(path, claim) == max(_common(other, claim) for other in paths)


def _common(left: Path, right: Path) -> int:
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _without_selector(component: ResolvedComponent, scope: str) -> list[Path]:
    paths = [parse_path(p) for p in component.component.scheduling.get(scope, {}).get("nodeSelector", ())]
    return [path for path in paths if lookup(component.values, path) in (MISSING, None, {})]


def _shown(paths: Sequence[Path]) -> str:
    return ", ".join(f"`{dotted(path)}`" for path in paths)
