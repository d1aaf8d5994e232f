from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from compiler.plan.order import levels, order, shortest_cycle

_NAMES = [f"c{n:02d}" for n in range(14)]


@st.composite
def _dags(draw: st.DrawFn) -> dict[str, list[str]]:
    """Acyclic by construction: a node needs only nodes that stand before it in a drawn permutation."""
    line = draw(st.permutations(_NAMES))
    return {name: draw(st.lists(st.sampled_from(line[:at]), max_size=4)) if at else [] for at, name in enumerate(line)}


@given(_dags())
def test_every_node_stands_after_what_it_needs(needs: dict[str, list[str]]) -> None:
    result = order(needs, needs)
    place = {name: at for at, name in enumerate(result)}
    assert sorted(result) == sorted(needs)
    assert all(place[p] < place[d] for d, providers in needs.items() for p in providers)
    level = levels(result, needs)
    assert all(level[p] < level[d] for d, providers in needs.items() for p in providers)
    assert shortest_cycle(needs, needs) == []


@given(_dags(), st.randoms(use_true_random=False))
def test_order_is_a_function_of_the_graph_alone(needs: dict[str, list[str]], random: object) -> None:
    items = list(needs.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    shuffled = {name: list(reversed(providers)) for name, providers in items}
    assert order(needs, needs) == order(shuffled, shuffled)


@given(_dags(), st.sampled_from(_NAMES), st.sampled_from(_NAMES))
def test_a_closed_path_is_reported_as_a_cycle(needs: dict[str, list[str]], a: str, b: str) -> None:
    closed = {name: list(providers) for name, providers in needs.items()}
    closed[a].append(b)
    closed[b].append(a)
    cycle = shortest_cycle(closed, closed)
    assert cycle[0] == cycle[-1]
    assert all(n in closed[d] for d, n in pairwise(cycle))
    assert len(cycle) <= 3
