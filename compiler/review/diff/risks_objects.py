"""What is risky about a changed object: fields that cannot change, rights that grow, pods that gain power."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from compiler.paths import MISSING, lookup
from compiler.review.diff.model import Severity
from compiler.review.diff.values import Change, same

Found = tuple[str, Severity, str, tuple[str, ...]]
"""kind of risk, severity, sentence without the object's name, words that stand in the line behind it, the best first"""

# Fields that the API server refuses to change. Source: the validation of each kind in the Kubernetes API reference.
_FIXED: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType(
    {
        ("apps", "Deployment"): ("spec.selector",),
        ("apps", "DaemonSet"): ("spec.selector",),
        ("apps", "ReplicaSet"): ("spec.selector",),
        ("apps", "StatefulSet"): (
            "spec.selector",
            "spec.serviceName",
            "spec.volumeClaimTemplates",
            "spec.podManagementPolicy",
        ),
        ("batch", "Job"): ("spec.template", "spec.selector", "spec.completionMode", "spec.completions"),
        ("", "PersistentVolumeClaim"): (
            "spec.storageClassName",
            "spec.accessModes",
            "spec.selector",
            "spec.volumeMode",
        ),
        ("", "Service"): ("spec.clusterIP",),
        ("", "Secret"): ("type",),
        ("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
        ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
        ("node.k8s.io", "RuntimeClass"): ("handler",),
        ("networking.k8s.io", "IngressClass"): ("spec.controller",),
        ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
        ("apiextensions.k8s.io", "CustomResourceDefinition"): (
            "spec.group",
            "spec.scope",
            "spec.names.kind",
            "spec.names.plural",
        ),
    }
)
_ROLES = frozenset({"Role", "ClusterRole"})
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
_STATE = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StatefulSet"})
_HOST = ("hostNetwork", "hostPID", "hostIPC")


def risks_of_object(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Found]:
    """The risks of an object that came, went or changed (None where a side does not have it)."""
    item = new or old
    assert item is not None
    group, slash, _ = str(item["apiVersion"]).partition("/")
    kind = str(item["kind"])
    group = group if slash else ""
    if old is not None and new is not None:
        yield from _fixed(group, kind, old, new)
    if kind == "CustomResourceDefinition":
        yield from _definition(old, new)
    if old is not None and new is None and kind in _STATE:
        yield "state-removed", "high", "is removed, and what it stores may go with it", ()
    if group == "rbac.authorization.k8s.io" and new is not None:
        yield from _rights(kind, old, new)
    if new is not None:
        yield from _power(old, new)
        yield from _images(old, new)


def rules_of(role: Mapping[str, Any] | None) -> set[tuple[str, str, str, str]]:
    """(API group or URL, resource, name or *, verb) that a role grants."""
    granted: set[tuple[str, str, str, str]] = set()
    for rule in (role or {}).get("rules") or ():
        for verb in rule.get("verbs") or ():
            for url in rule.get("nonResourceURLs") or ():
                granted.add((str(url), "", "*", str(verb)))
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("*",):
                        granted.add((str(group), str(resource), str(name), str(verb)))
    return granted


def images_of(data: Any, at: str = "") -> dict[str, str]:
    """Place -> image reference: every string under a key `image`, with the `version` and `repository` beside it."""
    found: dict[str, str] = {}
    if isinstance(data, Mapping):
        image = data.get("image")
        if isinstance(image, str):
            repository, version = data.get("repository"), data.get("version")
            whole = f"{repository}/{image}" if isinstance(repository, str) else image
            found[at] = f"{whole}:{version}" if isinstance(version, str) else whole
        for key, value in data.items():
            found.update(images_of(value, f"{at}.{key}" if at else str(key)))
    elif isinstance(data, (list, tuple)):
        for number, item in enumerate(data):
            name = item.get("name", number) if isinstance(item, Mapping) else number
            found.update(images_of(item, f"{at}[{name}]"))
    return found


def powers(pod: Any) -> set[str]:
    """What a pod template may do beyond a plain container, in words."""
    if not isinstance(pod, Mapping):
        return set()
    found = {key for key in _HOST if pod.get(key) is True}
    for volume in pod.get("volumes") or ():
        path = lookup(volume, ("hostPath", "path"))
        if isinstance(path, str):
            found.add(f"hostPath {path}")
    containers = [c for key in ("initContainers", "containers", "ephemeralContainers") for c in pod.get(key) or ()]
    for holder in (pod, *(c for c in containers if isinstance(c, Mapping))):
        security = holder.get("securityContext") or {}
        name = f" ({holder.get('name')})" if holder is not pod else ""
        found |= {f"{key}{name}" for key in ("privileged", "allowPrivilegeEscalation") if security.get(key) is True}
        if same(security.get("runAsUser"), 0):
            found.add(f"runAsUser 0{name}")
        found |= {f"capability {c}{name}" for c in (security.get("capabilities") or {}).get("add") or ()}
    return found


def _fixed(group: str, kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Found]:
    for path in _FIXED.get((group, kind), ()):
        steps = tuple(path.split("."))
        before, after = lookup(old, steps), lookup(new, steps)
        if MISSING in (before, after) and kind == "Service":
            continue  # the API server fills it in
        if not same(before, after):
            text = f"changes `{path}`, which cannot be changed: the object must be deleted first"
            yield "immutable", "high", text, (f"{steps[-1]}:",)
    if kind in {"ConfigMap", "Secret"} and old.get("immutable") is True:
        content = ("data", "binaryData", "stringData", "immutable")
        if not all(same(old.get(key), new.get(key)) for key in content):
            yield (
                "immutable",
                "high",
                "is marked immutable and changes: it must be deleted first, or get another name",
                (),
            )


def _definition(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Found]:
    if new is None:
        yield "crd-removed", "high", "is removed: every object of that kind goes with it where it is pruned", ()
        return
    before, after = _versions(old), _versions(new)
    for name in sorted(before):
        if name not in after:
            yield (
                "crd-version",
                "high",
                f"no longer has the version {name}: migrate stored objects of it first",
                (f"name: {name}",),
            )
        elif before[name] and not after[name]:
            yield "crd-version", "high", f"no longer serves the version {name}", ("served:",)


def _versions(definition: Mapping[str, Any] | None) -> dict[str, bool]:
    items = lookup(definition, ("spec", "versions")) if definition else ()
    if not isinstance(items, (list, tuple)):
        return {}
    return {str(v.get("name")): v.get("served", True) is True for v in items if isinstance(v, Mapping)}


def _rights(kind: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Found]:
    if kind in _ROLES:
        before = rules_of(old)
        more = sorted(rule for rule in rules_of(new) - before if not any(_covers(b, rule) for b in before))
        if more:
            yield "rbac", "low" if all(map(_reads, more)) else "high", f"grants more: {_told(more)}", ()
    elif kind in _BINDINGS:
        known = [_subject(s) for s in (old or {}).get("subjects") or ()]
        more_subjects = [s for s in map(_subject, new.get("subjects") or ()) if s not in known]
        if more_subjects:
            role = lookup(new, ("roleRef", "name"))
            yield "rbac", "medium", f"binds {role} to {', '.join(more_subjects)}", ()


def _reads(rule: tuple[str, str, str, str]) -> bool:
    """Whether a rule only lets one look, and not at secrets."""
    return rule[3] in {"get", "list", "watch"} and rule[1] not in {"secrets", "*", ""} and rule[0] != "*"


def _covers(wide: tuple[str, ...], rule: tuple[str, ...]) -> bool:
    return all(a in {"*", b} for a, b in zip(wide, rule, strict=True))


def _told(rules: Iterable[tuple[str, str, str, str]]) -> str:
    """Rules by resource: `pods: create, delete; *.apps: *`."""
    verbs: dict[str, list[str]] = {}
    for group, resource, name, verb in rules:
        what = group if not resource else f"{resource}.{group}" if group else resource
        verbs.setdefault(what if name == "*" else f"{what} `{name}`", []).append(verb)
    shown = [f"{what}: {', '.join(words)}" for what, words in verbs.items()]
    more = f"; and {len(shown) - 8} more resources" if len(shown) > 8 else ""
    return "; ".join(shown[:8]) + more


def _subject(data: Any) -> str:
    where = f"{data.get('namespace')}/" if data.get("namespace") else ""
    return f"{data.get('kind')} {where}{data.get('name')}"


def _pod(data: Mapping[str, Any] | None) -> Any:
    if data is None:
        return None
    if data.get("kind") == "Pod":
        return data.get("spec")
    if data.get("kind") == "CronJob":
        return lookup(data, ("spec", "jobTemplate", "spec", "template", "spec"))
    return lookup(data, ("spec", "template", "spec"))


def _power(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Found]:
    more = sorted(powers(_pod(new)) - powers(_pod(old)))
    if more:
        yield "privileged", "high", f"{'gains' if old else 'has'}: {', '.join(more)}", tuple(map(_written, more))


def _images(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Found]:
    if old is None:
        return
    before, after = images_of(old), images_of(new)
    for place in sorted(before.keys() & after.keys()):
        if before[place] != after[place]:
            yield "image", "medium", f"image {before[place]} -> {after[place]}", (after[place], "image:")


def _written(power: str) -> str:
    """What stands in the line that gives a power: `privileged`, `hostNetwork`, the path, the capability."""
    first, _, rest = power.partition(" ")
    return rest.partition(" ")[0] if first in {"hostPath", "capability"} else f"{first}:"


def risky_values(found: Iterable[Change]) -> Iterator[tuple[Change, str, Severity, str]]:
    """Changes of chart values that are risky by what their path is called: (change, kind, severity, sentence).

    Charts are not rendered, so the name of a value is all there is to go by.
    """
    for change in found:
        words = [str(step) for step in change.steps if isinstance(step, str)]
        last = words[-1] if words else ""
        where = f"`{change.path}`"
        if last in {*_HOST, "privileged", "allowPrivilegeEscalation"} and _is_on(change.new) > _is_on(change.old):
            yield change, "privileged", "high", f"{where} is switched on"
        elif _is_version(words, last):
            driver = any("driver" in word.lower() for word in words)
            yield change, "driver" if driver else "image", "high" if driver else "medium", where


def _is_on(value: Any) -> bool:
    """Whether `if` of a Helm template takes a value for true: whatever is there and not empty, false or zero."""
    return value is not MISSING and bool(value)


def switches(data: Any) -> Any:
    """A tree of values with each scalar as `if` of a Helm template reads it; null stays."""
    if isinstance(data, Mapping):
        return {key: switches(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [switches(value) for value in data]
    return data if data is None else _is_on(data)


def _is_version(words: Sequence[str], last: str) -> bool:
    """Whether a value path names an image or the version of a driver."""
    if last in {"tag", "image", "digest", "repository"}:
        return True
    return last == "version" and len(words) > 1


def pod_security(old: Mapping[str, str] | None, new: Mapping[str, str]) -> tuple[Severity, str] | None:
    """(severity, sentence) for a namespace whose Pod Security level is loosened or tightened, or None."""
    levels = {"restricted": 0, "baseline": 1, "privileged": 2}
    key = "pod-security.kubernetes.io/enforce"
    before, after = (old or {}).get(key), new.get(key)
    if old is None or before == after:
        return None
    words = [level or "the default of the cluster" for level in (before, after)]
    # Without the label it is as the cluster says: `privileged` unless that was changed, and then mostly `baseline`.
    if after is not None and levels.get(after, 0) > levels.get(before or "baseline", 1):
        return "high", f"Pod Security is loosened from {words[0]} to {words[1]}"
    if before is not None and levels.get(before, 0) > levels.get(after or "baseline", 1):
        return "medium", f"Pod Security is tightened from {words[0]} to {words[1]}: pods that need more are refused"
    return None
