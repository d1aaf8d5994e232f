"""The order proof over random plans: every emitter holds every edge and gate, and what one leaves out is found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from compiler.emit import bundle, emitter, payload
from compiler.emit.inventory import inventory_of, read_inventory
from compiler.model import DEPLOYERS, Edge, Plan, Wiring
from compiler.proof import prove
from tests.support.graphs import plans

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def wiring(plan: Plan, deployer: str) -> Wiring:
    """What the files of one deployer hold, those that all deployers share beside them."""
    module = emitter(deployer)
    return module.read_back({**payload.emit(plan), **module.emit(plan)})


def without(plan: Plan, edge: Edge) -> Plan:
    """The plan as it were if somebody forgot an edge."""
    releases = tuple(
        replace(r, needs=tuple(n for n in r.needs if n != edge.provider)) if r.id == edge.dependant else r
        for r in plan.releases
    )
    return replace(plan, releases=releases, edges=tuple(e for e in plan.edges if e is not edge))


def implied(edges: Iterable[Edge], provider: str, dependant: str) -> bool:
    direct: dict[str, set[str]] = {}
    for edge in edges:
        direct.setdefault(edge.dependant, set()).add(edge.provider)
    seen, open_ = set(), [dependant]
    while open_:
        for before in direct.get(open_.pop(), set()) - seen:
            seen.add(before)
            open_.append(before)
    return provider in seen


@pytest.mark.parametrize("deployer", DEPLOYERS)
@quick
@given(plan=plans())
def test_every_deployer_holds_every_edge(deployer: str, plan: Plan) -> None:
    assert [d.message for d in prove(inventory_of(plan), {deployer: wiring(plan, deployer)})] == []


@quick
@given(plan=plans())
def test_the_inventory_survives_its_file(plan: Plan) -> None:
    files = dict(payload.emit(plan))
    found = read_inventory(bundle.emit(plan, files))
    assert replace(found, recipe_digest="") == inventory_of(plan)


@pytest.mark.parametrize("deployer", DEPLOYERS)
@quick
@given(plan=plans(), data=st.data())
def test_a_check_that_is_left_out_is_found(deployer: str, plan: Plan, data: st.DataObject) -> None:
    gates = [r.gate for r in plan.releases if r.gate]
    assume(gates)
    gate = data.draw(st.sampled_from(gates))
    lost = data.draw(st.sampled_from(gate.checks))
    checks = tuple(c for c in gate.checks if c is not lost)
    less = replace(gate, checks=checks) if checks else None
    broken = replace(plan, releases=tuple(replace(r, gate=less) if r.gate is gate else r for r in plan.releases))
    found = prove(inventory_of(plan), {deployer: wiring(broken, deployer)})
    assert any(f"the gate of {gate.id} " in d.message and f"({lost.check.id})" in d.message for d in found)


@pytest.mark.parametrize("deployer", DEPLOYERS)
@quick
@given(plan=plans(), data=st.data())
def test_a_check_of_another_object_is_found(deployer: str, plan: Plan, data: st.DataObject) -> None:
    gates = [r.gate for r in plan.releases if r.gate]
    assume(gates)
    gate = data.draw(st.sampled_from(gates))
    changed = data.draw(st.sampled_from(gate.checks))
    other = replace(changed.check, name="other", selector="other" if changed.check.selector else None)
    checks = tuple(replace(c, check=other) if c is changed else c for c in gate.checks)
    broken = tuple(replace(r, gate=replace(gate, checks=checks)) if r.gate is gate else r for r in plan.releases)
    found = prove(inventory_of(plan), {deployer: wiring(replace(plan, releases=broken), deployer)})
    assert [d.message for d in found if f"({changed.check.id})" in d.message]


@pytest.mark.parametrize("deployer", ["helmfile", "flux"])
@quick
@given(plan=plans(), data=st.data())
def test_an_edge_that_is_left_out_is_found_unless_it_follows(deployer: str, plan: Plan, data: st.DataObject) -> None:
    plain = [e for e in plan.edges if not e.hard]
    assume(plain)
    edge = data.draw(st.sampled_from(plain))
    broken = without(plan, edge)
    found = prove(inventory_of(plan), {deployer: wiring(broken, deployer)})
    follows = implied(broken.edges, edge.provider, edge.dependant)
    assert any(f"{edge.dependant} after {edge.provider} " in d.message for d in found) is not follows


@quick
@given(plan=plans(), data=st.data())
def test_a_release_that_deploy_sh_puts_too_early_is_found(plan: Plan, data: st.DataObject) -> None:
    assume(plan.edges)
    edge = data.draw(st.sampled_from(plan.edges))
    late = [r for r in plan.releases if r.id == edge.provider]
    broken = replace(plan, releases=(*(r for r in plan.releases if r.id != edge.provider), *late))
    found = prove(inventory_of(plan), {"deploy.sh": wiring(broken, "deploy.sh")})
    assert any(f"{edge.dependant} after {edge.provider} " in d.message for d in found)


@quick
@given(plan=plans(), data=st.data())
def test_an_application_that_argo_cd_syncs_too_early_is_found(plan: Plan, data: st.DataObject) -> None:
    component = {r.id: r.component for r in plan.releases}
    between = [e for e in plan.edges if component[e.provider] != component[e.dependant]]
    assume(between)
    edge = data.draw(st.sampled_from(between))
    level = next(c.level for c in plan.components if c.name == component[edge.provider])
    components = tuple(replace(c, level=level) if c.name == component[edge.dependant] else c for c in plan.components)
    found = prove(inventory_of(plan), {"argocd": wiring(replace(plan, components=components), "argocd")})
    assert any(f"{edge.dependant} after {edge.provider} " in d.message for d in found)
