"""Diagnostics and summaries as text for people. No decision is made here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from compiler.errors import Diagnostic
from compiler.model import Plan
from compiler.source import Span
from compiler.write import WriteReport

Style = Callable[[str, str], str]
"""(text, colour name) -> styled text; a plain one returns the text."""


def plain(text: str, colour: str) -> str:  # noqa: ARG001 - the signature of Style
    """The style of a terminal without colours."""
    return text


def diagnostics(found: Iterable[Diagnostic], root: Path, style: Style = plain) -> str:
    """Each finding as `file:line:col: severity: [code] message`, the source line with a caret, notes and the fix."""
    return "\n\n".join(_diagnostic(item, root, style) for item in found)


def _diagnostic(item: Diagnostic, root: Path, style: Style) -> str:
    where = f"{item.span}: " if item.span and item.span.file else ""
    colour = "red" if item.severity == "error" else "yellow"
    lines = [f"{style(where, 'bold')}{style(item.severity, colour)}: [{item.code}] {item.message}"]
    lines += _excerpt(item.span, root)
    for span, text in item.notes:
        lines.append(f"  {style('note', 'cyan')}: {text}" + (f" ({span})" if span.file else ""))
    if item.fix:
        lines.append(f"  {style('fix', 'green')}: {item.fix}")
    return "\n".join(lines)


def _excerpt(span: Span | None, root: Path) -> list[str]:
    """The source line with a caret under the column; nothing when it cannot be read."""
    if span is None or not span.line:
        return []
    try:
        lines = (root / span.file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    if span.line > len(lines):
        return []
    line = lines[span.line - 1]
    margin = f"{span.line:>5} | "
    lead = "".join("\t" if c == "\t" else " " for c in line[: max(span.column - 1, 0)])
    return [margin + line, " " * (len(margin) - 2) + "| " + lead + "^"]


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
    size = f"{len(plan.components)} components in {len(plan.releases)} releases ({charts} charts), {len(gates)} gates"
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
