"""Evaluating predicates over the facts of a recipe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from compiler.errors import Diagnostic, InternalError, UserError
from compiler.model import Facts, Predicate
from compiler.paths import MISSING, lookup, parse_pattern, select
from compiler.predicates.grammar import OPERATORS, is_number, noun
from compiler.source import Origin, parse_path
from compiler.versions import VersionError, satisfies


def evaluate(predicate: Predicate, facts: Facts) -> bool:
    """Whether the predicate holds over `facts`.

    Raises `UserError` BC1209 when `version` meets a value that is no version, and `InternalError` when an `objects`
    predicate is evaluated before there are objects (the loader refuses those).
    """
    return _Evaluator(facts, predicate).holds(predicate.form, predicate.origin)


def strictly_equal(one: Any, other: Any) -> bool:
    """Equality of YAML values that keeps booleans, numbers and strings apart: true is not 1, 1 is 1.0, 1 is not "1"."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(strictly_equal(v, other[k]) for k, v in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    return bool(one == other)


class _Evaluator:
    def __init__(self, facts: Facts, predicate: Predicate) -> None:
        self.facts = facts
        self.component = predicate.component

    def holds(self, form: Mapping[str, Any], origin: Origin) -> bool:
        if "all" in form:
            return all(self.holds(p, origin.down("all", i)) for i, p in enumerate(form["all"]))
        if "any" in form:
            return any(self.holds(p, origin.down("any", i)) for i, p in enumerate(form["any"]))
        if "not" in form:
            return not self.holds(form["not"], origin.down("not"))
        if "objects" in form:
            return self.over_objects(form, origin)
        if "component" in form:
            return self.over_component(form, origin)
        return self.test(form, self.subject(form), origin)

    def subject(self, form: Mapping[str, Any]) -> Any:
        facts = self.facts
        if "recipe" in form:
            return facts.recipe.get(form["recipe"], MISSING)
        if "profile" in form:
            return facts.profile.get(form["profile"], MISSING)
        if "input" in form:
            return facts.inputs.get(form["input"], MISSING)
        if "constraint" in form:
            return facts.constraints.get(form["constraint"], MISSING)
        if "value" in form:
            return self.value(form["value"])
        if "validation" in form:
            phase, _, name = form["validation"].partition(".")
            entries = (facts.validation.get(phase) or {}).get("constraints") or ()
            return next((e["value"] for e in reversed(entries) if e["name"] == name), MISSING)
        raise InternalError(f"a predicate without a subject was parsed: {dict(form)}")

    def value(self, text: str) -> Any:
        """The final value that `component:path` names; values of a component that does not take part are missing."""
        if text.startswith("."):
            name, path = self.component, text[1:]
        else:
            name, _, path = text.partition(":")
        component = self.facts.components.get(name or "")
        if component is None or not component.enabled:
            return MISSING
        return lookup(component.values, parse_path(path))

    def over_component(self, form: Mapping[str, Any], origin: Origin) -> bool:
        component = self.facts.components.get(form["component"])
        present = component is not None and component.enabled
        if "enabled" in form:
            return present is form["enabled"]
        if component is None or not present or component.version is None:
            return False
        return self.test(form, component.version, origin)

    def over_objects(self, form: Mapping[str, Any], origin: Origin) -> bool:
        if self.facts.objects is None:
            raise InternalError(f"{origin}: an `objects` predicate was evaluated before rendering")
        wanted = form["objects"]
        chosen = [data for component, data in self.facts.objects if _matches(wanted, component, data)]
        if "count" in form:
            count, number = form["count"], len(chosen)
            return bool(
                count.get("atLeast", number) <= number <= count.get("atMost", number)
                and count.get("equals", number) == number
            )
        quantifier = next(q for q in ("every", "some", "none") if q in form)
        test, at = form[quantifier], origin.down(quantifier)
        pattern = parse_pattern(test["path"])
        results = [self.test(test, value, at) for data in chosen for value in select(data, pattern)]
        if quantifier == "every":
            return bool(results) and all(results)
        return any(results) is (quantifier == "some")

    def test(self, form: Mapping[str, Any], value: Any, origin: Origin) -> bool:
        operator = next(o for o in OPERATORS if o in form)
        operand = form[operator]
        there = value is not MISSING and value is not None
        if operator == "exists":
            return there is operand
        if not there:
            return False
        if operator == "version":
            return self.version(value, operand, origin)
        if operator == "sameAs":
            other = self.value(operand)
            return other is not MISSING and strictly_equal(value, other)
        return _SIMPLE[operator](value, operand)

    def version(self, value: Any, expression: str, origin: Origin) -> bool:
        if not isinstance(value, str):
            raise UserError([Diagnostic("BC1209", f"{noun(value)} is no version", origin.span())])
        try:
            return satisfies(value, expression)
        except VersionError as error:
            raise UserError([Diagnostic("BC1209", str(error), origin.span())]) from error


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, Mapping):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, (list, tuple)) and any(strictly_equal(v, wanted) for v in value)


_SIMPLE: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": strictly_equal,
    "notEquals": lambda value, operand: not strictly_equal(value, operand),
    "in": lambda value, operand: any(strictly_equal(value, o) for o in operand),
    "contains": _contains,
    "matches": lambda value, operand: isinstance(value, str) and re.fullmatch(operand, value) is not None,
    "atLeast": lambda value, operand: is_number(value) and value >= operand,
    "atMost": lambda value, operand: is_number(value) and value <= operand,
}


def _matches(wanted: Mapping[str, str], component: str, data: Mapping[str, Any]) -> bool:
    group, slash, _ = str(data.get("apiVersion", "")).partition("/")
    metadata = data.get("metadata") or {}
    have = {
        "group": group if slash else "",
        "kind": data.get("kind"),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
        "component": component,
    }
    return all(have[key] == value for key, value in {"group": "", **wanted}.items())
