"""Loop nests of discrete Fourier transforms over contiguous arrays.

A transform of n = r_1 ... r_k is k passes over n numbers, each of codelets of one length r (Stockham's self-sorting
form; Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7): with s the product of the lengths before
and m = n / (s r),

    out[q + s (r p + j)] = w^(j p) sum over k of exp(sign 2 pi i j k / r) in[q + s (p + k m)],   p < m, q < s

Between passes real and imaginary parts lie in planes of their own. `width` neighbouring transforms may share their
passes: s then starts at `width`. Lengths with a large prime are convolutions with a chirp (Bluestein; the same book,
4.2.3). A real transform of even length is a complex one of half the length with a pass before or after it.

Measured: through the library (SciPy's pocketfft, one core, f32) 1024 points take 9 us and 100 x 1024 points 280 us;
JAX's 60 and 350, MKL's 11 and 270; these loops 1.3 and 116, no less accurate. They cost 50 ms of compilation, the
library none. Long transforms (by these loops as two) with a large prime, and long axes that are not the last, stay with
the library.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.lax.fourier.codelets import LARGEST_PRIME, Codelets, Number, factors, good_length, roots
from pullback.lax.fourier.codelets import radices as radices_of
from pullback.loops.ir import Buffer, Builder, Expr
from pullback.util.record import record

# Numbers in the planes of one transform, which stay in the second-level cache; longer ones are made of two.
LARGEST_LOCAL = 1 << 13
# Numbers that neighbouring transforms with common passes have together.
LARGEST_BLOCK = 1 << 13
# A convolution up to this length has equal passes forward and back; of longer ones the time to run is what counts (1009
# points take 4.6 us so, else 4.0).
SHORT = 512
# Elements behind each plane: planes that all began at a multiple of 4 KB would compete for the same cache sets, as
# their passes walk all of them at once, in steps that are powers of two (2.5 times as slow, measured at 1024 x 100).
PADDING = 272

Source = Callable[[Expr, Expr], Number]  # (element of the transform, number of the neighbour) -> value
Target = Callable[[Expr, Expr, Number], None]


def has_small_primes(n: int) -> bool:
    """Whether the prime factors of n are at most LARGEST_PRIME."""
    return factors(n)[-1:] <= [LARGEST_PRIME]


def work_length(n: int) -> int:
    """The length of the passes of a transform of n: its own, or that of the convolution it becomes."""
    return n if has_small_primes(n) else good_length(2 * n - 1)


Table = tuple[np.ndarray, np.ndarray]  # of real and of imaginary parts


def _table(values: np.ndarray, dtype: str) -> Table:
    kind = np.float32 if dtype == "f32" else np.float64
    return np.ascontiguousarray(values.real, kind), np.ascontiguousarray(values.imag, kind)


def _signed(values: np.ndarray, sign: int) -> np.ndarray:
    return values if sign > 0 else values.conj()


# Cached, as a program has one constant for each array object.
@functools.lru_cache(maxsize=64)
def _twiddles(r: int, m: int, sign: int, dtype: str) -> Table:
    """exp(sign 2 pi i j p / (r m)) for 1 <= j < r, p < m."""
    return _table(_signed(roots(r * m)[np.outer(np.arange(1, r), np.arange(m)) % (r * m)], sign), dtype)


@functools.lru_cache(maxsize=16)
def half_circle(n: int, sign: int, dtype: str) -> Table:
    """exp(sign 2 pi i k / n) for k <= n / 2."""
    return _table(_signed(roots(n)[: n // 2 + 1], sign), dtype)


@functools.lru_cache(maxsize=16)
def _chirp(n: int, sign: int, dtype: str) -> tuple[Table, Table]:
    """Bluestein's chirp w_j = exp(sign pi i j^2 / n), and the transform of its conjugate, over its length."""
    size = work_length(n)
    w = _signed(roots(2 * n)[np.arange(n, dtype=np.int64) ** 2 % (2 * n)], sign)
    kernel = np.zeros(size, np.clongdouble)
    kernel[:n] = w.conj()
    kernel[size - n + 1 :] = w.conj()[:0:-1]
    return _table(w, dtype), _table(np.fft.fft(kernel) / size, dtype)


