"""Composing recipes: refs along the chain, what adds up, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from compiler.errors import UserError
from compiler.facts import facts
from compiler.model import Flags, ReadinessOverride
from compiler.resolve import entry_for, resolve
from tests.support.workspaces import catalog, findings, pointed, recipe, the_finding

TWO = {"components/one": "", "components/two": ""}


def chain(root: str = "", middle: str = "", leaf: str = "") -> dict[str, str]:
    """base <- middle <- leaf, with further lines of their specs."""
    return {
        "overlays/base.yaml": f"abstract: true\n{root}",
        "overlays/middle.yaml": f"base: base\nabstract: true\ncriteria: {{service: eks}}\n{middle}",
        "overlays/leaf.yaml": f"base: middle\ncriteria: {{accelerator: h100}}\n{leaf}",
    }


def refs(*items: str) -> str:
    """`componentRefs` with these items."""
    return "componentRefs:\n" + "\n".join(f"  - {item}" for item in items)


def test_values_are_layered(tmp_path: Path) -> None:
    files = {
        **chain(
            refs("{name: one, overrides: {a: base, b: base, list: [1, 2]}}"),
            refs("{name: one, valuesFile: values-more.yaml, overrides: {b: middle}}"),
            refs("{name: one, overrides: {c: {d: leaf}, list: [3]}}"),
        ),
        "components/one": "",
        "components/one/values.yaml": "a: own\nc: {d: own, e: own}\nown: true\nmore: false\n",
        "components/one/values-more.yaml": "a: more\nmore: true\n",
    }
    one = recipe(tmp_path, files, "leaf").components["one"]
    assert one.values == {
        "a": "base",
        "b": "middle",
        "c": {"d": "leaf", "e": "own"},
        "own": True,
        "more": True,
        "list": [3],
    }
    assert one.chart_values == one.values
    assert [(e.layer, e.action, pointed(tmp_path, e.origin.span())) for e in one.trace["a",]] == [
        ("one values.yaml", "set", "components/one/values.yaml: own"),
        ("one values-more.yaml", "replaced", "components/one/values-more.yaml: more"),
        ("overlay base", "replaced", "overlays/base.yaml: base, b: base, list: [1, 2]}}"),
    ]
    assert one.trace["c", "d"][-1].layer == "overlay leaf"


def test_the_last_values_file_wins_and_is_not_stacked(tmp_path: Path) -> None:
    files = {
        **chain(refs("{name: one, valuesFile: x.yaml}"), refs("{name: one, valuesFile: z.yaml}"), refs("{name: one}")),
        "components/one": "",
        "components/one/values.yaml": "own: 1\n",
        "components/one/x.yaml": "x: 1\n",
        "components/one/z.yaml": "z: 1\n",
    }
    assert recipe(tmp_path, files, "leaf").components["one"].values == {"own": 1, "z": 1}


def test_the_component_s_own_values_file_is_not_laid_over_itself(tmp_path: Path) -> None:
    files = {
        **chain(refs("{name: one, valuesFile: values.yaml}")),
        "components/one": "",
        "components/one/values.yaml": "own: 1\n",
    }
    one = recipe(tmp_path, files, "leaf").components["one"]
    assert [e.layer for e in one.trace["own",]] == ["one values.yaml"]


def test_fields_of_a_ref(tmp_path: Path) -> None:
    files = {
        **TWO,
        **chain(
            refs("{name: one, namespace: first, readiness: {timeout: 5m, minNodes: 2}, healthCheckSkip: not yet}"),
            refs("{name: one, readiness: {timeout: 1h, onTimeout: warn}}", "{name: two}"),
            refs('{name: one, version: "9.9.9", reason: a bug in 1.2.3}'),
        ),
    }
    found = recipe(tmp_path, files, "leaf")
    one = found.components["one"]
    assert (one.namespace, one.version, one.health_check_skip) == ("first", "9.9.9", "not yet")
    assert one.readiness == ReadinessOverride(3600, "warn", 2, None)
    assert pointed(tmp_path, one.brought_by.span()).startswith("overlays/base.yaml: {name: one, namespace: first")
    assert (found.components["two"].namespace, found.components["two"].version) == ("two", "1.2.3")


def test_dependencies_add_up_and_the_strongest_wait_wins(tmp_path: Path) -> None:
    files = {
        "components/one": "needs: [{component: two, until: api, reason: its webhook}]",
        "components/two": "",
        "components/three": "",
        **chain(
            refs("{name: one, dependencyRefs: [three, two]}", "{name: two}", "{name: three}"),
            refs("{name: one, dependencyRefs: [{name: three, until: ready}, three]}"),
            refs("{name: one, dependencyRefs: [{name: three, when: {recipe: service, equals: eks}}]}"),
        ),
    }
    needs = recipe(tmp_path, files, "leaf").components["one"].needs
    assert [(n.component, n.until, n.reason, n.when is not None) for n in needs] == [
        ("two", "api", "its webhook", False),
        ("three", "ready", None, False),
        ("three", "applied", None, True),
    ]
    assert str(needs[1].origin).startswith("overlays/middle.yaml")


def test_an_inherited_dependency_can_be_removed(tmp_path: Path) -> None:
    files = {
        **TWO,
        **chain(
            refs("{name: one, dependencyRefs: [two]}", "{name: two}"),
            refs("{name: one, dependencyRefs: [{name: two, remove: true}]}"),
        ),
    }
    assert recipe(tmp_path, files, "leaf").components["one"].needs == ()


def test_removing_a_dependency_that_is_not_there(tmp_path: Path) -> None:
    files = {**TWO, **chain(refs("{name: one, dependencyRefs: [{name: two, remove: true}]}"))}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2006")
    assert pointed(tmp_path, one.span) == "overlays/base.yaml: {name: two, remove: true}]}"


def manifest_files(*components: str) -> dict[str, str]:
    """manifests/{own,a,b}.yaml of each component."""
    return {
        f"components/{component}/manifests/{name}.yaml": f"{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}"
        for component in components
        for name in ("own", "a", "b")
    }


def test_manifests_add_up_and_replace_the_component_s_own(tmp_path: Path) -> None:
    files = {
        **manifest_files("one", "bare"),
        "components/one": "manifests: {pre: [manifests/own.yaml], post: [manifests/own.yaml]}",
        "components/bare/component.yaml": "namespace: {name: bare}\nmanifests: {main: [manifests/own.yaml]}",
        **chain(
            refs("{name: one, manifestFiles: [manifests/b.yaml]}", "{name: bare}"),
            refs("{name: one, manifestFiles: [manifests/a.yaml, manifests/b.yaml]}"),
            refs("{name: one, manifestFiles: [{file: manifests/b.yaml, when: {recipe: os, exists: true}}]}"),
        ),
    }
    found = recipe(tmp_path, files, "leaf")
    one = {piece: [m.file for m in files] for piece, files in found.components["one"].manifests.items()}
    assert one == {"pre": ["manifests/own.yaml"], "main": [], "post": ["manifests/b.yaml", "manifests/a.yaml"]}
    assert found.components["one"].manifests["post"][0].when is not None
    bare = {piece: [m.file for m in files] for piece, files in found.components["bare"].manifests.items()}
    assert bare == {"pre": [], "main": ["manifests/own.yaml"], "post": []}


def test_manifests_of_a_component_without_a_chart_are_its_main_piece(tmp_path: Path) -> None:
    files = {
        **manifest_files("bare"),
        "components/bare/component.yaml": "namespace: {name: bare}",
        **chain(refs("{name: bare, manifestFiles: [manifests/a.yaml], preManifestFiles: [manifests/b.yaml]}")),
    }
    bare = recipe(tmp_path, files, "leaf").components["bare"].manifests
    assert {p: [m.file for m in f] for p, f in bare.items()} == {
        "pre": ["manifests/b.yaml"],
        "main": ["manifests/a.yaml"],
        "post": [],
    }


@pytest.mark.parametrize(
    ("root", "middle", "leaf", "enabled", "who"),
    [
        ("{name: one}", "{name: one}", "{name: one}", True, None),
        ("{name: one}", "{name: one, enabled: false}", "{name: one}", False, "overlays/middle.yaml"),
        ("{name: one, enabled: false}", "{name: one, enabled: true}", "{name: one}", True, None),
        ("{name: one}", "{name: one, overrides: {enabled: false}}", "{name: one}", False, "overlays/middle.yaml"),
        ("{name: one}", '{name: one, overrides: {install: "false"}}', "{name: one}", False, "overlays/middle.yaml"),
    ],
)
def test_switching_off_and_on(
    tmp_path: Path, root: str, middle: str, leaf: str, enabled: bool, who: str | None
) -> None:
    """case 32"""
    found = recipe(tmp_path, {**TWO, **chain(refs(root), refs(middle), refs(leaf))}, "leaf")
    one = found.components["one"]
    assert one.enabled is enabled
    assert (one.disabled_by.span().file if one.disabled_by else None) == who
    assert one.disabled_reason == (None if enabled else "overlay middle")
    assert one.values == {}
    assert [c.name for c in found.enabled()] == (["one"] if enabled else [])


def test_a_version_needs_a_reason(tmp_path: Path) -> None:
    files = {**TWO, **chain(refs('{name: one, version: "2.0.0"}'))}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2012")
    assert pointed(tmp_path, one.span) == 'overlays/base.yaml: "2.0.0"}'
    assert one.notes[0][0].file == "components/one/component.yaml"


def test_a_version_of_a_component_without_a_chart(tmp_path: Path) -> None:
    files = {
        "components/bare/component.yaml": "namespace: {name: bare}",
        **chain(refs('{name: bare, version: "2.0.0", reason: x}')),
    }
    the_finding(catalog(tmp_path, files), "leaf", "BC2006")


def test_what_adds_up(tmp_path: Path) -> None:
    files = chain(
        """
