"""Arithmetic: + - * / and their relatives, rounding, powers and roots."""

from __future__ import annotations

import enum
from typing import Any

from pullback.lax.records import quotients
from pullback.lax.records.families import *
from pullback.lax.records.families import FLOAT_EDGES, common_shape
from pullback.lax.records.rules import batch_nary, spread
from pullback.util.tracebacks import api_boundary

__all__ = [
    "RoundingMethod",
    "abs",
    "abs_p",
    "add",
    "add_any",
    "add_any_p",
    "add_p",
    "ceil",
    "ceil_p",
    "clamp",
    "clamp_p",
    "div",
    "div_p",
    "floor",
    "floor_p",
    "max",
    "max_p",
    "min",
    "min_p",
    "mul",
    "mul_p",
    "mulhi",
    "mulhi_p",
    "neg",
    "neg_p",
    "nextafter",
    "nextafter_p",
    "rem",
    "rem_p",
    "round",
    "round_p",
    "sign",
    "sign_p",
    "sub",
    "sub_p",
]

Array = Any
ArrayLike = Any


class RoundingMethod(enum.IntEnum):
    """What `round` does with halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def op(name: str):
    """The lowering of a primitive that is one loop IR operation."""

    def lower(b, *operands, **params):
        return b.op(name, *operands)

    return lower


def where(pred, x, y):
    """`select` whose operands broadcast as those of all other operations do; for rules."""
    shape = common_shape("select", (pred, x, y))
    return lax.select_n_p.bind(*[v if v.shape in ((), shape) else spread(v, shape) for v in (pred, y, x)])


def is_complex(x) -> bool:
    """Whether an array is of a complex dtype."""
    return x.dtype.kind == "c"


# --------------------------------------------------------------------------------------------------------- one operand

neg_p = unary(
    "neg",
    doc="-x, elementwise.",
    accepts=NUMERIC,
    reference=np.negative,
    jvp=LINEAR,
    transpose=lambda y_bar, aval: neg_p.bind(y_bar),
    lower=op("neg"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


def _sign_reference(x):
    if x.dtype.kind == "f":
        return np.where(x == 0, x, np.sign(x))  # keeps -0
    if x.dtype.kind != "c":
        return np.sign(x)
    return quotients.sign(x)


sign_p = unary(
    "sign",
    doc="-1, 0 or 1 by the sign of x; x / |x| for complex; NaN stays.",
    accepts=NUMERIC,
    reference=_sign_reference,
    jvp=ZERO,
    lower=op("sign"),
    samples=Samples(edges=FLOAT_EDGES, ulp=3),
)
floor_p = unary(
    "floor",
    doc="The largest integer <= x, elementwise.",
    accepts=FLOAT,
    reference=np.floor,
    jvp=ZERO,
    lower=op("floor"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)
ceil_p = unary(
    "ceil",
    doc="The smallest integer >= x, elementwise.",
    accepts=FLOAT,
    reference=np.ceil,
    jvp=ZERO,
    lower=op("ceil"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


def _round_reference(x, rounding_method):
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, np.abs(whole) + 1, np.abs(whole)), x).astype(x.dtype)


def _round_lower(b, x, rounding_method):
    return b.op("round_even" if rounding_method == RoundingMethod.TO_NEAREST_EVEN else "round_away", x)


round_p = unary(
    "round",
    doc="The nearest integer.",
    accepts=FLOAT,
    reference=_round_reference,
    jvp=ZERO,
    lower=_round_lower,
    samples=Samples(
        cases=lambda rng: [
            Case((np.array([-2.5, -0.4, 0.5, 1.5, 2.5, np.inf], np.float32),), {"rounding_method": RoundingMethod(i)})
            for i in (0, 1)
        ]
    ),
)


def _abs_jvp(x_dot, y, x):
    if not is_complex(x):
        return where(lax.ge_p.bind(x, constant(x, 0)), x_dot, neg_p.bind(x_dot))
    # d|x| = Re(conj(x) x_dot) / |x|, and 0 at 0.
    safe = where(lax.eq_p.bind(y, constant(y, 0)), constant(y, 1), y)
    return div_p.bind(lax.real_p.bind(mul_p.bind(x_dot, lax.conj(x))), safe)


def _real_dtype(dtype, **params):
    return {"complex64": np.dtype("float32"), "complex128": np.dtype("float64")}.get(dtype.name, dtype)


abs_p = unary(
    "abs",
    doc="|x|, elementwise; the modulus of complex numbers.",
    accepts=SIGNED,
    reference=np.abs,
    jvp=_abs_jvp,
    lower=op("abs"),
    result=_real_dtype,
    samples=Samples(edges=FLOAT_EDGES, ulp=2),
)


# -------------------------------------------------------------------------------------------------------- two operands


def _tangent(x_dot, out, x, y):
    return x_dot


def _transpose_sum(out_bar, x, y):
    if is_zero(out_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, y)]
    return [unbroadcast(out_bar, a.aval) if is_linear(a) else None for a in (x, y)]


def _sub_transpose(out_bar, x, y):
    x_bar, y_bar = _transpose_sum(out_bar, x, y)
    return [x_bar, y_bar if y_bar is None or is_zero(y_bar) else neg_p.bind(y_bar)]


add_p = nary(
    "add",
    2,
    doc="x + y, elementwise.",
    accepts=NUMERIC,
    reference=np.add,
    jvp=(_tangent, _tangent),
    transpose=_transpose_sum,
    lower=op("add"),
    traits=("commutative", "associative"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)
# The sum of cotangents: as add, and takes any dtype that a tangent has.
add_any_p = nary(
    "add_any",
    2,
    doc="Sum of two tangents or cotangents.",
    accepts=ANY,
    reference=np.add,
    jvp=(_tangent, _tangent),
    transpose=_transpose_sum,
    lower=op("add"),
    traits=("commutative", "associative"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0, dtypes=("float32", "float64")),
)
sub_p = nary(
    "sub",
    2,
    doc="x - y, elementwise.",
    accepts=NUMERIC,
    reference=np.subtract,
    transpose=_sub_transpose,
    jvp=(_tangent, lambda y_dot, out, x, y: neg_p.bind(y_dot)),
    lower=op("sub"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


def _mul_transpose(out_bar, x, y, out_dtype=None):
    if is_linear(x) == is_linear(y):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'mul' needs exactly one linear operand: the function is not "
            "linear"
        )
    if is_zero(out_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, y)]
    if is_linear(x):
        return [unbroadcast(mul_p.bind(out_bar, y), x.aval), None]
    return [None, unbroadcast(mul_p.bind(x, out_bar), y.aval)]


mul_p = nary(
    "mul",
    2,
    doc="x * y, elementwise.",
    accepts=NUMERIC,
    reference=np.multiply,
    transpose=_mul_transpose,
    jvp=(lambda x_dot, out, x, y: mul_p.bind(x_dot, y), lambda y_dot, out, x, y: mul_p.bind(x, y_dot)),
    lower=op("mul"),
    traits=("commutative", "associative"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


def _of_bytes(reference):
    """A reference for integers; those of 2 and 4 bits, whose own division by 0 is another, are bytes meanwhile."""

    def function(x, y):
        kind = dtypes.kind_of(x.dtype)
        if x.dtype.kind != "V" or kind not in "iu":
            return reference(x, y)
        return reference(*(v.astype(f"{kind}1") for v in (x, y))).astype(x.dtype)

    return function


@_of_bytes
def _div_reference(x, y):
    if x.dtype.kind not in "iu":
        return np.divide(x, y) if x.dtype.kind != "c" else quotients.quotient(x, y)
    # Towards zero, and x / 0 = -1 (all bits set), as the machine instruction of GPUs has it.
    safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.floor_divide(x, safe)
    inexact = (quotient * safe != x) & ((x < 0) != (y < 0))
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient + inexact.astype(x.dtype))


def _div_transpose(out_bar, x, y):
    if not is_linear(x) or is_linear(y):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'div' is not there: it is linear in its numerator only"
        )
    return [tangent_zero(x) if is_zero(out_bar) else unbroadcast(div_p.bind(out_bar, y), x.aval), None]


def _div_jvp_y(y_dot, out, x, y):
    return mul_p.bind(y_dot, neg_p.bind(div_p.bind(out, y)))


div_p = nary(
    "div",
    2,
    doc="x / y, elementwise; integers are divided towards zero.",
    accepts=NUMERIC,
    reference=_div_reference,
    jvp=(lambda x_dot, out, x, y: div_p.bind(x_dot, y), _div_jvp_y),
    transpose=_div_transpose,
    lower=op("div"),
    cost=4,
    samples=Samples(low=0.5, high=4.0, edges=FLOAT_EDGES, ulp=1),
)


@_of_bytes
def _rem_reference(x, y):
    if x.dtype.kind in "iu":
        safe = np.where(y == 0, np.ones_like(y), y)
        return np.where(y == 0, x, np.fmod(x, safe))
    return np.fmod(x, y)


def _rem_jvp_y(y_dot, out, x, y):
    ratio = div_p.bind(x, y)
    return mul_p.bind(y_dot, neg_p.bind(mul_p.bind(sign_p.bind(ratio), floor_p.bind(abs_p.bind(ratio)))))


rem_p = nary(
    "rem",
    2,
    doc="The remainder of x / y with the sign of x, elementwise.",
    accepts=REAL,
    reference=_rem_reference,
    jvp=(_tangent, _rem_jvp_y),
    lower=op("rem"),
    cost=10,
    samples=Samples(low=0.5, high=4.0, edges=FLOAT_EDGES, ulp=0),
)


def _share(x, y):
    """1 where x wins, 1/2 where x and y are equal, else 0: the derivative of max with respect to x, given x > y or x <
    y.
    """
    half = constant(x, 0.5)

    def rule(wins):
        return where(wins, constant(x, 1), where(lax.eq_p.bind(x, y), half, constant(x, 0)))

    return rule


def _wins(compare, out, x, y):
    """Whether `out`, the larger or the smaller, is x and not y; complex numbers have no order that could be asked."""
    if x.dtype.kind != "c":
        return compare.bind(x, y)
    return lax.and_p.bind(lax.eq_p.bind(out, x), lax.ne_p.bind(x, y))


def _max_jvp_x(x_dot, out, x, y):
    return mul_p.bind(x_dot, _share(x, y)(_wins(lax.gt_p, out, x, y)))


def _max_jvp_y(y_dot, out, x, y):
    return mul_p.bind(y_dot, _share(y, x)(_wins(lax.gt_p, out, y, x)))


def _min_jvp_x(x_dot, out, x, y):
    return mul_p.bind(x_dot, _share(x, y)(_wins(lax.lt_p, out, x, y)))


def _min_jvp_y(y_dot, out, x, y):
    return mul_p.bind(y_dot, _share(y, x)(_wins(lax.lt_p, out, y, x)))


def _in_f32(function):
    """NumPy's maximum and minimum of float16 give one zero or the other by another rule than those of wider floats."""

    def reference(x, y):
        if x.dtype != np.float16:
            return function(x, y)
        return np.asarray(function(x.astype(np.float32), y.astype(np.float32))).astype(np.float16)

    return reference