@record
class Planes:
    """Real and imaginary parts in buffers of their own."""

    re: Buffer
    im: Buffer

    def load(self, b: Builder, at: Expr) -> Number:
        return b.let(b.load(self.re, at)), b.let(b.load(self.im, at))

    def store(self, b: Builder, at: Expr, z: Number) -> None:
        b.store(self.re, at, z[0])
        b.store(self.im, at, b.const(self.re.dtype, 0.0) if z[1] is None else z[1])


class Transform:
    """Writes the passes of one-dimensional transforms of one length, type and direction."""

    def __init__(self, ctx: Any, n: int, dtype: str, sign: int, width: int = 1, alone: bool = False) -> None:
        """`width` neighbours share their passes; `alone` says that no loop is around them."""
        self.ctx = ctx
        self.b: Builder = ctx.b
        self.n = n
        self.dtype = dtype
        self.sign = sign
        self.width = width
        self.alone = alone
        self.codelets = Codelets(self.b, dtype, sign)
        self._planes: list[Planes] = []

    def planes(self, k: int) -> Planes:
        """The k-th pair of planes, made when first asked for."""
        while len(self._planes) <= k:
            size = self.n * self.width + PADDING
            place = self.b.temporary if self.alone else self.b.local
            re, im = (place(name, self.dtype, size) for name in ("re", "im"))
            self._planes.append(Planes(re, im))
        return self._planes[k]

    def table(self, values: Table) -> Planes:
        """Two planes of constants."""
        re, im = (self.ctx.constant(part, "table").buffer for part in values)
        return Planes(re, im)

    def at(self, row: Expr, q: Expr) -> Expr:
        """Where an element of one of `width` neighbours lies in the planes."""
        return row if self.width == 1 else self.b.add(self.b.mul(row, self.b.index(self.width)), q)

    def from_planes(self, k: int) -> Source:
        return lambda row, q: self.planes(k).load(self.b, self.at(row, q))

    def to_planes(self, k: int) -> Target:
        return lambda row, q, z: self.planes(k).store(self.b, self.at(row, q), z)

    def each(self, count: int, body: Callable[[Expr, Expr], None]) -> None:
        """body(row, q) for row < count and all neighbours."""
        b = self.b
        if self.width == 1:
            with b.loop(count, "vector") as row:
                body(row, b.index(0))
        else:
            with b.loop(count) as row, b.loop(self.width, "vector") as q:
                body(row, q)

    # The transform.

    def run(self, source: Source, target: Target, first: int = 0, scale: float = 1.0) -> None:
        """source -> target, times `scale`; planes `first` and `1 - first` hold what is between the passes, so a source
        may be planes 1 - first."""
        if not has_small_primes(self.n):
            self._convolution(source, target, scale)
            return
        lengths = radices_of(self.n)
        s = 1
        for i, r in enumerate(lengths):
            load = source if i == 0 else self.from_planes((first + i - 1) % 2)
            store = target if i == len(lengths) - 1 else self.to_planes((first + i) % 2)
            last = i == len(lengths) - 1
            self._pass(load, store, r, s, scale if last else 1.0)
            s *= r

    def result(self, source: Source) -> Planes:
        """The planes that hold the transform of a source, made here."""
        k = (len(radices_of(self.n)) - 1) % 2 if has_small_primes(self.n) else 0
        self.run(source, self.to_planes(k))
        return self.planes(k)

    def _pass(self, load: Source, store: Target, r: int, s: int, scale: float) -> None:
        b, m = self.b, self.n // (s * r)
        twiddles = self.table(_twiddles(r, m, self.sign, self.dtype)) if m > 1 else None

        def butterfly(p: Expr, t: Expr, q: Expr) -> None:
            """t < s / width is what is left of q < s without the number of the neighbour."""
            rows = [b.add(b.mul(b.add(p, b.index(k * m)), b.index(s)), t) for k in range(r)]
            values = [self.codelets.pinned(load(row, q)) for row in rows]
            out = self.codelets.dft(values)
            for j, z in enumerate(out):
                if twiddles is not None and j:
                    at = b.add(p, b.index((j - 1) * m))
                    c, w = twiddles.load(b, at)
                    z = self.codelets.times(z, c, w)
                out[j] = self.codelets.pinned(self.codelets.scaled(z, scale))
            first = b.add(b.mul(p, b.index(s * r)), t)
            for j, z in enumerate(out):
                store(b.add(first, b.index(s * j)), q, z)

        zero = b.index(0)
        if self.width > 1:
            with b.loop(m, name="p") as p, b.loop(s, name="t") as t, b.loop(self.width, "vector", "q") as q:
                butterfly(p, t, q)
        elif m > 1 and s < 4:
            with b.loop(s, name="t") as t, b.loop(m, "vector", "p") as p:
                butterfly(p, t, zero)
        else:
            with b.loop(m, name="p") as p, b.loop(s, "vector", "t") as t:
                butterfly(p, t, zero)

    def _convolution(self, source: Source, target: Target, scale: float) -> None:
        """The transform as a convolution with a chirp: forward, times the chirp's transform, and back.

        Back is forward with real and imaginary parts in each other's place. Of a short transform that is alone the
        planes are temporaries and the product has a pass of its own, so that the passes forward and back are equal
        nests, which are compiled once (`outline`): 97 points took 54 ms to compile, now 40.
        """
        b = self.b
        size = work_length(self.n)
        chirp, spectrum = _chirp(self.n, self.sign, self.dtype)
        inner, back = (Transform(self.ctx, size, self.dtype, -1, self.width, self.alone) for _ in range(2))
        back._planes = [Planes(pair.im, pair.re) for pair in (inner.planes(0), inner.planes(1))]
        w, kernel = self.table(chirp), self.table(spectrum)
        codelets = self.codelets
        padded = inner.planes(1)

        def fill(row: Expr, q: Expr) -> None:
            padded.store(b, inner.at(row, q), codelets.times(source(row, q), *w.load(b, row)))

        def clear(row: Expr, q: Expr) -> None:
            zero = codelets.zero()
            padded.store(b, inner.at(b.add(row, b.index(self.n)), q), (zero, zero))

        def multiply(row: Expr, q: Expr, z: Number) -> None:
            product = codelets.times(z, *kernel.load(b, row))
            inner.to_planes(spot)(row, q, product)

        self.each(self.n, fill)
        self.each(size - self.n, clear)
        # Passes go from planes to planes; the last one of the first transform must not write what it reads.
        passes = len(radices_of(size))
        spot = (passes - 1) % 2
        if self.alone:
            there = inner.result(inner.from_planes(1))
            spot = 1 - spot
            self.each(size, lambda row, q: multiply(row, q, there.load(b, inner.at(row, q))))
        else:
            inner.run(inner.from_planes(1), multiply, 0)
        end = (spot + passes) % 2
        back.run(back.from_planes(spot), back.to_planes(end), 1 - spot)
        final = inner.planes(end)

        def finish(row: Expr, q: Expr) -> None:
            z = codelets.times(final.load(b, back.at(row, q)), *w.load(b, row))
            target(row, q, codelets.pinned(codelets.scaled(z, scale)))

        self.each(self.n, finish)


