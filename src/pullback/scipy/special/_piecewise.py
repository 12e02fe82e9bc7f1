"""Functions of one real variable from tables of polynomials, each of which holds on a piece of the line.

Each element looks up the coefficients of its piece. Errors are at most 4 units in the last place, in float32 and
float64: of the value, but of 1/x for Ci beyond 4, where its zeros follow each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import custom_jvp
from pullback.scipy.special._common import real_arguments


def evaluate(table: tuple[np.ndarray, np.ndarray], x: Any) -> Any:
    """The table's function at x, which lies between its edges (elsewhere the result means nothing)."""
    edges, rows = table
    if len(edges) == 2:  # with numbers of Python's, which take the type of x
        low, high = edges.tolist()
        u = (x - (high + low) / 2) * (2 / (high - low))
        total = jnp.full_like(x, rows[-1][0])
        for row in rows[-2::-1]:
            total = total * u + float(row[0])
        return total
    piece = jnp.zeros(x.shape, np.int32)
    for edge in edges[1:-1].tolist():
        piece = piece + (x >= edge).astype(np.int32)
    middle, scale = (edges[1:] + edges[:-1]) / 2, 2 / (edges[1:] - edges[:-1])
    u = (x - jnp.asarray(middle, x.dtype)[piece]) * jnp.asarray(scale, x.dtype)[piece]
    total = jnp.asarray(rows[-1], x.dtype)[piece]
    for row in rows[-2::-1]:
        total = total * u + jnp.asarray(row, x.dtype)[piece]
    return total


def real_function(derivative: Callable[..., Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: a function of one real array, in float32 at least, whose derivative is derivative(x, its values).

    What comes out takes everything that becomes a real float array, and raises ValueError for complex ones.
    """

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        rule = custom_jvp(function)

        @rule.defjvp
        def rule_jvp(primals: Any, tangents: Any) -> Any:
            (x,), (x_dot,) = primals, tangents
            y = rule(x)
            slopes = derivative(x, y)
            if isinstance(y, tuple):
                return y, tuple(slope * x_dot for slope in slopes)
            return y, slopes * x_dot

        def public(x: Any) -> Any:
            x = real_arguments(function.__name__.strip("_"), x)
            y = rule(widened(x))
            if isinstance(y, tuple):
                return tuple(part.astype(x.dtype) for part in y)
            return y.astype(x.dtype)

        public.__name__ = public.__qualname__ = function.__name__.strip("_")
        public.__doc__, public.__module__ = function.__doc__, function.__module__
        return public

    return decorate


def widened(x: Any) -> Any:
    """x in float32 at least, which is where the tables are evaluated."""
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)
