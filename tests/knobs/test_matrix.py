"""Every setting of bundlec.yaml on every deployer: it works, is refused with a reason, or is about another deployer.

case 74. The rows are checked against the schema, so that a setting that is added without a row fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import emit
from compiler.errors import UserError
from compiler.model import DEPLOYERS, Catalog, Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve
from compiler.yamlio import dump
from tests.conftest import ROOT
from tests.support.workspaces import catalog

FILES = {
    "overlays/base.yaml": "",
    "overlays/eks.yaml": "{base: base, criteria: {service: eks}, componentRefs: [{name: web}, {name: agent}, {name: app}]}",
    "components/web": """
        scheduling:
          system: {nodeSelector: [sel], tolerations: [tol]}
          accelerated: {nodeSelector: [gpu.sel], tolerations: [gpu.tol]}
          workload: {nodeSelector: [work], taints: [{path: gate, form: string}], nodeCount: [nodes]}
        storage: {class: [class], sharedClass: [shared]}
    """,
    "components/agent/component.yaml": """
        namespace: {name: agent}
        chart: {repository: "oci://ghcr.io/nvidia/charts", name: agent, version: "1.0.0"}
        checks: {up: {daemonset: {name: agent}}, nodes: {nodes: {selector: "gpu=true", min: 1}}}
        readiness: {ready: {checks: [up, nodes], timeout: 5m}}
        teardown: {before: [{gone: {group: example.org, resource: things}}]}
    """,
    "components/app/component.yaml": """
        namespace: {name: app}
        needs: [{component: agent, until: ready}]
        manifests: {main: [m.yaml]}
    """,
    "components/app/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n",
}
BUNDLE = "git: {url: 'https://git.example.com/x.git', revision: main}\nbundles: [{name: b, recipe: eks}]\n"

SCRIPTS, GITOPS = ("deploy.sh", "helmfile"), ("argocd", "flux")
REFUSED, README = "refused", "README.md"

# Setting -> (an instance of it, which deployers it changes). A value of the mapping names the file that changes where it
# is the README alone, or says that it is refused. What is not named is left as it was.
MATRIX: Mapping[str, tuple[Any, Mapping[str, str]]] = {
    "git.url": ("https://git.example.com/y.git", dict.fromkeys(GITOPS, "")),
    "git.revision": ("v2", dict.fromkeys(GITOPS, "")),
    "git.path": ("elsewhere", dict.fromkeys(GITOPS, "")),
    "argocd.namespace": ("argo", {"argocd": ""}),
    "argocd.project": ("gpu", {"argocd": ""}),
    "argocd.destination.server": ("https://10.0.0.1", {"argocd": ""}),
    "argocd.destination.name": ("gpu", {"argocd": ""}),
    "argocd.minVersion": ("3.3", {"argocd": ""}),
    "argocd.selfHeal": (False, {"argocd": ""}),
    "argocd.prune": (False, {"argocd": ""}),
    "argocd.waves": ("health", {"argocd": ""}),
    "flux.namespace": ("flux", {"flux": ""}),
    "flux.source.kind": ("OCIRepository", {"flux": REFUSED}),
    "flux.source.name": ("mine", {"flux": ""}),
    "flux.source.existing": (True, {"flux": ""}),
    "flux.source.secretRef": ("key", {"flux": ""}),
    "flux.source.interval": ("7m", {"flux": ""}),
    "flux.minVersion": ("2.9", {"flux": README}),
    "flux.serviceAccount": ("deployer", {"flux": ""}),
    "flux.kubeConfig": ("gpu", {"flux": ""}),
    "helm.minVersion": ("4.1", {"deploy.sh": "", "helmfile": README}),
    "helm.extraArgs": (["--debug"], {"deploy.sh": "", "helmfile": "", "argocd": REFUSED, "flux": REFUSED}),
    "helmfile.minVersion": ("1.5.0", {"helmfile": README}),
    "gates.ready": (False, dict.fromkeys(DEPLOYERS, "")),
    # The removal scripts of Argo CD and Flux poll; their controllers watch.
    "gates.poll": ("9s", dict.fromkeys(DEPLOYERS, "lib/gates.sh")),
    # Flux asks again for ever; what has a deadline there is the removal script.
    "gates.timeoutScale": (3, {**dict.fromkeys(DEPLOYERS, ""), "flux": "lib/gate"}),
    "gates.minNodes": (0, dict.fromkeys(DEPLOYERS, "")),
    # Scripts look for themselves: no Job.
    "gates.job.image": ("m.example.org/kubectl:1", dict.fromkeys(GITOPS, "")),
    "gates.job.pullSecrets": (["pull"], dict.fromkeys(GITOPS, "")),
    "gates.job.nodeSelector": ({"a": "b"}, dict.fromkeys(GITOPS, "")),
    "gates.job.tolerations": ([{"operator": "Exists"}], dict.fromkeys(GITOPS, "")),
    "gates.job.priorityClass": ("high", dict.fromkeys(GITOPS, "")),
    "placement.system.nodeSelector": ({"a": "b"}, dict.fromkeys(DEPLOYERS, "")),
    "placement.system.tolerations": ([{"operator": "Exists"}], dict.fromkeys(DEPLOYERS, "")),
    "placement.accelerated.nodeSelector": ({"a": "b"}, dict.fromkeys(DEPLOYERS, "")),
    "placement.accelerated.tolerations": ([{"operator": "Exists"}], dict.fromkeys(DEPLOYERS, "")),
    "placement.workload.selector": ({"a": "b"}, dict.fromkeys(DEPLOYERS, "")),
    "placement.workload.gate": ({"key": "k", "effect": "NoSchedule"}, dict.fromkeys(DEPLOYERS, "")),
    "placement.nodes": (18, dict.fromkeys(DEPLOYERS, "")),
    "storage.class": ("fast", dict.fromkeys(DEPLOYERS, "")),
    "storage.sharedClass": ("nfs", dict.fromkeys(DEPLOYERS, "")),
    "mirrors": ([{"from": "https://charts.example.com", "to": "https://m"}], dict.fromkeys(DEPLOYERS, "")),
    "mirrors oci": ([{"from": "ghcr.io", "to": "oci://m/g"}], dict.fromkeys(DEPLOYERS, "")),
    "mirrors image": ([{"from": "registry.k8s.io", "to": "oci://m/k"}], dict.fromkeys(GITOPS, "")),
    "mirrors plain HTTP": (
        [{"from": "ghcr.io", "to": "oci://m/g", "plainHTTP": True}],
        {**dict.fromkeys(DEPLOYERS, ""), "argocd": REFUSED},
    ),
}
SECTIONS = ("git", "argocd", "flux", "helm", "helmfile", "gates", "placement", "storage", "mirrors")
ATOMS = ("nodeSelector", "tolerations", "selector", "gate", "pullSecrets", "extraArgs", "mirrors")


def of_schema() -> Iterator[str]:
    """The settings that the schema knows, as dotted paths."""
    schema = json.loads((ROOT / "compiler/schemas/workspace.schema.json").read_text())

    def below(node: Mapping[str, Any], path: str) -> Iterator[str]:
        reference = str(node.get("$ref", ""))
        if reference.startswith("#/$defs/"):
            node = schema["$defs"][reference.removeprefix("#/$defs/")]
        if "properties" in node and path.rpartition(".")[2] not in ATOMS:
            for key, child in node["properties"].items():
                yield from below(child, f"{path}.{key}")
        else:
            yield path

    for section in SECTIONS:
        yield from below(schema["properties"]["spec"]["properties"][section], section)


def test_every_setting_of_the_schema_has_a_row() -> None:
    assert {key.partition(" ")[0] for key in MATRIX} == set(of_schema())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return catalog(tmp_path_factory.mktemp("matrix"), {**FILES, "bundlec.yaml": BUNDLE})


def settings(key: str, value: Any) -> dict[str, Any]:
    for step in reversed(key.partition(" ")[0].split(".")):
        value = {step: value}
    return value


def compiled(small: Catalog, deployer: str, given: Mapping[str, Any]) -> dict[str, bytes]:
    flags = Flags(deployers=(deployer,), settings=(("--setting", given),) if given else ())
    files = emit(plan(resolve(small, entry_for(small, "b"), flags)))
    about = ("checksums.txt", "bundle.yaml", "recipe.yaml")  # they follow from the others
    return {name: data for name, data in files.items() if name not in about}


@pytest.mark.parametrize("deployer", DEPLOYERS)
@pytest.mark.parametrize("key", MATRIX)
def test_a_setting_on_a_deployer(small: Catalog, key: str, deployer: str) -> None:
    value, outcome = MATRIX[key]
    expected = outcome.get(deployer)
    if expected == REFUSED:
        with pytest.raises(UserError) as caught:
            compiled(small, deployer, settings(key, value))
        for one in caught.value.diagnostics:
            assert one.code in ("BC4002", "BC4003")
            assert one.fix
        return
    before, after = compiled(small, deployer, {}), compiled(small, deployer, settings(key, value))
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if expected is None:
        assert changed == set()
    elif expected:
        assert expected in changed
        assert changed <= {expected, README, "argocd/remove.sh", "flux/remove.sh"}
    else:
        assert changed - {README}


@pytest.mark.parametrize("key", [key for key, (_, outcome) in MATRIX.items() if REFUSED not in outcome.values()])
def test_a_setting_means_the_same_wherever_it_stands(small: Catalog, tmp_path: Path, key: str) -> None:
    """For the whole workspace, for one bundle, or as a flag; and a bundle's own word wins over the workspace's."""
    value, _ = MATRIX[key]
    given = settings(key, value)
    git: dict[str, Any] = {"git": {"url": "https://git.example.com/x.git", "revision": "main"}}
    entry: dict[str, Any] = {"name": "b", "recipe": "eks"}

    def written(name: str, workspace: Mapping[str, Any], bundle: Mapping[str, Any]) -> dict[str, bytes]:
        whole = _merged(git, workspace) | {"bundles": [{**entry, **bundle}]}
        found = catalog(tmp_path / name, {**FILES, "bundlec.yaml": dump(whole)})
        files = emit(plan(resolve(found, entry_for(found, "b"), Flags())))
        return {name: files[name] for name in files if name not in ("checksums.txt", "bundle.yaml", "recipe.yaml")}

    asked = emit(plan(resolve(small, entry_for(small, "b"), Flags(settings=(("--setting", given),)))))
    flagged = {name: asked[name] for name in asked if name not in ("checksums.txt", "bundle.yaml", "recipe.yaml")}
    assert written("workspace", given, {}) == flagged
    # `git` of a bundle is merged over the workspace's like any other section.
    assert written("bundle", {}, given) == flagged


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(left)
    for key, value in right.items():
        both = isinstance(value, dict) and isinstance(whole.get(key), dict)
        whole[key] = _merged(whole[key], value) if both else value
    return whole


# What a bundle's entry says besides settings -> the deployers that it changes.
ENTRY: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "prefix": ("other", GITOPS),
    "set": ({"web": {"a": "b"}}, DEPLOYERS),
    "disable": ([{"component": "app", "reason": "none here"}], DEPLOYERS),
    "profile": ({"mode": "loud"}, DEPLOYERS),
    "inputs": ({"size": "large"}, DEPLOYERS),
    # A name of the cluster says which bundles meet there, and nothing to a deployer.
    "cluster": ("west", ()),
}
CHOICE = """
base: base
criteria: {service: eks}
componentRefs: [{name: web}, {name: agent}, {name: app}]
inputs: {size: {type: string, enum: [small, large], default: small, effects: {large: [{name: web, overrides: {replicas: 9}}]}}}
profile:
  name: mode
  default: quiet
  values:
    quiet: {constraints: [{name: K8s.node.provider, value: a}], componentRefs: [{name: web, overrides: {noise: 0}}]}
    loud: {constraints: [{name: K8s.node.provider, value: b}], componentRefs: [{name: web, overrides: {noise: 9}}]}
