"""Loading a catalog: what a valid tree becomes, and links between files."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.errors import UserError
from compiler.load import load
from compiler.model import Chart, Install
from tests.support.catalogs import component, findings, load_tree, mixin, overlay, shown, tree

FULL = """
displayName: Alpha
aliases: [alfa, ALF]
class: ops
namespace: {name: shared, labels: {pod-security.kubernetes.io/enforce: privileged}, owner: beta}
chart: {repository: https://charts.example.com/, name: alpha, version: "1.2.0"}
manifestValues: [ours]
lockedPaths: [{path: nameOverride, reason: used below}]
manifests:
  pre: [manifests/a.yaml]
  post: [{file: manifests/b.yaml.j2, when: {value: .active, equals: true}}]
crds:
  - {name: things.example.com, kind: Thing, scope: Namespaced, from: crds, applyBefore: true}
  - name: lates.late.example.com
    kind: Late
    scope: Cluster
    from: image
    after: {group: example.com, kind: Thing, path: spec.late}
needs: [{component: beta, until: api, reason: its webhook}]
checks:
  crd: {crd: things.example.com}
  nodes: {nodes: {selector: gpu=true, min: 2}}
  state:
    field: {group: example.com, version: v1, kind: Thing, resource: things, name: t, path: status.state, equals: ready}
  cond: {condition: {group: example.com, version: v1, kind: Thing, resource: things, name: t, type: Ready}}
readiness:
  api: {checks: [crd], timeout: 1m30s}
  ready: {checks: [state, extra], onTimeout: warn, scope: install}
install: {timeout: 1h, wait: none}
teardown:
  before: [state, {gone: {group: example.com, resource: things}}]
  keepCRDs: false
criticalPods: {}
disruptive: {text: reboots nodes}
rules:
  - {id: r, that: {objects: {kind: ConfigMap}, count: {atLeast: 1}}, message: m}
"""


@pytest.fixture
def files() -> dict[str, str]:
    return tree(
        **{
            "components/alpha/component.yaml": component("alpha", FULL).replace("  namespace: {name: alpha}\n", ""),
            "components/alpha/checks.yaml": "extra: {daemonset: {name: rendered, minReady: 1}}\n",
            "components/alpha/values.yaml": "active: true\nnested: {a: 1}\n",
            "components/alpha/values-leaf.yaml": "active: false\n",
            "components/alpha/values-unused.yaml": "broken: yes\n",
            "components/alpha/manifests/a.yaml": "kind: A\n---\nkind: B\n",
            "components/alpha/manifests/b.yaml.j2": "kind: {{ values.kind }}\n",
            "components/alpha/manifests/c.yaml": "kind: C\n",
            "mixins/extra.yaml": mixin("extra", "componentRefs: [{name: alpha, manifestFiles: [manifests/c.yaml]}]"),
            "overlays/deep/er/leaf.yaml": overlay(
                "leaf",
                """
                criteria: {service: gke, os: ANY, intent: "", platform: null, nodes: 4}
                mixins: [extra]
                maturity: stable
                inputs:
                  size:
                    type: string
                    enum: [small, big]
                    effects: {big: [{name: alpha, overrides: {size: 9}}]}
                constraints: [{name: K8s.server.version, value: ">= 1.34"}]
                clusterProvides: [{group: g, kind: K, check: {crd: k.g}}]
                componentRefs:
                  - name: alpha
                    valuesFile: values-leaf.yaml
                    overrides: {install: "false", driver: {x: null}}
                    dependencyRefs: [beta, {name: beta, until: ready, remove: true}]
                    readiness: {timeout: 5m, minNodes: 0}
                profile:
                  name: stack
                  default: one
                  values:
                    one:
                      constraints: [{name: L, value: "!x"}]
                      componentRefs: [{name: alpha, overrides: {a: 1}}]
                """,
            ),
            "overlays/leaf.yaml": "",
        }
    )


@pytest.fixture
def catalog_files(files: dict[str, str]) -> dict[str, str]:
    del files["overlays/leaf.yaml"]
    return files


def test_a_component_and_its_files(tmp_path: Path, catalog_files: dict[str, str]) -> None:
    alpha = load_tree(tmp_path, catalog_files).components["alpha"]
    assert alpha.chart == Chart("https://charts.example.com", "alpha", "1.2.0")
    assert (alpha.klass, alpha.display_name, alpha.aliases) == ("ops", "Alpha", ("alfa", "ALF"))
    assert (alpha.namespace.name, alpha.namespace.owner) == ("shared", "beta")
    assert alpha.install == Install(3600, "none", wait_for_jobs=True)
    assert alpha.values is not None
    assert alpha.values.data == {"active": True, "nested": {"a": 1}}
    assert {k: d.data for k, d in alpha.values_files.items()} == {"values-leaf.yaml": {"active": False}}
    sources = alpha.manifest_sources
    assert list(sources) == ["manifests/a.yaml", "manifests/b.yaml.j2", "manifests/c.yaml"]
    assert [d.data for d in sources["manifests/a.yaml"].documents or ()] == [{"kind": "A"}, {"kind": "B"}]
    assert sources["manifests/b.yaml.j2"].documents is None
    assert sources["manifests/b.yaml.j2"].text == "kind: {{ values.kind }}\n"
    assert sources["manifests/c.yaml"].file == "components/alpha/manifests/c.yaml"


def test_checks_of_a_component(tmp_path: Path, catalog_files: dict[str, str]) -> None:
    alpha = load_tree(tmp_path, catalog_files).components["alpha"]
    assert list(alpha.checks) == ["crd", "nodes", "state", "cond", "extra"]
    state, cond, nodes = alpha.checks["state"], alpha.checks["cond"], alpha.checks["nodes"]
    assert (state.op, state.path, state.value, state.object_kind) == ("equals", "status.state", "ready", "Thing")
    assert (cond.type, cond.value, cond.op) == ("Ready", "True", None)
    assert (nodes.selector, nodes.min_nodes) == ("gpu=true", 2)
    assert str(alpha.checks["extra"].origin.span()) == "components/alpha/checks.yaml:1:8"
    assert alpha.health == tuple(sorted(alpha.checks))
    assert alpha.readiness_api is not None
    assert alpha.readiness_ready is not None
    assert (alpha.readiness_api.timeout, alpha.readiness_api.on_timeout) == (90, "fail")
    assert (alpha.readiness_ready.timeout, alpha.readiness_ready.on_timeout) == (3600, "warn")  # of install
    assert [(c.id, c.kind) for c in alpha.teardown.before] == [("state", "field"), ("teardown-2", "gone")]


def test_crds_and_conditions_of_a_component(tmp_path: Path, catalog_files: dict[str, str]) -> None:
    alpha = load_tree(tmp_path, catalog_files).components["alpha"]
    things, lates = alpha.crds
    assert (things.group, things.source, things.apply_before, things.after_kind) == ("example.com", "crds", True, None)
    assert (lates.group, lates.after_group, lates.after_path) == ("late.example.com", "example.com", "spec.late")
    when = alpha.manifests["post"][0].when
    assert when is not None
    assert (when.component, when.form) == ("alpha", {"value": ".active", "equals": True})
    assert alpha.critical_pods is not None
    assert alpha.disruptive == ((None, "reboots nodes"),)


def test_an_overlay(tmp_path: Path, catalog_files: dict[str, str]) -> None:
    leaf = load_tree(tmp_path, catalog_files).overlays["leaf"]
    assert leaf.criteria == {"service": "gke", "nodes": 4}  # case 51: the others are wildcards
    assert (leaf.base, leaf.match, leaf.maturity) == ("base", True, "stable")
    assert [name for name, _ in leaf.mixins] == ["extra"]
    (ref,) = leaf.refs
    assert (ref.enabled, ref.overrides, ref.values_file) == (False, {"driver": {"x": None}}, "values-leaf.yaml")
    assert [(n.component, n.until, n.remove) for n in ref.dependency_refs] == [
        ("beta", "applied", False),
        ("beta", "ready", True),
    ]
    assert (ref.readiness.timeout, ref.readiness.min_nodes, ref.readiness.scope) == (300, 0, None)
    assert leaf.inputs[0].effects["big"][0].overrides == {"size": 9}
    assert leaf.profile is not None
    assert leaf.profile.values["one"].refs[0].name == "alpha"
    assert leaf.cluster_provides[0].check is not None


@pytest.mark.parametrize("wildcard", ["any", "ANY", "*", '"*"', '""', "null", "~"])
def test_case_51_every_spelling_of_a_wildcard(tmp_path: Path, wildcard: str) -> None:
    files = tree(**{"overlays/leaf.yaml": overlay("leaf", f"criteria: {{service: eks, os: {wildcard}}}")})
    if wildcard == "*":
        assert shown(findings(tmp_path, files))[0].startswith("overlays/leaf.yaml:6:33 [BC1001]")
    else:
        assert load_tree(tmp_path, files).overlays["leaf"].criteria == {"service": "eks"}


def test_case_13_falsy_overrides_are_kept(tmp_path: Path) -> None:
    text = 'componentRefs: [{name: alpha, overrides: {a: false, b: 0, c: "", d: [], e: {}, f: null}}]'
    (ref,) = load_tree(tmp_path, tree(**{"overlays/leaf.yaml": overlay("leaf", text)})).overlays["leaf"].refs
    assert ref.overrides == {"a": False, "b": 0, "c": "", "d": [], "e": {}, "f": None}


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("enabled: false", False),
        ("enabled: null", None),
        ("overrides: {enabled: false}", False),
        ('overrides: {install: "true"}', True),
        ("overrides: {enabled: null}", None),
        ("enabled: true, overrides: {enabled: 'true', install: true}", True),
    ],
)
def test_aliases_of_enabled(tmp_path: Path, text: str, enabled: bool | None) -> None:
    files = tree(**{"overlays/leaf.yaml": overlay("leaf", f"componentRefs: [{{name: alpha, {text}}}]")})
    (ref,) = load_tree(tmp_path, files).overlays["leaf"].refs
    assert ref.enabled is enabled
    assert ref.overrides == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enabled: true, overrides: {enabled: false}", "[BC1203] one ref both enables and disables the component"),
        ("overrides: {enabled: 1}", "[BC1102] `enabled` at the top of overrides switches the component"),
        ("overrides: {install: 'yes'}", "[BC1102] `install` at the top of overrides switches the component"),
        ("overrides: {enabled: {}}", "[BC1102] `enabled` at the top of overrides switches the component"),
        ("enabled: 'true'", "[BC1102] spec.componentRefs[0].enabled must be true or false or null, not `true`"),
    ],
)
def test_faults_of_enabled(tmp_path: Path, text: str, message: str) -> None:
    files = tree(**{"overlays/leaf.yaml": overlay("leaf", f"componentRefs: [{{name: alpha, {text}}}]")})
    (found,) = shown(findings(tmp_path, files))
    assert message in found


def test_the_workspace(tmp_path: Path) -> None:
    text = """
apiVersion: bundlec.dev/v1alpha1
kind: Workspace
spec:
  out: bundles
  git: {url: "git@git.example.com:x/y.git", revision: "1.10"}
  deployers: [flux]
  bundles:
    - name: one
      recipe: leaf
      prefix: p
      set: {alpha: {a: 1}}
      disable: [{component: beta, reason: not here}]
      gates: {minNodes: 0}
    - name: two
      criteria: {service: gke, os: any}
  policies: [{id: p, that: {recipe: name, exists: true}, message: m}]
"""
    workspace = load_tree(tmp_path, tree(**{"bundlec.yaml": text})).workspace
    one, two = workspace.bundles.values()
    assert (workspace.out, list(workspace.settings)) == ("bundles", ["deployers", "git"])
    assert (one.recipe, one.prefix, one.disable) == ("leaf", "p", (("beta", "not here"),))
    assert (one.set, one.settings) == ({"alpha": {"a": 1}}, {"gates": {"minNodes": 0}})
    assert (two.recipe, two.criteria) == (None, {"service": "gke"})
    assert workspace.policies[0].id == "p"


def test_further_roots_of_sources(tmp_path: Path) -> None:
    workspace = tree()["bundlec.yaml"].replace("spec:\n", "spec:\n  data: [site]\n")
    catalog = load_tree(
        tmp_path,
        tree(**{"bundlec.yaml": workspace, "site/overlays/mine.yaml": overlay("mine", base="leaf")}),
    )
    assert list(catalog.overlays) == ["base", "leaf", "mine"]
    assert str(catalog.overlays["mine"].origin) == "site/overlays/mine.yaml:1:1"


def test_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path)
    assert [d.code for d in caught.value.diagnostics] == ["BC1210"]


def test_the_order_of_files_on_disk_does_not_matter(tmp_path: Path) -> None:
    files = tree(**{f"components/c{n}/component.yaml": component(f"c{n}") for n in range(9)})
    one = load_tree(tmp_path / "one", dict(sorted(files.items())))
    two = load_tree(tmp_path / "two", dict(sorted(files.items(), reverse=True)))
    assert list(one.components) == list(two.components) == sorted(one.components)
    assert list(one.overlays) == list(two.overlays)
