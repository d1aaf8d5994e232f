"""Flux: the removal script, run with a stand-in for kubectl that keeps objects as files."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.emit import flux
from compiler.model import Plan
from tests.support.plans import small_plan

# Objects are files `$STATE/KIND/NAME`. Deleting a Kustomization takes its HelmRelease with it, unless it is listed in
# `$STATE/stuck`. Everything that changes something is logged.
KUBECTL = r"""#!/usr/bin/env bash
args=()
while (($#)); do
  case $1 in
    --context | --namespace | -n) log_context+=" $1=$2"; shift ;;
    --request-timeout=*) ;;
    *) args+=("$1") ;;
  esac
  shift
done
set -- "${args[@]}"
verb=$1 kind=${2%%.*} name=$3
case $verb in
  get)
    case $kind in
      sriovnetworknodestates) cat "$STATE/states" 2>/dev/null; exit 0 ;;
      sriovibnetworks) exit 0 ;;
    esac
    if [[ $* == *spec.suspend* ]]; then
      if tail -n 1 "$STATE/$kind/$name" 2>/dev/null | grep -q '"suspend":true'; then echo true; fi
      exit 0
    fi
    [[ ! -e $STATE/broken ]] || { echo 'Unable to connect to the server' >&2; exit 1; }
    [[ ! -e $STATE/$kind/$name ]] || echo "$2/$name"
    ;;
  patch)
    echo "patch $kind $name ${*: -1}${log_context}" >>"$STATE/log"
    echo "${*: -1}" >>"$STATE/$kind/$name"
    [[ $* == *--field-manager=bundlec* ]] || exit 1
    ;;
  delete)
    echo "delete $kind $name" >>"$STATE/log"
    if [[ $kind == kustomizations ]] && grep -qx "$name" "$STATE/hung" 2>/dev/null; then exit 1; fi
    rm -f "$STATE/$kind/$name"
    if [[ $kind == kustomizations ]] && ! grep -qx "$name" "$STATE/stuck" 2>/dev/null; then
      rm -f "$STATE/helmreleases/$name"
    fi
    ;;
  wait) exit 1 ;;
  *) exit 1 ;;
esac
"""

NODES = [
    "root",
    "namespaces",
    "cert-manager",
    "gcp-driver-installer",
    "old-thing",
    "gate-gpu-operator-pre",
    "gpu-operator-pre",
    "gpu-operator",
    "kai-scheduler",
    "network-operator",
    "network-operator-post",
    "gate-sriov-ib-networks",
    "sriov-ib-networks",
]


class Cluster:
    """A bundle on disk beside a cluster that is a folder."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.bundle, self.state, bin_ = folder / "bundle", folder / "state", folder / "bin"
        for path, content in flux.emit(plan).items():
            (self.bundle / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bundle / path).write_bytes(content)
            (self.bundle / path).chmod(0o755)
        bin_.mkdir()
        (bin_ / "kubectl").write_text(KUBECTL)
        (bin_ / "kubectl").chmod(0o755)
        for kind in ("kustomizations", "helmreleases", "gitrepositories"):
            (self.state / kind).mkdir(parents=True)
        for name in NODES:
            (self.state / "kustomizations" / f"demo-{name}").touch()
        for release in plan.releases:
            (self.state / "helmreleases" / f"demo-{release.id}").touch()
        (self.state / "gitrepositories" / "demo").touch()
        self.environment = {
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "STATE": str(self.state),
            "GATE_POLL": "0.01",
            "GATE_SETTLE": "0",
            "GATE_STABLE": "1",
            "GATE_TIMEOUT_SCALE": "0",
        }

    def remove(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(self.bundle / "flux/remove.sh"), "--yes", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=self.environment, cwd="/"
        )

    def log(self) -> list[str]:
        return (self.state / "log").read_text().splitlines() if (self.state / "log").exists() else []

    def deleted(self) -> list[str]:
        return [
            line.removeprefix("delete kustomizations demo-") for line in self.log() if "delete kustomizations" in line
        ]

    def left(self, kind: str) -> set[str]:
        return {path.name for path in (self.state / kind).iterdir()}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, small_plan())


def test_case_49_everything_goes_in_reverse_order(cluster: Cluster) -> None:
    result = cluster.remove("--context", "gpu")
    assert result.returncode == 0, result.stderr
    assert cluster.log()[0].startswith('patch kustomizations demo-root {"spec":{"suspend":true}} --context=gpu')
    assert cluster.deleted() == [
        "sriov-ib-networks",
        "gate-sriov-ib-networks",
        "network-operator-post",
        "network-operator",
        "kai-scheduler",
        "gpu-operator",
        "gpu-operator-pre",
        "gate-gpu-operator-pre",
        "old-thing",
        "gcp-driver-installer",
        "cert-manager",
        "namespaces",
        "root",
    ]
    assert cluster.left("kustomizations") == cluster.left("helmreleases") == cluster.left("gitrepositories") == set()


