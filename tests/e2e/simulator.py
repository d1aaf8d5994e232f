"""What kubelets and operators would do: pods get their node and become ready, custom resources get their status.

Deployments, DaemonSets, StatefulSets and Jobs are the real controllers' business: here is only what these would need a
machine for. Delays and faults are fields that a test sets, also while it runs. An operator acts once the workload of
its chart is available, and not while it is in `dead`.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.charts import crd_of

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
DEVICE = "feature.node.kubernetes.io/pci-15b3.present"
"""Label of nodes with a device of the RDMA fabric."""


def now() -> str:
    """The time as the API writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass
class Faults:
    """Delays in seconds, and what goes wrong."""

    crd: float = 3.0  # from a NicClusterPolicy with nvIpam to the IPPool CRD
    policy: float = 2.0  # from the CRD to status.state ready
    pod: float = 0.0  # from a pod's creation to Ready
    status: float = 1.0  # from any other custom resource to its good status
    finalizer: float = 2.0  # from a deletion to the removal of the finalizer
    drain: float = 3.0  # nodes are out of sync this long after SriovNetworkNodePolicies change
    dead: set[str] = field(default_factory=set)  # operators that do nothing, by the name of their Deployment
    unready: set[str] = field(default_factory=set)  # workloads whose pods start and do not become ready


