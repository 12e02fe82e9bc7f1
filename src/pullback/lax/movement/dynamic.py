"""Slices at computed places: dynamic_slice, dynamic_update_slice and their forms for one axis. Starts are clamped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.core import avals, hooks
from pullback.core.dimensions import index as size_of
from pullback.core.dimensions import is_symbolic
from pullback.core.jaxpr import Literal
from pullback.core.lowering import Nest, Pointwise
from pullback.core.types import in_state_of, is_strict, lie_alike, type_on_mesh
from pullback.lax.elementwise.bits import convert
from pullback.lax.movement.broadcast import canonical_shape
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.errors import ArgumentError, ShardingTypeError
from pullback.util.static import check_flags, check_truth

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_slice_p",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p",
]

Array = Any


def _check_starts(name, operand, starts):
    if len(starts) != operand.ndim:
        raise ValueError(
            f"{name}: argument 'start_indices' has {len(starts)} indices; expected one for each axis of the operand, "
            f"which has shape {operand.shape}"
        )
    if any(s.shape for s in starts):
        raise TypeError(f"{name}: each of 'start_indices' is a scalar; got shapes {[s.shape for s in starts]}")
    if starts and (
        any(dtypes.kind_of(s.dtype) not in "iu" for s in starts) or any(s.dtype != starts[0].dtype for s in starts)
    ):
        raise TypeError(
            f"{name}: argument 'start_indices' must hold integers of one dtype, got "
            f"{', '.join(str(s.dtype) for s in starts)}"
        )


def _slice_shape(operand, *starts, slice_sizes):
    _check_starts("dynamic_slice", operand, starts)
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            f"dynamic_slice: argument 'slice_sizes' is {tuple(slice_sizes)}; expected one size for each axis of the "
            f"operand, which has shape {operand.shape}"
        )
    if any(m > n for m, n in zip(slice_sizes, operand.shape)):
        raise TypeError(
            f"dynamic_slice: argument 'slice_sizes' is {tuple(slice_sizes)}, larger than the operand, which has shape "
            f"{operand.shape}"
        )
    if any(m < 0 for m in slice_sizes):
        raise TypeError(f"dynamic_slice: argument 'slice_sizes' must have nonnegative sizes, got {tuple(slice_sizes)}")
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def _window(shape, starts, sizes):
    """The NumPy slices of a clamped window."""
    return tuple(
        [slice(lo, lo + m) for lo, m in ((min(max(int(s), 0), n - m), m) for n, s, m in zip(shape, starts, sizes))]
    )


def _slice_jvp(primals, tangents, slice_sizes):
    operand, *starts = primals
    out = dynamic_slice_p.bind(operand, *starts, slice_sizes=slice_sizes)
    if is_zero(tangents[0]):
        return out, tangent_zero(out)
    return out, dynamic_slice_p.bind(tangents[0], *starts, slice_sizes=slice_sizes)


def _slice_transpose(y_bar, operand, *starts, slice_sizes):
    if is_zero(y_bar):
        return [tangent_zero(operand), *[None] * len(starts)]
    zeros = in_state_of(lax.full(operand.aval.shape, constant(y_bar, 0)), y_bar)
    return [dynamic_update_slice_p.bind(zeros, y_bar, *starts), *[None] * len(starts)]


def _stacked_starts(starts, dims, size):
    """Batched start indices as one array (batch, dimension)."""
    columns = [
        lax.broadcast_in_dim(s, (size, 1), ()) if d is None else lax.expand_dims(batch_front(s, d, size), (1,))
        for s, d in zip(starts, dims)
    ]
    return lax.concatenate(columns, 1)


def _slice_batch(args, dims, slice_sizes):
    operand, *starts = args
    d, *start_dims = dims
    if all(s is None for s in start_dims):
        zero = constant(starts[0], 0) if starts else np.int32(0)
        return dynamic_slice_p.bind(
            operand, *starts[:d], zero, *starts[d:], slice_sizes=(*slice_sizes[:d], operand.shape[d], *slice_sizes[d:])
        ), d
    from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode, gather_p

    size = batch_size(args, dims)
    indices = _stacked_starts(starts, start_dims, size)
    n = len(starts)
    if d is None:
        numbers = GatherDimensionNumbers(tuple(range(1, n + 1)), (), tuple(range(n)))
    else:
        operand = move_batch_axis(operand, d, 0)
        numbers = GatherDimensionNumbers(tuple(range(1, n + 1)), (), tuple(range(1, n + 1)), (0,), (0,))
        slice_sizes = (min(1, operand.shape[0]), *slice_sizes)
    return gather_p.bind(
        operand,
        indices,
        dimension_numbers=numbers,
        slice_sizes=tuple(slice_sizes),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    ), 0


def clamped_start(b: Any, start: Any, n: int, m: int) -> Any:
    """A start as i64, moved so that a window of size m lies inside 0..n."""
    start = start if start.dtype == "i64" else b.convert(start, "i64")
    return b.op("min", b.op("max", start, 0), n - m)


def _slice_at(ctx, index):
    b, shape, sizes = ctx.b, ctx.in_avals[0].shape, ctx.params["slice_sizes"]
    place = []
    for k, (i, n, m) in enumerate(zip(index, shape, sizes)):
        place.append(i if n == m else b.op("add", i, clamped_start(b, ctx.operand(k + 1, ()), n, m)))
    return ctx.operand(0, tuple(place))


def _starts(*values):
    return tuple(np.int32(v) for v in values)


dynamic_slice_p = Primitive(
    "dynamic_slice",
    doc="A window at a computed place.",
    abstract_eval=_slice_shape,
    reference=lambda operand, *starts, slice_sizes: operand[_window(operand.shape, starts, slice_sizes)],
    jvp=_slice_jvp,
    transpose=_slice_transpose,
    batch=_slice_batch,
    lower=Pointwise(_slice_at, is_view=True),
    traits={"movement", "inside"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(4, 5)).astype(np.float32), *_starts(*s)), {"slice_sizes": m})
            for s, m in [((1, 2), (2, 2)), ((-3, 9), (1, 3)), ((0, 0), (4, 5))]
        ]
    ),
)


def _update_shape(operand, update, *starts):
    check_dtypes("dynamic_update_slice", operand, update, tip=False)
    if operand.ndim != update.ndim:
        raise TypeError(
            f"dynamic_update_slice: argument 'update' needs as many axes as the operand; it has shape {update.shape}, "
            f"the operand {operand.shape}"
        )
    if any(m > n for m, n in zip(update.shape, operand.shape)):
        raise TypeError(
            f"dynamic_update_slice: argument 'update' has shape {update.shape}, which does not fit into the operand, "
            f"{operand.shape}"
        )
    _check_starts("dynamic_update_slice", operand, starts)
    return ShapedArray(operand.shape, operand.dtype, operand.weak_type and update.weak_type)


def _update_reference(operand, update, *starts):
    out = np.array(operand)
    out[_window(operand.shape, starts, update.shape)] = update
    return out


def _update_jvp(primals, tangents):
    operand, update, *starts = primals
    operand_dot, update_dot = tangents[:2]
    out = dynamic_update_slice_p.bind(operand, update, *starts)
    if is_zero(operand_dot) and is_zero(update_dot):
        return out, tangent_zero(out)
    if is_zero(operand_dot):
        operand_dot = in_state_of(lax.full(operand.shape, constant(out, 0)), update_dot)
    if is_zero(update_dot):
        update_dot = in_state_of(lax.full(update.shape, constant(out, 0)), operand_dot)
    return out, dynamic_update_slice_p.bind(operand_dot, update_dot, *starts)


def _update_transpose(out_bar, operand, update, *starts):
    rest = [None] * len(starts)
    if is_zero(out_bar):
        return [*[tangent_zero(a) if is_linear(a) else None for a in (operand, update)], *rest]
    shape = aval_of(update).shape
    zeros = in_state_of(lax.full(shape, constant(out_bar, 0)), out_bar)
    return [
        dynamic_update_slice_p.bind(out_bar, zeros, *starts) if is_linear(operand) else None,
        dynamic_slice_p.bind(out_bar, *starts, slice_sizes=shape) if is_linear(update) else None,
        *rest,
    ]


def _update_batch(args, dims):
    operand, update, *starts = args
    d, update_d, *start_dims = dims
    size = batch_size(args, dims)
    operand, update = batch_front(operand, d, size), batch_front(update, update_d, size)
    if all(s is None for s in start_dims):
        zero = constant(starts[0], 0) if starts else np.int32(0)
        return dynamic_update_slice_p.bind(operand, update, zero, *starts), 0
    from pullback.lax.movement.gather import GatherScatterMode
    from pullback.lax.movement.scatter import ScatterDimensionNumbers, scatter_p

    n = len(starts)
    numbers = ScatterDimensionNumbers(tuple(range(1, n + 1)), (), tuple(range(1, n + 1)), (0,), (0,))
    return scatter_p.bind(
        operand,
        _stacked_starts(starts, start_dims, size),
        update,
        update_jaxpr=None,
        update_consts=(),
        dimension_numbers=numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    ), 0


def _known_window(eqn):
    """The update, and where it goes if all starts are known."""
    operand, update, *starts = eqn.invars
    if not all(isinstance(s, Literal) for s in starts):
        return None
    sizes = zip(starts, operand.aval.shape, update.aval.shape)
    return 1, tuple(min(max(int(s.val), 0), n - m) for s, n, m in sizes)


def _update_emit(ctx):
    b, update, out = ctx.b, ctx.operand(1), ctx.result(0)
    known = _known_window(ctx.eqn)
    if known is not None:
        part = out.slice(known[1], update.shape)
        if not (part.same_memory(update) and part.strides == update.strides):
            ctx.copy(part, update)
        return
    start = [
        b.let(clamped_start(b, ctx.load(ctx.operand(k + 2), ()), n, m)) if n != m else b.const("i64", 0)
        for k, (n, m) in enumerate(zip(out.shape, update.shape))
    ]

    def body(index):
        ctx.store(out, tuple(b.op("add", i, s) for i, s in zip(index, start)), ctx.load(update, index))

    loops(b, update.shape, body)


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    doc="A window at a computed place overwritten.",
    abstract_eval=_update_shape,
    reference=_update_reference,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    lower=Nest(_update_emit, in_place=0, strided=True, window=_known_window),
    traits={"movement", "stacked", "exact"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(4, 5)).astype(np.float32), rng.normal(size=m).astype(np.float32), *_starts(*s)), {})
            for s, m in [((1, 2), (2, 2)), ((-3, 9), (1, 3)), ((0, 0), (4, 5))]
        ]
    ),
)


# ---------------------------------------------------------------------------------------------------- public functions


def _check_one_type(name: str, start_indices: Any) -> None:
    """Raise TypeError for indices of several types, of which a Python integer has the default one."""
    if hasattr(start_indices, "ndim") or not isinstance(start_indices, (tuple, list)):
        return
    default = dtypes.canonicalize_dtype(np.int64)  # of an integer of any size: what is far out of bounds stays so
    kinds = [
        default if type(s) is int else typeof(s).dtype
        for s in start_indices
        if hasattr(s, "dtype") or isinstance(s, (int, float, complex))
    ]
    if len(set(kinds)) > 1:
        raise TypeError(
            f"{name}: argument 'start_indices' must hold integers of one dtype, got {', '.join(k.name for k in kinds)}"
        )


def _zeros_like(index: Any, count: int) -> list[Any]:
    """Zeros of the type of an index, to stand beside it."""
    return [typeof(index).dtype.type(0) if hasattr(index, "dtype") else 0] * count


def _start_indices(name: str, operand: Any, start_indices: Any, negative: Any) -> list[Any]:
    """Start indices as scalars of one integer dtype; negative ones count from the end where that is allowed."""
    if hasattr(start_indices, "ndim") and not isinstance(start_indices, (tuple, list)):
        if start_indices.ndim != 1:
            raise ValueError(
                f"{name}: argument 'start_indices', as an array, needs one axis; it has shape {start_indices.shape}"
            )
        start_indices = lax.unstack(start_indices) if start_indices.shape[0] else []
    if len(start_indices) != operand.ndim:
        raise ValueError(
            f"{name}: argument 'start_indices' has {len(start_indices)} indices; expected one for each axis of the "
            f"operand, which has shape {operand.shape}"
        )
    if isinstance(negative, (tuple, list)):
        allowed = list(negative)
        if len(allowed) != operand.ndim:
            raise ValueError(
                f"{name}: argument 'allow_negative_indices' must be True or False, or one of them for each of the "
                f"{operand.ndim} dimensions, got {negative!r}"
            )
    elif isinstance(negative, (bool, np.bool_)):
        allowed = [bool(negative)] * operand.ndim
    else:
        raise ArgumentError(f"{name}: argument 'allow_negative_indices' must be True or False, got {negative!r}")
    starts = []
    for s, n, wraps in zip(start_indices, operand.shape, allowed):
        if isinstance(s, (int, np.integer)) and not isinstance(s, bool):
            s = int(s)
            if s < 0 and not wraps:
                raise ValueError(f"{name}: index {s} is negative, and allow_negative_indices=False")
            if s < 0 and is_symbolic(n):
                starts.append(hooks.dimension_as_value(s + n))
                continue
            s = s + n if s < 0 and wraps else s
            far = not is_symbolic(n) and n >= 2**31  # what is far out of bounds must stay so in fewer bits
            starts.append(np.int64(s) if far else np.int32(max(min(s, 2**31 - 1), -(2**31))))
            continue
        s = as_array(s, name)
        kind = dtypes.kind_of(s.dtype)
        if kind not in "iu" or s.shape:
            raise TypeError(
                f"{name}: argument 'start_indices' must hold integers of one dtype, got {s.dtype}"
                if not s.shape
                else f"{name} start_indices must be scalars, got shape {s.shape}"
            )
        if kind == "i" and wraps:
            size = convert(hooks.dimension_as_value(n), s.dtype) if is_symbolic(n) else constant(s, n)
            s = (
                lax.select_n_p.bind(lax.lt_p.bind(s, constant(s, 0)), s, lax.add_p.bind(s, size))
                if is_symbolic(n) or n <= dtypes.iinfo(s.dtype).max
                else s
            )
        starts.append(s)
    arrays = [s.dtype for s in starts if hasattr(s, "aval")]
    dtype = dtypes.result_type(*arrays) if arrays else np.dtype(np.int32)
    if np.int64 in arrays or any(isinstance(s, np.signedinteger) and int(s) > dtypes.iinfo(dtype).max for s in starts):
        dtype = np.dtype(np.int64)
    return [_start(s, dtype) for s in starts]


def _start(s: Any, dtype: np.dtype) -> Any:
    """A start index of a type; of int64 where that is needed, whatever `jax_enable_x64` says."""
    if hasattr(s, "aval"):
        return s if s.dtype == dtype else convert(s, dtype)
    s = s.astype(dtype)
    if dtypes.canonicalize_dtype(dtype) == dtype:
        return s
    return _core.from_numpy(np.asarray(s), avals.ShapedArray((), dtype), None, True)


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The window of `slice_sizes` at computed start indices, which are moved so that the window lies inside.

    Negative indices count from the end, unless not allowed. Raises TypeError for sizes above the operand's and
    indices that are not integers.
    """
    operand = as_array(operand, "dynamic_slice")
    if hooks.transfers is not None:
        for number in start_indices if isinstance(start_indices, (tuple, list)) else ():
            hooks.transfers.of_index(number)
    slice_sizes = canonical_shape(slice_sizes, "dynamic_slice: argument 'slice_sizes'")
    _check_one_type("dynamic_slice", start_indices)
    starts = _start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=slice_sizes)


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Array:
    """The operand with `update` written at computed start indices, moved so that it lies inside. Raises as
    `dynamic_slice`.
    """
    operand, update = as_arrays("dynamic_update_slice", operand, update)
    _check_one_type("dynamic_update_slice", start_indices)
    starts = _start_indices("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    if avals.any_placed:
        _check_cut_alike(operand, update)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """`dynamic_slice` along one axis."""
    operand = as_array(operand, "dynamic_slice_in_dim")
    axis = canonical_axis(axis, operand.ndim, "dynamic_slice_in_dim")
    starts = _zeros_like(start_index, operand.ndim)
    sizes = list(operand.shape)
    starts[axis], sizes[axis] = start_index, size_of(slice_size)
    check_truth("dynamic_slice_in_dim", allow_negative_indices=allow_negative_indices)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=bool(allow_negative_indices))


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """The slice of size 1 at a computed index along one axis; without the axis unless `keepdims`."""
    check_flags("dynamic_index_in_dim", keepdims=keepdims)
    index = _nearest_if(index, allow_negative_indices)
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else lax.squeeze(out, (axis,))


