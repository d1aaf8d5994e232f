"""Order: Kahn's algorithm with an alphabetical ready queue, the shortest cycle, and levels.

Stable under any hash seed, locale and file order, since every choice is made by name.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping


def order(nodes: Iterable[str], needs: Mapping[str, Iterable[str]]) -> list[str]:
    """`nodes` so that each stands after what it needs; ties in alphabetical order.

    Nodes on or behind a cycle are left out: `len(result) < len(nodes)` tells of one. Names in `needs` that are no
    nodes are the caller's fault and are ignored here.
    """
    names = set(nodes)
    waits = {name: {n for n in needs.get(name, ()) if n in names} for name in names}
    dependants: dict[str, list[str]] = {name: [] for name in names}
    for name, providers in waits.items():
        for provider in providers:
            dependants[provider].append(name)
    count = {name: len(providers) for name, providers in waits.items()}
    ready = [name for name, number in count.items() if number == 0]
    heapq.heapify(ready)
    result: list[str] = []
    while ready:
        name = heapq.heappop(ready)
        result.append(name)
        for dependant in dependants[name]:
            count[dependant] -= 1
            if count[dependant] == 0:
                heapq.heappush(ready, dependant)
    return result


def shortest_cycle(nodes: Iterable[str], needs: Mapping[str, Iterable[str]]) -> list[str]:
    """The shortest cycle as [a, b, ..., a], each needing the next; the alphabetically first of equals; [] without
    one.
    """
    names = sorted(set(nodes))
    known = set(names)
    best: list[str] = []
    for start in names:
        came: dict[str, str] = {}
        queue = deque([start])
        found = False
        while queue and not found:
            name = queue.popleft()
            for provider in sorted(set(needs.get(name, ())) & known):
                if provider == start:
                    path = [name]
                    while path[-1] != start:
                        path.append(came[path[-1]])
                    cycle = [*reversed(path), start]
                    if not best or len(cycle) < len(best):
                        best = cycle
                    found = True
                    break
                if provider not in came:
                    came[provider] = name
                    queue.append(provider)
        if len(best) == 2:
            break
    return best


def levels(ordered: Iterable[str], needs: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Longest path from a root, for every node of an order: 0 for what needs nothing."""
    result: dict[str, int] = {}
    for name in ordered:
        result[name] = max((result[n] + 1 for n in needs.get(name, ()) if n in result), default=0)
    return result
