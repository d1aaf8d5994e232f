"""What a diff says, as frozen values: nothing here knows of Git, text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from compiler.errors import Diagnostic
from compiler.records import dataclass
from compiler.review.diff.values import Change

SideName: TypeAlias = Literal["base", "head"]
Status: TypeAlias = Literal["added", "removed", "changed", "renamed", "moved", "same", "broken"]
Severity: TypeAlias = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True, order=True)
class Place:
    """A line of a source file on one side. `text` is what stands there, without the blanks around it."""

    file: str
    line: int
    side: SideName
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Entry:
    """A difference with the line that caused it; None when no source is known. `layer` is the trace's word for it."""

    change: Change
    at: Place | None = None
    layer: str = ""


@dataclass(frozen=True)
class ObjectChange:
    """An object of our own manifests. `hunk` are lines of a unified diff; `noise` what was left out of it, as text."""

    group: str
    kind: str
    namespace: str
    name: str
    status: Status
    hunk: tuple[str, ...]
    noise: tuple[str, ...]
    was: str = ""  # where a moved or renamed object was
    at: Place | None = None
    more: tuple[Place, ...] = ()  # further edited lines of the same file

    @property
    def title(self) -> str:
        """`Kind namespace/name`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def where(self) -> str:
        """`file:line, line`: every line that caused it; empty when none is known."""
        if self.at is None:
            return ""
        gone = " (went)" if self.at.side == "base" else ""
        return f"{self.at}{gone}" + "".join(f", {p.line}{' (went)' if p.side == 'base' else ''}" for p in self.more)


@dataclass(frozen=True)
class OrderChange:
    """A change of an edge, a gate or the order, as a sentence. `kind`: edge | gate | order."""

    kind: str
    status: str  # added | removed | retargeted | changed
    release: str
    text: str
    at: Place | None = None
    hard: bool = True


@dataclass(frozen=True)
class Risk:
    """Something that a reviewer must see. `kind` is stable; `advice` tells what to do, by deployer ("" = any)."""

    kind: str
    severity: Severity
    component: str
    text: str
    advice: tuple[tuple[str, str], ...] = ()
    at: Place | None = None


@dataclass(frozen=True)
class ComponentDiff:
    """What changes in one component of one bundle. `fields` are facts of its releases other than values."""

    name: str
    status: Status
    old_name: str | None = None
    old_version: str | None = None
    new_version: str | None = None
    values: tuple[Entry, ...] = ()
    fields: tuple[Entry, ...] = ()
    objects: tuple[ObjectChange, ...] = ()
    notes: tuple[str, ...] = ()
    noise: Mapping[str, int] = field(default_factory=dict)
    size: str = ""  # of a component that came or went: what it brings
    at: Place | None = None


@dataclass(frozen=True)
class Link:
    """An edge of the picture; `status`: added | removed | kept."""

    provider: str
    dependant: str
    label: str
    status: str


@dataclass(frozen=True)
class FileChange:
    """An emitted file. `part`: values | manifests | namespaces | wiring | told | words.

    `told` files repeat what other entries say (inventory, checksums, hashes); wiring and words (README, examples) carry
    their own `hunk`. `added` and `removed` count lines; `reordered`: the same data in another order; `at`: the line of
    the manifest that an example is made of.
    """

    path: str
    status: Status
    part: str
    added: int
    removed: int
    hunk: tuple[str, ...] = ()
    reordered: bool = False
    at: Place | None = None


@dataclass(frozen=True)
class BundleDiff:
    """All that differs in one bundle. `broken` names the side that does not compile, with its findings."""

    name: str
    status: Status
    old_name: str | None = None
    recipe: str = ""
    risks: tuple[Risk, ...] = ()
    components: tuple[ComponentDiff, ...] = ()
    fields: tuple[Entry, ...] = ()
    order: tuple[OrderChange, ...] = ()
    links: tuple[Link, ...] = ()
    files: tuple[FileChange, ...] = ()
    size: str = ""
    charts: int = 0  # charts whose version or identity changed
    at: Place | None = None
    base_errors: tuple[Diagnostic, ...] = ()
    head_errors: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Cause:
    """A source line and what it changes, in how many bundles."""

    place: Place
    what: Mapping[str, int]  # values, objects, ... -> how many, each counted once over all bundles
    bundles: tuple[str, ...]
    components: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The whole answer. `base` and `head` are words for the two sides; `command` shows it again in full."""

    base: str
    head: str
    command: str
    verdict: str
    bundles: tuple[BundleDiff, ...]
    causes: tuple[Cause, ...]
    idle: tuple[str, ...] = ()  # sources that differ without any effect
    notes: tuple[str, ...] = ()
    base_errors: tuple[Diagnostic, ...] = ()
    head_errors: tuple[Diagnostic, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether a file of any bundle differs, or a side could not be compiled."""
        broken = self.base_errors or self.head_errors
        return bool(broken) or any(bundle.status != "same" for bundle in self.bundles)

    @property
    def failed(self) -> bool:
        """Whether the head, in whole or in part, does not compile."""
        return bool(self.head_errors) or any(bundle.head_errors for bundle in self.bundles)


def plain(value: Any) -> Any:
    """A deep copy in dicts and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
