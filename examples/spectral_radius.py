"""The spectral radius of many small matrices: looped, vectorized by vmap or by hand, eager and jitted, and by NumPy.

The spectral radius is the largest absolute value of an eigenvalue. It has derivatives, too: those of [[1, -1], [1, 1]]
and [[1 + i, -1], [1, 1]] are printed, by JAX's convention for complex numbers.

    python -m examples.spectral_radius --picture spectral_radius.png
    python -m examples.spectral_radius --count 16
    python -m examples.spectral_radius --backend jax       # the same source on JAX
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

COUNT, SIZE = 128, 3
TOLERANCE = 1e-5


def radii(np: Any) -> Callable:
    """The radius of each matrix of c64 or f32[..., n, n], by NumPy or what has its names."""
    return lambda matrices: np.abs(np.linalg.eigvals(matrices)).max(-1)


def levels(jax: Any) -> dict[str, Callable]:
    """Functions of f32[count, n, n] that give f32[count]."""
    radius = radii(jax.numpy)
    jitted, vectorized = jax.jit(radius), jax.vmap(radius)
    return {
        "looped": lambda matrices: jax.numpy.stack([radius(m) for m in matrices]),
        "loop of jitted": lambda matrices: jax.numpy.stack([jitted(m) for m in matrices]),
        "vmap": vectorized,
        "jitted vmap": jax.jit(vectorized),
        "batched by hand": radius,
        "batched by hand, jitted": jax.jit(radius),
    }


def by_numpy(matrices: np.ndarray) -> np.ndarray:
    """NumPy's own batch of matrices."""
    return radii(np)(matrices)


def inputs(count: int, size: int = SIZE) -> tuple:
    """Normal matrices, f32[count, size, size]."""
    return (np.random.default_rng(count).standard_normal((count, size, size), np.float32),)


def draw(path: Path, times: dict[str, float], title: str) -> None:
    """A bar for each level, on a logarithmic axis."""
    with common.picture(path) as axes:
        axes.barh(list(times), [1e6 * t for t in times.values()])
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel="microseconds", title=title)
        axes.grid(axis="x", alpha=0.3)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if all levels agree with NumPy."""
    parser = common.parser("spectral_radius", __doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="number of matrices (default: %(default)s)")
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)

    (matrices,) = inputs(options.count)
    own, expected = jax.numpy.asarray(matrices), by_numpy(matrices)
    errors, calls = {}, {}
    for name, function in levels(jax).items():
        common.progress(name)
        errors[name] = common.difference(function(own), expected)
        calls[name] = partial(function, own)
    calls["NumPy"] = partial(by_numpy, matrices)
    times = common.seconds(jax, calls, options.rounds)
    common.progress("")

    rows = [[name, t, f"{errors[name]:.0e}" if name in errors else "-"] for name, t in times.items()]
    print("\n" + common.table([f"{options.count} matrices {SIZE} x {SIZE}", "time", "relative error"], rows))
    for matrix in ([[1.0, -1.0], [1.0, 1.0]], [[1.0 + 1.0j, -1.0], [1.0, 1.0]]):
        gradient = jax.grad(radii(jax.numpy))(jax.numpy.array(matrix))
        print(f"\nthe gradient at {matrix}:\n{np.array2string(np.asarray(gradient), precision=3)}")
    if options.picture:
        draw(options.picture, times, f"spectral radius of {options.count} matrices, {options.backend}")
    return int(max(errors.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
