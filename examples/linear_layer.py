"""The gradients of a linear layer's outputs in its weights, by five transformations, over a grid of sizes.

The layer maps n samples of p features to o outputs, y = x W' + b. Its Jacobian has n o o p elements, mostly zeros,
since an output depends on its own row of W alone; `vmap(vmap(grad))` treats each output by itself and has the n o p
others only.
Programs that need more memory than they may are gaps in the table and in the picture.

    python -m examples.linear_layer --picture linear_layer.png
    python -m examples.linear_layer --p 1 --o 1000000 --memory 1e9     # tries what no machine has room for
    python -m examples.linear_layer --backend jax          # the same source on JAX
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

GRID = ((10, 100, 1000), (10, 100, 1000), (1, 10, 100))  # n, p, o
MEMORY = 1.0  # GB
CHECKED = 1_000_000  # elements at most of the results that are compared with the formula


def methods(jax: Any) -> dict[str, Callable]:
    """Gradients in W (o, p) of x (n, p) and b (o): (n, o, o, p), the last one's (n, o, p)."""

    def layer(w, b, x):
        return x @ w.T + b

    def output(row, bias, sample):
        return jax.numpy.dot(row, sample) + bias

    def for_each_sample(f: Callable) -> Callable:
        return jax.vmap(f, in_axes=(None, None, 0))

    return {
        "jacfwd": jax.jit(jax.jacfwd(layer)),
        "jacrev": jax.jit(jax.jacrev(layer)),
        "vmap(jacfwd)": jax.jit(for_each_sample(jax.jacfwd(layer))),
        "vmap(jacrev)": jax.jit(for_each_sample(jax.jacrev(layer))),
        "vmap(vmap(grad))": jax.jit(for_each_sample(jax.vmap(jax.grad(output), in_axes=(0, 0, None)))),
    }


def inputs(n: int, p: int, o: int) -> tuple:
    """(W, b, x) in float32."""
    rng = np.random.default_rng(n + p + o)
    return tuple(rng.standard_normal(shape, np.float32) for shape in ((o, p), (o,), (n, p)))


def formula(w, b, x):
    """The Jacobian: output k of sample i changes with W[k] alone, by x[i]."""
    return np.einsum("kl,ip->iklp", np.eye(len(w), dtype=x.dtype), x)


def formula_without_zeros(w, b, x):
    """What of the Jacobian is not zero: x[i] for each output of sample i."""
    return np.repeat(x[:, None], len(w), axis=1)


def bytes_needed(function: Callable, given: tuple) -> int:
    """Results and temporaries of the compiled function, as the compiler planned them."""
    analysis = function.lower(*given).compile().memory_analysis()
    return analysis.output_size_in_bytes + analysis.temp_size_in_bytes


def has_room(jax: Any, function: Callable, given: tuple, limit: float) -> bool:
    """Whether the function runs within so many bytes; a first call is made."""
    if bytes_needed(function, given) > limit:
        return False
    try:
        jax.block_until_ready(function(*given))
    except MemoryError:
        return False
    except RuntimeError as error:  # the original's class for all that goes wrong at run time
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return False
    return True


def draw(path: Path, times: dict[tuple[int, int, int], dict[str, float]], title: str) -> None:
    """A panel for each o and p: time over n, a line for each method; what did not fit is missing."""
    sizes_n, sizes_p, sizes_o = (sorted({cell[k] for cell in times}) for k in range(3))
    with common.picture(path, rows=len(sizes_o), columns=len(sizes_p) + 1, sharex=True, sharey=True) as axes:
        for (row, o), (column, p) in itertools.product(enumerate(sizes_o), enumerate(sizes_p)):
            panel = axes[row][column]
            for method in dict.fromkeys(itertools.chain(*times.values())):
                known = [1e3 * times[n, p, o].get(method, np.nan) for n in sizes_n]
                panel.loglog(sizes_n, known, marker="o", label=method)
            panel.set(title=f"p = {p}, o = {o}", xlabel="n", ylabel="milliseconds")
            panel.grid(alpha=0.3)
        for row in axes:
            row[-1].axis("off")
        axes[0][-1].legend(*axes[0][0].get_legend_handles_labels(), loc="upper left", title=title)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the gradients agree with the formula."""
    parser = common.parser("linear_layer", __doc__)
    for name, sizes in zip("npo", GRID):
        parser.add_argument(f"--{name}", default=",".join(map(str, sizes)), help="sizes (default: %(default)s)")
    parser.add_argument(
        "--memory", type=float, default=MEMORY, metavar="GB", help="that a program may take (default: %(default)s)"
    )
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    grid = itertools.product(*([int(k) for k in text.split(",")] for text in (options.n, options.p, options.o)))

    times: dict[tuple[int, int, int], dict[str, float]] = {}
    worst = 0.0
    for cell in grid:
        n, p, o = cell
        common.progress(f"n = {n}, p = {p}, o = {o}")
        given = inputs(*cell)
        own = tuple(map(jax.numpy.asarray, given))
        calls = {}
        for name, function in methods(jax).items():
            if not has_room(jax, function, own, 1e9 * options.memory):
                continue
            calls[name] = partial(function, *own)
            if n * o * o * p <= CHECKED:
                expected = (formula_without_zeros if "grad" in name else formula)(*given)
                worst = max(worst, common.difference(function(*own), expected))
        times[cell] = common.seconds(jax, calls, options.rounds)
    common.progress("")

    names = list(methods(jax))
    rows = [[n, p, o, *(times[n, p, o].get(name) for name in names)] for n, p, o in times]
    print("\n" + common.table(["n", "p", "o", *names], rows))
    print(f"'-': no room within {options.memory:g} GB. Largest relative error: {worst:.1e}")
    if options.picture:
        draw(options.picture, times, options.backend)
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
