"""What the recipes bring to the cluster, spelled out: the values and objects that a wrong turn would break nodes with."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.bundles import second
from tests.bundles.bundle import Bundle
from tests.bundles.reading import Remote, read

PINS = {
    # release: chart, version, namespace
    "agentgateway": ("agentgateway", "v1.5.0", "agentgateway-system"),
    "agentgateway-crds": ("agentgateway-crds", "v1.5.0", "agentgateway-system"),
    "dynamo-platform": ("dynamo-platform", "1.4.2", "dynamo-system"),
    "grove": ("grove-charts", "v0.1.0-alpha.13", "dynamo-system"),
    "mariadb-operator": ("mariadb-operator", "26.6.0", "mariadb-system"),
    "mariadb-operator-crds": ("mariadb-operator-crds", "26.6.0", "mariadb-system"),
    "slinky-slurm": ("slurm", "1.2.0", "slurm"),
    "slinky-slurm-operator": ("slurm-operator", "1.2.0", "slinky"),
    "slinky-slurm-operator-crds": ("slurm-operator-crds", "1.2.0", "slinky"),
    "slurm-accounting-mariadb": ("mariadb-cluster", "26.6.0", "slurm"),
    "aws-ebs-csi-driver": ("aws-ebs-csi-driver", "2.59.0", "kube-system"),
    "aws-efa": ("aws-efa-k8s-device-plugin", "v0.5.29", "kube-system"),
    "cert-manager": ("cert-manager", "v1.20.2", "cert-manager"),
    "gpu-operator": ("gpu-operator", "v26.7.1", "gpu-operator"),
    "k8s-ephemeral-storage-metrics": ("k8s-ephemeral-storage-metrics", "1.19.2", "monitoring"),
    "kai-scheduler": ("kai-scheduler", "v0.16.9", "kai-scheduler"),
    "kube-prometheus-stack": ("kube-prometheus-stack", "84.4.0", "monitoring"),
    "kubeflow-trainer": ("kubeflow-trainer", "2.2.0", "kubeflow"),
    "network-operator": ("network-operator", "26.7.0", "nvidia-network-operator"),
    "nfd": ("node-feature-discovery", "0.20.1", "node-feature-discovery"),
    "nodewright-operator": ("nodewright", "v0.19.1", "nodewright"),
    "nvidia-dra-driver-gpu": ("dra-driver-nvidia-gpu", "0.5.1", "nvidia-dra-driver"),
    "nvsentinel": ("nvsentinel", "v1.25.0", "nvsentinel"),
    "prometheus-adapter": ("prometheus-adapter", "5.3.0", "monitoring"),
    "prometheus-operator-crds": ("prometheus-operator-crds", "28.0.1", "monitoring"),
}

OLDER_PROMETHEUS = ("kube-prometheus-stack", "83.7.0", "monitoring")
WITH_NETWORK_OPERATOR = ("nvke", "oke", "generic", "aks", "kind")

PRIVILEGED = {
    "gpu-operator",
    "monitoring",
    "node-feature-discovery",
    "nodewright",
    "nvidia-dra-driver",
    "nvidia-network-operator",
    "nvsentinel",
    "slurm",
}

FIVE = ["platform-health", "gpu-operator-health", "dra-support", "accelerator-metrics", "ai-service-metrics"]
GANG = ["gang-scheduling", "pod-autoscaling", "cluster-autoscaling"]
GKE_TRAINING = [*FIVE, *GANG, "secure-accelerator-access"]
CONFORMANCE = {
    "gb200-gke-cos-training": GKE_TRAINING,
    "gb200-gke-cos-training-kubeflow": [*GKE_TRAINING, "robust-controller"],
    "gb200-gke-cos-training-slurm": [
        *GKE_TRAINING,
        "slinky-slurm-health",
        "slinky-slurm-imex-channel",
        "slinky-slurm-gpu-access",
    ],
    "gb200-gke-cos-inference": [*FIVE, *GANG],
    "gb200-gke-cos-inference-dynamo": [*FIVE, *GANG, "inference-gateway", "robust-controller"],
    "gb200-nvke-ubuntu-training": FIVE,
    "gb200-nvke-ubuntu-training-kubeflow": [*FIVE, "robust-controller"],
    **second.CONFORMANCE,
}

GKE_NVLS = {"nccl-all-reduce-bw-nvls": ">= 250"}
NVKE_NCCL = {
    "nccl-all-reduce-bw-net": ">= 40",
    "nccl-all-reduce-bw-nvls": ">= 500",
    "nccl-benchmark-profile": "gb200/oke",
}
PERFORMANCE = {
    "gb200-gke-cos-training": GKE_NVLS,
    "gb200-gke-cos-training-kubeflow": GKE_NVLS,
    "gb200-gke-cos-training-slurm": {},  # cleared: Slurm holds the nodes that the check would take
    "gb200-gke-cos-inference": {},
    "gb200-gke-cos-inference-dynamo": {
        "inference-model": "Qwen/Qwen3-8B",
        "inference-concurrency-per-gpu": "256",
        "inference-routing-mode": "dynamo-router",
        "inference-throughput": ">= 50000",
        "inference-ttft-p99": "<= 2000",
        "inference-model-cache-storage-class": "a4x-compatible",
    },
    "gb200-nvke-ubuntu-training": NVKE_NCCL,
    "gb200-nvke-ubuntu-training-kubeflow": NVKE_NCCL,
    **second.PERFORMANCE,
}


def test_charts_and_versions(bundle: Bundle) -> None:
    seen = {
        r.release: (r.chart, r.version, r.namespace)
        for r in read("deploy.sh", bundle).releases
        if isinstance(r, Remote)
    }
    pins = {**PINS, **({"kube-prometheus-stack": OLDER_PROMETHEUS} if "aks" in bundle.name else {})}
    assert seen == {release: pins[release] for release in seen}
    assert ("network-operator" in seen) == any(name in bundle.name for name in WITH_NETWORK_OPERATOR)
    assert ("kubeflow-trainer" in seen) == ("kubeflow" in bundle.name)


def test_namespaces_that_hold_privileged_pods_admit_them(bundle: Bundle) -> None:
    seen = {}
    for path in bundle.under("namespaces/"):
        meta = bundle.one(path)["metadata"]
        seen[meta["name"]] = meta["labels"].get("pod-security.kubernetes.io/enforce")
    assert seen == {name: "privileged" if name in PRIVILEGED else None for name in seen}


def test_the_resolved_recipe_says_what_it_promises(bundle: Bundle) -> None:
    spec = bundle.one("recipe.yaml")["spec"]
    constraints = {c["name"]: c["value"] for c in spec["constraints"]}
    assert constraints["K8s.server.version"] == second.KUBERNETES.get(bundle.name, ">= 1.34")
    if "ubuntu" in bundle.name:
        assert constraints["OS.release.ID"] == "ubuntu"
        assert constraints["OS.release.VERSION_ID"] == "24.04"
        assert constraints["OS.sysctl./proc/sys/kernel/osrelease"] == ">= 6.8"
    validation = spec["validation"]
    assert validation["deployment"]["checks"] == [
        "operator-health",
        "expected-resources",
        "gpu-operator-version",
        "check-nvidia-smi",
        *(["gke-gpu-nic-networks"] if "h100-gke" in bundle.name else []),
    ]
    (version,) = validation["deployment"]["constraints"]
    assert version["name"] == "Deployment.gpu-operator.version"
    assert version["value"] == second.GPU_OPERATOR[bundle.name.partition("-")[0]]
    limits = {c["name"]: c["value"] for c in validation.get("performance", {}).get("constraints", [])}
    assert limits == PERFORMANCE[bundle.plan.recipe.name]
    assert validation["conformance"]["checks"] == CONFORMANCE[bundle.plan.recipe.name]


# --- NVKE


def test_the_nic_cluster_policy(nvke: Bundle) -> None:
    policy = nvke.object("network-operator-post", "NicClusterPolicy", "nic-cluster-policy")
    image = {"repository": "nvcr.io/nvidia/mellanox", "version": "network-operator-v26.7.0"}
    assert "namespace" not in policy["metadata"]
    assert policy["spec"] == {
        "nvIpam": {**image, "image": "nvidia-k8s-ipam", "enableWebhook": False},
        "secondaryNetwork": {
            "cniPlugins": {**image, "image": "plugins"},
            "multus": {**image, "image": "multus-cni"},  # no config: it finds the primary CNI by itself
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {
                                "key": "feature.node.kubernetes.io/pci-15b3.present",
                                "operator": "In",
                                "values": ["true"],
                            }
                        ]
                    }
                ]
            }
        },
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists"},
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
        ],
        "deploymentTolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
    }


def test_no_object_of_nvke_mentions_a_doca_driver(nvke: Bundle, nvke_kubeflow: Bundle) -> None:
    for bundle in (nvke, nvke_kubeflow):
        for path, item in bundle.objects():
            for word in ("ofedDriver", "rdmaSharedDevicePlugin", "sriovDevicePlugin"):
                assert word not in json.dumps(item), path


RAILS = [
    # rail, PCI root device, pool, gateway
    (0, "0000:03:00.0", "10.255.0.0/22", "10.255.0.1"),
    (1, "0002:03:00.0", "10.255.4.0/22", "10.255.4.1"),
    (2, "0010:03:00.0", "10.255.8.0/22", "10.255.8.1"),
    (3, "0012:03:00.0", "10.255.12.0/22", "10.255.12.1"),
]


@pytest.mark.parametrize(("rail", "device", "subnet", "gateway"), RAILS)
def test_a_rail(nvke: Bundle, rail: int, device: str, subnet: str, gateway: str) -> None:
    pool = nvke.object("sriov-ib-networks", "IPPool", f"nv-ipam-pool-rail-{rail}")
    policy = nvke.object("sriov-ib-networks", "SriovNetworkNodePolicy", f"infiniband-sriov-rail-{rail}")
    network = nvke.object("sriov-ib-networks", "SriovIBNetwork", f"sriov-network-rail-{rail}")
    assert {o["metadata"]["namespace"] for o in (pool, policy, network)} == {"nvidia-network-operator"}
    assert pool["spec"] == {
        "subnet": subnet,
        "gateway": gateway,
        "perNodeBlockSize": 50,
        "nodeSelector": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "feature.node.kubernetes.io/rdma.available", "operator": "In", "values": ["true"]}
                    ]
                }
            ]
        },
    }
    assert policy["spec"] == {
        "resourceName": f"sriov_resource_rail_{rail}",
        "deviceType": "netdevice",
        "linkType": "IB",
        "isRdma": True,
        "numVfs": 16,
        "mtu": 4000,
        "priority": 90,
        "nodeSelector": {"feature.node.kubernetes.io/rdma.available": "true"},
        "nicSelector": {"vendor": "15b3", "rootDevices": [device]},
    }
    ipam = json.loads(network["spec"].pop("ipam"))
    assert ipam == {"type": "nv-ipam", "poolName": f"nv-ipam-pool-rail-{rail}"}
    assert network["spec"] == {
        "resourceName": f"sriov_resource_rail_{rail}",
        "networkNamespace": "default",
        "linkState": "enable",
    }


def test_there_are_four_rails_and_nothing_else(nvke: Bundle) -> None:
    assert len(nvke.manifests("sriov-ib-networks")) == 12
    assert "0006:09:00.0" not in json.dumps(nvke.manifests("sriov-ib-networks"))  # mlx5_2, the BlueField-3


def test_the_pod_of_the_example_takes_one_vf_of_each_rail(nvke: Bundle) -> None:
    pod = nvke.one("examples/four-rail-pod.yaml")
    networks = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
    assert networks == ",".join(f"default/sriov-network-rail-{n}" for n in range(4))
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {f"nvidia.com/sriov_resource_rail_{n}": "1" for n in range(4)}


def test_the_sr_iov_operator_of_nvke(nvke: Bundle) -> None:
    values = nvke.values("network-operator")
    assert values["sriovNetworkOperator"] == {"enabled": True}
    assert values["maintenanceOperator"] == {"enabled": True}
    # Drains are handed to the Maintenance Operator, by two switches.
    assert values["operator"]["maintenanceOperator"] == {"useDrainControllerRequestor": True, "useRequestor": True}
    assert values["sriov-network-operator"] == {
        "operator": {
            "externalDrainer": {"enabled": True},
            "admissionControllers": {"enabled": False},
            # The chart's default, to which a placement adds.
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
            ],
        },
        "sriovOperatorConfig": {"deploy": True, "disablePlugins": ["mellanox"]},
    }
    # One node at a time; in quotes, since the chart's template drops a number.
    assert values["maintenance-operator-chart"]["operatorConfig"] == {
        "deploy": True,
        "maxParallelOperations": "1",
        "maxUnavailable": "1",
    }
    assert values["nfd"] == {"enabled": False, "deployNodeFeatureRules": True}
    assert "nicClusterPolicy" not in values  # our own key; the chart has no such value


def test_the_gpu_operator_of_nvke(nvke: Bundle) -> None:
    values = nvke.values("gpu-operator")
    assert values["driver"]["enabled"] is True
    assert values["driver"]["version"] == "580.173.02"
    assert values["driver"]["kernelModuleConfig"] == {"name": "nvidia-kernel-module-params"}
    assert "rdma" not in values["driver"]
    assert values["toolkit"] == {
        "enabled": True,
        "env": [
            {"name": "RUNTIME_CONFIG_SOURCE", "value": "file"},
            {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"},
        ],
    }
    assert values["devicePlugin"]["enabled"] is True
    assert values["gdrcopy"] == {"enabled": True}
    assert values["hostPaths"]["driverInstallDir"] == "/run/nvidia/driver"
    assert nvke.values("nvidia-dra-driver-gpu")["nvidiaDriverRoot"] == "/run/nvidia/driver"


def test_dma_buf_needs_a_parameter_of_the_driver(nvke: Bundle, gke: Bundle) -> None:
    for bundle in (nvke, gke):
        config = bundle.object("gpu-operator-pre", "ConfigMap", "nvidia-kernel-module-params")
        assert config["metadata"]["namespace"] == "gpu-operator"
        assert config["data"] == {"nvidia.conf": "options nvidia NVreg_GrdmaPciTopoCheckOverride=1\n"}


def test_the_rdma_modules(nvke: Bundle) -> None:
    spec = nvke.object("rdma-modules", "NodeWright", "rdma-modules")["spec"]
    (package,) = spec.pop("packages").values()
    scripts = package.pop("configMap")
    assert spec == {
        "runtimeRequired": True,
        "autoTaintNewNodes": True,
        "nodeSelectors": {
            "matchLabels": {"feature.node.kubernetes.io/pci-15b3.present": "true"},
            "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}],
        },
        "additionalTolerations": [{"operator": "Exists"}],
    }
    assert package == {  # no interrupt: no cordon, no drain, no reboot
        "image": "ghcr.io/nvidia/skyhook-packages/shellscript",
        "version": "1.1.1",
        "containerSHA": "sha256:5414b06e52c090d0842704f2580798064362d771f12421ccc8888186b5f5a3cf",
    }
    assert set(scripts) == {"apply.sh", "apply_check.sh"}
    for script in scripts.values():
        assert "rdma_ucm ib_umad ib_ipoib" in script
        assert "/etc/modules-load.d/bundlec-rdma-ulp.conf" in script


def test_nfd_labels_nodes_that_nobody_may_use_yet(nvke: Bundle) -> None:
    values = nvke.values("nfd")
    assert values["worker"]["tolerations"] == [{"operator": "Exists"}]
    assert values["topologyUpdater"]["enable"] is True
    (rule,) = values["worker"]["config"]["sources"]["custom"]
    assert rule["labels"] == {"feature.node.kubernetes.io/pci-15b3.present": "true"}
    # The proof that the modules are loaded comes from kernel.loadedmodule, which stays published.
    assert "kernel.loadedmodule" not in values["worker"]["config"]["core"]["noPublishFeatures"]
    assert "kernel.*" not in values["worker"]["config"]["core"]["noPublishFeatures"]


# --- GKE

PARTITION_GPU = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
GIB = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib-arm64:v1.1.2@sha256:6b7950cac6e6833661d4206920f5633b6e361b18bfd5315b63f9bf4a4b84a80e"


def pod_of(item: Any) -> Any:
    return item["spec"]["template"]["spec"]


def test_the_driver_installer(gke_installer: Bundle) -> None:
    pod = pod_of(gke_installer.object("gcp-driver-installer", "DaemonSet", "nvidia-driver-installer"))
    assert pod["priorityClassName"] == "system-node-critical"
    assert (pod["hostNetwork"], pod["hostPID"]) == (True, True)
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
        {"key": "gke-no-default-nvidia-gpu-device-plugin", "operator": "In", "values": ["true"]},
        {"key": "cloud.google.com/gke-confidential-nodes-instance-type", "operator": "DoesNotExist"},
    ]
    installer, partition = pod["initContainers"]
    assert (installer["image"], installer["imagePullPolicy"]) == ("cos-nvidia-installer:fixed", "Never")
    assert {"name": "DRIVER_VERSION", "value": "580.173.02"} in installer["env"]
    assert "/cos-gpu-installer install --version=" in installer["args"][0]
    assert partition["image"] == PARTITION_GPU  # the default is amd64 only and fails on Grace


def test_the_gib_installer(gke: Bundle) -> None:
    pod = pod_of(gke.object("gke-gb200-rdma", "DaemonSet", "nccl-rdma-installer"))
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-gb200"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
    ]
    (installer,) = pod["initContainers"]
    assert installer["name"] == "nccl-rdma-installer"
    assert installer["image"] == GIB
    volumes = {v["name"]: v["hostPath"] for v in pod["volumes"]}
    assert volumes["library-dir-host"] == {"path": "/home/kubernetes/bin/nvidia/lib64", "type": "DirectoryOrCreate"}
    assert volumes["gib"] == {"path": "/home/kubernetes/bin/gib"}
    assert volumes["nvidia-dir"] == {"path": "/home/kubernetes/bin/nvidia", "type": "Directory"}  # waits for the driver


def test_gke_admits_the_operators_critical_pods(gke: Bundle) -> None:
    quota = gke.object("gpu-operator-pre", "ResourceQuota", "gcp-critical-pods")
    assert quota["metadata"]["namespace"] == "gpu-operator"
    assert quota["spec"] == {
        "hard": {"pods": "1000"},
        "scopeSelector": {
            "matchExpressions": [
                {
                    "scopeName": "PriorityClass",
                    "operator": "In",
                    "values": ["system-node-critical", "system-cluster-critical"],
                }
            ]
        },
    }


def test_nvke_needs_no_quota(nvke: Bundle) -> None:
    assert [o["kind"] for o in nvke.manifests("gpu-operator-pre")] == ["ConfigMap"]


def test_the_gpu_operator_of_gke_installs_no_driver(gke: Bundle) -> None:
    values = gke.values("gpu-operator")
    assert values["driver"]["enabled"] is False
    assert values["hostPaths"]["driverInstallDir"] == "/home/kubernetes/bin/nvidia"
    assert values["cdi"] == {"enabled": True, "default": True}
    assert values["toolkit"] == {
        "enabled": True,
        "installDir": "/home/kubernetes/bin/nvidia",
        "env": [
            {"name": "RUNTIME_CONFIG_SOURCE", "value": "file"},
            {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"},
            {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", "value": "true"},
        ],
    }
    assert {"name": "DP_DISABLE_HEALTHCHECKS", "value": "x"} in values["devicePlugin"]["env"]


@pytest.mark.parametrize(
    ("name", "device_plugin", "assume_installed"),
    [("gb200-gke-cos-training", False, True), ("gb200-gke-cos-training-bundle-installer", True, False)],
)
def test_the_profile_owns_three_values(compiled: Any, name: str, device_plugin: bool, assume_installed: bool) -> None:
    bundle = compiled(name)
    assert bundle.values("gpu-operator")["devicePlugin"]["enabled"] is device_plugin
    assert bundle.values("nvsentinel")["labeler"] == {"assumeDriverInstalled": assume_installed}
    assert bool(bundle.manifests("gcp-driver-installer")) is device_plugin


def test_nvke_looks_for_the_driver_pods(nvke: Bundle) -> None:
    assert "labeler" not in nvke.values("nvsentinel")


def test_the_dra_driver_of_gke(gke: Bundle) -> None:
    values = gke.values("nvidia-dra-driver-gpu")
    assert values["nvidiaDriverRoot"] == "/home/kubernetes/bin/nvidia"
    # A null, since the chart itself asks for control-plane nodes, and GKE shows none.
    assert values["controller"]["affinity"] == {"nodeAffinity": None}
    assert (values["controller"]["priorityClassName"], values["kubeletPlugin"]["priorityClassName"]) == ("", "")
    assert values["resources"]["gpus"] == {"enabled": False}
    assert values["gpuResourcesEnabledOverride"] is False


def test_prometheus_of_gke_keeps_its_data(gke: Bundle) -> None:
    """Case 11: the base's emptyDir is gone and not null, which the API server would refuse."""
    assert gke.values("kube-prometheus-stack")["prometheus"]["prometheusSpec"]["storageSpec"] == {
        "volumeClaimTemplate": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}}
        }
    }


