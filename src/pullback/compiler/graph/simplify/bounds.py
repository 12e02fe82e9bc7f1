"""Whole numbers that are known not to be negative: places that a program keeps in bounds itself.

    j = max(min(i, 99), 0); select(j < 0, j + 100, j)    =>    j

Indices may count from the end, so each is asked whether it is negative. What asks needs its index three times, and
looks so dear to fusion that it is stored.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.jaxpr import JaxprEqn

MAX_DEPTH = 8  # equations that are looked at, one after the other


def never_below(r: Rewriter, eqn: JaxprEqn) -> Any:
    """x < 0 is false where x is known not to be negative."""
    x, bound = eqn.invars
    if x.aval.dtype.kind not in "iu" or not r.is_scalar(bound, 0) or not is_not_negative(r, x):
        return None
    return r.full(eqn.outvars[0].aval, False)


def is_not_negative(r: Rewriter, atom: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether whole numbers are known to be 0 or more."""
    number = r.scalar(atom)
    if number is not None:
        return bool(number >= 0)
    if atom.aval.dtype.kind == "u":
        return True
    eqn = r.definition(atom)
    if eqn is None or not depth:
        return False
    match eqn.primitive.name:
        case "max":
            return any(is_not_negative(r, x, depth - 1) for x in eqn.invars)
        case "min":
            return all(is_not_negative(r, x, depth - 1) for x in eqn.invars)
        case "clamp":
            low, _, high = eqn.invars
            return is_not_negative(r, low, depth - 1) and is_not_negative(r, high, depth - 1)
        case "broadcast_in_dim" | "reshape" | "squeeze" | "expand_dims" | "transpose" | "slice":
            return is_not_negative(r, eqn.invars[0], depth - 1)
        case "convert_element_type":
            (x,) = eqn.invars
            widened = x.aval.dtype.kind in "ib" and x.aval.dtype.itemsize <= atom.aval.dtype.itemsize
            return widened and (x.aval.dtype.kind == "b" or is_not_negative(r, x, depth - 1))
    return False
