"""Symbolic dimensions: polynomials with integer coefficients over variables, floordiv, mod, max and min.

A `Dimension` is a sum of products in one normal form, so two that are equal as polynomials are equal and hash alike.
A product (`Product`) is a tuple of (factor, power) in order; a factor is a variable or an operation on expressions.
What is constant is an int and never a Dimension. The scope says which comparisons are decided (bounds.py, scopes.py).

    a*(a + 2) - a*a    ->  2*a
    (2*a + 3)//2       ->  a + 1               divided as far as that is exact
    (a + 3)//2         ->  floordiv(a + 3, 2)  an operation where it is not
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import total_ordering
from typing import Any, Protocol

import numpy as np

from pullback.core.hooks import hooks
from pullback.util.errors import InconclusiveDimensionOperation

FLOORDIV, MOD, MAX, MIN = "floordiv", "mod", "max", "min"


class Scope(Protocol):
    """What expressions ask of the scope of their variables (scopes.py)."""

    def bounds(self, e: Expression, enough: Callable[[float, float], bool]) -> tuple[float, float]:
        """Numbers that e lies between for all values of the variables; the search ends where they are enough."""

    def rule(self, product: Product) -> tuple[int, Expression] | None:
        """(k, e) where k times the product is e by an equality that the user gave."""


@total_ordering
class Factor:
    """A variable, or an operation (floordiv, mod, max, min) on two expressions."""

    __slots__ = ("name", "operands", "key", "size", "_hash")

    def __init__(self, name: str, operands: tuple[Expression, ...] = ()):
        self.name = name
        self.operands = operands
        self.key: tuple = (len(operands), name, tuple(map(_key, operands)))
        self.size: int = 1 + sum(map(_size, operands))
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self._hash == other._hash and self.key == other.key

    def __lt__(self, other: Factor) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self):
        return Factor, (self.name, self.operands)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(_text, self.operands))})" if self.operands else self.name


Product = tuple[tuple[Factor, int], ...]
ONE: Product = ()


def _product_key(product: Product) -> tuple:
    """The order of terms: the longest first, then by factors from the last."""
    size = sum(factor.size * power for factor, power in product)
    return size, len(product), tuple((factor.key, power) for factor, power in reversed(product))


def _key(e: Expression) -> tuple:
    return tuple((_product_key(product), count) for product, count in terms_of(e))


def _size(e: Expression) -> int:
    return sum(max(1, sum(f.size * n for f, n in product)) for product, _ in terms_of(e))


class Dimension:
    """An expression of dimension variables that is not constant; made by `symbolic_shape` and by arithmetic.

    With integers and other Dimensions the operators + - * // % ** and divmod give such expressions or ints, comparisons
    give bools or raise InconclusiveDimensionOperation; == is False where the two are not always equal. With floats and
    arrays, and divided by /, it is a traced integer.
    """

    __slots__ = ("terms", "scope", "_hash", "_text")
    __array_ufunc__ = None  # NumPy arrays leave operators to the methods below
    terms: tuple[tuple[Product, int], ...]
    scope: Any

    def __init__(self, terms: tuple[tuple[Product, int], ...], scope: Any):
        self.terms = terms
        self.scope = scope
        self._hash = hash(terms)
        self._text: str | None = None

    def __reduce__(self):
        return Dimension, (self.terms, self.scope)

    def __copy__(self) -> Dimension:
        return self

    def __deepcopy__(self, memo: Any) -> Dimension:
        return self

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Dimension)
            and self._hash == other._hash
            and self.terms == other.terms
            and self.scope is other.scope
        )

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> bool:
        return _decide(self, other, ">=", self, other, 0)

    def __gt__(self, other: Any) -> bool:
        return _decide(self, other, ">", self, other, 1)

    def __le__(self, other: Any) -> bool:
        return _decide(self, other, "<=", other, self, 0)

    def __lt__(self, other: Any) -> bool:
        return _decide(self, other, "<", other, self, 1)

    def __bool__(self) -> bool:
        return True  # as a size that is not known to be 0

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' came to a context that requires a constant, as int() is one: its value "
            "is not known while the function is traced"
        )

    def __neg__(self) -> Expression:
        return combine([(self, -1)], self.scope)

    def __add__(self, other: Any) -> Any:
        e = expression(other)
        return self.dimension_as_value() + other if e is None else combine([(self, 1), (e, 1)], _scope(self, e))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        e = expression(other)
        return self.dimension_as_value() - other if e is None else combine([(self, 1), (e, -1)], _scope(self, e))

    def __rsub__(self, other: Any) -> Any:
        e = expression(other)
        return other - self.dimension_as_value() if e is None else combine([(e, 1), (self, -1)], self.scope)

    def __mul__(self, other: Any) -> Any:
        e = expression(other)
        return self.dimension_as_value() * other if e is None else multiply(self, e)

    __rmul__ = __mul__

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, (int, np.integer)):
            return self.dimension_as_value() ** power
        if power < 0:
            raise ValueError(f"a symbolic dimension has no negative powers: '{self}' ** {power}")
        found: Expression = 1
        for _ in range(power):
            found = multiply(self, found)
        return found

    def __rpow__(self, base: Any) -> Any:
        return base ** self.dimension_as_value()

    def __truediv__(self, other: Any) -> Any:
        return self.dimension_as_value() / as_operand(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.dimension_as_value()

    def __floordiv__(self, other: Any) -> Any:
        e = expression(other)
        return self.dimension_as_value() // other if e is None else divide(self, e)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        e = expression(other)
        return other // self.dimension_as_value() if e is None else divide(e, self)[0]

    def __mod__(self, other: Any) -> Any:
        e = expression(other)
        return self.dimension_as_value() % other if e is None else divide(self, e)[1]

    def __rmod__(self, other: Any) -> Any:
        e = expression(other)
        return other % self.dimension_as_value() if e is None else divide(e, self)[1]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self)
        return self._text

    __repr__ = __str__

    def dimension_as_value(self) -> Any:
        """The dimension as a traced scalar of the default integer type. NotImplementedError where nothing is traced."""
        return hooks.dimension_as_value(self)

    __jax_array__ = dimension_as_value

    def get_vars(self) -> set[str]:
        """The names of the variables that it depends on."""
        return set(variables(self))


Expression = int | Dimension


def as_operand(x: Any) -> Any:
    """A dimension as a traced scalar; everything else as it is."""
    return x.dimension_as_value() if isinstance(x, Dimension) else x


def expression(x: Any) -> Expression | None:
    """An integer or a Dimension as such, also a NumPy integer; None for what is neither."""
    if isinstance(x, (int, Dimension)):
        return x
    if isinstance(x, np.integer) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind in "iu"):
        return int(x)
    return None


def is_symbolic_type(aval: Any) -> bool:
    """Whether a dimension of an array's type is symbolic."""
    return any(isinstance(d, Dimension) for d in getattr(aval, "shape", ()))


