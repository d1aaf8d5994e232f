"""A layered drawing of a graph without cycles, from left to right: where each box stands and how each edge runs.

The usual steps: columns by longest path; edges that pass columns get a bend in each; order within the columns by the
mean place of the neighbours, the arrangement with the fewest crossings wins; heights as near to the neighbours as the
gaps allow (isotonic regression). Nothing is random: ties go by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from compiler.records import dataclass

GAP_X = 56.0
GAP_Y = 14.0
_BEND = 6.0  # height that a bend keeps free
_SWEEPS = 12


@dataclass(frozen=True)
class Box:
    """A placed box: its left upper corner and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The height of its centre."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Layout:
    """Boxes by node, the points of each edge from box to box, and the size of the whole."""

    boxes: Mapping[str, Box]
    routes: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    width: float
    height: float


def layout(sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]) -> Layout:
    """Place nodes of these sizes (width, height). `edges` join nodes of `sizes`; raises ValueError on a cycle."""
    wanted = sorted(set(edges))
    columns = _columns(sorted(sizes), wanted)
    chains: dict[tuple[str, str], list[str]] = {}
    heights = {name: size[1] for name, size in sizes.items()}
    place = dict(columns)
    for source, target in wanted:
        bends = [f"\0{source}\0{target}\0{column}" for column in range(columns[source] + 1, columns[target])]
        for column, bend in enumerate(bends, columns[source] + 1):
            place[bend], heights[bend] = column, _BEND
        chains[source, target] = [source, *bends, target]
    links = [pair for chain in chains.values() for pair in pairwise(chain)]
    rows = _ordered(place, links)
    middles = _heights(rows, heights, links)
    return _placed(sizes, heights, rows, middles, chains)


def _columns(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Longest path from a source; a source itself stands right before what follows it."""
    after: dict[str, list[str]] = {name: [] for name in names}
    missing = dict.fromkeys(names, 0)
    for source, target in edges:
        after[source].append(target)
        missing[target] += 1
    sources = [name for name in names if missing[name] == 0]
    column: dict[str, int] = dict.fromkeys(names, 0)
    queue = list(sources)
    done = 0
    while queue:
        name = queue.pop()
        done += 1
        for target in after[name]:
            column[target] = max(column[target], column[name] + 1)
            missing[target] -= 1
            if missing[target] == 0:
                queue.append(target)
    if done < len(names):
        raise ValueError("the graph has a cycle")
    for name in sources:
        if after[name]:
            column[name] = min(column[target] for target in after[name]) - 1
    return column


def _ordered(place: Mapping[str, int], links: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The nodes and bends of each column, top to bottom."""
    rows: list[list[str]] = [[] for _ in range(max(place.values(), default=-1) + 1)]
    for name in sorted(place):
        rows[place[name]].append(name)
    before: dict[str, list[str]] = {name: [] for name in place}
    after: dict[str, list[str]] = {name: [] for name in place}
    for source, target in links:
        after[source].append(target)
        before[target].append(source)
    best, fewest = [list(row) for row in rows], _crossings(rows, after)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        neighbours = before if forth else after
        for index in range(len(rows)) if forth else reversed(range(len(rows))):
            other = (
                rows[index - 1] if forth and index else rows[index + 1] if not forth and index + 1 < len(rows) else []
            )
            position = {name: number for number, name in enumerate(other)}
            own = {name: number for number, name in enumerate(rows[index])}
            rows[index].sort(key=lambda name: (_mean([position[n] for n in neighbours[name]], own[name]), own[name]))
        crossings = _crossings(rows, after)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _crossings(rows: Sequence[Sequence[str]], after: Mapping[str, Sequence[str]]) -> int:
    total = 0
    for left, right in pairwise(rows):
        position = {name: number for number, name in enumerate(right)}
        ends: list[int] = []
        for name in left:
            mine = sorted(position[target] for target in after[name])
            total += sum(1 for end in mine for other in ends if other > end)
            ends += mine
    return total


def _heights(
    rows: Sequence[Sequence[str]], heights: Mapping[str, float], links: Sequence[tuple[str, str]]
) -> dict[str, float]:
    """The middle of each node and bend: near its neighbours, none nearer to the next of its column than the gap."""
    middle: dict[str, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            middle[name] = at + heights[name] / 2
            at += heights[name] + GAP_Y
    near: dict[str, list[str]] = {name: [] for name in middle}
    for source, target in links:
        near[source].append(target)
        near[target].append(source)
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wished = [_mean([middle[n] for n in near[name]], middle[name]) for name in row]
            gaps = [(heights[a] + heights[b]) / 2 + GAP_Y for a, b in pairwise(row)]
            middle.update(zip(row, _apart(wished, gaps), strict=True))
    return middle


def _apart(wished: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """The positions nearest to the wished ones (least squares) of which each is at least its gap after the last."""
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, int]] = []  # (mean of the shifted wishes, how many)
    for wish, offset in zip(wished, offsets, strict=False):
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, number = blocks.pop()
            mean, count = (other * number + mean * count) / (number + count), number + count
        blocks.append((mean, count))
    shifted = [mean for mean, count in blocks for _ in range(count)]
    return [value + offset for value, offset in zip(shifted, offsets, strict=False)]


def _placed(
    sizes: Mapping[str, tuple[float, float]],
    heights: Mapping[str, float],
    rows: Sequence[Sequence[str]],
    middles: Mapping[str, float],
    chains: Mapping[tuple[str, str], Sequence[str]],
) -> Layout:
    top = min((middles[name] - heights[name] / 2 for row in rows for name in row), default=0.0)
    boxes: dict[str, Box] = {}
    span: dict[str, tuple[float, float]] = {}  # the column from side to side
    x = 0.0
    for row in rows:
        width = max((sizes[name][0] for name in row if name in sizes), default=0.0)
        for name in row:
            middle = middles[name] - top
            if name in sizes:
                own, height = sizes[name]
                boxes[name] = Box(x + (width - own) / 2, middle - height / 2, own, height)
            span[name] = (x, x + width)
        x += width + GAP_X
    routes: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for (source, target), chain in chains.items():
        start, end = boxes[source], boxes[target]
        # Inside a column an edge is level, so that it meets no other box of it.
        points = [(start.x + start.width, start.middle), (span[source][1], start.middle)]
        for bend in chain[1:-1]:
            left, right = span[bend]
            points += [(left, middles[bend] - top), (right, middles[bend] - top)]
        points += [(span[target][0], end.middle), (end.x, end.middle)]
        routes[source, target] = tuple(dict.fromkeys(points))
    height = max((box.y + box.height for box in boxes.values()), default=0.0)
    height = max([height, *(y for points in routes.values() for _, y in points)])
    return Layout(boxes, routes, max(x - GAP_X, 0.0), height)
