"""What arrays are as polynomials in the indices of their axes: a sum of products of a polynomial and outside values.

    mul a (add i 1)     with i = iota[shape=(n,)], a: f32[]       is     a * (C(i, 1) + 1)

Integers are numbers modulo 2^w, so a form holds whatever wraps around. A form of floats keeps its summands apart as the
program has them, because of infinities: of a*i + a with a = inf the first element is nan, of a*(i + 1) it is inf.
Floats have a form only where no rounding is lost that a program could be about: summands without outside values are
exact, or of one sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pullback.compiler.graph.closed_forms import polynomials as poly
from pullback.compiler.graph.closed_forms.polynomials import TIME, Poly, TooComplex
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.util import dtypes
from pullback.util.record import NamedTuple, frozen_record

MAX_DEPTH = 48  # equations looked through
MOST_TERMS = 8  # of a form: products of sums multiply their numbers


class NoForm(Exception):
    """An array is no polynomial, or not known to be one."""


class Factor(NamedTuple):
    """An outside array: for each of its axes the axis of the whole that it lies along, -1 for axes of size 1."""

    atom: Any
    axes: tuple[int, ...]


class Term(NamedTuple):
    """The product of outside arrays and a polynomial in indices."""

    factors: tuple[Factor, ...]
    poly: Poly


@frozen_record
class Form:
    """A sum of terms; `exact`: floats hold the numbers of the terms without outside values unrounded."""

    terms: tuple[Term, ...]
    exact: bool = True

    @property
    def constant(self) -> Poly | None:
        """The polynomial, if there are no outside values."""
        if any(t.factors for t in self.terms):
            return None
        return self.terms[0].poly if self.terms else {}

    def map(self, change: Callable[[Term], Term]) -> Form:
        """Each term changed."""
        return Form(tuple(change(t) for t in self.terms), self.exact)


def of_polynomial(p: Poly, exact: bool = True) -> Form:
    """A form without outside values."""
    return Form((Term((), p),) if p else (), exact)


def of_atom(atom: Any) -> Form:
    """A form that is one outside value."""
    axes = tuple(a if n != 1 else -1 for a, n in enumerate(atom.aval.shape))
    return Form((Term((Factor(atom, axes),), poly.constant(1)),))


def is_float(dtype: Any) -> bool:
    """Whether forms are made of real floats of this type."""
    return bool(dtypes.issubdtype(dtype, np.floating)) and np.dtype(dtype).itemsize >= 2


def is_integer(dtype: Any) -> bool:
    """Whether forms are made of integers of this type."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iu"


class Forms:
    """The forms of a program's values; `definition(atom)` is an atom's equation or None, `leaf(atom)` the form of an
    atom that is not looked through; NoForm if it has none."""

    def __init__(
        self, definition: Callable[[Any], JaxprEqn | None], leaf: Callable[[Any], Form], count: int | None = None
    ) -> None:
        self.definition, self.leaf, self.count = definition, leaf, count
        self.memory: dict[Any, Form | None] = {}
        self.depth = 0

    def sizes(self, shape: tuple[int, ...]) -> dict[int, int]:
        """The number of values of each index."""
        out = dict(enumerate(shape))
        if self.count is not None:
            out[TIME] = self.count
        return out

    def form(self, atom: Any) -> Form:
        """The form of an atom; NoForm if it has none."""
        dtype = atom.aval.dtype
        if isinstance(atom, Literal):
            return _of_literal(atom)
        if atom in self.memory:
            found = self.memory[atom]
            if found is None:
                raise NoForm
            return found
        if not (is_integer(dtype) or is_float(dtype)) or self.depth > MAX_DEPTH or 0 in atom.aval.shape:
            raise NoForm
        self.depth += 1
        try:
            self.memory[atom] = found = self._look(atom)
        except NoForm:
            self.memory[atom] = None
            raise
        finally:
            self.depth -= 1
        return found

    def _look(self, atom: Any) -> Form:
        eqn = self.definition(atom)
        rule = _RULES.get(eqn.primitive.name) if eqn is not None else None
        try:
            found = rule(self, eqn) if rule is not None and eqn is not None else None
        except TooComplex:
            found = None
        return self.leaf(atom) if found is None else found


def outer_forms(r: Any) -> Forms:
    """The forms of the values of the program that a Rewriter works on."""
    found = r.notes.get("forms")
    if found is None:
        found = r.notes["forms"] = Forms(r.definition, of_atom)
    return found


# Rules by primitive: None if the result can only be an outside value.


def _of_literal(atom: Literal) -> Form:
    value, dtype = np.asarray(atom.val), atom.aval.dtype
    if is_integer(dtype):
        return of_polynomial(poly.constant(int(value)))
    if is_float(dtype) and np.isfinite(real := value.astype(np.float64)) and not (real == 0 and np.signbit(real)):
        return of_polynomial(poly.constant(poly.fraction(float(value))))
    if is_float(dtype):
        return of_atom(atom)
    raise NoForm


