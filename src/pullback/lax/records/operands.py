"""Operands: as arrays, of which dtypes, of which shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import hooks
from pullback.core.explain import type_shown
from pullback.util import dtypes

# Kinds of dtypes, as dtypes.kind_of has them.
BOOL, INT, UINT, FLOAT, COMPLEX = "b", "i", "u", "f", "c"
REAL = INT + UINT + FLOAT
NUMERIC = REAL + COMPLEX
SIGNED = INT + FLOAT + COMPLEX
INEXACT = FLOAT + COMPLEX
BITS = INT + UINT + BOOL
ANY = NUMERIC + BOOL
KEYS = "k"
_KIND_NAMES = {"b": "bool", "f": "floating", "c": "complexfloating"}

# --------------------------------------------------------------------------------------------------------- array-likes

PYTHON_SCALARS = (bool, int, float, complex)


def as_array(x: Any, name: str, position: int = 0) -> Any:
    """An array or tracer of an array-like operand; Python scalars become weakly typed. TypeError for anything else."""
    if hasattr(x, "aval"):
        return x
    if isinstance(x, (np.ndarray, np.generic, *PYTHON_SCALARS)):
        return hooks.asarray(x)
    if hasattr(x, "__jax_array__"):
        return as_array(x.__jax_array__(), name, position)
    raise TypeError(
        f"Error interpreting argument to {name} at position {position}: {type_shown(x)} is no array, NumPy array or "
        "Python number"
    )


def as_arrays(name: str, *operands: Any) -> list[Any]:
    """`as_array` of each operand."""
    return [x if hasattr(x, "aval") else as_array(x, name, i) for i, x in enumerate(operands)]


_NUMPY_NAMES = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "select": "where",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "rem": "remainder",
    "atan2": "arctan2",
}


# Primitives whose names are words of every sentence, by the functions' names.
_SPOKEN = {"and": "bitwise_and", "not": "bitwise_not", "or": "bitwise_or", "xor": "bitwise_xor"}


def check_dtypes(name: str, *avals: Any, tip: bool = True) -> None:
    """TypeError unless all dtypes are the same."""
    first = avals[0].dtype
    for aval in avals:
        if aval.dtype != first:
            hint = f"; jnp.{_NUMPY_NAMES.get(name, name)} promotes them" if tip else ""
            raise TypeError(
                f"lax.{name} requires arguments of one dtype, got {', '.join(dtype_name(a.dtype) for a in avals)}{hint}"
            )


def dtype_name(dtype: Any) -> str:
    """The name of a dtype as messages have it."""
    return getattr(dtype, "name", str(dtype))


def accepted_names(kinds: str) -> str:
    """The kinds as JAX users know them: 'floating, complexfloating'."""
    names = ["integer"] if "i" in kinds and "u" in kinds else []
    names += [{"i": "signedinteger", "u": "unsignedinteger"}[k] for k in "iu" if k in kinds and not names]
    return ", ".join(names + [_KIND_NAMES[k] for k in "fcb" if k in kinds])


def check_places(name: str, length: Any, dtype: Any) -> None:
    """Raises ValueError if a dtype cannot say each place along an axis of that length, as numbers would wrap."""
    if isinstance(length, int) and length - 1 > dtypes.iinfo(dtype).max:
        hint = "; jax_enable_x64 gives 64 bits" if np.dtype(dtype) == np.int32 else ""
        raise ValueError(f"{name}: places along an axis of {length} elements do not fit into {np.dtype(dtype)}{hint}")


def check_kind(name: str, dtype: Any, kinds: str, position: int | None = None) -> None:
    """TypeError unless `dtype` is of one of the kinds."""
    if dtypes.kind_of(dtype) not in kinds:
        where = "" if position is None else f" at position {position}"
        raise TypeError(
            f"{_SPOKEN.get(name, name)} does not accept dtype {dtype_name(dtype)}{where}; accepted are "
            f"{accepted_names(kinds)}"
        )


def constant(x: Any, value: Any) -> Any:
    """A scalar of the dtype of `x`, weakly typed if `x` is: an operand that broadcasts, and a literal in a jaxpr."""
    dtype = x.dtype
    scalar = dtype.type(value) if type(dtype) is np.dtype else np.asarray(value, dtype)[()]
    aval = getattr(x, "aval", None)
    if aval is not None and aval.weak_type:
        return hooks.asarray(scalar, weak_type=True)
    return scalar if dtypes.canonicalize_dtype(dtype) == dtype else hooks.exactly(scalar)


def canonical_axis(axis: Any, ndim: int, name: str, what: str = "axis") -> int:
    """An axis in 0..ndim-1; ValueError outside of -ndim..ndim-1, TypeError for what is no integer."""
    if not hasattr(axis, "__index__"):
        raise TypeError(f"{name}: {what} must be an integer, got {axis!r}")
    axis = axis.__index__()
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: {what} {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def broadcast_two(name: str, shape_a: tuple, shape_b: tuple) -> tuple[int, ...]:
    """The common shape of two operands of equal rank, or of which one is a scalar; TypeError otherwise."""
    if shape_a == shape_b or not shape_b:
        return shape_a
    if not shape_a:
        return shape_b
    if len(shape_a) != len(shape_b):
        raise TypeError(
            f"{name}: operands must be of one rank, got shapes {shape_a} and {shape_b} of ranks {len(shape_a)} and "
            f"{len(shape_b)}"
        )
    out = []
    for m, n in zip(shape_a, shape_b):
        if m != n and m != 1 and n != 1:
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {shape_a}, {shape_b}.")
        out.append(n if m == 1 else m)
    return tuple(out)
