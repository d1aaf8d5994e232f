"""Ways to change the files of a bundle by hand. Each fails when it would change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compiler.yamlio import dump
from tests.bundles.bundle import documents

Files = dict[str, bytes]
Tamper = Callable[[Files], None]


def without_line(path: str, pattern: str) -> Tamper:
    """The one line that matches is removed."""

    def tamper(files: Files) -> None:
        lines = files[path].decode().splitlines(keepends=True)
        left = [line for line in lines if not re.fullmatch(pattern, line.strip())]
        assert len(left) == len(lines) - 1
        files[path] = "".join(left).encode()

    return tamper


def without_case(path: str, label: str) -> Tamper:
    """A branch of a `case` is removed."""

    def tamper(files: Files) -> None:
        branch = rf"^    {label}\)\n.*?^      ;;\n"
        text, count = re.subn(branch, "", files[path].decode(), flags=re.DOTALL | re.MULTILINE)
        assert count == 1
        files[path] = text.encode()

    return tamper


def moved_before(path: str, pattern: str, target: str) -> Tamper:
    """The lines that match are moved in front of the first line that begins with `target` (spaces left out)."""

    def tamper(files: Files) -> None:
        lines = files[path].decode().splitlines(keepends=True)
        moved = [line for line in lines if re.fullmatch(pattern, line.strip())]
        assert moved
        rest = [line for line in lines if line not in moved]
        at = next(number for number, line in enumerate(rest) if line.strip().startswith(target))
        files[path] = "".join([*rest[:at], *moved, *rest[at:]]).encode()

    return tamper


def replaced(path: str, old: str, new: str) -> Tamper:
    """The one place that says `old` says `new`."""

    def tamper(files: Files) -> None:
        text = files[path].decode()
        assert text.count(old) == 1, text.count(old)
        files[path] = text.replace(old, new).encode()

    return tamper


def deleted(path: str) -> Tamper:
    """The file is gone."""

    def tamper(files: Files) -> None:
        del files[path]

    return tamper


def edited(path: str, change: Callable[[Any], object]) -> Tamper:
    """The data of a YAML file is changed."""

    def tamper(files: Files) -> None:
        (data,) = documents(files[path].decode(), path)
        before = dump(data)
        change(data)
        assert dump(data) != before
        files[path] = dump(data).encode()

    return tamper


def dropped(path: str, where: str, text: str) -> Tamper:
    """Of the list at `where` in a YAML file (`spec.dependsOn`) the one item that mentions `text` is removed."""

    def change(data: Any) -> None:
        for key in where.split("."):
            data = data[key]
        left = [item for item in data if text not in str(item)]
        assert len(left) == len(data) - 1
        data[:] = left

    return edited(path, change)
