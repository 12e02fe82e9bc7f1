"""Values as plain bytes: numbers, texts, arrays, containers of these, and names of what pullback's own modules define.

    encode(value) -> bytes            TypeError for anything else, so nothing is stored that cannot be read again
    decode(raw) -> value              ValueError for bytes that are no such value; runs no code to find out

A JSON text, then the arrays' bytes.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import json
import math
import sys
import types
from importlib import import_module
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive, by_name, registry
from pullback.util import dtypes

_OWN = "pullback."


def encode(value: Any) -> bytes:
    """The value as bytes; TypeError if some part of it has no plain form."""
    arrays: list[bytes] = []
    text = json.dumps(_Writer(arrays).form(value)).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(arrays)


def decode(raw: bytes) -> Any:
    """What was encoded; ValueError if that cannot be."""
    size = int.from_bytes(raw[:8], "little")
    try:
        return _value(json.loads(raw[8 : 8 + size]), memoryview(raw)[8 + size :])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ImportError, RecursionError) as error:
        raise ValueError(f"these bytes are no plain value: {error}") from None


class _Writer:
    def __init__(self, arrays: list[bytes]) -> None:
        self.arrays, self.end = arrays, 0

    def form(self, value: Any) -> Any:
        """Numbers and texts as they are, all else as a list: what it is, and its parts."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return ["float", value.hex()]
        if kind is complex:
            return ["complex", value.real.hex(), value.imag.hex()]
        if kind is bytes:
            return ["bytes", base64.b64encode(value).decode()]
        if kind in (tuple, list, frozenset, set):
            return [kind.__name__, *map(self.form, value)]
        if kind is dict:
            return ["dict", *[[self.form(k), self.form(v)] for k, v in value.items()]]
        if isinstance(value, np.dtype):
            return ["dtype", _dtype_name(value)]
        if isinstance(value, (np.ndarray, np.generic)):
            data = np.ascontiguousarray(value).tobytes()
            self.arrays.append(data)
            self.end += len(data)
            what = "array" if isinstance(value, np.ndarray) else "scalar"
            return [what, _dtype_name(value.dtype), list(value.shape), self.end - len(data), len(data)]
        if isinstance(value, Primitive) and registry.get(value.name) is value:
            return ["primitive", value.name]
        if kind is functools.partial:
            return ["partial", *map(self.form, (value.func, value.args, value.keywords))]
        if isinstance(value, enum.Enum):
            return ["member", self.name(kind), value.name]
        if isinstance(value, (types.FunctionType, type)):
            return ["name", self.name(value)]
        if isinstance(value, tuple):  # with names
            return ["named", self.name(kind), *map(self.form, value)]
        if dataclasses.is_dataclass(value):
            parts = {field.name: self.form(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return ["record", self.name(kind), parts]
        raise TypeError(f"{kind} has no plain form")

    @staticmethod
    def name(item: Any) -> str:
        name = f"{item.__module__}:{item.__qualname__}"
        if not name.startswith(_OWN) or getattr(sys.modules.get(item.__module__), item.__qualname__, None) is not item:
            raise TypeError(f"{item} cannot be found by name")
        return name


def _dtype_name(dtype: np.dtype) -> str:
    if dtype.hasobject or dtype.names:
        raise TypeError(f"{dtype} has no plain form")
    name = dtype.name
    if dtypes.as_dtype(name) != dtype or not dtype.isnative:
        raise TypeError(f"{dtype} has no plain form")
    return name


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module.startswith(_OWN):
        raise ValueError(f"{module} is not ours")
    found = vars(import_module(module))[attribute]
    if not isinstance(found, (types.FunctionType, type)) or not found.__module__.startswith(_OWN):
        raise ValueError(f"{name} is no function of ours")
    return found


def _value(form: Any, arrays: memoryview) -> Any:
    if type(form) is not list:
        if isinstance(form, (dict, float)):
            raise ValueError("not a form")
        return form
    what, *parts = form
    inner = lambda part: _value(part, arrays)
    if what == "float":
        return float.fromhex(parts[0])
    if what == "complex":
        return complex(float.fromhex(parts[0]), float.fromhex(parts[1]))
    if what == "bytes":
        return base64.b64decode(parts[0], validate=True)
    if what in _CONTAINERS:
        return _CONTAINERS[what](map(inner, parts))
    if what == "dict":
        return {inner(key): inner(value) for key, value in parts}
    if what == "dtype":
        return dtypes.as_dtype(parts[0])
    if what in ("array", "scalar"):
        name, shape, start, size = parts
        dtype: Any = dtypes.as_dtype(name)
        if start < 0 or size != math.prod(shape) * dtype.itemsize or start + size > len(arrays):
            raise ValueError("an array is cut off")
        array = np.frombuffer(arrays[start : start + size], np.uint8).copy().view(dtype).reshape(shape)
        return array if what == "array" else array[()]
    if what == "primitive":
        return by_name(parts[0])
    if what == "partial":
        function, args, keywords = map(inner, parts)
        return functools.partial(function, *args, **keywords)
    if what == "member":
        kind = _named(parts[0])
        if not issubclass(kind, enum.Enum):
            raise ValueError(f"{parts[0]} is no enumeration")
        return kind[parts[1]]
    if what == "name":
        return _named(parts[0])
    if what == "named":
        kind = _named(parts[0])
        if not issubclass(kind, tuple):
            raise ValueError(f"{parts[0]} is no tuple")
        return kind(*map(inner, parts[1:]))
    if what == "record":
        kind = _named(parts[0])
        if not dataclasses.is_dataclass(kind):
            raise ValueError(f"{parts[0]} is no record")
        make: Any = kind
        return make(**{key: inner(value) for key, value in parts[1].items()})
    raise ValueError(f"unknown form {what!r}")


_CONTAINERS: dict[str, Any] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}

__all__ = ["decode", "encode"]
