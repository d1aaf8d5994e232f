"""The result of lint for programs: GitHub's workflow commands, SARIF 2.1.0, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compiler.codes import CODES
from compiler.errors import Diagnostic
from compiler.source import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "docs/errors.md"


def github(found: Iterable[Diagnostic]) -> str:
    """A line for each finding that GitHub Actions shows beside the source line."""
    return "\n".join(_command(item) for item in found)


def sarif(found: Sequence[Diagnostic], waived: Sequence[tuple[Diagnostic, str]], version: str) -> dict[str, Any]:
    """A SARIF log with one run; waived findings are in it as suppressed results. `version` is bundlec's."""
    codes = sorted({item.code for item in (*found, *(item for item, _ in waived))})
    rules = [
        {"id": code, "shortDescription": {"text": CODES[code]}, "helpUri": f"{_HELP}#{code.lower()}"} for code in codes
    ]
    results = [_result(item, codes) for item in found]
    for item, reason in waived:
        suppressed = {"suppressions": [{"kind": "external", "justification": reason}]}
        results.append({**_result(item, codes), **suppressed})
    driver = {"name": "bundlec", "version": version, "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the workspace"}}},
                "results": results,
            }
        ],
    }


def _command(item: Diagnostic) -> str:
    word = {"error": "error", "warning": "warning"}.get(item.severity, "notice")
    fields = {"title": item.code}
    if item.span is not None and item.span.file and not item.span.file.startswith("<"):
        fields = {"file": item.span.file, **_numbers(item.span), **fields}
    properties = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in fields.items())
    return f"::{word} {properties}::{_escaped(_message(item), '')}"


def _numbers(span: Span) -> dict[str, str]:
    return {"line": str(span.line), "col": str(span.column)} if span.line else {}


def _message(item: Diagnostic) -> str:
    text = item.message
    for span, note in item.notes:
        text += f"\nnote: {note}" + (f" ({span})" if span.file else "")
    return text + (f"\nfix: {item.fix}" if item.fix else "")


def _escaped(text: str, also: str) -> str:
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _result(item: Diagnostic, codes: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": codes.index(item.code),
        "level": item.severity if item.severity in ("error", "warning") else "note",
        "message": {"text": item.message + (f"\nfix: {item.fix}" if item.fix else "")},
    }
    if item.span is not None and item.span.file and not item.span.file.startswith("<"):
        result["locations"] = [_location(item.span)]
    related = [{**_location(span), "message": {"text": text}} for span, text in item.notes if span.file]
    if related:
        result["relatedLocations"] = related
    return result


def _location(span: Span) -> dict[str, Any]:
    from urllib.parse import quote

    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(span.file), "uriBaseId": "SRCROOT"}}
    if span.line:
        physical["region"] = {"startLine": span.line, "startColumn": span.column}
    return {"physicalLocation": physical}
