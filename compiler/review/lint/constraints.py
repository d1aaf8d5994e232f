"""Constraints that let through what the ones before them refused, and rules that an overlay replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.errors import Diagnostic
from compiler.model import Assertion, Catalog, Constraint
from compiler.review.lint.everything import Compiled
from compiler.versions import Term, VersionError, parse_expression, satisfies


def weakened(catalog: Catalog, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7003 for a constraint of an overlay that replaces a stricter one, by value or by severity."""
    pairs: dict[tuple[int, int], tuple[Constraint, Constraint]] = {}
    for item in compiled:
        known: dict[str, Constraint] = {}
        for name in item.plan.recipe.overlays:
            for constraint in catalog.overlays[name].constraints:
                before = known.get(constraint.name)
                if before is not None:
                    pairs.setdefault((id(before), id(constraint)), (before, constraint))
                known[constraint.name] = constraint
    for before, after in pairs.values():
        how = _weaker(before, after)
        if how:
            yield Diagnostic(
                "BC7003",
                f"the constraint `{after.name}: {after.value}` {how}",
                after.origin.span(),
                "state what the overlay adds, or leave it out; a stricter constraint is inherited",
                "warning",
                ((before.origin.span(), f"`{before.value}` is inherited from here"),),
            )


def replaced(catalog: Catalog, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7006, a note, for an assertion that an overlay replaces with a reason."""
    pairs: dict[tuple[int, int], tuple[Assertion, Assertion]] = {}
    for item in compiled:
        known: dict[str, Assertion] = {}
        for name in item.plan.recipe.overlays:
            for assertion in catalog.overlays[name].assertions:
                if assertion.id in known:
                    pairs.setdefault((id(known[assertion.id]), id(assertion)), (known[assertion.id], assertion))
                known[assertion.id] = assertion
    for before, after in pairs.values():
        notes = ((before.origin.span(), "the inherited one"),)
        message = f"the rule `{after.id}` replaces an inherited one: {after.reason}"
        fix = "nothing to do; drop it again once the reason is gone"
        yield Diagnostic("BC7006", message, after.origin.span(), fix, "note", notes)


def _weaker(before: Constraint, after: Constraint) -> str | None:
    if (before.severity, after.severity) == ("error", "warning"):
        return "only warns where the inherited one refuses"
    example = admitted(before.value, after.value)
    return f"admits {example}, which the inherited `{before.value}` refuses" if example else None


def admitted(before: str, after: str) -> str | None:
    """A value that `after` admits and `before` refuses, or None. Looks at the bounds of both and next to them."""
    try:
        terms = [*parse_expression(before), *parse_expression(after)]
    except VersionError:
        return None
    for candidate in sorted({c for term in terms for c in _around(term)}):
        try:
            if satisfies(candidate, after) and not satisfies(candidate, before):
                return candidate
        except VersionError:
            continue
    return None


def _around(term: Term) -> Iterator[str]:
    yield term.operand
    if term.numbers is None:
        return
    numbers = (*term.numbers, 0, 0)[:3]
    for index in range(3):
        for step in (-1, 1):
            moved = [*numbers[: index + 1]] + [0] * (2 - index)
            moved[index] += step
            if moved[index] >= 0:
                yield ".".join(map(str, moved))
