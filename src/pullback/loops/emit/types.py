"""How the scalar types of the loop IR look in LLVM: in registers and in memory.

In registers 16-bit floats are f32 values that are exactly representable in the narrow type (every op rounds its result
back), and bool is i1. In memory they are half, i16 (bfloat bits) and i8. Complex values are pairs of registers.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from pullback.loops.ir.types import ITEMSIZE, NP_DTYPE, REAL_OF

LINE = 64  # bytes of a line of the caches of all x86-64

_REGISTER: dict[str, str] = {
    "bool": "i1", "f16": "float", "bf16": "float", "f32": "float", "f64": "double", "c64": "float", "c128": "double",
    **{f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_MEMORY: dict[str, str] = _REGISTER | {"bool": "i8", "f16": "half", "bf16": "i16"}


def register_type(dtype: str, lanes: int = 1) -> str:
    """LLVM type of one register of a value; of each of the two registers for complex."""
    name = _REGISTER[dtype]
    return name if lanes == 1 else f"<{lanes} x {name}>"


def result_type(dtype: str, lanes: int = 1) -> str:
    """LLVM type of a value that a function gives: of both registers for complex."""
    name = register_type(dtype, lanes)
    return f"{{ {name}, {name} }}" if dtype in REAL_OF else name


def memory_type(dtype: str, lanes: int = 1) -> str:
    """LLVM type of an element in memory; of a part for complex."""
    name = _MEMORY[dtype]
    return name if lanes == 1 else f"<{lanes} x {name}>"


def element_type(dtype: str) -> str:
    """LLVM type of an element in memory; of both parts for complex."""
    return f"[2 x {_MEMORY[dtype]}]" if dtype in REAL_OF else _MEMORY[dtype]


def whole_type(dtype: str) -> str:
    """LLVM type as which elements are moved: what it has shuffles for."""
    return {"c64": "i64", "f16": "i16"}.get(dtype, memory_type(dtype))


def alignment(dtype: str) -> int:
    """Bytes at a multiple of which an element lies, and no more is asked for: those of a part for complex."""
    return ITEMSIZE[REAL_OF.get(dtype, dtype)]


def int_type(dtype: str) -> str:
    """The integer type as wide as a register of `dtype`."""
    return {"float": "i32", "double": "i64"}.get(_REGISTER[dtype], _REGISTER[dtype])


def register_bytes(dtype: str) -> int:
    """Bytes of one lane of a register."""
    if dtype in ("f16", "bf16"):
        return 4
    if dtype in REAL_OF:
        return ITEMSIZE[REAL_OF[dtype]]
    return ITEMSIZE[dtype]


def suffix(llvm_type: str) -> str:
    """The suffix of an overloaded intrinsic: float -> f32, <8 x i32> -> v8i32, ptr -> p0."""
    if llvm_type[0] == "<":
        lanes, element = llvm_type[1:-1].split(" x ")
        return f"v{lanes}{suffix(element)}"
    return {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(llvm_type, llvm_type)


def literal(dtype: str, value: Any) -> str:
    """The LLVM constant of one (real) lane of `dtype`."""
    if dtype == "bool":
        return "true" if value else "false"
    name = _REGISTER[dtype]
    if name[0] == "i":
        return str(int(value))
    return float_literal(float(value), narrow=name == "float", dtype=dtype)


def float_literal(value: float, narrow: bool, dtype: str = "f32") -> str:
    """LLVM writes float constants as the bits of the double that equals them."""
    if value != value:
        sign = math.copysign(1.0, value) < 0
        return "0xFFF8000000000000" if sign else "0x7FF8000000000000"
    if narrow:
        value = float(NP_DTYPE[dtype].type(value))
    return "0x" + struct.pack(">d", value).hex().upper()


def splat(text: str, element: str, lanes: int) -> str:
    """A constant repeated in all lanes."""
    return text if lanes == 1 else f"splat ({element} {text})"
