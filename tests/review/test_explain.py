"""`explain`: recipes, objects, edges, gates and order; and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler import pipeline
from compiler.cli import main
from compiler.emit import emitter
from compiler.errors import UserError
from compiler.load import load
from compiler.model import Catalog, Flags, Plan
from compiler.paths import lookup
from compiler.resolve import entry_for, resolve
from compiler.review.explain import objects, order
from compiler.review.explain import recipe as composed
from tests.support import workspaces

GKE, NVKE = "gb200-gke-cos-training", "gb200-nvke-ubuntu-training"


@pytest.fixture(scope="module")
def catalog(root: Path) -> Catalog:
    return load(root)


@pytest.fixture(scope="module")
def plans(catalog: Catalog) -> dict[str, Plan]:
    return {name: pipeline.plan_bundle(catalog, entry, Flags()) for name, entry in catalog.workspace.bundles.items()}


def story(catalog: Catalog, name: str):
    entry = entry_for(catalog, name)
    return composed.story(catalog, entry, Flags(), resolve(catalog, entry, Flags()))


def test_overlays_in_order_and_why_each_matched(catalog: Catalog):
    told = story(catalog, GKE)
    assert [(step.layer, step.what) for step in told.overlays] == [
        ("base", "base of monitoring-hpa, gb200-any, gke-cos"),
        ("monitoring-hpa", "matches every recipe; leaves service, accelerator, os, intent open (on base)"),
        ("gb200-any", "matches accelerator=gb200; leaves service, os, intent open (on base)"),
        ("gke-cos", "base of gke-cos-training"),
        ("gke-cos-training", "base of gb200-gke-cos-training"),
        ("gb200-gke-cos-training", "the recipe itself"),
    ]
    assert told.profile.layer == "gpuStack=gke-default"
    mixins = story(catalog, NVKE).mixins
    assert [step.layer for step in mixins] == ["os-ubuntu"]
    assert "asked for by overlay gb200-nvke-ubuntu-training (overlays" in mixins[0].what


def test_components_name_who_brought_versioned_and_disabled_them(tmp_path: Path):
    catalog = workspaces.catalog(
        tmp_path,
        {
            "bundlec.yaml": "bundles:\n  - name: demo\n    recipe: leaf\n    disable: [{component: b, reason: too large}]\n    set: {A: {x: 2}}\n",
            "components/a": "aliases: [first]\n",
            "components/b": "",
            "components/c": "",
            "components/a/values.yaml": "x: 1\n",
            "overlays/base.yaml": "abstract: true\ncomponentRefs: [{name: a}, {name: b}, {name: c}]\n",
            "overlays/leaf.yaml": "base: base\ncriteria: {service: gke}\ncomponentRefs:\n"
            '  - {name: a, version: "9.9.9", reason: fixes it}\n  - {name: c, enabled: false}\n',
        },
    )
    told = {c.name: c for c in story(catalog, "demo").components}
    a = told["a"]
    assert (a.brought.layer, a.versioned.layer, a.versioned.what) == ("overlay base", "overlay leaf", "9.9.9: fixes it")
    assert [step.layer for step in a.steps] == ["overlay base", "overlay leaf", "bundle demo"]
    assert (told["b"].disabled.layer, told["b"].disabled.at.file) == ("too large", "bundlec.yaml")
    assert (told["c"].disabled.layer, told["c"].disabled.at.file) == ("overlay leaf", "overlays/leaf.yaml")
    assert told["b"].versioned.layer == "component b"


def test_an_object_names_component_release_template_and_what_it_read(catalog: Catalog, plans: dict[str, Plan]):
    (one,) = objects.stories(catalog, plans[NVKE], "configmap/gpu-operator/nvidia-kernel-module-params")
    assert (one.component, one.release) == ("gpu-operator", "gpu-operator-pre")
    assert one.source == "components/gpu-operator/manifests/kernel-module-params.yaml.j2"
    assert [read.path for read in one.reads] == ["values.driver.kernelModuleConfig.name"]
    assert one.reads[0].layer == "overlay nvke"
    assert one.emitted in pipeline.compile_bundle(catalog, entry_for(catalog, NVKE), Flags()).files


def test_every_object_of_every_bundle_is_explained(catalog: Catalog, plans: dict[str, Plan]):
    for plan in plans.values():
        for release in plan.releases:
            for made in release.objects:
                word = "/".join(filter(None, (f"{made.kind}.{made.group}", made.namespace, made.name)))
                told = objects.stories(catalog, plan, word)
                assert [(one.component, one.release) for one in told] == [(release.component, release.id)]
                for read in told[0].reads:
                    if read.path.startswith("values.") and read.set:
                        assert read.at is not None, (word, read)


def test_reads_are_complete(tmp_path: Path):
    """What a template asks for, in every way that Jinja has, and nothing that it does not."""
    files = {
        "bundlec.yaml": "bundles: [{name: demo, recipe: leaf}]\n",
        "components/a/component.yaml": "namespace: {name: a}\nmanifests: {main: [manifests/x.yaml.j2, manifests/y.yaml.j2]}\n",
        "components/a/values.yaml": """\
            plain: 1
            map: {one: 1, two: 2}
            deep: {er: {leaf: v}}
            list: [{name: item}]
            flag: false
            never: 1
            tested: {inner: 1}
            asJson: {k: v}
            """,
        "components/a/manifests/x.yaml.j2": """\
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: x-{{ component.name }}}
            data:
              a: "{{ values.plain }}{{ values['deep'].er.leaf }}"
              b: "{{ recipe.criteria.service }}{% if values.flag %}{{ values.never }}{% endif %}"
              c: "{% for item in values.list %}{{ item.name }}{% endfor %}"
              d: "{% for key, v in values.map.items() %}{{ key }}{% endfor %}"
              e: "{% if values.absent is defined %}x{% endif %}{{ values.get('also', 'none') }}"
              f: "{% if 'inner' in values.tested %}y{% endif %}"
              g: {{ values.asJson | to_json | to_json }}
            """,
        "components/a/manifests/y.yaml.j2": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: why}\ndata: {never: '{{ values.never }}'}\n",
        "overlays/leaf.yaml": "criteria: {service: gke}\ncomponentRefs: [{name: a}]\n",
    }
    catalog = workspaces.catalog(tmp_path, files)
    plan = pipeline.plan_bundle(catalog, entry_for(catalog, "demo"), Flags())
    (one,) = objects.stories(catalog, plan, "ConfigMap/x-a")
    assert [(read.path, read.set) for read in one.reads] == [
        ("component.name", True),
        ("recipe.criteria.service", True),
        ("values.absent", False),
        ("values.also", False),
        ("values.asJson", True),
        ("values.deep.er.leaf", True),
        ("values.flag", True),
        ("values.list", True),
        ("values.map", True),
        ("values.plain", True),
        ("values.tested.inner", True),
    ]


def test_an_object_of_a_chart_or_of_the_compiler_is_known_as_far_as_it_is_declared(catalog: Catalog, plans):
    (crd,) = objects.stories(catalog, plans[GKE], "CustomResourceDefinition/clusterpolicies.nvidia.com")
    assert (crd.component, crd.rendered) == ("gpu-operator", False)
    (space,) = objects.stories(catalog, plans[GKE], "Namespace/monitoring")
    assert space.emitted == "namespaces/monitoring.yaml"
    (quota,) = objects.stories(catalog, plans[GKE], "ResourceQuota/gpu-operator/gcp-critical-pods")
    assert quota.release == "gpu-operator-pre"
    with pytest.raises(UserError) as caught:
        objects.stories(catalog, plans[NVKE], "ConfigMap/gpu-operator/nvidia-kernel-module-param")
    assert "`ConfigMap/gpu-operator/nvidia-kernel-module-params`" in caught.value.diagnostics[0].fix


def test_the_strength_of_every_edge_is_what_the_emitted_files_hold(catalog: Catalog, plans: dict[str, Plan]):
    """What `explain` says a deployer does is compared with what is read back from that deployer's files."""
    for name, plan in plans.items():
        files = pipeline.compile_bundle(catalog, entry_for(catalog, name), Flags()).files
        wirings = {deployer: emitter(deployer).read_back(files) for deployer in plan.settings.deployers}
        text = {path: body.decode() for path, body in files.items()}
        for edge in plan.edges:
            for told in order.edges(plan, edge.provider, edge.dependant):
                if (told.provider, told.dependant) != (edge.provider, edge.dependant):
                    continue
                for hold in told.holds:
                    wiring = wirings[hold.deployer]
                    pair = (edge.provider, edge.dependant)
                    gate = next((r.gate for r in plan.releases if r.id == edge.dependant), None)
                    held = gate is not None and edge.provider in gate.after and edge.dependant in wiring.guards
                    # deploy.sh is one line of steps: neighbours alone are pairs of its wiring.
                    hard = held or pair in wiring.hard or hold.deployer == "deploy.sh"
                    assert hold.hard == hard, (name, hold, pair)
                    assert hold.hard or not edge.hard
                    if hold.deployer == "flux":
                        assert (
                            f"name: {plan.settings.prefix}-{edge.provider}\n"
                            in text[f"flux/graph/{edge.dependant}.yaml"]
                        )


