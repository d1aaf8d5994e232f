"""The risks of a diff, worst first: what a reviewer must see before anything else, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compiler import predicates
from compiler.errors import UserError
from compiler.facts import facts
from compiler.model import Plan, ResolvedComponent
from compiler.paths import MISSING, lookup
from compiler.review.diff.blame import Blame
from compiler.review.diff.model import SEVERITIES, Entry, OrderChange, Risk, Severity
from compiler.review.diff.objects import Pair
from compiler.review.diff.risks_objects import pod_security, risks_of_object, risky_values, switches
from compiler.review.diff.snapshot import ComponentView, Snapshot
from compiler.review.diff.values import Change, same
from compiler.review.diff.words import arrow, brief
from compiler.source import Path, parse_path
from compiler.versions import parse_version

Advice = tuple[tuple[str, str], ...]


def ordered(found: Iterable[Risk]) -> tuple[Risk, ...]:
    """Risks, each once, the severe ones first."""
    return tuple(
        sorted(dict.fromkeys(found), key=lambda r: (SEVERITIES.index(r.severity), r.component, r.kind, r.text))
    )


def of_removed(name: str, base: Snapshot, head: Snapshot, blame: Blame) -> Iterator[Risk]:
    """A component that is no longer there."""
    releases = base.releases_of(name)
    ids = ", ".join(r.id for r in releases)
    kept = any(r.facts.get("keep") for r in releases)
    advice = [
        ("deploy.sh", f"`./deploy.sh --prune` removes {ids}, which keeps running until then"),
        ("helmfile", "helmfile does not notice: run `./deploy.sh --prune` after it"),
        ("argocd", "the root Application prunes it, and its objects with it"),
        ("flux", "the Kustomization prunes its HelmRelease, which uninstalls the release"),
    ]
    if kept:
        advice[0] = ("deploy.sh", f"{ids} carries CRDs and stays until `helm uninstall`; {_fate_of_crds(base, name)}")
    advice += _delete_hooks(releases)
    reason = f" (switched off: {head.disabled[name]})" if head.disabled.get(name) else ""
    waiting = sorted({e.dependant for e in base.edges if e.provider in {r.id for r in releases}} & _ids(head))
    text = f"is removed{reason}" + (f"; {', '.join(waiting)} waited for it" if waiting else "")
    yield Risk("component-removed", "high", name, text, _only(advice, head), blame.component(name, "base"))
    for crd in sorted(_crds(base, name) - _all_crds(head)):
        yield Risk("crd-removed", "high", name, f"brought the CRD {crd}, which nothing brings any more")


def of_component(
    old: ComponentView, new: ComponentView, base: Snapshot, head: Snapshot, fields: Sequence[Entry], blame: Blame
) -> Iterator[Risk]:
    """Identity, versions, CRDs and the switches of a component that both sides have."""
    name = new.name
    at = {entry.change.path: entry.at for entry in fields}
    if old.namespace != new.namespace:
        text = f"moves from namespace {old.namespace} to {new.namespace}: this installs a second copy"
        advice = (*_second_copy(name, base.releases_of(old.name), head, moved=True), *_handover(old, new, base))
        yield Risk("second-copy", "high", name, text, advice, at.get("namespace"))
    elif old.name != new.name:
        text = f"is the new name of {old.name}, and of its Helm releases: this installs a second copy"
        advice = _second_copy(name, base.releases_of(old.name), head, moved=False)
        yield Risk("second-copy", "high", name, text, advice, blame.component(name, "head"))
    if old.chart is not None and new.chart is not None and old.chart != new.chart:
        before, after = (f"{chart[0]} {chart[1]}" for chart in (old.chart, new.chart))
        if old.chart[1] != new.chart[1]:
            text = f"has another chart ({before} -> {after}): the release is upgraded into it and its old objects go"
            advice = (("", "check that no selector or CRD clashes; where in doubt, uninstall the old release first"),)
            yield Risk("chart-identity", "high", name, text, advice, at.get("chart.name"))
        else:
            text = f"gets its chart from another repository: {before} -> {after}"
            yield Risk("chart-source", "medium", name, text, (), at.get("chart.repository"))
    elif (old.chart is None) != (new.chart is None):
        text = "becomes a chart" if new.chart else "is a chart no longer"
        yield Risk("chart-identity", "high", name, text)
    yield from _version(old, new, at.get("chart.version"))
    yield from _declared_crds(old, new, base, head)
    for entry in fields:
        change = entry.change
        if change.path == "install.wait" and change.new == "none":
            text = "is no longer waited for (`install.wait: none`)"
            yield Risk("wait", "medium", name, text, (), entry.at)


def of_values(
    new: ResolvedComponent | None, old: ResolvedComponent | None, entries: Sequence[Entry], head: Snapshot, name: str
) -> Iterator[Risk]:
    """Values that a component's own file calls risky, and those whose name says so; a disruptive one unconfined."""
    by_change = {id(entry.change): entry for entry in entries}
    resolved = new or old
    component = resolved.component if resolved else None
    told: set[int] = set()
    for path, text in component.risks if component else ():
        hits = [e for e in entries if _touches(e.change, parse_path(path))]
        if hits:
            told |= {id(e.change) for e in hits}
            shown = ", ".join(f"`{e.change.path}` {brief(e.change)}" for e in hits[:3])
            more = f" and {len(hits) - 3} more" if len(hits) > 3 else ""
            yield Risk("value", "high", name, f"{shown}{more}: {text}", (), hits[0].at)
    images = [parse_path(item["path"]) for item in component.images] if component else []
    for change, kind, severity, text in risky_values(e.change for e in entries):
        if id(change) not in told:
            told.add(id(change))
            yield Risk(kind, severity, name, f"{text} {arrow(change)}", (), by_change[id(change)].at)
    for entry in entries:
        if id(entry.change) not in told and any(_touches(entry.change, path) for path in images):
            yield Risk("image", "medium", name, f"`{entry.change.path}` {arrow(entry.change)}", (), entry.at)
    if new is not None and head.plan is not None:
        yield from _disruptive(new, head.plan, name)


