"""What a bundle entry and the command line do to the components of a recipe: switch off, and set values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import BundleEntry, Catalog, Flags
from compiler.resolve import draft as drafting
from compiler.resolve import profile as profiles
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer
from compiler.resolve.profile import Choice
from compiler.source import Origin, built_in

_SWITCHES = ("enabled", "install")
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


def apply(
    catalog: Catalog,
    entry: BundleEntry,
    flags: Flags,
    drafts: Mapping[str, Draft],
    choice: Choice | None,
    collector: Collector,
) -> None:
    """Apply `disable` and `set` of the entry, then the values of the flags.

    Records BC2006 for a component that the recipe does not have or that is switched off already, BC2008 for what a
    profile owns, and BC2015 for switching on what the recipe switched off.
    """
    names = _names(catalog)
    for index, (name, reason) in enumerate(entry.disable):
        at = entry.origin.down("disable", index, "component")
        draft = _find(name, names, drafts, at, collector)
        if draft is None:
            continue
        if not draft.enabled:
            _report_off(draft, "disables", at, "remove the entry", collector)
        else:
            _disable(draft, at, reason, choice, collector)
    for layer, name, at in _layers(entry, flags):
        draft = _find(name, names, drafts, at, collector)
        if draft is None:
            continue
        values = {key: value for key, value in layer.data.items() if key not in _SWITCHES}
        for key in sorted(layer.data.keys() - values.keys()):
            _switch(draft, layer, key, choice, collector)
        if not values:
            continue
        if not draft.enabled:
            _report_off(draft, "sets values of", at, "remove it, or enable the component", collector)
        if choice is not None:
            profiles.guard(choice, draft.name, Layer(layer.name, values, layer.origin), collector)
        draft.layers.append(Layer(layer.name, values, layer.origin))


def _layers(entry: BundleEntry, flags: Flags) -> Iterator[tuple[Layer, str, Origin]]:
    for name, values in entry.set.items():
        at = entry.origin.down("set", name)
        yield Layer(f"bundle {entry.name}", values, at), name, at
    for name, path, value in flags.set:
        data: Any = value
        for step in reversed(path):
            data = {step: data}
        at = built_in(f"--set {name}:{'.'.join(map(str, path))}")
        yield Layer("--set", data, at), name, at


def _names(catalog: Catalog) -> dict[str, str]:
    # What people may call a component: its name or an alias, in any case.
    found = {name.lower(): name for name in catalog.components}
    for name in sorted(catalog.components):
        for alias in catalog.components[name].aliases:
            found.setdefault(alias.lower(), name)
    return found


def _find(
    word: str, names: Mapping[str, str], drafts: Mapping[str, Draft], at: Origin, collector: Collector
) -> Draft | None:
    name = names.get(word.lower())
    draft = drafts.get(name) if name is not None else None
    if draft is None:
        known = [alias for alias, component in names.items() if component in drafts]
        what = "is no component" if name is None else "takes no part in this recipe"
        collector.error("BC2006", f"`{word}` {what}", at, key=True, fix=did_you_mean(word, known) or "remove it")
    return draft


def _switch(draft: Draft, layer: Layer, key: str, choice: Choice | None, collector: Collector) -> None:
    at, value = layer.origin.down(key), layer.data[key]
    enabled = _BOOLEANS.get(str(value).lower()) if isinstance(value, (bool, str)) else None
    if enabled is None:
        collector.error("BC1102", f"`{key}` switches the component `{draft.name}`: true or false", at)
    elif enabled and not draft.enabled:
        collector.error(
            "BC2015",
            f"`{draft.name}` is switched off ({draft.reason}) and cannot be switched on by a bundle",
            at,
            fix="enable it in an overlay",
            notes=[] if draft.switched_by is None else [(draft.switched_by, "it is switched off here")],
        )
    elif not enabled and draft.enabled:
        _disable(draft, at, layer.name, choice, collector)


def _disable(draft: Draft, at: Origin, reason: str, choice: Choice | None, collector: Collector) -> None:
    if choice is not None and draft.name in choice.owned:
        collector.error(
            "BC2008",
            f"`{draft.name}` cannot be switched off: profile `{choice.profile.name}` owns values of it",
            at,
            fix=f"choose another value of the profile: {', '.join(sorted(choice.profile.values))}",
            notes=[(choice.value.origin, f"`{choice.value.name}` is declared here")],
        )
        return
    drafting.switch(draft, enabled=False, origin=at, reason=reason)


def _report_off(draft: Draft, verb: str, at: Origin, fix: str, collector: Collector) -> None:
    collector.error(
        "BC2006",
        f"this {verb} `{draft.name}`, which is switched off already ({draft.reason})",
        at,
        key=True,
        fix=fix,
        notes=[] if draft.switched_by is None else [(draft.switched_by, "it is switched off here")],
    )
