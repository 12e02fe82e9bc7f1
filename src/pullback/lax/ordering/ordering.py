"""Sorted orders with NumPy: stable ones from its fast unstable sorts.

NumPy sorts integers of 64 bits many times faster than it sorts stably or by index. A key of up to 32 bits above the
place of its element is such an integer, and no two are equal: sorting them is a stable sort by index.
"""

from __future__ import annotations

import numpy as np

from pullback.util import dtypes

SMALL = 1000  # elements below which NumPy's own stable sort is as fast


def sortable(x: np.ndarray) -> np.ndarray:
    """Keys of a type of NumPy's own, whose sorts put NaN last; those of ml_dtypes put it anywhere."""
    if x.dtype.num < 256:
        return x
    return x.astype(np.float32 if dtypes.kind_of(x.dtype) == "f" else np.int8)


def unsigned_keys(x: np.ndarray) -> np.ndarray:
    """u32 in the order of numbers of up to 32 bits: NaN last, -0 and 0 equal."""
    if x.dtype.kind == "f":
        x = x.astype(np.float32)
        bits = (x + np.float32(0)).view(np.int32)  # -0 + 0 is 0
        signed = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
        signed = np.where(np.isnan(x), np.int32(0x7FFFFFFF), signed)
        return signed.view(np.uint32) ^ np.uint32(0x80000000)
    if x.dtype.kind == "i":
        return x.astype(np.int32).view(np.uint32) ^ np.uint32(0x80000000)
    return x.astype(np.uint32)


def _placed_keys(x: np.ndarray, descending: bool) -> np.ndarray:
    """u64[..., n]: the key above the place, for each element along the last axis."""
    keys = unsigned_keys(x)
    keys = ~keys if descending else keys
    return keys.astype(np.uint64) << np.uint64(32) | np.arange(x.shape[-1], dtype=np.uint64)


def _places(keys: np.ndarray) -> np.ndarray:
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def stable_order(x: np.ndarray, axis: int) -> np.ndarray:
    """The places of the elements along an axis in ascending order; equal elements in the order that they have."""
    x = sortable(x)
    if x.size < SMALL or x.dtype.kind == "c":
        return np.argsort(x, axis, kind="stable")
    if x.dtype.itemsize <= 4:
        rows = np.moveaxis(x, axis, -1)
        return np.moveaxis(_places(np.sort(_placed_keys(rows, False), -1)), -1, axis)
    order = np.argsort(x, axis)
    ordered = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
    missing = ordered != ordered
    ties = (ordered[..., 1:] == ordered[..., :-1]) | (missing[..., 1:] & missing[..., :-1])
    return np.argsort(x, axis, kind="stable") if np.any(ties) else order


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers in the total order of floats, which is that of their bits but for the order of negative ones."""
    if dtypes.kind_of(x.dtype) != "f":
        return x
    if x.dtype.itemsize == 1:  # of which not all have a sign, or as many bits as a byte
        x = x.astype(np.float32)
    bits = x.view(f"int{8 * x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ dtypes.iinfo(bits.dtype).max, bits)


def largest(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    """The places of the k largest elements along an axis, descending; the first of equal ones first. Floats are in
    their total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN.
    """
    x = sortable(total_order(x))
    n = x.shape[axis]
    if x.size >= SMALL and x.dtype.itemsize <= 4 and x.dtype.kind != "c" and k:
        keys = _placed_keys(np.moveaxis(x, axis, -1), True)
        if 4 * k < n:
            keys = np.partition(keys, k - 1, -1)[..., :k]
        return np.moveaxis(_places(np.sort(keys, -1)[..., :k]), -1, axis)
    # Ascending and stable in reverse order, read backwards.
    order = stable_order(np.flip(x, axis), axis)
    return n - 1 - np.flip(np.take(order, range(n - k, n), axis), axis)