def _iota(forms: Forms, eqn: JaxprEqn) -> Form | None:
    out = eqn.outvars[0].aval
    axis = eqn.params["dimension"]
    n = out.shape[axis]
    p = poly.index(axis) if n > 1 else {}
    return of_polynomial(p) if is_integer(out.dtype) or holds(p, {axis: n}, out.dtype) else None


def holds(p: Poly, sizes: Mapping[int, int], dtype: Any) -> bool:
    """Whether a float type has all values of a polynomial."""
    if not _bounded(p, sizes):
        return False
    info = dtypes.finfo(dtype)
    d = poly.denominator(p)
    if d & (d - 1) or d.bit_length() > -int(info.minexp):
        return False
    return poly.largest(p, sizes) * d <= 2 ** (int(info.nmant) + 1)


def _bounded(p: Poly, sizes: Mapping[int, int]) -> bool:
    return all(i in sizes for i in poly.indices(p))


def _finite(p: Poly, sizes: Mapping[int, int], dtype: Any) -> bool:
    """Whether no value overflows."""
    return _bounded(p, sizes) and poly.largest(p, sizes) <= poly.fraction(float(dtypes.finfo(dtype).max))


def _one_sign(p: Poly, q: Poly, sizes: Mapping[int, int]) -> bool:
    """Whether no value of p has another sign than that of q."""
    if not (_bounded(p, sizes) and _bounded(q, sizes)):
        return False
    (a, b), (c, d) = poly.bounds(p, sizes), poly.bounds(q, sizes)
    return min(a, c) >= 0 or max(b, d) <= 0


def total(forms: Forms, x: Form, y: Form, aval: Any) -> Form | None:
    """x + y as an array of type `aval`; None if it is only an outside value."""
    if not is_float(aval.dtype):
        merged: dict[tuple[Factor, ...], Poly] = {}
        for term in (*x.terms, *y.terms):
            merged[term.factors] = poly.add(merged.get(term.factors, {}), term.poly)
        terms = tuple(Term(f, p) for f, p in merged.items() if p)
        return Form(terms) if len(terms) <= MOST_TERMS else None
    sizes = forms.sizes(aval.shape)
    p, q = x.constant, y.constant
    if p is not None and q is not None:
        both = poly.add(p, q)
        if x.exact and y.exact and holds(both, sizes, aval.dtype):
            return of_polynomial(both)
        return of_polynomial(both, False) if _one_sign(p, q, sizes) and _finite(both, sizes, aval.dtype) else None
    if len(x.terms) + len(y.terms) > MOST_TERMS:
        return None
    # What was added may be taken away again, to round: then summands do not stand for the sum.
    if not all(_one_sign(s.poly, t.poly, sizes) for s in x.terms for t in y.terms if s.factors == t.factors):
        return None
    numbers = poly.add(numbers_of(x), numbers_of(y))
    return Form((*x.terms, *y.terms), x.exact and y.exact and holds(numbers, sizes, aval.dtype))


def numbers_of(x: Form) -> Poly:
    """The part without outside values."""
    out: Poly = {}
    for term in x.terms:
        if not term.factors:
            out = poly.add(out, term.poly)
    return out


def negated(x: Form) -> Form:
    """-x."""
    return x.map(lambda t: Term(t.factors, poly.scale(t.poly, -1)))


def product(forms: Forms, x: Form, y: Form, aval: Any) -> Form | None:
    """x * y as an array of type `aval`; None if it is only an outside value."""
    p, q = x.constant, y.constant
    real = is_float(aval.dtype)
    sizes = forms.sizes(aval.shape)
    if real and p is not None and q is not None:
        out = poly.multiply(p, q)
        exact = x.exact and y.exact and holds(out, sizes, aval.dtype)
        return of_polynomial(out, exact) if _finite(out, sizes, aval.dtype) else None
    # c * (a + b) is not c * a + c * b where one of them is infinite, and 0 * inf is not 0.
    if real and (p == {} or q == {} or (p is None and q is None and max(len(x.terms), len(y.terms)) > 1)):
        return None
    if len(x.terms) * len(y.terms) > MOST_TERMS:
        return None
    parts = [
        Term(tuple(sorted((*s.factors, *t.factors), key=lambda f: (id(f.atom), f.axes))), poly.multiply(s.poly, t.poly))
        for s in x.terms
        for t in y.terms
    ]
    if real:
        return Form(tuple(parts), False) if all(t.poly for t in parts) else None
    whole: Form | None = Form(())
    for part in parts:
        whole = None if whole is None else total(forms, whole, Form((part,)), aval)
    return whole


def _add_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    x, y = map(forms.form, eqn.invars)
    return total(forms, x, y, eqn.outvars[0].aval)


