"""Scopes of symbolic dimensions: which constraints hold between variables.

An equality is a rewriting rule as well: where the left side is one product, it becomes the right side wherever it turns
up. An inequality is a fact for bounds.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.core.dimensions.bounds import Bounds, Enough
from pullback.core.dimensions.expressions import (
    FLOORDIV,
    MOD,
    ONE,
    Dimension,
    Expression,
    Product,
    combine,
    factors,
    multiply,
    operation,
    terms_of,
)
from pullback.core.dimensions.specs import parse_expression
from pullback.core.source import user_source
from pullback.util.locks import Lock
from pullback.util.record import NamedTuple


class Constraint(NamedTuple):
    """What the user said of dimensions: `difference` is 0 (equal), or 0 at least."""

    text: str
    difference: Dimension
    equal: bool


class SymbolicScope:
    """Dimension variables that may occur together, and the constraints on them.

    constraints: strings such as "a >= 4", "b <= 2*a" or "mod(c, 2) == 0". Each call of an exported function checks
    them. Raises ValueError for what is no constraint, or one that never holds.

    >>> a, b = symbolic_shape("a, b", scope=SymbolicScope(["a >= 4", "b == 2*a"]))
    >>> a >= 3, b
    (True, 2*a)
    """

    def __init__(self, constraints: Sequence[str] = ()):
        if isinstance(constraints, str) or not isinstance(constraints, Sequence):
            raise ValueError(
                f"SymbolicScope: expected a list of constraints such as 'a >= 2', each a str; got {constraints!r}"
            )
        self._source = user_source()
        self._given = tuple(constraints)
        self._rules: dict[Product, tuple[int, Expression]] = {}
        self.constraints: list[Constraint] = []
        self._lock = Lock()
        self._restart()
        for text in self._given:
            if not isinstance(text, str):
                raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
            self._add(text)

    def __reduce__(self):
        return SymbolicScope, (self._given,)

    def __copy__(self) -> SymbolicScope:
        return self

    def __deepcopy__(self, memo: object) -> SymbolicScope:
        return self

    def __repr__(self) -> str:
        made = f" created at {self._source}" if self._source is not None else ""
        held = "".join(f"\n  {constraint.text}" for constraint in self.constraints)
        return f"{id(self)}{made}" + (f" with constraints:{held}" if held else "")

    def _restart(self) -> None:
        # Negated by hand: `combine` would apply the equality itself, and leave 0.
        facts = [c.difference for c in self.constraints]
        facts += [Dimension(tuple((p, -n) for p, n in c.difference.terms), self) for c in self.constraints if c.equal]
        self._bounds = Bounds(facts)

    def bounds(self, e: Expression, enough: Enough) -> tuple[float, float]:
        """Numbers that e lies between for all values of the variables; the search ends where they are enough."""
        with self._lock:
            return self._bounds.of(e, enough)

    def rule(self, product: Product) -> tuple[int, Expression] | None:
        """(k, e) where k times the product is e by an equality that the user gave."""
        return self._rules.get(product) if self._rules else None

    def _add(self, text: str) -> None:
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError(f"Constraint parsing error: {text!r} has no '==', '>=' or '<=' between two sides")
        left_text, _, right_text = text.partition(sign)
        left, right = parse_expression(left_text, self), parse_expression(right_text, self)
        difference = combine([(left, 1), (right, -1)] if sign != "<=" else [(right, 1), (left, -1)], self)
        if not isinstance(difference, Dimension):
            if difference < 0 or (sign == "==" and difference):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        if sign == "==":
            self._add_rule(left, right, text)
        self.constraints.append(Constraint(text, difference, sign == "=="))
        self._restart()

    def _add_rule(self, left: Expression, right: Expression, text: str) -> None:
        terms = terms_of(left)
        if len(terms) != 1 or terms[0][0] == ONE:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand side must be one product, with a coefficient at "
                "most"
            )
        ((product, count),) = terms
        if count < 0:
            count, right = -count, combine([(right, -1)], self)
        (factor, power), *more = product
        if factor.name == MOD and factor.operands and not more and (power, count, right) == (1, 1, 0):
            x, y = factor.operands  # y divides x: say what that means for x // y as well
            self._set_rule(multiply(operation(FLOORDIV, x, y, self), y), x, text)
        self._set_rule_of(product, count, right, text)

    def _set_rule(self, left: Expression, right: Expression, text: str) -> None:
        terms = terms_of(left)
        if len(terms) == 1:
            self._set_rule_of(terms[0][0], terms[0][1], right, text)

    def _set_rule_of(self, product: Product, count: int, right: Expression, text: str) -> None:
        if product in self._rules:
            raise NotImplementedError(
                f"{text}: another equality constraint of this scope says already what its left side is"
            )
        inside = set(factors(right))
        if all(factor in inside for factor, _ in product):
            return  # would turn up in its own place: it stays a fact
        self._rules[product] = count, right


__all__ = ["Constraint", "SymbolicScope"]
