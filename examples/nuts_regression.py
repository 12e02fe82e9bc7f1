"""Bayesian regression with outliers, sampled by NUTS: a line through noisy points, and how sure we are of it.

Points lie on a line with noise from Student's t distribution, so that a few lie far off. The No-U-Turn sampler of
blackjax draws slope, intercept, log scale and log degrees of freedom from their posterior distribution (Hoffman and
Gelman, "The No-U-Turn Sampler", JMLR 15, 2014): it is tuned by window adaptation, then all chains run side by side
under `vmap`, inside of one compiled `scan`.

    python -m examples.nuts_regression --picture nuts_regression.png
    python -m examples.nuts_regression --draws 200 --chains 2
    python -m examples.nuts_regression --backend jax          # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

TRUTH = {"slope": 1.5, "intercept": -0.5, "log_scale": np.log(0.3), "log_freedom": np.log(2.0)}
RHAT = 1.05  # chains that agree have a ratio of variances near 1


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(x, y), f32[count] each."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, count)
    noise = np.exp(TRUTH["log_scale"]) * random.standard_t(np.exp(TRUTH["log_freedom"]), count)
    return x.astype(np.float32), (TRUTH["intercept"] + TRUTH["slope"] * x + noise).astype(np.float32)


def make_sampler(jax: Any, x: Any, y: Any) -> Any:
    """A jitted function of (key, chains, draws) that gives the draws, {name: f32[chains, draws]}."""
    blackjax = importlib.import_module("blackjax")
    stats = importlib.import_module(f"{jax.__name__}.scipy.stats")

    def log_density(p: dict) -> Any:
        prior = sum(stats.norm.logpdf(value, 0.0, 3.0) for value in p.values())
        scale, freedom = jax.numpy.exp(p["log_scale"]), jax.numpy.exp(p["log_freedom"])
        return prior + stats.t.logpdf(y, freedom, p["intercept"] + p["slope"] * x, scale).sum()

    start = {name: jax.numpy.zeros(()) for name in TRUTH}

    def sample(key: Any, chains: int, draws: int) -> dict:
        warm_key, key = jax.random.split(key)
        warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, tuned), _ = warmup.run(warm_key, start, num_steps=draws)
        kernel = blackjax.nuts(log_density, **tuned).step

        def chain(key: Any) -> dict:
            step = lambda state, key: (lambda new: (new, new.position))(kernel(key, state)[0])
            return jax.lax.scan(step, state, jax.random.split(key, draws))[1]

        return jax.vmap(chain)(jax.random.split(key, chains))

    return jax.jit(sample, static_argnums=(1, 2))


def rhat(draws: np.ndarray) -> float:
    """Gelman and Rubin's ratio for one parameter, f32[chains, draws]: near 1 if the chains agree."""
    within = draws.var(1, ddof=1).mean()
    between = draws.mean(1).var(ddof=1)
    return float(np.sqrt((within + between) / within))


def draw(path: Path, x: np.ndarray, y: np.ndarray, draws: dict[str, np.ndarray], title: str) -> None:
    """The points with lines from the posterior, and the distributions of two parameters."""
    with common.picture(path, columns=3) as axes:
        left, middle, right = axes[0]
        at = np.array([-2.0, 2.0])
        for k in np.linspace(0, draws["slope"].size - 1, 60).astype(int):
            left.plot(at, draws["intercept"].flat[k] + draws["slope"].flat[k] * at, color="C0", alpha=0.08)
        left.plot(x, y, ".", color="C1", markersize=4)
        left.set(title=title, ylim=np.quantile(y, [0.01, 0.99]) + [-1, 1])
        for axis, name in ((middle, "slope"), (right, "log_freedom")):
            axis.hist(draws[name].ravel(), 40, color="C0", alpha=0.7)
            axis.axvline(TRUTH[name], color="C1")
            axis.set(title=name.replace("_", " of ").replace("freedom", "degrees of freedom"), yticks=[])


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the chains agree."""
    parser = common.parser("nuts_regression", __doc__)
    parser.add_argument("--points", type=int, default=200, help="number of points (default: %(default)s)")
    parser.add_argument("--chains", type=int, default=4, help="chains side by side (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=1000, help="draws of each (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend, as_jax=True)
    x, y = data(options.points)
    sample = make_sampler(jax, x, y)

    marks = [time.perf_counter()]
    for seed in (0, 1):
        draws = jax.block_until_ready(sample(jax.random.key(seed), options.chains, options.draws))
        marks.append(time.perf_counter())
    draws = {name: np.asarray(value) for name, value in draws.items()}
    rows = [
        [name, f"{TRUTH[name]:.2f}", f"{d.mean():.2f}", f"{d.std():.2f}", f"{rhat(d):.3f}"] for name, d in draws.items()
    ]
    print(common.table(["", "truth", "mean", "deviation", "ratio of chains"], rows))
    first, second = np.diff(marks)
    print(f"\n{options.chains} x {options.draws} draws: {second:.3f} s; the first, with compilation: {first:.1f} s")
    if options.picture:
        draw(options.picture, x, y, draws, f"{options.points} points")
    return int(max(map(rhat, draws.values())) > RHAT)


if __name__ == "__main__":
    sys.exit(main())
