"""Random edits: the report is empty exactly when the files are equal, tells every line that differs, and names causes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.review.diff.model import Report
from compiler.review.diff.render_json import data
from compiler.review.diff.render_md import LIMIT, markdown
from compiler.review.diff.render_text import text
from compiler.review.diff.report import Side, report
from compiler.review.diff.sides import compiled
from compiler.review.diff.sources import Sources
from tests.review.accounting import unaccounted
from tests.review.edits import ALL, BROKEN, LOUD, QUIET, edited

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "compiler/schemas/diff.schema.json").read_text())
EXTRA = {
    "components/gamma/manifests/crd.yaml": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before}\ndata: {a: b}\n")
}
Compiled = tuple[Side, dict[str, str]]


class Sides:
    """The side that some edits of the base give; each is compiled once."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.factory = factory
        self.known: dict[tuple[str, ...], Compiled] = {}

    def __call__(self, *names: str) -> Compiled:
        if names not in self.known:
            folder = self.factory.mktemp("side")
            for file, content in {**edited(*names), **EXTRA}.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(content)
            self.known[names] = compiled(folder, (), "a side")
        return self.known[names]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """The side that some edits of the base give; each is compiled once."""
    return Sides(tmp_path_factory)


def compared(sides: Sides, old: tuple[str, ...], new: tuple[str, ...]) -> Report:
    (base, before), (head, after) = sides(*old), sides(*new)
    return report(base, head, Sources(before, after), "bundlec diff")


EDITED = st.lists(st.sampled_from(sorted(ALL)), max_size=4, unique=True).map(tuple)
many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@many
@given(new=EDITED, old=st.just(()) | EDITED)
def test_a_report_tells_everything_and_only_that(sides: Sides, old: tuple[str, ...], new: tuple[str, ...]):
    found = compared(sides, old, new)
    (base, before), (head, after) = sides(*old), sides(*new)
    sources = Sources(before, after)
    differs = bool(found.base_errors or found.head_errors)
    for bundle in found.bundles:
        here, there = base.bundles.get(bundle.old_name or bundle.name), head.bundles.get(bundle.name)
        if bundle.status == "broken":
            assert bundle.name in base.broken or bundle.name in head.broken
            differs = True
        elif here is None or there is None:
            assert bundle.status in {"added", "removed"}
            differs = True
        else:
            assert (bundle.status == "same") == (here.files == there.files)
            assert unaccounted(bundle, here.files, there.files) == []
            differs |= here.files != there.files
    assert found.differs == differs
    assert all(sources.edited_line(cause.place) for cause in found.causes)
    jsonschema.validate(json.loads(json.dumps(data(found))), SCHEMA, jsonschema.Draft202012Validator)
    assert text(found).startswith(found.verdict)
    told = markdown(found)
    assert len(told.encode()) <= LIMIT
    assert told.count("<details>") == told.count("</details>")


@pytest.mark.parametrize("name", ALL)
def test_an_edit_does_what_its_list_says(sides: Sides, name: str):
    """The properties would hold of a report that knows nothing."""
    found = compared(sides, (), (name,))
    assert found.differs == (name not in QUIET)
    assert found.failed == (name in BROKEN)
    if name in QUIET:
        assert found.verdict.startswith("No change: 2 bundles")
        assert found.idle != ()


@pytest.mark.parametrize("name", LOUD)
def test_whatever_changes_has_a_cause_and_all_causes_are_of_the_edit(sides: Sides, name: str):
    found = compared(sides, (), (name,))
    assert {key for key, place in placed(found).items() if place is None} == set()
    assert found.causes != ()
    edited_files = {f for f, content in edited(name).items() if edited().get(f) != content} | {
        f for f in edited() if f not in edited(name)
    }
    assert {cause.place.file for cause in found.causes} <= edited_files


PAIRS = st.lists(st.sampled_from(sorted(LOUD)), min_size=2, max_size=2, unique=True).map(tuple)


@many
@given(pair=PAIRS)
def test_of_two_edits_each_difference_names_its_own(sides: Sides, pair: tuple[str, str]):
    """What one edit alone changes, and the other alone does not, has a line of the first as its cause."""
    files = [{f for f in {*edited(), *edited(n)} if edited().get(f) != edited(n).get(f)} for n in pair]
    both = compared(sides, (), pair)
    if files[0] & files[1] or both.failed:
        return
    alone = [placed(compared(sides, (), (name,))) for name in pair]
    for key, place in placed(both).items():
        for mine, other, own in ((alone[0], alone[1], files[0]), (alone[1], alone[0], files[1])):
            if key in mine and key not in other:
                assert place is not None, f"{key} of {pair} has no cause"
                assert place in own, f"{key} of {pair}"


def placed(found: Report) -> dict[Any, str | None]:
    """What tells a difference from others, with both sides -> the file that is said to have caused it."""
    result: dict[Any, str | None] = {}
    for bundle in found.bundles:
        for key, place in itertools.chain(_own(bundle), *(_of_component(bundle.name, c) for c in bundle.components)):
            result[key] = place.file if place is not None else None
    return result


def _own(bundle: Any) -> Iterator[tuple[Any, Any]]:
    for entry in bundle.fields:
        yield (bundle.name, entry.change.path, repr(entry.change.old), repr(entry.change.new)), entry.at
    for order in bundle.order:
        if order.kind != "order":
            yield (bundle.name, order.text), order.at


def _of_component(bundle: str, component: Any) -> Iterator[tuple[Any, Any]]:
    for entry in (*component.values, *component.fields):
        change = entry.change
        yield (bundle, component.name, change.path, repr(change.old), repr(change.new)), entry.at
    if component.status == "changed":
        for item in component.objects:
            yield (bundle, component.name, item.title, item.hunk), item.at
    else:
        yield (bundle, component.name, component.status), component.at
