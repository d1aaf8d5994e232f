"""Argo CD: `argocd/optional/argocd-cm.yaml`, health checks for who wants waves between Applications to hold.

Since Argo CD 1.8 an Application has no health for the Application that holds it, so a wave of Applications is done as
soon as they are written. With this customisation it is done when they are synced and healthy, and a custom resource is
healthy when it is in the state that the bundle's checks ask for. Guards do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compiler.emit.argocd_site import Site
from compiler.model import Check, Plan
from compiler.source import parse_path

FILE = "argocd/optional/argocd-cm.yaml"
_KEY = "resource.customizations.health."

# A status counts only when it is about the sources that the spec has now. Sources are compared by the fields that say
# what is read from where: Argo CD leaves others out of `comparedTo`. A spec without `sources` has a single source.
_APPLICATION = """\
local health = { status = "Progressing", message = "not compared yet" }
local status = obj.status
if status == nil or status.sync == nil or status.health == nil then
  return health
end

local function what(source)
  local words = {}
  for i, field in ipairs({ "repoURL", "chart", "path", "targetRevision", "ref" }) do
    words[i] = (source or {})[field] or ""
  end
  return table.concat(words, " ")
end

local function sources(of)
  if of.sources ~= nil and #of.sources > 0 then
    return of.sources
  end
  return { of.source or {} }
end

local wanted, compared = sources(obj.spec), sources(status.sync.comparedTo or {})
local same = #wanted == #compared
for i, source in ipairs(wanted) do
  same = same and what(source) == what(compared[i])
end
if not same then
  health.message = "the status is about other sources than the spec"
  return health
end

local operation = status.operationState
if operation ~= nil and operation.phase ~= "Succeeded" then
  health.message = "sync " .. (operation.phase or "?") .. ": " .. (operation.message or "")
elseif status.sync.status ~= "Synced" then
  health.message = "sync status " .. (status.sync.status or "?")
else
  health.status = status.health.status or "Progressing"
  health.message = status.health.message or ""
end
return health
"""


def config_map(site: Site) -> dict[str, Any]:
    """The ConfigMap, to be merged into the one of the installation with `kubectl apply --server-side`."""
    data = {f"{_KEY}argoproj.io_Application": _APPLICATION}
    kinds: dict[tuple[str, str], list[Check]] = {}
    for check in _fields(site.plan):
        kinds.setdefault((check.group, check.object_kind), []).append(check)
    for (group, kind), checks in sorted(kinds.items()):
        data[f"{_KEY}{group}_{kind}"] = _resource(checks)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": site.settings.namespace,
            # Argo CD finds its own settings by it.
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": data,
    }


def _fields(plan: Plan) -> Iterable[Check]:
    """The bundle's questions for one value of a custom resource, without repetition, in a stable order."""
    checks = [c.check for release in plan.releases if release.gate for c in release.gate.checks]
    checks += [check for component in plan.components for check in component.health]
    found = {
        (
            check.group,
            check.object_kind,
            check.namespace or "",
            check.name or "",
            check.path or "",
            check.value or "",
        ): check
        for check in checks
        if check.kind == "field" and check.op == "equals" and _custom(check.group) and _steps(check) is not None
    }
    return [check for _, check in sorted(found.items(), key=lambda item: item[0])]


def _custom(group: str) -> bool:
    """Whether a group is one of custom resources: Argo CD knows the health of built-in kinds itself."""
    return "." in group and not group.endswith(".k8s.io")


def _resource(checks: Iterable[Check]) -> str:
    """Lua for one kind: an object that the bundle asks about is Progressing until it is in the wanted state.

    Never Degraded: that would fail the sync of whatever holds the object.
    """
    lines = [
        "local function value(path)",
        "  local at = obj",
        "  for _, step in ipairs(path) do",
        '    if type(at) ~= "table" then',
        "      return nil",
        "    end",
        "    at = at[step]",
        "  end",
        "  return at",
        "end",
        "",
        'local name, namespace = obj.metadata.name, obj.metadata.namespace or ""',
        'local health = { status = "Healthy", message = "" }',
        "local function wants(path, wanted, label)",
        "  local is = value(path)",
        "  if tostring(is) ~= wanted then",
        '    health.status = "Progressing"',
        '    health.message = label .. " is " .. tostring(is) .. ", wants " .. wanted',
        "  end",
        "end",
    ]
    for check in checks:
        steps = ", ".join(str(s + 1) if isinstance(s, int) else _string(s) for s in _steps(check) or ())
        condition = f"name == {_string(check.name or '')}"
        if check.namespace:
            condition += f" and namespace == {_string(check.namespace)}"
        lines += [
            f"if {condition} then",
            f"  wants({{ {steps} }}, {_string(check.value or '')}, {_string(check.path or '')})",
            "end",
        ]
    return "\n".join([*lines, "return health", ""])


def _steps(check: Check) -> tuple[str | int, ...] | None:
    try:
        return parse_path(check.path or "") or None
    except ValueError:
        return None


def _string(text: str) -> str:
    """`text` as a string of Lua."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
