"""Shallow water on a torus: each device has some rows, and gets its neighbours' next rows before every step.

Small waves h on water of depth 1 move with the flow (u, v): h_t = -(u_x + v_y), u_t = -h_x, v_t = -h_y, on a staggered
grid, with the new flow in the first equation (forward-backward in time: energy stays, nearly). `ppermute` sends the
rows at the edges around the ring of devices; all steps are one program.

    mpiexec -n 4 python -m examples.distributed.water --picture water.png
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from examples.distributed import _start as common

STEP = 0.5  # of time, over the distance of grid points; waves move one distance in a unit of time


def make(jax: Any, mesh: Any, steps: int) -> Any:
    """(h, u, v) -> the same after so many steps."""
    jnp, lax = jax.numpy, jax.lax
    count = mesh.shape["rows"]
    P = jax.sharding.PartitionSpec
    up = [(k, (k - 1) % count) for k in range(count)]
    down = [(k, (k + 1) % count) for k in range(count)]

    def next_row(x):
        """x at the row below each: the last one's is the first of the next device."""
        return jnp.concatenate([x[1:], lax.ppermute(x[:1], "rows", up)])

    def previous_row(x):
        return jnp.concatenate([lax.ppermute(x[-1:], "rows", down), x[:-1]])

    def step(_, state):
        h, u, v = state
        u = u - STEP * (next_row(h) - h)
        v = v - STEP * (jnp.roll(h, -1, 1) - h)
        h = h - STEP * (u - previous_row(u) + v - jnp.roll(v, 1, 1))
        return h, u, v

    def run(h, u, v):
        h, u, v = lax.fori_loop(0, steps, step, (h, u, v))
        return h, u, v, lax.psum((h**2 + u**2 + v**2).sum(), "rows")

    rows = P("rows")
    return jax.jit(jax.shard_map(run, mesh=mesh, in_specs=(rows,) * 3, out_specs=(rows, rows, rows, P())))


def draw(h: np.ndarray, path: Path) -> None:
    """A picture of the surface."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
    image = axes.imshow(h, cmap="RdBu", vmin=-0.3, vmax=0.3)
    figure.colorbar(image, label="height of the surface")
    axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=120)


def main(argv: list[str] | None = None) -> int:
    """Two drops fall in; print the energy and the height at some places."""
    options = common.options("water", __doc__, picture=True)
    options.add_argument("--size", type=int, default=128, help="rows and columns")
    options.add_argument("--steps", type=int, default=200)
    given = options.parse_args(argv)
    jax = common.start(given.backend)
    P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    n = given.size
    mesh = common.mesh(jax, (jax.device_count(),), ("rows",))
    rows = NamedSharding(mesh, P("rows"))
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")

    def drop(a: float, b: float) -> np.ndarray:
        return np.exp(-((i / n - a) ** 2 + (j / n - b) ** 2) * 400)

    start = (drop(0.3, 0.4) + 0.7 * drop(0.7, 0.55)).astype(np.float32)
    h = jax.make_array_from_callback((n, n), rows, lambda index: start[index])
    still = jax.make_array_from_callback((n, n), rows, lambda index: np.zeros_like(start)[index])
    run = make(jax, mesh, given.steps)
    start_here = h
    h, _, _, energy = run(h, still, still)
    surface = common.whole(jax, h)
    common.say(jax, f"energy {float(energy):.5f} of {float((start**2).sum()):.5f}")
    common.say(jax, "heights " + " ".join(f"{x:.6f}" for x in surface[:: n // 4, n // 3]))
    common.say_seconds(jax, lambda: run(start_here, still, still), given.time)
    if given.picture and jax.process_index() == 0:
        draw(surface, given.picture)
        print(f"the picture is in {given.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