knownGaps: [gap one, gap two]
operations: [do this]
prerequisites: [{id: net, text: five networks}]
clusterProvides: [{group: b.io, kind: K}, {group: a.io, kind: K, name: nn}]
constraints:
  - {name: K8s.server.version, value: ">= 1.25", remediation: upgrade}
  - {name: OS.release.ID, value: ubuntu}
""",
        "knownGaps: [gap two, gap three]\nconstraints: [{name: K8s.server.version, value: '>= 1.34'}]",
        """
maturity: stable
description: The leaf.
knownGaps: [gap one]
operations: [do this, do that]
prerequisites: [{id: pool, text: a pool}, {id: net, text: six networks}]
clusterProvides: [{group: b.io, kind: K}]
""",
    )
    found = recipe(tmp_path, files, "leaf")
    assert (found.maturity, found.description) == ("stable", "The leaf.")
    assert found.known_gaps == ("gap one", "gap two", "gap three")
    assert found.operations == ("do this", "do that")
    assert [(p.id, p.text) for p in found.prerequisites] == [("net", "six networks"), ("pool", "a pool")]
    assert [(a.group, a.kind, a.name) for a in found.cluster_provides] == [("a.io", "K", "nn"), ("b.io", "K", None)]
    assert [(c.name, c.value, c.remediation) for c in found.constraints.values()] == [
        ("K8s.server.version", ">= 1.34", None),
        ("OS.release.ID", "ubuntu", None),
    ]


def test_validation_phases_merge_field_by_field(tmp_path: Path) -> None:
    files = chain(
        """
