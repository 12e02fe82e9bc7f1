"""Each op of the loop IR on NumPy values: the meaning that emitted code is tested against.

16-bit floats compute in f32 and round once per op, which NumPy and ml_dtypes do as well. Math functions come from
NumPy: they are oracles within some ulp, not bit for bit. Of those that NumPy has not, the expansion (loops/math) is the
meaning: who interprets a function expands them first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .ir import Op
from .types import BITS, NP_DTYPE, REAL_OF, int_range, is_int, type_class

Array = Any


def evaluate(op: Op, args: list[Array]) -> Array:
    """The value of `op` on NumPy arrays or scalars of its arguments' dtypes; exact dtype of the op."""
    dtype = NP_DTYPE[op.dtype]
    function = TABLE.get(op.name)
    if function is None:
        raise NotImplementedError(f"interpret: no NumPy meaning for op {op.name!r}")
    result = np.asarray(function(op, *args))
    return result.astype(dtype, copy=False)[()]


def _wide(x: Array) -> Array:
    """16-bit floats as f32, others unchanged."""
    return np.asarray(x, np.float32) if np.asarray(x).dtype.itemsize == 2 and np.asarray(x).dtype.kind in "fV" else x


def _unsigned(x: Array) -> Array:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def _div(op: Op, x: Array, y: Array) -> Array:
    if not is_int(op.dtype):
        return np.true_divide(_wide(x), _wide(y))
    safe = np.where(y == 0, 1, y).astype(NP_DTYPE[op.dtype])
    if op.dtype[0] == "i":
        quotient = np.where(y == -1, 0 - np.asarray(x), _truncated(x, np.where(safe == -1, 1, safe)))
    else:
        quotient = np.asarray(x) // safe
    return np.where(y == 0, np.asarray(-1).astype(NP_DTYPE[op.dtype]), quotient)


def _truncated(x: Array, y: Array) -> Array:
    y = np.asarray(y, np.asarray(x).dtype)
    floor, rest = np.asarray(x) // y, np.asarray(x) % y
    return floor + ((rest != 0) & ((x < 0) != (y < 0)))


def _rem(op: Op, x: Array, y: Array) -> Array:
    if not is_int(op.dtype):
        return np.fmod(_wide(x), _wide(y))
    safe = np.where((y == 0) | (y == (-1 if op.dtype[0] == "i" else 0)), 1, y).astype(NP_DTYPE[op.dtype])
    return np.where(y == 0, x, np.fmod(x, safe))


def _minmax(name: str) -> Callable[[Op, Array, Array], Array]:
    ufunc = getattr(np, name)

    def run(op: Op, x: Array, y: Array) -> Array:
        if op.dtype not in REAL_OF:
            return ufunc(x, y)
        first = _less_complex(x, y) if name == "minimum" else _less_complex(y, x)
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        return np.where(nan_x, x, np.where(nan_y, y, np.where(first, x, y)))

    return run


def _less_complex(x: Array, y: Array) -> Array:
    return (np.real(x) < np.real(y)) | ((np.real(x) == np.real(y)) & (np.imag(x) < np.imag(y)))


def _compare(name: str) -> Callable[[Op, Array, Array], Array]:
    ufunc = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal
    }[name]  # fmt: skip

    def run(op: Op, x: Array, y: Array) -> Array:
        if op.args[0].dtype in REAL_OF and name not in ("eq", "ne"):
            if name in ("lt", "le"):
                return _less_complex(x, y) | ((x == y) if name == "le" else False)
            return _less_complex(y, x) | ((x == y) if name == "ge" else False)
        return ufunc(x, y)

    return run


def _total_key(op: Op, x: Array) -> Array:
    if op.args[0].dtype in REAL_OF:
        raise NotImplementedError("total order of complex numbers: compare real and imaginary parts")
    if type_class(op.args[0].dtype) != "float":
        return x
    bits = np.asarray(x).view(f"i{np.asarray(x).dtype.itemsize}")
    return np.where(bits < 0, bits ^ int_range(f"i{8 * bits.dtype.itemsize}")[1], bits)