def test_the_jobs_that_are_named_for_argo_cd_are_emitted(catalog: Catalog, plans: dict[str, Plan]):
    for name, plan in plans.items():
        files = pipeline.compile_bundle(catalog, entry_for(catalog, name), Flags()).files
        guards = "".join(body.decode() for path, body in files.items() if path.startswith("argocd/guards/"))
        for release in plan.releases:
            if release.gate is not None:
                told = next(h for h in order.gate(plan, release.id).holds if h.deployer == "argocd")
                hook, _, job = told.text.split()[:3]
                at = guards.index(f"name: {job}\n")
                start = guards.rindex("kind: Job", 0, at)
                assert f"argocd.argoproj.io/hook: {hook}" in guards[start : at + 2000]


def test_a_gate_names_its_checks_and_the_lines_behind_it(plans: dict[str, Plan]):
    told = order.gate(plans[NVKE], "sriov-ib-networks")
    assert told.after == ("network-operator", "network-operator-post")
    assert {check.text for check in told.checks} >= {"CRD ippools.nv-ipam.nvidia.com is Established"}
    assert {cause.kind for edge in told.edges for cause in edge.causes} == {"api", "declared", "runtime-api"}
    with pytest.raises(UserError) as caught:
        order.gate(plans[NVKE], "cert-manager")
    assert "gates stand in front of" in caught.value.diagnostics[0].fix


