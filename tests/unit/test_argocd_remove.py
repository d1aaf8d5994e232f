"""Argo CD: the removal script, run with a stand-in for kubectl that keeps Applications as files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.emit import argocd
from compiler.model import Plan
from tests.support.plans import small_plan

# Applications are files `$STATE/NAME`, with `Running` in them while they sync; such a one is not gone before it is told
# to end. Everything that changes something is logged.
KUBECTL = r"""#!/usr/bin/env bash
args=() context=''
while (($#)); do
  case $1 in
    --context) context=$2; shift ;;
    --namespace | -n) shift ;;
    --request-timeout=*) ;;
    *) args+=("$1") ;;
  esac
  shift
done
set -- "${args[@]}"
verb=$1 kind=${2%%.*} name=${3:-}
log() { echo "$*${context:+ @$context}" >>"$STATE/.log"; }
case $verb in
  config) echo here ;;
  get)
    case $kind in
      sriovnetworknodestates) log "look at states"; cat "$STATE/.states" 2>/dev/null; exit 0 ;;
      sriovibnetworks) log "look for networks"; exit 0 ;;
    esac
    [[ ! -e $STATE/.broken ]] || { echo 'Unable to connect to the server' >&2; exit 1; }
    [[ -e $STATE/$name ]] || exit 0
    if [[ $* == *jsonpath* ]]; then cat "$STATE/$name"; else echo "$2/$name"; fi
    ;;
  patch)
    [[ -e $STATE/$name ]] || exit 1
    log "patch $name ${*: -1}"
    [[ $* != *Terminating* ]] || : >"$STATE/$name"
    ;;
  delete)
    [[ -e $STATE/$name ]] || exit 0
    if [[ $* == *--wait=false* ]]; then log "delete $name"; exit 0; fi
    if grep -qx "$name" "$STATE/.stuck" 2>/dev/null || [[ $(cat "$STATE/$name") == Running ]]; then exit 1; fi
    rm "$STATE/$name"
    ;;
  *) exit 1 ;;
esac
"""

REVERSE = [
    "sriov-ib-networks",
    "network-operator",
    "kai-scheduler",
    "gpu-operator",
    "old-thing",
    "gcp-driver-installer",
    "cert-manager",
]


class Cluster:
    """A bundle on disk beside Applications in a folder."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.bundle, self.state, bin_ = folder / "bundle", folder / "state", folder / "bin"
        for path, content in argocd.emit(plan).items():
            (self.bundle / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bundle / path).write_bytes(content)
            (self.bundle / path).chmod(0o755)
        bin_.mkdir()
        (bin_ / "kubectl").write_text(KUBECTL)
        (bin_ / "kubectl").chmod(0o755)
        self.state.mkdir()
        for name in ("root", "namespaces", *(c.name for c in plan.components)):
            (self.state / f"demo-{name}").touch()
        self.environment = {
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "STATE": str(self.state),
            "GATE_POLL": "0.01",
            "GATE_SETTLE": "0",
            "GATE_STABLE": "1",
            "GATE_TIMEOUT_SCALE": "0",
        }

    def remove(self, *arguments: str, yes: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(self.bundle / "argocd/remove.sh"), *(["--yes"] if yes else []), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=self.environment, cwd="/", input=""
        )

    def log(self) -> list[str]:
        file = self.state / ".log"
        return file.read_text().splitlines() if file.exists() else []

    def deleted(self) -> list[str]:
        return [line.removeprefix("delete demo-") for line in self.log() if line.startswith("delete ")]

    def left(self) -> set[str]:
        return {path.name.removeprefix("demo-") for path in self.state.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, small_plan())


def test_case_49_everything_goes_in_reverse_order(cluster: Cluster) -> None:
    result = cluster.remove("--purge")
    assert result.returncode == 0, result.stderr
    assert cluster.deleted() == [*REVERSE, "namespaces", "root"]
    assert cluster.left() == set()
    assert cluster.log()[0] == 'patch demo-root {"spec":{"syncPolicy":{"automated":null}}}'


def test_what_carries_crds_stays_with_the_namespaces_and_a_sleeping_root(cluster: Cluster) -> None:
    result = cluster.remove()
    assert result.returncode == 0, result.stderr
    assert cluster.deleted() == REVERSE[:-1]
    assert cluster.left() == {"cert-manager", "namespaces", "root"}
    assert "demo-cert-manager stays" in result.stderr
    assert "demo-root stays, asleep" in result.stderr
    assert cluster.remove("--purge").returncode == 0
    assert cluster.left() == set()


def test_conditions_of_the_last_piece_come_first_and_all_before_the_application_goes(cluster: Cluster) -> None:
    cluster.remove()
    steps = [line for line in cluster.log() if line.startswith(("look", "delete demo-network", "delete demo-sriov"))]
    assert list(dict.fromkeys(steps)) == [
        "delete demo-sriov-ib-networks",
        "look at states",
        "look for networks",
        "delete demo-network-operator",
    ]


