"""Faults of source files: each is told with its code, its place and what to do, all of them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.catalogs import component, findings, load_tree, mixin, overlay, shown, tree


def faults(tmp_path: Path, files: dict[str, Any]) -> list[str]:
    return shown(findings(tmp_path, tree(**files)))


def leaf(text: str) -> dict[str, str]:
    return {"overlays/leaf.yaml": overlay("leaf", text)}


def alpha(text: str) -> dict[str, str]:
    return {"components/alpha/component.yaml": component("alpha", text)}


def test_case_05_versions_are_quoted_strings(tmp_path: Path) -> None:
    files = {
        **alpha("chart: {repository: https://x.example.com, name: a, version: 25.10}"),
        **leaf("constraints: [{name: K8s.server.version, value: 1.30}]"),
    }
    assert faults(tmp_path, files) == [
        (
            "components/alpha/component.yaml:6:64 [BC1102] spec.chart.version"
            ' must be a quoted string, not the number 25.1 | write "25.10" with quotes'
        ),
        (
            "overlays/leaf.yaml:6:51 [BC1102] spec.constraints[0].value"
            ' must be a quoted string, not the number 1.3 | write "1.30" with quotes'
        ),
    ]


@pytest.mark.parametrize("value", ["true", "1", "2.0"])
def test_case_05_label_values_are_quoted_strings(tmp_path: Path, value: str) -> None:
    files = {
        "components/alpha/component.yaml": component("alpha").replace("alpha}\n", f"x, labels: {{a: {value}}}}}\n")
    }
    files["components/alpha/component.yaml"] = component("alpha").replace(
        "namespace: {name: alpha}", f"namespace: {{name: alpha, labels: {{a: {value}}}}}"
    )
    (found,) = faults(tmp_path, files)
    assert found.startswith(
        "components/alpha/component.yaml:5:40 [BC1102] spec.namespace.labels.a must be a quoted string"
    )


def test_case_07_duplicate_keys_in_every_kind_of_file(tmp_path: Path) -> None:
    files = {
        **leaf("componentRefs: []\ncomponentRefs: [{name: alpha, manifestFiles: [m.yaml]}]"),
        "components/alpha/values.yaml": "a: 1\na: 2\n",
        "components/beta/component.yaml": component("beta", "manifests: {main: [m.yaml]}"),
        "components/beta/m.yaml": "data: {}\ndata: {}\n",
        "mixins/m.yaml": mixin("m", "constraints: []\nconstraints: []"),
    }
    assert [f.split("]")[0] + "]" for f in faults(tmp_path, files)] == [
        "components/alpha/values.yaml:2:1 [BC1002]",
        "components/beta/m.yaml:2:1 [BC1002]",
        "mixins/m.yaml:6:3 [BC1002]",
        "overlays/leaf.yaml:7:3 [BC1002]",
    ]


def test_case_12_a_branch_whose_children_are_comments(tmp_path: Path) -> None:
    files = {
        **leaf(
            """
            componentRefs:
              - name: alpha
                overrides:
                  driver:
                    # enabled: true
                  toolkit:
                  gone: null
                  also: ~
                  kept: {}
                  list:
                    - a:
            """
        ),
        "components/alpha/values.yaml": "top:\n  # x: 1\n",
        "bundlec.yaml": tree()["bundlec.yaml"].replace("recipe: leaf}", "recipe: leaf, set: {alpha: {a: }}}"),
    }
    warnings = load_tree(tmp_path, tree(**files)).warnings
    assert {(d.code, d.severity) for d in warnings} == {("BC1208", "warning")}
    assert sorted(f"{d.span} {d.message.split(':')[0]}" for d in warnings) == [
        "bundlec.yaml:5:51 `alpha.a` has no value",
        "components/alpha/values.yaml:1:5 `top` has no value but comments below it",
        "overlays/leaf.yaml:11:17 `toolkit` has no value",
        "overlays/leaf.yaml:16:15 `list[0].a` has no value",
        "overlays/leaf.yaml:9:16 `driver` has no value but comments below it",
    ]


def test_case_24_a_template_that_is_listed_as_static(tmp_path: Path) -> None:
    files = {**alpha("manifests: {main: [m.yaml]}"), "components/alpha/m.yaml": "a: {{ values.x }}\n"}
    (found,) = faults(tmp_path, files)
    assert found.startswith("components/alpha/m.yaml:1:5 [BC1003]")
    assert found.endswith("| a template is named *.yaml.j2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clas: ops", "6:3 [BC1101] unknown key `clas` in spec | did you mean `class`?"),
        ("class: opps", "6:10 [BC1102] spec.class: `opps` is none of core, ops | did you mean `ops`?"),
        ("class: [ops]", "6:10 [BC1102] spec.class: a list is none of core, ops"),
        ("checks: []", "6:11 [BC1102] spec.checks must be a mapping, not a list"),
        ("checks:", "6:10 [BC1102] spec.checks must be a mapping, not nothing (null)"),
        ("health: [x]", "6:12 [BC1207] alpha has no check `x`"),
        ("health: [1]", "6:12 [BC1102] spec.health[0] must be a string, not the number 1"),
        ("checks: {a: {}}", "6:15 [BC1102] spec.checks.a: a check is exactly one of crd, deployment,"),
        ("checks: {a: {crd: x, job: {name: b}}}", "6:15 [BC1102] spec.checks.a: a check is exactly one of crd,"),
        ("checks: {a: {crdd: x}}", "6:16 [BC1101] unknown key `crdd` in spec.checks.a | did you mean `crd`?"),
        ("checks: {A: {crd: x}}", "6:12 [BC1202] the key `A` is not valid | lower-case letters"),
        (
            "checks: {a: {field: {group: g, version: v, kind: K, resource: r, name: nn, path: p}}}",
            "a field check has exactly one of equals, notEquals, present",
        ),
        (
            "checks: {a: {crd: x}}\nreadiness: {ready: {checks: [b]}}",
            "7:32 [BC1207] alpha has no check `b` | checks of",
        ),
        ("checks: {abc: {crd: x}}\nhealth: [abd]", "7:12 [BC1207] alpha has no check `abd` | did you mean `abc`?"),
        ("teardown: {before: [nope]}", "6:23 [BC1207] alpha has no check `nope`"),
        ("teardown: {before: [{crdd: x}]}", "6:24 [BC1101] unknown key `crdd`"),
        (
            "crds: [{name: a.b, kind: A, scope: Cluster, from: image, after: {check: z}}]",
            "6:75 [BC1207] alpha has no check `z`",
        ),
        (
            "crds: [{name: a.b, kind: A, scope: Cluster, from: image, after: {}}]",
            "`after` is {group, kind, path} or {check}",
        ),
        ("install: {timeout: 5x}", "[BC1102] spec.install.timeout: `5x` is not valid | write a duration such as 30s"),
        ('install: {timeout: ""}', "spec.install.timeout: `` is not valid"),
        ("needs: [{component: bata}]", "6:23 [BC1204] unknown component `bata` | did you mean `beta`?"),
        ("needs: [{until: api}]", "6:11 [BC1103] `component` is missing in spec.needs[0]"),
        ("needs: [{component: beta, when: {value: x, exists: true}}]", "6:43 [BC1209] `x` is no value"),
        ("needs: [{component: beta, when: {recipe: os}}]", "6:35 [BC1209] `recipe` takes exactly one operator"),
        (
            "needs: [{component: beta, when: {objects: {kind: X}, count: {equals: 1}}}]",
            "[BC1209] `objects` is not known here",
        ),
        ("needs: [{component: beta, when: {component: bet, enabled: true}}]", "[BC1204] unknown component `bet`"),
        ('needs: [{component: beta, when: {value: "beat:x", exists: true}}]', "[BC1204] unknown component `beat`"),
        (
            'rules: [{id: a, message: m, that: {any: [{value: .a, sameAs: "btea:x"}]}}]',
            "[BC1204] unknown component `btea` | did you mean `beta`?",
        ),
        ("rules: [{id: a, message: m, that: {not: {recipe: os}}}]", "[BC1209] `recipe` takes exactly one operator"),
        ("values: other.yaml", "6:11 [BC1206] there is no file components/alpha/other.yaml"),
        ("values: ../beta/values.yaml", "6:11 [BC1206] `../beta/values.yaml` leads out of the component's folder"),
        ("values: /etc/passwd", "[BC1206] `/etc/passwd` leads out of the component's folder"),
        ("manifests: {main: [x.txt]}", "6:22 [BC1102] `x.txt` is no manifest"),
        ("manifests: {main: [x.yaml]}", "6:22 [BC1206] there is no file components/alpha/x.yaml"),
        (
            "manifests: {pre: [{file: component.yaml, when: []}]}",
            "[BC1102] spec.manifests.pre[0].when must be a mapping, not a list",
        ),
        (
            "chart: {repository: oci://r/r, name: nn, version: '1'}\nmanifests: {main: [component.yaml]}",
            "7:15 [BC1102] `main` manifests stand instead of a chart",
        ),
        (
            "chart: {repository: charts, name: nn, version: '1.0.0'}",
            "[BC1102] spec.chart.repository: `charts` is not valid",
        ),
        ("chart: {repository: oci://r/r, name: nn, version: v}", "[BC1102] spec.chart.version: `v` is not valid"),
        ("chart: {repository: oci://r/r, name: nn, version: ' 1 '}", "[BC1102] spec.chart.version: ` 1 ` is not valid"),
        ("aliases: [a b]", "6:13 [BC1202] spec.aliases[0]: `a b` is not valid"),
        ("aliases: [a, a]", "6:12 [BC1102] spec.aliases: an item stands twice"),
        ("aliases: [BETA]", "6:13 [BC1203] the alias `BETA` is taken by beta"),
        ("aliases: [deployer]", "6:13 [BC1202] `deployer` is reserved"),
        ("hooks: [{event: install, name: x, effect: y1}]", "[BC1102] spec.hooks[0].event: `install` is not valid"),
        ("prerequisites: [{id: a}]", "[BC1103] `text` is missing in spec.prerequisites[0]"),
        ("criticalPods: {when: {}}", "[BC1209] spec.criticalPods.when: a predicate names exactly one of all,"),
    ],
)
def test_faults_of_a_component(tmp_path: Path, text: str, message: str) -> None:
    found = faults(tmp_path, alpha(text))
    assert any(message in line for line in found), found
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("componentRefs: [{name: alpah}]", "6:26 [BC1204] unknown component `alpah` | did you mean `alpha`?"),
        (
            "componentRefs: [{name: alpha, chart: x}]",
            "6:33 [BC1105] `chart` is not a field of a componentRef | set it in",
        ),
        ("componentRefs: [{name: alpha, type: Helm}]", "[BC1105] `type` is not a field"),
        ("componentRefs: [{name: alpha, patches: []}]", "[BC1105] `patches` is not a field"),
        (
            "componentRefs: [{name: alpha, namspace: x}]",
            "[BC1101] unknown key `namspace` in spec.componentRefs[0] | did you",
        ),
        (
            "componentRefs: [{name: alpha}, {name: alpha}]",
            "6:41 [BC1203] the component `alpha` stands twice in one list",
        ),
        ("componentRefs: [{name: alpha, overrides: []}]", "[BC1102] spec.componentRefs[0].overrides must be a mapping"),
        ("componentRefs: [{name: alpha, dependencyRefs: [bta]}]", "6:50 [BC1204] unknown component `bta`"),
        ("componentRefs: [{name: alpha, dependencyRefs: [{until: api}]}]", "[BC1103] `name` is missing in"),
        ("componentRefs: [{name: alpha, dependencyRefs: [[]]}]", "must be a string or a mapping, not a list"),
        (
            "componentRefs: [{name: alpha, valuesFile: v.yaml}]",
            "6:45 [BC1206] there is no file components/alpha/v.yaml",
        ),
        ("mixins: [m]", "6:12 [BC1204] unknown mixin `m`"),
        ("constraints: [{name: a, value: '>='}]", "6:34 [BC2013] `>=` lacks an operand"),
        ("constraints: [{name: a, value: b}, {name: a, value: c}]", "[BC1203] the constraint `a` stands twice"),
        (
            "assertions: [{id: a, that: {recipe: os, exists: true}}]",
            "[BC1103] `message` is missing in spec.assertions[0]",
        ),
        (
            "clusterProvides: [{group: g, kind: K, check: {crd: x, when: {recipe: o, exists: true}}}]",
            "[BC1209] a recipe has no `o`",
        ),
        (
            "profile: {name: p, default: a, values: {'a b': {constraints: [{name: x, value: z}]}}}",
            "the key `a b` is not valid",
        ),
        (
            "profile: {name: p, default: a, values: {a: {}}}",
            "[BC1103] `constraints` is missing in spec.profile.values.a",
        ),
        (
            (
                "profile: {name: p, default: a, values: {a: {constraints: [{name: x, value: z}], "
                "componentRefs: [{name: alpha, overrides: {a: 1}, enabled: true}]}}}"
            ),
            "[BC1101] unknown key `enabled`",
        ),
        ("inputs: {a: {type: text}}", "[BC1102] spec.inputs.a.type: `text` is none of string, integer,"),
        (
            "inputs: {a: {type: string, effects: {x: [{name: alpa}]}}}",
            "[BC1204] unknown component `alpa` | did you mean `alpha`?",
        ),
        ("criteria: {service: 1}", "[BC1102] spec.criteria.service must be a string or null, not the number 1"),
        ("maturity: ga", "[BC1102] spec.maturity: `ga` is none of preview, stable"),
    ],
)
def test_faults_of_an_overlay(tmp_path: Path, text: str, message: str) -> None:
    found = faults(tmp_path, leaf(text))
    assert any(message in line for line in found), found
    assert len(found) == 1


def test_a_mixin_holds_only_constraints_and_refs(tmp_path: Path) -> None:
    found = faults(tmp_path, {"mixins/m.yaml": mixin("m", "base: leaf\nvalidation: {}")})
    assert [line.split(" |")[0] for line in found] == [
        "mixins/m.yaml:5:3 [BC1101] unknown key `base` in spec",
        "mixins/m.yaml:6:3 [BC1101] unknown key `validation` in spec",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bundles: [{name: a}]", "a bundle has exactly one of `recipe` and `criteria`"),
        ("bundles: [{name: a, recipe: leaf, criteria: {}}]", "a bundle has exactly one of `recipe` and `criteria`"),
        ("bundles: [{name: a, recipe: leaf}, {name: a, recipe: leaf}]", "[BC1203] two bundles have the name `a`"),
        (
            "bundles: [{name: a, recipe: leaf}, {name: b, recipe: leaf, prefix: a}]",
            "[BC1203] two bundles have the prefix `a`",
        ),
        ("bundles: [{name: A, recipe: leaf}]", "[BC1202] spec.bundles[0].name: `A` is not valid"),
        ("deployers: [helm]", "[BC1102] spec.deployers[0]: `helm` is none of deploy.sh, helmfile, argocd, flux"),
        (
            "flux: {source: {kind: OCIRepository}}",
            "none of GitRepository, Bucket | GitRepository or Bucket (an OCI artefact",
        ),
        (
            "flux: {minVersion: 2.8}",
            '[BC1102] spec.flux.minVersion must be a quoted string, not the number 2.8 | write "2.8"',
        ),
        ("git: {revison: main}", "[BC1101] unknown key `revison` in spec.git | did you mean `revision`?"),
        ("gates: {ready: true, timeoutScale: 0}", "[BC1102] spec.gates.timeoutScale"),
        ("data: [nowhere]", "[BC1206] there is no folder `nowhere` | name a folder with overlays/"),
        (f"data: [{'x' * 300}]", "[BC1206] there is no folder `xxx"),
        ('data: ["a\\0b"]', "[BC1206] there is no folder"),
        ('out: "a\\0b"', "is no name of a folder | name a folder of its own"),
        ('out: "a\\nb"', "is no name of a folder"),
        ("out: overlays", "[BC1206] `overlays` lies among the sources below overlays/"),
        ("out: ./components/../mixins/x", "lies among the sources below mixins/"),
        ("policies: [{id: a, that: {recipe: x, exists: true}, message: m}]", "[BC1209] a recipe has no `x`"),
    ],
)
def test_faults_of_the_workspace(tmp_path: Path, text: str, message: str) -> None:
    head = "apiVersion: bundlec.dev/v1alpha1\nkind: Workspace\nspec:\n  "
    found = faults(tmp_path, {"bundlec.yaml": f"{head}{text}\n"})
    assert any(message in line for line in found), found
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kind: Overlay\n", "`apiVersion` is missing in the Overlay"),
        ("[]", "[BC1104] the file holds a list, and should be a mapping of kind Overlay"),
        ("# nothing\n", "[BC1104] the file is empty, and should be a mapping of kind Overlay"),
        (
            "apiVersion: bundlec.dev/v1\nkind: Overlay\nmetadata: {name: leaf}\nspec: {base: base}\n",
            "1:13 [BC1104] apiVersion is `bundlec.dev/v1` | write `apiVersion: bundlec.dev/v1alpha1`",
        ),
        (
            "apiVersion: bundlec.dev/v1alpha1\nkind: Mixin\nmetadata: {name: leaf}\nspec: {}\n",
            "2:7 [BC1104] kind is `Mixin` | write `kind: Overlay`",
        ),
    ],
)
def test_another_kind_of_file(tmp_path: Path, text: str, found: str) -> None:
    lines = faults(tmp_path, {"overlays/leaf.yaml": text})
    assert any(found in line for line in lines), lines


def test_names_follow_files_and_folders(tmp_path: Path) -> None:
    files = {
        "overlays/leaf.yaml": overlay("laef"),
        "overlays/other.yml": overlay("other"),
        "components/alpha/component.yaml": component("alfa"),
        "components/gamma/values.yaml": "a: 1\n",
        "components/.hidden/x": "",
    }
    assert [line.split(", ")[0] for line in faults(tmp_path, files)] == [
        "components/alpha/component.yaml:3:18 [BC1201] metadata.name is `alfa`",
        "components/gamma [BC1201] components/gamma holds no component.yaml | write its component.yaml",
        "overlays/leaf.yaml:3:18 [BC1201] metadata.name is `laef`",
        "overlays/other.yml [BC1201] overlays/other.yml is not read | rename it to other.yaml",
    ]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    files = {"overlays/a/x.yaml": overlay("x"), "overlays/b/x.yaml": overlay("x")}
    (found,) = findings(tmp_path, tree(**files))
    assert (found.code, str(found.span)) == ("BC1203", "overlays/b/x.yaml:1:1")
    assert [str(span) for span, _ in found.notes] == ["overlays/a/x.yaml:1:1"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a" * 49, "has 49 characters; 48 at most (Helm allows 53 with `-post`)"),
        ("deployer", "`deployer` is reserved"),
        ("all", "`all` is reserved"),
        ("alpha-post", "[BC1203] `alpha-post` is also a release of the component `alpha`"),
    ],
)
def test_case_69_names_of_components(tmp_path: Path, name: str, message: str) -> None:
    (found,) = faults(tmp_path, {f"components/{name}/component.yaml": component(name)})
    assert message in found


@pytest.mark.parametrize("name", ["a_b", "foo$(id)", "-x", "A", "a.b"])
def test_case_72_names_that_are_no_labels(tmp_path: Path, name: str) -> None:
    text = component("alpha").replace("metadata: {name: alpha}", f"metadata: {{name: '{name}'}}")
    (found,) = faults(tmp_path, {f"components/{name}/component.yaml": text})
    assert f"[BC1202] metadata.name: `{name}` is not valid" in found


def test_the_longest_name_of_a_component(tmp_path: Path) -> None:
    name = "a" * 48
    assert name in load_tree(tmp_path, tree(**{f"components/{name}/component.yaml": component(name)})).components


def test_unknown_base(tmp_path: Path) -> None:
    files = {"overlays/leaf.yaml": overlay("leaf", base="bas")}
    assert faults(tmp_path, files) == ["overlays/leaf.yaml:5:9 [BC1204] unknown overlay `bas` | did you mean `base`?"]


def test_a_second_root(tmp_path: Path) -> None:
    files = {"overlays/leaf.yaml": overlay("leaf", base=None)}
    assert faults(tmp_path, files) == [
        "overlays/leaf.yaml:4:1 [BC1103] `base` is missing in leaf | write `base: base`; only the root has none"
    ]


def test_a_cycle_of_overlays_shows_the_chain(tmp_path: Path) -> None:
    bases = {"x": "z", "z": "yy", "yy": "x", "w": "z", "self": "self"}
    files = {f"overlays/{name}.yaml": overlay(name, base=base) for name, base in bases.items()}
    one, two = findings(tmp_path, tree(**files))
    assert (one.code, one.message, str(one.span)) == (
        "BC1205",
        "overlays build on each other: self -> self",
        "overlays/self.yaml:5:9",
    )
    assert (two.message, str(two.span)) == ("overlays build on each other: x -> z -> yy -> x", "overlays/x.yaml:5:9")
    assert [(str(span), text) for span, text in two.notes] == [
        ("overlays/z.yaml:5:9", "base: yy"),
        ("overlays/yy.yaml:5:9", "base: x"),
    ]


def test_a_file_with_faults_makes_no_faults_elsewhere(tmp_path: Path) -> None:
    files = {
        **alpha("nonsense: 1\nreadiness: {ready: {checks: [lost]}}\nchecks: {lost: {crd: 1}}"),
        "components/beta/component.yaml": "a: [\n",
        **leaf("mixins: [m]\ncomponentRefs: [{name: alpha}, {name: beta}]"),
        "mixins/m.yaml": "kind: Mixin\n",
        "overlays/base.yaml": "apiVersion: bundlec.dev/v1\n",
    }
    places = {line.split(":")[0] for line in faults(tmp_path, files)}
    assert places == {
        "components/alpha/component.yaml",
        "components/beta/component.yaml",
        "mixins/m.yaml",
        "overlays/base.yaml",
    }


def test_faults_of_all_kinds_come_at_once(tmp_path: Path) -> None:
    files = {
        **alpha("clas: ops\nneeds: [{component: beta, when: {recipe: oz, exists: true}}, {component: nix}]"),
        **leaf("mixins: [nix]\nconstraints: [{name: a, value: '>'}]\nmaturity: ga"),
        "components/alpha/values.yaml": "a: yes\n",
    }
    assert [line.split("[")[1][:6] for line in faults(tmp_path, files)] == [
        "BC1101",
        "BC1209",
        "BC1204",
        "BC1003",
        "BC1204",
        "BC2013",
        "BC1102",
    ]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    files = {"components/alpha/values.yaml": b"a: 1\nb: \xff\n"}
    assert faults(tmp_path, files) == [
        "components/alpha/values.yaml:2:4 [BC1001] the file is not UTF-8 | save it as UTF-8"
    ]


def test_a_link_that_leads_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("a: 1\n")
    root = tmp_path / "root"
    (root / "components" / "alpha").mkdir(parents=True)
    (root / "components" / "alpha" / "m.yaml").symlink_to(secret)
    (found,) = faults(root, alpha("manifests: {main: [m.yaml]}"))
    assert "[BC1206] `m.yaml` leads out of the component's folder" in found
