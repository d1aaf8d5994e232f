"""Placement and storage: where the settings go, who wins, and what is said when they go nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.cli.knobs import Knobs, shown
from compiler.load import load
from compiler.model import Flags, Recipe
from compiler.paths import lookup
from compiler.plan import plan
from compiler.resolve import entry_for, resolve, strvals
from compiler.source import parse_path
from compiler.yamlio import dump
from tests.conftest import ROOT
from tests.support.scratch import bundlec, write_catalog
from tests.support.workspaces import catalog, findings, pointed, recipe, the_finding

OPERATOR = """
scheduling:
  system: {nodeSelector: [operator.nodeSelector, hook.nodeSelector], tolerations: [operator.tolerations, hook.tolerations]}
  accelerated:
    nodeSelector: ["agent.nodeSelector"]
    tolerations: [agent.tolerations]
    when: {not: {recipe: os, equals: cos}}
    fixed: agents follow the operator's labels on COS
  workload:
    nodeSelector: [workload]
    taints: [{path: gateText, form: string}, {path: gateObject, form: object}]
    nodeCount: [count]
storage: {class: ["db.storageClassName"], sharedClass: [home.class, data.class]}
"""
FILES = {
    "overlays/base.yaml": "",
    "overlays/eks.yaml": "{base: base, criteria: {service: eks}, componentRefs: [{name: one}]}",
    "overlays/cos.yaml": "{base: base, criteria: {service: gke, os: cos}, componentRefs: [{name: one}]}",
    "components/one": OPERATOR,
    "components/one/values.yaml": "operator: {nodeSelector: {old: label}, tolerations: [{key: old, operator: Exists}]}\n",
}
PLACEMENT = """
placement:
  system: {nodeSelector: {pool: system}, tolerations: [{key: dedicated, operator: Exists}]}
  accelerated: {nodeSelector: {pool: gpu}, tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
  workload: {selector: {app: train}, gate: {key: example.com/init, value: "true", effect: NoSchedule}}
  nodes: 18
storage: {class: fast, sharedClass: nfs}
"""
EVERYWHERE = {
    "operator": {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "old", "operator": "Exists"}, {"key": "dedicated", "operator": "Exists"}],
    },
    "hook": {"nodeSelector": {"pool": "system"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]},
    "agent": {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    },
    "workload": {"app": "train"},
    "gateText": "example.com/init=true:NoSchedule",
    "gateObject": {"key": "example.com/init", "value": "true", "effect": "NoSchedule"},
    "count": 18,
    "db": {"storageClassName": "fast"},
    "home": {"class": "nfs"},
    "data": {"class": "nfs"},
}


def values(root: Path, workspace: str, flags: Flags | None = None, **files: str) -> Any:
    return recipe(root, {**FILES, "bundlec.yaml": workspace, **files}, "eks", flags).components["one"].chart_values


def test_every_setting_is_written_at_every_path(tmp_path: Path) -> None:
    """A selector replaces what was there; tolerations are added to it."""
    assert values(tmp_path, PLACEMENT) == EVERYWHERE


def test_the_flags_say_the_same(tmp_path: Path) -> None:
    """The options of the command line are the settings of bundlec.yaml."""
    given = [
        *("--system-node-selector", "pool=system", "--system-node-toleration", "dedicated"),
        *("--accelerated-node-selector", "pool=gpu", "--accelerated-node-toleration", "nvidia.com/gpu:NoSchedule"),
        *("--workload-selector", "app=train", "--workload-gate", "example.com/init=true:NoSchedule", "--nodes", "18"),
        *("--storage-class", "fast", "--shared-storage-class", "nfs"),
    ]
    catalog(tmp_path, FILES)
    ran = bundlec("resolve", "eks", "--format", "json", *given, cwd=tmp_path)
    assert ran.status == 0, ran.err

    (one,) = json.loads(ran.out)["spec"]["components"]
    assert one["values"] == EVERYWHERE


GATED = """
scheduling:
  workload: {taints: [{path: env.taint, form: string}], tolerations: [lifts.tolerations, everywhere.tolerations]}
"""
LISTED = "lifts: {tolerations: [{key: old, operator: Exists}]}\neverywhere: {tolerations: [{operator: Exists}]}\n"


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("example.com=init:NoSchedule", {"operator": "Equal", "value": "init", "effect": "NoSchedule"}),
        ("example.com:NoExecute", {"operator": "Exists", "effect": "NoExecute"}),
    ],
)
def test_what_lifts_the_gate_tolerates_it(tmp_path: Path, gate: str, expected: dict[str, str]) -> None:
    """Added to what it tolerates already, and nowhere a second time."""
    catalog(tmp_path, {**FILES, "components/one": GATED, "components/one/values.yaml": LISTED})
    ran = bundlec("resolve", "eks", "--format", "json", "--workload-gate", gate, cwd=tmp_path)
    assert ran.status == 0, ran.err
    (one,) = json.loads(ran.out)["spec"]["components"]
    assert one["values"] == {
        "env": {"taint": gate},
        "lifts": {"tolerations": [{"key": "old", "operator": "Exists"}, {"key": "example.com", **expected}]},
        "everywhere": {"tolerations": [{"operator": "Exists"}]},
    }


def test_tolerating_a_gate_is_not_reading_it(tmp_path: Path) -> None:
    """Without an operator that takes the taint the setting has no effect."""
    files = {**FILES, "components/one": "scheduling: {workload: {tolerations: [tolerations]}}"}
    gate = "placement: {workload: {gate: {key: k, effect: NoSchedule}}}"
    found = the_finding(catalog(tmp_path, {**files, "bundlec.yaml": gate}), "eks", "BC2006")
    assert pointed(tmp_path, found.span).startswith("bundlec.yaml: gate:")


@pytest.mark.parametrize("bundle", ["gb200-nvke-ubuntu-training", "h100-eks-ubuntu-training-kubeflow"])
def test_the_operator_and_nfd_reach_gated_nodes(bundle: str) -> None:
    """A node that carries a gate of one's own gets its labels and its packages, else the gate is never lifted."""
    sections = {"placement": {"workload": {"gate": {"key": "example.com", "value": "init", "effect": "NoSchedule"}}}}
    shipped = load(ROOT)
    found = resolve(shipped, entry_for(shipped, bundle), Flags(settings=(("--workload-gate", sections),)))
    tolerating = {"key": "example.com", "operator": "Equal", "value": "init", "effect": "NoSchedule"}
    for name, path in [("nodewright-operator", "controllerManager"), ("nfd", "master"), ("nfd", "worker")]:
        said = lookup(found.components[name].values, parse_path(f"{path}.tolerations"))
        assert tolerating in said or {"operator": "Exists"} in said, (name, path)


@pytest.mark.parametrize(
    ("before", "added"),
    [
        ("{operator: Exists}", False),
        ("{key: a, operator: Exists}", False),
        ("{operator: Exists, effect: NoExecute}", False),
        ("{key: a, operator: Equal, value: b, effect: NoExecute}", False),
        ("{key: a, operator: Exists, effect: NoSchedule}", True),
        ("{key: b, operator: Exists}", True),
        ("{key: a, operator: Equal, value: other}", True),
        ("{operator: Exists, effect: NoExecute, tolerationSeconds: 9}", True),
    ],
)
def test_the_gate_is_tolerated_once(tmp_path: Path, before: str, added: bool) -> None:
    """What tolerates it already stays as it is."""
    files = {"components/one": GATED, "components/one/values.yaml": f"lifts: {{tolerations: [{before}]}}\n"}
    found = values(tmp_path, "placement: {workload: {gate: {key: a, value: b, effect: NoExecute}}}", **files)
    assert len(found["lifts"]["tolerations"]) == (2 if added else 1)


def test_case_8_no_path_shares_its_value_with_another(tmp_path: Path) -> None:
    found = values(tmp_path, PLACEMENT)
    assert found["operator"]["tolerations"] is not found["hook"]["tolerations"]
    assert found["operator"]["tolerations"][0] is not found["hook"]["tolerations"][0]
    assert "&" not in dump(found)
    assert "*" not in dump(found)


def test_an_explicit_value_wins(tmp_path: Path) -> None:
    flags = Flags(set=tuple(("one", p, v) for p, v in strvals.parse("operator.tolerations=null,count=3")))
    found = values(tmp_path, PLACEMENT, flags)
    assert "tolerations" not in found["operator"]
    assert found["count"] == 3
    assert found["hook"] == EVERYWHERE["hook"]
    workspace = f"bundles: [{{name: eks, recipe: eks, set: {{one: {{db: {{storageClassName: mine}}}}}}}}]\n{PLACEMENT}"
    assert values(tmp_path, workspace)["db"] == {"storageClassName": "mine"}


def test_a_toleration_that_is_there_is_not_added_again(tmp_path: Path) -> None:
    twice = "placement: {system: {tolerations: [{key: old, operator: Exists}, {key: new, operator: Exists}]}}"
    found = values(tmp_path, twice)
    assert found["operator"]["tolerations"] == [
        {"key": "old", "operator": "Exists"},
        {"key": "new", "operator": "Exists"},
    ]
    assert values(tmp_path, "placement: {system: {tolerations: []}}")["operator"]["tolerations"] == [
        {"key": "old", "operator": "Exists"}
    ]


def test_an_explicit_list_replaces_all_of_it(tmp_path: Path) -> None:
    flags = Flags(set=(("one", ("operator", "tolerations"), [{"key": "mine", "operator": "Exists"}]),))
    assert values(tmp_path, PLACEMENT, flags)["operator"]["tolerations"] == [{"key": "mine", "operator": "Exists"}]


def test_an_item_of_a_placed_list(tmp_path: Path) -> None:
    flags = Flags(set=tuple(("one", p, v) for p, v in strvals.parse("agent.tolerations[0].key=k")))
    placed = EVERYWHERE["agent"]["tolerations"][0]
    assert values(tmp_path, PLACEMENT, flags)["agent"]["tolerations"] == [{**placed, "key": "k"}]


def test_the_entry_adds_to_the_workspace_and_the_flag_to_both(tmp_path: Path) -> None:
    workspace = (
        "placement: {system: {nodeSelector: {a: b}}, workload: {gate: {key: k, value: v, effect: NoSchedule}}}\n"
        "bundles: [{name: eks, recipe: eks, placement: {system: {nodeSelector: {c: d}, tolerations: []},"
        " workload: {gate: {key: x, effect: NoExecute}}}}]"
    )
    flags = Flags(settings=(("--system-node-selector e=f", {"placement": {"system": {"nodeSelector": {"e": "f"}}}}),))
    found = values(tmp_path, workspace, flags)
    assert found["hook"] == {"nodeSelector": {"a": "b", "c": "d", "e": "f"}, "tolerations": []}
    assert found["gateText"] == "x:NoExecute"  # a taint is one value


@pytest.mark.parametrize(
    ("setting", "at"),
    [
        ("placement: {nodes: 4}", "nodes:"),
        ("placement: {workload: {selector: {a: b}}}", "selector:"),
        ("placement: {workload: {gate: {key: k, effect: NoSchedule}}}", "gate:"),
        ("placement: {system: {tolerations: []}}", "tolerations:"),
        ("placement: {accelerated: {nodeSelector: {a: b}}}", "nodeSelector:"),
        ("storage: {class: fast}", "class:"),
        ("storage: {sharedClass: fast}", "sharedClass:"),
    ],
)
def test_case_58_a_setting_that_nobody_reads(tmp_path: Path, setting: str, at: str) -> None:
    files = {
        **FILES,
        "components/one": "scheduling: {accelerated: {fixed: labels of its own}}",
        "bundlec.yaml": setting,
    }
    one = the_finding(catalog(tmp_path, files), "eks", "BC2006")
    assert pointed(tmp_path, one.span).startswith(f"bundlec.yaml: {at}")
    reasons = [text for _, text in one.notes]
    assert reasons == (["`one`: labels of its own"] if "accelerated" in setting else [])


def test_a_component_that_is_off_reads_nothing(tmp_path: Path) -> None:
    workspace = "placement: {nodes: 4}\nbundles: [{name: b, recipe: eks, disable: [{component: one, reason: r}]}]"
    the_finding(catalog(tmp_path, {**FILES, "bundlec.yaml": workspace}), "b", "BC2006")


def test_where_a_scope_does_not_reach(tmp_path: Path) -> None:
    workspace = "placement: {accelerated: {nodeSelector: {pool: gpu}}}"
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": workspace})
    one = the_finding(found, "cos", "BC2006")
    assert [text for _, text in one.notes] == ["`one`: agents follow the operator's labels on COS"]


def test_the_trace_names_the_setting(tmp_path: Path) -> None:
    found = recipe(tmp_path, {**FILES, "bundlec.yaml": PLACEMENT}, "eks").components["one"]
    entry = found.trace[("operator", "nodeSelector", "pool")][-1]
    assert entry.layer == "placement.system.nodeSelector"
    assert pointed(tmp_path, entry.origin.span()).startswith("bundlec.yaml: {pool: system}")


# ---------------------------------------------------------------------------------------------------------------------
# What must be set


def required(root: Path, rule: str, overrides: str, workspace: str = "") -> Any:
    spec = f"scheduling: {{system: {{nodeSelector: [db.nodeSelector, web.nodeSelector], require: {rule}}}}}\n"
    spec += "storage: {class: [db.storageClassName]}"
    overlay = f"{{criteria: {{service: eks}}, componentRefs: [{{name: one, overrides: {overrides}}}]}}"
    return catalog(root, {"overlays/eks.yaml": overlay, "components/one": spec, "bundlec.yaml": workspace})


def test_a_required_selector(tmp_path: Path) -> None:
    one = the_finding(required(tmp_path, "true", "{db: {nodeSelector: {a: b}}}"), "eks", "BC2010")
    assert "`one` has no node selector" in one.message
    assert one.fix == "set `placement.system.nodeSelector` (--system-node-selector), or `web.nodeSelector`"
    found = required(tmp_path, "true", "{}", "placement: {system: {nodeSelector: {a: b}}}")
    resolve(found, entry_for(found, "eks"), Flags())


def test_a_selector_that_a_storage_class_requires(tmp_path: Path) -> None:
    """Only the pods whose volumes it is for: what lies beside the class."""
    found = required(tmp_path, "withStorageClass", "{}")
    resolve(found, entry_for(found, "eks"), Flags())
    found = required(tmp_path, "withStorageClass", "{db: {nodeSelector: {a: b}}}", "storage: {class: fast}")
    resolve(found, entry_for(found, "eks"), Flags())
    found = required(tmp_path, "withStorageClass", "{web: {nodeSelector: {a: b}}}", "storage: {class: fast}")
    one = the_finding(found, "eks", "BC2010")
    assert "`db.storageClassName`" in one.message
    assert one.fix
    assert "`db.nodeSelector`" in one.fix


def test_case_76_a_disruptive_component_without_a_selector(tmp_path: Path) -> None:
    spec = """
    disruptive: {text: It reboots., when: {value: .reboot, equals: true}}
    scheduling: {accelerated: {nodeSelector: [sel]}}
    """

    def warned(overrides: str, workspace: str = "") -> list[str]:
        overlay = f"{{criteria: {{service: eks}}, componentRefs: [{{name: one, overrides: {overrides}}}]}}"
        files = {"overlays/eks.yaml": overlay, "components/one": spec, "bundlec.yaml": workspace}
        planned = plan(recipe(tmp_path, files, "eks"))
        return [f"{d.severity} {d.code} {d.message}" for d in planned.warnings]

    assert warned("{reboot: false}") == []
    assert warned("{reboot: true}") == ["warning BC2017 `one` is not limited to any nodes. It reboots."]
    assert warned("{reboot: true}", "placement: {accelerated: {nodeSelector: {a: b}}}") == []
    assert warned("{reboot: true, sel: {a: b}}") == []


# ---------------------------------------------------------------------------------------------------------------------
# The real catalog


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest) -> Any:
    from compiler.load import load
    from tests.conftest import ROOT

    return load(ROOT)


