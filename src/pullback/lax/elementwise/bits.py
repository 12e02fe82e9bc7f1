"""Bits of integers, and conversions between element types."""

from __future__ import annotations

from typing import Any

from pullback.core import Tracer, hooks
from pullback.core.explain import check
from pullback.core.kinds import INTEGER
from pullback.core.lowering import Elementwise, Pointwise
from pullback.core.staging import as_staged, literal_of
from pullback.lax.elementwise import extended_types
from pullback.lax.elementwise.arithmetic import op
from pullback.lax.records.families import *
from pullback.lax.records.rules import batch_unary
from pullback.util.warning import warn_if_real

__all__ = [
    "and_p",
    "bitcast_convert_type",
    "bitcast_convert_type_p",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "clz",
    "clz_p",
    "convert_element_type",
    "convert_element_type_p",
    "not_p",
    "or_p",
    "population_count",
    "population_count_p",
    "reduce_precision",
    "reduce_precision_p",
    "shift_left",
    "shift_left_p",
    "shift_right_arithmetic",
    "shift_right_arithmetic_p",
    "shift_right_logical",
    "shift_right_logical_p",
    "xor_p",
]

not_p = unary(
    "not",
    doc="Bitwise (for bool: logical) not.",
    accepts=BITS,
    reference=np.invert,
    jvp=ZERO,
    lower=op("not"),
    samples=Samples(ulp=0),
)


def _bitwise(name, doc, reference):
    return nary(
        name,
        2,
        doc=doc,
        accepts=BITS,
        reference=reference,
        jvp=ZERO,
        lower=op(name),
        traits=("commutative", "associative"),
        samples=Samples(ulp=0),
    )


and_p = _bitwise("and", "Bitwise (for bool: logical) and.", np.bitwise_and)
or_p = _bitwise("or", "Bitwise (for bool: logical) or.", np.bitwise_or)
xor_p = _bitwise("xor", "Bitwise (for bool: logical) exclusive or.", np.bitwise_xor)


def _unsigned(x):
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def _signed(x):
    """The same bits as a signed integer; those of types of less than a byte are extended by their sign."""
    excess = 8 * x.dtype.itemsize - dtypes.itemsize_bits(x.dtype)
    signed = np.asarray(x).view(f"i{x.dtype.itemsize}")
    return (signed << excess) >> excess if excess else signed


def _shift(function, x, y):
    """A NumPy shift of x by amounts that are taken as unsigned; those of the width or more are left to the caller."""
    bits = dtypes.itemsize_bits(y.dtype)
    amount = _unsigned(y)
    return function(x, np.minimum(amount, bits - 1).astype(x.dtype)), amount >= bits


def _shift_left_reference(x, y):
    out, too_far = _shift(np.left_shift, _signed(x), y)
    return _of_bits(np.where(too_far, np.zeros_like(out), out), x.dtype)


def _shift_right_arithmetic_reference(x, y):
    out, _ = _shift(np.right_shift, _signed(x), y)
    return _of_bits(out, x.dtype)


def _of_bits(bits, dtype):
    """Integers of as many bytes as `dtype` has as that type, which may have fewer bits."""
    width = dtypes.itemsize_bits(dtype)
    if width < 8:
        bits = bits & bits.dtype.type((1 << width) - 1)
    return np.asarray(bits).view(dtype)


def _shift_right_logical_reference(x, y):
    out, too_far = _shift(np.right_shift, _unsigned(x), y)
    return _of_bits(np.where(too_far, np.zeros_like(out), out), x.dtype)


def _shift_primitive(name, doc, reference, loop_op):
    return nary(
        name,
        2,
        doc=doc,
        accepts=INT + UINT,
        reference=reference,
        jvp=ZERO,
        lower=op(loop_op),
        samples=Samples(low=(-3, 0), high=(3, 40), ulp=0),
    )


shift_left_p = _shift_primitive("shift_left", "x << y; 0 if y is the width or more.", _shift_left_reference, "shl")
shift_right_arithmetic_p = _shift_primitive(
    "shift_right_arithmetic", "x >> y, filled with the sign bit.", _shift_right_arithmetic_reference, "shr_arithmetic"
)
shift_right_logical_p = _shift_primitive(
    "shift_right_logical", "x >> y, filled with zeros.", _shift_right_logical_reference, "shr_logical"
)


