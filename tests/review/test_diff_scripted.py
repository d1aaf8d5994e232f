"""Twelve pull requests, each with the report that a person read and found right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.review.scripted import EXPECTED, FORMS, PULL_REQUESTS, made
from tests.support.repositories import Repository
from tests.support.scratch import bundlec, tree

ROOT = Path(__file__).resolve().parents[2]


class Reviewed:
    """A pull request with what was said about it, asked for once."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.broken = PULL_REQUESTS[name].status == 1
        self.repository = made(folder / "repository", name)
        self.ran = {form: self.repository.diff("--exit-code", "--format", form) for form in FORMS}
        self.sides = () if self.broken else _both_sides(self.repository, folder)

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ran["json"].out)
        return found


@pytest.fixture(scope="module", params=PULL_REQUESTS)
def reviewed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return Reviewed(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads((ROOT / "compiler/schemas/diff.schema.json").read_text())


@pytest.mark.parametrize("form", FORMS)
def test_the_report_is_as_expected(reviewed: Reviewed, form: str):
    expected = (EXPECTED / f"{reviewed.name}.{FORMS[form]}").read_text(encoding="utf-8")
    assert reviewed.ran[form].out == expected


def test_the_exit_status(reviewed: Reviewed):
    assert {ran.status for ran in reviewed.ran.values()} == {PULL_REQUESTS[reviewed.name].status}


def test_the_data_follow_the_published_schema(reviewed: Reviewed, schema: Any):
    jsonschema.Draft202012Validator(schema).validate(reviewed.json())


def test_the_schema_refuses_what_it_does_not_know(schema: Any):
    report = json.loads((EXPECTED / "version-bump.json").read_text())
    report["bundles"][0]["risks"][0]["severity"] = "terrible"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(report)


def test_every_emitted_line_that_differs_is_accounted_for(reviewed: Reviewed):
    """The files of the report are exactly those that differ, and an entry says how each does."""
    for bundle in reviewed.json()["bundles"]:
        old, new = (tree(side / bundle["name"]) for side in reviewed.sides)
        differing = {path for path in {*old, *new} if old.get(path) != new.get(path)}
        assert {file["path"] for file in bundle["files"]} == differing
        assert (bundle["status"] == "same") == (not differing)
        for file in bundle["files"]:
            assert _accounted(file, bundle), f"{file['path']} differs, and nothing says how"


def test_hunks_of_wiring_hold_every_changed_line(reviewed: Reviewed):
    for bundle in reviewed.json()["bundles"]:
        for file in (f for f in bundle["files"] if f["part"] in {"wiring", "words"} and f["status"] == "changed"):
            paths = [side / bundle["name"] / file["path"] for side in reviewed.sides]
            old, new = ([_masked(line) for line in path.read_text().splitlines()] for path in paths)
            for sign, lines, others in (("-", old, new), ("+", new, old)):
                told = [_masked(line[1:]) for line in file["hunk"] if line.startswith(sign)]
                assert [line for line in lines if line not in others and line not in told] == []


def _masked(line: str) -> str:
    """A line without content hashes, which follow from what other entries tell."""
    return re.sub(r"'?\b(0\.1\.0-h)?[0-9a-f]{8}\b'?", "<content>", line)


def _both_sides(found: Repository, folder: Path) -> tuple[Path, Path]:
    """The emitted bundles of the commit and of the work tree."""
    new, old, past = folder / "new", folder / "old", folder / "past"
    assert bundlec("build", "--all", "--out", new, cwd=found.workspace).status == 0
    found.git("worktree", "add", "--detach", "--quiet", past, "HEAD")
    assert bundlec("build", "--all", "--out", old, cwd=past).status == 0
    return old, new


def _accounted(file: dict[str, Any], bundle: dict[str, Any]) -> bool:
    release = file["path"].split("/")[1] if file["path"].startswith("components/") else ""
    components = {c["name"]: c for c in bundle["components"]}
    names = (release, release.removesuffix("-pre"), release.removesuffix("-post"))
    component = next((components[n] for n in names if n in components), None)
    whole = component is not None and component["status"] in {"added", "removed"}
    match file["part"]:
        case "values":
            return file["reordered"] or whole or bool(component and component["values"])
        case "manifests":
            return file["reordered"] or whole or bool(component and (component["objects"] or component["folded"]))
        case "namespaces":
            return any(f["path"].startswith("namespaces") for f in bundle["fields"])
        case "wiring" | "words":
            return bool(file["hunk"])
        case _:  # it repeats something, so there is something
            return any(bundle[key] for key in ("components", "fields", "order")) or len(bundle["files"]) > 1
