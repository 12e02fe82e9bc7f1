"""Integers that fit in 16 bits, two in a word of 32: one instruction multiplies two such pairs and adds the products.

All CPUs with AVX2 have it. What is added is exact, modulo 2**32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.compiler.lower.storage import Storage

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

HALF_WORDS = ("i8", "u8", "i16")


def in_words(ctx: NestContext, s: Storage, axis: int, dtype: str) -> Storage:
    """Two neighbours along an axis in one word each, of a type of 32 bits; a zero after an odd number of them."""
    b, extent = ctx.b, s.shape[axis]
    words = ctx.temporary(dtype, (*s.shape[:axis], -(-extent // 2), *s.shape[axis + 1 :]), "words")
    with ctx.loops(words.shape) as index:
        halves = []
        for place in range(2):
            at = index[axis] * 2 + place
            inside = b.lt(at, b.index(extent)) if place and extent % 2 else None
            held = at if inside is None else b.op("min", at, b.index(extent - 1))
            half = b.convert(b.convert(ctx.load(s, (*index[:axis], held, *index[axis + 1 :])), "i32"), dtype)
            halves.append(half if inside is None else b.select(inside, half, b.const(dtype, 0)))
        lower = b.op("and", halves[0], b.const(dtype, 0xFFFF))
        ctx.store(words, index, b.op("or", lower, b.shl(halves[1], 16)))
    return words


def as_it_lies(ctx: NestContext, s: Storage, axis: int, dtype: str) -> Storage:
    """The same in the order that the array has in memory, with axes where they are in it."""
    order = sorted(range(s.ndim), key=lambda a: -abs(s.strides[a]))
    words = in_words(ctx, s.transposed(order), order.index(axis), dtype)
    return words.transposed([order.index(a) for a in range(s.ndim)])


__all__ = ["HALF_WORDS", "as_it_lies", "in_words"]
