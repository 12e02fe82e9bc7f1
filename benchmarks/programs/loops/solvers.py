"""Iterations that solve: Newton, conjugate gradients, powers, Sinkhorn; Mandelbrot."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import f32, normal


def _newton(jax: Any):
    """Cube roots by a while loop with its own stop for each element."""
    jnp, lax = jax.numpy, jax.lax

    def root(a):
        def going(state):
            x, last, k = state
            return (jnp.abs(x - last) > 1e-6 * jnp.abs(x)) & (k < 50)

        def step(state):
            x, _, k = state
            return x - (x**3 - a) / (3.0 * x**2), x, k + 1

        return lax.while_loop(going, step, (a, jnp.zeros_like(a), 0))[0]

    return jax.vmap(root)


def _newton_numpy(a):
    x, last, k = a.copy(), np.zeros_like(a), 0
    while True:
        going = np.abs(x - last) > 1e-6 * np.abs(x)
        if not going.any() or k >= 50:
            return x
        x, last, k = np.where(going, x - (x**3 - a) / (3.0 * x**2), x), np.where(going, x, last), k + 1


def _mandelbrot(jax: Any):
    jnp = jax.numpy

    def run(re, im):
        def step(_, state):
            x, y, count = state
            inside = x * x + y * y <= 4.0
            x, y = jnp.where(inside, x * x - y * y + re, x), jnp.where(inside, 2.0 * x * y + im, y)
            return x, y, count + inside

        start = (jnp.zeros_like(re), jnp.zeros_like(re), jnp.zeros(re.shape, jnp.int32))
        return jax.lax.fori_loop(0, 100, step, start)[2]

    return run


def _mandelbrot_numpy(re, im):
    x, y, count = np.zeros_like(re), np.zeros_like(re), np.zeros(re.shape, np.int32)
    for _ in range(100):
        inside = x * x + y * y <= 4.0
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2.0 * x * y + im, y)
        count += inside
    return count


def _conjugate_gradient(jax: Any):
    jnp = jax.numpy

    def run(a, b):
        def going(state):
            _, r, _, k = state
            return ((r @ r) > 1e-8) & (k < 100)

        def step(state):
            x, r, p, k = state
            ap = a @ p
            rr = r @ r
            alpha = rr / (p @ ap)
            new = r - alpha * ap
            return x + alpha * p, new, new + (new @ new) / rr * p, k + 1

        return jax.lax.while_loop(going, step, (jnp.zeros_like(b), b, b, 0))[0]

    return run


def _conjugate_gradient_numpy(a, b):
    x, r, p = np.zeros_like(b), b, b
    for _ in range(100):
        rr = r @ r
        if rr <= 1e-8:
            break
        ap = a @ p
        alpha = rr / (p @ ap)
        r = r - alpha * ap
        x, p = x + alpha * p, r + (r @ r) / rr * p
    return x


def _spd(n: int):
    def inputs(rng):
        x = rng.standard_normal((n, 2 * n))
        return f32(x @ x.T / n + np.eye(n), rng.standard_normal(n))

    return inputs


def _power(jax: Any):
    def run(a, x):
        def step(_, x):
            x = a @ x
            return x / jax.numpy.sqrt((x**2).sum())

        return jax.lax.fori_loop(0, 200, step, x)

    return run


def _power_numpy(a, x):
    for _ in range(200):
        x = a @ x
        x = x / np.sqrt((x**2).sum())
    return x


def _sinkhorn(jax: Any):
    def run(costs):
        def step(_, state):
            f, g = state
            f = -jax.nn.logsumexp(g[None, :] - costs, axis=1)
            return f, -jax.nn.logsumexp(f[:, None] - costs, axis=0)

        zero = jax.numpy.zeros(costs.shape[0], costs.dtype)
        return jax.lax.fori_loop(0, 50, step, (zero, zero))

    return run


PROGRAMS = [
    Program("Newton by vmapped while, 1000", lambda rng: f32(rng.uniform(0.1, 100, 1000)), _newton, _newton_numpy),
    Program("Newton by vmapped while, 1e5", lambda rng: f32(rng.uniform(0.1, 100, 100_000)), _newton, _newton_numpy),
    Program(
        "Mandelbrot 200 x 200",
        lambda rng: f32(*np.meshgrid(np.linspace(-2, 0.5, 200), np.linspace(-1.2, 1.2, 200))),
        _mandelbrot,
        _mandelbrot_numpy,
    ),
    Program("conjugate gradients 32", _spd(32), _conjugate_gradient, _conjugate_gradient_numpy),
    Program("conjugate gradients 500", _spd(500), _conjugate_gradient, _conjugate_gradient_numpy),
    Program("power iteration 64", _spd(64), _power, _power_numpy),
    Program("Sinkhorn 100 x 100", normal(100, 100), _sinkhorn),
]
