"""The scatters that users call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import trace
from pullback.lax.movement.gather import GatherScatterMode, canonical_numbers, update_jaxpr_of
from pullback.lax.movement.scatter import *
from pullback.lax.movement.scatter import bind_scatter
from pullback.lax.records.families import *
from pullback.lax.records.operands import check_kind
from pullback.util.static import check_flags

__all__ = ["scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub"]

Array = Any


def _public(p: Primitive, arithmetic: str = "") -> Callable:
    name = p.name.replace("-", "_")

    def function(
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
    ):
        operand, scatter_indices, updates = as_arrays(name, operand, scatter_indices, updates)
        if arithmetic:  # as the operation itself, which has no meaning for booleans
            check_kind(arithmetic, operand.dtype, "iufc", 0)
        check_flags(name, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
        return p.bind(
            operand,
            scatter_indices,
            updates,
            update_jaxpr=update_jaxpr_of(p.name, operand.dtype),
            update_consts=(),
            dimension_numbers=canonical_numbers(dimension_numbers),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pullback.lax"
    function.__doc__ = (
        f"{p.doc.removesuffix('.')}, at the start vectors in the last dimension of `scatter_indices`.\n\n"
        "    Windows outside of the operand are dropped, or moved inside with mode 'clip'. Updates are applied in\n"
        "    row-major order; where many are added to few places, in parts whose sums are added at the end.\n"
        "    Raises TypeError for dimension numbers, shapes or dtypes that don't fit, ValueError for an unknown mode.\n"
        "    "
    )
    return function


scatter = _public(scatter_p)
scatter_add = _public(scatter_add_p, "add")
scatter_sub = _public(scatter_sub_p, "sub")
scatter_mul = _public(scatter_mul_p, "mul")
scatter_min = _public(scatter_min_p)
scatter_max = _public(scatter_max_p)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Array:
    """Windows replaced by `func` (a function of one scalar) of them, once per occurrence of their place.

    `update_shape` is the shape that updates would have. Raises TypeError unless `func` keeps the dtype.
    """
    operand, scatter_indices = as_arrays("scatter_apply", operand, scatter_indices)
    check_flags("scatter_apply", indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
    aval = ShapedArray((), operand.dtype)
    closed = trace(lambda x, _: [as_array(func(x), "scatter_apply")], [aval, aval])
    out = closed.jaxpr.outvars[0].aval
    if out.dtype != operand.dtype or out.shape:
        raise TypeError(f"scatter_apply: func must map {aval.short()} to {aval.short()}, got {out.short()}")
    updates = lax.full(tuple(update_shape), constant(operand, 0))
    return bind_scatter(
        "scatter",
        operand,
        scatter_indices,
        updates,
        canonical_numbers(dimension_numbers),
        bool(indices_are_sorted),
        bool(unique_indices),
        GatherScatterMode.from_any(mode),
        closed,
    )
