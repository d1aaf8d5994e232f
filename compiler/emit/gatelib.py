"""The gate library `lib/`: what deploy.sh and helmfile share. Emitted alike by both.

    lib/gates.sh   probes, the loop around them, diagnosis
    lib/gate       the table of this bundle's gates; `lib/gate [--context NAME] [--teardown] RELEASE`
    lib/prepare    namespaces and CRDs in front of a release; `lib/prepare [--context NAME] RELEASE`

A check is one line `gate_KIND ID TIMEOUT ON_TIMEOUT SCOPE ARGUMENT...`. The same function makes the arguments of that
line and the token of the check, so that a changed name, path or value shows when the bundle is read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from compiler.emit import shell
from compiler.errors import Diagnostic, InternalError, UserError
from compiler.model import Check, Files, GateCheck, Plan, Release
from compiler.source import parse_path

TEARDOWN_TIMEOUT = 1800
"""Seconds that a release may wait to be removed: draining nodes one by one takes its time."""


def emit(plan: Plan) -> Files:
    """`lib/gates.sh`, `lib/gate` and `lib/prepare`. Raises `UserError` (BC3011) for a check no probe can look at."""
    settings = plan.settings.gates
    releases = plan.releases
    gates = [(r.id, [gate_line(c) for c in r.gate.checks] if r.gate else []) for r in releases]
    teardown = [(r.id, [gate_line(c) for c in teardown_checks(r, settings.timeout_scale)]) for r in releases]
    crds = [(r.id, list(_crds_lines(r))) for r in releases]
    return {
        "lib/gates.sh": shell.render("gates.sh", poll=settings.poll),
        "lib/gate": shell.render(
            "gate",
            gates=shell.cases(gates),
            teardown=shell.cases(teardown),
            namespaces=shell.script((f"{quote(r.id)}) echo {quote(r.namespace)} ;;" for r in releases), 4),
        ),
        "lib/prepare": shell.render(
            "prepare",
            crds=shell.cases(crds),
            namespaces=shell.Script(shell.words(n.name for n in plan.namespaces)),
        ),
    }


def tokens(check: Check) -> frozenset[str]:
    """The token that the check leaves among the guards of a release: its probe with all arguments."""
    return frozenset({shell.words(probe(check))})


def gate_tokens(item: GateCheck) -> frozenset[str]:
    """The tokens of a check of a gate: its probe, and its whole line with deadline, onTimeout and scope."""
    return tokens(item.check) | {gate_line(item)}


def read_gates(files: Files) -> Mapping[str, frozenset[str]]:
    """Release id -> what `lib/gate` holds in front of it: the token of every check, and the check's whole line."""
    return _read(files, "gates_of")


def read_teardown(files: Files) -> Mapping[str, frozenset[str]]:
    """Release id -> what `lib/gate --teardown` waits for before the release is removed; as `read_gates`."""
    return _read(files, "teardown_of")


def gate_line(item: GateCheck) -> str:
    """The command that waits for a check of a gate."""
    name = f"{item.provider}/{item.check.id}"
    kind, *arguments = probe(item.check)
    return shell.words([f"gate_{kind}", name, item.timeout, item.on_timeout, item.scope, *arguments])


def teardown_checks(release: Release, scale: float = 1) -> tuple[GateCheck, ...]:
    """The conditions of the release's removal as checks of a gate; `scale`: of the bundle's deadlines."""
    limit = round(TEARDOWN_TIMEOUT * scale)
    return tuple(GateCheck(check, release.component, limit, "fail", "always") for check in release.teardown_before)


def once_line(name: str, check: Check) -> str:
    """The command that looks at a check once and reports it under `name` (with GATE_MODE=once)."""
    kind, *arguments = probe(check)
    return shell.words([f"gate_{kind}", name, 0, "fail", "always", *arguments])


