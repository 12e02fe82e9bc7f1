"""Tangents and cotangents as values: making symbolic zeros real, adding, casting to a primal's tangent type."""

from __future__ import annotations

import numpy as np

from pullback.core import Zero, hooks, tangent_aval, typeof
from pullback.util import dtypes


def zeros_like_aval(aval):
    """An array of zeros; for float0 a NumPy array, which needs no memory."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return hooks.zeros(aval)


def instantiate(x):
    """The array behind a tangent or cotangent that may be a symbolic zero."""
    return zeros_like_aval(x.aval) if type(x) is Zero else x


def strong_as(bar, var):
    """A cotangent that is no weaker typed than its variable: a loop of weakly typed numbers may make it so."""
    if type(bar) is Zero or var.aval.weak_type or not typeof(bar).weak_type:
        return bar
    if isinstance(bar, (int, float, complex)):  # of a user's rule, whose results stay what they are
        return bar
    return hooks.convert(bar, bar.dtype, False)


def _is_integer(aval) -> bool:
    return dtypes.issubdtype(aval.dtype, np.integer)


def are_of_integers(avals, cotangents) -> bool:
    """Whether a map of integers is transposed, by the cotangents of results of these types: linear_transpose does so,
    though derivatives have no cotangents of integers."""
    return any(
        [
            type(bar) is not Zero and _is_integer(aval) and typeof(bar).dtype == aval.dtype
            for aval, bar in zip(avals, cotangents)
        ]
    )


def cotangent_aval(aval, of_integers: bool):
    """The type of cotangents of values of a type; `of_integers`: where a map of integers is transposed."""
    return aval if of_integers and _is_integer(aval) else aval.to_cotangent_aval()


def instantiated(x, aval, of_integers: bool):
    """The cotangent of a value of that type, as an array."""
    return zeros_like_aval(cotangent_aval(aval, of_integers)) if type(x) is Zero else x


def zero_tangent(primal) -> Zero:
    """The symbolic zero tangent of a primal value."""
    return Zero(tangent_aval(typeof(primal)))


def is_float0(x) -> bool:
    """True for tangents that carry nothing."""
    return getattr(x, "dtype", None) == dtypes.float0


def symbolic(x):
    """The tangent, or a symbolic zero where it is a float0 array."""
    return Zero(typeof(x)) if type(x) is not Zero and is_float0(x) else x


def add_cotangents(x, y):
    """x + y, where either may be None (nothing yet) or a symbolic zero."""
    if x is None or type(x) is Zero:
        return y if y is not None else x
    if y is None or type(y) is Zero:
        return x
    return hooks.add(x, y)
