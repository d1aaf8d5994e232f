"""What the recipes of H100 on GKE bring: GPUDirect-TCPXO on the nodes, and in a runtime over networks that a bundle names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bundles.bundle import Bundle
from tests.bundles.changed import Compiled, accelerators, pod_of, refused

TCPXO = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo"
PLUGIN = f"{TCPXO}/nccl-plugin-gpudirecttcpx-dev:v1.0.15@sha256:4c9f0de3f39455a2ea35e844e0fc92564ca5629f6b03250fde40e8160719dae4"
DAEMON = f"{TCPXO}/tcpgpudmarxd-dev:v1.0.21@sha256:8d9e10fd589a34ab8a0aa64f7e70ad075c8f1c69bea176350f8d211367697e3d"
INJECTOR = "gcr.io/gke-release/nri-device-injector:1.0.25-gke.6@sha256:7704e2bd74b8edbb76b6913c7904cc2362f1fa887c4d4aba7b19778ea353537c"


@pytest.fixture
def tcpxo(compiled: Compiled) -> Bundle:
    return compiled("h100-gke-cos-training-kubeflow")


def test_the_tcpxo_installer(tcpxo: Bundle) -> None:
    pod = pod_of(tcpxo.object("gke-nccl-tcpxo", "DaemonSet", "nccl-tcpxo-installer"))
    assert accelerators(pod) == [
        {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-h100-mega-80gb"]}
    ]
    assert (pod["hostNetwork"], pod["hostPID"], pod["priorityClassName"]) == (True, True, "system-node-critical")
    assert pod["tolerations"] == [{"operator": "Exists"}]
    host, plugin = pod["initContainers"]
    assert host["securityContext"] == plugin["securityContext"] == {"privileged": True}
    assert host["command"] == ["nsenter", "--all", "--target", "1", "--", "sh", "-c"]
    (script,) = host["args"]
    for step in ("iptables -I INPUT -p tcp", "modprobe import-helper", "0x1ae0:0x0084", "mount --bind"):
        assert step in script
    assert plugin["image"] == PLUGIN
    (install,) = plugin["args"]
    assert "container_entry.sh install --install-nccl" in install
    assert "cp -R /var/lib/tcpxo/lib64/. /usr/local/nvidia/lib64/" in install
    assert {v["name"]: v["hostPath"]["path"] for v in pod["volumes"]} == {
        "var-lib": "/var/lib",
        "tcpxo": "/var/lib/tcpxo",
        "library-dir-host": "/home/kubernetes/bin",
    }


def test_the_device_injector(tcpxo: Bundle) -> None:
    pod = pod_of(tcpxo.object("gke-nccl-tcpxo", "DaemonSet", "device-injector"))
    assert accelerators(pod)[0]["values"] == ["nvidia-h100-mega-80gb"]
    (container,) = pod["containers"]
    assert (container["image"], container["securityContext"]) == (INJECTOR, {"privileged": True})
    assert {m["mountPath"] for m in container["volumeMounts"]} == {"/dev", "/var/run/nri"}


def test_the_tcpxo_runtime(tcpxo: Bundle) -> None:
    runtime = tcpxo.object("kubeflow-trainer-post", "ClusterTrainingRuntime", "torch-distributed-tcpxo")
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 2, "torch": {}}
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    template = job["template"]["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    interfaces = json.loads(annotations["networking.gke.io/interfaces"])
    # The order of the input, whatever the names say.
    assert [(i["interfaceName"], i["network"]) for i in interfaces] == [
        ("eth0", "default"),
        *[(f"eth{n}", f"gpu-nic-{n - 1}") for n in range(1, 9)],
    ]
    devices = annotations["devices.gke.io/container.tcpxo-daemon"].splitlines()
    assert devices == [
        f"- path: /dev/{name}"
        for name in (*[f"nvidia{n}" for n in range(8)], "nvidiactl", "nvidia-uvm", "dmabuf_import_helper")
    ]
    (daemon,) = template["spec"]["initContainers"]
    assert (daemon["name"], daemon["image"], daemon["restartPolicy"]) == ("tcpxo-daemon", DAEMON, "Always")
    assert daemon["securityContext"] == {"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE"]}}
    assert "--num_hops=2 --num_nics=8" in daemon["args"][0]
    (container,) = template["spec"]["containers"]
    assert container["resources"] == {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert {v["hostPath"]["path"] for v in template["spec"]["volumes"] if "hostPath" in v} == {
        "/home/kubernetes/bin/nvidia",
        "/sys",
        "/proc/sys",
        "/dev/aperture_devices",
    }


def test_the_environment_of_the_tcpxo_release(tcpxo: Bundle) -> None:
    runtime = tcpxo.object("kubeflow-trainer-post", "ClusterTrainingRuntime", "torch-distributed-tcpxo")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    nccl = {e["name"]: e["value"] for e in container["env"] if e["name"].startswith("NCCL_")}
    library = "/usr/local/nvidia/lib64"
    assert nccl == {
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_FASTRAK_IFNAME": "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_CROSS_NIC": "0",
        "NCCL_PROTO": "Simple,LL128",
        "NCCL_MIN_NCHANNELS": "4",
        "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
        "NCCL_TUNER_CONFIG_PATH": f"{library}/a3plus_tuner_config.textproto",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{library}/a3plus_guest_config.textproto",
        "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_FASTRAK_NUM_FLOWS": "2",
        "NCCL_FASTRAK_USE_SNAP": "1",
        "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS": "600000",
        "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
        "NCCL_BUFFSIZE": "8388608",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
        "NCCL_FASTRAK_USE_LLCM": "1",
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
        "NCCL_NVLS_ENABLE": "1",
        "NCCL_DEBUG": "WARN",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH",
    }


NICS = {f"eth{n}": f"net-{n}" for n in range(1, 9)}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input `tcpxoInterfaces` is required"),
        ({"tcpxoInterfaces": {k: v for k, v in NICS.items() if k != "eth5"}}, '"eth5" is a required property'),
        (
            {"tcpxoInterfaces": {**NICS, "eth9": "net-9"}},
            "Additional properties are not allowed ('eth9' was unexpected)",
        ),
        ({"tcpxoInterfaces": {**NICS, "eth3": "Net_3"}}, '"Net_3" does not match'),
        ({"tcpxoInterfaces": {**NICS, "eth3": "default"}}, '"default" does not match'),
        ({"tcpxoInterfaces": list(NICS.values())}, "input `tcpxoInterfaces` is of type object"),
    ],
)
def test_a_runtime_without_its_eight_networks_is_refused(inputs: dict[str, Any], message: str) -> None:
    assert message in refused("h100-gke-cos-training-kubeflow", inputs=inputs)


@pytest.mark.parametrize(
    "values",
    [
        {
            "kubeflow-trainer": {
                "trainingRuntimes": {"torchDistributedTcpxo": {"daemonImage": DAEMON.replace(".21", ".22")}}
            }
        },
        {"gke-nccl-tcpxo": {"installerImage": PLUGIN.replace(".15", ".16")}},
    ],
    ids=["daemon", "plugin"],
)
def test_plugin_and_daemon_move_together(values: dict[str, Any]) -> None:
    assert "(rule `tcpxo-pair`)" in refused("h100-gke-cos-training-kubeflow", set=values)


def test_the_h100_nodes_of_gke_are_tuned(compiled: Compiled) -> None:
    spec = compiled("h100-gke-cos-training").object("nodewright-customizations", "NodeWright", "tuning")["spec"]
    assert spec["nodeSelectors"] == {"matchLabels": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}}
    assert spec["packages"]["tuning"]["configMap"] == {"accelerator": "h100", "intent": "multiNodeTraining"}
    assert "runtimeRequired" not in spec
