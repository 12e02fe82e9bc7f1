"""Stands for jax._src.api_util: the public names, which parameters are meant by numbers and by names, and what checks
and fixes arguments (desc-opt, adv-jax-math)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

from pullback.api import _arguments
from pullback.api._arguments import as_tuple, completed
from pullback.api_util import (
    argnums_partial,
    debug_info,
    donation_vector,
    flatten_axes,
    flatten_fun,
    flatten_fun_nokwargs,
    rebase_donate_argnums,
    shaped_abstractify,
)

__all__ = [
    "argnums_partial", "argnums_partial2", "check_callable", "debug_info", "donation_vector", "flatten_axes",
    "flatten_fun", "flatten_fun_nokwargs", "infer_argnums_and_argnames", "rebase_donate_argnums", "shaped_abstractify",
]  # fmt: skip


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of the same parameters, those not given found from the signature."""
    numbers = None if argnums is None else tuple(map(index, as_tuple(argnums)))
    return completed(sig, numbers, None if argnames is None else as_tuple(argnames))


def check_callable(fun: Any) -> None:
    """TypeError for what cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def _ensure_index(x: Any) -> int | tuple[int, ...]:
    """An integer, or a tuple of them."""
    try:
        return index(x)
    except TypeError:
        return tuple(map(index, x))


def argnums_partial2(
    f: Callable[..., Any], dyn_argnums: int | Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """(a function of the arguments at some positions, the others fixed; these arguments)."""
    positions = _arguments.argument_positions("argnums_partial2", dyn_argnums, len(args))

    def with_rest(*given: Any) -> Any:
        whole = list(args)
        for position, value in zip(positions, given):
            whole[position] = value
        return f(*whole, **kwargs)

    return with_rest, tuple(args[position] for position in positions)
