"""Forms as equations: integers modulo 2^w, with counts that are known or traced.

C(n, k) modulo 2^w is written as n (n-1) ... (n-k+1) modulo 2^64, shifted right by the twos of k! and multiplied by the
inverse of the rest, which is odd; for 64 bits, where no wider integers are, up to k = 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.graph.closed_forms.index_forms import Form
from pullback.compiler.graph.closed_forms.polynomials import TIME
from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import JaxprEqn, Literal

U64 = np.dtype(np.uint64)


class Unwritable(Exception):
    """A form has no equations that would be worth having."""


class Deferred:
    """A value inside of a loop that is the same in every iteration, as an atom: `eqn` of operands with forms."""

    __slots__ = ("aval", "eqn", "forms", "atom")

    def __init__(self, aval: Any, eqn: JaxprEqn, forms: list[Form]) -> None:
        self.aval, self.eqn, self.forms = aval, eqn, forms
        self.atom: Any = None


class Known:
    """An array of a loop's body, as an atom."""

    __slots__ = ("aval", "value", "atom")

    def __init__(self, aval: Any, value: Any) -> None:
        self.aval, self.value = aval, value
        self.atom: Any = None


class Writer:
    """Equations over one type of integers; numbers that are known are Python integers until they meet an atom."""

    def __init__(self, r: Rewriter, dtype: Any) -> None:
        self.r, self.dtype, self.bits = r, dtype, 8 * dtype.itemsize

    def literal(self, number: int) -> Literal:
        """A number, wrapped around."""
        wrapped = np.asarray(number & ((1 << self.bits) - 1), f"u{self.dtype.itemsize}").astype(self.dtype)
        return Literal(wrapped[()], ShapedArray((), self.dtype))

    def atom(self, x: Any) -> Any:
        """An atom for what is one or a number."""
        return self.literal(x) if isinstance(x, int) else x

    def add(self, x: Any, y: Any) -> Any:
        """x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if isinstance(x, int) or isinstance(y, int):
            number, other = (x, y) if isinstance(x, int) else (y, x)
            return self.r.emit("add", other, self.literal(number)) if number else other
        return self.r.emit("add", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """x * y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if isinstance(x, int) or isinstance(y, int):
            number, other = (x, y) if isinstance(x, int) else (y, x)
            if number in (0, 1):
                return other if number else 0
            return self.r.emit("mul", other, self.literal(number))
        return self.r.emit("mul", x, y)

    def choose(self, n: Any, k: int) -> Any:
        """C(n, k) for an atom of uint64 that is a count, in this type."""
        if k == 1:
            return self.r.convert(n, self.dtype)
        wide = Writer(self.r, U64)
        if self.bits == 64:
            if k > 3:
                raise Unwritable
            one = wide.literal(1)
            half = self.r.emit("shift_right_logical", n, one)
            out = wide.mul(half, self.r.emit("or", wide.add(n, -1), one))  # whichever of n and n - 1 is even is halved
            if k == 3:
                out = wide.mul(wide.mul(out, wide.add(n, -2)), pow(3, -1, 1 << 64))
            return self.r.convert(out, self.dtype)
        factorial = math.factorial(k)
        twos = (factorial & -factorial).bit_length() - 1
        if self.bits + twos > 64:
            raise Unwritable
        out = n
        for j in range(1, k):
            out = wide.mul(out, wide.add(n, -j))
        out = self.r.emit("shift_right_logical", out, wide.literal(twos)) if twos else out
        return self.mul(self.r.convert(out, self.dtype), pow(factorial >> twos, -1, 1 << self.bits))


def outside(r: Rewriter, atom: Any) -> Any:
    """A factor's atom as one of the program being written."""
    if isinstance(atom, Known):
        if atom.atom is None:
            atom.atom = r.const(np.asarray(atom.value), atom.aval)
        return atom.atom
    if isinstance(atom, Deferred):
        if atom.atom is None:
            eqn = atom.eqn
            operands = [
                a if isinstance(a, Literal) else write(r, form, a.aval) for a, form in zip(eqn.invars, atom.forms)
            ]
            atom.atom = r.emit(eqn.primitive, *operands, **eqn.params)
        return atom.atom
    return atom


def placed(r: Rewriter, factor: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """A factor as an atom: of rank 0 if it lies along no axis, else of the whole shape."""
    atom = r.convert(outside(r, factor.atom), dtype)
    axes = [a for a in factor.axes if a >= 0]
    if len(axes) < atom.aval.ndim:
        atom = r.reshape(atom, [shape[a] for a in axes])
    if not axes or (axes == list(range(len(shape))) and atom.aval.shape == shape):
        return atom
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    if order != list(range(len(axes))):
        atom = r.emit("transpose", atom, permutation=tuple(order))
    return r.broadcast(atom, shape, sorted(axes))


def write(r: Rewriter, form: Form, aval: Any, times: Callable[[int, Writer], Any] | None = None) -> Any:
    """A form of integers as an atom; times(k, writer): C(t, k) for the iteration t. Unwritable if that is too much.

    A form that is one outside value of this very type is that value, whatever the type.
    """
    if len(form.terms) == 1 and len(form.terms[0].factors) == 1 and form.terms[0].poly == {(): 1}:
        atom = form.terms[0].factors[0].atom
        if atom.aval.shape == aval.shape and atom.aval.dtype == aval.dtype:
            found = placed(r, form.terms[0].factors[0], aval.dtype, aval.shape)
            return found if found.aval.shape == aval.shape else r.broadcast(found, aval.shape, ())
    if not isinstance(aval.dtype, np.dtype) or aval.dtype.kind not in "iu":
        raise Unwritable
    w = Writer(r, aval.dtype)
    small: Any = 0  # what is the same everywhere
    large: Any = 0
    for term in form.terms:
        inner_small: Any = 0
        inner_large: Any = 0
        for monomial, c in term.poly.items():
            same: Any = int(c)
            varying: Any = None
            for i, k in monomial:
                if i == TIME:
                    if times is None:
                        raise Unwritable
                    same = w.mul(same, times(k, w))
                else:
                    along = _along(w, aval.shape, i, k)
                    varying = along if varying is None else w.mul(varying, along)
            if varying is None:
                inner_small = w.add(inner_small, same)
            else:
                inner_large = w.add(inner_large, w.mul(varying, same))
        here: Any = w.add(inner_large, inner_small)
        spread = not isinstance(inner_large, int)
        for atom in sorted((placed(r, f, aval.dtype, aval.shape) for f in term.factors), key=lambda a: a.aval.ndim):
            spread = spread or bool(atom.aval.shape)
            here = w.mul(here, atom)
        if spread:
            large = w.add(large, here)
        else:
            small = w.add(small, here)
    out = w.atom(w.add(large, small))
    return out if out.aval.shape == aval.shape else r.broadcast(out, aval.shape, ())


def _along(w: Writer, shape: tuple[int, ...], axis: int, k: int) -> Any:
    dtype = w.dtype if k == 1 else U64
    index = w.r.emit("iota", dtype=dtype, shape=shape, dimension=axis, sharding=None)
    return index if k == 1 else w.choose(index, k)
