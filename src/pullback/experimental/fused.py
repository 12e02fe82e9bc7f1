"""Functions that are to become one kernel: all of them are fused here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback import api
from pullback.experimental.compute_on import check_space, in_memories
from pullback.memory import Space as MemorySpace
from pullback.util.absent import absent_names
from pullback.util.pytree import tree_flatten, tree_unflatten


def fused(*, out_spaces: Sequence[MemorySpace]) -> Callable[[Callable], Callable]:
    """A decorator whose functions are compiled as one program, and give each array in its memory of `out_spaces`.

    Raises TypeError for what is no MemorySpace, ValueError if there are not as many as arrays.
    """
    if not isinstance(out_spaces, tuple):
        raise TypeError(f"fused: argument 'out_spaces' must be a tuple of MemorySpaces, got {out_spaces!r}")
    for space in out_spaces:
        check_space("fused", "out_spaces", space)

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def laid_out(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = tree_flatten(function(*args, **kwargs))
            if len(leaves) != len(out_spaces):
                raise ValueError(f"fused: out_spaces has {len(out_spaces)} memories for {len(leaves)} results")
            return tree_unflatten(tree, in_memories(leaves, out_spaces))

        return api.jit(laid_out)

    return decorate


__getattr__ = absent_names(__name__)

__all__ = ["fused"]
