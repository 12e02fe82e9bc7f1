"""Arrays made from nothing: constants and counters; gradient stops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.core import eval_interpreter, extended, hooks, typeof
from pullback.core.asked import is_asked
from pullback.core.dimensions import Dimension
from pullback.core.lowering import Elementwise, Pointwise
from pullback.core.primitive import registry
from pullback.core.staging import as_staged
from pullback.core.tracer import Tracer
from pullback.core.types import cut_as, vma_of
from pullback.lax.collectives.sharding import laid_out, out_placed
from pullback.lax.elementwise.bits import convert
from pullback.lax.movement.broadcast import canonical_shape
from pullback.lax.records.families import *
from pullback.lax.records.operands import check_kind
from pullback.lax.records.rules import batch_unary
from pullback.sharding import AbstractMesh, Sharding
from pullback.util.pytree import tree_flatten
from pullback.util.tracebacks import api_boundary
from pullback.util.warning import warn_if_real

__all__ = [
    "broadcasted_iota",
    "empty",
    "empty_p",
    "full",
    "full_like",
    "iota",
    "iota_p",
    "stop_gradient",
    "stop_gradient_p",
    "shape_as_value",
    "dim_as_value_p",
    "dimension_as_value",
    "dce_sink",
    "dce_sink_p",
    "stage",
    "stage_p",
]

Array = Any


# ---------------------------------------------------------------------------------------------------------------- iota


def _iota_shape(*, dtype, shape, dimension, sharding=None):
    check_kind("iota", dtype, NUMERIC)
    if any(n < 0 for n in shape):
        raise TypeError(f"iota: argument 'shape' must have nonnegative sizes, got {tuple(shape)}")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: argument 'dimension' is {dimension}, which is no axis of shape {tuple(shape)}")
    return ShapedArray(shape, dtype)


def _iota_reference(dtype, shape, dimension, sharding=None):
    one_row = [1] * len(shape)
    one_row[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(one_row), shape)


def _iota_at(ctx, index):
    i = index[ctx.params["dimension"]]
    return i if ctx.out_aval.dtype == np.int64 else ctx.b.convert(i, dtypes.short_name(ctx.out_aval.dtype))


iota_p = Primitive(
    "iota",
    doc="0, 1, 2, ... along a dimension.",
    abstract_eval=_iota_shape,
    reference=_iota_reference,
    jvp=ZERO,
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    traits={"movement", "cheap", "inside"},
    lower=Pointwise(_iota_at),
    samples=Samples(
        cases=lambda rng: [
            Case((), {"dtype": np.dtype(d), "shape": s, "dimension": k})
            for d, s, k in [("int32", (5,), 0), ("float32", (2, 3), 1), ("uint8", (2, 3), 0)]
        ]
    ),
)


def iota(dtype: Any, size: int) -> Array:
    """0, 1, ..., size - 1. Raises TypeError for a negative size or a dtype that does not count."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """An array of `shape` whose elements are their index along `dimension`."""
    if dtype is None or hasattr(dtype, "aval"):
        raise ValueError(f"broadcasted_iota: argument 'dtype' must be a dtype, got {dtype!r}")
    dtype = dtypes.check_user_dtype_supported(dtype, "broadcasted_iota")
    return out_placed(
        "broadcasted_iota",
        iota_p.bind(dtype=dtype, shape=canonical_shape(shape, "broadcasted_iota"), dimension=operator.index(dimension)),
        out_sharding,
    )


# ----------------------------------------------------------------------------------------------------------- dimensions


def _dimension_shape(*, dim):
    return ShapedArray((), dtypes.dtype_of(0), True)


def _dimension_reference(dim):
    if isinstance(dim, Dimension):
        raise NotImplementedError(
            f"the symbolic dimension '{dim}' has no value here: it has one where functions of arguments with symbolic "
            "shapes are traced, as in jax.export"
        )
    return np.array(dim, dtypes.dtype_of(0))


def _dimension_at(ctx, index):
    return ctx.b.const(dtypes.short_name(ctx.out_aval.dtype), ctx.params["dim"])


dim_as_value_p = Primitive(
    "dim_as_value",
    doc="The size that a dimension has when the program runs.",
    abstract_eval=_dimension_shape,
    reference=_dimension_reference,
    jvp=ZERO,
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    traits={"cheap", "inside"},
    lower=Pointwise(_dimension_at),
    samples=Samples(cases=lambda rng: [Case((), {"dim": 3})]),
)


def dimension_as_value(dim: Any) -> Array:
    """A dimension as a scalar of the default integer type, weakly typed; of a symbolic one while tracing only."""
    return dim_as_value_p.bind(dim=dim) if isinstance(dim, Dimension) else hooks.asarray(dim, weak_type=True)


# ---------------------------------------------------------------------------------------------------------------- full


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array of `shape` filled with a scalar; of its dtype (and weak type) unless `dtype` is given.

    Raises TypeError for a fill_value that is not a scalar.
    """
    shape = canonical_shape(shape, "full")
    if isinstance(dtype, np.dtype) and dtype == dtypes.float0:
        return np.zeros(shape, dtypes.float0)  # such arrays have nothing in them, and stay NumPy's
    if dtypes.is_extended(dtype) or (dtype is None and dtypes.is_extended(getattr(fill_value, "dtype", None))):
        return full_extended("full", shape, fill_value, dtype)
    if type(fill_value) in (int, complex) and dtype is not None:
        kind = dtypes.check_user_dtype_supported(dtype, "full")
        if isinstance(kind, np.dtype):
            if type(fill_value) is complex and dtypes.kind_of(kind) not in "cb":
                raise TypeError(f"full: argument 'fill_value' is {fill_value}, which cannot become {kind}")
            if type(fill_value) is int and dtypes.kind_of(kind) in "iu":
                fill_value = dtypes.fitting_integer(fill_value, kind)
            if dtypes.kind_of(kind) == "b":
                warn_if_real(np.asarray(fill_value).dtype, kind)
                fill_value = bool(fill_value)
            fill_value = dtypes.python_scalar_to_numpy(fill_value, kind)
    fill_value = as_array(fill_value, "full", 1)
    if fill_value.shape:
        raise TypeError(f"full: argument 'fill_value' must be a scalar, got an array of shape {fill_value.shape}")
    if dtype is None and sharding is not None:
        dtype = fill_value.dtype  # with a place said, the type is strong, as in JAX
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "full")
        warn_if_real(fill_value.dtype, dtype)
        fill_value = convert(fill_value, dtype) if isinstance(dtype, np.dtype) else fill_value
    if shape:
        filled = lax.broadcast_in_dim_p.bind(fill_value, shape=shape, broadcast_dimensions=())
    else:  # libraries ask by such a number whether they are traced
        filled = as_staged(fill_value) if type(fill_value) is _core.Array else fill_value
    return laid_out("full", filled, sharding)


