"""The Poisson log-normal model, fitted to the oak leaves data by variational inference.

Counts Y (n samples x p taxa) are Poisson with log-rates O + X B + Z, and each row of Z is normal with covariance Sigma.
The variational distribution of Z has means M and standard deviations S. Each iteration sets Sigma to its closed form
and takes one RAdam step on (B, M, S) for the negative ELBO (Chiquet, Mariadassou, Robin, "Variational inference for
probabilistic Poisson PCA", Annals of Applied Statistics 12, 2018).

The same fit is written at five levels, from eager code to a class with methods inside one compiled program; all five
must agree.

    python -m examples.pln                        # all levels on a small problem, and a check that they agree
    python -m examples.pln --demo                 # the 11,600 x 114 problem, 1,000 iterations, with a picture
    python -m examples.pln --backend jax          # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from examples import _common as common

DATA = Path(__file__).parent / "data" / "oaks"
LEARNING_RATE = 0.05
LARGEST_UPDATE = 0.1


def load(repeat: int, dtype: str):
    """(counts, covariates, offsets) of the oak data, rows repeated; covariates are the tree's three levels, one-hot."""
    counts = np.loadtxt(DATA / "counts.csv", delimiter=",", skiprows=1)
    offsets = np.log(np.loadtxt(DATA / "offsets.csv", delimiter=",", skiprows=1))
    trees = np.loadtxt(DATA / "covariates.csv", delimiter=",", skiprows=1, usecols=0, dtype=str)
    covariates = (trees[:, None] == np.unique(trees)[None, :]).astype(float)
    return tuple(np.tile(a, (repeat, 1)).astype(dtype) for a in (counts, covariates, offsets))


