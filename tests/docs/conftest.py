"""A project of their own for the commands of the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import project


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, for the tests of one module."""
    return project.made(tmp_path_factory.mktemp("project"))
