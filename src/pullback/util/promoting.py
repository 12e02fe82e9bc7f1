"""Functions whose own operations the options about promotion do not touch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pullback.util import config

_P = ParamSpec("_P")
_R = TypeVar("_R")


def promoting_freely(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fun`, inside of which all dtypes and ranks are promoted: what users set is for operations that they write."""

    @functools.wraps(fun)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        ranks, types = (config.value_of(f"jax_numpy_{what}_promotion") for what in ("rank", "dtype"))
        if ranks == "allow" and types == "standard":
            return fun(*args, **kwargs)
        with config.numpy_rank_promotion("allow"), config.numpy_dtype_promotion("standard"):
            return fun(*args, **kwargs)

    return call
