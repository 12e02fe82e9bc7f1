"""Comparison of functions of `pullback.numpy` with NumPy's: eagerly and compiled, in both widths of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback
from pullback import tree_util

# Relative error, in multiples of the largest result, that a function of a few operations may have.
TOLERANCE = {
    np.dtype(np.float16): 4e-3,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.complex64): 2e-5,
    np.dtype(np.float64): 1e-12,
    np.dtype(np.complex128): 1e-12,
}


def widest(x: Any) -> Any:
    """The same values in the widest type of their kind, for a reference without rounding of its own."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))
    return x


def assert_same(got: Any, expected: Any, tolerance: float | None = None) -> None:
    """Values agree to the precision of what came, shapes exactly; NaN and infinities are at the same places."""
    got_leaves, expected_leaves = tree_util.tree_leaves(got), tree_util.tree_leaves(expected)
    assert len(got_leaves) == len(expected_leaves)
    for g, e in zip(got_leaves, expected_leaves):
        assert np.shape(g) == np.shape(e), f"shape {np.shape(g)}, expected {np.shape(e)}"
        value, e = np.asarray(g), np.asarray(e)
        if value.dtype.kind in "biu":
            np.testing.assert_array_equal(value, e)
            continue
        t = TOLERANCE[value.dtype] if tolerance is None else tolerance
        finite = np.abs(e[np.isfinite(e)])
        scale = float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(value, e, rtol=t, atol=t * scale)


def check(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *args: Any,
    tolerance: float | None = None,
    compiled: bool = True,
) -> Any:
    """function(*args) is reference(*args) in the widest types, as it runs eagerly and (unless told otherwise) compiled.

    `args` are NumPy arrays, which become traced arguments of the compiled function. Returns the eager result.
    """
    arrays = tree_util.tree_map(pullback.numpy.asarray, args)
    with np.errstate(all="ignore"):
        expected = reference(*tree_util.tree_map(widest, args))
    got = function(*arrays)
    assert_same(got, expected, tolerance)
    if compiled:
        assert_same(pullback.jit(function)(*arrays), expected, tolerance)
    return got


def check_gradient(function: Callable[..., Any], *args: np.ndarray, tolerance: float = 1e-5) -> None:
    """Both modes agree with a central difference of function(*args) along a random direction, in 64 bits."""
    rng = np.random.default_rng(0)
    with pullback.enable_x64(True):
        primals = [pullback.numpy.asarray(x, np.float64) for x in args]
        tangents = [pullback.numpy.asarray(rng.normal(size=x.shape)) for x in args]
        out, out_dot = pullback.jvp(function, tuple(primals), tuple(tangents))
        h = 1e-6
        ahead = function(*(x + h * t for x, t in zip(primals, tangents)))
        behind = function(*(x - h * t for x, t in zip(primals, tangents)))
        difference = (np.asarray(ahead) - np.asarray(behind)) / (2 * h)
        np.testing.assert_allclose(np.asarray(out_dot), difference, rtol=tolerance, atol=tolerance)
        _, backward = pullback.vjp(function, *primals)
        out_bar = pullback.numpy.asarray(rng.normal(size=out.shape))
        bars = backward(out_bar)
        forward = float((out_dot * out_bar).sum())
        total = sum(float((b * t).sum()) for b, t in zip(bars, tangents))
        np.testing.assert_allclose(total, forward, rtol=1e-9, atol=1e-9)
