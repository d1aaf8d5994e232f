"""What is risky: of objects, as a table; of a catalog, one change each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compiler.review.diff.risks_objects import risks_of_object
from tests.support.repositories import repository
from tests.support.scratch import API, Change, appended, replaced


def obj(kind: str, api: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **fields}


def role(*rules: Any) -> dict[str, Any]:
    return obj(
        "ClusterRole",
        "rbac.authorization.k8s.io/v1",
        rules=[{"apiGroups": [g], "resources": [r], "verbs": list(v)} for g, r, v in rules],
    )


def pods(**spec: Any) -> dict[str, Any]:
    return obj("DaemonSet", "apps/v1", spec={"selector": {}, "template": {"spec": spec}})


def crd(*versions: tuple[str, bool]) -> dict[str, Any]:
    items = [{"name": name, "served": served} for name, served in versions]
    return obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec={"group": "g", "versions": items})


SUBJECT = {"kind": "ServiceAccount", "namespace": "n", "name": "s"}
BINDING = obj("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"name": "admin"}, subjects=[])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (role(("", "pods", ["get"])), role(("", "pods", ["get", "list"])), [("rbac", "low")]),
        (role(("", "pods", ["get"])), role(("", "pods", ["get", "delete"])), [("rbac", "high")]),
        (role(("", "pods", ["get"])), role(("", "secrets", ["get"])), [("rbac", "high")]),
        (role(("", "*", ["*"])), role(("", "pods", ["delete"])), []),
        (role(("", "pods", ["get", "list"])), role(("", "pods", ["get"])), []),
        (None, role(("*", "*", ["*"])), [("rbac", "high")]),
        (BINDING, {**BINDING, "subjects": [SUBJECT]}, [("rbac", "medium")]),
        (BINDING, {**BINDING, "roleRef": {"name": "other"}}, [("immutable", "high")]),
        (pods(), pods(hostNetwork=True), [("privileged", "high")]),
        (pods(), pods(volumes=[{"hostPath": {"path": "/dev"}}]), [("privileged", "high")]),
        (pods(), pods(containers=[{"name": "a", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]),
         [("privileged", "high")]),
        (pods(), pods(containers=[{"name": "a", "securityContext": {"runAsUser": 0}}]), [("privileged", "high")]),
        (pods(), pods(containers=[{"name": "a", "securityContext": {"runAsUser": 1000}}]), []),
        (pods(hostPID=True), pods(), []),
        (pods(containers=[{"name": "a", "image": "x:1"}]), pods(containers=[{"name": "a", "image": "x:2"}]),
         [("image", "medium")]),
        (crd(("v1", True), ("v2", True)), crd(("v2", True)), [("crd-version", "high")]),
        (crd(("v1", True)), crd(("v1", False)), [("crd-version", "high")]),
        (crd(("v1", True)), None, [("crd-removed", "high")]),
        (obj("PersistentVolumeClaim"), None, [("state-removed", "high")]),
        (obj("ConfigMap", immutable=True, data={"a": "1"}), obj("ConfigMap", immutable=True, data={"a": "2"}),
         [("immutable", "high")]),
        (obj("ConfigMap", data={"a": "1"}), obj("ConfigMap", data={"a": "2"}), []),
        (obj("Job", "batch/v1", spec={"template": {"a": 1}}), obj("Job", "batch/v1", spec={"template": {"a": 2}}),
         [("immutable", "high")]),
        (obj("StorageClass", "storage.k8s.io/v1", provisioner="a"), obj("StorageClass", "storage.k8s.io/v1", provisioner="b"),
         [("immutable", "high")]),
    ],
)  # fmt: skip
def test_objects(old: Any, new: Any, expected: list[tuple[str, str]]):
    assert [found[:2] for found in risks_of_object(old, new)] == expected


def risks(
    tmp_path: Path, head: Mapping[str, Change], base: Mapping[str, Change] | None = None
) -> list[tuple[str, ...]]:
    found = repository(tmp_path, base)
    found.write(head)
    return [
        (risk["kind"], risk["severity"], risk.get("component", ""))
        for bundle in found.json()["bundles"]
        for risk in bundle["risks"]
    ]


@pytest.mark.parametrize(
    ("head", "base", "expected"),
    [
        ({"components/gamma/component.yaml": replaced("v4.5.6", "v4.6.0")}, {}, []),
        ({"components/gamma/component.yaml": replaced("v4.5.6", "v4.7.0")}, {}, [("skipped-minor", "medium", "gamma")]),
        ({"components/gamma/component.yaml": replaced("v4.5.6", "v5.0.0")}, {}, [("major-version", "high", "gamma")]),
        ({"components/gamma/component.yaml": replaced("v4.5.6", "v4.5.5")}, {}, [("downgrade", "high", "gamma")]),
        ({"components/gamma/component.yaml": replaced("name: gamma, version", "name: gamma2, version")}, {},
         [("chart-identity", "high", "gamma")]),
        ({"components/gamma/component.yaml": replaced("registry.example.org", "mirror.example.org")}, {},
         [("chart-source", "medium", "gamma")]),
        ({"components/gamma/component.yaml": replaced("gamma-system", "elsewhere")}, {},
         [("second-copy", "high", "gamma"), ("namespace-removed", "medium", "")]),
        ({"bundlec.yaml": replaced("recipe: leaf", "recipe: leaf\n      prefix: other")}, {},
         [("second-copy", "high", "")]),
        ({"bundlec.yaml": replaced("recipe: leaf", "recipe: leaf\n      profile: {mode: fancy}")}, {},
         [("constraint", "medium", ""), ("profile", "high", "")]),
        ({"bundlec.yaml": replaced("recipe: leaf", "recipe: leaf\n      deployers: [argocd]")}, {},
         [("deployer", "high", "")]),
        ({"components/gamma/values.yaml": "image: {tag: b}\n"}, {"components/gamma/values.yaml": "image: {tag: a}\n"},
         [("image", "medium", "gamma")]),
        ({"components/gamma/values.yaml": "kernelDriver: {version: b}\n"},
         {"components/gamma/values.yaml": "kernelDriver: {version: a}\n"}, [("driver", "high", "gamma")]),
        ({"components/gamma/values.yaml": "agent: {hostNetwork: true}\n"},
         {"components/gamma/values.yaml": "agent: {hostNetwork: false}\n"}, [("privileged", "high", "gamma")]),
        ({"components/gamma/values.yaml": "agent: {hostNetwork: 1}\n"},
         {"components/gamma/values.yaml": "agent: {hostNetwork: 0}\n"}, [("privileged", "high", "gamma")]),
        ({"components/gamma/values.yaml": "agent: {privileged: 'false'}\n"}, {"components/gamma/values.yaml": "a: b\n"},
         [("privileged", "high", "gamma")]),  # a text that is not empty is true to `if`
        ({"components/gamma/values.yaml": "agent: {hostNetwork: 1}\n"},
         {"components/gamma/values.yaml": "agent: {hostNetwork: true}\n"}, []),
        ({"components/gamma/component.yaml": appended("  install: {wait: none}\n")}, {}, [("wait", "medium", "gamma")]),
        ({"components/beta/component.yaml": appended("  needs: [{component: gamma}]\n"),
          "overlays/leaf.yaml": replaced("      dependencyRefs: [beta]\n", "")}, {},
         [("edge-added", "low", "beta"), ("edge-removed", "medium", "gamma")]),
        ({"components/alpha/component.yaml": replaced("timeout: 5m}", "timeout: 5m, onTimeout: warn}")},
         {"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [{name: alpha, until: api}]")},
         [("gate-changed", "high", "gamma")]),
        ({"components/alpha/component.yaml": replaced("crd: {crd: widgets", "crd: {crd: gadgets")},
         {"components/beta/manifests/widget.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"},
         [("gate-retargeted", "medium", "alpha")]),
        ({"components/alpha/component.yaml": replaced("crd: {crd: widgets", "crd: {crd: gadgets")},
         {"components/beta/manifests/widget.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
          "overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [{name: alpha, until: api}]")},
         [("gate-retargeted", "medium", "gamma"), ("rbac", "low", "")]),
        ({"components/alpha/component.yaml": replaced("    crd: {crd: widgets.example.org}\n",
          "    crd: {crd: widgets.example.org}\n    more: {crd: gadgets.example.org}\n")},
         {}, [("gate-changed", "low", "alpha")]),
        ({"overlays/leaf.yaml": replaced("{name: alpha, until: api}", "alpha")},
         {"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [{name: alpha, until: api}]")},
         [("edge-changed", "high", "gamma"), ("gate-removed", "high", "gamma")]),
    ],
)  # fmt: skip
def test_catalogs(tmp_path: Path, head: Any, base: Any, expected: Any):
    assert sorted(risks(tmp_path, head, base)) == sorted(expected)


def test_a_looser_pod_security_level(tmp_path: Path):
    labels = "{name: gamma-system, labels: {pod-security.kubernetes.io/enforce: %s}}"
    path = "components/gamma/component.yaml"
    base = {path: replaced("{name: gamma-system}", labels % "baseline")}
    assert risks(tmp_path / "a", {path: replaced("baseline", "privileged")}, base) == [("privileged", "high", "")]
    # The other way pods may be refused that ran until now.
    assert risks(tmp_path / "b", {path: replaced("baseline", "restricted")}, base) == [("privileged", "medium", "")]


def test_a_crd_that_nothing_brings_any_more(tmp_path: Path):
    path = "components/alpha/component.yaml"
    more = "    - {name: gears.example.org, kind: Gear, scope: Namespaced, from: crds, versions: [v1, v2]}\n  checks:\n"
    base = {path: replaced("  checks:\n", more)}

    def bumped(old: str, new: str) -> dict[str, Change]:
        # What a chart brings changes with its version.
        return {path: lambda text: replaced(old, new)(text).replace("1.2.3", "1.3.0")}

    assert risks(tmp_path / "a", bumped(more, "  checks:\n"), base) == [("crd-removed", "high", "alpha")]
    assert risks(tmp_path / "b", bumped("[v1, v2]", "[v2]"), base) == [("crd-version", "high", "alpha")]


@pytest.mark.parametrize(
    ("value", "gone"), [("1", False), ('"yes"', False), ("0", True), ('""', True), ("false", True)]
)
def test_crds_behind_a_switch_are_there_when_helm_takes_it_for_on(tmp_path: Path, value: str, gone: bool):
    path = "components/gamma/component.yaml"
    crd = (
        "  crds: [{name: cogs.example.org, kind: Cog, scope: Namespaced, from: templates, "
        "when: {value: .createCRDs, equals: true}}]\n"
    )
    base: dict[str, Change] = {path: appended(crd), "components/gamma/values.yaml": "createCRDs: true\n"}
    head: dict[str, Change] = {"components/gamma/values.yaml": f"createCRDs: {value}\n"}
    assert (("crd-removed", "high", "gamma") in risks(tmp_path, head, base)) is gone


def test_what_to_do_before_a_skipped_version_is_told_once_with_the_risk(tmp_path: Path):
    path = "components/gamma/component.yaml"
    found = repository(tmp_path, {path: appended("  upgrade: {before: [one minor version at a time]}\n")})
    found.write({path: lambda text: text.replace("v4.5.6", "v4.8.0")})
    (bundle,) = found.json()["bundles"]
    (risk,) = bundle["risks"]
    assert risk["text"].startswith("chart v4.5.6 -> v4.8.0 skips 2 minor versions")
    assert [advice["text"] for advice in risk["advice"]] == ["one minor version at a time"]
    assert found.diff().out.count("one minor version at a time") == 1
    found.write({path: lambda text: text.replace("v4.8.0", "v4.6.0")})
    assert found.json()["bundles"][0]["risks"] == []
    assert "before the upgrade: one minor version at a time" in found.diff().out


def test_another_image_of_the_gates_is_one_risk_however_many_gates_there_are(tmp_path: Path):
    base: dict[str, Change] = {
        "bundlec.yaml": appended("  gates: {job: {image: 'registry.example.org/kubectl:1.30'}}\n"),
        "components/beta/manifests/widget.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
        "overlays/leaf.yaml": lambda text: text.replace(
            "dependencyRefs: [alpha]", "dependencyRefs: [{name: alpha, until: api}]"
        ).replace("dependencyRefs: [beta]", "dependencyRefs: [{name: alpha, until: api}]"),
    }
    found = repository(tmp_path, base)
    found.write({"bundlec.yaml": lambda text: text.replace("kubectl:1.30", "kubectl:1.31")})
    (risk,) = found.json()["bundles"][0]["risks"]
    assert (risk["kind"], risk["severity"]) == ("gate-image", "medium")
    assert "kubectl:1.30" in risk["text"]
    assert "kubectl:1.31" in risk["text"]
    assert (risk["at"]["file"], risk["at"]["line"]) == ("bundlec.yaml", 8)


def test_a_disruptive_component_without_a_selector(tmp_path: Path):
    path = "components/gamma/component.yaml"
    base = {
        path: appended(
            "  scheduling: {accelerated: {nodeSelector: [selector]}}\n  disruptive: {text: Nodes are drained.}\n"
        ),
        "components/gamma/values.yaml": "selector: {pool: gpu}\n",
    }
    head: dict[str, Change] = {"components/gamma/values.yaml": "selector: {}\n"}
    assert risks(tmp_path / "a", head, base) == [("disruptive", "high", "gamma")]
    still: dict[str, Change] = {"components/gamma/values.yaml": "selector: {pool: gpus}\n"}
    assert risks(tmp_path / "b", still, base) == []


def test_a_second_copy_says_what_to_do_on_the_deployers_of_the_bundle(tmp_path: Path):
    found = repository(tmp_path, {"bundlec.yaml": replaced("recipe: leaf", "recipe: leaf\n      deployers: [flux]")})
    found.write({"components/gamma/component.yaml": replaced("gamma-system", "elsewhere")})
    (risk,) = (r for r in found.json()["bundles"][0]["risks"] if r["kind"] == "second-copy")
    assert [advice["deployer"] for advice in risk["advice"]] == ["flux"]
    assert "uninstalls the old release" in risk["advice"][0]["text"]


@pytest.mark.parametrize(("keep", "stays"), [("true", True), ("false", False)])
def test_what_uninstalling_does_is_told(tmp_path: Path, keep: str, stays: bool):
    """Hooks at deletion, and CRDs in templates: kept ones stay and name the old release, others take their objects along."""
    path = "components/gamma/component.yaml"
    more = (
        "  crds: [{name: cogs.example.org, kind: Cog, scope: Namespaced, from: templates, keep: %s}]\n"
        "  hooks: [{event: pre-delete, name: sweep, effect: Deletes every Cog.}]\n"
    )
    base = {path: appended(more % keep)}
    found = repository(tmp_path, base)
    found.write({path: lambda text: text.replace("gamma-system", "elsewhere")})
    (risk,) = (r for r in found.json()["bundles"][0]["risks"] if r["kind"] == "second-copy")
    said = [advice["text"] for advice in risk["advice"] if "deployer" not in advice]
    assert "uninstalling gamma runs its pre-delete hook, which deletes every Cog" in said
    assert (
        any("kubectl annotate crd cogs.example.org meta.helm.sh/release-namespace=elsewhere" in t for t in said)
        is stays
    )


def test_a_renamed_component_is_one_component_and_a_second_copy(tmp_path: Path):
    found = repository(tmp_path)
    old = found.files["components/gamma/component.yaml"]
    found.write(
        {
            "components/gamma/component.yaml": None,
            "components/delta/component.yaml": old.replace("{name: gamma}", "{name: delta}"),
            "overlays/leaf.yaml": lambda text: text.replace("gamma", "delta"),
        }
    )
    (bundle,) = found.json()["bundles"]
    assert [(c["name"], c["oldName"], c["status"], c["values"]) for c in bundle["components"]] == [
        ("delta", "gamma", "renamed", [])
    ]
    assert [r["kind"] for r in bundle["risks"]] == ["second-copy"]
    assert bundle["order"] == []


def test_a_renamed_bundle_is_one_bundle(tmp_path: Path):
    found = repository(tmp_path)
    found.write({"bundlec.yaml": replaced("- name: demo\n", "- name: prod\n      prefix: demo\n")})
    (bundle,) = found.json()["bundles"]
    assert (bundle["name"], bundle["oldName"], bundle["status"]) == ("prod", "demo", "renamed")
    assert [r["kind"] for r in bundle["risks"]] == ["bundle-renamed"]
    assert bundle["components"][0]["folded"] == {
        "metadata.labels.app.kubernetes.io/part-of": 2,
        "metadata.labels.bundlec.dev/bundle": 2,
    }


def test_a_removed_bundle_is_a_risk_of_its_own(tmp_path: Path):
    second = "    - {name: second, recipe: other}\n"
    other = API + ("kind: Overlay\nmetadata: {name: other}\nspec:\n  base: base\n  criteria: {service: other-cloud}\n")
    found = repository(tmp_path, {"bundlec.yaml": appended(second), "overlays/other.yaml": other})
    found.write({"bundlec.yaml": replaced(second, "")})
    bundles = {b["name"]: b for b in found.json()["bundles"]}
    assert bundles["second"]["status"] == "removed"
    assert [r["kind"] for r in bundles["second"]["risks"]] == ["bundle-removed"]
    assert bundles["demo"]["status"] == "same"