def _total(name: str) -> Callable[[Op, Array, Array], Array]:
    compare = _compare(name)
    return lambda op, x, y: compare(Op("lt", "bool", (Op("", "i64", ()),) * 2), _total_key(op, x), _total_key(op, y))


def _shift(op: Op, x: Array, amount: Array) -> Array:
    bits = BITS[op.dtype]
    amount = _unsigned(amount)
    big = amount >= bits
    small = np.where(big, 0, amount)
    if op.name == "shr_arithmetic":
        signed = np.asarray(x).view(f"i{bits // 8}")
        shifted = np.where(big, np.where(signed < 0, -1, 0), signed >> small.astype(signed.dtype))
        return shifted.astype(signed.dtype).view(NP_DTYPE[op.dtype])
    raw = _unsigned(x)
    small = small.astype(raw.dtype)
    shifted = raw << small if op.name == "shl" else raw >> small
    return np.where(big, np.asarray(0, raw.dtype), shifted).view(NP_DTYPE[op.dtype])


def _each_int(function: Callable[..., int]) -> Callable[..., Array]:
    """Applies a function of Python ints elementwise, the result wrapped."""

    def run(op: Op, *args: Array) -> Array:
        dtype = NP_DTYPE[op.dtype]
        mask = (1 << BITS[op.dtype]) - 1
        raw = np.frompyfunc(lambda *xs: function(op, *map(int, xs)) & mask, len(args), 1)(*args)
        return np.asarray(raw).astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)

    return run


def _clz(op: Op, x: int) -> int:
    bits = BITS[op.dtype]
    return bits - (x & ((1 << bits) - 1)).bit_length()


def _bitreverse(op: Op, x: int) -> int:
    bits = BITS[op.dtype]
    return int(f"{x & ((1 << bits) - 1):0{bits}b}"[::-1], 2)


def _convert(op: Op, x: Array) -> Array:
    source, target = op.args[0].dtype, op.dtype
    x = np.asarray(x)
    if target == "bool":
        return x != 0
    if source in REAL_OF and target not in REAL_OF:
        x, source = np.real(x), REAL_OF[source]
    if is_int(target) and type_class(source) == "float":
        low, high = int_range(target)
        wide = x.astype(np.float64)
        inside = (wide >= low) & (wide < float(high) + (1 if high < 1 << 53 else 0))
        scalar = NP_DTYPE[target].type
        value = np.where(inside, np.trunc(wide), 0).astype(NP_DTYPE[target])
        limit = np.where(wide < 0, scalar(low), scalar(high))
        return np.where(np.isnan(wide), scalar(0), np.where(inside, value, limit))
    if target in ("f16", "bf16") and source in ("f64", "i64", "u64", "i32", "u32"):
        return _round_once(x, target)
    return x.astype(NP_DTYPE[target])


def _round_once(x: Array, target: str) -> Array:
    """f64 or integers to a 16-bit float without double rounding: f32 rounded to odd keeps what decides the tie."""
    wide = x.astype(np.float64)
    narrow = wide.astype(np.float32)
    bits = narrow.view(np.int32)
    inexact = (narrow.astype(np.float64) != wide) & ((bits & 1) == 0) & np.isfinite(narrow)
    away = np.abs(wide) > np.abs(narrow.astype(np.float64))
    odd = np.where(inexact, np.where(away, bits + 1, bits - 1), bits).astype(np.int32)
    return odd.view(np.float32).astype(NP_DTYPE[target])


def _bitcast(op: Op, x: Array) -> Array:
    x, dtype = np.asarray(x), NP_DTYPE[op.dtype]
    if x.dtype.itemsize != dtype.itemsize:
        raise NotImplementedError(f"bitcast: {op.args[0].dtype} to {op.dtype} differ in width")
    return x.view(dtype)