def full_extended(name: str, shape: tuple[int, ...], fill_value: Any, dtype: Any) -> Any:
    """An array of an extended element type (keys) filled with one or several of them, or with a number as each of their
    words. Raises ValueError for elements of another type."""
    if not dtypes.is_extended(getattr(fill_value, "dtype", None)):
        return extended.of_words(dtype, full((*shape, *dtype.base_shape), fill_value, dtype.base))
    if dtype is not None and fill_value.dtype != dtype:
        raise ValueError(f"{name}: argument 'fill_value' has type {fill_value.dtype}, which cannot become {dtype}")
    axes = tuple(range(len(shape) - len(fill_value.shape), len(shape)))
    return lax.broadcast_in_dim_p.bind(fill_value, shape=shape, broadcast_dimensions=axes) if shape else fill_value


def cut_like(filled: Any, x: Any) -> Any:
    """`filled`, varying along axes of shard_map as a traced value, where nobody says otherwise, and cut as one of its
    shape.
    """
    if not _is_traced(x) or is_asked():
        return filled
    more = vma_of(x.aval) - vma_of(typeof(filled))
    if x.shape == filled.shape:
        filled = cut_as(filled, x.aval)
    return registry["pvary"].bind(filled, axes=tuple(sorted(more, key=str))) if more else filled


def _is_traced(x: Any) -> bool:
    """Whether x has no value here; an array that lies on several processes has."""
    return isinstance(x, Tracer) and x.interpreter is not eval_interpreter()


def sharding_said(x: Any, shape: tuple[int, ...]) -> Sharding | None:
    """How x says that it lies, an array or something like one with a `sharding`, for one like it of a shape; None where
    it is not committed, or says nothing of that shape.
    """
    said = _said_of_own(x)
    return said if said is None or shape == tuple(np.shape(x)) or said.is_fully_replicated else None


