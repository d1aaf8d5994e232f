"""Derived names: limits, proposals, clashes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.emit import names
from compiler.errors import UserError
from compiler.model import Namespace, Plan
from tests.support.plans import release, settings, small_plan


def with_prefix(prefix: str) -> Plan:
    return small_plan(settings=settings(prefix=prefix))


def test_derived_name():
    assert names.derived(with_prefix("gb"), "gpu-operator") == "gb-gpu-operator"
    assert names.gates_namespace(with_prefix("gb")) == "gb-gates"


def test_limit_is_met_exactly_and_not_passed():
    assert len(names.derived(with_prefix("p" * 60), "ab")) == 63
    with pytest.raises(UserError):
        names.derived(with_prefix("p" * 61), "ab")
    assert names.derived(with_prefix("p" * 50), "ab", 53)
    with pytest.raises(UserError):
        names.derived(with_prefix("p" * 51), "ab", 53)


def test_error_proposes_a_prefix_that_fits():
    plan = with_prefix("gb200-gke-cos-inference-dynamo-eu-west4-production-a")
    with pytest.raises(UserError) as caught:
        names.derived(plan, "prometheus-operator-crds")
    (finding,) = caught.value.diagnostics
    assert finding.code == "BC4001"
    assert finding.fix is not None
    proposed = finding.fix.split("`prefix: ")[1].split("`")[0]
    assert names.derived(with_prefix(proposed), "prometheus-operator-crds") == f"{proposed}-prometheus-operator-crds"
    assert not proposed.endswith("-")


def test_error_says_when_no_prefix_helps():
    with pytest.raises(UserError) as caught:
        names.derived(with_prefix("gb"), "n" * 63)
    assert caught.value.diagnostics[0].fix == f"no prefix is short enough: rename `{'n' * 63}`"


def test_two_things_of_one_name():
    names.unique(small_plan(), [("a", "component a"), ("b", "component b"), ("a", "component a")])
    with pytest.raises(UserError) as caught:
        names.unique(
            small_plan(), [("x-gate-a", "gate of a"), ("x-b", "component b"), ("x-gate-a", "component gate-a")]
        )
    assert [d.message for d in caught.value.diagnostics] == [
        "component gate-a and gate of a would both be named `x-gate-a`"
    ]


def test_check_reports_everything_at_once():
    plan = small_plan(name="b" * 64)
    long = "r" * 54
    plan = replace(
        plan,
        releases=(*plan.releases, release(long, long, "main", "x"), release("cert-manager", "other", "main", "y")),
        namespaces=(*plan.namespaces, Namespace("n" * 64, {}, ("cert-manager",))),
    )
    with pytest.raises(UserError) as caught:
        names.check(plan)
    text = "\n".join(d.message for d in caught.value.diagnostics)
    assert {d.code for d in caught.value.diagnostics} == {"BC4001"}
    assert f"the Helm release `{long}` has 54 characters" in text
    assert "the namespace `nnn" in text
    assert "the bundle's name `bbb" in text
    assert "cert-manager and other would both make the release `cert-manager`" in text


def test_limits_themselves_are_allowed():
    plan = small_plan(name="b" * 63)
    names.check(replace(plan, releases=(release("r" * 53, "r" * 53, "main", "x"),)))
