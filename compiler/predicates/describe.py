"""A predicate in words, for reasons of edges, notes of failed rules and the README of a bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compiler.model import Predicate

_WORDS: Mapping[str, str] = {
    "equals": "is",
    "notEquals": "is not",
    "in": "is one of",
    "contains": "contains",
    "matches": "matches",
    "version": "is version",
    "atLeast": "is at least",
    "atMost": "is at most",
    "sameAs": "is the same as",
}
_SUBJECTS = ("recipe", "profile", "input", "component", "validation", "constraint", "value")


def describe(predicate: Predicate) -> str:
    """One line that says what must be true: `gpuStack is "bundle-installer"`."""
    return _form(predicate.form)


def _form(form: Mapping[str, Any]) -> str:
    for key, word in (("all", " and "), ("any", " or ")):
        if key in form:
            return word.join(f"({_form(part)})" if len(form[key]) > 1 else _form(part) for part in form[key])
    if "not" in form:
        return f"not ({_form(form['not'])})"
    if "objects" in form:
        return _objects(form)
    for subject in _SUBJECTS:
        if subject in form:
            return f"{form[subject]} {_operator(form, subject)}"
    return json.dumps(form, sort_keys=True)


def _objects(form: Mapping[str, Any]) -> str:
    selector = form["objects"]
    what = selector.get("kind", "object") + (f" {selector['name']}" if "name" in selector else "")
    for quantifier in ("every", "some", "none"):
        if quantifier in form:
            test = form[quantifier]
            who = "no" if quantifier == "none" else quantifier
            return f"{who} {what} has {test['path']} that {_operator(test, 'path')}"
    count = " and ".join(f"{_WORDS[key]} {value}" for key, value in sorted(form.get("count", {}).items()))
    return f"the number of {what} objects {count}"


def _operator(form: Mapping[str, Any], subject: str) -> str:
    for key, value in form.items():
        if key == subject:
            continue
        if key == "exists":
            return "is set" if value else "is not set"
        if key == "enabled":
            return "is enabled" if value else "is disabled"
        return f"{_WORDS.get(key, key)} {json.dumps(value, ensure_ascii=False)}"
    return "holds"
