"""The `when:` language: what it accepts, what it says to faults, and strict evaluation without vacuous truth."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import predicates, yamlio
from compiler.errors import Collector, InternalError, UserError
from compiler.model import ComponentFacts, Facts, Predicate
from compiler.source import Document


def parsed(text: str, **how: Any) -> Predicate:
    found = Collector()
    document = yamlio.load(text, "f.yaml")
    predicate = predicates.parse(document.data, document.at(), found, **how)
    assert found.found == []
    return predicate


def faults(text: str, **how: Any) -> list[str]:
    found = Collector()
    document = yamlio.load(text, "f.yaml")
    predicates.parse(document.data, document.at(), found, **how)
    assert all(d.code == "BC1209" for d in found.found)
    return [f"{d.span}: {d.message}" + (f" | {d.fix}" if d.fix else "") for d in found.found]


def policy(**spec: Any) -> tuple[str, dict[str, Any]]:
    return (
        "network-operator",
        {
            "apiVersion": "mellanox.com/v1alpha1",
            "kind": "NicClusterPolicy",
            "metadata": {"name": "nic-cluster-policy"},
            "spec": spec,
        },
    )


def network_policy(name: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    return (
        "sriov-ib-networks",
        {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetworkNodePolicy",
            "metadata": {"name": name, "namespace": "net"},
            "spec": spec,
        },
    )


def facts(*objects: tuple[str, dict[str, Any]], **changes: Any) -> Facts:
    given: dict[str, Any] = {
        "recipe": {"name": "leaf", "service": "gke", "nodes": 8},
        "profile": {"gpuStack": "gke-default"},
        "inputs": {"size": 3, "flag": True},
        "components": {
            "gpu-operator": ComponentFacts(
                enabled=True,
                version="v26.7.1",
                values={
                    "driver": {"enabled": True, "version": "580.1", "rdma": None, "count": 1, "ratio": 1.0},
                    "list": ["a", 1, True, {"k": "v"}],
                    "root": "/run",
                    "empty": {},
                    "labels": {"a.b/c": "x"},
                    "word": "v-next",
                },
            ),
            "dra": ComponentFacts(enabled=True, version="0.5.1", values={"root": "/run", "one": "1"}),
            "idle": ComponentFacts(enabled=False, version="1.0.0", values={"x": 1}),
            "bare": ComponentFacts(enabled=True, version=None, values={}),
        },
        "validation": {
            "performance": {"constraints": [{"name": "nccl.bw-net", "value": ">= 40"}]},
            "deployment": {},
        },
        "constraints": {"K8s.server.version": ">= 1.34"},
        "objects": objects,
    }
    return Facts(**{**given, **changes})


def holds(text: str, *objects: tuple[str, dict[str, Any]], **changes: Any) -> bool:
    return predicates.evaluate(parsed(text, component="gpu-operator", objects=True), facts(*objects, **changes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{recipe: service, equals: gke}", True),
        ("{recipe: name, equals: leaf}", True),
        ("{recipe: os, equals: cos}", False),
        ("{recipe: os, exists: false}", True),
        ("{recipe: os, notEquals: cos}", False),
        ("{recipe: nodes, atLeast: 8}", True),
        ("{recipe: nodes, atMost: 7}", False),
        ("{profile: gpuStack, in: [a, gke-default]}", True),
        ("{profile: other, in: [a]}", False),
        ("{input: size, equals: 3}", True),
        ("{input: flag, equals: true}", True),
        ("{component: dra, enabled: true}", True),
        ("{component: idle, enabled: true}", False),
        ("{component: idle, enabled: false}", True),
        ("{component: absent, enabled: false}", True),
        ('{component: dra, version: ">= 0.5.1"}', True),
        ('{component: dra, version: ">= 0.5.1, < 0.5.1"}', False),
        ('{component: idle, version: ">= 0.1"}', False),
        ('{component: bare, version: ">= 0.1"}', False),
        ("{validation: performance.nccl.bw-net, exists: true}", True),
        ("{validation: performance.other, exists: true}", False),
        ("{validation: deployment.x, exists: false}", True),
        ('{constraint: K8s.server.version, equals: ">= 1.34"}', True),
        ('{value: ".driver.version", version: ">= 580"}', True),
        ('{value: "gpu-operator:driver.enabled", equals: true}', True),
        ('{value: ".driver.missing", exists: false}', True),
        ('{value: ".driver.rdma", exists: false}', True),
        ('{value: ".driver.rdma", notEquals: x}', False),
        ('{value: ".driver.version.deeper", exists: false}', True),
        ('{value: "idle:x", equals: 1}', False),
        ('{value: "idle:x", exists: false}', True),
        ('{value: ".labels[\\"a.b/c\\"]", equals: x}', True),
        ('{value: ".list[3].k", equals: v}', True),
        ('{value: ".root", sameAs: "dra:root"}', True),
        ('{value: ".root", sameAs: ".driver.version"}', False),
        ('{value: "dra:nothing", sameAs: ".nothing"}', False),
        ('{value: ".list", contains: a}', True),
        ('{value: ".list", contains: {k: v}}', True),
        ('{value: ".list", contains: "1"}', False),
        ('{value: ".driver", contains: enabled}', True),
        ('{value: ".root", contains: un}', True),
        ('{value: ".root", matches: "/r.n"}', True),
        ('{value: ".root", matches: "/r"}', False),
        ('{value: ".driver.enabled", matches: "true"}', False),
        ('{value: ".driver.version", atLeast: 1}', False),
        ('{value: ".driver.enabled", atLeast: 1}', False),
        ('{value: ".empty", equals: {}}', True),
        ('{value: ".empty", exists: true}', True),
        ("{all: [{recipe: service, equals: gke}, {not: {recipe: os, exists: true}}]}", True),
        ("{any: [{recipe: service, equals: eks}, {recipe: os, exists: true}]}", False),
    ],
)
def test_evaluation(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{value: ".driver.count", equals: 1}', True),
        ('{value: ".driver.count", equals: true}', False),
        ('{value: ".driver.count", equals: "1"}', False),
        ('{value: ".driver.count", equals: 1.0}', True),
        ('{value: ".driver.enabled", equals: 1}', False),
        ('{value: ".driver.enabled", in: [1, "true"]}', False),
        ('{value: ".driver.enabled", notEquals: 1}', True),
        ('{value: ".driver.count", sameAs: "dra:one"}', False),
    ],
)
def test_types_are_strict(text: str, expected: bool) -> None:
    assert holds(text) is expected


RAILS = (network_policy("a", numVfs=16, pf=["x", "z"]), network_policy("b", numVfs=8, pf=[]))
GROUP = "objects: {group: sriovnetwork.openshift.io, kind: SriovNetworkNodePolicy}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{{{GROUP}, every: {{path: spec.numVfs, atMost: 16}}}}", True),
        (f"{{{GROUP}, every: {{path: spec.numVfs, atMost: 15}}}}", False),
        (f"{{{GROUP}, some: {{path: spec.numVfs, atMost: 8}}}}", True),
        (f"{{{GROUP}, none: {{path: spec.numVfs, atLeast: 17}}}}", True),
        (f"{{{GROUP}, none: {{path: spec.numVfs, equals: 8}}}}", False),
        (f"{{{GROUP}, every: {{path: spec.linkType, equals: IB}}}}", False),
        (f"{{{GROUP}, none: {{path: spec.linkType, exists: true}}}}", True),
        (f"{{{GROUP}, count: {{equals: 2}}}}", True),
        (f"{{{GROUP}, count: {{atLeast: 1, atMost: 1}}}}", False),
        (f"{{{GROUP}, some: {{path: 'spec.pf[*]', equals: z}}}}", True),
        (f"{{{GROUP}, every: {{path: 'spec.pf[*]', matches: '[xz]'}}}}", False),  # the second has none
        (
            f"{{{GROUP[:-1]}, name: a}}, count: {{equals: 1}}}}",
            True,
        ),
        (
            f"{{{GROUP[:-1]}, namespace: q}}, count: {{equals: 0}}}}",
            True,
        ),
        (
            f"{{{GROUP[:-1]}, component: z}}, count: {{equals: 0}}}}",
            True,
        ),
        ("{objects: {kind: SriovNetworkNodePolicy}, count: {equals: 0}}", True),  # the core group has no such kind
    ],
)
def test_objects(text: str, expected: bool) -> None:
    assert holds(text, *RAILS, policy()) is expected


def test_every_over_nothing_is_false_and_none_is_true() -> None:
    assert not holds(f"{{{GROUP}, every: {{path: spec.numVfs, atMost: 16}}}}")
    assert not holds(f"{{{GROUP}, every: {{path: spec.numVfs, exists: false}}}}")
    assert not holds(f"{{{GROUP}, some: {{path: spec.numVfs, atMost: 16}}}}")
    assert holds(f"{{{GROUP}, none: {{path: spec.numVfs, atMost: 16}}}}")


def test_items_chosen_by_a_field() -> None:
    env = network_policy("c", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])
    assert holds(f"{{{GROUP}, some: {{path: 'spec.env[name=\"B\"].value', equals: '2'}}}}", env)
    assert holds(f"{{{GROUP}, none: {{path: 'spec.env[name=\"C\"].value', exists: true}}}}", env)


def test_objects_before_rendering_are_our_bug() -> None:
    with pytest.raises(InternalError):
        holds(f"{{{GROUP}, count: {{equals: 0}}}}", objects=None)


@pytest.mark.parametrize("path", [".word", ".driver.count", ".driver"])
def test_an_order_of_versions_that_cannot_be_decided_is_an_error(path: str) -> None:
    with pytest.raises(UserError) as caught:
        holds(f'{{value: "{path}", version: ">= 1"}}')
    assert [str(d.span) for d in caught.value.diagnostics] == ["f.yaml:1:1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "f.yaml:1:1: a predicate is a mapping, not a list"),
        ("{}", "f.yaml:1:1: a predicate names exactly one subject, this one names no subject"),
        ("{recipe: os, input: x, equals: 1}", "this one has recipe and input"),
        ("{recipes: os, equals: 1}", "f.yaml:1:2: unknown key `recipes` in a predicate | did you mean `recipe`?"),
        ("{recipe: oss, equals: x}", "f.yaml:1:10: a recipe has no `oss` | did you mean `os`?"),
        ("{recipe: os, equal: x}", "f.yaml:1:14: unknown key `equal` in a `recipe` predicate | did you mean `equals`?"),
        ("{recipe: os}", "`recipe` takes exactly one operator, here: none"),
        ("{recipe: os, equals: a, exists: true}", "here: equals and exists"),
        ("{recipe: os, equals: null}", "f.yaml:1:22: null is no operand of `equals`"),
        ("{recipe: os, exists: maybe}", "f.yaml:1:22: `exists` is true or false"),
        ("{recipe: os, in: []}", "`in` takes a list that is not empty"),
        ("{recipe: os, in: x}", "`in` takes a list that is not empty"),
        ("{recipe: os, matches: '['}", "`[` is no regular expression"),
        ("{recipe: os, version: '>='}", "lacks an operand"),
        ("{recipe: os, version: 1.5}", "`version` takes a string, not the number 1.5"),
        ("{recipe: os, atLeast: '1'}", '`atLeast` takes a number, not the string "1"'),
        ("{recipe: os, atMost: true}", "`atMost` takes a number, not true"),
        ("{recipe: 1, equals: 1}", "`recipe` names something: a string, not the number 1"),
        ("{value: driver.rdma, exists: true}", "f.yaml:1:9: `driver.rdma` is no value"),
        ("{value: .driver.rdma, exists: true}", "does not say whose value it is | write <component>:driver.rdma"),
        ("{value: 'a:b..c', exists: true}", "f.yaml:1:9:"),
        ("{value: 'a:b', sameAs: x}", "f.yaml:1:24: `x` is no value"),
        ("{validation: performance, exists: true}", "names no constraint of a phase"),
        ("{component: x}", "exactly one of `enabled` and `version`"),
        ("{component: x, enabled: true, version: '1'}", "exactly one of `enabled` and `version`"),
        ("{component: x, enabled: 'true'}", '`enabled` is true or false, not the string "true"'),
        ("{component: x, equals: 1}", "unknown key `equals` in a `component` predicate"),
        ("{all: []}", "`all` takes a list of predicates that is not empty"),
        ("{any: {recipe: os, exists: true}}", "`any` takes a list"),
        ("{not: []}", "f.yaml:1:7: a predicate is a mapping, not a list"),
        ("{not: {recipe: os, exists: true}, exists: true}", "unknown key `exists` in a `not` predicate"),
        ("{all: [{recipe: os, exists: true}, {recipe: oz, exists: true}]}", "f.yaml:1:45: a recipe has no `oz`"),
    ],
)
def test_faults_are_told_where_they_stand(text: str, message: str) -> None:
    assert any(message in fault for fault in faults(text)), faults(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{objects: {group: ''}, count: {equals: 1}}", "`kind` is missing"),
        ("{objects: {kind: X, kinds: Z}, count: {equals: 1}}", "unknown key `kinds` in `objects`"),
        ("{objects: {kind: X, name: 1}, count: {equals: 1}}", "`name` is a string, not the number 1"),
        ("{objects: {kind: X}}", "takes exactly one of every, some, none, count"),
        ("{objects: {kind: X}, every: [], some: []}", "takes exactly one of"),
        ("{objects: {kind: X}, each: {path: a, equals: 1}}", "unknown key `each` in an `objects` predicate"),
        ("{objects: {kind: X}, every: []}", "`every` takes a mapping, not a list"),
        ("{objects: {kind: X}, every: {equals: 1}}", "`path` is missing"),
        ("{objects: {kind: X}, every: {path: 'a[', equals: 1}}", "is no path"),
        ("{objects: {kind: X}, every: {path: a}}", "takes exactly one operator"),
        ("{objects: {kind: X}, count: {}}", "takes at least one of"),
        ("{objects: {kind: X}, count: {equals: -1}}", "`equals` is a whole number"),
        ("{objects: {kind: X}, count: {more: 1}}", "unknown key `more` in `count`"),
    ],
)
def test_faults_of_object_predicates(text: str, message: str) -> None:
    assert any(message in fault for fault in faults(text, objects=True)), faults(text, objects=True)


def test_objects_are_refused_where_nothing_is_rendered_yet() -> None:
    (fault,) = faults("{objects: {kind: X}, count: {equals: 1}}")
    assert "before manifests are rendered" in fault


def test_a_predicate_keeps_its_origin() -> None:
    document = Document("f.yaml", {})
    predicate = predicates.parse({"recipe": "os", "exists": True}, document.at(), Collector(), component="x")
    assert (predicate.component, str(predicate.origin)) == ("x", "f.yaml:1:1")
