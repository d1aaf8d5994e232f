"""Checking documents against the JSON Schemas in compiler/schemas, and turning what they find into diagnostics."""

from __future__ import annotations

import copy
import hashlib
import json
import pathlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.source import Document, Path, dotted

_BASE = "bundlec:///"
_KINDS = ("Component", "Overlay", "Mixin", "Workspace")
# Fields that other tools of the field accept in a componentRef and that belong to the component here.
_COMPONENT_FIELDS = frozenset({"type", "source", "chart", "tag", "path", "patches"})
_NOUNS: Mapping[str, str] = {
    "string": "a string",
    "object": "a mapping",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_ROUNDS = 20


class Schemas:
    """The schemas of all kinds. Validators are built when first asked for, since a warm cache asks for none."""

    @cached_property
    def _texts(self) -> Mapping[str, bytes]:
        folder = pathlib.Path(__file__).resolve().parents[1] / "schemas"
        names = (f"{kind.lower()}.schema.json" for kind in ("Checks", "Common", *_KINDS))
        return {name: (folder / name).read_bytes() for name in names}

    @cached_property
    def digest(self) -> str:
        """Changes whenever a schema does."""
        state = hashlib.blake2b(digest_size=16)
        for name, text in self._texts.items():
            state.update(name.encode() + b"\0" + text)
        return state.hexdigest()

    @cached_property
    def _schemas(self) -> Mapping[str, Any]:
        return {name: json.loads(text) for name, text in self._texts.items()}

    @cached_property
    def _validators(self) -> dict[str, Any]:
        return {}

    def _validator(self, kind: str) -> Any:
        if kind not in self._validators:
            import jsonschema_rs  # lazy: takes longer to load than a warm run of the whole stage

            name = f"{kind.lower()}.schema.json"
            registry = jsonschema_rs.Registry([(_BASE + n, s) for n, s in self._schemas.items() if n != name])
            self._validators[kind] = jsonschema_rs.validator_for(
                self._schemas[name], registry=registry, base_uri=_BASE + name
            )
        return self._validators[kind]

    def check(self, document: Document, kind: str, found: Collector) -> Any:
        """The data of a document as far as its schema accepts it; what it refuses is recorded and cut out.

        Gives the document's own data when it is valid, a pruned copy when it is not, and None when nothing is left to
        work with. `kind` is Component, Overlay, Mixin, Workspace or Checks. Records BC1101 to BC1105 and BC1202.
        """
        data = document.data
        if not isinstance(data, dict):
            what, fix = "a mapping of checks", "write one check or more as `<id>: {...}`, or remove the file"
            if kind in _KINDS:
                what = f"a mapping of kind {kind}"
                fix = f"begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: {kind}`"
            holds = "is empty" if data is None else f"holds {_noun(data)}"
            found.error("BC1104", f"the file {holds}, and should be {what}", document.span(), fix=fix)
            return None
        validator = self._validator(kind)
        errors = list(validator.iter_errors(data))
        if not errors:
            return data
        for error in errors:
            self._report(document, kind, error, errors, found)
        if any(e.kind.name == "const" for e in errors):
            return None  # another kind or version: nothing below is what it seems to be
        data = copy.deepcopy(data)
        for _ in range(_ROUNDS):
            for error in errors:
                _prune(data, error)
            if not isinstance(data.get("spec"), dict) and kind in _KINDS:
                return None
            errors = list(validator.iter_errors(data))
            if not errors:
                return data
        return None

    def _at(self, location: str) -> tuple[Mapping[str, Any], str]:
        """The schema object that holds a keyword, and the name of the definition it is in ("" outside of one)."""
        file, _, pointer = location.removeprefix(_BASE).partition("#/")
        steps = [s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")]
        schema: Any = self._schemas[file]
        for step in steps[:-1]:
            schema = schema[int(step)] if isinstance(schema, list) else schema[step]
        return schema, steps[1] if steps[0] == "$defs" else ""

    def _report(self, document: Document, kind: str, error: Any, errors: list[Any], found: Collector) -> None:
        keyword, path = error.kind.name, tuple(error.instance_path)
        schema, definition = self._at(error.absolute_keyword_location)
        if keyword == "additionalProperties":
            for key in error.kind.unexpected:
                self._unknown_key(document, path, key, schema, definition, found)
        elif keyword == "required":
            where, missing = dotted(path) or f"the {kind}", error.kind.property
            fix = f"add `{missing}: ...`"
            found.error("BC1103", f"`{missing}` is missing in {where}", document.at(path), key=True, fix=fix)
        elif keyword == "const" and path in (("apiVersion",), ("kind",)):
            fix = f"write `{path[0]}: {error.kind.expected_value}`"
            found.error("BC1104", f"{path[0]} is {_noun(error.instance)}", document.at(path), fix=fix)
        elif keyword == "propertyNames":
            inner, _ = self._at(error.kind.error.absolute_keyword_location or error.absolute_keyword_location)
            bad = str(error.kind.error.instance)
            found.error(
                inner.get("x-code", "BC1102"),
                f"the key `{bad}` is not valid",
                document.at((*path, bad)),
                fix=inner.get("patternErrorMessage", error.kind.error.message),
                key=True,
            )
        elif keyword == "type":
            self._wrong_type(document, path, schema, error, found)
        else:
            # An unknown key explains why the mapping that holds it has no subject, a wrong type explains everything.
            if keyword == "oneOf" and any(
                e.kind.name in ("additionalProperties", "type") and e.instance_path == error.instance_path
                for e in errors
            ):
                return
            message, hint = _generic(keyword, error, schema)
            found.error(
                schema.get("x-code", "BC1102"), f"{dotted(path) or kind}: {message}", document.at(path), fix=hint
            )

    def _unknown_key(
        self,
        document: Document,
        path: Path,
        key: str,
        schema: Mapping[str, Any],
        definition: str,
        found: Collector,
    ) -> None:
        where = dotted(path) or "the file"
        at = document.at((*path, key))
        if definition == "componentRef" and key in _COMPONENT_FIELDS:
            found.error(
                "BC1105",
                f"`{key}` is not a field of a componentRef",
                at,
                fix="set it in the component (components/<name>/component.yaml)",
                key=True,
            )
            return
        properties = schema.get("properties", {})
        known = sorted(k for k in properties if k not in _value_at(document.data, path))
        fix = did_you_mean(key, properties) or (f"known here: {', '.join(known)}" if known else "remove it")
        found.error("BC1101", f"unknown key `{key}` in {where}", at, fix=fix, key=True)

    def _wrong_type(
        self, document: Document, path: Path, schema: Mapping[str, Any], error: Any, found: Collector
    ) -> None:
        wanted = " or ".join(_NOUNS[t] for t in sorted(error.kind.types, key=lambda t: t == "null"))
        fix = None
        if error.kind.types == ["string"] and isinstance(error.instance, (int, float)):
            raw = _raw_scalar(document, path)
            wanted = "a quoted string" if schema.get("x-quoted") else wanted
            fix = f'write "{raw}" with quotes'
        elif error.instance is None:
            fix = "remove the key, or give it a value"
        found.error(
            "BC1102", f"{dotted(path)} must be {wanted}, not {_noun(error.instance)}", document.at(path), fix=fix
        )


def _prune(data: Any, error: Any) -> None:
    """Cut what `error` is about out of `data`: unknown keys, or else the nearest mapping key on the way to it.

    List items are never removed, so that the paths of the remaining nodes still name places of the file.
    """
    path = list(error.instance_path)
    if error.kind.name == "additionalProperties":
        holder = _value_at(data, tuple(path))
        if isinstance(holder, dict):
            for key in error.kind.unexpected:
                holder.pop(key, None)
        return
    if error.kind.name == "propertyNames":
        holder = _value_at(data, tuple(path))
        if isinstance(holder, dict):
            holder.pop(str(error.kind.error.instance), None)
        return
    while path and not isinstance(path[-1], str):
        path.pop()
    holder = _value_at(data, tuple(path[:-1])) if path else None
    if isinstance(holder, dict):
        holder.pop(path[-1], None)


def _value_at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return data


def _raw_scalar(document: Document, path: Path) -> str:
    """A number as the file writes it: 25.10 has lost its zero once it is a float."""
    span = document.span(path)
    lines = (document.text or "").splitlines()
    rest = lines[span.line - 1][span.column - 1 :] if 0 < span.line <= len(lines) else ""
    for end in (" #", ",", "}", "]"):
        rest = rest.split(end, 1)[0]
    return rest.strip() or str(_value_at(document.data, path))


def _generic(keyword: str, error: Any, schema: Mapping[str, Any]) -> tuple[str, str | None]:
    """Message and fix for the keywords that need no look at the surroundings."""
    value = error.instance
    if keyword == "enum":
        options = [o if isinstance(o, str) else json.dumps(o) for o in schema["enum"]]
        fix = schema.get("errorMessage") or (did_you_mean(value, options) if isinstance(value, str) else None)
        return f"{_noun(value)} is none of {', '.join(options)}", fix
    if "errorMessage" in schema:
        return str(schema["errorMessage"]), None
    if keyword == "pattern":
        return f"{_noun(value)} is not valid", schema.get("patternErrorMessage") or f"it must match {schema['pattern']}"
    if keyword == "uniqueItems":
        return "an item stands twice", None
    if keyword in ("minItems", "minLength", "minProperties"):
        return "must not be empty", None
    return str(error.message), None


def _noun(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"`{value}`" if len(value) <= 60 else f"`{value[:57]}...`"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a mapping"
