"""Order and gates of a catalog, read back from what is emitted for each of the four deployers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.emit import emitter
from compiler.model import DEPLOYERS, Wiring
from tests.cases.support import ALPHA, BETA, GAMMA, LEAF, WORKSPACE, built, documents, refused
from tests.support.scratch import API, Change, appended, bundlec, replaced, tree, write_catalog

WIDGET = "components/beta/manifests/widget.yaml"
POLICY = {"group": "example.org", "kind": "Policy"}


def wirings(bundle: Path) -> dict[str, Wiring]:
    """Deployer -> the order that its files hold."""
    files = tree(bundle)
    return {deployer: emitter(deployer).read_back(files) for deployer in DEPLOYERS}


def before(wiring: Wiring, release: str) -> set[str]:
    """All that stands before a release, by any kind of edge."""
    pairs = wiring.hard | wiring.soft
    found: set[str] = set()
    while more := {a for a, b in pairs if b in found | {release}} - found:
        found |= more
    return found


def edges(bundle: Path) -> list[tuple[str, str, str]]:
    """(provider, dependant, until) of bundle.yaml."""
    (inventory,) = documents(bundle / "bundle.yaml")
    return [(e["provider"], e["dependant"], e["until"]) for e in inventory["spec"].get("edges", [])]


# ---------------------------------------------------------------------------------------------------------------------
# case 30, 31: a custom resource before its definition


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unchanged catalog: `beta` holds a Widget, `alpha` brings its CRD, and nobody has to declare that."""
    return built(tmp_path_factory.mktemp("plain"), {LEAF: replaced("      dependencyRefs: [alpha]\n", "")})


def test_case_30_a_custom_resource_waits_for_its_crd(plain: Path):
    assert ("alpha", "beta", "api") in edges(plain)
    for deployer, wiring in wirings(plain).items():
        assert "alpha" in before(wiring, "beta"), deployer
        assert any("widgets.example.org" in token for token in wiring.guards["beta"]), deployer


def test_case_30_on_helmfile_nothing_is_validated_against_the_cluster_first(plain: Path):
    (helmfile,) = documents(plain / "helmfile.yaml")
    assert {r["name"]: r["disableValidationOnInstall"] for r in helmfile["releases"]} == {
        "alpha": True,
        "beta": True,
        "gamma": True,
    }


def test_case_30_on_flux_the_resource_is_not_beside_the_chart(plain: Path):
    (alpha,), (beta,) = (documents(plain / f"flux/graph/{name}.yaml") for name in ("alpha", "beta"))
    assert alpha["spec"]["path"] != beta["spec"]["path"]
    assert {"name": "demo-gate-beta", "namespace": "flux-system"} in beta["spec"]["dependsOn"]


def test_case_30_on_argo_cd_a_later_wave_and_no_dry_run_of_unknown_kinds(plain: Path):
    wave = "argocd.argoproj.io/sync-wave"
    (alpha,), (beta,) = (documents(plain / f"argocd/apps/{name}.yaml") for name in ("alpha", "beta"))
    assert int(alpha["metadata"]["annotations"][wave]) < int(beta["metadata"]["annotations"][wave])
    assert "SkipDryRunOnMissingResource=true" in beta["spec"]["syncPolicy"]["syncOptions"]


def test_case_31_there_is_one_helmfile_so_needs_never_cross_files(plain: Path):
    assert [path.name for path in plain.rglob("helmfile*")] == ["helmfile.yaml"]
    (helmfile,) = documents(plain / "helmfile.yaml")
    assert "helmfiles" not in helmfile
    known = {f"{r['namespace']}/{r['name']}" for r in helmfile["releases"]}
    needs = {need for r in helmfile["releases"] for need in r.get("needs", [])}
    assert needs == {"alpha-system/alpha", "beta-system/beta"}
    assert needs <= known


# ---------------------------------------------------------------------------------------------------------------------
# case 32: a component that is switched off


