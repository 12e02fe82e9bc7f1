"""Between which numbers a symbolic dimension lies for all values of its variables.

Two means: intervals of the factors (variables are 1 at least), multiplied and added; and facts `f >= 0`, of which
multiples are subtracted so that a term drops out:

    a - b  with  a - b - 3 >= 0   is   3 + (a - b - 3) >= 3

Facts are the user's constraints and what floordiv, mod, max and min mean: with q = floordiv(x, y) and y > 0, that
y*q <= x <= y*q + y - 1. The search goes a few terms deep, so that some comparisons that hold are not decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from pullback.core.dimensions.expressions import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Dimension,
    Expression,
    Factor,
    Product,
    combine,
    constant_of,
    factors,
    multiply,
    of_product,
    terms_of,
)

Interval = tuple[float, float]
Enough = Callable[[float, float], bool]

_DEPTH = 3  # facts that are used in one derivation
_UNKNOWN: Interval = (-math.inf, math.inf)


class Bounds:
    """The search in one scope; `constraints` are the expressions of it that are >= 0."""

    def __init__(self, constraints: Sequence[Expression]):
        self.constraints = [e for e in constraints if isinstance(e, Dimension)]
        self.known: dict[Expression, Interval] = {}
        self.whole: set[Expression] = set()  # whose search went to its end
        self.of_factor: dict[Factor, Interval] = {}

    def of(self, e: Expression, enough: Enough) -> Interval:
        """The numbers that e lies between; the search ends early where they are enough."""
        if not isinstance(e, Dimension):
            return (e, e)
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = self._direct(e)
        if e in self.whole or enough(*found):
            return found
        low = self._search(e, found[0], lambda low: enough(low, found[1]))
        high = found[1]
        if not enough(low, high):
            high = -self._search(-e, -high, lambda negated: enough(low, -negated))
            self.whole.add(e)
        self.known[e] = low, high
        return low, high

    def _search(self, e: Expression, low: float, enough: Callable[[float], bool]) -> float:
        """A lower bound of e that is as good as facts make it."""
        if not isinstance(e, Dimension):
            return max(low, e)
        cases = _by_cases(e)
        if cases:
            low = max(low, min(self._search(case, -math.inf, _not_enough) for case in cases))
            if enough(low):
                return low
        low = max(low, self._direct(e)[0])
        facts = [*self.constraints, *self._facts_about(e)]
        for constraint in self.constraints:
            facts.extend(self._facts_about(constraint))
        facts = list(dict.fromkeys(facts))
        waiting: list[tuple[Expression, int, int]] = [(e, 1, 0)]  # (what e*scale is at least, scale, facts used)
        seen: set[tuple[Expression, int]] = {(e, 1)}
        while waiting and len(seen) < 200:
            rest, scale, depth = waiting.pop(0)
            if depth == _DEPTH or not isinstance(rest, Dimension):
                continue
            for fact in facts:
                for left, more in _without_a_term(rest, fact):
                    if (left, scale * more) in seen:
                        continue
                    seen.add((left, scale * more))
                    low = max(low, _ceil_ratio(self._direct(left)[0], scale * more))
                    if enough(low):
                        return low
                    waiting.append((left, scale * more, depth + 1))
        return low

    def _direct(self, e: Expression) -> Interval:
        """By the intervals of the terms; also of e = m*f for a product m of factors that all terms have."""
        if not isinstance(e, Dimension):
            return (e, e)
        low: float = 0
        high: float = 0
        for product, count in e.terms:
            term = _times((count, count), self._product(product))
            low, high = low + term[0], high + term[1]
        common = _common(e)
        if common and len(e.terms) > 1:
            inner: Expression = Dimension(tuple((_without(p, common), c) for p, c in e.terms), e.scope)
            found = _times(self._product(common), self._direct(inner))
            low, high = max(low, found[0]), min(high, found[1])
        return low, high

    def _product(self, product: Product) -> Interval:
        found: Interval = (1, 1)
        for factor, power in product:
            inner = self._factor(factor)
            part: Interval = (1, 1)
            for _ in range(power):
                part = _times(part, inner)
            if power % 2 == 0:
                part = max(part[0], 0), part[1]
            found = _times(found, part)
        return found

    def _factor(self, factor: Factor) -> Interval:
        found = self.of_factor.get(factor)
        if found is not None:
            return found
        self.of_factor[factor] = (1, math.inf) if not factor.operands else _UNKNOWN  # what the search below may use
        found = self._of_operation(factor) if factor.operands else (1.0, math.inf)
        for constraint in self.constraints:
            found = self._narrowed(factor, found, constraint)
        self.of_factor[factor] = found
        return found

    def _narrowed(self, factor: Factor, found: Interval, constraint: Dimension) -> Interval:
        """By a constraint that has the factor as a term: c*x + rest >= 0."""
        count = dict(terms_of(constraint)).get(((factor, 1),), 0)
        if not count:
            return found
        rest = combine([(constraint, 1), (of_product(((factor, 1),), constraint.scope), -count)], constraint.scope)
        if factor in factors(rest):
            return found
        most = self._direct(rest)[1]  # of the rest, so that count*factor >= -most
        if not math.isfinite(most):
            return found
        low, high = found
        return (max(low, -(most // count)), high) if count > 0 else (low, min(high, most // -count))

    def _of_operation(self, factor: Factor) -> Interval:
        x, y = (self.of(operand, _never) for operand in factor.operands)
        if factor.name == MAX:
            return max(x[0], y[0]), max(x[1], y[1])
        if factor.name == MIN:
            return min(x[0], y[0]), min(x[1], y[1])
        if factor.name == MOD:
            if y[0] > 0:
                return (0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1)
            return (y[0] + 1, 0) if y[1] < 0 else _UNKNOWN
        assert factor.name == FLOORDIV
        if y[0] <= 0 <= y[1]:
            return _UNKNOWN
        ends = [_floor_ratio(n, d) for n in x for d in y]
        return min(ends), max(ends)

    def _facts_about(self, e: Dimension) -> Iterator[Expression]:
        """What operations in an expression mean, as expressions that are >= 0."""
        for factor in factors(e):
            if not factor.operands:
                continue
            scope = e.scope
            value = of_product(((factor, 1),), scope)
            x, y = factor.operands
            if factor.name in (MAX, MIN):
                sign = 1 if factor.name == MAX else -1
                found = [combine([(value, sign), (operand, -sign)], scope) for operand in (x, y)]
            elif self.of(y, lambda low, high: low > 0 or high <= 0)[0] <= 0:
                continue
            elif factor.name == FLOORDIV:
                rest = combine([(x, 1), (multiply(y, value), -1)], scope)
                found = [rest, combine([(y, 1), (-1, 1), (rest, -1)], scope)]
            else:
                found = [combine([(y, 1), (-1, 1), (value, -1)], scope)]
                if self.of(x, lambda low, high: low >= 0 or high < 0)[0] >= 0:
                    found.append(combine([(x, 1), (value, -1)], scope))
            yield from (fact for fact in found if isinstance(fact, Dimension))


def _never(low: float, high: float) -> bool:
    return False


def _not_enough(low: float) -> bool:
    return False


def _by_cases(e: Dimension) -> list[Expression]:
    """Two expressions of which e is one: with either operand in the place of its first max or min."""
    for product, count in e.terms:
        for factor, _ in product:
            if factor.name in (MAX, MIN) and factor.operands:
                rest = combine([(e, 1), (of_product(product, e.scope), -count)], e.scope)
                others = of_product(tuple((f, n) for f, n in product if f != factor), e.scope)
                power = dict(product)[factor]
                found = []
                for operand in factor.operands:
                    value = others
                    for _ in range(power):
                        value = multiply(value, operand)
                    found.append(combine([(rest, 1), (value, count)], e.scope))
                return found
    return []


def _without_a_term(e: Dimension, fact: Expression) -> Iterator[tuple[Expression, int]]:
    """(m*e - n*fact, m) with positive m and n that take away a term, for all terms that this does for."""
    of_fact = dict(terms_of(fact))
    for product, count in e.terms:
        other = of_fact.get(product, 0)
        if product and other and (other > 0) == (count > 0):
            divisor = math.gcd(count, other)
            times, less = abs(other) // divisor, abs(count) // divisor
            yield combine([(e, times), (fact, -less)], e.scope), times


def _common(e: Dimension) -> Product:
    """The factors that all terms have."""
    if constant_of(e):
        return ()
    powers = dict(e.terms[0][0])
    for product, _ in e.terms[1:]:
        other = dict(product)
        powers = {factor: min(power, other[factor]) for factor, power in powers.items() if factor in other}
    return tuple(sorted(powers.items()))


def _without(product: Product, common: Product) -> Product:
    less = dict(common)
    return tuple((factor, power - less.get(factor, 0)) for factor, power in product if power > less.get(factor, 0))


def _times(x: Interval, y: Interval) -> Interval:
    ends = [0 if a == 0 or b == 0 else a * b for a in x for b in y]
    return min(ends), max(ends)


def _floor_ratio(n: float, d: float) -> float:
    """n // d at an end of an interval, where it comes close to that for infinite ones."""
    if math.isinf(d):
        return 0 if (n >= 0) == (d > 0) else -1
    if math.isinf(n):
        return n if d > 0 else -n
    return n // d


def _ceil_ratio(n: float, d: int) -> float:
    return -(-n // d) if math.isfinite(n) else n