def _sub_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    x, y = map(forms.form, eqn.invars)
    return total(forms, x, negated(y), eqn.outvars[0].aval)


def _mul_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    x, y = map(forms.form, eqn.invars)
    return product(forms, x, y, eqn.outvars[0].aval)


def _neg_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    return negated(forms.form(eqn.invars[0]))


def _div_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    """Floats by a number that is known."""
    aval = eqn.outvars[0].aval
    number = forms.form(eqn.invars[1]).constant if is_float(aval.dtype) else None
    if number is None or list(number) != [()]:
        return None
    x = forms.form(eqn.invars[0])
    return product(forms, x, of_polynomial(poly.constant(1 / poly.fraction(number[()]))), aval)


def _power_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    exponent = 2 if eqn.primitive.name == "square" else eqn.params["y"]
    if not 1 <= exponent <= poly.MOST_DEGREE:
        return None
    x = forms.form(eqn.invars[0])
    out: Form | None = x
    for _ in range(exponent - 1):
        out = None if out is None else product(forms, out, x, eqn.outvars[0].aval)
    return out


def _shift_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    aval = eqn.outvars[0].aval
    by = forms.form(eqn.invars[1]).constant
    if by is None or list(by) not in ([], [()]) or not 0 <= (k := int(by.get((), 0))) < 8 * aval.dtype.itemsize:
        return None
    return product(forms, forms.form(eqn.invars[0]), of_polynomial(poly.constant(1 << k)), aval)


def _convert_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    sizes = forms.sizes(eqn.outvars[0].aval.shape)
    if not (is_integer(source) or is_float(source)):
        return None
    x = forms.form(eqn.invars[0])
    if is_integer(source) and is_integer(target) and target.itemsize <= source.itemsize:
        return x  # numbers modulo 2^32 are numbers modulo 2^8
    if is_float(source) and is_float(target) and target == np.promote_types(source, target) and x.constant is None:
        return x
    p = x.constant
    if p is None or not x.exact or not _bounded(p, sizes):
        return None
    low, high = poly.bounds(p, sizes)
    if is_integer(source) and not (np.iinfo(source).min <= low and high <= np.iinfo(source).max):
        return None  # it wrapped around
    if is_float(target):
        return x if holds(p, sizes, target) else None
    if not is_integer(target) or poly.denominator(p) != 1:
        return None
    return x if is_integer(source) or (np.iinfo(target).min <= low and high <= np.iinfo(target).max) else None


def _broadcast_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    return moved(forms.form(eqn.invars[0]), dict(enumerate(eqn.params["broadcast_dimensions"])))


def _transpose_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    return moved(forms.form(eqn.invars[0]), {a: k for k, a in enumerate(eqn.params["permutation"])})


def _reshape_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    """Axes of size 1 come or go."""
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    kept, placed = [a for a, n in enumerate(old) if n != 1], [a for a, n in enumerate(new) if n != 1]
    if [old[a] for a in kept] != [new[a] for a in placed] or eqn.params.get("dimensions") is not None:
        return None
    return moved(forms.form(eqn.invars[0]), dict(zip(kept, placed)))


def _squeeze_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    kept, placed = [a for a, n in enumerate(old) if n != 1], [a for a, n in enumerate(new) if n != 1]
    return moved(forms.form(eqn.invars[0]), dict(zip(kept, placed)))


def moved(x: Form, names: Mapping[int, int]) -> Form:
    """The form with axes renamed."""

    def change(term: Term) -> Term:
        factors = tuple(Factor(f.atom, tuple(names[a] if a >= 0 else a for a in f.axes)) for f in term.factors)
        return Term(factors, poly.renamed(term.poly, names))

    return x.map(change)


def _reverse_rule(forms: Forms, eqn: JaxprEqn) -> Form | None:
    x = forms.form(eqn.invars[0])
    axes = eqn.params["dimensions"]
    if any(set(f.axes) & set(axes) for t in x.terms for f in t.factors):
        return None
    for axis in axes:
        n = eqn.outvars[0].aval.shape[axis]
        x = x.map(lambda t, axis=axis, n=n: Term(t.factors, poly.mirrored(t.poly, axis, n)))  # type: ignore[misc]
    return x


_RULES: dict[str, Callable[[Forms, JaxprEqn], Form | None]] = {
    "iota": _iota,
    "add": _add_rule,
    "add_any": _add_rule,
    "sub": _sub_rule,
    "mul": _mul_rule,
    "div": _div_rule,
    "neg": _neg_rule,
    "square": _power_rule,
    "integer_pow": _power_rule,
    "shift_left": _shift_rule,
    "convert_element_type": _convert_rule,
    "broadcast_in_dim": _broadcast_rule,
    "transpose": _transpose_rule,
    "reshape": _reshape_rule,
    "squeeze": _squeeze_rule,
    "rev": _reverse_rule,
}