def test_the_shortest_chain_of_reasons(plans: dict[str, Plan]):
    told = order.order(plans[NVKE], "nfd", "kai-scheduler")
    assert [edge.dependant for edge in told.chain] == ["gpu-operator-pre", "gpu-operator", "kai-scheduler"]
    turned = order.order(plans[NVKE], "kai-scheduler", "nfd")
    assert (turned.first, turned.notes) == ("nfd", ("it is the other way round: nfd comes before kai-scheduler",))
    free = order.order(plans[NVKE], "nodewright-operator", "nfd")
    assert (free.first, free.chain) == ("nfd", ())
    assert "nothing orders the two" in free.notes[0]


@pytest.mark.parametrize("pair", [("nfd", "kai-scheduler"), ("nfd", "nothing-such"), ("nfd", "nfd")])
def test_an_edge_that_is_not_there_is_refused_with_what_is(plans: dict[str, Plan], pair: tuple[str, str]):
    with pytest.raises(UserError) as caught:
        order.edges(plans[NVKE], *pair)
    assert caught.value.diagnostics[0].code == "BC2016"


COMMANDS = (
    [GKE],
    [GKE, "gpu-operator"],
    [GKE, "gpu-operator", "driver.enabled"],
    [GKE, "gpu-operator", "driver"],
    [NVKE, "--object", "ConfigMap/gpu-operator/nvidia-kernel-module-params"],
    [NVKE, "--edge", "network-operator", "sriov-ib-networks"],
    [NVKE, "--gate", "sriov-ib-networks"],
    [NVKE, "--order", "nfd", "kai-scheduler"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_question_has_an_answer_in_words_and_as_json(root: Path, capsys, command: list[str]):
    assert main(["-C", str(root), "explain", *command]) == 0
    words = capsys.readouterr().out
    assert "Place(" not in words
    assert "MISSING" not in words
    assert main(["-C", str(root), "explain", *command, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data
    if command[1:] == ["gpu-operator", "driver.enabled"]:
        assert lookup(data, ("winner", "at", "file")) == "components/gpu-operator/values-gke-cos-training.yaml"
        assert "gpu-operator:driver.enabled = false\n  components/gpu-operator/values-gke-cos-training.yaml:" in words


def test_two_questions_at_once_are_a_usage_error(root: Path, capsys):
    assert main(["-C", str(root), "explain", NVKE, "nfd", "--gate", "nfd"]) == 2


def test_the_help_shows_the_uses_a_line_each(capsys):
    assert main(["explain", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  bundlec explain RECIPE COMPONENT        all values of a component, each with its line" in lines


def test_a_release_that_is_called_like_its_component_has_an_order_with_its_other_pieces(plans: dict[str, Plan]):
    told = order.order(plans[NVKE], "gpu-operator-pre", "gpu-operator")
    assert [(e.provider, e.dependant) for e in told.chain] == [("gpu-operator-pre", "gpu-operator")]
    with pytest.raises(UserError):
        order.order(plans[NVKE], "gpu-operator", "gpu-operator")
