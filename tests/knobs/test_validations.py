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
BUDGET = (("nodewright-customizations", ("interruptionBudget",), {"count": 1}),)


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


def on_aks(real: Catalog) -> Catalog:
    """The catalog, with the GKE training recipe said to be for AKS."""

    def moved(criteria: Any) -> Any:
        return {key: "aks" if value == "gke" else value for key, value in criteria.items()}

    overlays = {name: replace(o, criteria=moved(o.criteria)) for name, o in real.overlays.items()}
    return replace(real, overlays=overlays)


def test_a_toleration_of_everything_is_refused_on_aks_alone(real: Catalog) -> None:
    name = "gb200-gke-cos-training-kubeflow"
    rule = "error no-wildcard-toleration-on-aks"
    assert rule not in found(real, name, WILDCARD)
    assert found(on_aks(real), name).count(rule) == 0
    assert found(on_aks(real), name, WILDCARD).count(rule) == 4


def test_a_budget_without_a_workload_selector_is_warned_of(real: Catalog) -> None:
    name, rule = "gb200-gke-cos-training", "warning workload-selector"
    assert rule not in found(real, name)
    assert rule in found(real, name, set=BUDGET)
    assert rule not in found(real, name, {"placement": {"workload": {"selector": {"a": "b"}}}}, set=BUDGET)


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
