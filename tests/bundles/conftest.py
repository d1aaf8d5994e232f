"""Every bundle of bundlec.yaml, compiled once and written to disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from compiler.model import Catalog, Files, Flags
from compiler.pipeline import compile_bundle, read_catalog, write_bundle
from tests.bundles.bundle import Bundle
from tests.bundles.cli import Bundlec, run

ROOT = Path(__file__).resolve().parents[2]


@cache
def catalog() -> Catalog:
    return read_catalog(ROOT)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `bundle` runs for every bundle of bundlec.yaml."""
    if "bundle" in metafunc.fixturenames:
        metafunc.parametrize("bundle", list(catalog().workspace.bundles), indirect=True)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bundle]:
    """`compiled("gb200-nvke-ubuntu-training")`: the bundle, compiled and written below the folder `bundle.repo`."""
    repo = tmp_path_factory.mktemp("repo")

    @cache
    def bundle(name: str) -> Bundle:
        entry = catalog().workspace.bundles[name]
        done = compile_bundle(catalog(), entry, Flags())
        # The path in Git is `out/<name>`, as bundlec.yaml says; the deployers' files name it.
        folder = repo / "out" / name
        write_bundle(done, folder)
        return Bundle(name, done.plan, done.files, repo, folder)

    return bundle


@pytest.fixture
def bundle(request: pytest.FixtureRequest, compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled(request.param)


@pytest.fixture
def bundles(compiled: Callable[[str], Bundle]) -> list[Bundle]:
    """All of them."""
    return [compiled(name) for name in catalog().workspace.bundles]


@pytest.fixture
def nvke(compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled("gb200-nvke-ubuntu-training")


@pytest.fixture
def nvke_kubeflow(compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled("gb200-nvke-ubuntu-training-kubeflow")


@pytest.fixture
def gke(compiled: Callable[[str], Bundle]) -> Bundle:
    """gpuStack=gke-default."""
    return compiled("gb200-gke-cos-training")


@pytest.fixture
def gke_installer(compiled: Callable[[str], Bundle]) -> Bundle:
    """gpuStack=bundle-installer."""
    return compiled("gb200-gke-cos-training-bundle-installer")


@pytest.fixture
def gke_kubeflow(compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled("gb200-gke-cos-training-kubeflow")


@pytest.fixture(scope="session")
def bundlec() -> Bundlec:
    """`bundlec("verify", folder)`: runs the command in a process of its own."""
    return run


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[Files], Path]:
    """`tree(files)`: writes the files of a bundle to a new folder."""

    def write(files: Files) -> Path:
        folder = tmp_path / "bundle"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if content.startswith(b"#!"):
                path.chmod(0o755)
        return folder

    return write