def block_width(n: int, inner: int, dtype: str) -> int:
    """How many of `inner` neighbouring transforms of length n share their passes."""
    room = LARGEST_BLOCK if dtype == "f32" else LARGEST_BLOCK // 2
    return min(inner, max(min(64, room // work_length(n)), 8 if dtype == "f32" else 4))


def block_starts(b: Builder, block: Expr, inner: int, width: int) -> Expr:
    """Where a block begins; the last one overlaps the one before it if `width` does not divide `inner`."""
    start = b.mul(block, b.index(width))
    return start if inner % width == 0 else b.let(b.min(start, b.index(inner - width)))


def split_length(n: int) -> tuple[int, int] | None:
    """(n1, n2) with n1 n2 = n, n1 <= n2, as equal as may be; None if no such pair has passes in the cache."""
    n1 = next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)
    n2 = n // n1
    return (n1, n2) if n1 > 1 and max(work_length(n1), work_length(n2)) <= LARGEST_LOCAL else None


@functools.lru_cache(maxsize=8)
def _between(n: int, n1: int, width: int, sign: int, dtype: str) -> tuple[Table, Table]:
    """exp(sign 2 pi i j k / n), j = start + q: for each start of a block [blocks, n1], and for each q [n1, width]."""
    n2 = n // n1
    starts = np.minimum(np.arange(-(-n2 // width)) * width, n2 - width)
    rows = np.arange(n1)
    coarse, fine = np.outer(starts, rows), np.outer(rows, np.arange(width))
    return tuple(_table(_signed(roots(n)[each.ravel()], sign), dtype) for each in (coarse, fine))  # type: ignore


def long_transform(
    ctx: Any,
    outer: int,
    n: int,
    dtype: str,
    sign: int,
    source: Callable[[Expr, Expr], Number],
    target: Callable[[Expr, Expr, Number], None],
    scale: float,
) -> None:
    """target(o, k, .) = the transform of source(o, j), for o < outer, as transforms of n1 and of n2, n1 n2 = n.

    With j = j1 n2 + j2 and k = k1 + n1 k2: the sum over j2 of w^(j2 k1) w2^(j2 k2) times the sum over j1 of w1^(j1 k1)
    x[j]. What is between lies as [j2, k1], so that both read and the second writes neighbours together.
    """
    b = ctx.b
    pair = split_length(n)
    assert pair is not None
    n1, n2 = pair
    between = ctx.temporary("c64" if dtype == "f32" else "c128", (outer, n2, n1), "between").buffer
    width = block_width(n1, n2, dtype)
    first = Transform(ctx, n1, dtype, sign, width)
    coarse, fine = map(first.table, _between(n, n1, width, sign, dtype))
    with b.loop(outer) as o, b.loop(-(-n2 // width)) as block:
        start = block_starts(b, block, n2, width)

        def turn(k1: Expr, q: Expr, z: Number) -> None:
            c = first.codelets
            z = c.pinned(c.times(z, *coarse.load(b, b.add(b.mul(block, b.index(n1)), k1))))
            re, im = c.times(z, *fine.load(b, b.add(b.mul(k1, b.index(width)), q)))
            row = b.add(b.mul(o, b.index(n2)), b.add(start, q))
            b.store(between, b.add(b.mul(row, b.index(n1)), k1), b.op("complex", re, im))

        first.run(lambda j1, q: source(o, b.add(b.mul(j1, b.index(n2)), b.add(start, q))), turn)
    width = block_width(n2, n1, dtype)
    second = Transform(ctx, n2, dtype, sign, width)
    with b.loop(outer) as o, b.loop(-(-n1 // width)) as block:
        start = block_starts(b, block, n1, width)

        def load(j2: Expr, q: Expr) -> Number:
            row = b.add(b.mul(o, b.index(n2)), j2)
            z = b.let(b.load(between, b.add(b.mul(row, b.index(n1)), b.add(start, q))))
            return b.op("real", z), b.op("imag", z)

        def store(k2: Expr, q: Expr, z: Number) -> None:
            target(o, b.add(b.mul(k2, b.index(n1)), b.add(start, q)), z)

        second.run(load, store, scale=scale)


__all__ = [
    "LARGEST_LOCAL",
    "SHORT",
    "Transform",
    "block_starts",
    "block_width",
    "half_circle",
    "long_transform",
    "split_length",
    "work_length",
]
