"""Operations on arrays of extended element types (random keys), by way of their words.

An array `key<fry>[*K]` is in memory `u32[*K, 2]`. A primitive that only moves elements about means on keys what its
batching rule gives for the words, their last axis being the mapped one; so movement needs no second set of rules.
Eagerly that is done at once; programs show movement of keys as it is, until keys are replaced by their words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.avals import typeof
from pullback.core.hooks import hooks
from pullback.core.jaxpr import jaxprs_in_params
from pullback.core.primitive import registry
from pullback.util import dtypes

# Types of concrete arrays with extended element types; filled, as the two functions, by the packages that define them.
array_types: set[type] = set()
_unwrap: Callable[[Any], Any]
_wrap: Callable[[Any, Any], Any]
reuse: Any = None  # the check that no key is used twice (random/_reuse.py)


def register(array_type: type, unwrap: Callable[[Any], Any], wrap: Callable[[Any, Any], Any]) -> None:
    """Make `array_type` known: `unwrap(array_or_tracer)` gives its words, `wrap(dtype, words)` makes one."""
    global _unwrap, _wrap
    array_types.add(array_type)
    _unwrap, _wrap = unwrap, wrap


def words(x: Any) -> Any:
    """The words of an array or tracer of an extended element type."""
    return _unwrap(x)


def of_words(dtype: Any, words: Any) -> Any:
    """The array of an extended element type that has these words."""
    return _wrap(dtype, words)


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
    words = [_unwrap(x) if dtypes.is_extended(a.dtype) else x for x, a in zip(args, avals)]
    outs = on_words(primitive, avals, words, params)
    if primitive.name in ("eq", "ne"):
        return outs[0]
    arrays = [_wrap(kind, x) for x in outs]
    if reuse.is_on() and type(arrays[0]) in array_types:
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