def resolved(real: Any, name: str, settings: dict[str, Any] | None = None, sets: str = "") -> Recipe:
    values: Any = ()
    if sets:
        component, _, text = sets.partition(":")
        values = tuple((component, path, value) for path, value in strvals.parse(text))
    given = (("--x", settings),) if settings else ()
    return resolve(real, entry_for(real, name), Flags(settings=given, set=values))


@pytest.mark.parametrize("recipe", ["gb200-nvke-ubuntu-training", "gb200-nvke-ubuntu-training-kubeflow"])
def test_on_nvke_the_accelerated_nodes_are_those_of_rdma_modules_alone(real: Any, recipe: str) -> None:
    place = {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
    before = plan(resolved(real, recipe))
    after = plan(resolved(real, recipe, {"placement": {"accelerated": place}}))
    changed = [
        a.id
        for a, b in zip(after.releases, before.releases, strict=True)
        if (a.values, a.objects) != (b.values, b.objects)
    ]
    assert changed == ["rdma-modules"]
    (policy,) = [o.data for r in after.releases for o in r.objects if o.kind == "NicClusterPolicy"]
    assert "pci-15b3.present" in str(policy["spec"]["nodeAffinity"])
    assert after.accelerated_selector == "pool=gpu"
    assert before.accelerated_selector == "!node-role.kubernetes.io/control-plane"


@pytest.mark.parametrize("scope", ["system", "accelerated"])
def test_no_component_loses_a_toleration_that_it_needs(real: Any, scope: str) -> None:
    """Each bundle of the catalog: the taint of arm64 nodes, of nodes that are not ready yet, ... stay tolerated."""
    extra = {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
    reached = 0
    for name in real.workspace.bundles:
        before, after = resolved(real, name), resolved(real, name, {"placement": {scope: {"tolerations": [extra]}}})
        for component in before.enabled():
            for path in component.component.scheduling.get(scope, {}).get("tolerations", ()):
                own = lookup(component.values, parse_path(path))
                now = lookup(after.components[component.name].values, parse_path(path))
                own = own if isinstance(own, list) else []
                assert now in ([*own, extra], own), f"{name} {component.name}:{path}"
                reached += now != own
    assert reached > 20


def test_a_toleration_alone_reaches_rdma_modules_on_nvke(real: Any) -> None:
    place = {"placement": {"accelerated": {"tolerations": [{"key": "k", "operator": "Exists"}]}}}
    before, after = (plan(resolved(real, "gb200-nvke-ubuntu-training", given)) for given in (None, place))
    pairs = zip(after.releases, before.releases, strict=True)
    assert [a.id for a, b in pairs if (a.values, a.objects) != (b.values, b.objects)] == ["rdma-modules"]
    (made,) = after.release("rdma-modules").objects
    assert made.data["spec"]["additionalTolerations"] == [{"operator": "Exists"}, {"key": "k", "operator": "Exists"}]


def test_on_nvke_the_taint_is_switched_off(real: Any) -> None:
    (before,) = [r for r in plan(resolved(real, "gb200-nvke-ubuntu-training")).releases if r.id == "rdma-modules"]
    switched = plan(resolved(real, "gb200-nvke-ubuntu-training", sets="rdmamodules:autoTaintNewNodes=false"))
    (after,) = [r for r in switched.releases if r.id == "rdma-modules"]
    assert before.objects[0].data["spec"]["autoTaintNewNodes"] is True
    assert after.objects[0].data["spec"]["autoTaintNewNodes"] is False


def test_a_claim_without_a_class_is_warned_of_on_a4x(real: Any) -> None:
    def claims(settings: dict[str, Any] | None) -> list[str]:
        found = plan(resolved(real, "gb200-gke-cos-training", settings)).warnings
        return [d.message for d in found if "storage class" in d.message]

    assert claims(None)
    system = {"nodeSelector": {"pool": "system"}}
    assert claims({"placement": {"system": system}, "storage": {"class": "hyperdisk"}}) == []
    with_class = {"storage": {"class": "hyperdisk"}}
    assert "BC2010" in {
        d.code
        for d in findings(real, entry_for(real, "gb200-gke-cos-training"), Flags(settings=(("--x", with_class),)))
    }


# ---------------------------------------------------------------------------------------------------------------------
# The command line


def test_tolerations_of_one_option_are_one_list(tmp_path: Path) -> None:
    catalog(tmp_path, FILES)
    given = (
        "--system-node-toleration",
        "a=b:NoExecute",
        "--system-node-toleration",
        "*",
        "--system-node-toleration",
        "c",
    )
    ran = bundlec("resolve", "eks", *given, cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "operator: Equal" in ran.out
    assert ran.out.count("- operator: Exists") == 2  # of the operator and of the hook
    assert "key: c" in ran.out


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--set", "one", "COMPONENT:PATH=VALUE"),
        ("--set", "a=b", "COMPONENT:PATH=VALUE"),
        ("--set", "one:a", "has no value"),
        ("--set-json", "one:a={", "no JSON"),
        ("--set-file", "one:a=/does/not/exist", "cannot be read"),
        ("--system-node-selector", "a", "KEY=VALUE"),
        ("--system-node-selector", "a=b,a=c", "two values"),
        ("--accelerated-node-toleration", "a=b:Never", "KEY[=VALUE][:EFFECT]"),
        ("--workload-gate", "a=b", "effect"),
        ("--nodes", "0", "1 or more"),
        ("--nodes", "many", "1 or more"),
        ("--nodes", "9007199254740993", "at most 2147483647"),
        ("--nodes", "9" * 5000, "at most 2147483647"),
        ("--storage-class", "", "empty"),
    ],
)
def test_what_is_wrong_with_an_option(tmp_path: Path, option: str, value: str, word: str) -> None:
    ran = bundlec("resolve", "leaf", option, value, cwd=write_catalog(tmp_path / "w"))
    assert ran.status == 2
    assert f"'{option}'" in ran.err
    assert word in ran.err


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (("--nodes", "3", "--nodes", "4"), "`--nodes 3` and `--nodes 4` say different things of `nodes`"),
        (("--storage-class", "a", "--storage-class", "b"), "different things of `class`"),
        (("--shared-storage-class", "a", "--shared-storage-class", "b"), "different things of `sharedClass`"),
        (("--system-node-selector", "a=b", "--system-node-selector", "a=c"), "different things of `a`"),
        (("--accelerated-node-selector", "a=b", "--accelerated-node-selector", "a=c"), "different things of `a`"),
        (("--workload-selector", "a=b", "--workload-selector", "a=c"), "different things of `a`"),
        (("--workload-gate", "a:NoSchedule", "--workload-gate", "a:NoExecute"), "different things of `gate`"),
    ],
)
def test_an_option_that_contradicts_itself(tmp_path: Path, given: tuple[str, ...], word: str) -> None:
    ran = bundlec("resolve", "leaf", *given, cwd=write_catalog(tmp_path / "w"))
    assert ran.status == 2
    assert word in ran.err


