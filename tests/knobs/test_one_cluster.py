"""case 70: two bundles of one cluster never own one thing in silence; two of different clusters are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler import pipeline
from compiler.errors import Diagnostic, UserError
from compiler.load import load
from compiler.model import Catalog, Flags
from compiler.pipeline import compile_bundle
from compiler.resolve import beside
from tests.conftest import ROOT
from tests.support.workspaces import catalog, pointed

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: common}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shared}\nrules: []\n"
FILES = {
    "overlays/base.yaml": "",
    "overlays/eks.yaml": "{base: base, criteria: {service: eks}, componentRefs: [{name: web}, {name: left}]}",
    "overlays/gke.yaml": "{base: base, criteria: {service: gke}, componentRefs: [{name: db}, {name: right}]}",
    "components/web": "",
    "components/db": "",
    "components/left/component.yaml": "namespace: {name: left}\nmanifests: {main: [m.yaml]}",
    "components/right/component.yaml": "namespace: {name: right}\nmanifests: {main: [m.yaml]}",
    "components/left/m.yaml": ROLE.replace("shared", "left"),
    "components/right/m.yaml": ROLE.replace("shared", "right"),
}
GIT = "git: {url: 'https://git.example.com/x.git', revision: main}\n"


def two(root: Path, first: str, second: str, more: str = "", **files: str) -> Catalog:
    """Bundle `a` is of recipe eks unless `first` says otherwise, bundle `z` of gke."""
    bundles = f"bundles:\n  - {{name: a, recipe: eks, {first}}}\n  - {{name: z, recipe: gke, {second}}}\n"
    return catalog(root, {**FILES, **files, "bundlec.yaml": GIT + bundles + more})


def told(found: Catalog, name: str = "a") -> list[Diagnostic]:
    try:
        compile_bundle(found, found.workspace.bundles[name], Flags())
    except UserError as error:
        return list(error.diagnostics)
    return []


ONE = "cluster: west"


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({}, None),
        ({"overlays/gke.yaml": FILES["overlays/gke.yaml"].replace("db", "web")}, "the components `web`"),
        (
            {
                "overlays/gke.yaml": FILES["overlays/gke.yaml"].replace(
                    "{name: db}", "{name: web, namespace: elsewhere}"
                )
            },
            "the components `web`",
        ),
        (
            {"components/left/m.yaml": ROLE, "components/right/m.yaml": ROLE},
            "the objects `ClusterRole.rbac.authorization.k8s.io shared`",
        ),
        (
            {
                "components/left/m.yaml": CONFIG.replace("common", "left"),
                "components/right/m.yaml": CONFIG.replace("common", "right"),
            },
            None,
        ),
        ({"components/db": "crds: [{name: x.e.org, kind: X, scope: Cluster, from: crds}]"}, None),
        (
            {
                f"components/{name}": "crds: [{name: x.e.org, kind: X, scope: Cluster, from: crds, owner: true}]"
                for name in ("web", "db")
            },
            "the CRDs `x.e.org`",
        ),
        (
            {
                "components/right/component.yaml": "namespace: {name: left}\nmanifests: {main: [m.yaml]}",
            },
            "the namespaces `left`",
        ),
        (
            {
                "components/right/component.yaml": "namespace: {name: left}\nmanifests: {main: [m.yaml]}",
                "overlays/gke.yaml": FILES["overlays/gke.yaml"][:-1]
                + ", clusterProvides: [{group: '', kind: Namespace, name: left}]}",
            },
            None,
        ),
        (
            {"components/web": "conflicts: [{component: db, reason: one NIC}]"},
            "what excludes each other, `db and web`",
        ),
        (
            {"components/web": "conflicts: [{component: db, reason: one NIC, when: {recipe: service, equals: gke}}]"},
            None,
        ),
    ],
)
def test_what_both_would_own(tmp_path: Path, files: dict[str, str], what: str | None) -> None:
    found = two(tmp_path, ONE, ONE, **files)
    first, second = told(found, "a"), told(found, "z")
    assert first == second  # so that `build --all` tells it once
    if what is None:
        assert first == []
        return
    (one,) = first
    assert (one.code, one.severity) == ("BC3017", "error")
    assert one.message == f"`a` and `z` share a cluster (cluster: west), and both bring {what}"
    assert one.fix
    assert pointed(tmp_path, one.span).startswith("bundlec.yaml: {name: z")
    assert [text for _, text in one.notes] == ["bundle `a`"]


SAME = {"overlays/gke.yaml": FILES["overlays/gke.yaml"].replace("db", "web")}


@pytest.mark.parametrize(
    ("first", "second", "more", "why"),
    [
        ("prefix: x", "prefix: v", "", None),  # nothing says so: each may be the cluster that its controller runs in
        ("cluster: west", "cluster: east", "", None),
        ("cluster: west", "prefix: v", "", None),
        ("argocd: {destination: {name: w}}", "argocd: {destination: {name: w}}", "", "argocd.destination.name: w"),
        ("argocd: {destination: {name: w}}", "argocd: {destination: {name: e}}", "", None),
        ("prefix: x", "prefix: v", "argocd: {destination: {name: w}}", "argocd.destination.name: w"),
        ("prefix: x", "argocd: {destination: {name: e}}", "argocd: {destination: {name: w}}", None),
        (
            "argocd: {destination: {server: 'https://10.0.0.1'}}",
            "argocd: {destination: {server: 'https://10.0.0.1'}}",
            "",
            "argocd.destination.server: https://10.0.0.1",
        ),
        ("prefix: x", "prefix: v", "argocd: {destination: {server: 'https://kubernetes.default.svc'}}", None),
        ("flux: {kubeConfig: w}", "flux: {kubeConfig: w}", "", "flux.kubeConfig: w in flux-system"),
        ("flux: {kubeConfig: w}", "flux: {kubeConfig: w, namespace: other}", "", None),
        ("flux: {kubeConfig: w}", "flux: {kubeConfig: w}, deployers: [argocd]", "", None),
        # Names of different kinds, and clusters that people keep apart.
        ("argocd: {destination: {name: w}}", "flux: {kubeConfig: w}", "", None),
        (
            "cluster: a, argocd: {destination: {name: w}}",
            "cluster: b, argocd: {destination: {name: w}}",
            "",
            None,
        ),
    ],
)
def test_what_says_that_it_is_one_cluster(tmp_path: Path, first: str, second: str, more: str, why: str | None) -> None:
    found = two(tmp_path, first, second, more, **SAME)
    bundles = found.workspace.bundles
    assert beside(found, bundles["a"]) == (((bundles["z"], why),) if why else ())
    assert beside(found, bundles["z"]) == (((bundles["a"], why),) if why else ())
    assert [d.code for d in told(found)] == (["BC3017"] if why else [])


def test_what_one_of_them_leaves_out_is_no_collision(tmp_path: Path) -> None:
    left_out = f"{ONE}, disable: [{{component: web, reason: the other bundle has it}}]"
    assert told(two(tmp_path, ONE, left_out, **SAME)) == []


def test_a_neighbour_that_does_not_compile_is_told_of_by_itself(tmp_path: Path) -> None:
    wrong = f"{ONE}, set: {{nothing: {{a: b}}}}"
    found = two(tmp_path, ONE, wrong, **SAME)
    assert told(found, "a") == []
    assert [d.code for d in told(found, "z")] == ["BC2006"]


def test_the_catalog_s_own_recipes_do_not_fit_beside_each_other() -> None:
    """Two whole GPU stacks: the finding names a few of the components and counts the rest."""
    from dataclasses import replace

    real = load(ROOT)
    names = ("gb200-gke-cos-training", "gb200-gke-cos-inference")
    placed = {n: replace(real.workspace.bundles[n], cluster="prod") for n in names}
    both = replace(real, workspace=replace(real.workspace, bundles={**real.workspace.bundles, **placed}))
    found = told(both, names[0])
    assert {d.code for d in found} == {"BC3017"}
    assert "the components `cert-manager`, `gcp-driver-installer`" in found[0].message
    assert " more" in found[0].message


def test_each_bundle_of_a_cluster_is_planned_once_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bundles = "bundles:\n" + "".join(f"  - {{name: b{n}, recipe: eks, prefix: p{n}, {ONE}}}\n" for n in range(4))
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": GIT + bundles})
    planned: list[str] = []
    real = pipeline.plan_bundle

    def counted(*given: Any) -> Any:
        planned.append(given[1].name)
        return real(*given)

    monkeypatch.setattr(pipeline, "plan_bundle", counted)
    plans = pipeline.Plans(found)
    for entry in found.workspace.bundles.values():
        with pytest.raises(UserError, match="share a cluster"):
            compile_bundle(found, entry, Flags(), plans)
    assert planned == ["b0", "b1", "b2", "b3"]
    with pytest.raises(UserError, match="share a cluster"):  # flags are no part of what is kept
        compile_bundle(found, entry, Flags(deployers=("flux",)), plans)
    assert planned == ["b0", "b1", "b2", "b3", "b3"]