validation:
  deployment: {timeout: 5m, checks: [a, b], constraints: [{name: x, value: "1"}, {name: z, value: "2"}]}
  performance: {checks: [slow], constraints: [{name: bw, value: ">= 250"}], nodeSelection: {maxNodes: 2}}
""",
        """
validation:
  deployment: {checks: [b, c], constraints: [{name: x, value: "3"}]}
  performance: {checks: [], constraints: []}
""",
        "validation:\n  performance: {checks: [fast], nodeSelection: {selector: {a: b}}}",
    )
    assert recipe(tmp_path, files, "leaf").validation == {
        "deployment": {
            "timeout": "5m",
            "checks": ["a", "b", "c"],
            "constraints": [{"name": "x", "value": "3"}, {"name": "z", "value": "2"}],
        },
        "performance": {"checks": ["fast"], "constraints": [], "nodeSelection": {"selector": {"a": "b"}}},
    }


def assertion(name: str, service: str, extra: str = "") -> str:
    return f"{{id: {name}, that: {{recipe: service, equals: {service}}}, message: m{extra}}}"


def test_assertions_by_id_then_rules_then_policies(tmp_path: Path) -> None:
    files = {
        "components/one": f"rules: [{assertion('r', 'eks')}]",
        "components/two": f"rules: [{assertion('r2', 'eks')}]",
        "bundlec.yaml": f"policies: [{assertion('p', 'eks')}]",
        **chain(
            f"assertions: [{assertion('a', 'gke')}, {assertion('b', 'eks')}]\n"
            + refs("{name: one}", "{name: two, enabled: false}"),
            "",
            f"assertions: [{assertion('a', 'eks', ', reason: other cloud')}]",
        ),
    }
    found = recipe(tmp_path, files, "leaf").assertions
    assert [(a.id, a.origin.span().file) for a in found] == [
        ("a", "overlays/leaf.yaml"),
        ("b", "overlays/base.yaml"),
        ("r", "components/one/component.yaml"),
        ("p", "bundlec.yaml"),
    ]


def test_replacing_an_assertion_needs_a_reason(tmp_path: Path) -> None:
    files = chain(f"assertions: [{assertion('a', 'gke')}]", "", f"assertions: [{assertion('a', 'eks')}]")
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2012")
    assert (one.span and one.span.file, one.notes[0][0].file) == ("overlays/leaf.yaml", "overlays/base.yaml")


def test_labels_of_gpu_pools_belong_to_profiles(tmp_path: Path) -> None:
    files = chain("constraints: [{name: NodeTopology.gpu-nodes.label, value: '!x'}]")
    the_finding(catalog(tmp_path, files), "leaf", "BC2013")


REQUIRED = """
requiredValues:
  - {path: site.url, message: where it reports to}
  - {path: site.key, message: a key, when: {recipe: service, equals: gke}}
