"""A composed recipe: what resolve returns, and what predicates may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from compiler.errors import Diagnostic
from compiler.model.catalog import ClusterApi, Constraint, ReadinessOverride
from compiler.model.checks import Assertion
from compiler.model.component import Component, ManifestRef, Need, Note
from compiler.model.settings import Settings
from compiler.records import dataclass
from compiler.source import Origin, Path, parse_path


@dataclass(frozen=True)
class TraceEntry:
    """One layer's say about one value path. `action`: set | replaced | merged | deleted | null."""

    layer: str
    origin: Origin
    action: str
    value: Any


Trace: TypeAlias = Mapping[Path, tuple[TraceEntry, ...]]
"""Value path -> who set it, first layer first; the last entry is the winner."""


@dataclass(frozen=True)
class ResolvedComponent:
    """A component of a recipe with its final values.

    `values` are the merged values without tombstones (what templates and predicates see); `chart_values` are what is
    written for Helm (no manifestValues; a null only where it deletes a default of the chart itself).
    """

    name: str
    component: Component
    enabled: bool
    disabled_by: Origin | None
    disabled_reason: str | None
    brought_by: Origin
    version: str | None
    namespace: str
    values: Mapping[str, Any]
    chart_values: Mapping[str, Any]
    trace: Trace
    manifests: Mapping[str, tuple[ManifestRef, ...]]  # by piece; `when` not yet evaluated
    needs: tuple[Need, ...]  # the component's own and the refs', `remove` already applied, `when` not yet evaluated
    readiness: ReadinessOverride
    health_check_skip: str | None


@dataclass(frozen=True)
class SelectedProfile:
    name: str
    value: str
    advertiser: str
    owned_paths: tuple[tuple[str, str], ...]  # (component, dotted path)
    origin: Origin


@dataclass(frozen=True)
class Recipe:
    """A composed recipe. `components` holds the disabled ones too; iterate `enabled()` for the rest."""

    bundle: str
    name: str
    criteria: Mapping[str, str | int]
    overlays: tuple[str, ...]  # in order of application
    mixins: tuple[str, ...]
    maturity: str
    description: str
    known_gaps: tuple[str, ...]
    profile: SelectedProfile | None
    inputs: Mapping[str, Any]
    constraints: Mapping[str, Constraint]  # sorted by name
    cluster_provides: tuple[ClusterApi, ...]
    prerequisites: tuple[Note, ...]
    operations: tuple[str, ...]
    assertions: tuple[Assertion, ...]  # of the overlays, the components (`rules`) and the workspace (`policies`)
    validation: Mapping[str, Any]
    components: Mapping[str, ResolvedComponent]  # sorted by name
    settings: Settings
    warnings: tuple[Diagnostic, ...] = ()  # what resolution found that does not stop it
    written: Callable[[Path], Origin | None] | None = field(default=None, compare=False, repr=False)

    def enabled(self) -> tuple[ResolvedComponent, ...]:
        """The components that take part, sorted by name."""
        return tuple(c for c in self.components.values() if c.enabled)

    def setting_at(self, *dotted: str) -> Origin | None:
        """Who wrote the first of these settings that somebody wrote (`git.url`, `prefix`); None when nobody did."""
        found = (self.written(parse_path(path)) for path in dotted) if self.written is not None else ()
        return next((origin for origin in found if origin is not None), None)


@dataclass(frozen=True)
class ComponentFacts:
    enabled: bool
    version: str | None
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """What predicates may look at. `objects` is None before rendering: then an `objects` predicate is an error."""

    recipe: Mapping[str, Any]  # name and the criteria
    profile: Mapping[str, str]
    inputs: Mapping[str, Any]
    components: Mapping[str, ComponentFacts]
    validation: Mapping[str, Any]
    constraints: Mapping[str, str]
    objects: tuple[tuple[str, Mapping[str, Any]], ...] | None = None  # (component, object)
