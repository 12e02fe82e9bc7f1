"""Names that JAX's lax has for its compiler's sake: tokens, composites, choices by platform, accuracy."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import hooks
from pullback.core.explain import check, shown
from pullback.core.kinds import ARRAY, FUNCTION
from pullback.lax.records.families import AccuracyMode, Tolerance
from pullback.util import dtypes
from pullback.util.pytree import tree_flatten
from pullback.util.tracebacks import api_boundary

__all__ = [
    "AccuracyMode",
    "RandomAlgorithm",
    "Tolerance",
    "after_all",
    "composite",
    "create_token",
    "dtype",
    "platform_dependent",
]


class RandomAlgorithm(enum.IntEnum):
    """Generators of `rng_bit_generator`."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


@api_boundary
def dtype(x: Any) -> Any:
    """The dtype of an array, a number or what names a dtype; ValueError for None, TypeError for other things."""
    if x is None:
        raise ValueError("dtype: expected an array, a number or a dtype, got None")
    if isinstance(x, (str, type, np.dtype)):
        return dtypes.check_user_dtype_supported(x, "dtype")
    return dtypes.dtype_of(x)


def create_token(_: Any = None) -> Any:
    """A token, by which JAX orders side effects; here programs run in their order without one."""
    return hooks.asarray(np.zeros(0, bool))


def after_all(*operands: Any) -> Any:
    """A token that stands for all of those given; TypeError for what is no token."""
    for token in operands:
        if getattr(token, "shape", None) != (0,) or token.dtype != np.bool_:
            raise TypeError(f"after_all: arguments must be tokens, as create_token gives them, got {shown(token)}")
    return operands[0] if operands else create_token()


def checked_values(name: str, tree: Any) -> None:
    """ArgumentError for a tree with leaves that are no arrays, OverflowError for integers that arrays cannot hold."""
    for leaf in tree_flatten(tree)[0]:
        check(name, ARRAY, args=leaf)
        if type(leaf) is int:
            dtypes.python_scalar_to_numpy(leaf)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """The function itself, under a name that a compiler may know."""
    check("composite", FUNCTION, decomposition=decomposition)
    if not isinstance(version, int):
        raise TypeError(f"composite: argument 'version' must be an integer, got {version!r}")
    if not isinstance(name, str) or not name:
        raise ValueError(f"composite: argument 'name' must be a non-empty string, got {name!r}")

    @functools.wraps(decomposition)
    def call(*args, **kwargs):
        checked_values("composite", (args, kwargs))
        return decomposition(*args, **kwargs)

    return call


def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """The result of the function given for the platform ('cpu'), or of `default`. Raises NotImplementedError if there
    is neither.
    """
    for name, branch in (*per_platform.items(), *(("default", default),) * (default is not None)):
        if not callable(branch):
            raise TypeError(f"platform_dependent: the branch '{name}' must be a function, got {branch!r}")
    function = per_platform.get("cpu", default)
    if function is None:
        raise NotImplementedError(
            f"platform_dependent: there is no branch for platform 'cpu' and no default; got {sorted(per_platform)}"
        )
    checked_values("platform_dependent", args)
    return function(*args)
