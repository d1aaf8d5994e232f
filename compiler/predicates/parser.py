"""Parsing predicates: every fault at its own node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import CRITERIA, Predicate
from compiler.paths import parse_pattern
from compiler.predicates.grammar import COUNTS, OBJECT_KEYS, OPERATORS, QUANTIFIERS, SUBJECTS, is_number, noun
from compiler.source import Origin, parse_path
from compiler.versions import VersionError, parse_expression


def parse(
    raw: Any, origin: Origin, found: Collector, *, component: str | None = None, objects: bool = False
) -> Predicate:
    """The predicate that stands at `origin`; what is wrong with it goes to `found` as BC1209, each at its own node.

    `component` is whose values a leading-dot path names (inside component.yaml). `objects` says whether rendered
    manifests may be looked at: assertions and rules may, a `when:` of a component or a ref is decided before anything
    is rendered.
    """
    _Parser(found, component, objects=objects).predicate(raw, origin)
    return Predicate(raw if isinstance(raw, dict) else {}, origin, component)


class _Parser:
    def __init__(self, found: Collector, component: str | None, *, objects: bool) -> None:
        self.found = found
        self.component = component
        self.objects = objects

    def wrong(self, message: str, at: Origin, fix: str | None = None, *, key: bool = False) -> None:
        self.found.error("BC1209", message, at, fix=fix, key=key)

    def keys(self, raw: Mapping[str, Any], known: Iterable[str], origin: Origin, where: str) -> bool:
        """Whether all keys are known; the others are reported."""
        known = tuple(known)
        strange = [k for k in raw if k not in known]
        for key in strange:
            fix = did_you_mean(key, known) or f"accepted here: {', '.join(known)}"
            self.wrong(f"unknown key `{key}` in {where}", origin.down(key), fix, key=True)
        return not strange

    def predicate(self, raw: Any, origin: Origin) -> None:
        if not isinstance(raw, dict):
            self.wrong(f"a predicate is a mapping, not {noun(raw)}", origin)
            return
        subjects = [k for k in raw if k in SUBJECTS]
        if len(subjects) != 1:
            self.keys(raw, (*SUBJECTS, *OPERATORS, *QUANTIFIERS, "enabled"), origin, "a predicate")
            which = f"has {' and '.join(subjects)}" if subjects else "names no subject"
            self.wrong(
                f"a predicate names exactly one subject, this one {which}",
                origin,
                f"subjects: {', '.join(SUBJECTS)}; join several with `all` or `any`",
            )
            return
        subject = subjects[0]
        operand, at = raw[subject], origin.down(subject)
        if subject in ("all", "any"):
            if self.keys(raw, (subject,), origin, f"an `{subject}` predicate"):
                self.several(subject, operand, at)
        elif subject == "not":
            if self.keys(raw, (subject,), origin, "a `not` predicate"):
                self.predicate(operand, at)
        elif subject == "objects":
            self.over_objects(raw, operand, origin)
        elif not isinstance(operand, str) or not operand:
            self.wrong(f"`{subject}` names something: a string, not {noun(operand)}", at)
        elif subject == "component":
            self.over_component(raw, origin)
        else:
            self.name(subject, operand, at)
            self.operator(raw, (subject,), origin)

    def several(self, subject: str, operand: Any, at: Origin) -> None:
        if not isinstance(operand, list) or not operand:
            self.wrong(f"`{subject}` takes a list of predicates that is not empty", at)
            return
        for index, one in enumerate(operand):
            self.predicate(one, at.down(index))

    def name(self, subject: str, text: str, at: Origin) -> None:
        if subject == "recipe" and text not in (*CRITERIA, "name"):
            known = (*CRITERIA, "name")
            self.wrong(f"a recipe has no `{text}`", at, did_you_mean(text, known) or f"it has: {', '.join(known)}")
        if subject == "validation" and "." not in text:
            self.wrong(f"`{text}` names no constraint of a phase", at, "write <phase>.<constraint name>")
        if subject == "value":
            self.value_path(text, at)

    def value_path(self, text: str, at: Origin) -> None:
        head, colon, path = text.partition(":")
        if text.startswith("."):
            path = text[1:]
            if self.component is None:
                self.wrong(f"`{text}` does not say whose value it is", at, f"write <component>:{path}")
                return
        elif not colon or not head:
            self.wrong(f"`{text}` is no value", at, "write <component>:<path>, or inside component.yaml .<path>")
            return
        try:
            parse_path(path)
        except ValueError as error:
            self.wrong(str(error), at)

    def over_component(self, raw: Mapping[str, Any], origin: Origin) -> None:
        if not self.keys(raw, ("component", "enabled", "version"), origin, "a `component` predicate"):
            return
        if ("enabled" in raw) == ("version" in raw):
            fix = 'write `enabled: true` or, for the chart, `version: ">= 1.2.3"`'
            self.wrong("a `component` predicate has exactly one of `enabled` and `version`", origin, fix)
        elif "version" in raw:
            self.operand("version", raw["version"], origin.down("version"))
        elif not isinstance(raw["enabled"], bool):
            self.wrong(f"`enabled` is true or false, not {noun(raw['enabled'])}", origin.down("enabled"))

    def operator(self, raw: Mapping[str, Any], beside: tuple[str, ...], origin: Origin) -> None:
        if not self.keys(raw, (*beside, *OPERATORS), origin, f"a `{beside[0]}` predicate"):
            return
        used = [k for k in raw if k in OPERATORS]
        if len(used) != 1:
            has = " and ".join(used) if used else "none"
            self.wrong(
                f"`{beside[0]}` takes exactly one operator, here: {has}",
                origin,
                f"operators: {', '.join(OPERATORS)}",
            )
            return
        self.operand(used[0], raw[used[0]], origin.down(used[0]))

    def operand(self, operator: str, value: Any, at: Origin) -> None:
        if operator == "exists" and not isinstance(value, bool):
            self.wrong(f"`exists` is true or false, not {noun(value)}", at)
        elif operator == "in" and (not isinstance(value, list) or not value):
            self.wrong("`in` takes a list that is not empty", at)
        elif operator in ("equals", "notEquals", "contains") and value is None:
            self.wrong(f"null is no operand of `{operator}`", at, "a null counts as missing: write `exists: false`")
        elif operator in ("atLeast", "atMost") and not is_number(value):
            self.wrong(f"`{operator}` takes a number, not {noun(value)}", at)
        elif operator in ("matches", "version", "sameAs") and not isinstance(value, str):
            self.wrong(f"`{operator}` takes a string, not {noun(value)}", at)
        elif operator == "matches":
            try:
                re.compile(value)
            except re.error as error:
                self.wrong(f"`{value}` is no regular expression: {error}", at)
        elif operator == "version":
            try:
                parse_expression(value)
            except VersionError as error:
                self.wrong(str(error), at)
        elif operator == "sameAs":
            self.value_path(value, at)

    def over_objects(self, raw: Mapping[str, Any], selector: Any, origin: Origin) -> None:
        at = origin.down("objects")
        if not self.objects:
            self.wrong(
                "`objects` is not known here: this is decided before manifests are rendered",
                at,
                "use `objects` in assertions, rules and policies",
                key=True,
            )
            return
        if not isinstance(selector, dict) or "kind" not in selector:
            self.wrong("`objects` selects by {group, kind, ...}; `kind` is missing", at)
        elif self.keys(selector, OBJECT_KEYS, at, "`objects`"):
            for key, value in selector.items():
                if not isinstance(value, str):
                    self.wrong(f"`{key}` is a string, not {noun(value)}", at.down(key))
        if not self.keys(raw, ("objects", *QUANTIFIERS), origin, "an `objects` predicate"):
            return
        used = [k for k in raw if k in QUANTIFIERS]
        if len(used) != 1:
            self.wrong(f"`objects` takes exactly one of {', '.join(QUANTIFIERS)}", origin)
            return
        test, at = raw[used[0]], origin.down(used[0])
        if not isinstance(test, dict):
            self.wrong(f"`{used[0]}` takes a mapping, not {noun(test)}", at)
        elif used[0] == "count":
            self.count(test, at)
        elif not isinstance(test.get("path"), str):
            self.wrong(f"`{used[0]}` takes {{path, OP}}; `path` is missing or no string", at)
        else:
            try:
                parse_pattern(test["path"])
            except ValueError as error:
                self.wrong(str(error), at.down("path"))
            self.operator(test, ("path",), at)

    def count(self, test: Mapping[str, Any], at: Origin) -> None:
        if not self.keys(test, COUNTS, at, "`count`"):
            return
        if not test:
            self.wrong(f"`count` takes at least one of {', '.join(COUNTS)}", at)
        for key, value in test.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                self.wrong(f"`{key}` is a whole number, not {noun(value)}", at.down(key))
