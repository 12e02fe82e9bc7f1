"""Loops over storages, and copies of one to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pullback.compiler.lower.storage import Storage, contiguous, offset_of
from pullback.loops.ir import Builder, Expr


@contextmanager
def loops(b: Builder, shape: Sequence[int], role: str = "parallel") -> Iterator[list[Expr]]:
    """Nested loops over a shape; gives the index. Axes of size 1 make no loop."""
    with ExitStack() as stack:
        yield [b.index(0) if n == 1 else stack.enter_context(b.loop(n, role)) for n in shape]  # type: ignore[arg-type]


def copy(b: Builder, dst: Storage, src: Storage) -> None:
    """dst[...] = src, of equal shapes; nothing if they are the same memory."""
    if dst.shape != src.shape:
        raise AssertionError(f"copy: {src.shape} to {dst.shape}")
    if dst.same_memory(src) and dst.strides == src.strides:
        return
    if dst.contiguous and src.contiguous:
        size = (dst.size,)
        dst, src = dst.reshaped(size), src.reshaped(size)
    with loops(b, dst.shape) as index:
        b.store(dst.buffer, offset_of(b, dst, index), b.load(src.buffer, offset_of(b, src, index)))


def swap_in(b: Builder, pairs: Sequence[tuple[Storage, Storage]]) -> None:
    """Copy (dst, src) pairs as if all were read before any is written."""
    pairs = [(dst, src) for dst, src in pairs if not (dst.same_memory(src) and dst.strides == src.strides)]
    written = [dst.buffer for dst, _ in pairs]
    ready = []
    for dst, src in pairs:
        if src.buffer in written:
            held = contiguous(b.temporary("held", src.dtype, src.size), src.shape)
            copy(b, held, src)
            src = held
        ready.append((dst, src))
    for dst, src in ready:
        copy(b, dst, src)
