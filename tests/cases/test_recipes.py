"""Criteria, selections, names, namespaces and finished output, end to end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.model import DEPLOYERS
from tests.cases.support import ALPHA, BETA, GAMMA, LEAF, WORKSPACE, built, documents, refused
from tests.support.scratch import API, Change, appended, bundlec, replaced, tree, write_catalog


def overlay(name: str, criteria: str, more: str = "") -> str:
    head = f"{API}kind: Overlay\nmetadata: {{name: {name}}}\nspec:\n  base: base\n  criteria: {{{criteria}}}\n"
    return head + more


# ---------------------------------------------------------------------------------------------------------------------
# case 51, 52, 57


@pytest.mark.parametrize("wild", ['""', '"any"', '"*"', '"ANY"', "null", None])
def test_case_51_six_ways_to_leave_a_criterion_open(tmp_path: Path, wild: str | None):
    """An overlay for any operating system applies to the recipe, below it, whatever way it says `any`."""
    criteria = "service: any-cloud" + (f", os: {wild}" if wild is not None else "")
    more = "  componentRefs: [{name: alpha, overrides: {from: wide, image: {tag: wide}}}]\n"
    bundle = built(tmp_path, {"overlays/wide.yaml": overlay("wide", criteria, more)})
    (recipe,) = documents(bundle / "recipe.yaml")
    assert recipe["spec"]["overlays"] == ["base", "wide", "leaf"]
    (values,) = documents(bundle / "components/alpha/values.yaml")
    assert (values["from"], values["image"]["tag"]) == ("wide", "1.0")


BY_CRITERIA = "    - {{name: picked, prefix: p, criteria: {{{}}}}}\n"


@pytest.mark.parametrize(
    ("criteria", "finding"),
    [
        (
            "service: any-cloud, accelerator: gb200, platform: kubeflow",
            "[BC2001] no overlay that matches honours platform: kubeflow | `leaf-kubeflow` would match with os: ubuntu as well",
        ),
        (
            "service: any-cloud, accelerator: gb200, platform: kubflow, os: ubuntu",
            "[BC2001] no overlay that matches honours platform: kubflow | values of platform beside these criteria: kubeflow",
        ),
        (
            "service: any-cloud, accelerator: h100",
            "[BC2001] no overlay that matches honours accelerator: h100 | values of accelerator beside these criteria: gb200",
        ),
    ],
)
def test_case_52_a_criterion_that_nobody_honours(tmp_path: Path, criteria: str, finding: str):
    kubeflow = overlay("leaf-kubeflow", "os: ubuntu, platform: kubeflow").replace("base: base", "base: leaf")
    changes: Mapping[str, Change] = {
        "overlays/leaf-kubeflow.yaml": kubeflow,
        WORKSPACE: appended(BY_CRITERIA.format(criteria)),
    }
    found = refused(tmp_path, changes)
    assert finding in [line.partition(": ")[2] for line in found], found


def test_case_52_criteria_that_are_honoured(tmp_path: Path):
    root = write_catalog(tmp_path, {WORKSPACE: appended(BY_CRITERIA.format("service: any-cloud, accelerator: gb200"))})
    assert bundlec("build", "picked", cwd=root).status == 0
    (recipe,) = documents(root / "out/picked/recipe.yaml")
    assert recipe["metadata"]["name"] == "leaf"


def test_case_57_all_components_off_is_an_empty_bundle_and_not_a_full_one(tmp_path: Path):
    """Nothing is selected, and nothing is emitted: no deployer reads the empty list as `everything`."""
    off = "".join(f"        - {{component: {name}, reason: not here}}\n" for name in ("alpha", "beta", "gamma"))
    changes: dict[str, Change] = {
        WORKSPACE: appended(f"      disable:\n{off}"),
        LEAF: lambda text: text[: text.index("  profile:")],
    }
    bundle = built(tmp_path, changes)
    (inventory,) = documents(bundle / "bundle.yaml")
    assert inventory["spec"]["releases"] == []
    assert not (bundle / "components").exists()
    assert not (bundle / "namespaces").exists()


def test_case_58_values_for_what_is_not_there(tmp_path: Path):
    found = refused(
        tmp_path,
        {
            WORKSPACE: appended("      set: {alfa: {x: 1}, beta: {greeting: hi}}\n"),
            LEAF: replaced("    - name: beta\n", "    - name: beta\n      enabled: false\n"),
        },
    )
    assert [line.partition(" | ")[0] for line in found] == [
        "bundlec.yaml:8:13: [BC2006] `alfa` is no component",
        "bundlec.yaml:8:27: [BC2006] this sets values of `beta`, which is switched off already (overlay leaf)",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# case 60: nothing unfinished


def test_case_60_a_setting_that_nobody_gave_is_no_placeholder(tmp_path: Path):
    git = '  git: {url: "https://git.example.org/bundles.git", revision: main}\n'
    found = refused(tmp_path, {WORKSPACE: replaced(git, "")})
    assert [line.partition(" | ")[0] for line in found] == [
        "bundlec.yaml:5:7: [BC4002] argocd reads the bundle from Git: no repository is set",
        "bundlec.yaml:5:7: [BC4002] flux reads the bundle from Git: no repository is set",
    ]


def test_case_60_deployers_that_need_no_repository(tmp_path: Path):
    git = '  git: {url: "https://git.example.org/bundles.git", revision: main}\n'
    bundle = built(tmp_path, {WORKSPACE: replaced(git, "  deployers: [deploy.sh, helmfile]\n")})
    assert (bundle / "helmfile.yaml").is_file()
    assert not (bundle / "argocd").exists()


def test_case_60_hostile_text_ends_up_as_text(tmp_path: Path):
    """Text of the sources in the README, in scripts, in annotations: every YAML file parses, no script runs it."""
    hostile = "$(touch /tmp/pwned) `id` {{ x }} {% y %} ${HOME} \\\" ' <b> | --- # &a *b"
    text = '"' + hostile.replace("\\", "\\\\").replace('"', '\\"') + '"'
    bundle = built(
        tmp_path,
        {
            LEAF: appended(f"  description: {text}\n  knownGaps: [{text}]\n  operations: [{text}]\n"),
            "mixins/extra.yaml": replaced('value: ">= 1.34"', f'value: ">= 1.34", remediation: {text}'),
            GAMMA: appended(f"  needs: [{{component: beta, reason: {text}}}]\n"),
        },
    )
    for path in sorted(bundle.rglob("*.yaml")):
        if "templates" not in path.parts:
            documents(path)
    (recipe,) = documents(bundle / "recipe.yaml")
    assert recipe["spec"]["description"] == hostile
    for script in ("deploy.sh", "preflight.sh", "undeploy.sh"):
        for line in (bundle / script).read_text().splitlines():
            if "touch /tmp/pwned" in line and not line.lstrip().startswith("#"):
                quoted = re.findall(r"'(?:[^']|'\"'\"')*'", line)
                assert any("touch /tmp/pwned" in part for part in quoted), line


# ---------------------------------------------------------------------------------------------------------------------
# case 66: namespaces

CREATES = ("--create-namespace", "CreateNamespace=true", "createNamespace: true")


def test_case_66_one_owner_of_a_shared_namespace(tmp_path: Path):
    """Two components in one namespace, both with labels: one Namespace object, and nobody creates it in passing."""
    shared = "{name: shared, labels: {a.example.org/x: one}}"
    bundle = built(
        tmp_path,
        {
            ALPHA: replaced("{name: alpha-system}", shared),
            GAMMA: replaced("{name: gamma-system}", "{name: shared, labels: {pod-security.kubernetes.io/enforce: privileged}}"),
        },
    )  # fmt: skip
    (namespace,) = documents(bundle / "namespaces/shared.yaml")
    labels = namespace["metadata"]["labels"]
    assert labels["a.example.org/x"] == "one"
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    objects = [
        (name, document["metadata"]["name"])
        for name in tree(bundle)
        if name.endswith(".yaml") and "/templates/" not in name and not name.startswith("flux/gates")
        for document in documents(bundle / name)
        if document.get("kind") == "Namespace" and document["metadata"]["name"] == "shared"
    ]
    assert objects == [("namespaces/shared.yaml", "shared")]
    for name, data in tree(bundle).items():
        assert not any(word in data.decode() for word in CREATES), name


def test_case_66_labels_that_contradict(tmp_path: Path):
    found = refused(
        tmp_path,
        {
            ALPHA: replaced("{name: alpha-system}", "{name: shared, labels: {level: privileged}}"),
            GAMMA: replaced("{name: gamma-system}", "{name: shared, labels: {level: baseline}}"),
        },
    )
    assert len(found) == 1
    assert "[BC3010]" in found[0]
    assert "level" in found[0]


@pytest.mark.parametrize("name", ["kube-system", "default"])
def test_case_66_the_cluster_s_own_namespaces_are_not_ours(tmp_path: Path, name: str):
    bundle = built(tmp_path, {BETA: replaced("{name: beta-system}", f"{{name: {name}}}")})
    assert not (bundle / f"namespaces/{name}.yaml").exists()


def test_case_66_a_namespace_among_the_manifests_of_a_component(tmp_path: Path):
    """A manifest that makes the component's namespace would be a second owner."""
    manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: beta-system, labels: {level: privileged}}\n"
    changes: dict[str, Change] = {
        BETA: replaced("main: [", "main: [manifests/namespace.yaml, "),
        "components/beta/manifests/namespace.yaml": manifest,
    }
    assert refused(tmp_path, changes) == [
        "components/beta/manifests/namespace.yaml:1:1: [BC3010] a manifest makes namespace `beta-system` | remove it: namespaces come from the components' `namespace` field, labels included"
    ]


