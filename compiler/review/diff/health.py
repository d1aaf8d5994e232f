"""The readiness checks of components compared: what says that a component is well, gates or no gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compiler.emit.inventory import check_data
from compiler.graph import describe
from compiler.model import Check
from compiler.review.diff.blame import Blame
from compiler.review.diff.model import OrderChange
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.values import same


def health_changes(
    base: Snapshot, head: Snapshot, names: Iterable[tuple[str | None, str | None]], blame: Blame
) -> Iterator[OrderChange]:
    """Checks of a component's health that came, went or look at something else, of components that both sides have.

    `names`: (name on the base, name on the head). A check that a gate holds as well, and that changes there, is told
    with the gate. One that only follows its component into another namespace is told with the component.
    """
    for old_name, name in names:
        before, after = base.components.get(old_name or ""), head.components.get(name or "")
        if before is None or after is None:
            continue
        old, new = _checks(base, before.name), _checks(head, after.name)
        for key in [*old, *(key for key in new if key not in old)]:
            was, now = old.get(key), new.get(key)
            in_gates = _gated(base, before.name, key), _gated(head, after.name, key)
            subject = f"readiness of {after.name}, check {key}"
            if was is not None and now is not None:
                if all(in_gates) or _alike(check_data(was), check_data(now), moved=before.namespace != after.namespace):
                    continue
                text = f"{subject}: now waits for {describe(now)} instead of {describe(was)}"
                yield _change("retargeted", after.name, text, blame, now, was)
            elif now is not None and not in_gates[1]:
                yield _change("extended", after.name, f"{subject}: also waits for {describe(now)}", blame, now)
            elif was is not None and not in_gates[0]:
                text = f"{subject}: no longer waits for {describe(was)}"
                yield _change("weakened", after.name, text, blame, None, was)


def _change(
    status: str, name: str, text: str, blame: Blame, now: Check | None, was: Check | None = None
) -> OrderChange:
    return OrderChange("gate", status, name, text, blame.check(name, now, was), hard=False)


def _checks(snapshot: Snapshot, component: str) -> Mapping[str, Check]:
    """Check id -> check; none when the bundle was read from its files, which do not tell them apart."""
    parts = snapshot.plan.components if snapshot.plan else ()
    return {check.id: check for part in parts if part.name == component for check in part.health}


def _gated(snapshot: Snapshot, component: str, check: str) -> bool:
    """Whether a gate waits for a check of a component."""
    return any(c.provider == component and c.check.id == check for g in snapshot.gates.values() for c in g.checks)


def _alike(old: Mapping[str, Any], new: Mapping[str, Any], *, moved: bool) -> bool:
    """Whether two checks look at the same; with `moved`, wherever it is."""
    return same(_placeless(old), _placeless(new)) if moved else same(old, new)


def _placeless(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: {key: value for key, value in body.items() if key != "namespace"} if isinstance(body, Mapping) else body
        for kind, body in data.items()
    }