def test_a_release_with_crds_is_forgotten_and_not_uninstalled(cluster: Cluster) -> None:
    cluster.remove()
    about = [line.removesuffix(" --namespace=flux-system") for line in cluster.log() if "cert-manager" in line]
    assert about == [
        'patch helmreleases demo-cert-manager {"spec":{"suspend":true}}',
        'patch kustomizations demo-cert-manager {"spec":{"deletionPolicy":"WaitForTermination"}}',
        "delete kustomizations demo-cert-manager",
        "delete helmcharts flux-system-demo-cert-manager",
    ]


def test_purging_removes_it(cluster: Cluster) -> None:
    assert cluster.remove("--purge").returncode == 0
    assert not any("patch helmreleases" in line for line in cluster.log())
    assert 'patch kustomizations demo-cert-manager {"spec":{"deletionPolicy"' in "\n".join(cluster.log())


def test_what_must_come_first_is_waited_for(cluster: Cluster) -> None:
    (cluster.state / "states").write_text("nvidia-network-operator/node-1=InProgress\n")
    result = cluster.remove()
    assert result.returncode == 3
    assert cluster.deleted() == ["sriov-ib-networks", "gate-sriov-ib-networks"]
    assert "network-operator-post is not removed" in result.stderr
    (cluster.state / "states").write_text("nvidia-network-operator/node-1=Succeeded\n")
    assert cluster.remove().returncode == 0  # the same command goes on
    assert cluster.left("kustomizations") == set()


@pytest.mark.parametrize("how", ["hung", "stuck"])
def test_a_release_that_hangs_stops_the_removal_with_what_is_known(cluster: Cluster, how: str) -> None:
    (cluster.state / how).write_text("demo-network-operator-post\n")
    result = cluster.remove()
    assert result.returncode == 1
    assert cluster.deleted()[-1] == "network-operator-post"
    assert "kubectl get nodemaintenances.maintenance.nvidia.com -A" in result.stderr


def test_a_cluster_out_of_reach_is_not_an_empty_one(cluster: Cluster) -> None:
    (cluster.state / "broken").touch()
    assert cluster.remove().returncode == 1
    assert cluster.log() == []


def test_a_second_run_finds_nothing_to_do(cluster: Cluster) -> None:
    assert "cert-manager stays in the cluster" in cluster.remove().stderr
    (cluster.state / "log").unlink()
    again = cluster.remove()
    assert again.returncode == 0
    assert "stays in the cluster" not in again.stderr
    assert "would stay" not in cluster.remove("--dry-run").stderr
    # What an earlier removal left is Helm's from then on, and purging here would not reach it.
    assert "`helm uninstall cert-manager -n cert-manager`" in cluster.remove("--purge").stderr
    assert cluster.deleted() == []


def test_what_is_to_leave_the_bundle_goes_alone_and_in_order(cluster: Cluster) -> None:
    result = cluster.remove("--only", "sriov-ib-networks", "--only=network-operator")
    assert result.returncode == 0, result.stderr
    assert cluster.deleted() == [
        "sriov-ib-networks",
        "gate-sriov-ib-networks",
        "network-operator-post",
        "network-operator",
    ]
    assert {"demo-root", "demo-namespaces", "demo-kai-scheduler"} <= cluster.left("kustomizations")
    assert cluster.left("gitrepositories") == {"demo"}
    assert "demo-root is suspended. Commit the bundle without sriov-ib-networks network-operator" in result.stderr
    assert """patch kustomization demo-root --type=merge --patch '{"spec":{"suspend":false}}'""" in result.stderr


def test_what_somebody_suspended_is_woken_or_it_would_stay(cluster: Cluster) -> None:
    for kind, name in (
        ("kustomizations", "kai-scheduler"),
        ("helmreleases", "gpu-operator"),
        ("helmreleases", "cert-manager"),
    ):
        (cluster.state / kind / f"demo-{name}").write_text('{"spec":{"suspend":true}}\n')
    assert cluster.remove().returncode == 0
    woken = [line.split()[1:3] for line in cluster.log() if '{"spec":{"suspend":false}}' in line]
    assert woken == [["kustomizations", "demo-kai-scheduler"], ["helmreleases", "demo-gpu-operator"]]