# ---------------------------------------------------------------------------------------------------------------------
# case 69: names


def component(name: str) -> str:
    return (
        f"{API}kind: Component\nmetadata: {{name: {name}}}\nspec: {{namespace: {{name: x}}, manifests: {{post: []}}}}\n"
    )


def with_component(name: str, prefix: str) -> dict[str, Change]:
    chart = '  chart: {repository: "https://charts.example.org", name: x, version: "1.0.0"}\n'
    return {
        f"components/{name}/component.yaml": (
            f"{API}kind: Component\nmetadata: {{name: {name}}}\nspec:\n  namespace: {{name: x}}\n{chart}"
        ),
        LEAF: replaced("    - name: beta\n", f"    - name: {name}\n    - name: beta\n"),
        WORKSPACE: replaced("recipe: leaf", f"recipe: leaf\n      prefix: {prefix}"),
    }


def test_case_69_names_at_their_limit(tmp_path: Path):
    """48 characters of a component, 63 of an Application and of a Flux object, prefix and dash included."""
    name = "c" * 48
    bundle = built(tmp_path / "in", with_component(name, "p" * 14))
    (application,) = documents(bundle / f"argocd/apps/{name}.yaml")
    assert len(application["metadata"]["name"]) == 63
    found = refused(tmp_path / "over", with_component(name, "p" * 15))
    assert {line.partition(": ")[2].partition(" has")[0] for line in found} == {
        f"[BC4001] the name `{'p' * 15}-{name}`"
    }
    assert all(f"set `prefix: {'p' * 14}` (at most 14 characters)" in line for line in found)


