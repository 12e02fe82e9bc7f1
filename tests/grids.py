"""Which cases of large grids run by default: all pairs of values, of all parameters; `--all` runs the rest, too.

Most faults show with some value of one parameter, or with two of them together. A grid of five parameters has hundreds
of cases, and some twenty hold each pair. Where those are still many, `@pytest.mark.sample(n)` says how many cases
run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from zlib import crc32

import pytest

FEW = 6  # cases of a test function that all run
Values = tuple[tuple[str, int], ...]  # of a case: each parameter, and which object it is


def sampled(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run by default, and those that do not, in their order."""
    grids: dict[tuple[str, str], list[tuple[pytest.Item, Values]]] = defaultdict(list)
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        values = tuple((name, id(params[name])) for name in sorted(params))
        grids[str(item.path), item.nodeid.split("[")[0]].append((item, values))
    run: set[pytest.Item] = set()
    for cases in grids.values():
        sample = cases[0][0].get_closest_marker("sample")
        if sample is not None:
            run.update(cases[k][0] for k in _spread([values for _, values in cases], *sample.args))
        elif len(cases) <= FEW:
            run.update(item for item, _ in cases)
        else:
            run.update(cases[k][0] for k in _all_pairs([values for _, values in cases]))
    return [item for item in items if item in run], [item for item in items if item not in run]


def _all_pairs(cases: Sequence[Values]) -> Iterator[int]:
    """Numbers of cases in which all pairs of values are that any case has: each case in turn that has most new ones."""
    pairs = [set(combinations(values, 2)) or {(value,) for value in values} for values in cases]
    missing = set().union(*pairs)
    left = set(range(len(cases)))
    while missing:
        best = max(left, key=lambda k: (len(pairs[k] & missing), -k))
        yield best
        left.remove(best)
        missing -= pairs[best]


def _spread(cases: Sequence[Values], most: int) -> Iterator[int]:
    """Numbers of so many cases: each in turn whose values are in the fewest before it, and of equal ones by lot."""
    used: Counter[tuple[str, int]] = Counter()
    left = {k: crc32(str(k).encode()) for k in range(len(cases))}
    while left and most > 0:
        best = min(left, key=lambda k: (sum(used[value] for value in cases[k]), left[k]))
        yield best
        del left[best]
        used.update(cases[best])
        most -= 1