def test_an_option_that_repeats_or_adds(tmp_path: Path) -> None:
    catalog(tmp_path, FILES)
    given = ("--nodes", "3", "--nodes", "3", "--system-node-selector", "a=b", "--system-node-selector", "c=d")
    ran = bundlec("resolve", "eks", *given, "--format", "json", cwd=tmp_path)
    assert ran.status == 0, ran.err
    (one,) = json.loads(ran.out)["spec"]["components"]
    assert one["values"]["count"] == 3
    assert one["values"]["hook"]["nodeSelector"] == {"a": "b", "c": "d"}


def test_the_text_of_a_file(tmp_path: Path) -> None:
    root = write_catalog(tmp_path / "w")
    (tmp_path / "note.txt").write_text("a: 1\nb\n")
    for command in ("resolve", "build"):
        extra = ["--out", str(tmp_path / "o")] if command == "build" else []
        name = "leaf"
        ran = bundlec(command, name, "--set-file", f"alpha:note={tmp_path}/note.txt", *extra, cwd=root)
        assert ran.status == 0, ran.err
    assert "note: |\n  a: 1\n  b\n" in (tmp_path / "o/leaf/components/alpha/values.yaml").read_text()
    # The file's text decides, not its name: a second build sees the change.
    (tmp_path / "note.txt").write_text("changed\n")
    bundlec("build", "leaf", "--set-file", f"alpha:note={tmp_path}/note.txt", "--out", str(tmp_path / "o"), cwd=root)
    assert "changed" in (tmp_path / "o/leaf/components/alpha/values.yaml").read_text()


def test_the_graph_knows_them_too(tmp_path: Path) -> None:
    root = write_catalog(tmp_path / "w")
    assert (
        "beta"
        not in bundlec("graph", "leaf", "--set", "gamma:enabled=false", "--set", "beta:enabled=false", cwd=root).out
    )


def test_flags_are_shown_as_given() -> None:
    flags = Knobs(set_=(("a", ("b", 0), 1),), nodes=(("--nodes 3", {}),)).flags({"p": "v"}, ("flux",))
    assert shown(flags) == "--profile p=v --deployer flux --set a:b[0] --nodes 3"
