"""A report as data, in the form of schemas/diff.schema.json: everything, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.errors import Diagnostic
from compiler.paths import MISSING
from compiler.review.diff import tell
from compiler.review.diff.model import (
    BundleDiff,
    ComponentDiff,
    Entry,
    FileChange,
    ObjectChange,
    Place,
    Report,
    plain,
)

VERSION = 1
"""Of the form; it grows when a reader of the old form could misread the new one."""


def data(report: Report) -> dict[str, Any]:
    """The report as plain dicts and lists."""
    return {
        "version": VERSION,
        "verdict": report.verdict,
        "differs": report.differs,
        "base": {"label": report.base, "diagnostics": _diagnostics(report.base_errors)},
        "head": {"label": report.head, "diagnostics": _diagnostics(report.head_errors)},
        "notes": [*report.notes, *([note] if (note := tell.chart_note(report)) else [])],
        "causes": [
            {
                "at": _place(c.place),
                "changes": dict(c.what),
                "components": list(c.components),
                "bundles": list(c.bundles),
            }
            for c in report.causes
        ],
        "sourcesWithoutEffect": list(report.idle),
        "bundles": [_bundle(b) for b in report.bundles],
    }


def _bundle(item: BundleDiff) -> dict[str, Any]:
    return {
        "name": item.name,
        "status": item.status,
        **_optional("oldName", item.old_name),
        **_optional("recipe", item.recipe),
        **_optional("at", _place(item.at)),
        **_optional("size", item.size),
        "risks": [
            {
                "kind": r.kind,
                "severity": r.severity,
                **_optional("component", r.component),
                "text": r.text,
                "advice": [{**_optional("deployer", who), "text": text} for who, text in r.advice],
                **_optional("at", _place(r.at)),
            }
            for r in item.risks
        ],
        "order": [
            {"kind": o.kind, "status": o.status, "release": o.release, "text": o.text, **_optional("at", _place(o.at))}
            for o in item.order
        ],
        "links": [
            {"provider": x.provider, "dependant": x.dependant, "status": x.status, "gate": x.label == "gate"}
            for x in item.links
        ],
        "components": [_component(c) for c in item.components],
        "fields": [_entry(e) for e in item.fields],
        "files": [_file(f) for f in item.files],
        "chartsNotCompared": item.charts,
        "diagnostics": {"base": _diagnostics(item.base_errors), "head": _diagnostics(item.head_errors)},
    }


def _component(item: ComponentDiff) -> dict[str, Any]:
    return {
        "name": item.name,
        "status": item.status,
        **_optional("oldName", item.old_name),
        **_optional("oldVersion", item.old_version),
        **_optional("newVersion", item.new_version),
        **_optional("size", item.size),
        **_optional("at", _place(item.at)),
        "values": [_entry(e) for e in item.values],
        "fields": [_entry(e) for e in item.fields],
        "objects": [_object(o) for o in item.objects],
        "upgradeNotes": list(item.notes),
        "folded": dict(item.noise),
    }


def _entry(item: Entry) -> dict[str, Any]:
    """A side that has nothing there has no key: null is a value."""
    change = item.change
    return {
        "path": change.path,
        "change": change.verb,
        **({} if change.old is MISSING else {"old": plain(change.old)}),
        **({} if change.new is MISSING else {"new": plain(change.new)}),
        **_optional("at", _place(item.at)),
        **_optional("layer", item.layer),
    }


def _object(item: ObjectChange) -> dict[str, Any]:
    return {
        "group": item.group,
        "kind": item.kind,
        **_optional("namespace", item.namespace),
        "name": item.name,
        "status": item.status,
        **_optional("was", item.was),
        "hunk": list(item.hunk),
        "folded": list(item.noise),
        **_optional("at", _place(item.at)),
        **_optional("alsoAt", [_place(place) for place in item.more]),
    }


def _file(item: FileChange) -> dict[str, Any]:
    return {
        "path": item.path,
        "status": item.status,
        "part": item.part,
        "added": item.added,
        "removed": item.removed,
        "reordered": item.reordered,
        "hunk": list(item.hunk),
        **_optional("at", _place(item.at)),
    }


def _place(item: Place | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {"file": item.file, "line": item.line, "side": item.side, "text": item.text}


def _diagnostics(found: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    return [
        {
            "code": d.code,
            "message": d.message,
            **({"file": d.span.file, "line": d.span.line, "column": d.span.column} if d.span and d.span.file else {}),
            **_optional("fix", d.fix),
        }
        for d in found
    ]


def _optional(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}
