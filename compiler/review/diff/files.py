"""Emitted files compared: which differ, by how many lines, and whether other entries tell it already."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import TypeAlias

from compiler.errors import UserError
from compiler.model import Files, KubeObject
from compiler.review.diff.model import FileChange
from compiler.review.diff.objects import Pair, pairs
from compiler.review.diff.snapshot import is_object
from compiler.review.diff.values import same
from compiler.yamlio import load_all

_TOLD = frozenset({"checksums.txt", "bundle.yaml", "recipe.yaml"})
_CHART = ("/Chart.yaml", "/templates/all.yaml", "/templates/all.tpl")
_Masks: TypeAlias = tuple[tuple[re.Pattern[str], str], ...]
_CONTENT = re.compile(rb"^    content: '?([0-9a-f]{8})'?$", re.MULTILINE)


def file_changes(
    base: Files, head: Files, bundles: tuple[str, str], prefixes: tuple[str, str] = ("", "")
) -> tuple[FileChange, ...]:
    """Every file that is not the same on both sides, by path.

    Lines that differ only in a content hash, in the name of a renamed bundle (`bundles`) or in the prefix of the
    deployers' objects (`prefixes`), which follow from what other entries tell, are no difference of a deployer's file:
    such a file is `told`.
    """
    masks = _masks(_hashes(base) | _hashes(head), bundles, prefixes)
    paths = (path for path in sorted({*base, *head}) if base.get(path) != head.get(path))
    return tuple(_change(path, base.get(path), head.get(path), masks) for path in paths)


def wiring_objects(base: Files, head: Files, changed: tuple[FileChange, ...]) -> tuple[Pair, ...]:
    """Objects of access control in the deployers' own files that differ.

    Each deployer has its own: two of them may hold an object of one name, with other rights.
    """
    found: dict[str, tuple[list[KubeObject], list[KubeObject]]] = {}
    for change in changed:
        if change.part == "wiring" and change.path.endswith(".yaml"):
            sides = found.setdefault(change.path.partition("/")[0], ([], []))
            for side, files in zip(sides, (base, head), strict=True):
                content = files.get(change.path, b"")
                if b"rbac.authorization.k8s.io" in content:
                    side.extend(_objects(content, change.path))
    return tuple(pair for sides in found.values() for pair in pairs(*sides))


def _change(path: str, old: bytes | None, new: bytes | None, masks: _Masks) -> FileChange:
    before, after = _lines(old), _lines(new)
    part = _part(path)
    if (old is None or new is None) and path.endswith(_CHART):
        part = "told"  # it comes and goes with its release
    gone, come = _counted(before, after)
    if old is None or new is None:
        sign, lines = ("+", after) if old is None else ("-", before)
        whole = tuple(sign + line for line in lines) if part in {"wiring", "words"} else ()
        return FileChange(path, "added" if old is None else "removed", part, come, gone, whole)
    reordered = part in {"values", "manifests", "namespaces"} and _same_data(old, new, path)
    hunk: tuple[str, ...] = ()
    if part in {"wiring", "words"}:
        hunk = _hunk(_masked(before, masks), _masked(after, masks), named=path.endswith(".yaml"))
        part = part if hunk else "told"
    return FileChange(path, "changed", part, come, gone, hunk, reordered)


def _hunk(before: list[str], after: list[str], *, named: bool) -> tuple[str, ...]:
    """Changed lines only; a `named` `@@` holds the unchanged line before them. No numbers: bundles tell the same."""
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            lines.append(f"@@ {before[i1 - 1].strip()} @@" if i1 and named else "@@")
            lines += [f"-{line}" for line in before[i1:i2]]
            lines += [f"+{line}" for line in after[j1:j2]]
    return tuple(lines)


def _part(path: str) -> str:
    top, _, rest = path.partition("/")
    if top == "components":
        return "values" if rest.endswith("/values.yaml") else "manifests" if "/manifests/" in rest else "wiring"
    if top == "namespaces":
        return "namespaces"
    if top == "examples" or path == "README.md":
        return "words"
    return "told" if path in _TOLD else "wiring"


def _counted(before: list[str], after: list[str]) -> tuple[int, int]:
    """Lines that went and lines that came."""
    gone = come = 0
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            gone += i2 - i1
            come += j2 - j1
    return gone, come


def _masks(hashes: frozenset[str], bundles: tuple[str, str], prefixes: tuple[str, str]) -> _Masks:
    """What is replaced by a word before lines are compared."""
    found: list[tuple[re.Pattern[str], str]] = []
    if hashes:
        words = "|".join(sorted(hashes))
        found.append((re.compile(rf"(?<![\w'])'?(0\.1\.0-h)?({words})\b'?"), "<content>"))
    if bundles[0] != bundles[1]:
        words = "|".join(re.escape(name) for name in bundles)
        found.append((re.compile(rf"(?<![\w-])({words})(?![\w-])"), "<bundle>"))
    if prefixes[0] != prefixes[1]:
        words = "|".join(re.escape(name) for name in sorted(prefixes, key=len, reverse=True) if name)
        found.append((re.compile(rf"(?<![\w-])({words})(?!\w)"), "<prefix>"))
    return tuple(found)


def _masked(lines: list[str], masks: _Masks) -> list[str]:
    for pattern, word in masks:
        lines = [pattern.sub(word, line) for line in lines]
    return lines


def _hashes(files: Files) -> frozenset[str]:
    """The content hashes of a bundle's releases, as its inventory lists them."""
    return frozenset(found.decode() for found in _CONTENT.findall(files.get("bundle.yaml", b"")))


def _same_data(old: bytes, new: bytes, path: str) -> bool:
    try:
        sides = [[d.data for d in load_all(side.decode(), path)] for side in (old, new)]
    except (UserError, UnicodeDecodeError):
        return False
    return same(sides[0], sides[1])


def _objects(content: bytes, path: str) -> Iterator[KubeObject]:
    try:
        documents = load_all(content.decode(), path)
    except (UserError, UnicodeDecodeError):
        return
    for document in documents:
        if is_object(document.data):
            yield KubeObject(document.data, "", "main", path)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines()
