"""Functions whose own operations the options about promotion do not touch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pullback.util import config
from pullback.util.tracebacks import api_boundary

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


def promoting_freely(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fun`, inside of which all dtypes and ranks are promoted: what users set is for operations that they write."""

    @functools.wraps(fun)
    @api_boundary
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        ranks, types = (config.value_of(f"jax_numpy_{what}_promotion") for what in ("rank", "dtype"))
        if ranks == "allow" and types == "standard":
            return fun(*args, **kwargs)
        with config.numpy_rank_promotion("allow"), config.numpy_dtype_promotion("standard"):
            return fun(*args, **kwargs)

    return call


def promoting_as_now(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fun`, inside of which the options are those of now: for functions of users that ours call, promoting freely."""
    ranks, types = (config.value_of(f"jax_numpy_{what}_promotion") for what in ("rank", "dtype"))

    @functools.wraps(fun)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with config.numpy_rank_promotion(ranks), config.numpy_dtype_promotion(types):
            return fun(*args, **kwargs)

    return fun if ranks == "allow" and types == "standard" else call


def methods_promoting_freely(cls: type[_T]) -> type[_T]:
    """The class, made, called and multiplied, and with public methods that promote freely."""
    for name, given in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__mul__", "__call__"):
            continue
        if isinstance(given, classmethod):
            setattr(cls, name, classmethod(promoting_freely(given.__func__)))
        elif inspect.isfunction(given):
            setattr(cls, name, promoting_freely(given))
    return cls
