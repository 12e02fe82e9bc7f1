"""Stands for jax._src.api_util: the public names, and which parameters are meant by numbers and by names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from operator import index

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
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "infer_argnums_and_argnames", "rebase_donate_argnums", "shaped_abstractify",
]  # fmt: skip


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of the same parameters, those not given found from the signature."""
    numbers = None if argnums is None else tuple(map(index, as_tuple(argnums)))
    return completed(sig, numbers, None if argnames is None else as_tuple(argnames))
