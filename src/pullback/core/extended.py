"""Operations on arrays of extended element types (random keys, types of users), by way of their words.

An array `key<fry>[*K]` is in memory `u32[*K, 2]`, one of a user's type mostly as many floats.

A primitive that only moves elements about means on keys what its batching rule gives for the words, their last axis
being the mapped one; so movement needs no second set of rules.
Eagerly that is done at once; programs show movement of keys as it is, until keys are replaced by their words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from pullback.core.avals import typeof
from pullback.core.hooks import hooks
from pullback.core.jaxpr import jaxprs_in_params
from pullback.core.primitive import registry
from pullback.core.tracer import OfType
from pullback.util import dtypes
from pullback.util.record import NamedTuple


def checks_reuse() -> bool:
    """Whether it is found out that a key is used twice."""
    return reuse is not None and reuse.is_on()


class ArrayOfWords(OfType):
    """Base of concrete arrays with extended element types: what they are asked of their memory, the words answer."""

    __slots__ = ("_base_array",)
    __array_priority__ = 1000
    _base_array: Any

    is_fully_addressable = property(lambda self: self._base_array.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._base_array.is_fully_replicated)
    committed = property(lambda self: self._base_array.committed)
    _committed = committed
    device = property(lambda self: self._base_array.device)

    def devices(self) -> Any:
        """The devices that hold the array."""
        return self._base_array.devices()

    def block_until_ready(self) -> Self:
        """Wait until it is computed; returns the array."""
        self._base_array.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        self._base_array.copy_to_host_async()

    def on_device_size_in_bytes(self) -> int:
        """The memory that the words take."""
        return self._base_array.on_device_size_in_bytes()

    def is_deleted(self) -> bool:
        return self._base_array.is_deleted()

    def delete(self) -> None:
        self._base_array.delete()


class Way(NamedTuple):
    """How arrays of a class of element types are made of words, and the other way."""

    words: Callable[[Any], Any]  # of an array or tracer
    wrap: Callable[[Any, Any], Any]  # (dtype, words, concrete or traced)
    made: Callable[[Any, Any], Any]  # (dtype, words) -> the array that holds these words


# Types of concrete arrays with extended element types; filled by the packages that define them.
array_types: set[type] = set()
_ways: dict[type, Way] = {}  # by class of element types
reuse: Any = None  # the check that no key is used twice (random/_reuse.py)


def register(dtypes_of: type, array_type: type, way: Way) -> None:
    """Make `array_type` known, whose element types are of this class, or of one derived from it."""
    array_types.add(array_type)
    _ways[dtypes_of] = way


def _way(dtype: Any) -> Way:
    return next(_ways[cls] for cls in type(dtype).__mro__ if cls in _ways)


def words(x: Any) -> Any:
    """The words of an array or tracer of an extended element type."""
    return _way(x.dtype).words(x)


def of_words(dtype: Any, words: Any) -> Any:
    """The array of an extended element type that has these words."""
    return _way(dtype).wrap(dtype, words)


def holding(dtype: Any, words: Any) -> Any:
    """The array of an extended element type that holds these words, whatever they are."""
    return _way(dtype).made(dtype, words)


# Traits of primitives that take elements from one place to another without looking at them.
_MOVES = frozenset({"movement", "identity", "selection", "barrier"})


def exchanges(primitive: Any) -> bool:
    """Whether a primitive takes elements from one device to another without looking at them."""
    if "between devices" in primitive.traits:
        return True
    return primitive.collective_axes is not None and "combining" not in primitive.traits


def handles(primitive: Any, params: dict) -> bool:
    """Whether a primitive with an extended operand is to go through `process`; the others know such types
    themselves."""
    return "extended" not in primitive.traits and not jaxprs_in_params(params)


def check(primitive: Any, avals: Sequence[Any]) -> Any:
    """The one extended element type of the operands; TypeError for primitives that compute with elements."""
    kinds = {a.dtype for a in avals if dtypes.is_extended(a.dtype)}
    compared = primitive.name in ("eq", "ne") and all(dtypes.is_extended(a.dtype) for a in avals)
    moves = bool(_MOVES & primitive.traits) or primitive.name == "scatter" or exchanges(primitive)
    if not (moves or compared) or len(kinds) != 1:
        names = ", ".join(a.short() for a in avals)
        raise TypeError(
            f"{primitive.name} does not accept dtype {sorted(map(str, kinds))[0]}: its operands are {names}"
        )
    return kinds.pop()


def on_words(primitive: Any, avals: Sequence[Any], args: Sequence[Any], params: dict) -> list[Any]:
    """The words of the results of a primitive, all of which are of the operands' extended type, or of a comparison.

    `avals` are the types of the operands, of which `args` has the words where these are extended.
    """
    base_shape = next(a.dtype.base_shape for a in avals if dtypes.is_extended(a.dtype))
    if not base_shape:  # a word is an element
        outs = primitive.bind(*args, **params)
        return list(outs) if primitive.multiple_results else [outs]
    if primitive.name in ("eq", "ne"):
        return [_compare(primitive, args)]
    if exchanges(primitive):  # along dimensions that are counted from the first one
        outs = primitive.bind(*args, **params)
        return list(outs) if primitive.multiple_results else [outs]
    dims = [a.ndim if dtypes.is_extended(a.dtype) else None for a in avals]
    outs, out_dims = primitive.rule("batch")(list(args), dims, **params)
    pairs = zip(outs, out_dims) if primitive.multiple_results else [(outs, out_dims)]
    return [hooks.moveaxis(x, d, typeof(x).ndim - 1) for x, d in pairs]


def process(primitive: Any, args: tuple, params: dict) -> Any:
    """The result of a primitive some of whose operands have an extended element type, under the current interpreter.

    Raises TypeError for primitives that compute with elements.
    """
    avals = [typeof(x) for x in args]
    kind = check(primitive, avals)
    given = [words(x) if dtypes.is_extended(a.dtype) else x for x, a in zip(args, avals)]
    outs = on_words(primitive, avals, given, params)
    if primitive.name in ("eq", "ne"):
        return outs[0]
    arrays = [of_words(kind, x) for x in outs]
    if checks_reuse() and type(arrays[0]) in array_types:
        reuse.moved(primitive, args, params, arrays)
    return arrays if primitive.multiple_results else arrays[0]


def _compare(primitive: Any, words: Sequence[Any]) -> Any:
    """Keys are equal when all of their words are."""
    shape = max([typeof(x).shape for x in words], key=len)  # a single key is compared with each of an array
    spread, last = registry["broadcast_in_dim"], (len(shape) - 1,)
    words = [
        x if len(typeof(x).shape) == len(shape) else spread.bind(x, shape=shape, broadcast_dimensions=last)
        for x in words
    ]
    equal = primitive.bind(*words)
    combine = registry["reduce_and" if primitive.name == "eq" else "reduce_or"]
    return combine.bind(equal, axes=(typeof(equal).ndim - 1,))
