"""Discrete Fourier transforms of a few numbers as straight code, and the plans and tables of longer ones.

A number is a pair (re, im) of loop IR expressions; an imaginary part that is known to be zero is None, so that real
inputs cost half. With w = exp(sign 2 pi i / n) a transform is X[k] = sum over j of w^(jk) x[j].

Primes by the symmetry of cosine and sine, composites n = r m by r transforms of m, twiddle factors, m transforms of r;
see Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), 1.2 and 2.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.loops.ir import Builder, Expr

Number = tuple[Expr, Expr | None]


def root(n: int, k: int) -> tuple[float, float]:
    """(cos, sin) of 2 pi k / n."""
    w = roots(n)[k % n]
    return float(w.real), float(w.imag)


_PI = np.longdouble(math.pi) + np.longdouble(1.2246467991473532e-16)


@functools.lru_cache(maxsize=64)
def roots(n: int) -> np.ndarray:
    """exp(2 pi i k / n) for k < n: c128[n], within an ulp; exact at quarters of a turn, symmetric about eighths."""
    quarters = np.array([1, 1j, -1, -1j])
    if n % 8 == 0:  # an eighth is computed and mirrored
        c, s = _first_eighth(8 * np.arange(n // 8 + 1), n)
        quarter = np.concatenate((c[:-1] + 1j * s[:-1], s[:0:-1] + 1j * c[:0:-1]))
        return np.concatenate([quarter * turn for turn in quarters])
    turns, rest = np.divmod(8 * np.arange(n), n)  # eighths of a turn
    odd = turns % 2 == 1
    c, s = _first_eighth(np.where(odd, n - rest, rest), n)  # measured back from the next quarter
    return (np.where(odd, s, c) + 1j * np.where(odd, c, s)) * quarters[turns // 2]


def _first_eighth(part: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of part / n eighths of a turn, for parts up to n."""
    exact = _PI / 4 * part.astype(np.longdouble) / n
    angle = exact.astype(np.float64)
    lost = (exact - angle).astype(np.float64)
    c, s = np.cos(angle), np.sin(angle)
    c, s = c - lost * s, s + lost * c
    return np.where(part == n, s, c), s  # cos = sin at an eighth


def factors(n: int) -> list[int]:
    """Prime factors, ascending."""
    found, d = [], 2
    while d * d <= n:
        while n % d == 0:
            found.append(d)
            n //= d
        d += 1
    return found + [n] * (n > 1)


def good_length(n: int) -> int:
    """The least 2^a 3^b 5^c >= n of which the power of two is at least 4: quick to transform."""
    best = 1 << (n - 1).bit_length()
    for odd in (3, 5, 9, 15, 25, 27, 45):
        power = 4
        while odd * power < n:
            power *= 2
        best = min(best, odd * power)
    return best