def _clz_reference(x):
    bits = dtypes.itemsize_bits(x.dtype)
    rest, zeros = _unsigned(x).astype(np.uint64), np.full(np.shape(x), bits, np.int64)
    for _ in range(bits):
        zeros -= rest != 0
        rest = rest >> np.uint64(1)
    return zeros.astype(x.dtype)


population_count_p = unary(
    "population_count",
    doc="The number of bits that are 1.",
    accepts=INT + UINT,
    jvp=ZERO,
    reference=lambda x: np.bitwise_count(_unsigned(x)).astype(x.dtype),
    lower=op("popcount"),
    samples=Samples(ulp=0),
)
clz_p = unary(
    "clz",
    doc="The number of leading bits that are 0.",
    accepts=INT + UINT,
    reference=_clz_reference,
    jvp=ZERO,
    lower=op("clz"),
    samples=Samples(ulp=0),
)


# ------------------------------------------------------------------------------------------------ convert_element_type


def _convert_shape(aval, *, new_dtype, weak_type=False, sharding=None):
    if not isinstance(aval.dtype, np.dtype) or not isinstance(new_dtype, np.dtype):
        if aval.dtype is not new_dtype:
            raise ValueError(f"Cannot convert from type {aval.dtype} to {new_dtype}.")
    return ShapedArray(aval.shape, new_dtype, bool(weak_type))


def convert_reference(x: np.ndarray, new_dtype: np.dtype, **_type: Any) -> np.ndarray:
    """Value conversion: floats become integers towards zero, within limits, NaN 0; to bool: x != 0; complex drops its
    imaginary part.
    """
    if x.dtype == new_dtype:
        return x
    target = dtypes.kind_of(new_dtype)
    if target == "b":
        return x != np.zeros((), x.dtype)
    if x.dtype.kind == "c" and target != "c":
        x = x.real
    if target in "iu" and dtypes.kind_of(x.dtype) == "f":
        limits = dtypes.iinfo(new_dtype)
        wide = np.trunc(x.astype(np.float64))
        low, high = float(limits.min), float(limits.max)
        inside = (wide > low) & (wide < high)
        whole = np.where(inside, wide, 0).astype(new_dtype)
        return np.where(
            inside,
            whole,
            np.where(
                wide >= high,
                np.array(limits.max, new_dtype),
                np.where(wide <= low, np.array(limits.min, new_dtype), np.array(0, new_dtype)),
            ),
        )
    if x.dtype.isbuiltin != 1 and new_dtype.isbuiltin != 1:  # ml_dtypes has not all casts between its own types
        x = x.astype(np.int8 if dtypes.kind_of(x.dtype) in "iu" and target in "iu" else np.float32)
    return x.astype(new_dtype)


def _differentiable(dtype) -> bool:
    return isinstance(dtype, np.dtype) and dtypes.kind_of(dtype) in "fc"


