"""Reductions: over each axis, several of one input, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from benchmarks.program import Program

Axis = int | tuple[int, ...] | None


def floats(*shape, dtype="f4"):
    """Inputs: one array of normal numbers."""
    return lambda rng: (rng.standard_normal(shape).astype(dtype),)


def _label(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]:.0e}"


def _reduction(
    name: str,
    shape: tuple[int, ...],
    axis: Axis = None,
    dtype: str = "f4",
    *,
    jax: Callable[[Any], Callable] | None = None,
    numpy: Callable | None = None,
    torch: Callable[[Any], Callable] | None = None,
    inputs: Callable | None = None,
    **more: Any,
) -> Program:
    """`name` over `axis`; functions of (x, axis), by default those of the name."""
    of_jax = jax or (lambda jax: getattr(jax.numpy, name))
    of_numpy = numpy or getattr(np, name)
    of_torch = torch or (lambda torch: getattr(torch, name))

    def by_torch(lib):
        reduce = of_torch(lib)
        return lambda x: reduce(x) if axis is None else reduce(x, axis)

    where = "" if axis is None else f" over axis {axis}"
    kind = "" if dtype == "f4" else f" {dtype}"
    return Program(
        f"{name} of {_label(shape)}{kind}{where}",
        inputs=inputs or floats(*shape, dtype=dtype),
        jax=lambda jax: lambda x: of_jax(jax)(x, axis=axis),
        numpy=lambda x: of_numpy(x, axis=axis),
        torch=by_torch,
        x64=dtype in ("f8", "i8"),
        **more,
    )


def _sum_of_squares(shape: tuple[int, ...], axis: Axis = None, dtype: str = "f4") -> Program:
    return _reduction(
        "sum of squares",
        shape,
        axis,
        dtype,
        jax=lambda jax: lambda x, axis: jax.numpy.sum(x**2, axis=axis),
        numpy=lambda x, axis: np.sum(x**2, axis=axis),
        torch=lambda torch: lambda x, axis=None: torch.sum(x**2, axis),
    )


def _argmax(shape: tuple[int, ...], axis: Axis = None) -> Program:
    return _reduction("argmax", shape, axis)


def _max(shape: tuple[int, ...], axis: Axis = None, dtype: str = "f4") -> Program:
    return _reduction("max", shape, axis, dtype, torch=lambda torch: torch.max if axis is None else torch.amax)


def _any(shape: tuple[int, ...], axis: Axis = None) -> Program:
    return _reduction(
        "any(x > 6)",
        shape,
        axis,
        jax=lambda jax: lambda x, axis: jax.numpy.any(x > 6, axis=axis),
        numpy=lambda x, axis: np.any(x > 6, axis=axis),
        torch=lambda torch: lambda x, axis=None: torch.any(x > 6) if axis is None else torch.any(x > 6, axis),
    )


def _count(size: int) -> Program:
    return _reduction(
        "count_nonzero",
        (size,),
        inputs=lambda rng: (rng.integers(0, 3, size).astype("i4"),),
    )


def _integers(dtype: str, size: int) -> Program:
    return _reduction("sum", (size,), dtype=dtype, inputs=lambda rng: (rng.integers(-9, 9, size).astype(dtype),))


def _var(shape: tuple[int, ...], axis: Axis = None) -> Program:
    return _reduction("var", shape, axis, torch=lambda torch: lambda x, axis=None: torch.var(x, axis, correction=0))


def _mean_and_var(shape: tuple[int, ...], axis: Axis) -> Program:
    return _reduction(
        "mean, var",
        shape,
        axis,
        jax=lambda jax: lambda x, axis: (jax.numpy.mean(x, axis=axis), jax.numpy.var(x, axis=axis)),
        numpy=lambda x, axis: (np.mean(x, axis=axis), np.var(x, axis=axis)),
        torch=lambda torch: lambda x, axis: (torch.mean(x, axis), torch.var(x, axis, correction=0)),
    )


def _norm(shape: tuple[int, ...], axis: Axis = None) -> Program:
    return _reduction(
        "norm",
        shape,
        axis,
        jax=lambda jax: jax.numpy.linalg.norm,
        numpy=np.linalg.norm,
        torch=lambda torch: lambda x, axis=None: torch.linalg.vector_norm(x, dim=axis),
    )


def _logsumexp(shape: tuple[int, ...], axis: Axis) -> Program:
    return _reduction("logsumexp", shape, axis, jax=lambda jax: jax.scipy.special.logsumexp, numpy=logsumexp)


def _several(shape: tuple[int, ...]) -> Program:
    return Program(
        f"sum, max, min, sum of squares of {_label(shape)}",
        inputs=floats(*shape),
        jax=lambda jax: lambda x: (jax.numpy.sum(x), jax.numpy.max(x), jax.numpy.min(x), jax.numpy.sum(x * x)),
        numpy=lambda x: (np.sum(x), np.max(x), np.min(x), np.sum(x * x)),
        torch=lambda torch: lambda x: (torch.sum(x), torch.max(x), torch.min(x), torch.sum(x * x)),
    )


def _both_axes(shape: tuple[int, ...]) -> Program:
    return Program(
        f"sums over axis 0 and over axis 1 of {_label(shape)}",
        inputs=floats(*shape),
        jax=lambda jax: lambda x: (jax.numpy.sum(x, axis=0), jax.numpy.sum(x, axis=1)),
        numpy=lambda x: (np.sum(x, axis=0), np.sum(x, axis=1)),
        torch=lambda torch: lambda x: (torch.sum(x, 0), torch.sum(x, 1)),
    )


def _differences(n: int) -> Program:
    def f(x):
        return (
            ((x[1:] - x[:-1]) ** 2).sum()
            + ((x[:, 1:] - x[:, :-1]) ** 2).sum()
            + ((x[:, :, 1:] - x[:, :, :-1]) ** 2).sum()
        )

    return Program(
        f"sums of squared differences, {n}^3",
        inputs=floats(n, n, n),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
        thread=37465,
    )


def _running(name: str, shape: tuple[int, ...], axis: int, dtype: str = "f4", thread: int | None = None) -> Program:
    def make(rng):
        x = rng.standard_normal(shape)
        return ((1 + 1e-3 * x if name == "cumprod" else x).astype(dtype),)

    of_numpy = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate}[name]
    return Program(
        f"{name} of {_label(shape)}{'' if dtype == 'f4' else ' ' + dtype} over axis {axis}",
        inputs=make,
        jax=lambda jax: lambda x: getattr(jax.lax, name)(x, axis=axis),
        numpy=lambda x: of_numpy(x, axis=axis),
        torch=lambda torch: (
            lambda x: getattr(torch, name)(x, axis)[0] if name == "cummax" else getattr(torch, name)(x, axis)
        ),
        x64=dtype == "f8",
        thread=thread,
    )


MATRIX = (1_000, 1_000)
WIDE, TALL = (100, 10_000), (100_000, 10)
CUBE = (100, 100, 100)

PROGRAMS = [
    *(_sum_of_squares((size,)) for size in (1_000, 100_000, 1_000_000, 10_000_000)),
    _sum_of_squares((1_000_000,), dtype="f8"),
    *(_reduction("sum", shape, axis) for shape in (MATRIX, WIDE, TALL) for axis in (0, 1)),
    *(_reduction("sum", CUBE, axis) for axis in (0, 1, 2, (0, 2))),
    _reduction("sum", (10_000, 1_000), 0, thread=25187),
    *(_reduction("sum", MATRIX, axis, "f8") for axis in (0, 1)),
    *(_max(MATRIX, axis) for axis in (None, 0, 1)),
    *(_max(TALL, axis) for axis in (0, 1)),
    *(_max(MATRIX, axis, "f2") for axis in (None, 0)),
    *(_argmax(shape, axis) for shape in (MATRIX, TALL) for axis in (0, 1)),
    *(_argmax((size,)) for size in (1_000, 1_000_000)),
    *(_reduction("prod", MATRIX, axis) for axis in (0, 1)),
    *(_any(MATRIX, axis) for axis in (None, 0, 1)),
    _count(1_000_000),
    *(_integers(dtype, 1_000_000) for dtype in ("i4", "i8")),
    *(_reduction("mean", MATRIX, axis) for axis in (None, 0, 1)),
    *(_var(MATRIX, axis) for axis in (None, 0, 1)),
    *(_mean_and_var(MATRIX, axis) for axis in (0, 1)),
    *(_norm(MATRIX, axis) for axis in (0, 1)),
    _norm((1_000_000,)),
    *(_logsumexp(shape, axis) for shape in (MATRIX, TALL) for axis in (0, 1)),
    *(_several((size,)) for size in (1_000, 1_000_000)),
    *(_both_axes(shape) for shape in (MATRIX, (3_000, 3_000))),
    *(_differences(n) for n in (64, 256)),
    *(_running("cumsum", shape, axis) for shape in (MATRIX, TALL, WIDE) for axis in (0, 1)),
    _running("cumsum", (1_000,), 0),
    _running("cumsum", (1_000_000,), 0, thread=28097),
    _running("cumsum", (1_000_000,), 0, "f8"),
    _running("cumsum", (512, 512, 32), 2, thread=28097),
    *(_running(name, MATRIX, axis) for name in ("cumprod", "cummax") for axis in (0, 1)),
]