def _sign(op: Op, x: Array) -> Array:
    if op.dtype in REAL_OF:
        size = np.abs(x)
        return np.where(size == 0, x, x / np.where(size == 0, 1, size))
    return np.sign(_wide(x)) if type_class(op.dtype) != "float" else np.where(x == 0, x, np.sign(_wide(x)))


def _fma(op: Op, x: Array, y: Array, z: Array) -> Array:
    """Rounded once: products of f32 are exact in f64, and rounding the f64 sum to odd keeps the second one right."""
    if op.dtype == "f64":
        return np.frompyfunc(_fma_exact, 3, 1)(x, y, z)
    product = np.asarray(x, np.float64) * np.asarray(y, np.float64)
    z = np.asarray(z, np.float64)
    total = product + z
    other = total - product
    error = (product - (total - other)) + (z - other)
    bits = total.view(np.int64)
    fix = (error != 0) & np.isfinite(total) & np.isfinite(error) & ((bits & 1) == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(fix, np.where(away, bits + 1, bits - 1), bits).view(np.float64)
    return odd.astype(NP_DTYPE[op.dtype])


_FUSED = Op("fma", "f32", ())


def flushed(value: Array) -> np.ndarray:
    """float32 with zeros for denormal numbers."""
    small = np.abs(value) < np.finfo(np.float32).tiny
    return np.asarray(np.where(small, np.copysign(np.float32(0), value), value))


def fused(x: Array, y: Array, z: Array) -> np.ndarray:
    """x * y + z of float32, rounded once."""
    return np.asarray(_fma(_FUSED, x, y, z))


def _dot_pairs(op: Op, total: Any, x: Any, y: Any) -> np.ndarray:
    """Of the halves of x and y, bf16 each: total + x1 y1 + x0 y0."""

    def halves(value: Any) -> tuple[np.ndarray, np.ndarray]:
        bits = np.asarray(value, np.float32).view(np.uint32)
        upper, lower = bits & np.uint32(0xFFFF0000), bits << np.uint32(16)
        return flushed(upper.view(np.float32)), flushed(lower.view(np.float32))

    for left, right in zip(halves(x), halves(y)):
        total = flushed(_fma(op, left, right, flushed(np.asarray(total, np.float32))))
    return np.asarray(total)


def _dot_words(op: Op, total: Any, x: Any, y: Any) -> np.ndarray:
    """Of the halves of x and y, i16 each: total + x1 y1 + x0 y0."""
    x, y = (np.asarray(value, np.int32) for value in (x, y))
    lower = [(value << 16 >> 16).astype(np.int64) for value in (x, y)]
    upper = [(value >> 16).astype(np.int64) for value in (x, y)]
    return (np.asarray(total, np.int64) + lower[0] * lower[1] + upper[0] * upper[1]).astype(np.int32)


def _fma_exact(x: float, y: float, z: float) -> float:
    x, y, z = float(x), float(y), float(z)
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return x * y + z
    a, b = x.as_integer_ratio()
    c, d = y.as_integer_ratio()
    e, f = z.as_integer_ratio()
    top, bottom = a * c * f + e * b * d, b * d * f
    if top == 0:
        return x * y + z
    try:
        return top / bottom  # division of Python integers rounds correctly
    except OverflowError:
        return float("inf") if top > 0 else float("-inf")


def _nextafter(op: Op, x: Array, y: Array) -> Array:
    return np.nextafter(x, y)


def _unary(function: Callable[[Array], Array]) -> Callable[[Op, Array], Array]:
    return lambda op, x: function(_wide(x))


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[Op, Array, Array], Array]:
    return lambda op, x, y: function(_wide(x), _wide(y))


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _lookup(op: Op, x: Array) -> Array:
    table = np.array(dict(op.attrs)["table"], NP_DTYPE[op.dtype])
    return table[np.asarray(x) & len(table) - 1]


