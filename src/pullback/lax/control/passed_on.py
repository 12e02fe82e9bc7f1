"""What the body of a scan only passes on: no step computes it, so it is no part of the loop.

A carry that no step changes is a constant of the body, and its last value the first; results that are the elements
given are the arrays given. So derivatives and compiled loops have neither to carry nor to store them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import ClosedJaxpr, Var
from pullback.util.record import NamedTuple

__all__ = ["Kept", "without_passed_on"]


class Kept(NamedTuple):
    """A scan's body without what it passes on: its constants are followed by the parts `fixed` of the carry."""

    body: ClosedJaxpr
    fixed: tuple[int, ...]
    rows: dict[int, int]  # number of a result of each step -> that of the elements given which it is
    n_carry: int

    def arguments(self, carry: Sequence[Any]) -> list[Any]:
        """The carry's values, the fixed ones first."""
        return [carry[k] for k in self.fixed] + [x for k, x in enumerate(carry) if k not in self.fixed]

    def results(self, outs: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """All of the results: last carry and results of steps."""
        rest, n = iter(outs), len(carry)
        last = [x if k in self.fixed else next(rest) for k, x in enumerate(carry)]
        n_rows = len(outs) - (n - len(self.fixed)) + len(self.rows)
        return [*last, *[xs[self.rows[k]] if k in self.rows else next(rest) for k in range(n_rows)]]


def without_passed_on(closed: ClosedJaxpr, n_consts: int, n_carry: int) -> Kept:
    """The body of a scan without carries that it gives back, and without results that are its elements."""
    jaxpr = closed.jaxpr
    consts, carry, xs = (
        jaxpr.invars[:n_consts],
        jaxpr.invars[n_consts : n_consts + n_carry],
        jaxpr.invars[n_consts + n_carry :],
    )
    last, rows = jaxpr.outvars[:n_carry], jaxpr.outvars[n_carry:]
    fixed = tuple([k for k, (before, after) in enumerate(zip(carry, last)) if before is after])
    numbers = {x: k for k, x in enumerate(xs)}
    passed = {k: numbers[y] for k, y in enumerate(rows) if type(y) is Var and y in numbers}
    if not fixed and not passed:
        return Kept(closed, fixed, passed, n_carry)
    others = [k for k in range(n_carry) if k not in fixed]
    invars = [*consts, *[carry[k] for k in fixed], *[carry[k] for k in others], *xs]
    outvars = [*[last[k] for k in others], *[y for k, y in enumerate(rows) if k not in passed]]
    body = ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars), closed.consts)
    return Kept(body, fixed, passed, len(others))
