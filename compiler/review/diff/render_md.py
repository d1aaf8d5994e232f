"""A report as Markdown for a pull request's comment: as much as fits, the important first, what was cut told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compiler.paths import MISSING
from compiler.records import dataclass
from compiler.review.diff import tell
from compiler.review.diff.model import SEVERITIES, Entry, Report
from compiler.review.diff.objects import text_hunk
from compiler.review.diff.report import groups, risks
from compiler.review.diff.words import arrow, count, text_of

LIMIT = 65536
"""Characters that a comment may have on GitHub. Bytes are counted here, which are never fewer."""

_RESERVED = 1536  # for the words about what was cut, and for a marker that finds the comment again
_HUNK = 60  # lines of one hunk; the rest is told as a number
_LEFT_OPEN = 12  # pieces of a component that stand without a fold


@dataclass(frozen=True)
class Piece:
    """What is shown or cut as a whole. `weight` 0 is the most important; `kind` is what a cut one is counted as."""

    heading: str
    weight: int
    kind: str
    text: str
    fold: str = ""


def markdown(report: Report, limit: int = LIMIT) -> str:
    """The report in at most `limit` bytes of UTF-8.

    Pieces are taken by weight; headings and folds appear with their first piece. What was left out is counted at the
    end, with the command that shows it.
    """
    top = f"### {_escape(report.verdict)}\n"
    top += f"\n`{report.base}` → `{report.head}`\n" if report.base or report.head else ""
    pieces = list(_pieces(report))
    room = limit - len(top.encode()) - _RESERVED
    taken: set[int] = set()
    opened: set[tuple[str, str]] = set()
    for number in sorted(range(len(pieces)), key=lambda n: (pieces[n].weight, n)):
        piece = pieces[number]
        cost = _size(piece.text) + 1
        cost += _size(f"\n#### {piece.heading}\n\n") if (piece.heading, "") not in opened else 0
        folded = bool(piece.fold) and (piece.heading, piece.fold) not in opened
        cost += _size(_opening(piece.fold) + _CLOSING) if folded else 0
        if cost <= room:
            room -= cost
            taken.add(number)
            opened |= {(piece.heading, ""), (piece.heading, piece.fold)}
    body = _assembled([pieces[n] for n in sorted(taken)])
    return top + body + _cut([p for n, p in enumerate(pieces) if n not in taken], report)


def _pieces(report: Report) -> Iterator[Piece]:
    yield from (Piece("Notes", 1, "note", f"- {_escape(note)}") for note in report.notes)
    yield from _broken(report)
    bundles = tell.differing(report)
    for risk, names in sorted(risks(bundles), key=lambda pair: SEVERITIES.index(pair[0].severity)):
        at = f" — {_code(str(risk.at))}" if risk.at else ""
        lines = [f"- **{risk.severity}** {_escape(tell.risk(risk) + tell.where(names, report))}{at}"]
        lines += [f"  - {who + ': ' if who else ''}{_escape(advice)}" for who, advice in risk.advice]
        yield Piece("Risks", SEVERITIES.index(risk.severity), "risk", "\n".join(lines))
    for cause in report.causes:
        text = f": {_code(_short(cause.place.text))}" if cause.place.text else ""
        yield Piece("Causes", 2, "cause", f"- {tell.cause(cause)}{text}")
    yield from _order(report)
    if len(bundles) > 1 or any(b.status in {"added", "removed", "renamed"} for b in bundles):
        head = [f"| {' | '.join(tell.COLUMNS)} |", "| --- " * len(tell.COLUMNS) + "|"]
        yield Piece("Bundles", 2, "table", "\n".join(head))
        for bundle in bundles:
            cells = (_escape(cell).replace("|", "\\|") for cell in tell.bundle_row(bundle))
            yield Piece("Bundles", 3, "row", "| " + " | ".join(cells) + " |")
    yield from _components(report)
    for entry, names in groups(bundles, "fields", _entry):
        yield Piece("Settings and facts of the bundles", 4, "field", _entry(entry, tell.where(names, report)))
    yield from _files(report)
    yield from (Piece("Sources without any effect on these bundles", 5, "source", f"- {_code(f)}") for f in report.idle)
    if tell.chart_note(report):
        yield Piece("Not compared", 1, "note", f"- {_escape(tell.chart_note(report))}")


def _broken(report: Report) -> Iterator[Piece]:
    for side, found in (("base", report.base_errors), ("head", report.head_errors)):
        for line in tell.diagnostics(found):
            yield Piece(f"The {side} does not compile", 0, "finding", f"- {_escape(line)}")
    for names, side, found in tell.broken(report):
        verb = "does" if len(names) == 1 else "do"
        title = f"{', '.join(map(_code, names))} {verb} not compile on the {side}"
        for line in tell.diagnostics(found):
            yield Piece(title, 0, "finding", f"- {_escape(line)}")


def _order(report: Report) -> Iterator[Piece]:
    bundles = tell.differing(report)
    for change, names in groups(bundles, "order"):
        at = f" — {_code(str(change.at))}" if change.at else ""
        yield Piece("Order and gates", 2, "sentence", f"- {_escape(change.text + tell.where(names, report))}{at}")
    pictures: dict[str, list[str]] = {}
    for bundle in bundles:
        if any(link.status != "kept" for link in bundle.links):
            text = "\n".join(["", "```mermaid", *tell.mermaid(bundle.links), "```"])
            pictures.setdefault(text, []).append(bundle.name)
    for text, shown_in in pictures.items():
        yield Piece("Order and gates", 5, "picture", f"{_escape(tell.where(shown_in, report).strip())}{text}")


def _components(report: Report) -> Iterator[Piece]:
    for item, names in groups(tell.differing(report), "components"):
        if not tell.substantial(item):
            continue
        title = tell.component_title(item) + tell.where(names, report)
        number = len(item.values) + len(item.objects) + len(item.fields)
        fold = f"{count(len(item.values), 'value')}, {count(len(item.objects), 'object')}"
        fold = fold if number > _LEFT_OPEN else ""
        heading = f"Components\n\n##### {_escape(title)}"
        at = f"- {item.status} at {_code(str(item.at))}: {_code(item.at.text)}" if item.at else ""
        yield Piece(heading, 3, "component", at)
        yield from (Piece(heading, 3, "note", f"- {_escape(note)}") for note in item.notes)
        for entry in tell.shown_fields(item.fields):
            yield Piece(heading, 4, "field", _entry(entry))
        yield from (Piece(heading, 4, "value", _entry(entry), fold) for entry in item.values)
        weight = 6 if item.status in {"changed", "renamed"} else 8
        for change in item.objects:
            at = f" — {_code(change.where)}" if change.where else ""
            text = f"- {_escape(tell.object_title(change))}{at}\n{_fence(change.hunk)}"
            inner = fold or ("objects" if weight == 8 else "")
            yield Piece(heading, weight, "object", text, inner)
        if item.noise:
            yield Piece(heading, 4, "note", f"- {_escape(tell.noise(item.noise))}")


def _files(report: Report) -> Iterator[Piece]:
    heading, fold = "Emitted files", "files of the deployers, and words"
    for title, hunk in tell.file_groups(report):
        yield Piece(heading, 9, "file", f"- {_escape(title)}" + (f"\n{_fence(hunk)}" if hunk else ""), fold)
    for line in (tell.labels_only(report), tell.folded(report)):
        if line:
            yield Piece(heading, 6, "note", f"- {_escape(line)}")


def _entry(entry: Entry, suffix: str = "") -> str:
    change = entry.change
    who = tell.origin(entry)
    end = (f" — {_code(who)}" if who else "") + _escape(suffix)
    if all(isinstance(v, str) and "\n" in v.rstrip("\n") for v in (change.old, change.new)):
        lines = text_hunk(change.old.splitlines(), change.new.splitlines())
        return f"- {_code(change.path)}{end}\n{_fence(lines)}"
    if words := tell.in_words(change):
        return f"- {_escape(words)}{end}"
    told = arrow(change)
    plainly = f"{text_of(change.old)} -> {text_of(change.new)}"
    if told == plainly:
        old, new = ("(none)" if v is MISSING else _code(text_of(v)) for v in (change.old, change.new))
        return f"- {_code(change.path)}: {old} → {new}{end}"
    return f"- {_code(change.path)}: {_code(told)}{end}"


def _assembled(pieces: Sequence[Piece]) -> str:
    """Pieces in order below their headings, those of one fold put together; a fold follows what stands open."""
    text = ""
    last = ""
    for heading in dict.fromkeys(p.heading for p in pieces):
        mine = [p for p in pieces if p.heading == heading]
        top, _, below = heading.partition("\n\n")
        shown = heading if top != last else below or heading
        text += f"\n{'' if shown.startswith('#') else '#### '}{shown}\n\n"
        last = top
        text += "".join(f"{p.text}\n" for p in mine if not p.fold and p.text)
        for fold in dict.fromkeys(p.fold for p in mine if p.fold):
            text += _opening(fold) + "".join(f"{p.text}\n" for p in mine if p.fold == fold) + _CLOSING
    return text


def _cut(pieces: Iterable[Piece], report: Report) -> str:
    counts: dict[str, int] = {}
    for piece in pieces:
        counts[piece.kind] = counts.get(piece.kind, 0) + 1
    if not counts:
        return ""
    told = ", ".join(count(number, kind) for kind, number in counts.items())
    see = f" See all of it: {_code(report.command[:500])}" if report.command else ""
    return f"\n---\n**Cut to fit a comment:** {told}.{see}\n"


_CLOSING = "\n</details>\n"


def _opening(fold: str) -> str:
    return f"\n<details><summary>{fold}</summary>\n\n"


def _fence(lines: Sequence[str]) -> str:
    """A fenced diff inside a list item; the fence is longer than any in it."""
    if not lines:
        return ""
    shown = [*lines[:_HUNK], *([f"... {len(lines) - _HUNK} more lines"] if len(lines) > _HUNK else [])]
    ticks = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return "\n".join(f"  {line}" for line in ["", f"{fence}diff", *shown, fence])


def _code(text: str) -> str:
    """A code span; its fence is longer than any run of backticks in it."""
    text = " ".join(text.splitlines()) if "\n" in text else text
    ticks = max((len(run) for run in re.findall("`+", text)), default=0)
    if not ticks:
        return f"`{text}`"
    fence = "`" * (ticks + 1)
    return f"{fence} {text} {fence}"


def _escape(text: str) -> str:
    """Text that Markdown shows as it is, but for code spans that it holds."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    text = re.sub(r"([\\*_\[<`]|~(?=~)|^[#>+-])", r"\\\1", text).replace(" -> ", " → ")
    # Nobody is to be called by a comment because a value holds an at sign.
    return re.sub(r"(?<!\w)@", "@\u200b", text).replace("\n", " ")


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def _size(text: str) -> int:
    return len(text.encode())
