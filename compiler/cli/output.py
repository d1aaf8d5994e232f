"""Standard output and standard error: one way to write to them, colours, tables, JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from compiler.errors import Diagnostic, UserError

if TYPE_CHECKING:
    from compiler.report import Style


def prepare() -> None:
    """Make both streams carry any text: results are files of UTF-8, whatever the locale says."""
    for stream, coding in ((sys.stdout, "utf-8"), (sys.stderr, None)):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A name of a file may hold bytes that no encoding has.
            reconfigure(encoding=None if stream.isatty() else coding, errors="backslashreplace")


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, by default a result.

    A reader that went away (`| head`) does not end the command: what it still has to do and its exit status stay.
    Raises `UserError` (BC5002) when the stream cannot be written for another reason.
    """
    try:
        click.echo(text, err=err, nl=nl)
    except BrokenPipeError:
        stream = sys.stderr if err else sys.stdout
        # The descriptor itself: what is still buffered is flushed into it when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError as error:
        if err:
            return  # there is nobody to tell
        message = f"standard output cannot be written: {error.strerror}"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UserError([Diagnostic("BC5002", message, None, "check where it is redirected to")]) from error


def style(*, err: bool) -> Style:
    """Colours on a terminal, unless NO_COLOR is set."""
    from compiler.report import plain

    stream = sys.stderr if err else sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or stream is None or not stream.isatty():
        return plain
    return lambda text, colour: (
        click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour, bold=True)
    )


def table(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> str:
    """Rows below a head line, columns as wide as their widest cell; no line ends in blanks."""
    width = {c: max([len(c), *(len(r[c]) for r in rows)]) for c in columns}
    lines = [{c: c.upper() for c in columns}, *rows]
    return "\n".join("  ".join(row[c].ljust(width[c]) for c in columns).rstrip() for row in lines)


def as_json(data: Any) -> str:
    """`data` as JSON for people and machines alike."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=False)


def diagnostic_json(found: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as data: code, severity, message, file, line, column (null when there is none), fix, notes."""
    return [
        {
            "code": d.code,
            "severity": d.severity,
            "message": d.message,
            **_place(d.span),
            "fix": d.fix,
            "notes": [{"message": text, **_place(span)} for span, text in d.notes],
        }
        for d in found
    ]


def _place(span: Any) -> dict[str, Any]:
    if span is None or not span.file or span.file.startswith("<"):
        return {"file": None, "line": None, "column": None}
    return {"file": span.file, "line": span.line or None, "column": span.column or None}
