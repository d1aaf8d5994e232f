"""The same sources give the same bytes, wherever and however often they are compiled (case 47)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bundles.bundle import Bundle
from tests.bundles.cli import ROOT, Bundlec
from tests.support.trees import contents


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_no_hash_seed_shows(
    bundles: list[Bundle], bundlec: Bundlec, seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    assert bundlec("-C", ROOT, "build", "--all", "--out", tmp_path).status == 0
    for bundle in bundles:
        assert contents(tmp_path / bundle.name) == bundle.files


def test_no_place_and_no_order_of_files_shows(
    bundles: list[Bundle], bundlec: Bundlec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a copy whose files were made in reverse order, in another language and another time zone."""
    for name in ("mixins", "components", "overlays"):
        for path in sorted((ROOT / name).rglob("*"), reverse=True):
            if path.is_file():
                copy = tmp_path / "a b" / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    shutil.copyfile(ROOT / "bundlec.yaml", tmp_path / "a b" / "bundlec.yaml")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert bundlec("-C", tmp_path / "a b", "build", "--all").status == 0
    for bundle in bundles:
        assert contents(tmp_path / "a b" / "out" / bundle.name) == bundle.files


def test_a_second_build_changes_nothing(bundle: Bundle, bundlec: Bundlec) -> None:
    before = {path: path.stat().st_mtime_ns for path in bundle.folder.rglob("*") if path.is_file()}
    done = bundlec("-C", ROOT, "build", bundle.name, "--out", bundle.folder.parent)
    assert done.status == 0
    assert f"nothing changed ({len(before)} unchanged)" in done.out
    assert {path: path.stat().st_mtime_ns for path in bundle.folder.rglob("*") if path.is_file()} == before
    assert bundlec("-C", ROOT, "build", bundle.name, "--out", bundle.folder.parent, "--check").status == 0


def test_files_end_with_a_newline_and_hold_no_carriage_return(bundle: Bundle) -> None:
    for path, content in bundle.files.items():
        assert content.endswith(b"\n"), path
        assert b"\r" not in content, path
        assert b"\t" not in content or not path.endswith(".yaml"), path
