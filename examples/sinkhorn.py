"""Optimal transport by Sinkhorn's algorithm: which point of one cloud goes to which of another, and a cloud that flows.

The plan of least cost with some entropy is found by scaling rows and columns in turn, in logarithms, until the sums are
right (Cuturi, "Sinkhorn Distances", NeurIPS 2013): a compiled `while_loop`. The derivative of the cost by the points
follows from the potentials at the end (`custom_vjp`), without going back through the loop. Gradient steps then move one
cloud onto the other.

    python -m examples.sinkhorn --picture sinkhorn.png
    python -m examples.sinkhorn --points 100 --steps 10
    python -m examples.sinkhorn --backend jax                 # the same source on JAX
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

ENTROPY, TOLERANCE, MOST = 0.02, 1e-4, 500


def clouds(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds f32[count, 2]: a disc, and two moons."""
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, count), 0.5 * np.sqrt(random.uniform(0, 1, count))
    disc = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    half = np.sort(random.uniform(0, np.pi, count))
    upper = np.arange(count) % 2 == 0
    moons = np.where(upper, [np.cos(half), np.sin(half) - 0.25], [1 - np.cos(half), 0.25 - np.sin(half)]).T
    return disc.astype(np.float32), (moons - [0.5, 0] + random.normal(0, 0.05, (count, 2))).astype(np.float32)


def make_program(jax: Any) -> tuple[Any, Any]:
    """(plan, step) of two clouds f32[n, 2] and f32[m, 2]; a step gives the moved first cloud and the cost."""
    jnp, lax = jax.numpy, jax.lax

    def costs(x: Any, y: Any) -> Any:
        return ((x[:, None] - y[None, :]) ** 2).sum(-1)

    def potentials(x: Any, y: Any) -> tuple[Any, Any, Any]:
        """(f f32[n], g f32[m], the number of rounds)"""
        c, (n, m) = costs(x, y), (len(x), len(y))

        def soft_minimum(values: Any, axis: int) -> Any:
            return -ENTROPY * jax.nn.logsumexp(-values / ENTROPY, axis=axis)

        def going(state: Any) -> Any:
            _, _, error, rounds = state
            return (error > TOLERANCE) & (rounds < MOST)

        def one_round(state: Any) -> Any:
            f, g, _, rounds = state
            f = soft_minimum(c - g, 1) - ENTROPY * np.log(n)
            new = soft_minimum(c - f[:, None], 0) - ENTROPY * np.log(m)
            return f, new, jnp.abs(new - g).max(), rounds + 1

        f, g, _, rounds = lax.while_loop(going, one_round, (jnp.zeros(n), jnp.zeros(m), jnp.inf, 0))
        return f, g, rounds

    def solved(x: Any, y: Any) -> tuple[Any, Any]:
        """(the cost, the plan f32[n, m])"""
        f, g, _ = potentials(x, y)
        return f.mean() + g.mean(), jnp.exp((f[:, None] + g - costs(x, y)) / ENTROPY)

    @jax.custom_vjp
    def cost(x: Any, y: Any) -> Any:
        return solved(x, y)[0]

    def forward(x: Any, y: Any) -> tuple[Any, Any]:
        value, plan = solved(x, y)
        return value, (x, y, plan)

    def backward(kept: Any, value_bar: Any) -> tuple[Any, Any]:
        x, y, p = kept  # the potentials are the best ones, so only the costs change to first order
        move = lambda a, b, p: 2 * value_bar * (p.sum(1)[:, None] * a - p @ b)
        return move(x, y, p), move(y, x, p.T)

    cost.defvjp(forward, backward)

    def step(x: Any, y: Any) -> tuple[Any, Any]:
        value, slopes = jax.value_and_grad(cost)(x, y)
        return x - 0.15 * len(x) * slopes, value

    return jax.jit(lambda x, y: solved(x, y)[1]), jax.jit(step)


def draw(path: Path, paths: list[np.ndarray], target: np.ndarray, plan: np.ndarray) -> None:
    """The plan between the clouds, and the first cloud as it flows."""
    shown = [0, len(paths) // 8, len(paths) // 3, len(paths) - 1]
    with common.picture(path, columns=len(shown) + 1) as axes:
        for k in range(0, len(target), max(1, len(target) // 80)):
            to = target[plan[k].argmax()]
            axes[0][0].plot(*np.stack([paths[0][k], to]).T, color="0.7", linewidth=0.7)
        axes[0][0].set(title="where to")
        for axis, number in zip(axes[0], [0, *shown]):
            axis.plot(*target.T, ".", color="C1", markersize=3, alpha=0.4)
            axis.plot(*paths[number].T, ".", color="C0", markersize=3)
            axis.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.8, 1.8), ylim=(-1.2, 1.2))
        for axis, number in zip(axes[0][1:], shown):
            axis.set(title=f"step {number}")


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the plan is one, and the cloud arrives."""
    parser = common.parser("sinkhorn", __doc__)
    parser.add_argument("--points", type=int, default=400, help="points of each cloud (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="steps of the flow (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    plan, step = make_program(jax)
    x, y = clouds(options.points)

    found = np.asarray(plan(x, y))
    wrong = max(float(np.abs(found.sum(k) * options.points - 1).max()) for k in (0, 1))
    paths, values, marks = [x], [], [time.perf_counter()]
    for _ in range(options.steps):
        x, value = step(x, y)
        values.append(float(value))
        paths.append(np.asarray(x))
        marks.append(time.perf_counter())
    print(f"the plan's sums are right to {wrong:.1e}")
    print(f"cost with entropy: {values[0]:.4f} at first, {values[-1]:.4f} after {options.steps} steps")
    each, first = float(min(np.diff(marks)[1:])), marks[1] - marks[0]
    print(f"a step with {options.points} points: {1e3 * each:.1f} ms; the first, with compilation: {first:.2f} s")
    if options.picture:
        draw(options.picture, paths, y, found)
    return int(wrong > 0.05 or not values[-1] < 0.5 * values[0])


if __name__ == "__main__":
    sys.exit(main())
