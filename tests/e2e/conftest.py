"""End-to-end scenarios on a real API server: run by `make e2e`, never by `make test`. Prints a table at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.binaries import MissingError, programs
from tests.e2e.cluster import has_tools

collect_ignore_glob = [] if os.environ.get("BUNDLEC_E2E") else ["test_*.py"]

_ROWS = pytest.StashKey[list[tuple[str, str, str, float, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them carry the marker; where nothing can run, all are skipped for one reason."""
    here = Path(__file__).parent
    mine = [item for item in items if here in item.path.parents]
    why = _unable()
    for item in mine:
        item.add_marker(pytest.mark.e2e)
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


def _unable() -> str:
    """Why no scenario can run here; empty when they can. Under BUNDLEC_E2E=required that is an error."""
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
    if why and os.environ.get("BUNDLEC_E2E") == "required":
        raise pytest.UsageError(f"e2e: {why}")
    return why


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if item.get_closest_marker("e2e") and (report.when == "call" or report.outcome != "passed"):
        function: Any = item
        text = (function.function.__doc__ or item.name).strip().partition("\n")[0].rstrip(".")
        callspec = getattr(item, "callspec", None)
        helm = (callspec.params.get("helm", "") if callspec else "") or getattr(function.function, "helm", "")
        deployer = f"{function.module.DEPLOYER} {helm}".strip()
        rows = item.config.stash[_ROWS]
        took = call.duration
        rows.append((deployer, text, report.outcome, took, item.nodeid))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    rows = config.stash[_ROWS]
    if not rows:
        return
    reasons = {r.longrepr[2] for r in terminalreporter.stats.get("skipped", []) if isinstance(r.longrepr, tuple)}
    if all(outcome == "skipped" for _, _, outcome, _, _ in rows) and len(reasons) == 1:
        terminalreporter.write_line(f"e2e: skipped, {reasons.pop().removeprefix('Skipped: ')}")
        return
    width = max(len(deployer) for deployer, *_ in rows)
    scenario = max(len(text) for _, text, *_ in rows)
    terminalreporter.section("end-to-end")
    for deployer, text, outcome, took, _ in rows:
        terminalreporter.write_line(f"{deployer:{width}}  {text:{scenario}}  {outcome:7}  {took:6.1f} s")
    bad = sum(outcome == "failed" for _, _, outcome, _, _ in rows)
    good = sum(outcome == "passed" for _, _, outcome, _, _ in rows)
    seconds = sum(took for _, _, _, took, _ in rows)
    terminalreporter.write_line(f"{good} passed, {bad} failed, {seconds:.0f} s")
