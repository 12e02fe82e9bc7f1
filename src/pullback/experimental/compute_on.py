"""Where a part of a program is computed: there is one place, so that it is said for other machines alone; and in which
memory its results lie.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback import api
from pullback.core.explain import explain_all as _explain_all
from pullback.memory import Space as MemorySpace
from pullback.util.pytree import flatten_axes, tree_flatten, tree_leaves, tree_unflatten

_TYPES = re.compile(r"device_host|device|tpu_sparsecore|gpu_stream:\d+")


def _check(name: str, compute_type: Any) -> None:
    if not isinstance(compute_type, str) or not _TYPES.fullmatch(compute_type):
        raise ValueError(
            f"{name}: argument 'compute_type' is {compute_type!r}; expected 'device', 'device_host', "
            "'tpu_sparsecore' or 'gpu_stream:' and a number"
        )


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A context manager whose computations belong on the host, say; here all of them run there.

    Raises ValueError for a type that JAX does not know.
    """
    _check("compute_on", compute_type)
    yield


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Any:
    """`f`, computed where `compute_type` says; see compute_on. NotImplementedError for `compiler_options`.

    Its results lie in the memories `out_memory_spaces`: a MemorySpace, a tree of them that is a prefix of the results
    (ValueError), or None where nothing is said.
    """
    _check("compute_on2", compute_type)
    if compiler_options:
        raise NotImplementedError(f"compute_on2: argument 'compiler_options' must be None, got {compiler_options!r}")
    for space in tree_leaves(out_memory_spaces):
        check_space("compute_on2", "out_memory_spaces", space)

    def with_memories(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = tree_flatten(function(*args, **kwargs))
            spaces = flatten_axes("compute_on2 out_memory_spaces", tree, out_memory_spaces)
            return tree_unflatten(tree, in_memories(leaves, spaces))

        return wrapped

    return with_memories if f is None else with_memories(f)


def check_space(function: str, argument: str, space: Any) -> None:
    """TypeError for what is no MemorySpace."""
    if not isinstance(space, MemorySpace):
        raise TypeError(
            f"{function}: argument '{argument}' must hold MemorySpaces (pullback.memory.Space), got {space!r}"
        )


def in_memories(arrays: Sequence[Any], spaces: Sequence[MemorySpace | None]) -> list[Any]:
    """The arrays, each in its memory."""
    return [x if space is None else api.device_put(x, space) for x, space in zip(arrays, spaces, strict=True)]


__all__ = ["compute_on", "compute_on2"]

_explain_all(globals())
