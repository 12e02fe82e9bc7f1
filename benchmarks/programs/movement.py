"""Movement: transposed operands, joins, padding, shifts, reversals, repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program


def _normal(*shapes: tuple[int, ...], dtype: str = "f4") -> Callable[[np.random.Generator], tuple]:
    """Arrays of the given shapes."""

    def make(rng: np.random.Generator) -> tuple:
        if np.dtype(dtype).kind in "iu":
            return tuple(rng.integers(0, 100, shape).astype(dtype) for shape in shapes)
        if np.dtype(dtype).kind == "c":
            return tuple((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype) for s in shapes)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return make


def _permuted(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "f4") -> Program:
    """A permutation written out."""
    text = "x".join(map(str, shape))
    return Program(
        f"transpose {axes} of {text}, {dtype}",
        inputs=_normal(shape, dtype=dtype),
        jax=lambda jax: lambda x: jax.numpy.transpose(x, axes),
        numpy=lambda x: np.ascontiguousarray(np.transpose(x, axes)),
        torch=lambda torch: lambda x: x.permute(axes).contiguous(),
        x64=np.dtype(dtype).itemsize == 8 and dtype != "c8",
    )


def _transpose_add(n: int, dtype: str = "f4") -> Program:
    return Program(
        f"transpose + add, {n} x {n}, {dtype}",
        inputs=_normal((n, n), dtype=dtype),
        jax=lambda jax: lambda x: x.T + x,
        numpy=lambda x: x.T + x,
        torch=lambda torch: lambda x: x.T + x,
        x64=dtype in ("f8", "i8"),
    )


def _chain(n: int) -> Program:
    """Concatenation, padding, a roll and a reversal, with arithmetic at the end."""

    def jax(jax: Any) -> Callable:
        jnp = jax.numpy

        def f(x: Any, y: Any) -> Any:
            joined = jnp.concatenate([x, y])
            padded = jnp.pad(joined, (3, 5))
            return jnp.roll(padded, 7)[::-1] * 2 + 1

        return f

    def numpy(x: Any, y: Any) -> Any:
        return np.roll(np.pad(np.concatenate([x, y]), (3, 5)), 7)[::-1] * 2 + 1

    def torch(torch: Any) -> Callable:
        def f(x: Any, y: Any) -> Any:
            padded = torch.nn.functional.pad(torch.cat([x, y]), (3, 5))
            return torch.flip(torch.roll(padded, 7), (0,)) * 2 + 1

        return f

    return Program(f"concat, pad, roll, reverse, {2 * n}", _normal((n,), (n,)), jax, numpy, torch)


def _chain_2d(n: int) -> Program:
    def jax(jax: Any) -> Callable:
        jnp = jax.numpy

        def f(x: Any, y: Any) -> Any:
            joined = jnp.concatenate([x, y], axis=1)
            return jnp.roll(jnp.pad(joined, ((1, 1), (2, 2))), (3, 5), (0, 1))[:, ::-1]

        return f

    def numpy(x: Any, y: Any) -> Any:
        joined = np.pad(np.concatenate([x, y], axis=1), ((1, 1), (2, 2)))
        return np.ascontiguousarray(np.roll(joined, (3, 5), (0, 1))[:, ::-1])

    def torch(torch: Any) -> Callable:
        def f(x: Any, y: Any) -> Any:
            joined = torch.nn.functional.pad(torch.cat([x, y], dim=1), (2, 2, 1, 1))
            return torch.flip(torch.roll(joined, (3, 5), (0, 1)), (1,))

        return f

    return Program(f"concat, pad, roll, reverse, {n} x {2 * n}", _normal((n, n), (n, n)), jax, numpy, torch)


def _stack(n: int, axis: int, count: int = 4) -> Program:
    return Program(
        f"stack of {count} along {axis}, {n}",
        inputs=_normal(*[(n,)] * count),
        jax=lambda jax: lambda *xs: jax.numpy.stack(xs, axis),
        numpy=lambda *xs: np.stack(xs, axis),
        torch=lambda torch: lambda *xs: torch.stack(xs, axis),
    )


def _tile(n: int, repeats: tuple[int, ...]) -> Program:
    return Program(
        f"tile {repeats} of {n} x {n}",
        inputs=_normal((n, n)),
        jax=lambda jax: lambda x: jax.numpy.tile(x, repeats),
        numpy=lambda x: np.tile(x, repeats),
        torch=lambda torch: lambda x: x.tile(repeats),
    )


def _repeat(n: int, m: int, count: int, axis: int) -> Program:
    return Program(
        f"repeat {count} along {axis} of {n} x {m}",
        inputs=_normal((n, m)),
        jax=lambda jax: lambda x: jax.numpy.repeat(x, count, axis),
        numpy=lambda x: np.repeat(x, count, axis),
        torch=lambda torch: lambda x: x.repeat_interleave(count, axis),
    )


def _flip(n: int, axes: tuple[int, ...]) -> Program:
    return Program(
        f"flip {axes} of {n} x {n}",
        inputs=_normal((n, n)),
        jax=lambda jax: lambda x: jax.numpy.flip(x, axes),
        numpy=lambda x: np.ascontiguousarray(np.flip(x, axes)),
        torch=lambda torch: lambda x: torch.flip(x, axes),
    )


def _roll(n: int, shift: int, axis: int) -> Program:
    return Program(
        f"roll {shift} along {axis} of {n} x {n}, plus itself",
        inputs=_normal((n, n)),
        jax=lambda jax: lambda x: jax.numpy.roll(x, shift, axis) + x,
        numpy=lambda x: np.roll(x, shift, axis) + x,
        torch=lambda torch: lambda x: torch.roll(x, shift, axis) + x,
    )


def _interleave(n: int) -> Program:
    """Two vectors, element by element: strided stores or shuffles."""
    return Program(
        f"interleave two of {n}",
        inputs=_normal((n,), (n,)),
        jax=lambda jax: lambda x, y: jax.numpy.stack([x, y], axis=1).reshape(-1),
        numpy=lambda x, y: np.stack([x, y], axis=1).reshape(-1),
        torch=lambda torch: lambda x, y: torch.stack([x, y], dim=1).reshape(-1),
    )


def _deinterleave(n: int) -> Program:
    return Program(
        f"sum and difference of even and odd elements of {n}",
        inputs=_normal((n,)),
        jax=lambda jax: lambda x: jax.numpy.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]),
        numpy=lambda x: np.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]),
        torch=lambda torch: lambda x: torch.cat([x[::2] + x[1::2], x[::2] - x[1::2]]),
    )


def _heads(batch: int, length: int, heads: int, size: int) -> Program:
    """What attention does with its inputs: one dimension becomes two, of which one moves forward."""
    shape = (batch, length, heads, size)

    return Program(
        f"split heads {'x'.join(map(str, shape))}",
        inputs=_normal((batch, length, heads * size)),
        jax=lambda jax: lambda x: x.reshape(shape).transpose(0, 2, 1, 3) * 0.125,
        numpy=lambda x: np.ascontiguousarray(x.reshape(shape).transpose(0, 2, 1, 3)) * np.float32(0.125),
        torch=lambda torch: lambda x: x.reshape(shape).permute(0, 2, 1, 3).contiguous() * 0.125,
    )


def _triangle(n: int) -> Program:
    return Program(
        f"tril + triu transposed, {n} x {n}",
        inputs=_normal((n, n)),
        jax=lambda jax: lambda x: jax.numpy.tril(x) + jax.numpy.triu(x, 1).T,
        numpy=lambda x: np.tril(x) + np.triu(x, 1).T,
        torch=lambda torch: lambda x: torch.tril(x) + torch.triu(x, 1).T,
    )


def _blocks(n: int) -> Program:
    """A block matrix of four."""

    def jax(jax: Any) -> Callable:
        return lambda a, b, c, d: jax.numpy.block([[a, b.T], [c, d]])

    def torch(torch: Any) -> Callable:
        return lambda a, b, c, d: torch.cat([torch.cat([a, b.T], 1), torch.cat([c, d], 1)])

    return Program(
        f"block of four {n} x {n}, one transposed",
        _normal(*[(n, n)] * 4),
        jax,
        lambda a, b, c, d: np.block([[a, b.T], [c, d]]),
        torch,
    )


PROGRAMS = [
    *(_transpose_add(n) for n in (100, 500, 2000)),
    _transpose_add(2000, "f8"),
    _transpose_add(1000, "i4"),
    _permuted((1000, 1000), (1, 0)),
    _permuted((3000, 3000), (1, 0)),
    _permuted((3000, 3000), (1, 0), "u1"),
    _permuted((1500, 1500), (1, 0), "c8"),
    _permuted((2000, 2000), (1, 0), "f8"),
    _permuted((2000, 2000), (1, 0), "i2"),
    _permuted((128, 128, 128), (2, 1, 0)),
    _permuted((128, 128, 128), (0, 2, 1)),
    _permuted((128, 128, 128), (1, 0, 2)),
    _permuted((32, 64, 64, 32), (0, 3, 1, 2)),
    _permuted((32, 32, 64, 64), (0, 2, 3, 1)),
    _permuted((32, 3, 224, 224), (0, 2, 3, 1)),
    _permuted((32, 224, 224, 3), (0, 3, 1, 2)),
    _permuted((1000, 16, 16), (0, 2, 1)),
    *(_chain(n) for n in (500, 50_000, 5_000_000)),
    _chain_2d(100),
    _chain_2d(1500),
    _stack(1000, 0),
    _stack(1_000_000, 0),
    _stack(1_000_000, 1),
    _stack(1_000_000, 1, 3),
    _tile(100, (3, 4)),
    _tile(500, (3, 4)),
    _repeat(1000, 1000, 3, 0),
    _repeat(1000, 1000, 3, 1),
    _flip(2000, (0,)),
    _flip(2000, (1,)),
    _flip(2000, (0, 1)),
    _roll(2000, 17, 0),
    _roll(2000, 17, 1),
    _interleave(1_000_000),
    _deinterleave(2_000_000),
    _heads(8, 512, 8, 64),
    _triangle(1000),
    _blocks(600),
]
