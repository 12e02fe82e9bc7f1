"""Calls of C functions that users registered: `ffi_call`, and how its values become what XLA's interface expects.

The interface itself, and the calls from compiled programs, are in ext/programs/foreign.cpp.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import Primitive, ShapedArray
from pullback.core.lowering import HostCall
from pullback.core.primitive import NoRule
from pullback.lax.control.callback import Effect, batch_of_call
from pullback.util import dtypes
from pullback.util.errors import JaxRuntimeError

TYPED = 4  # the version of calls by XLA's typed interface
ORIGINAL = 1  # of plain C functions f(out, in)

# XLA's numbers of element types (include/xla/ffi/api/c_api.h).
_CODES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "bfloat16": 16, "complex128": 18, "float8_e5m2": 19,
    "float8_e4m3fn": 20, "int4": 21, "uint4": 22, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "int2": 26, "uint2": 27, "float8_e4m3": 28, "float8_e3m4": 29, "float4_e2m1fn": 32,
    "float8_e8m0fnu": 33,
}  # fmt: skip
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4  # kinds of attributes
_PYTHON = {bool: np.bool_, int: np.int64, float: np.float64}


class Attribute:
    """A value of an attribute: equal to one of the same type and bytes, as 1, True and np.int32(1) are not the same."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any, key: Any):
        self.value = value
        self._key = (type(value), key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(dict(self.value) if isinstance(self.value, tuple) else self.value)


def hashable_attributes(attributes: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
    """Attributes by name, as parameters of an equation. TypeError for what no attribute can be."""

    def held(name: str, value: Any) -> Attribute:
        if isinstance(value, Mapping):
            items = hashable_attributes(value)
            return Attribute(items, items)
        if isinstance(value, (np.ndarray, np.generic)):
            return Attribute(value.copy(), (value.dtype.name, value.shape, value.tobytes()))
        if type(value) in _PYTHON:
            return Attribute(value, np.asarray(value, _PYTHON[type(value)]).tobytes())
        if isinstance(value, str):
            return Attribute(value, value)
        if isinstance(value, tuple):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: Unsupported attribute type for attribute: {name}")
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"Non-hashable keyword argument to ffi_call {name}: {value}") from None
        raise TypeError(f"No attribute handler defined for type: {type(value)}, of attribute '{name}' of ffi_call")

    return tuple((str(name), held(name, attributes[name])) for name in sorted(attributes))


def _code(dtype: np.dtype, what: str) -> int:
    code = _CODES.get(dtype.name)
    if code is None:
        raise JaxRuntimeError(f"UNIMPLEMENTED: ffi_call: {what} has dtype {dtype}, for which XLA has no type")
    return code


def _encoded(attributes: Sequence[tuple[str, Attribute]]) -> tuple[tuple[str, int, int, int, Any], ...]:
    """As (name, kind, type, elements, bytes), for the native side."""
    rows: list[tuple[str, int, int, int, Any]] = []
    for name, attribute in attributes:
        value = attribute.value
        if isinstance(value, tuple):
            rows.append((name, _DICTIONARY, 0, 0, _encoded(value)))
        elif isinstance(value, str):
            rows.append((name, _STRING, 0, 0, value.encode()))
        else:
            kind = _ARRAY if isinstance(value, np.ndarray) else _SCALAR
            array = np.asarray(value, _PYTHON.get(type(value)))
            rows.append((name, kind, _code(array.dtype, f"attribute '{name}'"), array.size, array.tobytes()))
    return tuple(rows)


Described = tuple[tuple[tuple[int, ...], np.dtype], ...]  # (shape, dtype) of each array, as it lies in memory


@functools.lru_cache(maxsize=512)
def _site(
    target_name: str,
    version: int,
    attributes: tuple[tuple[str, Attribute], ...],
    operands: Described,
    results: Described,
    layouts: tuple[tuple[int, ...], ...],
    aliases: tuple[tuple[int, int], ...],
) -> Any:
    shared = dict(aliases)

    def row(k: int, shape: tuple[int, ...], dtype: np.dtype, what: str) -> tuple[int, tuple[int, ...], int, int]:
        layout = layouts[k]
        logical = [0] * len(shape)
        for size, axis in zip(shape, reversed(layout)):  # slowest first
            logical[axis] = size
        held = dtypes.held_as(dtype) or dtype
        size = int(np.prod(shape, dtype=np.int64)) * held.itemsize
        return _code(dtype, f"{what} {k}"), tuple(logical), size, -1

    ins = [row(k, *x, "operand") for k, x in enumerate(operands)]
    ins = [(*row[:3], shared.get(k, -1)) for k, row in enumerate(ins)]
    outs = [row(len(operands) + k, *x, "result") for k, x in enumerate(results)]
    return _core.ForeignFunction(target_name, version, tuple(ins), tuple(outs), _encoded(attributes))


def _native(params: dict[str, Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """What a program calls for an equation with these parameters."""
    return _site(
        params["target_name"],
        params["custom_call_api_version"],
        params["attributes"],
        tuple(operands),
        tuple(results),
        (*params["input_layouts"], *params["output_layouts"]),
        params["input_output_aliases"],
    )


def _reference(*arrays: Any, result_avals: Sequence[ShapedArray], **params: Any) -> list[np.ndarray]:
    given = [np.asarray(a, order="C") for a in arrays]
    outs = [np.empty(aval.shape, aval.dtype) for aval in result_avals]
    described = tuple((a.shape, a.dtype) for a in given), tuple((a.shape, a.dtype) for a in outs)
    _native(params, *described)(tuple(a.ctypes.data for a in (*given, *outs)))
    return outs


def _result_rule(*_avals: Any, result_avals: Sequence[ShapedArray], **_params: Any) -> list[ShapedArray]:
    return list(result_avals)


def _jvp(_primals: Any, _tangents: Any, *, target_name: str, **_params: Any) -> Any:
    raise ValueError(
        f"ffi_call: `{target_name}` cannot be differentiated, as only its values are known; give the function that "
        "calls it a derivative, with `jax.custom_jvp` or `jax.custom_vjp`"
    )


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    batched = {
        **params,
        "result_avals": tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"]),
        "output_layouts": tuple(_with_batch(layout) for layout in params["output_layouts"]),
        "input_layouts": tuple(
            layout if d is None and params["vmap_method"] == "legacy_vectorized" else _with_batch(layout)
            for layout, d in zip(params["input_layouts"], dims)
        ),
    }
    return batch_of_call(ffi_call_p, axis, args, dims, params, batched)


def _with_batch(layout: tuple[int, ...]) -> tuple[int, ...]:
    """A layout, fastest axis first, with a batch axis that is slowest."""
    return (*(axis + 1 for axis in layout), 0)


FFI = Effect("Ffi")


def _effects(params: dict[str, Any]) -> frozenset[Effect]:
    return frozenset({FFI} if params["has_side_effect"] else ())


ffi_call_p = Primitive(
    "ffi_call",
    doc="A C function that was registered by name.",
    multiple_results=True,
    abstract_eval=_result_rule,
    reference=_reference,
    jvp=_jvp,
    transpose=NoRule("C functions have no known transpose"),
    batch=NoRule("use batch_axis"),
    batch_axis=_batch,
    lower=HostCall(native=_native),
    effects=_effects,
    traits={"opaque"},
)


def layout_of(name: str, layout: Any, rank: int) -> tuple[int, ...]:
    """A layout as users give it (None, slowest axis first, or a Layout) with the fastest axis first; ValueError."""
    if layout is None:
        return tuple(reversed(range(rank)))
    axes = tuple(map(operator.index, getattr(layout, "major_to_minor", layout)))
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"ffi_call: {name} {axes} must be a permutation of range({rank}), the axes of its array")
    return tuple(reversed(axes))


__all__ = ["ORIGINAL", "TYPED", "ffi_call_p", "hashable_attributes", "layout_of"]