@pytest.mark.parametrize(
    "changes",
    [
        {LEAF: replaced("    - name: beta\n", "    - name: beta\n      enabled: false\n")},
        {LEAF: replaced("    - name: beta\n", "    - name: beta\n      overrides: {enabled: false}\n")},
        {WORKSPACE: appended("      disable: [{component: beta, reason: another team runs it}]\n")},
        {WORKSPACE: appended('      set: {beta: {enabled: "false"}}\n')},
    ],
    ids=["enabled", "an alias in overrides", "disable of the bundle", "set of the bundle"],
)
def test_case_32_nothing_points_at_what_is_switched_off(tmp_path: Path, changes: Mapping[str, Change]):
    bundle = built(tmp_path, changes)
    word = re.compile(r"(?<![\w])beta(?![\w])")
    mentions = [name for name, data in tree(bundle).items() if word.search(data.decode())]
    # The recipe and the inventory say that it is off, and the README tells people.
    assert set(mentions) <= {"recipe.yaml", "bundle.yaml", "README.md"}
    assert [name for name in tree(bundle) if word.search(name)] == []
    (inventory,) = documents(bundle / "bundle.yaml")
    assert inventory["spec"]["satisfied"] == ["gamma needs beta, which is disabled here: the edge counts as satisfied"]
    for deployer, wiring in wirings(bundle).items():
        assert set(wiring.releases) == {"alpha", "gamma"}, deployer


def test_case_32_a_dependency_of_what_is_switched_off_is_not_brought_in(tmp_path: Path):
    """`beta` needs `delta`, which this recipe does not have: no matter while `beta` is off."""
    other = f"{API}kind: Component\nmetadata: {{name: delta}}\nspec: {{namespace: {{name: delta}}}}\n"
    changes: dict[str, Change] = {
        "components/delta/component.yaml": other,
        BETA: appended("  needs: [{component: delta, reason: it asks it}]\n"),
    }
    assert [line.partition(" | ")[0] for line in refused(tmp_path / "on", changes)] == [
        "components/beta/component.yaml:8:11: [BC3001] `beta` needs `delta`, which this recipe does not declare"
    ]
    off = {**changes, LEAF: replaced("    - name: beta\n", "    - name: beta\n      enabled: false\n")}
    assert not (built(tmp_path / "off", off) / "components/delta").exists()


# ---------------------------------------------------------------------------------------------------------------------
# case 33, 34, 36: missing, circular and conditional dependencies


def test_case_33_a_missing_dependency_is_no_cycle(tmp_path: Path):
    """Two are missing: both are told, each where it is written."""
    found = refused(
        tmp_path,
        {
            LEAF: replaced("    - name: beta\n      dependencyRefs: [alpha]\n", ""),
            GAMMA: appended("  needs: [{component: delta, reason: r}]\n"),
            "components/delta/component.yaml": f"{API}kind: Component\nmetadata: {{name: delta}}\nspec: {{namespace: {{name: d}}}}\n",
        },
    )
    assert found == [
        "components/gamma/component.yaml:7:11: [BC3001] `gamma` needs `delta`, which this recipe does not declare | add `delta` to `componentRefs`, or remove the dependency",
        "overlays/leaf.yaml:13:24: [BC3001] `gamma` needs `beta`, which this recipe does not declare | add `beta` to `componentRefs`, or remove the dependency",
    ]


def test_case_34_a_cycle_that_only_a_manifest_makes(tmp_path: Path):
    """`alpha`'s post manifest is of a kind that `gamma` brings, and `gamma` needs `alpha`: nobody declared that edge."""
    gadget = "apiVersion: example.net/v1\nkind: Gadget\nmetadata: {name: g}\n"
    changes: dict[str, Change] = {
        ALPHA: appended("  manifests: {post: [manifests/gadget.yaml]}\n"),
        "components/alpha/manifests/gadget.yaml": gadget,
        GAMMA: appended("  crds: [{name: gadgets.example.net, kind: Gadget, scope: Namespaced, from: crds}]\n"),
        LEAF: replaced("dependencyRefs: [beta]", "dependencyRefs: [alpha]"),
    }
    root = write_catalog(tmp_path, changes)
    first = bundlec("build", "--all", cwd=root)
    assert first.status == 1
    assert "[BC3002] components wait for each other: alpha -> gamma -> alpha" in first.err
    assert "note: alpha waits for gamma: Gadget g uses example.net/Gadget" in first.err
    assert "(components/alpha/manifests/gadget.yaml:1:1)" in first.err
    assert "(overlays/leaf.yaml:15:24)" in first.err
    assert bundlec("build", "--all", cwd=root).err == first.err


