"""The profile of a recipe: one choice that owns value paths.

A profile decides between ways to run that exclude each other (who installs the driver, say). All its values assign the
same paths, so that switching from one to another leaves nothing behind, and each has a constraint that fails on
clusters set up for another one. Nothing may set an owned path to something else afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import BundleEntry, ComponentRef, Constraint, Flags, Overlay, Profile, ProfileValue, SelectedProfile
from compiler.predicates import strictly_equal
from compiler.records import dataclass
from compiler.resolve.draft import Draft, overlay_layer
from compiler.resolve.merge import Layer, leaves, overlap
from compiler.source import Origin, Path, built_in, dotted

_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Choice:
    """The selected value of a recipe's profile.

    `origin` is who selected it, `owned` maps a component to its owned paths and their values, `before` names the layers
    that the profile overrides by right: those of the declaring overlay and of the overlays before it.
    """

    profile: Profile
    value: ProfileValue
    origin: Origin
    owned: Mapping[str, Mapping[Path, Any]]
    before: frozenset[str]

    @property
    def label(self) -> str:
        """What the trace calls the layer."""
        return f"profile {self.profile.name}={self.value.name}"

    def selected(self) -> SelectedProfile:
        """The choice as the recipe carries it."""
        paths = sorted((name, dotted(path)) for name, values in self.owned.items() for path in values)
        return SelectedProfile(self.profile.name, self.value.name, self.value.advertiser, tuple(paths), self.origin)


def choose(overlays: Sequence[Overlay], entry: BundleEntry, flags: Flags, collector: Collector) -> Choice | None:
    """The profile's value that the flags, the bundle or the default select; None when the recipe has no profile.

    Records BC2007 for a profile that is not well-formed (all its values are looked at, chosen or not), for a second
    profile in one recipe, and for a profile or value that does not exist.
    """
    declared = [(o, o.profile) for o in overlays if o.profile is not None]
    profile = declared[0][1] if declared else None
    for extra, other in declared[1:]:
        collector.error(
            "BC2007",
            f"overlay `{extra.name}` declares a profile, and `{declared[0][0].name}` does already",
            other.origin,
            fix="a recipe has one profile; keep one declaration",
            notes=[(declared[0][1].origin, "the other one")],
        )
    wanted = {name: (value, entry.origin.down("profile", name)) for name, value in entry.profile.items()}
    wanted |= {name: (value, built_in(f"--profile {name}={value}")) for name, value in flags.profile.items()}
    for name, (_, at) in wanted.items():
        if profile is None or name != profile.name:
            known = [profile.name] if profile else []
            fix = did_you_mean(name, known) or (f"its profile is `{known[0]}`" if known else "it has none; remove this")
            collector.error("BC2007", f"the recipe has no profile `{name}`", at, key=True, fix=fix)
    if profile is None:
        return None
    _check(profile, collector)
    name, at = wanted.get(profile.name, (profile.default, profile.origin.down("default")))
    value = profile.values.get(name)
    if value is None:
        collector.error(
            "BC2007",
            f"profile `{profile.name}` has no value `{name}`",
            at,
            fix=did_you_mean(name, profile.values) or f"one of: {', '.join(sorted(profile.values))}",
            notes=[(profile.origin, "the profile is declared here")],
        )
        return None
    owned: dict[str, dict[Path, Any]] = {}
    for ref in value.refs:
        owned.setdefault(ref.name, {}).update(leaves(ref.overrides))
    names = [overlay.name for overlay in overlays]
    before = frozenset(overlay_layer(n) for n in names[: names.index(declared[0][0].name) + 1])
    return Choice(profile, value, at, owned, before)


def apply(choice: Choice, drafts: Mapping[str, Draft], collector: Collector) -> None:
    """Lay the chosen values over the components.

    Records BC2007 for a component that the recipe lacks or has switched off, and BC2006 for a layer after the declaring
    overlay that sets an owned path to something else: the profile would override it in silence.
    """
    for ref in choice.value.refs:
        draft = drafts.get(ref.name)
        if draft is None or not draft.enabled:
            state = "does not have" if draft is None else "has switched off"
            collector.error(
                "BC2007",
                f"profile `{choice.profile.name}` owns values of `{ref.name}`, which the recipe {state}",
                ref.origin,
                fix=did_you_mean(ref.name, drafts) if draft is None else f"enable `{ref.name}`",
                notes=[] if draft is None or draft.switched_by is None else [(draft.switched_by, "switched off here")],
            )
            continue
        for layer in draft.layers:
            if layer.name not in choice.before:
                _refuse(choice, layer, ref.name, "BC2006", collector)
        draft.layers.append(Layer(choice.label, ref.overrides, ref.overrides_origin or ref.origin))


def guard(choice: Choice, name: str, layer: Layer, collector: Collector) -> None:
    """Record BC2008 when a layer of the bundle or the command line sets an owned path to another value."""
    _refuse(choice, layer, name, "BC2008", collector)


def _refuse(choice: Choice, layer: Layer, name: str, code: str, collector: Collector) -> None:
    for path, value in leaves(layer.data):
        for owned, chosen in choice.owned.get(name, {}).items():
            if overlap(path, owned) and not (path == owned and strictly_equal(value, chosen)):
                collector.error(
                    code,
                    f"`{name}:{dotted(path)}` ({layer.name}) is owned by profile `{choice.profile.name}`, "
                    f"whose value `{choice.value.name}` sets it",
                    layer.origin.down(*path),
                    fix=f"choose another value of the profile: {', '.join(sorted(choice.profile.values))}",
                    notes=[(choice.value.origin, f"`{choice.value.name}` is declared here")],
                )


def _check(profile: Profile, collector: Collector) -> None:
    for problem, at, fix in _problems(profile):
        collector.error("BC2007", f"profile `{profile.name}`: {problem}", at, fix=fix)


def _problems(profile: Profile) -> Iterator[tuple[str, Origin, str | None]]:
    if not _NAME.fullmatch(profile.name):
        yield f"`{profile.name}` is no valid name", profile.origin, "letters, digits, `.`, `_` and `-`"
    if profile.default not in profile.values:
        at = profile.origin.down("default")
        fix = did_you_mean(profile.default, profile.values) or f"one of: {', '.join(sorted(profile.values))}"
        yield f"its default `{profile.default}` is none of its values", at, fix
    seen: dict[str, str] = {}
    for name, value in profile.values.items():
        if not _NAME.fullmatch(name):
            yield f"`{name}` is no valid name of a value", value.origin, "letters, digits, `.`, `_` and `-`"
        if name.lower() in seen:
            yield f"`{name}` and `{seen[name.lower()]}` differ in case only", value.origin, "choose another name"
        seen[name.lower()] = name
        for ref in value.refs:
            yield from _ref_problems(ref)
    yield from _path_problems(profile)
    yield from _constraint_problems(profile)


def _ref_problems(ref: ComponentRef) -> Iterator[tuple[str, Origin, str | None]]:
    at = ref.overrides_origin or ref.origin
    if ref.enabled is not None:
        fix = "make the component's manifests depend on a value of its own"
        yield f"it may not switch `{ref.name}` on or off", ref.origin, fix
    if ref.values_file is not None:
        yield f"it may not choose a values file of `{ref.name}`", ref.origin.down("valuesFile"), "write the values out"
    for path, value in leaves(ref.overrides):
        where = f"`{ref.name}:{dotted(path)}`"
        if any(isinstance(step, str) and "." in step for step in path):
            yield f"{where} has a key with a dot", at.down(*path), "own another value"
        if value is None or isinstance(value, (list, dict)):
            yield f"{where} is no scalar", at.down(*path), "a profile owns single values: strings, numbers, booleans"


def _path_problems(profile: Profile) -> Iterator[tuple[str, Origin, str | None]]:
    # Switching from one value to another must leave nothing of the first behind.
    paths = {
        name: {(ref.name, path) for ref in value.refs for path, _ in leaves(ref.overrides)}
        for name, value in profile.values.items()
    }
    everything = set().union(*paths.values())
    for name, value in profile.values.items():
        missing = sorted(f"{component}:{dotted(path)}" for component, path in everything - paths[name])
        if missing:
            yield f"value `{name}` does not set {', '.join(missing)}", value.origin, "every value sets the same paths"


def _constraint_problems(profile: Profile) -> Iterator[tuple[str, Origin, str | None]]:
    for name, value in profile.values.items():
        others = [c for other in profile.values.values() if other is not value for c in other.constraints]
        if not any(_tells_apart(constraint, others) for constraint in value.constraints):
            fix = "add a constraint of severity error that a cluster for another value does not meet"
            yield f"no constraint tells value `{name}` apart from the others", value.origin, fix


def _tells_apart(constraint: Constraint, others: Sequence[Constraint]) -> bool:
    same = any(other.name == constraint.name and other.value == constraint.value for other in others)
    return constraint.severity == "error" and not same
