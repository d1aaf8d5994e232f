"""helmfile: the emitted file, what the real helmfile makes of it, and what is read back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from compiler.emit import helmfile, payload
from compiler.emit.inventory import inventory_of
from compiler.errors import Diagnostic, UserError
from compiler.model import Chart, Files, Install, Plan
from compiler.proof import prove
from compiler.yamlio import dump, load
from tests.support.plans import INSTALLER, IPPOOL_CRD, POLICY_READY, plain_http, settings, small_plan

CONTEXT = ["--context", "{{ .Release.KubeContext }}"]


def with_settings(**changes: Any) -> Plan:
    plan = small_plan()
    return dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, settings=settings(**changes)))


def replaced(name: str, **changes: Any) -> Plan:
    plan = small_plan()
    releases = tuple(dataclasses.replace(r, **changes) if r.id == name else r for r in plan.releases)
    return dataclasses.replace(plan, releases=releases)


def document(plan: Plan) -> Any:
    return load(helmfile.emit(plan)["helmfile.yaml"].decode(), "helmfile.yaml").data


def release(plan: Plan, name: str) -> Any:
    return next(item for item in document(plan)["releases"] if item["name"] == name)


def hooks(plan: Plan, name: str) -> list[tuple[str, str, list[str]]]:
    return [(h["events"][0], h["command"], h["args"]) for h in release(plan, name).get("hooks", ())]


def refused(plan: Plan) -> tuple[Diagnostic, ...]:
    with pytest.raises(UserError) as caught:
        helmfile.emit(plan)
    return caught.value.diagnostics


def problems(plan: Plan, files: Files) -> list[str]:
    return [d.message for d in prove(inventory_of(plan), {"helmfile": helmfile.read_back(files)})]


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_head_of_the_file_and_a_guarded_release() -> None:
    text = helmfile.emit(small_plan())["helmfile.yaml"].decode()
    assert text.startswith("""\
repositories:
- name: charts.jetstack.io
  url: https://charts.jetstack.io
- name: helm.ngc.nvidia.com-nvidia
  url: https://helm.ngc.nvidia.com/nvidia
helmDefaults:
  createNamespace: false
  wait: true
  waitForJobs: true
  timeout: 900
  trackMode: helm-legacy
  syncReleaseLabels: true
  deleteWait: true
  deleteTimeout: 600
  cascade: foreground
releases:
- name: cert-manager
""")
    plan = small_plan()
    assert text.endswith(f"""\
- name: sriov-ib-networks
  namespace: nvidia-network-operator
  chart: ./components/sriov-ib-networks
  labels:
    bundlec.dev/bundle: demo
    bundlec.dev/content: '{payload.content_hash(plan.release("sriov-ib-networks"))}'
    bundlec.dev/teardown: first
  needs:
  - nvidia-network-operator/network-operator-post
  disableValidationOnInstall: true
  hooks:
  - name: gate
    events:
    - presync
    showlogs: true
    command: ./lib/gate
    args:
    - --context
    - '{{{{ .Release.KubeContext }}}}'
    - sriov-ib-networks
  - name: prepare
    events:
    - presync
    showlogs: true
    command: ./lib/prepare
    args:
    - --context
    - '{{{{ .Release.KubeContext }}}}'
    - sriov-ib-networks
