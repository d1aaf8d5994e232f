"""What a bundle entry and the command line do to the components of a recipe: switch off, and set values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compiler import yamlio
from compiler.errors import Collector, UserError, did_you_mean
from compiler.model import BundleEntry, Catalog, Flags, vocabulary
from compiler.records import dataclass
from compiler.resolve import draft as drafting
from compiler.resolve import indexed, misspelt
from compiler.resolve import profile as profiles
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer
from compiler.resolve.profile import Choice
from compiler.source import Origin, Path, built_in, dotted

_SWITCHES = ("enabled", "install")


@dataclass(frozen=True)
class Saying:
    """What an entry's `set` or one assignment of a flag says about a component: values below `layer.origin`.

    `path` is set for an assignment whose path goes through a list: the layer is made when the list is known.
    """

    draft: Draft
    layer: Layer
    path: Path = ()


def switch(
    catalog: Catalog,
    entry: BundleEntry,
    flags: Flags,
    drafts: Mapping[str, Draft],
    choice: Choice | None,
    collector: Collector,
) -> tuple[Saying, ...]:
    """Apply `disable` of the entry and every `enabled` of its `set` and of the flags; the values that are left over.

    Records BC1001 and BC1004 for what a flag says and no values file can hold. A source file is held to that when read.
    Records BC1203 for a component that `set` names by two of its names, BC2006 for one that the recipe does not have
    or that is switched off already, BC2008 for what a profile owns, and BC2015 for switching on what the recipe
    switched off.
    """
    names = _names(catalog)
    _refuse_unwritable(flags, collector)
    _refuse_named_twice(entry, names, collector)
    for index, (name, reason) in enumerate(entry.disable):
        at = entry.origin.down("disable", index, "component")
        draft = _find(name, names, drafts, at, collector)
        if draft is None:
            continue
        if not draft.enabled:
            _report_off(draft, "disables", at, "remove the entry", collector)
        else:
            _disable(draft, at, reason, choice, collector)
    left: list[Saying] = []
    for layer, name, path in _layers(entry, flags):
        draft = _find(name, names, drafts, layer.origin, collector)
        if draft is None:
            continue
        values = {key: value for key, value in layer.data.items() if key not in _SWITCHES}
        for key in sorted(layer.data.keys() - values.keys()):
            _switch(draft, layer, key, choice, collector)
        if values:
            left.append(Saying(draft, Layer(layer.name, values, layer.origin), path))
    return tuple(left)


def assign(sayings: Iterable[Saying], choice: Choice | None, collector: Collector) -> None:
    """Lay the values of `switch` over the components, in its order.

    Records BC2005 and BC2006 for an index that the list does not have, BC2006 for a component that is off, and BC2008
    for a path that a profile owns. Warns (BC2018) of what looks like a slip of the pen.
    """
    for saying in sayings:
        draft, layer = saying.draft, saying.layer
        if not draft.enabled:
            _report_off(draft, "sets values of", layer.origin, "remove it, or enable the component", collector)
        if saying.path:
            items = indexed.assigned(draft, saying.path, layer, collector)
            if items is None:
                continue
            layer = Layer(layer.name, items, layer.origin)
        if choice is not None:
            profiles.guard(choice, draft.name, layer, collector)
        misspelt.warn(draft, layer, collector)
        draft.layers.append(layer)


def _refuse_unwritable(flags: Flags, collector: Collector) -> None:
    for name, path, value in flags.set:
        try:
            yamlio.dump({name: value})
        except UserError as error:
            for found in error.diagnostics:
                # The path in the message begins with the name, for which the path of the flag stands.
                below, _, reason = found.message.removeprefix(dotted((name,))).partition(": ")
                message = f"`{name}:{dotted(path)}{below}`: {reason}"
                collector.error(found.code, message, built_in(f"--set {name}:{dotted(path)}"), fix=found.fix)


def _refuse_named_twice(entry: BundleEntry, names: Mapping[str, str], collector: Collector) -> None:
    # The order of keys in a mapping means nothing, so there is no telling which of the two wins.
    seen: dict[str, str] = {}
    for word in entry.set:
        name = names.get(word.lower(), word)
        first = seen.setdefault(name, word)
        if first != word:
            collector.error(
                "BC1203",
                f"`set` names the component `{name}` twice",
                entry.origin.down("set", word),
                key=True,
                fix="write one mapping",
                notes=[(entry.origin.down("set", first), f"as `{first}`")],
            )


def _layers(entry: BundleEntry, flags: Flags) -> Iterator[tuple[Layer, str, Path]]:
    """(layer, component, path where it goes through a list). Of two flags the one with the deeper path wins, and items
    of a list are set in their order, so that it does not matter which was given first.
    """
    for name, values in entry.set.items():
        yield Layer(f"bundle {entry.name}", values, entry.origin.down("set", name)), name, ()
    for name, path, value in sorted(flags.set, key=lambda given: _place(given[1])):
        data: Any = value
        for step in reversed(path):
            data = {step: data}
        at = built_in(f"--set {name}:{dotted(path)}")
        through = any(isinstance(step, int) for step in path)
        yield Layer("--set", data, at), name, path if through else ()


def _place(path: Path) -> tuple[tuple[bool, int, str], ...]:
    # What a path lies in comes before it, and of two items of a list the first.
    return tuple((True, 0, step) if isinstance(step, str) else (False, step, "") for step in path)


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
    enabled = vocabulary.switch(value)
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
