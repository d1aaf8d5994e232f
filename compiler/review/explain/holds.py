"""What each deployer does for an edge or a gate, in words; the strength is what the order proof asks of its files."""

from __future__ import annotations

from compiler.durations import format_duration
from compiler.emit.payload import WAVES
from compiler.model import Edge, Gate, Plan, Release
from compiler.review.explain.model import Hold


def of_edge(plan: Plan, edge: Edge) -> tuple[Hold, ...]:
    """What the bundle's deployers do so that the dependant comes after the provider."""
    number = {release.id: n for n, release in enumerate(plan.releases, 1)}
    before, after = plan.release(edge.provider), plan.release(edge.dependant)
    gated = after.gate if after.gate is not None and edge.provider in after.gate.after else None
    words = {
        "deploy.sh": lambda: Hold(
            "deploy.sh",
            hard=True,
            text=f"step {number[before.id]}, then step {number[after.id]}; a failed step ends the run"
            + (f"; `gate {after.id}` probes in between" if gated else ""),
        ),
        "helmfile": lambda: Hold(
            "helmfile",
            hard=True,
            text=f"`needs` of {after.id} names {before.id}" + ("; a presync hook runs `lib/gate`" if gated else ""),
        ),
        "argocd": lambda: _argocd(plan, before, after, gated),
        "flux": lambda: Hold(
            "flux",
            hard=True,
            text=f"Kustomization {_name(plan, after.id)} has {_name(plan, before.id)} in `dependsOn`"
            + (f", and the gate {_name(plan, f'gate-{after.id}')}" if gated else ""),
        ),
    }
    return tuple(words[deployer]() for deployer in plan.settings.deployers)


def of_gate(plan: Plan, gate: Gate) -> tuple[Hold, ...]:
    """What the bundle's deployers do to hold a release back until its gate is met."""
    release = plan.release(gate.id)
    timeout = format_duration(gate.timeout)
    texts = {
        "deploy.sh": f"`gate {gate.id}` stands on the line before the release: it probes every "
        f"{format_duration(plan.settings.gates.poll)} for at most {timeout}, then ends the run with a diagnosis",
        "helmfile": f"a presync hook of {gate.id} runs `lib/gate {gate.id}` for at most {timeout}",
        "argocd": f"{_guard(plan, release)}; it fails after {timeout}, and the sync is tried again",
        "flux": f"Kustomization {_name(plan, f'gate-{gate.id}')} checks the health of what it waits for, one attempt "
        f"of 1m after the other, for ever; {_name(plan, gate.id)} depends on it",
    }
    return tuple(Hold(deployer, hard=True, text=texts[deployer]) for deployer in plan.settings.deployers)


def _argocd(plan: Plan, before: Release, after: Release, gated: Gate | None) -> Hold:
    if before.component == after.component:
        waves = f"waves {_wave(before)} and {_wave(after)} of Application {_name(plan, after.component)}"
        return Hold("argocd", hard=True, text=waves + (f", {_guard(plan, after)} in between" if gated else ""))
    if gated is not None:
        return Hold("argocd", hard=True, text=_guard(plan, after))
    level = {component.name: 10 * (component.level + 1) for component in plan.components}
    waves = f"sync waves {level[before.component]} and {level[after.component]} of the two Applications"
    if plan.settings.argocd.waves == "health":
        return Hold("argocd", hard=True, text=f"{waves}; the health of Applications is judged, so they hold")
    return Hold("argocd", hard=False, text=f"{waves}, which hold nothing by default: {after.component} heals by retry")


def _guard(plan: Plan, release: Release) -> str:
    first = next(r for r in plan.releases if r.component == release.component and not r.empty)
    job = f"Job {_name(plan, f'gate-{release.id}')} of Application {_name(plan, release.component)}"
    return f"PreSync {job}" if release is first else f"Sync {job}"


def _wave(release: Release) -> str:
    return WAVES.get(release.piece, "0")


def _name(plan: Plan, what: str) -> str:
    return f"{plan.settings.prefix}-{what}"
