"""helmfile: what the real program makes of the emitted file; helm and kubectl are stand-ins."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.emit import helmfile, payload
from compiler.model import Plan
from compiler.yamlio import load, load_all
from tests.support.plans import small_plan

# Releases that are installed are files in `$STATE`. Every call is logged, with the kube context that it was given.
HELM = r"""#!/usr/bin/env bash
context=''
if [[ $1 == --kube-context ]]; then context=" @$2"; shift 2; fi
case $1 in
  version) echo v4.2.3 ;;
  pull)
    while (($#)); do [[ $1 == --destination ]] && folder=$2; shift; done
    mkdir -p "$folder/kai-scheduler"
    printf 'apiVersion: v2\nname: kai-scheduler\nversion: 0.16.9\n' >"$folder/kai-scheduler/Chart.yaml"
    ;;
  list)
    printf 'NAME\tNAMESPACE\tREVISION\tUPDATED\tSTATUS\tCHART\tAPP VERSION\n'
    while (($#)); do [[ $1 == --filter ]] && name=${2#^}; shift; done
    name=${name%\$}
    [[ ! -e $STATE/$name ]] || printf '%s\tx\t1\tnow\tdeployed\tx-1.0.0\t1\n' "$name"
    ;;
  upgrade) echo "upgrade $3$context: ${*:5}" >>"$STATE/.log"; touch "$STATE/$3" ;;
  delete | uninstall) echo "uninstall $2$context" >>"$STATE/.log"; rm -f "$STATE/$2" ;;
  show) printf 'kind: CustomResourceDefinition\nmetadata:\n  name: sriovibnetworks.sriovnetwork.openshift.io\n' ;;
esac
exit 0
"""
KUBECTL = r"""#!/usr/bin/env bash
[[ $1 == --context ]] && context=" @$2" && shift 2
case "$*" in
  *'apply '*'-f -') echo "apply CRDs${context-}" >>"$STATE/.log" ;;
  *'apply '*) echo "apply namespaces${context-}" >>"$STATE/.log" ;;
  *daemonset.apps*) echo "look at installer${context-}" >>"$STATE/.log"; cat "$STATE/.installer" ;;
  *nicclusterpolicies*) echo '1|1|ready' ;;
  *customresourcedefinition*) echo 'Established=True ' ;;
  *sriovnetworknodestates*) cat "$STATE/.states" ;;