def test_nodewright_of_gke_keeps_to_where_cos_can_be_written(gke: Bundle) -> None:
    env = gke.values("nodewright-operator")["controllerManager"]["manager"]["env"]
    assert env == {"copyDirRoot": "/etc/nodewright", "reapplyOnReboot": "true"}
    tuning = gke.object("nodewright-customizations", "NodeWright", "tuning")["spec"]
    assert "runtimeRequired" not in tuning
    assert tuning["nodeSelectors"] == {"matchLabels": {"cloud.google.com/gke-accelerator": "nvidia-gb200"}}
    assert tuning["packages"]["tuning"] == {
        "image": "ghcr.io/nvidia/nodewright-packages/nvidia-tuning-gke",
        "version": "0.1.2",
        "containerSHA": "sha256:6671d49f006afdbeefd8858f1fa1216f7748205bc42edab3340210a2cc459a81",
        "interrupt": {"type": "service", "services": ["systemd-sysctl"]},
        "configMap": {"accelerator": "gb200", "intent": "multiNodeTraining"},
    }


# --- Kubeflow


def test_the_rdma_runtime(gke_kubeflow: Bundle) -> None:
    runtime = gke_kubeflow.object("kubeflow-trainer-post", "ClusterTrainingRuntime", "torch-distributed-rdma")
    assert runtime["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "torch"
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 2, "torch": {}}
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    assert job["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    template = job["template"]["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    assert annotations["networking.gke.io/default-interface"] == "eth0"
    interfaces = json.loads(annotations["networking.gke.io/interfaces"])
    assert [(i["interfaceName"], i["network"]) for i in interfaces] == [
        ("eth0", "default"),
        ("eth1", "gvnic-1"),
        ("eth2", "rdma-0"),
        ("eth3", "rdma-1"),
        ("eth4", "rdma-2"),
        ("eth5", "rdma-3"),
    ]
    (container,) = template["spec"]["containers"]
    assert container["resources"] == {"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "4"}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert {"name": "NCCL_NET", "value": "gIB"} in container["env"]
    mounts = {m["name"]: (m["mountPath"], m.get("readOnly", False)) for m in container["volumeMounts"]}
    assert mounts == {
        "dshm": ("/dev/shm", False),
        "nvidia-host": ("/home/kubernetes/bin/nvidia", True),
        "gib-host": ("/home/kubernetes/bin/gib", True),
    }
    volumes = {v.pop("name"): v for v in template["spec"]["volumes"]}
    assert volumes == {
        "dshm": {"emptyDir": {"medium": "Memory"}},
        "nvidia-host": {"hostPath": {"path": "/home/kubernetes/bin/nvidia"}},
        "gib-host": {"hostPath": {"path": "/home/kubernetes/bin/gib"}},
    }


def test_the_runtimes_of_each_platform(gke_kubeflow: Bundle, nvke_kubeflow: Bundle) -> None:
    def runtimes(bundle: Bundle) -> set[str]:
        return {o["metadata"]["name"] for o in bundle.manifests("kubeflow-trainer-post")}

    assert runtimes(gke_kubeflow) == {"torch-distributed", "torch-distributed-rdma"}
    assert runtimes(nvke_kubeflow) == {"torch-distributed"}
    plain = gke_kubeflow.object("kubeflow-trainer-post", "ClusterTrainingRuntime", "torch-distributed")
    assert plain["spec"]["mlPolicy"] == {"numNodes": 1, "torch": {}}
    assert "gIB" not in json.dumps(plain)


def test_the_jobs_of_the_examples_leave_the_resources_to_the_runtime(gke_kubeflow: Bundle) -> None:
    """resourcesPerNode would replace the four GPUs, and with them the whole node."""
    for name in ("trainjob-rdma", "trainjob-rdma-tuned"):
        spec = gke_kubeflow.one(f"examples/{name}.yaml")["spec"]
        assert spec["runtimeRef"] == {
            "name": "torch-distributed-rdma",
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
        }
        assert spec["trainer"]["numNodes"] == 2
        assert "resourcesPerNode" not in spec["trainer"]
    tuned = gke_kubeflow.one("examples/trainjob-rdma-tuned.yaml")["spec"]["trainer"]
    assert tuned["command"] == ["/bin/bash", "-c"]
    assert ". /home/kubernetes/bin/gib/scripts/set_nccl_env.sh" in tuned["args"][0]
    assert "exec torchrun train.py" in tuned["args"][0]  # no rendezvous flags: the trainer sets PET_*


# --- what a cluster must hold already


def preflight(bundle: Bundle) -> list[list[str]]:
    """The lines of preflight.sh's table: need_KIND, name, severity, text, arguments."""
    lines = bundle.files["preflight.sh"].decode().splitlines()
    return [shlex.split(line) for line in lines if line.startswith("  need_")]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("gvnic-1", "NetDevice"), ("rdma-0", "RDMA"), ("rdma-1", "RDMA"), ("rdma-2", "RDMA"), ("rdma-3", "RDMA")],
)
def test_the_preflight_of_gke_looks_for_the_five_networks(gke: Bundle, name: str, mode: str) -> None:
    checks = {words[1]: (words[2], words[4:]) for words in preflight(gke)}
    paramset = ["field", "gkenetworkparamsets.v1.networking.gke.io", name, "", "{.spec.deviceMode}", "equals", mode]
    network = ["field", "networks.v1.networking.gke.io", name, "", "{.spec.parametersRef.name}", "equals", name]
    assert checks[f"paramset-{name}"] == ("error", paramset)
    assert checks[f"network-{name}"] == ("error", network)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gb200-gke-cos-training", "!gke-no-default-nvidia-gpu-device-plugin"),
        ("gb200-gke-cos-training-bundle-installer", "gke-no-default-nvidia-gpu-device-plugin=true"),
    ],
)
def test_the_preflight_of_gke_looks_at_the_pools(compiled: Any, name: str, label: str) -> None:
    (words,) = [words for words in preflight(compiled(name)) if words[0] == "need_label"]
    assert (words[1], words[2], words[4:]) == ("NodeTopology.gpu-nodes.label", "error", [label])


def test_the_preflight_of_nvke(nvke: Bundle) -> None:
    rows = [(words[0], words[1], words[2], words[4:]) for words in preflight(nvke)]
    assert ("need_version", "K8s.server.version", "error", [">= 1.34"]) in rows
    assert ("need_os", "OS.release.ID", "error", ["ubuntu"]) in rows
    assert ("need_os", "OS.release.VERSION_ID", "error", ["24.04"]) in rows
    # A second Network Operator would fight over the nodes.
    foreign = ("need_singleton", "NicClusterPolicy nic-cluster-policy", "error", ["mellanox.com", "NicClusterPolicy"])
    assert foreign in rows
