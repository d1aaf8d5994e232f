"""The four deployers apply the same things: one payload, four wirings (case 61)."""

from __future__ import annotations

import json

import pytest

from tests.bundles.bundle import Bundle
from tests.bundles.reading import Local, Remote, helm_commands, read

OTHERS = ["helmfile", "argocd", "flux"]


@pytest.mark.parametrize("deployer", OTHERS)
def test_the_same_charts_with_the_same_values(bundle: Bundle, deployer: str) -> None:
    """Chart repository, chart, version, release name, namespace and values of every chart that is fetched."""
    expected = sorted(r for r in read("deploy.sh", bundle).releases if isinstance(r, Remote))
    assert expected
    assert sorted(r for r in read(deployer, bundle).releases if isinstance(r, Remote)) == expected


@pytest.mark.parametrize("deployer", OTHERS)
def test_the_same_objects_of_our_own(bundle: Bundle, deployer: str) -> None:
    expected = sorted(r for r in read("deploy.sh", bundle).releases if isinstance(r, Local))
    assert any(r.objects for r in expected) == any(r.objects for r in bundle.plan.releases)
    assert sorted(r for r in read(deployer, bundle).releases if isinstance(r, Local)) == expected


@pytest.mark.parametrize("deployer", OTHERS)
def test_the_same_namespaces(bundle: Bundle, deployer: str) -> None:
    expected = read("deploy.sh", bundle).namespaces
    assert expected
    assert read(deployer, bundle).namespaces == expected


@pytest.mark.parametrize("deployer", ["deploy.sh", *OTHERS])
def test_every_folder_of_components_is_applied(bundle: Bundle, deployer: str) -> None:
    folders = {path.split("/")[1] for path in bundle.files if path.startswith("components/")}
    assert {r.release for r in read(deployer, bundle).releases} == folders


def test_every_release_lies_in_a_namespace_of_the_bundle_or_of_the_cluster(bundle: Bundle) -> None:
    applied = read("deploy.sh", bundle)
    ours = {json.loads(n)["metadata"]["name"] for n in applied.namespaces}
    assert {r.namespace for r in applied.releases} - ours <= {"kube-system"}
    assert not ours & {"kube-system", "default"}


def test_no_deployer_makes_a_namespace_by_itself(bundle: Bundle) -> None:
    """Case 66: they stand once, in namespaces/."""
    for words in helm_commands(bundle):
        assert "--create-namespace" not in words
    assert bundle.one("helmfile.yaml")["helmDefaults"]["createNamespace"] is False
    for path in bundle.under("argocd/apps/"):
        assert "CreateNamespace=true" not in bundle.one(path)["spec"]["syncPolicy"]["syncOptions"]
    for path in bundle.under("flux/releases/"):
        for item in bundle.documents(path):
            assert "createNamespace" not in item.get("spec", {}).get("install", {})


def test_the_namespaces_outlive_the_bundle(bundle: Bundle) -> None:
    for path in bundle.under("namespaces/"):
        assert bundle.one(path)["metadata"]["annotations"] == {
            "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
            "helm.sh/resource-policy": "keep",
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
        }


def test_helm_is_told_what_the_release_holds(bundle: Bundle) -> None:
    """The label by which a second run leaves a release alone is the same from deploy.sh and from helmfile."""
    by_helmfile = {item["name"]: item["labels"] for item in bundle.one("helmfile.yaml")["releases"]}
    for words in helm_commands(bundle):
        labels = dict(pair.split("=") for pair in words[words.index("--labels") + 1].split(","))
        assert labels.pop("bundlec.dev/revision") == "1"  # helmfile cannot know it
        assert labels == by_helmfile[words[2]]
    for release in bundle.local_releases():
        version = bundle.one(f"components/{release}/Chart.yaml")["version"]
        assert version == f"0.1.0-h{by_helmfile[release]['bundlec.dev/content']}"


def test_what_waits_in_one_deployer_waits_in_all(bundle: Bundle) -> None:
    """`install.wait: none` (kai-scheduler) and the deadlines of the releases."""
    helmfile = bundle.one("helmfile.yaml")
    releases = {item["name"]: item for item in helmfile["releases"]}
    for words in helm_commands(bundle):
        name, seconds = words[2], int(words[words.index("--timeout") + 1].removesuffix("s"))
        waits = "--wait-for-jobs" in words
        assert releases[name].get("wait", helmfile["helmDefaults"]["wait"]) is waits
        assert releases[name].get("timeout", helmfile["helmDefaults"]["timeout"]) == seconds
        spec = bundle.one(f"flux/releases/{name}/release.yaml")["spec"]
        assert spec.get("install", {}).get("disableWait", False) is not waits
        assert _seconds(spec["timeout"]) == seconds


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def test_case_65_one_owner_of_a_crd_that_two_charts_hold(bundle: Bundle) -> None:
    """ComputeDomain: the DRA driver's copy wins on every deployer, gpu-operator's is left out or ignored."""
    shared = {"computedomains.resource.nvidia.com", "computedomaincliques.resource.nvidia.com"}
    (line,) = [li for li in bundle.files["lib/prepare"].decode().splitlines() if "computedomains." in li]
    assert "dra-driver-nvidia-gpu --version 0.5.1 -- " in line
    owner = bundle.one("flux/releases/nvidia-dra-driver-gpu/release.yaml")["spec"]
    other = bundle.one("flux/releases/gpu-operator/release.yaml")["spec"]
    assert (owner["install"]["crds"], owner["upgrade"]["crds"]) == ("CreateReplace", "CreateReplace")
    assert (other["install"]["crds"], other["upgrade"]["crds"]) == ("Create", "Skip")
    app = bundle.one("argocd/apps/gpu-operator.yaml")["spec"]
    assert {d["name"] for d in app["ignoreDifferences"]} == shared
    assert "RespectIgnoreDifferences=true" in app["syncPolicy"]["syncOptions"]
    assert "ignoreDifferences" not in bundle.one("argocd/apps/nvidia-dra-driver-gpu.yaml")["spec"]