def of_objects(pairs: Iterable[Pair], name: str, blame: Blame, *, with_component: bool = False) -> Iterator[Risk]:
    """Fields that cannot change, CRDs, rights, privileges and images of our own objects.

    `with_component`: that objects get another place or name follows from what is told elsewhere.
    """
    for pair in pairs:
        item = pair.new or pair.old
        assert item is not None
        where = f"{item.kind} {item.namespace + '/' if item.namespace else ''}{item.name}"
        old, new = (pair.old.data if pair.old else None), (pair.new.data if pair.new else None)
        lines = blame.object(pair.old, pair.new)
        at = lines[0] if lines else None
        if not with_component and pair.status in {"moved", "renamed"}:
            text = f"{where} is {pair.status}: the old object is deleted and a new one made"
            yield Risk("object-identity", "medium", name, text, (), at)
        for kind, severity, text, words in risks_of_object(old, new):
            if (new is None and kind == "crd-removed") or old is None or new is None or not same(old, new):
                yield Risk(kind, severity, name, f"{where} {text}", (), blame.line_of(pair.old, pair.new, words) or at)


def of_bundle(base: Snapshot, head: Snapshot, fields: Sequence[Entry], order: Sequence[OrderChange]) -> Iterator[Risk]:
    """Gates and edges, the profile, names that everything hangs from, namespaces."""
    for item in order:
        if item.kind == "order" or item.status == "reason":
            continue
        weaker = item.status in {"removed", "weakened"}
        severity: Severity = "high" if weaker and item.hard else "medium" if weaker else "low"
        severity = "medium" if item.status == "retargeted" else severity
        kind = item.status if item.status in {"added", "removed", "retargeted"} else "changed"
        yield Risk(f"{item.kind}-{kind}", severity, item.release, item.text, (), item.at)
    for entry in fields:
        yield from _field(entry, base, head)
    for name in sorted({*base.namespaces} - {*head.namespaces}):
        text = f"namespace {name} is no longer the bundle's; it stays in the cluster with all that others put there"
        yield Risk("namespace-removed", "medium", "", text, (("", f"`kubectl delete namespace {name}` when empty"),))
    for name in sorted(head.namespaces):
        found = pod_security(base.namespaces.get(name), head.namespaces[name])
        if found:
            yield Risk("privileged", found[0], "", f"namespace {name}: {found[1]}")


def of_renamed(base: Snapshot, head: Snapshot) -> Iterator[Risk]:
    """A bundle that got another name."""
    if base.bundle == head.bundle:
        return
    advice = (
        ("deploy.sh", f"`--prune` looks for the label of {head.bundle}: a whole run relabels what stays first"),
        ("argocd", "apply argocd/root.yaml anew: the one in the cluster reads a folder that goes"),
        ("flux", "apply flux/root.yaml anew: the one in the cluster reads a folder that goes"),
    )
    text = f"bundle {base.bundle} becomes {head.bundle}: its folder and the labels of its objects change"
    yield Risk("bundle-renamed", "medium", "", text, _only(advice, head))


