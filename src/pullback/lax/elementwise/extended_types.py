"""Arrays of element types that users define: `class Mine(dtypes.ExtendedDType)`, and conversions from and to others.

What there is of such an array is its representation, of an ordinary type: with it an element type says how its values
are added in derivatives, and which conversions there are (`ExtendedDType`). Functions that move elements take it.
"""

from __future__ import annotations

from typing import Any

from pullback.core import Primitive, ShapedArray, Tracer, add_array_type, extended, tangent_aval, typeof
from pullback.core.lowering import Pointwise
from pullback.lax.records.rules import is_zero, tangent_zero
from pullback.util import dtypes


class EArray(extended.ArrayOfWords):
    """An array of an element type that a user defined."""

    __slots__ = ("__weakref__", "_impl", "aval")

    def __init__(self, dtype: Any, words: Any) -> None:
        self._impl, self._base_array = dtype, words
        self.aval = ShapedArray(tuple(words.shape[: words.ndim - len(dtype.base_shape)]), dtype)

    sharding = property(lambda self: self._base_array.sharding)

    def __copy__(self) -> EArray:
        return self

    def __deepcopy__(self, memo: Any) -> EArray:
        return EArray(self._impl, self._base_array.copy())

    def __reduce__(self) -> Any:
        return EArray, (self._impl, self._base_array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            f"an array of {self.dtype} is no array of NumPy's; convert it first, with lax.convert_element_type"
        )

    def __repr__(self) -> str:
        return f"E{self._base_array!r}"


add_array_type(EArray)


def _pair(name: str, doc: str, shape: Any, now: Any) -> Primitive:
    """A primitive between arrays and their representation, and its derivative: the other one."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = found.bind(*primals, **params)
        wanted, have = tangent_aval(typeof(out)).dtype, typeof(tangents[0]).dtype
        if is_zero(tangents[0]) or dtypes.float0 in (wanted, have):
            return out, tangent_zero(out)
        return out, convert(tangents[0], wanted)

    def transpose(bar: Any, x: Any, **params: Any) -> list[Any]:
        return [tangent_zero(x) if is_zero(bar) else convert(bar, x.aval.dtype)]

    found = Primitive(
        name,
        doc=doc,
        abstract_eval=shape,
        reference=now,
        evaluate=now,
        jvp=jvp,
        transpose=transpose,
        batch=lambda args, dims, **params: (found.bind(*args, **params), dims[0]),
        lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True, cost=0),
        traits={"extended", "inside"},
    )
    return found


to_edtype_p = _pair(
    "to_edtype",
    "An array of a user's element type that has this representation: f32[*K] -> mine[*K].",
    lambda words, *, edtype: ShapedArray(words.shape[: words.ndim - len(edtype.base_shape)], edtype),
    lambda words, *, edtype: EArray(edtype, words),
)
from_edtype_p = _pair(
    "from_edtype",
    "The representation of an array of a user's element type: mine[*K] -> f32[*K].",
    lambda x, *, dtype: ShapedArray(x.shape + x.dtype.base_shape, dtype),
    lambda x, *, dtype: x._base_array,
)


def has_rules(dtype: Any) -> bool:
    """Whether an element type is a user's."""
    return dtypes.is_extended(dtype) and dtype._rules is not None


def convert(x: Any, dtype: Any) -> Any:
    """x as another element type, where it or its own is a user's. ValueError where their rules have no conversion."""
    have = x.dtype
    if have == dtype:
        return x
    if has_rules(have) and not dtypes.is_extended(dtype) and have._rules.convert_from(have, dtype):
        return from_edtype_p.bind(x, dtype=dtype)
    if has_rules(dtype) and not dtypes.is_extended(have) and dtype._rules.convert_to(have, dtype):
        return to_edtype_p.bind(x, edtype=dtype)
    raise ValueError(f"Cannot convert_element_type from {have} to {dtype}")


def _words(x: Any) -> Any:
    return x._base_array if type(x) is EArray else from_edtype_p.bind(x, dtype=x.dtype.base)


def _of_words(dtype: Any, words: Any) -> Any:
    return to_edtype_p.bind(words, edtype=dtype) if isinstance(words, Tracer) else EArray(dtype, words)


extended.register(dtypes.ExtendedDType, EArray, extended.Way(_words, _of_words, EArray))
