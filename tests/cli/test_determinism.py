"""The same sources give the same bytes: on every machine, in every order of files, however often; and a change that
changes nothing on the cluster changes nothing in out/.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from compiler.yamlio import dump_all, load_all
from tests.support.scratch import bundlec, state, tree, write_catalog

SOURCES = ("overlays", "mixins", "components")
SOME = ("gb200-gke-cos-training-bundle-installer", "gb200-nvke-ubuntu-training")


def copy_sources(root: Path, to: Path) -> Path:
    """The project's own sources without its cache and its out/."""
    for folder in SOURCES:
        shutil.copytree(root / folder, to / folder)
    shutil.copy(root / "bundlec.yaml", to)
    return to


@pytest.fixture(scope="module")
def sources(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_sources(root, tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def expected(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every bundle of the project, four deployers."""
    out = tmp_path_factory.mktemp("expected")
    assert bundlec("build", "--all", "--out", out, cwd=sources).status == 0
    return tree(out)


def build(
    root: Path, out: Path, *options: str, cwd: Path | None = None, umask: int = -1, **env: str
) -> dict[str, bytes]:
    """What a process of its own builds."""
    project = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "compiler.cli", *options, "build", *SOME, "--out", str(out)],
        cwd=cwd or root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": project, **env},
        umask=umask,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return tree(out)


# ---------------------------------------------------------------------------------------------------------------------
# Another process, machine, order of files


@pytest.fixture(scope="module")
def some(expected: dict[str, bytes]) -> dict[str, bytes]:
    """Two of the bundles, for what needs a process of its own."""
    return {name: data for name, data in expected.items() if name.partition("/")[0] in SOME}


@pytest.mark.parametrize(
    ("seed", "locale", "umask"),
    [
        ("0", "C", 0o000),
        ("1", "C.UTF-8", 0o077),
        ("4294967295", "tr_TR.UTF-8", 0o022),
        ("random", "de_DE.UTF-8", 0o027),
    ],
)
def test_case_47_seed_locale_time_zone_umask(
    sources: Path, tmp_path: Path, some: dict[str, bytes], seed: str, locale: str, umask: int
):
    """A locale that is not installed is the C locale to the C library; Python's own tables do not depend on it."""
    out = tmp_path / "out"
    env = {"PYTHONHASHSEED": seed, "LC_ALL": locale, "LANG": locale, "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0"}
    assert build(sources, out, umask=umask, **env) == some
    assert {path.stat().st_mode & 0o777 for path in out.glob("*/**/*") if path.is_file()} == {0o644, 0o755}


def test_another_folder_to_work_in(sources: Path, tmp_path: Path, some: dict[str, bytes]):
    assert build(sources, tmp_path / "out", "-C", str(sources), cwd=Path("/")) == some


def test_case_47_files_created_in_another_order(sources: Path, tmp_path: Path, some: dict[str, bytes]):
    copy = tmp_path / "elsewhere with a longer name"
    for path in sorted((p for p in sources.rglob("*") if p.is_file()), reverse=True):
        if ".bundlec" in path.parts:
            continue
        target = copy / path.relative_to(sources)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    assert build(copy, tmp_path / "out") == some


@pytest.mark.parametrize("shuffle", [lambda entries: entries[::-1], lambda entries: entries[1::2] + entries[::2]])
def test_case_47_a_file_system_that_lists_in_another_order(
    sources: Path,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    shuffle: Callable[[list[Any]], list[Any]],
):
    scandir, listdir = os.scandir, os.listdir

    class Shuffled:
        def __init__(self, path: Any) -> None:
            with scandir(path) as entries:
                self.entries = shuffle(sorted(entries, key=lambda e: e.name))

        def __iter__(self) -> Any:
            return iter(self.entries)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Shuffled)
    monkeypatch.setattr(os, "listdir", lambda path=".": shuffle(sorted(listdir(path))))
    assert bundlec("build", "--all", "--out", tmp_path / "out", cwd=sources).status == 0
    monkeypatch.undo()
    assert tree(tmp_path / "out") == expected


def test_without_the_cache_and_with_a_damaged_one(sources: Path, tmp_path: Path, some: dict[str, bytes]):
    for damage in (None, b"{", b'[["x"], {}]'):
        shutil.rmtree(sources / ".bundlec", ignore_errors=True)
        if damage is not None:
            (sources / ".bundlec/cache").mkdir(parents=True)
            (sources / ".bundlec/cache/sources.json").write_bytes(damage)
        out = tmp_path / f"out-{damage!r}"
        assert bundlec("build", *SOME, "--out", out, cwd=sources).status == 0
        assert tree(out) == some


# ---------------------------------------------------------------------------------------------------------------------
# Again


def test_a_second_build_touches_nothing(sources: Path, tmp_path: Path):
    out = tmp_path / "out"
    bundlec("build", "--all", "--out", out, cwd=sources)
    before = state(out)
    ran = bundlec("build", "--all", "--out", out, cwd=sources)
    assert ran.out.count("nothing changed") == len(list(out.iterdir())) > 1
    assert state(out) == before


def test_unchanged_files_keep_their_time(tmp_path: Path):
    root = write_catalog(tmp_path)
    bundlec("build", "--all", cwd=root)
    before = state(root / "out")
    time.sleep(0.01)
    write_catalog(root, {"components/beta/values.yaml": "greeting: good day\n"})
    bundlec("build", "--all", cwd=root)
    after = state(root / "out")
    changed = {name for name in before if before[name][3] != after[name][3]}
    assert "demo/components/beta/manifests/configmap-settings.yaml" in changed
    assert "demo/components/beta/manifests/widget-one.yaml" not in changed
    for name in before.keys() - changed:
        if before[name][3] is not None:  # folders may be new ones
            assert before[name] == after[name], name


# ---------------------------------------------------------------------------------------------------------------------
# What changes nothing on the cluster


def commented(path: Path, text: str) -> str:
    """A comment and an empty line in front of everything and behind each line that ends a mapping key."""
    if path.suffix == ".j2":
        return "{# a comment #}\n# another\n\n" + text
    lines = text.splitlines(keepends=True)
    return "# a comment\n\n" + "".join(lines[:1]) + "\n# another\n" + "".join(lines[1:])


def test_a_comment_in_every_source(root: Path, tmp_path: Path, expected: dict[str, bytes]):
    copy = copy_sources(root, tmp_path / "copy")
    touched = 0
    for path in sorted(copy.rglob("*")):
        if path.is_file() and path.suffix in {".yaml", ".j2"} and "examples" not in path.parts:
            path.write_text(commented(path, path.read_text()))
            touched += 1
    assert touched > 60
    assert bundlec("build", "--all", "--out", tmp_path / "out", cwd=copy).status == 0
    assert tree(tmp_path / "out") == expected


def reversed_keys(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: reversed_keys(value) for key, value in reversed(data.items())}
    return [reversed_keys(item) for item in data] if isinstance(data, list) else data


def test_moved_lines_in_every_source(root: Path, tmp_path: Path, expected: dict[str, bytes]):
    """The keys of every mapping of every overlay, mixin, component, values file and static manifest the other way round."""
    copy = copy_sources(root, tmp_path / "copy")
    for path in sorted(copy.rglob("*.yaml")):
        if "examples" not in path.parts:
            documents = load_all(path.read_text(), str(path))
            path.write_text(dump_all(reversed_keys(d.data) for d in documents))
    assert bundlec("build", "--all", "--out", tmp_path / "out", cwd=copy).status == 0
    assert tree(tmp_path / "out") == expected


def test_a_value_that_another_layer_says(tmp_path: Path):
    """Where a value is written is no matter of the cluster's: from the component's file to the overlay."""
    root = write_catalog(tmp_path)
    bundlec("build", "--all", cwd=root)
    before = tree(root / "out")
    write_catalog(
        root,
        {
            "components/alpha/values.yaml": "image: {tag: old, repository: example.org/alpha}\nreplicas: 2\nstorage: {emptyDir: {medium: Memory}}\n",
            "overlays/base.yaml": lambda text: text + "      overrides: {replicas: 2, image: {tag: older}}\n",
        },
    )
    bundlec("build", "--all", cwd=root)
    assert tree(root / "out") == before


# ---------------------------------------------------------------------------------------------------------------------
# What must not be in out/


def test_nothing_of_this_machine_is_in_the_output(root: Path, sources: Path, expected: dict[str, bytes]):
    names = {
        "path of the sources": str(sources),
        "path of the project": str(root),
        "host name": socket.gethostname(),
    }
    # Short ones, such as `vm`, are words.
    strange = {
        what: re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])") for what, value in names.items() if len(value) > 4
    }
    today = time.strftime("%Y-%m-%d")
    sources_named = re.compile(r"(?:overlays|mixins|components)/[\w./-]+\.(?:yaml|j2):\d+")
    for name, data in expected.items():
        text = data.decode()
        for what, value in strange.items():
            assert not value.search(text), f"{name} holds the {what}"
        assert today not in text, f"{name} holds a date"
        assert not sources_named.search(text), f"{name} names a line of a source"
        assert not re.search(r"bundlec[ /]v?\d+\.\d+\.\d+", text), f"{name} holds the version of the tool"


def test_no_number_of_order_is_in_a_path(expected: dict[str, bytes]):
    assert [name for name in expected if re.search(r"(?:^|/)\d+[-_]", name)] == []


def test_checksums_are_those_of_sha256sum(expected: dict[str, bytes]):
    bundles = {name.partition("/")[0] for name in expected}
    assert set(SOME) < bundles
    for bundle in bundles:
        files = {n.partition("/")[2]: d for n, d in expected.items() if n.startswith(f"{bundle}/")}
        lines = [f"{hashlib.sha256(files[n]).hexdigest()}  {n}\n" for n in sorted(files) if n != "checksums.txt"]
        assert files["checksums.txt"].decode() == "".join(lines)
