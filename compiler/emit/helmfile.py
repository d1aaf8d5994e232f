"""helmfile: `helmfile.yaml`, plain YAML without templates, over the shared charts, values and gate library.

Order is `needs`; helmfile starts a release only after all that it needs have succeeded. A gate is a presync hook of the
release that it stands in front of: helmfile runs the hook right before that release's `helm upgrade` and not at all
when it only compares. Charts are not compared with the cluster before their first installation
(`disableValidationOnInstall`): their custom resources may be of kinds that an earlier release brings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from compiler.emit import gatelib, names, payload
from compiler.errors import Collector
from compiler.model import Chart, Check, Files, GateCheck, Install, Plan, Release, Wiring
from compiler.yamlio import dump, load

FILE = "helmfile.yaml"
PURGE = "BUNDLEC_PURGE"
"""Environment variable that lets `helmfile destroy` remove releases that carry CRDs in their templates."""

_GATE = "./lib/gate"
_PREPARE = "./lib/prepare"
# The context that helmfile itself uses: of its --kube-context, empty when kubectl's current one is meant.
_CONTEXT = ("--context", "{{ .Release.KubeContext }}")
_REMOVAL_TIMEOUT = 600  # seconds that Helm waits for the objects of a removed release
_DEFAULT = Install()
_BRACES = "{{"


def emit(plan: Plan) -> Files:
    """`helmfile.yaml` and the gate library.

    Raises `UserError`: BC4003 for a setting that helmfile cannot honour, BC4004 for `{{` in a field that helmfile takes
    for a template, BC3011 for a check that cannot be evaluated.
    """
    found = Collector()
    charts = [r.chart for r in plan.releases if r.chart is not None]
    urls = sorted({c.repository for c in charts if not _oci(c)})
    document: dict[str, Any] = {}
    if urls:
        document["repositories"] = [{"name": repository_name(url), "url": url} for url in urls]
    document["helmDefaults"] = _defaults(plan, found)
    namespaces = {release.id: release.namespace for release in plan.releases}
    owned = frozenset(n.name for n in plan.namespaces)
    document["releases"] = [
        {**_release(plan, release, namespaces), **_hooked(release, owned)} for release in plan.releases
    ]
    for release, item in zip(plan.releases, document["releases"], strict=True):
        _check_braces(plan, release, item, found)
    gates = dict(gatelib.emit(plan))
    found.raise_if_failed()
    return {**gates, FILE: dump(document).encode()}


def tokens(check: Check) -> frozenset[str]:
    """The tokens of `check` in `Wiring.guards`: those of the gate library."""
    return gatelib.tokens(check)


def gate_tokens(item: GateCheck) -> frozenset[str]:
    """The tokens of a check of a gate: those of the gate library."""
    return gatelib.gate_tokens(item)


def read_back(files: Files) -> Wiring:
    """The order that `helmfile.yaml` and `lib/gate` hold.

    A release is guarded by what `lib/gate` waits for under the name that its presync hook gives; its removal, which
    `helmfile destroy` does in reverse order of `needs`, by what its preuninstall hook names.
    """
    document = load(files[FILE].decode(), FILE).data
    ids = {f"{item['namespace']}/{item['name']}": item["name"] for item in document["releases"]}
    gates, teardown = gatelib.read_gates(files), gatelib.read_teardown(files)
    hard: set[tuple[str, str]] = set()
    guards: dict[str, frozenset[str]] = {}
    partings: dict[str, frozenset[str]] = {}
    for item in document["releases"]:
        hard.update((ids[need], item["name"]) for need in item.get("needs", ()) if need in ids)
        held = frozenset(token for name in _gates_of(item) for token in gates.get(name, ()))
        if held:
            guards[item["name"]] = held
        asked = _gates_of(item, "preuninstall", "--teardown")
        partings[item["name"]] = frozenset(token for name in asked for token in teardown.get(name, ()))
    return Wiring(tuple(ids.values()), frozenset(hard), frozenset(), guards, partings=partings)


def repository_name(url: str) -> str:
    """The name under which helmfile adds a repository to Helm's list of repositories, which all bundles share.

    Made of the whole URL, so that it never replaces a repository that somebody else added under a short name.
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", url.split("://", 1)[-1]).strip("-")


