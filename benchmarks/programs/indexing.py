"""Indexing: gathers, scatters, segment sums, embeddings, searches, one-hot products, slices, masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program

Make = Callable[[np.random.Generator], tuple]


def _indexed(*shape: int, count: int | tuple[int, ...], extra: tuple[int, ...] | None = None) -> Make:
    """(table, indices into its first dimension[, values of the shape `extra`])."""

    def make(rng: np.random.Generator) -> tuple:
        table = rng.standard_normal(shape).astype("f4")
        indices = rng.integers(0, shape[0], count).astype("i4")
        return (table, indices) if extra is None else (table, indices, rng.standard_normal(extra).astype("f4"))

    return make


def _gather(n: int, width: int, count: int) -> Program:
    shape = (n, width) if width else (n,)
    return Program(
        f"gather {count} of {'x'.join(map(str, shape))}",
        inputs=_indexed(*shape, count=count),
        jax=lambda jax: lambda x, i: x[i],
        numpy=lambda x, i: x[i],
        torch=lambda torch: lambda x, i: x[i],
    )


def _gather_sum(n: int, width: int, count: int) -> Program:
    """An embedding bag: rows are gathered, scaled and added up."""
    return Program(
        f"gathered rows summed, {count} of {n}x{width}",
        inputs=_indexed(n, width, count=(count, 16)),
        jax=lambda jax: lambda x, i: (x[i] * 2).sum(1),
        numpy=lambda x, i: (x[i] * np.float32(2)).sum(1),
        torch=lambda torch: lambda x, i: (x[i] * 2).sum(1),
    )


def _along(rows: int, n: int, k: int) -> Program:
    return Program(
        f"take along axis 1, {rows}x{k} of {rows}x{n}",
        inputs=lambda rng: (
            rng.standard_normal((rows, n)).astype("f4"),
            rng.integers(0, n, (rows, k)),
        ),
        jax=lambda jax: lambda x, i: jax.numpy.take_along_axis(x, i, 1),
        numpy=lambda x, i: np.take_along_axis(x, i, 1),
        torch=lambda torch: lambda x, i: torch.take_along_dim(x, i, 1),
        x64=True,
    )


def _constant_gather(n: int) -> Program:
    """Indices known when the program is compiled."""
    places = np.random.default_rng(1).permutation(n)[: n // 2]
    return Program(
        f"gather of constant places, {n // 2} of {n}x8",
        inputs=lambda rng: (rng.standard_normal((n, 8)).astype("f4"),),
        jax=lambda jax: lambda x: x[places] * 2,
        numpy=lambda x: x[places] * np.float32(2),
        torch=lambda torch: lambda x: x[torch.from_numpy(places)] * 2,
    )


def _diagonal(n: int) -> Program:
    return Program(
        f"x[arange, arange] of {n}x{n}",
        inputs=lambda rng: (rng.standard_normal((n, n)).astype("f4"),),
        jax=lambda jax: lambda x: x[jax.numpy.arange(n), jax.numpy.arange(n)].sum(),
        numpy=lambda x: x[np.arange(n), np.arange(n)].sum(),
        torch=lambda torch: lambda x: x[torch.arange(n), torch.arange(n)].sum(),
    )


def _scatter_add(n: int, width: int, count: int) -> Program:
    shape = (n, width) if width else (n,)
    rows = (count, width) if width else (count,)

    def numpy(x: Any, i: Any, v: Any) -> Any:
        out = x.copy()
        np.add.at(out, i, v)
        return out

    return Program(
        f"scatter-add {count} into {'x'.join(map(str, shape))}",
        inputs=_indexed(*shape, count=count, extra=rows),
        jax=lambda jax: lambda x, i, v: x.at[i].add(v),
        numpy=numpy,
        torch=lambda torch: lambda x, i, v: x.index_add(0, i, v),
    )


def _scatter_set(n: int, width: int) -> Program:
    """Rows written to places that differ."""

    def numpy(x: Any, i: Any, v: Any) -> Any:
        out = x.copy()
        out[i] = v * 2 + 1
        return out

    def torch(torch: Any) -> Callable:
        return lambda x, i, v: x.index_copy(0, i.long(), v * 2 + 1)

    def make(rng: np.random.Generator) -> tuple:
        return (
            rng.standard_normal((n, width)).astype("f4"),
            rng.permutation(n)[: n // 2].astype("i4"),
            rng.standard_normal((n // 2, width)).astype("f4"),
        )

    return Program(
        f"scatter {n // 2} rows into {n}x{width}, values computed",
        make,
        lambda jax: lambda x, i, v: x.at[i].set(v * 2 + 1, unique_indices=True),
        numpy,
        torch,
    )


def _segments(n: int, groups: int, ordered: bool) -> Program:
    def make(rng: np.random.Generator) -> tuple:
        group = rng.integers(0, groups, n).astype("i4")
        return rng.standard_normal(n).astype("f4"), np.sort(group) if ordered else group

    def torch(torch: Any) -> Callable:
        return lambda x, g: torch.zeros(groups).index_add(0, g, x * x)

    return Program(
        f"segment sums of squares, {n} in {groups}{', sorted' if ordered else ''}",
        make,
        lambda jax: lambda x, g: jax.ops.segment_sum(x * x, g, groups, indices_are_sorted=ordered),
        lambda x, g: np.bincount(g, x * x, groups).astype("f4"),
        torch,
    )


def _embedding_gradient(vocabulary: int, width: int, count: int) -> Program:
    def jax(jax: Any) -> Callable:
        def loss(table: Any, tokens: Any, weights: Any) -> Any:
            return (table[tokens] * weights).sum()

        return jax.grad(loss)

    def numpy(table: Any, tokens: Any, weights: Any) -> Any:
        out = np.zeros_like(table)
        np.add.at(out, tokens, weights)
        return out

    def torch(torch: Any) -> Callable:
        def f(table: Any, tokens: Any, weights: Any) -> Any:
            table = table.detach().requires_grad_(True)
            loss = (torch.nn.functional.embedding(tokens, table) * weights).sum()
            return torch.autograd.grad(loss, table)[0]

        return f

    return Program(
        f"embedding gradient, {count} of {vocabulary}x{width}",
        _indexed(vocabulary, width, count=count, extra=(count, width)),
        jax,
        numpy,
        torch,
    )


def _searchsorted(n: int, m: int, ordered: bool = False) -> Program:
    def make(rng: np.random.Generator) -> tuple:
        values = rng.standard_normal(m).astype("f4")
        return np.sort(rng.standard_normal(n).astype("f4")), np.sort(values) if ordered else values

    return Program(
        f"searchsorted, {m} in {n}{', sorted' if ordered else ''}",
        make,
        lambda jax: lambda a, v: jax.numpy.searchsorted(a, v),
        lambda a, v: np.searchsorted(a, v),
        lambda torch: lambda a, v: torch.searchsorted(a, v),
    )


def _histogram(n: int, bins: int) -> Program:
    return Program(
        f"bincount of {n} in {bins}",
        lambda rng: (rng.integers(0, bins, n).astype("i4"),),
        lambda jax: lambda i: jax.numpy.bincount(i, length=bins),
        lambda i: np.bincount(i, minlength=bins),
        lambda torch: lambda i: torch.bincount(i, minlength=bins),
    )


def _one_hot(classes: int, width: int, count: int) -> Program:
    """A product with a one-hot matrix, which is a gather."""

    def torch(torch: Any) -> Callable:
        return lambda x, i: torch.nn.functional.one_hot(i.long(), classes).float() @ x

    return Program(
        f"one_hot({count}, {classes}) @ {classes}x{width}",
        _indexed(classes, width, count=count),
        lambda jax: lambda x, i: jax.nn.one_hot(i, classes) @ x,
        lambda x, i: np.eye(classes, dtype="f4")[i] @ x,
        torch,
    )


def _one_hot_loss(rows: int, classes: int) -> Program:
    """Cross entropy with labels as one-hot rows."""

    def torch(torch: Any) -> Callable:
        return lambda x, i: torch.nn.functional.cross_entropy(x, i.long())

    def jax(jax: Any) -> Callable:
        return lambda x, i: -(jax.nn.log_softmax(x) * jax.nn.one_hot(i, classes)).sum(1).mean()

    def make(rng: np.random.Generator) -> tuple:
        return rng.standard_normal((rows, classes)).astype("f4"), rng.integers(0, classes, rows).astype("i4")

    return Program(f"one-hot cross entropy, {rows}x{classes}", make, jax, None, torch)


def _dynamic_slices(n: int, size: int, count: int) -> Program:
    """Windows at places that are known only when the program runs."""

    def jax(jax: Any) -> Callable:
        def window(x: Any, start: Any) -> Any:
            return jax.lax.dynamic_slice(x, (start,), (size,))

        return lambda x, starts: jax.vmap(window, (None, 0))(x, starts) + 1

    def make(rng: np.random.Generator) -> tuple:
        return rng.standard_normal(n).astype("f4"), rng.integers(0, n - size, count).astype("i4")

    return Program(
        f"{count} dynamic slices of {size} from {n}",
        make,
        jax,
        lambda x, starts: np.lib.stride_tricks.sliding_window_view(x, size)[starts] + 1,
        lambda torch: lambda x, starts: x.unfold(0, size, 1)[starts] + 1,
    )


def _dynamic_update(n: int, size: int) -> Program:
    def jax(jax: Any) -> Callable:
        return lambda x, y, k: jax.lax.dynamic_update_slice(x, y * 2, (k, k))

    def numpy(x: Any, y: Any, k: Any) -> Any:
        out = x.copy()
        out[k : k + size, k : k + size] = y * 2
        return out

    def torch(torch: Any) -> Callable:
        def f(x: Any, y: Any, k: Any) -> Any:
            out = x.clone()
            out[k : k + size, k : k + size] = y * 2
            return out

        return f

    def make(rng: np.random.Generator) -> tuple:
        return rng.standard_normal((n, n)).astype("f4"), rng.standard_normal((size, size)).astype("f4"), np.int32(5)

    return Program(f"dynamic_update_slice {size}x{size} in {n}x{n}", make, jax, numpy, torch)


def _where(n: int) -> Program:
    return Program(
        f"where(x > 0, x, y) + where(mask, y, 0), {n}",
        lambda rng: (
            rng.standard_normal(n).astype("f4"),
            rng.standard_normal(n).astype("f4"),
            rng.random(n) < 0.5,
        ),
        lambda jax: lambda x, y, m: jax.numpy.where(x > 0, x, y) + jax.numpy.where(m, y, 0),
        lambda x, y, m: np.where(x > 0, x, y) + np.where(m, y, np.float32(0)),
        lambda torch: lambda x, y, m: torch.where(x > 0, x, y) + torch.where(m, y, 0),
    )


def _nonzero(n: int) -> Program:
    """Where a mask holds, in a static size."""
    return Program(
        f"nonzero of {n}",
        lambda rng: (rng.random(n) < 0.3,),
        lambda jax: lambda m: jax.numpy.nonzero(m, size=n // 4, fill_value=0)[0],
        lambda m: np.nonzero(m)[0][: n // 4],
        lambda torch: lambda m: torch.nonzero(m)[: n // 4, 0],
    )


def _message_passing(nodes: int, edges: int, width: int) -> Program:
    """A graph network's step: rows gathered by senders, weighted, added to receivers."""

    def jax(jax: Any) -> Callable:
        def f(x: Any, senders: Any, receivers: Any, w: Any) -> Any:
            return jax.ops.segment_sum(x[senders] * w[:, None], receivers, nodes)

        return f

    def numpy(x: Any, senders: Any, receivers: Any, w: Any) -> Any:
        out = np.zeros_like(x)
        np.add.at(out, receivers, x[senders] * w[:, None])
        return out

    def torch(torch: Any) -> Callable:
        return lambda x, s, r, w: torch.zeros_like(x).index_add(0, r, x[s] * w[:, None])

    def make(rng: np.random.Generator) -> tuple:
        return (
            rng.standard_normal((nodes, width)).astype("f4"),
            rng.integers(0, nodes, edges).astype("i4"),
            rng.integers(0, nodes, edges).astype("i4"),
            rng.standard_normal(edges).astype("f4"),
        )

    return Program(f"message passing, {nodes} nodes, {edges} edges, {width} wide", make, jax, numpy, torch)


