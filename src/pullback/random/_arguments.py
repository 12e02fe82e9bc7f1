"""Checks of what all samplers take: shape, dtype, and parameters that broadcast against the shape."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import Tracer
from pullback.core.dimensions import index as size_of
from pullback.core.explain import type_shown
from pullback.numpy._arguments import is_arraylike
from pullback.util import config, dtypes
from pullback.util.errors import ArgumentError
from pullback.util.promoting import promoting_freely


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """A static shape from an int or a sequence of ints; TypeError naming the function otherwise."""
    if type(shape) is tuple and all([type(d) is int and d >= 0 for d in shape]):
        return shape
    try:
        out: tuple[int, ...] = (size_of(shape),)
    except TypeError:
        try:
            out = tuple(size_of(d) for d in shape)
        except TypeError:
            sizes = shape if isinstance(shape, (list, tuple)) else (shape,)
            why = next((why for d in sizes if isinstance(d, Tracer) and (why := d.provenance())), "")
            raise TypeError(
                f"{name}: argument 'shape' is {shape!r}. Shapes must be 1D sequences: integers, known when "
                "the function is traced; under jit, mark what it comes from static (static_argnums)."
                + (why and f"\n{why}")
            ) from None
    if any(d < 0 for d in out):
        raise ValueError(f"{name}: argument 'shape' is {out}; dimensions must not be negative")
    return out


@functools.lru_cache(maxsize=64)
def _default_float(_epoch: Any) -> np.dtype:
    """The dtype of floats under some configuration."""
    return dtypes.check_user_dtype_supported(float, "default")


def _of_kind(name: str, dtype: Any, kind: Any, words: str) -> np.dtype:
    dtype = dtypes.check_user_dtype_supported(dtype, name)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {words} dtype, got {dtype}")
    return dtype


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """A float dtype, by default the default one; ValueError for another kind."""
    return _default_float(config.epoch()) if dtype is None else _of_kind(name, dtype, np.floating, "a float")


def inexact_dtype(name: str, dtype: Any) -> np.dtype:
    """A float or complex dtype, by default the default float; ValueError for another kind."""
    return _default_float(config.epoch()) if dtype is None else _of_kind(name, dtype, np.inexact, "a float or complex")


def int_dtype(name: str, dtype: Any) -> np.dtype:
    """An integer dtype, by default the default one; ValueError for another kind."""
    return _of_kind(name, int if dtype is None else dtype, np.integer, "an int")


def batch_shape(name: str, shape: Any, **parameters: tuple[int, ...]) -> tuple[int, ...]:
    """`shape`, checked against the parameters' shapes, or their common shape if it is None.

    Raises ArgumentError if parameters do not broadcast against each other, or one not to `shape` without enlarging it.
    """
    shapes = list(parameters.values())
    if shape is None:
        try:
            return lax.broadcast_shapes(*shapes)
        except ValueError:
            # A ValueError or a TypeError in JAX, by the distribution.
            raise ArgumentError(f"{name}: Incompatible shapes for broadcasting: {_list(parameters)}") from None
    out = shape_of(name, shape)
    try:
        fits = lax.broadcast_shapes(out, *shapes) == out
    except ValueError:
        fits = False
    if not fits:
        raise ArgumentError(
            f"{name}: Incompatible shapes for broadcasting: shape={out}, {_list(parameters)}; each parameter must "
            "broadcast to the shape"
        )
    return out


def check_parameters(name: str, real: bool = True, **parameters: Any) -> None:
    """Raises TypeError for a parameter that is neither an array nor a number, ValueError for a complex one if they must
    be real."""
    for argument, x in parameters.items():
        if not is_arraylike(x):
            hint = "; convert it first with asarray" if isinstance(x, (list, tuple)) else ""
            raise TypeError(
                f"{name} requires ndarray or scalar arguments: argument '{argument}' is {type_shown(x)}{hint}"
            )
        if real and dtypes.issubdtype(dtypes.dtype_of(x), np.complexfloating):
            raise ValueError(
                f"{name}: argument '{argument}' must be real, got dtype {dtypes.dtype_of(x)}, which cannot safely be "
                "cast to a float dtype"
            )


def check_casts(name: str, dtype: Any, **parameters: Any) -> None:
    """Raises TypePromotionError for a parameter of a type that does not become `dtype` by promotion, as float32 beside
    float16; Python numbers do."""
    for argument, x in parameters.items():
        if type(x) in (int, float) or getattr(x, "dtype", None) == dtype:
            continue
        if promoting_freely(jnp.result_type)(x, dtype) != dtype:
            raise dtypes.TypePromotionError(
                f"{name}: argument '{argument}' of dtype {dtypes.dtype_of(x)} cannot safely be cast to "
                f"{np.dtype(dtype)}, in which is drawn; convert it first"
            )


def _list(parameters: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{n}: {s}" for n, s in parameters.items())


def as_dtype(x: Any, dtype: Any) -> Any:
    """A parameter as an array of `dtype`."""
    return lax.convert_element_type(jnp.asarray(x), dtype)


def smallest_normal(dtype: Any) -> np.generic:
    """The least positive normal number, as a scalar of `dtype`."""
    return np.dtype(dtype).type(dtypes.finfo(dtype).tiny)


def above(x: float, dtype: Any) -> np.generic:
    """The number of `dtype` that follows x towards 0, for x = -1: the open end of the interval (-1, 1)."""
    one = np.dtype(dtype).type(x)
    return np.nextafter(one, np.dtype(dtype).type(0), dtype=dtype)
