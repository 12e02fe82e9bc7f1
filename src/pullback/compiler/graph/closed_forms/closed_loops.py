"""Loops whose carries are polynomials in the number of the iteration, or affine maps applied a known number of times.

    scan[length=n] { s2 = add s (mul i a); i2 = add i 1 } s0 i0      s0 + a * (i0 * n + n (n-1) / 2)
    while { lt i u } { s2 = add s i; i2 = add i 1 }                  the same with n = max(u - i, 0)
    scan[length=n] { s2 = add (mul s a) b }                          s0 * A + B, (A, B) = the map to the power n

The recurrence s(t+1) = s(t) + g(t) with a polynomial g has a polynomial as its solution (chains of recurrences).
Carries are looked at one by one, so a loop keeps those that have no closed form, and loses the others where nothing
reads them.
Loops of floats are closed if start, steps and all values between are exact, so results are the same bits.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from pullback.compiler.graph.closed_forms import polynomials as poly
from pullback.compiler.graph.closed_forms.index_forms import (
    Form,
    Forms,
    NoForm,
    Term,
    holds,
    is_float,
    is_integer,
    moved,
    numbers_of,
    of_atom,
    of_polynomial,
    outer_forms,
    total,
)
from pullback.compiler.graph.closed_forms.polynomials import TIME
from pullback.compiler.graph.closed_forms.write_forms import (
    U64,
    Deferred,
    Known,
    Unwritable,
    Writer,
    write,
)
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from pullback.loops.ir.fold import MIRRORED
from pullback.util.record import NamedTuple


class _Step(NamedTuple):
    """s(t+1) = factor * s(t) + rest; `at`: the form of s(t), if there is one."""

    factor: Form
    rest: Form
    at: Form | None


class _Loop:
    """What is known of the values in a loop's body; `count`: how often it runs, if that is known."""

    def __init__(
        self,
        r: Rewriter,
        body: ClosedJaxpr,
        consts: list[Any],
        inits: list[Any],
        xs: list[Any],
        reverse: bool = False,
        count: int | None = None,
    ) -> None:
        self.r, self.body, self.count, self.reverse = r, body, count, reverse
        jaxpr = body.jaxpr
        self.inits, self.xs, self.consts = inits, xs, consts
        self.places = {v: k for k, v in enumerate(jaxpr.invars)}
        self.values = dict(zip(jaxpr.constvars, body.consts))
        self.definitions = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.steps: dict[int, _Step | None] = {}
        self.deferred: dict[Var, Form] = {}

    def forms(self, own: Var | None = None) -> Forms:
        """The forms of the body's values; the carry `own` is taken for an outside value."""
        found = Forms(self.definitions.get, lambda atom: self._leaf(found, atom, own), self.count)
        return found

    def _leaf(self, forms: Forms, atom: Any, own: Var | None) -> Form:
        if atom is own:
            return of_atom(atom)
        if atom in self.values:
            return of_atom(Known(atom.aval, self.values[atom]))
        place = self.places.get(atom)
        if place is None:
            return self._same_every_time(forms, atom)
        n, m = len(self.consts), len(self.inits)
        if place < n:
            return self._outer(self.consts[place])
        if place < n + m:
            step = self.step(place - n)
            if step is None or step.at is None:
                raise NoForm
            return step.at
        rows = self._outer(self.xs[place - n - m])
        if self.count is None or any(a == 0 for t in rows.terms for f in t.factors for a in f.axes):
            raise NoForm
        rows = moved(rows, {a: a - 1 for a in range(self.xs[place - n - m].aval.ndim)})  # axis 0 becomes TIME
        if self.reverse:
            rows = rows.map(lambda t: Term(t.factors, poly.mirrored(t.poly, TIME, self.count or 0)))
        return rows

    def _outer(self, atom: Any) -> Form:
        try:
            return outer_forms(self.r).form(atom)
        except NoForm:
            return of_atom(atom)

    def _same_every_time(self, forms: Forms, atom: Any) -> Form:
        """A value of the body that depends on what is fixed alone; it would be computed before the loop."""
        found = self.deferred.get(atom)
        if found is None:
            eqn = self.definitions[atom]
            if eqn.primitive.multiple_results or eqn.effects or "barrier" in eqn.primitive.traits:
                raise NoForm
            if jaxprs_in_params(eqn.params) or not eqn.invars:
                raise NoForm
            operands = [Form(()) if isinstance(a, Literal) else forms.form(a) for a in eqn.invars]
            if any(_depends(form, self.body) for form in operands):
                raise NoForm
            found = self.deferred[atom] = of_atom(Deferred(atom.aval, eqn, operands))
        return found

    def step(self, j: int) -> _Step | None:
        """What the body does to a carry, None if that is not understood."""
        if j in self.steps:
            return self.steps[j]
        self.steps[j] = None  # carries that need each other are not closed
        with suppress(NoForm, poly.TooComplex):
            self.steps[j] = self._find_step(j)
        return self.steps[j]

    def _find_step(self, j: int) -> _Step | None:
        own = self.body.jaxpr.invars[len(self.consts) + j]
        aval, after = own.aval, self.body.jaxpr.outvars[j]
        if after is own:
            return _Step(of_polynomial(poly.constant(1)), Form(()), self._outer(self.inits[j]))
        if not is_integer(aval.dtype) and (self.count is None or aval.shape or not is_float(aval.dtype)):
            return None
        start = self._outer(self.inits[j])
        if not is_integer(aval.dtype) and start.constant is None:
            return None
        forms = self.forms(own)
        form = forms.form(after)
        mine = [t for t in form.terms if any(f.atom is own for f in t.factors)]
        rest = Form(tuple(t for t in form.terms if t not in mine), form.exact)
        if any(sum(f.atom is own for f in t.factors) > 1 for t in mine):
            return None
        axes = of_atom(own).terms[0].factors[0].axes
        if any(f.axes != axes for t in mine for f in t.factors if f.atom is own):
            return None
        factor = Form(tuple(Term(tuple(f for f in t.factors if f.atom is not own), t.poly) for t in mine))
        at = None
        if factor.constant == {(): 1}:
            grown = rest.map(lambda t: Term(t.factors, poly.accumulated(t.poly, TIME)))
            at = self._exact(start, rest, grown, aval) if is_float(aval.dtype) else total(forms, start, grown, aval)
        elif is_float(aval.dtype):
            return None
        return _Step(factor, rest, at)

    def _exact(self, start: Form, rest: Form, grown: Form, aval: Any) -> Form | None:
        """The form of a float carry, if no step of it is rounded."""
        p, q = start.constant, rest.constant
        if p is None or q is None or self.count is None or not (start.exact and rest.exact):
            return None
        values = poly.add(p, numbers_of(grown))
        d = max(poly.denominator(p), poly.denominator(q))
        sizes = {TIME: self.count + 1}
        largest = poly.largest(values, sizes) + poly.largest(q, sizes)
        within = poly.constant(largest) | {((TIME, 1),): poly.fraction(1, d)}
        if not holds(within, {TIME: 1}, aval.dtype) or not holds(values, sizes, aval.dtype):
            return None
        return of_polynomial(values)

    # Results.

    def final(self, j: int, times: Any) -> Any:
        """The carry after the loop as an atom, None if it is not known; times(k, writer): C(count, k)."""
        step = self.step(j)
        if step is None:
            return None
        aval = self.body.jaxpr.outvars[j].aval
        try:
            if step.at is not None:
                if is_float(aval.dtype):
                    return self._final_float(step.at, aval)
                return write(self.r, step.at, aval, times)
            if self.count is None or not is_integer(aval.dtype):
                return None
            if not step.factor.terms and self.count:
                last = step.rest.map(lambda t: Term(t.factors, poly.at(t.poly, TIME, (self.count or 1) - 1)))
                return write(self.r, last, aval)
            if any(TIME in poly.indices(t.poly) for form in (step.factor, step.rest) for t in form.terms):
                return None
            return self._affine(step, self.inits[j], aval)
        except (Unwritable, poly.TooComplex):
            return None

    def _final_float(self, at: Form, aval: Any) -> Any:
        p = at.constant
        if p is None:
            return write(self.r, at, aval)
        if self.count is None:
            raise Unwritable
        p = poly.at(p, TIME, self.count)
        if list(p) not in ([], [()]):
            raise Unwritable
        return self.r.full(aval, float(p.get((), 0)))

    def _affine(self, step: _Step, start: Any, aval: Any) -> Any:
        """start -> a * start + b, `count` times, by repeated squaring."""
        w = Writer(self.r, aval.dtype)
        power = [_number_or_atom(self.r, form, aval) for form in (step.factor, step.rest)]
        a: Any = 1
        b: Any = 0
        count = self.count or 0
        mask = (1 << w.bits) - 1
        while count:
            if count & 1:
                a, b = w.mul(power[0], a), w.add(w.mul(power[0], b), power[1])
            count >>= 1
            if count:
                power = [w.mul(power[0], power[0]), w.add(w.mul(power[0], power[1]), power[1])]
            power = [p & mask if isinstance(p, int) else p for p in power]
            a, b = (p & mask if isinstance(p, int) else p for p in (a, b))
        out = w.atom(w.add(w.mul(a, start), b))
        return out if out.aval.shape == aval.shape else self.r.broadcast(out, aval.shape, ())

    def stacked(self, k: int, aval: Any) -> Any:
        """The k-th stacked result of a scan as an atom, None if it is not known."""
        atom = self.body.jaxpr.outvars[len(self.inits) + k]
        if self.count is None or not is_integer(aval.dtype):
            return None
        try:
            rows = self.forms().form(atom)
            if self.reverse:
                rows = rows.map(lambda t: Term(t.factors, poly.mirrored(t.poly, TIME, self.count or 0)))
            return write(self.r, moved(rows, {a: a + 1 for a in range(-1, aval.ndim - 1)}), aval)
        except (NoForm, Unwritable, poly.TooComplex):
            return None