def _field(entry: Entry, base: Snapshot, head: Snapshot) -> Iterator[Risk]:
    change, path = entry.change, entry.change.path
    told = f"`{path.removeprefix('settings.')}` {arrow(change)}"
    if path == "profile.value":
        text = f"the profile changes: {arrow(change)}"
        yield Risk("profile", "high", "", text, (), entry.at)
    elif path.startswith("profile.") and change.verb != "changed":
        yield Risk("profile", "high", "", f"the profile is {change.verb}: {told}", (), entry.at)
    elif path == "settings.prefix":
        advice: Advice = (
            ("argocd", f"delete Application {change.old}-root first, with --cascade=orphan: two roots would fight"),
            ("flux", f"suspend and delete the Kustomizations {change.old}-* first, or they uninstall what they hold"),
        )
        text = f"the prefix changes ({arrow(change)}): every Argo CD and Flux object gets another name"
        yield Risk("second-copy", "high", "", text, _only(advice, base), entry.at)
    elif path in {"settings.argocd.namespace", "settings.flux.namespace"}:
        text = f"{told}: the deployer's objects move, and the old ones stay"
        yield Risk("second-copy", "high", "", text, (), entry.at)
    elif path in {"settings.argocd.server", "settings.argocd.clusterName", "settings.flux.kubeConfig"}:
        yield Risk("target", "high", "", f"the bundle goes to another cluster: {told}", (), entry.at)
    elif path == "settings.deployers":
        gone = sorted(set(base.facts["settings"]["deployers"]) - set(head.facts["settings"]["deployers"]))
        if gone:
            yield Risk("deployer", "high", "", f"no files any more for {', '.join(gone)}", (), entry.at)
    elif path == "settings.gates.image":
        text = f"the image of the gates' Jobs changes: {arrow(change)}; it runs with the rights of the guards"
        pull: Advice = (
            ("", "check that every cluster can pull it, and with which secret, before anything waits on it"),
        )
        yield Risk("gate-image", "medium", "", text, pull, entry.at)
    elif path.startswith("settings.gates.ready"):
        yield Risk("gate-changed", "high", "", f"{told}: gates until ready", (), entry.at)
    elif path.startswith("constraints") and change.verb in {"removed", "changed"}:
        yield Risk("constraint", "medium", "", f"{told}", (), entry.at)


def _version(old: ComponentView, new: ComponentView, at: Any) -> Iterator[Risk]:
    if old.version == new.version or old.version is None or new.version is None:
        return
    before, after = parse_version(old.version), parse_version(new.version)
    told = f"chart {old.version} -> {new.version}"
    if before is None or after is None:
        yield Risk("version", "medium", new.name, f"{told}: not comparable", (), at)
    elif after < before:
        yield Risk("downgrade", "high", new.name, f"{told} is a downgrade", (), at)
    elif before[0] != after[0]:
        yield Risk("major-version", "high", new.name, f"{told} is another major version", (), at)
    elif before[0] == 0 and before[:2] != after[:2]:
        yield Risk("major-version", "medium", new.name, f"{told}: below 1.0 a minor version may break", (), at)
    elif skipped(old, new):
        between = "a minor version" if after[1] - before[1] == 2 else f"{after[1] - before[1] - 1} minor versions"
        text = f"{told} skips {between}: upgrades are tested from one minor version to the next"
        # What the component says about upgrades is there to be done or known before.
        said = new.resolved.component.upgrade_before if new.resolved is not None else ()
        yield Risk("skipped-minor", "medium", new.name, text, tuple(("", words) for words in said), at)


def skipped(old: ComponentView, new: ComponentView) -> bool:
    """Whether a chart goes over a minor version of the same major version, from 1.0 on."""
    before, after = parse_version(old.version or ""), parse_version(new.version or "")
    return before is not None and after is not None and before[0] == after[0] > 0 and after[1] - before[1] > 1


def _declared_crds(old: ComponentView, new: ComponentView, base: Snapshot, head: Snapshot) -> Iterator[Risk]:
    gone = _crds(base, old.name) - _crds(head, new.name)
    for crd in sorted(gone - _all_crds(head)):
        yield Risk("crd-removed", "high", new.name, f"no longer brings the CRD {crd}, and nothing else does")
    if old.resolved is None or new.resolved is None:
        return
    after = {crd.name: crd for crd in new.resolved.component.crds}
    for crd_ in old.resolved.component.crds:
        lost = sorted(set(crd_.versions) - set(after[crd_.name].versions)) if crd_.name in after else []
        if lost and after[crd_.name].versions:
            text = f"CRD {crd_.name} no longer has the version {', '.join(lost)}: migrate stored objects first"
            yield Risk("crd-version", "high", new.name, text)


