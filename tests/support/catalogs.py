"""Small source trees for tests of the load stage."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from compiler.errors import Diagnostic, UserError
from compiler.load import load
from compiler.model import Catalog

WORKSPACE = """\
apiVersion: bundlec.dev/v1alpha1
kind: Workspace
spec:
  bundles:
    - {name: demo, recipe: leaf}
"""

ROOT = """\
apiVersion: bundlec.dev/v1alpha1
kind: Overlay
metadata: {name: base}
spec: {}
"""


def component(name: str, spec: str = "") -> str:
    """A component.yaml of manifests only with further `spec` lines."""
    return (
        f"apiVersion: bundlec.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}}}\nspec:\n"
        f"  namespace: {{name: {name}}}\n" + _indented(spec)
    )


def overlay(name: str, spec: str = "", *, base: str | None = "base") -> str:
    """An overlay with further `spec` lines."""
    head = f"apiVersion: bundlec.dev/v1alpha1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec:\n"
    return head + (f"  base: {base}\n" if base else "  description: root\n") + _indented(spec)


def mixin(name: str, spec: str) -> str:
    """A mixin with these `spec` lines."""
    head = f"apiVersion: bundlec.dev/v1alpha1\nkind: Mixin\nmetadata: {{name: {name}}}\nspec:\n"
    return head + _indented(spec)


def tree(**files: str) -> dict[str, str]:
    """A catalog of one overlay `leaf` on `base` and two components `alpha` and `beta`; `files` add or replace."""
    return {
        "bundlec.yaml": WORKSPACE,
        "overlays/base.yaml": ROOT,
        "overlays/leaf.yaml": overlay("leaf"),
        "components/alpha/component.yaml": component("alpha"),
        "components/beta/component.yaml": component("beta"),
        **files,
    }


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def load_tree(root: Path, files: Mapping[str, str | bytes]) -> Catalog:
    """The catalog of these files."""
    return load(write_tree(root, files))


def findings(root: Path, files: Mapping[str, str | bytes]) -> tuple[Diagnostic, ...]:
    """What loading these files complains about; fails when it does not."""
    with pytest.raises(UserError) as caught:
        load_tree(root, files)
    return caught.value.diagnostics


def shown(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    """The findings as `place [code] message | fix`."""
    return [f"{d.span} [{d.code}] {d.message}" + (f" | {d.fix}" if d.fix else "") for d in diagnostics]


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in dedent(text).strip("\n").splitlines())
