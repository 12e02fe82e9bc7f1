"""Minimization of scalar functions of vectors: BFGS with a line search for the strong Wolfe conditions.

J. Nocedal, S. Wright, Numerical Optimization, 2nd edition: BFGS is algorithm 6.1, the line search 3.5 and 3.6.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.api import value_and_grad
from pullback.core.explain import check
from pullback.core.explain import explain_all as _explain_all
from pullback.core.kinds import ARRAY
from pullback.core.tracer import Array
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.optimize import PAGES as _PAGES
from pullback.scipy import _parameters
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.errors import ArgumentError
from pullback.util.record import NamedTuple

__all__ = ["OptimizeResults", "minimize"]

DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
SEARCH = 10  # steps of a line search, and of its second part


class OptimizeResults(NamedTuple):
    """What `minimize` found: x, whether it converged, value, gradient, inverse Hessian, and how many iterations and
    evaluations it took.

    status: 0: converged, 1: too many iterations, 3: the line search failed, 5: the function is not finite.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimize `fun(x, *args)`, a scalar, from x0: f[n], by method 'BFGS' or, with less memory, by the one of limited
    memory that JAX names 'l-bfgs-experimental-do-not-rely-on-this'.

    tol: the gradient's largest element at which it ends (1e-5); options: 'maxiter' (200 n), 'gtol', 'norm' (order of
    the gradient's norm), 'line_search_maxiter'; of limited memory 'maxls' in place of the last, 'maxcor' (10 steps are
    remembered), 'ftol', 'maxfun', 'maxgrad'. ValueError for other methods, options and shapes of x0, TypeError if args
    is no tuple. It can run under jit and vmap.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: argument 'args' is {args}; expected a tuple, of what the function takes after x")
    if not isinstance(method, str) or method.lower() not in ("bfgs", LIMITED):
        raise ValueError(f"Method {method} not recognized: minimize has 'BFGS' and {LIMITED!r}")
    is_limited = method.lower() == LIMITED
    chosen: dict[str, Any] = {"maxiter": None, "gtol": 1e-5 if tol is None else tol, "norm": jnp.inf}
    if is_limited:
        chosen |= {"maxcor": 10, "ftol": 2.220446049250313e-09, "maxfun": None, "maxgrad": None, "maxls": 20}
    else:
        chosen |= {"line_search_maxiter": SEARCH}
    check("minimize", ARRAY, x0=x0)
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"minimize: argument 'options' must be a mapping or None, got {options!r}")
    unknown = set(options or {}) - set(chosen)
    if unknown:
        raise ArgumentError(f"minimize: unknown options {sorted(unknown)}; {method} has {sorted(chosen)}")
    chosen |= dict(options or {})
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: argument 'x0' has shape {x0.shape}; expected one dimension")
    x0 = x0.astype(dtypes.to_inexact_dtype(x0.dtype))

    @functools.wraps(fun)  # so that messages name it
    def objective(x: Any) -> Any:
        return fun(x, *args)

    return (_limited if is_limited else _bfgs)(value_and_grad(objective), x0, chosen)


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    inverse: Any  # of the Hessian
    before: Any  # the value one iteration ago, about
    evaluations: Any
    iterations: Any
    converged: Any
    failed: Any


