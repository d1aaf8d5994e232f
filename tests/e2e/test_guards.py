"""The guard Jobs of Argo CD, run with real kubectl and their ServiceAccount's rights, without Argo CD itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.cluster import GKE, NVKE, cluster
from tests.e2e.test_faults import ONLY

DEPLOYER = "guard Jobs"


@pytest.mark.parametrize("name", [NVKE, GKE])
def test_guards(name: str, tmp_path: Path) -> None:
    """Each guard Job holds until its checks hold, then completes; its rights are enough."""
    with cluster(tmp_path / "c", name, "helm4") as made:
        made.kubectl("apply", "-f", str(made.path / "namespaces"), "-f", str(made.path / "argocd" / "rbac"))
        guards = sorted((made.path / "argocd" / "guards").glob("*/*.yaml"))
        jobs = {}
        for path in guards:
            made.kubectl("create", "-f", str(path))
            jobs[path.stem] = made.kubectl(
                "get", "-f", str(path), "-o", "jsonpath={.metadata.namespace}/{.metadata.name}"
            )
        assert jobs
        time.sleep(5)
        assert not _finished(made.kubectl("get", "jobs", "-A", "-o", _DONE))
        # Guards of a -post piece are hooks of the same sync; what they wait for is applied by then.
        made.deploy(*(ONLY if name == NVKE else ())).expect(0)
        wanted = {job for release, job in jobs.items() if name == GKE or release in made.statuses()}
        deadline = time.monotonic() + 90
        while not wanted <= set(done := _finished(made.kubectl("get", "jobs", "-A", "-o", _DONE))):
            logs = [p.read_text()[-300:] for p in (tmp_path / "c" / "pods").glob("*/*.log")]
            assert time.monotonic() < deadline, (wanted - done, logs)
            time.sleep(1)
        witness = made.witness()
        for release, job in jobs.items():
            if job not in wanted:
                continue
            gate = made.bundle.plan.release(release).gate
            assert gate is not None
            for check in gate.checks:
                held = witness.held(check.check)
                assert "" < (held or "")[:19] <= done[job][:19], (job, check.check.id, held, done[job])


_DONE = 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}={.status.completionTime}{"\\n"}{end}'


def _finished(rows: str) -> dict[str, str]:
    return {name: at for name, _, at in (row.partition("=") for row in rows.splitlines()) if at}
