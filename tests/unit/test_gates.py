"""How many nodes a gate asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compiler.plan.gates import Binder
from tests.support.plans import check


def minimum(*, bundle: int | None, ref: int | None, written: int | None, kind: str = "daemonset") -> int | None:
    recipe: Any = SimpleNamespace(
        settings=SimpleNamespace(gates=SimpleNamespace(min_nodes=bundle)), enabled=tuple, components={}
    )
    component: Any = SimpleNamespace(readiness=SimpleNamespace(min_nodes=ref))
    facts: Any = None
    return Binder(recipe, {}, facts)._minimum(component, check(kind, name="x", min_nodes=written))


@pytest.mark.parametrize(
    ("bundle", "ref", "written", "asked"),
    [
        (None, None, None, 1),
        (None, None, 3, 3),
        (None, 4, 3, 4),
        (2, None, None, 2),
        (2, None, 3, 3),  # what the component or the recipe knows counts more than a general setting
        (2, 4, 3, 4),
        (0, None, None, 0),  # an empty pool is fine in this cluster, whatever a recipe expects
        (0, 4, 3, 0),
        (None, 0, 3, 0),
    ],
)
def test_who_decides(bundle: int | None, ref: int | None, written: int | None, asked: int) -> None:
    assert minimum(bundle=bundle, ref=ref, written=written) == asked
    assert minimum(bundle=bundle, ref=ref, written=written, kind="nodes") == asked


def test_other_kinds_keep_what_is_written() -> None:
    assert minimum(bundle=0, ref=5, written=None, kind="deployment") is None
