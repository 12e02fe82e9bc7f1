"""The programs that are timed, each once for JAX's API (ours or the original) and once for NumPy where it has them."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np


def programs(backend: str) -> dict[str, Any]:
    """Name -> function that gives a zero-argument call, which waits for its result."""
    rng = np.random.default_rng(0)
    tables = {"numpy": numpy_programs, "jax": jax_programs, "pullback": jax_programs}
    return tables[backend](rng)


def inputs(rng) -> dict[str, np.ndarray]:
    """The arrays that programs use, the same on every side."""
    return {
        "five": rng.standard_normal(5).astype(np.float32),
        "thousand": rng.standard_normal(1000).astype(np.float32),
        "million": rng.standard_normal(1_000_000).astype(np.float32),
        "ten million": rng.standard_normal(10_000_000).astype(np.float32),
        "small matrix": rng.standard_normal((64, 64)).astype(np.float32),
        "matrix": rng.standard_normal((1024, 1024)).astype(np.float32),
        "rows": rng.standard_normal((100, 1000)).astype(np.float32),
        "square": rng.standard_normal((2000, 2000)).astype(np.float32),
        "stack": rng.standard_normal((1000, 16, 16)).astype(np.float32),
    }


def numpy_programs(rng) -> dict[str, Any]:
    """What NumPy can do of the list."""
    x = inputs(rng)

    def chain(v):
        return np.tanh(v) * np.exp(-(v**2)) + np.sin(v)

    def softmax(v):
        e = np.exp(v - v.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    one = np.float32(1.0)
    return {
        "x + 1, scalar": lambda: lambda: one + 1,
        "eager a + b, 5 elements": lambda: lambda: x["five"] + x["five"],
        "tanh(x) exp(-x^2) + sin(x), 1e3": lambda: lambda: chain(x["thousand"]),
        "tanh(x) exp(-x^2) + sin(x), 1e7": lambda: lambda: chain(x["ten million"]),
        "sum of squares, 1e6": lambda: lambda: np.sum(x["million"] ** 2),
        "softmax, 100 x 1000": lambda: lambda: softmax(x["rows"]),
        "transpose + add, 2000 x 2000": lambda: lambda: x["square"].T + x["square"],
        "matmul 64": lambda: lambda: x["small matrix"] @ x["small matrix"],
        "matmul 1024": lambda: lambda: x["matrix"] @ x["matrix"],
        "matmul 1000 of 16": lambda: lambda: x["stack"] @ x["stack"],
        "sort 1e5": lambda: lambda: np.sort(x["million"][:100_000]),
        "cumsum 1e6": lambda: lambda: np.cumsum(x["million"]),
    }


def jax_programs(rng) -> dict[str, Any]:
    """The list, on JAX's API."""
    jax, jnp, lax = (importlib.import_module(n) for n in ("jax", "jax.numpy", "jax.lax"))
    optax = importlib.import_module("optax")
    x = {k: jnp.asarray(v) for k, v in inputs(rng).items()}

    def jitted(f, *args):
        def make():
            compiled = jax.jit(f)
            return lambda: jax.block_until_ready(compiled(*args))

        return make

    def chain(v):
        return jnp.tanh(v) * jnp.exp(-(v**2)) + jnp.sin(v)

    def least_squares(a):
        def f(v):
            return jnp.sum((a @ v - a[0]) ** 2)

        return f

    def lorenz(v):
        def field(s):
            return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

        def step(s, _):
            k1 = field(s)
            k2 = field(s + 0.005 * k1)
            k3 = field(s + 0.005 * k2)
            k4 = field(s + 0.01 * k3)
            return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return lax.scan(step, v, None, length=100)[0]

    def mlp():
        sizes = [8, 64, 64, 64, 1]
        keys = np.random.default_rng(1)
        params = [
            (jnp.asarray(keys.standard_normal((a, b)) / np.sqrt(a), jnp.float32), jnp.zeros(b))
            for a, b in itertools.pairwise(sizes)
        ]
        inputs_, targets = x["rows"][:64, :8], x["rows"][:64, 8:9]
        optimizer = optax.adam(1e-3)

        def loss(p):
            h = inputs_
            for w, b in p[:-1]:
                h = jax.nn.relu(h @ w + b)
            return jnp.mean((h @ p[-1][0] + p[-1][1] - targets) ** 2)

        @jax.jit
        def step(p, s):
            value, gradient = jax.value_and_grad(loss)(p)
            updates, s = optimizer.update(gradient, s, p)
            return optax.apply_updates(p, updates), s, value

        state = [params, optimizer.init(params)]

        def call():
            _, _, value = step(*state)
            return jax.block_until_ready(value)

        return call

    key = jax.random.PRNGKey(0)
    return {
        "x + 1, scalar": jitted(lambda v: v + 1, jnp.float32(1.0)),
        "eager a + b, 5 elements": lambda: lambda: x["five"] + x["five"],
        "tanh(x) exp(-x^2) + sin(x), 1e3": jitted(chain, x["thousand"]),
        "tanh(x) exp(-x^2) + sin(x), 1e7": jitted(chain, x["ten million"]),
        "sum of squares, 1e6": jitted(lambda v: jnp.sum(v**2), x["million"]),
        "softmax, 100 x 1000": jitted(jax.nn.softmax, x["rows"]),
        "transpose + add, 2000 x 2000": jitted(lambda v: v.T + v, x["square"]),
        "matmul 64": jitted(jnp.matmul, x["small matrix"], x["small matrix"]),
        "matmul 1024": jitted(jnp.matmul, x["matrix"], x["matrix"]),
        "matmul 1000 of 16": jitted(jnp.matmul, x["stack"], x["stack"]),
        "sort 1e5": jitted(jnp.sort, x["million"][:100_000]),
        "cumsum 1e6": jitted(jnp.cumsum, x["million"]),
        "gradient of least squares, 1024": jitted(jax.grad(least_squares(x["matrix"] / 32)), x["matrix"][0]),
        "Hessian of least squares, 64": jitted(jax.hessian(least_squares(x["small matrix"])), x["small matrix"][0]),
        "Jacobian of softmax, 100": jitted(jax.jacrev(jax.nn.softmax), x["thousand"][:100]),
        "scan, Lorenz RK4, 100 steps": jitted(lorenz, jnp.array([1.0, 2.0, 3.0])),
        "gradient of the same scan": jitted(jax.grad(lambda v: lorenz(v).sum()), jnp.array([1.0, 2.0, 3.0])),
        "MLP 8-64-64-64-1 and Adam": mlp,
        "random.normal 100 x 100": jitted(lambda k: jax.random.normal(k, (100, 100)), key),
    }