def _defaults(plan: Plan, found: Collector) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "createNamespace": False,  # lib/prepare does, with their labels
        "wait": True,
        "waitForJobs": True,
        "timeout": _DEFAULT.timeout,
        # Custom resources are no matter of Helm's wait, they are what gates look at.
        "trackMode": "helm-legacy",
        "syncReleaseLabels": True,
        "deleteWait": True,
        "deleteTimeout": _REMOVAL_TIMEOUT,
        "cascade": "foreground",
    }
    extra = plan.settings.helm_extra_args
    if extra:
        for index, argument in enumerate(extra):
            if re.search(r"\s", argument):
                found.error(
                    "BC4003",
                    f"helmfile splits arguments of Helm at blanks, it cannot pass on `{argument}`",
                    plan.recipe.setting_at(f"helm.extraArgs[{index}]"),
                    fix="write `helm.extraArgs` without blanks, or leave helmfile out of `deployers`",
                )
        defaults["syncArgs"] = list(extra)
    return defaults


def _release(plan: Plan, release: Release, namespaces: Mapping[str, str]) -> dict[str, Any]:
    item: dict[str, Any] = {"name": release.id, "namespace": release.namespace}
    if release.chart is None:
        item["chart"] = f"./{payload.directory(release)}"
    else:
        item.update(_chart(release.chart))
    item["labels"] = {
        "bundlec.dev/bundle": plan.bundle,
        "bundlec.dev/content": payload.content_hash(release),
        "bundlec.dev/teardown": payload.teardown(release),
    }
    if release.needs:
        item["needs"] = [f"{namespaces[need]}/{need}" for need in release.needs]
    if release.chart is not None:
        item["values"] = [f"{payload.directory(release)}/values.yaml"]
    install = release.install
    if install.timeout != _DEFAULT.timeout:
        item["timeout"] = install.timeout
    if install.wait == "none":
        item["wait"] = False
    if install.wait == "none" or not install.wait_for_jobs:
        item["waitForJobs"] = False
    item["disableValidationOnInstall"] = True
    return item


def _hooked(release: Release, owned: Collection[str]) -> dict[str, Any]:
    hooks = list(_hooks(release, owned))
    return {"hooks": hooks} if hooks else {}


def _chart(chart: Chart) -> dict[str, Any]:
    if not _oci(chart):
        return {"chart": f"{repository_name(chart.repository)}/{chart.name}", "version": chart.version}
    item: dict[str, Any] = {"chart": f"{chart.repository}/{chart.name}", "version": chart.version}
    if chart.plain_http:
        item["plainHttp"] = True
    return item


def _hooks(release: Release, owned: Collection[str]) -> Iterator[dict[str, Any]]:
    if release.gate is not None:
        yield _hook("gate", "presync", _GATE, *_CONTEXT, release.id)
    if release.crds_before or release.crds_on_upgrade or release.namespace in owned:
        yield _hook("prepare", "presync", _PREPARE, *_CONTEXT, release.id)
    if release.keep:
        message = f"{release.id} carries CRDs: removing it deletes every object of them; set {PURGE}=1 to do so"
        script = f'test "${{{PURGE}:-}}" = 1 || {{ echo "{message}"; exit 1; }}'
        yield _hook("keep", "preuninstall", "sh", "-c", script)
    if release.teardown_before:
        yield _hook("teardown", "preuninstall", _GATE, *_CONTEXT, "--teardown", release.id)


def _hook(name: str, event: str, command: str, *args: str) -> dict[str, Any]:
    return {"name": name, "events": [event], "showlogs": True, "command": command, "args": list(args)}


def _gates_of(item: dict[str, Any], event: str = "presync", *options: str) -> Iterator[str]:
    """The names that the hooks of a release for an event give to `lib/gate`, behind these options."""
    head = (*_CONTEXT, *options)
    for hook in item.get("hooks", ()):
        arguments = list(hook.get("args", ()))
        if event not in hook.get("events", ()) or hook.get("command") != _GATE:
            continue
        if tuple(arguments[:-1]) == head:
            yield arguments[-1]


def _check_braces(plan: Plan, release: Release, item: dict[str, Any], found: Collector) -> None:
    """Helmfile renders these fields as Go templates, though the file itself is none."""
    fields = [item["name"], item["namespace"], item["chart"], item.get("version", ""), *item["labels"].values()]
    fields += [*item.get("needs", ()), *item.get("values", ())]
    for text in fields:
        if _BRACES in text:
            found.error(
                "BC4004",
                f"`{release.id}`: helmfile would take `{text}` for a template",
                names.origin_of(plan, release.component),
                fix="write it without `{{`, or leave helmfile out of `deployers`",
            )


def _oci(chart: Chart) -> bool:
    return chart.repository.startswith("oci://")