PROGRAMS = [
    _gather(1000, 0, 1000),
    _gather(1_000_000, 0, 1_000_000),
    _gather(10_000, 64, 10_000),
    _gather(100_000, 256, 4096),
    _gather_sum(10_000, 64, 2000),
    _along(1000, 1000, 100),
    _along(100, 1000, 1000),
    _constant_gather(20_000),
    _diagonal(2000),
    _scatter_add(1000, 0, 1000),
    _scatter_add(100_000, 0, 1_000_000),
    _scatter_add(1000, 0, 1_000_000),
    _scatter_add(10_000, 64, 20_000),
    _scatter_add(100_000, 8, 300_000),
    _scatter_set(20_000, 64),
    _segments(1_000_000, 1000, True),
    _segments(1_000_000, 1000, False),
    _segments(10_000, 100, False),
    _embedding_gradient(10_000, 64, 4096),
    _embedding_gradient(50_000, 256, 2048),
    _searchsorted(1000, 1000),
    _searchsorted(100_000, 100_000),
    _searchsorted(100_000, 100_000, True),
    _searchsorted(1_000_000, 1_000_000),
    _histogram(1_000_000, 256),
    _one_hot(1000, 64, 4096),
    _one_hot(10, 128, 1024),
    _one_hot_loss(1024, 1000),
    _dynamic_slices(100_000, 64, 1000),
    _dynamic_update(1000, 300),
    _where(1000),
    _where(1_000_000),
    _nonzero(1_000_000),
    _message_passing(10_000, 50_000, 32),
]