def probe(check: Check) -> tuple[str, ...]:
    """Kind and arguments of the probe in lib/gates.sh that looks at `check`; every kind of check has one.

    Raises `UserError` (BC3011) when a path stands for several values or none.
    """
    name, namespace = check.name or "", check.namespace or ""
    match check.kind:
        case "crd":
            return ("crd", name)
        case "deployment" | "statefulset":
            return (check.kind, name, namespace, _number(check.min_ready))
        case "daemonset":
            nodes = 1 if check.min_nodes is None else check.min_nodes
            return ("daemonset", name, namespace, str(nodes), _number(check.min_ready))
        case "job":
            return ("job", name, namespace)
        case "field":
            return ("field", _resource(check), name, namespace, json_path(check), check.op or "", check.value or "")
        case "condition":
            return ("condition", _resource(check), name, namespace, check.type or "", check.value or "True")
        case "every":
            return ("every", _resource(check), namespace, json_path(check), check.value or "")
        case "gone":
            return ("gone", f"{check.resource}.{check.group}" if check.group else check.resource, namespace)
        case "nodes":
            return ("nodes", check.selector or "", str(1 if check.min_nodes is None else check.min_nodes))
        case "webhook":
            return ("webhook", name, namespace)
        case _:
            raise InternalError(f"unknown kind of check: {check.kind}")


def json_path(check: Check) -> str:
    """The path of a check as kubectl's JSONPath: `{.status.state}`; dots of a key are escaped. Raises BC3011."""
    try:
        steps = parse_path(check.path or "")
    except ValueError as error:
        fix = "write the path of one value"
        raise UserError([Diagnostic("BC3011", str(error), check.origin.span(), fix)]) from error
    if not steps:
        message = f"the check `{check.id}` has no path"
        raise UserError([Diagnostic("BC3011", message, check.origin.span(), "write the path of one value")])
    parts = (f"[{step}]" if isinstance(step, int) else "." + step.replace(".", "\\.") for step in steps)
    return "{" + "".join(parts) + "}"


def chart_words(release: Release) -> tuple[str, ...]:
    """How the helm command line names a remote chart: reference and options."""
    chart = release.chart
    if chart is None:
        raise InternalError(f"{release.id} has no remote chart")
    oci = chart.repository.startswith("oci://")
    head = (f"{chart.repository}/{chart.name}",) if oci else (chart.name, "--repo", chart.repository)
    return (*head, "--version", chart.version, *(["--plain-http"] if chart.plain_http else []))


# Number of arguments of each probe, for reading back: a line that the library would misread is no guard.
_ARGUMENTS: Mapping[str, int] = {
    "crd": 1, "deployment": 3, "statefulset": 3, "daemonset": 4, "job": 2, "field": 6, "condition": 5, "every": 4,
    "gone": 2, "nodes": 2, "webhook": 2,
}  # fmt: skip


def _read(files: Files, function: str) -> dict[str, frozenset[str]]:
    text = files.get("lib/gate", b"").decode()
    return {release: frozenset(_tokens(lines)) for release, lines in shell.read_cases(text, function).items()}


def _tokens(lines: Iterable[list[str]]) -> Iterable[str]:
    for line in lines:
        if len(line) < 5:
            continue
        (command, _, timeout, on_timeout, scope), arguments = line[:5], line[5:]
        kind = command.removeprefix("gate_")
        whole = (
            timeout.isascii()
            and timeout.isdigit()
            and on_timeout in ("fail", "warn")
            and scope in ("always", "install")
        )
        if command.startswith("gate_") and _ARGUMENTS.get(kind) == len(arguments) and whole:
            yield shell.words([kind, *arguments])
            yield shell.words(line)


def _resource(check: Check) -> str:
    # `resource.version.group`: exactly the version whose fields the check names.
    return f"{check.resource}.{check.version}.{check.group}" if check.group else check.resource


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _crds_lines(release: Release) -> Iterator[str]:
    for command, names in (("apply_crds", release.crds_before), ("upgrade_crds", release.crds_on_upgrade)):
        if names:
            yield shell.words([command, *chart_words(release), "--", *sorted(names)])
