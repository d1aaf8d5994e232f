"""Profiles: one choice that owns value paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.model import Flags
from compiler.resolve import entry_for, resolve
from tests.support.workspaces import catalog, findings, pointed, recipe, the_finding

PROFILE = """
profile:
  name: gpuStack
  default: managed
  values:
    managed:
      advertiser: external
      constraints: [{name: NodeTopology.gpu-nodes.label, value: "!own"}]
      componentRefs: [{name: one, overrides: {installer: {enabled: false}, key: "1"}}]
    own:
      constraints: [{name: NodeTopology.gpu-nodes.label, value: own=true}]
      componentRefs: [{name: one, overrides: {installer: {enabled: true}, key: "2"}}]
"""
ONE = {"components/one": "", "components/two": ""}


def chain(
    profile: str = PROFILE, leaf: str = "", refs: str = "[{name: one, overrides: {key: '0'}}, {name: two}]"
) -> dict[str, str]:
    return {
        **ONE,
        "overlays/base.yaml": f"abstract: true\ncomponentRefs: {refs}",
        "overlays/middle.yaml": f"base: base\nabstract: true\ncriteria: {{service: gke}}\n{profile}",
        "overlays/leaf.yaml": f"base: middle\ncriteria: {{intent: training}}\n{leaf}",
    }


def with_bundle(**fields: str) -> dict[str, str]:
    lines = "".join(f"\n    {key}: {value}" for key, value in fields.items())
    return {**chain(), "bundlec.yaml": f"bundles:\n  - name: b\n    recipe: leaf{lines}"}


@pytest.mark.parametrize(
    ("bundle", "flags", "value", "origin"),
    [
        ({}, {}, "managed", "overlays/middle.yaml: managed"),
        ({"profile": "{gpuStack: own}"}, {}, "own", "bundlec.yaml: own}"),
        ({"profile": "{gpuStack: own}"}, {"gpuStack": "managed"}, "managed", None),
    ],
)
def test_selection(
    tmp_path: Path, bundle: dict[str, str], flags: dict[str, str], value: str, origin: str | None
) -> None:
    found = recipe(tmp_path, with_bundle(**bundle), "b", Flags(profile=flags))
    assert found.profile is not None
    assert (found.profile.name, found.profile.value) == ("gpuStack", value)
    assert found.profile.advertiser == ("external" if value == "managed" else "")
    assert found.profile.owned_paths == (("one", "installer.enabled"), ("one", "key"))
    if origin is None:
        assert str(found.profile.origin).startswith("<--profile gpuStack=managed>")
    else:
        assert pointed(tmp_path, found.profile.origin.span()) == origin
    one = found.components["one"]
    assert one.values == {"installer": {"enabled": value == "own"}, "key": "1" if value == "managed" else "2"}
    assert one.trace["key",][-1].layer == f"profile gpuStack={value}"
    assert found.constraints["NodeTopology.gpu-nodes.label"].value == ("!own" if value == "managed" else "own=true")


@pytest.mark.parametrize(
    ("chosen", "message", "fix"),
    [
        ("{gpuStack: mnaged}", "has no value `mnaged`", "did you mean `managed`?"),
        ("{gpuStack: zzz}", "has no value `zzz`", "one of: managed, own"),
        ("{gpuStak: own}", "has no profile `gpuStak`", "did you mean `gpuStack`?"),
        ("{zzz: own}", "has no profile `zzz`", "its profile is `gpuStack`"),
    ],
)
def test_a_choice_that_does_not_exist(tmp_path: Path, chosen: str, message: str, fix: str) -> None:
    one = the_finding(catalog(tmp_path, with_bundle(profile=chosen)), "b", "BC2007")
    assert message in one.message
    assert one.fix == fix
    assert one.span is not None
    assert one.span.file == "bundlec.yaml"


def test_a_profile_for_a_recipe_that_has_none(tmp_path: Path) -> None:
    one = the_finding(catalog(tmp_path, chain("")), "leaf", "BC2007", Flags(profile={"gpuStack": "own"}))
    assert one.fix == "it has none; remove this"


def test_two_profiles(tmp_path: Path) -> None:
    found = findings(catalog(tmp_path, chain(leaf=PROFILE)), "leaf")
    assert [d.code for d in found] == ["BC2007"]
    assert "overlay `leaf` declares a profile, and `middle` does already" in found[0].message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("default: managed", "default: mangaed", "its default `mangaed` is none of its values"),
        ('{enabled: true}, key: "2"}', "{enabled: true}}", "value `own` does not set one:key"),
        ('key: "2"}', 'key: "2", extra: 1}', "value `managed` does not set one:extra"),
        ('key: "2"', "key: [2]", "`one:key` is no scalar"),
        ('key: "2"', "key: {}", "`one:key` is no scalar"),
        ('key: "2"', "key: null", "`one:key` is no scalar"),
        ('key: "2"}', 'key: "2", enabled: false}', "may not switch `one` on or off"),
        ("value: own=true", 'value: "!own"', "no constraint tells value `own` apart"),
        ("value: own=true", "value: own=true, severity: warning", "no constraint tells value `own` apart"),
        ("    own:\n", "    Managed:\n", "`Managed` and `managed` differ in case only"),
    ],
)
def test_a_profile_that_is_not_well_formed(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PROFILE
    found = findings(catalog(tmp_path, chain(PROFILE.replace(old, new))), "leaf")
    assert {d.code for d in found} == {"BC2007"}
    assert any(message in d.message for d in found)
    assert all(d.fix for d in found)


def test_keys_with_dots_are_not_owned(tmp_path: Path) -> None:
    profile = PROFILE.replace('key: "1"', '"a.b": "1"').replace('key: "2"', '"a.b": "2"')
    found = findings(catalog(tmp_path, chain(profile)), "leaf")
    assert [d.code for d in found] == ["BC2007", "BC2007"]
    assert all("has a key with a dot" in d.message for d in found)


@pytest.mark.parametrize(
    ("refs", "message"),
    [("[{name: two}]", "which the recipe does not have"), ("[{name: one, enabled: false}]", "has switched off")],
)
def test_components_of_a_profile_take_part(tmp_path: Path, refs: str, message: str) -> None:
    one = the_finding(catalog(tmp_path, chain(refs=refs)), "leaf", "BC2007")
    assert message in one.message


@pytest.mark.parametrize(
    ("overrides", "clear"),
    [
        ("{key: '5'}", False),
        ("{installer: {enabled: true}}", False),
        ("{key: '1'}", True),
        ("{installer: {x: 1}}", True),
    ],
)
def test_a_later_overlay_would_be_overridden_in_silence(tmp_path: Path, overrides: str, clear: bool) -> None:
    found = catalog(tmp_path, chain(leaf=f"componentRefs: [{{name: one, overrides: {overrides}}}]"))
    if clear:
        resolve(found, entry_for(found, "leaf"), Flags())
    else:
        one = the_finding(found, "leaf", "BC2006")
        assert "is owned by profile `gpuStack`, whose value `managed` sets it" in one.message


@pytest.mark.parametrize(
    ("bundle", "clear"),
    [
        ({"set": "{one: {key: '2'}}"}, False),
        ({"set": "{one: {key: 1}}"}, False),
        ({"set": "{one: {installer: {enabled: true}}}"}, False),
        ({"set": "{one: {installer: {enabled: 0}}}"}, False),
        ({"set": "{one: {installer: {enabled: false}}}"}, True),
        ({"set": "{one: {installer: null}}"}, False),
        ({"set": "{one: {key: null}}"}, False),
        ({"set": "{one: {key: '1', other: 1}}"}, True),
        ({"set": "{two: {key: '2'}}"}, True),
        ({"disable": "[{component: one, reason: r}]"}, False),
        ({"set": "{one: {enabled: false}}"}, False),
        ({"disable": "[{component: two, reason: r}]"}, True),
    ],
)
def test_a_bundle_leaves_owned_paths_alone(tmp_path: Path, bundle: dict[str, str], clear: bool) -> None:
    found = catalog(tmp_path, with_bundle(**bundle))
    if clear:
        resolve(found, entry_for(found, "b"), Flags())
    else:
        codes = [d.code for d in findings(found, "b")]
        assert codes == ["BC2008"]


def test_a_flag_leaves_owned_paths_alone(tmp_path: Path) -> None:
    found = catalog(tmp_path, chain())
    one = the_finding(found, "leaf", "BC2008", Flags(set=(("one", ("key",), "9"),)))
    assert str(one.span) == "<--set one:key>:1:1"
    assert one.fix == "choose another value of the profile: managed, own"
