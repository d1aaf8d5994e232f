"""The picture of the order as SVG: complete, self-contained, nothing over anything else."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import graph, pipeline
from compiler.cli import main
from compiler.layered import Box, Layout, layout
from compiler.load import load
from compiler.model import Flags, Plan
from compiler.svg import svg, text_width

NS = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def plans(root: Path) -> list[Plan]:
    catalog = load(root)
    return [pipeline.plan_bundle(catalog, entry, Flags()) for entry in catalog.workspace.bundles.values()]


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def check(drawn: Layout, sizes: dict[str, tuple[float, float]], edges: list[tuple[str, str]]) -> None:
    assert drawn.boxes.keys() == sizes.keys()
    assert not any(overlap(a, b) for a, b in combinations(drawn.boxes.values(), 2))
    assert drawn.routes.keys() == set(edges)
    for (source, target), points in drawn.routes.items():
        start, end = drawn.boxes[source], drawn.boxes[target]
        assert points[0] == (start.x + start.width, start.middle)
        assert points[-1] == (end.x, end.middle)
        xs = [x for x, _ in points]
        assert xs == sorted(xs), "an edge never turns back"
    for box in drawn.boxes.values():
        assert -0.01 <= box.x <= box.x + box.width <= drawn.width + 0.01
        assert -0.01 <= box.y <= box.y + box.height <= drawn.height + 0.01


@given(st.integers(0, 10**6), st.integers(0, 25))
def test_any_graph_is_laid_out(seed: int, count: int):
    chance = random.Random(seed)
    names = [f"n{n}" for n in range(count)]
    chance.shuffle(names)
    edges = [pair for pair in combinations(names, 2) if chance.random() < 0.15]
    sizes = {name: (chance.uniform(20, 300), chance.uniform(20, 120)) for name in names}
    drawn = layout(sizes, edges)
    check(drawn, sizes, edges)
    chance.shuffle(edges)
    assert layout(dict(reversed(sizes.items())), edges) == drawn, "the order in which it is told does not matter"


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        layout({"a": (1, 1), "b": (1, 1)}, [("a", "b"), ("b", "a")])


def test_an_edge_passes_beside_the_boxes_of_the_columns_between():
    sizes = dict.fromkeys("abcx", (80.0, 40.0))
    drawn = layout(sizes, [("a", "b"), ("b", "c"), ("a", "c"), ("a", "x"), ("x", "c")])
    for x, y in drawn.routes["a", "c"][1:-1]:
        for name in "bx":
            box = drawn.boxes[name]
            assert not (box.x < x < box.x + box.width and box.y < y < box.y + box.height)


def test_the_picture_holds_every_component_gate_and_edge(plans: list[Plan]):
    for plan in plans:
        tree = ET.fromstring(svg(plan))
        shown = graph.picture(plan)
        texts = {node.text for node in tree.iter(f"{NS}text")}
        assert set(shown.components) <= texts
        assert len(list(tree.iter(f"{NS}rect"))) == len(shown.components) == len(plan.components)
        assert len(list(tree.iter(f"{NS}polygon"))) == len(shown.gates)
        edges = [node for node in tree.iter(f"{NS}path") if "edge" in node.get("class", "").split()]
        gate_edges = sum(len(providers) + 1 for _, providers, _ in shown.gates)
        assert len(edges) == gate_edges + len(shown.plain)
        assert any("declared: " in (node.text or "") for node in tree.iter(f"{NS}title"))


def test_text_fits_its_box(plans: list[Plan]):
    for plan in plans:
        for group in ET.fromstring(svg(plan)).iter(f"{NS}g"):
            box = group.find(f"{NS}rect")
            if box is not None:
                lines = [node.text or "" for node in group.findall(f"{NS}text")]
                assert max(map(text_width, lines)) < float(box.get("width", 0))
                ys = [float(node.get("y", 0)) for node in group.findall(f"{NS}text")]
                assert float(box.get("y", 0)) < min(ys)
                assert max(ys) < float(box.get("y", 0)) + float(box.get("height", 0))


def test_nothing_is_fetched_or_run(plans: list[Plan]):
    text = svg(plans[0])
    assert text.count("http") == 1, "the name space alone"
    for word in ("<script", "href", "@import", "url(h", "<image", "<foreignObject", " on"):
        assert word not in text.replace(" one", "").replace(" only", "").replace(" once", "")
    assert svg(plans[0]) == text


def test_the_command(root: Path, capsys):
    assert main(["-C", str(root), "graph", "gb200-nvke-ubuntu-training", "--format", "svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg xmlns=")
