"""Components whose state nothing looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.errors import Diagnostic
from compiler.review.lint.everything import Compiled


def unchecked(compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7005 for a component that applies something, has no health check in some recipe, and says no reason why."""
    seen: dict[str, Diagnostic] = {}
    for item in compiled:
        for component in item.plan.components:
            resolved = item.plan.recipe.components[component.name]
            idle = all(item.plan.release(r).empty for r in component.releases)
            if component.health or idle or resolved.health_check_skip or component.name in seen:
                continue
            spec = resolved.component
            which = "none of its checks applies" if spec.checks else "it declares no checks"
            seen[component.name] = Diagnostic(
                "BC7005",
                f"nothing looks after `{component.name}` in {item.name}: {which}",
                spec.origin.span(),
                "add `checks`, or `healthCheckSkip: <reason>` to its ref",
                "warning",
            )
    yield from seen.values()
