"""The order of a plan as one SVG file that needs nothing else: no script, no font, no other file.

Boxes are components, hexagons gates; a dashed line is order without a gate. The reasons of an edge show when the mouse
rests on it. Colours follow the reader's choice of light or dark.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise

from compiler.graph import Picture, picture
from compiler.layered import Box, Layout, layout
from compiler.model import Plan

_SIZE = 12.0
_LINE = 16.0
_PAD = 10.0
_TIP = 10.0  # how far the sides of a hexagon stand out
_MARGIN = 20.0
_HEAD = 34.0
_WRAP = 46  # characters of a line of a gate

_NARROW = frozenset("iljtfrI.,:;'|!()[]{}/- ")
_WIDE = frozenset("mwMW@%")

_STYLE = """
svg{background:#fff;font:12px ui-sans-serif,system-ui,sans-serif}
text{fill:#1f2328}.sub{fill:#59636e;font-size:11px}.head{font-weight:600;font-size:14px}.name{font-weight:600}
.box{fill:#f6f8fa;stroke:#59636e}.gate{fill:#fff8c5;stroke:#9a6700}
.edge{fill:none;stroke:#59636e;stroke-width:1.2}.held{stroke:#9a6700;stroke-width:1.6}.plain{stroke-dasharray:4 3}
.arrow{fill:#59636e}.heldarrow{fill:#9a6700}
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.sub{fill:#9198a1}
.box{fill:#151b23;stroke:#9198a1}.gate{fill:#3a2d00;stroke:#d29922}.edge{stroke:#9198a1}.held{stroke:#d29922}
.arrow{fill:#9198a1}.heldarrow{fill:#d29922}}
"""


def svg(plan: Plan) -> str:
    """The picture of a plan: `graph.picture`, drawn. The same plan gives the same text."""
    shown = picture(plan)
    labels = {f"c {name}": [name, *_wrapped(shown.notes.get(name, ()))] for name in shown.components}
    labels |= {f"g {release.id}": _wrapped(words) for release, _, words in shown.gates}
    sizes = {node: _size(lines, gate=node.startswith("g ")) for node, lines in labels.items()}
    drawn = layout(sizes, [(a, b) for a, b, _ in _edges(shown)])
    width, height = drawn.width + 2 * _MARGIN, drawn.height + 2 * _MARGIN + _HEAD
    title = f"{plan.bundle}: order of deployment"
    box = f"0 0 {_n(width)} {_n(height)}"
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="{box}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        f'<title id="title">{_escaped(title)}</title>',
        f'<desc id="desc">{_escaped(_described(shown))}</desc>',
        f"<style>{_STYLE}</style>",
        "<defs>",
        _marker("arrow", "arrow"),
        _marker("held", "heldarrow"),
        "</defs>",
        f'<text class="head" x="{_n(_MARGIN)}" y="{_n(_MARGIN + 10)}">{_escaped(title)}</text>',
        f'<g transform="translate({_n(_MARGIN)} {_n(_MARGIN + _HEAD)})">',
        *_drawn_edges(plan, shown, drawn),
        *(line for node, box in sorted(drawn.boxes.items()) for line in _drawn_box(node, box, labels[node])),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _edges(shown: Picture) -> Iterator[tuple[str, str, str]]:
    """(from, to, class) over the nodes of the drawing."""
    for release, providers, _ in shown.gates:
        yield from ((f"c {provider}", f"g {release.id}", "held") for provider in providers)
        yield f"g {release.id}", f"c {release.component}", "held"
    yield from ((f"c {a}", f"c {b}", "plain") for a, b in shown.plain)


def _drawn_edges(plan: Plan, shown: Picture, drawn: Layout) -> Iterator[str]:
    component = {release.id: release.component for release in plan.releases}
    reasons: dict[tuple[str, str], list[str]] = {}
    for edge in plan.edges:
        pair = component[edge.provider], component[edge.dependant]
        reasons.setdefault(pair, []).extend(f"{reason.kind}: {reason.text}" for reason in edge.reasons)
    for source, target, kind in sorted(set(_edges(shown))):
        start, end = source[2:], component.get(target[2:], target[2:])
        why = "\n".join(dict.fromkeys(reasons.get((start, end), ())))
        tip = (
            f"<title>{_escaped(f'{end} after {start}' + (chr(10) + why if why else ''))}</title>"
            if source[0] == "c"
            else ""
        )
        marker = "held" if kind == "held" else "arrow"
        path = _path(drawn.routes[source, target])
        yield f'<path class="edge {kind}" marker-end="url(#{marker})" d="{path}">{tip}</path>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through the points: level at each of them."""
    text = f"M{_n(points[0][0])} {_n(points[0][1])}"
    for (x1, y1), (x2, y2) in pairwise(points):
        if y1 == y2:
            text += f"H{_n(x2)}"
        else:
            middle = (x1 + x2) / 2
            text += f"C{_n(middle)} {_n(y1)} {_n(middle)} {_n(y2)} {_n(x2)} {_n(y2)}"
    return text


def _drawn_box(node: str, box: Box, lines: Sequence[str]) -> Iterator[str]:
    gate = node.startswith("g ")
    yield f"<g><title>{_escaped(('gate of ' if gate else '') + node[2:])}</title>"
    left, right, top, bottom = box.x, box.x + box.width, box.y, box.y + box.height
    if gate:
        above = [(left, box.middle), (left + _TIP, top), (right - _TIP, top)]
        corners = [*above, (right, box.middle), (right - _TIP, bottom), (left + _TIP, bottom)]
        yield f'<polygon class="gate" points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in corners)}"/>'
    else:
        size = f'width="{_n(box.width)}" height="{_n(box.height)}"'
        yield f'<rect class="box" x="{_n(left)}" y="{_n(top)}" {size} rx="5"/>'
    for number, line in enumerate(lines):
        kind = "" if gate else ' class="name"' if number == 0 else ' class="sub"'
        y = top + _PAD / 2 + _LINE * number + _SIZE
        yield f'<text{kind} text-anchor="middle" x="{_n(left + box.width / 2)}" y="{_n(y)}">{_escaped(line)}</text>'
    yield "</g>"


def _marker(name: str, kind: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path class="{kind}" d="M0 0L8 4L0 8z"/></marker>'
    )


def _described(shown: Picture) -> str:
    """The picture in words, for those who cannot see it."""
    gates = [f"{release.component} waits at a gate behind {', '.join(names)}" for release, names, _ in shown.gates]
    plain = [f"{b} comes after {a}" for a, b in shown.plain]
    return ". ".join([f"Components in order: {', '.join(shown.components)}", *gates, *plain]) + "."


def _wrapped(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, _WRAP, break_on_hyphens=False) or [""]]


def _size(lines: Sequence[str], *, gate: bool) -> tuple[float, float]:
    width = max(text_width(line) for line in lines) + 2 * (_PAD + (_TIP if gate else 0))
    return round(width, 1), len(lines) * _LINE + _PAD


def text_width(text: str) -> float:
    """About how wide a text is in a bold sans-serif of 12 px, rather too wide than too narrow."""
    em = sum(0.42 if c in _NARROW else 1.04 if c in _WIDE else 0.8 if c.isupper() else 0.7 for c in text)
    return em * _SIZE


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
