"""Every path that Flux builds, built by the real Kustomize as kustomize-controller does: the load restrictor is off."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compiler.yamlio import dump
from tests.bundles.bundle import Bundle, documents, identity
from tests.bundles.reading import in_bundle, nodes

pytestmark = pytest.mark.tools


@pytest.fixture(scope="session")
def build(tool: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Bundle, str], list[Any]]:
    """`build(bundle, folder)`: the objects of a folder of the bundle."""
    kubectl = tool("kubectl")
    generated = tmp_path_factory.mktemp("kustomizations")

    @cache
    def objects(bundle: Bundle, folder: str) -> list[Any]:
        target = bundle.folder / folder
        if not (target / "kustomization.yaml").exists():
            # kustomize-controller makes one that lists every YAML file of the folder.
            target = generated / bundle.name / folder
            target.mkdir(parents=True)
            files = sorted(str(p) for p in (bundle.folder / folder).glob("*.yaml"))
            text = dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": files})
            (target / "kustomization.yaml").write_text(text)
        done = subprocess.run(
            [str(kubectl), "kustomize", "--load-restrictor=LoadRestrictionsNone", str(target)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""  # deprecated fields are warned of
        return documents(done.stdout, folder)

    return objects


def test_the_root_builds_the_graph(bundle: Bundle, build: Callable[[Bundle, str], list[Any]]) -> None:
    (root,) = [d for d in bundle.documents("flux/root.yaml") if d["kind"] == "Kustomization"]
    built = {identity(o): o for o in build(bundle, in_bundle(bundle, root["spec"]["path"]))}
    assert built == {identity(o): o for o in nodes(bundle).values()}


def test_every_node_builds(bundle: Bundle, build: Callable[[Bundle, str], list[Any]]) -> None:
    """A gate without a Job builds to nothing: it has health checks only."""
    seen = {}
    for name, node in nodes(bundle).items():
        folder = in_bundle(bundle, node["spec"]["path"])
        if folder not in seen:
            seen[folder] = build(bundle, folder)
        kinds = {o["kind"] for o in seen[folder]}
        short = name.removeprefix(f"{bundle.plan.settings.prefix}-")
        if short == "namespaces":
            assert kinds == {"Namespace"}
        elif short == "gates":
            assert kinds == {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"} | (
                kinds & {"Role", "RoleBinding"}
            )
        elif short.startswith("gate-"):
            assert kinds <= {"Job"}
            assert node["spec"].get("healthChecks") or kinds == {"Job"}
        else:
            assert [o["metadata"]["name"] for o in seen[folder] if o["kind"] == "HelmRelease"] == [name]


def test_the_values_arrive_under_a_hashed_name(bundle: Bundle, build: Callable[[Bundle, str], list[Any]]) -> None:
    """A changed value changes the ConfigMap's name and with it the HelmRelease, so that it is upgraded at once."""
    charts = [name for name in _releases(bundle) if name not in bundle.local_releases()]
    assert charts
    for name in charts:
        built = build(bundle, f"flux/releases/{name}")
        (config,) = [o for o in built if o["kind"] == "ConfigMap"]
        (release,) = [o for o in built if o["kind"] == "HelmRelease"]
        generated = f"{bundle.plan.settings.prefix}-{name}-values-"
        assert config["metadata"]["name"].startswith(generated)
        assert len(config["metadata"]["name"]) > len(generated)
        assert release["spec"]["valuesFrom"] == [{"kind": "ConfigMap", "name": config["metadata"]["name"]}]
        assert release["metadata"]["namespace"] == config["metadata"]["namespace"] == "flux-system"
        assert config["data"] == {"values.yaml": bundle.files[f"components/{name}/values.yaml"].decode()}


def test_a_local_chart_is_a_release_and_nothing_else(bundle: Bundle, build: Callable[[Bundle, str], list[Any]]) -> None:
    """What it brings stands in its values: a commit changes nothing before the turn of the release."""
    for name in bundle.local_releases():
        (release,) = build(bundle, f"flux/releases/{name}")
        chart = release["spec"]["chart"]["spec"]
        assert chart["chart"] == f"./out/{bundle.name}/flux/releases/{name}/chart"
        assert chart["reconcileStrategy"] == "ChartVersion"
        folder = f"components/{name}/manifests/"
        texts = {path.removeprefix(folder): bundle.files[path].decode() for path in bundle.under(folder)}
        assert release["spec"].get("values", {}).get("manifests", {}) == texts


def test_no_variable_is_substituted(bundle: Bundle, build: Callable[[Bundle, str], list[Any]]) -> None:
    """Case 21: an installer's script keeps its ${VARIABLES} whatever the cluster's owner adds to the root."""
    for node in nodes(bundle).values():
        assert "postBuild" not in node["spec"]
    for name in _releases(bundle):
        for item in build(bundle, f"flux/releases/{name}"):
            assert item["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"] == "disabled"


def _releases(bundle: Bundle) -> list[str]:
    return sorted({path.split("/")[2] for path in bundle.under("flux/releases/")})


def test_every_dependency_exists(bundle: Bundle) -> None:
    """Case 44: Flux waits for ever for a node that nobody makes."""
    known = nodes(bundle)
    for name, node in known.items():
        for item in node["spec"].get("dependsOn", []):
            assert item["namespace"] == node["metadata"]["namespace"] == "flux-system"
            assert item["name"] in known, name