def _bfgs(both: Callable[[Any], Any], x0: Any, options: dict[str, Any]) -> OptimizeResults:
    n = x0.size
    maxiter = 200 * n if options["maxiter"] is None else options["maxiter"]

    def small(g: Any) -> Any:
        return jnp.linalg.norm(g, options["norm"]) < options["gtol"]

    value, slope = both(x0)
    eye = jnp.eye(n, dtype=x0.dtype)
    start = _State(x0, value, slope, eye, value + jnp.linalg.norm(slope) / 2, 1, 0, small(slope), jnp.asarray(False))

    def goes_on(s: _State) -> Any:
        return ~s.converged & ~s.failed & (s.iterations < maxiter)

    def step(s: _State) -> _State:
        direction = -(s.inverse @ s.slope)
        found = _line_search(both, s.x, direction, s.value, s.before, s.slope, options["line_search_maxiter"])
        move = found.step * direction
        x = s.x + move
        change = found.slope - s.slope
        rho = 1 / (change @ move)
        left = eye - rho * jnp.outer(move, change)
        updated = left @ s.inverse @ left.T + rho * jnp.outer(move, move)
        inverse = jnp.where(jnp.isfinite(rho) & ~found.failed, updated, s.inverse)
        return _State(
            x,
            found.value,
            found.slope,
            inverse,
            s.value,
            s.evaluations + found.evaluations,
            s.iterations + 1,
            small(found.slope),
            found.failed,
        )

    end = lax.while_loop(goes_on, step, start)
    finite = jnp.isfinite(end.value) & jnp.isfinite(end.slope).all()
    status = jnp.where(end.converged, 0, jnp.where(~finite, 5, jnp.where(end.failed, 3, 1)))
    return OptimizeResults(
        end.x,
        end.converged & finite,
        status,
        end.value,
        end.slope,
        end.inverse,
        end.evaluations,
        end.evaluations,
        end.iterations,
    )


class _LimitedState(NamedTuple):
    x: Any
    value: Any
    slope: Any
    moves: Any  # the last steps, the latest below, and how the gradient changed along them
    changes: Any
    before: Any
    evaluations: Any
    iterations: Any
    converged: Any
    failed: Any


def _downhill(slope: Any, moves: Any, changes: Any) -> Any:
    """Minus the gradient times the inverse Hessian that the steps imply (J. Nocedal, Math. Comp. 35 (1980), 773)."""
    products = jnp.sum(moves * changes, -1)
    rho = jnp.where(products > 0, 1 / jnp.where(products > 0, products, 1), 0)  # 0 of what is not yet there

    def back(g: Any, k: Any) -> tuple[Any, Any]:
        share = rho[k] * (moves[k] @ g)
        return g - share * changes[k], share

    def forth(g: Any, pair: Any) -> tuple[Any, None]:
        k, share = pair
        return g + (share - rho[k] * (changes[k] @ g)) * moves[k], None

    order = jnp.arange(len(moves))
    g, shares = lax.scan(back, slope, order[::-1])
    size = changes[-1] @ changes[-1]
    g = g * jnp.where(products[-1] > 0, products[-1] / jnp.where(size > 0, size, 1), 1)
    return -lax.scan(forth, g, (order, shares[::-1]))[0]


def _limited(both: Callable[[Any], Any], x0: Any, options: dict[str, Any]) -> OptimizeResults:
    most = 200 * x0.size if options["maxiter"] is None else options["maxiter"]
    evaluations = [n for n in (options["maxfun"], options["maxgrad"]) if n is not None]

    def small(g: Any) -> Any:
        return jnp.linalg.norm(g, options["norm"]) < options["gtol"]

    value, slope = both(x0)
    none = jnp.zeros((options["maxcor"], x0.size), x0.dtype)
    before = value + jnp.linalg.norm(slope) / 2
    start = _LimitedState(x0, value, slope, none, none, before, 1, 0, small(slope), jnp.asarray(False))

    def goes_on(s: _LimitedState) -> Any:
        allowed = s.iterations < most
        for n in evaluations:
            allowed &= s.evaluations < n
        return ~s.converged & ~s.failed & allowed

    def step(s: _LimitedState) -> _LimitedState:
        direction = _downhill(s.slope, s.moves, s.changes)
        found = _line_search(both, s.x, direction, s.value, s.before, s.slope, options["maxls"])
        move, change = found.step * direction, found.slope - s.slope
        still = jnp.abs(s.value - found.value) <= options["ftol"] * jnp.maximum(
            1, jnp.maximum(jnp.abs(s.value), jnp.abs(found.value))
        )
        return _LimitedState(
            s.x + move,
            found.value,
            found.slope,
            jnp.concatenate([s.moves[1:], move[None]]),
            jnp.concatenate([s.changes[1:], change[None]]),
            s.value,
            s.evaluations + found.evaluations,
            s.iterations + 1,
            small(found.slope) | (still & ~found.failed),
            found.failed,
        )

    end = lax.while_loop(goes_on, step, start)
    finite = jnp.isfinite(end.value) & jnp.isfinite(end.slope).all()
    status = jnp.where(end.converged, 0, jnp.where(~finite, 5, jnp.where(end.failed, 3, 1)))
    counts = (end.evaluations, end.evaluations, end.iterations)
    return OptimizeResults(end.x, end.converged & finite, status, end.value, end.slope, None, *counts)