MAXIMUM, MINIMUM = _in_f32(np.maximum), _in_f32(np.minimum)


def _nextafter_reference(x, y):
    return np.where(x == y, y, np.nextafter(x, y))  # NumPy's of float16 gives x


max_p = nary(
    "max",
    2,
    doc="The larger of x and y, elementwise; NaN if either is; complex numbers compare lexicographically.",
    accepts=ANY,
    reference=MAXIMUM,
    jvp=(_max_jvp_x, _max_jvp_y),
    lower=op("max"),
    traits=("commutative", "associative"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)
min_p = nary(
    "min",
    2,
    doc="The smaller of x and y, elementwise; NaN if either is; complex numbers compare lexicographically.",
    accepts=ANY,
    reference=MINIMUM,
    jvp=(_min_jvp_x, _min_jvp_y),
    lower=op("min"),
    traits=("commutative", "associative"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


nextafter_p = nary(
    "nextafter",
    2,
    doc="The next representable number after x1 towards x2, elementwise.",
    accepts=FLOAT,
    reference=_nextafter_reference,
    jvp=NoRule("it is a step function of the representation"),
    lower=op("nextafter"),
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


def _mulhi_reference(x, y):
    bits = x.dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return (x.astype(wide) * y.astype(wide) >> wide(bits)).astype(x.dtype)
    return ((x.astype(object) * y.astype(object)) >> 64).astype(x.dtype)


mulhi_p = nary(
    "mulhi",
    2,
    doc="The upper half of the double-width product of integers.",
    accepts=INT + UINT,
    reference=_mulhi_reference,
    jvp=ZERO,
    lower=op("mulhi"),
    samples=Samples(ulp=0, dtypes=("int32", "uint32", "int64")),
)


# ------------------------------------------------------------------------------------------------------ three operands


def _clamp_reference(min, x, max):
    return MINIMUM(MAXIMUM(x, min), max)


def _clamp_jvp_min(t, out, min, x, max):
    inside = lax.and_p.bind(lax.gt_p.bind(min, x), lax.lt_p.bind(min, max))
    return where(inside, t, constant(x, 0))


def _clamp_jvp_x(t, out, min, x, max):
    inside = lax.and_p.bind(lax.gt_p.bind(x, min), lax.lt_p.bind(x, max))
    return where(inside, t, constant(x, 0))


def _clamp_jvp_max(t, out, min, x, max):
    return where(lax.gt_p.bind(x, max), t, constant(x, 0))


clamp_p = nary(
    "clamp",
    3,
    doc="min(max(x, min), max), elementwise.",
    accepts=ANY,
    reference=_clamp_reference,
    jvp=(_clamp_jvp_min, _clamp_jvp_x, _clamp_jvp_max),
    lower=lambda b, lo, x, hi: b.op("min", b.op("max", x, lo), hi),
    samples=Samples(low=(-1, -3, 0), high=(0, 3, 1), ulp=0, dtypes=("float32", "float64", "int32", "uint8")),
)
clamp_p.batch = batch_nary(clamp_p.bind, same_shapes=True)


# ---------------------------------------------------------------------------------------------------- public functions

neg = unary_function(neg_p)
sign = unary_function(sign_p)
floor = unary_function(floor_p)
ceil = unary_function(ceil_p)
abs = unary_function(abs_p)
add = binary_function(add_p)
sub = binary_function(sub_p)
div = binary_function(div_p)
rem = binary_function(rem_p)
max = binary_function(max_p)
min = binary_function(min_p)
mulhi = binary_function(mulhi_p)
nextafter = binary_function(nextafter_p, arguments=("x1", "x2"))
_mul = binary_function(mul_p)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype=None) -> Array:
    """x * y, elementwise; with `out_dtype`, of operands converted to it first."""
    if out_dtype is None:
        return _mul(x, y)
    x, y = as_arrays("mul", x, y)
    out_dtype = dtypes.check_user_dtype_supported(out_dtype, "mul")
    return _mul(lax.convert_element_type(x, out_dtype), lax.convert_element_type(y, out_dtype))


@api_boundary
def add_any(x: Array, y: Array) -> Array:
    """The sum of two tangents."""
    return add_any_p.bind(x, y)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, elementwise; `rounding_method` says what becomes of halves."""
    return round_p.bind(as_array(x, "round"), rounding_method=RoundingMethod(rounding_method))


@api_boundary
def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """min(max(x, min), max), elementwise; `min` and `max` are scalars or of the shape of x, of one dtype
    (TypeError).
    """
    min, x, max = as_arrays("clamp", min, x, max)
    check_dtypes("clamp", min, x, max, tip=False)
    for name, bound in (("min", min), ("max", max)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got {name}.shape={bound.shape}, "
                f"operand.shape={x.shape}."
            )
    return clamp_p.bind(min, x, max)
