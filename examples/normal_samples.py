"""Normal variables, a matrix of 100 x 100: eager, jitted, and by NumPy.

A key decides all numbers, so the eager and the jitted matrix are the same one. By the original, PyTorch's generator is
three times as fast.

    python -m examples.normal_samples
    python -m examples.normal_samples --size 1000
    python -m examples.normal_samples --backend jax        # the same source on JAX
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from examples import _common as common

SIZE = 100


def levels(jax: Any) -> dict[str, Callable]:
    """Functions of a key and a size that give f32[size, size]."""

    def sample(key, size):
        return jax.random.normal(key, (size, size))

    return {"eager": sample, "jitted": partial(jax.jit, static_argnums=1)(sample)}


def by_numpy(size: int) -> np.ndarray:
    """As many normal variables from NumPy's generator."""
    return GENERATOR.standard_normal((size, size), np.float32)


GENERATOR = np.random.default_rng(0)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the levels agree and the samples look normal."""
    parser = common.parser("normal_samples", __doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns (default: %(default)s)")
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    size = options.size

    key = jax.random.PRNGKey(0)
    samples: dict[str, np.ndarray] = {}
    calls: dict[str, Callable] = {}
    for name, function in levels(jax).items():
        samples[name] = np.asarray(function(key, size))
        calls[name] = partial(function, key, size)
    samples["NumPy"], calls["NumPy"] = by_numpy(size), partial(by_numpy, size)
    times = common.seconds(jax, calls, options.rounds)

    rows = [[k, times[k], f"{x.mean():.4f}", f"{x.std():.4f}", f"{x.min():.2f}", f"{x.max():.2f}"]
            for k, x in samples.items()]  # fmt: skip
    print(common.table([f"{size} x {size}", "time", "mean", "deviation", "least", "largest"], rows))
    if options.picture:
        with common.picture(options.picture) as axes:
            for name, x in samples.items():
                axes.hist(x.ravel(), bins=60, density=True, histtype="step", label=name)
            grid = np.linspace(-4, 4, 200)
            axes.plot(grid, np.exp(-grid * grid / 2) / np.sqrt(2 * np.pi), "k:", label="density")
            axes.set(xlabel="value", ylabel="share", title=f"{size} x {size} samples, {options.backend}")
            axes.legend()

    bound = 6 / size  # six standard errors of the mean; those of the deviation are smaller
    normal = all(abs(x.mean()) < bound and abs(x.std() - 1) < bound for x in samples.values())
    return int(not normal or common.difference(samples["jitted"], samples["eager"]) > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
