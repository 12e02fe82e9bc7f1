"""A neural ODE: a network that is the right-hand side of a differential equation learns how spirals turn.

Trajectories of a damped oscillator are given at some times. The network (equinox) says where a state moves to, diffrax
solves the equation by an adaptive Runge-Kutta method, and derivatives go through the solver to the network's weights
(Chen, Rubanova, Bettencourt, Duvenaud, "Neural Ordinary Differential Equations", NeurIPS 2018). Adam of optax takes the
steps.

    python -m examples.neural_ode --picture neural_ode.png
    python -m examples.neural_ode --steps 50
    python -m examples.neural_ode --backend jax               # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

MATRIX = np.array([[-0.1, 2.0], [-2.0, -0.1]])
TIMES = np.linspace(0, 1.5, 20).astype(np.float32)
LEARNT = 0.05  # mean squared error of a network that has learnt it


def data(count: int) -> np.ndarray:
    """Trajectories f32[count, times, 2] of z' = A z^3, from the same solver with small steps."""
    z = np.random.default_rng(0).uniform(-1, 1, (count, 2)) + np.array([1.5, 0.0])
    found, fine = [z], 50
    for t0, t1 in pairwise(TIMES):
        h = (t1 - t0) / fine
        for _ in range(fine):  # the midpoint rule
            middle = z + h / 2 * (z**3 @ MATRIX.T)
            z = z + h * (middle**3 @ MATRIX.T)
        found.append(z)
    return np.stack(found, 1).astype(np.float32)


def make_program(jax: Any) -> tuple[Any, Any, Any]:
    """(model, step, solve): a network, one step of training, and the trajectories that it gives."""
    diffrax, equinox, optax = map(importlib.import_module, ("diffrax", "equinox", "optax"))
    jnp = jax.numpy

    class Field(equinox.Module):
        """z' as a network of z."""

        network: Any

        def __init__(self, key: Any) -> None:
            self.network = equinox.nn.MLP(2, 2, 64, 2, activation=jax.nn.softplus, key=key)

        def __call__(self, t: Any, z: Any, args: Any) -> Any:
            return self.network(z)

    def solve(model: Any, starts: Any) -> Any:
        """f32[count, 2] -> f32[count, times, 2]"""

        def one(start: Any) -> Any:
            return diffrax.diffeqsolve(
                *(diffrax.ODETerm(model), diffrax.Tsit5(), TIMES[0], TIMES[-1], 0.05, start),
                saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                max_steps=256,
            ).ys

        return jax.vmap(one)(starts)

    optimizer = optax.adam(1e-2)

    @equinox.filter_jit
    def step(model: Any, state: Any, paths: Any) -> tuple[Any, Any, Any]:
        loss = lambda model: jnp.mean((solve(model, paths[:, 0]) - paths) ** 2)
        value, gradient = equinox.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradient, state)
        return equinox.apply_updates(model, updates), state, value

    model = Field(jax.random.key(0))
    return (model, optimizer.init(equinox.filter(model, equinox.is_inexact_array))), step, equinox.filter_jit(solve)


def draw(path: Path, given: np.ndarray, learnt: np.ndarray, losses: list[float], title: str) -> None:
    """Trajectories as given and as learnt, and the loss."""
    with common.picture(path, columns=2) as axes:
        left, right = axes[0]
        for k in range(min(6, len(given))):
            left.plot(*given[k].T, ".", color="C1", markersize=5)
            left.plot(*learnt[k].T, color="C0")
        left.set(title=title, aspect="equal")
        right.plot(losses)
        right.set(title="mean squared error", yscale="log", xlabel="step")


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the network learns."""
    parser = common.parser("neural_ode", __doc__)
    parser.add_argument("--steps", type=int, default=600, help="steps of training (default: %(default)s)")
    parser.add_argument("--paths", type=int, default=64, help="trajectories to learn from (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend, as_jax=True)
    paths = data(options.paths)
    (model, state), step, solve = make_program(jax)

    losses, marks = [], [time.perf_counter()]
    for k in range(options.steps):
        model, state, loss = step(model, state, paths)
        losses.append(float(loss))
        marks.append(time.perf_counter())
        if k % 20 == 0:
            common.progress(f"step {k} of {options.steps}, loss {losses[-1]:.4f}")
    common.progress("")
    each, first = float(min(np.diff(marks)[1:])), marks[1] - marks[0]
    print(f"mean squared error: {losses[0]:.3f} at first, {losses[-1]:.4f} after {options.steps} steps")
    print(f"a step: {1e3 * each:.2f} ms; the first, with compilation: {first:.1f} s")
    if options.picture:
        draw(options.picture, paths, np.asarray(solve(model, paths[:, 0])), losses, "given (dots) and learnt")
    return int(not losses[-1] < max(LEARNT, 0.9 * losses[0] if options.steps < 300 else 0))


if __name__ == "__main__":
    sys.exit(main())