def integral(x: Any) -> Expression:
    """What is known to be an integer or a Dimension, as such."""
    found = expression(x)
    assert found is not None
    return found


def index(x: Any) -> Any:
    """A size: a Dimension as it is, all else as operator.index has it."""
    return x if isinstance(x, Dimension) else operator.index(x)


def is_symbolic(x: Any) -> bool:
    """Whether it is a dimension that is not constant."""
    return isinstance(x, Dimension)


def terms_of(e: Expression) -> tuple[tuple[Product, int], ...]:
    """The (product, coefficient) pairs of a sum, the constant last."""
    return e.terms if isinstance(e, Dimension) else ((ONE, int(e)),) if e else ()


def constant_of(e: Expression) -> int:
    """The term without variables."""
    terms = terms_of(e)
    return terms[-1][1] if terms and terms[-1][0] == ONE else 0


def variable(name: str, scope: Any) -> Expression:
    """The dimension variable of this name."""
    return of_product(((Factor(name), 1),), scope)


def of_product(product: Product, scope: Any) -> Expression:
    """The expression that is this product alone."""
    return _normal({product: 1}, scope)


def _normal(counts: Mapping[Product, int], scope: Any) -> Expression:
    """The expression of a sum, after the equalities that hold in the scope."""
    if scope is not None:
        for product, count in counts.items():
            rule = scope.rule(product) if count and product else None
            if rule is not None and count % rule[0] == 0:
                rest = {p: c for p, c in counts.items() if p != product}
                return combine([(_normal(rest, scope), 1), (rule[1], count // rule[0])], scope)
    terms = [(product, count) for product, count in counts.items() if count]
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0] == ONE:
        return terms[0][1]
    terms.sort(key=lambda term: _product_key(term[0]), reverse=True)
    return Dimension(tuple(terms), scope)


def combine(parts: Iterable[tuple[Expression, int]], scope: Any) -> Expression:
    """The sum of expressions times integers."""
    counts: dict[Product, int] = {}
    for e, times in parts:
        for product, count in terms_of(e):
            counts[product] = counts.get(product, 0) + times * count
    return _normal(counts, scope)


def _times(left: Product, right: Product) -> Product:
    if not left or not right:
        return left or right
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items()))


