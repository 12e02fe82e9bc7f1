"""Arguments and results of an exported function as C sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.loops.ir.types import ITEMSIZE, REAL_OF
from pullback.runtime.arrays.arrays import physical
from pullback.util.record import frozen_record

# Element type of the loop IR -> (C type, what it is if that does not say it). Complex types are defined by the header.
C_TYPES: dict[str, tuple[str, str]] = {
    "bool": ("bool", ""),
    **{f"i{bits}": (f"int{bits}_t", "") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (f"uint{bits}_t", "") for bits in (8, 16, 32, 64)},
    "f16": ("uint16_t", "the bits of a float16"),
    "bf16": ("uint16_t", "the bits of a bfloat16"),
    "f32": ("float", ""),
    "f64": ("double", ""),
    "c64": ("complex64", ""),
    "c128": ("complex128", ""),
}

_RESERVED = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "complex", "concept",
    "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "I", "if", "imaginary", "inline", "int", "linux", "long", "main", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "NULL", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
    "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "union", "unix", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "workspace", "xor", "xor_eq",
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
})  # fmt: skip


@frozen_record
class Parameter:
    """One leaf of the arguments or of the result."""

    name: str  # in C
    path: str  # in Python: w['hidden'][0]
    shape: tuple[int, ...]
    dtype: str  # of the loop IR
    c_type: str
    note: str
    by_value: bool
    example: np.ndarray | None = None  # values that were given

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * ITEMSIZE[self.dtype]

    @property
    def alignment(self) -> int:
        """Bytes of which its address must be a multiple: those of an element, or of its parts."""
        return ITEMSIZE[REAL_OF.get(self.dtype, self.dtype)]


def parameter(
    name: str, path: str, aval: Any, library: str, is_input: bool, example: np.ndarray | None = None
) -> Parameter:
    """The parameter for a leaf of type `aval`; NotImplementedError for element types without a counterpart in C."""
    note = "" if isinstance(aval.dtype, np.dtype) else f"the words of {aval.dtype.name} keys"
    aval = physical(aval)
    try:
        dtype = ir_dtype(aval.dtype)
        c_type, meaning = C_TYPES[dtype]
    except (KeyError, TypeError):
        raise NotImplementedError(
            f"to_c: {path} has the dtype {aval.dtype}, which has no counterpart in C; convert it"
        ) from None
    if c_type.startswith("complex"):
        c_type = f"{library}_{c_type}"
    by_value = is_input and aval.shape == () and dtype not in REAL_OF
    return Parameter(name, path, tuple(aval.shape), dtype, c_type, note or meaning, by_value, example)


def is_identifier(name: str) -> bool:
    """Whether C and C++ take it for the name of something of ours."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) is not None and name not in _RESERVED


def identifiers(paths: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """A name in C for each path in Python, all different from each other and from those taken."""
    used = set(taken)
    names = []
    for path in paths:
        name = re.sub(r"_+", "_", re.sub(r"\W", "_", path, flags=re.ASCII)).strip("_") or "x"
        if name[0].isdigit() or name in _RESERVED:
            name = f"{name}_" if name in _RESERVED else f"x{name}"
        base, number = name, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        names.append(name)
    return names
