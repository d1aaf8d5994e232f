"""Bundles with entries of their own changed, and short ways to what a test looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compiler.errors import UserError
from compiler.model import Flags
from compiler.pipeline import compile_bundle
from tests.bundles.bundle import Bundle
from tests.bundles.conftest import catalog

Compiled = Callable[[str], Bundle]


def built(name: str, **changes: Any) -> Any:
    """The plan of a bundle with entries of its own changed, in memory."""
    return compile_bundle(catalog(), replace(catalog().workspace.bundles[name], **changes), Flags()).plan


def refused(name: str, **changes: Any) -> str:
    """The messages of the errors with which a changed bundle is refused."""
    with pytest.raises(UserError) as caught:
        built(name, **changes)
    return "\n".join(found.message for found in caught.value.diagnostics if found.severity == "error")


def pod_of(item: Any) -> Any:
    return item["spec"]["template"]["spec"]


def accelerators(pod: Any) -> Any:
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return term["matchExpressions"]
