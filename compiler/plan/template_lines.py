"""Positions of rendered manifests in their templates: people correct the template, nobody sees the rendered text."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from compiler.source import Document


def in_template(document: Document, rendered: str, template: str) -> Document:
    """`document`, parsed from `rendered`, with marks that point into `template`.

    A rendered line comes from the template's line of the same text, the next one of them when there are several; what
    an expression made has no such line and counts to the line above it, at its beginning.
    """
    lines = _lines(rendered.splitlines(), template.splitlines())
    marks = list(document.marks)
    for at in range(0, len(marks), 2):
        number, exact = lines[min(marks[at], len(lines)) - 1] if lines else (1, False)
        marks[at] = number
        if not exact:
            marks[at + 1] = 1
    return replace(document, marks=tuple(marks), text=template)


def _lines(rendered: list[str], template: list[str]) -> list[tuple[int, bool]]:
    """For every rendered line: the template's line, and whether it has the same text."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(template, 1):
        places.setdefault(line.rstrip(), []).append(number)
    result: list[tuple[int, bool]] = []
    current = 1
    for line in rendered:
        found = places.get(line.rstrip())
        if found:
            after = bisect_left(found, current + 1)
            # Behind the last one a loop has begun anew.
            current = found[after] if after < len(found) else found[0]
        result.append((current, bool(found)))
    return result
