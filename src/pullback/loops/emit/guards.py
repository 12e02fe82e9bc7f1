"""Which loads stand under the branch of a `select` that may not be taken, and under what condition they are needed.

A load that several branches need for different reasons gets the condition they share, and `clamp`: its index is then
moved into the buffer, since it may be performed without need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.loops.ir.ir import Expr, Load, Op
from pullback.loops.ir.visit import operands
from pullback.util.record import frozen_record


@frozen_record
class Guard:
    """Needed only if every (condition, polarity) of `chain` holds."""

    chain: tuple[tuple[Expr, bool], ...] = ()
    clamp: bool = False


ALWAYS = Guard()


def _merge(a: Guard, b: Guard) -> Guard:
    """A guard that holds wherever `a` or `b` does."""
    if a is b:
        return a
    shared = 0
    for (c, p), (d, q) in zip(a.chain, b.chain):
        if c is not d or p != q:
            break
        shared += 1
    rest_a, rest_b = len(a.chain) - shared, len(b.chain) - shared
    exact = rest_a == 0 or rest_b == 0
    if rest_a == 1 and rest_b == 1 and a.chain[-1][0] is b.chain[-1][0]:
        exact = True  # c or not c
    if rest_a == 0 and not a.clamp:
        return a
    if rest_b == 0 and not b.clamp:
        return b
    return Guard(a.chain[:shared], a.clamp or b.clamp or not exact)


def load_guards(order: Sequence[Expr], roots: Sequence[Expr], inside: Callable[[Load], bool]) -> dict[Expr, Guard]:
    """The guard of each load (by id) that is not always needed; loads with `inside` (never out of bounds) have none.

    `order` has all subexpressions of `roots`, operands before users.
    """
    if all(inside(expr) for expr in order if isinstance(expr, Load)):
        return {}
    need: dict[Expr, Guard] = dict.fromkeys(roots, ALWAYS)
    found: dict[Expr, Guard] = {}
    for expr in reversed(order):  # users before operands
        guard = need[expr]
        if isinstance(expr, Load) and (guard.chain or guard.clamp) and not inside(expr):
            found[expr] = guard
        for k, operand in enumerate(operands(expr)):
            its = guard
            if k > 0 and isinstance(expr, Op) and expr.name == "select":
                its = Guard((*guard.chain, (expr.args[0], k == 1)), guard.clamp)
            known = need.get(operand)
            need[operand] = its if known is None else _merge(known, its)
    return found
