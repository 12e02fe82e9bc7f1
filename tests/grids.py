"""Which cases of large grids run by default: all pairs of values, of all parameters; `--all` runs the rest, too.

Most faults show with some value of one parameter, or with two of them together. A grid of five parameters has hundreds
of cases, and some twenty hold each pair. Where a parameter has many values, `@pytest.mark.sample(n)` says how many
of them run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

FEW = 12  # cases of a test function that all run
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
            (most,) = sample.args
            run.update(item for item, _ in cases[:: -(-len(cases) // most)])
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
