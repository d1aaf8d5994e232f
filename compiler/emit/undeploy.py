"""undeploy.sh: the releases in reverse order, each behind the conditions of its removal."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.emit import shell
from compiler.model import Files, Plan


def emit(plan: Plan) -> Files:
    """`undeploy.sh`. It reads the conditions from `lib/gate --teardown` (see gatelib)."""
    removals = [
        shell.words(["remove", r.id, r.component, r.namespace, r.install.timeout, "keep" if r.keep else "remove"])
        for r in reversed(plan.releases)
    ]
    stuck = dict.fromkeys(
        _lines(["stuck", s.group, s.kind, s.namespace or "", s.finalizer], s.commands)
        for release in reversed(plan.releases)
        for s in release.stuck
    )
    return {
        "undeploy.sh": shell.render(
            "undeploy.sh",
            title=shell.Script(plan.bundle),
            removals=shell.body(removals),
            stuck=shell.body(stuck),
            namespaces=shell.script((shell.words([n.name]) for n in plan.namespaces), 2),
            crds=shell.script((shell.words([name]) for name in plan.crds), 2),
        )
    }


def read_order(files: Files) -> tuple[str, ...]:
    """The release ids in the order in which undeploy.sh removes them, read from the file."""
    text = files.get("undeploy.sh", b"").decode()
    return tuple(line[1] for line in shell.read_body(text, "removals") if line[0] == "remove" and len(line) == 6)


def _lines(head: list[str], rest: Iterable[str]) -> str:
    """One command over several lines, each further word on its own."""
    return " \\\n    ".join([shell.words(head), *(shell.words([word]) for word in rest)])
