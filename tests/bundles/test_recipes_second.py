"""What the recipes of OKE, EKS, AKS, kind and bare metal bring to the cluster, spelled out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bundles import second
from tests.bundles.bundle import Bundle
from tests.bundles.changed import Compiled, accelerators, built, pod_of, refused
from tests.bundles.conftest import catalog

SETUP = {
    "image": "ghcr.io/nvidia/nodewright-packages/nvidia-setup",
    "version": "0.8.0",
    "containerSHA": "sha256:1551abdd54476f6bddce863d383903a0a76f8a91bb4daa53c4f3c9490b980dae",
}
TUNED = {
    "image": "ghcr.io/nvidia/nodewright-packages/nvidia-tuned",
    "version": "0.10.0",
    "containerSHA": "sha256:124f3bdedbb651125cec1bf20d3e2f7fcbbe10588c44f36d8e5680b38b9ef8f6",
}
NVIDIA = {"repository": "nvcr.io/nvidia/mellanox", "version": "network-operator-v26.7.0"}
KERNEL_RESOURCES = {"cpuRequest": 2, "cpuLimit": 4, "memoryRequest": "4Gi", "memoryLimit": "8Gi"}
FULL_RESOURCES = {"cpuRequest": 4, "cpuLimit": 8, "memoryRequest": "8Gi", "memoryLimit": "16Gi"}


def policy(bundle: Bundle) -> Any:
    return bundle.object("network-operator-post", "NicClusterPolicy", "nic-cluster-policy")["spec"]


def tuning(bundle: Bundle) -> Any:
    return bundle.object("nodewright-customizations", "NodeWright", "tuning")["spec"]


def test_every_bundle_is_expected() -> None:
    tables = (second.CONFORMANCE, second.PERFORMANCE, second.ORDERS, second.EDGES)
    assert all(set(table) == set(second.ORDERS) <= set(catalog().workspace.bundles) for table in tables)


# --- one policy template, three shapes more


def test_the_policy_of_oke_shares_the_rails_and_nothing_else(compiled: Compiled) -> None:
    spec = policy(compiled("gb200-oke-training"))
    plugin = spec.pop("rdmaSharedDevicePlugin")
    assert json.loads(plugin.pop("config")) == {
        "configList": [
            {
                "resourcePrefix": "nvidia.com",
                "resourceName": "mlnxnics",
                "rdmaHcaMax": 63,
                "selectors": {"linkTypes": ["infiniband"], "ifNames": ["rdma0", "rdma1", "rdma2", "rdma3"]},
            }
        ]
    }
    assert plugin == {**NVIDIA, "image": "k8s-rdma-shared-dev-plugin"}
    assert set(spec) == {"nodeAffinity", "tolerations", "deploymentTolerations"}


def test_the_policy_of_bare_metal_brings_ofed(compiled: Compiled) -> None:
    spec = policy(compiled("gb300-generic-ubuntu-training"))
    assert spec["ofedDriver"]["image"] == "doca-driver"
    assert spec["ofedDriver"]["version"] == "doca3.4.0-26.04-0.8.6.0-0"
    assert spec["ofedDriver"]["env"] == [{"name": "UNLOAD_STORAGE_MODULES", "value": "true"}]
    assert spec["ofedDriver"]["upgradePolicy"]["maxParallelUpgrades"] == 1
    assert json.loads(spec["rdmaSharedDevicePlugin"]["config"]) == {
        "configList": [
            {
                "resourceName": "ib",
                "rdmaHcaMax": 64,
                "selectors": {"linkTypes": ["infiniband"], "vendors": ["15b3"], "deviceIDs": ["1021", "1023"]},
            }
        ]
    }
    nic = spec["nicConfigurationOperator"]
    assert nic["logLevel"] == "info"
    assert nic["operator"] == {
        "image": "nic-configuration-operator",
        "repository": "ghcr.io/mellanox",
        "version": "v1.3.1",
    }
    assert nic["configurationDaemon"]["image"] == "nic-configuration-operator-daemon"
    assert nic["configurationDaemon"]["version"] == "v1.3.1"


def test_the_policy_of_aks(compiled: Compiled) -> None:
    spec = policy(compiled("h100-aks-ubuntu-training"))
    assert spec["ofedDriver"]["version"] == "doca3.2.0-25.10-1.2.8.0-2"
    assert json.loads(spec["rdmaSharedDevicePlugin"]["config"]) == {
        "periodicUpdateInterval": 300,
        "configList": [
            {
                "resourceName": "hca_shared_devices_a",
                "rdmaHcaMax": 1000,
                "selectors": {"vendors": ["15b3"], "drivers": ["mlx5_core"]},
            }
        ],
    }
    assert spec["docaTelemetryService"] == {
        "image": "doca_telemetry",
        "repository": "nvcr.io/nvidia/doca",
        "version": "1.22.5-doca3.1.0-host",
    }


@pytest.mark.parametrize("name", ["h100-kind-training", "h100-kind-training-kubeflow"])
def test_kind_has_the_operator_and_no_policy(compiled: Compiled, name: str) -> None:
    bundle = compiled(name)
    assert "components/network-operator/values.yaml" in bundle.files
    assert "NicClusterPolicy" not in [item["kind"] for _, item in bundle.objects()]


@pytest.mark.parametrize(
    ("name", "matched"),
    [
        ("gb200-nvke-ubuntu-training", {"class": ["0200", "0207"]}),
        ("gb200-oke-training", {"class": ["0200", "0207"]}),
        ("gb300-generic-ubuntu-training", {"class": ["0200", "0207"]}),
        # Accelerated networking puts an Ethernet function of the same vendor on any node.
        ("h100-aks-ubuntu-training", {"device": ["101c", "101e"]}),
    ],
)
def test_nfd_labels_the_nodes_that_a_policy_selects(compiled: Compiled, name: str, matched: dict[str, Any]) -> None:
    bundle = compiled(name)
    (rule,) = bundle.values("nfd")["worker"]["config"]["sources"]["custom"]
    assert rule["labels"] == {"feature.node.kubernetes.io/pci-15b3.present": "true"}
    (feature,) = rule["matchFeatures"]
    assert {key: found["value"] for key, found in feature["matchExpressions"].items()} == {
        "vendor": ["15b3"],
        **matched,
    }
    rules = bundle.values("network-operator")["nfd"]["deployNodeFeatureRules"]
    assert rules is ("aks" not in name)


# --- one tuning template, three shapes


def ubuntu(bundle: Bundle) -> Any:
    """The packages, after what every Ubuntu recipe has in common."""
    spec = tuning(bundle)
    assert spec["runtimeRequired"] is True
    assert spec["autoTaintNewNodes"] is True
    assert spec["interruptionBudget"] == {"count": 1}
    assert spec["nodeSelectors"] == {
        "matchLabels": {"feature.node.kubernetes.io/pci-0302_10de.present": "true"},
        "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}],
    }
    assert {"operator": "Exists"} not in spec["additionalTolerations"]
    return spec["packages"]


def test_eks_takes_kernel_then_tuning_then_setup(compiled: Compiled) -> None:
    host = {"service": "eks", "accelerator": "h100"}
    assert ubuntu(compiled("h100-eks-ubuntu-training")) == {
        "nvidia-setup-kernel": {
            **SETUP,
            "configMap": host,
            "env": [
                {"name": "NVIDIA_SETUP_INSTALL_KERNEL", "value": "true"},
                {"name": "NVIDIA_SETUP_KERNEL_ALLOW_NEWER", "value": "false"},
            ],
            "resources": KERNEL_RESOURCES,
        },
        "nvidia-tuned": {
            **TUNED,
            "configMap": {**host, "intent": "multiNodeTraining"},
            "interrupt": {"type": "reboot"},
            "env": [{"name": "INTERRUPT", "value": "true"}],
            "dependsOn": {"nvidia-setup-kernel": "0.8.0"},
        },
        "nvidia-setup-full": {
            **SETUP,
            "configMap": host,
            "interrupt": {"type": "reboot"},
            "env": [{"name": "NVIDIA_SETUP_INSTALL_KERNEL", "value": "false"}],
            "resources": FULL_RESOURCES,
            "dependsOn": {"nvidia-tuned": "0.10.0"},
        },
    }


def test_aks_takes_the_setup_alone(compiled: Compiled) -> None:
    packages = ubuntu(compiled("h100-aks-ubuntu-training"))
    assert set(packages) == {"nvidia-setup-kernel", "nvidia-setup-full"}
    # Never left hanging on the package that is not there.
    assert packages["nvidia-setup-full"]["dependsOn"] == {"nvidia-setup-kernel": "0.8.0"}
    assert packages["nvidia-setup-full"]["configMap"] == {"service": "aks", "accelerator": "h100"}


def test_bare_metal_takes_the_tuning_alone(compiled: Compiled) -> None:
    assert ubuntu(compiled("gb300-generic-ubuntu-training")) == {
        "nvidia-tuned": {
            **TUNED,
            # No service: the package fails on one that it does not know.
            "configMap": {"accelerator": "gb300", "intent": "multiNodeTraining"},
            "interrupt": {"type": "reboot"},
            "env": [{"name": "INTERRUPT", "value": "true"}],
        }
    }


def test_without_tuning_bare_metal_has_no_host_package() -> None:
    plan = built("gb300-generic-ubuntu-training", set={"nodewright-customizations": {"tuningEnabled": False}})
    assert plan.release("nodewright-customizations").objects == ()


def test_an_explicit_false_leaves_new_nodes_untainted() -> None:
    plan = built("h100-eks-ubuntu-training", set={"nodewright-customizations": {"autoTaintNewNodes": False}})
    (tuned,) = plan.release("nodewright-customizations").objects
    assert tuned.data["spec"]["autoTaintNewNodes"] is False


def test_bare_metal_cannot_take_the_setup() -> None:
    values = {"nodewright-customizations": {"setup": {"enabled": True}}}
    assert "(rule `setup-service`)" in refused("gb300-generic-ubuntu-training", set=values)


def test_packages_that_reboot_are_not_applied_after_each_boot() -> None:
    values = {"nodewright-operator": {"controllerManager": {"manager": {"env": {"reapplyOnReboot": "true"}}}}}
    assert "(rule `no-reapply`)" in refused("h100-eks-ubuntu-training", set=values)


# --- EKS


def test_eks_brings_volumes_and_efa(compiled: Compiled) -> None:
    bundle = compiled("h100-eks-ubuntu-training")
    volumes = bundle.values("aws-ebs-csi-driver")
    assert volumes["defaultStorageClass"] == {"enabled": True}
    assert volumes["controller"]["replicaCount"] == 2
    assert volumes["node"]["tolerateAllTaints"] is True
    assert volumes["controller"]["serviceAccount"]["name"] == "ebs-csi-controller-sa"
    assert volumes["node"]["serviceAccount"]["name"] == "ebs-csi-node-sa"
    assert bundle.values("aws-efa")["fullnameOverride"] == "aws-efa-k8s-device-plugin"
    values = bundle.values("gpu-operator")
    assert values["cdi"] == {"enabled": True, "default": False}
    assert values["driver"]["enabled"] is values["toolkit"]["enabled"] is values["gdrcopy"]["enabled"] is True
    assert values["validator"]["plugin"]["env"] == [{"name": "WITH_WORKLOAD", "value": "false"}]
    assert bundle.values("nvidia-dra-driver-gpu")["nvidiaDriverRoot"] == "/run/nvidia/driver"
    assert "labeler" not in bundle.values("nvsentinel")  # the operator's driver pod is what it looks for


@pytest.mark.parametrize("name", ["gb200-oke-training", "h100-aks-ubuntu-training", "h100-eks-ubuntu-training"])
def test_managed_clouds_keep_prometheus_on_a_volume_and_show_no_control_plane(compiled: Compiled, name: str) -> None:
    bundle = compiled(name)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}}
    prometheus = bundle.values("kube-prometheus-stack")["prometheus"]["prometheusSpec"]
    assert prometheus["storageSpec"] == {"volumeClaimTemplate": {"spec": claim}}
    assert bundle.values("nvidia-dra-driver-gpu")["controller"]["affinity"] == {"nodeAffinity": None}


# --- who brings the driver


@pytest.mark.parametrize(
    ("name", "stack", "constraint", "operator", "runtime", "root"),
    [
        ("h100-aks-ubuntu-training", "azure-managed", "Install", False, "nvidia-container-runtime", "/"),
        ("h100-aks-ubuntu-training", "operator-managed", "None", True, "nvidia", "/run/nvidia/driver"),
        ("gb200-oke-training", "oci-managed", "installed", False, None, "/"),
        ("gb200-oke-training", "operator-managed", "absent", True, None, "/run/nvidia/driver"),
    ],
)
def test_the_profile_decides_who_brings_the_driver(
    name: str, stack: str, constraint: str, operator: bool, runtime: str | None, root: str
) -> None:
    recipe = built(name, profile={"gpuStack": stack}).recipe
    reading = "K8s.aks-gpu-pools.gpu-driver" if "aks" in name else "K8s.oke-addons.nvidia-gpu-plugin"
    assert recipe.constraints[reading].value == constraint
    gpu, sentinel = recipe.components["gpu-operator"].values, recipe.components["nvsentinel"].values
    assert (gpu["driver"]["enabled"], gpu["toolkit"]["enabled"]) == (operator, operator)
    assert gpu["operator"].get("runtimeClass") == runtime
    assert sentinel.get("metadata-collector", {}).get("runtimeClassName") == runtime
    assert sentinel["labeler"] == {"assumeDriverInstalled": not operator}
    assert recipe.components["nvidia-dra-driver-gpu"].values["nvidiaDriverRoot"] == root
    # On OKE the device plugin goes with the driver; on AKS the operator's always runs.
    assert gpu["devicePlugin"]["enabled"] is (operator or "aks" in name)


@pytest.mark.parametrize("name", ["h100-aks-ubuntu-training", "gb200-oke-training"])
def test_the_default_profile_is_the_clouds_own(name: str) -> None:
    default = built(name, profile={}).recipe.profile
    assert (default.name, default.value) == ("gpuStack", catalog().workspace.bundles[name].profile["gpuStack"])


# --- AKS


def test_the_images_toolkit_is_closed_on_aks(compiled: Compiled) -> None:
    pod = pod_of(
        compiled("h100-aks-ubuntu-training").object("gpu-operator-post", "DaemonSet", "nvidia-toolkit-hardening")
    )
    assert accelerators(pod) == [{"key": "kubernetes.azure.com/accelerator", "operator": "In", "values": ["nvidia"]}]
    (container,) = pod["containers"]
    assert "accept-nvidia-visible-devices-envvar-when-unprivileged=false" in container["args"][0]
    assert "accept-nvidia-visible-devices-as-volume-mounts=true" in container["args"][0]
    assert container["readinessProbe"]["exec"]["command"] == ["test", "-f", "/tmp/hardened"]
    # A node is still held back by this taint when the loop first runs there.
    assert {"key": "nodewright.nvidia.com", "operator": "Exists"} in pod["tolerations"]


def test_the_operators_toolkit_needs_no_closing() -> None:
    plan = built("h100-aks-ubuntu-training", profile={"gpuStack": "operator-managed"})
    assert [o.name for r in plan.releases if r.component == "gpu-operator" for o in r.objects] == []
    env = plan.recipe.components["gpu-operator"].values["toolkit"]["env"]
    assert {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"} in env
    assert {"name": "RUNTIME_CONFIG_SOURCE", "value": "file"} in env


def test_peermem_is_reloaded_where_the_policy_is(compiled: Compiled) -> None:
    bundle = compiled("h100-aks-ubuntu-training")
    item = bundle.object("network-operator-post", "DaemonSet", "nvidia-peermem-reloader")
    assert item["metadata"]["namespace"] == "nvidia-network-operator"
    pod = pod_of(item)
    assert pod["affinity"]["nodeAffinity"] == policy(bundle)["nodeAffinity"]
    (container,) = pod["containers"]
    assert "chroot /host modprobe nvidia-peermem" in container["args"][0]
    assert "readinessProbe" not in container  # it is applied before what may bring the driver
    assert bundle.values("gpu-operator")["driver"]["rdma"] == {"enabled": True, "useHostMofed": False}


@pytest.mark.parametrize(
    "component_path",
    ["gpu-operator:daemonsets.tolerations", "nodewright-customizations:acceleratedTolerations"],
)
def test_a_wildcard_toleration_is_refused_on_aks(component_path: str) -> None:
    component, _, path = component_path.partition(":")
    values: Any = [{"operator": "Exists"}]
    for key in reversed(path.split(".")):
        values = {key: values}
    message = refused("h100-aks-ubuntu-training", set={component: values})
    assert "(rule `no-wildcard-toleration-on-aks`)" in message


def test_no_toleration_of_aks_is_a_wildcard(compiled: Compiled) -> None:
    for path, item in compiled("h100-aks-ubuntu-training").objects():
        if path.startswith("components/"):
            assert '{"operator": "Exists"}' not in json.dumps(item), path


# --- kind, bare metal, OKE


def test_kind_uses_the_hosts_driver(compiled: Compiled) -> None:
    bundle = compiled("h100-kind-training")
    values = bundle.values("gpu-operator")
    assert (values["driver"]["enabled"], values["toolkit"]["enabled"]) == (False, True)
    assert values["operator"]["resources"]["requests"] == {"cpu": "100m", "memory": "200Mi"}
    assert bundle.values("nvidia-dra-driver-gpu")["nvidiaDriverRoot"] == "/"
    # kind shows its control plane, so the chart's own affinity stays.
    assert "affinity" not in bundle.values("nvidia-dra-driver-gpu")["controller"]
    assert bundle.values("nvsentinel")["labeler"] == {"assumeDriverInstalled": True}
    prometheus = bundle.values("kube-prometheus-stack")["prometheus"]["prometheusSpec"]
    assert (prometheus["retention"], prometheus["storageSpec"]) == ("7d", {"emptyDir": {"sizeLimit": "5Gi"}})


def test_bare_metal_brings_everything(compiled: Compiled) -> None:
    bundle = compiled("gb300-generic-ubuntu-training")
    values = bundle.values("gpu-operator")
    for part in ("driver", "toolkit", "devicePlugin", "gdrcopy"):
        assert values[part]["enabled"] is True, part
    assert "rdma" not in values["driver"]
    assert "kernelModuleConfig" not in values["driver"]
    assert bundle.manifests("gpu-operator-pre") == []
    assert values["devicePlugin"]["env"] == [
        {"name": "DP_DISABLE_HEALTHCHECKS", "value": "109"},
        {"name": "DEVICE_LIST_STRATEGY", "value": "cdi-cri,cdi-annotations,volume-mounts"},
        {"name": "MOFED_ENABLED", "value": "false"},
    ]
    network = bundle.values("network-operator")
    assert network["maintenanceOperator"] == {"enabled": True}
    assert network["maintenance-operator-chart"]["operatorConfig"]["maxUnavailable"] == "1"
    assert network["operator"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "2Gi"},
        "limits": {"cpu": "1", "memory": "2Gi"},
    }


def test_dma_buf_on_oke_needs_the_drivers_parameter(compiled: Compiled) -> None:
    bundle = compiled("gb200-oke-training")
    config = bundle.object("gpu-operator-pre", "ConfigMap", "nvidia-kernel-module-params")
    assert config["data"] == {"nvidia.conf": "options nvidia NVreg_GrdmaPciTopoCheckOverride=1\n"}
    values = bundle.values("gpu-operator")
    assert values["cdi"] == {"enabled": True, "default": False}
    assert values["gdrcopy"] == {"enabled": True}
    assert {"name": "MOFED_ENABLED", "value": "false"} in values["devicePlugin"]["env"]


@pytest.mark.parametrize("name", sorted(second.ORDERS))
def test_training_nodes_publish_their_topology(compiled: Compiled, name: str) -> None:
    assert compiled(name).values("nfd")["topologyUpdater"]["enable"] is ("kind" not in name)


def test_the_runtimes(compiled: Compiled) -> None:
    def runtimes(name: str) -> set[str]:
        return {o["metadata"]["name"] for o in compiled(name).manifests("kubeflow-trainer-post")}

    assert runtimes("h100-gke-cos-training-kubeflow") == {"torch-distributed", "torch-distributed-tcpxo"}
    assert runtimes("h100-eks-ubuntu-training-kubeflow") == {"torch-distributed"}
    assert runtimes("h100-kind-training-kubeflow") == {"torch-distributed"}
