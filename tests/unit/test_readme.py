"""`README.md` of a bundle."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from compiler.emit import deploysh, payload, readme
from compiler.model import ArgoSettings, Gate, GateCheck, GitSettings, Note, Plan
from tests.support.plans import INSTALLER, settings, small_plan


def text(plan: Plan, **files: bytes) -> str:
    return readme.emit(plan, {**payload.emit(plan), **files})["README.md"].decode()


def with_settings(**changes: Any) -> Plan:
    return small_plan(settings=settings(**changes))


def test_it_says_what_the_bundle_is_and_what_it_needs() -> None:
    shown = text(small_plan(prerequisites=(Note("networks", "The five named `Networks` exist."),)))
    assert shown.startswith("# demo\n\nA demo.\n")
    assert "| accelerator | gb200 |" in shown
    assert "- Nothing is known." in shown
    assert "- The five named `Networks` exist." in shown
    assert r"| K8s.server.version | \>= 1.34 | error: Kubernetes 1.34 or newer |" in shown
    assert "| `gpu-operator` | v26.7.1 | https://helm.ngc.nvidia.com/nvidia/gpu-operator | `gpu-operator` |" in shown
    assert "| `old-thing` |  | nothing to apply | `kube-system` |" in shown


def test_it_shows_the_order_with_its_gates() -> None:
    shown = text(small_plan())
    picture = re.search(r"```mermaid\n(.*?)\n```", shown, re.DOTALL)
    assert picture
    assert picture[1].startswith("flowchart LR\n")
    assert "g_sriov_ib_networks ==> c_sriov_ib_networks" in picture[1]
    assert (
        "| `sriov-ib-networks` | CRDs of nv-ipam.nvidia.com: ippools; NicClusterPolicy nic-cluster-policy: status.state"
        " is ready | `network-operator` | 45m, then fails |\n"
    ) in shown
    assert "- prometheus-adapter needs kube-prometheus-stack" in shown


def test_soft_edges_are_those_that_no_guard_holds_and_only_on_argo_cd() -> None:
    shown = text(small_plan())
    assert "- `cert-manager` before `gpu-operator`\n- `gpu-operator` before `kai-scheduler`\n" in shown
    assert "- `gcp-driver-installer` before" not in shown
    assert "- `network-operator` before" not in shown
    assert "by sync wave alone" not in text(with_settings(deployers=("flux",)))
    health = text(with_settings(argocd=ArgoSettings(waves="health")))
    assert "by sync wave alone" not in health
    assert "holds only with the health checks" in health


def test_purging_is_offered_where_something_stays() -> None:
    plan = small_plan()
    assert "BUNDLEC_PURGE=1 helmfile destroy" in text(plan)
    nothing = replace(plan, releases=tuple(replace(r, keep=False) for r in plan.releases))
    assert "BUNDLEC_PURGE" not in text(nothing)
    assert "Namespaces and CRDs stay.\n" in text(nothing)


@pytest.mark.parametrize(
    ("deployer", "command"),
    [
        ("deploy.sh", "./deploy.sh "),
        ("helmfile", "helmfile sync"),
        ("argocd", "kubectl apply --filename argocd/root.yaml"),
        ("flux", "flux/remove.sh"),
    ],
)
def test_only_the_chosen_deployers_are_described(deployer: str, command: str) -> None:
    assert command in text(with_settings(deployers=(deployer,)))
    others = tuple(d for d in ("deploy.sh", "helmfile", "argocd", "flux") if d != deployer)
    assert command not in text(with_settings(deployers=others))


@pytest.mark.parametrize(
    ("url", "placeholder"),
    [
        ("https://git.example.com/platform/bundles.git", True),
        ("git@git.example.com:platform/bundles.git", True),
        ("ssh://git@example.org/x.git", True),
        ("https://github.com/example.com/bundles.git", False),
        ("https://notexample.com/x.git", False),
        ("git@git.corp.net:x.git", False),
    ],
)
def test_an_example_of_a_repository_is_said_to_be_one(url: str, placeholder: bool) -> None:
    shown = text(with_settings(git=GitSettings(url, "main", "out/demo")))
    assert ("is an example" in shown) is placeholder


def test_without_git_the_scripts_are_described_all_the_same() -> None:
    assert "./undeploy.sh" in text(with_settings(git=None, deployers=("deploy.sh",)))


def test_minimum_versions_are_those_of_the_settings() -> None:
    shown = text(with_settings(helm_min_version="4.1.0"))
    assert "| Helm | 4.1.0 |" in shown
    assert "| Flux | 2.8 |" in shown
    assert "| Flux |" not in text(with_settings(deployers=("deploy.sh",)))


def test_what_gitops_reads_in_its_own_way_is_said_where_it_matters() -> None:
    plan = small_plan()
    gate = Gate("kai-scheduler", ("gpu-operator",), (GateCheck(INSTALLER, "gpu-operator", 60, "warn", "install"),))
    soft = replace(plan, releases=tuple(replace(r, gate=gate) if r.id == gate.id else r for r in plan.releases))
    assert "1m, then warns and goes on, first installation only |" in text(soft)
    assert "Flux has no deadline" in text(soft)
    assert "Argo CD asks the gates of a first installation" in text(soft)
    assert "has no deadline" not in text(plan)


def test_a_sync_of_argo_cd_that_keeps_an_old_commit_can_be_told_to_let_go() -> None:
    old, new = (text(with_settings(argocd=ArgoSettings(min_version=version))) for version in ("3.1", "3.2"))
    assert "also when it is tried again\n(from `argocd.minVersion" in old
    assert "began with, until it is tried again. To have" in new
    assert '"operationState":{"phase":"Terminating"}' in old
    assert '"operationState":{"phase":"Terminating"}' in new


def test_nothing_of_the_sources_can_break_the_page() -> None:
    gap = "a | b <script> *c* _d_ snake_case [x](y) `k|l <m>`\n# no heading"
    shown = text(small_plan(known_gaps=(gap,), inputs={"a|b": "c|d\ne"}))
    assert "- a \\| b \\<script> \\*c\\* \\_d\\_ snake_case \\[x](y) `k\\|l <m>` # no heading\n" in shown
    assert '| a\\|b (input) | `"c\\|d\\ne"` |' in shown
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    for row in rows:
        cells = re.sub(r"\\\|", "", row).count("|")
        assert cells in {3, 4, 5}, row


def test_the_page_is_tidy() -> None:
    for plan in (small_plan(), with_settings(deployers=("flux",)), small_plan(known_gaps=(), criteria={})):
        shown = text(plan)
        assert "\n\n\n" not in shown
        assert shown.endswith("\n")
        assert not any(line != line.rstrip() for line in shown.splitlines())
        assert "{{" not in re.sub(r"```mermaid.*?```", "", shown, flags=re.DOTALL)


def test_it_tells_the_exit_statuses_that_deploy_sh_has() -> None:
    def statuses(shown: str) -> set[str]:
        told = re.search(r"Exit status: (.*?)\.\n", shown, re.DOTALL)
        assert told
        return set(re.findall(r"(?:^|, |,\n)(\d+) ", told[1]))

    plan = small_plan()
    assert statuses(text(plan)) == statuses(deploysh.emit(plan)["deploy.sh"].decode()) == {*"012345", "130"}
