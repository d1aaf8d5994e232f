"""The lines that both text and Markdown are made of, without any markup but backticks around names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compiler.errors import Diagnostic
from compiler.paths import MISSING
from compiler.review.diff.model import (
    BundleDiff,
    Cause,
    ComponentDiff,
    Entry,
    FileChange,
    Link,
    ObjectChange,
    Report,
    Risk,
)
from compiler.review.diff.report import counted
from compiler.review.diff.values import Change
from compiler.review.diff.words import count


def differing(report: Report) -> list[BundleDiff]:
    """The bundles that were compared and differ."""
    return [b for b in report.bundles if b.status not in {"same", "broken"}]


def where(names: Sequence[str], report: Report) -> str:
    """` (in a, b)`, or nothing when it holds in every bundle that differs."""
    every = differing(report)
    if len(names) == len(every):
        return ""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f" (in {len(names)} of {count(len(every), 'bundle')}: {shown})" if len(names) > 1 else f" (in {shown})"


def cause(item: Cause) -> str:
    """`mixins/x.yaml:14` changes 3 values in 9 bundles."""
    gone = " (a line that went)" if item.place.side == "base" else ""
    verbs: dict[str, list[str]] = {}
    for kind, number in item.what.items():
        noun, _, state = kind.rpartition(" ")
        verb = {"added": "adds", "removed": "removes", "renamed": "renames"}.get(state)
        verbs.setdefault(verb or "changes", []).append(count(number, noun) if verb else _caused(kind, number))
    what = " and ".join(f"{verb} {', '.join(things)}" for verb, things in verbs.items())
    alone = set(item.what) <= {"bundle added", "bundle removed", "bundle renamed"}
    return f"`{item.place}`{gone} {what}" + ("" if alone else f" in {count(len(item.bundles), 'bundle')}")


def risk(item: Risk) -> str:
    """`<component>`: text."""
    named = not item.component or item.kind.startswith(("edge-", "gate-"))  # their sentences name the release
    return item.text if named else f"`{item.component}`: {item.text}"


def component_title(item: ComponentDiff) -> str:
    """`name`: status, versions, how much."""
    words = []
    if item.status == "renamed":
        words.append(f"renamed from `{item.old_name}`")
    elif item.status != "changed":
        words.append(item.status)
    if item.old_version != item.new_version and item.status in {"changed", "renamed"}:
        words.append(f"chart {item.old_version or '(none)'} -> {item.new_version or '(none)'}")
    for number, unit in ((len(item.values), "value"), (len(item.objects), "object")):
        words += [count(number, unit)] if number and item.status not in {"added", "removed"} else []
    words += [item.size] if item.size else []
    fields = shown_fields(item.fields)
    words += [count(len(fields), "other field")] if fields else []
    return f"`{item.name}`: {', '.join(words) or 'labels only'}"


def shown_fields(entries: Iterable[Entry]) -> list[Entry]:
    """Facts of releases but for the chart's version, which stands in the title."""
    return [e for e in entries if e.change.path != "chart.version"]


def in_words(change: Change) -> str:
    """A fact that is a sentence of its own, such as an edge that counts as satisfied; empty for everything else."""
    if change.steps[0] != "satisfied" or len(change.steps) != 2:
        return ""
    return f"{'no longer so' if change.new is MISSING else 'now so'}: {change.steps[1]}"


def origin(entry: Entry) -> str:
    """Who decides a value: `file:line, overlay x`; nothing when it is not known."""
    if entry.at is None:
        return entry.layer
    gone = " (went)" if entry.at.side == "base" else ""
    return f"{entry.at}{gone}" + (f", {entry.layer}" if entry.layer else "")


def object_title(item: ObjectChange) -> str:
    """`Kind namespace/name`, with what became of it."""
    was = f" (was {item.was})" if item.was else ""
    return f"{item.status}: {item.title}{was}"


def noise(counts: Mapping[str, int]) -> str:
    """One line for everything that follows from versions and checksums."""
    told = ", ".join(f"{path.removeprefix('metadata.')} in {count(n, 'object')}" for path, n in counts.items())
    return f"folded: {told}"


def folded(report: Report) -> str:
    """What of the emitted files only repeats the rest, or nothing."""
    told = sum(1 for b in differing(report) for f in b.files if f.part == "told")
    return (
        f"{count(told, 'emitted file')} only repeat the above in checksums, hashes, names and inventories"
        if told
        else ""
    )


