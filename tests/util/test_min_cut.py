"""Cheapest cuts, against all cuts of small graphs."""

import itertools
import random

import pytest

from pullback.util.min_cut import INFINITE, Graph


def cheapest(count, edges):
    """What the cheapest cut takes, and the fewest nodes on the side of the source of one."""
    found = []
    for inside in itertools.chain.from_iterable(itertools.combinations(range(2, count), n) for n in range(count - 1)):
        side = {0, *inside}
        found.append((sum(room for a, b, room in edges if a in side and b not in side), len(side), side))
    return min(found, key=lambda each: each[:2])


@pytest.mark.parametrize("seed", range(40))
def test_small_graphs(seed):
    draw = random.Random(seed)
    count = draw.randint(2, 8)
    edges = [(a, b, draw.choice([0, 1, 2, 5, 100])) for a in range(count) for b in range(count) if draw.random() < 0.4]
    graph = Graph()
    for _ in range(count - 2):
        graph.node()
    for edge in edges:
        graph.edge(*edge)
    want, _, side = cheapest(count, edges)
    reached = graph.reached()
    assert 0 in reached and 1 not in reached
    assert sum(room for a, b, room in edges if a in reached and b not in reached) == want
    assert reached == side


def test_nothing_to_cut():
    graph = Graph()
    a = graph.node()
    graph.edge(0, a, INFINITE)
    graph.edge(a, 1, INFINITE)
    with pytest.raises(OverflowError, match="no finite cut"):
        graph.reached()
