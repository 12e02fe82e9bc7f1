"""Ordering: sorts, their permutations, the largest, quantiles, different elements, random orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program

Make = Callable[[np.random.Generator], tuple]
WIDE = ("f8", "i8", "u8")


def _values(*shape: int, dtype: str = "f4", limit: int | None = None) -> Make:
    """One array; integers are below `limit`."""

    def make(rng: np.random.Generator) -> tuple:
        kind = np.dtype(dtype)
        if kind.kind == "f":
            return (rng.standard_normal(shape).astype(dtype),)
        info = np.iinfo(kind)
        low, high = (0, limit) if limit is not None else (info.min, info.max)
        return (rng.integers(low, high, shape, dtype=kind),)

    return make


def _text(shape: tuple[int, ...], dtype: str, axis: int) -> str:
    where = f" along {axis}" if len(shape) > 1 else ""
    return f"{'x'.join(map(str, shape))}{where}, {dtype}"


def _sort(*shape: int, dtype: str = "f4", axis: int = -1, thread: int | None = None) -> Program:
    return Program(
        f"sort {_text(shape, dtype, axis)}",
        _values(*shape, dtype=dtype),
        lambda jax: lambda x: jax.numpy.sort(x, axis=axis),
        lambda x: np.sort(x, axis=axis),
        lambda torch: lambda x: torch.sort(x, dim=axis)[0],
        x64=dtype in WIDE,
        thread=thread,
    )


def _argsort(*shape: int, dtype: str = "f4", axis: int = -1, thread: int | None = None) -> Program:
    return Program(
        f"argsort {_text(shape, dtype, axis)}",
        _values(*shape, dtype=dtype),
        lambda jax: lambda x: jax.numpy.argsort(x, axis=axis),
        lambda x: np.argsort(x, axis=axis),
        lambda torch: lambda x: torch.argsort(x, dim=axis),
        x64=dtype in WIDE,
        tolerance=2e-3 if np.dtype(dtype).itemsize == 8 else None,  # the places of equal elements differ
        thread=thread,
    )


def _stable(n: int, limit: int) -> Program:
    """Few different keys, which keep their order."""
    return Program(
        f"stable argsort of {limit} different keys, {n}",
        _values(n, dtype="i4", limit=limit),
        lambda jax: lambda x: jax.numpy.argsort(x, stable=True),
        lambda x: np.argsort(x, kind="stable"),
        lambda torch: lambda x: torch.argsort(x, stable=True),
    )


def _by_key(n: int) -> Program:
    def make(rng: np.random.Generator) -> tuple:
        return rng.permutation(n).astype("f4"), rng.standard_normal(n).astype("f4")

    def numpy(k: Any, v: Any) -> Any:
        order = np.argsort(k)
        return k[order], v[order]

    def torch(torch: Any) -> Callable:
        def f(k: Any, v: Any) -> Any:
            keys, order = torch.sort(k)
            return keys, v[order]

        return f

    return Program(f"sort_key_val {n}", make, lambda jax: lambda k, v: jax.lax.sort_key_val(k, v), numpy, torch)


def _lexsort(n: int) -> Program:
    def make(rng: np.random.Generator) -> tuple:
        return rng.standard_normal(n).astype("f4"), rng.integers(0, 100, n).astype("i4")

    return Program(
        f"lexsort of two keys, {n}",
        make,
        lambda jax: lambda a, b: jax.numpy.lexsort((a, b)),
        lambda a, b: np.lexsort((a, b)),
    )


def _top_k(*shape: int, k: int) -> Program:
    n = shape[-1]

    def numpy(x: Any) -> Any:
        places = np.argpartition(x, n - k, -1)[..., n - k :]
        best = np.take_along_axis(x, places, -1)
        order = np.argsort(-best, -1)
        return np.take_along_axis(best, order, -1), np.take_along_axis(places, order, -1)

    return Program(
        f"top_k {k} of {'x'.join(map(str, shape))}",
        _values(*shape),
        lambda jax: lambda x: jax.lax.top_k(x, k),
        numpy,
        lambda torch: lambda x: tuple(torch.topk(x, k)),
        tolerance=None,
    )


def _median(*shape: int, dtype: str = "f4", axis: int | None = None) -> Program:
    def torch(torch: Any) -> Callable:
        return (lambda x: x.quantile(0.5)) if axis is None else (lambda x: x.quantile(0.5, axis))

    small = int(np.prod(shape)) <= 16_000_000 and dtype in ("f4", "f8")
    return Program(
        f"median of {_text(shape, dtype, axis if axis is not None else -1)}",
        _values(*shape, dtype=dtype),
        lambda jax: lambda x: jax.numpy.median(x, axis=axis),
        lambda x: np.median(x, axis=axis),
        torch if small else None,
        x64=dtype in WIDE,
        thread=9517,
    )


def _percentiles(n: int) -> Program:
    return Program(
        f"percentiles 5, 50, 95 of {n}",
        _values(n),
        lambda jax: lambda x: jax.numpy.percentile(x, jax.numpy.array([5.0, 50.0, 95.0])),
        lambda x: np.percentile(x, [5, 50, 95]),
        lambda torch: lambda x: x.quantile(torch.tensor([0.05, 0.5, 0.95])),
        tolerance=1e-2,
    )


def _partition(n: int) -> Program:
    return Program(
        f"partition of {n}",
        _values(n),
        lambda jax: lambda x: jax.numpy.partition(x, n // 2)[n // 2],
        lambda x: np.partition(x, n // 2)[n // 2],
        lambda torch: lambda x: torch.kthvalue(x, n // 2 + 1)[0],
        thread=10434,
    )


def _unique(n: int, limit: int, dtype: str = "i4") -> Program:
    return Program(
        f"unique of {n}, {limit} different",
        _values(n, dtype=dtype, limit=limit),
        lambda jax: lambda x: jax.numpy.unique(x, size=limit),
        lambda x: np.unique(x),
        lambda torch: lambda x: torch.unique(x),
        tolerance=None,
    )


def _permutation(n: int, limit: float | None = None) -> Program:
    """A random order of n numbers; bits as JAX has them, so the peers' differ."""
    generator = np.random.default_rng(0)

    def jax(jax: Any) -> Callable:
        return lambda key: jax.random.permutation(jax.random.wrap_key_data(key), n)

    return Program(
        f"permutation {n}",
        lambda rng: (np.array([0, 7], "u4"),),
        jax,
        lambda key: generator.permutation(n),
        lambda torch: lambda key: torch.randperm(n),
        tolerance=None,
        limit=limit,
        thread=5328,
    )


