"""Settings that Kubernetes or a controller would not take, in bundlec.yaml and as flags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler.errors import UserError
from compiler.load import load
from compiler.model import Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve
from tests.conftest import ROOT
from tests.knobs.test_placement import FILES
from tests.support.scratch import bundlec
from tests.support.workspaces import catalog, findings, pointed

HEAD = "apiVersion: bundlec.dev/v1alpha1\nkind: Workspace\nspec:\n"


@pytest.mark.parametrize(
    "written",
    [
        "gates: {poll: 0s}",
        "gates: {poll: 0h0m0s}",
        'gates: {poll: "-5s"}',
        "gates: {poll: 1.5s}",
        "gates: {poll: 9999999h}",
        "flux: {source: {interval: 0m}}",
        "gates: {timeoutScale: 0}",
        "gates: {timeoutScale: -1}",
        "gates: {timeoutScale: 1.0e+300}",
        "gates: {minNodes: -1}",
        "placement: {nodes: 0}",
        "placement: {nodes: -3}",
        "placement: {nodes: 2147483648}",
        "placement: {nodes: 18.5}",
    ],
)
def test_a_number_or_duration_that_makes_no_sense(tmp_path: Path, written: str) -> None:
    """Where it is written, not in a script that polls without a pause at night."""
    (tmp_path / "bundlec.yaml").write_text(f"{HEAD}  {written}\n")
    with pytest.raises(UserError) as caught:
        load(tmp_path)
    (one,) = caught.value.diagnostics
    assert one.code == "BC1102"
    value = written.rpartition(": ")[2].rstrip("}")
    assert pointed(tmp_path, one.span).removeprefix("bundlec.yaml: ").startswith(value)


@pytest.mark.parametrize("field", ["install: {timeout: 0s}", "readiness: {api: {checks: [up], timeout: 0m}}"])
def test_a_deadline_of_no_length(tmp_path: Path, field: str) -> None:
    component = f"checks: {{up: {{deployment: {{name: x}}}}}}\n{field}"
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {**FILES, "components/one": component})
    assert "BC1102" in [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("written", "place", "word"),
    [
        ("gates: {job: {pullSecrets: [a, a]}}", "a]", "stands twice"),
        ("gates: {job: {pullSecrets: [ok, Bad]}}", "Bad]", "no name of a Kubernetes object"),
        ("gates: {job: {priorityClass: A B}}", "A B", "no name"),
        ("gates: {job: {image: a b}}", "a b", "no image"),
        ("gates: {job: {image: 'kubectl:'}}", "'kubectl:'", "no image"),
        ("gates: {job: {nodeSelector: {a b: c}}}", "c}", "no key"),
        ("gates: {job: {tolerations: [{operator: Equal}]}}", "{operator: Equal}", "tolerates nothing"),
        ("flux: {source: {secretRef: Bad Name}}", "Bad Name", "no name"),
        ("flux: {kubeConfig: Bad}", "Bad", "no name"),
        ("argocd: {project: a b}", "a b", "no name"),
        ("argocd: {destination: {server: x y}}", "x y", "no address"),
        ("argocd: {destination: {server: 10.0.0.1}}", "10.0.0.1", "no address"),
        ("git: {url: https://x z, revision: main}", "https://x z", "blanks"),
        ("storage: {class: Fast Zonal}", "Fast Zonal", "no name"),
        ("storage: {sharedClass: NFS}", "NFS", "no name"),
        ("placement: {system: {nodeSelector: {pool: not ok}}}", "not ok", "no value of a label"),
        ("placement: {accelerated: {tolerations: [{key: a, operator: Exists, value: x}]}}", "x}", "takes no value"),
        ("placement: {system: {tolerations: [{key: a, value: x, tolerationSeconds: 3}]}}", "3}", "runs out"),
        ("placement: {workload: {gate: {key: /x, effect: NoSchedule}}}", "/x", "no key"),
        ("placement: {workload: {gate: {key: x, value: a b, effect: NoSchedule}}}", "a b", "no value of a taint"),
    ],
)
def test_what_kubernetes_would_not_take(tmp_path: Path, written: str, place: str, word: str) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": written})
    (one,) = [d for d in findings(found, "eks") if d.code != "BC2006"]
    assert one.code == "BC1102"
    assert word in one.message
    assert one.fix
    assert pointed(tmp_path, one.span).removeprefix("bundlec.yaml: ").startswith(place)


@pytest.mark.parametrize(
    "written",
    [
        "gates: {job: {image: 'registry.k8s.io:5000/a/kubectl:v1.36.3'}}",
        "gates: {job: {image: kubectl}}",
        "gates: {job: {image: 'ghcr.io/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}}",
        "gates: {job: {tolerations: [{operator: Exists}, {key: a.b/c_d, effect: NoExecute, tolerationSeconds: 30}]}}",
        "placement: {system: {nodeSelector: {node-role.kubernetes.io/infra: ''}}}",
        "argocd: {project: team.gpu, destination: {server: 'https://10.0.0.1:6443'}}",
        "git: {url: 'git@git.example.com:platform/bundles.git', revision: main}",
    ],
)
def test_what_it_takes(tmp_path: Path, written: str) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": written})
    resolve(found, entry_for(found, "eks"), Flags())


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (("--storage-class", "A B"), "no name of a Kubernetes object"),
        (("--system-node-selector", "x y=z"), "no key"),
        (("--accelerated-node-toleration", "a b"), "no key"),
        (("--workload-gate", "k=v w:NoSchedule"), "no value of a taint"),
    ],
)
def test_flags_are_held_to_the_same(tmp_path: Path, given: tuple[str, ...], word: str) -> None:
    catalog(tmp_path, FILES)
    ran = bundlec("resolve", "eks", *given, cwd=tmp_path)
    assert ran.status == 1
    assert f"{' '.join(given)}: [BC1102]" in ran.err
    assert word in ran.err


@pytest.mark.parametrize(
    "field",
    [
        "scheduling: {system: {nodeSelector: [../..]}}",
        "scheduling: {accelerated: {tolerations: [a..b]}}",
        "scheduling: {workload: {nodeCount: ['a b]']}}",
        "scheduling: {workload: {taints: [{path: 'a[', form: string}]}}",
        "storage: {class: ['..']}",
        "storage: {sharedClass: ['[x']}",
        "images: [{path: 'a..b'}]",
        "risks: [{path: 'a[', text: x}]",
    ],
)
def test_a_path_that_is_none(tmp_path: Path, field: str) -> None:
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {**FILES, "components/one": field})
    assert [d.code for d in caught.value.diagnostics] == ["BC1102"]
    assert "is not a dotted path" in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    "field",
    [
        "requires: [{group: g.example.org, kind: K}]",
        "creates: [{group: g.example.org, kind: K}]",
        "hooks: [{event: pre-install, name: h, effect: e}]",
        "subcharts: [{name: s}]",
        "crds: [{name: ks.g.example.org, kind: K, scope: Cluster, from: templates}]",
    ],
)
def test_what_is_said_of_a_chart_that_is_not_there(tmp_path: Path, field: str) -> None:
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {**FILES, "components/one/component.yaml": f"namespace: {{name: one}}\n{field}"})
    assert ["has none" in d.message for d in caught.value.diagnostics] == [True]


@pytest.mark.parametrize("name", ["x" * 300, "a\\0b"])
def test_a_file_name_that_no_disk_has(tmp_path: Path, name: str) -> None:
    overlay = f'{{base: base, criteria: {{service: eks}}, componentRefs: [{{name: one, manifestFiles: ["{name}"]}}]}}'
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {**FILES, "overlays/eks.yaml": overlay})
    assert {d.code for d in caught.value.diagnostics} <= {"BC1001", "BC1006", "BC1102", "BC1206"}


NULLED = {
    "overlays/eks.yaml": "criteria: {service: eks}\ncomponentRefs: [{name: web}]\nassertions:\n"
    "  - {id: tagged, that: {value: 'web:image.tag', exists: true}, message: a tag is needed}\n"
    "  - {id: made, that: {objects: {kind: ConfigMap}, count: {atLeast: 1}}, message: it is there}\n",
    "components/web/component.yaml": "namespace: {name: web}\nmanifestValues: [image, text, other]\n"
    "manifests: {main: [m.yaml.j2]}\n",
    "components/web/values.yaml": "image: {name: a, tag: b}\ntext: t\nother: {a b: 1}\n",
    "components/web/m.yaml.j2": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
    "  a: {{ values.image.name | to_json }}\n  b: {{ values['text'] | to_json }}\n"
    '  c: "{{ values.other["a b"] }}"\n',
}


@pytest.mark.parametrize(
    ("path", "told", "fix"),
    [
        (
            ("image",),
            [
                ("BC3006", "`web:image: null` (--set) takes `image.tag` away, and a rule looks at it: a tag is needed"),
                (
                    "BC3007",
                    "`web:image: null` (--set) takes `image.name` away, and a template of the component reads it",
                ),
            ],
            "set what should change below `image` key by key; null deletes all of it",
        ),
        (
            ("image", "tag"),
            [
                (
                    "BC3006",
                    "`web:image.tag: null` (--set) takes `image.tag` away, and a rule looks at it: a tag is needed",
                )
            ],
            "give `image.tag` another value instead of null",
        ),
        (
            ("text",),
            [("BC3007", "`web:text: null` (--set) takes `text` away, and a template of the component reads it")],
            "give `text` another value instead of null",
        ),
        (
            ("other",),
            [("BC3007", "`web:other: null` (--set) takes `other.a b` away, and a template of the component reads it")],
            "set what should change below `other` key by key; null deletes all of it",
        ),
    ],
)
def test_a_null_that_takes_away_what_is_read(
    tmp_path: Path, path: tuple[str, ...], told: list[tuple[str, str]], fix: str
) -> None:
    """The null is told, not its reader, and nothing of the objects that cannot be rendered without it."""
    found = catalog(tmp_path, NULLED)
    flags = Flags(set=(("web", path, None),))
    with pytest.raises(UserError) as caught:
        plan(resolve(found, entry_for(found, "eks"), flags))
    shown = [(d.code, d.message.partition(" (rule")[0]) for d in caught.value.diagnostics]
    assert sorted(shown) == told
    for one in caught.value.diagnostics:
        assert str(one.fix).startswith(fix)
        assert str(one.span).startswith(f"<--set web:{'.'.join(path)}>")


@pytest.mark.parametrize("expression", ["values.size | dictsort", "values.size.a()", "[][3]", "{}['a'].b", "1 / 0"])
def test_a_template_that_cannot_be_rendered(tmp_path: Path, expression: str) -> None:
    """Whatever the expression raises, the finding names the template and its line."""
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: {{ " + expression + " }}\n"
    files = {
        "overlays/eks.yaml": "{criteria: {service: eks}, componentRefs: [{name: web}]}",
        "components/web/component.yaml": "namespace: {name: web}\nmanifestValues: [size]\nmanifests: {main: [m.yaml.j2]}",
        "components/web/values.yaml": "size: true\n",
        "components/web/m.yaml.j2": manifest,
    }
    found = catalog(tmp_path, files)
    with pytest.raises(UserError) as caught:
        plan(resolve(found, entry_for(found, "eks"), Flags()))
    (one,) = caught.value.diagnostics
    assert one.code == "BC3007"
    assert one.span is not None
    assert (one.span.file, one.span.line) == ("components/web/m.yaml.j2", 5)


# ---------------------------------------------------------------------------------------------------------------------
# Inputs whose values must differ, and chains of overlays

INPUT = """
base: base
criteria: {service: eks}
componentRefs: [{name: one}]
inputs:
  nics: {type: object, distinct: true}
  list: {type: array, distinct: true}
