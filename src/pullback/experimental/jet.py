"""jet: derivatives of higher order along a curve.

The curve x(t) is given by its derivatives at t = 0, and what comes out are those of f(x(t)), by arithmetic of truncated
power series (`_taylor.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import tree_util
from pullback.api import _arguments as arguments
from pullback.core import hooks, typeof
from pullback.core.explain import explain_all as _explain_all
from pullback.experimental._taylor import series_flat
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.jet import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import absent_names


class ZeroTerm:
    """A derivative that is zero, whatever the type."""


class ZeroSeries:
    """Derivatives of which all are zero."""


zero_term, zero_series = ZeroTerm(), ZeroSeries()
tree_util.register_pytree_node(ZeroTerm, lambda _: ((), None), lambda *_: zero_term)
tree_util.register_pytree_node(ZeroSeries, lambda _: ((), None), lambda *_: zero_series)


def fact(n: int) -> int:
    """The factorial of an integer."""
    return math.factorial(n)


def jet(
    fun: Callable, primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """(fun(*primals), derivatives): those of fun(*x(t)) at t = 0, up to the order that `series` has of the arguments.

    series[k] is the list of the first, second, ... derivative of argument k, each of its structure; where fun gives
    an array there is a list of as many. With `factorial_scaled=False` all are coefficients of Taylor series instead,
    the derivatives over factorials. Raises ValueError for lists of different lengths, TypeError for what is no array.

    >>> value, terms = jet(lambda x: x**2, (3.0,), ([1.0, 0.0],))
    >>> float(value), [float(t) for t in terms]
    (9.0, [6.0, 2.0])
    """
    arguments.check_callable("jet", fun)
    primals, series = list(primals), [list(s) if not isinstance(s, ZeroSeries) else s for s in series]
    orders = {len(s) for s in series if not isinstance(s, ZeroSeries)}
    if len(orders) > 1 or len(primals) != len(series):
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    order = orders.pop() if orders else 0
    leaves, tree = tree_util.tree_flatten(tuple(primals))
    leaves = [x if dtypes.issubdtype(x.dtype, np.inexact) else x * 1.0 for x in map(jnp.asarray, leaves)]
    terms: list[list[Any]] = []  # for each leaf, its derivatives
    # Of coefficients of Taylor series.
    scales = [1.0 / math.factorial(k + 1) if factorial_scaled else 1.0 for k in range(order)]
    for primal, given in zip(primals, series, strict=True):
        parts, structure = tree_util.tree_flatten(primal)
        whole = [zero_term] * order if isinstance(given, ZeroSeries) else given
        rows = [[zero_term] * len(parts) if isinstance(t, ZeroTerm) else structure.flatten_up_to(t) for t in whole]
        for k, part in enumerate(parts):
            for row in rows:
                if not isinstance(row[k], ZeroTerm) and jnp.shape(row[k]) != jnp.shape(part):
                    raise ValueError(f"jet: a term of shape {jnp.shape(row[k])} for {typeof(jnp.asarray(part))}")
            terms.append([row[k] for row in rows])
    rows = []
    for x, derivatives in zip(leaves, terms, strict=True):
        row = [None if isinstance(d, ZeroTerm) else _as(x, d) for d in derivatives]
        rows.append([x, *[t if t is None else t * scale for t, scale in zip(row, scales)]])
    structures: list[Any] = []

    def flat(*points: Any) -> list[Any]:
        outs, out_tree = tree_util.tree_flatten(fun(*tree_util.tree_unflatten(tree, points)))
        structures[:] = [out_tree]
        return [jnp.asarray(out) for out in outs]

    found = series_flat(flat, rows, order)
    derivatives = [
        [jnp.zeros_like(value) if t is None else _as(value, t / scale) for t, scale in zip(coefficients, scales)]
        for value, *coefficients in found
    ]
    out_tree = structures[0]
    return tree_util.tree_unflatten(out_tree, [row[0] for row in found]), tree_util.tree_unflatten(
        out_tree, derivatives
    )


def _as(x: Any, term: Any) -> Any:
    """A coefficient with the type of the value."""
    return hooks.convert(jnp.asarray(term), x.dtype, typeof(x).weak_type)


def jet2(fun: Callable, primals: Any, series: Any, *, factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """As `jet`."""
    return jet(fun, primals, series, factorial_scaled)


__getattr__ = absent_names(__name__)

__all__ = ["ZeroSeries", "ZeroTerm", "fact", "jet", "jet2", "zero_series", "zero_term"]

_explain_all(globals())
_add_pages(globals(), _PAGES)
