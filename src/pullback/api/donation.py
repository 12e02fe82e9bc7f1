"""Donated arguments: which of them a program can take over, and the warning about the others.

As in JAX: each donated argument that the program reads gets the first result left that has as many elements. Where that
has as many bytes, too, the array is deleted by the call; the others stay valid, and those without a result are named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pullback.core import ClosedJaxpr
from pullback.transforms.partial_eval import dce_jaxpr, used_inputs
from pullback.util import dtypes
from pullback.util.warning import warn_user


def usable(closed: ClosedJaxpr, donated: Sequence[int], keep_unused: bool) -> tuple[int, ...]:
    """The donated arguments that a call deletes. UserWarning, once, for those without a result."""
    if not donated:
        return ()
    return closed.cached(("donation", tuple(donated), keep_unused), lambda: _usable(closed, donated, keep_unused))


def _usable(closed: ClosedJaxpr, donated: Sequence[int], keep_unused: bool) -> tuple[int, ...]:
    used = [True] * len(closed.in_avals) if keep_unused else used_inputs(dce_jaxpr(closed.jaxpr))
    results: dict[int, deque] = {}
    for aval in closed.out_avals:
        results.setdefault(aval.size, deque()).append(aval)
    taken, left = [], []
    for k in donated:
        aval = closed.in_avals[k]
        if not used[k]:
            continue
        if not results.get(aval.size):
            left.append(aval)
        elif dtypes.itemsize_bits(results[aval.size].popleft().dtype) == dtypes.itemsize_bits(aval.dtype):
            taken.append(k)
    if left:
        names = ", ".join(f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in left)
        warn_user(
            f"Some donated buffers were not usable: {names}.\nNo result has as many elements, so that none can take "
            "over their memory; the arrays stay valid."
        )
    return tuple(taken)


__all__ = ["usable"]
