"""`bundle.yaml`, `recipe.yaml` and `checksums.txt`."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import bundle, payload
from compiler.emit.inventory import check_data, check_of, inventory_of, read_inventory
from compiler.errors import UserError
from compiler.model import Check, Files, Plan, SelectedProfile
from compiler.source import Document
from compiler.yamlio import load
from tests.support.plans import AT, GONE, INSTALLER, IPPOOL_CRD, POLICY_READY, STATES, check, small_plan


def emitted(plan: Plan) -> dict[str, bytes]:
    files: dict[str, bytes] = dict(payload.emit(plan))
    return {**files, **bundle.emit(plan, files)}


def spec(files: Files, path: str = "bundle.yaml") -> dict[str, Any]:
    return load(files[path].decode(), path).data["spec"]


CHECKS = [
    IPPOOL_CRD,
    INSTALLER,
    check("daemonset", name="a", namespace="b", min_nodes=0, min_ready=2),
    check("deployment", name="a", namespace="b"),
    check("statefulset", name="a", namespace="b", min_ready=1),
    check("job", name="a", namespace="b"),
    POLICY_READY,
    replace(POLICY_READY, op="notEquals", namespace="x"),
    replace(POLICY_READY, op="present", value=None),
    check("condition", group="g", version="v1", object_kind="K", resource="ks", name="n", type="Ready", value="False"),
    replace(STATES, op="equals"),
    GONE,
    check("nodes", selector="a=b,!c", min_nodes=3),
    check("webhook", name="a", namespace="b"),
]


@pytest.mark.parametrize("item", CHECKS, ids=lambda item: item.kind)
def test_a_check_survives_its_notation(item: Check) -> None:
    data = {"provider": "x", "timeout": "5m", **check_data(item)}
    assert check_of(item.id, data, Document("bundle.yaml", None)) == item


def test_the_notation_is_that_of_the_sources() -> None:
    assert check_data(IPPOOL_CRD) == {"crd": "ippools.nv-ipam.nvidia.com"}
    assert check_data(check("nodes", selector="a=b", min_nodes=3)) == {"nodes": {"selector": "a=b", "min": 3}}
    assert check_data(check("webhook", name="a", namespace="b")) == {"webhook": {"namespace": "b", "service": "a"}}
    assert check_data(replace(POLICY_READY, op="present"))["field"]["present"] is True


def test_the_inventory_is_what_the_plan_promises() -> None:
    plan = small_plan()
    files = emitted(plan)
    digest = hashlib.sha256(files["recipe.yaml"]).hexdigest()
    assert read_inventory(files) == inventory_of(plan, digest)


def test_a_release_is_pinned_by_chart_values_and_content() -> None:
    plan = small_plan()
    files = emitted(plan)
    by_id = {item["id"]: item for item in spec(files)["releases"]}
    assert list(by_id) == [r.id for r in plan.releases]
    assert by_id["kai-scheduler"] == {
        "id": "kai-scheduler",
        "component": "kai-scheduler",
        "piece": "main",
        "namespace": "kai-scheduler",
        "chart": {
            "repository": "oci://ghcr.io/kai-scheduler/kai-scheduler",
            "name": "kai-scheduler",
            "version": "v0.16.9",
        },
        "values": {
            "file": "components/kai-scheduler/values.yaml",
            "sha256": hashlib.sha256(files["components/kai-scheduler/values.yaml"]).hexdigest(),
        },
        "content": payload.content_hash(plan.release("kai-scheduler")),
    }
    assert by_id["old-thing"]["empty"] is True
    assert by_id["cert-manager"]["keep"] is True


def test_one_changed_value_is_one_changed_release() -> None:
    plan = small_plan()
    releases = tuple(replace(r, values={"a": "b"}) if r.id == "gpu-operator" else r for r in plan.releases)
    before, after = spec(emitted(plan)), spec(emitted(replace(plan, releases=releases)))
    changed = [a["id"] for a, b in zip(before["releases"], after["releases"], strict=True) if a != b]
    assert changed == ["gpu-operator"]
    assert {k: v for k, v in before.items() if k != "releases"} == {k: v for k, v in after.items() if k != "releases"}


def test_the_resolved_recipe_holds_no_source_line() -> None:
    profile = SelectedProfile("gpuStack", "operator", "gpu-operator", (("gpu-operator", "driver.enabled"),), AT)
    plan = small_plan(profile=profile, inputs={"zone": "a"}, validation={"performance": {"constraints": []}})
    files = emitted(plan)
    recipe = spec(files, "recipe.yaml")
    assert recipe["profile"]["ownedPaths"] == ["gpu-operator:driver.enabled"]
    assert recipe["inputs"] == {"zone": "a"}
    assert spec(files)["profile"] == {"gpuStack": "operator"}
    text = files["recipe.yaml"].decode() + files["bundle.yaml"].decode()
    assert "<test>" not in text
    assert "null" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "apiVersion: bundlec.dev/v1alpha1\nkind: Recipe\n",
        "apiVersion: bundlec.dev/v1alpha1\nkind: Bundle\nmetadata:\n  name: x\n",
        "apiVersion: bundlec.dev/v1alpha1\nkind: Bundle\nspec: [1]\nmetadata:\n  name: x\n",
    ],
)
def test_what_is_not_an_inventory_is_said(text: str) -> None:
    with pytest.raises(UserError) as caught:
        read_inventory({"bundle.yaml": text.encode()})
    assert {d.code for d in caught.value.diagnostics} <= {"BC6004", "BC1001"}


def test_no_inventory_is_no_bundle() -> None:
    with pytest.raises(UserError, match="BC6004"):
        read_inventory({})


@pytest.mark.parametrize(("old", "new"), [("hard: true", "hard: false"), ("    crd: ippools", "    croc: ippools")])
def test_an_inventory_that_contradicts_itself_is_refused(old: str, new: str) -> None:
    files = emitted(small_plan())
    text = files["bundle.yaml"].decode()
    assert old in text
    with pytest.raises(UserError, match="BC6004"):
        read_inventory({"bundle.yaml": text.replace(old, new, 1).encode()})


def test_checksums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    files = {"b.txt": b"b", "a/é.txt": b"a", "checksums.txt": b"old"}
    sums = bundle.checksums(files)
    assert [line.split("  ")[1] for line in sums.decode().splitlines()] == ["a/é.txt", "b.txt"]
    for path, content in {**files, "checksums.txt": sums}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    command = ["sha256sum", "--check", "--strict", "checksums.txt"]
    assert subprocess.run(command, cwd=tmp_path, check=False, timeout=60, capture_output=True).returncode == 0
