"""Values that a null took away and something still reads: the null is what to correct, not its reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compiler.model import ResolvedComponent, TraceEntry
from compiler.paths import MISSING, lookup
from compiler.records import dataclass
from compiler.source import Path, dotted

_READ = re.compile(r"""\bvalues((?:\.[A-Za-z_]\w*|\["[^"]+"\]|\['[^']+'\])+)""")
_STEP = re.compile(r"""\.(\w+)|\[["']([^"']+)["']\]""")


@dataclass(frozen=True)
class Deleted:
    """`path` is gone because of the null `entry`, and `read` at or below it is asked for."""

    component: str
    path: Path
    read: Path
    entry: TraceEntry

    def __str__(self) -> str:
        return f"`{self.component}:{dotted(self.path)}: null` ({self.entry.layer}) takes `{dotted(self.read)}` away"

    @property
    def fix(self) -> str:
        """What to write instead."""
        if self.path == self.read:
            return f"give `{dotted(self.path)}` another value instead of null"
        return f"set what should change below `{dotted(self.path)}` key by key; null deletes all of it"


def deleted(component: ResolvedComponent, read: Path) -> Deleted | None:
    """Who deleted the value at `read`, or what it lay in; None when it is there, or never was."""
    for end in range(1, len(read) + 1):
        if lookup(component.values, read[:end]) is MISSING:
            said = component.trace.get(read[:end], ())
            gone = bool(said) and said[-1].value is None and said[-1].action in ("deleted", "null")
            return Deleted(component.name, read[:end], read, said[-1]) if gone else None
    return None


def deleted_in(component: ResolvedComponent, text: str) -> Deleted | None:
    """The first value that the text of a template asks for and a null took away."""
    found = (deleted(component, path) for path in _reads(text))
    return next((one for one in found if one is not None), None)


def _reads(text: str) -> Iterator[Path]:
    for match in _READ.finditer(text):
        yield tuple(name or quoted for name, quoted in _STEP.findall(match[1]))
