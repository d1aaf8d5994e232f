"""Which overlays make up a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.errors import Collector, UserError
from compiler.model import BundleEntry, Catalog, Flags
from compiler.resolve import entry_for, recipes, resolve
from compiler.resolve.criteria import effective, maximal_leaves
from tests.support.workspaces import catalog, findings, pointed, the_finding

FILES = {
    "overlays/base.yaml": "abstract: true",
    "overlays/anything.yaml": "{base: base, abstract: true, criteria: {intent: any}}",
    "overlays/gb200-any.yaml": "{base: base, abstract: true, criteria: {accelerator: gb200, service: any}}",
    "overlays/gke.yaml": "{base: base, abstract: true, criteria: {service: gke, os: cos}}",
    "overlays/gke-training.yaml": "{base: gke, criteria: {intent: training}}",
    "overlays/gb200-gke-training.yaml": "{base: gke-training, criteria: {accelerator: gb200}}",
    "overlays/gb200-gke-training-kubeflow.yaml": "{base: gb200-gke-training, criteria: {platform: kubeflow}}",
    "overlays/eks.yaml": "{base: base, criteria: {service: eks, os: ubuntu, platform: kubeflow}}",
}


def by_criteria(found: Catalog, **criteria: str | int) -> BundleEntry:
    at = found.workspace.origin
    return BundleEntry("b", at, None, criteria, None, {}, {}, {}, (), {})


def test_a_recipe_is_the_chains_of_its_maximal_leaves(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    recipe = resolve(found, entry_for(found, "gb200-gke-training"), Flags())
    assert recipe.overlays == ("base", "anything", "gb200-any", "gke", "gke-training", "gb200-gke-training")
    assert recipe.criteria == {"service": "gke", "accelerator": "gb200", "os": "cos", "intent": "training"}
    assert list(recipe.criteria) == ["service", "accelerator", "os", "intent"]
    assert (recipe.name, recipe.bundle) == ("gb200-gke-training", "gb200-gke-training")


def test_order_is_by_specificity_then_by_name_whatever_the_file_order(tmp_path: Path) -> None:
    extra = {
        "overlays/z/a-cos.yaml": "{base: base, criteria: {os: cos}, abstract: true}",
        "overlays/a/z-gke.yaml": "{base: base, criteria: {service: gke}, abstract: true}",
        "overlays/m-nodes.yaml": "{base: base, criteria: {service: gke, nodes: 8}, abstract: true}",
    }
    found = catalog(tmp_path, {**FILES, **extra})
    recipe = resolve(found, entry_for(found, "gke-training"), Flags())
    # nodes takes no part in matching and counts for specificity
    assert recipe.overlays == ("base", "anything", "a-cos", "z-gke", "m-nodes", "gke", "gke-training")


def test_matching_is_asymmetric(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    criteria = effective(found.overlays, Collector())
    leaves = maximal_leaves(found.overlays, criteria, {"service": "gke", "os": "cos", "intent": "training"})
    # gb200-any asks for an accelerator that the query does not state
    assert leaves == ["anything", "gke-training"]


@pytest.mark.parametrize("written", ["os: ''", "os: any", "os: '*'", "os: ANY", "os: null", "nodes: 0", "os: ' '"])
def test_spellings_of_any(tmp_path: Path, written: str) -> None:
    """case 51"""
    files = {"overlays/base.yaml": "", "overlays/eks.yaml": f"base: base\ncriteria:\n  service: eks\n  {written}"}
    found = catalog(tmp_path, files)
    assert effective(found.overlays, Collector())["eks"] == {"service": "eks"}


def test_a_child_may_repeat_criteria(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "overlays/x.yaml": "{base: gke, criteria: {service: gke, platform: nim}}"})
    recipe = resolve(found, entry_for(found, "x"), Flags())
    assert recipe.criteria == {"service": "gke", "os": "cos", "platform": "nim"}


@pytest.mark.parametrize("value", ["ubuntu", "any", '""'])
def test_a_child_may_not_change_criteria(tmp_path: Path, value: str) -> None:
    found = catalog(
        tmp_path, {**FILES, "overlays/x.yaml": f"base: gke-training\ncriteria:\n  platform: nim\n  os: {value}"}
    )
    one = the_finding(found, "gke-training", "BC2002")
    assert pointed(tmp_path, one.span) == f"overlays/x.yaml: {value}"
    assert "inherits os: cos from `gke`" in one.message
    ((where, _),) = one.notes
    assert where.file == "overlays/gke.yaml"


def test_recipes_are_neither_abstract_nor_without_criteria(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "overlays/apart.yaml": "{base: gke, match: false, criteria: {platform: nim}}"})
    names = [o.name for o in recipes(found)]
    assert names == ["eks", "gb200-gke-training", "gb200-gke-training-kubeflow", "gke-training"]


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("gb200-gke-trainig", "there is no bundle and no recipe", "did you mean `gb200-gke-training`?"),
        ("gke", "`gke` is no recipe: it is abstract", "recipes that build on it: gke-training"),
        ("zzz", "there is no bundle", "`bundlec list` prints all of them"),
        ("my-bundel", "there is no bundle", "did you mean `my-bundle`?"),
        ("base", "`base` is no recipe: it is abstract", "recipes that build on it: eks"),
    ],
)
def test_unknown_names(tmp_path: Path, name: str, message: str, fix: str) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": "bundles: [{name: my-bundle, recipe: eks}]"})
    with pytest.raises(UserError) as caught:
        entry_for(found, name)
    (one,) = caught.value.diagnostics
    assert one.code == "BC2001"
    assert message in one.message
    assert one.fix == fix


def test_a_bundle_comes_before_a_recipe_of_that_name(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": "bundles: [{name: eks, recipe: gke-training}]"})
    assert entry_for(found, "eks").recipe == "gke-training"
    assert resolve(found, entry_for(found, "eks"), Flags()).bundle == "eks"


def test_a_bundle_of_an_unknown_recipe_is_reported_in_bundlec_yaml(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": "bundles:\n  - name: b\n    recipe: ekss"})
    one = the_finding(found, "b", "BC2001")
    assert pointed(tmp_path, one.span) == "bundlec.yaml: ekss"
    assert one.fix == "did you mean `eks`?"


def test_a_recipe_that_its_child_hides(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**FILES, "overlays/eks-more.yaml": "{base: eks, criteria: {service: eks}}"})
    one = the_finding(found, "eks", "BC2003")
    assert "`eks-more` builds on it" in one.message
    assert resolve(found, entry_for(found, "eks-more"), Flags()).overlays == ("base", "anything", "eks", "eks-more")


def test_criteria_instead_of_a_recipe(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    entry = by_criteria(found, os="cos", service="gke", intent="training", accelerator="gb200", nodes=4)
    recipe = resolve(found, entry, Flags())
    assert recipe.name == "gb200-gke-training"
    assert recipe.overlays == ("base", "anything", "gb200-any", "gke", "gke-training", "gb200-gke-training")
    assert list(recipe.criteria.items()) == [
        ("service", "gke"),
        ("accelerator", "gb200"),
        ("os", "cos"),
        ("intent", "training"),
        ("nodes", 4),
    ]


@pytest.mark.parametrize(
    ("criteria", "missing", "fix"),
    [
        # kubeflow exists for gb200 only
        (
            {"service": "gke", "os": "cos", "intent": "training", "platform": "kubeflow"},
            "platform: kubeflow",
            "`gb200-gke-training-kubeflow` would match with accelerator: gb200 as well",
        ),
        (
            {"service": "gke", "os": "cos", "intent": "inference"},
            "intent: inference",
            "values of intent beside these criteria: training",
        ),
        (
            {"service": "eks", "os": "ubuntu", "platform": "kubeflo"},
            "platform: kubeflo",
            "values of platform beside these criteria: kubeflow",
        ),
    ],
)
def test_a_stated_criterion_that_nobody_honours(
    tmp_path: Path, criteria: dict[str, str], missing: str, fix: str
) -> None:
    """case 52"""
    found = catalog(tmp_path, FILES)
    notes = [d for d in findings(found, by_criteria(found, **criteria)) if missing in d.message]
    (one,) = notes
    assert (one.code, one.fix) == ("BC2001", fix)


def test_criteria_that_only_an_abstract_overlay_meets(tmp_path: Path) -> None:
    found = catalog(tmp_path, FILES)
    one = the_finding(found, by_criteria(found, service="gke", os="cos"), "BC2001")
    assert "`gke`, is abstract" in one.message
    assert one.fix is not None
    assert "gke-training" in one.fix


def test_criteria_that_match_nothing(tmp_path: Path) -> None:
    found = catalog(tmp_path, {"overlays/base.yaml": "", "overlays/a.yaml": "{base: base, criteria: {service: eks}}"})
    the_finding(found, by_criteria(found), "BC2001")
