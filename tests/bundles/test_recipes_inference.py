"""What the inference recipes of GKE bring to the cluster, spelled out: the Gateway, Grove, Dynamo and its StorageClass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compiler.errors import Diagnostic, UserError
from compiler.model import Files, Flags, Plan
from compiler.pipeline import compile_bundle
from tests.bundles.bundle import Bundle, identity
from tests.bundles.conftest import catalog

GATEWAY_API = {
    "gatewayclasses.gateway.networking.k8s.io",
    "gateways.gateway.networking.k8s.io",
    "grpcroutes.gateway.networking.k8s.io",
    "httproutes.gateway.networking.k8s.io",
    "inferencepools.inference.networking.k8s.io",
    "referencegrants.gateway.networking.k8s.io",
    "tlsroutes.gateway.networking.k8s.io",
}


@pytest.fixture
def inference(compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled("gb200-gke-cos-inference")


@pytest.fixture
def dynamo(compiled: Callable[[str], Bundle]) -> Bundle:
    return compiled("gb200-gke-cos-inference-dynamo")


def built(name: str, values: dict[str, Any] | None = None) -> Plan:
    """A bundle of bundlec.yaml with values of its own (`set`), in memory."""
    entry = catalog().workspace.bundles[name]
    return compile_bundle(catalog(), replace(entry, set={**entry.set, **(values or {})}), Flags()).plan


def objects(plan: Plan) -> dict[Any, Any]:
    """The objects of a plan by identity."""
    return {identity(o.data): o.data for release in plan.releases for o in release.objects}


def errors(error: UserError) -> list[Diagnostic]:
    """Without the warnings that come along."""
    return [found for found in error.diagnostics if found.severity == "error"]


# --- agentgateway


def test_the_gateway_api_comes_before_the_controller_and_stays(inference: Bundle) -> None:
    crds = inference.manifests("agentgateway-crds-pre")
    assert {o["metadata"]["name"] for o in crds} == GATEWAY_API
    for crd in crds:
        annotations = crd["metadata"]["annotations"]
        # The API server refuses a CRD of these groups without it.
        assert annotations["api-approved.kubernetes.io"].startswith("https://github.com/kubernetes-sigs/")
        assert annotations["helm.sh/resource-policy"] == "keep"
        assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
        assert any(v["served"] and v["name"] == "v1" for v in crd["spec"]["versions"])
    assert inference.plan.release("agentgateway-crds-pre").keep
    assert inference.plan.release("agentgateway-crds").keep


def test_a_cluster_may_bring_the_gateway_api_itself() -> None:
    plan = built(
        "gb200-gke-cos-inference",
        {"agentgateway-crds": {"gatewayAPI": {"install": False}, "inferenceExtension": {"install": False}}},
    )
    assert not plan.release("agentgateway-crds-pre").objects
    # The controller still waits for them.
    gate = plan.release("agentgateway").gate
    assert gate is not None
    names = {c.check.name for c in gate.checks if c.check.kind == "crd"}
    assert {"gateways.gateway.networking.k8s.io", "inferencepools.inference.networking.k8s.io"} <= names


def test_the_gateway(inference: Bundle) -> None:
    gateway = inference.object("agentgateway-post", "Gateway", "inference-gateway")
    assert gateway["metadata"]["namespace"] == "agentgateway-system"
    assert gateway["spec"]["gatewayClassName"] == "agentgateway"
    (listener,) = gateway["spec"]["listeners"]
    assert (listener["protocol"], listener["port"]) == ("HTTP", 80)
    assert gateway["spec"]["infrastructure"]["parametersRef"]["name"] == "inference-gateway"


def test_the_gateway_is_private(inference: Bundle) -> None:
    parameters = inference.object("agentgateway-post", "AgentgatewayParameters", "inference-gateway")
    assert parameters["spec"]["service"] == {
        "metadata": {"annotations": {"networking.gke.io/load-balancer-type": "Internal"}},
        "spec": {"loadBalancerSourceRanges": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]},
    }
    values = inference.values("agentgateway")
    assert values["rbac"]["gatewayNamespaces"] == ["agentgateway-system"]
    assert values["inferenceExtension"] == {"enabled": True}
    # Ours, for the templates: the chart knows neither.
    assert not {"allowedSourceRanges", "gateway"} & set(values)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"allowedSourceRanges": []}, "private-by-default"),
        ({"allowedSourceRanges": ["0.0.0.0/0"]}, "private-by-default"),
        ({"allowedSourceRanges": ["10.0.0.0/8", "::/0"]}, "private-by-default"),
        ({"allowedSourceRanges": ["1.2.3.4/0"]}, "private-by-default"),
        ({"allowedSourceRanges": ["0::/0"]}, "private-by-default"),
        ({"allowedSourceRanges": ["0.0.0.0/1", "128.0.0.0/1"]}, "private-by-default"),
        ({"allowedSourceRanges": ["vpn.example.com"]}, "source-ranges"),
        ({"allowedSourceRanges": ["10.0.0.999/24"]}, "source-ranges"),
        ({"allowedSourceRanges": ["10.0.0.0/33"]}, "source-ranges"),
        ({"rbac": {"gatewayNamespaces": []}}, "gateway-namespaces"),
        ({"rbac": {"gatewayNamespaces": ["models"]}}, "gateway-namespaces"),
    ],
)
def test_a_gateway_is_not_opened_by_mistake(values: dict[str, Any], rule: str) -> None:
    with pytest.raises(UserError) as raised:
        built("gb200-gke-cos-inference", {"agentgateway": values})
    (found,) = errors(raised.value)
    assert found.code == "BC3006"
    assert f"rule `{rule}`" in found.message


def test_one_source_is_a_list_too() -> None:
    """A string would make a Service that the API server refuses."""
    with pytest.raises(UserError) as raised:
        built("gb200-gke-cos-inference", {"agentgateway": {"allowedSourceRanges": "10.0.0.0/8"}})
    assert [found.code for found in errors(raised.value)] == ["BC2005"]


def test_a_gateway_is_opened_on_purpose() -> None:
    opened = {"allowedSourceRanges": ["0.0.0.0/0"], "gateway": {"public": True}}
    plan = built("gb200-gke-cos-inference", {"agentgateway": opened})
    key = ("agentgateway.dev", "AgentgatewayParameters", "agentgateway-system", "inference-gateway")
    assert objects(plan)[key]["spec"]["service"]["spec"]["loadBalancerSourceRanges"] == ["0.0.0.0/0"]


# --- GB200


def test_the_hosts_are_tuned_for_inference(inference: Bundle) -> None:
    tuning = inference.object("nodewright-customizations", "NodeWright", "tuning")["spec"]["packages"]["tuning"]
    assert tuning["configMap"] == {"accelerator": "gb200", "intent": "inference"}


def test_inference_and_training_share_the_fabric(inference: Bundle, gke: Bundle) -> None:
    def installer(bundle: Bundle) -> Any:
        return bundle.object("gke-gb200-rdma", "DaemonSet", "nccl-rdma-installer")["spec"]

    assert installer(inference) == installer(gke)
    values = inference.values("gpu-operator")
    assert values["cdi"] == {"enabled": True, "default": True}
    assert values["driver"]["kernelModuleConfig"] == {"name": "nvidia-kernel-module-params"}
    # Of training only.
    assert values["toolkit"]["env"] == [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}]


# --- Grove and Dynamo


def test_dynamo_uses_the_schedulers_of_the_bundle(dynamo: Bundle) -> None:
    values = dynamo.values("dynamo-platform")
    assert values["global"] == {
        "etcd": {"install": False},
        "kai-scheduler": {"install": False, "enabled": True},
        "grove": {"install": False, "enabled": True},
    }  # no nats: the chart's default is off
    operator = values["dynamo-operator"]
    assert (operator["upgradeCRD"], operator["discoveryBackend"]) == (True, "kubernetes")
    prometheus = "http://kube-prometheus-prometheus.monitoring.svc.cluster.local:9090"
    assert operator["dynamo"]["metrics"]["prometheusEndpoint"] == prometheus
    assert "a4xStorageClass" not in values


def test_dynamo_waits_for_what_grove_makes_at_run_time(dynamo: Bundle) -> None:
    gate = dynamo.plan.release("dynamo-platform").gate
    assert gate is not None
    checks = [c for c in gate.checks if c.provider == "grove"]
    assert {(c.check.kind, c.check.name) for c in checks} == {
        ("crd", "podcliquesets.grove.io"),
        ("crd", "podgangs.scheduler.grove.io"),
        ("deployment", "grove-operator"),
        ("webhook", "grove-operator"),
    }


# --- the storage of a4x

CLASS = ("storage.k8s.io", "StorageClass", "", "a4x-compatible")


def test_the_storage_class_of_a4x(dynamo: Bundle) -> None:
    made = dynamo.object("dynamo-platform-post", "StorageClass", "a4x-compatible")
    assert made["provisioner"] == "pd.csi.storage.gke.io"
    assert made["parameters"] == {"type": "hyperdisk-balanced"}
    assert made["volumeBindingMode"] == "WaitForFirstConsumer"
    assert made["allowVolumeExpansion"] is True
    # Not the default of the cluster, whose CPU pools may not attach Hyperdisk.
    assert "storageclass.kubernetes.io/is-default-class" not in made["metadata"].get("annotations", {})


def test_without_its_creation_no_other_object_changes(dynamo: Bundle) -> None:
    name = dynamo.name
    off = built(name, {"dynamo-platform": {"a4xStorageClass": {"create": False}}})
    before, after = objects(built(name)), objects(off)
    assert before.pop(CLASS)["parameters"] == {"type": "hyperdisk-balanced"}
    assert before == after
    # Nor does a chart get other values, or a release go: an empty one takes the class off the cluster.
    values = {r.id: r.values for r in built(name).releases}
    assert values == {r.id: r.values for r in off.releases}
    assert [r.id for r in off.releases] == list(values)


def test_without_its_creation_only_its_own_file_goes(dynamo: Bundle) -> None:
    """File by file: the payload and Argo CD's objects stay as they are; scripts and wiring follow the release."""
    entry = catalog().workspace.bundles[dynamo.name]
    off = replace(entry, set={**entry.set, "dynamo-platform": {"a4xStorageClass": {"create": False}}})
    files = compile_bundle(catalog(), off, Flags()).files

    def kept(tree: Files) -> dict[str, bytes]:
        folders = ("argocd/", "namespaces/", "components/")
        return {
            path: content
            for path, content in tree.items()
            if path.startswith(folders) and path.endswith(".yaml") and not path.endswith("/Chart.yaml")
        }

    before = kept(dynamo.files)
    gone = [path for path in before if path.startswith("components/dynamo-platform-post/manifests/")]
    assert len(gone) == 1
    del before[gone[0]]
    assert kept(files) == before


def test_the_class_and_the_constraint_name_the_same(dynamo: Bundle) -> None:
    with pytest.raises(UserError) as raised:
        built(dynamo.name, {"dynamo-platform": {"a4xStorageClass": {"name": "other"}}})
    (found,) = errors(raised.value)
    assert found.code == "BC3006"
    assert "model-cache-class" in found.message
    # A class that somebody else made may have any name.
    built(dynamo.name, {"dynamo-platform": {"a4xStorageClass": {"name": "other", "create": False}}})


def test_a_class_that_a4x_cannot_attach_is_refused(dynamo: Bundle) -> None:
    with pytest.raises(UserError) as raised:
        built(dynamo.name, {"dynamo-platform": {"a4xStorageClass": {"type": "pd-balanced"}}})
    assert ["rule `a4x-storage-type`" in found.message for found in errors(raised.value)] == [True]
    for kind in ("hyperdisk-ml", "hyperdisk-extreme"):
        plan = built(dynamo.name, {"dynamo-platform": {"a4xStorageClass": {"type": kind}}})
        assert objects(plan)[CLASS]["parameters"] == {"type": kind}
