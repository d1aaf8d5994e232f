"""Flux: the emitted objects, their order, and what is read back from them."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import flux, payload
from compiler.emit.flux_checks import JOB_DONE
from compiler.emit.flux_site import git_reference, git_url
from compiler.emit.inventory import inventory_of
from compiler.errors import UserError
from compiler.model import (
    ArgoSettings,
    Chart,
    Check,
    Drift,
    Files,
    FluxSettings,
    Gate,
    GateCheck,
    GateSettings,
    GitSettings,
    Install,
    Plan,
)
from compiler.proof import prove
from compiler.yamlio import dump, load_all
from tests.support.crds import faults as crd_faults
from tests.support.plans import (
    GONE,
    INSTALLER,
    IPPOOL_CRD,
    POLICY_READY,
    STATES,
    check,
    plain_http,
    release,
    settings,
    small_plan,
)

CONDITION = check(
    "condition",
    group="nvidia.com",
    version="v1",
    object_kind="ClusterPolicy",
    resource="clusterpolicies",
    name="cluster-policy",
    type="Ready",
    value="True",
)
NODES = check("nodes", id="gpu-nodes", selector="nvidia.com/gpu.present=true,!x", min_nodes=3)
WEBHOOK = check("webhook", id="webhook", name="cert-manager-webhook", namespace="cert-manager")


CRD_CHECK = """\
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    name: ippools.nv-ipam.nvidia.com
"""


def with_settings(plan: Plan, **changes: Any) -> Plan:
    return dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, settings=settings(**changes)))


def with_flux(**changes: Any) -> Plan:
    return with_settings(small_plan(), flux=FluxSettings(**changes))


def gated(*checks: Check, name: str = "sriov-ib-networks") -> Plan:
    """The small plan, the gate of one release waiting for these checks."""
    plan = small_plan()
    gate = Gate(
        name, ("network-operator-post",), tuple(GateCheck(c, "network-operator", 600, "fail", "always") for c in checks)
    )
    releases = tuple(dataclasses.replace(r, gate=gate) if r.id == name else r for r in plan.releases)
    return dataclasses.replace(plan, releases=releases)


def replaced(name: str, **changes: Any) -> Plan:
    plan = small_plan()
    releases = tuple(dataclasses.replace(r, **changes) if r.id == name else r for r in plan.releases)
    return dataclasses.replace(plan, releases=releases)


def everything(plan: Plan) -> dict[str, bytes]:
    return {**payload.emit(plan), **flux.emit(plan)}


def documents(files: Files, path: str) -> list[dict[str, Any]]:
    return [d.data for d in load_all(files[path].decode(), path)]


def node(files: Files, name: str) -> dict[str, Any]:
    (found,) = documents(files, f"flux/graph/{name}.yaml")
    return found


def helm_release(files: Files, name: str) -> dict[str, Any]:
    (found,) = documents(files, f"flux/releases/{name}/release.yaml")
    return found["spec"]


def codes(plan: Plan) -> list[str]:
    with pytest.raises(UserError) as caught:
        flux.emit(plan)
    return [d.code for d in caught.value.diagnostics]


def faults(plan: Plan, files: Files) -> set[str]:
    """The codes of what reading back and the proof find."""
    try:
        wiring = flux.read_back(files)
    except UserError as error:
        return {d.code for d in error.diagnostics}
    return {d.code for d in prove(inventory_of(plan), {"flux": wiring})}


# --- order -----------------------------------------------------------------------------------------------------------


def test_the_order_of_the_plan_is_read_back() -> None:
    plan = small_plan()
    wiring = flux.read_back(everything(plan))
    assert wiring.releases == tuple(r.id for r in plan.releases)
    assert wiring.hard == {(e.provider, e.dependant) for e in plan.edges}
    assert wiring.guards == {
        "gpu-operator-pre": flux.tokens(INSTALLER),
        "sriov-ib-networks": flux.tokens(IPPOOL_CRD) | flux.tokens(POLICY_READY),
    }
    assert prove(inventory_of(plan), {"flux": wiring}) == ()


def test_a_gate_is_a_node_that_applies_nothing_and_soon_tries_again() -> None:
    spec = node(everything(small_plan()), "gate-sriov-ib-networks")["spec"]
    assert spec["path"] == "./out/demo/flux/gates"
    assert (spec["wait"], spec["timeout"], spec["retryInterval"]) == (False, "1m", "10s")
    assert [d["name"] for d in spec["dependsOn"]] == ["demo-namespaces", "demo-network-operator-post"]
    assert spec["healthChecks"] == [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "name": "ippools.nv-ipam.nvidia.com",
        },
        {"apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "name": "nic-cluster-policy"},
    ]
    assert spec["healthCheckExprs"] == [
        {
            "apiVersion": "mellanox.com/v1alpha1",
            "kind": "NicClusterPolicy",
            "current": "has(status.state) && status.state == 'ready'",
        }
    ]


def test_the_namespaces_come_first_and_are_never_deleted() -> None:
    files = everything(small_plan())
    assert node(files, "namespaces")["spec"]["prune"] is False
    for path in files:
        if path.startswith("flux/graph/") and path not in {
            "flux/graph/kustomization.yaml",
            "flux/graph/namespaces.yaml",
        }:
            (found,) = documents(files, path)
            assert found["spec"]["dependsOn"][0]["name"] == "demo-namespaces", path


def test_case_44_a_dependency_names_its_namespace_and_exists() -> None:
    files = everything(with_flux(namespace="gitops"))
    names = {
        documents(files, p)[0]["metadata"]["name"]
        for p in files
        if p.startswith("flux/graph/") and "kustomization" not in p
    }
    for path in files:
        if path.startswith("flux/graph/") and "kustomization" not in path:
            for dependency in documents(files, path)[0]["spec"].get("dependsOn", []):
                assert dependency["namespace"] == "gitops"
                assert dependency["name"] in names


def test_case_46_a_post_manifest_is_not_beside_the_helm_release_of_its_chart() -> None:
    files = everything(small_plan())
    for path in files:
        if path.startswith("flux/releases/") and path.endswith("/release.yaml"):
            folder = path.removesuffix("release.yaml")
            listed = [p for p in files if p.startswith(folder) and "/" not in p.removeprefix(folder)]
            kinds = [d["kind"] for p in listed for d in documents(files, p)]
            assert set(kinds) <= {"HelmRelease", "Kustomization", "HelmRepository", "OCIRepository"}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("flux/graph/kai-scheduler.yaml", "  - name: demo-gpu-operator\n    namespace: flux-system\n", ""),
        (
            "flux/graph/kai-scheduler.yaml",
            "    namespace: flux-system\n  sourceRef",
            "    readyExpr: 'true'\n  sourceRef",
        ),
        ("flux/graph/gpu-operator.yaml", "wait: true", "wait: false"),
        ("flux/graph/gpu-operator.yaml", "  wait: true", "  wait: true\n  suspend: true"),
        ("flux/graph/kustomization.yaml", "- gpu-operator.yaml\n", ""),
        ("flux/releases/gpu-operator/kustomization.yaml", "- release.yaml\n", ""),
        ("flux/releases/gpu-operator/release.yaml", "releaseName: gpu-operator", "releaseName: other"),
        ("flux/root.yaml", "./out/demo/flux/graph", "./elsewhere"),
        (  # the commit would upgrade it, not the turn of its node
            "flux/releases/sriov-ib-networks/release.yaml",
            "./out/demo/flux/releases/sriov-ib-networks/chart",
            "./out/demo/components/sriov-ib-networks",
        ),
    ],
)
def test_a_broken_order_is_found(path: str, old: str, new: str) -> None:
    plan = small_plan()
    files = everything(plan)
    text = files[path].decode()
    assert text.count(old) == 1
    files[path] = text.replace(old, new).encode()
    assert "BC6001" in faults(plan, files)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wait: false", "wait: true"),  # health checks do not count beside it
        ("status.state == 'ready'", "status.state == 'done'"),
        ("    current: has", "    inProgress: 'false'\n    current: 'true' #"),
        ("name: nic-cluster-policy", "name: other"),
        (CRD_CHECK, ""),
        ("demo-network-operator-post", "demo-network-operator"),
    ],
)
def test_a_broken_gate_is_found(old: str, new: str) -> None:
    plan = small_plan()
    files = everything(plan)
    path = "flux/graph/gate-sriov-ib-networks.yaml"
    text = files[path].decode()
    assert text.count(old) == 1
    files[path] = text.replace(old, new).encode()
    # Without the plain edge as well, so that only the gate can hold the order.
    own = "flux/graph/sriov-ib-networks.yaml"
    files[own] = (
        files[own].decode().replace("  - name: demo-network-operator-post\n    namespace: flux-system\n", "").encode()
    )
    assert "BC6001" in faults(plan, files)


# --- gates ----------------------------------------------------------------------------------------------------------


def test_a_check_that_flux_cannot_hold_is_refused() -> None:
    assert codes(gated(STATES)) == codes(gated(GONE)) == ["BC4003"]
    assert codes(gated(dataclasses.replace(POLICY_READY, path='status.pools[name="a"].state'))) == ["BC4003"]


def test_two_expressions_for_one_kind_make_two_nodes() -> None:
    """Flux goes by group and kind: a second expression for one of them would be a terminal error."""
    other = dataclasses.replace(INSTALLER, id="other", name="other", min_nodes=2)
    same = dataclasses.replace(INSTALLER, id="same", name="same")
    plan = gated(INSTALLER, other, same)
    files = everything(plan)
    first, second = node(files, "gate-sriov-ib-networks")["spec"], node(files, "gate-sriov-ib-networks-other")["spec"]
    assert [c["name"] for c in first["healthChecks"]] == ["nvidia-driver-installer", "same"]
    assert [c["name"] for c in second["healthChecks"]] == ["other"]
    for spec in (first, second):
        kinds = [(e["apiVersion"].partition("/")[0], e["kind"]) for e in spec["healthCheckExprs"]]
        assert len(set(kinds)) == len(kinds)
    wiring = flux.read_back(files)
    assert wiring.guards["sriov-ib-networks"] == flux.tokens(INSTALLER) | flux.tokens(other) | flux.tokens(same)


def test_a_version_does_not_make_another_kind() -> None:
    beta = dataclasses.replace(POLICY_READY, id="beta", version="v1beta1", name="b", value="done")
    assert "flux/graph/gate-sriov-ib-networks-beta.yaml" in flux.emit(gated(POLICY_READY, beta))


def test_nodes_are_asked_for_by_a_job() -> None:
    plan = gated(NODES, POLICY_READY)
    files = everything(plan)
    spec = node(files, "gate-sriov-ib-networks")["spec"]
    assert spec["force"] is True
    assert "demo-gates" in [d["name"] for d in spec["dependsOn"]]
    assert spec["path"] == "./out/demo/flux/gates/sriov-ib-networks"
    assert spec["healthChecks"][0] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "demo-gate-sriov-ib-networks-gpu-nodes",
        "namespace": "demo-gates",
    }
    assert spec["healthCheckExprs"][0]["current"] == JOB_DONE
    (job,) = documents(files, "flux/gates/sriov-ib-networks/job.yaml")
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "get",
        "nodes",
        "--selector=nvidia.com/gpu.present=true,!x",
        "--output=jsonpath={.items[2].metadata.name}",
    ]
    assert job["spec"]["backoffLimit"] == 2**31 - 1  # a Job that had failed would never be tried again
    wiring = flux.read_back(files)
    assert wiring.guards["sriov-ib-networks"] == flux.tokens(NODES) | flux.tokens(POLICY_READY)
    # A Job that another expression judges does not count.
    path = "flux/graph/gate-sriov-ib-networks.yaml"
    files[path] = files[path].replace(b"c.type == 'Complete'", b"c.type == 'Started'")
    assert not flux.tokens(NODES) <= flux.read_back(files).guards["sriov-ib-networks"]


def test_a_gate_job_takes_the_settings() -> None:
    gates = GateSettings(
        image="registry.example.com/kubectl:v1",
        pull_secrets=("pull",),
        node_selector={"pool": "system"},
        tolerations=({"key": "x", "operator": "Exists"},),
        priority_class="high",
    )
    files = everything(with_settings(gated(NODES), gates=gates))
    pod = documents(files, "flux/gates/sriov-ib-networks/job.yaml")[0]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == gates.image
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["nodeSelector"] == {"pool": "system"}
    assert pod["tolerations"] == [{"key": "x", "operator": "Exists"}]
    assert pod["priorityClassName"] == "high"


# --- releases --------------------------------------------------------------------------------------------------------


def test_case_68_a_release_is_named_and_stored_as_by_the_other_deployers() -> None:
    plan = small_plan()
    files = everything(plan)
    for item in plan.releases:
        spec = helm_release(files, item.id)
        assert (spec["releaseName"], spec["targetNamespace"], spec["storageNamespace"]) == (
            item.id,
            item.namespace,
            item.namespace,
        )
        assert "createNamespace" not in spec["install"]
        assert spec["waitStrategy"] == {"name": "legacy"}
        assert spec["install"]["strategy"]["name"] == spec["upgrade"]["strategy"]["name"] == "RetryOnFailure"


def test_case_62_an_oci_chart_is_an_oci_repository_with_the_chart_in_its_url() -> None:
    plan = replaced("kai-scheduler", chart=Chart("oci://ghcr.io/kai/charts/", "kai-scheduler", "v0.16.9+build.1"))
    files = everything(plan)
    assert helm_release(files, "kai-scheduler")["chartRef"] == {"kind": "OCIRepository", "name": "demo-kai-scheduler"}
    (source,) = documents(files, "flux/releases/kai-scheduler/source.yaml")
    assert source["spec"]["url"] == "oci://ghcr.io/kai/charts/kai-scheduler"
    assert source["spec"]["ref"] == {"tag": "v0.16.9_build.1"}
    assert "insecure" not in source["spec"]
    mirrored = plain_http(plan, "kai-scheduler")
    (source,) = documents(everything(mirrored), "flux/releases/kai-scheduler/source.yaml")
    assert source["spec"]["insecure"] is True


def test_an_https_chart_has_a_source_of_its_own() -> None:
    files = everything(small_plan())
    chart = helm_release(files, "network-operator")["chart"]["spec"]
    assert (chart["chart"], chart["version"]) == ("network-operator", "26.7.0")
    assert chart["sourceRef"] == {"kind": "HelmRepository", "name": "demo-network-operator"}
    (source,) = documents(files, "flux/releases/network-operator/source.yaml")
    assert (source["metadata"]["name"], source["spec"]["url"]) == (
        "demo-network-operator",
        "https://helm.ngc.nvidia.com/nvidia",
    )


def test_a_local_piece_is_a_chart_that_prints_its_values() -> None:
    files = everything(small_plan())
    chart = helm_release(files, "sriov-ib-networks")["chart"]["spec"]
    folder = "flux/releases/sriov-ib-networks/chart"
    assert documents(files, f"{folder}/Chart.yaml")[0]["name"] == "sriov-ib-networks"
    assert b".Files" not in files[f"{folder}/templates/all.tpl"]
    assert chart == {
        "chart": f"./out/demo/{folder}",
        "reconcileStrategy": "ChartVersion",
        "interval": "1m",
        "sourceRef": {"kind": "GitRepository", "name": "demo"},
    }


def test_case_64_and_65_crds_are_upgraded_by_their_owner_only() -> None:
    files = everything(small_plan())
    owner, other = helm_release(files, "network-operator"), helm_release(files, "gpu-operator")
    assert (owner["install"]["crds"], owner["upgrade"]["crds"]) == ("CreateReplace", "CreateReplace")
    assert (other["install"]["crds"], other["upgrade"]["crds"]) == ("Create", "Skip")


def test_install_decides_what_helm_waits_for() -> None:
    files = everything(replaced("gpu-operator", install=Install(5400, "workloads", wait_for_jobs=False)))
    assert helm_release(files, "kai-scheduler")["install"]["disableWait"] is True
    spec = helm_release(files, "gpu-operator")
    assert spec["timeout"] == "1h30m"
    assert spec["upgrade"]["disableWaitForJobs"] is True
    assert "disableWait" not in spec["install"]
    assert node(files, "gpu-operator")["spec"]["timeout"] == "1h31m"
    assert not {"disableWait", "disableWaitForJobs"} & set(helm_release(files, "network-operator")["install"])


def test_drift_is_left_alone_where_the_component_says_so() -> None:
    drift = Drift("", "Secret", "tls", "ns", ("/data",), "rotated")
    spec = helm_release(everything(replaced("network-operator", drift=(drift,))), "network-operator")
    assert spec["driftDetection"] == {
        "mode": "warn",
        "ignore": [{"paths": ["/data"], "target": {"kind": "Secret", "name": "tls", "namespace": "ns"}}],
    }


def test_a_release_with_crds_in_its_templates_survives_the_loss_of_its_node() -> None:
    files = everything(small_plan())
    assert node(files, "cert-manager")["spec"]["deletionPolicy"] == "Orphan"
    assert node(files, "gpu-operator")["spec"]["deletionPolicy"] == "WaitForTermination"


def test_case_21_nothing_of_ours_is_substituted() -> None:
    files = everything(gated(NODES))
    for path, item in objects(files):
        assert item["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"] == "disabled", path
        assert "postBuild" not in item.get("spec", {})
        assert item["metadata"]["labels"]["bundlec.dev/bundle"] == "demo"


def test_values_over_the_limit_of_a_config_map_are_refused() -> None:
    assert codes(replaced("gpu-operator", values={"dashboard": "x" * (1 << 20)})) == ["BC4004"]


def test_manifests_over_the_limit_of_a_helm_release_are_refused() -> None:
    (item, *_) = next(r for r in small_plan().releases if r.id == "sriov-ib-networks").objects
    large = dataclasses.replace(item, data={**item.data, "data": {"dashboard": "x" * (1 << 20)}})
    assert codes(replaced("sriov-ib-networks", objects=(large,))) == ["BC4004"]


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"git": None}, "BC4002"),
        ({"git": GitSettings("https://git.example.com/x.git", "main", "../x")}, "BC4002"),
        ({"git": GitSettings("/srv/git/x.git", "main", "x")}, "BC4003"),
        ({"git": GitSettings("git@git.example.com:x.git", "main", "x")}, "BC4002"),
        ({"flux": FluxSettings(source_kind="OCIRepository")}, "BC4003"),
        ({"flux": FluxSettings(source_kind="Bucket")}, "BC4002"),
        ({"flux": FluxSettings(min_version="2.7")}, "BC4003"),
        ({"flux": FluxSettings(source_existing=True, source_secret="x")}, "BC4003"),
        ({"prefix": "a-prefix-that-is-far-too-long-for-what-a-label-may-be"}, "BC4001"),
    ],
)
def test_a_setting_is_honoured_or_refused(changes: dict[str, Any], code: str) -> None:
    assert set(codes(with_settings(small_plan(), **changes))) == {code}


def test_settings_reach_the_objects() -> None:
    files = everything(
        with_flux(namespace="gitops", source_name="infra", service_account="tenant", source_secret="key")
    )
    assert {item["metadata"]["namespace"] for _, item in objects(files)} == {"gitops"}
    repository, root = documents(files, "flux/root.yaml")
    assert repository["metadata"]["name"] == root["spec"]["sourceRef"]["name"] == "infra"
    assert repository["spec"]["secretRef"] == {"name": "key"}
    for path, item in objects(files):
        if item["kind"] in {"Kustomization", "HelmRelease"}:
            assert item["spec"]["serviceAccountName"] == "tenant", path


def test_a_remote_cluster_gets_the_payload_and_not_the_flux_objects() -> None:
    files = everything(with_settings(gated(NODES), flux=FluxSettings(kube_config="workload")))
    remote = {item["metadata"]["name"] for _, item in objects(files) if item.get("spec", {}).get("kubeConfig")}
    releases = {f"demo-{r.id}" for r in small_plan().releases}
    assert remote == releases | {
        "demo-namespaces",
        "demo-gates",
        "demo-gate-gpu-operator-pre",
        "demo-gate-sriov-ib-networks",
    }
    assert "kubeConfig" not in node(files, "gpu-operator")["spec"]


def test_a_source_that_exists_is_not_made() -> None:
    files = everything(with_flux(source_existing=True, source_name="flux-system", source_kind="Bucket"))
    assert [d["kind"] for d in documents(files, "flux/root.yaml")] == ["Kustomization"]
    assert helm_release(files, "sriov-ib-networks")["chart"]["spec"]["sourceRef"] == {
        "kind": "Bucket",
        "name": "flux-system",
    }


@pytest.mark.parametrize("path", ["", ".", "./", "/"])
def test_the_bundle_may_be_the_whole_repository(path: str) -> None:
    plan = with_settings(small_plan(), git=GitSettings("https://git.example.com/x.git", "main", path))
    files = everything(plan)
    assert documents(files, "flux/root.yaml")[1]["spec"]["path"] == "./flux/graph"
    assert prove(inventory_of(plan), {"flux": flux.read_back(files)}) == ()


def test_the_forms_of_git() -> None:
    assert git_url("git@git.example.com:platform/bundles.git") == "ssh://git@git.example.com/platform/bundles.git"
    assert git_url("https://git.example.com/x.git") == "https://git.example.com/x.git"
    assert git_reference("main") == {"branch": "main"}
    assert git_reference("v1.2.3") == {"tag": "v1.2.3"}
    assert git_reference("release-1.2") == {"branch": "release-1.2"}
    assert git_reference("a" * 40) == {"commit": "a" * 40}
    assert git_reference("refs/pull/1/head") == {"name": "refs/pull/1/head"}


def test_case_69_no_two_nodes_share_a_name() -> None:
    plan = small_plan()
    twin = release("gate-sriov-ib-networks", "gate-sriov-ib-networks", "main", "kube-system")
    assert codes(dataclasses.replace(plan, releases=(*plan.releases, twin))) == ["BC4001"]
    twin = release("namespaces", "namespaces", "main", "kube-system")
    assert codes(dataclasses.replace(plan, releases=(*plan.releases, twin))) == ["BC4001"]


def test_a_bundle_without_namespaces_of_its_own_has_no_node_for_them() -> None:
    plan = dataclasses.replace(small_plan(), namespaces=())
    files = everything(plan)
    assert "flux/graph/namespaces.yaml" not in files
    assert "dependsOn" not in node(files, "cert-manager")["spec"]


# --- against the real thing ------------------------------------------------------------------------------------------


def objects(files: Files) -> list[tuple[str, dict[str, Any]]]:
    """The cluster's objects in `flux/`, charts and Kustomize's own files left out."""
    return [
        (path, item)
        for path in sorted(files)
        if path.startswith("flux/") and path.endswith(".yaml") and not path.endswith("/Chart.yaml")
        for item in documents(files, path)
        if item.get("apiVersion", "kustomize.config.k8s.io/v1beta1") != "kustomize.config.k8s.io/v1beta1"
    ]


RICH = with_settings(
    gated(NODES, POLICY_READY, INSTALLER, dataclasses.replace(INSTALLER, id="other", min_nodes=4), WEBHOOK, CONDITION),
    flux=FluxSettings(source_secret="key", service_account="tenant", kube_config="workload"),
    argocd=ArgoSettings(),
    gates=GateSettings(
        pull_secrets=("x",), node_selector={"a": "b"}, tolerations=({"operator": "Exists"},), priority_class="p"
    ),
)


@pytest.mark.parametrize("plan", [small_plan(), RICH], ids=["small", "rich"])
def test_the_custom_resources_are_valid_without_an_unknown_field(plan: Plan, crds: Path) -> None:
    files = everything(plan)
    seen = set()
    for path, item in objects(files):
        if ".toolkit.fluxcd.io/" in item["apiVersion"]:
            assert crd_faults(crds, item) == [], path
            seen.add(item["kind"])
    assert seen == {"Kustomization", "GitRepository", "HelmRelease", "HelmRepository", "OCIRepository"}


def test_every_expression_can_be_compiled() -> None:
    """For Flux an expression with a fault of syntax is the end: it is not tried again."""
    import cel

    entries = [e for _, item in objects(everything(RICH)) for e in item.get("spec", {}).get("healthCheckExprs", [])]
    assert len(entries) >= 6
    for entry in entries:
        assert set(entry) == {"apiVersion", "kind", "current"}
        cel.compile(entry["current"])


def test_the_gate_jobs_are_valid() -> None:
    import kubernetes_validate

    seen = set()
    for _, item in objects(everything(RICH)):
        if ".toolkit.fluxcd.io/" not in item["apiVersion"]:
            kubernetes_validate.validate(item, "1.34", strict=True)
            seen.add(item["kind"])
    assert seen == {"Job", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def build(kubectl: Path, folder: Path) -> list[dict[str, Any]]:
    command = [str(kubectl), "kustomize", "--load-restrictor=LoadRestrictionsNone", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return [d.data for d in load_all(result.stdout, "build", strict=False)]


def write(files: Files, target: Path) -> None:
    for path, content in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(content)
        if content.startswith(b"#!"):
            (target / path).chmod(0o755)


@pytest.mark.tools
def test_kustomize_builds_every_folder_that_a_node_names(tmp_path: Path, tool: Callable[[str], Path]) -> None:
    files = everything(RICH)
    write(files, tmp_path / "out" / "demo")
    for _, item in objects(files):
        if item["kind"] == "Kustomization":
            folder = tmp_path / item["spec"]["path"]
            if (folder / "kustomization.yaml").exists():
                built = build(tool("kubectl"), folder)
                assert bool(built) == (folder.name != "gates"), folder
            else:
                assert folder.name == "namespaces"  # Flux lists the folder itself


@pytest.mark.tools
def test_a_changed_value_changes_the_helm_release(tmp_path: Path, tool: Callable[[str], Path]) -> None:
    names = []
    for number, values in enumerate(({"a": "${HOME} y: 1e3\n"}, {"a": "b"})):
        plan = replaced("network-operator", values=values)
        write(everything(plan), tmp_path / str(number))
        built = build(tool("kubectl"), tmp_path / str(number) / "flux/releases/network-operator")
        by_kind = {item["kind"]: item for item in built}
        config = by_kind["ConfigMap"]
        assert config["data"] == {"values.yaml": dump(values)}
        assert config["metadata"]["namespace"] == "flux-system"
        assert config["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"] == "disabled"
        assert by_kind["HelmRelease"]["spec"]["valuesFrom"] == [
            {"kind": "ConfigMap", "name": config["metadata"]["name"]}
        ]
        names.append(config["metadata"]["name"])
    assert names[0] != names[1]


@pytest.mark.tools
def test_manifests_are_values_of_the_helm_release(tmp_path: Path, tool: Callable[[str], Path]) -> None:
    """What a release brings changes with its own node, not with the commit: nothing passes a gate that is closed."""
    (item, *_) = next(r for r in small_plan().releases if r.id == "sriov-ib-networks").objects
    odd = "{{ $labels }} ${HOME}\n---\n\ty: 1e3 \u00e9\\n\n"
    plan = replaced("sriov-ib-networks", objects=(dataclasses.replace(item, data={**item.data, "data": {"a": odd}}),))
    files = everything(plan)
    write(files, tmp_path)
    (built,) = build(tool("kubectl"), tmp_path / "flux/releases/sriov-ib-networks")
    folder = "components/sriov-ib-networks/manifests/"
    texts = {path.removeprefix(folder): text.decode() for path, text in files.items() if path.startswith(folder)}
    assert len(texts) == 1
    assert built["spec"]["values"] == {"manifests": texts}


@pytest.mark.tools
def test_the_chart_of_manifests_prints_what_the_others_read(tmp_path: Path, tool: Callable[[str], Path]) -> None:
    files = everything(small_plan())
    write(files, tmp_path)
    for release_id in ("sriov-ib-networks", "network-operator-post"):
        values = build(tool("kubectl"), tmp_path / f"flux/releases/{release_id}")[0]["spec"]["values"]
        (tmp_path / "values.yaml").write_text(dump(values))
        printed = []
        for chart in (f"flux/releases/{release_id}/chart", f"components/{release_id}"):
            command = [tool("helm4"), "template", release_id, tmp_path / chart, "--values", tmp_path / "values.yaml"]
            done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=60, check=True)
            printed.append([d.data for d in load_all(done.stdout, "helm", strict=False)])
        assert printed[0] == printed[1] != []