def _round_away(x: Array) -> Array:
    return np.where(np.abs(x - np.trunc(x)) >= 0.5, np.trunc(x) + np.copysign(1, x), np.trunc(x))


def _square(op: Op, x: Array) -> Array:
    if not np.iscomplexobj(x):
        return np.multiply(x, x)
    return _complex((x.real - x.imag) * (x.real + x.imag), 2 * (x.real * x.imag))


TABLE: dict[str, Callable[..., Array]] = {
    "neg": lambda op, x: np.negative(x) if op.dtype[0] != "u" else (0 - np.asarray(x)),
    "abs": lambda op, x: np.abs(x),
    "sign": _sign,
    "square": _square,
    "floor": _unary(np.floor),
    "ceil": _unary(np.ceil),
    "round_even": _unary(np.rint),
    "round_away": _unary(_round_away),
    "trunc": _unary(np.trunc),
    "sqrt": _unary(np.sqrt),
    "not": lambda op, x: np.invert(x),
    "popcount": _each_int(lambda op, x: (x & ((1 << BITS[op.dtype]) - 1)).bit_count()),
    "clz": _each_int(_clz),
    "bitreverse": _each_int(_bitreverse),
    "bswap": lambda op, x: np.asarray(x).byteswap(),
    "is_finite": _unary(np.isfinite),
    "convert": _convert,
    "bitcast": _bitcast,
    "real": lambda op, x: np.real(x),
    "imag": lambda op, x: np.imag(x),
    "conj": lambda op, x: np.conj(x),
    "add": lambda op, x, y: np.add(x, y),
    "sub": lambda op, x, y: np.subtract(x, y),
    "mul": lambda op, x, y: np.multiply(x, y),
    "div": _div,
    "rem": _rem,
    "floordiv": lambda op, x, y: np.asarray(x) // y,
    "floormod": lambda op, x, y: np.asarray(x) % y,
    "min": _minmax("minimum"),
    "max": _minmax("maximum"),
    "and": lambda op, x, y: np.bitwise_and(x, y),
    "or": lambda op, x, y: np.bitwise_or(x, y),
    "xor": lambda op, x, y: np.bitwise_xor(x, y),
    "shl": _shift,
    "shr_logical": _shift,
    "shr_arithmetic": _shift,
    "mulhi": _each_int(lambda op, x, y: (x * y) >> BITS[op.dtype]),
    **{name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}_total": _total(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "complex": lambda op, x, y: _complex(x, y),
    "scale": lambda op, x, y: np.ldexp(x, np.clip(np.nan_to_num(y), -4000, 4000).astype(np.int32)),
    "lookup": _lookup,
    "nearest": lambda op, x: np.nan_to_num(np.clip(np.rint(x), -(2.0**31), 2.0**31 - 128)).astype(np.int32),
    "nextafter": _nextafter,
    "fma": _fma,
    "dot_pairs": _dot_pairs,
    "dot_words": _dot_words,
    # Math functions.
    **{name: _unary(getattr(np, name)) for name in (
        "exp", "exp2", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "cbrt", "reciprocal")},
    **{f"a{name}": _unary(getattr(np, f"arc{name}")) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "logistic": _unary(_logistic),
    "rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "integer_pow": lambda op, x: _integer_pow(x, dict(op.attrs)["y"]),
    "pow": _binary(np.power),
    "atan2": _binary(np.arctan2),
}  # fmt: skip


def _complex(x: Array, y: Array) -> Array:
    x, y = np.broadcast_arrays(x, y)
    result = np.empty(x.shape, np.complex64 if x.dtype == np.float32 else np.complex128)
    result.real, result.imag = x, y
    return result


def _integer_pow(x: Array, y: int) -> Array:
    if y < 0:
        return 1 / np.asarray(_integer_pow(_wide(x), -y))
    result = np.ones_like(np.asarray(x))
    while y:
        if y & 1:
            result = result * x
        x, y = np.multiply(x, x), y >> 1
    return result
