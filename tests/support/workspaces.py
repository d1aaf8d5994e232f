"""Small workspaces, written as the specs of their files, read by the real loader, and resolved."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.errors import Diagnostic, UserError
from compiler.load import load
from compiler.model import BundleEntry, Catalog, Flags, Recipe
from compiler.resolve import entry_for, resolve
from compiler.source import Span

CHART = 'chart: {repository: "https://charts.example.com", name: x, version: "1.2.3"}\n'


def catalog(root: Path, files: Mapping[str, str]) -> Catalog:
    """Write a workspace below `root` and load it.

    Overlays, mixins, component.yaml and bundlec.yaml are given as their `spec` alone; every other file as it is. The
    key `components/<name>` stands for the component.yaml of a chart, to which the text adds fields.
    """
    for name, written in {"bundlec.yaml": "", **files}.items():
        path, text = root / name, written
        if name.startswith("components/") and name.count("/") == 1:
            path, text = path / "component.yaml", f"namespace: {{name: {path.name}}}\n{CHART}{textwrap.dedent(text)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_document(path, text, _kind(name)), encoding="utf-8")
    return load(root)


def recipe(root: Path, files: Mapping[str, str], name: str, flags: Flags | None = None) -> Recipe:
    """The recipe of a bundle or overlay of such a workspace."""
    found = catalog(root, files)
    return resolve(found, entry_for(found, name), flags or Flags())


def findings(found: Catalog, entry: BundleEntry | str, flags: Flags | None = None) -> list[Diagnostic]:
    """The errors of a bundle that must not resolve, in order of place."""
    with pytest.raises(UserError) as caught:
        resolve(found, entry_for(found, entry) if isinstance(entry, str) else entry, flags or Flags())
    return list(caught.value.diagnostics)


def the_finding(found: Catalog, entry: BundleEntry | str, code: str, flags: Flags | None = None) -> Diagnostic:
    """The one error of a bundle that must not resolve, which has that code."""
    (one,) = findings(found, entry, flags)
    assert one.code == code, one
    return one


def pointed(root: Path, span: Span | None) -> str:
    """`<file>: <what stands there>`: the text of the source from a place to the end of its line."""
    assert span is not None
    line = (root / span.file).read_text(encoding="utf-8").splitlines()[span.line - 1]
    return f"{span.file}: {line[span.column - 1 :]}"


def _kind(name: str) -> str | None:
    if name == "bundlec.yaml":
        return "Workspace"
    if name.startswith("components/"):
        return "Component" if name.endswith("/component.yaml") or name.count("/") == 1 else None
    return {"overlays": "Overlay", "mixins": "Mixin"}[name.partition("/")[0]]


def _document(path: Path, text: str, kind: str | None) -> str:
    if kind is None:
        return textwrap.dedent(text)
    stem = path.parent.name if kind == "Component" else path.stem
    body = textwrap.indent(textwrap.dedent(text).strip("\n"), "  ")
    head = f"apiVersion: bundlec.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {stem}}}\n"
    return head + (f"spec:\n{body}\n" if body.strip() else "spec: {}\n")
