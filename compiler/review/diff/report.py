"""All bundles of two sides compared and gathered: which belong together, the causes, the verdict. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from compiler.errors import Diagnostic
from compiler.records import dataclass
from compiler.review.diff.compare import compare, likeness, whole
from compiler.review.diff.model import BundleDiff, Cause, Place, Report, Risk
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.sources import Sources
from compiler.review.diff.words import count

_GATES = re.compile(r"(?<![\w-])[a-z0-9][a-z0-9-]*-gates(?![\w-])")
_ALIKE = 0.5  # share of equal releases from which a bundle of another name counts as the renamed one


@dataclass(frozen=True)
class Side:
    """What one side compiled to: a snapshot for each bundle, or why there is none.

    `errors` are those of the sources as a whole; then `bundles` is empty and nothing can be said about any bundle.
    """

    label: str
    bundles: Mapping[str, Snapshot] = field(default_factory=dict)
    broken: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    errors: tuple[Diagnostic, ...] = ()


def report(base: Side, head: Side, sources: Sources, command: str = "", notes: Sequence[str] = ()) -> Report:
    """The comparison of two sides. A bundle that does not compile on a side is told as such, and not compared."""
    bundles = [] if base.errors or head.errors else list(_bundles(base, head, sources))
    bundles.sort(key=lambda b: b.name)
    found = causes(bundles, sources)
    named = {cause.place.file for cause in found}
    # The files of a component that came or went are its own, whatever they hold.
    come_or_gone = {
        name for b in bundles for c in b.components if c.status != "changed" for name in (c.name, c.old_name)
    }
    folders = tuple(f"components/{name}/" for name in come_or_gone if name)
    edited = {f for f in {*sources.base, *sources.head} if sources.edited(f)}
    edited = {f for f in edited if not f.startswith(folders) and not any(f"/{folder}" in f for folder in folders)}
    telling = not (base.errors or head.errors or any(b.status == "broken" for b in bundles))
    idle = tuple(_idle(edited, named, sources)) if telling else ()
    errors = base.errors, head.errors
    result = Report(base.label, head.label, command, "", tuple(bundles), found, idle, tuple(notes), *errors)
    return replace(result, verdict=_verdict(result))


def of_two(base: Snapshot, head: Snapshot, labels: tuple[str, str], command: str = "") -> Report:
    """The comparison of two emitted bundles, whatever they are called."""
    diff = compare(base, head, Sources({}, {}))
    notes = ("read from emitted files: which source line caused what, and what components call risky, is not known",)
    result = Report(*labels, command, "", (diff,), (), (), notes)
    return replace(result, verdict=_verdict(result))


def causes(bundles: Iterable[BundleDiff], sources: Sources) -> tuple[Cause, ...]:
    """What each edited source line changes, the lines with the widest effect first.

    A line that decides a value now and was not edited itself is no cause.
    """
    what: dict[Place, dict[str, set[Any]]] = {}
    where: dict[Place, set[str]] = {}
    whom: dict[Place, set[str]] = {}
    for bundle in bundles:
        for place, kind, key, component in _effects(bundle):
            if place is not None and sources.edited_line(place):
                what.setdefault(place, {}).setdefault(kind, set()).add(key)
                where.setdefault(place, set()).add(bundle.name)
                if component:
                    whom.setdefault(place, set()).add(component)
    found = [
        Cause(
            place,
            {kind: len(keys) for kind, keys in kinds.items()},
            tuple(sorted(where[place])),
            tuple(sorted(whom.get(place, ()))),
        )
        for place, kinds in what.items()
    ]
    return tuple(sorted(found, key=_rank))


def _rank(item: Cause) -> Any:
    """The widest reach first; of equal reach, what brings or takes a component or a bundle as a whole."""
    whole_ = any(kind.startswith(("component ", "bundle ")) for kind in item.what)
    return -len(item.bundles), not whole_, item.place.file, item.place.line, item.place.side


def groups(
    bundles: Iterable[BundleDiff], part: str, told: Callable[[Any], Any] = repr
) -> list[tuple[Any, tuple[str, ...]]]:
    """The items of a part (`components`, `risks`, `order`, ...) over all bundles, each once, with its bundles.

    In the order of their first bundle. Items are one where `told` says the same of them.
    """
    found: dict[Any, tuple[Any, list[str]]] = {}
    for bundle in bundles:
        for item in getattr(bundle, part):
            found.setdefault(told(item), (item, []))[1].append(bundle.name)
    return [(item, tuple(dict.fromkeys(names))) for item, names in found.values()]


def told_risk(item: Risk) -> Risk:
    """A risk without the prefix of its bundle, where it is about the rights of the bundle's own gates."""
    if item.component or item.kind != "rbac":
        return item
    return replace(item, text=_GATES.sub("(prefix)-gates", item.text))


