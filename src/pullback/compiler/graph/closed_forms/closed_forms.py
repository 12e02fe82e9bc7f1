"""Sums over indices, and loops that scalar evolution can close, become constants or closed forms.

    sum(iota(n))                               n (n - 1) / 2, a number
    sum(a * i * i + b * i + c), i = iota(n)    a * S2 + b * S1 + c * n
    fori_loop(0, n, lambda i, s: s + i, 0)     n (n - 1) / 2 of a count that may be traced
    s = s * a + b, n times                     s * A + B by repeated squaring

Integers are exact modulo 2^w. Sums of floats are written in float64 and rounded once, so they are at least as accurate
as the sum they replace: with outside values only for types narrower than that, or of a single term. Where an outside
value times the indices would make nan (inf * 0, or infinities of both signs) the closed form does too; a sum whose
elements overflow on the way to a finite value may be finite. Loops over floats (`closed_loops.py`) are closed where
every step is exact only.

Measured: the pass takes 0.1 of the 18 ms that the graph passes of a training loop take.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.compiler.graph.closed_forms import polynomials as poly
from pullback.compiler.graph.closed_forms.closed_loops import LOOP_RULES
from pullback.compiler.graph.closed_forms.index_forms import (
    Factor,
    Form,
    NoForm,
    Term,
    holds,
    is_float,
    is_integer,
    outer_forms,
)
from pullback.compiler.graph.closed_forms.write_forms import Unwritable, placed, write
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal

F64 = np.dtype(np.float64)
FEW_FLOATS = 8  # elements of floats that are added as quickly


def close_forms(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with sums over indices and closable loops replaced, also inside of loops and branches."""
    names = {eqn.primitive.name for eqn in closed.eqns}
    if names.isdisjoint(("scan", "while", "cond")) and not names.issuperset(("iota", "reduce_sum")):
        return closed
    return Rewriter(closed, _RULES, "closed_forms").run(close_forms)


def _sum(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sum along axes that none of the outside values lies along."""
    x, out, axes = eqn.invars[0], eqn.outvars[0].aval, eqn.params["axes"]
    if isinstance(x, Literal) or not (is_integer(out.dtype) or is_float(out.dtype)) or 0 in x.aval.shape:
        return None
    if "indices" not in r.notes:
        r.notes["indices"] = any(e.primitive.name == "iota" for e in r.closed.eqns)
    if not r.notes["indices"]:
        return None
    try:
        form = outer_forms(r).form(x)
        if any(a in axes for t in form.terms for f in t.factors for a in f.axes):
            return None
        if is_integer(out.dtype):
            return write(r, _summed(form, x.aval.shape, axes), out)
        return _sum_of_floats(r, form, x.aval.shape, axes, out)
    except (NoForm, Unwritable, poly.TooComplex):
        return None


def _summed(form: Form, shape: tuple[int, ...], axes: tuple[int, ...]) -> Form:
    """The form of a sum along axes."""
    kept = {a: k for k, a in enumerate(a for a in range(len(shape)) if a not in axes)}

    def change(term: Term) -> Term:
        p = term.poly
        for axis in axes:
            p = poly.summed(p, axis, shape[axis])
        factors = tuple(Factor(f.atom, tuple(kept.get(a, -1) for a in f.axes)) for f in term.factors)
        return Term(factors, poly.renamed(p, kept))

    return form.map(change)


def _sum_of_floats(r: Rewriter, form: Form, shape: tuple[int, ...], axes: tuple[int, ...], out: Any) -> Any:
    result = _summed(form, shape, axes)
    numbers = result.constant
    if numbers is not None and list(numbers) in ([], [()]):
        return r.full(out, _rounded(numbers.get((), 0)))
    if numbers is not None:  # the result has axes that are counted along
        if not form.exact or not holds(numbers, dict(enumerate(out.shape)), out.dtype):
            return None
        return _written_in_floats(r, numbers, out)
    if any(poly.indices(t.poly) for t in result.terms) or math.prod(shape[a] for a in axes) <= FEW_FLOATS:
        return None
    if out.dtype == F64 and len(result.terms) > 1:
        return None
    sizes = dict(enumerate(shape))
    signs = [poly.sign(t.poly, sizes) if t.factors else 1 for t in form.terms]
    if None in signs:
        return None
    parts = []
    for term, sign in zip(result.terms, signs):
        here = _rounded(term.poly.get((), 0))
        if not np.isfinite(here):
            return None
        parts.append((term, sign, here))
    total: Any = None
    for term, sign, here in parts:
        part: Any = r.full(out.update(shape=(), dtype=F64, weak_type=False), here)
        if term.factors:
            values = [placed(r, f, F64, out.shape) for f in term.factors]
            product = values[0]
            for value in values[1:]:
                product = r.emit("mul", product, value)
            part = r.emit("mul", product, part)
            if sign == 0:  # inf times some index is nan, or the sum has infinities of both signs
                part = r.emit("add", part, r.emit("sub", product, product))
        total = part if total is None else r.emit("add", total, part)
    total = r.convert(total, out.dtype)
    return total if total.aval.shape == out.shape else r.broadcast(total, out.shape, ())


def _rounded(value: Any) -> np.float64:
    try:
        return np.float64(float(poly.fraction(value)))
    except OverflowError:
        return np.float64(np.inf if value > 0 else -np.inf)


def _written_in_floats(r: Rewriter, numbers: poly.Poly, out: Any) -> Any:
    """A polynomial of degree 1, in float64, where all is exact."""
    wide = out.update(dtype=F64, weak_type=False)
    scalar = wide.update(shape=())
    total: Any = None
    for monomial, c in numbers.items():
        part: Any = r.full(scalar, _rounded(c))
        if monomial:
            if len(monomial) > 1 or monomial[0][1] > 1:
                raise Unwritable
            index = r.emit("iota", dtype=F64, shape=out.shape, dimension=monomial[0][0], sharding=None)
            part = r.emit("mul", index, part)
        total = part if total is None else r.emit("add", total, part)
    return r.convert(total, out.dtype)


_RULES: dict[str, tuple[Rule, ...]] = {"reduce_sum": (_sum,), **LOOP_RULES}
