"""Where the two sides come from: any clone, any revision, and nothing in it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repositories import Repository, repository
from tests.support.scratch import API, FILES, bundlec, replaced, state

BROKEN = {"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [betta]")}
TAG = {"overlays/leaf.yaml": replaced('tag: "1.0"', 'tag: "1.1"')}


def values(report: dict) -> list[str]:
    return [e["path"] for b in report["bundles"] for c in b["components"] for e in c["values"]]


def test_uncommitted_staged_and_untracked_files_are_on_the_head_side(tmp_path: Path):
    found = repository(tmp_path)
    found.write({**TAG, "overlays/extra.yaml": API + EXTRA})
    found.git("add", "overlays/leaf.yaml")
    report = found.json()
    assert values(report) == ["image.tag", "greeting"]
    assert report["bundles"][0]["components"][1]["values"][0]["at"]["file"] == "overlays/extra.yaml"
    assert values(found.json("--head", "HEAD")) == []


EXTRA = """\
kind: Overlay
metadata: {name: extra}
spec:
  base: base
  abstract: true
  match: true
  criteria: {accelerator: gb200}
  componentRefs:
    - {name: beta, overrides: {greeting: good day}}
"""


def test_nothing_in_the_clone_is_touched(tmp_path: Path):
    found = repository(tmp_path)
    found.write(TAG)
    found.diff()  # it may fill the cache of parsed files
    before = state(tmp_path)
    assert found.diff("--exit-code").status == 4
    after = state(tmp_path)
    assert {k for k in before if before[k] != after.get(k) and ".bundlec" not in k} == set()
    assert before.keys() == after.keys()


def test_it_is_compared_with_the_merge_base_not_with_what_others_did_since(tmp_path: Path):
    found = repository(tmp_path)
    found.git("checkout", "--quiet", "-b", "topic")
    found.write(TAG)
    found.commit("topic")
    found.git("checkout", "--quiet", "main")
    (found.workspace / "components/beta/values.yaml").write_text("greeting: changed on main\n")
    found.commit("main moves on")
    found.git("checkout", "--quiet", "topic")
    assert values(found.json()) == ["image.tag"]
    assert "the merge base with main" in found.json()["base"]["label"]
    assert values(found.json("--base", "main", "--exact")) == ["image.tag", "greeting"]


def test_two_revisions(tmp_path: Path):
    found = repository(tmp_path)
    first = found.git("rev-parse", "HEAD").strip()
    found.write(TAG)
    second = found.commit("tag")
    (found.workspace / "overlays/leaf.yaml").write_text("broken: [")
    assert values(found.json("--base", first, "--head", second)) == ["image.tag"]


@pytest.mark.parametrize("folder", ["", "deploy/gpu clusters"])
def test_paths_with_blanks_and_a_workspace_below_the_top(tmp_path: Path, folder: str):
    found = repository(tmp_path / "with blanks and ümlauts", folder=folder)
    found.write(TAG)
    assert values(found.json()) == ["image.tag"]


def test_a_linked_work_tree(tmp_path: Path):
    found = repository(tmp_path / "main")
    found.git("worktree", "add", "--quiet", "-b", "topic", tmp_path / "linked")
    leaf = tmp_path / "linked/overlays/leaf.yaml"
    leaf.write_text(leaf.read_text().replace('tag: "1.0"', 'tag: "1.1"'))
    ran = bundlec("diff", cwd=tmp_path / "linked")
    assert 'image.tag: "1.0" -> "1.1"' in ran.out


class TestShallow:
    @pytest.fixture
    def shallow(self, tmp_path: Path) -> Repository:
        origin = repository(tmp_path / "origin")
        origin.write(TAG)
        origin.commit("tag")
        origin.git("clone", "--quiet", "--depth", "1", f"file://{origin.root}", tmp_path / "shallow")
        found = Repository.__new__(Repository)
        found.root = found.workspace = tmp_path / "shallow"
        found.files = dict(origin.files)
        return found

    def test_the_work_tree_against_the_only_commit(self, shallow: Repository):
        shallow.write({"components/beta/values.yaml": "greeting: hi\n"})
        assert values(shallow.json()) == ["greeting"]

    def test_a_revision_that_is_not_there(self, shallow: Repository):
        ran = shallow.diff("--base", "HEAD~1")
        assert ran.status == 1
        assert "[BC6005] there is no revision `HEAD~1`" in ran.err
        assert "git fetch --unshallow" in ran.err

    def test_without_a_merge_base_the_revision_itself_and_that_is_told(self, shallow: Repository):
        shallow.git("fetch", "--quiet", "--depth", "1", "origin", "HEAD")
        shallow.git("checkout", "--quiet", "--orphan", "alone")
        shallow.commit("no history")
        report = shallow.json("--base", "origin/main")
        assert "no merge base (this clone is shallow" in report["notes"][0]
        assert not report["differs"]


def test_a_repository_without_a_commit(tmp_path: Path):
    found = Repository(tmp_path)
    found.write()
    ran = found.diff()
    assert (ran.status, ran.out) == (1, "")
    assert "[BC6005] the repository has no commit yet" in ran.err


def test_no_repository(tmp_path: Path):
    found = Repository(tmp_path / "a")
    found.write()
    (tmp_path / "a/.git").rename(tmp_path / "gone")
    ran = found.diff()
    assert ran.status == 1
    assert "lies in no Git repository" in ran.err
    assert "bundlec diff OLD NEW" in ran.err


def test_a_base_without_a_workspace(tmp_path: Path):
    found = Repository(tmp_path)
    (tmp_path / "README").write_text("empty")
    found.commit("no catalog yet")
    found.write()
    ran = found.diff()
    assert ran.status == 1
    assert "has no bundlec.yaml" in ran.err


def test_no_git(tmp_path: Path):
    found = repository(tmp_path / "a")
    ran = bundlec("diff", cwd=found.workspace, PATH=str(tmp_path))
    assert ran.status == 1
    assert "no program `git`" in ran.err


def test_a_name_that_neither_side_knows(tmp_path: Path):
    ran = repository(tmp_path).diff("demmo")
    assert ran.status == 1
    assert "[BC2001] `demmo`" in ran.err


def test_names_choose_bundles_and_recipes(tmp_path: Path):
    found = repository(tmp_path)
    found.write(TAG)
    assert [b["name"] for b in found.json("leaf")["bundles"]] == ["leaf"]
    assert [b["name"] for b in found.json("demo")["bundles"]] == ["demo"]


def test_further_roots_and_links_are_read_from_the_revision(tmp_path: Path):
    found = Repository(tmp_path, "clusters")
    (tmp_path / "shared/mixins").mkdir(parents=True)
    (tmp_path / "shared/mixins/tuned.yaml").write_text(FILES["mixins/tuned.yaml"])
    found.write({"bundlec.yaml": replaced("spec:\n", "spec:\n  data: [../shared]\n")})
    (found.workspace / "mixins/tuned.yaml").unlink()
    (found.workspace / "mixins/extra.yaml").unlink()
    (tmp_path / "kept.yaml").write_text(FILES["mixins/extra.yaml"])
    (found.workspace / "mixins/extra.yaml").symlink_to("../../kept.yaml")
    found.commit("base")
    (tmp_path / "shared/mixins/tuned.yaml").write_text(FILES["mixins/tuned.yaml"].replace("ubuntu", "cos"))
    (tmp_path / "kept.yaml").write_text(FILES["mixins/extra.yaml"].replace("1.34", "1.35"))
    report = found.json()
    assert report["base"]["diagnostics"] == []
    changed = {e["path"] for b in report["bundles"] for e in b["fields"] if e["path"].startswith("constraints")}
    assert changed == {"constraints[name=OS.release.ID].value", "constraints[name=K8s.server.version].value"}


class TestBroken:
    """A side that does not compile is told with its findings, and never as bundles that went."""

    def test_the_base(self, tmp_path: Path):
        found = repository(tmp_path, BROKEN)
        found.write({"overlays/leaf.yaml": FILES["overlays/leaf.yaml"]})
        report = found.json()
        assert [d["code"] for d in report["base"]["diagnostics"]] == ["BC1204"]
        assert report["bundles"] == []
        assert report["differs"]
        assert found.diff().status == 0
        assert found.diff("--exit-code").status == 4

    def test_one_bundle_of_several_on_the_head(self, tmp_path: Path):
        second = "    - {name: second, recipe: leaf, disable: [{component: gamma, reason: not here}]}\n"
        found = repository(tmp_path, {"bundlec.yaml": lambda text: text + second})
        found.write({"bundlec.yaml": replaced("component: gamma", "component: gama"), **TAG})
        report = found.json()
        assert {b["name"]: b["status"] for b in report["bundles"]} == {"demo": "changed", "second": "broken"}
        broken = next(b for b in report["bundles"] if b["status"] == "broken")
        assert [d["code"] for d in broken["diagnostics"]["head"]] == ["BC2006"]
        assert broken["risks"] == broken["components"] == []
        ran = found.diff()
        assert ran.status == 1
        assert ran.out.startswith("second does not compile; 1 of 2 bundles changes")
        assert "bundlec.yaml:8:" in ran.out


class TestFolders:
    def built(self, tmp_path: Path) -> tuple[Path, Path]:
        found = repository(tmp_path / "r")
        for name, change in (("old", {}), ("new", TAG)):
            found.write(change)
            assert bundlec("build", "--all", "--out", tmp_path / name, cwd=found.workspace).status == 0
        return tmp_path / "old/demo", tmp_path / "new/demo"

    def test_two_emitted_bundles_need_neither_sources_nor_git(self, tmp_path: Path):
        old, new = self.built(tmp_path)
        ran = bundlec("diff", old, new, "--exit-code", cwd=tmp_path)
        assert ran.status == 4
        assert 'image.tag: "1.0" -> "1.1"' in ran.out
        assert bundlec("diff", old, old, "--exit-code", cwd=tmp_path).status == 0

    def test_an_edit_by_hand_shows(self, tmp_path: Path):
        old, new = self.built(tmp_path)
        edited = new / "argocd/apps/gamma.yaml"
        edited.write_text(edited.read_text().replace("selfHeal: true", "selfHeal: false"))
        ran = bundlec("diff", old, new, cwd=tmp_path)
        assert "changed: argocd/apps/gamma.yaml (+1 -1)" in ran.out
        assert "+      selfHeal: false" in ran.out

    @pytest.mark.parametrize(
        ("file", "content", "told"),
        [
            ("recipe.yaml", b": [\n", "recipe.yaml:1:1: [BC1001]"),
            (
                "components/alpha/values.yaml",
                b"\xff\xfe\x00",
                "components/alpha/values.yaml:1:1: [BC6004] the file is no text",
            ),
            (
                "components/beta/manifests/more.yaml",
                b"a: 1\n",
                "more.yaml:1:1: [BC6004] the file holds something that is no",
            ),
            ("bundle.yaml", b"a: 1\n", "bundle.yaml is not of kind Bundle"),
        ],
    )
    def test_a_file_that_is_damaged_is_named_with_its_folder(
        self, tmp_path: Path, file: str, content: bytes, told: str
    ):
        old, new = self.built(tmp_path)
        (new / file).write_bytes(content)
        ran = bundlec("diff", old, new, cwd=tmp_path)
        assert ran.status == 1
        assert told in ran.err
        assert f"new/demo/{file}" in ran.err or file == "bundle.yaml"

    def test_options_of_revisions_do_not_fit(self, tmp_path: Path):
        old, new = self.built(tmp_path)
        assert bundlec("diff", old, new, "--base", "main", cwd=tmp_path).status == 2
