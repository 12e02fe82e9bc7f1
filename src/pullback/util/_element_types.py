"""The element types there are, their names and families, and the lattice of which may become which.

NumPy's dtypes stand for ordinary types; `ExtendedDType` is the base of types that NumPy does not have (random keys).
What is done with them is in `dtypes`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

bfloat16 = ml_dtypes.bfloat16
int2, int4 = ml_dtypes.int2, ml_dtypes.int4
uint2, uint4 = ml_dtypes.uint2, ml_dtypes.uint4
float4_e2m1fn = ml_dtypes.float4_e2m1fn
float8_e3m4, float8_e4m3 = ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3
float8_e8m0fnu, float8_e4m3b11fnuz = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3b11fnuz
float8_e4m3fn, float8_e4m3fnuz = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz
float8_e5m2, float8_e5m2fnuz = ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz

# The type of the tangents of integers and booleans: no bytes, all values equal.
float0: np.dtype = np.dtype([("float0", np.void, 0)])


class extended(np.generic):
    """Abstract scalar type of all types that NumPy does not have; for `issubdtype` only."""


class prng_key(extended):
    """Abstract scalar type of random keys; for `issubdtype` only."""


class ExtendedDType:
    """Base of the element types that are not NumPy dtypes.

    `name` is what prints, `type` its abstract scalar type, `base` the NumPy dtype of its representation and
    `base_shape` the dimensions that the representation has after those of the array. Types of users have `_rules`,
    which say these: `physical_element_aval(dtype)`; from and to which types there are conversions,
    `convert_from(dtype, other)` and `convert_to(other, dtype)`; and, of a type that is differentiated,
    `tangent_dtype(dtype)`, whose own rules have `add(dtype, x, y)` and `zero(dtype)`.
    """

    name: str
    type: type
    _rules: Any = None
    kind = "O"

    @property
    def base(self) -> np.dtype:
        """The NumPy dtype of the representation."""
        return self._rules.physical_element_aval(self).dtype

    @property
    def base_shape(self) -> tuple[int, ...]:
        """The dimensions that the representation of an element has."""
        return tuple(self._rules.physical_element_aval(self).shape)

    @property
    def tangent_dtype(self) -> Any:
        """The element type of tangents."""
        rule = getattr(self._rules, "tangent_dtype", None)
        return float0 if rule is None else rule(self)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(np.prod(self.base_shape, dtype=int)) * self.base.itemsize

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


DType = np.dtype | ExtendedDType
_DTYPES = (np.dtype, ExtendedDType)
_D = np.dtype
_BOOL = _D(bool)

_INTS = [_D(t) for t in (int2, int4, "int8", "int16", "int32", "int64")]
_UINTS = [_D(t) for t in (uint2, uint4, "uint8", "uint16", "uint32", "uint64")]
_SMALL_FLOATS = [
    _D(t)
    for t in (
        float4_e2m1fn,
        float8_e3m4,
        float8_e4m3,
        float8_e8m0fnu,
        float8_e4m3b11fnuz,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2,
        float8_e5m2fnuz,
    )
]
_FLOATS = [*_SMALL_FLOATS, *[_D(t) for t in (bfloat16, "float16", "float32", "float64")]]
_COMPLEX = [_D("complex64"), _D("complex128")]
_ALL = [_BOOL, *_INTS, *_UINTS, *_FLOATS, *_COMPLEX]
_SUPPORTED = frozenset(_ALL)
_CUSTOM_FLOATS = frozenset([*_SMALL_FLOATS, _D(bfloat16)])
_CUSTOM_INTS = frozenset([*_INTS[:2], *_UINTS[:2]])

# Kind letters as NumPy's: b, i, u, f, c; V for float0 and k for extended types.
_KIND: dict[Any, str] = {_BOOL: "b", float0: "V"}
_KIND.update(
    dict.fromkeys(_INTS, "i") | dict.fromkeys(_UINTS, "u") | dict.fromkeys(_FLOATS, "f") | dict.fromkeys(_COMPLEX, "c")
)

_SHORT = {"bool": "bool", "bfloat16": "bf16"}
_SHORT.update({d.name: d.name.replace("int", "i").replace("ui", "u") for d in [*_INTS, *_UINTS]})
_SHORT.update(
    {
        d.name: d.name.replace("float", "f").replace("complex", "c")
        for d in [*_FLOATS, *_COMPLEX]
        if d.name != "bfloat16"
    }
)

python_scalar_dtypes: dict[type, np.dtype] = {
    bool: _BOOL,
    int: _D("int64"),
    float: _D("float64"),
    complex: _D("complex128"),
}
_PYTHON_SCALARS = (int, float, complex)  # weak ones; bool is not weak
_X32 = {
    _D("int64"): _D("int32"),
    _D("uint64"): _D("uint32"),
    _D("float64"): _D("float32"),
    _D("complex128"): _D("complex64"),
}


_HELD = {False: {d: _X32.get(d, d) for d in _ALL}, True: {d: d for d in _ALL}}  # by whether x64 is on


# Nodes: np.dtype for array types, int/float/complex for weak scalars.


def _edges() -> dict[Any, list[Any]]:
    i8, i16, i32, i64 = _INTS[2:]
    u8, u16, u32, u64 = _UINTS[2:]
    bf16, f16, f32, f64 = _FLOATS[-4:]
    c64, c128 = _COMPLEX
    return {
        _BOOL: [int],
        int: [i8, u8, *_INTS[:2], *_UINTS[:2]],
        **{d: [] for d in [*_INTS[:2], *_UINTS[:2]]},
        u8: [i16, u16],
        u16: [i32, u32],
        u32: [i64, u64],
        u64: [float],
        i8: [i16],
        i16: [i32],
        i32: [i64],
        i64: [float],
        float: [bf16, f16, *_SMALL_FLOATS, complex],
        **{d: [] for d in _SMALL_FLOATS},
        bf16: [f32],
        f16: [f32],
        f32: [f64, c64],
        f64: [c128],
        complex: [c64],
        c64: [c128],
        c128: [],
    }


def _strict_edges() -> dict[Any, list[Any]]:
    """Only weak scalars move, and only to types of their own kind or a higher one."""
    edges: dict[Any, list[Any]] = {d: [] for d in _ALL}
    edges[int] = [*_INTS, *_UINTS, float]
    edges[float] = [*_FLOATS, complex]
    edges[complex] = list(_COMPLEX)
    return edges


def _closure(edges: dict[Any, list[Any]]) -> dict[Any, frozenset[Any]]:
    """For each type, everything it may become, itself included."""
    above: dict[Any, frozenset[Any]] = {}

    def reach(node: Any) -> frozenset[Any]:
        if node not in above:
            above[node] = frozenset([node]).union(*map(reach, edges[node]))
        return above[node]

    for node in edges:
        reach(node)
    return above


_ABOVE = {"standard": _closure(_edges()), "strict": _closure(_strict_edges())}
