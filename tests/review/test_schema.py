"""`schema`: each schema stands by itself, and says of every source file what the one in the tree says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from compiler.cli import main
from compiler.load.export import kinds, standalone
from compiler.yamlio import load


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_kind_of_source_file_has_one():
    assert {"Checks", "Component", "Mixin", "Overlay", "Workspace"} <= kinds().keys()


@pytest.mark.parametrize("kind", kinds())
def test_a_schema_is_valid_and_refers_to_itself_only(kind: str):
    schema = standalone(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for reference in references(schema):
        assert reference.startswith("#")
        node = schema
        for step in reference.removeprefix("#/").split("/") if reference != "#" else ():
            node = node[step]


def files(root: Path) -> Iterator[tuple[str, Path]]:
    yield "Workspace", root / "bundlec.yaml"
    yield from (("Overlay", path) for path in sorted((root / "overlays").rglob("*.yaml")))
    yield from (("Mixin", path) for path in sorted((root / "mixins").glob("*.yaml")))
    yield from (("Component", path) for path in sorted((root / "components").glob("*/component.yaml")))
    yield from (("Checks", path) for path in sorted((root / "components").glob("*/checks.yaml")))


def test_the_catalog_meets_them_and_a_wrong_key_does_not(root: Path):
    validators = {kind: jsonschema_rs.validator_for(standalone(kind)) for kind, _ in files(root)}
    for kind, path in files(root):
        data = load(path.read_text(), path.name).data
        assert [error.message for error in validators[kind].iter_errors(data)] == [], path
        if kind != "Checks":
            data["spec"]["nothingSuch"] = 1
            assert not validators[kind].is_valid(data)


def test_the_command(capsys):
    assert main(["schema"]) == 0
    assert "Workspace" in capsys.readouterr().out
    assert main(["schema", "overlay"]) == 0
    assert json.loads(capsys.readouterr().out) == standalone("Overlay")
    assert main(["schema", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == kinds().keys()
    assert main(["schema", "overlai"]) == 2
    assert "did you mean `Overlay`" in capsys.readouterr().err
