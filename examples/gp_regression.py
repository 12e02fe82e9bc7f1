"""Regression by a Gaussian process: a yearly rhythm on a slow trend, with a band that says how sure it is.

The kernel is a sum of a slow part and of a rhythm whose shape drifts. tinygp computes the likelihood of the data, the
seven parameters (logarithms of scales and of the noise, and the mean) are found by L-BFGS of optax in one compiled
loop, and the process is then asked for times when nothing was measured (Rasmussen and Williams, "Gaussian Processes
for Machine Learning", MIT Press 2006, section 5.4).

    python -m examples.gp_regression --picture gp_regression.png
    python -m examples.gp_regression --points 60 --steps 30
    python -m examples.gp_regression --backend jax            # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

YEARS = 8.0
START = {
    "mean": 0.0, "trend": 0.0, "trend_length": 1.0, "rhythm": 0.0, "rhythm_width": 0.0, "rhythm_life": 2.0,
    "noise": -1.0,
}  # fmt: skip


def data(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(times and values that are measured; times and values of the curve behind them), sorted, with a gap."""
    random = np.random.default_rng(0)
    curve = lambda t: 0.04 * t**2 + np.sin(2 * np.pi * t) + 0.4 * np.sin(4 * np.pi * t + 1) * np.cos(0.3 * t)
    t = np.sort(random.uniform(0, YEARS, 3 * count))
    t = np.sort(random.choice(t[(t < 4.3) | (t > 5.6)], count, replace=False))
    fine = np.linspace(0, YEARS + 1.5, 400)
    return t, curve(t) + 0.25 * random.standard_normal(count), fine, curve(fine)


def make_program(jax: Any, t: np.ndarray, y: np.ndarray, steps: int) -> tuple[Any, Any]:
    """(fit, ask): fit() gives (parameters, f[steps] losses), ask(parameters, times) gives (means, variances)."""
    jnp, lax = jax.numpy, jax.lax
    tinygp, optax = map(importlib.import_module, ("tinygp", "optax"))
    kernels = tinygp.kernels

    def process(p: dict) -> Any:
        scale = {name: jnp.exp(value) for name, value in p.items()}
        kernel = scale["trend"] ** 2 * kernels.ExpSquared(scale=scale["trend_length"])
        rhythm = kernels.ExpSineSquared(scale=jnp.ones(()), gamma=scale["rhythm_width"])
        kernel += scale["rhythm"] ** 2 * rhythm * kernels.ExpSquared(scale=scale["rhythm_life"])
        return tinygp.GaussianProcess(kernel, t, diag=scale["noise"] ** 2, mean=p["mean"])

    def loss(p: dict) -> Any:
        return -process(p).log_probability(y) / len(t)

    optimizer = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(loss)

    @jax.jit
    def fit() -> tuple[dict, Any]:
        def step(carry: Any, _: Any) -> tuple[Any, Any]:
            p, state = carry
            value, slopes = value_and_grad(p, state=state)
            updates, state = optimizer.update(slopes, state, p, value=value, grad=slopes, value_fn=loss)
            return (optax.apply_updates(p, updates), state), value

        p = {name: jnp.asarray(value) for name, value in START.items()}
        (p, _), losses = lax.scan(step, (p, optimizer.init(p)), length=steps)
        return p, losses

    @jax.jit
    def ask(p: dict, times: Any) -> tuple[Any, Any]:
        found = process(p).condition(y, times).gp
        return found.loc, found.variance

    return fit, ask


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the curve lies in the band as often as it should."""
    parser = common.parser("gp_regression", __doc__)
    parser.add_argument("--points", type=int, default=250, help="measurements (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="steps of L-BFGS (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend, as_jax=True)
    jax.config.update("jax_enable_x64", True)
    t, y, fine, truth = data(options.points)
    fit, ask = make_program(jax, t, y, options.steps)

    marks = [time.perf_counter()]
    for _ in range(3):
        p, losses = jax.block_until_ready(fit())
        marks.append(time.perf_counter())
    mean, variance = map(np.asarray, ask(p, fine))
    inside = float(np.mean(np.abs(truth - mean) <= 2 * np.sqrt(variance)))
    losses = np.asarray(losses)
    print(f"- log likelihood per point: {losses[0]:.3f} at first, {losses[-1]:.3f} after {options.steps} steps")
    print(f"the curve lies within two deviations at {inside:.0%} of the times")
    first, *others = np.diff(marks)
    print(f"a fit: {min(others):.3f} s; the first, with compilation: {first:.1f} s")
    if options.picture:
        draw(options.picture, (t, y), (fine, mean, variance), truth)
    return int(inside < 0.8 or not losses[-1] < losses[0])


def draw(path: Path, given: tuple, found: tuple, truth: np.ndarray) -> None:
    """What was measured, and what the process says of the times between and behind."""
    (t, y), (fine, mean, variance) = given, found
    with common.picture(path) as axes:
        wide = 2 * np.sqrt(variance)
        axes.fill_between(fine, mean - wide, mean + wide, color="C0", alpha=0.2, label="two deviations")
        axes.plot(fine, mean, color="C0", label="mean")
        axes.plot(fine, truth, ":", color="0.4", label="truth")
        axes.plot(t, y, ".", color="C1", markersize=4, label="measured")
        axes.set(xlabel="years")
        axes.legend(fontsize="small")


if __name__ == "__main__":
    sys.exit(main())