def _depends(form: Form, body: ClosedJaxpr) -> bool:
    """Whether a value of a body may differ between iterations."""
    own = body.jaxpr.invars
    return any(TIME in poly.indices(t.poly) or any(f.atom in own for f in t.factors) for t in form.terms)


def _number_or_atom(r: Rewriter, form: Form, aval: Any) -> Any:
    p = form.constant
    if p is not None and list(p) in ([], [()]):
        return int(p.get((), 0))
    return write(r, form, aval)


def _scan(r: Rewriter, eqn: JaxprEqn) -> Any:
    params = eqn.params
    n, m = params["num_consts"], params["num_carry"]
    rows = eqn.invars[n + m :]
    count = params["length"]
    wanted = _wanted(r, eqn)
    if not any(wanted) or any(isinstance(a, Literal) for a in rows):
        return None
    loop = _Loop(r, params["jaxpr"], eqn.invars[:n], eqn.invars[n : n + m], rows, params["reverse"], count)
    found: list[Any] = [None] * len(eqn.outvars)

    def times(k: int, _: Writer) -> int:
        return math.comb(count, k)

    for k, var in enumerate(eqn.outvars):
        if wanted[k]:
            found[k] = loop.final(k, times) if k < m else loop.stacked(k - m, var.aval)
    return _replaced(r, eqn, found, wanted)


