"""Ordinary differential equations with given accuracy: odeint, differentiable in reverse mode.

The method is that of Dormand and Prince, of order 5 with an error estimate of order 4, and step sizes are controlled as
in E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd edition, II.4. Its gradient solves
the adjoint equation backwards (R. Chen et al., Neural Ordinary Differential Equations, 2018), so no steps are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import api_util as api_util  # bijx, which solves with fixed steps, takes it and ravel_first_arg here
from pullback import lax
from pullback.api import vjp, vmap
from pullback.core.explain import explain_all as _explain_all
from pullback.core.source import located
from pullback.custom_derivatives import closure_convert, custom_vjp
from pullback.flatten_util import ravel_pytree
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.ode import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import absent_names, listed
from pullback.util.pytree import tree_flatten, tree_map, tree_unflatten

__getattr__ = absent_names(__name__)

__all__ = ["odeint", "ravel_first_arg"]

NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
FOURTH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
ERROR = tuple(a - b for a, b in zip((*STAGES[6], 0.0), FOURTH))
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0  # of the factor from one step size to the next

assert all(abs(sum(row) - c) < 1e-14 for row, c in zip(STAGES, NODES)), "rows of the table sum to the nodes"
assert abs(sum(FOURTH) - 1) < 1e-14, "weights sum to 1"


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = jnp.inf,
    hmax: float = jnp.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0 at the times t.

    Differentiable in y0, t, args and what func closes over.
    """
    if not callable(func):
        raise TypeError(f"odeint: argument 'func' must be a function, got {func!r}")
    for leaf in tree_flatten(args)[0]:
        if not hasattr(leaf, "dtype") and not isinstance(leaf, (int, float, complex)):
            raise TypeError(f"odeint: expected arrays or numbers in *args, got {leaf!r}")
    y0 = tree_map(jnp.asarray, y0)
    for leaf in tree_flatten(y0)[0]:
        if not dtypes.issubdtype(leaf.dtype, np.inexact):
            raise TypeError(f"odeint: argument 'y0' has a leaf of type {leaf.dtype}; expected floating point numbers")
    t = jnp.asarray(t)
    if not dtypes.issubdtype(t.dtype, np.floating):
        raise TypeError(f"odeint: argument 't' has type {t.dtype}; expected floating point numbers")
    if t.ndim != 1 or not t.shape[0]:
        raise ValueError(f"odeint: argument 't' has shape {t.shape}; expected one dimension with at least one time")
    converted, consts = closure_convert(func, y0, t[0], *args)
    leaves, tree = tree_flatten((tuple(args), tuple(consts)))
    leaves = [jnp.asarray(x) for x in leaves]
    smooth = [dtypes.issubdtype(x.dtype, np.inexact) for x in leaves]
    flat, unravel = ravel_pytree(y0)

    def slope(y: Any, time: Any, floats: Any, others: Any) -> Any:
        a, b = iter(floats), iter(others)
        own, more = tree_unflatten(tree, [next(a) if s else next(b) for s in smooth])
        found = converted(unravel(y), time, *own, *more)
        out = ravel_pytree(found)[0]
        if out.shape not in (y.shape, (1,)):
            raise ValueError(
                f"odeint: {located(func)} must return dy/dt, of the shapes of y0, {tree_map(jnp.shape, y0)}; it "
                f"returned {tree_map(jnp.shape, found)}"
            )
        return out.astype(y.dtype)

    limits = (float(rtol), float(atol), float(mxstep), float(hmax))
    floats = [x for x, s in zip(leaves, smooth) if s]
    others = [x for x, s in zip(leaves, smooth) if not s]
    ys = _differentiable(slope, limits)(flat, t, floats, others)
    return vmap(unravel)(ys)


def ravel_first_arg(f: Callable[..., Any], unravel: Callable[[Any], Any], debug_info: Any) -> Callable[..., Any]:
    """f as a function whose first argument and whose result are vectors; debug_info is not read: errors name f."""
    return lambda y, *args: ravel_pytree(f(unravel(y), *args))[0]