esac
exit 0
"""


class Cluster:
    """A bundle on disk, the real helmfile, and stand-ins for helm and kubectl that share a folder."""

    def __init__(self, folder: Path, program: Path, plan: Plan) -> None:
        self.program, self.bundle, self.state = program, folder / "bundle", folder / "state"
        for path, content in {**payload.emit(plan), **helmfile.emit(plan)}.items():
            (self.bundle / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bundle / path).write_bytes(content)
            (self.bundle / path).chmod(0o755 if content.startswith(b"#!") else 0o644)
        self.state.mkdir()
        (self.state / ".installer").write_text("1|1|2|2|2|RollingUpdate\n")
        (self.state / ".states").write_text("a/b=Succeeded\n")
        programs = folder / "bin"
        programs.mkdir()
        for name, text in (("helm", HELM), ("kubectl", KUBECTL)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "STATE": str(self.state),
            "HELMFILE_CACHE_HOME": str(folder / "cache"),
            "GATE_POLL": "0.01",
            "GATE_SETTLE": "0",
        }

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        (self.state / ".log").unlink(missing_ok=True)
        command = [str(self.program), "--file", str(self.bundle / "helmfile.yaml"), *arguments]
        environment = {**self.environment, **env}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=environment, cwd="/"
        )

    def log(self) -> list[str]:
        file = self.state / ".log"
        return file.read_text().splitlines() if file.exists() else []

    def installed(self) -> set[str]:
        return {path.name for path in self.state.iterdir() if not path.name.startswith(".")}

    def place(self, start: str) -> int:
        """Where the log holds a line that starts so."""
        (found, *_) = [number for number, line in enumerate(self.log()) if line.startswith(start)]
        return found


@pytest.fixture
def cluster(tmp_path: Path, tool: Callable[[str], Path]) -> Cluster:
    return Cluster(tmp_path, tool("helmfile"), small_plan())


@pytest.mark.tools
def test_case_31_helmfile_reads_every_release_and_need(cluster: Cluster) -> None:
    done = cluster.run("build")
    assert done.returncode == 0, done.stderr
    (built,) = [d.data for d in load_all(done.stdout, "built", strict=False) if d.data]
    assert {r["name"]: r.get("needs", []) for r in built["releases"]} == {
        r["name"]: r.get("needs", [])
        for r in load(helmfile.emit(small_plan())["helmfile.yaml"].decode(), "helmfile.yaml").data["releases"]
    }


@pytest.mark.tools
def test_case_30_sync_on_an_empty_cluster_keeps_the_order(cluster: Cluster) -> None:
    plan = small_plan()
    done = cluster.run("--kube-context", "gpu", "sync")
    assert done.returncode == 0, done.stderr
    assert cluster.installed() == {r.id for r in plan.releases}
    for item in plan.releases:
        for need in item.needs:
            assert cluster.place(f"upgrade {need} @gpu") < cluster.place(f"upgrade {item.id} @gpu")
    assert cluster.place("apply namespaces @gpu") < cluster.place("upgrade cert-manager")
    assert cluster.place("apply CRDs @gpu") < cluster.place("upgrade network-operator @gpu")
    assert cluster.place("look at installer @gpu") < cluster.place("upgrade gpu-operator-pre")
    assert "hook[presync] logs | gate sriov-ib-networks" in done.stdout + done.stderr
    lines = {line.split()[1]: line for line in cluster.log() if line.startswith("upgrade ")}
    assert "--wait=legacy --wait-for-jobs --timeout 900s" in lines["gpu-operator"]
    assert "--wait" not in lines["kai-scheduler"]
    content = payload.content_hash(plan.release("cert-manager"))
    assert f"bundlec.dev/content={content},bundlec.dev/teardown=keep" in lines["cert-manager"]
    assert "--create-namespace" not in done.stdout + "".join(lines.values())


@pytest.mark.tools
def test_case_39_a_gate_that_does_not_hold_stops_what_is_behind_it(cluster: Cluster) -> None:
    (cluster.state / ".installer").write_text("1|1|0|||RollingUpdate\n")
    done = cluster.run("sync", GATE_TIMEOUT_SCALE="0")
    assert done.returncode == 1
    assert "0 nodes match" in done.stderr + done.stdout
    assert cluster.installed() & {"gpu-operator-pre", "gpu-operator", "kai-scheduler"} == set()
    (cluster.state / ".installer").write_text("1|1|1|1|1|RollingUpdate\n")
    assert cluster.run("sync").returncode == 0
    assert "gpu-operator" in cluster.installed()


@pytest.mark.tools
def test_case_49_destroy_goes_backwards_and_leaves_what_carries_crds(cluster: Cluster) -> None:
    assert cluster.run("sync").returncode == 0
    done = cluster.run("--selector", "bundlec.dev/teardown!=keep", "destroy")
    assert done.returncode == 0, done.stderr
    assert cluster.installed() == {"cert-manager"}
    for item in small_plan().releases:
        for need in set(item.needs) - {"cert-manager"}:
            assert cluster.log().index(f"uninstall {item.id}") < cluster.log().index(f"uninstall {need}")


@pytest.mark.tools
def test_destroying_what_carries_crds_has_to_be_asked_for(cluster: Cluster) -> None:
    assert cluster.run("sync").returncode == 0
    done = cluster.run("destroy")
    assert done.returncode == 1
    assert "cert-manager carries CRDs" in done.stderr + done.stdout
    assert cluster.installed() == {"cert-manager"}
    assert cluster.run("destroy", BUNDLEC_PURGE="1").returncode == 0
    assert cluster.installed() == set()


@pytest.mark.tools
def test_a_condition_of_removal_that_does_not_hold_stops_the_destruction(cluster: Cluster) -> None:
    assert cluster.run("sync").returncode == 0
    (cluster.state / ".states").write_text("a/b=InProgress\n")
    done = cluster.run("--selector", "bundlec.dev/teardown!=keep", "destroy", GATE_TIMEOUT_SCALE="0")
    assert done.returncode == 1
    assert "not a/b=InProgress" in done.stderr + done.stdout
    assert cluster.installed() >= {"network-operator", "network-operator-post", "cert-manager"}
