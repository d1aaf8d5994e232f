"""Shell scripts from templates, and words that a shell takes literally."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from compiler.emit.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_UNQUOTED = re.compile(r"[\w@%+=:,./ -]*", re.ASCII)  # what shlex.quote leaves as it is, and blanks


class Script(str):
    """Lines of shell script that are ready to stand in a script; any other text is quoted when it is put in."""

    __slots__ = ()


def render(template: str, **variables: object) -> bytes:
    """The script that `templates/<template>.j2` makes of `variables`.

    Delimiters are `@{ name }@` and `@% if %@`, since `{{`, `{%` and `{#` are words of bash and of kubectl. What is put
    in is quoted as one shell word unless it is a `Script`. An unknown name raises jinja2's UndefinedError, a bug.
    """
    return _environment().get_template(f"{template}.j2").render(**variables).encode()


def words(parts: Iterable[object]) -> str:
    """`parts` as the words of a command line, each quoted where the shell would read it otherwise."""
    given = [str(part) for part in parts]
    line = " ".join(given)
    # One look at the whole line tells that most need no quotes.
    if _UNQUOTED.fullmatch(line) and line.count(" ") == len(given) - 1 and all(given):
        return line
    return shlex.join(given)


def script(lines: Iterable[str], indent: int = 0) -> Script:
    """Prepared lines, each indented by `indent` blanks, as text without a final line break."""
    return Script("\n".join(" " * indent + line if line else "" for line in lines))


def body(lines: Iterable[str]) -> Script:
    """The body of a function, one command a line; `:` when there is none. `read_body` reads it back."""
    return script(list(lines) or [":"], 2)


def cases(table: Iterable[tuple[str, Iterable[str]]]) -> Script:
    """The branches of a `case`: (word, commands) pairs, every command ending the function when it fails.

    Pairs without commands are left out. The form is one that `read_cases` reads back.
    """
    lines: list[str] = []
    for word, commands in table:
        body = [f"    {command} || return" for command in commands]
        if body:
            lines += [f"  {shlex.quote(word)})", *body, "    ;;"]
    return script(lines, 2)


def read_cases(text: str, function: str) -> dict[str, list[list[str]]]:
    """Word -> commands (as words) of the table that `cases` made, in the function of that name of a script.

    A line that `cases` would not have written ends up in nobody's table: a command that does not end in `|| return`
    lets what it guards go on, so it does not count.
    """
    table: dict[str, list[list[str]]] = {}
    current: list[list[str]] | None = None
    for line in _body(text, function):
        stripped = line.strip()
        if stripped == ";;":
            current = None
        elif current is None and stripped.endswith(")"):
            key = shlex.split(stripped[:-1])
            current = table.setdefault(key[0], []) if len(key) == 1 else None
        elif current is not None and stripped.endswith(" || return"):
            current.append(shlex.split(stripped.removesuffix(" || return")))
    return table


def read_body(text: str, function: str) -> list[list[str]]:
    """The commands (as words) of a function whose body is one command a line; comments and empty lines are left out."""
    return [shlex.split(line) for line in _body(text, function) if line.strip() and not line.lstrip().startswith("#")]


def _body(text: str, function: str) -> list[str]:
    lines = text.split("\n")
    try:
        start = lines.index(f"{function}() {{")
        end = lines.index("}", start)
    except ValueError:
        return []
    return lines[start + 1 : end]


@cache
def _environment() -> Environment:
    return environment(
        finalize=_quoted,
        variable_start_string="@{",
        variable_end_string="}@",
        block_start_string="@%",
        block_end_string="%@",
        comment_start_string="@#",
        comment_end_string="#@",
    )


def _quoted(value: Any) -> str:
    return value if isinstance(value, Script) else shlex.quote(str(value))