def risks(bundles: Iterable[BundleDiff]) -> list[tuple[Risk, tuple[str, ...]]]:
    """The risks of all bundles, each once, with its bundles; what differs in the bundles' prefixes only is one."""
    items = list(bundles)
    exact: dict[Risk, set[Risk]] = {}
    for bundle in items:
        for risk in bundle.risks:
            exact.setdefault(told_risk(risk), set()).add(risk)
    found = groups(items, "risks", told_risk)
    return [(item if len(exact[told_risk(item)]) == 1 else told_risk(item), names) for item, names in found]


def _told(bundles: Iterable[BundleDiff]) -> set[Risk]:
    return {told_risk(risk) for bundle in bundles for risk in bundle.risks}


def _effects(bundle: BundleDiff) -> Iterator[tuple[Place | None, str, Any, str]]:
    """(place, kind of thing, what tells it from others, component) of every entry of a bundle."""
    for component in bundle.components:
        if component.status in {"added", "removed"}:
            yield component.at, f"component {component.status}", component.name, component.name
        elif component.status == "renamed":
            yield component.at, "component renamed", component.name, component.name
        for entry in component.values:
            yield entry.at, "value", (component.name, entry.change.path), component.name
        for entry in component.fields:
            kind = "chart version" if entry.change.path == "chart.version" else "field"
            yield entry.at, kind, (component.name, entry.change.path), component.name
        if component.status in {"added", "removed"}:
            continue
        for item in component.objects:
            for place in (item.at, *item.more):
                yield place, "object", item.title, component.name
    for entry in bundle.fields:
        yield entry.at, "setting" if entry.change.path.startswith("settings.") else "field", entry.change.path, ""
    for file in bundle.files:
        yield file.at, "example", file.path, ""
    for order in bundle.order:
        yield order.at, order.kind, order.text, order.release
    if bundle.status in {"added", "removed", "renamed"}:
        yield bundle.at, f"bundle {bundle.status}", bundle.name, ""


def _bundles(base: Side, head: Side, sources: Sources) -> Iterator[BundleDiff]:
    for name in sorted({*base.broken, *head.broken}):
        yield BundleDiff(
            name,
            "broken",
            base_errors=base.broken.get(name, ()),
            head_errors=head.broken.get(name, ()),
        )
    broken = {*base.broken, *head.broken}
    old = {name: s for name, s in base.bundles.items() if name not in broken}
    new = {name: s for name, s in head.bundles.items() if name not in broken}
    for name in sorted(old.keys() & new.keys()):
        yield compare(old[name], new[name], sources)
    gone = {name: old[name] for name in sorted(old.keys() - new.keys())}
    for name in sorted(new.keys() - old.keys()):
        scores = sorted(((likeness(s, new[name]), n) for n, s in gone.items()), reverse=True)
        if scores and scores[0][0] >= _ALIKE:
            diff = compare(gone.pop(scores[0][1]), new[name], sources)
        else:
            diff = whole(new[name], added=True)
        yield replace(diff, at=_entry_place(new[name], sources, base_side=False))
    for snapshot in gone.values():
        yield replace(whole(snapshot, added=False), at=_entry_place(snapshot, sources, base_side=True))


def _idle(files: Iterable[str], named: Iterable[str], sources: Sources) -> Iterator[str]:
    """Files that differ and cause nothing; one that was moved is told as such."""
    left, known = set(files), set(named)
    for new in sorted(left - sources.base.keys()):
        gone = (f for f in sorted(left - sources.head.keys()) if _alike(sources.base[f], sources.head[new]))
        old = next(gone, None)
        if old is not None:
            left -= {old, new}
            if not {old, new} & known:  # else a line of it is a cause, which tells the new name
                yield f"{old} -> {new} (moved)"
    yield from sorted(left - known)


def _alike(old: str, new: str) -> bool:
    lines = [set(text.split("\n")) for text in (old, new)]
    return len(lines[0] & lines[1]) >= 0.6 * max(map(len, lines))