def multiply(x: Expression, y: Expression) -> Expression:
    """x * y."""
    scope = _scope(x, y)
    counts: dict[Product, int] = {}
    for p, m in terms_of(x):
        for q, n in terms_of(y):
            product = _times(p, q)
            counts[product] = counts.get(product, 0) + m * n
    return _normal(counts, scope)


def _ratio(product: Product, by: Product) -> Product | None:
    """The product without these factors; None if it has not all of them."""
    powers = dict(product)
    for factor, power in by:
        left = powers.get(factor, 0) - power
        if left < 0:
            return None
        powers[factor] = left
    return tuple((factor, powers[factor]) for factor, _ in product if powers[factor])


def divide(x: Expression, y: Expression) -> tuple[Expression, Expression]:
    """x // y and x % y: exact polynomials where the division is, else floordiv and mod. ZeroDivisionError for y = 0."""
    if not isinstance(y, Dimension) and y == 0:
        raise ZeroDivisionError("division of a dimension by zero")
    scope = _scope(x, y)
    if not isinstance(x, Dimension) and not isinstance(y, Dimension):
        return divmod(x, y)
    quotient, rest = _long_division(x, y, scope)
    if isinstance(rest, int) and (rest == 0 or isinstance(y, int)):
        more, rest = divmod(rest, y) if isinstance(y, int) else (0, 0)
        return combine([(quotient, 1), (more, 1)], scope), rest
    return operation(FLOORDIV, x, y, scope), operation(MOD, x, y, scope)


