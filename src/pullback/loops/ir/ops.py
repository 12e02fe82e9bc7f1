"""The operations of the loop IR: how many arguments, of which type classes, and the type of the result.

Result rules: same: type of the arguments, which all agree; bool; real: real part's type of a complex, or same;
complex: the complex type of two floats; given: stated by the op's own dtype (convert, bitcast); select: of args 1, 2.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from pullback.util.record import record

from .types import COMPLEX, COMPLEX_OF, DTYPES, FLOATS, INTS, REAL_OF, int_range, is_int


@record
class OpInfo:
    """What an operation takes and gives; `result` says how the dtype of the result follows (`result_dtype`)."""

    arity: int
    accepts: tuple[str, ...]  # dtypes of the arguments
    result: str = "same"
    math: bool = False  # expanded by the pass expand_math, never emitted


NUMBERS = INTS + FLOATS + COMPLEX
REALS = INTS + FLOATS
INEXACT = FLOATS + COMPLEX
BITS_LIKE = ("bool", *INTS)

OPS: dict[str, OpInfo] = {}


def _add(names: str, info: OpInfo) -> None:
    OPS.update(dict.fromkeys(names.split(), info))


# One argument.
_add("neg", OpInfo(1, NUMBERS))
_add("abs", OpInfo(1, NUMBERS, "real"))
_add("sign square", OpInfo(1, NUMBERS))
_add("floor ceil round_even round_away trunc", OpInfo(1, FLOATS))
_add("sqrt", OpInfo(1, INEXACT))
_add("not", OpInfo(1, BITS_LIKE))
_add("popcount clz bitreverse", OpInfo(1, INTS))
_add("bswap", OpInfo(1, ("i16", "i32", "i64", "u16", "u32", "u64")))  # the order of bytes reversed
_add("is_finite", OpInfo(1, FLOATS, "bool"))
_add("convert", OpInfo(1, DTYPES, "given"))
_add("bitcast", OpInfo(1, DTYPES, "given"))
# Of a table of 8 or 16 numbers, the attr ("table", numbers), the one that the lowest bits of an integer tell.
_add("lookup", OpInfo(1, ("i32", "i64"), "given"))
_add("nearest", OpInfo(1, ("f32",), "given"))  # the nearest i32, to even; any where there is none
_add("real imag", OpInfo(1, INEXACT, "real"))
_add("conj", OpInfo(1, INEXACT))
# Two arguments.
_add("add sub mul", OpInfo(2, NUMBERS))
_add("div", OpInfo(2, NUMBERS))  # integers: towards zero, x / 0 = -1, smallest / -1 = smallest
_add("rem", OpInfo(2, REALS))  # sign of the dividend; integers: x rem 0 = x
_add("floordiv floormod", OpInfo(2, INTS))  # index arithmetic; the divisor is not zero
_add("min max", OpInfo(2, ("bool", *NUMBERS)))  # NaN wins; complex: lexicographic
_add("and or xor", OpInfo(2, BITS_LIKE))
_add("shl shr_logical shr_arithmetic", OpInfo(2, INTS))  # amounts are unsigned; >= width: 0, or all sign bits
_add("mulhi", OpInfo(2, INTS))  # upper half of the double-width product
_add("eq ne", OpInfo(2, DTYPES, "bool"))
_add("lt le gt ge", OpInfo(2, DTYPES, "bool"))  # complex: lexicographic; bool: false < true
# Total order of floats: -NaN < -inf, -0 < 0, inf < NaN.
_add("eq_total ne_total lt_total le_total gt_total ge_total", OpInfo(2, DTYPES, "bool"))
_add("complex", OpInfo(2, ("f32", "f64"), "complex"))
_add("nextafter", OpInfo(2, FLOATS))
_add("scale", OpInfo(2, ("f32", "f64")))  # x 2^y, rounded once, for a whole number y; AVX-512 only
# Three arguments.
_add("select", OpInfo(3, DTYPES, "select"))
_add("fma", OpInfo(3, ("f32", "f64")))  # rounded once
# s + x1 y1 + x0 y0, in this order, of two bf16 each, x1 the upper half of x; denormals are zero. AVX512-BF16 only.
_add("dot_pairs", OpInfo(3, ("f32",)))
_add("dot_words", OpInfo(3, ("i32",)))  # s + x1 y1 + x0 y0 of two i16 each, x1 the upper half of x; modulo 2**32
# Math functions.
_add(
    "exp exp2 log log1p expm1 sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh logistic rsqrt reciprocal",
    OpInfo(1, INEXACT, math=True),
)
_add("cbrt erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e", OpInfo(1, FLOATS, math=True))
_add("integer_pow", OpInfo(1, NUMBERS, math=True))  # attrs: ("y", exponent)
_add("pow", OpInfo(2, NUMBERS, math=True))
_add("atan2", OpInfo(2, INEXACT, math=True))
_add(
    "igamma igammac igamma_grad_a random_gamma_grad zeta polygamma",
    OpInfo(2, FLOATS, math=True),
)
_add("regularized_incomplete_beta", OpInfo(3, FLOATS, math=True))


@functools.lru_cache(maxsize=4096)  # asked for each expression that a pass makes
def result_dtype(name: str, dtypes: tuple[str, ...], given: str | None = None) -> str:
    """The result type of op `name` on arguments of `dtypes`; TypeError says what is wrong with them."""
    info = OPS.get(name)
    if info is None:
        raise TypeError(f"{name}: there is no such operation of the loop IR")
    if len(dtypes) != info.arity:
        raise TypeError(f"{name}: takes {info.arity} argument(s), got {len(dtypes)}")
    if info.result == "select":
        if dtypes[0] != "bool" or dtypes[1] != dtypes[2]:
            raise TypeError(f"select: needs (bool, t, t), got ({', '.join(dtypes)})")
        return dtypes[1]
    first = dtypes[0]
    if any(dtype != first for dtype in dtypes):
        raise TypeError(f"{name}: arguments must have one type, got ({', '.join(dtypes)})")
    if first not in info.accepts:
        raise TypeError(f"{name}: does not accept {first}; accepted: {', '.join(info.accepts)}")
    match info.result:
        case "same":
            return first
        case "bool":
            return "bool"
        case "real":
            return REAL_OF.get(first, first)
        case "complex":
            return COMPLEX_OF[first]
    if given is None:
        raise TypeError(f"{name}: needs the result type (dtype=...)")
    return given


def neutral(combine: str, dtype: str) -> Any:
    """The value n with combine(n, x) = x for all x (-0.0 for the sum of floats); None where there is none.

    `combine` is one of add, mul, min, max, and, or, xor. Complex min and max, which are lexicographic, have none.
    """
    match combine:
        case "add":
            return 0 if is_int(dtype) else -0.0
        case "mul":
            return 1
        case "and":
            return True if dtype == "bool" else -1
        case "or" | "xor":
            return 0
    if dtype == "bool":
        return combine == "min"
    if is_int(dtype):
        return int_range(dtype)[combine == "min"]
    if dtype in REAL_OF:
        return None
    return math.inf if combine == "min" else -math.inf


COMBINES = ("add", "mul", "min", "max", "and", "or", "xor")
