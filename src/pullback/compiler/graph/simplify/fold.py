"""Constant folding: equations of known operands are evaluated at compile time, by their references.

Results are kept up to a bounded size: a big array is cheaper to compute than to store in the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import MAX_OPERAND, Rewriter, Rule
from pullback.core.hooks import hooks
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise, HostCall, Pointwise, Reduction
from pullback.core.primitive import registry

MAX_RESULT = 256  # elements
NEVER = {"barrier", "opaque"}  # opaque: a user's function, which may be in a branch that is not taken, and fail


def _fold(r: Rewriter, eqn: JaxprEqn) -> Any:
    for atom in eqn.invars:
        if type(atom) is not Literal and atom.aval.size != 1 and atom not in r.consts:
            return None
    if len(eqn.outvars) != 1 or not eqn.primitive.has_rule("reference") or eqn.primitive.traits & NEVER:
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
        reference = hooks.reference_of(eqn.primitive, [atom.aval for atom in eqn.invars])
        result = np.asarray(reference(*values, **eqn.params))
    if result.shape != out.shape or result.dtype != out.dtype:
        return None
    return r.const(result, out)


def _element_of_iota(r: Rewriter, eqn: JaxprEqn) -> Any:
    """One element of an iota is its index."""
    out = eqn.outvars[0].aval
    iota = r.definition(eqn.invars[0], "iota")
    if out.size != 1 or iota is None:
        return None
    number = np.asarray(eqn.params["start_indices"][iota.params["dimension"]]).astype(out.dtype)
    return r.full(out, number)


_complete: dict[str, tuple[Rule, ...]] = {}


def folding_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules, by primitive."""
    if len(_complete) < len(registry):
        for name, primitive in registry.items():
            kind = primitive.lower
            foldable = isinstance(kind, (Elementwise, Pointwise, Reduction, HostCall)) or "product" in primitive.traits
            rules: tuple[Rule, ...] = (_fold,) if foldable else ()
            _complete[name] = (_element_of_iota, *rules) if name == "slice" else rules
    return _complete
