"""docs/ci: the workflows are valid, and their scripts post one comment and update it afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compiler.cli import cli

GH = r"""#!/usr/bin/env bash
# Enough of `gh api`: a list of comments in a file, one JSON object a line.
set -eu
echo "$*" >>"$STORE/calls"
method=GET body=
while [ $# -gt 0 ]; do
  case $1 in
    --method) method=$2; shift ;;
    --field) body=$(cat "${2#body=@}"); shift ;;
    --jq) query=$2; shift ;;
    repos/*) path=$1 ;;
  esac
  shift
done
case $method in
  GET) jq -s . "$STORE/comments" | jq -r "$query" ;;
  POST) [ "$path" = repos/org/repo/issues/7/comments ]
    jq -cn --arg body "$body" '{id: 42, user: {type: "Bot"}, body: $body}' >>"$STORE/comments" ;;
  PATCH) jq -c --arg body "$body" --argjson id "${path##*/}" 'if .id == $id then .body = $body else . end' "$STORE/comments" >"$STORE/new"
    mv "$STORE/new" "$STORE/comments" ;;
esac
"""

CURL = r"""#!/usr/bin/env bash
# Enough of curl for GitLab's notes, two a page.
set -eu
method=GET body= headers=/dev/null out=/dev/stdout
while [ $# -gt 0 ]; do
  case $1 in
    --request) method=$2; shift ;;
    --data-urlencode) body=$(cat "${2#body@}"); shift ;;
    --dump-header) headers=$2; shift ;;
    --output) out=$2; shift ;;
    --header) [ "$2" = "PRIVATE-TOKEN: secret" ]; shift ;;
    https://*) url=$1 ;;
  esac
  shift
done
echo "$method $url" >>"$STORE/calls"
case $method in
  GET) page=${url##*page=}
    next=$((page + 1)); [ "$(wc -l <"$STORE/comments")" -gt $((page * 2)) ] || next=
    printf 'HTTP/2 200\r\nx-next-page: %s\r\n\r\n' "$next" >"$headers"
    jq -s ".[$((page * 2 - 2)):$((page * 2))]" "$STORE/comments" >"$out" ;;
  POST) jq -cn --arg body "$body" '{id: 42, system: false, body: $body}' >>"$STORE/comments" ;;
  PUT) jq -c --arg body "$body" --argjson id "${url##*/}" 'if .id == $id then .body = $body else . end' "$STORE/comments" >"$STORE/new"
    mv "$STORE/new" "$STORE/comments" ;;
