"""What is expected of the recipes beyond GB200 on GKE and NVKE: figures, orders and edges, spelled out."""

from __future__ import annotations

FIVE = ["platform-health", "gpu-operator-health", "dra-support", "accelerator-metrics", "ai-service-metrics"]
GANG = ["gang-scheduling", "pod-autoscaling", "cluster-autoscaling"]
TRAINING = [*FIVE, *GANG, "secure-accelerator-access"]
KIND = [*FIVE, "gang-scheduling", "secure-accelerator-access", "pod-autoscaling", "cluster-autoscaling"]
CONFORMANCE = {
    "gb200-oke-training": [*FIVE, *GANG],
    "gb300-generic-ubuntu-training": FIVE,
    "h100-aks-ubuntu-training": TRAINING,
    "h100-eks-ubuntu-training": TRAINING,
    "h100-eks-ubuntu-training-kubeflow": [*TRAINING, "robust-controller"],
    "h100-gke-cos-training": TRAINING,
    "h100-gke-cos-training-kubeflow": [*TRAINING, "robust-controller"],
    "h100-kind-training": KIND,
    "h100-kind-training-kubeflow": [*KIND, "robust-controller"],
}
PERFORMANCE = {
    # GB/s
    "gb200-oke-training": {"nccl-all-reduce-bw-net": ">= 40", "nccl-all-reduce-bw-nvls": ">= 500"},
    "gb300-generic-ubuntu-training": {"nccl-all-reduce-bw-nvls": ">= 823"},
    "h100-aks-ubuntu-training": {"nccl-all-reduce-bw": ">= 150"},
    "h100-eks-ubuntu-training": {"nccl-all-reduce-bw": ">= 300"},
    "h100-eks-ubuntu-training-kubeflow": {"nccl-all-reduce-bw": ">= 300"},
    "h100-gke-cos-training": {"nccl-all-reduce-bw": ">= 300"},
    "h100-gke-cos-training-kubeflow": {"nccl-all-reduce-bw": ">= 300"},
    "h100-kind-training": {},
    "h100-kind-training-kubeflow": {},
}
KUBERNETES = {
    # Every other recipe asks for 1.34.
    "h100-eks-ubuntu-training": ">= 1.32.4",
    "h100-eks-ubuntu-training-kubeflow": ">= 1.32.4",
    "h100-gke-cos-training": ">= 1.32",
    "h100-gke-cos-training-kubeflow": ">= 1.32",
}
GPU_OPERATOR = {"gb200": ">= v25.10.0", "gb300": ">= v25.10.0", "h100": ">= v24.6.0"}

MONITORING = ["prometheus-operator-crds", "kube-prometheus-stack"]
PLATFORM = ["nvidia-dra-driver-gpu", "nvsentinel", "prometheus-adapter"]
TRAINER = ["kubeflow-trainer", "kubeflow-trainer-post"]
NETWORK = ["cert-manager", "nfd", "network-operator", "network-operator-post"]
TUNED = ["nodewright-operator", "nodewright-customizations"]
# Emitted empty where it holds nothing, so that what it held before is pruned.
OPERATOR = ["gpu-operator-pre", "gpu-operator"]
SCHEDULED = ["k8s-ephemeral-storage-metrics", "kai-scheduler"]

EKS = ["aws-ebs-csi-driver", "aws-efa", "cert-manager", "nfd", *TUNED, *MONITORING, *OPERATOR, *SCHEDULED]
GKE = ["cert-manager", "gcp-driver-installer", "nfd", *TUNED, *MONITORING, *OPERATOR, "gke-nccl-tcpxo", *SCHEDULED]
KIND_ORDER = [*NETWORK[:-1], "nodewright-operator", *MONITORING, *OPERATOR, *SCHEDULED]
ORDERS = {
    "gb200-oke-training": [*NETWORK, "nodewright-operator", *MONITORING, *OPERATOR, *SCHEDULED, *PLATFORM],
    "gb300-generic-ubuntu-training": [*NETWORK, *TUNED, *MONITORING, *OPERATOR, *SCHEDULED, *PLATFORM],
    "h100-aks-ubuntu-training": [
        *NETWORK,
        *TUNED,
        *MONITORING,
        *OPERATOR,
        "gpu-operator-post",
        *SCHEDULED,
        *PLATFORM,
    ],
    "h100-eks-ubuntu-training": [*EKS, *PLATFORM],
    "h100-eks-ubuntu-training-kubeflow": [*EKS, *TRAINER, *PLATFORM],
    "h100-gke-cos-training": [*GKE, *PLATFORM],
    "h100-gke-cos-training-kubeflow": [*GKE, *TRAINER, *PLATFORM],
    "h100-kind-training": [*KIND_ORDER, *PLATFORM],
    "h100-kind-training-kubeflow": [*KIND_ORDER, *TRAINER, *PLATFORM],
}

