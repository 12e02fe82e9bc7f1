"""Kinds of arguments: what values each takes, in words and by a test.

The tests are for values that a call has failed with (`core/explain.py`), so that they may be slow, and each takes all
that some function takes: what passes may still be refused by the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.dimensions import index
from pullback.core.tracer import Array as AnyArray
from pullback.core.tracer import Tracer
from pullback.sharding import PartitionSpec, Sharding
from pullback.util import dtypes
from pullback.util.record import NamedTuple

Array = _core.Array


class Kind(NamedTuple):
    """One kind of arguments."""

    words: str  # what is accepted
    accepts: Callable[[Any], bool]
    static: bool = False  # must be known when tracing, and hashable
    decides: bool = False  # a flag
    holds_arrays: bool = False


def is_arraylike(x: Any) -> bool:
    """True for what may be passed as an array: Array, Tracer, NumPy array or scalar, Python scalar, `__jax_array__`."""
    if isinstance(x, (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex, AnyArray)):
        return True
    return hasattr(x, "__jax_array__") and not isinstance(x, type)


def _is_array(x: Any) -> bool:
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype == dtypes.float0 or dtypes.is_supported(x.dtype)
    return is_arraylike(x)


def _is_nested(x: Any) -> bool:
    return all(map(_is_nested, x)) if isinstance(x, (list, tuple)) else _is_array(x)


def _is_integer(x: Any) -> bool:
    if isinstance(x, (list, tuple, Tracer, AnyArray)) and not isinstance(x, Array):
        return False
    try:
        index(x)
    except TypeError:
        return False
    return True


def _is_sequence(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def passes(x: Any) -> bool:
        if isinstance(x, (str, bytes, dict, set, Tracer)) or getattr(x, "ndim", 1) != 1:
            return False
        try:
            return all(map(test, x))
        except TypeError:
            return False

    return passes


def _either(*tests: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda x: any(test(x) for test in tests)


def _is_dtype(x: Any) -> bool:
    if isinstance(x, (np.ndarray, AnyArray, Tracer)) or x is None:
        return False
    try:
        return dtypes.is_supported(dtypes.as_dtype(x))
    except (TypeError, ValueError):
        return False


def _is_real(x: Any) -> bool:
    if isinstance(x, Tracer) or not _is_array(x) or np.ndim(x) != 0:
        return False
    return not dtypes.issubdtype(dtypes.dtype_of(x), np.complexfloating)


def _is_flag(x: Any) -> bool:
    if isinstance(x, Tracer):
        return False
    try:
        hash(x) if not isinstance(x, Array) else bool(x)
    except (TypeError, ValueError):
        return False
    return True


def _is_function(x: Any) -> bool:
    return callable(x)


def _is_text(x: Any) -> bool:
    return isinstance(x, str)


def _is_pairs(x: Any) -> bool:
    return _is_sequence(lambda pair: _is_sequence(_is_integer)(pair) and len(pair) == 2)(x)


ARRAY = Kind("an array or a number", _is_array, holds_arrays=True)
NESTED = Kind("an array, a number, or a nested list of them", _is_nested, holds_arrays=True)
ARRAYS = Kind("a sequence of arrays", _either(_is_array, _is_sequence(_is_nested)), holds_arrays=True)
INTEGER = Kind("an integer", _is_integer, static=True)
INTEGERS = Kind("an integer or a sequence of integers", _either(_is_integer, _is_sequence(_is_integer)), static=True)
SEQUENCE = Kind("a sequence of integers", _is_sequence(_is_integer), static=True)
TWO = Kind("a pair of integers", lambda x: SEQUENCE.accepts(x) and len(x) == 2, static=True)
SHAPE = Kind("an integer or a sequence of integers", INTEGERS.accepts, static=True)
PADDING = Kind("'SAME', 'VALID' or a sequence of pairs (low, high)", _either(_is_text, _is_pairs), static=True)
NUMBER = Kind("a real number", _is_real, static=True)
FLAG = Kind("True or False", _is_flag, static=True, decides=True)
DTYPE = Kind("a dtype", _is_dtype, static=True)
TEXT = Kind("a string", _is_text, static=True)
FUNCTION = Kind("a function", _is_function)
ANY = Kind("any value", lambda x: True)
PLACING = Kind("a NamedSharding or a PartitionSpec", lambda x: isinstance(x, (PartitionSpec, Sharding)), static=True)


def choice(*names: str) -> Kind:
    """One of the names given, or None where it is among them."""
    return Kind(f"one of {', '.join(map(repr, names))}", lambda x: x in names if _is_text(x) else False, static=True)


def optional(kind: Kind) -> Kind:
    """What the kind takes, or None."""
    return kind._replace(words=f"{kind.words}, or None", accepts=lambda x: x is None or kind.accepts(x))


def either(words: str, *kinds: Kind) -> Kind:
    """What one of the kinds takes."""
    return Kind(words, _either(*(k.accepts for k in kinds)), all(k.static for k in kinds))


def of_type(words: str, *types: type) -> Kind:
    """Objects of the classes given."""
    return Kind(words, lambda x: isinstance(x, types))


def table(**names: Kind) -> dict[str, Kind]:
    """The kind of each argument: a key is one or more names with `__` between them, as `axis__dimension`."""
    return {name: kind for key, kind in names.items() for name in key.split("__")}


Kinds = dict[str, Kind]
