"""Settings of a bundle: built-in < bundlec.yaml < the entry < flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.errors import UserError
from compiler.model import (
    ArgoSettings,
    Flags,
    FluxSettings,
    GateSettings,
    GitSettings,
    Settings,
)
from compiler.pipeline import compile_bundle
from compiler.resolve import entry_for, resolve
from tests.support.workspaces import catalog, pointed, the_finding

OVERLAYS = {"overlays/base.yaml": "", "overlays/eks.yaml": "{base: base, criteria: {service: eks}}"}


def settings(tmp_path: Path, workspace: str, name: str = "b", flags: Flags | None = None) -> Settings:
    found = catalog(tmp_path, {**OVERLAYS, "bundlec.yaml": workspace})
    return resolve(found, entry_for(found, name), flags or Flags()).settings


def test_built_in_settings(tmp_path: Path) -> None:
    assert settings(tmp_path, "", "eks") == Settings(
        prefix="eks",
        deployers=("deploy.sh", "helmfile", "argocd", "flux"),
        git=None,
        argocd=ArgoSettings(),
        flux=FluxSettings(),
        gates=GateSettings(),
    )


def test_every_field_is_read(tmp_path: Path) -> None:
    assert settings(
        tmp_path,
        """
        bundles: [{name: b, recipe: eks, prefix: p}]
        deployers: [helmfile, deploy.sh]
        git: {url: "https://git.example.com/x.git", revision: main, path: ./deploy/out/}
        argocd: {namespace: a, project: p, destination: {name: gpu}, minVersion: "3.2", selfHeal: false, prune: false,
                 waves: health}
        flux: {namespace: f, minVersion: "2.9", serviceAccount: s, kubeConfig: k,
               source: {kind: Bucket, name: nn, existing: true, secretRef: r, interval: 5m}}
        helm: {minVersion: "4.1", extraArgs: [--debug]}
        helmfile: {minVersion: "1.5.0"}
        gates:
          ready: false
          poll: 1m30s
          timeoutScale: 2
          minNodes: 0
          job: {image: i, pullSecrets: [s], nodeSelector: {a: b}, tolerations: [{operator: Exists}], priorityClass: c}
        """,
    ) == Settings(
        prefix="p",
        deployers=("deploy.sh", "helmfile"),
        git=GitSettings("https://git.example.com/x.git", "main", "deploy/out/b"),
        argocd=ArgoSettings("a", "p", None, "gpu", "3.2", self_heal=False, prune=False, waves="health"),
        flux=FluxSettings("f", "Bucket", "nn", True, "r", "5m", "2.9", "s", "k"),
        gates=GateSettings(False, 90, 2.0, 0, "i", ("s",), {"a": "b"}, ({"operator": "Exists"},), "c"),
        helm_min_version="4.1",
        helm_extra_args=("--debug",),
        helmfile_min_version="1.5.0",
    )


def test_maps_merge_and_lists_replace(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """
        out: bundles
        deployers: [helmfile, deploy.sh]
        git: {url: u, revision: main}
        helm: {extraArgs: [--a, --b]}
        argocd: {namespace: argo, destination: {name: here}}
        bundles:
          - name: b
            recipe: eks
            deployers: [helmfile]
            git: {revision: v2}
            helm: {extraArgs: [--c]}
            argocd: {project: gpu, destination: {server: "https://there"}}
        """,
    )
    assert found.deployers == ("helmfile",)
    assert found.git == GitSettings("u", "v2", "bundles/b")
    assert found.helm_extra_args == ("--c",)
    assert found.argocd == ArgoSettings(namespace="argo", project="gpu", server="https://there")


def test_flags_win(tmp_path: Path) -> None:
    workspace = "bundles: [{name: b, recipe: eks, deployers: [flux]}]"
    found = settings(tmp_path, workspace, flags=Flags(deployers=("helmfile", "deploy.sh")))
    assert found.deployers == ("deploy.sh", "helmfile")


@pytest.mark.parametrize(("path", "folder"), [("", "b"), (".", "b"), ("a//b/", "a/b/b")])
def test_the_folder_in_git(tmp_path: Path, path: str, folder: str) -> None:
    workspace = f'bundles: [{{name: b, recipe: eks}}]\ngit: {{url: u, revision: r, path: "{path}"}}'
    found = settings(tmp_path, workspace)
    assert found.git is not None
    assert found.git.path == folder


@pytest.mark.parametrize(
    ("setting", "code", "at"),
    [
        ("git: {url: u, revision: r, path: /abs}", "BC1206", "/abs"),
        ("git: {url: u, revision: r, path: ../x}", "BC1206", "../x"),
        ("git: {url: u}", "BC4002", "git:"),
        ("git: {revision: r}", "BC4002", "git:"),
        ('argocd: {minVersion: "3.0"}', "BC4003", '"3.0"'),
        ('flux: {minVersion: "2.7.5"}', "BC4003", '"2.7.5"'),
        ('helm: {minVersion: "3.17"}', "BC4003", '"3.17"'),
        ('helmfile: {minVersion: "1.4.1"}', "BC4003", '"1.4.1"'),
        ("helm: {extraArgs: [--debug]}", "BC4003", "extraArgs:"),
        ("placement: {nodes: 4}", "BC2006", "nodes:"),
        ("storage: {class: fast}", "BC2006", "class:"),
        ("mirrors: [{from: oci://a, to: https://b}]", "BC4003", "https://b"),
    ],
)
def test_settings_that_cannot_be_honoured(tmp_path: Path, setting: str, code: str, at: str) -> None:
    """case 74: nothing is dropped in silence."""
    found = catalog(tmp_path, {**OVERLAYS, "bundlec.yaml": f"bundles: [{{name: b, recipe: eks}}]\n{setting}"})
    one = the_finding(found, "b", code)
    assert pointed(tmp_path, one.span).startswith(f"bundlec.yaml: {at}")
    assert one.fix


TWO_MIRRORS = """mirrors:
  - {from: registry.k8s.io, to: oci://m}
  - {from: 'https://charts.example.com', plainHTTP: true, to: 'http://m'}
"""
GIT = "git: {url: 'https://git.example.com/x.git', revision: main}\n"


@pytest.mark.parametrize(
    ("setting", "code", "at"),
    [
        (f"{GIT}flux: {{source: {{kind: Bucket}}}}", "BC4002", "Bucket"),
        (f"{GIT}flux: {{source: {{existing: true, secretRef: s}}}}", "BC4003", "s}}"),
        ("git: {url: 'git@git.example.com:x.git', revision: main}", "BC4002", "'git@"),
        ("git: {url: '/srv/git', revision: main}", "BC4003", "'/srv"),
        (
            f"{GIT}{TWO_MIRRORS}",
            "BC4003",
            "true, to: 'http://m'",
        ),
        (f"{GIT}deployers: [helmfile]\nhelm: {{extraArgs: [--debug, --set a=b]}}", "BC4003", "--set a=b"),
        ("deployers: [flux]", "BC4002", "[flux]"),
        (f"{GIT}bundles: [{{name: b, recipe: eks, prefix: {'p' * 60}}}]", "BC4001", "p" * 60),
    ],
)
def test_what_a_deployer_cannot_honour_names_the_line_that_asks_for_it(
    tmp_path: Path, setting: str, code: str, at: str
) -> None:
    """Also what is only found while its files are made."""
    bundles = "" if "bundles:" in setting else "bundles: [{name: b, recipe: eks}]\n"
    files = {**OVERLAYS, "components/one": "", "bundlec.yaml": f"{bundles}{setting}"}
    files["overlays/eks.yaml"] = "{base: base, criteria: {service: eks}, componentRefs: [{name: one}]}"
    found = catalog(tmp_path, files)
    with pytest.raises(UserError) as caught:
        compile_bundle(found, found.workspace.bundles["b"], Flags())
    for one in caught.value.diagnostics:
        assert one.code == code
        assert pointed(tmp_path, one.span).startswith(f"bundlec.yaml: {at}"), one


@pytest.mark.parametrize(
    "setting",
    ['helm: {minVersion: "3"}', "mirrors: []", "placement: {system: {}}", "storage: {}", "lint: {waivers: []}"],
)
def test_settings_that_ask_for_nothing(tmp_path: Path, setting: str) -> None:
    settings(tmp_path, f"bundles: [{{name: b, recipe: eks}}]\n{setting}")


def test_half_a_repository_is_enough_for_deployers_that_do_not_read_it(tmp_path: Path) -> None:
    found = settings(tmp_path, "deployers: [helmfile]\ngit: {url: u}\nbundles: [{name: b, recipe: eks}]")
    assert found.git is None


def test_a_setting_of_the_entry_is_reported_there(tmp_path: Path) -> None:
    workspace = "placement: {}\nbundles:\n  - name: b\n    recipe: eks\n    placement: {nodes: 4}"
    found = catalog(tmp_path, {**OVERLAYS, "bundlec.yaml": workspace})
    one = the_finding(found, "b", "BC2006")
    assert pointed(tmp_path, one.span) == "bundlec.yaml: nodes: 4}"


def test_an_unknown_deployer(tmp_path: Path) -> None:
    found = catalog(tmp_path, OVERLAYS)
    one = the_finding(found, "eks", "BC4003", Flags(deployers=("argo",)))
    assert "`argo`" in one.message
    assert one.fix == "did you mean `argocd`?"


def test_a_recipe_may_not_take_the_prefix_of_a_bundle(tmp_path: Path) -> None:
    found = catalog(tmp_path, {**OVERLAYS, "bundlec.yaml": "bundles: [{name: b, recipe: eks, prefix: eks}]"})
    one = the_finding(found, "eks", "BC4001")
    assert "bundle `b`" in one.message
    resolve(found, entry_for(found, "b"), Flags())
