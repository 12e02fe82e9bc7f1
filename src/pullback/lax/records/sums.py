"""Sums by NumPy that are as accurate as pairwise ones over any axes.

NumPy adds pairwise along the innermost axis only; along others it adds row by row, so that the error grows with their
number. Here rows are added in few large parts first (`folded` says which).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

ONE_BY_ONE = 8  # rows that are added one after the other lose hardly more than by pairs
CHAIN = 128  # products that BLAS may add one after the other where it does not make blocks of them
BLOCK = 32  # elements of a running sum that are added one after the other
FEW_TERMS = 8  # of a product of matrices, which programs and plans add one after the other


def folded(lengths: Sequence[int]) -> tuple[int, int, int] | None:
    """(k, parts, rows): of axes of these lengths, the k-th is to be added up in so many parts of so many rows; what is
    left comes to the first rows. None where all may be added one by one.
    """
    if math.prod(lengths) <= ONE_BY_ONE:
        return None
    k = max(range(len(lengths)), key=lengths.__getitem__)
    n = lengths[k]
    parts = min(ONE_BY_ONE, n if n <= ONE_BY_ONE else -(-n // ONE_BY_ONE))
    return k, parts, n // parts


def pieces(n: int, parts: int, rows: int) -> Iterator[slice]:
    """The parts of an axis of n elements, and what is left."""
    yield from (slice(k * rows, (k + 1) * rows) for k in range(parts))
    if n > parts * rows:
        yield slice(parts * rows, n)


def sum_over(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The sum over axes, in the dtype of x; 16-bit floats are to be made wider before."""
    if x.dtype.kind not in "fc" or not x.size:
        return np.asarray(np.sum(x, axis=tuple(axes), dtype=x.dtype))
    left = sorted(axes)
    inner = [d for d in left if x.ndim - d <= sum(e >= d for e in left)]  # the last axes
    if len(inner) < len(left) or not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
        x = np.add.reduce(x.reshape(*x.shape[: x.ndim - len(inner)], -1), axis=-1) if inner else x
        left = left[: len(left) - len(inner)]
    else:
        return np.asarray(np.sum(x, axis=tuple(left)))
    while (found := folded([x.shape[d] for d in left])) is not None:
        k, parts, rows = found
        axis, total = left[k], None
        at: list = [slice(None)] * x.ndim
        for piece in pieces(x.shape[axis], parts, rows):
            at[axis] = piece
            part = x[tuple(at)]
            if total is None:
                total = part.copy()
            else:
                at[axis] = slice(0, part.shape[axis])
                total[tuple(at)] += part
        assert total is not None
        x = total
    return np.asarray(np.sum(x, axis=tuple(left)))


def running_sum(x: np.ndarray, axis: int) -> np.ndarray:
    """The running sums along an axis, in the dtype of x."""
    kind = x.dtype.char
    if kind in "fF":  # the rounding errors of a wider type do not reach the result
        return np.add.accumulate(x, axis, dtype=np.float64 if kind == "f" else np.complex128).astype(x.dtype)
    if kind not in "dD" or x.shape[axis] <= BLOCK:
        return np.add.accumulate(x, axis, dtype=x.dtype)
    rows = np.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    whole = n // BLOCK * BLOCK
    blocks = np.add.accumulate(rows[..., :whole].reshape(*rows.shape[:-1], whole // BLOCK, BLOCK), -1)
    before = running_sum(blocks[..., -1], blocks.ndim - 2)
    blocks[..., 1:, :] += before[..., :-1, None]
    rest = np.add.accumulate(rows[..., whole:], -1) + before[..., -1:]
    return np.moveaxis(np.concatenate([blocks.reshape(*rows.shape[:-1], whole), rest], -1), -1, axis)


def chain_of(dtype: np.dtype) -> int:
    """How many products BLAS is left to add in an order of its own; for real numbers it adds in four lanes at least."""
    return CHAIN if dtype.kind == "c" else 4 * CHAIN


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x @ y of matrices, with as many axes before. With a vector, BLAS may add one by one."""
    (*lead, m, k), n = x.shape, y.shape[-1]
    chain = chain_of(x.dtype)
    if x.dtype.kind not in "fc" or k <= 2 * chain or min(m, n) != 1:
        return np.matmul(x, y)
    blocks = k // chain
    whole = blocks * chain
    left = np.swapaxes(x[..., :whole].reshape(*lead, m, blocks, chain), -2, -3)
    right = y[..., :whole, :].reshape(*y.shape[:-2], blocks, chain, n)
    parts = [np.matmul(left, right), np.matmul(x[..., whole:], y[..., whole:, :])[..., None, :, :]]
    total = np.concatenate(parts, -3)
    return sum_over(total, (total.ndim - 3,))
