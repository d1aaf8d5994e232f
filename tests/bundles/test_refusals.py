"""What the catalog's own rules refuse: mistakes that took clusters down, as compile errors with a position."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bundles.cli import ROOT, Bundlec, Done

NVKE = "gb200-nvke-ubuntu-training"
GKE = "gb200-gke-cos-training"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the catalog."""
    for name in ("overlays", "components", "mixins"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "bundlec.yaml", tmp_path)
    return tmp_path


@pytest.fixture
def build(sources: Path, bundlec: Bundlec) -> Callable[[str], Done]:
    return lambda name: bundlec("-C", sources, "build", name)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (path, text.count(old))
    path.write_text(text.replace(old, new))


@dataclass(frozen=True)
class Error:
    file: str  # relative to the workspace
    line: str  # what stands there, from the column on
    text: str  # message, notes and fix, one line


def errors(done: Done, sources: Path, code: str) -> list[Error]:
    """The errors of a build that was refused, of one code."""
    assert done.status == 1, done.err
    assert done.out == ""
    assert not (sources / "out").exists()
    found = []
    for block in re.split(r"\n\n", done.err):
        if head := re.match(rf"(\S+):(\d+):(\d+): \[{code}\] ", block):
            file = Path("/", head[1]).relative_to(sources)
            line = (sources / file).read_text().splitlines()[int(head[2]) - 1]
            found.append(Error(str(file), line[int(head[3]) - 1 :], " ".join(block.split())))
    return found


def test_the_copy_compiles(build: Callable[[str], Done], sources: Path) -> None:
    for name in (NVKE, GKE):
        assert build(name).status == 0
    assert (sources / "out" / NVKE / "deploy.sh").is_file()


def test_ip_pools_without_a_policy_that_makes_their_kind(sources: Path, build: Callable[[str], Done]) -> None:
    """Case 38: nobody would create the CRD, and the pools would wait for ever."""
    change(
        sources / "components/network-operator/values-nvke.yaml",
        "    nvIpam:\n      image: nvidia-k8s-ipam\n      enableWebhook: false\n",
        "    docaTelemetryService:\n      image: doca_telemetry\n",
    )
    done = build(NVKE)
    (error,) = errors(done, sources, "BC3014")
    assert error.file == "components/network-operator/manifests/nic-cluster-policy.yaml.j2"
    assert error.line == "apiVersion: mellanox.com/v1alpha1"
    for n in range(4):
        assert f"IPPool nv-ipam-pool-rail-{n} of `sriov-ib-networks`" in error.text
    assert "need CRD ippools.nv-ipam.nvidia.com, which `network-operator` creates at run time" in error.text
    assert "NicClusterPolicy `nic-cluster-policy` has no `spec.nvIpam`" in error.text
    (rule,) = errors(done, sources, "BC3006")
    assert "No policy asks for nvIpam, so nothing creates the IPPool CRD (rule `ippool-owner`)" in rule.text


def test_no_doca_driver_under_ovn_kubernetes(sources: Path, build: Callable[[str], Done]) -> None:
    change(
        sources / "components/network-operator/values-nvke.yaml",
        "  operands:\n",
        "  operands:\n    ofedDriver:\n      image: doca-driver\n",
    )
    (error,) = errors(build(NVKE), sources, "BC3006")
    assert error.file == "components/network-operator/manifests/nic-cluster-policy.yaml.j2"
    assert error.line == "apiVersion: mellanox.com/v1alpha1"
    assert "DOCA-OFED unloads mlx5_core under OVN-Kubernetes" in error.text
    assert "rule `no-ofed` is here" in error.text


def test_no_peermem_where_rdma_runs_over_dma_buf(sources: Path, build: Callable[[str], Done]) -> None:
    change(
        sources / "overlays/nvke/nvke.yaml",
        "        driver:\n          enabled: true\n",
        "        driver:\n          enabled: true\n          rdma: {enabled: true}\n",
    )
    (error,) = errors(build(NVKE), sources, "BC3006")
    assert (error.file, error.line) == ("overlays/nvke/nvke.yaml", "{enabled: true}")
    assert "RDMA runs over DMA-BUF here" in error.text


def test_nor_by_the_entry_of_a_bundle(sources: Path, build: Callable[[str], Done]) -> None:
    change(
        sources / "bundlec.yaml",
        "      recipe: gb200-nvke-ubuntu-training\n",
        "      recipe: gb200-nvke-ubuntu-training\n      set: {gpu-operator: {driver: {rdma: {enabled: true}}}}\n",
    )
    (error,) = errors(build(NVKE), sources, "BC3006")
    assert (error.file, error.line) == ("bundlec.yaml", "{enabled: true}}}}")


def test_two_transports_for_nccl(sources: Path, build: Callable[[str], Done]) -> None:
    change(
        sources / "overlays/gke/gb200-gke-cos-training.yaml",
        "    - name: gke-gb200-rdma\n",
        "    - name: gke-nccl-tcpxo\n    - name: gke-gb200-rdma\n",
    )
    (error,) = errors(build(GKE), sources, "BC3004")
    assert (error.file, error.line) == ("overlays/gke/gb200-gke-cos-training.yaml", "name: gke-nccl-tcpxo")
    assert "`gke-gb200-rdma` and `gke-nccl-tcpxo` exclude each other: GPUDirect RDMA cannot run beside" in error.text


def test_more_vfs_than_the_firmware_has(sources: Path, build: Callable[[str], Done]) -> None:
    change(sources / "components/sriov-ib-networks/values.yaml", "numVfs: 16\n", "numVfs: 17\n")
    (error,) = errors(build(NVKE), sources, "BC3006")
    assert error.file == "components/sriov-ib-networks/manifests/rails.yaml.j2"
    assert error.line == "apiVersion: sriovnetwork.openshift.io/v1"
    assert "The firmware's NUM_OF_VFS is 16" in error.text