def _convert_jvp(primals, tangents, *, new_dtype, weak_type=False, sharding=None):
    (x,), (x_dot,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    if is_zero(x_dot) or not _differentiable(new_dtype):
        return out, tangent_zero(out)
    return out, convert_element_type_p.bind(x_dot, new_dtype=new_dtype, weak_type=weak_type)


def _convert_transpose(x_bar, x, *, new_dtype, weak_type=False, sharding=None):
    if is_zero(x_bar):
        return [tangent_zero(x)]
    return [convert_element_type_p.bind(x_bar, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)]


def _convert_cases(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32) * 100
    pairs = [
        ("int32", x),
        ("uint8", np.abs(x)),
        ("float64", x),
        ("bool", x),
        ("complex64", x),
        ("float16", x),
        ("bfloat16", x),
        ("float32", x.astype(np.int32)),
        ("int8", x.astype(np.int32)),
        ("float32", x > 0),
    ]
    return [
        Case((operand,), {"new_dtype": dtypes.as_dtype(name), "weak_type": False}, derivatives=name == "float64")
        for name, operand in pairs
    ]


convert_element_type_p = Primitive(
    "convert_element_type",
    doc="The values as another element type.",
    abstract_eval=_convert_shape,
    reference=convert_reference,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    traits={"elementwise", "linear"},
    samples=Samples(cases=_convert_cases),
    lower=Elementwise(lambda b, x, **params: x if x.dtype == b.out_dtype else b.convert(x, b.out_dtype)),
)
convert_element_type_p.batch = batch_unary(convert_element_type_p.bind)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` as dtype and weak type, or itself if it is so already; for rules and other modules."""
    if x.dtype == dtype and x.aval.weak_type == weak_type:
        return x
    if extended_types.has_rules(dtype) or extended_types.has_rules(x.dtype):
        return extended_types.convert(x, dtype)
    if x.ndim == 0 and isinstance(dtype, np.dtype) and isinstance(x.dtype, np.dtype):
        # A scalar that the program has as a literal is converted now, and stays one.
        known = literal_of(x)
        if known is not None:
            with np.errstate(all="ignore"):
                found = convert_reference(known, dtype)
            if not weak_type and dtypes.canonicalize_dtype(dtype) != dtype:
                return hooks.exactly(found)
            place = getattr(x, "_device", None) if not isinstance(x, Tracer) else None
            made = hooks.asarray(found, dtype, weak_type, **({} if place is None else {"device": place}))
            return as_staged(made) if isinstance(x, Tracer) else made
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """The values as another element type, never weakly typed.

    Floats become integers towards zero and within their limits, NaN becomes 0; numbers become bool by `!= 0`; a complex
    operand loses its imaginary part, with a ComplexWarning. Raises TypeError for what is not a dtype.
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: argument 'new_dtype' must be specified, got None")
    scalar = type(operand) is complex
    operand = as_array(operand, "convert_element_type")
    if type(new_dtype) is not np.dtype:
        new_dtype = (
            dtypes.canonicalize_dtype(new_dtype)
            if isinstance(new_dtype, type) and new_dtype in dtypes.python_scalar_dtypes
            else new_dtype
        )
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    if operand.dtype != new_dtype and any(
        dtypes.is_extended(d) and not extended_types.has_rules(d) for d in (operand.dtype, new_dtype)
    ):
        raise ValueError(f"Cannot convert_element_type from {operand.dtype} to {new_dtype}")
    if isinstance(operand.dtype, np.dtype) and operand.dtype.kind == "c" and dtypes.kind_of(new_dtype) != "c":
        if scalar and dtypes.kind_of(new_dtype) != "b":
            raise TypeError(f"convert_element_type: a complex number cannot become {new_dtype}")
        warn_if_real(operand.dtype, new_dtype)
    return convert(operand, new_dtype)


# ------------------------------------------------------------------------------------------------ bitcast_convert_type


def _bitcast_widths(dtype, new_dtype):
    """Bits of an element before and after."""
    return dtypes.itemsize_bits(dtype), dtypes.itemsize_bits(new_dtype)


def _bitcast_shape(aval, *, new_dtype, widths=None):
    old, new = widths or _bitcast_widths(aval.dtype, new_dtype)
    last = aval.shape[-1] if aval.shape else 1
    if old < new and (not aval.shape or last * old != new):
        raise ValueError(
            f"bitcast_convert_type: {new_dtype} has {new} bits, to be made of the last dimension, but the operand has "
            f"shape {aval.shape} and {aval.dtype} only {old} bits each"
        )
    if aval.dtype != new_dtype and {"b", "c"} & {dtypes.kind_of(aval.dtype), dtypes.kind_of(new_dtype)}:
        raise TypeError(
            f"bitcast_convert_type: bool and complex keep their dtype, got {aval.dtype} and new_dtype={new_dtype}; the "
            "method .view() of arrays changes it"
        )
    if old == new:
        return ShapedArray(aval.shape, new_dtype)
    if old > new:
        return ShapedArray((*aval.shape, old // new), new_dtype)
    return ShapedArray(aval.shape[:-1], new_dtype)


def _bitcast_reference(x, new_dtype, widths=None):
    old, new = widths or _bitcast_widths(x.dtype, new_dtype)
    if old == new:
        return np.asarray(x, order="C").view(new_dtype).reshape(x.shape)
    bits = _unsigned(x).astype(np.uint64)
    if old > new:
        places = np.arange(0, old, new, dtype=np.uint64)
        bits = (bits[..., None] >> places) & np.uint64((1 << new) - 1)
    else:
        bits = np.bitwise_or.reduce(bits << np.arange(0, new, old, dtype=np.uint64), -1)
    return np.asarray(bits).astype(f"u{new_dtype.itemsize}").view(new_dtype)


def _bitcast_at(ctx, index):
    """Parts of a number are taken by shifts, and put together by shifts; the lowest comes first (little-endian)."""
    b, (aval,), out = ctx.b, ctx.in_avals, ctx.out_aval
    old, new = ctx.params.get("widths") or _bitcast_widths(aval.dtype, out.dtype)
    target = dtypes.short_name(out.dtype)

    def cast(x, dtype):
        return x if x.dtype == dtype else b.bitcast(x, dtype)

    if old == new:
        return cast(ctx.operand(0, index), target)
    wide, narrow = f"u{max(old, new, 8)}", f"u{max(min(old, new), 8)}"
    if old > new:
        amount = b.convert(b.op("mul", index[-1], new), wide)
        part = b.op("shr_logical", cast(ctx.operand(0, index[:-1]), wide), amount)
        if new < 8:
            part = b.op("and", part, (1 << new) - 1)
        return cast(b.convert(part, narrow), target)
    bits = None
    for k in range(new // old):
        part = b.convert(cast(ctx.operand(0, (*index, b.const("i64", k))), narrow), wide)
        part = b.op("shl", part, b.const(wide, old * k)) if k else part
        bits = part if bits is None else b.op("or", bits, part)
    return cast(bits, target)


def _bitcast_batch(args, dims, *, new_dtype, widths=None):
    (x,), (d,) = args, dims
    old, new = widths or _bitcast_widths(x.dtype, new_dtype)
    if old != new:  # the last axis splits or merges
        x, d = move_batch_axis(x, d, 0), 0
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), d


def _bitcast_cases(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    return [
        Case((x,), {"new_dtype": np.dtype(n)}, derivatives=False) for n in ("int32", "uint8", "uint16", "float32")
    ] + [Case((rng.integers(0, 99, (3, 4)).astype(np.uint8),), {"new_dtype": np.dtype("float32")}, derivatives=False)]


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    doc="The same bits as another element type; of `widths` (old, new) where less than the bytes that hold them.",
    abstract_eval=_bitcast_shape,
    reference=_bitcast_reference,
    jvp=ZERO,
    transpose=NOT_LINEAR,
    batch=_bitcast_batch,
    lower=Pointwise(_bitcast_at),
    samples=Samples(cases=_bitcast_cases),
)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits as another element type.

    A narrower type adds a last dimension, a wider one consumes the last dimension, which must then have the right size
    (ValueError). Raises TypeError between bool or complex numbers and other types.
    """
    if new_dtype is None:
        raise ValueError("bitcast_convert_type: argument 'new_dtype' must be specified, got None")
    operand = as_array(operand, "bitcast_convert_type")
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


# ---------------------------------------------------------------------------------------------------- reduce_precision

_LAYOUT = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


def _reduce_precision_plan(dtype, exponent_bits, mantissa_bits):
    """(bits dropped, exponent mask, biased exponent of the least normal number kept - 1, of the largest one), fields in
    place.
    """
    exponent, mantissa = _LAYOUT[dtype.name]
    bias, new_bias = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    mask = ((1 << exponent) - 1) << mantissa
    limits = ((bias - new_bias) << mantissa, (bias + new_bias) << mantissa) if exponent_bits < exponent else None
    return max(mantissa - mantissa_bits, 0), mask, limits


def _reduce_precision_bits(unsigned, dropped, mask, limits, xp):
    """Round to nearest even, then overflow to infinity and underflow to zero; `xp` gives where, and integer
    constants.
    """
    bits = unsigned
    if dropped:
        odd = (bits >> xp.const(dropped)) & xp.const(1)
        bits = bits + odd + xp.const((1 << (dropped - 1)) - 1)
        bits = bits & xp.const(xp.full - ((1 << dropped) - 1))
    if limits is not None:
        sign = bits & xp.const(1 << (xp.width - 1))
        exponent = bits & xp.const(mask)
        bits = xp.where(exponent > xp.const(limits[1]), sign | xp.const(mask), bits)
        bits = xp.where(exponent <= xp.const(limits[0]), sign, bits)
    return bits


class _NumPyBits:
    where = staticmethod(np.where)

    def __init__(self, dtype):
        self.width, self.full = 8 * dtype.itemsize, (1 << 8 * dtype.itemsize) - 1
        self.const = dtype.type


class _Shifted:
    """A loop IR expression with the operators that the rounding uses."""

    def __init__(self, b, expr):
        self.b, self.expr = b, expr

    def _op(self, name, other):
        return _Shifted(self.b, self.b.op(name, self.expr, other.expr))

    def __add__(self, other):
        return self._op("add", other)

    def __and__(self, other):
        return self._op("and", other)

    def __or__(self, other):
        return self._op("or", other)

    def __rshift__(self, other):
        return self._op("shr_logical", other)

    def __gt__(self, other):
        return self._op("gt", other)

    def __le__(self, other):
        return self._op("le", other)


class _LoopBits:
    def __init__(self, b, width):
        self.b, self.width, self.full = b, width, (1 << width) - 1

    def const(self, value):
        return _Shifted(self.b, self.b.const(f"u{self.width}", value))

    def where(self, pred, x, y):
        return _Shifted(self.b, self.b.select(pred.expr, x.expr, y.expr))


def _reduce_precision_reference(x, exponent_bits, mantissa_bits):
    if x.dtype.name not in _LAYOUT:  # of 8 bits and fewer
        return _reduce_precision_reference(x.astype(np.float32), exponent_bits, mantissa_bits).astype(x.dtype)
    bits = _unsigned(x)
    dropped, mask, limits = _reduce_precision_plan(x.dtype, exponent_bits, mantissa_bits)
    out = _reduce_precision_bits(bits, dropped, mask, limits, _NumPyBits(bits.dtype)).astype(bits.dtype).view(x.dtype)
    return np.where(x != x, x, out)


def _reduce_precision_lower(b, x, exponent_bits, mantissa_bits):
    dtype = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}[x.dtype]
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[x.dtype]
    dropped, mask, limits = _reduce_precision_plan(dtypes.as_dtype(dtype), exponent_bits, mantissa_bits)
    bits = _Shifted(b, b.bitcast(x, f"u{width}"))
    out = _reduce_precision_bits(bits, dropped, mask, limits, _LoopBits(b, width))
    return b.select(b.op("ne", x, x), x, b.bitcast(out.expr, x.dtype))


reduce_precision_p = unary(
    "reduce_precision",
    doc="Rounded to fewer exponent and mantissa bits.",
    accepts=FLOAT,
    reference=_reduce_precision_reference,
    jvp=LINEAR,
    transpose=lambda y_bar, aval, **params: reduce_precision_p.bind(y_bar, **params),
    lower=_reduce_precision_lower,
    cost=8,
    samples=Samples(
        cases=lambda rng: [
            Case(
                (rng.normal(size=9).astype(np.float32) * 10.0 ** rng.integers(-9, 9, 9),),
                {"exponent_bits": 5, "mantissa_bits": m},
                derivatives=False,
            )
            for m in (3, 10)
        ]
    ),
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats rounded to what a format with the given bits can hold, to nearest even; too large ones become infinite.

    Raises ValueError for less than 1 exponent bit or a negative number of mantissa bits, TypeError for other dtypes.
    """
    check("reduce_precision", INTEGER, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    exponent_bits, mantissa_bits = int(exponent_bits), int(mantissa_bits)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: exponent_bits must be positive and mantissa_bits not negative, got {exponent_bits} and "
            f"{mantissa_bits}"
        )
    return reduce_precision_p.bind(
        as_array(operand, "reduce_precision"), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )


bitwise_not = unary_function(not_p, name="bitwise_not")
bitwise_and = binary_function(and_p, name="bitwise_and")
bitwise_or = binary_function(or_p, name="bitwise_or")
bitwise_xor = binary_function(xor_p, name="bitwise_xor")
shift_left = binary_function(shift_left_p)
shift_right_arithmetic = binary_function(shift_right_arithmetic_p)
shift_right_logical = binary_function(shift_right_logical_p)
population_count = unary_function(population_count_p)
clz = unary_function(clz_p)