def test_case_69_the_prefix_that_is_proposed_fits(tmp_path: Path):
    finding = refused(tmp_path / "over", with_component("c" * 40, "p" * 40))[0]
    proposed = re.findall(r"set `prefix: (p+)`", finding)[0]
    built(tmp_path / "in", with_component("c" * 40, proposed))


@pytest.mark.parametrize("bad", ["Gpu", "gpu_operator", "-gpu", "gpu-", "gpu.operator", "gpu operator", "grüße"])
def test_case_69_names_that_are_no_labels(tmp_path: Path, bad: str):
    changes = {f"components/{bad}/component.yaml": component(f'"{bad}"')}
    found = refused(tmp_path, changes)
    assert any("[BC1202]" in line and "lower-case letters, digits and `-`" in line for line in found), found


def test_case_69_two_pairs_that_would_make_one_name(tmp_path: Path):
    """Prefix `a-b` with `c`, and prefix `a` with `b-c`: both bundles in one workspace."""
    changes: dict[str, Change] = {}
    for name in ("c", "b-c"):
        changes |= {k: v for k, v in with_component(name, "x").items() if k.startswith("components/")}
    changes[LEAF] = replaced("    - name: beta\n", "    - name: c\n    - name: b-c\n    - name: beta\n")
    changes[WORKSPACE] = lambda text: text.replace(
        "recipe: leaf\n", "recipe: leaf\n      prefix: a-b\n    - {name: other, recipe: leaf, prefix: a}\n"
    )
    assert refused(tmp_path, changes) == [
        "bundlec.yaml:8:15: [BC1203] the prefixes `a-b` and `a` of bundle `other` could both name an object `a-b-c` | give one of the bundles another `prefix`"
    ]


@pytest.mark.parametrize(("one", "other"), [("gkt", "gktbi"), ("a", "a-b"), ("demo", "demo-kubeflow")])
def test_case_69_prefixes_that_only_begin_alike(tmp_path: Path, one: str, other: str):
    entries = f"recipe: leaf\n      prefix: {one}\n    - {{name: other, recipe: leaf, prefix: {other}}}\n"
    built(tmp_path, {WORKSPACE: lambda text: text.replace("recipe: leaf\n", entries)})


def test_every_deployer_is_among_the_emitted(tmp_path: Path):
    bundle = built(tmp_path, {})
    (inventory,) = documents(bundle / "bundle.yaml")
    assert tuple(inventory["spec"]["deployers"]) == DEPLOYERS
