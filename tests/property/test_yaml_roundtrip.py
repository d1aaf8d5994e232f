"""Whatever is written is read back as the same by a YAML 1.1 reader, a YAML 1.2 reader, Helm and ourselves."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from compiler import tools, yamlio
from compiler.source import Document, walk

HELM = Path(__file__).parents[2] / ".tools" / "bin" / "helm"

tricky = st.one_of(
    st.from_regex(r"\A[-+]?[0-9._:eExXoObB+-]{1,12}\Z"),
    st.from_regex(r"\A[ \n\t#:|>&*!%@`'\"{}\[\],?a-c-]{0,12}\Z"),
    st.sampled_from(
        [
            "y",
            "n",
            "yes",
            "No",
            "on",
            "OFF",
            "null",
            "~",
            "=",
            "<<",
            "",
            "---",
            "...",
            "- a",
            "a: b",
            "a #b",
            ".inf",
            "0x1F",
            "12:30",
        ]
    ),
)
# Surrogates are not Unicode text, and no YAML carries them.
text = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), tricky)
scalars = st.one_of(
    text,
    st.booleans(),
    st.none(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
)
documents = st.recursive(
    scalars,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(text, children, max_size=4),
    max_leaves=25,
).filter(lambda d: isinstance(d, (dict, list)))


def same(one: Any, other: Any) -> bool:
    """Equality that tells true from 1 and 1 from 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


@settings(max_examples=400)
@given(documents)
@example({"a": "x\n\n"})
@example({"a": "\u2028", "b": "a\x85", "c": "\ufeff"})
@example(["\n", " \n", "\t", "a\n ", "a \n", "\x7f", "\U0001f4e6"])
@example({"k" * 200: {"x": "y" * 300}})
def test_round_trip_through_a_yaml_1_1_reader(data: Any) -> None:
    assert same(yaml.safe_load(yamlio.dump(data)), data)


@settings(max_examples=200)
@given(documents)
@example({"a": "x\n\n", "": ""})
@example(["#", "a\tb", "\n a", "1.0e+3"])
def test_round_trip_through_a_yaml_1_2_reader(data: Any) -> None:
    assert same(YAML(typ="safe", pure=True).load(yamlio.dump(data)), data)


@settings(max_examples=400)
@given(documents)
def test_round_trip_through_our_reader(data: Any) -> None:
    written = yamlio.dump(data)
    document = yamlio.load(written, "f.yaml")
    assert same(document.data, data)
    assert same(yamlio.load_all(written, "f.yaml", strict=False)[0].data if data else data, data)


@settings(max_examples=200)
@given(documents)
def test_every_node_is_found_where_it_stands(data: Any) -> None:
    document = yamlio.load(yamlio.dump(data), "f.yaml")
    paths = list(walk(document.data))
    assert len(document.marks) == 4 * len(paths)
    lines = (document.text or "").split("\n")
    for path in paths:
        span = document.span(path)
        assert 1 <= span.line <= len(lines)
        value = _at(document, path)
        if isinstance(value, int) and not isinstance(value, bool):
            assert lines[span.line - 1][span.column - 1 :].startswith(str(value))


@settings(max_examples=200)
@given(documents)
def test_writing_is_stable(data: Any) -> None:
    written = yamlio.dump(data)
    assert yamlio.dump(yamlio.load(written, "f.yaml").data) == written


@settings(max_examples=100)
@given(st.lists(documents, max_size=5))
def test_several_documents(many: list[Any]) -> None:
    written = yamlio.dump_all(many)
    assert not any(line == "..." for line in written.splitlines())
    assert same(list(yaml.safe_load_all(written)), many)
    assert same([d.data for d in yamlio.load_all(written, "f.yaml")], many)


@settings(max_examples=300)
@given(scalars)
def test_a_scalar_alone(value: Any) -> None:
    written = yamlio.dump(value)
    assert written.count("\n") == 1
    assert same(yaml.safe_load(f"x: {written}")["x"], value)


@pytest.mark.tools
@pytest.mark.skipif(not HELM.exists(), reason="make tools")
@pytest.mark.parametrize("helm", ["helm3", "helm4"])
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    phases=[Phase.generate],  # shrinking would start Helm a thousand times
)
@given(many=st.lists(documents, min_size=60, max_size=60))
def test_round_trip_through_helm(tmp_path: Path, helm: str, many: list[Any]) -> None:
    (tmp_path / "templates").mkdir(exist_ok=True)
    (tmp_path / "Chart.yaml").write_text(yamlio.dump({"apiVersion": "v2", "name": "x", "version": "0.1.0"}))
    # A file of its own, as manifests travel in our charts; in values a null would be dropped.
    (tmp_path / "data.yaml").write_bytes(yamlio.dump({"all": many}).encode())
    template = '{{ (.Files.Get "data.yaml" | fromYaml).all | toRawJson | b64enc }}'
    (tmp_path / "templates" / "t.yaml").write_text(f"read: {template}\n")
    rendered = tools.run([HELM.with_name(helm), "template", "x", tmp_path], env={"HOME": str(tmp_path)}).text
    read = json.loads(base64.b64decode(yaml.safe_load(rendered)["read"]))
    assert same(_floats(read), _floats(many))


def _floats(data: Any) -> Any:
    """Data as Helm holds it: all numbers are floats, without a negative zero, and keys are sorted."""
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return data + 0.0
    if isinstance(data, list):
        return [_floats(v) for v in data]
    return {k: _floats(v) for k, v in sorted(data.items())} if isinstance(data, dict) else data


def _at(document: Document, path: tuple[str | int, ...]) -> Any:
    value = document.data
    for step in path:
        value = value[step]
    return value
