"""A report as text for a terminal: everything, in order of importance."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.paths import MISSING
from compiler.review.diff import tell
from compiler.review.diff.model import ComponentDiff, Entry, Report
from compiler.review.diff.objects import text_hunk
from compiler.review.diff.report import groups, risks
from compiler.review.diff.words import arrow


def text(report: Report) -> str:
    """The whole report; nothing is left out."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield report.verdict
    if report.base or report.head:
        yield f"  base: {report.base}"
        yield f"  head: {report.head}"
    for note in report.notes:
        yield f"  note: {note}"
    yield from _broken(report)
    bundles = tell.differing(report)
    yield from _risks(report)
    if report.causes:
        yield from ("", "Causes")
        for cause in report.causes:
            yield f"  {tell.cause(cause).replace('`', '')}"
            if cause.place.text:
                yield f"      {cause.place.text}"
    yield from _order(report)
    if len(bundles) > 1 or any(b.status in {"added", "removed", "renamed"} for b in bundles):
        yield from ("", "Bundles")
        yield from (f"  {line}" for line in _table([tell.COLUMNS, *map(tell.bundle_row, bundles)]))
    for component, names in groups(bundles, "components"):
        if not tell.substantial(component):
            continue
        yield ""
        yield tell.component_title(component).replace("`", "") + tell.where(names, report)
        yield from (f"  {line}" for line in _component(component))
    fields = groups(bundles, "fields", lambda entry: tuple(_entry(entry)))
    if fields:
        yield from ("", "Settings and facts of the bundles")
        for entry, names in fields:
            yield from (f"  {line}" for line in _entry(entry, tell.where(names, report)))
    files = tell.file_groups(report)
    if files:
        yield from ("", "Files of the deployers, and words")
        for title, hunk in files:
            yield f"  {title}"
            yield from (f"    {line}" for line in hunk)
    for line in (tell.labels_only(report), tell.folded(report)):
        if line:
            yield from ("", line)
    if report.idle:
        yield from ("", "Sources that differ without any effect on these bundles")
        yield from (f"  {file}" for file in report.idle)
    if tell.chart_note(report):
        yield from ("", tell.chart_note(report))


def _broken(report: Report) -> Iterator[str]:
    for side, found in (("base", report.base_errors), ("head", report.head_errors)):
        if found:
            yield from ("", f"The {side} does not compile")
            yield from (f"  {line}" for line in tell.diagnostics(found))
    for names, side, found in tell.broken(report):
        verb, rest = ("does", "it is") if len(names) == 1 else ("do", "they are")
        yield from ("", f"{', '.join(names)} {verb} not compile on the {side}; {rest} not compared")
        yield from (f"  {line}" for line in tell.diagnostics(found))


def _risks(report: Report) -> Iterator[str]:
    found = risks(tell.differing(report))
    if not found:
        return
    yield from ("", "Risks")
    for severity in ("high", "medium", "low"):
        for risk, names in found:
            if risk.severity != severity:
                continue
            yield f"  {severity:<6}  {tell.risk(risk)}{tell.where(names, report)}"
            if risk.at is not None:
                yield f"          at {risk.at}"
            for deployer, advice in risk.advice:
                yield f"          {deployer + ': ' if deployer else ''}{advice}"


def _order(report: Report) -> Iterator[str]:
    bundles = tell.differing(report)
    changes = groups(bundles, "order")
    links = [(link, names) for link, names in groups(bundles, "links") if link.status != "kept"]
    if changes or links:
        yield from ("", "Order and gates")
    for change, names in changes:
        at = f"  [{change.at}]" if change.at else ""
        yield f"  {change.text}{tell.where(names, report)}{at}"
    if links and changes:
        yield ""
    if links:
        yield from (f"    {tell.link_line(link)}{tell.where(names, report)}" for link, names in links)


def _component(item: ComponentDiff) -> Iterator[str]:
    if item.at is not None:
        yield f"at {item.at}: {item.at.text}" if item.at.text else f"at {item.at}"
    yield from item.notes
    for entry in tell.shown_fields(item.fields):
        yield from _entry(entry)
    for entry in item.values:
        yield from _entry(entry)
    for change in item.objects:
        yield tell.object_title(change) + (f"  [{change.where}]" if change.where else "")
        yield from (f"  {line}" for line in change.hunk)
    if item.noise:
        yield tell.noise(item.noise)


def _entry(entry: Entry, suffix: str = "") -> Iterator[str]:
    change = entry.change
    who = tell.origin(entry)
    end = (f"  [{who}]" if who else "") + suffix
    if _long(change.old) and _long(change.new):
        yield f"{change.path}:{end}"
        yield from (f"  {line}" for line in text_hunk(str(change.old).splitlines(), str(change.new).splitlines()))
    else:
        yield f"{tell.in_words(change) or f'{change.path}: {arrow(change)}'}{end}"


def _long(value: object) -> bool:
    return value is not MISSING and isinstance(value, str) and "\n" in value.rstrip("\n")


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    width = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(size) for cell, size in zip(row, width, strict=True)).rstrip()