"""


def test_every_field_of_an_entry_has_a_row() -> None:
    schema = json.loads((ROOT / "compiler/schemas/workspace.schema.json").read_text())
    fields = set(schema["$defs"]["bundle"]["properties"]) - set(SECTIONS)
    # `name` is the folder, `recipe` and `criteria` choose what is compiled, and of which deployers.
    assert fields - {"name", "recipe", "criteria", "deployers"} == set(ENTRY)


@pytest.mark.parametrize("deployer", DEPLOYERS)
@pytest.mark.parametrize("key", ENTRY)
def test_a_field_of_an_entry_on_a_deployer(tmp_path: Path, key: str, deployer: str) -> None:
    value, changes = ENTRY[key]

    def files(name: str, more: Mapping[str, Any]) -> dict[str, bytes]:
        bundle = dump({"bundles": [{"name": "b", "recipe": "eks", "deployers": [deployer], **more}]})
        git = "git: {url: 'https://git.example.com/x.git', revision: main}\n"
        found = catalog(tmp_path / name, {**FILES, "overlays/eks.yaml": CHOICE, "bundlec.yaml": git + bundle})
        made = emit(plan(resolve(found, entry_for(found, "b"), Flags())))
        about = ("checksums.txt", "bundle.yaml", "recipe.yaml", README, "preflight.sh")
        return {name: made[name] for name in made if name not in about}

    assert (files("without", {}) != files("with", {key: value})) == (deployer in changes)


def test_a_place_on_another_cluster_is_where_everything_goes(small: Catalog) -> None:
    files = compiled(small, "argocd", settings("argocd.destination.name", "gpu"))
    for name in ("web", "agent", "app", "namespaces"):
        assert b"name: gpu" in files[f"argocd/apps/{name}.yaml"], name
    assert b"https://kubernetes.default.svc" in files["argocd/root.yaml"]  # Applications live beside Argo CD


# ---------------------------------------------------------------------------------------------------------------------
# Several bundles


def two(root: Path, first: str, second: str, more: str = "") -> list[str]:
    """What is wrong with the bundle `a` of a workspace with two, as `code message`."""
    workspace = f"bundles:\n  - {{name: a, recipe: eks, {first}}}\n  - {{name: c, recipe: eks, {second}}}\n{more}"
    git = "git: {url: 'https://git.example.com/x.git', revision: main}\n"
    found = catalog(root, {**FILES, "bundlec.yaml": git + workspace})
    try:
        resolve(found, entry_for(found, "a"), Flags())
    except UserError as error:
        return [f"{d.code} {d.message}" for d in error.diagnostics]
    return []


def test_case_70_a_source_that_two_bundles_would_make(tmp_path: Path) -> None:
    named = "flux: {source: {name: shared}}"
    (one,) = two(tmp_path, "prefix: x", "prefix: z", named)
    assert one == "BC4001 this bundle and `c` would both make the Flux source `shared`"
    assert two(tmp_path, "prefix: x", "prefix: z", "flux: {source: {name: shared, existing: true}}") == []
    assert two(tmp_path, "prefix: x", "prefix: z, flux: {namespace: other}", named) == []
    assert two(tmp_path, "prefix: x", "prefix: z, deployers: [helmfile]", named) == []
    assert two(tmp_path, "prefix: x", "prefix: z, flux: {source: {name: x}}") != []


def test_a_site_is_a_few_lines(tmp_path: Path) -> None:
    """Two clusters of one recipe: what differs stands in their entries, and nothing else differs."""
    workspace = """
git: {url: "https://git.example.com/x.git", revision: main}
mirrors: [{from: "https://charts.example.com", to: "https://m.example.org"}]
bundles:
  - {name: north, recipe: eks, argocd: {destination: {name: north}}}
  - name: south
    recipe: eks
    argocd: {destination: {name: south}}
    placement: {system: {nodeSelector: {pool: infra}}}
    storage: {class: fast}
"""
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": workspace})
    north, south = (plan(resolve(found, entry_for(found, name), Flags())) for name in ("north", "south"))
    assert [r.id for r in north.releases] == [r.id for r in south.releases]
    assert south.release("web").values == {"sel": {"pool": "infra"}, "class": "fast"}
    assert north.release("web").values == {}
    files = emit(south)
    assert b"name: south" in files["argocd/apps/web.yaml"]
    assert b"north" not in b"".join(files.values())