""")


def test_case_62_charts_by_https_and_by_oci() -> None:
    assert release(small_plan(), "gpu-operator")["chart"] == "helm.ngc.nvidia.com-nvidia/gpu-operator"
    kai = release(small_plan(), "kai-scheduler")
    assert kai["chart"] == "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
    assert "plainHttp" not in kai
    mirrored = plain_http(small_plan(), "kai-scheduler")
    assert release(mirrored, "kai-scheduler")["plainHttp"] is True
    assert "plainHttp" not in release(mirrored, "gpu-operator")


def test_case_30_no_release_is_compared_with_a_cluster_that_lacks_its_kinds() -> None:
    assert all(item["disableValidationOnInstall"] is True for item in document(small_plan())["releases"])


def test_case_66_helm_makes_no_namespace() -> None:
    plan = small_plan()
    assert document(plan)["helmDefaults"]["createNamespace"] is False
    owned = {n.name for n in plan.namespaces}
    for item in plan.releases:
        prepared = ("presync", "./lib/prepare", [*CONTEXT, item.id]) in hooks(plan, item.id)
        assert prepared is (item.namespace in owned), item.id


def test_the_gate_is_asked_before_anything_of_the_release_is_applied() -> None:
    assert [hook[1] for hook in hooks(small_plan(), "sriov-ib-networks")] == ["./lib/gate", "./lib/prepare"]


def test_what_a_release_waits_for() -> None:
    assert {
        k: v for k, v in release(small_plan(), "kai-scheduler").items() if k in {"timeout", "wait", "waitForJobs"}
    } == {
        "timeout": 600,
        "wait": False,
        "waitForJobs": False,
    }
    jobs = replaced("gpu-operator", install=Install(wait_for_jobs=False))
    assert release(jobs, "gpu-operator")["waitForJobs"] is False
    assert "wait" not in release(jobs, "gpu-operator")
    assert "waitForJobs" not in release(small_plan(), "gpu-operator")


def test_removal_waits_for_its_conditions_and_keeps_what_carries_crds() -> None:
    plan = small_plan()
    teardown = [("preuninstall", "./lib/gate", [*CONTEXT, "--teardown", "network-operator"])]
    assert [h for h in hooks(plan, "network-operator") if h[0] == "preuninstall"] == teardown
    (keep,) = [h for h in hooks(plan, "cert-manager") if h[0] == "preuninstall"]
    assert "BUNDLEC_PURGE" in keep[2][1]
    assert release(plan, "cert-manager")["labels"]["bundlec.dev/teardown"] == "keep"
    assert release(plan, "gpu-operator")["labels"]["bundlec.dev/teardown"] == "remove"


def test_arguments_of_helm() -> None:
    assert "syncArgs" not in document(small_plan())["helmDefaults"]
    plan = with_settings(helm_extra_args=("--force-conflicts", "--description=x"))
    assert document(plan)["helmDefaults"]["syncArgs"] == ["--force-conflicts", "--description=x"]
    (found,) = refused(with_settings(helm_extra_args=("--description=a b",)))
    assert (found.code, bool(found.fix)) == ("BC4003", True)
    assert "--description=a b" in found.message


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (replaced("gpu-operator", namespace="{{ .Values.x }}"), "{{ .Values.x }}"),
        (
            replaced("kai-scheduler", chart=Chart("oci://ghcr.io/{{x}}", "kai-scheduler", "1.0.0")),
            "oci://ghcr.io/{{x}}",
        ),
        (replaced("gpu-operator", chart=Chart("https://x", "gpu-operator", "{{v}}")), "{{v}}"),
    ],
)
def test_case_60_a_template_in_a_field_that_helmfile_renders(plan: Plan, text: str) -> None:
    found = refused(plan)
    assert {d.code for d in found} == {"BC4004"}
    assert any(text in d.message for d in found)


# --- reading back ----------------------------------------------------------------------------------------------------


def test_the_order_of_the_plan_is_read_back() -> None:
    plan = small_plan()
    wiring = helmfile.read_back(helmfile.emit(plan))
    assert wiring.releases == tuple(r.id for r in plan.releases)
    assert wiring.hard == {(need, r.id) for r in plan.releases for need in r.needs}
    assert wiring.soft == frozenset()
    assert set(wiring.guards) == {"gpu-operator-pre", "sriov-ib-networks"}
    assert wiring.guards["gpu-operator-pre"] >= helmfile.tokens(INSTALLER)
    assert wiring.guards["sriov-ib-networks"] >= helmfile.tokens(IPPOOL_CRD) | helmfile.tokens(POLICY_READY)
    assert problems(plan, helmfile.emit(plan)) == []


def edit(files: Files, name: str, action: Callable[[Any], None]) -> dict[str, bytes]:
    """The files with one release of helmfile.yaml edited."""
    found = load(files["helmfile.yaml"].decode(), "helmfile.yaml").data
    action(next(item for item in found["releases"] if item["name"] == name))
    return {**files, "helmfile.yaml": dump(found).encode()}


def gate(action: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda item: action(next(h for h in item["hooks"] if h["name"] == "gate"))


@pytest.mark.parametrize(
    ("action", "finding"),
    [
        (lambda item: item.pop("hooks"), "the gate of sriov-ib-networks"),
        (gate(lambda hook: hook.update(events=["postsync"])), "the gate of sriov-ib-networks"),
        (gate(lambda hook: hook.update(command="true")), "the gate of sriov-ib-networks"),
        (gate(lambda hook: hook.update(args=[*CONTEXT, "gpu-operator-pre"])), "(ippools)"),
        (gate(lambda hook: hook.update(args=[*CONTEXT, "--teardown", "sriov-ib-networks"])), "(ippools)"),
        (gate(lambda hook: hook.update(args=["--context", "other", "sriov-ib-networks"])), "(ippools)"),
        (lambda item: item.pop("needs"), "sriov-ib-networks after network-operator-post"),
        (
            lambda item: item.update(needs=["elsewhere/network-operator-post"]),
            "sriov-ib-networks after network-operator",
        ),
        (lambda item: item.update(name="other"), "sriov-ib-networks is not applied"),
    ],
)
def test_what_somebody_takes_away_is_found(action: Callable[[Any], None], finding: str) -> None:
    plan = small_plan()
    files = edit(helmfile.emit(plan), "sriov-ib-networks", action)
    assert any(finding in message for message in problems(plan, files))


@pytest.mark.parametrize(("old", "new"), [("ippools.nv-ipam", "pools.nv-ipam"), ("equals ready", "equals other")])
def test_a_check_that_is_changed_or_gone_in_the_library_is_found(old: str, new: str) -> None:
    plan = small_plan()
    files = dict(helmfile.emit(plan))
    text = files["lib/gate"].decode()
    assert text.count(old) == 1
    assert problems(plan, {**files, "lib/gate": text.replace(old, new).encode()})
    without = "\n".join(line for line in text.split("\n") if old not in line)
    assert problems(plan, {**files, "lib/gate": without.encode()})
