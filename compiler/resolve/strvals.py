r"""The text behind `--set COMPONENT:`, `--set-json COMPONENT:` and `--set-file COMPONENT:`, read as Helm reads it.

`a.b=1,c[0].d=x,e={p,q}`: `.` descends, `[N]` is an item of a list, `,` ends an assignment, `\` takes the next character
literally. A value is a boolean or null by those words in any case, an integer when it is one in decimal without a
leading zero, else a string: `0755`, `1e3`, `0x1f`, `yes` and `1.10` stay as they are typed. Source of the rule: Helm's
own behaviour, against which the tests compare. Where Helm drops an assignment in silence (an empty key), this refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from compiler.source import Path

Assignments: TypeAlias = tuple[tuple[Path, Any], ...]
"""(path, value) in the order written; integers in a path are indexes of lists."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_WORDS: Mapping[str, bool | int | None] = {"true": True, "false": False, "null": None, "0": 0}
_MAX_INDEX = 65536
_MAX_DEPTH = 30


def parse(text: str) -> Assignments:
    """The assignments of `--set`. Raises ValueError that says what is wrong with the text."""
    return tuple(_Reader(text).assignments(_Reader.value))


def parse_json(text: str) -> Assignments:
    """The assignments of `--set-json`: `a.b=JSON,c=JSON`, or one JSON object that holds all of them.

    Raises ValueError.
    """
    if text.lstrip().startswith("{"):
        data, end = _decode(text, len(text) - len(text.lstrip()))
        if text[end:].strip():
            raise ValueError(f"unexpected `{text[end:].strip()}` after the object")
        return tuple(((key,), value) for key, value in data.items())
    return tuple(_Reader(text).assignments(_Reader.json))


def parse_file(text: str, read: Callable[[str], str]) -> Assignments:
    """The assignments of `--set-file`, `a.b=NAME`: the text that `read` gives for a name is the value, a string.

    Raises ValueError, and what `read` raises.
    """
    return tuple((path, read(name)) for path, name in _Reader(text).assignments(_Reader.text))


def typed(text: str) -> Any:
    """A value as Helm types it: bool, None, int (64 bits), or the text itself."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(text) and text.isascii() and not text.startswith("0"):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
    return text


class _Reader:
    # One pass over the text. A method begins where the last one ended.

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def assignments(self, value: Callable[[_Reader, str], Any]) -> Iterator[tuple[Path, Any]]:
        if not self._text:
            raise ValueError("nothing is assigned")
        while self._at < len(self._text):
            path, shown = self._path()
            yield path, value(self, shown)

    def value(self, shown: str) -> Any:
        """A list in braces, or what stands before the next comma."""
        if self._text.startswith("{", self._at):
            self._at += 1
            return self._list(shown)
        return typed(self._until(",")[0])

    def json(self, shown: str) -> Any:
        """One JSON value and the comma behind it."""
        start = self._at + len(self._text[self._at :]) - len(self._text[self._at :].lstrip())
        if start == len(self._text):
            raise ValueError(f"`{shown}` has no value")
        value, end = _decode(self._text, start)
        rest = self._text[end:].lstrip()
        if rest and not rest.startswith(","):
            raise ValueError(f"unexpected `{rest}` after the value of `{shown}`")
        self._at = len(self._text) - len(rest) + (1 if rest else 0)
        return value

    def text(self, shown: str) -> str:
        """What stands before the next comma, as it is; a file's name."""
        name = self._until(",")[0]
        if not name:
            raise ValueError(f"`{shown}` names no file")
        return name

    def _path(self) -> tuple[Path, str]:
        start = self._at
        steps: list[str | int] = []
        indexed = False
        while True:
            key, stop = self._until("=[,.") if not indexed else self._until("[.=")
            shown = self._text[start : self._at].rstrip("=[,.")
            if stop in ("", ","):
                raise ValueError(f"`{shown}` has no value; write {shown or 'KEY'}=VALUE")
            if indexed:
                if key:
                    raise ValueError(f"unexpected `{key}` after the index in `{shown}`")
            elif not key:
                raise ValueError(f"an empty key in `{self._text[start : self._at]}`")
            else:
                steps.append(key)
            if len(steps) > _MAX_DEPTH:
                raise ValueError(f"`{shown}` is nested more than {_MAX_DEPTH} levels deep")
            if stop == "=":
                return tuple(steps), shown
            indexed = stop == "["
            if indexed:
                steps.append(self._index(start))

    def _index(self, start: int) -> int:
        text, stop = self._until("]")
        shown = self._text[start : self._at]
        if not stop:
            raise ValueError(f"`{shown}`: the index has no closing `]`")
        if not re.fullmatch(r"[+-]?[0-9]+", text) or not text.isascii():
            raise ValueError(f"`{shown}`: `{text}` is no index; a key with brackets is written with `\\[`")
        if not 0 <= int(text) <= _MAX_INDEX:
            raise ValueError(f"`{shown}`: the index {text} is not between 0 and {_MAX_INDEX}")
        return int(text)

    def _list(self, shown: str) -> list[Any]:
        items: list[Any] = []
        while True:
            item, stop = self._until(",}")
            if not stop:
                raise ValueError(f"the list of `{shown}` is not closed with `}}`")
            items.append(typed(item))
            if stop == "}":
                if self._text.startswith(",", self._at):
                    self._at += 1
                elif self._at < len(self._text):
                    raise ValueError(f"unexpected `{self._text[self._at :]}` after the list of `{shown}`")
                return items

    def _until(self, stops: str) -> tuple[str, str]:
        """The text before the next of `stops`, and which one it is ("" at the end); a backslash escapes it."""
        found = ""
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char in stops:
                return found, char
            if char == "\\":
                if self._at == len(self._text):
                    break  # Helm drops a lone backslash at the end
                char = self._text[self._at]
                self._at += 1
            found += char
        return found, ""


def _decode(text: str, start: int) -> tuple[Any, int]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise ValueError(f"the key `{key}` stands twice")
            result[key] = value
        return result

    def constant(word: str) -> Any:
        raise ValueError(f"`{word}` is no JSON")

    try:
        return json.JSONDecoder(object_pairs_hook=once, parse_constant=constant).raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at `{text[error.pos :] or 'the end'}`: {error.msg}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
