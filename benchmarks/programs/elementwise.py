"""Elementwise programs: chains of functions, mixed types, broadcasts, choices."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from benchmarks.program import Program


def floats(*shape, dtype="f4", scale=1.0):
    """Inputs: one array of normal numbers."""
    return lambda rng: ((scale * rng.standard_normal(shape)).astype(dtype),)


def positive(*shape, dtype="f4"):
    """Inputs: one array of numbers in (0.1, 2.1)."""
    return lambda rng: ((0.1 + 2 * rng.random(shape)).astype(dtype),)


def whole(*shape, dtype="i4", low=-100, high=100):
    """Inputs: one array of integers."""
    return lambda rng: (rng.integers(low, high, shape).astype(dtype),)


def several(*makers):
    """Inputs: one array by each maker."""
    return lambda rng: tuple(array for make in makers for array in make(rng))


def _chain(size: int, dtype: str = "f4") -> Program:
    name = "tanh(x) exp(-x^2) + sin(x)"
    return Program(
        f"{name}, {size:.0e} {dtype}",
        inputs=floats(size, dtype=dtype),
        jax=lambda jax: lambda x: jax.numpy.tanh(x) * jax.numpy.exp(-(x**2)) + jax.numpy.sin(x),
        numpy=lambda x: np.tanh(x) * np.exp(-(x**2)) + np.sin(x),
        torch=lambda torch: lambda x: torch.tanh(x) * torch.exp(-(x**2)) + torch.sin(x),
        x64=dtype == "f8",
    )


def _unary(name: str, size: int, dtype: str = "f4", make=floats) -> Program:
    def jax_of(jax):
        return getattr(jax.numpy, name) if hasattr(jax.numpy, name) else getattr(jax.scipy.special, name)

    return Program(
        f"{name}, {size:.0e} {dtype}",
        inputs=make(size, dtype=dtype),
        jax=lambda jax: lambda x: jax_of(jax)(x),
        numpy=getattr(np, name),
        torch=lambda torch: getattr(torch, name),
        x64=dtype == "f8",
    )


def _log_pow(size: int, dtype: str) -> Program:
    return Program(
        f"log(x) x^1.7 + sqrt(x), {size:.0e} {dtype}",
        inputs=positive(size, dtype=dtype),
        jax=lambda jax: lambda x: jax.numpy.log(x) * x**1.7 + jax.numpy.sqrt(x),
        numpy=lambda x: np.log(x) * x ** x.dtype.type(1.7) + np.sqrt(x),
        torch=lambda torch: lambda x: torch.log(x) * x**1.7 + torch.sqrt(x),
        x64=dtype == "f8",
    )


def _gelu(size: int) -> Program:
    half, root = np.float32(0.5), np.float32(np.sqrt(0.5))
    return Program(
        f"x (1 + erf(x / sqrt 2)) / 2, {size:.0e}",
        inputs=floats(size),
        jax=lambda jax: lambda x: 0.5 * x * (1 + jax.scipy.special.erf(x * 0.7071067811865476)),
        numpy=lambda x: half * x * (1 + erf(x * root)),
        torch=lambda torch: lambda x: 0.5 * x * (1 + torch.erf(x * 0.7071067811865476)),
    )


def _polynomial(size: int) -> Program:
    def f(x):
        return x**5 - 3 * x**4 + 2 * x**3 - x**2 + x - 1

    return Program(
        f"x^5 - 3 x^4 + ... by integer powers, {size:.0e}",
        inputs=floats(size),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
    )


def _axpy(size: int) -> Program:
    def f(x, y):
        return 2 * x + y

    return Program(
        f"2 x + y, {size:.0e}",
        inputs=several(floats(size), floats(size)),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
    )


def _where(size: int) -> Program:
    return Program(
        f"where(x > 0, x, exp(x) - 1), {size:.0e}",
        inputs=floats(size),
        jax=lambda jax: lambda x: jax.numpy.where(x > 0, x, jax.numpy.exp(x) - 1),
        numpy=lambda x: np.where(x > 0, x, np.exp(x) - 1),
        torch=lambda torch: lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
    )


def _clip(size: int) -> Program:
    return Program(
        f"clip(x, -1, 1) + abs(y), {size:.0e}",
        inputs=several(floats(size), floats(size)),
        jax=lambda jax: lambda x, y: jax.numpy.clip(x, -1, 1) + jax.numpy.abs(y),
        numpy=lambda x, y: np.clip(x, -1, 1) + np.abs(y),
        torch=lambda torch: lambda x, y: torch.clamp(x, -1, 1) + torch.abs(y),
    )


def _compare(size: int) -> Program:
    return Program(
        f"(x > 0) & (y < 1) | (x == y), {size:.0e}",
        inputs=several(floats(size), floats(size)),
        jax=lambda jax: lambda x, y: (x > 0) & (y < 1) | (x == y),
        numpy=lambda x, y: (x > 0) & (y < 1) | (x == y),
        torch=lambda torch: lambda x, y: (x > 0) & (y < 1) | (x == y),
    )


def _integers(size: int, dtype: str) -> Program:
    def f(x, y):
        return (x * y + 3) ^ (x & 15)

    return Program(
        f"(x y + 3) ^ (x & 15), {size:.0e} {dtype}",
        inputs=several(whole(size, dtype=dtype), whole(size, dtype=dtype)),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
        x64=dtype == "i8",
    )


def _mixed(size: int) -> Program:
    return Program(
        f"i32 * f32 + bool, {size:.0e}",
        inputs=several(whole(size), floats(size), lambda rng: (rng.random(size) > 0.5,)),
        jax=lambda jax: lambda i, x, m: i * x + m,
        numpy=lambda i, x, m: i.astype("f4") * x + m,
        torch=lambda torch: lambda i, x, m: i * x + m,
    )


def _bytes_to_floats(size: int) -> Program:
    return Program(
        f"(u8 / 255 - 0.5) * 4, {size:.0e}",
        inputs=whole(size, dtype="u1", low=0, high=255),
        jax=lambda jax: lambda x: (x.astype("float32") / 255 - 0.5) * 4,
        numpy=lambda x: (x.astype("f4") / np.float32(255) - np.float32(0.5)) * np.float32(4),
        torch=lambda torch: lambda x: (x.to(torch.float32) / 255 - 0.5) * 4,
    )


def _narrow(size: int, name: str) -> Program:
    def f(jax):
        kind = getattr(jax.numpy, name)
        return lambda x, y: (x.astype(kind) * y.astype(kind) + x.astype(kind)).astype("float32")

    def g(torch):
        kind = getattr(torch, name)
        return lambda x, y: (x.to(kind) * y.to(kind) + x.to(kind)).to(torch.float32)

    return Program(
        f"{name}(x) {name}(y) + {name}(x), {size:.0e}",
        inputs=several(floats(size), floats(size)),
        jax=f,
        torch=g,
        tolerance=2e-2,
    )


def _complex(size: int) -> Program:
    return Program(
        f"z^2 + exp(i x) complex64, {size:.0e}",
        inputs=lambda rng: (
            (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype("c8"),
            rng.standard_normal(size).astype("f4"),
        ),
        jax=lambda jax: lambda z, x: z * z + jax.numpy.exp(1j * x),
        numpy=lambda z, x: z * z + np.exp(np.complex64(1j) * x),
        torch=lambda torch: lambda z, x: z * z + torch.exp(1j * x),
    )


def _column_row(n: int) -> Program:
    def f(x, row, column):
        return (x - row) * column[:, None]

    return Program(
        f"(x - row) * column, {n} x {n}",
        inputs=several(floats(n, n), floats(n), floats(n)),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
    )


def _outer(n: int) -> Program:
    return Program(
        f"exp(-(x_i - y_j)^2), {n} x {n}",
        inputs=several(floats(n), floats(n)),
        jax=lambda jax: lambda x, y: jax.numpy.exp(-((x[:, None] - y[None, :]) ** 2)),
        numpy=lambda x, y: np.exp(-((x[:, None] - y[None, :]) ** 2)),
        torch=lambda torch: lambda x, y: torch.exp(-((x[:, None] - y[None, :]) ** 2)),
    )


def _several_results(size: int) -> Program:
    def f(x, y):
        return x + y, x - y, x * y

    return Program(
        f"x + y, x - y, x y, {size:.0e}",
        inputs=several(floats(size), floats(size)),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
    )


PROGRAMS = [
    *(_chain(size) for size in (1_000, 100_000, 10_000_000)),
    *(_chain(size, "f8") for size in (1_000, 100_000, 1_000_000)),
    *(_unary(name, 100_000) for name in ("tanh", "exp", "sin", "cos", "expm1", "arctan", "sinh")),
    _unary("log1p", 100_000, make=positive),
    _unary("sqrt", 100_000, make=positive),
    _unary("log", 100_000, make=positive),
    *(_unary(name, 1_000_000, "f8") for name in ("exp", "sin", "tanh")),
    _unary("log", 1_000_000, "f8", make=positive),
    _unary("exp", 10_000_000),
    *(_log_pow(size, dtype) for size, dtype in ((1_000, "f4"), (100_000, "f4"), (10_000_000, "f4"), (100_000, "f8"))),
    *(_gelu(size) for size in (1_000, 100_000, 10_000_000)),
    *(_polynomial(size) for size in (1_000, 1_000_000)),
    *(_axpy(size) for size in (1_000, 100_000, 10_000_000)),
    *(_where(size) for size in (1_000, 1_000_000)),
    *(_clip(size) for size in (10_000, 10_000_000)),
    *(_compare(size) for size in (1_000, 1_000_000)),
    *(_integers(1_000_000, dtype) for dtype in ("i4", "i8", "i1", "u1")),
    *(_mixed(size) for size in (1_000, 1_000_000)),
    _bytes_to_floats(1_000_000),
    *(_narrow(1_000_000, name) for name in ("bfloat16", "float16")),
    *(_complex(size) for size in (1_000, 1_000_000)),
    *(_column_row(n) for n in (100, 2_000)),
    *(_outer(n) for n in (300, 2_000)),
    _several_results(1_000_000),
]
