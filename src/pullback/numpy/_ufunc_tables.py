"""The factories of elementwise functions: from a lax function and a rule of promotion to a function of NumPy's.

A function made here checks that its arguments are array-like, promotes them to one dtype, aligns their ranks and calls
the lax function. Two concrete arrays of one aval, the common case, go to lax at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.numpy._arguments import (
    Array,
    Tracer,
    make_array,
    of_scalars,
    promote,
    promote_inexact,
    promote_numeric,
)
from pullback.numpy._ufunc_object import ufunc
from pullback.util import dtypes

SAME, TO_NUMERIC, TO_INEXACT = promote, promote_numeric, promote_inexact

_BOOL = np.dtype(bool)
FLOATS = frozenset(np.dtype(t) for t in (dtypes.bfloat16, np.float16, np.float32, np.float64))
COMPLEXES = frozenset((np.dtype(np.complex64), np.dtype(np.complex128)))
INTEGERS = frozenset(np.dtype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
INEXACT = FLOATS | COMPLEXES
NUMERIC = INEXACT | INTEGERS
# The dtypes that a rule of promotion leaves alone.
_UNCHANGED = {SAME: NUMERIC | {_BOOL}, TO_NUMERIC: NUMERIC, TO_INEXACT: INEXACT}

_SIGNED_MIN, _SIGNED_MAX = -128, 127  # integers that fit every signed type


def named(fn: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """The function with its public name and documentation."""
    fn.__name__ = fn.__qualname__ = name
    fn.__module__ = "pullback.numpy"
    fn.__doc__ = doc
    return fn


def unary(name: str, lax_fn: Callable[[Any], Any], rule: Callable[..., list[Any]], doc: str) -> Callable[[Any], Any]:
    """Function of one array by a lax function, after promotion by the rule."""
    unchanged = _UNCHANGED[rule]

    def fn(x: Any, /) -> Any:
        if isinstance(x, (Array, Tracer)) and x.dtype in unchanged:
            return lax_fn(x)
        return lax_fn(*rule(name, x))

    return named(fn, name, doc)


def binary(
    name: str,
    lax_fn: Callable[[Any, Any], Any],
    rule: Callable[..., list[Any]],
    doc: str,
    apart: bool = False,
) -> Callable[[Any, Any], Any]:
    """Function of two arrays by a lax function, after promotion by the rule and aligning of ranks.

    The result is weakly typed where promotion gives a weak type, or, of functions set `apart`, only as a scalar.
    """
    unchanged = _UNCHANGED[rule]

    def fn(x1: Any, x2: Any, /) -> Any:
        if isinstance(x1, (Array, Tracer)):
            aval = x1.aval
            if isinstance(x2, (Array, Tracer)):
                # The lattice has no weak bool: what is made of weak comparisons is strongly typed.
                stays = not aval.weak_type or not (apart or aval.dtype == np.bool_)
                if aval is x2.aval and aval.dtype in unchanged and stays:
                    return lax_fn(x1, x2)
            elif not aval.weak_type and aval.dtype in unchanged and scalar_fits(aval.dtype, x2):
                return lax_fn(x1, make_array(x2, aval.dtype))
        x1, x2 = rule(name, x1, x2)
        result = lax_fn(x1, x2)
        return of_scalars(result, x1, x2) if apart else result

    return named(fn, name, doc)


def scalar_fits(dtype: np.dtype, scalar: Any) -> bool:
    """Whether promotion of a strongly typed array of this dtype with this Python scalar gives
    dtype, without overflow.
    """
    if dtypes.canonicalize_dtype(dtype) != dtype:  # an array of 64 bits that was made while they were on
        return False
    kind = type(scalar)
    if kind is float:
        return dtype in FLOATS
    if kind is int:
        if dtype in FLOATS:
            return -(2**31) <= scalar < 2**31  # what the default integer may not hold is checked elsewhere
        return dtype in INTEGERS and dtype.kind == "i" and _SIGNED_MIN <= scalar <= _SIGNED_MAX
    return False


def as_ufunc(fn: Any, name: str, nin: int, identity: Any) -> ufunc:
    """The public ufunc object of `fn`; methods that are not given here are those of the reducers, further up."""
    made = ufunc(fn, nin, 1, name=name, identity=identity, call=fn)
    made.__module__ = "pullback.numpy"
    return made