def _entry_place(snapshot: Snapshot, sources: Sources, *, base_side: bool) -> Place | None:
    if snapshot.catalog is None:
        return None
    entry = snapshot.catalog.workspace.bundles.get(snapshot.bundle)
    return sources.place(entry.origin.down("name"), "base" if base_side else "head") if entry else None


def _verdict(result: Report) -> str:
    """One line: what a reader needs who reads no further."""
    for side, errors in (("base", result.base_errors), ("head", result.head_errors)):
        if errors:
            return f"The {side} ({getattr(result, side)}) does not compile: nothing can be compared."
    broken = [b for b in result.bundles if b.status == "broken"]
    differing = [b for b in result.bundles if b.status not in {"same", "broken"}]
    quiet = [b for b in differing if _quiet(b)]
    loud = [b for b in differing if b not in quiet]
    sentences = []
    if broken:
        names = ", ".join(b.name for b in broken)
        verb = "does" if len(broken) == 1 else "do"
        if any(b.head_errors for b in broken):
            sentences.append(f"{names} {verb} not compile")
        else:
            sentences.append(f"{names} did not compile before and {'now does' if verb == 'does' else 'now do'}")
    if not differing and not broken:
        verb = "compiles" if len(result.bundles) == 1 else "compile"
        return f"No change: {count(len(result.bundles), 'bundle')} {verb} to the same files."
    if loud:
        found = _told(loud)
        all_ = len(loud) == len(result.bundles)
        where = f"{count(len(loud), 'bundle')}" if all_ else f"{len(loud)} of {count(len(result.bundles), 'bundle')}"
        high = sum(1 for risk in found if risk.severity == "high")
        told = f"{count(len(found), 'risk')} ({high} high)" if found else "no known risk"
        which = f" ({loud[0].name})" if len(loud) == 1 else ""  # there may be no table that names it
        if charts := _other_charts(loud):
            told += f"; {count(charts, 'chart')} changed version or source, contents not compared"
        sentences.append(f"{where} change{'s' if len(loud) == 1 else ''}{which}: {_extent(loud)}; {told}")
    if quiet:
        which = f" ({quiet[0].name})" if len(quiet) == 1 else ""
        sentences.append(
            f"{count(len(quiet), 'bundle')} change{'s' if len(quiet) == 1 else ''}{which} in words or in the order of "
            "keys only, nothing on the cluster"
        )
    return "; ".join(sentences) + "."


def _other_charts(bundles: Iterable[BundleDiff]) -> int:
    """How many components have another chart, or another version of it: what that renders is in no report."""
    found = {c.name for b in bundles for c in b.components if any(e.change.path.startswith("chart.") for e in c.fields)}
    return len(found)


def _quiet(bundle: BundleDiff) -> bool:
    """Whether nothing that reaches a cluster differs."""
    told = bundle.components or bundle.order or bundle.risks or bundle.status != "changed"
    harmless = all(f.part in {"told", "words"} or f.reordered for f in bundle.files)
    return not told and harmless


def _extent(bundles: Iterable[BundleDiff]) -> str:
    """What changes, counted once over all bundles."""
    kinds: dict[str, set[Any]] = {}
    for bundle in bundles:
        if bundle.status in {"added", "removed", "renamed"}:
            kinds.setdefault(f"bundle {bundle.status}", set()).add(bundle.name)
        for component in bundle.components:
            if component.values or component.fields or component.objects or component.status != "changed":
                kinds.setdefault(f"component {component.status}", set()).add(component.name)
            kinds.setdefault("value", set()).update((component.name, e.change.path) for e in component.values)
            kinds.setdefault("object", set()).update(o.title for o in component.objects)
        kinds.setdefault("change of order or gates", set()).update(o.text for o in bundle.order)
        kinds.setdefault("setting or fact", set()).update(e.change.path for e in bundle.fields)
    return ", ".join(counted(kind, len(found)) for kind, found in kinds.items() if found)


def counted(kind: str, number: int) -> str:
    """`3 values`, `1 component removed`, `2 changes of order or gates`."""
    noun, _, rest = kind.partition(" ")
    if kind == "chart version":
        return count(number, kind)
    if kind == "setting or fact":
        return f"1 {kind}" if number == 1 else f"{number} settings or facts"
    return count(number, noun) + (f" {rest}" if rest else "")
