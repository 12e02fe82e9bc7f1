"""Complex numbers and their parts.

A cotangent z_bar pairs with a tangent z_dot as Re(z_bar z_dot), so transposes do not conjugate.
"""

from __future__ import annotations

from typing import Any

from pullback.lax.elementwise.arithmetic import neg_p, op
from pullback.lax.records.families import *
from pullback.lax.records.families import broadcast_operands
from pullback.util.tracebacks import api_boundary

__all__ = ["complex", "complex_p", "conj", "conj_p", "imag", "imag_p", "real", "real_p"]

_REAL = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}
_COMPLEX = {f: c for c, f in _REAL.items()}


def _part_dtype(dtype, **params):
    return _REAL[dtype]


def _complex_dtype(dtype, **params):
    if dtype not in _COMPLEX:
        raise TypeError(f"complex does not accept dtype {dtype.name} at position 0; accepted are float32 and float64")
    return _COMPLEX[dtype]


def _zero(y_bar):
    """A zero that is not weakly typed, nor is the cotangent of a complex number then, as in JAX."""
    return y_bar.dtype.type(0)


real_p = unary(
    "real",
    doc="The real part of complex numbers.",
    accepts=COMPLEX,
    reference=np.real,
    jvp=LINEAR,
    result=_part_dtype,
    transpose=lambda y_bar, aval: complex_p.bind(y_bar, _zero(y_bar)),
    lower=op("real"),
    samples=Samples(ulp=0),
)
imag_p = unary(
    "imag",
    doc="The imaginary part of complex numbers.",
    accepts=COMPLEX,
    reference=np.imag,
    jvp=LINEAR,
    transpose=lambda y_bar, aval: complex_p.bind(_zero(y_bar), neg_p.bind(y_bar)),
    lower=op("imag"),
    result=_part_dtype,
    samples=Samples(ulp=0),
)


def _complex_reference(x, y):
    dtype: Any = _COMPLEX[x.dtype]
    out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), dtype)
    out.real, out.imag = x, y
    return out


def _complex_transpose(z_bar, x, y):
    if is_zero(z_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, y)]
    return [
        unbroadcast(real_p.bind(z_bar), x.aval) if is_linear(x) else None,
        unbroadcast(neg_p.bind(imag_p.bind(z_bar)), y.aval) if is_linear(y) else None,
    ]


def _zero_like(x):
    return constant(x, 0)


complex_p = nary(
    "complex",
    2,
    doc="x + iy of floats, elementwise.",
    accepts=FLOAT,
    reference=_complex_reference,
    jvp=(
        lambda x_dot, out, x, y: complex_p.bind(x_dot, _zero_like(y)),
        lambda y_dot, out, x, y: complex_p.bind(_zero_like(x), y_dot),
    ),
    transpose=_complex_transpose,
    lower=op("complex"),
    result=_complex_dtype,
    samples=Samples(ulp=0, dtypes=("float32", "float64")),
)


def _conj_reference(x, input_dtype=None):
    return np.conj(x) if x.dtype.kind == "c" else x.astype(_COMPLEX[x.dtype])


def _conj_dtype(dtype, input_dtype=None):
    return dtype if dtype in _REAL else _complex_dtype(dtype)


def _conj_transpose(y_bar, aval, input_dtype=None):
    return conj_p.bind(y_bar, input_dtype=y_bar.dtype) if aval.dtype.kind == "c" else real_p.bind(y_bar)


def _conj_lower(b, x, input_dtype=None):
    return b.op("conj", x) if x.dtype in ("c64", "c128") else b.op("complex", x, 0.0)


conj_p = unary(
    "conj",
    doc="The complex conjugate; floats become complex.",
    accepts=INEXACT,
    reference=_conj_reference,
    jvp=LINEAR,
    transpose=_conj_transpose,
    lower=_conj_lower,
    result=_conj_dtype,
    samples=Samples(ulp=0, dtypes=("float32", "complex64", "complex128")),
)

real = unary_function(real_p)
imag = unary_function(imag_p)


@api_boundary
def complex(x: Any, y: Any) -> Any:
    """x + iy of two float32 or float64 operands, elementwise. Raises TypeError for other dtypes."""
    x, y = as_arrays("complex", x, y)
    for i, operand in enumerate((x, y)):
        if operand.dtype not in _COMPLEX:
            raise TypeError(
                f"complex does not accept dtype {operand.dtype} at position {i}; accepted are float32 and float64"
            )
    return complex_p.bind(*broadcast_operands("complex", x, y))


@api_boundary
def conj(x: Any) -> Any:
    """The complex conjugate of complex numbers, and of float32 and float64 numbers as complex ones."""
    x = as_array(x, "conj")
    return conj_p.bind(x, input_dtype=x.dtype)