def _crds(snapshot: Snapshot, name: str) -> set[str]:
    """CRDs that a component declares, under the conditions of the recipe."""
    view = snapshot.components.get(name)
    if view is None or view.resolved is None or snapshot.plan is None:
        return set()
    known = facts(snapshot.plan.recipe)
    switched = {name: replace(item, values=switches(item.values)) for name, item in known.components.items()}
    # A chart takes whatever is not empty for a switch that is on: `createCRDs: 1` brings them as `true` does.
    both = (known, replace(known, components=switched))
    found = set()
    for crd in view.resolved.component.crds:
        try:
            if crd.when is None or any(predicates.evaluate(crd.when, seen) for seen in both):
                found.add(crd.name)
        except UserError:  # a predicate that cannot be decided is reported when compiling
            found.add(crd.name)
    return found


def _all_crds(snapshot: Snapshot) -> set[str]:
    return {crd for name in snapshot.components for crd in _crds(snapshot, name)}


def _disruptive(item: ResolvedComponent, plan: Plan, name: str) -> Iterator[Risk]:
    scheduling = item.component.scheduling
    if (scheduling.get("accelerated") or {}).get("fixed"):
        return
    paths = [p for key in ("accelerated", "workload") for p in (scheduling.get(key) or {}).get("nodeSelector") or ()]
    if any(lookup(item.values, parse_path(path)) not in (MISSING, None, {}, []) for path in paths):
        return
    for when, text in item.component.disruptive:
        if when is None or predicates.evaluate(when, facts(plan.recipe)):
            yield Risk("disruptive", "high", name, f"has no node selector: {text}", (), None)


def _second_copy(name: str, releases: Sequence[Any], head: Snapshot, *, moved: bool) -> Advice:
    old = ", ".join(f"{r.namespace}/{r.id}" for r in releases)
    commands = "; ".join(f"`helm uninstall {r.id} -n {r.namespace}`" for r in reversed(releases))
    first = f"remove the old one first: {commands}; Helm refuses cluster-wide objects that {old} still owns"
    argocd = (
        f"the Application of {name} stays and prunes {old} once the new objects are there: both run for a while"
        if moved
        else f"the root Application prunes the old one while the new one syncs; {old} may take shared objects along"
    )
    flux = (
        "the HelmRelease uninstalls the old release, then installs the new one: expect a gap"
        if moved
        else f"the old HelmRelease is pruned and uninstalls {old}, while the new one installs"
    )
    advice = (("deploy.sh", first), ("helmfile", first), ("argocd", argocd), ("flux", flux), *_delete_hooks(releases))
    return _only(advice, head)


def _delete_hooks(releases: Sequence[Any]) -> list[tuple[str, str]]:
    """What the charts' hooks do when the old releases are uninstalled, by whomever."""
    return [
        ("", f"uninstalling {release.id} runs its {event} hook, which {_lowered(effect)}")
        for release in releases
        for event, effect in release.deletion
    ]


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _kept_crds(base: Snapshot, name: str) -> tuple[list[str], list[str]]:
    """Names of the CRDs among a chart's templates that stay when it is uninstalled, and of those that go."""
    resolved = base.plan.recipe.components.get(name) if base.plan else None
    crds = [crd for crd in resolved.component.crds if crd.source in ("templates", "manifests")] if resolved else []
    return [c.name for c in crds if c.keep], [c.name for c in crds if not c.keep]


def _fate_of_crds(base: Snapshot, name: str) -> str:
    stay, go = _kept_crds(base, name)
    if go or not stay:
        return "that deletes the CRDs which are not marked to be kept, with every object of theirs"
    return "its CRDs stay even then, with their objects"


def _handover(old: ComponentView, new: ComponentView, base: Snapshot) -> Advice:
    """CRDs that outlive a release still name it: Helm refuses to install them as part of another one."""
    stay, _ = _kept_crds(base, old.name)
    if not stay:
        return ()
    names = " ".join(stay[:3]) + (" ..." if len(stay) > 3 else "")
    command = f"`kubectl annotate crd {names} meta.helm.sh/release-namespace={new.namespace} --overwrite`"
    return (("", f"{len(stay)} CRDs stay and name the old release; before the new one is installed: {command}"),)


def _only(advice: Iterable[tuple[str, str]], snapshot: Snapshot) -> Advice:
    """The advice for the deployers that the bundle is built for."""
    wanted = {"", *snapshot.facts["settings"]["deployers"]}
    return tuple((deployer, text) for deployer, text in advice if deployer in wanted)


def _ids(snapshot: Snapshot) -> set[str]:
    return {r.id for r in snapshot.releases}


def _touches(change: Change, path: Path) -> bool:
    address = change.new_at if change.new is not MISSING else change.old_at
    shorter = min(len(address), len(path))
    return address[:shorter] == path[:shorter]
