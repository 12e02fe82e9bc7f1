"""Vectors interleaved and taken apart: memory in which elements of several kinds take turns. Squares transposed.

An even number of kinds is halved by a round of shuffles of two registers, as the machine has them; one shuffle of
everything is something that LLVM does not always take apart well. Of an odd number of kinds, one kind's elements in
successive vectors lie in different lanes: they are blended into one vector and put in order by one permutation.

Measured: 10,000 3 x 3 matrices times vectors 17 us by single elements, now 9.5, 4 x 4 28 and 10, sums over the middle
axis of 10,000 x 4 x 3 20 and 6 (AVX2: 15, 11; 28, 20; 20, 9); where a quarter of the kinds is read, single elements
are as quick. Every second pixel of three colours, in four such sums of 512 x 640, took 180 us by gathers, now 70.
With AVX-512 parts of complex elements take turns, too: 1,000 rows of 4 by Fourier took 2.5 us, and 33 ms to compile,
now 1.6 and 14; with AVX2 elements by themselves are quicker.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from pullback.util.record import NamedTuple

from .code import Code

# How many kinds may take turns: powers of two, for the rounds, small odd numbers, with which each kind has lanes of
# its own in successive vectors, and twice three, for every second pixel; beyond 8 single elements are as quick.
INTERLEAVED = (2, 3, 4, 5, 6, 7, 8)
# The same where a good part of the kinds is read, or there are lanes enough: small matrices, and points of some
# coordinates; and how many may be stored so.
WIDE = (9, 10, 11, 12, 13, 14, 15, 16)
WIDE_STORED = (9, 12, 16)
ENOUGH = 3  # times the kinds read that there may be
LANES_OF_KIND = 5  # times as many lanes as kinds, of which one is read


def read_in_turns(step: int | None, lanes: int, kinds: Callable[[], int]) -> bool:
    """Whether elements `step` apart, of which so many neighbours are read, are better shuffled than read one by one."""
    if step is None or abs(step) in INTERLEAVED:
        return step is not None
    return abs(step) in WIDE and (lanes >= LANES_OF_KIND * abs(step) or ENOUGH * kinds() >= abs(step))


def parts_in_turns(code: Code, step: int | None, most: int) -> bool:
    """Whether parts of complex elements, `step` elements apart, are better shuffled than each element moved by itself:
    where one instruction picks from two registers, and no more than `most` parts take turns. With as many as a register
    holds, loads wait for registers: rows of 8 by Fourier, 1,000 of them, took 4.5 us, would take 5.7.
    """
    return code.picks > 0 and step is not None and abs(step) in INTERLEAVED and 2 * abs(step) <= most


# Of each type of elements, its bytes, its name in LLVM's instructions that pick lanes of two registers, that of AVX2's
# for one register if there is one, and the type of the lanes' numbers.
_PICKED = {
    "i8": (1, "qi", None, "i8"),
    "i16": (2, "hi", None, "i16"),
    "i32": (4, "d", "avx2.permd", "i32"),
    "i64": (8, "q", None, "i64"),
    "float": (4, "ps", "avx2.permps", "i32"),
    "double": (8, "pd", None, "i64"),
}
_OF_ONE = {"qi": "qi", "hi": "hi", "d": "si", "q": "di", "ps": "sf", "pd": "df"}


def shuffled(code: Code, kind: str, x: str, y: str, lanes: Sequence[int]) -> str:
    """The lanes of two vectors, numbered on, that `lanes` lists.

    Where an instruction takes them by their numbers, it is written, with numbers that LLVM does not see: it looks for
    others that do several shuffles at once, for a time that grows with the power of their count, and finds next to
    none. Blends are left to it. Measured (Zen 4): code generation for the lines of 10,000 boards of 3 x 3 as bytes 51
    ms, now 4, least squares by 12 columns 130 and 46, distances in the metric of a covariance 92 and 16.
    """
    picked = _picked(kind, tuple(lanes), y == "poison") if code.picks else None
    if picked is None or picked.bytes < code.picks:
        return _plain(code, kind, x, y, lanes)
    numbers = (picked.numbers, code.unseen(picked.numbers, picked.name, picked.value, x, y))
    if y == "poison":
        return code.intrinsic(picked.instruction, kind, (kind, x), numbers)
    return code.intrinsic(picked.instruction, kind, (kind, x), numbers, (kind, y))


class _Picked(NamedTuple):
    """An instruction that picks lanes, and a global of their numbers."""

    bytes: int  # of an element
    instruction: str
    name: str
    numbers: str  # type
    value: str


@functools.cache
def _picked(kind: str, lanes: tuple[int, ...], one: bool) -> _Picked | None:
    """How whole registers of 32 or 64 bytes are shuffled; None where `lanes` is something else, or a blend."""
    count, _, element = kind.strip("<>").partition(" x ")
    n, known = int(count), _PICKED.get(element)
    if known is None or len(lanes) != n or all(lane % n == k for k, lane in enumerate(lanes)):
        return None
    size, two, narrow, number = known
    if n * size not in (32, 64):
        return None
    bits = 8 * n * size
    name = f"avx512.vpermi2var.{two}.{bits}"
    if one:
        name = narrow if narrow is not None and bits == 256 else f"avx512.permvar.{_OF_ONE[two]}.{bits}"
    value = f"<{', '.join([f'{number} {lane}' for lane in lanes])}>"
    label = f"lanes.{number}.{'.'.join(map(str, lanes))}"
    return _Picked(size, f"llvm.x86.{name}", label, f"<{n} x {number}>", value)


def _picks(code: Code, kind: str, lanes: int) -> bool:
    """Whether an instruction picks lanes of two vectors of a type: what LLVM makes of a permutation and a blend."""
    picked = _picked(kind, (1, 0, *range(2, lanes)), False) if code.picks else None
    return picked is not None and picked.bytes >= code.picks


def _plain(code: Code, kind: str, x: str, y: str, lanes: Sequence[int]) -> str:
    return code.inst(f"shufflevector {kind} {x}, {kind} {y}, {_mask(tuple(lanes))}", x, y)


@functools.cache
def _mask(lanes: tuple[int, ...]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join([f'i32 {k}' for k in lanes])}>"


def interleave(code: Code, kind: str, lanes: int, refs: Sequence[str]) -> list[str]:
    """x0[0], x1[0], ..., x0[1], x1[1], ... of n vectors, as n vectors of the same type."""
    refs, n = list(refs), len(refs)
    if n == 1:
        return refs
    if n % 2:
        placed = [_permuted(code, kind, x, _order(lanes, n, j, inverse=True)) for j, x in enumerate(refs)]
        return [_blended(code, kind, placed, [(q * lanes + p) % n for p in range(lanes)]) for q in range(n)]
    turns = [k // 2 + lanes * (k % 2) for k in range(2 * lanes)]
    pairs = zip(interleave(code, kind, lanes, refs[::2]), interleave(code, kind, lanes, refs[1::2]))
    return [shuffled(code, kind, x, y, part) for x, y in pairs for part in (turns[:lanes], turns[lanes:])]


def deinterleaved(code: Code, kind: str, lanes: int, refs: Sequence[str], j: int) -> str:
    """Every n-th element from j on of n vectors that follow each other: what `interleave` undoes, for one of them.

    Those of other kinds find again what they have in common with it.
    """
    n = len(refs)
    if n == 1:
        return refs[0]
    if n % 2:
        sources = [next(q for q in range(n) if (q * lanes + p) % n == j) for p in range(lanes)]
        order = _order(lanes, n, j)
        if not _picks(code, kind, lanes):
            return _permuted(code, kind, _blended(code, kind, refs, sources), order)
        most = _blended(code, kind, refs[:-1], sources)
        return shuffled(code, kind, most, refs[-1], [p + lanes * (sources[p] == n - 1) for p in order])
    chosen = range(j % 2, 2 * lanes, 2)
    half = [shuffled(code, kind, x, y, chosen) for x, y in zip(refs[::2], refs[1::2])]
    return deinterleaved(code, kind, lanes, half, j // 2)


def _order(lanes: int, n: int, j: int, inverse: bool = False) -> list[int]:
    """In which lanes the elements of kind j of n lie, one after the other; or which of them lies in each lane."""
    order = [(j + n * k) % lanes for k in range(lanes)]
    return [order.index(p) for p in range(lanes)] if inverse else order


def _permuted(code: Code, kind: str, x: str, lanes: Sequence[int]) -> str:
    return shuffled(code, kind, x, "poison", lanes)


def _blended(code: Code, kind: str, refs: Sequence[str], sources: Sequence[int]) -> str:
    """Lane p of vector sources[p], for each p."""
    lanes = len(sources)
    result = refs[0]
    for q in range(1, len(refs)):
        result = shuffled(code, kind, result, refs[q], [p + lanes * (sources[p] == q) for p in range(lanes)])
    return result


def transpose(code: Code, element: str, n: int, parts: Sequence[str]) -> list[str]:
    """The columns of a tall matrix whose rows are `parts`, vectors of n elements: n vectors of len(parts) elements.

    Rows k, k + n, k + 2n, ... first lie side by side in a register: that costs nothing where they are loaded, and what
    follows are shuffles within parts of a register, which machines do at once if a part is 16 bytes.
    """
    side = len(parts)
    refs = [joined(code, element, n, parts[k::n]) for k in range(n)]
    kind = f"<{side} x {element}>"
    turns = [k // 2 + side * (k % 2) for k in range(n)]
    low = [start + k for start in range(0, side, n) for k in turns]
    for _ in range(n.bit_length() - 1):
        halves = [(refs[k], refs[k + n // 2]) for k in range(n // 2)]
        refs = [_plain(code, kind, x, y, [k + up for k in low]) for x, y in halves for up in (0, n // 2)]
    return refs


def joined(code: Code, element: str, n: int, parts: Sequence[str]) -> str:
    """Vectors of n elements as one."""
    refs = list(parts)
    while len(refs) > 1:
        refs = [shuffled(code, f"<{n} x {element}>", x, y, range(2 * n)) for x, y in zip(refs[::2], refs[1::2])]
        n *= 2
    return refs[0]


__all__ = [
    "INTERLEAVED",
    "deinterleaved",
    "interleave",
    "joined",
    "parts_in_turns",
    "read_in_turns",
    "shuffled",
    "transpose",
]
