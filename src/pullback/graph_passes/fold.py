"""Constant folding: equations of known operands are evaluated at compile time, by their references.

Results are kept up to a bounded size: a big array is cheaper to compute than to store in the program.
Also sums of arithmetic progressions: reduce_sum of a * iota + b is a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise, HostCall, Pointwise, Reduction
from pullback.core.primitive import registry
from pullback.graph_passes.rewrite import Rewriter, Rule

MAX_RESULT = 256  # elements
MAX_OPERAND = 4096


def _fold(r: Rewriter, eqn: JaxprEqn) -> Any:
    if len(eqn.outvars) != 1 or not eqn.primitive.has_rule("reference") or "barrier" in eqn.primitive.traits:
        return None
    out = eqn.outvars[0].aval
    if not isinstance(out.dtype, np.dtype) or out.size > MAX_RESULT or (not eqn.invars and out.size > 1):
        return None
    if eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
        return None  # a broadcast number says more than an array of it
    if not all(isinstance(a, Literal) for a in eqn.invars):
        if out.size == eqn.invars[0].aval.size and out.size > 1 and isinstance(eqn.primitive.lower, Pointwise):
            return None  # movement is free
        if any(a.aval.size > MAX_OPERAND for a in eqn.invars):
            return None
    values = []
    for atom in eqn.invars:
        value = r.constant(atom)
        if value is None:
            return None
        values.append(value.astype(atom.aval.dtype, copy=False))
    if out.size > 1 and all(v.size == 1 for v in values):
        return None
    with np.errstate(all="ignore"):
        result = np.asarray(eqn.primitive.reference(*values, **eqn.params))
    if result.shape != out.shape or result.dtype != out.dtype:
        return None
    return r.const(result, out)


def _sum_of_progression(r: Rewriter, eqn: JaxprEqn) -> Any:
    """sum(a * i + b for i < n) = a n(n-1)/2 + b n, in the arithmetic of the result's type."""
    out = eqn.outvars[0].aval
    x = eqn.invars[0]
    if out.shape or out.dtype.kind not in "iuf":
        return None
    found = _progression(r, x)
    if found is None:
        return None
    slope, offset, axis = found
    n = x.aval.shape[axis]
    others = x.aval.size // n if n else 0
    total = (slope * (n * (n - 1) // 2) + offset * n) * others
    if out.dtype.kind in "iu":
        bits = 8 * out.dtype.itemsize
        total = int(total) & ((1 << bits) - 1)
        value = np.asarray(total, f"u{out.dtype.itemsize}").view(out.dtype)
    else:
        value = np.asarray(float(total)).astype(out.dtype)
    return Literal(value[()], out)


def _progression(r: Rewriter, atom: Any) -> tuple[Any, Any, int] | None:
    """(slope, offset, axis) of an array a * iota + b, with integers or exact floats."""
    eqn = r.definition(atom)
    if eqn is None:
        return None
    name = eqn.primitive.name
    if name == "iota":
        dtype = eqn.params["dtype"]
        n = eqn.params["shape"][eqn.params["dimension"]]
        limit = np.iinfo(dtype).max if dtype.kind in "iu" else 2 ** np.finfo(dtype).nmant if dtype.kind == "f" else 0
        return (1, 0, eqn.params["dimension"]) if n - 1 <= limit else None
    if name == "convert_element_type":
        inner = _progression(r, eqn.invars[0])
        if inner is None:
            return None
        slope, offset, axis = inner
        n = atom.aval.shape[axis]
        ends = (offset, slope * (n - 1) + offset)
        dtype = atom.aval.dtype
        if dtype.kind == "f" and max(map(abs, ends)) <= 2 ** np.finfo(dtype).nmant:
            return inner
        if dtype.kind in "iu" and np.iinfo(dtype).min <= min(ends) and max(ends) <= np.iinfo(dtype).max:
            return inner
        return None
    if name in ("add", "mul", "sub"):
        for a, b in (eqn.invars, reversed(eqn.invars)):
            value = r.scalar(b)
            inner = _progression(r, a) if value is not None else None
            if inner is None or (value.dtype.kind == "f" and not float(value).is_integer()):
                continue
            slope, offset, axis = inner
            k = int(value)
            if name == "mul":
                slope, offset = slope * k, offset * k
            elif name == "add":
                offset += k
            elif a is eqn.invars[0]:
                offset -= k
            else:
                slope, offset = -slope, k - offset
            n = atom.aval.shape[axis]
            largest = max(abs(offset), abs(slope * (n - 1) + offset))
            dtype = atom.aval.dtype
            exact = largest <= (np.iinfo(dtype).max if dtype.kind in "iu" else 2 ** np.finfo(dtype).nmant)
            return (
                (slope, offset, axis)
                if exact and (dtype.kind != "u" or min(offset, slope * (n - 1) + offset) >= 0)
                else None
            )
    return None


_complete: dict[str, tuple[Rule, ...]] = {}


def folding_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules, by primitive."""
    if len(_complete) < len(registry):
        for name, primitive in registry.items():
            kind = primitive.lower
            foldable = isinstance(kind, (Elementwise, Pointwise, Reduction, HostCall)) or "product" in primitive.traits
            rules: tuple[Rule, ...] = (_fold,) if foldable else ()
            _complete[name] = (_sum_of_progression, *rules) if name == "reduce_sum" else rules
    return _complete
