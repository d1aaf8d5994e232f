"""preflight.sh: what the recipe expects of the cluster, looked at before anything is applied."""

from __future__ import annotations

from compiler.emit import gatelib, shell
from compiler.errors import InternalError
from compiler.model import Files, Plan, PreflightCheck


def emit(plan: Plan) -> Files:
    """`preflight.sh`. Raises `UserError` (BC3011) for a check that no probe can look at."""
    prefix = plan.settings.prefix
    own = {(crd.group, crd.kind) for c in plan.recipe.enabled() for crd in c.component.crds}
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
            helm_releases=shell.script((shell.words([f"{prefix}-{r.id}"]) for r in plan.releases), 2),
            checks=shell.body(_line(check, own) for check in plan.preflight),
        )
    }


def _line(check: PreflightCheck, own: set[tuple[str, str]]) -> str:
    head = [check.name, check.severity, check.text]
    if check.kind == "check" and check.check is not None:
        return shell.words(["need_check", *head, *gatelib.probe(check.check)])
    if check.kind == "singleton" and check.singleton is not None:
        only = check.singleton
        # Of a kind that a component brings, every object is its business; of one that others use, that name only.
        named = () if (only.group, only.kind) in own else (only.name,)
        return shell.words(["need_singleton", f"{only.kind} {only.name}", *head[1:], only.group, only.kind, *named])
    if check.kind in ("version", "os", "kernel", "label"):
        return shell.words([f"need_{check.kind}", *head, check.value])
    if check.kind == "unchecked":
        return shell.words(["unchecked", *head, check.value])
    raise InternalError(f"unknown kind of preflight check: {check.kind}")
