"""Strict validation of custom resources against CRDs, as `kubectl --validate=strict` does it: no unknown field."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from compiler.yamlio import load_all


def faults(folder: Path, item: dict[str, Any]) -> list[str]:
    """What the CRD of `item` in a folder of CRDs finds wrong with it. KeyError when there is none of that version."""
    validator = _validator(folder, item["apiVersion"], item["kind"])
    return [f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(item)]


@cache
def _validator(path: Path, api_version: str, kind: str) -> Any:
    # OpenAPI's `exclusiveMinimum: true` is the form of draft 4.
    spec, schema = _definition(path, api_version, kind)
    strict = _strict(schema)
    strict["properties"]["metadata"] = _METADATA[spec["scope"]]
    return jsonschema_rs.Draft4Validator(strict)


@cache
def _definition(path: Path, api_version: str, kind: str) -> tuple[Any, Any]:
    group, _, wanted = api_version.partition("/")
    for file in sorted(path.glob(f"*.{group}.yaml")):
        for document in load_all(file.read_text(), str(file), strict=False):
            spec = document.data["spec"]
            for version in spec["versions"]:
                if (version["name"], spec["names"]["kind"]) == (wanted, kind):
                    return spec, version["schema"]["openAPIV3Schema"]
    raise KeyError(f"{api_version} {kind}")


_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_COMMON = {
    "name": {"type": "string"},
    "labels": _STRINGS,
    "annotations": _STRINGS,
    "finalizers": {"type": "array", "items": {"type": "string"}},
}
_METADATA = {
    "Namespaced": {
        "type": "object",
        "required": ["name", "namespace"],
        "properties": {**_COMMON, "namespace": {"type": "string"}},
        "additionalProperties": False,
    },
    "Cluster": {"type": "object", "required": ["name"], "properties": _COMMON, "additionalProperties": False},
}


def _strict(schema: Any) -> Any:
    """The schema with every object closed, but for those that say themselves what else they hold."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: {name: _strict(below) for name, below in value.items()} if key == "properties" else _strict(value)
        for key, value in schema.items()
    }
    open_ = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("type") == "object" and not open_:
        result["additionalProperties"] = False
    return result
