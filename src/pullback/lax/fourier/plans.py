"""Plans and tables of discrete Fourier transforms: what the passes of ext/fourier take as arguments.

A plan is a vector of integers: the length n; that of the passes (its own, or that of the convolution which a length
with a large prime becomes); how many passes; where in the table the angles of the chirp, its spectrum, the half circle,
and those between the two parts of a long transform begin, or -1; then of each pass its radix r, how many times r times
the radices before it go into the length, and where its angles begin, followed by those within it if the radix is a
prime above LARGEST_CODELET. The table has real parts followed by imaginary parts. All angles are those of the forward
transform.

Measured (one core of a Zen 3, complex128): 200 transforms of 204 = 4 x 3 x 17 numbers as convolutions took 0.94 ms,
with a pass for 17 0.16, as SciPy's library does; 3000 of 31 1.3 ms, now 0.27. Transforms of 127 alone are quicker by
convolution (1.3 times), those of 8 x 127 slower (1.6 times).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pullback.lax.fourier.codelets import factors, good_length, roots

# The radices of passes: primes that are straight code, and those that are loops (ext/fourier/kernels.h); a length with
# a larger one becomes a convolution. One that has few neighbours from the passes before it had better be smaller.
LARGEST_CODELET, LARGEST_PRIME, LARGEST_ALONE = 13, 127, 73
NEIGHBOURS = 8

# Numbers in the planes of one transform, which stay in the second-level cache; longer ones are made of two.
LARGEST_LOCAL = 1 << 13
# Numbers that neighbouring transforms with common passes have together.
LARGEST_BLOCK = 1 << 13
# Zeros behind a table: passes read whole vectors of angles and take the first of them.
BEYOND = 16

Plan = tuple[np.ndarray, np.ndarray]  # the integers, the table


def has_small_primes(n: int) -> bool:
    """Whether the prime factors of n are radices of passes."""
    largest = factors(n)[-1] if n > 1 else 1
    return largest <= (LARGEST_PRIME if n // largest >= NEIGHBOURS else LARGEST_ALONE)


def work_length(n: int) -> int:
    """The length of the passes of a transform of n: its own, or that of the convolution it becomes."""
    return n if has_small_primes(n) else good_length(2 * n - 1)


def radices(n: int) -> tuple[int, ...]:
    """The radices of the passes of a transform of n, whose primes are small: powers of two first, a single two last.

    Fours before eights: a first pass puts its results side by side, which takes a shuffle for each two of them. Primes
    without straight code come last, as their lanes run along what the radices before them have made neighbours.
    """
    primes = factors(n)
    twos, threes = primes.count(2), primes.count(3)
    large = [p for p in primes if p > LARGEST_CODELET]
    odd = [p for p in primes if 3 < p <= LARGEST_CODELET] + [9] * (threes // 2) + [3] * (threes % 2)
    odd.sort(reverse=True)
    if twos == 1:
        return (*odd, 2, *large)
    fours = -twos % 3
    return (*[4] * fours, *[8] * ((twos - 2 * fours) // 3), *odd, *large)


class _Table:
    """Collects planes of angles."""

    def __init__(self, dtype: str) -> None:
        self.kind = np.float32 if dtype == "f32" else np.float64
        self.parts: list[np.ndarray] = []
        self.size = 0

    def add(self, values: np.ndarray) -> int:
        """Where the real parts begin; imaginary parts follow."""
        at = self.size
        self.parts += [values.real.ravel().astype(self.kind), values.imag.ravel().astype(self.kind)]
        self.size += 2 * values.size
        return at

    def whole(self) -> np.ndarray:
        return np.concatenate((*self.parts, np.zeros(BEYOND, self.kind)))


def _forward(n: int, turns: np.ndarray) -> np.ndarray:
    """exp(-2 pi i turns / n)."""
    return roots(n)[turns % n].conj()


# Cached, as a program has one constant for each array object.
@functools.lru_cache(maxsize=64)
def plan_of(n: int, dtype: str, circle: int = 0, between: tuple[int, int] | None = None) -> Plan:
    """The plan of transforms of n numbers.

    `circle`: the length of the real transform that it is half of. `between`: (the length of the long transform that it
    is the first part of, how many neighbours share their passes).
    """
    table = _Table(dtype)
    work = work_length(n)
    chirp = spectrum = coarse = fine = -1
    if work != n:
        chirp, spectrum = (table.add(values) for values in _chirp(n, work))
    half = table.add(_forward(circle, np.arange(circle // 2 + 1))) if circle else -1
    if between is not None:
        whole, width = between
        columns = whole // n
        starts = np.minimum(np.arange(-(-columns // width)) * width, columns - width)
        rows = np.arange(n)
        coarse = table.size  # for each start of a block real and imaginary parts
        for start in starts:
            table.add(_forward(whole, start * rows))
        fine = table.add(_forward(whole, np.outer(rows, np.arange(width))))
    steps, s = [], 1
    for r in radices(work):
        m = work // (s * r)
        steps += [r, m, table.add(_forward(r * m, np.outer(np.arange(1, r), np.arange(m))))]
        if r > LARGEST_CODELET:
            within = np.arange(1, r // 2 + 1)
            table.add(_forward(r, np.outer(within, within)))
        s *= r
    numbers = [n, work, len(steps) // 3, chirp, spectrum, half, coarse, fine, *steps]
    return np.array(numbers, np.int64), table.whole()


def _chirp(n: int, work: int) -> tuple[np.ndarray, np.ndarray]:
    """Bluestein's chirp w_j = exp(-pi i j^2 / n), and the transform of its conjugate, over the length of the passes."""
    w = _forward(2 * n, np.arange(n, dtype=np.int64) ** 2)
    kernel = np.zeros(work, np.clongdouble)
    kernel[:n] = w.conj()
    kernel[work - n + 1 :] = w.conj()[:0:-1]
    return w, np.fft.fft(kernel) / work


def block_width(n: int, inner: int, dtype: str) -> int:
    """How many of `inner` neighbouring transforms of length n share their passes."""
    lanes, room = (16, LARGEST_BLOCK) if dtype == "f32" else (8, LARGEST_BLOCK // 2)
    width = max(min(64, room // work_length(n)), min(lanes, 8 * room // work_length(n)))  # planes lie on the stack
    if inner <= width:
        return inner
    blocks = -(-inner // width)
    return -(-inner // (blocks + blocks % 2))  # two threads get as many each


def split_length(n: int) -> tuple[int, int] | None:
    """(n1, n2) with n1 n2 = n, n1 <= n2, as equal as may be; None if no such pair has passes in the cache."""
    n1 = next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)
    n2 = n // n1
    return (n1, n2) if n1 > 1 and max(work_length(n1), work_length(n2)) <= LARGEST_LOCAL else None


__all__ = ["LARGEST_LOCAL", "block_width", "has_small_primes", "plan_of", "radices", "split_length", "work_length"]
