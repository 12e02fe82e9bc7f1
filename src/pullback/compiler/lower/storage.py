"""Where an array lies: a buffer, an offset, a shape and strides, all in elements; and which value takes over whose
memory.

`offset_of` turns an index into a flat offset. Index components that split one flat counter (f // n and f % n) are
joined again, so that loops over merged axes have no division in their addresses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from pullback.loops.ir import ITEMSIZE, Buffer, Builder, Const, Expr, Op
from pullback.util.record import record

Shape = tuple[int, ...]


def row_major(shape: Sequence[int]) -> Shape:
    """Strides of a contiguous array."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


@record
class Storage:
    """The elements buffer[offset + sum(index * strides)]."""

    buffer: Buffer
    offset: Expr | int
    shape: Shape
    strides: Shape
    ndim: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ndim", len(self.shape))

    @property
    def dtype(self) -> str:
        """The loop IR type of the elements."""
        return self.buffer.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE[self.dtype]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether elements lie row by row without gaps."""
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != step:
                return False
            step *= n
        return True

    def at(self, i: Expr | int) -> Storage:
        """The element `i` along the first axis, an array of one dimension less."""
        return Storage(self.buffer, _plus(self.offset, _times(i, self.strides[0])), self.shape[1:], self.strides[1:])

    def slice(self, starts: Sequence[Expr | int], sizes: Sequence[int]) -> Storage:
        """The box of `sizes` that begins at `starts`."""
        offset = self.offset
        for start, stride in zip(starts, self.strides):
            offset = _plus(offset, _times(start, stride))
        return Storage(self.buffer, offset, tuple(sizes), self.strides)

    def transposed(self, permutation: Sequence[int]) -> Storage:
        """The same elements with axes in another order."""
        return Storage(
            self.buffer,
            self.offset,
            tuple(self.shape[a] for a in permutation),
            tuple(self.strides[a] for a in permutation),
        )

    def reshaped(self, shape: Sequence[int]) -> Storage:
        """The same elements with another shape; AssertionError unless contiguous, or of this shape."""
        if tuple(shape) == self.shape:
            return self
        assert self.contiguous and math.prod(shape) == self.size, (self.shape, self.strides, shape)
        return Storage(self.buffer, self.offset, tuple(shape), row_major(shape))

    def same_memory(self, other: Storage) -> bool:
        """Whether both begin at the same element (offsets are compared as objects)."""
        if self.buffer is not other.buffer:
            return False
        a, b = self.offset, other.offset
        return a is b or _constant(a) == _constant(b) is not None


def begin_at(storages: Iterable[Storage]) -> Callable[[Storage], bool]:
    """Says of a storage whether it begins where one of `storages` does."""
    inside: dict[Buffer, list[Storage]] = {}
    for storage in storages:
        inside.setdefault(storage.buffer, []).append(storage)
    return lambda storage: any(storage.same_memory(other) for other in inside.get(storage.buffer, ()))


def contiguous(buffer: Buffer, shape: Sequence[int], offset: Expr | int = 0) -> Storage:
    """Row-major storage in a buffer."""
    return Storage(buffer, offset, tuple(shape), row_major(shape))


def merged_stride(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """The stride of the one axis that walks all elements in order, or None."""
    real = [(n, step) for n, step in zip(sizes, strides) if n != 1]
    for (_, outer), (n, inner) in itertools.pairwise(real):
        if outer != inner * n:
            return None
    return real[-1][1] if real else 1


def _constant(x: Expr | int) -> int | None:
    return x if isinstance(x, int) else x.value if isinstance(x, Const) else None


def _times(i: Expr | int, n: int) -> Expr | int:
    if _constant(i) == 0 or n == 0:
        return 0
    return i * n


def _plus(a: Expr | int, b: Expr | int) -> Expr | int:
    if _constant(b) == 0:
        return a
    if _constant(a) == 0:
        return b
    return a + b


def offset_of(b: Builder, storage: Storage, index: Sequence[Expr]) -> Expr:
    """The flat offset of the element at `index`."""
    terms: list[tuple[Expr, int]] = []  # from the last axis to the first
    for component, n, stride in zip(reversed(index), reversed(storage.shape), reversed(storage.strides)):
        if n == 1 or stride == 0 or _constant(component) == 0:
            continue
        if terms:
            joined = _join(b, component, stride, *terms[-1])
            if joined is not None:
                terms[-1] = (joined, terms[-1][1])
                continue
        terms.append((component, stride))
    offset: Expr | int = storage.offset
    for component, stride in reversed(terms):
        term = component if stride == 1 else b.mul(component, b.index(stride))
        offset = term if _constant(offset) == 0 else b.add(b.index(offset), term)
    return b.index(offset)


def _join(b: Builder, left: Expr, left_stride: int, right: Expr, stride: int) -> Expr | None:
    """left * left_stride + right * stride as one component times `stride`, where they are parts of one counter."""
    if stride == 0 or left_stride % stride:
        return None
    n = left_stride // stride
    if not (isinstance(right, Op) and right.name == "floormod" and _constant(right.args[1]) == n):
        return None
    f = right.args[0]
    if _is_quotient(left, f, n):
        return f
    if isinstance(left, Op) and left.name == "floormod" and _is_quotient(left.args[0], f, n):
        m = _constant(left.args[1])
        return None if m is None else b.floormod(f, b.index(n * m))
    return None


def _is_quotient(expr: Expr, f: Expr, n: int) -> bool:
    """Whether `expr` is f // n, in one division or several, also where f is a quotient itself."""
    (of, divisor), (f, factor) = _divided(expr), _divided(f)
    return of is f and divisor == factor * n


def _divided(expr: Expr) -> tuple[Expr, int]:
    """(x, n) where an expression is x // n: what is rounded down twice is rounded down once."""
    n = 1
    while isinstance(expr, Op) and expr.name == "floordiv" and (by := _constant(expr.args[1])) is not None and by > 0:
        expr, n = expr.args[0], n * by
    return expr, n