"""


@pytest.mark.parametrize("value", ["''", "false", "0", "[]"])
def test_a_required_value_may_be_falsy(tmp_path: Path, value: str) -> None:
    files = {"components/one": REQUIRED, **chain(refs(f"{{name: one, overrides: {{site: {{url: {value}}}}}}}"))}
    recipe(tmp_path, files, "leaf")


def test_a_required_value_that_is_not_set(tmp_path: Path) -> None:
    files = {"components/one": REQUIRED, **chain(refs("{name: one, overrides: {}}"), "", "")}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2010")
    assert "`one:site.url` is not set: where it reports to" in one.message
    assert one.notes[0][0].file == "components/one/component.yaml"


@pytest.mark.parametrize(
    ("null", "fix"),
    [
        ("{site: {url: null}}", "give `site.url` another value instead of null"),
        ("{site: null}", "set what should change below `site` key by key; null deletes all of it"),
    ],
)
def test_a_required_value_that_a_null_takes_away(tmp_path: Path, null: str, fix: str) -> None:
    """The null is the cause, wherever it stands."""
    leaf = refs(f"{{name: one, overrides: {null}}}")
    files = {"components/one": REQUIRED, **chain(refs("{name: one, overrides: {site: {url: x}}}"), "", leaf)}
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2010")
    assert "(overlay leaf) takes `site.url` away: where it reports to" in one.message
    assert one.fix == fix
    assert pointed(tmp_path, one.span).startswith(
        "overlays/leaf.yaml: " + null[1:].rpartition("{")[2].partition(":")[0]
    )


def test_a_condition_that_cannot_be_decided_is_a_finding_among_others(tmp_path: Path) -> None:
    required = "requiredValues: [{path: a, message: m, when: {value: .v, version: '>= 1.0'}}]"
    files = {"components/one": required, **chain(refs("{name: one, overrides: {v: latest, w: null}}"))}
    assert sorted(d.code for d in findings(catalog(tmp_path, files), "leaf")) == ["BC1209", "BC2009"]


def test_a_disabled_component_needs_no_values(tmp_path: Path) -> None:
    files = {"components/one": REQUIRED, **chain(refs("{name: one, enabled: false}"))}
    recipe(tmp_path, files, "leaf")


@pytest.mark.parametrize(
    ("overrides", "at"),
    [
        ("{fullnameOverride: x}", "fullnameOverride"),
        ("{names: {a: 1}}", "a: 1"),
        ("{names: null}", "names: null"),
        ("{names: {b: {c: 1}}}", None),
    ],
)
def test_locked_paths(tmp_path: Path, overrides: str, at: str | None) -> None:
    files = {
        "components/one": "lockedPaths: [{path: fullnameOverride, reason: r}, {path: names.a, reason: checks name it}]",
        "components/one/values.yaml": "fullnameOverride: one\nnames: {a: 0}\n",
        "components/one/more.yaml": "names: {a: 2}\n",
        **chain(
            refs("{name: one, valuesFile: more.yaml}"),
            refs(f"{{name: one, overrides: {overrides}}}"),
        ),
    }
    found = catalog(tmp_path, files)
    if at is None:
        resolve(found, entry_for(found, "leaf"), Flags())
    else:
        one = the_finding(found, "leaf", "BC2014")
        assert pointed(tmp_path, one.span).startswith(f"overlays/middle.yaml: {at}")


def test_values_of_different_types_name_both_places(tmp_path: Path) -> None:
    """case 15"""
    files = {
        **TWO,
        **chain(
            refs("{name: one, overrides: {toolkit: {enabled: true}}}"),
            refs("{name: one, overrides: {toolkit: false}}"),
        ),
    }
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2005")
    assert one.message == "`one:toolkit` is a map (overlay base) and becomes a scalar (overlay middle)"
    assert pointed(tmp_path, one.span) == "overlays/middle.yaml: false}}"
    assert pointed(tmp_path, one.notes[0][0]) == "overlays/base.yaml: {enabled: true}}}"


def test_a_key_that_no_manifest_reads(tmp_path: Path) -> None:
    bare = "namespace: {name: bare}\nmanifestValues: [rails, tuning]\n"
    files = {
        "components/bare/component.yaml": bare,
        "components/bare/values.yaml": "tuning: {}\n",
        **chain(refs("{name: bare, overrides: {rails: [1], tunning: {a: 1}}}")),
    }
    one = the_finding(catalog(tmp_path, files), "leaf", "BC2006")
    assert one.fix == "did you mean `tuning`?"


def test_values_of_our_own_templates_and_of_the_chart(tmp_path: Path) -> None:
    files = {
        "components/one": "manifestValues: [a4x]\nchartDefaults: [affinity.node]",
        "components/one/values.yaml": "a4x: {create: true}\ndriver: {}\n",
        "components/bare/component.yaml": "namespace: {name: bare}\nmanifestValues: [x]",
        **chain(refs("{name: one, overrides: {affinity: {node: null}}}", "{name: bare, overrides: {x: 1}}")),
    }
    found = recipe(tmp_path, files, "leaf").components
    assert found["one"].values == {"a4x": {"create": True}, "driver": {}, "affinity": {}}
    assert found["one"].chart_values == {"driver": {}, "affinity": {"node": None}}
    assert (found["bare"].values, found["bare"].chart_values) == ({"x": 1}, {})


def test_all_findings_come_at_once_in_order_of_place(tmp_path: Path) -> None:
    files = {
        **TWO,
        "bundlec.yaml": "placement: {nodes: 1}",
        **chain(
            refs('{name: one, version: "2.0.0", overrides: {x: null}}'),
            "",
            refs("{name: two, dependencyRefs: [{name: one, remove: true}]}"),
        ),
    }
    found = findings(catalog(tmp_path, files), "leaf")
    assert [d.code for d in found] == ["BC2006", "BC2012", "BC2009", "BC2006"]
    assert all(d.span and d.span.line and d.fix for d in found)


def test_resolving_changes_nothing_and_repeats_itself(tmp_path: Path) -> None:
    files = {
        "components/one": "",
        "components/one/values.yaml": "a: {b: {c: 1}}\n",
        **chain(refs("{name: one, overrides: {a: {b: null}}}"), refs("{name: one, overrides: {a: {b: {d: [1]}}}}")),
    }
    found = catalog(tmp_path, files)
    before = copy.deepcopy(found)
    first = resolve(found, entry_for(found, "leaf"), Flags())
    assert resolve(found, entry_for(found, "leaf"), Flags()) == first
    assert found == before
    assert first.components["one"].values == {"a": {"b": {"d": [1]}}}


def test_facts(tmp_path: Path) -> None:
    files = {
        **TWO,
        **chain(
            refs("{name: one, overrides: {a: 1}}", "{name: two, enabled: false}")
            + "\ninputs: {x: {type: string, default: z}}",
            "constraints: [{name: K8s.server.version, value: '>= 1.34'}]",
        ),
    }
    known: Any = facts(recipe(tmp_path, files, "leaf"))
    assert known.recipe == {"name": "leaf", "service": "eks", "accelerator": "h100"}
    assert known.inputs == {"x": "z"}
    assert known.constraints == {"K8s.server.version": ">= 1.34"}
    assert (known.components["one"].enabled, known.components["one"].version) == (True, "1.2.3")
    assert known.components["one"].values == {"a": 1}
    assert known.components["two"].enabled is False
    assert known.objects is None


@pytest.mark.parametrize(
    "field",
    [
        "manifestValues: [a..b]",
        "mixinPaths: ['[x']",
        "chartDefaults: [.a]",
        "lockedPaths: [{path: a., reason: r}]",
        "requiredValues: [{path: 'a[', message: m}]",
    ],
)
def test_paths_are_looked_at_before_anything_is_resolved(tmp_path: Path, field: str) -> None:
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {"components/one": field, **chain()})
    (one,) = caught.value.diagnostics
    assert one.code == "BC1102"
    assert "is not a dotted path" in one.message
