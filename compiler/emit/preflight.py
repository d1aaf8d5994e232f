"""preflight.sh: what the recipe expects of the cluster, looked at before anything is applied."""

from __future__ import annotations

from compiler.emit import gatelib, shell
from compiler.errors import InternalError
from compiler.model import Files, Plan, PreflightCheck


def emit(plan: Plan) -> Files:
    """`preflight.sh`. Raises `UserError` (BC3011) for a check that no probe can look at."""
    prefix = plan.settings.prefix
    applications = dict.fromkeys(f"{prefix}-{r.component}" for r in plan.releases)
    return {
        "preflight.sh": shell.render(
            "preflight.sh",
            title=shell.Script(plan.bundle),
            bundle=plan.bundle,
            selector=plan.accelerated_selector,
            empty_pool="warning" if plan.settings.gates.min_nodes == 0 else "error",
            releases=shell.script((shell.words([f"{r.namespace}/{r.id}"]) for r in plan.releases), 2),
            applications=shell.script((shell.words([name]) for name in applications), 2),
            checks=shell.body(_line(check) for check in plan.preflight),
        )
    }


def _line(check: PreflightCheck) -> str:
    head = [check.name, check.severity, check.text]
    if check.kind == "check" and check.check is not None:
        return shell.words(["need_check", *head, *gatelib.probe(check.check)])
    if check.kind == "singleton" and check.singleton is not None:
        name = f"{check.singleton.kind} {check.singleton.name}"
        return shell.words(["need_singleton", name, *head[1:], check.singleton.group, check.singleton.kind])
    if check.kind in ("version", "os", "kernel", "label"):
        return shell.words([f"need_{check.kind}", *head, check.value])
    if check.kind == "unchecked":
        return shell.words(["unchecked", *head, check.value])
    raise InternalError(f"unknown kind of preflight check: {check.kind}")
