"""Values, local charts, namespaces: their form, their hash, and what Helm makes of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import payload
from compiler.errors import InternalError, UserError
from compiler.model import Chart, Plan, Release
from compiler.tools import run
from compiler.yamlio import dump_all, load_all
from tests.support.plans import kube, release, small_plan


def config_map(name: str = "c", namespace: str = "x", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def local(*objects: dict[str, Any], piece: str = "main") -> Release:
    return release("x", "x", piece, "x", objects=tuple(kube("x", piece, o) for o in objects))


def emit(*releases: Release, **recipe: Any) -> dict[str, bytes]:
    return dict(payload.emit(replace(small_plan(**recipe), releases=releases, namespaces=(), examples=())))


def parsed(content: bytes) -> Any:
    (document,) = load_all(content.decode(), "emitted")
    return document.data


# --- layout ----------------------------------------------------------------------------------------------------------


def test_layout_of_the_small_plan():
    files = payload.emit(small_plan())
    assert sorted(
        p for p in files if p.startswith(("components/old-thing", "components/gpu-operator", "namespaces"))
    ) == [
        "components/gpu-operator-pre/Chart.yaml",
        "components/gpu-operator-pre/manifests/configmap-params.yaml",
        "components/gpu-operator-pre/templates/all.yaml",
        "components/gpu-operator/values.yaml",
        "components/old-thing/Chart.yaml",
        "components/old-thing/templates/all.yaml",
        "namespaces/cert-manager.yaml",
        "namespaces/gpu-operator.yaml",
        "namespaces/kai-scheduler.yaml",
        "namespaces/nvidia-network-operator.yaml",
    ]
    assert files["examples/pod.yaml"].startswith(b"apiVersion: v1\n")


def test_remote_chart_without_values_still_has_the_file():
    files = emit(release("x", "x", "main", "x", chart=Chart("https://c.example", "x", "1.0.0")))
    assert files == {"components/x/values.yaml": b"{}\n"}


def test_null_that_deletes_a_chart_default_is_written():
    files = emit(release("x", "x", "main", "x", chart=Chart("https://c.example", "x", "1"), values={"a": {"b": None}}))
    assert files["components/x/values.yaml"] == b"a:\n  b: null\n"


def test_waves_of_pieces():
    for piece, wave in (("pre", "-1"), ("main", None), ("post", "2")):
        files = emit(local(config_map(), piece=piece))
        annotations = parsed(files["components/x/manifests/configmap-c.yaml"])["metadata"].get("annotations", {})
        assert annotations.get("argocd.argoproj.io/sync-wave") == wave


def test_a_wave_does_not_leak_into_the_plan():
    item = local(config_map(), piece="pre")
    before = json.dumps(item.objects[0].data)
    emit(item)
    assert json.dumps(item.objects[0].data) == before


def test_namespace_file():
    data = parsed(payload.emit(small_plan())["namespaces/gpu-operator.yaml"])
    assert data["metadata"] == {
        "name": "gpu-operator",
        "labels": {
            "app.kubernetes.io/part-of": "demo",
            "bundlec.dev/bundle": "demo",
            "pod-security.kubernetes.io/enforce": "privileged",
        },
        "annotations": {
            "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
            "helm.sh/resource-policy": "keep",
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
        },
    }


# --- file names ------------------------------------------------------------------------------------------------------


def manifests(*objects: dict[str, Any]) -> dict[str, Any]:
    folder = "components/x/manifests/"
    return {p.removeprefix(folder): parsed(c) for p, c in emit(local(*objects)).items() if p.startswith(folder)}


def test_objects_that_would_share_a_file_name():
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    other = {"apiVersion": "x.example/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "a"}}
    found = manifests(
        config_map("c", "a"),
        config_map("c", "b"),
        {**role, "metadata": {"name": "System:Foo", "namespace": "a"}},
        {**role, "metadata": {"name": "system:foo", "namespace": "a"}},
        {**role, "metadata": {"name": "r", "namespace": "a"}},
        other,
    )
    assert len(found) == 6
    assert {"configmap-a-c.yaml", "configmap-b-c.yaml", "role.x.example-a-r.yaml"} <= set(found)
    assert all(name == name.lower() and ":" not in name for name in found)
    assert found["role.x.example-a-r.yaml"]["apiVersion"] == "x.example/v1"


def test_file_names_do_not_depend_on_the_order_of_objects():
    objects = [config_map("c", n) for n in "abc"] + [config_map("d")]
    assert manifests(*objects) == manifests(*reversed(objects))


def test_a_second_object_leaves_the_names_of_others_alone():
    assert "configmap-d.yaml" in manifests(config_map("d"), config_map("c"), config_map("c", "y"))


def test_very_long_names_fit_a_file_system():
    (name,) = manifests(config_map("c" * 253))
    assert len(name) < 255


def test_two_objects_of_one_identity_are_a_bug_of_an_earlier_stage():
    with pytest.raises(InternalError):
        emit(local(config_map(), config_map()))


def test_a_crd_and_its_object_cannot_share_a_release():
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"},
        "spec": {"group": "x.example", "names": {"kind": "Thing"}},
    }
    thing = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert manifests(crd)
    with pytest.raises(UserError) as caught:
        emit(local(crd, thing))
    assert [d.code for d in caught.value.diagnostics] == ["BC4004"]


# --- hash ------------------------------------------------------------------------------------------------------------

REMOTE = release(
    "x", "x", "main", "x", chart=Chart("https://c.example", "x", "1.0.0"), values={"a": {"b": 1, "c": [1]}}
)


@pytest.mark.parametrize(
    "changed",
    [
        replace(REMOTE, chart=Chart("https://c.example", "x", "1.0.1")),
        replace(REMOTE, chart=Chart("https://d.example", "x", "1.0.0")),
        replace(REMOTE, chart=Chart("https://c.example", "y", "1.0.0")),
        replace(REMOTE, values={"a": {"b": True, "c": [1]}}),  # case 13: 1 is not true
        replace(REMOTE, values={"a": {"b": "1", "c": [1]}}),
        replace(REMOTE, values={"a": {"b": 1, "c": [1], "d": None}}),
        replace(REMOTE, crds_before=("things.x.example",)),
    ],
)
def test_hash_of_a_remote_chart_changes_with_its_content(changed: Release):
    assert payload.content_hash(changed) != payload.content_hash(REMOTE)


@pytest.mark.parametrize(
    "same",
    [
        replace(REMOTE, values={"a": {"c": [1], "b": 1}}),
        replace(REMOTE, needs=("y",), keep=True, namespace="z", piece="post"),
    ],
)
def test_hash_of_a_remote_chart_does_not_change_otherwise(same: Release):
    assert payload.content_hash(same) == payload.content_hash(REMOTE)


def test_hash_of_a_local_chart():
    one, two = config_map("c", a="1"), config_map("d", a="1")
    base = payload.content_hash(local(one, two))
    assert base == payload.content_hash(local(two, one))
    assert base != payload.content_hash(local(one))
    assert base != payload.content_hash(local(one, config_map("d", a="2")))
    assert len(base) == 8
    assert int(base, 16) >= 0


def test_chart_version_carries_the_hash():
    item = local(config_map())
    chart = parsed(emit(item)["components/x/Chart.yaml"])
    assert chart == {"apiVersion": "v2", "name": "x", "version": f"0.1.0-h{payload.content_hash(item)}"}


# --- Helm ------------------------------------------------------------------------------------------------------------

HOSTILE = {
    "labels": 'summary: "GPU {{ $labels.gpu }} of {{ $value }}"',
    "comment": "# {{- end }} {{ if }}\n{{/* not closed",
    "separator": "a\n---\nb\n--- # two\n...\n",
    "first": "---\nx: y\n",
    "shell": '#!/bin/sh\necho "${HOME}" $(id) `id` %s\n',
    "tag": "72225e2",
    "y": "y",
    "octal": "0755",
    "date": "2024-01-01",
    "blank": "  leading\n",
    "tab": "a\tb\r\nc",
    "empty": "",
    "unicode": "naïve \U0001f680\u2028line",
}


def render(helm: Path, folder: Path, name: str) -> list[Any]:
    text = run([helm, "template", name, folder / f"components/{name}", "--namespace", "x"]).text
    return [d.data for d in load_all(text, "helm", strict=False)]


@pytest.mark.tools
def test_helm_renders_a_local_chart_to_its_objects(helm: Path, tmp_path: Path):
    """case 20: braces in manifests reach the cluster unchanged, object by object."""
    objects = [
        config_map("hostile", **HOSTILE),
        config_map("other", "y"),
        {
            "apiVersion": "x.example/v1",
            "kind": "Thing",
            "metadata": {"name": "t"},
            "spec": {"big": 2**53, "f": 1.5, "l": [[], {}, None]},
        },
    ]
    item = local(*objects, piece="post")
    for path, content in emit(item).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    rendered = render(helm, tmp_path, "x")
    wanted = [
        {**o.data, "metadata": {**o.data["metadata"], "annotations": {"argocd.argoproj.io/sync-wave": "2"}}}
        for o in item.objects
    ]
    key = lambda o: (o["kind"], o["metadata"]["name"])  # noqa: E731
    assert sorted(rendered, key=key) == sorted(wanted, key=key)


@pytest.mark.tools
def test_helm_accepts_every_local_chart(helm: Path, tmp_path: Path):
    plan = small_plan()
    write(plan, tmp_path)
    for item in plan.releases:
        if item.local:
            run([helm, "lint", "--strict", tmp_path / payload.directory(item)])
            assert len(render(helm, tmp_path, item.id)) == len(item.objects)


@pytest.mark.tools
def test_helm_sees_an_extra_manifest_only_when_it_is_there(helm: Path, tmp_path: Path):
    """The comparison above would notice a manifest that is lost or doubled."""
    write(small_plan(), tmp_path)
    folder = tmp_path / "components/gpu-operator-pre/manifests"
    shutil.copy(folder / "configmap-params.yaml", folder / "second.yaml")
    assert len(render(helm, tmp_path, "gpu-operator-pre")) == 2


def write(plan: Plan, folder: Path) -> None:
    for path, content in payload.emit(plan).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def test_emitted_yaml_means_what_the_data_says():
    item = local(config_map("hostile", **HOSTILE))
    (data,) = [parsed(c) for p, c in emit(item).items() if "/manifests/" in p]
    assert data == item.objects[0].data
    assert dump_all([data])
