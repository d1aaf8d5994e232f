"""`bundlec new`: what it writes compiles, and what is there stays as it was."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from compiler import scaffold
from compiler.errors import UserError
from compiler.yamlio import load
from tests.conftest import ROOT
from tests.support.scratch import bundlec, write_catalog


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """A copy of the project's sources."""
    root = tmp_path / "fork"
    for name in ("components", "overlays", "mixins", "compiler/schemas"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "bundlec.yaml", root)
    return root


def schema_of(file: Path) -> Path:
    """The schema that the first line of a file names for editors."""
    first = file.read_text().splitlines()[0]
    match = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
    assert match, first
    return (file.parent / match[1]).resolve()


@pytest.mark.parametrize("chart", [(), ("--chart", "https://charts.example.org", "hello", "1.2.3")])
def test_a_component(fork: Path, chart: tuple[str, ...]) -> None:
    ran = bundlec("new", "component", "hello", *chart, cwd=fork)
    assert ran.status == 0, ran.err
    assert "components/hello/component.yaml" in ran.out
    assert schema_of(fork / "components/hello/component.yaml") == fork / "compiler/schemas/component.schema.json"
    overlay = fork / "overlays/monitoring-hpa.yaml"
    overlay.write_text(overlay.read_text().replace("  componentRefs:\n", "  componentRefs:\n    - name: hello\n", 1))
    built = bundlec("build", "gb200-nvke-ubuntu-training", "--out", "o", cwd=fork)
    assert built.status == 0, built.err
    assert (fork / "o/gb200-nvke-ubuntu-training/components/hello").is_dir()


def test_an_overlay_is_a_recipe_that_compiles(fork: Path) -> None:
    ran = bundlec("new", "overlay", "gb200-nvke-ubuntu-inference", "--criteria", "intent=inference", cwd=fork)
    assert ran.status == 0, ran.err
    file = fork / "overlays/nvke/gb200-nvke-ubuntu-inference.yaml"  # beside what it builds on
    assert schema_of(file) == fork / "compiler/schemas/overlay.schema.json"
    text = file.read_text()
    assert "  base: nvke\n" in text
    assert "accelerator: gb200" in text
    assert "intent: inference" in text
    assert "service" not in text  # inherited
    assert bundlec("build", "gb200-nvke-ubuntu-inference", "--out", "o", cwd=fork).status == 0
    assert "gb200-nvke-ubuntu-inference" in bundlec("list", cwd=fork).out


def test_an_overlay_of_another_service(fork: Path) -> None:
    ran = bundlec("new", "overlay", "l40-lke", "--criteria", "service=lke,accelerator=l40", cwd=fork)
    assert ran.status == 0, ran.err
    assert "  base: base\n" in (fork / "overlays/l40-lke.yaml").read_text()


def test_an_overlay_of_an_accelerator_that_is_the_first_of_its_kind(fork: Path) -> None:
    """A word of the name that becomes no criterion is told: the recipe would be for every cluster without it."""
    ran = bundlec("new", "overlay", "l40s-eks-ubuntu-inference", cwd=fork)
    assert ran.status == 0, ran.err
    text = (fork / "overlays/eks/l40s-eks-ubuntu-inference.yaml").read_text()
    assert "    accelerator: l40s\n    os: ubuntu\n    intent: inference\n" in text
    assert "no criterion" not in ran.err
    ran = bundlec("new", "overlay", "zx9-eks-ubuntu-inference-blue", "--criteria", "platform=nim", cwd=fork)
    assert ran.status == 0, ran.err
    assert "no criterion was read from zx9, blue of the name; --criteria KEY=VALUE gives one" in ran.err
    steps = bundlec("new", "overlay", "shared-steps", "--base", "eks", cwd=fork)
    assert steps.status == 0, steps.err
    assert "no criterion" not in steps.err


