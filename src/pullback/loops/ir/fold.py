"""Constructors of expressions that fold on the way: constants and identities of integers and bool, never of floats.

Index arithmetic is written freely (`i * 1 + 0`), and addresses come out clean: constants stand on the right,
`(x + 2) + 3` is `x + 5`. Float arithmetic is left alone but for `neg` of a constant and conversions of constants, so
that what a kernel computes is what was written.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .ir import Const, Expr, Op
from .ops import OPS, result_dtype
from .types import BITS, NP_DTYPE, REAL_OF, is_int, wrap_int

COMMUTATIVE = frozenset({"add", "mul", "min", "max", "and", "or", "xor", "eq", "ne"})


def round_float(value: float, dtype: str) -> float:
    """`value` rounded to the float type `dtype`, as a Python float."""
    if dtype == "f64" or value != value or value in (math.inf, -math.inf):
        return value
    if dtype == "f32":
        return ctypes.c_float(value).value  # a fifth of NumPy's time
    with np.errstate(over="ignore"):
        return float(NP_DTYPE[dtype].type(value))


def const(dtype: str, value: Any) -> Const:
    """A constant: bool(value), the integer wrapped, or the float rounded to `dtype`."""
    if dtype == "bool":
        return Const(dtype, bool(value))
    if is_int(dtype):
        return Const(dtype, wrap_int(int(value), dtype))
    if dtype in REAL_OF:
        value = complex(value)
        part = REAL_OF[dtype]
        return Const(dtype, complex(round_float(value.real, part), round_float(value.imag, part)))
    return Const(dtype, round_float(float(value), dtype))


def const_key(value: Const) -> tuple[str, Any]:
    """A hashable key equal for constants of the same bits (0.0 and -0.0 differ, NaNs with one payload agree)."""
    if isinstance(value.value, float):
        return value.dtype, struct.pack("d", value.value)
    if isinstance(value.value, complex):
        return value.dtype, struct.pack("dd", value.value.real, value.value.imag)
    return value.dtype, value.value


def coerce(value: Any, dtype: str) -> Expr:
    """`value` itself if an expression, else a constant of `dtype`."""
    return value if isinstance(value, Expr) else const(dtype, value)


def _int_div(x: int, y: int, dtype: str) -> int:
    if y == 0:
        return -1
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _int_rem(x: int, y: int) -> int:
    if y == 0:
        return x
    return abs(x) % abs(y) if x >= 0 else -(abs(x) % abs(y))


def _shift(name: str, x: int, amount: int, dtype: str) -> int:
    bits = BITS[dtype]
    if not 0 <= amount < bits:
        return -1 if name == "shr_arithmetic" and (wrap_int(x, f"i{bits}") < 0) else 0
    if name == "shl":
        return x << amount
    if name == "shr_logical":
        return (x & ((1 << bits) - 1)) >> amount
    return wrap_int(x, f"i{bits}") >> amount


_INT_FOLDS: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda x, y, t: x + y,
    "sub": lambda x, y, t: x - y,
    "mul": lambda x, y, t: x * y,
    "div": _int_div,
    "rem": lambda x, y, t: _int_rem(x, y),
    "floordiv": lambda x, y, t: x // y if y else -1,
    "floormod": lambda x, y, t: x % y if y else x,
    "min": lambda x, y, t: min(x, y),
    "max": lambda x, y, t: max(x, y),
    "and": lambda x, y, t: x & y,
    "or": lambda x, y, t: x | y,
    "xor": lambda x, y, t: x ^ y,
    "shl": lambda x, y, t: _shift("shl", x, y, t),
    "shr_logical": lambda x, y, t: _shift("shr_logical", x, y, t),
    "shr_arithmetic": lambda x, y, t: _shift("shr_arithmetic", x, y, t),
}
COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


# x < y is y > x.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def make(name: str, args: tuple[Expr, ...], dtype: str | None = None, attrs: tuple = ()) -> Expr:
    """The op applied to `args`, folded where that is exact; TypeError if the types do not fit."""
    dtype = result_dtype(name, tuple([arg.dtype for arg in args]), dtype)
    if len(args) == 2:
        x, y = args
        if type(x) is not Const and type(y) is not Const and x is not y:
            return Op(name, dtype, args, attrs)  # most of what is made
        folded = _fold_binary(name, x, y, dtype)
    elif name == "select":
        folded = _fold_select(*args)
    elif len(args) == 1:
        folded = _fold_unary(name, args[0], dtype)
    else:
        folded = None
    if folded is not None:
        return folded
    if name in COMMUTATIVE and isinstance(args[0], Const) and not isinstance(args[1], Const):
        if name not in ("min", "max") or args[0].value != 0 or is_int(dtype):  # of zeros of either sign, the second
            args = (args[1], args[0])
    return Op(name, dtype, args, attrs)


def _fold_unary(name: str, x: Expr, dtype: str) -> Expr | None:
    if name in ("convert", "bitcast") and x.dtype == dtype:
        return x
    if name in ("real", "conj") and x.dtype not in REAL_OF:
        return x
    if not isinstance(x, Const):
        return None
    if name == "neg":
        return const(dtype, -x.value)
    if name == "not":
        return const(dtype, (not x.value) if dtype == "bool" else ~x.value)
    if name == "convert" and isinstance(x.value, (bool, int)):
        if is_int(dtype) or dtype in ("bool", "f64"):
            return const(dtype, x.value)
        if abs(x.value) <= 1 << 53:  # through f64 the rounding is the only one
            return const(dtype, float(x.value))
        return None
    if name == "convert" and isinstance(x.value, float) and dtype in ("f16", "bf16", "f32", "f64"):
        return const(dtype, x.value)
    return None


def _fold_binary(name: str, x: Expr, y: Expr, dtype: str) -> Expr | None:
    operand = x.dtype
    if operand == "bool":
        return _fold_bool(name, x, y)
    if not is_int(operand):
        return x if name in ("mul", "div") and isinstance(y, Const) and y.value == 1 else None
    if isinstance(x, Const) and isinstance(y, Const):
        if name in _INT_FOLDS:
            return const(dtype, _INT_FOLDS[name](x.value, y.value, operand))
        if name in COMPARES:
            return const("bool", COMPARES[name](x.value, y.value))
        return None
    if x is y and name in ("sub", "xor"):
        return const(dtype, 0)
    if x is y and name in ("min", "max", "and", "or"):
        return x
    if isinstance(x, Const) and name in COMMUTATIVE:
        x, y = y, x
    if not isinstance(y, Const):
        if isinstance(x, Const) and x.value == 0:
            if name == "sub":
                return Op("neg", dtype, (y,))
            if name in ("floordiv", "floormod"):
                return x
        if name == "sub" and isinstance(x, Const) and isinstance(y, Op):
            return _fold_from_const(x.value, y, dtype)
        return None
    value = y.value
    if value == 0:
        if name in ("add", "sub", "or", "xor", "shl", "shr_logical", "shr_arithmetic"):
            return x
        if name in ("mul", "and"):
            return y
    if value == 1:
        if name in ("mul", "div", "floordiv"):
            return x
        if name in ("rem", "floormod"):
            return const(dtype, 0)
    inner = x if isinstance(x, Op) and len(x.args) == 2 and isinstance(x.args[1], Const) else None
    if name == "sub":
        return make("add", (x, const(dtype, -value)))
    if inner is not None and name in ("add", "mul") and inner.name == name:
        return make(name, (inner.args[0], const(dtype, _INT_FOLDS[name](inner.args[1].value, value, dtype))))  # type: ignore[attr-defined]
    return None


def _fold_from_const(value: Any, y: Op, dtype: str) -> Expr | None:
    """value - y, where y is a sum or a difference with a constant: reversals of reversals stay short."""
    if y.name == "sub" and isinstance(y.args[0], Const):
        return make("add", (y.args[1], const(dtype, value - y.args[0].value)))
    if y.name == "add" and isinstance(y.args[1], Const):
        return make("sub", (const(dtype, value - y.args[1].value), y.args[0]))
    return None


def _fold_bool(name: str, x: Expr, y: Expr) -> Expr | None:
    if isinstance(x, Const) and name in COMMUTATIVE:
        x, y = y, x
    if x is y and name in ("and", "or"):
        return x
    if not isinstance(y, Const):
        return None
    if isinstance(x, Const):
        if name in COMPARES:
            return const("bool", COMPARES[name](x.value, y.value))
        if name in ("and", "or", "xor"):
            return const("bool", _INT_FOLDS[name](x.value, y.value, "bool"))
        return None
    if name == "and":
        return x if y.value else y
    if name == "or":
        return y if y.value else x
    if name in ("xor", "ne"):
        return make("not", (x,)) if y.value else x
    if name == "eq":
        return x if y.value else make("not", (x,))
    return None


def _fold_select(c: Expr, x: Expr, y: Expr) -> Expr | None:
    if isinstance(c, Const):
        return x if c.value else y
    return x if x is y else None


def is_math(name: str) -> bool:
    """Whether the op is a math function, which the pass expand_math replaces by basic ops."""
    return OPS[name].math