# Dependant -> what stands directly in front of it, and how far it waits.
EVERYWHERE = {
    "kube-prometheus-stack": {"prometheus-operator-crds": "api"},
    "k8s-ephemeral-storage-metrics": {"kube-prometheus-stack": "applied", "prometheus-operator-crds": "api"},
    "prometheus-adapter": {"kube-prometheus-stack": "applied"},
    "kai-scheduler": {"gpu-operator": "applied"},
    "nvidia-dra-driver-gpu": {"gpu-operator": "applied"},
    "nvsentinel": {"cert-manager": "applied", "gpu-operator": "applied", "prometheus-operator-crds": "api"},
}
BEFORE_OPERATOR = {
    "cert-manager": "applied",
    "kube-prometheus-stack": "applied",
    "nfd": "applied",
    "prometheus-operator-crds": "api",
}
TUNED_FIRST = {**BEFORE_OPERATOR, "nodewright-customizations": "applied"}
UBUNTU = {"nodewright-customizations": {"nfd": "applied", "nodewright-operator": "api"}}
POLICY = {
    "network-operator": {"cert-manager": "applied", "nfd": "api"},
    "network-operator-post": {"network-operator": "api"},
}
MIXIN = {
    "kubeflow-trainer": {
        "gpu-operator": "applied",
        "kube-prometheus-stack": "applied",
        "prometheus-operator-crds": "api",
    },
    "kubeflow-trainer-post": {"kubeflow-trainer": "api"},
}
EKS_EDGES = {
    **EVERYWHERE,
    **UBUNTU,
    "kube-prometheus-stack": {"aws-ebs-csi-driver": "applied", "prometheus-operator-crds": "api"},
    "gpu-operator": TUNED_FIRST,
}
GKE_EDGES = {
    **EVERYWHERE,
    "nodewright-customizations": {"nodewright-operator": "api"},
    "gpu-operator-pre": TUNED_FIRST,
    "gpu-operator": {"gpu-operator-pre": "applied"},
    "gke-nccl-tcpxo": {"gpu-operator": "applied"},
}
KIND_EDGES = {**EVERYWHERE, "network-operator": POLICY["network-operator"], "gpu-operator": BEFORE_OPERATOR}
EDGES = {
    "gb200-oke-training": {
        **EVERYWHERE,
        **POLICY,
        "gpu-operator-pre": BEFORE_OPERATOR,
        "gpu-operator": {"gpu-operator-pre": "applied"},
    },
    "gb300-generic-ubuntu-training": {**EVERYWHERE, **POLICY, **UBUNTU, "gpu-operator": TUNED_FIRST},
    "h100-aks-ubuntu-training": {
        **EVERYWHERE,
        **UBUNTU,
        # No NodeFeatureRule of the chart here.
        "network-operator": {"cert-manager": "applied", "nfd": "applied"},
        "network-operator-post": {"network-operator": "api"},
        "gpu-operator": {**TUNED_FIRST, "network-operator-post": "applied"},
        "gpu-operator-post": {"gpu-operator": "api"},
        "kai-scheduler": {"gpu-operator-post": "applied"},
        "nvidia-dra-driver-gpu": {"gpu-operator-post": "applied"},
        "nvsentinel": {"cert-manager": "applied", "gpu-operator-post": "applied", "prometheus-operator-crds": "api"},
    },
    "h100-eks-ubuntu-training": EKS_EDGES,
    "h100-eks-ubuntu-training-kubeflow": {**EKS_EDGES, **MIXIN},
    "h100-gke-cos-training": GKE_EDGES,
    "h100-gke-cos-training-kubeflow": {
        **GKE_EDGES,
        **MIXIN,
        "kubeflow-trainer": {**MIXIN["kubeflow-trainer"], "cert-manager": "applied"},
    },
    "h100-kind-training": KIND_EDGES,
    "h100-kind-training-kubeflow": {**KIND_EDGES, **MIXIN},
}
