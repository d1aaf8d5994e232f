"""Checks of every bundle, bound: each looks where its object lies."""

from __future__ import annotations

from compiler.model import Check
from tests.bundles.bundle import Bundle


def test_a_check_of_a_namespaced_object_names_the_namespace(bundle: Bundle):
    plan = bundle.plan
    scopes = {(crd.group, crd.kind): crd.scope for c in plan.recipe.components.values() for crd in c.component.crds}
    checks: list[Check] = [check for component in plan.components for check in component.health]
    checks += [held.check for release in plan.releases if release.gate for held in release.gate.checks]
    one = [check for check in checks if check.kind in ("field", "condition")]
    assert one
    for check in one:
        if (check.group, check.object_kind) in scopes:
            namespaced = scopes[check.group, check.object_kind] == "Namespaced"
            assert (check.namespace is not None) == namespaced, check


def test_the_health_of_prometheus_is_looked_at_in_its_namespace(nvke: Bundle):
    (component,) = [c for c in nvke.plan.components if c.name == "kube-prometheus-stack"]
    found = {check.id.rpartition("/")[2]: check for check in component.health if check.kind == "condition"}
    assert {check.namespace for check in found.values()} == {"monitoring"}
