"""Scalar types of the loop IR: their classes, sizes and NumPy counterparts."""

from __future__ import annotations

import ml_dtypes
import numpy as np

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
DTYPES = ("bool", *INTS, *FLOATS, *COMPLEX)

NP_DTYPE: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    **{name: np.dtype(f"int{name[1:]}") for name in SIGNED},
    **{name: np.dtype(f"uint{name[1:]}") for name in UNSIGNED},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
NAME_OF_NP_DTYPE: dict[np.dtype, str] = {dtype: name for name, dtype in NP_DTYPE.items()}

ITEMSIZE: dict[str, int] = {name: dtype.itemsize for name, dtype in NP_DTYPE.items()}
BITS: dict[str, int] = {name: 8 * size for name, size in ITEMSIZE.items()} | {"bool": 1}
REAL_OF: dict[str, str] = {"c64": "f32", "c128": "f64"}
COMPLEX_OF: dict[str, str] = {"f32": "c64", "f64": "c128"}

_CLASS: dict[str, str] = {
    "bool": "bool",
    **dict.fromkeys(SIGNED, "signed"),
    **dict.fromkeys(UNSIGNED, "unsigned"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(COMPLEX, "complex"),
}


def type_class(dtype: str) -> str:
    """Returns 'bool', 'signed', 'unsigned', 'float' or 'complex'."""
    return _CLASS[dtype]


def is_int(dtype: str) -> bool:
    """Whether `dtype` is a signed or unsigned integer (bool is not)."""
    return dtype[0] in "iu"


def int_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = BITS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def wrap_int(value: int, dtype: str) -> int:
    """`value` modulo 2**bits, in the range of `dtype`: what the machine keeps of it."""
    bits = BITS[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value
