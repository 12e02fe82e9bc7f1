"""Six ordinary programs over all processes: `mpiexec -n 2 python -m benchmarks.scale.programs NAME [backend] [rounds]`.

Each is written as JAX's users write it, and runs on pullback or JAX. It prints a sum of its result, by which the two
are compared, and the least time of some runs. With the four of examples/distributed they are the ten of docs/scale.md.

    fourier     a transform in two dimensions: lines here, all-to-all, columns here
    product     a matrix product whose contracted axis is cut: partial products, reduce-scatter
    kmeans      Lloyd's iterations on points that are cut, by jit and shardings alone
    embedding   rows of a table that is cut by its rows, looked up and trained
    pipeline    layers one after the other on the devices, micro-batches handed on by ppermute
    sort        a sample sort: splitters that all agree on, all-to-all of equal buckets, a histogram
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from examples.distributed import _start

Made = tuple[Callable[..., Any], list[Any]]  # the program, its arguments


class Devices:
    """All devices on one axis, and arrays on them."""

    def __init__(self, jax: Any) -> None:
        self.jax = jax
        self.count = jax.device_count()
        self.mesh = _start.mesh(jax, (self.count,), ("i",))

    def place(self, *spec: str | None) -> Any:
        """A sharding."""
        return self.jax.sharding.NamedSharding(self.mesh, self.jax.sharding.PartitionSpec(*spec))

    def put(self, x: np.ndarray, *spec: str | None) -> Any:
        """An array of which each process gives its parts."""
        return self.jax.make_array_from_callback(x.shape, self.place(*spec), lambda index: x[index])

    def mapped(self, f: Callable[..., Any], ins: Any, outs: Any) -> Any:
        """The jitted program of which `f` is that of one device."""
        return self.jax.jit(self.jax.shard_map(f, mesh=self.mesh, in_specs=ins, out_specs=outs, check_vma=False))


def fourier(d: Devices) -> Made:
    """f[n, n] -> c[n, n], transposed."""
    jnp, lax, P = d.jax.numpy, d.jax.lax, d.jax.sharding.PartitionSpec

    def transform(x):
        lines = jnp.fft.fft(x, axis=1)
        columns = lax.all_to_all(lines, "i", split_axis=1, concat_axis=0, tiled=True)
        return jnp.fft.fft(columns, axis=0).T

    x = np.random.default_rng(0).normal(size=(512, 512)).astype(np.complex64)
    return d.mapped(transform, P("i"), P("i")), [d.put(x, "i")]


def product(d: Devices) -> Made:
    """f[m, k] @ f[k, n], k cut, rows of the result cut; then its rows made unit."""
    jnp, lax, P = d.jax.numpy, d.jax.lax, d.jax.sharding.PartitionSpec

    def multiply(x, y):
        rows = lax.psum_scatter(x @ y, "i", scatter_dimension=0, tiled=True)
        return rows / jnp.linalg.norm(rows, axis=1, keepdims=True)

    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(512, 512)).astype(np.float32) for _ in range(2))
    return d.mapped(multiply, (P(None, "i"), P("i")), P("i")), [d.put(x, None, "i"), d.put(y, "i")]


def kmeans(d: Devices) -> Made:
    """Points f[n, p], centres f[k, p] -> centres after ten iterations."""
    jax, jnp = d.jax, d.jax.numpy

    def fit(points, centres):
        def step(_, centres):
            squares = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)
            one_hot = jax.nn.one_hot(squares.argmin(1), centres.shape[0], dtype=points.dtype)
            return (one_hot.T @ points) / jnp.maximum(one_hot.sum(0), 1)[:, None]

        return jax.lax.fori_loop(0, 10, step, centres)

    rng = np.random.default_rng(0)
    middles = rng.normal(size=(16, 8)) * 4
    points = (middles[rng.integers(16, size=20_000)] + rng.normal(size=(20_000, 8))).astype(np.float32)
    start = points[:16].copy()
    return jax.jit(fit, out_shardings=d.place()), [d.put(points, "i"), d.put(start)]


def embedding(d: Devices) -> Made:
    """A table f[rows, size] cut by its rows, ids i[batch] on all, targets -> the table after five steps."""
    jax, jnp, P = d.jax, d.jax.numpy, d.jax.sharding.PartitionSpec

    def train(table, ids, targets):
        rows = table.shape[0]

        def looked_up(table):
            here = ids - jax.lax.axis_index("i") * rows
            inside = (here >= 0) & (here < rows)
            mine = jnp.where(inside[:, None], table[jnp.clip(here, 0, rows - 1)], 0)
            return jax.lax.psum(mine, "i")

        def loss(table):
            return ((looked_up(table) - targets) ** 2).mean() / d.count

        def step(_, table):
            return table - 5.0 * jax.grad(loss)(table)

        return jax.lax.fori_loop(0, 5, step, table)

    rng = np.random.default_rng(0)
    table = rng.normal(size=(20_000, 32)).astype(np.float32)
    ids = rng.integers(20_000, size=2_000).astype(np.int32)
    targets = rng.normal(size=(2_000, 32)).astype(np.float32)
    return d.mapped(train, (P("i"), P(), P()), P("i")), [d.put(table, "i"), d.put(ids), d.put(targets)]


def pipeline(d: Devices) -> Made:
    """Weights f[layers, n, n] cut by layers, micro-batches f[m, b, n] on all -> what comes out at the end, on all."""
    jnp, lax, P = d.jax.numpy, d.jax.lax, d.jax.sharding.PartitionSpec
    onwards = [(k, (k + 1) % d.count) for k in range(d.count)]

    def run(weights, batches):
        place, last = lax.axis_index("i"), d.count - 1
        many = batches.shape[0]

        def stage(x):
            return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]

        def step(carry, k):
            x, out = carry
            x = stage(jnp.where(place == 0, batches[jnp.minimum(k, many - 1)], x))
            ready = jnp.where(place == last, x, 0)
            out = lax.dynamic_update_index_in_dim(out, ready, jnp.maximum(k - last, 0), 0)
            return (lax.ppermute(x, "i", onwards), out), None

        start = jnp.zeros_like(batches[0]), jnp.zeros_like(batches)
        (_, out), _ = lax.scan(step, start, jnp.arange(many + last))
        return lax.psum(out, "i")

    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(8, 128, 128)) / 12).astype(np.float32)
    batches = rng.normal(size=(16, 32, 128)).astype(np.float32)
    return d.mapped(run, (P("i"), P()), P()), [d.put(weights, "i"), d.put(batches)]


def sort(d: Devices) -> Made:
    """f[n] -> (f[devices, room] in order from device to device, infinite where there is room left; i[64] counts)."""
    jnp, lax, P = d.jax.numpy, d.jax.lax, d.jax.sharding.PartitionSpec
    count = d.count

    def ordered(x):
        n = x.shape[0]
        x = jnp.sort(x)
        sample = jnp.sort(lax.all_gather(x[:: n // 64], "i", tiled=True))
        splitters = sample[sample.shape[0] // count :: sample.shape[0] // count][: count - 1]
        ends = jnp.concatenate([jnp.searchsorted(x, splitters), jnp.array([n])])
        begins = jnp.concatenate([jnp.array([0]), ends[:-1]])
        room = 3 * n // 2 // count
        places = begins[:, None] + jnp.arange(room)
        buckets = jnp.where(places < ends[:, None], x[jnp.minimum(places, n - 1)], jnp.inf)
        mine = jnp.sort(lax.all_to_all(buckets, "i", 0, 0, tiled=True).reshape(-1))
        bins = jnp.clip(((x + 4) * 8).astype(jnp.int32), 0, 63)
        return mine[None], lax.psum(jnp.zeros(64, jnp.int32).at[bins].add(1), "i")

    x = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    return d.mapped(ordered, P("i"), (P("i"), P())), [d.put(x, "i")]


PROGRAMS = {f.__name__: f for f in (fourier, product, kmeans, embedding, pipeline, sort)}


def main(argv: list[str]) -> int:
    """`name backend rounds`"""
    name, backend, rounds = argv[0], argv[1], int(argv[2])
    jax = _start.start(backend)
    run, args = PROGRAMS[name](Devices(jax))
    found = [_start.whole(jax, x) for x in jax.tree.leaves(run(*args))]
    _start.say_seconds(jax, lambda: run(*args), rounds)
    total = sum(float(np.abs(x[np.isfinite(x)]).sum(dtype=np.float64)) for x in found)
    _start.say(jax, f"sum {total:.9g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