def test_case_34_the_shortest_of_two_cycles(tmp_path: Path):
    found = refused(
        tmp_path,
        {
            LEAF: lambda text: replaced("    - name: alpha\n", "    - name: alpha\n      dependencyRefs: [gamma]\n")(
                replaced("dependencyRefs: [beta]", "dependencyRefs: [alpha, beta]")(text)
            )
        },
    )
    assert [line.partition(" | ")[0] for line in found] == [
        "overlays/leaf.yaml:10:24: [BC3002] components wait for each other: alpha -> gamma -> alpha"
    ]


CONDITIONAL = (
    "  needs: [{component: gamma, when: {value: .rdma.enabled, equals: true}, reason: it loads its modules}]\n"
)


@pytest.mark.parametrize(
    ("value", "waits"), [("true", True), ("false", False), ("1", False), ('"true"', False), (None, False)]
)
def test_case_36_siblings_that_a_value_makes_wait(tmp_path: Path, value: str | None, waits: bool):
    """`alpha` waits for `gamma` exactly when its value says so; true alone is true."""
    changes: dict[str, Change] = {
        LEAF: lambda text: replaced("dependencyRefs: [beta]", "dependencyRefs: []")(
            text if value is None else replaced('image: {tag: "1.0"}', f"rdma: {{enabled: {value}}}")(text)
        ),
        ALPHA: appended(CONDITIONAL),
    }
    bundle = built(tmp_path, changes)
    assert ("gamma" in {provider for provider, dependant, _ in edges(bundle) if dependant == "alpha"}) is waits
    for deployer, wiring in wirings(bundle).items():
        assert ("gamma" in before(wiring, "alpha")) is waits, deployer


def test_case_36_a_cycle_that_a_value_makes(tmp_path: Path):
    found = refused(
        tmp_path,
        {LEAF: replaced('{tag: "1.0"}', '{tag: "1.0"}\n        rdma: {enabled: true}'), ALPHA: appended(CONDITIONAL)},
    )
    assert [line.partition(" | ")[0] for line in found] == [
        "components/alpha/component.yaml:14:11: [BC3002] components wait for each other: alpha -> gamma -> beta -> alpha"
    ]


def test_case_36_rdma_modules_come_before_the_gpu_operator(root: Path):
    """In the project's own recipes: where RDMA is on through kernel modules of ours, the driver's operator waits."""
    ran = bundlec("graph", "gb200-nvke-ubuntu-training", "--format", "dot", cwd=root)
    assert ran.status == 0, ran.err
    order = [line for line in ran.out.splitlines() if "->" in line and "rdma-modules" in line]
    assert any("gpu-operator" in line for line in order), order


# ---------------------------------------------------------------------------------------------------------------------
# case 38: a definition that an operator makes at run time

LATE = {
    ALPHA: lambda text: replaced("    - {name: widgets.example.org", "    - {name: policies.example.org, kind: Policy, scope: Cluster, from: crds}\n    - {name: widgets.example.org")(text).replace(
        "scope: Namespaced, from: crds}\n  checks:", "scope: Namespaced, from: image, after: {group: example.org, kind: Policy, path: spec.widgets}}\n  checks:"
    ).replace("    crd: {crd: widgets.example.org}\n", "    crd: {crd: policies.example.org}\n    made: {field: {group: example.org, version: v1, kind: Policy, resource: policies, name: all, path: status.state, equals: ready}}\n")
    + "    ready: {checks: [made], timeout: 9m}\n  manifests: {post: [manifests/policy.yaml]}\n",
    "components/alpha/manifests/policy.yaml": "apiVersion: example.org/v1\nkind: Policy\nmetadata: {name: all}\nspec: {widgets: {image: x}}\n",
}  # fmt: skip


