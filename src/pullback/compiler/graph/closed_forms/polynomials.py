"""Polynomials in indices, in the basis of binomial coefficients, with exact numbers.

    p(i, j) = sum of c[a, b] * C(i, a) * C(j, b)            (Newton's basis)

A polynomial with integer values has integer coefficients here, so that everything is exact modulo a power of 2, and
sums are a shift: C(0, k) + ... + C(n-1, k) = C(n, k+1). A recurrence s(t+1) = s(t) + C(t, k) gives C(t, k+1), for the
same reason. See Graham, Knuth, Patashnik, Concrete Mathematics, chapter 2.6 and 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

    Number = int | Fraction

Monomial = tuple[tuple[int, int], ...]  # (index, k) for each C(index, k), k > 0, sorted; an index is an axis or TIME
Poly = dict[Monomial, "Number"]  # no coefficient is 0


def fraction(value: Any, denominator: int = 1) -> Fraction:
    """An exact number; few programs have one, and its module takes 4 ms to import."""
    from fractions import Fraction

    return Fraction(value, denominator) if denominator != 1 else Fraction(value)


TIME = -1  # the index of a loop's iterations
MOST_MONOMIALS, MOST_DEGREE = 64, 12


class TooComplex(Exception):
    """A polynomial would have more monomials, or a higher degree, than is worth handling."""


def constant(number: Number) -> Poly:
    """The polynomial without indices."""
    return {(): number} if number else {}


def index(i: int) -> Poly:
    """The index itself."""
    return {((i, 1),): 1}


def add(p: Poly, q: Poly) -> Poly:
    """p + q."""
    out = dict(p)
    for monomial, number in q.items():
        total = out.get(monomial, 0) + number
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    if len(out) > MOST_MONOMIALS:
        raise TooComplex
    return out


def scale(p: Poly, number: Number) -> Poly:
    """number * p."""
    return {monomial: c * number for monomial, c in p.items()} if number else {}


def multiply(p: Poly, q: Poly) -> Poly:
    """p * q."""
    out: Poly = {}
    for m, c in p.items():
        for n, d in q.items():
            out = add(out, scale(_product(m, n), c * d))
    return out


def _product(m: Monomial, n: Monomial) -> Poly:
    powers = dict(m)
    out: Poly = {(): 1}
    for i, b in n:
        a = powers.pop(i, 0)
        if a + b > MOST_DEGREE:
            raise TooComplex
        # C(i, a) C(i, b) = sum over m of m! / ((m-a)! (m-b)! (a+b-m)!) C(i, m).
        factors = {
            ((i, k),): math.factorial(k) // math.factorial(k - a) // math.factorial(k - b) // math.factorial(a + b - k)
            for k in range(max(a, b), a + b + 1)
        }
        out = {tuple(sorted(x + y)): c * d for x, c in out.items() for y, d in factors.items()}
    rest = tuple(powers.items())
    return {tuple(sorted(x + rest)): c for x, c in out.items()}


def indices(p: Poly) -> set[int]:
    """The indices that a polynomial depends on."""
    return {i for monomial in p for i, _ in monomial}


def renamed(p: Poly, names: Mapping[int, int]) -> Poly:
    """The polynomial with indices renamed; those that are not in `names` stay."""
    return {tuple(sorted((names.get(i, i), k) for i, k in monomial)): c for monomial, c in p.items()}


def without(p: Poly, i: int, value_of: Callable[[int], Number]) -> Poly:
    """The polynomial with C(i, k) replaced by value_of(k), for k = 0 too."""
    out: Poly = {}
    for monomial, c in p.items():
        k = dict(monomial).get(i, 0)
        out = add(out, scale({tuple(x for x in monomial if x[0] != i): c}, value_of(k)))
    return out


def summed(p: Poly, i: int, n: int) -> Poly:
    """The sum of p over the index i from 0 to n - 1."""
    return without(p, i, lambda k: math.comb(n, k + 1))


def at(p: Poly, i: int, n: int) -> Poly:
    """The polynomial at index i = n."""
    return without(p, i, lambda k: math.comb(n, k))


def accumulated(p: Poly, i: int) -> Poly:
    """The sum of p over the index from 0 to i - 1, as a polynomial in i."""
    out: Poly = {}
    for monomial, c in p.items():
        powers = dict(monomial)
        powers[i] = powers.get(i, 0) + 1
        if powers[i] > MOST_DEGREE:
            raise TooComplex
        out[tuple(sorted(powers.items()))] = c
    return out


def mirrored(p: Poly, i: int, n: int) -> Poly:
    """The polynomial at index n - 1 - i."""
    out: Poly = {}
    for monomial, c in p.items():
        k = dict(monomial).get(i, 0)
        rest = tuple(x for x in monomial if x[0] != i)
        values = [_choose(n - 1 - j, k) for j in range(k + 1)]
        for m in range(k + 1):  # the m-th difference at 0 is the coefficient of C(i, m)
            difference = sum((-1) ** (m - j) * math.comb(m, j) * values[j] for j in range(m + 1))
            out = add(out, scale({tuple(sorted((*rest, (i, m)))) if m else rest: c}, difference))
    return out


def _choose(n: int, k: int) -> int:
    """C(n, k), also for negative n."""
    return math.comb(n, k) if n >= 0 else (-1) ** k * math.comb(k - n - 1, k)


def bounds(p: Poly, sizes: Mapping[int, int]) -> tuple[Number, Number]:
    """Numbers between which all values lie, for indices from 0 to their size - 1; not always the tightest."""
    low: Number = 0
    high: Number = 0
    for monomial, c in p.items():
        most = c * math.prod(math.comb(max(sizes[i] - 1, 0), k) for i, k in monomial)
        if not monomial:
            low, high = low + c, high + c
        elif c > 0:
            high += most
        else:
            low += most
    return low, high


def largest(p: Poly, sizes: Mapping[int, int]) -> Number:
    """A number that no absolute value exceeds."""
    low, high = bounds(p, sizes)
    return -low if -low > high else high


def sign(p: Poly, sizes: Mapping[int, int]) -> int | None:
    """1 or -1 if all values have that sign, 0 if some value is zero or signs differ, None if that is not clear."""
    low, high = bounds(p, sizes)
    if low > 0 or high < 0:
        return 1 if low > 0 else -1
    first = p.get((), 0)
    last: Number = sum(c * math.prod(math.comb(sizes[i] - 1, k) for i, k in m) for m, c in p.items())
    return 0 if first == 0 or last == 0 or (first > 0) != (last > 0) else None


def denominator(p: Poly) -> int:
    """A number that makes all coefficients integers."""
    return math.lcm(*(c.denominator for c in p.values())) if p else 1
