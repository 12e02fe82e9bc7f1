"""Replaces values of 8 bits and fewer (float8, float4, int4, int2) by bytes, which the loop IR knows.

    c:f8 = mul a b     becomes     x:f16 = decode a;  y:f16 = decode b;  z:f16 = mul x y;  c:u8 = encode z

What only moves elements moves bytes. Everything else computes in a wider type and rounds after each primitive, as XLA
does on CPUs; reductions and products round once, at the end.

The wider type is float16, as in XLA (for float8_e8m0fnu float32). Sums, products, integer powers and the logistic
function round once, where XLA rounds after each of its steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import dtypes_in, has_inner, map_inner
from pullback.core.avals import ShapedArray
from pullback.core.hooks import hooks
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.primitive import registry
from pullback.lax.elementwise.narrow import INTEGERS, decode_p, encode_p, is_narrow, nextafter_p, work_dtype
from pullback.util import dtypes

_BYTE = np.dtype(np.uint8)
# Of the movements these make elements of their own, of a type.
_MAKE_ELEMENTS = {"gather", "iota"}
_AS_BYTES = {"keep_apart", "scatter", "empty", "stage"}
# Results of these are operands or limits of the type, never sums to be wrapped around.
_CHOOSE = {"reduce_max", "reduce_min", "reduce_window_max", "reduce_window_min", "cummax", "cummin"}
_BITS_OF_UNSIGNED = {"shift_right_logical", "population_count", "clz"}


def replace_narrow(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on bytes, also inside of loops and branches."""
    if not any(map(is_narrow, dtypes_in(closed))):
        return closed
    done = _Narrowing()
    jaxpr = closed.jaxpr
    constvars = [done.new(v) for v in jaxpr.constvars]
    invars = [done.new(v) for v in jaxpr.invars]
    for eqn in jaxpr.eqns:
        done.place(map_inner(eqn, "narrow", replace_narrow))
    outvars = [done.bytes_of(a) for a in jaxpr.outvars]
    consts = [
        np.asarray(c).view(_BYTE) if is_narrow(v.aval.dtype) else c for v, c in zip(jaxpr.constvars, closed.consts)
    ]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, done.eqns, jaxpr.effects, jaxpr.debug_info), consts)