def _while(r: Rewriter, eqn: JaxprEqn) -> Any:
    params = eqn.params
    n, m = params["cond_nconsts"], params["body_nconsts"]
    wanted = _wanted(r, eqn)
    if not any(wanted):
        return None
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    consts, inits = eqn.invars[n : n + m], eqn.invars[n + m :]
    try:
        count, times = _count(r, _Loop(r, body, consts, inits, []), cond, eqn.invars[:n])
    except (NoForm, Unwritable, poly.TooComplex):
        return None
    loop = _Loop(r, body, consts, inits, [], count=count)
    found = [loop.final(k, times) if wanted[k] else None for k in range(len(inits))]
    return _replaced(r, eqn, found, wanted)


def _wanted(r: Rewriter, eqn: JaxprEqn) -> list[bool]:
    """Whether each result is used."""
    return [v in r.uses for v in eqn.outvars]


def _replaced(r: Rewriter, eqn: JaxprEqn, found: list[Any], wanted: list[bool]) -> Any:
    """The results, those without a closed form from the loop, which goes if there are none."""
    if all(atom is None for atom in found):
        return None
    new = eqn.replace(outvars=[Var(v.aval) for v in eqn.outvars])
    if any(w and atom is None for w, atom in zip(wanted, found)):
        for var in new.outvars:
            r.definitions[var] = new
        r.eqns.append(new)
    return [var if atom is None else atom for var, atom in zip(new.outvars, found)]


# How often a while loop runs.

_MIRRORED = {**MIRRORED, "ne": "ne"}