def test_a_mixin(fork: Path) -> None:
    ran = bundlec("new", "mixin", "shared-part", cwd=fork)
    assert ran.status == 0, ran.err
    assert schema_of(fork / "mixins/shared-part.yaml") == fork / "compiler/schemas/mixin.schema.json"
    overlay = fork / "overlays/monitoring-hpa.yaml"
    assert "mixins:" not in overlay.read_text()
    overlay.write_text(overlay.read_text().replace("\nspec:\n", "\nspec:\n  mixins: [shared-part]\n", 1))
    resolved = bundlec("resolve", "gb200-nvke-ubuntu-training", cwd=fork)
    assert resolved.status == 0, resolved.err
    assert "- shared-part\n" in resolved.out


def test_a_bundle(fork: Path) -> None:
    before = (fork / "bundlec.yaml").read_text()
    ran = bundlec("new", "bundle", "prod-east", "--recipe", "gb200-gke-cos-training", cwd=fork)
    assert ran.status == 0, ran.err
    after = (fork / "bundlec.yaml").read_text()
    entry = "    - name: prod-east\n      recipe: gb200-gke-cos-training\n"
    assert entry in after
    assert after.replace(entry, "") == before
    assert bundlec("build", "prod-east", cwd=fork).status == 0
    long = bundlec("new", "bundle", "production-in-the-far-east", "--recipe", "gb200-nvke-ubuntu-training", cwd=fork)
    assert long.status == 0, long.err
    assert "      prefix: pitfe\n" in (fork / "bundlec.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("component", "alpha"), 1, "exists already"),
        (("overlay", "leaf"), 1, "exists already"),
        (("mixin", "tuned"), 1, "exists already"),
        (("bundle", "demo", "--recipe", "leaf"), 1, "exists already"),
        (("bundle", "b", "--recipe", "leef"), 1, "did you mean `leaf`?"),
        (("overlay", "x", "--base", "bas"), 1, "did you mean `base`?"),
        (("overlay", "x", "--base", "nothing-like-it"), 1, "give --base OVERLAY, one of `base`"),
        (("overlay", "x"), 1, "give --base OVERLAY, one of `base`"),
        (("overlay", "x", "--criteria", "clod=eks"), 2, "KEY=VALUE"),
        (("overlay", "x", "--criteria", "service=eks,service=gke"), 2, "given twice"),
        (("component", "Hello"), 2, "lower-case"),
        (("component", "../x"), 2, "lower-case"),
        (("bundle", "b"), 2, "--recipe"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: tuple[str, ...], status: int, word: str) -> None:
    root = write_catalog(tmp_path / "w")
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and ".bundlec" not in p.parts}
    ran = bundlec("new", *arguments, cwd=root)
    assert ran.status == status, ran.err
    assert word in ran.err
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and ".bundlec" not in p.parts} == before


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("component", "gpuoperator"), "the alias `gpuoperator` is taken"),
        (("component", "gpu-operator-post"), "is also a release of the component `gpu-operator`"),
        (("component", "all"), "is reserved"),
        (
            ("bundle", "x1", "--recipe", "gb200-nvke-ubuntu-training", "--prefix", "gkt"),
            "two bundles have the prefix `gkt`",
        ),
        (("bundle", "x1", "--recipe", "gke-cos"), "is no recipe"),
        (("overlay", "x", "--criteria", "service=gke", "--base", "nvke"), "inherits service: nvke"),
    ],
)
def test_what_would_not_compile_is_not_left_behind(fork: Path, arguments: tuple[str, ...], word: str) -> None:
    before = {p: p.read_bytes() for p in fork.rglob("*") if p.is_file() and ".bundlec" not in p.parts}
    folders = {p for p in fork.rglob("*") if p.is_dir() and ".bundlec" not in p.parts}
    ran = bundlec("new", *arguments, cwd=fork)
    assert ran.status == 1, ran.out
    assert ran.out == ""
    assert word in ran.err
    assert "nothing was written" in ran.err
    assert {p: p.read_bytes() for p in fork.rglob("*") if p.is_file() and ".bundlec" not in p.parts} == before
    assert {p for p in fork.rglob("*") if p.is_dir() and ".bundlec" not in p.parts} == folders


