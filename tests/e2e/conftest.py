"""End-to-end scenarios on a real API server: run by `make e2e`, never by `make test`.

Prints one table at the end, a line a scenario. Of one that failed the logs and the audit trail are kept, in a folder
below `.e2e/` that the table names.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.binaries import MissingError, programs
from tests.e2e.cluster import ROOT, Cluster, has_tools

collect_ignore_glob = [] if os.environ.get("BUNDLEC_E2E") else ["test_*.py"]

CORE = ("deploy.sh", "helmfile", "API server", "guard Jobs")
"""Deployers whose scenarios come first, in this order, and run however late it is."""

KEPT = ROOT / ".e2e"
"""Where the traces of failures go. Emptied at the start of a run."""


@dataclass
class Row:
    """A line of the table: what was deployed with, what was looked at, and how that ended."""

    deployer: str
    scenario: str
    outcome: str = "passed"
    seconds: float = 0.0
    kept: Path | None = None


_ROWS = pytest.StashKey[dict[str, Row]]()
_STARTED = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = {}
    config.stash[_STARTED] = time.monotonic()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All of them carry the marker, the core comes first; where nothing can run, all are skipped for one reason."""
    here = Path(__file__).parent
    mine = [item for item in items if here in item.path.parents]
    why = _unable() if mine else ""
    for item in mine:
        item.add_marker(pytest.mark.e2e)
        if why:
            item.add_marker(pytest.mark.skip(reason=why))
    items.sort(key=lambda item: CORE.index(_deployer(item)) if _deployer(item) in CORE else len(CORE))
    if mine and not why and not config.option.collectonly:
        shutil.rmtree(KEPT, ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """BUNDLEC_E2E_SECONDS after the start only the core begins: a run that is cut off by others would show nothing."""
    limit = os.environ.get("BUNDLEC_E2E_SECONDS")
    if limit and _deployer(item) not in CORE and time.monotonic() - item.config.stash[_STARTED] > float(limit):
        pytest.skip(f"no time left for {_deployer(item)} in this run (BUNDLEC_E2E_SECONDS={limit})")


def _deployer(item: pytest.Item) -> str:
    return str(getattr(getattr(item, "module", None), "DEPLOYER", ""))


def _unable() -> str:
    """Why no scenario can run here; empty when they can. Under BUNDLEC_E2E=required that is an error."""
    required = os.environ.get("BUNDLEC_E2E") == "required"
    why = ""
    try:
        programs(build=False)
    except MissingError as missing:
        why = str(missing)
    if not has_tools("helm3", "helm4", "kubectl", "kubectl-guards"):
        why = "no helm3, helm4, kubectl, kubectl-guards in .tools/bin (make tools)"
    crds = os.environ.get("BUNDLEC_CRDS")
    if not crds or not Path(crds).is_dir():
        why = "no folder of CRDs (BUNDLEC_CRDS)"
    if required and not why and not has_tools("helmfile"):
        why = "no helmfile in .tools/bin (make tools HELMFILE=1)"
    if why and required:
        raise pytest.UsageError(f"e2e: {why}")
    return why


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if not item.get_closest_marker("e2e"):
        return report
    function: Any = item
    row = item.config.stash[_ROWS].get(item.nodeid)
    if row is None:
        text = " ".join((function.function.__doc__ or item.name).partition("\n\n")[0].split()).rstrip(".")
        callspec = getattr(item, "callspec", None)
        helm = callspec.params.get("helm", "") if callspec else ""
        deployer = f"{getattr(function.module, 'DEPLOYER', function.module.__name__)} {helm}".strip()
        others = [str(v) for k, v in sorted(callspec.params.items()) if k != "helm"] if callspec else []
        scenario = f"{text} ({', '.join(others)})" if others else text
        row = item.config.stash[_ROWS][item.nodeid] = Row(deployer, scenario)
    row.seconds += call.duration
    if report.when == "call":  # `record_property("with", text)`: what was in place of the real thing
        row.scenario += "".join(f" [{text}]" for name, text in report.user_properties if name == "with")
    if report.outcome != "passed" and row.outcome != "failed":
        row.outcome = report.outcome
    if report.outcome == "failed" and row.kept is None:
        row.kept = _keep(item, report)
    return report


def _keep(item: pytest.Item, report: pytest.TestReport) -> Path:
    """Copies what tells why a scenario failed: logs, the audit trail, and how its clusters look right now."""
    target = KEPT / re.sub(r"[^A-Za-z0-9.-]+", "-", item.nodeid.rpartition("/")[2]).strip("-")
    target.mkdir(parents=True, exist_ok=True)
    (target / "failure.txt").write_text(f"{item.nodeid}\n\n{report.longreprtext}\n")
    function: Any = item
    values = list(getattr(function, "funcargs", {}).values())
    clusters = [value for value in values if isinstance(value, Cluster)]
    folders = {c.folder for c in clusters} | {v for v in values if isinstance(v, Path) and v.is_dir()}
    for folder in sorted(folders):
        for log in sorted(folder.rglob("*.log")):
            place = target / folder.name / log.relative_to(folder)
            with suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(log, place)
    for made in clusters:
        with suppress(Exception):
            (target / f"{made.folder.name}.txt").write_text(
                f"releases: {made.statuses()}\nsimulator: {made.simulator.errors[-20:]}\n\n"
                + made.kubectl("get", "pods,deployments,daemonsets,statefulsets,jobs", "-A", "-o", "wide")
                + made.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")
            )
    return target


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    rows = list(config.stash[_ROWS].values())
    if not rows:
        return
    reasons = {r.longrepr[2] for r in terminalreporter.stats.get("skipped", []) if isinstance(r.longrepr, tuple)}
    if all(row.outcome == "skipped" for row in rows) and len(reasons) == 1:
        terminalreporter.write_line(f"e2e: skipped, {reasons.pop().removeprefix('Skipped: ')}")
        return
    width = max(len(row.deployer) for row in rows)
    scenario = max(len(row.scenario) for row in rows)
    terminalreporter.section("end-to-end")
    for row in rows:
        terminalreporter.write_line(
            f"{row.deployer:{width}}  {row.scenario:{scenario}}  {row.outcome:7}  {row.seconds:6.1f} s"
        )
        if row.kept is not None:
            terminalreporter.write_line(f"{'':{width}}  logs and audit trail: {row.kept}")
    number = {outcome: sum(row.outcome == outcome for row in rows) for outcome in ("passed", "failed", "skipped")}
    for reason in sorted(reasons):
        terminalreporter.write_line(f"skipped: {reason.removeprefix('Skipped: ')}")
    told = ", ".join(f"{count} {outcome}" for outcome, count in number.items() if count or outcome != "skipped")
    terminalreporter.write_line(f"{told}, {sum(row.seconds for row in rows):.0f} s")
