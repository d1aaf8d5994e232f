"""Diagnostics and summaries as text for people. No decision is made here."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

from compiler.errors import Diagnostic
from compiler.model import Plan
from compiler.source import Span
from compiler.write import WriteReport

Style = Callable[[str, str], str]
"""(text, colour name) -> styled text; a plain one returns the text."""

_ROOM = 116  # characters of a source line that are shown


def plain(text: str, colour: str) -> str:  # noqa: ARG001 - the signature of Style
    """The style of a terminal without colours."""
    return text


def diagnostics(found: Iterable[Diagnostic], root: Path, style: Style = plain, *, here: Path | None = None) -> str:
    """Each finding as `file:line:col: [code] message`, the source line with a caret, notes and the fix.

    Files of findings are relative to `root`; they are shown relative to `here` (default `root`). What `style` gets as a
    colour name: bold, red, yellow, green, cyan.
    """
    shown_from = here if here is not None else root
    return "\n\n".join(_diagnostic(item, root, shown_from, style) for item in found)


def shown(file: str, root: Path, here: Path) -> str:
    """A file of a finding as seen from the folder `here`: relative below it, else absolute."""
    path = root / file
    try:
        return str(path.relative_to(here))
    except ValueError:
        return str(path)


def _diagnostic(item: Diagnostic, root: Path, here: Path, style: Style) -> str:
    where = _where(item.span, root, here)
    colour = "red" if item.severity == "error" else "yellow"
    severity = "" if item.severity == "error" else f"{item.severity}: "
    head = f"{style(where + ':', 'bold')} " if where else ""
    lines = [f"{head}{style(f'{severity}[{item.code}]', colour)} {_printable(item.message)}"]
    lines += _excerpt(item.span, root)
    for span, text in item.notes:
        place = _where(span, root, here)
        lines.append(f"  {style('note', 'cyan')}: {_printable(text)}" + (f" ({place})" if place else ""))
    if item.fix:
        lines.append(f"  {style('fix', 'green')}: {_printable(item.fix)}")
    return "\n".join(lines)


def _where(span: Span | None, root: Path, here: Path) -> str:
    if span is None or not span.file:
        return ""
    if span.file.startswith("<"):  # no file: a flag or a default of ours
        return _printable(span.file.strip("<>"))
    line, column = span.line, span.column
    if not line and _is_file(root / span.file):
        line, column = 1, 1  # the file as a whole; editors jump to its beginning
    return _printable(shown(span.file, root, here)) + (f":{line}:{column}" if line else "")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _excerpt(span: Span | None, root: Path) -> list[str]:
    """The source line with a caret under the column; nothing when it cannot be read."""
    if (
        span is None or not span.line or span.file.startswith("<") or not _is_file(root / span.file)
    ):  # a pipe would be read for ever
        return []
    try:
        lines = (root / span.file).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    if span.line > len(lines):
        return []
    line = _printable(lines[span.line - 1])
    at = max(span.column - 1, 0)
    first = max(0, at - _ROOM // 2) if len(line) > _ROOM else 0
    before, after = line[first:at], line[at : first + _ROOM]
    if first:
        before = "..." + before[3:]
    if len(line) > first + _ROOM:
        after = after[:-3] + "..."
    margin = f"{span.line:>5} | "
    lead = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
    return [margin + before + after, " " * (len(margin) - 2) + "| " + lead + "^"]


def _width(character: str) -> int:
    """Columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _printable(text: str) -> str:
    """`text` in one line without control characters: what stands in a source file does not drive the terminal."""
    text = " ".join(text.splitlines())
    return "".join(c if c == "\t" or unicodedata.category(c) not in {"Cc", "Cs"} else "\ufffd" for c in text)


def written(plan: Plan, report: WriteReport, target: str, style: Style = plain) -> str:
    """What a build did, in a few lines: the bundle, its size, its gates, the changed files."""
    recipe = plan.recipe
    gates = [r for r in plan.releases if r.gate]
    charts = sum(1 for r in plan.releases if r.chart)
    profile = f", profile {recipe.profile.name}={recipe.profile.value}" if recipe.profile else ""
    if report.touched:
        did = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    else:
        did = "nothing changed"
    size = (
        f"{_count(len(plan.components), 'component')} in {_count(len(plan.releases), 'release')} "
        f"({_count(charts, 'chart')}), {_count(len(gates), 'gate')}"
    )
    lines = [
        f"{style(plan.bundle, 'bold')}  recipe {recipe.name}{profile}",
        f"  {size}, deployers: {', '.join(plan.settings.deployers)}",
        f"  {target}: {did} ({len(report.unchanged)} unchanged)",
    ]
    if report.edited:
        lines.append(
            f"  {style('overwritten', 'yellow')}: edited by hand since the last build: {', '.join(report.edited)}"
        )
    return "\n".join(lines)


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
