"""Stands for jax._src.core, where all names of jax.core and jax.extend.core live, and whether anything is being traced.

quax writes its interpreter with these, saiunit, brainstate and jax_md read a few; torchax and jax2onnx ask for shapes.
"""

from collections.abc import Sequence
from typing import Any

from pullback import core, errors, ref
from pullback.api_util import safe_map
from pullback.core import AbstractValue, ShapedArray, Tracer, current_interpreter, eval_interpreter
from pullback.core.dimensions import max_dim
from pullback.extend import core as extended
from pullback.extend.core.primitives import call_p, closed_call_p
from pullback.jax_names.src import names_of
from pullback.jax_names.src.util import safe_zip
from pullback.lax import axis_size, dimension_as_value
from pullback.numpy._arguments import canonical_shape
from pullback.util.dtypes import is_extended

DimSize = int | Any  # or a symbolic size
Shape = Sequence[DimSize]


def trace_state_clean() -> bool:
    """Whether operations run on concrete arrays now."""
    return current_interpreter() is eval_interpreter()


def axis_frame(axis_name: Any) -> int:
    """The size of an axis that is named where this is traced; NameError for another name."""
    if isinstance(axis_name, (tuple, list)):
        raise NameError(f"unbound axis name: {axis_name}, which are several; axis_frame takes one")
    return axis_size(axis_name)


def full_lower(value: Any) -> Any:
    """What a library's own tracer says that it stands for; other values as they are."""
    return value.full_lower() if isinstance(value, Tracer) else value


def canonicalize_shape(shape: Shape, context: str = "") -> tuple[Any, ...]:
    """A shape as a tuple of integers; TypeError for what is none."""
    return canonical_shape(shape, context)


def physical_aval(aval: Any) -> Any:
    """The type of what is in memory for a type: of keys, that of their words (flax)."""
    if not is_extended(getattr(aval, "dtype", None)):
        return aval
    return ShapedArray(aval.shape + aval.dtype.base_shape, aval.dtype.base)


def definitely_equal(one: DimSize, other: DimSize) -> bool:
    """Whether two sizes are equal whatever symbols in them stand for."""
    return one is other or bool(one == other)


def definitely_equal_shape(one: Shape, other: Shape) -> bool:
    """Whether two shapes are equal whatever symbols in them stand for."""
    return len(one) == len(other) and all(map(definitely_equal, one, other))


def canonicalize_dim(size: DimSize, context: str = "") -> DimSize:
    """A size as an integer; TypeError for what is none."""
    return canonical_shape((size,), context)[0]


def is_empty_shape(shape: Shape) -> bool:
    """Whether arrays of a shape have no elements."""
    return any(definitely_equal(size, 0) for size in shape)


def dilate_dim(size: DimSize, dilation: DimSize) -> DimSize:
    """The size once there are `dilation - 1` elements between each two."""
    if definitely_equal(dilation, 1):
        return size
    return 0 if definitely_equal(size, 0) else 1 + dilation * (size - 1)


def stride_dim(size: DimSize, window_size: DimSize, window_stride: DimSize) -> DimSize:
    """How many windows lie in a size, one every `window_stride` elements."""
    if definitely_equal(size, 0) or definitely_equal(window_size, size + 1):
        return 0
    return max_dim((size - window_size) // window_stride + 1, 0)


def typematch(one: Any, other: Any) -> bool:
    """Whether types have one shape and dtype; weak types go with strong ones."""
    return type(one) is type(other) and (one.shape, one.dtype) == (other.shape, other.dtype)


def typecompat(one: Any, other: Any) -> bool:
    """Whether a value of one type may stand where another is to be."""
    return typematch(one, other)


def to_concrete_value(x: Any) -> Any:
    """What a value is known to be, None for what is traced."""
    return x.to_concrete() if isinstance(x, Tracer) else x


__getattr__ = names_of(__name__, core, extended, ref, errors)

__all__ = [
    "AbstractValue", "DimSize", "Shape", "ShapedArray", "Tracer", "axis_frame", "call_p", "canonicalize_dim",
    "canonicalize_shape", "closed_call_p", "definitely_equal", "definitely_equal_shape", "dilate_dim",
    "dimension_as_value", "full_lower", "is_empty_shape", "physical_aval", "safe_map", "safe_zip", "stride_dim",
    "to_concrete_value", "trace_state_clean", "typecompat", "typematch",
]  # fmt: skip
