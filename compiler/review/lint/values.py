"""Values that change nothing because they are there already, in every recipe that they take part in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.errors import Diagnostic
from compiler.model import TraceEntry
from compiler.predicates import strictly_equal
from compiler.review.lint.everything import Compiled
from compiler.source import Path, Span, dotted

# Every value of a profile sets the same paths, an input's effect belongs to its value, and a setting reaches many
# components at once: all of them may repeat.
_EXEMPT = ("profile ", "input ", "placement.", "storage.", "mirrors")


def restated(compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7002 for a value of an overlay, mixin, values file or bundle that repeats what the layers before it say."""
    redundant: dict[Span, bool] = {}
    about: dict[Span, tuple[str, Path, TraceEntry, TraceEntry]] = {}
    for item in compiled:
        for component in item.plan.recipe.enabled():
            for path, entries in component.trace.items():
                for number, entry in enumerate(entries):
                    if isinstance(entry.value, dict) or entry.value is None or entry.action in ("deleted", "null"):
                        continue
                    span = entry.origin.span()
                    if span.file.startswith("<") or entry.layer.startswith(_EXEMPT):
                        continue
                    before = entries[number - 1] if number else None
                    same = before is not None and strictly_equal(before.value, entry.value)
                    redundant[span] = redundant.get(span, True) and same
                    if same and before is not None:
                        about.setdefault(span, (component.name, path, before, entry))
    for span, (name, path, before, entry) in about.items():
        if redundant[span]:
            yield Diagnostic(
                "BC7002",
                f"`{name}:{dotted(path)}` is {_word(entry.value)} already ({before.layer}): this changes nothing",
                span,
                "remove it; or waive the finding where it is meant to outlive a change below",
                "warning",
                ((before.origin.span(), "it is set here"),),
            )


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"`{value}`" if isinstance(value, (str, int, float)) else "the same list"
    return text if len(text) <= 60 else "the same text"
