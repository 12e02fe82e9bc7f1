"""What plans are made of: values in strided memory, loops over them, memory for intermediate results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.util.record import frozen_record


class Temporary:
    """Memory of an intermediate result, `nbytes` long; identity is its name."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


@frozen_record
class Value:
    """Where an array of the program lies: strides and offset, in bytes, into the memory of `base`.

    `base` is ("in", k), ("const", k), ("out", k) or a Temporary.
    """

    base: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order, without gaps."""
        return self.strides == contiguous_strides(self.shape, self.dtype.itemsize) or math.prod(self.shape) == 0


def contiguous_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of an array in row-major order; those of axes of length 1 are as if they were longer."""
    strides: list[int] = []
    step = itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def coalesce(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """(lengths, strides of each operand) of as few dimensions as visit the same elements in the same order."""
    dims: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if dims and all(m[-1] == s[d] * n for m, s in zip(merged, strides)):
            dims[-1] *= n
            for m, s in zip(merged, strides):
                m[-1] = s[d]
        else:
            dims.append(n)
            for m, s in zip(merged, strides):
                m.append(s[d])
    return dims, merged


_loops: dict[Any, Any] = {}


def ufunc_loop(ufunc: np.ufunc, types: tuple[np.dtype, ...]) -> Any:
    """NumPy's inner loop for exactly these types of operands and result; NotImplementedError if it would cast."""
    key = (ufunc, *types)
    found = _loops.get(key)
    if found is None:
        try:
            resolved, found = _private(ufunc)._resolve_dtypes_and_context((*types[:-1], None))
        except TypeError:
            raise NotImplementedError(f"plan: {ufunc.__name__} of {types}") from None
        if resolved != types:
            raise NotImplementedError(f"plan: {ufunc.__name__} of {types}")
        _private(ufunc)._get_strided_loop(found)
        _loops[key] = found
    return found


def broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    """The value, or a scalar as an array of a shape; NotImplementedError for anything else."""
    if x.shape == shape:
        return x
    if x.shape:
        raise NotImplementedError("plan: operands of different shapes")
    return replace(x, shape=shape, strides=(0,) * len(shape))


_CODES = "?bhilBHILfdFD"  # the types that our conversions know, by NumPy's characters


def is_convertible(source: np.dtype, target: np.dtype) -> bool:
    """Whether there is a loop for the conversion; that from complex to real types is left to the reference."""
    if source.char not in _CODES or target.char not in _CODES:
        return False
    return source.kind != "c" or target.kind in "cb"


def _private(ufunc: Any) -> Any:
    """NumPy's type stubs do not show these two methods, which it has for callers like this one."""
    return ufunc


def place(uses: Sequence[Sequence[Any]]) -> tuple[dict[Temporary, int], int]:
    """(offset of each Temporary, bytes of all) for steps that use these bases; memory is reused after a last use."""
    last = {base: i for i, bases in enumerate(uses) for base in bases if isinstance(base, Temporary)}
    offsets: dict[Temporary, int] = {}
    free: list[tuple[int, int]] = []  # (size, offset)
    end = 0
    for i, bases in enumerate(uses):
        for base in bases:
            if not isinstance(base, Temporary) or base in offsets:
                continue
            size = -(-max(base.nbytes, 1) // _core.ALIGNMENT) * _core.ALIGNMENT
            fitting = min((block for block in free if block[0] >= size), default=None)
            if fitting is None:
                offsets[base] = end
                end += size
            else:
                free.remove(fitting)
                offsets[base] = fitting[1]
                if fitting[0] > size:
                    free.append((fitting[0] - size, fitting[1] + size))
        for base in {b for b in bases if isinstance(b, Temporary) and last[b] == i}:
            free.append((-(-max(base.nbytes, 1) // _core.ALIGNMENT) * _core.ALIGNMENT, offsets[base]))
    return offsets, end