def _check_cut_alike(operand: Array, update: Array) -> None:
    """ShardingTypeError where explicit axes cut what the user puts into an array otherwise than that."""
    left, right = type_on_mesh(operand), type_on_mesh(update)
    if is_strict() and not lie_alike(left, right):
        raise ShardingTypeError(
            "dynamic_update_slice: the operand and 'update' must be cut over the mesh alike, got "
            f"{left.str_short(mesh_axis_types=True)} and {right.str_short(mesh_axis_types=True)}; jax.reshard cuts an "
            "array anew"
        )


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`dynamic_update_slice` along one axis."""
    operand = as_array(operand, "dynamic_update_slice_in_dim")
    axis = canonical_axis(axis, operand.ndim, "dynamic_update_slice_in_dim")
    starts = _zeros_like(start_index, operand.ndim)
    starts[axis] = start_index
    check_truth("dynamic_update_slice_in_dim", allow_negative_indices=allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=bool(allow_negative_indices))


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The operand with the slice at a computed index along one axis overwritten; `update` may lack that axis."""
    operand, update = as_arrays("dynamic_update_index_in_dim", operand, update)
    axis = canonical_axis(axis, operand.ndim, "dynamic_update_index_in_dim")
    if update.ndim != operand.ndim:
        update = lax.expand_dims(update, (axis,))
    index = _nearest_if(index, allow_negative_indices)
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


def _nearest_if(index: Any, allow_negative_indices: bool) -> Any:
    """An index of a single place: where negative ones don't count from the end, known ones are the nearest place, as
    traced ones are.
    """
    known = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
    return max(index, 0) if known and not allow_negative_indices else index
