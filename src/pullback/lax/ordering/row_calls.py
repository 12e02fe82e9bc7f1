"""Calls of the extension's functions for rows: sorts, selections. See ext/sorting/sorting.h and
ext/sorting/selection.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# The numbers by which the extension knows the types of elements; ext/sorting/sort_keys.h.
KINDS = {
    "bool": 0,
    **{name: number for number, name in enumerate(("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"))},
    "f16": 8,
    "bf16": 9,
    "f32": 10,
    "f64": 11,
}


def as_rows(ctx: Any, storage: Any, axis: int) -> Any:
    """Storage as [rows, n] with the elements along `axis` side by side, copied if they are not."""
    n = storage.shape[axis]
    if axis != storage.ndim - 1:
        others = [a for a in range(storage.ndim) if a != axis]
        storage = storage.transposed((*others, axis))
    return ctx.contiguous(storage).reshaped((math.prod(storage.shape[:-1]), n))


@contextmanager
def result_rows(ctx: Any, results: Sequence[Any], axis: int) -> Iterator[list[Any]]:
    """The results as [rows, n], or memory for these that is copied to the results at the end."""
    rows, copies = [], []
    for result in results:
        n = result.shape[axis]
        shape = (math.prod(result.shape) // max(n, 1), n)
        if axis == result.ndim - 1:
            rows.append(result.reshaped(shape))
            continue
        others = [a for a in range(result.ndim) if a != axis]
        moved = result.transposed((*others, axis))
        held = ctx.temporary(result.dtype, shape)
        rows.append(held)
        copies.append((moved, held.reshaped(moved.shape)))
    yield rows
    for moved, held in copies:
        ctx.copy(moved, held)


def call_rows(ctx: Any, symbol: str, x: Any, numbers: Sequence[int], memory: Sequence[Any]) -> None:
    """symbol(kind of x, leading number if any, rows, n, other numbers, addresses)."""
    rows, n = x.shape
    head = list(numbers[:1]) if symbol in _SIZE_FIRST else []
    rest = numbers[len(head) :]
    values = (KINDS[x.dtype], *head, rows, n, *rest)
    ctx.call(symbol, *[ctx.b.index(v) for v in values], *[ctx.address(m) for m in memory])


_SIZE_FIRST = ("pb_sort_pairs", "pb_partition")