class _Search(NamedTuple):
    """A bracket [low, high] of steps, of which low has the least value so far, and the step tried last."""

    zooms: Any
    done: Any
    failed: Any
    count: Any
    low: Any
    low_value: Any
    low_rate: Any
    high: Any
    high_value: Any
    high_rate: Any
    trial: Any
    step: Any
    value: Any
    slope: Any
    evaluations: Any


def _line_search(
    both: Callable[[Any], Any], x: Any, direction: Any, value: Any, before: Any, slope: Any, most: int
) -> _Search:
    """A step that meets the strong Wolfe conditions: brackets grow until they hold one, then shrink."""
    rate = slope @ direction
    first = jnp.minimum(1.0, 1.01 * 2 * (value - before) / rate)
    first = jnp.where(jnp.isfinite(first) & (first > 0), first, 1.0).astype(x.dtype)
    zero = jnp.zeros((), x.dtype)
    no = jnp.asarray(False)

    def goes_on(s: _Search) -> Any:
        return ~s.done & ~s.failed

    def search(s: _Search) -> _Search:
        step = jnp.where(s.zooms, _between(s), s.trial)
        found, gradient = both(x + step * direction)
        here = gradient @ direction
        finite = jnp.isfinite(found) & jnp.isfinite(here)
        too_high = (
            ~finite | (found > value + DECREASE * step * rate) | (found >= s.low_value) & (s.zooms | (s.count > 0))
        )
        done = ~too_high & (jnp.abs(here) <= -CURVATURE * rate)
        # While growing, a rise or a change of sign ends it; while zooming, the end with the lower value is kept.
        turned = ~too_high & jnp.where(s.zooms, here * (s.high - s.low) >= 0, here >= 0)
        new_high = [
            jnp.where(too_high, a, jnp.where(turned, b, c))
            for a, b, c in ((step, s.low, s.high), (found, s.low_value, s.high_value), (here, s.low_rate, s.high_rate))
        ]
        new_low = [jnp.where(too_high, b, a) for a, b in ((step, s.low), (found, s.low_value), (here, s.low_rate))]
        zooms = s.zooms | too_high | turned
        tries = jnp.where(zooms & ~s.zooms, 0, s.count + 1)
        return _Search(
            zooms,
            done,
            ~done & (tries > most),
            tries,
            new_low[0],
            new_low[1],
            new_low[2],
            new_high[0],
            new_high[1],
            new_high[2],
            2 * step,
            step,
            found,
            gradient,
            s.evaluations + 1,
        )

    start = _Search(no, no, ~(rate < 0), 0, zero, value, rate, zero, value, rate, first, zero, value, slope, 0)
    end = lax.while_loop(goes_on, search, start)
    # If it failed, the best step of the bracket is taken if it is one downhill.
    best = jnp.where(end.failed, end.low, end.step)
    again, gradient = lax.cond(end.failed, lambda: both(x + best * direction), lambda: (end.value, end.slope))
    better = ~end.failed | ((best > 0) & (again < value))
    return end._replace(step=jnp.where(better, best, 0), value=again, slope=gradient, failed=~better)


def _between(s: _Search) -> Any:
    """The minimum of the cubic through values and rates at both ends, kept away from them; else the middle."""
    width = s.high - s.low
    theta = 3 * (s.low_value - s.high_value) / width + s.low_rate + s.high_rate
    root = jnp.sqrt(theta * theta - s.low_rate * s.high_rate)
    root = jnp.where(width < 0, -root, root)
    cubic = s.high - width * (s.high_rate + root - theta) / (s.high_rate - s.low_rate + 2 * root)
    share = (cubic - s.low) / width
    return jnp.where(jnp.isfinite(cubic) & (share > 0.1) & (share < 0.9), cubic, s.low + width / 2)


_explain_all(globals(), _parameters.OPTIMIZE, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
