"""Stands for jax._src.api_util: which parameters of a function are meant by numbers and by names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of the same parameters, those not given found from the signature."""
    numbers = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    parameters = list(sig.parameters.items())
    if numbers is None:
        found = () if names is None else names
        numbers = tuple(i for i, (k, p) in enumerate(parameters) if p.kind in _POSITIONAL and k in found)
    elif names is None:
        names = tuple(
            k for i, (k, p) in enumerate(parameters)
            if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and i in numbers
        )  # fmt: skip
    return numbers, names or ()
