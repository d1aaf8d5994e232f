"""`lint`: each rule finds what it is for and nothing else; waivers; the formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from compiler.cli import main
from compiler.errors import Diagnostic
from compiler.load import load
from compiler.review.lint import Result, forms, lint
from compiler.review.lint.constraints import admitted
from compiler.source import Span
from tests.support import workspaces
from tests.support.scratch import appended, bundlec, write_catalog

TODAY = "2026-07-01"
CHECK = "checks: {up: {deployment: {name: a}}}\n"
TREE = {
    "bundlec.yaml": "git: {url: 'https://git.example.org/b.git', revision: main}\nbundles: [{name: demo, recipe: leaf}]\n",
    "components/a": CHECK,
    "components/a/values.yaml": "x: 1\nlist: [p]\n",
    "overlays/base.yaml": "abstract: true\ncomponentRefs: [{name: a}]\n",
    "overlays/leaf.yaml": "base: base\ncriteria: {service: gke}\n",
}


def run(root: Path, today: str = TODAY, **files: str) -> Result:
    changed = {name.replace("__", "/"): text for name, text in files.items()}
    return lint(workspaces.catalog(root, {**TREE, **changed}), root, today)


def told(result: Result) -> list[tuple[str, str, str]]:
    """(code, what stands at the place, message) of each finding."""
    return [(d.code, str(d.span), d.message) for d in result.findings]


def with_files(root: Path, files: dict[str, str], today: str = TODAY) -> Result:
    return lint(workspaces.catalog(root, {**TREE, **files}), root, today)


def test_a_clean_catalog_has_no_finding(tmp_path: Path):
    result = run(tmp_path)
    assert told(result) == []
    assert result.clean


def test_the_catalog_is_clean_and_every_waiver_is_needed(root: Path):
    result = lint(load(root), root, TODAY)
    assert told(result) == []
    assert result.waived
    recipes = {"gb200-gke-cos-training", "gb200-gke-cos-training-kubeflow", "gb200-nvke-ubuntu-training"}
    assert result.compiled > len(recipes)


def test_a_recipe_without_a_bundle_is_compiled_too(tmp_path: Path):
    result = with_files(
        tmp_path,
        {
            "overlays/other.yaml": "base: base\ncriteria: {service: aks}\ncomponentRefs: [{name: a, overrides: {x: [1]}}]\n"
        },
    )
    (one,) = result.findings
    assert (one.code, one.severity, one.span.file) == ("BC2005", "error", "overlays/other.yaml")
    assert not result.clean


def test_every_deployer_is_compiled_whatever_the_workspace_deploys(tmp_path: Path):
    """Flux cannot hold `every`; the workspace asks for deploy.sh alone, and names no repository."""
    check = "{every: {group: '', version: v1, kind: Pod, resource: pods, path: status.phase, equals: Running}}"
    result = with_files(
        tmp_path,
        {
            "bundlec.yaml": "deployers: [deploy.sh]\nbundles: [{name: demo, recipe: leaf}]\n",
            "components/a": f"checks: {{up: {check}}}\nreadiness: {{ready: {{checks: [up], timeout: 5m}}}}\n",
            "components/b": CHECK + "needs: [{component: a, until: ready}]\n",
            "overlays/base.yaml": "abstract: true\ncomponentRefs: [{name: a}, {name: b}]\n",
        },
    )
    assert {(d.code, d.severity) for d in result.findings} == {("BC4003", "error")}
    assert any("Flux" in d.message for d in result.findings)


def test_every_value_of_a_profile_is_compiled(tmp_path: Path):
    files = {
        "overlays/leaf.yaml": """\
            base: base
            criteria: {service: gke}
            profile:
              name: mode
              default: one
              values:
                one:
                  constraints: [{name: NodeTopology.gpu-nodes.label, value: "!two"}]
                  componentRefs: [{name: a, overrides: {x: 1}}]
                two:
                  constraints: [{name: NodeTopology.gpu-nodes.label, value: two=true}]
                  componentRefs: [{name: a, overrides: {x: 2}}]
            assertions:
              - {id: no-two, that: {value: "a:x", equals: 1}, message: two does not work}
            """
    }
    (one,) = with_files(tmp_path, files).findings
    assert one.code == "BC3006"
    assert (Span(""), "in leaf with mode=two") in one.notes


def test_required_inputs_come_from_the_bundles(tmp_path: Path):
    inputs = "base: base\ncriteria: {service: SERVICE}\ninputs: {size: {type: string, required: true}}\n"
    files = {
        "bundlec.yaml": "git: {url: 'https://git.example.org/b.git', revision: main}\nbundles: [{name: demo, recipe: leaf, inputs: {size: s}}]\n",
        "overlays/leaf.yaml": inputs.replace("SERVICE", "gke"),
        "overlays/other.yaml": inputs.replace("SERVICE", "aks"),
    }
    assert told(with_files(tmp_path, files)) == []
    files["bundlec.yaml"] = "bundles: []\n"
    codes = [(d.code, d.severity, d.span.file) for d in with_files(tmp_path, files).findings]
    assert codes == [("BC7007", "warning", "overlays/leaf.yaml"), ("BC7007", "warning", "overlays/other.yaml")]


def test_unused_files_are_found(tmp_path: Path):
    result = with_files(
        tmp_path,
        {
            "mixins/alone.yaml": "componentRefs: []\n",
            "overlays/idle.yaml": "base: base\nabstract: true\n",
            "overlays/never.yaml": "base: base\nabstract: true\nmatch: true\ncriteria: {service: mars}\n",
            "overlays/wild.yaml": "base: base\nabstract: true\nmatch: true\ncriteria: {service: gke}\n",
            "components/a/values-old.yaml": "x: 3\n",
            "components/a/manifests/old.yaml.j2": "apiVersion: v1\n",
            "components/a/README.md": "words",
            "components/z": CHECK,
        },
    )
    assert told(result) == [
        ("BC7001", "components/a/manifests/old.yaml.j2", "nothing lists this manifest of `a`"),
        ("BC7001", "components/a/values-old.yaml", "nothing names this values file of `a`"),
        ("BC7001", "components/z/component.yaml:1:1", "no overlay and no mixin brings the component `z`"),
        ("BC7001", "mixins/alone.yaml:1:1", "no overlay asks for the mixin `alone`"),
        (
            "BC7001",
            "overlays/idle.yaml:1:1",
            "no recipe is made of the overlay `idle`: none builds on it, and it takes no part in matching",
        ),
        ("BC7001", "overlays/never.yaml:1:1", "no recipe is made of the overlay `never`: its criteria match none"),
    ]


def test_what_an_input_or_a_profile_brings_is_used(tmp_path: Path):
    files = {
        "components/a/values-big.yaml": "x: 9\n",
        "overlays/leaf.yaml": """\
            base: base
            criteria: {service: gke}
            mixins: [extra]
            inputs: {size: {type: string, enum: [small, big], default: small, effects: {big: [{name: a, overrides: {x: 1}}]}}}
            componentRefs: [{name: a, valuesFile: values-big.yaml}]
            """,
        "mixins/extra.yaml": "constraints: [{name: OS.release.ID, value: ubuntu}]\n",
    }
    assert told(with_files(tmp_path, files)) == []


def test_a_restated_value_is_found_where_it_changes_nothing_in_any_recipe(tmp_path: Path):
    leaf = "base: base\ncriteria: {service: gke}\ncomponentRefs: [{name: a, overrides: {x: 1, list: [p]}}]\n"
    result = with_files(tmp_path, {"overlays/leaf.yaml": leaf})
    assert [(d.code, d.message) for d in result.findings] == [
        ("BC7002", "`a:x` is `1` already (a values.yaml): this changes nothing"),
        ("BC7002", "`a:list` is the same list already (a values.yaml): this changes nothing"),
    ]
    assert workspaces.pointed(tmp_path, result.findings[0].span) == "overlays/leaf.yaml: 1, list: [p]}}]"
    # The same line changes something in another recipe, whose wildcard comes before it.
    files = {
        "overlays/leaf.yaml": leaf.replace("list: [p]", "more: 1"),
        "overlays/wild.yaml": "base: base\nabstract: true\nmatch: true\ncriteria: {intent: training}\ncomponentRefs: [{name: a, overrides: {x: 2}}]\n",
        "overlays/more.yaml": "base: leaf\ncriteria: {intent: training}\n",
    }
    assert told(with_files(tmp_path / "two", files)) == []


def test_types_count_for_a_restated_value(tmp_path: Path):
    leaf = "base: base\ncriteria: {service: gke}\ncomponentRefs: [{name: a, overrides: {x: true}}]\n"
    assert told(with_files(tmp_path, {"overlays/leaf.yaml": leaf})) == []


def test_a_weakened_constraint_is_found(tmp_path: Path):
    base = "abstract: true\ncomponentRefs: [{name: a}]\nconstraints: [{name: K8s.server.version, value: '>= 1.34'}]\n"
    leaf = "base: base\ncriteria: {service: gke}\nconstraints: [{name: K8s.server.version, value: '>= 1.30'}]\n"
    result = with_files(tmp_path, {"overlays/base.yaml": base, "overlays/leaf.yaml": leaf})
    assert [(d.code, d.span.file) for d in result.findings] == [("BC7003", "overlays/leaf.yaml")]
    assert "which the inherited `>= 1.34` refuses" in result.findings[0].message
    stricter = leaf.replace("1.30", "1.35")
    assert told(with_files(tmp_path / "b", {"overlays/base.yaml": base, "overlays/leaf.yaml": stricter})) == []
    warned = leaf.replace("'>= 1.30'", "'>= 1.34', severity: warning")
    assert (
        "only warns"
        in told(with_files(tmp_path / "c", {"overlays/base.yaml": base, "overlays/leaf.yaml": warned}))[0][2]
    )


@pytest.mark.parametrize(
    ("before", "after", "weaker"),
    [
        (">= 1.34", ">= 1.34", False),
        (">= 1.34", ">= 1.33", True),
        (">= 1.34", "> 1.34", False),
        (">= 1.34", ">= 1.34.2", False),
        (">= 1.34, < 2", ">= 1.34", True),
        (">= 1.34", ">= 1.34, < 2", False),
        ("== 1.34.1", ">= 1.34.1", True),
        ("!= 1.34.1", ">= 1.30", True),
        ("ubuntu", "cos", True),
        ("ubuntu", "ubuntu", False),
    ],
)
def test_what_a_constraint_admits(before: str, after: str, weaker: bool):
    assert (admitted(before, after) is not None) is weaker


def test_floating_versions_are_found(tmp_path: Path):
    chart = '{repository: "https://charts.example.org", name: a, version: "%s"}'
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
    component = "namespace: {name: a}\nchart: " + chart + "\nmanifests: {post: [manifests/p.yaml]}\n" + CHECK
    files = {
        **{name: text for name, text in TREE.items() if name != "components/a"},
        "bundlec.yaml": TREE["bundlec.yaml"] + "gates: {job: {image: 'example.org/kubectl:latest'}}\n",
        "components/a/component.yaml": component % "1.x" + "images: [{path: img, form: ref}]\n",
        "components/a/values.yaml": "img: example.org/i\nsidecar: {tag: latest}\nother: {tag: '1.2'}\n",
        "components/a/manifests/p.yaml": pod
        + "    - {name: a, image: 'example.org:5000/x'}\n    - {name: b, image: 'example.org/x:latest'}\n"
        "    - {name: c, image: 'example.org/x:1.2'}\n    - {name: d, image: 'example.org/x@sha256:00'}\n",
    }
    result = lint(workspaces.catalog(tmp_path, files), tmp_path, TODAY)
    assert {code for code, _, _ in told(result)} == {"BC7004"}
    assert [message for _, _, message in told(result)] == [
        "the image of gate Jobs, `example.org/kubectl:latest`, has a moving tag",
        "chart version `1.x` of `a` is a range",
        "image `example.org/x:latest` of Pod p has a moving tag",
        "image `example.org:5000/x` of Pod p has no tag",
        "image `example.org/i` at `a:img` has no tag",
        "`a:sidecar.tag: latest` moves",
    ]


def test_a_component_without_a_check_is_found_unless_it_says_why(tmp_path: Path):
    (one,) = with_files(tmp_path, {"components/a": ""}).findings
    assert (one.code, one.message) == ("BC7005", "nothing looks after `a` in demo: it declares no checks")
    base = "abstract: true\ncomponentRefs: [{name: a, healthCheckSkip: a library of CRDs}]\n"
    assert told(with_files(tmp_path / "b", {"components/a": "", "overlays/base.yaml": base})) == []


def test_a_replaced_rule_is_a_note(tmp_path: Path):
    rule = "assertions: [{id: r, that: {component: a, enabled: true}, message: m%s}]\n"
    result = with_files(
        tmp_path,
        {
            "overlays/base.yaml": TREE["overlays/base.yaml"] + rule % "",
            "overlays/leaf.yaml": TREE["overlays/leaf.yaml"] + rule % ", reason: other cloud",
        },
    )
    assert [(d.code, d.severity) for d in result.findings] == [("BC7006", "note")]
    assert result.clean


def waiver(**more: str) -> str:
    fields = {"code": "BC7005", "where": "components/a/*", "reason": "known", **more}
    text = ", ".join(f'{key}: "{value}"' for key, value in fields.items())
    return TREE["bundlec.yaml"] + f"lint:\n  waivers:\n    - {{{text}}}\n"


def test_a_waiver_covers_its_findings_until_its_last_day(tmp_path: Path):
    files = {"components/a": "", "bundlec.yaml": waiver(until="2026-07-01")}
    result = with_files(tmp_path, files, "2026-07-01")
    assert told(result) == []
    assert [(item.code, reason) for item, reason in result.waived] == [("BC7005", "known")]
    late = with_files(tmp_path, files, "2026-07-02")
    assert [d.code for d in late.findings] == ["BC7008", "BC7005"]
    assert "ran out on 2026-07-01" in late.findings[0].message


def test_a_waiver_that_covers_nothing_is_found(tmp_path: Path):
    (one,) = with_files(tmp_path, {"bundlec.yaml": waiver()}).findings
    assert one.code == "BC7008"
    assert workspaces.pointed(tmp_path, one.span).startswith('bundlec.yaml: {code: "BC7005"')


def test_an_error_cannot_be_waived(tmp_path: Path):
    leaf = "base: base\ncriteria: {service: gke}\ncomponentRefs: [{name: a, overrides: {x: [1]}}]\n"
    result = with_files(
        tmp_path, {"overlays/leaf.yaml": leaf, "bundlec.yaml": waiver(code="BC2005", where="overlays/leaf.yaml")}
    )
    assert [d.code for d in result.findings] == ["BC7008", "BC2005"]


FOUND = [
    Diagnostic("BC7001", "100% of it, a: b", Span("a,b.yaml", 3, 4), "first\nsecond", "warning"),
    Diagnostic("BC2001", "no place", None, None),
    Diagnostic("BC7006", "a note", Span("x y.yaml"), None, "note", ((Span("z.yaml", 1, 2), "there"),)),
]


def test_github_commands_are_escaped():
    assert forms.github(FOUND).splitlines() == [
        "::warning file=a%2Cb.yaml,line=3,col=4,title=BC7001::100%25 of it, a: b%0Afix: first%0Asecond",
        "::error title=BC2001::no place",
        "::notice file=x y.yaml,title=BC7006::a note%0Anote: there (z.yaml:1:2)",
    ]


def test_sarif_names_rules_places_and_suppressions():
    log = forms.sarif(FOUND[:2], [(FOUND[2], "known")], "1.0")
    run_ = log["runs"][0]
    rules = run_["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run_["results"]] == ["BC7001", "BC2001", "BC7006"]
    assert [result["level"] for result in run_["results"]] == ["warning", "error", "note"]
    first = run_["results"][0]["locations"][0]["physicalLocation"]
    assert first["artifactLocation"]["uri"] == "a%2Cb.yaml"
    assert first["region"] == {"startLine": 3, "startColumn": 4}
    assert run_["results"][2]["suppressions"] == [{"kind": "external", "justification": "known"}]


@pytest.mark.parametrize("form", ["text", "github", "sarif", "json"])
def test_the_command(root: Path, tmp_path: Path, capsys, form: str):
    for name in ("bundlec.yaml", "overlays", "components", "mixins"):
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, tmp_path / name)
    assert main(["-C", str(tmp_path), "lint", "--format", form]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().err
    extra = tmp_path / "mixins" / "alone.yaml"
    extra.write_text(
        "apiVersion: bundlec.dev/v1alpha1\nkind: Mixin\nmetadata: {name: alone}\nspec: {constraints: []}\n"
    )
    assert main(["-C", str(tmp_path), "lint", "--format", form]) == 1
    out = capsys.readouterr().out
    assert "BC7001" in out
    if form in ("sarif", "json"):
        json.loads(out)
    extra.write_text("apiVersion: bundlec.dev/v1alpha1\nkind: Mixin\nmetadata: {name: alone}\nspec: {constrains: []}\n")
    assert main(["-C", str(tmp_path), "lint", "--format", form]) == 1
    assert "BC1101" in capsys.readouterr().out


def test_an_image_whose_version_stands_beside_it_is_pinned(tmp_path: Path):
    """Some charts and packages take the name and the version apart."""
    images = "  images: [{path: package.image}]\n"
    values = "package: {image: example.org/alpha}\n"
    beside = 'package: {image: example.org/alpha, version: "1.2.3"}\n'
    for text, floats in ((values, True), (beside, False)):
        root = write_catalog(tmp_path / str(floats), {"components/alpha/component.yaml": appended(images)})
        path = root / "components/alpha/values.yaml"
        path.write_text(path.read_text() + text)
        assert ("at `alpha:package.image` has no tag" in bundlec("lint", cwd=root).out) is floats


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ("", "", ["a", "b"]),
        ("cluster: west", "", ["b"]),
        ("cluster: west", "cluster: east", []),
        ("argocd: {destination: {name: west}}", "argocd: {destination: {name: east}}", []),
        ("argocd: {destination: {server: 'https://kubernetes.default.svc'}}", "flux: {kubeConfig: east}", ["a"]),
        ("", "recipe: other", []),
        ("", "recipe: eks", []),
    ],
)
def test_bundles_that_may_meet_on_one_cluster_are_a_note(tmp_path: Path, first: str, second: str, named: list[str]):
    """Not those of two services, nor those that have nothing in common: no false alarm."""
    recipe = "" if "recipe" in second else "recipe: leaf, "
    bundles = f"bundles: [{{name: a, recipe: leaf, {first}}}, {{name: b, {recipe}{second}}}]\n"
    files = {
        "bundlec.yaml": "git: {url: 'https://git.example.org/b.git', revision: main}\n" + bundles,
        "overlays/other.yaml": "base: base\ncriteria: {intent: training}\n"
        "componentRefs: [{name: a, enabled: false}, {name: c}]\n",
        "overlays/eks.yaml": "base: base\ncriteria: {service: eks}\n",
        "components/c": CHECK,
    }
    found = [d for d in with_files(tmp_path, files).findings if d.code == "BC7009"]
    assert [d.severity for d in found] == ["note"] * bool(named)
    for one in found:
        assert [name for name in ("a", "b") if f"`{name}`" in one.message] == named