def test_a_purge_after_a_removal_that_stopped_wakes_what_that_one_suspended(cluster: Cluster) -> None:
    (cluster.state / "hung").write_text("demo-cert-manager\n")
    assert cluster.remove().returncode == 1
    (cluster.state / "hung").unlink()
    assert cluster.remove("--purge").returncode == 0
    assert 'patch helmreleases demo-cert-manager {"spec":{"suspend":false}} --namespace=flux-system' in cluster.log()


def test_a_part_is_a_release_or_a_component_of_the_bundle(cluster: Cluster) -> None:
    result = cluster.remove("--only", "network-operator-post", "--dry-run")
    assert [line for line in result.stderr.splitlines() if "would" in line] == [
        "would remove demo-network-operator-post"
    ]
    for wrong in ("network", "", "cert-manager gcp-driver-installer"):
        result = cluster.remove("--only", wrong)
        assert result.returncode == 2
        assert f"no '{wrong}' in this bundle: cert-manager" in result.stderr
    assert cluster.log() == []
    (cluster.state / "states").write_text("nvidia-network-operator/node-1=InProgress\n")
    result = cluster.remove("--only", "network-operator", "--context", "gpu")
    assert result.returncode == 3
    assert (
        "demo-root is suspended; once that is settled: flux/remove.sh --only network-operator --context gpu"
        in result.stderr
    )
    hub = cluster.remove("--only", "network-operator", "--context", "hub", "--workload-context", "gpu", "--purge")
    assert "flux/remove.sh --only network-operator --context hub --workload-context gpu --purge" in hub.stderr


def test_everything_goes_to_the_cluster_that_is_named(cluster: Cluster) -> None:
    cluster.environment |= {"KUBE_CONTEXT": "gpu", "HELM_KUBECONTEXT": "other"}
    assert cluster.remove("--only", "network-operator").returncode == 0
    assert all("--context=gpu" in line for line in cluster.log() if line.startswith("patch"))
    for option in ("--context", "--workload-context"):
        result = cluster.remove(option, "")
        assert (result.returncode, result.stderr.splitlines()[-1]) == (2, f"{option} wants a value")


def test_what_cannot_work_is_said_before_anything_is_touched(cluster: Cluster) -> None:
    cluster.environment["GATE_TIMEOUT_SCALE"] = "soon"
    assert cluster.remove().returncode == 2
    cluster.environment["GATE_TIMEOUT_SCALE"] = "0"
    link = cluster.state / "remove.sh"
    link.symlink_to(cluster.bundle / "flux/remove.sh")
    alone = subprocess.run(
        ["bash", str(link), "--yes"], capture_output=True, text=True, timeout=60, check=False, env=cluster.environment
    )
    assert alone.returncode == 2
    assert "run this script where it lies in the bundle" in alone.stderr
    assert cluster.log() == []


def test_a_source_that_existed_before_stays(tmp_path: Path) -> None:
    plan = small_plan()
    settings = plan.settings
    settings = dataclasses.replace(settings, flux=dataclasses.replace(settings.flux, source_existing=True))
    plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, settings=settings))
    cluster = Cluster(tmp_path, plan)
    assert cluster.remove().returncode == 0
    assert cluster.left("gitrepositories") == {"demo"}


def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    result = cluster.remove("--dry-run")
    assert result.returncode == 0
    assert cluster.log() == []
    told = [line for line in result.stderr.splitlines() if line.startswith("would remove")]
    assert told[:2] == ["would remove demo-sriov-ib-networks", "would remove demo-gate-sriov-ib-networks"]
    assert "cert-manager would stay" in result.stderr


def test_nobody_is_taken_by_surprise(cluster: Cluster) -> None:
    command = ["bash", str(cluster.bundle / "flux/remove.sh")]
    result = subprocess.run(
        command, capture_output=True, timeout=60, check=False, env=cluster.environment, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 2
    assert b"pass --yes" in result.stderr
    assert cluster.log() == []


def test_shellcheck_has_nothing_to_say(cluster: Cluster) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        pytest.skip("needs shellcheck")
    command = [str(shellcheck), "-x", str(cluster.bundle / "flux/remove.sh")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == ""


def test_usage(cluster: Cluster) -> None:
    shown = cluster.remove("--help")
    assert shown.returncode == 0
    assert "--workload-context NAME" in shown.stdout
    assert cluster.remove("--force").returncode == 2
    assert cluster.remove("--context").returncode == 2
    assert cluster.log() == []
