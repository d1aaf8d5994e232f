"""Versions and the expressions that constrain them.

An expression is `[operator][space]operand`, or several of them joined by commas (all must hold). The operators are
>= <= != == > <. Without an operator the operand is an exact, case-sensitive string, commas included.

A version is an optional `v`, one to three numbers, and a tail that begins with `-` or `+` and is ignored in comparisons
(`1.34.1-gke.100`, `6.8.0-1028-nvidia-64k`). The ordering operators compare at the lower precision of the two sides, so
`> 1.34` does not hold for 1.34.9 and `<= 1.34` does. `==` and `!=` compare numbers when the operand looks like a
version (a digit and a dot) and both sides are versions, missing numbers being 0; strings otherwise.
"""

from __future__ import annotations

import re

from compiler.records import dataclass

_VERSION = re.compile(r"v?([0-9]{1,18}(?:\.[0-9]{1,18}){0,2})(?:[-+].*)?")
_OPERATORS = (">=", "<=", "!=", "==", ">", "<")


class VersionError(ValueError):
    """A version or an expression that is not well-formed."""


@dataclass(frozen=True)
class Term:
    """One comparison. `operator` is "" for an exact string; `numbers` is None when the operand is no version."""

    operator: str
    operand: str
    numbers: tuple[int, ...] | None


def parse_version(text: str) -> tuple[int, ...] | None:
    """The one to three numbers of a version, or None when `text` is none."""
    match = _VERSION.fullmatch(text.strip())
    return tuple(int(n) for n in match[1].split(".")) if match else None


def parse_expression(text: str) -> tuple[Term, ...]:
    """The terms of a constraint expression. Raises `VersionError` on an empty operand or one that cannot be ordered."""
    text = text.strip()
    if not text:
        raise VersionError("the expression is empty")
    if not text.startswith(_OPERATORS):
        if text[0] in "=~^":
            raise VersionError(f"`{text}` begins with an operator that is none of {', '.join(_OPERATORS)}")
        return (Term("", text, parse_version(text)),)
    return tuple(_term(part.strip(), text) for part in text.split(","))


def satisfies(actual: str, expression: str | tuple[Term, ...]) -> bool:
    """Whether `actual` meets every term. Raises `VersionError` when one that orders meets what is no version."""
    terms = parse_expression(expression) if isinstance(expression, str) else expression
    return all(_holds(actual.strip(), term) for term in terms)


def _term(part: str, text: str) -> Term:
    operator = next((o for o in _OPERATORS if part.startswith(o)), None)
    if operator is None:
        raise VersionError(f"`{part or text}` lacks an operator ({', '.join(_OPERATORS)})")
    operand = part[len(operator) :].strip()
    if not operand:
        raise VersionError(f"`{part}` lacks an operand")
    numbers = parse_version(operand)
    if numbers is None and operator not in ("==", "!="):
        raise VersionError(f"`{operand}` is no version, so `{operator}` cannot order it")
    return Term(operator, operand, numbers)


def _holds(actual: str, term: Term) -> bool:
    operator = term.operator
    if not operator:
        return actual == term.operand
    have, want = parse_version(actual), term.numbers
    if operator in ("==", "!="):
        if want is not None and have is not None and "." in term.operand:
            equal = (*have, 0, 0)[:3] == (*want, 0, 0)[:3]
        else:
            equal = actual == term.operand
        return equal is (operator == "==")
    if have is None or want is None:
        raise VersionError(f"`{actual}` is no version, so `{operator} {term.operand}` cannot be decided")
    precision = min(len(have), len(want))
    have, want = have[:precision], want[:precision]
    return {">=": have >= want, "<=": have <= want, ">": have > want, "<": have < want}[operator]
