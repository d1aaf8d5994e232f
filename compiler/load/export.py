"""The JSON Schemas as editors and other programs want them: one document a kind, that refers to no other file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[1] / "schemas"
_SUFFIX = ".schema.json"
_SHARED = "common"


def kinds() -> dict[str, str]:
    """Kind -> title of its schema, sorted: of the source files, and of what commands print as JSON."""
    stems = sorted(f.name.removesuffix(_SUFFIX) for f in _FOLDER.iterdir() if f.name.endswith(_SUFFIX))
    return {stem.capitalize(): _read(stem).get("title", "") for stem in stems if stem != _SHARED}


def standalone(kind: str) -> dict[str, Any]:
    """The schema of a kind with everything that it refers to under `$defs`. Raises KeyError for an unknown kind."""
    if kind not in kinds():
        raise KeyError(kind)
    schema = _read(kind.lower())
    others: dict[str, Any] = {}
    result: dict[str, Any] = _localised(schema, "", others)
    # What is referred to may refer to further files.
    definitions = dict(result.get("$defs", {}))
    while others:
        stem = min(others)
        del others[stem]
        if stem not in definitions:
            definitions[stem] = {
                key: value for key, value in _localised(_read(stem), stem, others).items() if key != "$schema"
            }
    if definitions:
        result["$defs"] = definitions
    return result


def _localised(node: Any, stem: str, others: dict[str, Any]) -> Any:
    """`node` with references into other files turned into references into `$defs/<file>`; notes those files."""
    if isinstance(node, list):
        return [_localised(item, stem, others) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _localised(value, stem, others) for key, value in node.items()}
    reference = node.get("$ref")
    if isinstance(reference, str):
        file, _, pointer = reference.partition("#")
        target = file.removesuffix(_SUFFIX) if file else stem
        if target:
            others.setdefault(target, None)
            result["$ref"] = f"#/$defs/{target}{pointer}"
    return result


def _read(stem: str) -> dict[str, Any]:
    text = (_FOLDER / f"{stem}{_SUFFIX}").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