class Codelets:
    """Writes transforms of one type and sign."""

    def __init__(self, b: Builder, dtype: str, sign: int) -> None:
        self.b = b
        self.dtype = dtype
        self.sign = sign

    def pinned(self, z: Number) -> Number:
        """The number, evaluated here and now."""
        re, im = z
        return self.b.let(re), None if im is None else self.b.let(im)

    def both(self, z: Number) -> tuple[Expr, Expr]:
        """Both parts as expressions."""
        re, im = z
        return re, self.zero() if im is None else im

    def add(self, x: Number, y: Number) -> Number:
        return self.b.add(x[0], y[0]), self._sum("add", x[1], y[1])

    def sub(self, x: Number, y: Number) -> Number:
        return self.b.sub(x[0], y[0]), self._sum("sub", x[1], y[1])

    def _sum(self, name: str, x: Expr | None, y: Expr | None) -> Expr | None:
        if y is None:
            return x
        if x is None:
            return self.b.op(name, self.zero(), y)
        return self.b.op(name, x, y)

    def zero(self) -> Expr:
        return self.b.const(self.dtype, 0.0)

    def minus(self, x: Expr) -> Expr:
        """-x, but 0 for 0: a transform of zeros has no -0."""
        return self.b.sub(self.zero(), x)

    def scaled(self, z: Number, factor: float) -> Number:
        """A real multiple."""
        if factor == 1.0:
            return z
        k = self.b.const(self.dtype, factor)
        return self.b.term(z[0], k), None if z[1] is None else self.b.term(z[1], k)

    def times_i(self, z: Number, sign: int) -> Number:
        """z times sign i."""
        re, im = z
        first = self.zero() if im is None else im
        return (self.minus(first), re) if sign > 0 else (first, self.minus(re))

    def times(self, z: Number, c: Any, s: Any) -> Number:
        """z (c + i s), for expressions or numbers c and s."""
        b, (re, im) = self.b, z
        c = c if isinstance(c, Expr) else b.const(self.dtype, c)
        s = s if isinstance(s, Expr) else b.const(self.dtype, s)
        if im is None:
            return b.term(re, c), b.term(re, s)
        return b.sub(b.term(re, c), b.term(im, s)), b.add(b.term(re, s), b.term(im, c))

    def turned(self, z: Number, k: int, n: int) -> Number:
        """z times exp(sign 2 pi i k / n)."""
        k = self.sign * k % n
        if 4 * k % n == 0:
            quarter = 4 * k // n
            z = z if quarter % 2 == 0 else self.times_i(z, 1)
            return z if quarter < 2 else (self.minus(z[0]), None if z[1] is None else self.minus(z[1]))
        c, s = root(n, k)
        if 8 * k % n == 0 and z[1] is not None:  # c = +-s: two products instead of four
            re, im = z
            both, apart = self.b.add(re, im), self.b.sub(re, im)
            x, y = (apart, both) if (c > 0) == (s > 0) else (both, self.minus(apart))
            factor = self.b.const(self.dtype, c)
            return self.b.term(x, factor), self.b.term(y, factor)
        return self.times(z, c, s)

    def dft(self, x: Sequence[Number]) -> list[Number]:
        """The transform of a few numbers, each result evaluated here."""
        n = len(x)
        if n == 1:
            return list(x)
        if n == 2:
            return [self.pinned(self.add(x[0], x[1])), self.pinned(self.sub(x[0], x[1]))]
        r = factors(n)[0]
        if n % 4 == 0 and n > 8:
            r = 4
        if r == n:
            return self._prime(x)
        m = n // r
        parts = [self.dft(x[c::r]) for c in range(r)]
        out: list[Number] = [x[0]] * n
        for k in range(m):
            column = [self.pinned(self.turned(parts[c][k], c * k, n)) if c * k else parts[c][k] for c in range(r)]
            out[k::m] = self.dft(column)
        return out

    def _prime(self, x: Sequence[Number]) -> list[Number]:
        """X[k], X[n-k] = x[0] + sum of cos (x[j] + x[n-j]) +- i sum of sin (x[j] - x[n-j])."""
        n, half = len(x), len(x) // 2
        sums = [self.pinned(self.add(x[j], x[n - j])) for j in range(1, half + 1)]
        apart = [self.pinned(self.sub(x[j], x[n - j])) for j in range(1, half + 1)]
        out: list[Number] = [x[0]] * n
        total = x[0]
        for each in sums:
            total = self.add(total, each)
        out[0] = self.pinned(total)
        for k in range(1, half + 1):
            even, odd = x[0], None
            for j in range(1, half + 1):
                c, s = root(n, j * k)
                even = self.add(even, self.scaled(sums[j - 1], c))
                term = self.scaled(apart[j - 1], s)
                odd = term if odd is None else self.add(odd, term)
            assert odd is not None
            even, odd = self.pinned(even), self.pinned(self.times_i(self.pinned(odd), self.sign))
            out[k], out[n - k] = self.pinned(self.add(even, odd)), self.pinned(self.sub(even, odd))
        return out


__all__ = ["Codelets", "Number", "factors", "good_length", "roots"]
