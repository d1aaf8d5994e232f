"""What a plain scalar means to the readers of YAML, and when a string must be quoted.

Three readers matter: PyYAML and its kin (YAML 1.1), ruamel and its kin (YAML 1.2), and Go's YAML as Helm, kubectl, Argo
CD and Flux use it (a mixture). They disagree about digits: `1e3` is text to the first and a number to the others,
`0o755` a number to the last two, `12:30` a number to the first alone, `y` a boolean to the last alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

MAX_EXACT = 2**53
"""The largest integer that survives a float, which is what Helm and JSON readers make of every number."""

# Longer digit strings are no number anybody means, and Python refuses to convert those beyond 4300 digits.
_MAX_DIGITS = 400

_WORDS: Mapping[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_GO_WORDS: Mapping[str, Any] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_DOUBTFUL_WORDS = frozenset(_GO_WORDS) - frozenset(_WORDS)

_FIRST = frozenset("0123456789+-.~=<yYnNtTfFoO")

# Numbers on which all readers agree.
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?")

_NON_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_GO_INT = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0b[-+]?[01]+|0|[1-9][0-9]*)")
_GO_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LOOSE = re.compile(r"(?<![0-9])_|_(?![0-9])")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9].*")
_UNDERSCORES = re.compile(r"[-+.][._]*_[._]*|[-+]?0[oObBxX]_+")

# A string that matches is quoted: a superset of everything that any reader takes for a number, cheap to test. Dotted
# quads and versions (two dots), quantities (100m, 1Gi) and words stay plain.
_NUMBER_LIKE = re.compile(
    r"[-+]?_*(?!.*\..*\.)\.?_*[0-9][0-9a-fA-F_xXoObBpP.+-]*|[-+]?[._]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
)
_QUOTE_FIRST = _FIRST | {"_"}
_QUOTED_WORDS = frozenset(_GO_WORDS) | {"=", "<<"}


class DoubtfulError(ValueError):
    """A plain scalar that readers disagree about. The text says who reads what."""


class OutOfRangeError(ValueError):
    """A number that JSON or a float cannot hold."""


def plain_value(text: str) -> Any:
    """The value of a plain scalar of our own files: str, int, float, bool or None.

    Raises `DoubtfulError` where YAML 1.1, YAML 1.2 and Go disagree, `OutOfRangeError` for .inf, .nan and integers over
    2**53.
    """
    if text and text[0] not in _FIRST:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text in _DOUBTFUL_WORDS:
        raise DoubtfulError("a boolean to some YAML readers, text to others")
    if _INT.fullmatch(text):
        return _exact(text, 10)
    if _HEX.fullmatch(text):
        return _exact(text, 16)
    if _FLOAT.fullmatch(text):
        return _finite(text)
    if _NON_FINITE.fullmatch(text):
        raise OutOfRangeError("JSON has no infinity and no NaN")
    reason = _doubt(text)
    if reason:
        raise DoubtfulError(reason)
    return text


def go_value(text: str) -> Any:
    """The value that Go's YAML (Helm, kubectl) gives a plain scalar. Raises `OutOfRangeError` for .inf and .nan."""
    if text and text[0] not in _FIRST:
        return text
    if text in _GO_WORDS:
        return _GO_WORDS[text]
    if _NON_FINITE.fullmatch(text):
        raise OutOfRangeError("JSON has no infinity and no NaN")
    if text[0] not in "0123456789+-.":
        return text
    plain = text.replace("_", "")
    if text[0] == ".":  # Go's own float syntax, where an underscore stands between digits
        return _go_float(plain, text) if _GO_FLOAT.fullmatch(plain) and not _LOOSE.search(text) else text
    match = _GO_INT.fullmatch(plain)
    if match and len(plain) <= _MAX_DIGITS:
        number = _go_int(match[2]) * (-1 if match[1] == "-" else 1)
        if -(2**63) <= number < 2**64:
            return number
    return _go_float(plain, text) if _GO_FLOAT.fullmatch(plain) else text


def needs_quotes(text: str) -> bool:
    """Whether some reader takes the plain form of this string for something else than a string."""
    if text and text[0] not in _QUOTE_FIRST:
        return False
    return text in _QUOTED_WORDS or bool(
        _NUMBER_LIKE.fullmatch(text) or _NON_FINITE.fullmatch(text) or _DATE.fullmatch(text)
    )


def number_text(value: float) -> str:
    """An int or float as all readers read it back. Raises `OutOfRangeError` for what JSON or a float cannot hold."""
    if isinstance(value, int):
        if abs(value) > MAX_EXACT:
            raise OutOfRangeError("integers beyond 2^53 lose digits in Helm and JSON")
        return str(value)
    if not math.isfinite(value):
        raise OutOfRangeError("JSON has no infinity and no NaN")
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    # YAML 1.1 wants a dot in a float.
    return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text


def _exact(text: str, base: int) -> int:
    if len(text) > _MAX_DIGITS:
        raise OutOfRangeError("integers beyond 2^53 lose digits in Helm and JSON")
    value = int(text, base)
    if abs(value) > MAX_EXACT:
        raise OutOfRangeError("integers beyond 2^53 lose digits in Helm and JSON")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise OutOfRangeError("no float is that large")
    return value


def _doubt(text: str) -> str | None:
    first = text[0]
    if text in ("=", "<<"):
        return "a special key to YAML 1.1, text to others"
    if first not in "0123456789+-.":
        return None
    plain = text.replace("_", "")
    digits = plain[1:] if first in "+-" else plain
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        return "an octal number to some YAML readers, a decimal to others"
    if _GO_INT.fullmatch(plain) or _GO_FLOAT.fullmatch(plain) or _UNDERSCORES.fullmatch(text):
        return "a number to some YAML readers, text to others"
    if _BASE60.fullmatch(text):
        return "a base-60 number to YAML 1.1, text to others"
    if _DATE.fullmatch(text):
        return "a date to some YAML readers, text to others"
    return None


def _go_int(digits: str) -> int:
    prefix = digits[:2].lower()
    if prefix in ("0x", "0b", "0o"):
        return int(digits[2:], {"0x": 16, "0b": 2, "0o": 8}[prefix])
    return int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _go_float(plain: str, text: str) -> Any:
    value = float(plain)
    # Go's ParseFloat reports a range error, and the scalar stays text.
    return text if math.isinf(value) else value