def make_program(backend: str) -> dict[str, Any]:
    """The five levels, written against the chosen implementation of JAX's API."""
    jax = common.backend(backend, as_jax=True)
    jnp, lax, tree_util = jax.numpy, jax.lax, jax.tree_util
    optax = importlib.import_module("optax")

    optimizer = optax.chain(optax.radam(LEARNING_RATE), optax.clip(LARGEST_UPDATE))

    # The model.

    def with_constant(counts, covariates, offsets):
        """The data, and the part of the negative ELBO that no parameter changes: the sum of log Y!."""
        return counts, covariates, offsets, jax.scipy.special.gammaln(counts + 1.0).sum()

    def closed_form_sigma(params):
        n = params["M"].shape[0]
        return (params["M"].T @ params["M"] + jnp.diag((params["S"] ** 2).sum(0))) / n

    def negative_elbo(params, omega, counts, covariates, offsets, log_factorials):
        n, p = counts.shape
        mean = offsets + covariates @ params["B"] + params["M"]
        variance = params["S"] ** 2
        rates = jnp.exp(mean + 0.5 * variance)
        fit = (counts * mean - rates + 0.5 * jnp.log(variance)).sum()
        second_moment = params["M"].T @ params["M"] + jnp.diag(variance.sum(0))
        prior = 0.5 * n * jnp.linalg.slogdet(omega)[1] - 0.5 * (omega * second_moment).sum()
        return log_factorials - (fit + prior + 0.5 * n * p)

    def initial(counts, covariates):
        n, p = counts.shape
        params = {
            "B": jnp.zeros((covariates.shape[1], p), counts.dtype),
            "M": jnp.zeros((n, p), counts.dtype),
            "S": jnp.ones((n, p), counts.dtype),
        }
        return params, optimizer.init(params)

    def step(params, opt_state, data):
        omega = jnp.linalg.inv(closed_form_sigma(params))
        loss, gradient = jax.value_and_grad(negative_elbo)(params, omega, *data)
        updates, opt_state = optimizer.update(gradient, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    # Five levels. Each is a generator of losses, in pieces, so that progress can be shown.

    def eager(data, iterations, chunk):
        params, opt_state = initial(*data[:2])
        for start in range(0, iterations, chunk):
            losses = []
            for _ in range(min(chunk, iterations - start)):
                params, opt_state, loss = step(params, opt_state, data)
                losses.append(loss)
            yield np.array(losses)

    def jitted_step(data, iterations, chunk):
        params, opt_state = initial(*data[:2])
        compiled = jax.jit(step)
        for start in range(0, iterations, chunk):
            losses = []
            for _ in range(min(chunk, iterations - start)):
                params, opt_state, loss = compiled(params, opt_state, data)
                losses.append(loss)
            yield np.array(losses)

    def scanned(data, iterations, chunk):
        @partial(jax.jit, static_argnums=2)
        def run(carry, data, length):
            def body(carry, _):
                params, opt_state, loss = step(*carry, data)
                return (params, opt_state), loss

            return lax.scan(body, carry, length=length)

        carry = initial(*data[:2])
        compiled = {n: run.lower(carry, data, n).compile() for n in {chunk, iterations % chunk} if 0 < n <= iterations}
        for start in range(0, iterations, chunk):
            length = min(chunk, iterations - start)
            if length not in compiled:
                compiled[length] = run.lower(carry, data, length).compile()
            carry, losses = compiled[length](carry, data)
            yield np.asarray(losses)

    class State(NamedTuple):
        params: dict
        opt_state: Any
        data: tuple

    def named_tuple(data, iterations, chunk):
        @partial(jax.jit, static_argnums=1)
        def run(state, length):
            def body(state, _):
                params, opt_state, loss = step(state.params, state.opt_state, state.data)
                return state._replace(params=params, opt_state=opt_state), loss

            return lax.scan(body, state, length=length)

        state = State(*initial(*data[:2]), data)
        for start in range(0, iterations, chunk):
            state, losses = run(state, min(chunk, iterations - start))
            yield np.asarray(losses)

    @tree_util.register_pytree_node_class
    class Model:
        """The model with its data and the state of its fit."""

        def __init__(self, params, opt_state, data):
            self.params, self.opt_state, self.data = params, opt_state, data

        def tree_flatten(self):
            return (self.params, self.opt_state, self.data), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        def improved(self):
            params, opt_state, loss = step(self.params, self.opt_state, self.data)
            return Model(params, opt_state, self.data), loss

        @partial(jax.jit, static_argnums=1)
        def fit(self, length):
            return lax.scan(lambda model, _: model.improved(), self, length=length)

    def class_with_methods(data, iterations, chunk):
        model = Model(*initial(*data[:2]), data)
        for start in range(0, iterations, chunk):
            model, losses = model.fit(min(chunk, iterations - start))
            yield np.asarray(losses)

    return {
        "eager": eager,
        "jitted step": jitted_step,
        "scan, ahead of time": scanned,
        "NamedTuple": named_tuple,
        "class with methods": class_with_methods,
        "data": lambda arrays: with_constant(*map(jnp.asarray, arrays)),
    }


LEVELS = ("eager", "jitted step", "scan, ahead of time", "NamedTuple", "class with methods")


def run_level(program, name: str, data, iterations: int, chunk: int, quiet: bool = False):
    """(losses, seconds an iteration without the first piece) of one level, with a line of progress."""
    losses: list[np.ndarray] = []
    start = time.perf_counter()
    marks = [start]
    done = 0
    for piece in program[name](data, iterations, chunk):
        losses.append(piece)
        done += len(piece)
        marks.append(time.perf_counter())
        if not quiet:
            common.progress(f"{name:>20}: {done:5d} of {iterations} iterations, ELBO {-float(piece[-1]):.6e}")
    total = marks[-1] - start
    steady = [(b - a) / len(piece) for a, b, piece in zip(marks[1:], marks[2:], losses[1:])]
    per_iteration = min(steady) if steady else total / max(done, 1)
    if not quiet:
        print(f" {1e3 * per_iteration:.2f} ms an iteration, {total:.1f} s in all", file=sys.stderr)
    return np.concatenate(losses), per_iteration


def draw(curves: dict[str, np.ndarray], path: Path, title: str) -> None:
    """Write the loss curves as a PNG."""
    with common.picture(path) as axes:
        for name, losses in curves.items():
            axes.plot(np.arange(1, len(losses) + 1), losses, label=name, alpha=0.8)
        axes.set(xlabel="iteration", ylabel="negative ELBO", yscale="log", title=title)
        axes.legend()
        axes.grid(alpha=0.3)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the levels that ran agree."""
    parser = common.parser("pln", __doc__)
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often the 116 samples are repeated (100 gives 11,600 rows)"
    )
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--chunk", type=int, default=50, help="iterations between two lines of progress")
    parser.add_argument("--levels", default="all", help=f"'all', or some of: {', '.join(LEVELS)}")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument(
        "--demo", action="store_true", help="11,600 x 114, 1,000 iterations by scan, and a picture pln.png"
    )
    options = parser.parse_args(argv)
    if options.demo:
        options.repeat, options.iterations, options.levels = 100, 1000, "scan, ahead of time"
        options.picture = options.picture or Path("pln.png")

    program = make_program(options.backend)
    if options.dtype == "float64":
        common.backend(options.backend).config.update("jax_enable_x64", True)
    data = program["data"](load(options.repeat, options.dtype))
    names = LEVELS if options.levels == "all" else [n for n in LEVELS if n in options.levels]
    if not names:
        parser.error(f"--levels: none of {options.levels!r} is one of {', '.join(LEVELS)}")
    shape = " x ".join(map(str, data[0].shape))
    print(
        f"Poisson log-normal model on the oak data, {shape}, {options.dtype}, {options.iterations} iterations of RAdam"
    )

    curves, times = {}, {}
    for name in names:
        curves[name], times[name] = run_level(program, name, data, options.iterations, options.chunk)

    first = curves[names[0]]
    worst = max(float(np.max(np.abs(c - first) / np.abs(first))) for c in curves.values())
    rows = [[name, times[name], f"{-float(curves[name][-1]):.6e}"] for name in names]
    print("\n" + common.table(["level", "an iteration", "fitted ELBO"], rows))
    if len(names) > 1:
        print(f"largest relative difference between the levels' curves: {worst:.1e}")
    if options.picture is not None:
        draw(curves, options.picture, f"PLN on the oak data, {shape}")
    agree = worst < (1e-3 if options.dtype == "float32" else 1e-8)
    if not agree:
        print("the levels do not agree", file=sys.stderr)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