def test_a_bundle_of_a_recipe_that_must_have_inputs(fork: Path) -> None:
    """Those of another bundle are the example; without one the finding tells what is asked for."""
    recipe = "h100-gke-cos-training-kubeflow"
    ran = bundlec("new", "bundle", "tcpxo-west", "--recipe", recipe, cwd=fork)
    assert ran.status == 0, ran.err
    assert f"its inputs are those of {recipe}: set your own" in ran.err
    (entry,) = [
        b for b in load((fork / "bundlec.yaml").read_text(), "x").data["spec"]["bundles"] if b["name"] == "tcpxo-west"
    ]
    assert entry["inputs"]["tcpxoInterfaces"]["eth8"] == "gpu-nic-7"
    assert bundlec("build", "tcpxo-west", cwd=fork).status == 0


def test_a_tree_without_the_schemas_gets_no_line_that_leads_nowhere(tmp_path: Path) -> None:
    root = write_catalog(tmp_path / "w")
    assert bundlec("new", "component", "hello", cwd=root).status == 0
    assert (root / "components/hello/component.yaml").read_text().startswith("apiVersion:")


HEAD = "apiVersion: bundlec.dev/v1alpha1\nkind: Workspace\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec: {}\n", "spec:\n  bundles:\n    - name: x\n      recipe: r\n"),
        ("spec:\n  out: o\n", "spec:\n  bundles:\n    - name: x\n      recipe: r\n  out: o\n"),
        ("spec:\n  bundles: []  # none\n  out: o\n", "spec:\n  bundles:\n    - name: x\n      recipe: r\n  out: o\n"),
        (
            "spec:\n  bundles:\n  - {name: a, recipe: r}\n\n  # the rest\n  out: o\n",
            "spec:\n  bundles:\n  - {name: a, recipe: r}\n  - name: x\n    recipe: r\n\n  # the rest\n  out: o\n",
        ),
        (
            ("spec:\n  bundles:\n    # first\n    - name: a\n      set:\n        c: {d: 1}\n      # said\n    - name: b\n      set:\n"
            "        c: 1\n"),
            ("spec:\n  bundles:\n    # first\n    - name: a\n      set:\n        c: {d: 1}\n      # said\n    - name: b\n      set:\n"
            "        c: 1\n    - name: x\n      recipe: r\n"),
        ),
    ],
)  # fmt: skip
def test_the_entry_goes_to_the_end_of_the_list(before: str, after: str) -> None:
    found = scaffold.bundle(load(HEAD + before, "bundlec.yaml"), HEAD + before, "x", "r", None)
    assert found == HEAD + after
    assert load(found, "bundlec.yaml").data["spec"]["bundles"][-1] == {"name": "x", "recipe": "r"}


def test_a_list_on_one_line_is_left_alone() -> None:
    text = HEAD + "spec: {bundles: [{name: a, recipe: r}]}\n"
    with pytest.raises(UserError) as caught:
        scaffold.bundle(load(text, "bundlec.yaml"), text, "x", "r", None)
    assert "stands on one line" in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------------
# docs/catalog.md


def test_the_catalog_is_what_the_sources_say() -> None:
    written = (ROOT / "docs/catalog.md").read_text(encoding="utf-8")
    ran = bundlec("list", "--format", "md", cwd=ROOT)
    assert ran.status == 0, ran.err
    assert ran.out == written, "make docs"


def test_the_list_knows_what_does_not_compile(tmp_path: Path) -> None:
    root = write_catalog(tmp_path / "w")
    leaf = root / "overlays/leaf.yaml"
    leaf.write_text(leaf.read_text().replace('tag: "1.0"', "tag: null, nothing: null"))
    ran = bundlec("list", cwd=root)
    assert ran.status == 0
    assert "does not compile" in ran.out