def _differentiable(slope: Callable[..., Any], limits: tuple[float, ...]) -> Callable[..., Any]:
    """The solver with the adjoint equation as its derivative."""

    @custom_vjp
    def solve(y0: Any, t: Any, floats: Any, others: Any) -> Any:
        return _integrate(lambda y, s: slope(y, s, floats, others), y0, t, limits)

    def forward(y0: Any, t: Any, floats: Any, others: Any) -> Any:
        ys = solve(y0, t, floats, others)
        return ys, (ys, t, floats, others)

    def backward(saved: Any, ys_bar: Any) -> Any:
        ys, t, floats, others = saved
        size = ys.shape[1]
        empty, unravel = ravel_pytree([jnp.zeros_like(x) for x in floats])

        def adjoint(state: Any, s: Any, floats: Any, others: Any) -> Any:
            """Derivatives by s = -t of y, of its cotangent, and of those of the start and the arguments."""
            y, y_bar = state[:size], state[size : 2 * size]
            value, pull = vjp(lambda y, time, floats: slope(y, time, floats, others), y, -s, floats)
            own, time_bar, floats_bar = pull(y_bar)
            more = ravel_pytree(floats_bar)[0].astype(state.dtype)
            return jnp.concatenate([-value, own, time_bar.astype(state.dtype)[None], more])

        solve_back = _differentiable(adjoint, limits)  # so that gradients have gradients

        def step(carry: Any, i: Any) -> Any:
            y_bar, start_bar, floats_bar = carry
            time_bar = jnp.real(jnp.vdot(jnp.conj(slope(ys[i], t[i], floats, others)), ys_bar[i])).astype(t.dtype)
            state = jnp.concatenate(
                [ys[i], y_bar, (start_bar - time_bar).astype(ys.dtype)[None], floats_bar.astype(ys.dtype)]
            )
            end = solve_back(state, jnp.stack([-t[i], -t[i - 1]]), floats, others)[1]
            y_bar = end[size : 2 * size] + ys_bar[i - 1]
            return (y_bar, jnp.real(end[2 * size]).astype(t.dtype), end[2 * size + 1 :].astype(empty.dtype)), time_bar

        start = (ys_bar[-1], jnp.zeros((), t.dtype), empty)
        (y_bar, start_bar, floats_bar), times_bar = lax.scan(step, start, jnp.arange(t.shape[0] - 1, 0, -1))
        return y_bar, jnp.concatenate([start_bar[None], jnp.flip(times_bar)]), unravel(floats_bar), None

    solve.defvjp(forward, backward)
    return solve


def _integrate(f: Callable[[Any, Any], Any], y0: Any, t: Any, limits: tuple[float, ...]) -> Any:
    """y at the times t: [n, size]; each is reached by a step of its own."""
    rtol, atol, mxstep, hmax = limits
    real = jnp.real(y0).dtype
    t = t.astype(real)
    direction = jnp.where(t[-1] >= t[0], 1, -1).astype(real)

    def size_of(error: Any, y: Any, after: Any) -> Any:
        return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error) / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(after))))))

    def first_step(y: Any, time: Any, slope: Any) -> Any:
        """Hairer and others, II.4: a step by Euler's method tells how fast the slope changes."""
        scale = atol + rtol * jnp.abs(y)

        def norm(x: Any) -> Any:
            return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(x) / scale)))

        d0, d1 = norm(y), norm(slope)
        h = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1, d1)).astype(real)
        d2 = norm(f(y + h * direction * slope, time + h * direction) - slope) / h
        largest = jnp.maximum(d1, d2)
        other = jnp.where(largest <= 1e-15, jnp.maximum(1e-6, h * 1e-3), (0.01 / largest) ** 0.2)
        return jnp.minimum(jnp.minimum(100 * h, other), hmax).astype(real)

    def advance(carry: Any, target: Any) -> Any:
        def goes_on(state: Any) -> Any:
            _, time, _, h, count = state
            return ((target - time) * direction > 0) & (count < mxstep) & (h > 0)

        def step(state: Any) -> Any:
            y, time, slope, h, count = state
            left = (target - time) * direction
            last = h >= left
            here = jnp.where(last, left, h) * direction
            stages = [slope]
            after = y
            for row, node in zip(STAGES[1:], NODES[1:]):
                after = y + here * sum(a * k for a, k in zip(row, stages) if a)
                stages.append(f(after, time + node * here))
            error = size_of(here * sum(e * k for e, k in zip(ERROR, stages) if e), y, after)
            accepted = error <= 1
            factor = jnp.clip(SAFETY * jnp.where(error == 0, 1e-10, error) ** -0.2, LEAST, MOST)
            factor = jnp.where(jnp.isnan(error), LEAST, jnp.where(accepted, factor, jnp.minimum(factor, 1)))
            # A step cut short by the target says little of how long the next one may be.
            new = jnp.where(accepted & last, jnp.maximum(h, jnp.abs(here) * factor), jnp.abs(here) * factor)
            new = jnp.minimum(new, hmax)
            new = jnp.where(time + new * direction == time, 0, new).astype(real)  # it can't go on
            return (
                jnp.where(accepted, after, y),
                jnp.where(accepted, jnp.where(last, target, time + here), time),
                jnp.where(accepted, stages[-1], slope),
                new,
                count + 1,
            )

        y, time, slope, h = carry
        y, time, slope, h, _ = lax.while_loop(goes_on, step, (y, time, slope, h, 0))
        failed = (target - time) * direction > 0
        y = jnp.where(failed & (h == 0), jnp.nan, y)
        return (y, time, slope, h), y

    slope = f(y0, t[0])
    _, rest = lax.scan(advance, (y0, t[0], slope, first_step(y0, t[0], slope)), t[1:])
    return jnp.concatenate([y0[None], rest])


_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
