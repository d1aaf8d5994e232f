"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A shell starts `make test &` with SIGINT ignored, programs inherit that, and some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's tree: its own catalog is what most tests compile."""
    return ROOT


@pytest.fixture(scope="session")
def tool() -> Callable[[str], Path]:
    """`tool("helm4")`: a program out of .tools/bin (`make tools`). Without it the test is skipped.

    Where the environment lists its name in BUNDLEC_REQUIRE_TOOLS, as CI does, the test fails instead: a suite that
    skips what it is there for is not green.
    """

    def find(name: str) -> Path:
        path = ROOT / ".tools" / "bin" / name
        if not path.exists():
            if name in os.environ.get("BUNDLEC_REQUIRE_TOOLS", "").split():
                pytest.fail(f"no {name} in .tools/bin", pytrace=False)
            pytest.skip(f"no {name} in .tools/bin (make tools)")
        return path

    return find


@pytest.fixture(params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest, tool: Callable[[str], Path]) -> Path:
    """Helm 3, then Helm 4: what is emitted has to hold on both."""
    return tool(request.param)


@pytest.fixture(scope="session")
def crds() -> Path:
    """A folder of CustomResourceDefinitions to validate emitted objects against (BUNDLEC_CRDS)."""
    folder = os.environ.get("BUNDLEC_CRDS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no folder of CRDs (BUNDLEC_CRDS)")
    return Path(folder)
