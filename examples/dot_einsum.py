"""dot, einsum and eig on arrays from tiny to large, as NumPy does them and at four levels of JAX's API.

On small arrays only the overhead of a call is measured: by the original, an eager operation takes tens to hundreds of
times as long as NumPy's. The results are compared with NumPy's before anything is timed.

    python -m examples.dot_einsum                          # all sizes, about a minute
    python -m examples.dot_einsum --sizes 5,100 --picture dot_einsum.png
    python -m examples.dot_einsum --backend jax            # the same source on JAX
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

SIZES = (5, 10, 100, 1000, 10_000)
LARGEST_EIG = 100
COLUMNS = 10
TOLERANCE = 1e-4


def operations(np: Any) -> dict[str, Callable]:
    """The three operations, by NumPy or what has its names."""
    return {
        "dot": lambda x, y: np.dot(x, y),
        "einsum": lambda x, y: np.einsum("ni,ni->ni", x, y),
        "eig": lambda x: np.linalg.eig(x),
    }


def inputs(name: str, n: int) -> tuple:
    """dot: f32[n] twice; einsum: f32[n, 10] twice; eig: f32[n, n]."""
    rng = np.random.default_rng(n)
    shape = {"dot": (n,), "einsum": (n, COLUMNS), "eig": (n, n)}[name]
    return tuple(rng.standard_normal(shape, np.float32) for _ in range(1 if name == "eig" else 2))


def levels(jax: Any, name: str) -> dict[str, Callable]:
    """The operation eager and jitted, each on NumPy's arrays and on its own."""
    function = operations(jax.numpy)[name]
    jitted = jax.jit(function)
    return {
        "eager, NumPy arrays": function,
        "eager, own arrays": function,
        "jitted, NumPy arrays": jitted,
        "jitted, own arrays": jitted,
    }


def sizes_of(name: str, sizes: tuple[int, ...]) -> list[int]:
    """The sizes at which an operation is timed: eigenvectors of large matrices take long for all alike."""
    return [n for n in sizes if name != "eig" or n <= LARGEST_EIG]


def error(name: str, given: tuple, result: Any) -> float:
    """The relative error; of eig, how far A V is from V diag(w), since eigenvectors are not unique."""
    if name != "eig":
        return common.difference(result, operations(np)[name](*given))
    values, vectors = (np.asarray(x, complex) for x in result)
    return common.difference(given[0] @ vectors, vectors * values)


def draw(path: Path, times: dict[tuple[str, int], dict[str, float]], title: str) -> None:
    """A panel for each operation: time over n, a line for each level."""
    names = list(dict.fromkeys(name for name, _ in times))
    with common.picture(path, columns=len(names)) as axes:
        for panel, name in zip(axes[0], names):
            of_name = {n: t for (other, n), t in times.items() if other == name}
            for level in next(iter(of_name.values())):
                panel.loglog(list(of_name), [1e6 * t[level] for t in of_name.values()], marker="o", label=level)
            panel.set(title=name, xlabel="n", ylabel="microseconds")
            panel.grid(alpha=0.3)
        axes[0][0].legend(fontsize="small", title=title)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if all results agree with NumPy's."""
    parser = common.parser("dot_einsum", __doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="values of n (default: %(default)s)")
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    sizes = tuple(int(n) for n in options.sizes.split(","))

    times: dict[tuple[str, int], dict[str, float]] = {}
    worst = 0.0
    for name, by_numpy in operations(np).items():
        for n in sizes_of(name, sizes):
            common.progress(f"{name}, n = {n}")
            given = inputs(name, n)
            own = tuple(map(jax.numpy.asarray, given))
            calls = {"NumPy": partial(by_numpy, *given)}
            for level, function in levels(jax, name).items():
                calls[level] = partial(function, *(given if "NumPy" in level else own))
                worst = max(worst, error(name, given, calls[level]()))
            times[name, n] = common.seconds(jax, calls, options.rounds)
    common.progress("")

    header = ["operation", "n", *next(iter(times.values()))]
    print("\n" + common.table(header, [[name, n, *t.values()] for (name, n), t in times.items()]))
    print(f"largest relative error, compared with NumPy: {worst:.1e}")
    if options.picture:
        draw(options.picture, times, options.backend)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
