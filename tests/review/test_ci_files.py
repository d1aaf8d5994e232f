"""The files of docs/ci and the hooks, run as a runner would: one comment, updated in place, and no text of others run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.repositories import Repository, repository
from tests.support.scratch import appended, bundlec, replaced

ROOT = Path(__file__).resolve().parents[2]
GITHUB = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text())
GITLAB = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())["bundlec"]
EVIL = "main$(touch ran)`touch ran`"
TAG = {"overlays/leaf.yaml": replaced('tag: "1.0"', 'tag: "1.1"')}
WAIVERS = "".join(
    f"      - {{code: BC7005, where: components/{name}/component.yaml, reason: It is a toy.}}\n"
    for name in ("beta", "gamma")
)

# Both fakes keep notes in the file `notes`, one JSON object a line, and log what was asked of them.
FAKE_GH = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
notes = pathlib.Path("notes")
known = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
with open("log", "a") as log: log.write(" ".join(words) + "\\n")
if "--method" in words:
    body = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
    if words[words.index("--method") + 1] == "POST":
        known.append({"id": 41 + len(known), "body": body})
    else:
        number = int(words[words.index("PATCH") + 1].rsplit("/", 1)[1])
        next(n for n in known if n["id"] == number)["body"] = body
    notes.write_text("".join(json.dumps(n) + "\\n" for n in known))
else:
    print("\\n".join(str(n["id"]) for n in known if n["body"].startswith("<!-- bundlec-diff -->")))
"""
FAKE_CURL = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
notes = pathlib.Path("notes")
known = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
with open("log", "a") as log: log.write(" ".join(words) + "\\n")
if "--request" in words:
    body = pathlib.Path(words[words.index("--data-urlencode") + 1].removeprefix("body@")).read_text()
    if words[words.index("--request") + 1] == "POST":
        known.append({"id": 41 + len(known), "body": body, "system": False})
    else:
        number = int(words[-1].rsplit("/", 1)[1])
        next(n for n in known if n["id"] == number)["body"] = body
    notes.write_text("".join(json.dumps(n) + "\\n" for n in known))
else:
    page = int(words[-1].rsplit("=", 1)[1])
    pathlib.Path(words[words.index("--dump-header") + 1]).write_text(
        "HTTP/2 200\\r\\nx-next-page: %s\\r\\n" % (page + 1 if page < len(known) else ""))
    print(json.dumps(known[page - 1 : page]))
"""


@pytest.fixture
def changed(tmp_path: Path) -> Repository:
    """A clone with a change of a value that is not committed, and `origin/main` at its base."""
    found = repository(tmp_path / "clone", {"bundlec.yaml": appended(f"  lint:\n    waivers:\n{WAIVERS}")})
    assert bundlec("build", "--all", cwd=found.workspace).status == 0
    found.commit("bundles")
    found.git("update-ref", "refs/remotes/origin/main", "HEAD")
    found.write(TAG)
    assert bundlec("build", "--all", cwd=found.workspace).status == 0
    return found


def run(script: str, where: Path, fake: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A script as a runner runs it, with a fake `gh` or `curl` in front of the others."""
    tools = where.parent / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in (("gh", FAKE_GH), ("curl", FAKE_CURL)):
        if name == fake:
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=where,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def step(name: str) -> dict[str, Any]:
    return next(s for s in GITHUB["jobs"]["review"]["steps"] if s.get("name", "").startswith(name))


def told(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines()


class TestGitHub:
    def review(self, found: Repository, base: str = "main") -> str:
        folder = found.root
        places = {name: str(folder.parent / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        Path(places["GITHUB_OUTPUT"]).write_text("")
        ran = run(step("What the pull")["run"], folder, "gh", BASE=base, **places)
        assert ran.returncode == 0, ran.stderr
        ran = run(step("Comment")["run"], folder, "gh", GH_TOKEN="t", REPO="o/r", NUMBER="7")
        assert ran.returncode == 0, ran.stderr
        return Path(places["GITHUB_OUTPUT"]).read_text()

    def test_one_comment_is_updated_in_place(self, changed: Repository):
        assert self.review(changed) == ""
        (first,) = told(changed.root)
        assert "image.tag" in first
        changed.write({"overlays/leaf.yaml": replaced('tag: "1.1"', 'tag: "1.2"')})
        self.review(changed)
        (second,) = told(changed.root)
        assert "1.2" in second
        assert (changed.root / "log").read_text().count("--method POST") == 1

    def test_what_does_not_compile_is_told_and_fails_at_the_end(self, changed: Repository):
        changed.write({"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [betta]")})
        assert self.review(changed) == "status=1\n"
        assert "does not compile" in told(changed.root)[0]

    def test_the_name_of_a_branch_is_not_run(self, changed: Repository):
        self.review(changed, EVIL)
        assert not (changed.root / "ran").exists()

    def test_no_expression_stands_in_a_script(self):
        for item in GITHUB["jobs"]["review"]["steps"]:
            assert "${{" not in item.get("run", "")

    def test_rights(self):
        assert GITHUB["permissions"] == {"contents": "read", "pull-requests": "write"}
        assert list(GITHUB[True]) == ["pull_request"]  # `on`; never pull_request_target
        assert step("Comment")["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
        with_token = [s.get("name") for s in GITHUB["jobs"]["review"]["steps"] if "GH_TOKEN" in s.get("env", {})]
        assert with_token == [step("Comment")["name"]]
        assert GITHUB["jobs"]["review"]["steps"][0]["with"]["persist-credentials"] is False


@pytest.mark.skipif(shutil.which("jq") is None, reason="the job installs jq")
class TestGitLab:
    def review(self, found: Repository, **env: str) -> subprocess.CompletedProcess[str]:
        (script,) = GITLAB["script"]
        places = {"CI_API_V4_URL": "https://git.example.org/api/v4", "CI_PROJECT_ID": "3"}
        places |= {
            "CI_MERGE_REQUEST_IID": "9",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": found.git("rev-parse", "HEAD").strip(),
        }
        return run(script, found.root, "curl", **{**places, "BUNDLEC_TOKEN": "t", **env})

    def test_one_note_is_updated_in_place_also_behind_others(self, changed: Repository):
        notes = changed.root / "notes"
        notes.write_text('{"id": 1, "body": "hello", "system": false}\n{"id": 2, "body": "x", "system": true}\n')
        assert self.review(changed).returncode == 0
        assert len(told(changed.root)) == 3
        ran = self.review(changed)
        assert ran.returncode == 0, ran.stderr
        assert len(told(changed.root)) == 3
        assert "image.tag" in told(changed.root)[2]
        assert (changed.root / "log").read_text().count("--request PUT") == 1

    def test_without_a_token_the_report_is_an_artefact_only(self, changed: Repository):
        ran = self.review(changed, BUNDLEC_TOKEN="")
        assert ran.returncode == 0, ran.stderr
        assert not (changed.root / "notes").exists()
        assert "image.tag" in (changed.root / "comment.md").read_text()

    def test_stale_bundles_fail(self, changed: Repository):
        changed.write({"overlays/leaf.yaml": replaced('tag: "1.1"', 'tag: "1.2"')})
        assert self.review(changed).returncode == 1


def test_hooks_run_commands_that_there_are():
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["bundlec-lint", "bundlec-check"]
    for hook in hooks:
        assert bundlec(*hook["entry"].split()[1:], "--help", cwd=ROOT).status == 0
        for file in ("bundlec.yaml", "overlays/gke/x.yaml", "components/a/manifests/b.yaml.j2", "mixins/c.yaml"):
            assert re.search(hook["files"], file)
        assert not re.search(hook["files"], "README.md")
