"""What the Slurm recipe of GKE brings to the cluster, spelled out, and what its input `accounting` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compiler.errors import UserError
from compiler.model import Flags, Plan
from compiler.pipeline import compile_bundle
from tests.bundles.bundle import Bundle
from tests.bundles.conftest import catalog

NAME = "gb200-gke-cos-training-slurm"
MARIADB = {"mariadb-operator", "mariadb-operator-crds", "slurm-accounting-mariadb"}


@pytest.fixture
def slurm(compiled: Callable[[str], Bundle]) -> Bundle:
    """Without accounting."""
    return compiled(NAME)


@pytest.fixture
def accounted(compiled: Callable[[str], Bundle]) -> Bundle:
    """With the database of the bundle."""
    return compiled(f"{NAME}-accounting")


def built(
    accounting: str | None = None, values: dict[str, Any] | None = None, settings: dict[str, Any] | None = None
) -> Plan:
    """The recipe with an input, values and settings of its own, in memory."""
    entry = catalog().workspace.bundles[NAME]
    inputs = {**entry.inputs, **({"accounting": accounting} if accounting else {})}
    changed = replace(entry, inputs=inputs, set={**entry.set, **(values or {})}, settings=settings or entry.settings)
    return compile_bundle(catalog(), changed, Flags()).plan


def rules_broken(error: UserError) -> set[str]:
    """The ids of the rules, without those that only warn."""
    broken = [found.message for found in error.diagnostics if found.severity == "error"]
    return {message.rpartition("(rule `")[2].rstrip("`)") for message in broken}


# --- the cluster


def test_a_worker_is_a_whole_node_with_its_imex_channels(slurm: Bundle) -> None:
    workers = slurm.values("slinky-slurm")["nodesets"]["slinky"]
    assert workers["scalingMode"] == "StatefulSet"
    assert workers["extraConfMap"] == {"Gres": "gpu:gb200:4"}
    assert workers["slurmd"]["resources"] == {"limits": {"nvidia.com/gpu": 4}, "claims": [{"name": "imex-channels"}]}
    pod = workers["podSpec"]
    assert pod["resourceClaims"] == [
        {"name": "imex-channels", "resourceClaimTemplateName": "slinky-slurm-imex-channels"}
    ]
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-gb200"}
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "kubernetes.io/arch", "operator": "Exists"},
    ]
    assert workers["partition"]["configMap"] == {"State": "UP", "Default": "YES", "MaxTime": "24:00:00"}


def test_the_compute_domain(slurm: Bundle) -> None:
    domain = slurm.object("slinky-slurm-pre", "ComputeDomain", "slinky-slurm-imex")
    assert domain["apiVersion"] == "resource.nvidia.com/v1beta1"
    assert domain["metadata"]["namespace"] == "slurm"
    assert domain["spec"] == {
        "numNodes": 0,  # one of the two schemas of the CRD requires it
        "channel": {"allocationMode": "All", "resourceClaimTemplate": {"name": "slinky-slurm-imex-channels"}},
    }


def test_the_configuration_of_slurm(slurm: Bundle) -> None:
    values = slurm.values("slinky-slurm")
    assert values["controller"]["extraConfMap"] == {
        "SelectType": "select/cons_tres",
        "ScronParameters": "enable",
        "GresTypes": "gpu",
        "TaskPlugin": "task/cgroup,task/affinity",
        "SwitchType": "switch/nvidia_imex",
    }
    assert values["configFiles"]["gres.conf"] == "AutoDetect=nvidia\n"
    cgroup = dict(line.split("=") for line in values["configFiles"]["cgroup.conf"].splitlines())
    constrained = {key for key, value in cgroup.items() if key.startswith("Constrain") and value == "yes"}
    assert constrained == {"ConstrainCores", "ConstrainRAMSpace", "ConstrainDevices", "ConstrainSwapSpace"}
    assert (cgroup["CgroupPlugin"], cgroup["IgnoreSystemd"], cgroup["AllowedRAMSpace"]) == ("autodetect", "yes", "95")
    assert values["controller"]["persistence"]["resources"] == {"requests": {"storage": "4Gi"}}
    for image in (values["controller"]["logfile"], values["nodesets"]["slinky"]["logfile"]):
        assert image["image"]["tag"] == "3.23.3"


def test_nobody_logs_in_from_outside(slurm: Bundle) -> None:
    login = slurm.values("slinky-slurm")["loginsets"]["slinky"]
    assert login["service"] == {"spec": {"type": "ClusterIP"}}
    assert "PasswordAuthentication no\n" in login["extraSshdConfig"]
    assert "rootSshAuthorizedKeys" not in login


def test_what_needs_no_gpu_stays_off_the_a4x_nodes(accounted: Bundle) -> None:
    values = accounted.values("slinky-slurm")
    amd64 = {"kubernetes.io/arch": "amd64"}
    for pod in (values["controller"], values["restapi"], values["accounting"], values["loginsets"]["slinky"]):
        assert pod["podSpec"]["nodeSelector"] == amd64
    assert accounted.values("slurm-accounting-mariadb")["mariadb"]["nodeSelector"] == amd64


def test_the_files_of_people(slurm: Bundle) -> None:
    claims = [o for o in slurm.manifests("slinky-slurm-pre") if o["kind"] == "PersistentVolumeClaim"]
    assert {c["metadata"]["name"] for c in claims} == {"slurm-home", "slurm-data"}
    for claim in claims:
        assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
        assert claim["spec"]["storageClassName"] == "standard-rwx"
        assert claim["spec"]["resources"] == {"requests": {"storage": "1Ti"}}
        assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert claim["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
    values = slurm.values("slinky-slurm")
    for name, mount in (("loginsets", "login"), ("nodesets", "slurmd")):
        item = values[name]["slinky"]
        mounted = {m["name"]: m["mountPath"] for m in item[mount]["volumeMounts"]}
        assert (mounted["home"], mounted["data"]) == ("/home", "/data")
        claimed = {v["name"]: v.get("persistentVolumeClaim", {}).get("claimName") for v in item["podSpec"]["volumes"]}
        assert (claimed["home"], claimed["data"]) == ("slurm-home", "slurm-data")
    assert not {"storage", "enroot"} & set(values)  # ours, for the templates


def test_enroot_keeps_users_apart(slurm: Bundle) -> None:
    text = slurm.object("slinky-slurm-pre", "ConfigMap", "enroot-config")["data"]["enroot.conf"]
    lines = dict(line.split(" ", 1) for line in text.splitlines())
    assert lines["ENROOT_DATA_PATH"] == "/var/tmp/enroot/data/user-$(id -u)"
    assert lines["ENROOT_MOUNT_HOME"] == "yes"
    volumes = slurm.values("slinky-slurm")["nodesets"]["slinky"]["podSpec"]["volumes"]
    assert {"name": "enroot-config", "configMap": {"name": "enroot-config"}} in volumes


def test_nvsentinel_reads_why_slurm_drained_a_node(slurm: Bundle, gke: Bundle) -> None:
    values = slurm.values("nvsentinel")
    assert values["global"]["slurmDrainMonitor"] == {"enabled": True}
    monitor = values["slurm-drain-monitor"]
    assert monitor["namespace"] == "slurm"
    assert monitor["labelSelector"] == "app.kubernetes.io/name=slurmd,app.kubernetes.io/component=worker"
    assert monitor["processingStrategy"] == "STORE_ONLY"
    (pattern,) = monitor["patterns"]
    assert (pattern["regex"], pattern["recommendedAction"], pattern["isFatal"]) == (
        r"^\[HC\]",
        "CONTACT_SUPPORT",
        False,
    )
    assert "slurm-drain-monitor" not in gke.values("nvsentinel")


# --- accounting


def test_without_accounting_there_is_no_database(slurm: Bundle) -> None:
    assert not MARIADB & {r.id for r in slurm.plan.releases}
    assert not [path for path in slurm.files if "mariadb-system" in path]
    assert slurm.values("slinky-slurm")["accounting"]["enabled"] is False


def test_with_the_bundles_database(accounted: Bundle) -> None:
    assert {r.id for r in accounted.plan.releases} >= MARIADB
    accounting = accounted.values("slinky-slurm")["accounting"]
    assert accounting["enabled"] is True
    assert accounting["storageConfig"] == {
        "host": "mariadb",
        "port": 3306,
        "database": "slurm_acct_db",
        "username": "slurm",
        "passwordKeyRef": {"name": "mariadb-password", "key": "password"},
    }
    values = accounted.values("slurm-accounting-mariadb")
    assert (values["fullnameOverride"], values["namespaceOverride"]) == ("mariadb", "slurm")
    database = values["mariadb"]
    assert (database["username"], database["database"]) == ("slurm", "slurm_acct_db")
    assert database["passwordSecretKeyRef"] == {"name": "mariadb-password", "key": "password", "generate": True}
    assert database["rootPasswordSecretKeyRef"] == {"name": "mariadb-root-password", "key": "root", "generate": True}
    assert (database["storage"], database["replicas"]) == ({"size": "20Gi"}, 1)
    assert (database["galera"], database["cleanupPolicy"]) == ({"enabled": False}, "Skip")
    assert "innodb_buffer_pool_size=4096M\n" in database["myCnf"]
    assert database["resources"] == {
        "requests": {"cpu": "1", "memory": "6Gi"},
        "limits": {"cpu": "2", "memory": "8Gi"},
    }
    assert accounted.values("mariadb-operator")["crds"] == {"enabled": False}


def test_with_a_database_of_the_customers() -> None:
    where = {"slinky-slurm": {"accounting": {"storageConfig": {"host": "db.example.com"}}}}
    plan = built("customer-managed", where)
    assert not MARIADB & {r.id for r in plan.releases}
    accounting = plan.release("slinky-slurm").values["accounting"]
    assert (accounting["enabled"], accounting["storageConfig"]["host"]) == (True, "db.example.com")


def test_a_customers_database_must_be_named() -> None:
    with pytest.raises(UserError) as raised:
        built("customer-managed")
    assert rules_broken(raised.value) == {"own-database"}


def test_accounting_is_switched_by_the_input_alone() -> None:
    with pytest.raises(UserError) as raised:
        built(values={"slinky-slurm": {"accounting": {"enabled": True}}})
    assert "accounting-by-input" in rules_broken(raised.value)


def test_another_database_than_slurm_reads_is_refused() -> None:
    with pytest.raises(UserError) as raised:
        built("bundle-provided", {"slurm-accounting-mariadb": {"mariadb": {"database": "other"}}})
    assert rules_broken(raised.value) == {"accounting-database"}


def test_the_input_knows_three_modes() -> None:
    with pytest.raises(UserError) as raised:
        built("self-provided")
    (found,) = raised.value.diagnostics
    assert found.code == "BC2011"
    assert "disabled, customer-managed, bundle-provided" in str(found.fix)


# --- knobs


def test_placement_and_storage_reach_the_cluster() -> None:
    plan = built(
        "bundle-provided",
        settings={
            "placement": {"system": {"nodeSelector": {"pool": "system"}}},
            "storage": {"class": "hyperdisk-balanced", "sharedClass": "zonal-rwx"},
        },
    )
    values = plan.release("slinky-slurm").values
    for pod in (values["controller"], values["restapi"], values["accounting"], values["loginsets"]["slinky"]):
        assert pod["podSpec"]["nodeSelector"] == {"pool": "system"}
    assert values["controller"]["persistence"]["storageClassName"] == "hyperdisk-balanced"
    database = plan.release("slurm-accounting-mariadb").values["mariadb"]
    assert database["nodeSelector"] == {"pool": "system"}
    assert database["storage"]["storageClassName"] == "hyperdisk-balanced"
    claims = [o.data for o in plan.release("slinky-slurm-pre").objects if o.kind == "PersistentVolumeClaim"]
    assert [c["spec"]["storageClassName"] for c in claims] == ["zonal-rwx", "zonal-rwx"]


def test_workers_without_a_selector_are_refused() -> None:
    with pytest.raises(UserError) as raised:
        built(values={"slinky-slurm": {"nodesets": {"slinky": {"podSpec": {"nodeSelector": None}}}}})
    assert [d.code for d in raised.value.diagnostics] == ["BC2010"]


def test_imex_channels_that_no_job_gets_are_refused() -> None:
    with pytest.raises(UserError) as raised:
        built(values={"slinky-slurm": {"controller": {"extraConfMap": {"SwitchType": "switch/none"}}}})
    assert rules_broken(raised.value) == {"imex-claims"}