def _count(r: Rewriter, loop: _Loop, cond: ClosedJaxpr, consts: list[Any]) -> tuple[int | None, Any]:
    """(the number of iterations if it is known, what gives C(count, k) to a writer)."""
    jaxpr = cond.jaxpr
    last = jaxpr.eqns[-1] if len(jaxpr.eqns) == 1 else None
    if last is None or last.primitive.name not in _MIRRORED or jaxpr.outvars[0] is not last.outvars[0]:
        raise NoForm
    places = {v: k for k, v in enumerate(jaxpr.invars)}
    dtype = last.invars[0].aval.dtype
    if not is_integer(dtype) or last.invars[0].aval.shape or last.invars[1].aval.shape:
        raise NoForm
    left, right = (_compared(loop, atom, places, consts) for atom in last.invars)
    name = last.primitive.name
    if not _slope(left):
        left, right, name = right, left, _MIRRORED[name]
    step = _slope(left)
    if not step or _slope(right):
        raise NoForm
    start = left.map(lambda t: Term(t.factors, {m: c for m, c in t.poly.items() if not m}))
    c0, u = start.constant, right.constant
    info = np.iinfo(dtype)
    if c0 is not None and u is not None:
        first, bound = (_wrapped(int(p.get((), 0)), info) for p in (c0, u))
        count = _known_count(name, first, bound, step, info)
        return count, lambda k, _: math.comb(count, k)
    if (name, step) not in (("lt", 1), ("gt", -1), ("ne", 1), ("ne", -1)):
        raise NoForm
    scalar = last.invars[0].aval
    memory: dict[Any, Any] = {}

    def times(k: int, w: Writer) -> Any:
        if "count" not in memory:
            memory["count"] = _traced_count(r, name, write(r, start, scalar), write(r, right, scalar), step)
        if (k, w.dtype) not in memory:
            memory[k, w.dtype] = w.choose(memory["count"], k)
        return memory[k, w.dtype]

    return None, times


def _compared(loop: _Loop, atom: Any, places: dict[Any, int], consts: list[Any]) -> Form:
    """The form of one side of a loop's condition."""
    if isinstance(atom, Literal):
        return of_polynomial(poly.constant(int(atom.val)))
    place = places.get(atom)
    if place is None:
        raise NoForm
    if place < len(consts):
        return outer_forms(loop.r).form(consts[place])
    step = loop.step(place - len(consts))
    if step is None or step.at is None:
        raise NoForm
    return step.at


def _slope(form: Form) -> int:
    """By how much a form grows in each iteration; NoForm if that is not always the same number."""
    for term in form.terms:
        if any(m and (term.factors or m != ((TIME, 1),)) for m in term.poly):
            raise NoForm
    return int(numbers_of(form).get(((TIME, 1),), 0))


def _wrapped(n: int, info: np.iinfo) -> int:
    """The number of the dtype that stands for n; forms hold modulo 2^w."""
    return (n - int(info.min)) % (1 << info.bits) + int(info.min)


def _known_count(name: str, first: int, bound: int, step: int, info: np.iinfo) -> int:
    """How often a counter passes the condition; NoForm if it would wrap around before it does not."""
    if name in ("gt", "ge"):
        first, bound, step = -first, -bound, -step
    if name == "ne":
        count, rest = divmod(bound - first, step)
        if rest or count < 0:
            raise NoForm
        return count
    if name in ("le", "ge"):
        bound += 1
    if first >= bound:
        return 0
    count = -((first - bound) // step) if step > 0 else 0
    largest = -int(info.min) if name in ("gt", "ge") else int(info.max)
    if not count or first + count * step > largest:
        raise NoForm
    return count


def _traced_count(r: Rewriter, name: str, first: Any, bound: Any, step: int) -> Any:
    """The number of iterations as an atom of uint64, for steps of 1 and -1."""
    low, high = (first, bound) if step == 1 else (bound, first)
    dtype = first.aval.dtype
    gap = r.convert(r.convert(r.emit("sub", high, low), np.dtype(f"u{dtype.itemsize}")), U64)
    if name == "ne":
        return gap
    return r.emit("select_n", r.emit("lt", low, high), Writer(r, U64).literal(0), gap)


LOOP_RULES: dict[str, tuple[Rule, ...]] = {"scan": (_scan,), "while": (_while,)}
