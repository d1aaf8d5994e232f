"""Rules of the catalog's components that are about what an operator sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compiler.errors import UserError
from compiler.load import load
from compiler.model import Catalog, Flags
from compiler.plan import plan
from compiler.resolve import entry_for, resolve
from compiler.source import built_in
from tests.conftest import ROOT

WILDCARD = {"placement": {"accelerated": {"tolerations": [{"operator": "Exists"}]}}}


@pytest.fixture(scope="module")
def real() -> Catalog:
    return load(ROOT)


def found(real: Catalog, name: str, settings: Any = None, **flags: Any) -> list[str]:
    """Codes and rules of what a bundle of the catalog is told."""
    given = (("--x", settings),) if settings else ()
    try:
        told = plan(resolve(real, entry_for(real, name), Flags(settings=given, **flags))).warnings
    except UserError as error:
        told = error.diagnostics
    return [f"{d.severity} {d.message.rpartition('(rule `')[2].rstrip('`)')}" for d in told if d.code == "BC3006"]


def test_a_toleration_of_everything_is_refused_on_aks_alone(real: Catalog) -> None:
    """case 76: each component that the setting reaches says so."""
    rule = "error no-wildcard-toleration-on-aks"
    assert rule not in found(real, "h100-aks-ubuntu-training")
    assert found(real, "h100-aks-ubuntu-training", WILDCARD).count(rule) >= 2
    assert rule not in found(real, "gb200-gke-cos-training-kubeflow", WILDCARD)


def test_the_monitoring_crds_move_first(real: Catalog) -> None:
    crds = real.components["prometheus-operator-crds"]
    assert crds.chart
    old = replace(crds, chart=replace(crds.chart, version="27.0.0"), origin=built_in("x"))
    older = replace(real, components={**real.components, "prometheus-operator-crds": old})
    assert found(older, "gb200-nvke-ubuntu-training") == ["error crds-not-older-than-the-operator"]


@pytest.mark.parametrize(
    ("component", "path", "value", "rule"),
    [
        ("gpu-operator", "hostPaths.driverInstallDir", "/", "driver-install-dir"),
        ("nvidia-dra-driver-gpu", "nvidiaDriverRoot", "/elsewhere", "driver-root"),
        ("gpu-operator", "operator.runtimeClass", "other", "runtime-class"),
        ("nvsentinel", "metadata-collector.runtimeClassName", "other", "runtime-class-default"),
    ],
)
def test_who_owns_the_driver_is_one_story(real: Catalog, component: str, path: str, value: str, rule: str) -> None:
    sets = ((component, tuple(path.split(".")), value),)
    assert f"error {rule}" in found(real, "gb200-nvke-ubuntu-training", set=sets)


def test_a_rule_that_looks_at_a_disabled_component_says_so_first(real: Catalog) -> None:
    """Values of it and objects of its kinds alike: the finding stands where it was switched off."""
    off = Flags(set=(("network-operator", ("enabled",), False),))
    with pytest.raises(UserError) as caught:
        plan(resolve(real, entry_for(real, "gb200-nvke-ubuntu-training"), off))
    told = [d for d in caught.value.diagnostics if d.code == "BC3006"]
    assert {d.message.rpartition("(rule `")[2].rstrip("`)") for d in told} >= {"external-drainer", "multus"}
    for finding in told:
        assert finding.message.startswith("`network-operator` is disabled, and a rule looks at it: ")
        assert finding.span is not None
        assert "--set network-operator:enabled" in finding.span.file
        assert not any("values-nvke" in str(note) for note in finding.notes)
        assert (finding.fix or "").startswith("enable it; ")


def test_a_singleton_that_the_values_leave_to_somebody_else(real: Catalog) -> None:
    """An APIService of KEDA is no second owner once the adapter has no rules of that kind, and nothing waits for it."""

    def seen(value: Any) -> tuple[list[str], list[str]]:
        given = Flags(set=((("prometheus-adapter", ("rules", "external"), value)),)) if value != "own" else Flags()
        planned = plan(resolve(real, entry_for(real, "gb200-nvke-ubuntu-training"), given))
        checks = [c.id for part in planned.components if part.name == "prometheus-adapter" for c in part.health]
        return [p.value for p in planned.preflight if p.kind == "singleton" and p.name == "APIService"], checks

    custom, external = (f"v1beta1.{kind}.metrics.k8s.io" for kind in ("custom", "external"))
    assert seen("own") == ([custom, external], ["adapter", "custom-metrics", "external-metrics"])
    for none in ([], None):
        assert seen(none) == ([custom], ["adapter", "custom-metrics"]), none
