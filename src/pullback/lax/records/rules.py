"""What rules of derivatives and batching are written with.

Rules may name any function of the package as `lax.<name>`, whichever file it is in: they run after the import is
complete.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import NoRule, UndefinedPrimal, Zero, hooks, tangent_aval, typeof
from pullback.core.types import cut_as_mapped
from pullback.lax.records.operands import broadcast_two
from pullback.util import dtypes


class _Functions:
    """All functions and primitives of lax as attributes; filled when the package's import is complete. Those of modules
    that are imported late are looked up."""

    def __getattr__(self, name: str) -> Any:
        if name in getattr(package := sys.modules.get("pullback.lax"), "_WHERE", ()):
            setattr(self, name, found := getattr(package, name))
            return found
        raise AttributeError(f"lax.{name}: there is no such function, or pullback.lax is not imported yet")


lax: Any = _Functions()

NOT_LINEAR = NoRule("it is not linear in any operand")


class _Linear:
    def __repr__(self):
        return "LINEAR"


LINEAR = _Linear()  # as a jvp rule: the primitive applied to the tangent


# ------------------------------------------------------------------------------------------------------------ tangents


def is_zero(t: Any) -> bool:
    """Whether a tangent or cotangent is a symbolic zero, or of the type that only has zeros."""
    return type(t) is Zero or getattr(t, "dtype", None) == dtypes.float0


def is_linear(x: Any) -> bool:
    """True for the linear operands of a transpose rule."""
    return type(x) is UndefinedPrimal


def aval_of(x: Any) -> Any:
    """The aval of a value or of an UndefinedPrimal."""
    aval = getattr(x, "aval", None)
    return typeof(x) if aval is None else aval


def instantiate(t: Any) -> Any:
    """A tangent as an array: symbolic zeros become zeros."""
    return hooks.zeros(t.aval) if type(t) is Zero else t


def add_tangents(a: Any, b: Any) -> Any:
    """Sum of two tangents, either of which may be Zero or None."""
    if a is None or is_zero(a):
        return b
    if b is None or is_zero(b):
        return a
    return lax.add_any_p.bind(a, b)


def tangent_zero(x: Any) -> Zero:
    """The symbolic zero tangent of a value."""
    return Zero(tangent_aval(aval_of(x)))


def unbroadcast(x_bar: Any, aval: Any) -> Any:
    """The cotangent of an operand that was broadcast from rank 0, or along axes of size 1."""
    if x_bar.shape == aval.shape:
        return x_bar
    if aval.ndim == 0:
        return lax.reduce_sum_p.bind(x_bar, axes=tuple(range(x_bar.ndim)))
    axes = tuple(k for k, (m, n) in enumerate(zip(aval.shape, x_bar.shape)) if m != n)
    return lax.reshape_p.bind(lax.reduce_sum_p.bind(x_bar, axes=axes), new_sizes=aval.shape, dimensions=None)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand, or its tangent, of rank 0 or with axes of size 1, at the shape of the result."""
    if x.shape == shape:
        return x
    return lax.broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(x.ndim)))


# ------------------------------------------------------------------------------------------------------------ batching


def batch_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The size of the batch axis of the mapped operands."""
    return next(x.shape[d] for x, d in zip(args, dims) if d is not None)


def move_batch_axis(x: Any, source: int, to: int) -> Any:
    """`x` with one axis moved."""
    if source == to:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(to, source)
    return lax.transpose_p.bind(x, permutation=tuple(order))


def batch_front(x: Any, d: int | None, size: int) -> Any:
    """`x` with its batch axis first, broadcast if it has none."""
    if d is None:
        shape = (size, *np.shape(x))
        rows = lax.broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(1, len(shape))))
        return cut_as_mapped(rows)
    return move_batch_axis(x, d, 0)


def batch_unary(bind):
    """The batching rule of one operand, whose batch axis is that of the result."""

    def batch(args, dims, **params):
        return bind(*args, **params), dims[0]

    return batch


def batch_nary(bind, same_shapes: bool = False):
    """All mapped operands alike: nothing moves. Otherwise batch axes go first, and operands of lower rank get axes of
    size 1; with `same_shapes` they are broadcast, for operations whose operands have one shape.
    """

    def batch(args, dims, **params):
        mapped = [(x.shape, d) for x, d in zip(args, dims) if d is not None]
        shape, dim = mapped[0]
        if all(pair == mapped[0] for pair in mapped) and all(
            d is not None or not np.shape(x) for x, d in zip(args, dims)
        ):
            return bind(*args, **params), dim
        size = shape[dim]
        inner: tuple[int, ...] = ()
        for x, d in zip(args, dims):
            inner = broadcast_two("vmap", inner, _without(np.shape(x), d))
        out = (size, *inner)
        operands = []
        for x, d in zip(args, dims):
            if d is None and not np.shape(x):
                operands.append(x)
                continue
            if d is not None:
                x = move_batch_axis(x, d, 0)
            if x.ndim != len(out) or (same_shapes and x.shape != out):
                kept = (0,) if d is not None and x.ndim == 1 else tuple(range(len(out) - x.ndim, len(out)))
                sizes = dict(zip(kept, x.shape))
                shape = out if same_shapes else tuple(sizes.get(k, 1) for k in range(len(out)))
                x = lax.broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept)
                x = cut_as_mapped(x) if 0 not in kept else x
            operands.append(x)
        return bind(*operands, **params), 0

    return batch


def _without(shape: tuple[int, ...], d: int | None) -> tuple[int, ...]:
    return shape if d is None else shape[:d] + shape[d + 1 :]
