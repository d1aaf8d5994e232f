"""Helm 3 and Helm 4 on every chart of the bundles."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.bundle import Bundle, documents, identity

pytestmark = pytest.mark.tools


def run(*command: str | Path) -> str:
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def template(helm: Path, bundle: Bundle, release: str) -> list[Any]:
    """What `helm template` renders of a local chart."""
    chart = bundle.folder / "components" / release
    return documents(run(helm, "template", release, chart, "--namespace", "elsewhere"), release)


def test_lint_finds_nothing(bundle: Bundle, helm: Path) -> None:
    for release in bundle.local_releases():
        said = run(helm, "lint", "--strict", bundle.folder / "components" / release)
        assert "0 chart(s) failed" in said
        assert "[WARNING]" not in said


def test_what_helm_renders_is_what_the_manifests_say(bundle: Bundle, helm: Path) -> None:
    """Object by object: braces, `---` in scripts and digits in quotes included (cases 1, 19, 20)."""
    for release in bundle.local_releases():
        rendered = template(helm, bundle, release)
        assert {identity(o): o for o in rendered} == {identity(o): o for o in bundle.manifests(release)}
        assert len(rendered) == len(bundle.manifests(release))


def test_an_empty_chart_renders_nothing(gke: Bundle, helm: Path) -> None:
    assert gke.manifests("gcp-driver-installer") == []
    assert run(helm, "template", "x", gke.folder / "components/gcp-driver-installer").strip() == ""


def test_the_hash_in_the_version_survives_helm(bundle: Bundle, helm: Path) -> None:
    for release in bundle.local_releases():
        shown = documents(run(helm, "show", "chart", bundle.folder / "components" / release))
        assert shown == [bundle.one(f"components/{release}/Chart.yaml")]


def test_helm_reads_the_values_as_they_are_written(bundles: list[Bundle], helm: Path, tmp_path: Path) -> None:
    """Through a chart that prints its values: Go's YAML reads what ours wrote (cases 1, 2, 5, 6)."""
    chart = tmp_path / "echo"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: echo, version: 0.1.0}")
    (chart / "templates" / "all.yaml").write_text("values: {{ .Values | toJson }}\n")
    paths = [(bundle, path) for bundle in bundles for path in bundle.under("components/")]
    distinct = {bundle.files[path]: (bundle, path) for bundle, path in paths if path.endswith("/values.yaml")}
    assert distinct
    for bundle, path in distinct.values():
        (seen,) = documents(run(helm, "template", "x", chart, "--values", bundle.folder / path))
        assert seen["values"] == bundle.one(path)


# --- helmfile


@pytest.fixture
def helmfile(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HELMFILE_UPGRADE_NOTICE_DISABLED", "1")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tool("helmfile")


def test_helmfile_reads_its_file(bundle: Bundle, helmfile: Path, helm: Path) -> None:
    said = run(helmfile, "--file", bundle.folder / "helmfile.yaml", "--helm-binary", helm, "list", "--output", "json")
    (seen,) = documents(said)
    expected = {
        (item["name"], item["namespace"], item["chart"], item.get("version", ""))
        for item in bundle.one("helmfile.yaml")["releases"]
    }
    assert {(r["name"], r["namespace"], r["chart"], r["version"]) for r in seen} == expected
    assert all(r["enabled"] and r["installed"] for r in seen)


def test_helmfile_renders_the_local_charts(bundle: Bundle, helmfile: Path, helm: Path) -> None:
    selectors = [word for release in bundle.local_releases() for word in ("--selector", f"name={release}")]
    said = run(
        helmfile, "--file", bundle.folder / "helmfile.yaml", "--helm-binary", helm, *selectors,
        "template", "--skip-deps", "--skip-needs"
    )  # fmt: skip
    expected = [o for release in bundle.local_releases() for o in bundle.manifests(release)]
    assert {identity(o): o for o in documents(said)} == {identity(o): o for o in expected}
