"""Data as plain dicts and lists in one fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(data: Any) -> Any:
    """A deep copy of plain dicts and lists, keys sorted as kubectl prints them.

    Where and in which order values were written is no matter of the cluster's, so it does not show in `out/`.
    """
    if isinstance(data, Mapping):
        return {key: plain(data[key]) for key in sorted(data)}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    return data
