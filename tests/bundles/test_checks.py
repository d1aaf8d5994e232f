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


def test_crds_of_a_chart_that_is_not_waited_for_come_first(bundle: Bundle):
    """Helm 4 waits for the CRDs in a chart's crds/ only if it is told to wait for the release."""
    release = bundle.plan.release("kai-scheduler")
    assert release.install.wait == "none"
    assert {"configs.kai.scheduler", "queues.scheduling.run.ai"} <= set(release.crds_before)
    prepare = bundle.files["lib/prepare"].decode()
    assert "configs.kai.scheduler" in prepare
    hooks = next(r for r in bundle.one("helmfile.yaml")["releases"] if r["name"] == "kai-scheduler")["hooks"]
    assert any(hook["command"] == "./lib/prepare" for hook in hooks)
