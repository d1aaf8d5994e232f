"""A build that would change nothing is told without compiling, and only then."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler import pipeline
from tests.support.scratch import Ran, bundlec, state, write_catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    root = write_catalog(tmp_path / "catalog")
    assert bundlec("build", "--all", cwd=root).status == 0
    return root


def again(root: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Ran, bool]:
    """Build once more: how it ended, and whether anything was compiled."""
    compiled: list[str] = []
    real = pipeline.compile_bundle

    def counted(*given: object) -> object:
        compiled.append("one")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "compile_bundle", counted)
    ran = bundlec("build", *(arguments or ("--all",)), cwd=root)
    return ran, bool(compiled)


def test_nothing_changed(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    before = state(catalog / "out")
    ran, compiled = again(catalog, monkeypatch)
    assert not compiled
    assert ran.status == 0
    assert "nothing changed" in ran.out
    assert state(catalog / "out") == before


def test_it_says_what_a_compilation_would_say(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    remembered, compiled = again(catalog, monkeypatch)
    assert not compiled
    (catalog / ".bundlec" / "builds.json").unlink()
    assert again(catalog, monkeypatch) == (remembered, True)


def test_what_lies_beside_the_bundles_is_told_as_a_compilation_would(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    stranger = catalog / "out" / "old"
    stranger.mkdir()
    ran, _ = again(catalog, monkeypatch)
    assert f"note: {stranger.relative_to(catalog)} is no bundle that bundlec.yaml lists" in ran.err
    assert again(catalog, monkeypatch) == (ran, False)
    stranger.rmdir()
    ran, _ = again(catalog, monkeypatch)
    assert "is no bundle" not in ran.err
    assert again(catalog, monkeypatch) == (ran, False)


def test_any_source_counts(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    source = min((catalog / "components").rglob("*.yaml"))
    source.write_text(source.read_text() + "# a comment\n")
    assert again(catalog, monkeypatch)[1]


@pytest.mark.parametrize("edit", ["change", "add", "remove"])
def test_what_is_edited_during_a_build_is_not_taken_for_built(
    catalog: Path, monkeypatch: pytest.MonkeyPatch, edit: str
):
    source = min((catalog / "components").rglob("values.yaml"))
    spare = source.with_name("spare.yaml")
    if edit == "remove":
        spare.write_text("{}")
    (catalog / ".bundlec" / "builds.json").unlink()
    real = pipeline.compile_bundle

    def edited(*given: object) -> object:
        if edit == "change":
            source.write_text(source.read_text() + "\nadded: while it was built\n")
        elif edit == "add":
            spare.write_text("{}")
        else:
            spare.unlink()
        return real(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "compile_bundle", edited)
        assert bundlec("build", "--all", cwd=catalog).status == 0
    assert again(catalog, monkeypatch)[1]
    assert not again(catalog, monkeypatch)[1]


def test_folders_that_bundlec_yaml_names_count_too(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    (catalog / "more" / "mixins").mkdir(parents=True)
    workspace = catalog / "bundlec.yaml"
    workspace.write_text(workspace.read_text().replace("spec:\n", "spec:\n  data: [more]\n", 1))
    assert [again(catalog, monkeypatch)[1] for _ in range(3)] == [True, True, False]
    (catalog / "more" / "mixins" / "note.txt").write_text("a file of a source folder")
    assert [again(catalog, monkeypatch)[1] for _ in range(2)] == [True, False]


def test_a_pipe_among_the_sources_is_not_waited_for(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    source = min(p for p in (catalog / "components").rglob("*.yaml*") if p.parent.name == "manifests")
    source.unlink()
    os.mkfifo(source)
    monkeypatch.setattr(Path, "read_bytes", refusing_pipes(Path.read_bytes))
    ran, _ = again(catalog, monkeypatch)
    assert ran.status == 1
    assert f"{source.relative_to(catalog)}:1:1" in ran.err
    assert "BC1006" in ran.err


def refusing_pipes(read: Callable[[Path], bytes]) -> Callable[[Path], bytes]:
    """`Path.read_bytes` that fails at once where it would wait for ever."""

    def refusing(path: Path) -> bytes:
        assert not path.is_fifo(), path
        return read(path)

    return refusing


def test_other_options_are_another_build(catalog: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert again(catalog, monkeypatch, "--all", "--out", str(tmp_path / "elsewhere"))[1]
    assert not again(catalog, monkeypatch)[1]


def test_an_edited_file_is_written_again(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    target = min((catalog / "out").rglob("README.md"))
    old = target.read_bytes()
    target.write_bytes(old + b"edited\n")
    ran, compiled = again(catalog, monkeypatch)
    assert compiled
    assert "edited by hand" in ran.out
    assert target.read_bytes() == old


def test_a_foreign_file_is_refused_still(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    bundle = min((catalog / "out").iterdir())
    (bundle / "mine.txt").write_text("x")
    ran, compiled = again(catalog, monkeypatch)
    assert compiled
    assert ran.status == 1
    assert "BC5001" in ran.err


def test_a_lost_executable_bit_is_restored(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    script = min((catalog / "out").rglob("deploy.sh"))
    script.chmod(0o644)
    assert again(catalog, monkeypatch)[1]
    assert script.stat().st_mode & 0o100


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}', "\x00"])
def test_a_spoilt_memory_is_none(catalog: Path, monkeypatch: pytest.MonkeyPatch, content: str):
    (catalog / ".bundlec" / "builds.json").write_text(content)
    ran, compiled = again(catalog, monkeypatch)
    assert compiled
    assert ran.status == 0


def test_entries_of_another_form_are_passed_over(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    memory = catalog / ".bundlec" / "builds.json"
    kept = json.loads(memory.read_text())
    memory.write_text(json.dumps({key: {"digest": 1} for key in kept}))
    assert again(catalog, monkeypatch)[1]


def test_check_always_compiles(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    assert again(catalog, monkeypatch, "--all", "--check")[1]