def test_case_38_four_stages(tmp_path: Path):
    """Chart, policy, the CRD that the operator makes after it, the objects of that CRD."""
    bundle = built(tmp_path, LATE)
    (inventory,) = documents(bundle / "bundle.yaml")
    assert [r["id"] for r in inventory["spec"]["releases"]] == ["alpha", "alpha-post", "beta", "gamma"]
    kinds = {e["dependant"]: {r["kind"] for r in e["reasons"]} for e in inventory["spec"]["edges"]}
    assert "runtime-api" in kinds["beta"]
    for deployer, wiring in wirings(bundle).items():
        assert {"alpha", "alpha-post"} <= before(wiring, "beta"), deployer
        waits = " ".join(sorted(wiring.guards["beta"]))
        assert "widgets.example.org" in waits, deployer
        assert "policies" in waits or "Policy" in waits, deployer


def test_case_38_nobody_asks_for_the_definition(tmp_path: Path):
    text = "apiVersion: example.org/v1\nkind: Policy\nmetadata: {name: all}\nspec: {}\n"
    found = refused(tmp_path, {**LATE, "components/alpha/manifests/policy.yaml": text})
    assert len(found) == 1
    assert "[BC3014]" in found[0]
    assert "spec.widgets" in found[0]


WIDGET = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: two}\nspec: {size: 1}\n"


def test_case_38_one_step_for_all_is_refused(tmp_path: Path):
    """The policy and what only exists after it, in one release: Helm would refuse both, and the CRD would never come."""
    both = f"{LATE['components/alpha/manifests/policy.yaml']}---\n{WIDGET}"
    found = refused(tmp_path, {**LATE, "components/alpha/manifests/policy.yaml": both})
    assert [line.partition(" | ")[0] for line in found] == [
        (
            "components/alpha/manifests/policy.yaml:6:1: [BC3016] Widget two of `alpha` stands in the same release as the "
            "Policy after which CRD widgets.example.org appears: Helm refuses a release with an unknown kind"
        )
    ]


def test_case_30_an_object_before_the_chart_that_brings_its_kind_is_refused(tmp_path: Path):
    changes = {
        ALPHA: appended("  manifests: {pre: [manifests/two.yaml]}\n"),
        "components/alpha/manifests/two.yaml": WIDGET,
    }
    found = refused(tmp_path, changes)
    assert [line.partition(" | ")[0] for line in found] == [
        (
            "components/alpha/manifests/two.yaml:1:1: [BC3016] Widget two of `alpha` stands in a release before CRD "
            "widgets.example.org: Helm refuses a release with an unknown kind"
        )
    ]


# ---------------------------------------------------------------------------------------------------------------------
# case 42: a gate that is there and does nothing


def test_case_42_a_gate_is_run_by_every_deployer(plain: Path):
    """Not only a file: something of each deployer runs or waits for it, on every run."""
    (helmfile,) = documents(plain / "helmfile.yaml")
    hooks = {
        r["name"]: [h["name"] for h in r.get("hooks", []) if h["events"] == ["presync"]] for r in helmfile["releases"]
    }
    assert "gate" in hooks["beta"]
    (job,) = documents(plain / "argocd/guards/beta/beta.yaml")
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync"
    (app,) = documents(plain / "argocd/apps/beta.yaml")
    assert [s["path"] for s in app["spec"]["sources"]] == ["out/demo/components/beta", "out/demo/argocd/guards/beta"]
    (gate,) = documents(plain / "flux/graph/gate-beta.yaml")
    assert gate["spec"]["healthChecks"] == [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "widgets.example.org"}
    ]
    (flux_graph,) = documents(plain / "flux/graph/kustomization.yaml")
    assert "gate-beta.yaml" in flux_graph["resources"]
    deploy = (plain / "deploy.sh").read_text().splitlines()
    (at,) = [number for number, line in enumerate(deploy) if line.startswith("  release beta ")]
    assert deploy[at - 1] == "  gate beta"
