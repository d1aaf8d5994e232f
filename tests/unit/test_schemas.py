"""The JSON Schemas themselves: well-formed, closed, and the same to editors as to the loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from compiler import yamlio
from compiler.errors import Collector
from compiler.load.schema import Schemas
from compiler.source import Document

ROOT = Path(__file__).parents[2]
KINDS = ("Checks", "Component", "Mixin", "Overlay", "Workspace")
SCHEMAS = {
    name: json.loads((ROOT / "compiler" / "schemas" / name).read_text())
    for name in (f"{kind.lower()}.schema.json" for kind in (*KINDS, "Common"))
}


def nodes(schema: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        yield at, schema
        for key, value in schema.items():
            yield from nodes(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from nodes(value, f"{at}/{index}")


def oracle(kind: str) -> Draft202012Validator:
    """The reference implementation, with references relative to the file as editors resolve them."""
    registry: Registry[Any] = Registry().with_resources(
        (f"file:///s/{name}", Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
    )
    return Draft202012Validator({"$ref": f"file:///s/{kind.lower()}.schema.json"}, registry=registry)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_well_formed_and_closed(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    for at, node in nodes(SCHEMAS[name]):
        if isinstance(node.get("properties"), dict) and "type" in node:
            assert node.get("additionalProperties") is False, f"{name}#{at} accepts unknown keys"
        if isinstance(node.get("required"), list) and "properties" in node:
            assert set(node["required"]) <= set(node["properties"]), f"{name}#{at} requires a key that it does not know"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_reference_leads_somewhere(name: str) -> None:
    for _, node in nodes(SCHEMAS[name]):
        if isinstance(node.get("$ref"), str):
            file, _, pointer = node["$ref"].partition("#")
            target: Any = SCHEMAS[file or name]
            for step in pointer.strip("/").split("/") if pointer else []:
                target = target[step]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_definition_is_used(name: str) -> None:
    used = {
        n["$ref"].rpartition("/")[2] for s in SCHEMAS.values() for _, n in nodes(s) if isinstance(n.get("$ref"), str)
    }
    assert set(SCHEMAS[name].get("$defs", ())) <= used


def sources() -> list[tuple[str, Path]]:
    found = [("Workspace", ROOT / "bundlec.yaml")]
    for kind, pattern in (
        ("Overlay", "overlays/**/*.yaml"),
        ("Mixin", "mixins/*.yaml"),
        ("Component", "components/*/component.yaml"),
        ("Checks", "components/*/checks.yaml"),
    ):
        found += [(kind, path) for path in sorted(ROOT.glob(pattern))]
    return found


@pytest.mark.parametrize(
    ("kind", "path"), [pytest.param(k, p, id=p.relative_to(ROOT).as_posix()) for k, p in sources()]
)
def test_the_catalog_is_valid_to_editors_too(kind: str, path: Path) -> None:
    text = path.read_text()
    assert [e.message for e in oracle(kind).iter_errors(yamlio.load(text, path.name).data)] == []
    head, _, file = text.splitlines()[0].partition("$schema=")
    if kind != "Checks":
        assert head == "# yaml-language-server: "
        assert (path.parent / file).resolve() == ROOT / "compiler" / "schemas" / f"{kind.lower()}.schema.json"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data", [{}, {"spec": {}}, {"spec": {"x": 1}}, {"apiVersion": 1, "kind": [], "metadata": None}]
)
def test_faults_are_faults_to_both(kind: str, data: dict[str, Any]) -> None:
    found = Collector()
    Schemas().check(Document("f.yaml", data), kind, found)
    assert found.failed is (not oracle(kind).is_valid(data))