"""


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("{nics: {eth1: a, eth2: b, eth3: a}}", "`eth3` and `eth1` are the same, a"),
        ("{list: [1, 2, 2]}", "`2` and `1` are the same, 2"),
        ("{list: [1, true, x], nics: {a: x, b: z}}", None),
    ],
)
def test_values_that_must_differ(tmp_path: Path, inputs: str, said: str | None) -> None:
    workspace = f"bundles: [{{name: b, recipe: eks, inputs: {inputs}}}]"
    found = catalog(tmp_path, {**FILES, "overlays/eks.yaml": INPUT, "bundlec.yaml": workspace})
    if said is None:
        resolve(found, entry_for(found, "b"), Flags())
        return
    (one,) = findings(found, "b")
    assert one.code == "BC2011"
    assert said in one.message
    assert pointed(tmp_path, one.span).startswith(("bundlec.yaml: a}", "bundlec.yaml: 2]"))


def test_the_networks_of_tcpxo_are_eight_different_ones() -> None:
    real = load(ROOT)
    entry = entry_for(real, "h100-gke-cos-training-kubeflow")
    same = {**entry.inputs["tcpxoInterfaces"], "eth8": entry.inputs["tcpxoInterfaces"]["eth1"]}
    (one,) = findings(real, replace(entry, inputs={"tcpxoInterfaces": same}))
    assert one.message == "input `tcpxoInterfaces`: `eth8` and `eth1` are the same, gpu-nic-0"


@pytest.mark.parametrize("length", [10, 11, 13])
def test_a_chain_of_overlays_has_a_limit(tmp_path: Path, length: int) -> None:
    files = {"overlays/o1.yaml": ""} | {f"overlays/o{n}.yaml": f"base: o{n - 1}" for n in range(2, length + 1)}
    if length == 10:
        catalog(tmp_path, files)
        return
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, files)
    (one,) = caught.value.diagnostics
    assert one.code == "BC1211"
    assert one.span is not None
    assert one.span.file == "overlays/o11.yaml"
    assert "o1 <- o2 <- o3" in one.message


def test_a_long_cycle_is_a_cycle(tmp_path: Path) -> None:
    files = {f"overlays/o{number}.yaml": f"base: o{(number + 1) % 12}" for number in range(12)}
    with pytest.raises(UserError) as caught:
        catalog(tmp_path, {**files, "overlays/base.yaml": ""})
    assert [d.code for d in caught.value.diagnostics] == ["BC1205"]
