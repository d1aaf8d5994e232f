"""Where a value comes from: the winner, and the chain that it overrode."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compiler.errors import Diagnostic, UserError, did_you_mean
from compiler.model import Catalog, Recipe, ResolvedComponent, TraceEntry
from compiler.paths import MISSING, lookup
from compiler.resolve.merge import leaves, overlap
from compiler.review.explain.model import Leaf, Link, ValueStory, place
from compiler.source import Path, dotted, parse_path

_CLOSE = 5  # paths that are proposed


def component_of(catalog: Catalog, recipe: Recipe, word: str) -> ResolvedComponent:
    """The component of a recipe by name or alias, in any case. Raises UserError (BC2016)."""
    for name, component in recipe.components.items():
        if word.lower() in {name.lower(), *(alias.lower() for alias in component.component.aliases)}:
            return component
    known = word.lower() in (name.lower() for name in catalog.components)
    what = f"takes no part in recipe `{recipe.name}`" if known else "is no component"
    raise UserError([Diagnostic("BC2016", f"`{word}` {what}", None, did_you_mean(word, recipe.components) or _LIST)])


def story(recipe: Recipe, component: ResolvedComponent, text: str) -> ValueStory:
    """The story of the value of `component` at a dotted path; "" is all of them.

    Raises UserError (BC2016) for a path that is not well-formed, or that no layer and no default of the chart knows;
    the fix holds the closest ones.
    """
    try:
        path = parse_path(text)
    except ValueError as error:
        raise UserError([Diagnostic("BC2016", str(error), None, 'write it like a.b.c, or a["b.c"][0]')]) from error
    trace = component.trace
    value = lookup(component.values, path)
    at = _traced(component, path)
    if at is None and path:
        return _unset(component, path, text)
    entries = trace[at] if at else ()
    rest = path[len(at) :] if at is not None else ()
    if rest and value is MISSING:
        raise _unknown(component, text)
    chain = tuple(_link(entry, rest, recipe, component) for entry in entries)
    return ValueStory(
        component=component.name,
        path=dotted(path),
        value=value,
        winner=chain[-1] if chain else None,
        chain=chain,
        items=tuple(_items(value, path, entries, rest)),
        below=tuple(below(component, path)) if isinstance(value, Mapping) and not rest else (),
        notes=tuple(_notes(recipe, component, path, value)),
    )


def below(component: ResolvedComponent, path: Path = ()) -> Iterator[Leaf]:
    """The leaves of a component's values below a path, in order, each with the layer that gave it."""
    value = lookup(component.values, path)
    if isinstance(value, dict):
        for inner, leaf in leaves(value, path):
            winner = component.trace[inner][-1]
            yield Leaf(dotted(inner), leaf, winner.layer, place(winner.origin))


def winner(component: ResolvedComponent, path: Path) -> TraceEntry | None:
    """Who gave the value at a path, or the list or map that holds it; None when no layer did."""
    at = _traced(component, path)
    return component.trace[at][-1] if at else None


def closest(component: ResolvedComponent, text: str) -> list[str]:
    """The known paths that come closest to one that does not exist, best first."""
    known = sorted({dotted(path) for path in component.trace} | set(component.component.chart_defaults))
    last = text.rpartition(".")[2]
    ends = [path for path in known if path.rpartition(".")[2] == last]
    ends.sort(key=lambda path: (-difflib.SequenceMatcher(None, text, path).ratio(), path))
    near = difflib.get_close_matches(text, known, n=_CLOSE, cutoff=0.6)
    return list(dict.fromkeys([*ends, *near]))[:_CLOSE]


_LIST = "`bundlec explain RECIPE` lists the components"


def _traced(component: ResolvedComponent, path: Path) -> Path | None:
    """The path itself or the list above it that the trace knows: what lies inside a list came with the list."""
    for length in range(len(path), 0, -1):
        if path[:length] in component.trace:
            whole = length == len(path)
            inside = isinstance(lookup(component.values, path[:length]), list)
            return path[:length] if whole or inside else None
    return None


