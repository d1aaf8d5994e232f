"""Names that are derived from the bundle's prefix, and the limits that they must keep.

Limits: 53 for a Helm release (Helm's own check), 63 for what becomes a label value (Argo CD tracking, owner labels of
Flux, Jobs, namespaces). A name over its limit is refused, never cut: a cut name can meet another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from compiler.errors import Collector, Diagnostic, UserError
from compiler.model import Plan
from compiler.source import Origin

LABEL_LIMIT = 63
"""Characters of a DNS label and of a label value."""

RELEASE_LIMIT = 53
"""Characters of a Helm release name."""


def derived(plan: Plan, name: str, limit: int = LABEL_LIMIT, code: str = "BC4001") -> str:
    """`<prefix>-<name>`, the name of one of our own objects.

    Raises `UserError` with `code` when that is longer than `limit`; the fix proposes a prefix that fits.
    """
    full = f"{plan.settings.prefix}-{name}"
    if len(full) > limit:
        raise UserError([_too_long(plan, full, name, limit, code)])
    return full


def gates_namespace(plan: Plan) -> str:
    """`<prefix>-gates`, the namespace of guard Jobs. Raises `UserError` (BC4001) when it is too long."""
    return derived(plan, "gates")


def unique(plan: Plan, names: Iterable[tuple[str, str]]) -> None:
    """Check that no two things share a name. `names` are (name, what it names) pairs of one kind and namespace.

    Raises `UserError` (BC4001) that lists every clash, for example of the gate of `x` with a component `gate-x`.
    """
    users: dict[str, set[str]] = {}
    for name, what in names:
        users.setdefault(name, set()).add(what)
    found = Collector()
    for name, whats in sorted(users.items()):
        if len(whats) > 1:
            found.error(
                "BC4001",
                f"{' and '.join(sorted(whats))} would both be named `{name}`",
                origin_of(plan, name),
                fix="rename one of the components",
            )
    found.raise_if_failed()


def check(plan: Plan) -> None:
    """Check the names that every deployer uses: release ids, namespaces and the bundle's label value.

    Raises `UserError` (BC4001) with all findings.
    """
    found = Collector()
    for release in plan.releases:
        if len(release.id) > RELEASE_LIMIT:
            found.error(
                "BC4001",
                f"the Helm release `{release.id}` has {len(release.id)} characters, {RELEASE_LIMIT} are allowed",
                origin_of(plan, release.component),
                fix=f"shorten the component's name by {len(release.id) - RELEASE_LIMIT}",
            )
    for namespace in plan.namespaces:
        if len(namespace.name) > LABEL_LIMIT:
            found.error(
                "BC4001",
                f"the namespace `{namespace.name}` has {len(namespace.name)} characters, {LABEL_LIMIT} are allowed",
                origin_of(plan, namespace.components[0] if namespace.components else ""),
                fix=f"shorten it by {len(namespace.name) - LABEL_LIMIT}",
            )
    if len(plan.bundle) > LABEL_LIMIT:
        found.error(
            "BC4001",
            f"the bundle's name `{plan.bundle}` has {len(plan.bundle)} characters, {LABEL_LIMIT} are allowed",
            plan.recipe.setting_at("name"),
            fix="give the bundle a shorter name in bundlec.yaml",
        )
    times = Counter(r.id for r in plan.releases)
    for release_id in sorted(r for r, count in times.items() if count > 1):
        owners = sorted({r.component for r in plan.releases if r.id == release_id})
        found.error(
            "BC4001",
            f"{' and '.join(owners)} would both make the release `{release_id}`",
            origin_of(plan, owners[0]),
            fix="rename one of the components",
        )
    found.raise_if_failed()


def _too_long(plan: Plan, full: str, name: str, limit: int, code: str) -> Diagnostic:
    message = f"the name `{full}` has {len(full)} characters, {limit} are allowed"
    prefix = plan.settings.prefix
    room = limit - len(name) - 1
    if room < 1:
        origin = origin_of(plan, name)
        fix = f"no prefix is short enough: rename `{name}`"
        return Diagnostic(code, message, origin.span() if origin is not None else None, fix)
    # Room for every name, so that the proposal does not end at the next one.
    room = min(room, max(1, limit - max(map(len, _parts(plan))) - 1))
    shorter = prefix[:room].rstrip("-.")
    fix = f"set `prefix: {shorter}` (at most {room} characters) for the bundle `{plan.bundle}` in bundlec.yaml"
    said = plan.recipe.setting_at("prefix")
    return Diagnostic(code, message, said.span() if said is not None else None, fix)


def _parts(plan: Plan) -> Iterator[str]:
    """What prefixes stand in front of."""
    yield "namespaces"
    for release in plan.releases:
        yield release.id
        if release.gate is not None:
            yield f"gate-{release.id}"
        if release.teardown_before:
            yield f"teardown-{release.component}"


def origin_of(plan: Plan, name: str) -> Origin | None:
    """The component whose name it is, or whose release id (`gate-x-post` -> `x`): its file is where to look first."""
    for component in sorted(plan.recipe.components, key=len, reverse=True):
        if component == name or name.endswith((component, f"{component}-pre", f"{component}-post")):
            return plan.recipe.components[component].component.origin
    return None
