"""Batching rules of primitives.

batching.primitive_batchers[p] = rule            rule(args, dims, **params) -> (out, out_dim); dims: int or not_mapped
batching.fancy_primitive_batchers[p] = rule      rule(axis, args, dims, **params); axis has a name and a size
batching.axis_primitive_batchers[p] = rule       rule(axis_size, axis_name, None, args, dims, **params)
"""

from __future__ import annotations

from typing import Any

from pullback.api.vmappable import register_vmappable, unregister_vmappable
from pullback.core import Primitive, hooks, not_mapped
from pullback.interpreters._tables import RuleTable
from pullback.transforms.batching import AxisData, BatchTracer
from pullback.transforms.batching import BatchInterpreter as BatchTrace
from pullback.util.absent import absent_names


def _same(_: Primitive, rule: Any) -> Any:
    return rule


def _from_axis(_: Primitive, rule: Any) -> Any:
    def batch_axis(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        return rule(axis.size, axis.name, None, args, dims, **params)

    return batch_axis


def _to_axis(_: Primitive, rule: Any) -> Any:
    def axis_rule(axis_size: int, axis_name: Any, _trace_type: Any, args: Any, dims: Any, **params: Any) -> Any:
        return rule(AxisData(axis_name, axis_size), args, dims, **params)

    return axis_rule


primitive_batchers = RuleTable("batch", _same, _same)
fancy_primitive_batchers = RuleTable("batch_axis", _same, _same)
axis_primitive_batchers = RuleTable("batch_axis", _from_axis, _to_axis)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """x with its mapped axis in front; broadcast there if it is not mapped."""
    return hooks.broadcast(x, size, 0) if bdim is not_mapped else hooks.moveaxis(x, bdim, 0)


def defvectorized(primitive: Primitive) -> None:
    """State that the primitive, of one argument, works elementwise: the mapped axis stays where it is."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    primitive.batch = batch


def defbroadcasting(primitive: Primitive) -> None:
    """State that the primitive works elementwise on arguments of one shape."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)
        return primitive.bind(*[bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)], **params), 0

    primitive.batch = batch


def defreducer(primitive: Primitive) -> None:
    """State that the primitive, of one argument, reduces over its parameter `axes`, and loses them."""

    def batch(args: Any, dims: Any, *, axes: Any, **params: Any) -> Any:
        (dim,) = dims
        moved = tuple(a + (a >= dim) for a in axes)
        return primitive.bind(*args, axes=moved, **params), dim - sum(a < dim for a in moved)

    primitive.batch = batch


__getattr__ = absent_names(__name__)

__all__ = [
    "BatchTrace", "BatchTracer", "axis_primitive_batchers", "bdim_at_front", "defbroadcasting", "defreducer",
    "defvectorized",
    "fancy_primitive_batchers", "not_mapped", "primitive_batchers", "register_vmappable", "unregister_vmappable",
]  # fmt: skip
