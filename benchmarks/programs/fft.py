"""Fourier transforms: of one array, of rows, of several axes; powers of two, odd and prime lengths; real and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from benchmarks.program import Program

DTYPES = {"c8": "f4", "c16": "f8", "f4": "f4", "f8": "f8"}


def _transform(name: str, shape: tuple[int, ...], dtype: str = "c8", axis: int | None = None) -> Program:
    """`name` of an array of normal numbers; `axis` for transforms of one axis that is not the last."""

    def inputs(rng: np.random.Generator) -> tuple:
        x = rng.standard_normal(shape)
        return ((x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype),)

    at = {} if axis is None else {"axis": axis}
    dim = {} if axis is None else {"dim": axis}
    of_jax: Callable[[Any], Callable] = lambda jax: lambda x: getattr(jax.numpy.fft, name)(x, **at)
    points = float(np.prod(shape))
    length = shape[-1] if axis is None else shape[axis]
    return Program(
        f"{name} of {' x '.join(map(str, shape))}"
        + ("" if dtype in ("c8", "f4") else f" {dtype}")
        + ("" if axis is None else f" over axis {axis}"),
        inputs=inputs,
        jax=of_jax,
        numpy=lambda x: getattr(scipy.fft, name)(x, workers=2, **at),
        torch=lambda torch: lambda x: getattr(torch.fft, name)(x, **dim),
        x64=dtype in ("c16", "f8"),
        operations=(5 if dtype[0] == "c" else 2.5) * points * float(np.log2(max(length, 2))),
    )


def _filtered(n: int) -> Program:
    """A convolution by transforms, as users write it: pad, transform, multiply, back."""

    def of(lib_fft: Any) -> Callable:
        return lambda x, y: lib_fft.irfft(lib_fft.rfft(x, n=2 * n) * lib_fft.rfft(y, n=2 * n), n=2 * n)[:n]

    return Program(
        f"convolution of {n} by rfft",
        inputs=lambda rng: tuple(rng.standard_normal(n).astype("f4") for _ in range(2)),
        jax=lambda jax: of(jax.numpy.fft),
        numpy=of(scipy.fft),
        torch=lambda torch: of(torch.fft),
    )


PROGRAMS = [
    *[_transform("fft", (n,)) for n in (8, 64, 100, 1009, 1024, 4096, 65536, 1_000_000)],
    *[_transform("fft", (n,), "c16") for n in (64, 1024, 65536)],
    *[_transform("rfft", (n,), "f4") for n in (64, 1000, 1024, 65536)],
    _transform("rfft", (1001,), "f4"),
    *[_transform("irfft", (n // 2 + 1,)) for n in (1024, 65536)],
    *[_transform("fft", s) for s in ((10_000, 15), (1000, 64), (1000, 100), (100, 1024), (16, 16384))],
    _transform("fft", (100, 1024), "c16"),
    _transform("ifft", (100, 1024)),
    _transform("rfft", (100, 1024), "f4"),
    _transform("fft", (1024, 100), axis=0),
    *[_transform(name, s, kind) for name, kind in (("rfft2", "f4"), ("fft2", "c8"))
      for s in ((64, 64), (256, 256), (1024, 1024), (20, 64, 64))],
    _transform("rfft2", (256, 256), "f8"),
    _transform("ifft2", (256, 256)),
    _transform("fftn", (64, 64, 64)),
    _filtered(1000),
    _filtered(100_000),
]  # fmt: skip
