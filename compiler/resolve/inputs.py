"""Inputs: parameters that a recipe declares and a bundle sets, and what their values do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import BundleEntry, InputSpec, Overlay
from compiler.predicates import strictly_equal
from compiler.resolve import draft as drafting
from compiler.resolve.draft import Draft
from compiler.source import Origin

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def choose(
    overlays: Sequence[Overlay], entry: BundleEntry, collector: Collector
) -> tuple[dict[str, Any], list[InputSpec]]:
    """The values of the inputs that have one, by name, and the declarations. A later overlay replaces a declaration.

    Records BC2011 for an input that the recipe does not declare, one that is required and not set, a value of the wrong
    type, outside `enum` or against `schema`, and an effect of a value that the input cannot have.
    """
    specs = {spec.name: spec for overlay in overlays for spec in overlay.inputs}
    for name in entry.inputs:
        if name not in specs:
            at = entry.origin.down("inputs", name)
            fix = did_you_mean(name, specs) or _known(specs)
            collector.error("BC2011", f"the recipe has no input `{name}`", at, key=True, fix=fix)
    values: dict[str, Any] = {}
    for name in sorted(specs):
        spec = specs[name]
        _check_effects(spec, collector)
        if name in entry.inputs:
            at, value = entry.origin.down("inputs", name), entry.inputs[name]
        elif spec.default is not None:
            at, value = spec.origin.down("default"), spec.default
        else:
            if spec.required:
                collector.error(
                    "BC2011",
                    f"input `{name}` is required: {spec.description or spec.type}",
                    entry.origin,
                    fix=f"set `inputs: {{{name}: ...}}` of the bundle in bundlec.yaml",
                    notes=[(spec.origin, "it is declared here")],
                )
            continue
        values[name] = value
        _check(spec, value, at, collector)
    return values, [specs[name] for name in sorted(specs)]


def apply(
    specs: Sequence[InputSpec], values: Mapping[str, Any], drafts: Mapping[str, Draft], collector: Collector
) -> None:
    """Apply the effects of the chosen values. Records BC2011 for an effect on a component that the recipe lacks."""
    for spec in specs:
        if spec.name not in values:
            continue
        text = as_text(values[spec.name])
        for ref in spec.effects.get(text, ()):
            if ref.name not in drafts:
                collector.error(
                    "BC2011",
                    f"input `{spec.name}` changes `{ref.name}`, which the recipe does not have",
                    ref.origin,
                    fix=did_you_mean(ref.name, drafts) or f"add `{ref.name}` to `componentRefs`",
                )
                continue
            drafting.apply(drafts[ref.name], ref, f"input {spec.name}={text}", collector)


def as_text(value: Any) -> str:
    """A value as the keys of `effects` write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _check(spec: InputSpec, value: Any, at: Origin, collector: Collector) -> None:
    if not isinstance(value, _TYPES[spec.type]) or (isinstance(value, bool) and spec.type != "boolean"):
        fix = "quote it" if spec.type == "string" and isinstance(value, (bool, int, float)) else None
        collector.error("BC2011", f"input `{spec.name}` is of type {spec.type}", at, fix=fix)
        return
    if spec.enum and not any(strictly_equal(value, choice) for choice in spec.enum):
        choices = ", ".join(as_text(choice) for choice in spec.enum)
        collector.error("BC2011", f"input `{spec.name}` cannot be {as_text(value)}", at, fix=f"one of: {choices}")
    if spec.schema is not None:
        _check_schema(spec, value, at, collector)
    if spec.distinct:
        _check_distinct(spec, value, at, collector)


def _check_distinct(spec: InputSpec, value: Any, at: Origin, collector: Collector) -> None:
    # JSON Schema can ask this of the items of a list, not of the values of a map.
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    seen: list[tuple[Any, Any]] = []
    for key, item in pairs:
        first = next((other for other, before in seen if strictly_equal(before, item)), None)
        if first is None:
            seen.append((key, item))
            continue
        collector.error(
            "BC2011",
            f"input `{spec.name}`: `{key}` and `{first}` are the same, {as_text(item)}",
            at.down(key),
            fix="give each one of its own",
            notes=[(at.down(first), f"`{first}`")],
        )


def _check_schema(spec: InputSpec, value: Any, at: Origin, collector: Collector) -> None:
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(dict(spec.schema or {}), retriever=_no_retrieval)
    except ValueError as error:
        what = str(error).splitlines()[0]
        collector.error("BC2011", f"the schema of input `{spec.name}` is not valid: {what}", spec.origin.down("schema"))
        return
    for problem in validator.iter_errors(value):
        collector.error("BC2011", f"input `{spec.name}`: {problem.message}", at.down(*problem.instance_path))


def _no_retrieval(uri: str) -> Any:
    # A compilation depends on the sources alone, never on the network.
    raise ValueError(f"`$ref: {uri}` leads out of the file")


def _check_effects(spec: InputSpec, collector: Collector) -> None:
    choices = ["true", "false"] if spec.type == "boolean" else [as_text(choice) for choice in spec.enum]
    for value in spec.effects:
        if choices and value not in choices:
            collector.error(
                "BC2011",
                f"input `{spec.name}` never is {value}, so this effect never happens",
                spec.origin.down("effects", value),
                key=True,
                fix=did_you_mean(value, choices) or f"one of: {', '.join(choices)}",
            )


def _known(specs: Mapping[str, InputSpec]) -> str:
    return f"its inputs: {', '.join(sorted(specs))}" if specs else "it declares no inputs"