def file_groups(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    """(title, hunk) of the files that no other entry shows, alike ones of one bundle and of several together."""
    shown: dict[tuple[Any, ...], dict[tuple[str, ...], str]] = {}  # the hunks that count as alike, each with a bundle
    found: dict[tuple[Any, ...], tuple[FileChange, dict[str, None], dict[str, None]]] = {}
    for bundle in differing(report):
        for item in bundle.files:
            if item.part not in {"wiring", "words"} and not item.reordered:
                continue
            # Files that came or went are shown by name only, so the name is what tells them apart.
            content: Any = item.hunk if item.status == "changed" and item.hunk else item.path
            if content == item.hunk and item.part == "words":
                content = _words_of(item.hunk) or item.hunk
            key = (item.status, item.part, item.reordered, content)
            _, paths, names = found.setdefault(key, (item, {}, {}))
            paths[item.path] = None
            names[bundle.name] = None
            shown.setdefault(key, {}).setdefault(item.hunk, bundle.name)
    return [
        (
            _file_title(item, list(paths))
            + where(list(names), report)
            + (f", the same words in each; shown: {shown[key][item.hunk]}" if len(shown[key]) > 1 else ""),
            item.hunk if item.status == "changed" else (),
        )
        for key, (item, paths, names) in found.items()
    ]


def _words_of(hunk: Sequence[str]) -> Any:
    """Which words of a short hunk others replace, line by line; None where lines came or went.

    Tables of READMEs list what every bundle has more of: a name that changes there changes alike in all of them.
    """
    old, new = ([line[1:] for line in hunk if line.startswith(sign)] for sign in "-+")
    if len(old) != len(new) or not 0 < len(old) <= 3:
        return None
    found = []
    for pair in zip(old, new, strict=True):
        left, right = (re.findall(r"[\w.-]+|\s+|.", line) for line in pair)
        codes = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
        found.append(tuple(("".join(left[a:b]), "".join(right[c:d])) for tag, a, b, c, d in codes if tag != "equal"))
    # Of lines that others replace as a whole the words say too little.
    small = all(len(words) <= 2 for words in found)
    return tuple(found) if small else None


def _file_title(item: FileChange, paths: Sequence[str]) -> str:
    extra = ", keys in another order, nothing else" if item.reordered else ""
    if len(paths) == 1:
        return f"{item.status}: {paths[0]} (+{item.added} -{item.removed}{extra})"
    shown = ", ".join(paths[:6]) + (f" and {len(paths) - 6} more" if len(paths) > 6 else "")
    return f"{item.status}, each +{item.added} -{item.removed}{extra}: {shown}"


def labels_only(report: Report) -> str:
    """Components of which only labels that repeat versions or the bundle's name change, or nothing."""
    found = [c for b in differing(report) for c in b.components if not substantial(c)]
    names = sorted({c.name for c in found})
    return f"labels that repeat versions or names, nothing else: {', '.join(names)}" if names else ""


def substantial(item: ComponentDiff) -> bool:
    """Whether more than labels changes in a component."""
    return item.status != "changed" or bool(item.values or item.fields or item.objects)


def bundle_row(bundle: BundleDiff) -> tuple[str, str, str, str, str, str, str]:
    """name, status, components, values, objects, order and gates, files."""
    status = f"renamed from {bundle.old_name}" if bundle.status == "renamed" else bundle.status
    components = ", ".join(
        f"{sign}{len(found)}"
        for sign, states in (("+", {"added"}), ("-", {"removed"}), ("~", {"changed", "renamed"}))
        if (found := [c for c in bundle.components if c.status in states and substantial(c)])
    )
    values = sum(len(c.values) for c in bundle.components)
    objects = sum(len(c.objects) for c in bundle.components)
    return (
        bundle.name,
        status,
        components or bundle.size,
        str(values or ""),
        str(objects or ""),
        str(len(bundle.order) or ""),
        str(len(bundle.files) or ""),
    )


COLUMNS = ("bundle", "status", "components", "values", "objects", "order", "files")


def link_line(link: Link) -> str:
    """`+ a ==> b`: a gate; `- a --> b`: plain order."""
    sign = {"added": "+", "removed": "-"}.get(link.status, " ")
    arrow = "==>" if link.label else "-->"
    return f"{sign} {link.provider} {arrow} {link.dependant}" + (f" ({link.label})" if link.label else "")


def mermaid(links: Iterable[Link]) -> list[str]:
    """A flowchart of links: green came, red and dotted went, thick is a gate."""
    lines = ["flowchart LR"]
    nodes: dict[str, str] = {}
    colours: list[str] = []
    for number, link in enumerate(links):
        for name in (link.provider, link.dependant):
            if name not in nodes:
                nodes[name] = f"n{len(nodes)}"
                lines.append(f'  {nodes[name]}["{name}"]')
        arrow = {"removed": "-. went .->"}.get(link.status, "==>" if link.label else "-->")
        came = "|new|" if link.status == "added" else ""
        lines.append(f"  {nodes[link.provider]} {arrow}{came} {nodes[link.dependant]}")
        colour = {"added": "#1a7f37", "removed": "#cf222e"}.get(link.status)
        colours += [f"  linkStyle {number} stroke:{colour}"] if colour else []
    return lines + colours


def chart_note(report: Report) -> str:
    """What a reader must know about charts, or nothing."""
    changed = sum(b.charts for b in report.bundles)
    if not changed:
        return ""
    names = {c.name for b in report.bundles for c in b.components if _other_chart(c)}
    return (
        f"Chart contents not compared: {count(len(names) or changed, 'chart')} changed version or source. "
        "What a new version renders, its CRDs and its defaults included, is not in this report."
    )


def broken(report: Report) -> list[tuple[list[str], str, tuple[Diagnostic, ...]]]:
    """(bundles, side, findings) of what does not compile: bundles that fail alike are told together."""
    found: dict[tuple[str, tuple[str, ...]], tuple[list[str], str, tuple[Diagnostic, ...]]] = {}
    for bundle in report.bundles:
        for side, errors in (("base", bundle.base_errors), ("head", bundle.head_errors)):
            if errors:
                key = (side, tuple(diagnostics(errors)))
                found.setdefault(key, ([], side, errors))[0].append(bundle.name)
    return list(found.values())


def diagnostics(found: Sequence[Diagnostic]) -> Iterator[str]:
    """Each finding on one line: place, code, message, fix."""
    for item in found:
        place = f"{item.span}: " if item.span and item.span.file else ""
        yield f"{place}[{item.code}] {item.message}" + (f" (fix: {item.fix})" if item.fix else "")


def _other_chart(item: ComponentDiff) -> bool:
    paths = {e.change.path for e in item.fields}
    return any(path.startswith("chart.") for path in paths)


def _caused(kind: str, number: int) -> str:
    word = {"edge": "edge", "gate": "gate", "order": "place in the order"}.get(kind, kind)
    return counted(word, number)
