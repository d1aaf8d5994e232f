"""Errors and diagnostics.

    BundlecError
    ├── UserError        the input is wrong: carries diagnostics; exit status 1
    ├── DriftError       `--check` found a difference; exit status 4
    └── InternalError    a bug of ours: exit status 3

Libraries raise; only `cli.py` turns an error into text and an exit status. Every diagnostic has a stable code out of
`codes.py`. A stage gathers its diagnostics in a `Collector` and raises them together at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from compiler.codes import CODES
from compiler.records import dataclass
from compiler.source import Origin, Span


@dataclass(frozen=True)
class Diagnostic:
    """One finding: what is wrong, where, and what to do about it.

    `notes` name further places that belong to the finding (the other duplicate, every edge of a cycle).
    """

    code: str
    message: str
    span: Span | None = None
    fix: str | None = None
    severity: str = "error"
    notes: tuple[tuple[Span, str], ...] = ()

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise InternalError(f"unknown diagnostic code {self.code}")


class BundlecError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 3


class InternalError(BundlecError):
    """An invariant of ours does not hold: a bug, not the user's fault."""


class UserError(BundlecError):
    """The input is wrong. `diagnostics` is never empty and holds at least one of severity error."""

    exit_code = 1

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in self.diagnostics))


class DriftError(BundlecError):
    """What is on disk is not what the sources compile to. `paths` are the differing files, with a verb each."""

    exit_code = 4

    def __init__(self, message: str, paths: Sequence[str] = ()) -> None:
        self.paths = tuple(paths)
        super().__init__(message)


@dataclass
class Collector:
    """Gathers the diagnostics of one stage, so that the user sees all of them at once."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        code: str,
        message: str,
        at: Origin | Span | None = None,
        *,
        fix: str | None = None,
        key: bool = False,
        notes: Iterable[tuple[Origin | Span, str]] = (),
        severity: str = "error",
    ) -> None:
        """Record a finding. `at` may be an `Origin`: its span (of the key with `key=True`) is looked up here."""
        self.found.append(
            Diagnostic(
                code,
                message,
                at.span(key=key) if isinstance(at, Origin) else at,
                fix,
                severity,
                tuple((n.span() if isinstance(n, Origin) else n, text) for n, text in notes),
            )
        )

    def warn(self, code: str, message: str, at: Origin | Span | None = None, *, fix: str | None = None) -> None:
        """Record a finding that does not stop the compilation."""
        self.error(code, message, at, fix=fix, severity="warning")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that do not stop the compilation, in the order found."""
        return tuple(d for d in self.found if d.severity == "warning")

    @property
    def failed(self) -> bool:
        """Whether any finding stops the compilation."""
        return any(d.severity == "error" for d in self.found)

    def raise_if_failed(self) -> None:
        """Raise `UserError` with every finding so far, sorted by place, when one of them is an error."""
        if self.failed:
            raise UserError(sorted(set(self.found), key=lambda d: (d.span or Span(""), d.code, d.message)))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The closest of `known` to `word` as a fix text, or those that `word` is a part of; None when there is none."""
    import difflib  # lazy: most runs have nothing to suggest

    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if not close and len(word) >= 3:
        close = [name for name in names if word.lower() in name.lower()]
    if not close:
        return None
    shown = " or ".join(f"`{name}`" for name in close[:3])
    return f"did you mean {shown}" + (f", or one of {len(close) - 3} more?" if len(close) > 3 else "?")