def test_a_condition_that_does_not_hold_stops_before_the_application(cluster: Cluster) -> None:
    (cluster.state / ".states").write_text("a/b=InProgress\n")
    result = cluster.remove()
    assert result.returncode == 3
    assert cluster.deleted() == ["sriov-ib-networks"]
    assert "kubectl get nodemaintenances.maintenance.nvidia.com -A" in result.stderr
    (cluster.state / ".states").write_text("a/b=Succeeded\n")
    assert cluster.remove().returncode == 0
    assert cluster.deleted() == REVERSE[:-1]


def test_a_sync_that_waits_for_its_guard_does_not_hold_the_removal_up(cluster: Cluster) -> None:
    (cluster.state / "demo-sriov-ib-networks").write_text("Running")
    assert cluster.remove().returncode == 0
    assert cluster.log()[1:3] == [
        "delete demo-sriov-ib-networks",
        'patch demo-sriov-ib-networks {"status":{"operationState":{"phase":"Terminating"}}}',
    ]


def test_a_removal_that_hangs_says_so(cluster: Cluster) -> None:
    (cluster.state / ".stuck").write_text("demo-network-operator\n")
    result = cluster.remove()
    assert result.returncode == 1
    assert "demo-network-operator is still there after 2100s" in result.stderr
    assert "maintenance.nvidia.com/finalizer" in result.stderr
    assert "kai-scheduler" in cluster.left()


def test_what_is_to_leave_the_bundle_goes_alone_and_in_order(cluster: Cluster) -> None:
    result = cluster.remove("--only", "network-operator", "--only=sriov-ib-networks", "--context", "hub")
    assert result.returncode == 0, result.stderr
    assert [line.partition("@")[0].strip() for line in cluster.deleted()] == ["sriov-ib-networks", "network-operator"]
    assert {"root", "namespaces", *REVERSE} - cluster.left() == {"sriov-ib-networks", "network-operator"}
    assert "demo-root is asleep. Commit the bundle without network-operator sriov-ib-networks" in result.stderr
    assert "kubectl --context hub apply --filename argocd/root.yaml" in result.stderr
    (cluster.state / ".states").write_text("a/b=InProgress\n")
    (cluster.state / "demo-network-operator").touch()
    result = cluster.remove("--only", "network-operator")
    assert result.returncode == 3
    assert "demo-root is asleep; once that is settled: argocd/remove.sh --only network-operator\n" in result.stderr
    hub = cluster.remove("--only", "network-operator", "--context", "hub", "--workload-context", "gpu")
    assert "argocd/remove.sh --only network-operator --context hub --workload-context gpu\n" in hub.stderr


def test_what_cannot_work_is_said_before_anything_is_touched(cluster: Cluster) -> None:
    for wrong in (["--context="], ["--workload-context", ""]):
        assert cluster.remove(*wrong).returncode == 2
    cluster.environment["GATE_TIMEOUT_SCALE"] = "soon"
    assert cluster.remove().returncode == 2
    assert cluster.log() == []


def test_the_context_of_the_environment(cluster: Cluster) -> None:
    cluster.environment |= {"KUBE_CONTEXT": "gpu", "HELM_KUBECONTEXT": "other"}
    assert cluster.remove().returncode == 0
    assert all(line.endswith("@gpu") for line in cluster.log())


def test_only_a_component_of_the_bundle_can_be_named(cluster: Cluster) -> None:
    for wrong in ("network", "", "cert-manager gcp-driver-installer"):
        result = cluster.remove("--only", wrong)
        assert result.returncode == 2
        assert f"no '{wrong}' in this bundle: cert-manager" in result.stderr
    assert cluster.log() == []


def test_a_second_run_goes_on_where_the_first_stopped(cluster: Cluster) -> None:
    for name in REVERSE[:3]:
        (cluster.state / f"demo-{name}").unlink()
    assert cluster.remove().returncode == 0
    assert cluster.deleted() == REVERSE[3:-1]


def test_two_clusters_two_contexts(cluster: Cluster) -> None:
    cluster.remove("--context", "hub", "--workload-context=gpu")
    log = cluster.log()
    assert all(line.endswith("@gpu") for line in log if line.startswith("look"))
    assert all(line.endswith("@hub") for line in log if not line.startswith("look"))


def test_a_cluster_that_does_not_answer_is_not_an_empty_one(cluster: Cluster) -> None:
    (cluster.state / ".broken").touch()
    assert cluster.remove().returncode == 1
    assert "done" not in cluster.remove().stderr


def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    result = cluster.remove("--dry-run", "--purge")
    assert result.returncode == 0
    assert cluster.log() == []
    assert [line.split()[-1] for line in result.stderr.splitlines() if "would remove" in line] == [
        f"demo-{name}" for name in [*REVERSE, "namespaces", "root"]
    ]


def test_nobody_to_ask_removes_nothing(cluster: Cluster) -> None:
    assert cluster.remove(yes=False).returncode == 2
    assert cluster.remove("--force").returncode == 2
    assert cluster.log() == []


@pytest.mark.tools
def test_shellcheck(tool: Callable[[str], Path], cluster: Cluster) -> None:
    command = [tool("shellcheck"), "-x", cluster.bundle / "argocd/remove.sh"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
