"""Algebra on single equations and their neighbours, as a table of rules by primitive.

Rules keep results bit for bit, but for x + 0 = x, which turns -0 + 0 into -0, and for products with masks (`_masked`).
They make scalars stay scalars (a product with a broadcast number is a product with the number), so that they live in
registers, and merge movement with movement (movement.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.bounds import never_below
from pullback.compiler.graph.simplify.movement import MOVEMENT_RULES, is_plain
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, same_type
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise
from pullback.core.primitive import registry
from pullback.core.types import CONSTRAINTS
from pullback.util import dtypes


def _to_scalars(r: Rewriter, eqn: JaxprEqn) -> Any:
    """f(x, broadcast(c)) = f(x, c); f(broadcast(a), broadcast(b)) = broadcast(f(a, b))."""
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return None
    new = []
    all_splats, changes = True, False
    for atom in eqn.invars:
        number = r.splat(atom) if atom.aval.shape else atom
        if number is None:
            all_splats = False
        elif number is not atom:
            changes = True
        new.append(atom if number is None else number)
    if all_splats:
        return r.broadcast(r.emit(eqn.primitive, *new, **eqn.params), shape, ())
    if not changes or eqn.primitive.name in (
        "convert_element_type",
        "select_n",
        "clamp",
    ):
        return None
    return r.emit(eqn.primitive, *new, **eqn.params)


def _grown(r: Rewriter, eqn: JaxprEqn, atom: Any) -> Any:
    """`atom` as the result of `eqn`: a rank-0 one is broadcast."""
    out = eqn.outvars[0].aval
    if atom.aval.dtype != out.dtype:
        return None
    if atom.aval.shape == out.shape:
        return atom
    return r.broadcast(atom, out.shape, ()) if not atom.aval.shape else None


def _add(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 0):
        return _grown(r, eqn, x)
    if r.is_scalar(x, 0):
        return _grown(r, eqn, y)
    for a, b in ((x, y), (y, x)):
        negated = r.definition(b, "neg")
        if negated is not None:
            return r.emit("sub", a, negated.invars[0])
    return None


def _sub(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 0):
        return _grown(r, eqn, x)
    if r.is_scalar(x, 0) and dtypes.kind_of(y.aval.dtype) in "iu":
        return _grown(r, eqn, r.emit("neg", y)) if y.aval.shape == eqn.outvars[0].aval.shape else None
    negated = r.definition(y, "neg")
    return None if negated is None else r.emit("add", x, negated.invars[0])


def _mul(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    out = eqn.outvars[0].aval
    for a, b in ((x, y), (y, x)):
        value = r.scalar(b)
        if value is None:
            continue
        if value == 1:
            return _grown(r, eqn, a)
        if value == 0 and out.dtype.kind in "iub":
            return r.full(out, 0)
        if value == -1 and a.aval.shape == out.shape and out.dtype.kind in "ifc":
            return r.emit("neg", a)
    left, right = r.definition(x, "neg"), r.definition(y, "neg")
    if left is not None and right is not None:
        return r.emit("mul", left.invars[0], right.invars[0])
    return None


def _of_one_bit(r: Rewriter, eqn: JaxprEqn) -> Any:
    """(x & 1) * c = -(x & 1) & c: a step of a bitwise CRC waits for three cycles in place of four or more."""
    x, y = eqn.invars
    for a, b in ((x, y), (y, x)):
        value, inner = r.scalar(b), r.definition(a, "and")
        if value is None or inner is None or a.aval.dtype.kind != "u" or int(value) & (int(value) - 1) == 0:
            continue  # a power of two is a shift
        if any(r.is_scalar(operand, 1) for operand in inner.invars):
            return r.emit("and", r.emit("neg", a), b)
    return None


def _masked(r: Rewriter, eqn: JaxprEqn) -> Any:
    """x * convert(mask) = where(mask, x, 0), for a mask of the product's shape: nan and inf are gone where it is False.

    So it is in JAX's compiled programs, on which masked losses rely; evaluated one by one both give nan.
    """
    out = eqn.outvars[0].aval
    if out.dtype.kind not in "fc":
        return None
    for x, y in (eqn.invars, reversed(eqn.invars)):
        made = r.definition(y, "convert_element_type")
        mask = made.invars[0] if made is not None else None
        if mask is None or mask.aval.dtype != np.bool_ or mask.aval.shape != out.shape:
            continue
        number = r.scalar(x)
        if number is None or not np.isfinite(number):  # a number times a mask is read as a matrix of structure
            return r.emit("select_n", mask, r.full(out, 0), _grown(r, eqn, x))
    return None


def _div(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 1):
        return _grown(r, eqn, x)
    value = r.scalar(y)
    if value is not None and eqn.outvars[0].aval.dtype.kind == "f" and np.isfinite(value) and value != 0:
        mantissa, exponent = math.frexp(float(value))
        if abs(mantissa) == 0.5 and abs(exponent) < 100:  # a power of two: the reciprocal is exact
            reciprocal = Literal(np.asarray(1.0 / float(value)).astype(y.aval.dtype)[()], y.aval.update(shape=()))
            return _grown(r, eqn, r.emit("mul", x, reciprocal))
    return None


def _neg(r: Rewriter, eqn: JaxprEqn) -> Any:
    inner = r.definition(eqn.invars[0], "neg")
    if inner is not None:
        return inner.invars[0]
    inner = r.definition(eqn.invars[0], "sub")
    if inner is not None and eqn.outvars[0].aval.dtype.kind == "i":
        return r.emit("sub", *reversed(inner.invars))
    return None


def _not_a_number(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Whether a number is that of which it is the negative or the absolute value: all are NaN or none."""
    x, y = eqn.invars
    if x is not y or isinstance(x, Literal) or dtypes.kind_of(x.aval.dtype) != "f":
        return None
    made = r.definition(x, "neg", "abs")  # of a complex one it would be of another type
    if made is None or made.invars[0].aval.dtype != x.aval.dtype:
        return None
    return r.emit(eqn.primitive.name, made.invars[0], made.invars[0])


