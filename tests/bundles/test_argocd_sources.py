"""Every source of every Argo CD Application, rendered as the repo-server does it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.bundle import Bundle, documents, identity
from tests.bundles.reading import applications, in_bundle

HOOK = "argocd.argoproj.io/hook"
WAVE = "argocd.argoproj.io/sync-wave"


def directory(bundle: Bundle, source: Any) -> list[Any]:
    """The objects of a source that is a plain folder: every YAML file in it, folders below left out."""
    folder = bundle.repo / source["path"]
    return [o for p in sorted(folder.glob("*.yaml")) for o in documents(p.read_text(), p.name)]


@pytest.fixture
def render(tool: Callable[[str], Path]) -> Callable[[Bundle, Any, str], list[Any]]:
    """`render(bundle, source, namespace)`: the objects of a source that lies in Git."""
    helm = tool("helm4")

    def objects(bundle: Bundle, source: Any, namespace: str) -> list[Any]:
        assert in_bundle(bundle, source["path"])
        if not (bundle.repo / source["path"] / "Chart.yaml").exists():
            assert "helm" not in source
            return directory(bundle, source)
        command = [str(helm), "template", source["helm"]["releaseName"], str(bundle.repo / source["path"])]
        for path in source["helm"].get("valueFiles", []):
            command += ["--values", str(bundle.repo / path.removeprefix("$values/"))]
        done = subprocess.run(
            [*command, "--namespace", namespace, "--include-crds"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return documents(done.stdout)

    return objects


def test_the_root_finds_an_application_for_every_component(bundle: Bundle) -> None:
    components = {r.component for r in bundle.plan.releases}
    apps = applications(bundle)
    assert set(apps) == components | {"namespaces"}
    for name, app in apps.items():
        assert app["kind"] == "Application"
        assert app["metadata"]["namespace"] == "argocd"
        assert app["metadata"]["name"] == f"{bundle.plan.settings.prefix}-{name}"
        # Without it a deleted Application leaves everything behind (case 49).
        assert app["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]


@pytest.mark.tools
def test_every_source_in_git_renders(bundle: Bundle, render: Callable[[Bundle, Any, str], list[Any]]) -> None:
    rendered: dict[Any, Any] = {}
    for app in applications(bundle).values():
        for source in app["spec"]["sources"]:
            if "path" in source:
                for item in render(bundle, source, app["spec"]["destination"].get("namespace", "")):
                    assert identity(item) not in rendered  # two sources of one object overwrite each other
                    rendered[identity(item)] = item
    ours = [o for release in bundle.local_releases() for o in bundle.manifests(release)]
    folders = ("namespaces/", "argocd/guards/", "argocd/rbac/")
    deployers = [o for path in bundle.under(*folders) for o in bundle.documents(path)]
    assert rendered == {identity(o): o for o in [*ours, *deployers]}


def test_every_chart_finds_its_values(bundle: Bundle) -> None:
    charts = 0
    for name, app in applications(bundle).items():
        sources = app["spec"]["sources"]
        for source in sources:
            if "chart" not in source:
                continue
            charts += 1
            own, *over = source["helm"]["valueFiles"]
            assert own == f"$values/out/{bundle.name}/components/{name}/values.yaml"
            # Case 28: what Argo CD lays over switches off hooks that it would run too early.
            assert over in ([], [f"$values/out/{bundle.name}/components/{name}/values-argocd.yaml"])
            assert all(path.removeprefix(f"$values/out/{bundle.name}/") in bundle.files for path in over)
            assert f"components/{name}/values.yaml" in bundle.files
            # $values is the source of that ref, and it is the repository of the bundle.
            (values,) = [s for s in sources if s.get("ref") == "values"]
            assert values["repoURL"] == "https://git.example.com/platform/bundles.git"
            assert values["targetRevision"] == "main"
            # Case 62: OCI registries are written without a scheme.
            assert not source["repoURL"].startswith("oci://")
    assert charts == sum(1 for r in bundle.plan.releases if r.chart is not None)


def test_values_stand_in_files_only(bundle: Bundle) -> None:
    """A null in `valuesObject` is lost on the way through the root."""
    for app in applications(bundle).values():
        for source in app["spec"]["sources"]:
            assert set(source.get("helm", {})) <= {"releaseName", "valueFiles"}


def test_guards_are_hooks_that_start_anew_every_time(bundle: Bundle) -> None:
    """Case 42: a guard that is not a hook holds nothing. Without HookFailed every second attempt is lost."""
    guards = bundle.under("argocd/guards/")
    assert guards
    for path in guards:
        component, release = path.split("/")[2:]
        job = bundle.one(path)
        assert job["kind"] == "Job"
        assert job["metadata"]["namespace"] == f"{bundle.plan.settings.prefix}-gates"
        annotations = job["metadata"]["annotations"]
        assert annotations["argocd.argoproj.io/hook-delete-policy"] == "BeforeHookCreation,HookSucceeded,HookFailed"
        if release == f"{component}-post.yaml":
            assert (annotations[HOOK], annotations[WAVE]) == ("Sync", "1")  # after the chart, before its post piece
        else:
            assert annotations[HOOK] == "PreSync"
        assert job["spec"]["activeDeadlineSeconds"] > 0
        assert "ttlSecondsAfterFinished" not in job["spec"]


def test_the_pieces_of_a_component_are_waves_of_its_application(bundle: Bundle) -> None:
    for release in bundle.local_releases():
        wave = {"pre": "-1", "post": "2"}.get(release.rpartition("-")[2])
        for item in bundle.manifests(release):
            assert item["metadata"].get("annotations", {}).get(WAVE) == wave, release
            # Case 27: our objects are no hooks of anything; they are updated in place and pruned.
            assert not [a for a in item["metadata"].get("annotations", {}) if "hook" in a]


def test_an_application_waits_in_silence_for_what_is_not_there_yet(bundle: Bundle) -> None:
    """The guard of a wave runs although a kind is unknown still, and the sync is tried again for ever."""
    for name, app in applications(bundle).items():
        policy = app["spec"]["syncPolicy"]
        assert policy["retry"]["limit"] == -1
        assert "ServerSideApply=true" in policy["syncOptions"]
        if name != "namespaces":
            assert "SkipDryRunOnMissingResource=true" in policy["syncOptions"]


def test_what_is_written_is_what_the_api_keeps(bundle: Bundle) -> None:
    """A field that equals its default is dropped, and the root is out of sync for ever."""
    for path in bundle.under("argocd/"):
        for item in bundle.documents(path):
            if item["kind"] == "Application":
                text = json.dumps(item)
                for default in ("false", '""', "[]", "{}", "null"):
                    assert f": {default}" not in text, path


def test_the_guards_have_the_rights_for_what_they_look_at_and_no_more(bundle: Bundle) -> None:
    granted = set()
    for path in bundle.under("argocd/rbac/"):
        item = bundle.one(path)
        for rule in item.get("rules", []):
            assert sorted(rule["verbs"]) == ["get", "list", "watch"], path
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        granted.add((f"{resource}.{group}".rstrip("."), item["metadata"].get("namespace", ""), name))
    used = set()
    for path in bundle.under("argocd/guards/"):
        pod = bundle.one(path)["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == "gates"
        for container in pod["initContainers"]:
            used |= _looked_at(container["args"])
    assert used <= granted
    assert granted <= used


def _looked_at(args: list[str]) -> set[tuple[str, str, str]]:
    """(resource, namespace, name) of a `kubectl wait`, `rollout status` or `get`; the name is "" for a list."""
    namespace = next((a.removeprefix("--namespace=") for a in args if a.startswith("--namespace=")), "")
    words = [a for a in args if not a.startswith("-") and a not in {"wait", "rollout", "status", "get"}]
    resource, _, name = words[0].partition("/")
    return {(resource, namespace, name or (words[1] if len(words) > 1 else ""))}


def test_no_application_ignores_all_of_a_crd(bundle: Bundle) -> None:
    """Ignored fields are applied as they are in the cluster: with `spec`, what the API added to it (`conversion`) would
    become Argo CD's own field, which the CRD's owner does not have, and so takes back at each sync of the other."""
    for app in applications(bundle).values():
        for ignored in app["spec"].get("ignoreDifferences", []):
            if ignored["kind"] == "CustomResourceDefinition":
                assert not {"/spec", ""} & set(ignored["jsonPointers"]), (app["metadata"]["name"], ignored["name"])
