"""Checks of derivatives against differences, for tests of users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback as jax
from pullback import tree_util
from pullback.core.explain import explain_all as _explain_all
from pullback.util import dtypes
from pullback.util.absent import listed

# By the number of bits: how far from the derivative differences are, and the step. For 32 bits 2e-2 would balance
# rounding and curvature; but samplers that reject have jumps, which a short step seldom meets, as JAX's.
_TOLERANCE = {16: 2e-1, 32: 1e-2, 64: 1e-5}
_STEP = {16: 1e-1, 32: 1e-4, 64: 1e-5}


def _bits(tree: Any) -> int:
    found = [dtypes.finfo(dtypes.dtype_of(x)).bits for x in tree_util.tree_leaves(tree) if _differentiable(x)]
    return min(found, default=32)


def _differentiable(x: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype_of(x), np.inexact)


def _random_like(rng: np.random.RandomState, x: Any) -> Any:
    """A direction of the type of x: standard normal; float0 zeros where x is not differentiable."""
    if not _differentiable(x):
        return np.zeros(np.shape(x), dtypes.float0)
    dtype = dtypes.dtype_of(x)
    out = rng.standard_normal(np.shape(x))
    if dtypes.issubdtype(dtype, np.complexfloating):
        out = out + 1j * rng.standard_normal(np.shape(x))
    return np.asarray(out).astype(dtype)


def _moved(tree: Any, direction: Any, step: float) -> Any:
    def move(x: Any, d: Any) -> Any:
        if not _differentiable(x):
            return x
        return (np.asarray(x) + np.asarray(d) * np.asarray(step, np.asarray(x).real.dtype)).astype(np.asarray(x).dtype)

    return tree_util.tree_map(move, tree, direction)


def _close(actual: Any, expected: Any, atol: float, rtol: float, message: str) -> None:
    for a, e in zip(tree_util.tree_leaves(actual), tree_util.tree_leaves(expected), strict=True):
        a, e = np.asarray(a), np.asarray(e)
        if a.dtype != dtypes.float0:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), e.astype(wide), atol=atol, rtol=rtol, err_msg=message)


def _tolerances(args: Any, atol: float | None, rtol: float | None, eps: float | None) -> tuple[float, float, float]:
    bits = _bits(args)
    return (
        _TOLERANCE[bits] if atol is None else atol,
        _TOLERANCE[bits] if rtol is None else rtol,
        _STEP[bits] if eps is None else eps,
    )


def _slope(f: Callable[..., Any], args: Sequence[Any], direction: Any, step: float) -> Any:
    """(f(x + h d) - f(x - h d)) / 2h."""
    above, below = f(*_moved(tuple(args), direction, step)), f(*_moved(tuple(args), direction, -step))

    def difference(a: Any, b: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind not in "fc" and not dtypes.issubdtype(a.dtype, np.inexact):
            return np.zeros(a.shape, dtypes.float0)
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        return (a.astype(wide) - b.astype(wide)) / (2 * step)

    return tree_util.tree_map(difference, above, below)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare f_jvp(args, direction) with differences of f along a random direction; AssertionError if they differ."""
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    rng = np.random.RandomState(0)
    direction = tree_util.tree_map(functools.partial(_random_like, rng), tuple(args))
    out, slope = f_jvp(tuple(args), direction)
    _close(out, f(*args), atol, rtol, f"{err_msg} JVP primal")
    _close(slope, _slope(f, args, direction, eps), atol, rtol, f"{err_msg} JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare <c, J d>, by differences, with <J^T c, d>, by f_vjp, for random c, d; AssertionError if they differ."""
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    rng = np.random.RandomState(0)
    out, pull = f_vjp(*args)
    _close(out, f(*args), atol, rtol, f"{err_msg} VJP primal")
    direction = tree_util.tree_map(functools.partial(_random_like, rng), tuple(args))
    cotangent = tree_util.tree_map(functools.partial(_random_like, rng), out)
    pulled = pull(cotangent)
    _close(
        _inner(pulled, direction),
        _inner(cotangent, _slope(f, args, direction, eps)),
        atol,
        rtol,
        f"{err_msg} VJP cotangent projection",
    )


def _inner(x: Any, y: Any) -> Any:
    """The sum of products, without conjugation; its real part."""
    total = 0.0
    for a, b in zip(tree_util.tree_leaves(x), tree_util.tree_leaves(y), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != dtypes.float0 and b.dtype != dtypes.float0:
            wide = np.complex128 if "c" in a.dtype.kind + b.dtype.kind else np.float64
            total = total + np.sum(a.astype(wide) * b.astype(wide)).real
    return np.asarray(total)


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of f at args up to `order`, in the modes given, against differences.

    Raises AssertionError if they disagree, ValueError for a mode other than 'fwd' and 'rev'.
    """
    modes = (modes,) if isinstance(modes, str) else modes
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise ValueError(f"check_grads: unknown mode {mode!r}; expected 'fwd' or 'rev'")
    args = tuple(args)

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, path: str) -> None:
        if "fwd" in modes:
            check_jvp(f, functools.partial(jax.jvp, f), args, atol, rtol, eps, f"{path} (fwd)")
            if order > 1:
                rng = np.random.RandomState(order)
                direction = tree_util.tree_map(functools.partial(_random_like, rng), args)
                check(lambda *a: jax.jvp(f, a, direction)[1], args, order - 1, f"{path}.jvp")
        if "rev" in modes:
            check_vjp(f, functools.partial(jax.vjp, f), args, atol, rtol, eps, f"{path} (rev)")
            if order > 1:
                rng = np.random.RandomState(order)
                cotangent = tree_util.tree_map(functools.partial(_random_like, rng), f(*args))
                check(lambda *a: jax.vjp(f, *a)[1](cotangent), args, order - 1, f"{path}.vjp")

    check(f, args, order, getattr(f, "__name__", "f"))


__all__ = ["check_grads", "check_jvp", "check_vjp"]

_explain_all(globals())

__dir__ = listed(__name__)
