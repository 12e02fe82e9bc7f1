"""Differences of neighbours: diff, ediff1d, gradient, unwrap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import (
    arrays,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    const,
    convert,
    promote_dtypes,
    promote_dtypes_inexact,
    static_int,
)
from pullback.numpy._comparison import not_equal
from pullback.numpy._join import concatenate
from pullback.numpy._select import select_where
from pullback.numpy._ufuncs import multiply, remainder, subtract
from pullback.util import dtypes


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times over; of booleans, whether they differ.

    Raises ValueError for scalars and negative n.
    """
    (a,) = arrays("diff", a)
    n = static_int(n, "diff: argument 'n'")
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"diff: argument 'n' counts differences, so it is 0 or more; got {n}")
    if a.ndim == 0:
        raise ValueError("diff: argument 'a' is a scalar, which has no axis to take differences along")
    axis = canonical_axis("diff", axis, a.ndim)

    def edge(value: Any) -> Any:
        (value,) = arrays("diff", value)
        if value.ndim == 0:
            value = broadcast_to(value, tuple(1 if k == axis else d for k, d in enumerate(a.shape)))
        return value

    parts = [*([] if prepend is None else [edge(prepend)]), a, *([] if append is None else [edge(append)])]
    if len(parts) > 1:
        a = concatenate(parts, axis)
    combine = not_equal if a.dtype == np.bool_ else subtract
    for _ in range(n):
        length = a.shape[axis]
        if length == 0:
            return a
        a = combine(lax.slice_in_dim(a, 1, length, axis=axis), lax.slice_in_dim(a, 0, length - 1, axis=axis))
    return a


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of all elements in C order, with others put in front and behind."""
    (ary,) = arrays("ediff1d", ary)
    flat = lax.reshape(ary, (ary.size,))
    middle = (
        lax.sub(lax.slice_in_dim(flat, 1, None, axis=0), lax.slice_in_dim(flat, 0, -1, axis=0)) if flat.size else flat
    )

    def edge(value: Any) -> list[Any]:
        if value is None:
            return []
        (value,) = arrays("ediff1d", value)
        return [convert(lax.reshape(value, (value.size,)), ary.dtype)]

    parts = [*edge(to_begin), middle, *edge(to_end)]
    return concatenate(parts) if len(parts) > 1 else middle


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Derivatives by central differences (one-sided at the ends) along axes; a list if there are several.

    Distances: none (1), one number, one an axis, or the coordinates along each axis. Raises ValueError along axes of
    fewer than two elements.
    """
    if edge_order is not None:
        raise NotImplementedError(
            f"gradient: argument 'edge_order' must be None, got {edge_order}; at the ends the order is 1"
        )
    check_arraylike("gradient", f, *varargs)
    f, *spacing = promote_dtypes_inexact(f, *varargs)
    axes = canonical_axes("gradient", axis, f.ndim)
    if any(f.shape[k] < 2 for k in axes):
        raise ValueError(
            f"gradient: an axis needs 2 elements or more to have differences; got shape {f.shape}, with derivatives "
            f"along axes {tuple(axes)}"
        )
    if not spacing:
        spacing = [const(f, 1)] * len(axes)
    elif len(spacing) == 1:
        spacing = spacing * len(axes)
    elif len(spacing) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(spacing)} for {axes=}")
    out = [_gradient(f, h, k) for h, k in zip(spacing, axes)]
    return out[0] if len(axes) == 1 else out


def _gradient(f: Any, h: Any, axis: int) -> Any:
    n = f.shape[axis]

    def part(start: int, stop: int) -> Any:
        return lax.slice_in_dim(f, start, stop, axis=axis)

    if h.ndim == 0:
        inner = multiply(lax.sub(part(2, n), part(0, n - 2)), 0.5)
        inner = lax.concatenate(
            [lax.sub(part(1, 2), part(0, 1)), inner, lax.sub(part(n - 1, n), part(n - 2, n - 1))], axis
        )
        return lax.div(inner, broadcast_to(h, inner.shape))
    if h.ndim != 1 or h.shape[0] != n:
        raise ValueError(
            f"Spacing arrays must be one-dimensional with one entry for each element, got {h.shape} for {n}"
        )
    steps = lax.sub(lax.slice_in_dim(h, 1, n, axis=0), lax.slice_in_dim(h, 0, n - 1, axis=0))

    def along(x: Any) -> Any:
        return lax.broadcast_in_dim(x, tuple(x.shape[0] if k == axis else 1 for k in range(f.ndim)), (axis,))

    def spread(x: Any, like: Any) -> Any:
        return broadcast_to(along(x), like.shape)

    first = lax.sub(part(1, 2), part(0, 1))
    last = lax.sub(part(n - 1, n), part(n - 2, n - 1))
    first = lax.div(first, spread(lax.slice_in_dim(steps, 0, 1, axis=0), first))
    last = lax.div(last, spread(lax.slice_in_dim(steps, n - 2, n - 1, axis=0), last))
    if n == 2:
        return lax.concatenate([first, last], axis)
    # Second order on unequal distances: weights of the values before, at and behind.
    d0, d1 = lax.slice_in_dim(steps, 0, n - 2, axis=0), lax.slice_in_dim(steps, 1, n - 1, axis=0)
    total = lax.add(d0, d1)
    a = lax.neg(lax.div(d1, lax.mul(d0, total)))
    b = lax.div(lax.sub(d1, d0), lax.mul(d0, d1))
    c = lax.div(d0, lax.mul(d1, total))
    before, at, behind = part(0, n - 2), part(1, n - 1), part(2, n)
    inner = lax.add(
        lax.add(lax.mul(spread(a, before), before), lax.mul(spread(b, at), at)), lax.mul(spread(c, behind), behind)
    )
    return lax.concatenate([first, inner, last], axis)


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Any:
    """p with multiples of the period added along an axis, so that neighbours differ by no more than half of it."""
    (p,) = arrays("unwrap", p)
    if dtypes.issubdtype(p.dtype, np.complexfloating):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if p.shape[axis] == 0:
        return promote_dtypes(p, period)[0]
    p, period_ = (convert(v, v.dtype) for v in promote_dtypes(p, period))
    axis = canonical_axis("unwrap", axis, p.ndim)
    integral = dtypes.issubdtype(p.dtype, np.integer)
    two = const(period_, 2)
    half = lax.div(period_, two)
    low = lax.neg(half)
    step = diff(p, axis=axis)
    wrapped = lax.add(remainder(lax.sub(step, broadcast_to(low, step.shape)), period_), broadcast_to(low, step.shape))
    # A step of exactly half the period keeps its sign.
    at_low = lax.eq(wrapped, broadcast_to(low, step.shape))
    upward = lax.bitwise_and(at_low, lax.gt(step, lax.full_like(step, 0)))
    if integral:  # there is half a period only of an even one
        even = lax.eq(lax.rem(period_, two), const(period_, 0))
        upward = lax.bitwise_and(upward, broadcast_to(even, upward.shape))
    wrapped = select_where(upward, half, wrapped)
    correction = lax.sub(wrapped, step)
    limit = half if discont is None else convert(discont, p.dtype)
    small = lax.lt(lax.abs(step), broadcast_to(convert(limit, step.dtype), step.shape))
    correction = select_where(small, const(correction, 0), correction)
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    rest = lax.add(lax.slice_in_dim(p, 1, None, axis=axis), lax.cumsum(correction, axis=axis))
    return lax.concatenate([first, rest], axis)
