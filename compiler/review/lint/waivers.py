"""Waivers: findings that bundlec.yaml accepts (`lint.waivers`), each with a reason and maybe a last day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from compiler.errors import Diagnostic
from compiler.model import Workspace
from compiler.records import dataclass
from compiler.source import Origin


@dataclass(frozen=True)
class Waiver:
    """`where` is a file or `file:line`, and may hold `*` and `?`; `until` is the last day, YYYY-MM-DD."""

    code: str
    where: str
    reason: str
    until: str | None
    origin: Origin

    def covers(self, item: Diagnostic) -> bool:
        """Whether it is about this finding."""
        if item.code != self.code or item.span is None:
            return False
        places = (item.span.file, f"{item.span.file}:{item.span.line}")
        return any(fnmatchcase(place, self.where) for place in places)


def waivers(workspace: Workspace) -> list[Waiver]:
    """The waivers of bundlec.yaml, in the order written."""
    written = workspace.settings.get("lint", {}).get("waivers") or []
    at = workspace.origin.down("spec", "lint", "waivers")
    return [
        Waiver(item["code"], item["where"], item["reason"], item.get("until"), at.down(index))
        for index, item in enumerate(written)
    ]


def apply(
    found: Sequence[Diagnostic], accepted: Sequence[Waiver], today: str
) -> tuple[list[Diagnostic], list[tuple[Diagnostic, Waiver]]]:
    """What is left of the findings, and what was waived by whom.

    Errors cannot be waived. A waiver after its last day counts no more, and its findings say so; BC7008 tells of it,
    and of one that covers nothing. `today` is YYYY-MM-DD.
    """
    left: list[Diagnostic] = []
    waived: list[tuple[Diagnostic, Waiver]] = []
    used: set[int] = set()
    for item in found:
        covering = [n for n, waiver in enumerate(accepted) if waiver.covers(item) and item.severity != "error"]
        used.update(covering)
        valid = next((n for n in covering if not _over(accepted[n], today)), None)
        if valid is not None:
            waived.append((item, accepted[valid]))
        elif covering:
            old = accepted[covering[0]]
            note = (old.origin.span(), f"a waiver ran out on {old.until}: {old.reason}")
            left.append(replace(item, notes=(*item.notes, note)))
        else:
            left.append(item)
    for number, waiver in enumerate(accepted):
        over = _over(waiver, today)
        if number in used and not over:
            continue
        if number in used:
            message, fix = f"this waiver ran out on {waiver.until}", "remove the cause, or set another last day"
        else:
            message, fix = f"no finding {waiver.code} at `{waiver.where}`: the waiver is not needed", "remove it"
        left.append(Diagnostic("BC7008", message, waiver.origin.span(), fix, "warning"))
    return left, waived


def _over(waiver: Waiver, today: str) -> bool:
    return waiver.until is not None and waiver.until < today
