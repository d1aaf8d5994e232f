"""What the audit log of an API server tells of order: when a check first held, and when a release was first touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from compiler.model import Check, Plan, Release
from tests.e2e.charts import StandIn

Event = dict[str, Any]
HELM = ("Helm/", "helm/", "kubectl/")
UP = ("deployment", "daemonset", "statefulset")
WRITES = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True)
class Witness:
    """The events of a run, and the bundle whose order they are held against; `agents` are who deploys."""

    plan: Plan
    charts: dict[tuple[str, str], StandIn]
    events: list[Event]
    agents: tuple[str, ...] = HELM

    def violations(self) -> list[str]:
        """Each edge of the plan that the writes did not keep, as a sentence; none when the order held."""
        wrong = self.gate_violations()
        for edge in self.plan.edges:
            provider, dependant = self.plan.release(edge.provider), self.plan.release(edge.dependant)
            if provider.empty or dependant.empty:
                continue
            done, touched = self.deployed(provider), self.first_write(dependant)
            if done is None or (touched is not None and done > touched):
                wrong.append(f"{dependant.id} was written at {touched}, {provider.id} was deployed at {done}")
        return wrong

    def gate_violations(self) -> list[str]:
        """Each release that was never written, or before its gate held, as a sentence: the hard edges."""
        wrong = []
        for release in self.plan.releases:
            if release.empty:
                continue
            touched = self.first_write(release)
            if touched is None:
                wrong.append(f"{release.id} was never written")
                continue
            for check in release.gate.checks if release.gate else ():
                held = self.held(check.check)
                if held is None:
                    wrong.append(f"{release.id}: {check.check.id} never held, though the release was written")
                elif held > touched:
                    wrong.append(f"{release.id} was written at {touched}, before {check.check.id} held at {held}")
        return wrong

    def wave_violations(self) -> list[str]:
        """Each edge of the plan whose dependant was written before all of its provider was there, as a sentence.

        Where no record of a release tells that it is deployed: every object sent, and the workloads of its health up.
        """
        sent: dict[tuple[str, str, str, str], str] = {}
        for event in self.deployer():
            sent.setdefault(reference(event), event["requestReceivedTimestamp"])
        health = {c.name: [h for h in c.health if h.kind in UP] for c in self.plan.components}
        wrong = []
        for edge in self.plan.edges:
            provider, dependant = self.plan.release(edge.provider), self.plan.release(edge.dependant)
            if provider.empty or dependant.empty:
                continue
            touched = self.first_write(dependant) or ""
            times = {"/".join(o): sent.get(o) for o in self.objects(provider)}
            if provider.component != dependant.component:
                times |= {h.id: self.held(h) for h in health[provider.component]}
            late = sorted(what for what, at in times.items() if at is None or at > touched)
            if late:
                wrong.append(f"{dependant.id} was written at {touched}, before {late[0]} of {provider.id}")
        return wrong

    def removal_violations(self) -> list[str]:
        """Each edge of the plan whose provider lost an object before its dependant had lost all, as a sentence."""
        deleted: dict[tuple[str, str, str, str], str] = {}
        for event in self.deployer():
            if event["verb"] == "delete":
                deleted.setdefault(reference(event), event["requestReceivedTimestamp"])
        wrong = []
        for edge in self.plan.edges:
            provider = [deleted[o] for o in self.objects(self.plan.release(edge.provider)) if o in deleted]
            dependant = [deleted[o] for o in self.objects(self.plan.release(edge.dependant)) if o in deleted]
            if provider and dependant and min(provider) < max(dependant):
                wrong.append(
                    f"{edge.provider} was removed from {min(provider)}, {edge.dependant} until {max(dependant)}"
                )
        return wrong

    def early(self, release: Release, kind: str) -> list[Event]:
        """Writes of what the release's component renders, quotas aside, before the check of this kind in its gate held."""
        assert release.gate is not None
        (check,) = [c.check for c in release.gate.checks if c.check.kind == kind]
        held = self.held(check)
        assert held, f"{check.id} never held"
        mine = {
            where
            for one in self.plan.releases
            if one.component == release.component
            for where in self.objects(one)
            if where[1] != "resourcequotas"
        }
        return [e for e in self.deployer() if reference(e) in mine and e["requestReceivedTimestamp"] < held]

    def writes(self, *agents: str) -> list[Event]:
        """Writes by programs whose name begins with one of these."""
        return [e for e in self.events if e["verb"] in WRITES and e.get("userAgent", "").startswith(agents)]

    def deployer(self) -> list[Event]:
        """Writes of those who deploy."""
        return self.writes(*self.agents)

    def first_write(self, release: Release) -> str | None:
        """When a deployer first sent anything of a release: an object of it, a CRD of its chart, or Helm's record."""
        mine = self.objects(release)
        own = set(release.crds_before) - self._crds_of_others(release)
        mine |= {("apiextensions.k8s.io", "customresourcedefinitions", "", name) for name in own}
        record = f"sh.helm.release.v1.{release.id}.v"
        times = [
            e["requestReceivedTimestamp"]
            for e in self.deployer()
            if (where := reference(e)) in mine
            or (where[1:3] == ("secrets", release.namespace) and where[3].startswith(record))
        ]
        return min(times, default=None)

    def objects(self, release: Release) -> set[tuple[str, str, str, str]]:
        """References of the objects that a release renders; those that an operator makes are not among them."""
        objects = [dict(o.data) for o in release.objects]
        if release.chart is not None:
            objects += self.charts[release.chart.repository, release.chart.name].objects
        return {key(item, release.namespace) for item in objects}

    def _crds_of_others(self, release: Release) -> set[str]:
        components = self.plan.recipe.components.values()
        return {crd.name for c in components if c.enabled and c.name != release.component for crd in c.component.crds}

    def deployed(self, release: Release) -> str | None:
        """When Helm first recorded the release as deployed."""
        record = f"sh.helm.release.v1.{release.id}.v"
        return self._first(
            lambda e: (
                reference(e)[1:3] == ("secrets", release.namespace)
                and _name(e).startswith(record)
                and (_body(e).get("metadata", {}).get("labels") or {}).get("status") == "deployed"
            )
        )

    def held(self, check: Check) -> str | None:
        """When a check held for the first time, by what was written into the cluster."""
        match check.kind:
            case "crd":
                return self._first(
                    lambda e: (
                        reference(e) == ("apiextensions.k8s.io", "customresourcedefinitions", "", check.name)
                        and _subresource(e) == "status"
                        and _condition(_body(e), "Established")
                    )
                )
            case "deployment" | "statefulset" | "daemonset":
                return self._first(
                    lambda e: (
                        reference(e) == ("apps", f"{check.kind}s", check.namespace, check.name)
                        and _subresource(e) == "status"
                        and _rolled_out(check, _body(e))
                    )
                )
            case "webhook":
                return self._first(
                    lambda e: (
                        reference(e)[:3] == ("discovery.k8s.io", "endpointslices", check.namespace)
                        and _body(e).get("metadata", {}).get("labels", {}).get("kubernetes.io/service-name")
                        == check.name
                        and any(p.get("conditions", {}).get("ready") for p in _body(e).get("endpoints") or [])
                    )
                )
            case "nodes":
                assert check.selector
                label, _, value = check.selector.partition("=")
                return self._first(
                    lambda e: (
                        reference(e)[1] == "nodes"
                        and (_body(e).get("metadata", {}).get("labels") or {}).get(label) == value
                    )
                )
            case "field":
                return self._first(
                    lambda e: (
                        reference(e)[1] == check.resource
                        and _name(e) == check.name
                        and str(_at(_body(e), check.path or "")) == check.value
                    )
                )
        raise NotImplementedError(f"no witness for a check of kind {check.kind}")

    def _first(self, matches: Callable[[Event], bool]) -> str | None:
        return min((e["stageTimestamp"] for e in self.events if e["verb"] in WRITES and matches(e)), default=None)