class Simulator:
    """Runs in a thread of its own, between `start` and `stop`; `errors` tells what it could not do."""

    def __init__(self, url: str, token: str, crds: Path, kubectl: Path, folder: Path) -> None:
        self.url = url
        self.faults = Faults()
        self.errors: list[str] = []
        self._api = Api(url, token)
        self._crds = crds
        self._kubectl = kubectl
        self._folder = folder  # what pods of Jobs said
        self._done: dict[str, int] = {}
        self.restarts: Counter[str] = Counter()  # of containers, by Job
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._since: dict[tuple[str, str], float] = {}
        self._jobs: dict[str, subprocess.Popen[bytes]] = {}
        self._policies_changed = 0.0
        self._policies_seen: frozenset[str] = frozenset()
        self._available: set[str] = set()
        self._rounds = 0

    def start(self) -> None:
        """Begins to play."""
        self._thread.start()

    def settle(self) -> None:
        """Waits until what was under way when `faults` were set is done with."""
        wanted = self._rounds + 2
        while self._rounds < wanted:
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends, with the containers of Jobs that still run."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=35)
        self._api.close()
        for process in self._jobs.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _loop(self) -> None:
        steps: list[Callable[[], None]] = [
            self._kubelets, self._network_operator, self._gpu_operator, self._nodewright, self._prometheus, self._kai,
            self._sriov,
        ]  # fmt: skip
        while not self._stop.is_set():
            self._rounds += 1
            try:
                self._available = {
                    d["metadata"]["name"]
                    for d in self._api.list("/apis/apps/v1/deployments", resourceVersion="0")
                    if (d.get("status") or {}).get("availableReplicas")
                }
            except (OSError, ApiError):
                self._stop.wait(0.3)
                continue
            for step in steps:
                try:
                    step()
                except OSError:  # the server is being restarted
                    break
                except ApiError as error:
                    # What stays wrong shows in the test, and here. Objects change under our hands, and servers are busy.
                    if error.code not in (404, 409, 429, 503):
                        self.errors.append(f"{step.__name__}: {error}")
            self._stop.wait(0.25)

    def _alive(self, deployment: str) -> bool:
        return deployment in self._available and deployment not in self.faults.dead

    def _passed(self, what: str, item: Object, seconds: float) -> bool:
        """Whether `seconds` have passed since this object was first looked at for `what`."""
        first = self._since.setdefault((what, item["metadata"]["uid"]), time.monotonic())
        return time.monotonic() - first >= seconds

    # --- kubelets ----------------------------------------------------------------------------------------------------

    def _kubelets(self) -> None:
        nodes = [n["metadata"]["name"] for n in self._api.list(NODES, resourceVersion="0")]
        if not nodes:
            return
        for pod in self._api.list(PODS, resourceVersion="0"):
            meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            if "deletionTimestamp" in meta:
                self._api.delete(path, grace=0)
                continue
            if status.get("phase") in ("Succeeded", "Failed"):
                continue
            try:
                if "nodeName" not in spec:
                    self._bind(path, pod, nodes)
                ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])
                if any(o["kind"] == "Job" for o in meta.get("ownerReferences") or []):
                    self._run_container(path, pod)
                elif not ready and self._may_become_ready(pod):
                    self._ready(path, pod)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    def _may_become_ready(self, pod: Object) -> bool:
        app = (pod["metadata"].get("labels") or {}).get("app") or pod["metadata"].get("generateName", "").rstrip("-")
        return app not in self.faults.unready and self._passed("pod", pod, self.faults.pod)

    def _bind(self, path: str, pod: Object, nodes: list[str]) -> None:
        """To the node that a DaemonSet means, else to any: nobody counts resources here."""
        wanted = nodes[0]
        affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        for term in (affinity or {}).get("nodeSelectorTerms", []):
            for match in term.get("matchFields", []):
                wanted = match["values"][0]
        target = {"apiVersion": "v1", "kind": "Node", "name": wanted}
        name = pod["metadata"]["name"]
        self._api.request(
            "POST",
            f"{path}/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target},
        )

    def _ready(self, path: str, pod: Object) -> None:
        number = int(pod["metadata"]["uid"][:6], 16)
        address = f"10.{number >> 16 & 127}.{number >> 8 & 255}.{number & 255}"
        stamp = now()
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": stamp}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        self._api.merge(f"{path}/status", {"status": {**status, "startTime": stamp}})

    def _run_container(self, path: str, pod: Object) -> None:
        """A Job's containers are kubectl: their arguments run here, as the pod's ServiceAccount, with its token.

        One after the other, init containers first; one that fails starts again, as restartPolicy OnFailure has it.
        """
        uid = pod["metadata"]["uid"]
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        done = self._done.setdefault(uid, 0)
        process = self._jobs.get(uid)
        if process is not None and process.poll() is None:
            return
        if process is not None and process.returncode == 0:
            done = self._done[uid] = done + 1
        elif process is not None:
            self.restarts[pod["metadata"]["generateName"].rstrip("-")] += 1
            if pod["spec"]["restartPolicy"] == "Never":
                self._api.merge(f"{path}/status", {"status": {"phase": "Failed"}})
                return
        if done == len(containers):
            del self._jobs[uid]
            self._api.merge(f"{path}/status", {"status": {"phase": "Succeeded"}})
            return
        if process is None:
            self._api.merge(f"{path}/status", {"status": {"phase": "Running", "startTime": now()}})
        self._jobs[uid] = self._start_container(pod, containers[done])

    def _start_container(self, pod: Object, container: Object) -> subprocess.Popen[bytes]:
        namespace = pod["metadata"]["namespace"]
        account = pod["spec"].get("serviceAccountName", "default")
        folder = self._folder / pod["metadata"]["name"]
        config = folder / "kubeconfig"
        if not config.exists():
            granted = self._api.request(
                "POST",
                f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
            )
            folder.mkdir(parents=True)
            config.write_text(json.dumps(_kubeconfig(self.url, granted["status"]["token"], namespace)))
        words = [*container.get("command", ["kubectl"]), *container.get("args", [])]
        words[0] = str(self._kubectl) if words[0] == "kubectl" else words[0]
        with (folder / f"{container['name']}.log").open("ab") as log:
            log.write(f"$ {' '.join(words)}\n".encode())
            log.flush()
            return subprocess.Popen(
                words,
                env={"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(config)},
                cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    # --- operators ---------------------------------------------------------------------------------------------------

    def _state(self, collection: str, status: Object, seconds: float, waiting: Object | None = None) -> None:
        """Sets the status of every object that has another one, `seconds` after it was first seen."""
        for item in self._api.list(collection, resourceVersion="0"):
            have = item.get("status") or {}
            good = {**status}
            if "conditions" in good:
                good["conditions"] = [
                    {**c, "lastTransitionTime": now(), "reason": "Simulated", "message": ""} for c in good["conditions"]
                ]
                done = {c["type"] for c in have.get("conditions", []) if c["status"] == "True"} >= {
                    c["type"] for c in status["conditions"]
                }
            else:
                done = all(have.get(key) == value for key, value in good.items())
            if done or "deletionTimestamp" in item["metadata"]:
                continue
            wanted = good if self._passed("status", item, seconds) else waiting
            if wanted is not None and any(have.get(key) != value for key, value in wanted.items()):
                self._api.merge(f"{_path(collection, item)}/status", {"status": wanted})

    def _finalize(self, collection: str, finalizer: str, *, alive: bool) -> None:
        """Puts the finalizer on objects that live, and takes it off those that are being deleted, after a while."""
        for item in self._api.list(collection, resourceVersion="0"):
            meta = item["metadata"]
            held = finalizer in meta.get("finalizers", [])
            rest = [f for f in meta.get("finalizers", []) if f != finalizer]
            if not alive:
                continue
            if "deletionTimestamp" not in meta and not held:
                self._api.merge(_path(collection, item), {"metadata": {"finalizers": [*rest, finalizer]}})
            elif "deletionTimestamp" in meta and held and self._passed("finalizer", item, self.faults.finalizer):
                self._api.merge(_path(collection, item), {"metadata": {"finalizers": rest or None}})

    def _network_operator(self) -> None:
        if not self._alive("network-operator"):
            return
        collection = "/apis/mellanox.com/v1alpha1/nicclusterpolicies"
        for policy in self._api.list(collection, resourceVersion="0"):
            if "nvIpam" in policy["spec"] and self._passed("crd", policy, self.faults.crd):
                for kind in ("IPPool", "CIDRPool"):
                    name = f"{kind.lower()}s.nv-ipam.nvidia.com"
                    if ("made", name) not in self._since or self._api.get(f"{CRDS}/{name}") is None:
                        self._api.create(CRDS, crd_of(self._crds, name, kind, "Namespaced"))
                        self._since["made", name] = time.monotonic()
        self._state(collection, {"state": "ready"}, self.faults.crd + self.faults.policy, {"state": "notReady"})

    def _gpu_operator(self) -> None:
        if not self._alive("gpu-operator"):
            return
        collection = "/apis/nvidia.com/v1/clusterpolicies"
        self._state(collection, {"state": "ready", "namespace": "gpu-operator"}, self.faults.status)
        for policy in self._api.list(collection, resourceVersion="0"):
            self._workload("DaemonSet", "nvidia-operator-validator", "gpu-operator", policy)

    def _nodewright(self) -> None:
        collection = "/apis/nodewright.nvidia.com/v1alpha1/nodewrights"
        alive = self._alive("nodewright-controller-manager")
        self._finalize(collection, "nodewright.nvidia.com/nodewright", alive=alive)
        if not alive:
            return
        self._state(collection, {"status": "complete"}, self.faults.status, {"status": "in_progress"})
        for item in self._api.list(collection, resourceVersion="0"):
            if item["metadata"]["name"] == "rdma-modules" and (item.get("status") or {}).get("status") == "complete":
                # NFD sees the modules on the nodes that have a device for them; where there is none, all is complete.
                for node in self._api.list(NODES, labelSelector=DEVICE, resourceVersion="0"):
                    key = "feature.node.kubernetes.io/rdma.available"
                    if node["metadata"]["labels"].get(key) != "true":
                        self._api.merge(f"{NODES}/{node['metadata']['name']}", {"metadata": {"labels": {key: "true"}}})

    def _prometheus(self) -> None:
        if not self._alive("kube-prometheus-operator"):
            return
        for kind in ("prometheus", "alertmanager"):
            plural = {"prometheus": "prometheuses", "alertmanager": "alertmanagers"}[kind]
            collection = f"/apis/monitoring.coreos.com/v1/{plural}"
            for item in self._api.list(collection, resourceVersion="0"):
                meta = item["metadata"]
                self._workload("StatefulSet", f"{kind}-{meta['name']}", meta["namespace"], item)
            good = {"conditions": [{"type": "Available", "status": "True"}, {"type": "Reconciled", "status": "True"}]}
            counts = {
                "paused": False,
                "replicas": 1,
                "updatedReplicas": 1,
                "availableReplicas": 1,
                "unavailableReplicas": 0,
            }
            self._state(collection, {**counts, **good}, self.faults.status)

    def _kai(self) -> None:
        if self._alive("kai-operator"):
            good = {"conditions": [{"type": "Available", "status": "True", "observedGeneration": 1}]}
            self._state("/apis/kai.scheduler/v1/configs", good, self.faults.status)

    def _sriov(self) -> None:
        alive = self._alive("network-operator-sriov-network-operator")
        networks = "/apis/sriovnetwork.openshift.io/v1/sriovibnetworks"
        self._finalize(networks, "netattdef.finalizers.sriovnetwork.openshift.io", alive=alive)
        if not alive:
            return
        namespace = "nvidia-network-operator"
        policies = self._api.list("/apis/sriovnetwork.openshift.io/v1/sriovnetworknodepolicies", resourceVersion="0")
        seen = frozenset(p["metadata"]["uid"] for p in policies)
        if seen != self._policies_seen:
            self._policies_seen, self._policies_changed = seen, time.monotonic()
        wanted = "Succeeded" if time.monotonic() - self._policies_changed > self.faults.drain else "InProgress"
        collection = f"/apis/sriovnetwork.openshift.io/v1/namespaces/{namespace}/sriovnetworknodestates"
        have = {s["metadata"]["name"]: s for s in self._api.list(collection, resourceVersion="0")}
        for node in self._api.list(NODES, resourceVersion="0"):
            name = node["metadata"]["name"]
            if name not in have and policies:
                item = {
                    "apiVersion": "sriovnetwork.openshift.io/v1",
                    "kind": "SriovNetworkNodeState",
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {},
                }
                self._api.create(collection, item)
            elif name in have and (have[name].get("status") or {}).get("syncStatus") != wanted:
                self._api.merge(f"{collection}/{name}/status", {"status": {"syncStatus": wanted}})

    def _workload(self, kind: str, name: str, namespace: str, owner: Object) -> None:
        """Of an operator, owned by the custom resource that asks for it."""
        path = f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s"
        if "deletionTimestamp" in owner["metadata"] or self._api.get(f"{path}/{name}") is not None:
            return
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "stand-in"}], "tolerations": [{"operator": "Exists"}]},
        }
        spec: Object = {"selector": {"matchLabels": {"app": name}}, "template": template}
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "replicas": 1}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [reference]}
        self._api.create(path, {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})


def node(
    name: str, labels: dict[str, str], *, os_image: str = "Ubuntu 24.04.3 LTS", kernel: str = "6.8.0-64k"
) -> Object:
    """A node that is ready; its status is part of the object, and has to be set apart."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}],
            "nodeInfo": {
                "osImage": os_image, "kernelVersion": kernel, "machineID": "", "systemUUID": "", "bootID": "",
                "containerRuntimeVersion": "", "kubeletVersion": "v1.34.1", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "arm64",
            },
        },
    }  # fmt: skip


def add_nodes(api: Api, nodes: Iterable[Object]) -> None:
    """Creates nodes with their status."""
    for item in nodes:
        api.create(NODES, item)
        api.merge(f"{NODES}/{item['metadata']['name']}/status", {"status": item["status"]})


def _path(collection: str, item: Object) -> str:
    meta = item["metadata"]
    head, _, plural = collection.rpartition("/")
    if "namespace" in meta and "/namespaces/" not in collection:
        head = f"{head}/namespaces/{meta['namespace']}"
    return f"{head}/{plural}/{meta['name']}"


def _kubeconfig(url: str, token: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "current-context": "x",
    }
