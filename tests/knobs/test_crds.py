"""CRDs that a knob brings, that two charts ship, and that a new chart version changes: one owner, on every deployer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compiler.emit import emit
from compiler.load import load
from compiler.model import Catalog, Flags, Plan
from compiler.plan import plan
from compiler.resolve import entry_for, resolve, strvals
from compiler.yamlio import load_all
from tests.conftest import ROOT

SRIOV = (
    "network-operator:sriovNetworkOperator.enabled=true,operator.maintenanceOperator.useDrainControllerRequestor=true,"
    "sriov-network-operator.operator.externalDrainer.enabled=true,sriov-network-operator.sriovOperatorConfig.deploy=true"
)
POLICIES = "sriovnetworknodepolicies.sriovnetwork.openshift.io"
DOMAINS = "computedomains.resource.nvidia.com"


@pytest.fixture(scope="module")
def real() -> Catalog:
    return load(ROOT)


def planned(real: Catalog, bundle: str, text: str = "") -> Plan:
    component, _, assigned = text.partition(":")
    said = tuple((component, path, value) for path, value in strvals.parse(assigned)) if text else ()
    return plan(resolve(real, entry_for(real, bundle), Flags(set=said)))


def one(files: Mapping[str, bytes], name: str) -> Any:
    (document,) = load_all(files[name].decode(), name, strict=False)
    return document.data


def applied(files: Mapping[str, bytes], chart: str) -> str:
    """The line of the scripts that applies CRDs before a release; helmfile's hook and deploy.sh run the same file."""
    lines = [line.strip() for line in files["lib/prepare"].decode().splitlines()]
    found = [line for line in lines if line.startswith("apply_crds ") and line.split()[1].endswith(chart)]
    return found[0] if found else ""


def test_a_subchart_that_is_switched_on_brings_its_crds_before_the_release(real: Catalog) -> None:
    """Helm installs crds/ of a subchart on a fresh installation only, and validates its objects before its hooks run."""
    bundle = "gb300-generic-ubuntu-training"
    before, after = emit(planned(real, bundle)), emit(planned(real, bundle, SRIOV))
    assert POLICIES not in applied(before, "network-operator")
    line = applied(after, "network-operator")
    assert POLICIES in line.split()
    assert "--version 26.7.0" in line
    assert b"lib/prepare" in after["deploy.sh"]
    (release,) = [r for r in one(after, "helmfile.yaml")["releases"] if r["name"] == "network-operator"]
    hooks = [hook for hook in release["hooks"] if "presync" in hook["events"]]
    assert any("lib/prepare" in " ".join([hook["command"], *hook.get("args", [])]) for hook in hooks)
    flux = one(after, "flux/releases/network-operator/release.yaml")["spec"]
    assert (flux["install"]["crds"], flux["upgrade"]["crds"]) == ("CreateReplace", "CreateReplace")
    for source in one(after, "argocd/apps/network-operator.yaml")["spec"]["sources"]:
        assert not source.get("helm", {}).get("skipCrds")  # Argo CD renders them with every sync


@pytest.mark.parametrize("bundle", ["gb200-nvke-ubuntu-training", "gb200-gke-cos-training", "h100-kind-training"])
def test_a_crd_that_two_charts_ship_has_one_owner(real: Catalog, bundle: str) -> None:
    """case 64: ComputeDomain comes with the DRA driver and, in another shape, with the GPU operator."""
    files = emit(planned(real, bundle))
    owner, other = "nvidia-dra-driver-gpu", "gpu-operator"
    assert DOMAINS in applied(files, "dra-driver-nvidia-gpu").split()
    assert DOMAINS not in applied(files, other).split()
    crds = {name: one(files, f"flux/releases/{name}/release.yaml")["spec"] for name in (owner, other)}
    assert crds[owner]["upgrade"]["crds"] == "CreateReplace"
    assert (crds[other]["install"]["crds"], crds[other]["upgrade"]["crds"]) == ("Create", "Skip")
    ignored = {
        name: [
            d["name"]
            for d in one(files, f"argocd/apps/{name}.yaml")["spec"].get("ignoreDifferences", [])
            if "name" in d
        ]
        for name in (owner, other)
    }
    assert DOMAINS in ignored[other]
    assert DOMAINS not in ignored[owner]


@pytest.mark.parametrize("bundle", ["h100-kind-training", "h100-eks-ubuntu-training"])
def test_a_shared_crd_falls_to_the_one_that_is_left(real: Catalog, bundle: str) -> None:
    """Without the owner somebody else installs it, and keeps it up to date, on every deployer."""
    files = emit(planned(real, bundle, "nvidia-dra-driver-gpu:enabled=false"))
    whole = emit(planned(real, bundle))
    for emitted, mine in ((whole, False), (files, True)):
        (line,) = [
            line
            for line in emitted["lib/prepare"].decode().splitlines()
            if line.strip().startswith("upgrade_crds ") and line.split()[1] == "gpu-operator"
        ]
        assert (DOMAINS in line.split()) is mine
        spec = one(emitted, "flux/releases/gpu-operator/release.yaml")["spec"]
        assert spec["upgrade"]["crds"] == ("CreateReplace" if mine else "Skip")
        assert spec["install"]["crds"] == ("CreateReplace" if mine else "Create")
        argo = one(emitted, "argocd/apps/gpu-operator.yaml")["spec"]
        assert (DOMAINS in [item.get("name") for item in argo.get("ignoreDifferences", [])]) is not mine
