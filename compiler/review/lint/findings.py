"""Findings, each once, with the recipes and bundles that have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from compiler.errors import Diagnostic
from compiler.source import Span

_SHOWN = 4  # names of recipes behind a finding


@dataclass
class Findings:
    """Gathers diagnostics; `sorted` gives them by place, with a note where a finding concerns some compilations only.

    `compilations` is how many there were, also of what does not compile.
    """

    found: dict[Diagnostic, list[str]] = field(default_factory=dict)
    compilations: int = 0

    def add(self, item: Diagnostic, name: str | None = None) -> None:
        """Record a finding, of the compilation `name` when it has one."""
        names = self.found.setdefault(item, [])
        if name is not None and name not in names:
            names.append(name)

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Record findings about the sources themselves."""
        for item in items:
            self.add(item)

    def sorted(self) -> list[Diagnostic]:
        """All findings, by place."""
        ordered = sorted(self.found, key=lambda d: (d.span or Span(""), d.code, d.message))
        return [self._told(item) for item in ordered]

    def _told(self, item: Diagnostic) -> Diagnostic:
        names = self.found[item]
        if not names or len(names) == self.compilations:
            return item
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return replace(item, notes=(*item.notes, (Span(""), f"in {', '.join(names[:_SHOWN])}{more}")))