esac
"""

BUNDLEC = """#!/usr/bin/env bash
echo "bundlec $*" >>"$STORE/calls"
[ "$1" != diff ] || echo "report $(cat "$STORE/round")"
[ "$1" != diff ] || exit "${DIFF_STATUS:-0}"
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with the stand-ins in bin/ and two comments of other people."""
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    (tmp_path / "bin").mkdir()
    for name, text in (("gh", GH), ("curl", CURL), ("bundlec", BUNDLEC)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    quoted = "as the bot said: <!-- bundlec-diff -->"
    others = [
        {"id": 1, "user": {"type": "User"}, "system": False, "body": "hello"},
        {"id": 2, "user": {"type": "User"}, "system": False, "body": quoted},
    ]
    (tmp_path / "comments").write_text("".join(json.dumps(one) + "\n" for one in others))
    return tmp_path


def run(script: str, store: Path, round_: int, **env: str) -> int:
    (store / "round").write_text(str(round_))
    base = {"PATH": f"{store}/bin:/usr/bin:/bin", "STORE": str(store), "HOME": str(store)}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], check=False, cwd=store, env={**base, **env}
    ).returncode


def mine(store: Path) -> list[dict[str, Any]]:
    comments = [json.loads(line) for line in (store / "comments").read_text().splitlines()]
    assert [one["id"] for one in comments[:2]] == [1, 2]
    assert comments[0]["body"] == "hello"
    return comments[2:]


def steps(root: Path) -> dict[str, dict[str, Any]]:
    data = yaml.safe_load((root / "docs/ci/github.yml").read_text())
    return {step["name"]: step for step in data["jobs"]["review"]["steps"] if "name" in step}


def test_github_posts_once_and_updates(root: Path, store: Path):
    found = steps(root)
    env = {"REPO": "org/repo", "NUMBER": "7", "BASE": "main", "GH_TOKEN": "x"}
    env |= {"GITHUB_OUTPUT": f"{store}/output", "GITHUB_STEP_SUMMARY": f"{store}/summary"}
    for round_ in (1, 2):
        assert run(found["What the pull request changes"]["run"], store, round_, **env) == 0
        assert run(found["Comment, updated in place"]["run"], store, round_, **env) == 0
        assert [one["body"] for one in mine(store)] == [f"<!-- bundlec-diff -->\nreport {round_}"]
    assert (store / "summary").read_text().count("report") == 2
    assert not (store / "output").exists()
    assert "bundlec diff --all --base origin/main --format md" in (store / "calls").read_text()


def test_github_tells_of_sources_that_do_not_compile(root: Path, store: Path):
    step = steps(root)["What the pull request changes"]["run"]
    env = {"BASE": "main", "GITHUB_OUTPUT": f"{store}/output", "GITHUB_STEP_SUMMARY": f"{store}/summary"}
    assert run(step, store, 1, DIFF_STATUS="1", **env) == 0
    assert (store / "output").read_text() == "status=1\n"
    assert (store / "comment.md").read_text() == "<!-- bundlec-diff -->\nreport 1\n"


def test_gitlab_posts_once_and_updates(root: Path, store: Path):
    job = yaml.safe_load((root / "docs/ci/gitlab.yml").read_text())["bundlec"]
    (script,) = job["script"]
    env = {"CI_API_V4_URL": "https://gitlab.example.com/api/v4", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "9"}
    env |= {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc", "BUNDLEC_TOKEN": "secret"}
    for round_ in (1, 2):
        assert run(script, store, round_, **env) == 0
        assert [one["body"] for one in mine(store)] == [f"<!-- bundlec-diff -->\nreport {round_}"]
    calls = (store / "calls").read_text()
    assert "PUT https://gitlab.example.com/api/v4/projects/3/merge_requests/9/notes/42" in calls
    assert "notes?per_page=100&page=2" in calls
    assert run(script, store, 3, DIFF_STATUS="1", **env) == 1
    assert [one["body"] for one in mine(store)] == ["<!-- bundlec-diff -->\nreport 3"]


def test_gitlab_without_a_token_still_reports(root: Path, store: Path):
    (script,) = yaml.safe_load((root / "docs/ci/gitlab.yml").read_text())["bundlec"]["script"]
    assert run(script, store, 1, CI_MERGE_REQUEST_DIFF_BASE_SHA="abc") == 0
    assert mine(store) == []
    assert "report 1" in (store / "comment.md").read_text()


def test_actionlint_has_nothing_to_say(root: Path):
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("no actionlint on PATH")
    ran = subprocess.run([program, str(root / "docs/ci/github.yml")], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def commands(root: Path) -> list[str]:
    text = "".join(
        (root / name).read_text() for name in (".pre-commit-hooks.yaml", "docs/ci/github.yml", "docs/ci/gitlab.yml")
    )
    words = text.replace("entry: ", "").replace("run: ", "").splitlines()
    return [line.strip().partition("#")[0] for line in words if line.strip().startswith("bundlec ")]


def test_the_commands_and_options_exist(root: Path):
    found = commands(root)
    assert len(found) >= 4
    for line in found:
        name, *options = line.partition(" || ")[0].split()[1:]
        known = {o for p in cli.commands[name].params for o in p.opts}
        assert {o for o in options if o.startswith("--")} <= known, line


def test_the_hooks_of_pre_commit(root: Path):
    hooks = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["bundlec-lint", "bundlec-check"]
    assert {key for hook in hooks for key in hook} == {
        "id",
        "name",
        "description",
        "entry",
        "language",
        "pass_filenames",
        "require_serial",
        "files",
    }
