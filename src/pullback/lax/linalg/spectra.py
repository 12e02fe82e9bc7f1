"""What decompositions in lanes share: matrices are scaled before, and values are put in order behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.lax.linalg.small_matrices import Index, Lanes, fold, number, repeat

SCALE, POISON, LEFT = 0, 1, 2  # what a lane notes of its matrix: power of two, NaN if not finite, what is left to do


def limits(dtype: str) -> Any:
    """NumPy's `finfo` of a type of floats."""
    return np.finfo({"f32": np.float32, "f64": np.float64}[dtype])


def prepare(
    b: Any,
    a: Lanes,
    notes: Lanes,
    rows: int,
    width: Callable[[Index], Index],
    entry: Callable[[Index, Index], tuple[Index, Index]],
) -> None:
    """Scales a matrix by a power of two, so that no square overflows; one that is not finite becomes zero.

    Of row i the first `width(i)` elements are read, the j-th at `entry(i, j)`.
    """
    dtype = a.work.dtype
    zero = b.const(dtype, 0.0)
    # The bits of the largest element without its fraction are the power of two below it.
    integer, kept = ("i32", 0x7F800000) if dtype == "f32" else ("i64", 0x7FF0000000000000)

    def look(i: Index, *found: Any) -> list[Any]:
        def element(j: Index, largest: Any, poison: Any) -> list[Any]:
            x = a[entry(i, j)]
            return [b.op("max", largest, b.op("abs", x)), b.add(poison, b.mul(x, zero))]

        return fold(b, 0, width(i), found, element)

    largest, poison = (b.let(x) for x in fold(b, 0, rows, [zero, zero], look))
    finite = b.let(b.op("eq", poison, zero))
    power = b.bitcast(b.op("and", b.bitcast(b.select(finite, largest, zero), integer), b.const(integer, kept)), dtype)
    smallest = b.const(dtype, float(limits(dtype).tiny))
    power = b.let(b.op("min", b.op("max", power, smallest), b.op("div", b.const(dtype, 1.0), smallest)))
    factor = b.let(b.op("div", b.const(dtype, 1.0), power))
    notes[SCALE, 0], notes[POISON, 0] = power, poison

    def scale(i: Index) -> None:
        def element(j: Index) -> None:
            a[entry(i, j)] = b.select(finite, b.mul(a[entry(i, j)], factor), zero)

        repeat(b, 0, width(i), element)

    repeat(b, 0, rows, scale)


def rank(b: Any, w: Lanes, places: Lanes, n: int, descending: bool) -> None:
    """places[i]: the number of elements that come before the i-th in order."""
    zero, one = b.const("i32", 0), b.const("i32", 1)

    def of(i: Index) -> None:
        own = w[i, 0]

        def count(j: Index, found: Any) -> list[Any]:
            other = w[j, 0]
            comes = b.op("gt" if descending else "lt", other, own)
            ties = b.op("and", b.op("eq", other, own), b.op("lt", number(b, j), number(b, i)))
            return [b.add(found, b.select(b.op("or", comes, ties), one, zero))]

        places[i, 0] = fold(b, 0, n, [zero], count)[0]

    repeat(b, 0, n, of)


def add_to_all(b: Any, x: Lanes, value: Any) -> None:
    """Adds a number of each lane to all elements."""
    with b.loop(x.work.shape[0], "sequential") as i:
        at = i, x.lane
        x.ctx.store(x.work, at, b.add(x.ctx.load(x.work, at), value))


__all__ = ["LEFT", "POISON", "SCALE", "add_to_all", "limits", "prepare", "rank"]
