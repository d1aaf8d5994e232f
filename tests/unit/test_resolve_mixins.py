"""Mixins add; every collision is an error, so their order cannot matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.model import Flags
from compiler.resolve import entry_for, resolve
from tests.support.workspaces import catalog, findings, pointed, recipe, the_finding

MANIFESTS = {
    f"components/one/manifests/{name}.yaml": f"{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}"
    for name in ("a", "b", "c")
}
ONE = {"components/one": "mixinPaths: [open.leaf, open.other]", "components/two": "", **MANIFESTS}


def leaf(*mixins: str, refs: str = "[{name: one}]") -> dict[str, str]:
    return {
        "overlays/base.yaml": f"abstract: true\ncomponentRefs: {refs}",
        "overlays/leaf.yaml": f"base: base\ncriteria: {{service: eks}}\nmixins: [{', '.join(mixins)}]",
    }


def mixin(name: str, ref: str) -> dict[str, str]:
    return {f"mixins/{name}.yaml": f"componentRefs:\n  - {ref}"}


def test_a_mixin_adds_to_an_inherited_component(tmp_path: Path) -> None:
    files = {
        **ONE,
        **leaf("m", refs="[{name: one, manifestFiles: [manifests/a.yaml], dependencyRefs: [two]}, {name: two}]"),
        **mixin(
            "m",
            "{name: one, manifestFiles: [manifests/a.yaml, manifests/b.yaml], preManifestFiles: [manifests/c.yaml],"
            " dependencyRefs: [{name: two, until: ready}], overrides: {open: {leaf: 1}}}",
        ),
    }
    found = recipe(tmp_path, files, "leaf")
    one = found.components["one"]
    assert found.mixins == ("m",)
    assert {p: [m.file for m in files] for p, files in one.manifests.items()} == {
        "pre": ["manifests/c.yaml"],
        "main": [],
        "post": ["manifests/a.yaml", "manifests/b.yaml"],
    }
    assert [(n.component, n.until) for n in one.needs] == [("two", "ready")]
    assert one.values == {"open": {"leaf": 1}}
    assert one.trace["open", "leaf"][-1].layer == "mixin m"


def test_a_mixin_brings_a_component_with_all_fields(tmp_path: Path) -> None:
    files = {
        **ONE,
        **leaf("m", refs="[]"),
        **mixin("m", '{name: one, version: "9.0.0", reason: r, namespace: ns, overrides: {any: {value: 1}}}'),
    }
    one = recipe(tmp_path, files, "leaf").components["one"]
    assert (one.version, one.namespace, one.values) == ("9.0.0", "ns", {"any": {"value": 1}})
    assert pointed(tmp_path, one.brought_by.span()).startswith("mixins/m.yaml: {name: one")


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('version: "2.0.0", reason: r', "version"),
        ("namespace: other", "namespace"),
        ("valuesFile: v.yaml", "valuesFile"),
        ("enabled: false", "enabled"),
        ("enabled: true", "enabled"),
        ("overrides: {enabled: false}", "enabled"),
        ("readiness: {timeout: 5m}", "readiness"),
        ("healthCheckSkip: no", "healthCheckSkip"),
        ("dependencyRefs: [{name: two, remove: true}]", "removes the dependency on `two`"),
        ("overrides: {driver: {x: 1}}", "driver.x"),
        ("overrides: {open: {third: 1}}", "open.third"),
        ("overrides: {open: {}}", "open"),
    ],
)
def test_what_a_mixin_may_not_say_of_an_inherited_component(tmp_path: Path, said: str, what: str) -> None:
    """case 54"""
    said = said.replace("healthCheckSkip: no", "healthCheckSkip: not now")
    files = {
        **ONE,
        "components/one/v.yaml": "{}",
        **leaf("m", refs="[{name: one, dependencyRefs: [two]}, {name: two}]"),
        **mixin("m", f"{{name: one, {said}}}"),
    }
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2004")
    assert what in one.message
    assert "`one`, which overlay base brings" in one.message
    assert one.span is not None
    assert one.span.file == "mixins/m.yaml"
    assert one.notes[0][0].file == "overlays/base.yaml"


@pytest.mark.parametrize("inherited", ["{open: {leaf: 1}}", "{open: {leaf: null}}", "{open: 1}"])
def test_a_mixin_may_not_override_a_value_of_the_chain(tmp_path: Path, inherited: str) -> None:
    files = {
        **ONE,
        "components/one/values.yaml": "open: {leaf: 0}",
        **leaf("m", refs=f"[{{name: one, overrides: {inherited}}}]"),
        **mixin("m", "{name: one, overrides: {open: {leaf: 2}}}"),
    }
    found = findings(catalog(tmp_path, files), "leaf")
    assert "BC2004" in [d.code for d in found]


def test_a_mixin_may_not_override_the_chosen_values_file(tmp_path: Path) -> None:
    files = {
        **ONE,
        "components/one/v.yaml": "open: {leaf: 0}",
        **leaf("m", refs="[{name: one, valuesFile: v.yaml}]"),
        **mixin("m", "{name: one, overrides: {open: {leaf: 2}}}"),
    }
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2004")
    assert pointed(tmp_path, one.notes[0][0]) == "components/one/v.yaml: 0}"


def test_a_mixin_may_override_a_default_of_the_component(tmp_path: Path) -> None:
    files = {
        **ONE,
        "components/one/values.yaml": "open: {leaf: 0}",
        **leaf("m"),
        **mixin("m", "{name: one, overrides: {open: {leaf: 2}}}"),
    }
    assert recipe(tmp_path, files, "leaf").components["one"].values == {"open": {"leaf": 2}}


def test_constraints_of_mixins_do_not_override(tmp_path: Path) -> None:
    constraint = "constraints: [{name: OS.release.ID, value: ubuntu}]"
    files = {**ONE, **leaf("a", "b"), "mixins/a.yaml": constraint, "mixins/b.yaml": constraint}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2004")
    assert one.span is not None
    assert (one.span.file, one.notes[0][0].file) == ("mixins/b.yaml", "mixins/a.yaml")
    files |= {"mixins/b.yaml": "", "overlays/base.yaml": constraint}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2004")
    assert one.notes[0][0].file == "overlays/base.yaml"


@pytest.mark.parametrize(
    ("a", "b", "inherited"),
    [
        # additions to an inherited component
        ("manifestFiles: [manifests/a.yaml]", "manifestFiles: [manifests/b.yaml]", True),
        ("overrides: {open: {leaf: 1}}", "overrides: {open: {other: 1}}", True),
        ("overrides: {open: {leaf: 1}}", "overrides: {open: {leaf: 1}}", True),
        ("dependencyRefs: [two]", "dependencyRefs: [{name: two, until: api}]", True),
        (
            "manifestFiles: [manifests/a.yaml]",
            "manifestFiles: [{file: manifests/a.yaml, when: {recipe: os, exists: true}}]",
            True,
        ),
        # a component that only mixins bring
        ("namespace: ns, manifestFiles: [manifests/a.yaml]", "manifestFiles: [manifests/b.yaml]", False),
        ("manifestFiles: [manifests/b.yaml]", "overrides: {driver: 1}, namespace: ns", False),
        ("namespace: ns", "namespace: ns", False),
        ("overrides: {driver: 1}", "overrides: {open: {leaf: 1}}", False),
        ("overrides: {open: {leaf: 1}, driver: 1}", "overrides: {open: {leaf: 1}}", False),
        ("dependencyRefs: [two]", "manifestFiles: [manifests/b.yaml]", False),
    ],
)
def test_the_order_of_mixins_does_not_matter(tmp_path: Path, a: str, b: str, inherited: bool) -> None:
    """case 54: the same result either way, or the same error."""
    outcomes = []
    refs = "[{name: one}, {name: two}]" if inherited else "[{name: two}]"
    for number, order in enumerate((("x", "z"), ("z", "x"))):
        files = {
            **ONE,
            **leaf(*order, refs=refs),
            **mixin("x", f"{{name: one, {a}}}"),
            **mixin("z", f"{{name: one, {b}}}"),
        }
        found = catalog(tmp_path / str(number), files)
        try:
            outcomes.append(resolve(found, entry_for(found, "leaf"), Flags()).components)
        except Exception:  # noqa: BLE001 - which one is looked at here
            outcomes.append({(d.code, d.message) for d in findings(found, "leaf")})
    assert outcomes[0] == outcomes[1]


def test_one_of_several_mixins_may_say_everything_of_a_component_that_only_they_bring(tmp_path: Path) -> None:
    files = {
        **ONE,
        **leaf("x", "z", refs="[]"),
        **mixin("x", "{name: one, manifestFiles: [manifests/a.yaml], overrides: {open: {leaf: 1}}}"),
        **mixin("z", "{name: one, namespace: ns, overrides: {driver: 2}}"),
    }
    one = recipe(tmp_path, files, "leaf").components["one"]
    assert (one.namespace, one.values) == ("ns", {"driver": 2, "open": {"leaf": 1}})
    assert [m.file for m in one.manifests["post"]] == ["manifests/a.yaml"]


def test_mixins_of_the_whole_chain_apply_after_it_each_once(tmp_path: Path) -> None:
    files = {
        **ONE,
        "overlays/base.yaml": "abstract: true\nmixins: [second]",
        "overlays/leaf.yaml": (
            "base: base\ncriteria: {service: eks}\nmixins: [first, second]\n"
            "componentRefs: [{name: one, manifestFiles: [manifests/c.yaml]}]"
        ),
        **mixin("first", "{name: one, manifestFiles: [manifests/b.yaml]}"),
        **mixin("second", "{name: one, manifestFiles: [manifests/a.yaml]}"),
    }
    found = recipe(tmp_path, files, "leaf")
    assert found.mixins == ("second", "first")
    assert [m.file for m in found.components["one"].manifests["post"]] == [
        "manifests/c.yaml",
        "manifests/b.yaml",
        "manifests/a.yaml",
    ]
