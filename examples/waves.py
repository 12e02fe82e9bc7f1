"""Waves on water that meet a shoal: a simulation whose unknown parameter is found by derivatives through all its steps.

The height of the water h obeys h_tt = div(c^2 grad h) - d h_t, on a square grid, in steps of the leapfrog method; c is
smaller over a round shoal. Gauges write down the height at some places. How slow waves are over the shoal, where it
lies, and the damping d are then found from the gauges alone: the mean squared difference is differentiated through the
compiled `scan`, and Gauss-Newton steps (`jacfwd`) make it small.

    python -m examples.waves --picture waves.png --animation waves.gif
    python -m examples.waves --size 48 --steps 100
    python -m examples.waves --backend jax                    # the same source on JAX
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from examples import _common as common

NAMES = ("speed over the shoal", "x of the shoal", "y of the shoal", "damping")
TRUTH = np.array([0.50, 0.60, 0.45, 0.3], np.float32)
GUESS = np.array([0.80, 0.50, 0.50, 0.1], np.float32)
ITERATIONS, GAUGES = 25, 12


class Program(NamedTuple):
    """All on f32[4], the parameters: the gauges f32[steps, gauges], every 4th height f32[.., n, n], an improvement."""

    gauges: Callable[[Any], Any]
    heights: Callable[[Any], Any]
    improved: Callable[[Any, Any], tuple[Any, Any]]  # parameters, gauges that were seen -> parameters, error


def make_program(jax: Any, size: int, steps: int) -> Program:
    """The simulation, written against an implementation of JAX's API."""
    jnp, lax = jax.numpy, jax.lax
    at = (np.arange(size, dtype=np.float32) + 0.5) / size
    x, y = at[:, None], at[None, :]
    dt, scale = 0.5 / size, float(size)
    places = np.linspace(size // 8, size - size // 8, GAUGES).astype(int)

    def simulate(parameters: Any, seen: Callable[[Any], Any]) -> Any:
        speed, x0, y0, damping = parameters
        shoal = jnp.exp(-(((x - x0) ** 2 + (y - y0) ** 2) / 0.03))
        squared = (1 - (1 - speed) * shoal) ** 2
        source = jnp.exp(-((x - 0.15) ** 2) / 0.008) * jnp.ones((1, size))

        def acceleration(h: Any) -> Any:
            padded = jnp.pad(h, 1, mode="edge")  # walls, from which waves come back
            differences = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - 4 * h
            return squared * differences * scale**2

        def step(state: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], Any]:
            h, velocity = state
            velocity = (1 - dt * damping) * velocity + dt * acceleration(h)
            h = h + dt * velocity
            return (h, velocity), seen(h)

        return lax.scan(step, (source, jnp.zeros((size, size))), length=steps)[1]

    def gauges(parameters: Any) -> Any:
        return simulate(parameters, lambda h: h[-(size // 6), places])

    def improved(parameters: Any, given: Any) -> tuple[Any, Any]:
        """One step of Levenberg and Marquardt for the squares of the differences."""
        difference = gauges(parameters) - given
        slopes = jax.jacfwd(gauges)(parameters).reshape(-1, len(parameters))
        normal = slopes.T @ slopes
        move = jnp.linalg.solve(normal + 0.1 * jnp.diag(jnp.diag(normal)), slopes.T @ difference.ravel())
        return parameters - jnp.clip(move, -0.05, 0.05), jnp.mean(difference**2)

    return Program(jax.jit(gauges), jax.jit(lambda p: simulate(p, lambda h: h)[::4]), jax.jit(improved))


def animate(path: Path, heights: np.ndarray) -> None:
    """The waves as a GIF of 15 pictures a second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import animation, pyplot

    figure, axes = pyplot.subplots(figsize=(3.2, 3.2), layout="tight")
    axes.set_axis_off()
    shown = axes.imshow(heights[0].T, cmap="RdBu", vmin=-0.5, vmax=0.5, origin="lower", interpolation="bilinear")
    movie = animation.FuncAnimation(figure, lambda k: [shown.set_data(heights[k].T)], frames=len(heights))
    movie.save(path, writer=animation.PillowWriter(fps=15), dpi=75)
    pyplot.close(figure)
    print(f"drawn: {path}", file=sys.stderr)


def draw(path: Path, heights: np.ndarray, history: np.ndarray, errors: list[float]) -> None:
    """The water at three times, and how the parameters are found."""
    with common.picture(path, columns=4) as axes:
        for k, axis in enumerate(axes[0][:3]):
            number = len(heights) * (k + 1) // 4
            axis.imshow(heights[number].T, cmap="RdBu", vmin=-0.5, vmax=0.5, origin="lower", interpolation="bilinear")
            axis.set(title=f"step {4 * number}", xticks=[], yticks=[])
        for k, name in enumerate(NAMES):
            axes[0][3].plot(history[:, k], color=f"C{k}", label=name)
            axes[0][3].axhline(TRUTH[k], color=f"C{k}", linestyle=":")
        axes[0][3].legend(fontsize="x-small")
        axes[0][3].set(title="found (dotted: truth)", xlabel="iteration")


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if the parameters are found."""
    parser = common.parser("waves", __doc__)
    parser.add_argument("--size", type=int, default=96, help="points along each side (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=240, help="steps in time (default: %(default)s)")
    parser.add_argument("--animation", type=Path, metavar="GIF", help="draw the waves here")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    program = make_program(jax, options.size, options.steps)
    noise = 1e-3 * np.random.default_rng(0).standard_normal((options.steps, GAUGES)).astype(np.float32)
    given = np.asarray(program.gauges(TRUTH)) + noise

    parameters, history, errors, marks = GUESS, [GUESS], [], [time.perf_counter()]
    for _ in range(ITERATIONS):
        parameters, error = program.improved(parameters, given)
        history.append(np.asarray(parameters))
        errors.append(float(error))
        marks.append(time.perf_counter())
    rows = [[name, f"{g:.3f}", f"{f:.3f}", f"{t:.3f}"] for name, g, f, t in zip(NAMES, GUESS, history[-1], TRUTH)]
    print(common.table(["", "guess", "found", "truth"], rows))
    each, first = min(np.diff(marks)), marks[1] - marks[0]
    print(f"\nan iteration on {options.size} x {options.size} points, {options.steps} steps: {1e3 * each:.1f} ms;")
    print(f"the first, with compilation: {first:.2f} s")
    if options.picture or options.animation:
        heights = np.asarray(program.heights(TRUTH))
    if options.picture:
        draw(options.picture, heights, np.stack(history), errors)
    if options.animation:
        animate(options.animation, heights)
    return int(np.abs(history[-1] - TRUTH).max() > 0.05)


if __name__ == "__main__":
    sys.exit(main())
