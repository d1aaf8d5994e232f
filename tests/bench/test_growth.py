"""Ten times the components cost about ten times the work: counted in calls, which are the same on every machine."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

from compiler import pipeline
from compiler.model import Flags
from tests.bench.synthetic import write_catalog

SMALL, LARGE = 40, 400
GROWTH = 12


def calls(root: Path, size: int) -> tuple[int, dict[str, int]]:
    """All calls that compiling `size` components makes (four deployers), and those of each function."""
    write_catalog(root, size)
    profile = cProfile.Profile()
    profile.enable()
    catalog = pipeline.read_catalog(root)
    compiled = pipeline.compile_bundle(catalog, catalog.workspace.bundles["everything"], Flags())
    profile.disable()
    components = {release.component for release in compiled.plan.releases}
    assert len(components) == size
    assert any(release.gate for release in compiled.plan.releases)
    stats = pstats.Stats(profile)
    by_function = {f"{f}:{line} {name}": count for (f, line, name), (_, count, *_) in stats.stats.items()}  # type: ignore[attr-defined]
    return stats.total_calls, by_function  # type: ignore[attr-defined]


def test_work_grows_with_the_catalog_not_faster(tmp_path: Path):
    small, few = calls(tmp_path / "small", SMALL)
    large, many = calls(tmp_path / "large", LARGE)
    assert large / small <= GROWTH
    # A quadratic helper hides in the sum for long: whatever makes out one percent of the work must grow no faster.
    grown = {name: (few[name], count) for name, count in many.items() if name in few and count > large / 100}
    assert {name: counts for name, counts in grown.items() if counts[1] / counts[0] > GROWTH + 2} == {}