def _long_division(x: Expression, y: Expression, scope: Any) -> tuple[Expression, Expression]:
    """(q, r) with x == q*y + r, and as many of the greatest terms of x in q as divide evenly."""
    names = sorted({factor for e in (x, y) for product, _ in terms_of(e) for factor, _ in product})

    def rank(term: tuple[Product, int]) -> tuple[int, list[int]]:  # an order that multiplication keeps
        powers = dict(term[0])
        return sum(powers.values()), [powers.get(name, 0) for name in names]

    quotient: Expression = 0
    rest = x
    by, coefficient = max(terms_of(y), key=rank)
    while isinstance(rest, Dimension):
        product, count = max(rest.terms, key=rank)
        ratio = _ratio(product, by)
        if ratio is None or count % coefficient:
            break
        part = _normal({ratio: count // coefficient}, scope)
        left = combine([(rest, 1), (multiply(part, y), -1)], scope)
        if isinstance(left, Dimension) and max(map(rank, left.terms)) >= rank((product, count)):
            break  # an equality of the scope has put something greater there
        quotient, rest = combine([(quotient, 1), (part, 1)], scope), left
    return quotient, rest


def operation(name: str, x: Expression, y: Expression, scope: Any) -> Expression:
    """floordiv, mod, max or min of two expressions as it stands."""
    return of_product(((Factor(name, (x, y)), 1),), scope)


def max_dim(x: Expression, y: Expression) -> Any:
    """The greater of two dimensions: one of them where that is decided, else max(x, y)."""
    return _extreme(x, y, MAX)


def min_dim(x: Expression, y: Expression) -> Any:
    """The smaller of two dimensions: one of them where that is decided, else min(x, y)."""
    return _extreme(x, y, MIN)


def _extreme(x: Expression, y: Expression, name: str) -> Expression:
    if not isinstance(x, Dimension) and not isinstance(y, Dimension):
        return max(x, y) if name == MAX else min(x, y)
    scope = _scope(x, y)
    low, high = _bounds(combine([(x, 1), (y, -1)], scope), lambda lo, hi: lo >= 0 or hi <= 0)
    if low >= 0 or high <= 0:
        return x if (low >= 0) == (name == MAX) else y
    return operation(name, x, y, scope)


def _bounds(e: Expression, enough: Callable[[float, float], bool]) -> tuple[float, float]:
    return e.scope.bounds(e, enough) if isinstance(e, Dimension) else (e, e)


def _decide(x: Dimension, y: Any, sign: str, greater: Any, lesser: Any, least: int) -> bool:
    """Whether greater - lesser >= least."""
    if expression(y) is None:
        value = x.dimension_as_value()
        return {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}[sign](value, y)
    scope = _scope(x, y, f"comparing '{x}' {sign} '{y}'")
    difference = combine([(integral(greater), 1), (integral(lesser), -1)], scope)
    low, high = _bounds(difference, lambda lo, hi: lo >= least or hi < least)
    if low >= least:
        return True
    if high < least:
        return False
    constraints = f"\nIn the scope {scope}" if scope.constraints else ""
    raise InconclusiveDimensionOperation(
        f"Symbolic dimension comparison '{x}' {sign} '{y}' is inconclusive: it holds for some values of the dimension "
        f"variables and not for others, or this can't be decided.{constraints}\nIf it holds in all calls, say so in "
        "`constraints=` of symbolic_shape, symbolic_args_specs or SymbolicScope."
    )


def _scope(x: Any, y: Any, when: str = "combining dimensions") -> Any:
    """The scope of both; ValueError if they are of different scopes."""
    mine, other = getattr(x, "scope", None), getattr(y, "scope", None)
    if mine is None or other is None or mine is other:
        return other if mine is None else mine
    raise ValueError(
        f"Invalid mixing of symbolic scopes when {when}: '{x}' is of the scope {mine}, and '{y}' of the scope {other}. "
        "Make the shapes with one `scope=`."
    )


def factors(e: Expression) -> Iterator[Factor]:
    """All factors in an expression, those inside of operations too."""
    for product, _ in terms_of(e):
        for factor, _ in product:
            yield factor
            for operand in factor.operands:
                yield from factors(operand)


def variables(e: Expression) -> list[str]:
    """The names of the variables in an expression, each once."""
    return list(dict.fromkeys(factor.name for factor in factors(e) if not factor.operands))


def evaluate(e: Expression, values: Mapping[str, Any]) -> Any:
    """The expression with values, ints or Dimensions of another scope, for its variables; KeyError if one has none."""
    if not isinstance(e, Dimension):
        return e
    total: Any = 0
    for product, count in e.terms:
        part: Any = count
        for factor, power in product:
            part = part * _value(factor, values) ** power
        total = total + part
    return total


def _value(factor: Factor, values: Mapping[str, Any]) -> Any:
    if not factor.operands:
        return values[factor.name]
    x, y = (evaluate(operand, values) for operand in factor.operands)
    if factor.name == FLOORDIV:
        return x // y
    return x % y if factor.name == MOD else _extreme(x, y, factor.name)


def _text(e: Expression) -> str:
    parts = []
    for product, count in terms_of(e) or ((ONE, 0),):
        sign = " - " if count < 0 else " + "
        names = [f"{factor}^{power}" if power > 1 else str(factor) for factor, power in product]
        if abs(count) != 1 or not names:
            names.insert(0, str(abs(count)))
        parts.append(sign + "*".join(names))
    text = "".join(parts)
    return text[3:] if text.startswith(" + ") else text[1:]


def is_at_least(x: Expression, y: Expression) -> bool:
    """Whether x >= y for all values of the variables; False also where that is not decided."""
    try:
        return x >= y
    except InconclusiveDimensionOperation:
        return False


def slice_of_symbolic(
    start: Expression | None, stop: Expression | None, step: Expression | None, length: Expression
) -> tuple[Any, Any, int, Any]:
    """(first place, number of places, step, how far it reaches) of a slice of an axis, cut off at its ends as Python
    does it.

    InconclusiveDimensionOperation for a step that is symbolic, or a start or stop of unknown sign.
    """
    by = 1 if step is None else int(step)
    if by == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, length) if by > 0 else (-1, combine([(length, 1), (-1, 1)], _scope(length, 0)))

    def place(p: Expression) -> Expression:
        return max_dim(low, p + length) if p < 0 else min_dim(high, p)

    first = (low if by > 0 else high) if start is None else place(start)
    end = (high if by > 0 else low) if stop is None else place(stop)
    distance = end - first if by > 0 else first - end
    return first, max_dim((distance + abs(by) - 1) // abs(by), 0), by, max_dim(distance, 0)