def _idempotent(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    return x if x is y else None


def _integer_pow(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars[0], eqn.params["y"]
    if y == 1:
        return x
    if y == 2:
        return r.emit("square", x) if dtypes.kind_of(x.aval.dtype) == "c" else r.emit("mul", x, x)
    return None


def _square(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    # The square of a complex number is finite where the terms of the product overflow.
    return None if dtypes.kind_of(x.aval.dtype) == "c" else r.emit("mul", x, x)


def _abs(r: Rewriter, eqn: JaxprEqn) -> Any:
    negated = r.definition(eqn.invars[0], "neg")
    if negated is not None:
        return r.emit("abs", negated.invars[0])
    inner = r.definition(eqn.invars[0], "abs")
    return None if inner is None or dtypes.kind_of(inner.invars[0].aval.dtype) == "c" else eqn.invars[0]


def _root(r: Rewriter, eqn: JaxprEqn) -> Any:
    """sqrt(x * x) = |x|, also where x * x overflows or is zero; so is the norm of one element."""
    x = eqn.invars[0]
    if dtypes.kind_of(x.aval.dtype) != "f" or (len(eqn.invars) == 2 and not r.is_scalar(eqn.invars[1], 0.5)):
        return None
    made = r.definition(x)
    if made is not None and made.primitive.name == "reshape" and is_plain(made):
        x = made.invars[0]
    product = r.definition(x, "mul")
    if product is None or product.invars[0] is not product.invars[1]:
        return None
    return r.reshape(r.emit("abs", product.invars[0]), eqn.outvars[0].aval.shape)


def _select(r: Rewriter, eqn: JaxprEqn) -> Any:
    which, *cases = eqn.invars
    value = r.scalar(which)
    if value is not None and 0 <= int(value) < len(cases):
        chosen = cases[int(value)]
    elif all(c is cases[0] for c in cases):
        chosen = cases[0]
    else:
        return None
    shape = eqn.outvars[0].aval.shape
    return chosen if chosen.aval.shape == shape else r.broadcast(chosen, shape, ())  # one number for all elements


def _select_where_any(r: Rewriter, eqn: JaxprEqn) -> Any:
    """where(any(m), where(m, new, old), old) = where(m, new, old): in batches of batches loops choose twice."""
    which, *cases = eqn.invars
    if len(cases) != 2:
        return None
    old, inner = cases[0], r.definition(cases[1], "select_n")
    if inner is None or len(inner.invars) != 3 or inner.invars[1] is not old:
        return None
    mask, wide = inner.invars[0], r.definition(which, "broadcast_in_dim")
    found = None if wide is None else r.definition(wide.invars[0], "reduce_or")
    if wide is None or found is None or found.invars[0] is not mask or mask.aval.shape != which.aval.shape:
        return None
    kept = tuple(a for a in range(mask.aval.ndim) if a not in found.params["axes"])
    return cases[1] if tuple(wide.params["broadcast_dimensions"]) == kept else None


def _convert(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if x.aval.dtype == out.dtype:
        return x
    inner = r.definition(x, "convert_element_type")
    if inner is not None and _holds(inner.invars[0].aval.dtype, x.aval.dtype):
        source = inner.invars[0]
        if source.aval.dtype == out.dtype:
            return source
        return r.emit("convert_element_type", source, new_dtype=out.dtype, weak_type=out.weak_type)
    return None


def _holds(narrow: np.dtype, wide: np.dtype) -> bool:
    """Whether every value of `narrow` is one of `wide` of the same kind."""
    if narrow.kind == "b":
        return wide.kind in "iuf"
    if narrow.kind == wide.kind and narrow.kind in "iufc":
        return narrow.itemsize <= wide.itemsize
    return narrow.kind == "u" and wide.kind == "i" and narrow.itemsize < wide.itemsize


def _add_any(r: Rewriter, eqn: JaxprEqn) -> Any:
    return r.emit("add", *eqn.invars) if eqn.outvars[0].aval.dtype.kind in "iufc" else None


def _identity(r: Rewriter, eqn: JaxprEqn) -> Any:
    return same_type(eqn, eqn.invars[0])


# Reductions.


_RULES: dict[str, tuple[Callable[..., Any], ...]] = {
    "add": (_add,),
    "add_any": (_add_any,),
    "sub": (_sub,),
    "mul": (_mul, _of_one_bit, _masked),
    "div": (_div,),
    "neg": (_neg,),
    "eq": (_not_a_number,),
    "ne": (_not_a_number,),
    "lt": (never_below,),
    "max": (_idempotent,),
    "min": (_idempotent,),
    "and": (_idempotent,),
    "or": (_idempotent,),
    "integer_pow": (_integer_pow,),
    "square": (_square,),
    "sqrt": (_root,),
    "abs": (_abs,),
    "pow": (_root,),
    "select_n": (_select, _select_where_any),
    "convert_element_type": (_convert,),
    "copy": (_identity,),
    "stop_gradient": (_identity,),
    "name": (_identity,),
    "copy_p": (_identity,),
    **dict.fromkeys(CONSTRAINTS, (_identity,)),
    **MOVEMENT_RULES,
}

_complete: dict[str, tuple[Rule, ...]] = {}


def simplification_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules, with the general one for elementwise primitives added to each of those that exist."""
    if len(_complete) < len(registry):
        for name, primitive in registry.items():
            rules = _RULES.get(name, ())
            if "elementwise" in primitive.traits and isinstance(primitive.lower, Elementwise):
                rules = (*rules, _to_scalars)
            _complete[name] = rules
    return _complete
