"""`helmfile apply` on the NVKE bundle, with both Helms; it compares with the plugin `diff` (see helmdiff)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import NVKE, TOOLS, Cluster, cluster
from tests.e2e.helmdiff import plugins
from tests.e2e.witness import describe, reference

DEPLOYER = "helmfile"

pytestmark = pytest.mark.skipif(not (TOOLS / "helmfile").exists(), reason="no helmfile (make tools HELMFILE=1)")


@pytest.fixture(scope="module", params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def applied(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp(f"helmfile-apply-{helm}"), NVKE, helm) as made:
        made.environment["HELM_PLUGINS"] = str(plugins(made.folder))
        yield made


@pytest.fixture(autouse=True)
def _compared(applied: Cluster, record_property: Callable[[str, object], None]) -> None:
    stand_in = Path(applied.environment["HELM_PLUGINS"]).is_relative_to(applied.folder)
    record_property("with", "a stand-in for helm-diff" if stand_in else "helm-diff")


def test_apply(applied: Cluster) -> None:
    """`apply` on an empty cluster, where no CRD is known yet when it compares: every edge holds."""
    run = applied.helmfile("apply").expect(0, "policy-ready: holds")
    assert "Comparing release=sriov-ib-networks" in run.output
    assert applied.witness().violations() == []
    assert applied.all_deployed(), applied.statuses()


def test_apply_again(applied: Cluster) -> None:
    """`apply` again changes nothing, and leaves gates alone; what changed is gated"""
    applied.mark()
    run = applied.helmfile("apply").expect(0)
    assert "policy-ready" not in run.output
    written = applied.witness(since_mark=True).deployer()
    assert not written, describe(written)
    pool = next((applied.path / "components" / "sriov-ib-networks" / "manifests").glob("ippool-*"))
    text = pool.read_text()
    assert "perNodeBlockSize: 50" in text
    pool.write_text(text.replace("perNodeBlockSize: 50", "perNodeBlockSize: 40"))
    applied.helmfile("apply").expect(0, "policy-ready: holds")
    records = {
        reference(e)[3].split(".")[4]
        for e in applied.witness(since_mark=True).deployer()
        if reference(e)[1] == "secrets"
    }
    assert records == {"sriov-ib-networks"}