def reference(event: Event) -> tuple[str, str, str, str]:
    """Group, resource, namespace, name of what an event is about; a new object's name may stand in its body only."""
    ref = event.get("objectRef", {})
    return (ref.get("apiGroup", ""), ref.get("resource", ""), ref.get("namespace", ""), _name(event))


def key(item: dict[str, Any], namespace: str) -> tuple[str, str, str, str]:
    """The reference of an object; `namespace` is where Helm puts it if it says none and is not cluster-scoped."""
    group, slash, _ = item["apiVersion"].partition("/")
    meta = item["metadata"]
    plural = item["kind"].lower()
    plural = plural[:-1] + "ies" if plural.endswith("y") else plural + ("es" if plural.endswith("s") else "s")
    return (group if slash else "", plural, meta.get("namespace", ""), meta["name"])


def describe(events: Iterable[Event]) -> str:
    """One line an event."""
    return "\n".join(
        f"{e['requestReceivedTimestamp']} {e['verb']} {'/'.join(filter(None, reference(e)))}" for e in events
    )


def _name(event: Event) -> str:
    ref = event.get("objectRef", {})
    return ref.get("name") or _body(event).get("metadata", {}).get("name", "")


def _subresource(event: Event) -> str:
    return str(event.get("objectRef", {}).get("subresource", ""))


def _body(event: Event) -> dict[str, Any]:
    body = event.get("requestObject")
    return body if isinstance(body, dict) else {}


def _condition(body: dict[str, Any], kind: str) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or []
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _rolled_out(check: Check, body: dict[str, Any]) -> bool:
    status, meta = body.get("status") or {}, body.get("metadata") or {}
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        return False
    if check.kind == "daemonset":
        wanted = status.get("desiredNumberScheduled", 0)
        least = 1 if check.min_nodes is None else check.min_nodes
        return wanted >= least and status.get("updatedNumberScheduled", 0) >= wanted <= status.get("numberAvailable", 0)
    return status.get("availableReplicas", 0) >= max(1, (body.get("spec") or {}).get("replicas", 1))


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return body