def _said_of_own(x: Any) -> Sharding | None:
    if isinstance(x, _core.Array):
        return None if x._device is None else x.sharding
    said = None if _is_traced(x) else getattr(x, "sharding", None)
    if not isinstance(said, Sharding) or not getattr(x, "committed", True):
        return None
    return None if isinstance(getattr(said, "mesh", None), AbstractMesh) else said


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None, sharding: Any = None
) -> Array:
    """As `full`, with shape and dtype of `x` where they are not given."""
    x_shape = np.shape(x) if shape is None else canonical_shape(shape, "full_like")
    weak = dtype is None and dtypes.is_weak(x)
    if dtype is None:
        dtype = x.dtype if hasattr(x, "aval") else dtypes.dtype_of(x)  # an array's own, be it of 64 bits
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "full_like")
    if not isinstance(dtype, np.dtype):
        return full_extended("full_like", tuple(x_shape), fill_value, dtype)
    if type(fill_value) is complex and dtypes.kind_of(dtype) not in "cb":
        raise TypeError(f"full_like: argument 'fill_value' is {fill_value}, which cannot become {dtype}")
    if type(fill_value) is int and dtypes.kind_of(dtype) in "fc":
        fill_value = float(fill_value)  # which the default integer need not hold
    elif type(fill_value) is int and dtypes.kind_of(dtype) in "iu":
        fill_value = np.asarray(dtypes.wrapped_integer(fill_value, dtype), dtype)
    fill_value = as_array(fill_value, "full_like", 1)
    if fill_value.shape:
        raise TypeError(f"full_like: argument 'fill_value' must be a scalar, got an array of shape {fill_value.shape}")
    warn_if_real(fill_value.dtype, dtype)
    fill_value = convert(fill_value, dtype, weak)
    filled = (
        lax.broadcast_in_dim_p.bind(fill_value, shape=tuple(x_shape), broadcast_dimensions=())
        if x_shape
        else fill_value
    )
    if sharding is None and not weak:
        sharding = sharding_said(x, tuple(x_shape))
    return cut_like(laid_out("full_like", filled, sharding), x)


empty_p = Primitive(
    "empty",
    doc="An array whose values do not matter (zeros).",
    abstract_eval=lambda *, shape, dtype, out_sharding=None: ShapedArray(shape, dtype),
    reference=lambda shape, dtype, out_sharding=None: np.zeros(shape, dtype),
    jvp=ZERO,
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    lower=Pointwise(lambda ctx, index: ctx.b.const(dtypes.short_name(ctx.out_aval.dtype), 0)),
    samples=Samples(cases=lambda rng: [Case((), {"shape": (2,), "dtype": np.dtype("float32")})]),
)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array whose values do not matter; they are zeros."""
    return out_placed(
        "empty",
        empty_p.bind(shape=canonical_shape(shape, "empty"), dtype=dtypes.check_user_dtype_supported(dtype, "empty")),
        out_sharding,
    )


def shape_as_value(shape: Sequence[int]) -> Array:
    """The sizes of a shape as an integer vector."""
    return hooks.asarray(np.asarray(canonical_shape(shape, "shape_as_value"), dtypes.canonicalize_dtype(np.int64)))


# ------------------------------------------------------------------------------------------------------- stop_gradient

stop_gradient_p = Primitive(
    "stop_gradient",
    doc="x, with derivative zero.",
    abstract_eval=lambda aval: aval,
    reference=lambda x: x,
    jvp=ZERO,
    transpose=NOT_LINEAR,
    lower=Elementwise(lambda b, x: x),
    traits={"elementwise", "identity"},
    samples=Samples(cases=lambda rng: [Case((rng.normal(size=3).astype(np.float32),), {})]),
)
stop_gradient_p.batch = batch_unary(stop_gradient_p.bind)


@api_boundary
def stop_gradient(x: Any) -> Any:
    """The pytree `x`, whose derivative is zero from here on."""
    from pullback.util import pytree

    def stop(leaf):
        leaf = as_array(leaf, "stop_gradient")
        if isinstance(leaf.dtype, np.dtype) and dtypes.kind_of(leaf.dtype) in INEXACT:
            return stop_gradient_p.bind(leaf)
        return leaf

    return stop(x) if hasattr(x, "aval") else pytree.tree_map(stop, x)


stage_p = Primitive(
    "stage",
    doc="x, computed here and not at a use.",
    abstract_eval=lambda aval: aval,
    reference=lambda x: x,
    transpose=lambda y_bar, x: [y_bar],
    lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True),
    traits={"linear", "identity"},
    samples=Samples(cases=lambda rng: [Case((rng.normal(size=3).astype(np.float32),), {})]),
)
stage_p.batch = batch_unary(stage_p.bind)
stage_p.jvp = lambda primals, tangents: (
    stage_p.bind(primals[0]),
    tangent_zero(primals[0]) if is_zero(tangents[0]) else stage_p.bind(tangents[0]),
)


@api_boundary
def stage(x: Any, /) -> Array:
    """The array x as a value of the program being traced."""
    return stage_p.bind(as_array(x, "stage"))


dce_sink_p = Primitive(
    "dce_sink",
    doc="Uses a value, so that what computes it is kept.",
    multiple_results=True,
    abstract_eval=lambda *avals, **params: [],
    reference=lambda *operands, **params: [],
    jvp=lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), []),
    transpose=NOT_LINEAR,
    batch=lambda args, dims, **params: (dce_sink_p.bind(*args, **params), []),
    lower=NoRule("it has no results; dead code elimination removes it before"),
    samples=Samples(cases=lambda rng: []),
)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Marks the values of a tree as used."""
    for leaf in tree_flatten(val)[0]:
        dce_sink_p.bind(as_array(leaf, "dce_sink"), prevent_mlir_dce=prevent_mlir_dce)