def _link(entry: TraceEntry, rest: Path, recipe: Recipe, component: ResolvedComponent) -> Link:
    origin, value = entry.origin, entry.value
    if rest and lookup(value, rest) is not MISSING:
        origin, value = origin.down(*rest), lookup(value, rest)
    elif rest:
        value = MISSING
    return Link(entry.layer, _rule(entry, recipe, component), value, place(origin))


def _rule(entry: TraceEntry, recipe: Recipe, component: ResolvedComponent) -> str:
    action = {"deleted": "deleted by null", "null": "deletes a default of the chart"}.get(entry.action, entry.action)
    kind = entry.layer.partition(" ")[0]
    if kind == "--set":
        return f"injected by a flag ({action})"
    if kind.partition(".")[0] in ("placement", "storage", "mirrors"):
        return f"injected by a setting ({action})"
    if kind == "input":
        return f"injected by an input ({action})"
    if kind == "profile" and recipe.profile is not None:
        owned = any(name == component.name for name, _ in recipe.profile.owned_paths)
        return f"locked by the profile ({action})" if owned and entry.action != "merged" else action
    return action


def _items(value: Any, path: Path, entries: Sequence[TraceEntry], rest: Path) -> Iterator[Leaf]:
    if not isinstance(value, list) or not entries:
        return
    for index, item in enumerate(value):
        giver = _giver(entries, (*rest, index), item)
        yield Leaf(dotted((*path, index)), item, giver.layer, place(giver.origin.down(*rest, index)))


def _giver(entries: Sequence[TraceEntry], at: Path, item: Any) -> TraceEntry:
    """Who gave an item of a list: `--set a[0]=x` replaces one item, and its layer repeats the others."""
    number = len(entries) - 1
    while number and entries[number].layer == "--set" and lookup(entries[number - 1].value, at) == item:
        number -= 1
    return entries[number]


def _notes(recipe: Recipe, component: ResolvedComponent, path: Path, value: Any) -> Iterator[str]:
    spec = component.component
    text = dotted(path)
    if not component.enabled:
        yield f"`{component.name}` is switched off in this recipe: nothing of it is emitted"
    if isinstance(value, list):
        yield "lists do not merge: the last layer that writes one gives all of its items"
    if recipe.profile is not None:
        for name, owned in recipe.profile.owned_paths:
            if name == component.name and path and overlap(path, parse_path(owned)):
                yield (
                    f"`{owned}` is locked by the profile {recipe.profile.name}={recipe.profile.value}: "
                    "nothing may set it to another value"
                )
    for locked, reason in spec.locked_paths.items():
        if path and overlap(path, parse_path(locked)):
            yield f"`{locked}` is locked by the component: {reason}"
    if spec.chart is None:
        yield "the component has no chart: its manifest templates alone read this"
    elif any(path[: len(ours)] == ours for ours in map(parse_path, spec.manifest_values) if ours):
        yield "read by the component's own manifest templates; it is not written for the chart"
    elif path and value is MISSING:
        written = lookup(component.chart_values, path)
        if written is None:
            yield f"`{text}: null` is written for the chart, and takes away the chart's own default"
        else:
            yield "nothing is written for the chart; its own default, if it has one, applies"


def _unset(component: ResolvedComponent, path: Path, text: str) -> ValueStory:
    defaults = [parse_path(default) for default in component.component.chart_defaults]
    if not any(overlap(path, default) for default in defaults):
        raise _unknown(component, text)
    note = "no layer sets it: the chart's own default applies"
    return ValueStory(component.name, dotted(path), MISSING, None, (), (), (), (note,))


def _unknown(component: ResolvedComponent, text: str) -> UserError:
    near = closest(component, text)
    fix = f"the closest: {_quoted(near)}" if near else f"`bundlec explain RECIPE {component.name}` lists what is set"
    return UserError([Diagnostic("BC2016", f"no layer sets `{component.name}:{text}`", None, fix)])


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
