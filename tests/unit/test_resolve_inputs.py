"""Inputs of recipes, and what bundles and flags do to components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler.model import Flags
from compiler.resolve import entry_for, resolve
from tests.support.workspaces import catalog, findings, pointed, recipe, the_finding

INPUTS = """
inputs:
  size: {type: integer, default: 3, schema: {minimum: 1}}
  mode:
    type: string
    enum: [plain, fancy]
    default: plain
    effects:
      fancy:
        - {name: one, overrides: {mode: fancy}}
        - {name: two, enabled: true}
  fast: {type: boolean, effects: {"true": [{name: one, overrides: {fast: 1}}]}}
  site: {type: string, required: true, description: where it runs}
"""


def workspace(bundle: str = "inputs: {site: here}", inputs: str = INPUTS) -> dict[str, str]:
    return {
        "components/one": "aliases: [first]",
        "components/two": "",
        "components/foreign": "",
        "overlays/base.yaml": (
            "abstract: true\ncomponentRefs: [{name: one, overrides: {mode: none}}, {name: two, enabled: false}]"
        ),
        "overlays/leaf.yaml": f"base: base\ncriteria: {{service: eks}}\n{inputs}",
        "bundlec.yaml": f"bundles:\n  - name: b\n    recipe: leaf\n    {bundle}",
    }


def test_defaults_and_absent_inputs(tmp_path: Path) -> None:
    found = recipe(tmp_path, workspace(), "b")
    assert found.inputs == {"mode": "plain", "site": "here", "size": 3}
    assert found.components["one"].values == {"mode": "none"}


def test_effects(tmp_path: Path) -> None:
    found = recipe(tmp_path, workspace("inputs: {site: here, mode: fancy, fast: true}"), "b")
    one, two = found.components["one"], found.components["two"]
    assert found.inputs == {"fast": True, "mode": "fancy", "site": "here", "size": 3}
    assert one.values == {"mode": "fancy", "fast": 1}
    assert [e.layer for e in one.trace["mode",]] == ["overlay base", "input mode=fancy"]
    assert two.enabled
    assert two.disabled_by is None


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        ("{site: here, mod: plain}", "the recipe has no input `mod`", "did you mean `mode`?"),
        ("{site: here, zzz: 1}", "the recipe has no input `zzz`", "its inputs: fast, mode, site, size"),
        ("{site: here, mode: odd}", "input `mode` cannot be odd", "one of: plain, fancy"),
        ("{site: here, size: '3'}", "input `size` is of type integer", None),
        ("{site: here, size: true}", "input `size` is of type integer", None),
        ("{site: here, size: 0}", "less than the minimum", None),
        ("{site: here, fast: 1}", "input `fast` is of type boolean", None),
        ("{site: 5}", "input `site` is of type string", "quote it"),
    ],
)
def test_values_that_do_not_fit(tmp_path: Path, given: str, message: str, fix: str | None) -> None:
    one = the_finding(catalog(tmp_path, workspace(f"inputs: {given}")), "b", "BC2011")
    assert message in one.message
    assert one.fix == fix
    assert one.span is not None
    assert one.span.file == "bundlec.yaml"


def test_a_required_input(tmp_path: Path) -> None:
    one = the_finding(catalog(tmp_path, workspace("inputs: {}")), "b", "BC2011")
    assert "input `site` is required: where it runs" in one.message
    assert one.notes[0][0].file == "overlays/leaf.yaml"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("inputs: {m: {type: string, enum: [a], default: b}}", "input `m` cannot be b"),
        ("inputs: {m: {type: string, enum: [ab], effects: {ac: [{name: one}]}}}", "input `m` never is ac"),
        ("inputs: {m: {type: boolean, effects: {'1': [{name: one}]}}}", "input `m` never is 1"),
        ("inputs: {m: {type: string, default: a, effects: {a: [{name: foreign}]}}}", "the recipe does not have"),
        ("inputs: {m: {type: string, default: a, schema: {type: strin}}}", "the schema of input `m` is not valid"),
        (
            'inputs: {m: {type: string, default: a, schema: {$ref: "https://example.com/x.json"}}}',
            "leads out of the file",
        ),
    ],
)
def test_declarations_that_do_not_fit(tmp_path: Path, inputs: str, message: str) -> None:
    one = the_finding(catalog(tmp_path, workspace("", inputs)), "b", "BC2011")
    assert message in one.message
    assert one.span is not None
    assert one.span.file == "overlays/leaf.yaml"


def test_a_recipe_without_inputs(tmp_path: Path) -> None:
    one = the_finding(catalog(tmp_path, workspace(inputs="")), "b", "BC2011")
    assert one.fix == "it declares no inputs"


def plain(bundle: str) -> dict[str, str]:
    return workspace(bundle, "")


@pytest.mark.parametrize("name", ["one", "ONE", "first", "First"])
def test_set_by_name_or_alias(tmp_path: Path, name: str) -> None:
    found = recipe(tmp_path, plain(f"set: {{{name}: {{mode: site, more: [1]}}}}"), "b")
    one = found.components["one"]
    assert one.values == {"mode": "site", "more": [1]}
    assert [e.layer for e in one.trace["mode",]] == ["overlay base", "bundle b"]
    assert pointed(tmp_path, one.trace["more",][-1].origin.span()).startswith("bundlec.yaml: [1]")


def test_flags_are_the_last_layers(tmp_path: Path) -> None:
    flags = Flags(set=(("first", ("a", "b"), 1), ("one", ("a", "c"), 2), ("one", ("mode",), "flag")))
    one = recipe(tmp_path, plain("set: {one: {mode: site}}"), "b", flags).components["one"]
    assert one.values == {"mode": "flag", "a": {"b": 1, "c": 2}}
    assert str(one.trace["a", "b"][-1].origin.document.file) == "<--set first:a.b>"


@pytest.mark.parametrize("order", [0, 1])
def test_flags_that_contradict_each_other(tmp_path: Path, order: int) -> None:
    """case 15"""
    flags: list[tuple[str, tuple[str | int, ...], Any]] = [("one", ("a",), 2), ("one", ("a", "b"), 1)]
    if order:
        flags.reverse()
    one = the_finding(catalog(tmp_path, plain("")), "b", "BC2005", Flags(set=tuple(flags)))
    assert {str(one.span), str(one.notes[0][0])} == {"<--set one:a>:1:1", "<--set one:a.b>:1:1"}


def test_disabling_with_a_reason(tmp_path: Path) -> None:
    one = recipe(tmp_path, plain("disable: [{component: first, reason: the image has it}]"), "b").components["one"]
    assert (one.enabled, one.disabled_reason) == (False, "the image has it")
    assert one.disabled_by is not None
    assert pointed(tmp_path, one.disabled_by.span()).startswith("bundlec.yaml: first")


@pytest.mark.parametrize("switch", ["enabled: false", "install: false", 'enabled: "false"', "enabled: False"])
def test_set_may_switch_off(tmp_path: Path, switch: str) -> None:
    found = recipe(tmp_path, plain(f"set: {{one: {{{switch}}}}}"), "b")
    one = found.components["one"]
    assert (one.enabled, one.disabled_reason, one.values) == (False, "bundle b", {"mode": "none"})


@pytest.mark.parametrize("value", ["1", "null", "maybe", "{x: 1}"])
def test_a_switch_is_true_or_false(tmp_path: Path, value: str) -> None:
    one = the_finding(catalog(tmp_path, plain(f"set: {{one: {{enabled: {value}}}}}")), "b", "BC1102")
    assert pointed(tmp_path, one.span).startswith(f"bundlec.yaml: {value}")


def test_set_may_repeat_that_a_component_is_on(tmp_path: Path) -> None:
    assert recipe(tmp_path, plain("set: {one: {enabled: true}}"), "b").components["one"].values == {"mode": "none"}


@pytest.mark.parametrize(
    ("bundle", "code", "message", "fix"),
    [
        ("set: {onee: {x: 1}}", "BC2006", "`onee` is no component", "did you mean `one`?"),
        ("set: {foreign: {x: 1}}", "BC2006", "`foreign` takes no part in this recipe", "remove it"),
        ("set: {two: {x: 1}}", "BC2006", "`two`, which is switched off already", "remove it, or enable the component"),
        ("set: {two: {enabled: true}}", "BC2015", "`two` is switched off (overlay base)", "enable it in an overlay"),
        ("disable: [{component: two, reason: r}]", "BC2006", "switched off already (overlay base)", "remove the entry"),
        ("disable: [{component: onee, reason: r}]", "BC2006", "`onee` is no component", "did you mean `one`?"),
        (
            "disable: [{component: one, reason: why}]\n    set: {one: {x: 1}}",
            "BC2006",
            "`one`, which is switched off already (why)",
            "remove it, or enable the component",
        ),
    ],
)
def test_what_can_take_no_effect(tmp_path: Path, bundle: str, code: str, message: str, fix: str) -> None:
    """case 58"""
    one = the_finding(catalog(tmp_path, plain(bundle)), "b", code)
    assert message in one.message
    assert one.fix == fix
    assert one.span is not None
    assert one.span.file == "bundlec.yaml"


def test_flags_for_something_that_is_not_there(tmp_path: Path) -> None:
    """case 58"""
    found = catalog(tmp_path, plain(""))
    flags = Flags(set=(("frist", ("x",), 1), ("two", ("enabled",), True)))
    codes = [(d.code, d.fix) for d in findings(found, "b", flags)]
    assert codes == [("BC2006", "did you mean `first`?"), ("BC2015", "enable it in an overlay")]
    assert not resolve(found, entry_for(found, "b"), Flags(set=(("one", ("enabled",), "false"),))).enabled()