class _Narrowing:
    """The equations so far, and the bytes that stand for each narrow variable."""

    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.env: dict[Var, Any] = {}

    def new(self, var: Var) -> Var:
        """The variable of the bytes, or `var` itself where it is not narrow."""
        if not is_narrow(var.aval.dtype):
            return var
        found = self.env.get(var)
        if found is None:
            found = self.env[var] = Var(ShapedArray(var.aval.shape, _BYTE))
        return found

    def bytes_of(self, atom: Any) -> Any:
        """The bytes of a narrow atom, or the atom itself."""
        if not is_narrow(atom.aval.dtype):
            return atom
        if isinstance(atom, Literal):
            byte = np.asarray(atom.val).astype(atom.aval.dtype).view(_BYTE)
            return Literal(byte[()], ShapedArray(atom.aval.shape, _BYTE))
        return self.env[atom]

    def decoded(self, atom: Any, dtype: np.dtype | None = None) -> Any:
        """A narrow atom in the type in which to compute, or in `dtype`; another atom as it is."""
        if not is_narrow(atom.aval.dtype):
            return atom
        wide = work_dtype(atom.aval.dtype) if dtype is None else dtype
        aval = ShapedArray(atom.aval.shape, wide)
        if isinstance(atom, Literal):
            return Literal(np.asarray(atom.val).astype(atom.aval.dtype).astype(wide)[()], aval)
        return self._emit(decode_p, self.env[atom], aval, dtype=atom.aval.dtype, new_dtype=wide)

    def encode(self, atom: Any, var: Var, saturate: bool = False) -> None:
        """`var` becomes the bytes of `atom`."""
        params: dict[str, Any] = {"dtype": var.aval.dtype} | ({"saturate": True} if saturate else {})
        self.eqns.append(JaxprEqn([atom], [self.new(var)], encode_p, params))

    def place(self, eqn: JaxprEqn) -> None:
        """Append an equation in terms of bytes."""
        name = eqn.primitive.name
        old = [a.aval.dtype for a in (*eqn.invars, *eqn.outvars) if is_narrow(a.aval.dtype)]
        if not old:
            self.eqns.append(eqn)
        elif name == "convert_element_type":
            self._convert(eqn)
        elif _moves(eqn) or has_inner(eqn):
            self._on_bytes(eqn)
        elif name == "bitcast_convert_type":
            widths = tuple(dtypes.itemsize_bits(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars))
            self._on_bytes(eqn.replace(params=eqn.params | {"widths": widths}))
        elif name == "nextafter":
            invars = [self.bytes_of(a) for a in eqn.invars]
            self.eqns.append(JaxprEqn(invars, [self.new(eqn.outvars[0])], nextafter_p, {"dtype": old[0]}))
        elif "callback" in eqn.params:
            self._call(eqn)
        else:
            self._widened(eqn)

    def _on_bytes(self, eqn: JaxprEqn) -> None:
        params = _replaced(eqn.params, lambda dtype: _BYTE)
        invars, outvars = [self.bytes_of(a) for a in eqn.invars], [self.new(v) for v in eqn.outvars]
        self.eqns.append(eqn.replace(invars=invars, outvars=outvars, params=params))

    def _call(self, eqn: JaxprEqn) -> None:
        """A Python function, which is given and gives arrays of the narrow types."""
        given, made = ([a.aval.dtype for a in atoms] for atoms in (eqn.invars, eqn.outvars))
        params = eqn.params | {"callback": _OfBytes(eqn.params["callback"], given, made)}
        invars, outvars = [self.bytes_of(a) for a in eqn.invars], [self.new(v) for v in eqn.outvars]
        if "result_avals" in params:
            params["result_avals"] = tuple(v.aval for v in outvars)
        self.eqns.append(eqn.replace(invars=invars, outvars=outvars, params=params))

    def _widened(self, eqn: JaxprEqn) -> None:
        name = eqn.primitive.name
        chosen = _SIGNS.get(name)

        def wide_of(dtype: np.dtype) -> np.dtype:
            return chosen if chosen is not None and dtype in INTEGERS else work_dtype(dtype)

        invars = [self.decoded(a, wide_of(a.aval.dtype)) if is_narrow(a.aval.dtype) else a for a in eqn.invars]
        outvars = [
            Var(ShapedArray(v.aval.shape, wide_of(v.aval.dtype))) if is_narrow(v.aval.dtype) else v for v in eqn.outvars
        ]
        params = _replaced(eqn.params, wide_of)
        if name == "dot_general" and params["preferred_element_type"] is None:
            # The type of a product of two types: i4 with u8 gives u8, and i8 with u8 would give i8.
            params["preferred_element_type"] = outvars[0].aval.dtype
        self.eqns.append(eqn.replace(invars=invars, outvars=outvars, params=params))
        for var, wide in zip(eqn.outvars, outvars):
            if wide is var:
                continue
            atom: Any = wide
            if name == "clz" and var.aval.dtype in INTEGERS:
                excess = Literal(np.uint8(8 - INTEGERS[var.aval.dtype]), ShapedArray((), _BYTE))
                full: Any = excess
                if var.aval.shape:
                    dims = {"shape": var.aval.shape, "broadcast_dimensions": (), "sharding": None}
                    full = self._emit(registry["broadcast_in_dim"], excess, wide.aval, **dims)
                atom = Var(wide.aval)
                self.eqns.append(JaxprEqn([wide, full], [atom], registry["sub"], {}))
            # What a gather finds outside is the least or largest number of the wider type.
            outside = name == "gather" and var.aval.dtype in INTEGERS
            self.encode(atom, var, saturate=outside or name in _CHOOSE)

    def _convert(self, eqn: JaxprEqn) -> None:
        (x,), (out,) = eqn.invars, eqn.outvars
        old, new = x.aval.dtype, out.aval.dtype
        if old == new:
            self.env[out] = self.bytes_of(x)
            return
        wide = self.decoded(x)
        if not is_narrow(new):
            self.eqns.append(eqn.replace(invars=[wide]))
            return
        kind = dtypes.kind_of(old)
        if new in INTEGERS:
            self.encode(self._as(wide, work_dtype(new)), out, saturate=kind in "fc")
            return
        if kind != "f":
            wide = self._as(wide, np.dtype(np.float64 if old == np.complex128 else np.float32))
        self.encode(wide, out)

    def _as(self, atom: Any, dtype: np.dtype) -> Any:
        if atom.aval.dtype == dtype:
            return atom
        aval = ShapedArray(atom.aval.shape, dtype)
        params = {"new_dtype": dtype, "weak_type": False}
        return self._emit(registry["convert_element_type"], atom, aval, **params)

    def _emit(self, primitive: Any, atom: Any, aval: ShapedArray, **params: Any) -> Var:
        out = Var(aval)
        self.eqns.append(JaxprEqn([atom], [out], primitive, params))
        return out


class _OfBytes:
    """A user's callback, called with the bytes of its operands. It has no hash, as it may hold anything."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Any, given: list[Any], made: list[Any]) -> None:
        self.function, self.given, self.made = function, given, made
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arrays: Any, **keywords: Any) -> Any:
        values = [hooks.asarray(np.asarray(a).view(d)) if is_narrow(d) else a for a, d in zip(arrays, self.given)]
        found = self.function(*values, **keywords)
        if not self.made:
            return found
        return [np.asarray(a).view(_BYTE) if is_narrow(d) else a for a, d in zip(found, self.made)]


_SIGNS = dict.fromkeys(_BITS_OF_UNSIGNED, _BYTE) | {"shift_right_arithmetic": np.dtype(np.int8)}


def _moves(eqn: JaxprEqn) -> bool:
    name, traits = eqn.primitive.name, eqn.primitive.traits
    if name in _MAKE_ELEMENTS:
        return False
    return name in _AS_BYTES or not traits.isdisjoint(("movement", "selection", "identity"))


def _replaced(params: dict[str, Any], wide_of: Any) -> dict[str, Any]:
    return {
        key: wide_of(value) if isinstance(value, np.dtype) and is_narrow(value) else value
        for key, value in params.items()
    }
