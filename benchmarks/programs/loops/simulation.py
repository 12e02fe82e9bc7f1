"""Simulations: ordinary differential equations, heat, bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import f32, normal


def _lorenz_step(jnp: Any, state: Any, dt: float = 0.01) -> Any:
    """One Runge-Kutta step of the Lorenz equations; `state` is f[3] or f[3, n]."""

    def field(s):
        return jnp.stack([10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2]])

    k1 = field(state)
    k2 = field(state + 0.5 * dt * k1)
    k3 = field(state + 0.5 * dt * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def _lorenz(steps: int):
    def make(jax: Any):
        def run(state):
            return jax.lax.scan(lambda s, _: (_lorenz_step(jax.numpy, s), None), state, None, length=steps)[0]

        return run

    return make


def _lorenz_gradient(steps: int):
    def make(jax: Any):
        run = _lorenz(steps)(jax)
        return jax.grad(lambda s: (run(s) ** 2).sum())

    return make


def _lorenz_path(steps: int):
    def make(jax: Any):
        def run(state):
            def step(s, _):
                s = _lorenz_step(jax.numpy, s)
                return s, s

            return jax.lax.scan(step, state, None, length=steps)[1]

        return run

    return make


def _lorenz_numpy(steps: int):
    def run(state):
        for _ in range(steps):
            state = _lorenz_step(np, state)
        return state

    return run


def _lorenz_torch(steps: int):
    def make(torch: Any):
        def run(state):
            for _ in range(steps):
                state = _lorenz_step(torch, state)
            return state

        return run

    return make


def _adaptive(jax: Any):
    """Van der Pol's oscillator to t = 10 by Heun-Euler pairs with step control: f[2] -> (f[2], steps)."""
    jnp, lax = jax.numpy, jax.lax

    def field(y):
        return jnp.stack([y[1], 5.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    def solve(y):
        def going(state):
            return state[0] < 10.0

        def step(state):
            t, dt, y, count = state
            k1 = field(y)
            k2 = field(y + dt * k1)
            new = y + 0.5 * dt * (k1 + k2)
            error = jnp.max(jnp.abs(0.5 * dt * (k2 - k1)) / (1e-4 + 1e-4 * jnp.abs(new)))
            accept = error < 1.0
            factor = jnp.clip(0.9 / jnp.sqrt(error), 0.2, 5.0)
            next_t = jnp.where(accept, t + dt, t)
            return next_t, jnp.minimum(dt * factor, 10.0 - next_t + 1e-6), jnp.where(accept, new, y), count + 1

        _, _, y, count = lax.while_loop(going, step, (jnp.float32(0), jnp.float32(0.01), y, 0))
        return y, count

    return solve


def _heat(steps: int):
    """Explicit heat equation on a square with fixed edges."""

    def make(jax: Any):
        def run(u):
            def step(_, u):
                inside = u[1:-1, 1:-1]
                around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                return u.at[1:-1, 1:-1].set(inside + 0.2 * (around - 4.0 * inside))

            return jax.lax.fori_loop(0, steps, step, u)

        return run

    return make


def _heat_numpy(steps: int):
    def run(u):
        u = u.copy()
        for _ in range(steps):
            inside = u[1:-1, 1:-1]
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] = inside + 0.2 * (around - 4.0 * inside)
        return u

    return run


def _n_body(steps: int):
    """Leapfrog steps of n bodies under softened gravity: positions and velocities f[n, 3]."""

    def make(jax: Any):
        jnp = jax.numpy

        def force(x):
            d = x[None, :, :] - x[:, None, :]
            return (d / ((d**2).sum(-1, keepdims=True) + 0.01) ** 1.5).sum(1) / x.shape[0]

        def run(x, v):
            def step(state, _):
                x, v, a = state
                v = v + 0.005 * a
                x = x + 0.01 * v
                a = force(x)
                return (x, v + 0.005 * a, a), jnp.sum(v**2)

            return jax.lax.scan(step, (x, v, force(x)), None, length=steps)

        return run

    return make


PROGRAMS = [
    Program("Lorenz RK4, 1000 steps", normal(3), _lorenz(1000)),
    Program("Lorenz RK4, 100 steps", normal(3), _lorenz(100), _lorenz_numpy(100), _lorenz_torch(100)),
    Program("Lorenz RK4 gradient, 100 steps", normal(3), _lorenz_gradient(100)),
    Program("Lorenz RK4 gradient, 500 steps", normal(3), _lorenz_gradient(500), tolerance=None),
    Program("Lorenz RK4 of 256, 100 steps", normal(3, 256), _lorenz(100), _lorenz_numpy(100), _lorenz_torch(100)),
    Program("Lorenz RK4 path, 2000 steps", normal(3), _lorenz_path(2000), tolerance=None),
    Program("Van der Pol, adaptive steps", lambda rng: f32(np.array([2.0, 0.0])), _adaptive),
    Program("heat equation 64 x 64, 100 steps", normal(64, 64), _heat(100), _heat_numpy(100)),
    Program("heat equation 512 x 512, 20 steps", normal(512, 512), _heat(20), _heat_numpy(20)),
    Program("32 bodies, 50 steps", lambda rng: f32(rng.standard_normal((32, 3)), np.zeros((32, 3))), _n_body(50)),
]
