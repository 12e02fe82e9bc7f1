"""What a program costs as it is written: operations and bytes, counted equation by equation, before anything is fused.

So the numbers of a composition are the sums of its parts', as users of `Lowered.cost_analysis()` expect who print a
table of a network's layers, and nothing is compiled for them. What the compiler makes of it is in the compiled
program's own analysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from pullback.core.types import CONSTRAINTS
from pullback.loops.ir.fold import is_math
from pullback.loops.ir.ops import OPS
from pullback.util.record import frozen_record

_PRODUCTS = frozenset({"square", "integer_pow"})  # math functions of the loops that are multiplications
_NOTHING = frozenset({"copy", "name", "stop_gradient", "stage", *CONSTRAINTS})


@frozen_record
class Cost:
    """Counts of one run; a loop of unknown length counts as one iteration, of branches the dearest."""

    flops: float = 0.0  # additions, multiplications, comparisons, choices, conversions: one for each element
    transcendentals: float = 0.0  # values of exp, sin, sqrt, ..., which are not among the flops
    bytes_read: float = 0.0
    bytes_written: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return self._with(other, float.__add__)

    def __mul__(self, times: float) -> Cost:
        return self._with(self, lambda a, _: a * times)

    def dearest(self, other: Cost) -> Cost:
        """The larger of each count."""
        return self._with(other, max)

    def _with(self, other: Cost, combine: Callable[[float, float], float]) -> Cost:
        return Cost(
            combine(self.flops, other.flops),
            combine(self.transcendentals, other.transcendentals),
            combine(self.bytes_read, other.bytes_read),
            combine(self.bytes_written, other.bytes_written),
        )


def cost_of(jaxpr: Jaxpr) -> Cost:
    """The sum over all equations."""
    total = Cost()
    for eqn in jaxpr.eqns:
        total = total + _of_equation(eqn)
    return total


def _of_equation(eqn: JaxprEqn) -> Cost:
    name, params = eqn.primitive.name, eqn.params
    if name == "cond":
        branches = [cost_of(b.jaxpr) for b in params["branches"]]
        dearest = branches[0]
        for branch in branches[1:]:
            dearest = dearest.dearest(branch)
        return dearest
    if name == "scan":
        return cost_of(params["jaxpr"].jaxpr) * float(params["length"])
    inner = jaxprs_in_params(params)
    if name == "while" or (inner and name not in _COUNTED and "reduction" not in eqn.primitive.traits):
        total = Cost()
        for jaxpr in _called(eqn, inner):
            total = total + cost_of(jaxpr)
        return total
    read = float(sum(_bytes(a.aval) for a in eqn.invars if not isinstance(a, Literal)))
    written = float(sum(_bytes(v.aval) for v in eqn.outvars))
    if _is_transcendental(name):
        return Cost(0.0, float(_size(eqn.outvars[0])), read, written)
    return Cost(float(_operations(eqn)), 0.0, read, written)


def _called(eqn: JaxprEqn, inner: list[Jaxpr]) -> list[Jaxpr]:
    """The jaxprs that a call runs: of a custom rule's only the function itself."""
    if eqn.primitive.name == "while":
        return [eqn.params["cond_jaxpr"].jaxpr, eqn.params["body_jaxpr"].jaxpr]
    for key in ("call_jaxpr", "jaxpr", "fun_jaxpr"):
        found = eqn.params.get(key)
        if isinstance(found, ClosedJaxpr):
            return [found.jaxpr]
        if isinstance(found, Jaxpr):
            return [found]
    return inner[:1]


def _is_transcendental(name: str) -> bool:
    known = name in OPS and (name == "sqrt" or is_math(name))
    return known and name not in _PRODUCTS


def _operations(eqn: JaxprEqn) -> int:
    name, traits, out = eqn.primitive.name, eqn.primitive.traits, _size(eqn.outvars[0]) if eqn.outvars else 0
    if name in _COUNTED:
        return _COUNTED[name](eqn)
    if name in _NOTHING:
        return 0
    if "reduction" in traits:
        return max(0, _size(eqn.invars[0]) - out)
    if "scatter" in traits:
        return 0 if name == "scatter" else _size(eqn.invars[2])
    return out if "elementwise" in traits else 0


def _product(eqn: JaxprEqn) -> int:
    contracted = eqn.params["dimension_numbers"][0][0]
    shape = eqn.invars[0].aval.shape
    return 2 * _size(eqn.outvars[0]) * math.prod(int(shape[a]) for a in contracted)


def _convolution(eqn: JaxprEqn) -> int:
    """Two for each product of an element, not of the padding nor of the gaps of dilations, with a weight."""
    p, (x, w), y = eqn.params, [a.aval.shape for a in eqn.invars], eqn.outvars[0].aval.shape
    lhs, rhs, out = p["dimension_numbers"]
    met = 1
    for k, axis in enumerate(lhs[2:]):
        n, m, places = int(x[axis]), int(w[rhs[2 + k]]), int(y[out[2 + k]])
        low, stride = p["padding"][k][0], p["window_strides"][k]
        gap, hole = p["lhs_dilation"][k], p["rhs_dilation"][k]
        met *= sum(
            0 <= (at := o * stride + t * hole - low) <= (n - 1) * gap and at % gap == 0
            for o in range(places)
            for t in range(m)
        )
    return 2 * met * int(y[out[0]]) * int(y[out[1]]) * int(w[rhs[1]])


def _power(eqn: JaxprEqn) -> int:
    """Multiplications of repeated squaring."""
    y = abs(int(eqn.params["y"]))
    steps = max(0, y.bit_length() - 1 + y.bit_count() - 1) if y else 0
    return _size(eqn.outvars[0]) * (steps + (eqn.params["y"] < 0))


def _window(eqn: JaxprEqn) -> int:
    return _size(eqn.outvars[0]) * max(0, math.prod(eqn.params["window_dimensions"]) - 1)


def _sorted(eqn: JaxprEqn) -> int:
    axis = eqn.params.get("dimension", -1)
    shape = eqn.invars[0].aval.shape
    length = int(shape[axis]) if shape else 1
    return _size(eqn.invars[0]) * math.ceil(math.log2(max(1, length)))


_COUNTED: dict[str, Callable[[JaxprEqn], int]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "integer_pow": _power,
    "sort": _sorted,
    **dict.fromkeys(("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"), _window),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), lambda e: _size(e.outvars[0])),
}


def _size(atom: Any) -> int:
    return math.prod(int(n) for n in atom.aval.shape)


def _bytes(aval: Any) -> int:
    shape = getattr(aval, "shape", ())
    return math.prod(int(n) for n in shape) * getattr(aval.dtype, "itemsize", 0)
