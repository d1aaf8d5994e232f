"""Two branches that both change `base` merge without hand work: Git, then `make regenerate`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.errors import BundlecError
from tests.support.repositories import Repository
from tests.support.scratch import appended, bundlec, replaced

NEW = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: b}\n"


def regenerate(root: Path, repository: Repository) -> None:
    """What the target `regenerate` of the Makefile does, with this process's compiler."""
    recipe = re.search(r"^regenerate:.*\n((?:\t.*\n)+)", (root / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    build, catalog, stage = (line.strip() for line in recipe[1].splitlines())
    assert catalog.startswith("@test ! -f docs/catalog.md || ")  # not in these repositories
    assert build == "@$(BIN)/bundlec build --all"
    ran = bundlec("build", "--all", cwd=repository.workspace)
    assert ran.status == 0, ran.err
    assert stage == '@test -z "$$(git ls-files --unmerged -- out 2>/dev/null)" || git add --all -- out'
    if repository.git("ls-files", "--unmerged", "--", "out"):
        repository.git("add", "--all", "--", "out")


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write()
    (made.root / ".gitattributes").write_text((root / ".gitattributes").read_text())
    (made.root / ".gitignore").write_text("/.bundlec/\n")
    built(made, "the bundle")
    return made


def built(repository: Repository, message: str) -> None:
    assert bundlec("build", "--all", cwd=repository.workspace).status == 0
    repository.commit(message)


def test_two_changes_of_base_merge(root: Path, repository: Repository):
    repository.git("switch", "--quiet", "--create", "one")
    repository.write({"overlays/base.yaml": appended("      overrides: {replicas: 5}\n")})
    built(repository, "a value")
    repository.git("switch", "--quiet", "main")
    repository.write(
        {
            "overlays/base.yaml": replaced("spec:\n", "spec:\n  knownGaps: [nobody watches it]\n"),
            "components/alpha/values.yaml": appended("other: 1\n"),
            "components/beta/component.yaml": replaced("main: [", "main: [manifests/extra.yaml, "),
            "components/beta/manifests/extra.yaml": NEW,
        }
    )
    built(repository, "a value, a file and a manifest")
    with pytest.raises(BundlecError):
        repository.git("merge", "--quiet", "one")
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").split()
    assert conflicts
    assert all(name.startswith("out/") for name in conflicts), "the sources merge by themselves"
    assert "out/demo/checksums.txt" not in conflicts
    assert "<<<<<<<" not in (repository.root / conflicts[0]).read_text()
    regenerate(root, repository)
    assert repository.git("diff", "--name-only", "--diff-filter=U") == ""
    repository.git("commit", "--quiet", "--no-edit")
    assert repository.git("status", "--porcelain") == ""
    assert bundlec("build", "--all", "--check", cwd=repository.workspace).status == 0
    values = (repository.root / "out/demo/components/alpha/values.yaml").read_text()
    assert "replicas: 5" in values
    assert "other: 1" in values


def test_without_a_merge_nothing_is_staged(root: Path, repository: Repository):
    repository.write({"components/alpha/values.yaml": appended("other: 1\n")})
    regenerate(root, repository)
    assert repository.git("diff", "--cached", "--name-only") == ""
    assert "out/demo/components/alpha/values.yaml" in repository.git("diff", "--name-only")


def test_compiled_files_are_marked(root: Path):
    told = (root / ".gitattributes").read_text()
    assert "out/** linguist-generated" in told
