"""No input makes a traceback: whatever a source file holds, the answer is data or findings with a place."""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler import yamlio
from compiler.errors import UserError
from compiler.load import load
from compiler.source import walk
from tests.support.catalogs import tree, write_tree
from tests.unit.test_load import FULL

yaml_text = st.one_of(
    st.text(max_size=60),
    st.text("ab: -\n\t[]{},#&*!|>'\"%@`?=<0123.~y", max_size=60),
    st.lists(
        st.sampled_from(
            [
                "a: ",
                "- ",
                "\n",
                "  ",
                "[",
                "]",
                "{",
                "}",
                "&x ",
                "*x",
                "<<: ",
                "!!str ",
                "---\n",
                "...\n",
                "? ",
                '"',
                "'",
                "|\n",
                "1e3",
                "yes",
                "#",
            ]
        ),
        max_size=25,
    ).map("".join),
)


@settings(max_examples=1000)
@given(yaml_text)
def test_any_text(text: str) -> None:
    for read in (
        lambda: yamlio.load(text, "f.yaml"),
        lambda: yamlio.load_all(text, "f.yaml"),
        lambda: yamlio.load_all(text, "f.yaml", strict=False),
    ):
        try:
            read()
        except UserError as error:
            lines = (
                text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029")
            )
            for found in error.diagnostics:
                assert found.span is not None
                assert 1 <= found.span.line <= lines + 2
                assert found.span.column >= 1


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    refused({"components/alpha/values.yaml": data})


WORKSPACE = {
    "apiVersion": "bundlec.dev/v1alpha1",
    "kind": "Workspace",
    "spec": {
        "data": ["components"],
        "git": {"url": "u", "revision": "r"},
        "bundles": [
            {
                "name": "b",
                "recipe": "leaf",
                "set": {"alpha": {"a": None}},
                "disable": [{"component": "x", "reason": "r"}],
            }
        ],
        "policies": [{"id": "p", "message": "m", "that": {"all": [{"recipe": "name", "exists": True}]}}],
    },
}
OVERLAY = {
    "apiVersion": "bundlec.dev/v1alpha1",
    "kind": "Overlay",
    "metadata": {"name": "leaf"},
    "spec": {
        "base": "base",
        "criteria": {"service": "gke", "nodes": 3},
        "mixins": ["m"],
        "constraints": [{"name": "a", "value": ">= 1"}],
        "inputs": {"i": {"type": "string", "effects": {"v": [{"name": "alpha", "overrides": {"enabled": True}}]}}},
        "clusterProvides": [{"group": "", "kind": "K", "check": {"nodes": {"selector": "a"}}}],
        "prerequisites": [{"id": "p", "text": "t", "check": {"crd": "x"}}],
        "componentRefs": [
            {
                "name": "alpha",
                "overrides": {"install": "false", "a": {"b": None}},
                "dependencyRefs": ["beta", {"name": "beta", "when": {"component": "beta", "enabled": True}}],
                "manifestFiles": ["m.yaml", {"file": "n.yaml.j2"}],
                "valuesFile": "v.yaml",
                "readiness": {"timeout": "5m"},
            }
        ],
        "profile": {"name": "p", "default": "x", "values": {"x": {"constraints": [{"name": "c", "value": "d"}]}}},
        "validation": {"performance": {"checks": ["c"], "constraints": [{"name": "c", "value": "d"}]}},
    },
}
anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 9),
        st.floats(-9, 9),
        st.text("ab.:/-*[]\"' ", max_size=6),
        st.just("../x"),
    ),
    lambda below: (
        st.lists(below, max_size=2) | st.dictionaries(st.text("abc.-", min_size=1, max_size=3), below, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def mutated(draw: st.DrawFn, document: dict[str, Any]) -> str:
    """The document with one to three nodes replaced, removed or renamed."""
    data: Any = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        paths = [p for p in walk(data) if p]
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        holder = data
        for step in path[:-1]:
            holder = holder[step]
        how = draw(st.sampled_from(["replace", "remove", "rename"]))
        if how == "replace" or isinstance(holder, list):
            holder[path[-1]] = draw(anything)
        else:
            value = holder.pop(path[-1])
            if how == "rename":
                holder[draw(st.text("abcdef", min_size=1, max_size=4))] = value
    return yamlio.dump(data)


def refused(files: dict[str, Any]) -> None:
    """Load a tree with these files; findings are fine as long as each has a place and none comes twice."""
    with TemporaryDirectory() as folder:
        write_tree(Path(folder), tree(**files))
        try:
            load(Path(folder))
        except UserError as error:
            found = error.diagnostics
        else:
            return
    assert all(one.span is not None and one.span.file for one in found)
    assert len(set(found)) == len(found)


COMPONENT = yamlio.load(
    "apiVersion: bundlec.dev/v1alpha1\nkind: Component\nmetadata: {name: alpha}\nspec:\n"
    + "".join(f"  {line}\n" for line in FULL.strip().splitlines()),
    "f.yaml",
).data
slow = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(mutated(COMPONENT))
def test_any_component(text: str) -> None:
    refused({"components/alpha/component.yaml": text})


@slow
@given(mutated(OVERLAY))
def test_any_overlay(text: str) -> None:
    refused({"overlays/leaf.yaml": text})


@slow
@given(mutated(WORKSPACE))
def test_any_workspace(text: str) -> None:
    refused({"bundlec.yaml": text})
