"""preflight.sh: constraints as the compiler understands them, nodes, APIs, owners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from compiler.emit import gatelib, preflight
from compiler.model import GateSettings, Plan, PreflightCheck, Singleton
from compiler.tools import run
from compiler.versions import VersionError, satisfies
from tests.support.fake_cluster import crd
from tests.support.plans import check, settings, small_plan
from tests.support.scripts import CRDS, Cluster, Ran

POLICIES = "nicclusterpolicies.mellanox.com"
GPU = "cloud.google.com/gke-accelerator"


def plan(*checks: PreflightCheck, selector: str = "", **gates: Any) -> Plan:
    base = small_plan(settings=settings(gates=GateSettings(**gates)))
    return replace(base, preflight=checks, accelerated_selector=selector)


def write(item: Plan, folder: Path) -> Path:
    for name, content in {**preflight.emit(item), **gatelib.emit(item)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    return folder / "preflight.sh"


def need(kind: str, name: str, value: str, severity: str = "error", **more: Any) -> PreflightCheck:
    return PreflightCheck(kind, name, value, severity, f"make {name} right", **more)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "cluster")


def look(cluster: Cluster, folder: Path, *checks: PreflightCheck, selector: str = "", **gates: Any) -> Ran:
    ran = cluster.run(write(plan(*checks, selector=selector, **gates), folder / "bundle"))
    assert ran.changes() == []
    return ran


def node(
    cluster: Cluster, name: str, image: str = "Ubuntu 24.04.3 LTS", kernel: str = "6.8.0-1028-nvidia-64k", **labels: str
):
    info = {"osImage": image, "kernelVersion": kernel}
    cluster.put("nodes", {"metadata": {"name": name, "labels": labels}, "status": {"nodeInfo": info}})


def verdicts(ran: Ran) -> list[str]:
    return [line.strip() for line in ran.said.splitlines() if line.startswith("  ") and not line.startswith("   ")]


# --- constraints -----------------------------------------------------------------------------------------------------

NUMBER = st.one_of(st.sampled_from(["0", "1", "9", "10", "34", "08", "034"]), st.integers(0, 40).map(str))
VERSION = st.builds(
    lambda v, parts, tail: v + ".".join(parts) + tail,
    st.sampled_from(["", "v"]),
    st.lists(NUMBER, min_size=1, max_size=4),
    st.sampled_from(["", "-gke.100", "+k3s1", "~rc1", "-1028-nvidia-64k", "x", " "]),
)
OPERAND = st.one_of(VERSION, st.sampled_from(["ubuntu", "Ubuntu", "24.04", "a.b", "*", "[0-9]", "$(id)", "x y", ""]))
TERM = st.builds(
    "".join, st.tuples(st.sampled_from([">=", "<=", "!=", "==", ">", "<", ""]), st.sampled_from(["", " "]), OPERAND)
)
EXPRESSION = st.one_of(TERM, st.builds(", ".join, st.lists(TERM, min_size=2, max_size=3)))


def expected(reading: str, expression: str) -> int | None:
    """0 yes, 1 no, 2 cannot be decided; None where the compiler refuses the expression at load."""
    try:
        satisfies("1.2.3", expression)
    except VersionError:
        return None
    try:
        return 0 if satisfies(reading, expression) else 1
    except VersionError:
        return 2


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(plan(), tmp_path_factory.mktemp("bundle"))


@hypothesis_settings(max_examples=12, deadline=None)
@given(cases=st.lists(st.tuples(OPERAND, EXPRESSION), min_size=25, max_size=25))
def test_constraints_mean_the_same_as_to_the_compiler(script: Path, cases: list[tuple[str, str]]):
    compare(script, cases)


FIXED = [
    ("v1.34.2", ">= 1.34"),
    ("v1.34.1-gke.100", "> 1.34"),
    ("v1.34.9", "<= 1.34"),
    ("v1.33.9", ">= 1.34"),
    ("v1.34.2", "== 1.34"),
    ("24.4", "== 24.04"),
    ("24.04", "24.04"),
    ("24.4", "24.04"),
    ("6.8.0-1028-aws", ">= 6.8"),
    ("ubuntu", "ubuntu"),
    ("Ubuntu", "ubuntu"),
    ("cos", "!= ubuntu"),
    ("banana", ">= 1"),
    ("1.40", ">= 1.34, < 1.36"),
    ("1.35", ">= 1.34, < 1.36"),
    ("1.34", ">= 1.34,< 1.35,!= 1.34"),
    ("3", "== 3"),
    ("v3", "== 3"),
    ("1.09", ">= 1.8"),
    ("a*", "*"),
]


def test_constraints_of_recipes(script: Path):
    compare(script, FIXED)


def compare(script: Path, cases: list[tuple[str, str]]) -> None:
    wanted = [(r, e, expected(r, e)) for r, e in cases]
    wanted = [w for w in wanted if w[2] is not None]
    words = [word for reading, expression, _ in wanted for word in (reading, expression)]
    loop = 'while (($#)); do s=0; satisfies "$1" "$2" || s=$?; echo "$s"; shift 2; done'
    found = run(["bash", "-c", f'. "$1"; shift; {loop}', "test", script, *words]).text.split()
    assert found == [str(w[2]) for w in wanted], wanted


# --- readings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status", "verdict"),
    [
        (">= 1.34", 0, "ok    K8s.server.version >= 1.34: v1.34.2"),
        (">= 1.35", 4, "FAIL  K8s.server.version >= 1.35: v1.34.2"),
    ],
)
def test_server_version(cluster: Cluster, tmp_path: Path, value: str, status: int, verdict: str):
    ran = look(cluster, tmp_path, need("version", "K8s.server.version", value))
    assert (ran.status, verdicts(ran)) == (status, [verdict])
    assert ("make K8s.server.version right" in ran.said) is bool(status)


def test_everything_is_shown_before_it_ends(cluster: Cluster, tmp_path: Path):
    checks = [
        need("version", "K8s.server.version", v, s)
        for v, s in ((">= 1.35", "error"), (">= 1.36", "warning"), (">= 1", "error"))
    ]
    ran = look(cluster, tmp_path, *checks)
    assert ran.status == 4
    assert [v[:4] for v in verdicts(ran)] == ["FAIL", "warn", "ok  "]
    assert ran.said.splitlines()[-1] == "preflight: 1 to settle first, 1 warnings"


def test_a_warning_does_not_refuse(cluster: Cluster, tmp_path: Path):
    ran = look(cluster, tmp_path, need("version", "K8s.server.version", ">= 1.36", "warning"))
    assert ran.status == 0
    assert "nothing speaks against it, 1 warnings" in ran.said


@pytest.mark.parametrize(
    ("image", "name", "version"),
    [
        ("Ubuntu 24.04.3 LTS", "ubuntu", "24.04"),
        ("Container-Optimized OS from Google", "cos", None),
        ("Red Hat Enterprise Linux CoreOS 9.6.20250101-0 (Plow)", "rhcos", "9.6.20250101"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "rhel", "9.4"),
        ("Amazon Linux 2023.9.20250101", "amzn", "2023"),
        ("Debian GNU/Linux 12 (bookworm)", "debian", "12"),
        ("Talos (v1.10.2)", "talos", "1.10.2"),
        ("Something Else 1.0", None, "1.0"),
    ],
)
def test_operating_systems(cluster: Cluster, tmp_path: Path, image: str, name: str | None, version: str | None):
    node(cluster, "a", image)
    for key, value in (("OS.release.ID", name), ("OS.release.VERSION_ID", version)):
        ran = look(cluster, tmp_path, need("os", key, value or "x"))
        wanted = (
            f"ok    {key} {value}: 1 nodes (a): {value}"
            if value
            else f"--    {key} x: cannot be told from '{image}' (1 nodes: a)"
        )
        assert (ran.status, verdicts(ran)) == (0, [wanted])


def test_nodes_are_grouped_by_reading_and_one_bad_group_refuses(cluster: Cluster, tmp_path: Path):
    for number in range(5):
        node(cluster, f"good-{number}")
    node(cluster, "bad", "Container-Optimized OS from Google")
    ran = look(cluster, tmp_path, need("os", "OS.release.ID", "ubuntu"))
    assert ran.status == 4
    assert verdicts(ran) == [
        "FAIL  OS.release.ID ubuntu: 1 nodes (bad): cos",
        "ok    OS.release.ID ubuntu: 5 nodes (good-0 good-1 good-2): ubuntu",
    ]


def test_kernel(cluster: Cluster, tmp_path: Path):
    node(cluster, "a", kernel="6.8.0-1028-nvidia-64k")
    node(cluster, "b", kernel="5.15.0-91-generic")
    ran = look(cluster, tmp_path, need("kernel", "OS.sysctl./proc/sys/kernel/osrelease", ">= 6.8"))
    assert ran.status == 4
    assert [v[:4] for v in verdicts(ran)] == ["ok  ", "FAIL"]


def test_only_nodes_under_the_selector_count(cluster: Cluster, tmp_path: Path):
    node(cluster, "gpu", role="gpu")
    node(cluster, "cpu", "Container-Optimized OS from Google")
    wanted = need("os", "OS.release.ID", "ubuntu")
    assert look(cluster, tmp_path, wanted, selector="role=gpu").status == 0
    assert look(cluster, tmp_path, wanted, selector="!role").status == 4


@pytest.mark.parametrize(("minimum", "status", "word"), [(None, 4, "FAIL"), (1, 4, "FAIL"), (0, 0, "warn")])
def test_no_node_at_all(cluster: Cluster, tmp_path: Path, minimum: int | None, status: int, word: str):
    node(cluster, "cpu")
    checks = [
        need("os", "OS.release.ID", "ubuntu"),
        need("kernel", "k", ">= 6"),
        need("label", "l", "a=b"),
        need("label", "l", "!a"),
    ]
    ran = look(cluster, tmp_path, *checks, selector="role=gpu", min_nodes=minimum)
    assert ran.status == status
    assert [v[:4] for v in verdicts(ran)] == [word] * 4
    assert "no node matches role=gpu" in ran.said


@pytest.mark.parametrize(
    ("value", "labels", "status"),
    [
        ("k.x/y=true", [{"k.x/y": "true"}, {"k.x/y": "true"}], 0),
        ("k.x/y=true", [{"k.x/y": "true"}, {"k.x/y": "false"}], 4),
        ("k.x/y=true", [{"k.x/y": "true"}, {}], 4),
        ("!k.x/y", [{}, {}], 0),
        ("!k.x/y", [{}, {"k.x/y": "false"}], 4),
    ],
)
def test_label_of_gpu_nodes(cluster: Cluster, tmp_path: Path, value: str, labels: list[dict[str, str]], status: int):
    for number, own in enumerate(labels):
        node(cluster, f"gpu-{number}", **{GPU: "nvidia-gb200", **own})
    node(cluster, "cpu", **{"k.x/y": "neither"})
    ran = look(cluster, tmp_path, need("label", "NodeTopology.gpu-nodes.label", value))
    assert ran.status == status
    assert ("not so on gpu-1" in ran.said) is bool(status)


def test_check(cluster: Cluster, tmp_path: Path):
    network = check("field", group="networking.gke.io", version="v1", object_kind="Network", resource="networks",
                    name="rdma-0", path="spec.type", op="equals", value="Device")  # fmt: skip
    wanted = need("check", "Network.networking.gke.io rdma-0", "", check=network)
    ran = look(cluster, tmp_path, wanted)
    assert ran.status == 4
    assert "doesn't have a resource type" in ran.said
    cluster.put(CRDS, crd("networks.networking.gke.io"))
    cluster.put("networks.networking.gke.io", {"metadata": {"name": "rdma-0"}, "spec": {"type": "Device"}})
    assert look(cluster, tmp_path, wanted).status == 0


def test_unchecked(cluster: Cluster, tmp_path: Path):
    ran = look(cluster, tmp_path, need("unchecked", "GPU.hardware.model", "GB200"))
    assert ran.status == 0
    assert verdicts(ran) == ["--    GPU.hardware.model GB200: not checked; see to it yourself"]


# --- singletons ------------------------------------------------------------------------------------------------------

SINGLETON = need(
    "singleton",
    "NicClusterPolicy",
    "nic-cluster-policy",
    singleton=Singleton("mellanox.com", "NicClusterPolicy", "nic-cluster-policy"),
)


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        (None, 0),
        ({"labels": {"bundlec.dev/bundle": "demo"}}, 0),
        ({"labels": {"bundlec.dev/bundle": "other"}}, 4),
        ({}, 4),
        (
            {
                "annotations": {
                    "meta.helm.sh/release-name": "gpu-operator",
                    "meta.helm.sh/release-namespace": "gpu-operator",
                }
            },
            0,
        ),
        (
            {
                "annotations": {
                    "meta.helm.sh/release-name": "gpu-operator",
                    "meta.helm.sh/release-namespace": "elsewhere",
                }
            },
            4,
        ),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "demo-gpu-operator:nvidia.com/ClusterPolicy:/x"}}, 0),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "other-gpu-operator:nvidia.com/ClusterPolicy:/x"}}, 4),
        ({"labels": {"app.kubernetes.io/instance": "demo-gpu-operator"}}, 0),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "demo-gpu-operator"}}, 0),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "other-gpu-operator"}}, 4),
        ({"labels": {"app.kubernetes.io/instance": "gpu-operator"}}, 4),
    ],
)
def test_foreign_singleton(cluster: Cluster, tmp_path: Path, metadata: dict[str, Any] | None, status: int):
    cluster.put(CRDS, crd(POLICIES, kind="NicClusterPolicy"))
    if metadata is not None:
        cluster.put(POLICIES, {"metadata": {"name": "nic-cluster-policy", **metadata}})
    ran = look(cluster, tmp_path, SINGLETON)
    assert ran.status == status
    assert ("there is another one: nic-cluster-policy" in ran.said) is bool(status)


FLUX = "helmreleases.helm.toolkit.fluxcd.io"
BY_HELM = {"meta.helm.sh/release-name": "gpu-operator", "meta.helm.sh/release-namespace": "gpu-operator"}


@pytest.mark.parametrize(
    ("labels", "flux", "status"),
    [
        ({"bundle": "demo"}, "", 0),
        ({"bundle": "other"}, "demo", 4),  # whoever adopted it last
        ({}, "", 4),  # helm install
        ({}, "other", 4),
        ({}, "demo", 0),
    ],
)
def test_owner_of_a_release_with_a_name_of_ours(
    cluster: Cluster, tmp_path: Path, labels: dict[str, str], flux: str, status: int
):
    cluster.put(CRDS, crd(POLICIES, kind="NicClusterPolicy"))
    cluster.put(POLICIES, {"metadata": {"name": "nic-cluster-policy", "annotations": BY_HELM}})
    cluster.record("gpu-operator", "gpu-operator", 9, "failed")
    cluster.record("gpu-operator", "gpu-operator", 10, "deployed", **labels)
    cluster.record("gpu-operator", "elsewhere", 3, "deployed")
    if flux:
        cluster.put(CRDS, crd(FLUX, kind="HelmRelease"))
        spec = {"storageNamespace": "gpu-operator", "releaseName": "gpu-operator"}
        metadata = {"name": "x", "namespace": "flux-system", "labels": {"bundlec.dev/bundle": flux}}
        cluster.put(FLUX, {"metadata": metadata, "spec": spec})
    ran = look(cluster, tmp_path, SINGLETON)
    owner = "the bundle other" if labels else "somebody else"
    said = [
        f"the Helm release gpu-operator/gpu-operator is installed by {owner}\n",
        "helm uninstall gpu-operator -n gpu-operator",
        "there is another one: nic-cluster-policy",
    ]
    assert (ran.status, [part in ran.said for part in said]) == (status, [bool(status)] * 3), ran.said


def test_what_flux_keeps_is_not_taken_over(cluster: Cluster, tmp_path: Path):
    cluster.put(CRDS, crd(FLUX, kind="HelmRelease"))
    spec = {"storageNamespace": "gpu-operator", "releaseName": "gpu-operator"}
    metadata = {"name": "x", "namespace": "flux-system", "labels": {"bundlec.dev/bundle": "demo"}}
    cluster.put(FLUX, {"metadata": metadata, "spec": spec})
    cluster.record("gpu-operator", "gpu-operator", 1, "deployed")
    assert look(cluster, tmp_path).status == 0
    ran = cluster.run(tmp_path / "bundle/preflight.sh", BUNDLEC_DEPLOYS="yes")
    assert ran.status == 4
    assert "the Helm release gpu-operator/gpu-operator is kept by Flux" in ran.said


def test_owners_of_releases_that_may_not_be_read(cluster: Cluster, tmp_path: Path):
    cluster.change(denied=["secrets"])
    ran = look(cluster, tmp_path)
    assert ran.status == 0
    assert verdicts(ran)[0].startswith("--    owners of Helm releases: Error from server (Forbidden)")


def test_singleton_of_a_kind_that_others_use(cluster: Cluster, tmp_path: Path):
    """Every cluster has APIServices: only the one of that name counts."""
    name = "v1beta1.custom.metrics.k8s.io"
    wanted = need("singleton", "APIService", name, singleton=Singleton("apiregistration.k8s.io", "APIService", name))
    services = "apiservices.apiregistration.k8s.io"
    cluster.put(CRDS, crd(services, kind="APIService"))
    cluster.put(services, {"metadata": {"name": "v1.apps"}})
    assert look(cluster, tmp_path, wanted).status == 0
    cluster.put(services, {"metadata": {"name": name}})
    ran = look(cluster, tmp_path, wanted)
    assert ran.status == 4
    assert f"there is another one: {name}\n" in ran.said


def test_singleton_of_a_kind_that_a_component_brings(cluster: Cluster, tmp_path: Path):
    """An operator that reconciles one name only is upset by an object of any other."""
    base = plan(SINGLETON)
    brought = SimpleNamespace(crds=(SimpleNamespace(group="mellanox.com", kind="NicClusterPolicy"),))
    operator = cast("Any", SimpleNamespace(enabled=True, component=brought))
    item = replace(base, recipe=replace(base.recipe, components={"operator": operator}))
    cluster.put(CRDS, crd(POLICIES, kind="NicClusterPolicy"))
    cluster.put(POLICIES, {"metadata": {"name": "theirs"}})
    ran = cluster.run(write(item, tmp_path / "bundle"))
    assert ran.status == 4
    assert "there is another one: theirs" in ran.said


def test_singleton_of_an_api_that_is_not_there_yet(cluster: Cluster, tmp_path: Path):
    ran = look(cluster, tmp_path, SINGLETON)
    assert (ran.status, verdicts(ran)) == (0, ["ok    NicClusterPolicy nic-cluster-policy: none yet"])


def test_singleton_that_may_not_be_read(cluster: Cluster, tmp_path: Path):
    cluster.put(CRDS, crd(POLICIES, kind="NicClusterPolicy"))
    cluster.change(denied=[POLICIES])
    ran = look(cluster, tmp_path, SINGLETON)
    assert ran.status == 0
    assert verdicts(ran)[0].startswith("--    NicClusterPolicy nic-cluster-policy: Error from server (Forbidden)")


# --- the program -----------------------------------------------------------------------------------------------------


def test_a_cluster_that_cannot_be_read_is_not_a_refusal(cluster: Cluster, tmp_path: Path):
    (cluster.bin / "kubectl").write_text("#!/bin/sh\necho 'connection refused' >&2\nexit 1\n")
    ran = look(cluster, tmp_path)
    assert ran.status == 1
    assert "the cluster cannot be read: connection refused" in ran.said


@pytest.mark.parametrize("arguments", [["--context"], ["--context", ""], ["--what"], ["x"]])
def test_wrong_usage(cluster: Cluster, tmp_path: Path, arguments: list[str]):
    ran = cluster.run(write(plan(), tmp_path / "bundle"), *arguments)
    assert (ran.status, ran.calls) == (2, [])


def test_help_and_context(cluster: Cluster, tmp_path: Path):
    script = write(plan(), tmp_path / "bundle")
    assert cluster.run(script, "--help").out.startswith("usage: ./preflight.sh")
    for arguments in (["--context", "prod"], ["--context=prod"]):
        assert all("prod" in call for call in cluster.run(script, *arguments).calls)


@pytest.mark.tools
def test_script_is_clean(tmp_path: Path, tool: Any):
    hostile = "$(id) `id` 'x' \"y\" \\"
    checks = [need(kind, hostile, hostile) for kind in ("version", "os", "kernel", "label", "unchecked")]
    script = write(plan(*checks, SINGLETON, selector="role=gpu,!x"), tmp_path)
    run(["bash", "-n", script])
    run([tool("shellcheck"), "-x", script])


def test_hostile_words_are_only_words(cluster: Cluster, tmp_path: Path):
    """case 72: neither the recipe's words nor what a node reports is run by the shell."""
    trap = f"$(touch {tmp_path}/run)`touch {tmp_path}/run`"
    node(cluster, "a", image=f"Ubuntu {trap}", kernel=f"a[{trap}]")
    checks = [
        PreflightCheck(kind, f"x{trap}", f">= 1{trap}", "error", trap)
        for kind in ("version", "os", "kernel", "unchecked")
    ]
    look(cluster, tmp_path, *checks, PreflightCheck("kernel", "k", "6.8", "error", trap))
    assert not (tmp_path / "run").exists()