PROGRAMS = [
    *(_sort(n) for n in (10, 30, 100, 1000, 10_000)),
    _sort(100_000, thread=10434),
    _sort(1_000_000),
    _sort(10_000_000),
    *(_sort(1_000_000, dtype=dtype) for dtype in ("f8", "i4", "i8", "u1", "i2")),
    _sort(10_000, 8),
    _sort(1000, 100),
    _sort(100, 10_000),
    _sort(1000, 1000, axis=0),
    *(_argsort(n) for n in (10, 100, 1000, 10_000)),
    _argsort(100_000, thread=10434),
    _argsort(1_000_000),
    _argsort(1_000_000, dtype="f8"),
    _argsort(1_000_000, dtype="i4"),
    _argsort(1000, 1000),
    _argsort(1000, 300, axis=0),
    _stable(1_000_000, 100),
    _by_key(100_000),
    _by_key(1_000_000),
    _lexsort(100_000),
    _top_k(1000, k=10),
    _top_k(1_000_000, k=10),
    _top_k(100, 10_000, k=50),
    _top_k(1_000_000, k=10_000),
    _median(1001),
    _median(1_000_000),
    _median(1000, 1000, axis=1),
    _median(1000, 1000, axis=0),
    _median(1_000_000, dtype="f8"),
    _percentiles(100_000),
    _partition(1_000_000),
    _unique(100_000, 1000),
    _unique(1_000_000, 100_000),
    _permutation(100),
    _permutation(10_000, limit=1e-4),
    _permutation(100_000),
    _permutation(1_000_000),
]
