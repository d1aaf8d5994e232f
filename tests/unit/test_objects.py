"""What a cluster takes of the objects that we render."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from compiler.errors import Diagnostic, UserError
from compiler.load import load
from compiler.model import Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve
from compiler.yamlio import dump
from tests.conftest import ROOT
from tests.support.workspaces import catalog

MIB = 1024 * 1024
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}, {name: v1alpha1, served: false, storage: false}]
"""
LISTED = "crds: [{name: things.example.org, kind: Thing, scope: Namespaced, versions: [v1], from: manifests}]"


def told(root: Path, manifest: str, spec: str = "") -> list[Diagnostic]:
    files = {
        "bundlec.yaml": "bundles: [{name: b, recipe: eks}]",
        "overlays/base.yaml": "",
        "overlays/eks.yaml": "{base: base, criteria: {service: eks}, componentRefs: [{name: ours}]}",
        "components/ours/component.yaml": f"namespace: {{name: ours}}\nmanifests: {{main: [m.yaml]}}\n{spec}\n",
        "components/ours/m.yaml": manifest,
    }
    found = catalog(root, files)
    try:
        plan(resolve(found, entry_for(found, "b"), Flags()))
    except UserError as error:
        return list(error.diagnostics)
    return []


def made(kind: str, **fields: dict[str, str]) -> str:
    return dump({"apiVersion": "v1", "kind": kind, "metadata": {"name": "c"}, **fields})


def encoded(size: int) -> str:
    return b64encode(bytes(size)).decode()


@pytest.mark.parametrize(
    "manifest",
    [
        made("ConfigMap", data={"a": "x" * MIB}),
        made("ConfigMap", data={"a": "x" * (MIB // 2)}, binaryData={"b": encoded(MIB // 2)}),
        made("Secret", data={"a": encoded(MIB)}),
    ],
)
def test_a_mebibyte_of_values_is_taken(tmp_path: Path, manifest: str) -> None:
    """Keys do not count, and base64 counts decoded."""
    assert told(tmp_path, manifest) == []


@pytest.mark.parametrize(
    "manifest",
    [
        made("ConfigMap", data={"a": "x" * MIB, "b": "y"}),
        made("ConfigMap", data={"a": "é" * (MIB // 2), "b": "y"}),
        made("ConfigMap", data={"a": "x"}, binaryData={"b": encoded(MIB)}),
        made("Secret", stringData={"a": "x" * (MIB + 1)}),
        made("Secret", data={"a": encoded(MIB + 1)}),
    ],
)
def test_one_byte_more_is_refused(tmp_path: Path, manifest: str) -> None:
    (one,) = told(tmp_path, manifest)
    assert one.code == "BC3008"
    assert f"`c` holds {MIB + 1} bytes, and the API server takes {MIB}" in one.message
    assert one.fix is not None
    assert "split it" in one.fix


def test_any_object_that_etcd_takes_in_no_request(tmp_path: Path) -> None:
    wide = CRD.replace("metadata: {name", "metadata: {annotations: {a: LONG}, name")
    assert told(tmp_path / "fits", wide.replace("LONG", "x" * MIB), LISTED) == []
    (one,) = told(tmp_path / "not", wide.replace("LONG", "x" * (MIB * 3 // 2)), LISTED)
    assert one.code == "BC3008"
    assert "bytes as JSON, and etcd takes 1572864 in one request" in one.message


def test_a_crd_that_its_component_does_not_list(tmp_path: Path) -> None:
    (one,) = told(tmp_path / "not", CRD)
    assert one.code == "BC3008"
    assert "CRD `things.example.org` is in no entry of `crds` of `ours`" in one.message
    assert one.span is not None
    assert (Path(one.span.file).name, one.span.line) == ("m.yaml", 1)
    line = "- {name: things.example.org, kind: Thing, scope: Namespaced, versions: [v1], from: manifests}"
    assert one.fix == f"add to `crds` in component.yaml: {line}"
    assert told(tmp_path / "listed", CRD, f"crds:\n  {line}") == []


def test_every_crd_in_the_manifests_of_the_catalog_is_listed() -> None:
    met = 0
    for component in load(ROOT).components.values():
        listed = {crd.name for crd in component.crds}
        for source in component.manifest_sources.values():
            for document in source.documents or ():
                if isinstance(document.data, dict) and document.data.get("kind") == "CustomResourceDefinition":
                    assert document.data["metadata"]["name"] in listed, f"{component.name}: {source.file}"
                    met += 1
    assert met > 5
