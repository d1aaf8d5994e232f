"""`explain`: the line that it names for a value is the line that gives it."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler import pipeline
from compiler.cli import main
from compiler.errors import UserError
from compiler.load import load
from compiler.model import Catalog, Flags, Recipe
from compiler.paths import MISSING, lookup
from compiler.resolve import entry_for, resolve
from compiler.review.explain import value
from compiler.review.explain.model import ValueStory
from compiler.source import dotted, parse_path
from compiler.yamlio import load as load_yaml
from tests.support import workspaces

SOURCES = ("bundlec.yaml", "overlays", "components", "mixins")
PATHS = 500

# A quoted or plain scalar, from its first character on.
QUOTED = r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'|'
FLOW = re.compile(QUOTED + r"(?:(?! #)[^,\]}\n])+")
BLOCK = re.compile(QUOTED + r"(?:(?! #)[^\n])+")


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the catalog, to be edited."""
    copy = tmp_path_factory.mktemp("catalog")
    for name in SOURCES:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name)
        else:
            shutil.copy(root / name, copy / name)
    return copy


def scalars(data: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(data, dict | list) and data:
        for key, item in data.items() if isinstance(data, dict) else enumerate(data):
            yield from scalars(item, (*at, key))
    elif not isinstance(data, dict | list):
        yield at, data


def recipes(catalog: Catalog) -> dict[str, Recipe]:
    return {name: resolve(catalog, entry, Flags()) for name, entry in catalog.workspace.bundles.items()}


def told(recipe: Recipe, component: str, path: str) -> ValueStory:
    return value.story(recipe, recipe.components[component], path)


def test_the_line_holds_the_value_and_editing_it_changes_the_bundle(tree: Path):
    """500 random leaves of the catalog: the text at file:line:column is the value, and where that text is replaced by
    one that stands nowhere else, exactly that text arrives at the path.
    """
    before = recipes(load(tree))
    everything = [
        (bundle, component.name, path, leaf)
        for bundle, recipe in before.items()
        for component in recipe.enabled()
        for path, leaf in scalars(component.values)
    ]
    chosen = random.Random(5).sample(everything, PATHS)
    edits: dict[str, dict[tuple[int, int], tuple[int, str, Any]]] = defaultdict(dict)
    expected = []
    for number, (bundle, component, path, leaf) in enumerate(chosen):
        at = told(before[bundle], component, dotted(path)).winner.at  # type: ignore[union-attr]
        line = (tree / at.file).read_text().splitlines()[at.line - 1]  # type: ignore[union-attr,operator,index]
        form = FLOW if re.search(r"(^|[\s:-])[{\[]", line[: at.column - 1]) else BLOCK  # type: ignore[union-attr,operator]
        token = form.match(line, at.column - 1)[0].rstrip()  # type: ignore[union-attr,operator,index]
        if token[0] in "|>":
            assert isinstance(leaf, str)
            assert (tree / at.file).read_text().splitlines()[at.line].strip() in leaf  # type: ignore[union-attr,operator,index]
            continue
        assert load_yaml(f"x: {token}\n", "x").data["x"] == leaf, (bundle, component, path, at)
        new: Any = (
            not leaf if isinstance(leaf, bool) else 70000 + number if isinstance(leaf, int) else f"edited-{number}"
        )
        written = str(new).lower() if isinstance(new, bool) else str(new)
        place = (at.line, at.column - 1)
        _, _, new = edits[at.file].setdefault(place, (len(token), written, new))
        expected.append((bundle, component, path, leaf, new))
    for file, changes in edits.items():
        lines = (tree / file).read_text().splitlines(keepends=True)
        for (line, column), (length, written, _) in sorted(changes.items(), reverse=True):
            text = lines[line - 1]
            lines[line - 1] = text[:column] + written + text[column + length :]
        (tree / file).write_text("".join(lines))
    after = recipes(load(tree))
    assert len(expected) > PATHS * 0.9  # the rest is text of several lines
    for bundle, component, path, leaf, new in expected:
        resolved = after[bundle].components[component]
        assert lookup(resolved.values, path) == new != leaf, (bundle, component, dotted(path))
        written = lookup(resolved.chart_values, path)
        if lookup(before[bundle].components[component].chart_values, path) is not MISSING:
            assert written == new, (bundle, component, dotted(path))


@pytest.fixture(scope="module")
def catalog(root: Path) -> Catalog:
    return load(root)


def of(catalog: Catalog, name: str, component: str, path: str, flags: Flags | None = None) -> ValueStory:
    recipe = resolve(catalog, entry_for(catalog, name), flags or Flags())
    return value.story(recipe, value.component_of(catalog, recipe, component), path)


def test_a_chain_names_who_was_overridden_and_a_profile_locks(catalog: Catalog):
    story = of(catalog, "gb200-gke-cos-training", "gpuoperator", "devicePlugin.enabled")
    assert story.component == "gpu-operator"
    assert story.value is False
    assert [(link.layer, link.rule, link.value) for link in story.chain] == [
        ("gpu-operator values.yaml", "set", True),
        ("profile gpuStack=gke-default", "locked by the profile (replaced)", False),
    ]
    assert any("locked by the profile" in note for note in story.notes)


def test_a_flag_is_told(catalog: Catalog):
    flags = Flags(set=(("gpu-operator", ("driver", "version"), "999"),))
    story = of(catalog, "gb200-nvke-ubuntu-training", "gpu-operator", "driver.version", flags)
    assert (story.winner.layer, story.winner.rule, story.value) == ("--set", "injected by a flag (replaced)", "999")
    assert story.winner.at.file is None
    assert str(story.winner.at) == "--set gpu-operator:driver.version"


def test_null_deletes_a_value_of_ours_or_a_default_of_the_chart(catalog: Catalog):
    ours = of(
        catalog, "gb200-gke-cos-training", "kube-prometheus-stack", "prometheus.prometheusSpec.storageSpec.emptyDir"
    )
    assert ours.value is MISSING
    assert [link.rule for link in ours.chain] == ["set", "deleted by null"]
    charts = of(catalog, "gb200-gke-cos-training", "nvidia-dra-driver-gpu", "controller.affinity.nodeAffinity")
    assert [link.rule for link in charts.chain] == ["deletes a default of the chart"]
    assert any("is written for the chart" in note for note in charts.notes)


def test_a_list_comes_from_one_layer_and_each_item_has_its_line(catalog: Catalog, root: Path):
    story = of(catalog, "gb200-nvke-ubuntu-training", "gpu-operator", "toolkit.env")
    assert {item.layer for item in story.items} == {"overlay nvke"}
    for item in story.items:
        text = (root / item.at.file).read_text().splitlines()[item.at.line - 1]
        assert item.value["name"] in text
    inner = of(catalog, "gb200-nvke-ubuntu-training", "gpu-operator", "toolkit.env[1].value")
    assert (inner.value, inner.winner.at.line) == ("false", story.items[1].at.line)


def test_an_item_that_a_flag_replaces_is_the_flags_and_the_others_are_not(root: Path, capsys):
    """`--set` of one item: Helm's way of changing a list."""
    flag = "gpu-operator:toolkit.env[1].value=true"
    command = ["-C", str(root), "explain", "gb200-nvke-ubuntu-training", "gpu-operator", "toolkit.env"]
    assert main([*command, "--set", flag, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [item["layer"] for item in data["items"]] == ["overlay nvke", "--set"]
    assert data["winner"]["rule"] == "injected by a flag (replaced)"


def test_a_setting_is_told(root: Path, capsys):
    command = ["-C", str(root), "explain", "gb200-nvke-ubuntu-training", "gpu-operator", "operator.nodeSelector.pool"]
    assert main([*command, "--system-node-selector", "pool=system", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["value"] == "system"
    assert data["winner"]["rule"] == "injected by a setting (set)"
    assert data["winner"]["at"]["word"] == "--system-node-selector pool=system"


def test_an_input_is_told(tmp_path: Path):
    recipe = workspaces.recipe(
        tmp_path,
        {
            "bundlec.yaml": "bundles:\n  - {name: demo, recipe: leaf, inputs: {size: large}}\n",
            "components/a": "",
            "components/a/values.yaml": "replicas: 1\n",
            "overlays/leaf.yaml": """\
                criteria: {service: gke}
                inputs:
                  size:
                    type: string
                    enum: [small, large]
                    effects:
                      large: [{name: a, overrides: {replicas: 3}}]
                componentRefs: [{name: a}]
            """,
        },
        "demo",
    )
    story = told(recipe, "a", "replicas")
    assert [(link.layer, link.rule) for link in story.chain] == [
        ("a values.yaml", "set"),
        ("input size=large", "injected by an input (replaced)"),
    ]


@pytest.mark.parametrize(
    ("path", "close"),
    [("driver.verson", "`driver.version`"), ("gpu.driver.upgradePolicy", "`driver.upgradePolicy`"), ("a..b", "a.b.c")],
)
def test_a_path_that_does_not_exist_proposes_the_closest(catalog: Catalog, path: str, close: str):
    with pytest.raises(UserError) as caught:
        of(catalog, "gb200-nvke-ubuntu-training", "gpu-operator", path)
    (one,) = caught.value.diagnostics
    assert one.code == "BC2016"
    assert close in (one.fix or "")


def test_inside_a_list_a_step_too_far_is_refused(catalog: Catalog):
    with pytest.raises(UserError, match="toolkit"):
        of(catalog, "gb200-nvke-ubuntu-training", "gpu-operator", "toolkit.env[9].value")


def test_a_default_of_the_chart_that_nobody_sets_is_told(catalog: Catalog):
    recipe = resolve(catalog, entry_for(catalog, "gb200-nvke-ubuntu-training"), Flags())
    component = recipe.components["nvidia-dra-driver-gpu"]
    unset = [p for p in component.component.chart_defaults if lookup(component.values, parse_path(p)) is MISSING]
    story = value.story(recipe, component, unset[0])
    assert story.winner is None
    assert story.notes == ("no layer sets it: the chart's own default applies",)


def test_below_lists_every_value_with_its_winner(catalog: Catalog):
    recipe = pipeline.resolve(catalog, entry_for(catalog, "gb200-gke-cos-training"), Flags())
    component = recipe.components["gpu-operator"]
    found = {leaf.path: leaf for leaf in value.below(component)}
    assert found["cdi.enabled"].layer == "overlay gb200-gke-cos-training"
    assert all(lookup(component.values, parse_path(path)) == leaf.value for path, leaf in found.items())
