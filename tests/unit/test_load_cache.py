"""The parse cache: same result with it, without it and with a broken one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler import yamlio
from compiler.load import load
from compiler.load.cache import Cache, digest
from compiler.model import Catalog
from compiler.source import Document, walk
from tests.support.catalogs import component, findings, overlay, shown, tree, write_tree

FILE = ".bundlec/cache/sources.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "overlays/leaf.yaml": overlay(
            "leaf", "componentRefs: [{name: alpha, overrides: {a: 1.50, b: , c: [x, {d: e}]}}]"
        ),
        "components/alpha/component.yaml": component("alpha", "manifests: {main: [m.yaml]}\nchecks: {a: {crd: x}}"),
        "components/alpha/values.yaml": "a: 1\ntext: |\n  ä\n  b\n",
        "components/alpha/m.yaml": "kind: A\n---\nkind: B\n",
    }
    return write_tree(tmp_path, tree(**files))


def places(catalog: Catalog) -> dict[str, list[str]]:
    """Every node of every document with its position."""
    documents: list[Document] = [c.origin.document for c in catalog.components.values()]
    documents += [o.origin.document for o in catalog.overlays.values()]
    documents += [c.values for c in catalog.components.values() if c.values]
    for one in catalog.components.values():
        for source in one.manifest_sources.values():
            documents += source.documents or ()
    return {
        f"{d.file}#{n}": [f"{d.span(p)} {d.span(p, key=True)}" for p in walk(d.data)] for n, d in enumerate(documents)
    }


def test_a_second_load_gives_the_same(root: Path) -> None:
    first = load(root)
    written = (root / FILE).read_bytes()
    second = load(root)
    assert first == second
    assert places(first) == places(second)
    assert [str(w.span) for w in second.warnings] == ["overlays/leaf.yaml:6:57"]
    assert (root / FILE).read_bytes() == written


def test_the_second_load_neither_parses_nor_validates(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(root)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(yamlio, "load", fail)
    monkeypatch.setattr(yamlio, "load_all", fail)
    monkeypatch.setattr("compiler.load.schema.Schemas._validator", fail)
    load(root)


def test_a_changed_file_is_read_again(root: Path) -> None:
    load(root)
    (root / "components/alpha/values.yaml").write_text("a: 2\n")
    values = load(root).components["alpha"].values
    assert values is not None
    assert values.data == {"a": 2}


def test_a_file_that_went_away_leaves_the_cache(root: Path) -> None:
    load(root)
    (root / "components/alpha/values.yaml").unlink()
    load(root)
    assert "components/alpha/values.yaml" not in json.loads((root / FILE).read_bytes().partition(b"\n")[2])


def test_faults_are_found_again(tmp_path: Path) -> None:
    files = tree(**{"overlays/leaf.yaml": overlay("leaf", "nonsense: 1")})
    first = shown(findings(tmp_path, files))
    assert shown(findings(tmp_path, files)) == first
    assert "overlays/leaf.yaml" not in json.loads((tmp_path / FILE).read_bytes().partition(b"\n")[2])


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n{}", b"null\n", b"\xff\xfe\n", b"[" * 100_000])
def test_a_damaged_cache_is_ignored(root: Path, content: bytes) -> None:
    expected = load(root)
    written = (root / FILE).read_bytes()
    (root / FILE).write_bytes(content)
    assert load(root) == expected
    assert (root / FILE).read_bytes() == written


def test_one_flipped_digit_drops_the_cache(root: Path) -> None:
    expected = load(root)
    written = (root / FILE).read_bytes()
    assert written.count(b"1.5") == 1
    (root / FILE).write_bytes(written.replace(b"1.5", b"1.6"))
    assert load(root) == expected


def test_a_cache_that_cannot_be_written_is_no_error(root: Path) -> None:
    (root / ".bundlec").write_text("in the way")
    assert load(root).components["alpha"].values is not None


def test_the_cache_tells_git_to_ignore_it(root: Path) -> None:
    load(root)
    assert (root / ".bundlec" / ".gitignore").read_text() == "*\n"
    assert [p.name for p in (root / ".bundlec" / "cache").iterdir()] == ["sources.json"]


def test_another_salt_drops_everything(tmp_path: Path) -> None:
    document = Document("f.yaml", {"a": [1, "ä", None, 1.5, True]}, (1, 1, 1, 1) * 6, "text")
    key = digest(b"text")
    cache = Cache(tmp_path / "c", "one")
    cache.put("f.yaml", key, (document,))
    cache.save()
    (read,) = Cache(tmp_path / "c", "one").get("f.yaml", key, "text") or ()
    assert read == document
    assert list(read.marks) == list(document.marks)
    assert Cache(tmp_path / "c", "one").get("f.yaml", digest(b"other"), "text") is None
    assert Cache(tmp_path / "c", "two").get("f.yaml", key, "text") is None
