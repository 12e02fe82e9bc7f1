"""gather: windows of an array at places given by an array of indices.

    out[g, o] = operand[start(g) + o]

`g` runs over the leading dimensions of the indices, whose last dimension holds a start vector, and `o` over the window.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any

from pullback.core.jaxpr import ElementJaxpr, JaxprEqn, Var
from pullback.core.lowering import Pointwise
from pullback.lax.movement.broadcast import canonical_shape
from pullback.lax.records.families import *
from pullback.util import config
from pullback.util.record import NamedTuple
from pullback.util.warning import warn_if_real

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather", "gather_p", "index_take"]

Array = Any


class GatherScatterMode(enum.Enum):
    """What happens at indices outside of the operand."""

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode of a name ('clip', 'fill', 'drop', 'promise_in_bounds', 'one_hot'), a mode, or None (fill or
        drop).
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        found = _MODES.get(mode) if mode is None or isinstance(mode, str) else None
        if found is None:
            raise ValueError(f'Unknown gather mode "{mode}"; expected one of {", ".join(k for k in _MODES if k)}')
        return found

    def __str__(self):
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """Which dimension plays which part in `gather`.

    offset_dims: dimensions of the result that are window dimensions. collapsed_slice_dims: dimensions of the operand
    with windows of size 1 that the result lacks. start_index_map: the operand's dimension of each component of a
    start vector. operand_batching_dims, start_indices_batching_dims: dimensions walked together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


def canonical_numbers(numbers: Any) -> Any:
    """Dimension numbers with tuples of Python ints."""
    return type(numbers)(*[tuple([d.__index__() for d in field]) for field in numbers])


def _check_sorted(name, what, dims, ndim):
    if any(not 0 <= d < ndim for d in dims):
        raise TypeError(f"{name}: {what} is {tuple(dims)}; expected axes from 0 to {ndim - 1}")
    if list(dims) != sorted(set(dims)):
        raise TypeError(f"{name}: {what} is {tuple(dims)}; expected axes in rising order, each once")


def check_batching(name: str, shape: tuple, indices_shape: tuple, operand_dims: tuple, indices_dims: tuple) -> None:
    """TypeError unless batching dimensions come in pairs of equal size."""
    if len(operand_dims) != len(indices_dims):
        raise TypeError(
            f"{name}: batching dimensions come in pairs, but there are {operand_dims} of the operand and "
            f"{indices_dims} of the indices"
        )
    for d, k in zip(operand_dims, indices_dims):
        if not 0 <= k < len(indices_shape) - 1:
            raise TypeError(
                f"{name}: indices batching dimension {k} is out of bounds for indices of shape {indices_shape}"
            )
        if shape[d] != indices_shape[k]:
            raise TypeError(
                f"{name}: batching dimensions {d} of the operand and {k} of the indices have sizes {shape[d]} and "
                f"{indices_shape[k]}, which must be one"
            )


def _gather_shape(
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    unique_indices=False,
    indices_are_sorted=False,
    mode=None,
    fill_value=None,
):
    n = dimension_numbers
    if dtypes.kind_of(indices.dtype) not in "iu":
        raise ValueError(f"gather: argument 'start_indices' must be of an integer type, got {indices.dtype}")
    if not indices.shape:
        raise TypeError(
            "gather: argument 'start_indices' must have at least one dimension, which holds the start vectors"
        )
    if indices.shape[-1] != len(n.start_index_map):
        raise TypeError(
            f"gather: each index, along the last axis of 'start_indices', has {indices.shape[-1]} components, but "
            f"start_index_map has {len(n.start_index_map)} axes for them: {n.start_index_map}"
        )
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            f"gather: argument 'slice_sizes' is {tuple(slice_sizes)}; expected one size for each axis of the operand, "
            f"which has shape {operand.shape}"
        )
    out_ndim = len(n.offset_dims) + indices.ndim - 1
    _check_sorted("gather", "offset_dims", n.offset_dims, out_ndim)
    _check_sorted("gather", "collapsed_slice_dims", n.collapsed_slice_dims, operand.ndim)
    _check_sorted("gather", "operand_batching_dims", n.operand_batching_dims, operand.ndim)
    if len(set(n.start_index_map)) != len(n.start_index_map) or any(
        not 0 <= d < operand.ndim for d in n.start_index_map
    ):
        raise TypeError(
            f"gather: start_index_map is {n.start_index_map}; expected axes of the operand, each at most once"
        )
    for i, (m, size) in enumerate(zip(slice_sizes, operand.shape)):
        if not 0 <= m <= size:
            raise TypeError(f"gather: slice_sizes[{i}] must be from 0 to {size}, the size of that axis; got {m}")
    dropped = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    if any(slice_sizes[d] > 1 for d in dropped):
        raise TypeError(
            f"gather: axes that are collapsed or batched have slices of size 0 or 1; these are {sorted(dropped)}, "
            f"and slice_sizes is {tuple(slice_sizes)}"
        )
    window = [m for d, m in enumerate(slice_sizes) if d not in dropped]
    if len(window) != len(n.offset_dims):
        raise TypeError(
            f"gather: {len(window)} axes of each slice are left (neither collapsed nor batched), so offset_dims needs "
            f"as many numbers; it is {n.offset_dims}, for slice_sizes {tuple(slice_sizes)} and {n}"
        )
    check_batching("gather", operand.shape, indices.shape, n.operand_batching_dims, n.start_indices_batching_dims)
    window_sizes, batch_sizes = iter(window), iter(indices.shape[:-1])
    shape = tuple([next(window_sizes) if d in n.offset_dims else next(batch_sizes) for d in range(out_ndim)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def fill_number(name: str, fill_value: Any, dtype: Any) -> Any:
    """The Python number to fill an operand of this dtype with; TypeError for one that loses its imaginary part."""
    if fill_value is None:
        return None
    value = np.asarray(fill_value)
    if value.ndim:
        raise ValueError(f"{name}: argument 'fill_value' must be a scalar, got an array of shape {value.shape}")
    if value.dtype.kind not in "biufcV":
        raise TypeError(f"{name}: argument 'fill_value' must be a number, got {fill_value!r}")
    if value.dtype.kind == "c" and (kind := dtypes.kind_of(dtype)) != "c":
        if kind != "b":
            raise TypeError(
                f"{name}: argument 'fill_value' is {fill_value!r}, which cannot become {dtype}; take its real part"
            )
        warn_if_real(value.dtype, dtype)
        return bool(value)
    return value.item()


def default_fill(dtype: Any) -> Any:
    """What reads as the value of an element that is not there: NaN, the smallest signed or largest unsigned integer,
    True.
    """
    kind = dtypes.kind_of(dtype)
    if kind in "fc":
        return np.asarray(np.nan, dtype)[()]
    if kind == "b":
        return np.bool_(True)
    limits = dtypes.iinfo(dtype)
    return np.asarray(limits.min if kind == "i" else limits.max, dtype)[()]


class Places(NamedTuple):
    """For each operand dimension an index per element of a grid, and whether the window that it belongs to lies
    inside.
    """

    indices: tuple[np.ndarray, ...]
    inside: np.ndarray


def places(
    shape: Sequence[int],
    indices: np.ndarray,
    window: Sequence[int],
    grid: Sequence[int],
    window_dims: Sequence[int],
    dropped: Sequence[int],
    start_map: Sequence[int],
    operand_batching: Sequence[int],
    indices_batching: Sequence[int],
    clip: bool,
) -> Places:
    """Where each element of a result of gather (or of the updates of scatter) lies in the operand, by NumPy index
    arrays.

    `window_dims` are the dimensions of the grid that walk the window; `dropped` operand dimensions have none.
    """
    ndim = len(grid)
    batch_dims = [d for d in range(ndim) if d not in window_dims]
    kept = [d for d in range(len(shape)) if d not in dropped]

    def along(values, dims):
        full = [1] * ndim
        for n, d in zip(values.shape, dims):
            full[d] = n
        return values.reshape(full)

    inside = np.ones([1] * ndim, bool)
    index = []
    for d in range(len(shape)):
        place = np.zeros([1] * ndim, np.int64)
        if d in start_map:
            start = indices[..., list(start_map).index(d)]
            limit = shape[d] - window[d]
            big = (
                np.minimum(start.astype(np.uint64), np.uint64(2**62)).astype(np.int64)
                if start.dtype.kind == "u"
                else start.astype(np.int64)
            )
            clipped = np.clip(big, 0, limit)
            inside = inside & along(clipped == big, batch_dims)
            place = place + along(clipped, batch_dims)
        if d in operand_batching:
            k = indices_batching[list(operand_batching).index(d)]
            place = place + along(np.arange(indices.shape[k]), [batch_dims[k]])
        if d in kept:
            place = place + along(np.arange(window[d]), [window_dims[kept.index(d)]])
        index.append(place)
    if clip:
        inside = np.ones([1] * ndim, bool)
    return Places(tuple(index), inside)


def _axis_taken(operand: Any, indices: Any, n: Any, slice_sizes: Any, rank: int) -> int | None:
    """The axis of which whole slices are taken by number, one for each index, which stand in its place; else None."""
    if len(n.start_index_map) != 1 or n.collapsed_slice_dims != n.start_index_map or n.operand_batching_dims:
        return None
    (axis,) = n.start_index_map
    if indices.dtype.kind != "i" or 0 in operand.shape or slice_sizes[axis] != 1:
        return None
    if any(s != m for d, (s, m) in enumerate(zip(slice_sizes, operand.shape)) if d != axis):
        return None
    many = indices.ndim - 1
    return axis if tuple(n.offset_dims) == (*range(axis), *range(axis + many, rank)) else None


def _taken(operand: np.ndarray, index: np.ndarray, axis: int, fill: bool, fill_value: Any) -> np.ndarray:
    """Slices of an axis, the nearest ones or filled where indices are out of bounds."""
    taken = operand.take(index, axis, mode="clip")
    if not fill:
        return taken
    inside = (index >= 0) & (index < operand.shape[axis])
    if inside.all():
        return taken
    value = default_fill(operand.dtype) if fill_value is None else np.asarray(fill_value).astype(operand.dtype)
    return np.where(inside.reshape((*inside.shape, *[1] * (operand.ndim - axis - 1))), taken, value)


def _gather_reference(
    operand,
    indices,
    dimension_numbers,
    slice_sizes,
    unique_indices=False,
    indices_are_sorted=False,
    mode=None,
    fill_value=None,
):
    n = dimension_numbers
    axis = _axis_taken(operand, indices, n, slice_sizes, len(n.offset_dims) + indices.ndim - 1)
    if axis is not None:
        fill = GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP
        return _taken(operand, indices[..., 0], axis, fill, fill_value)
    out = _gather_shape(
        ShapedArray(operand.shape, operand.dtype),
        ShapedArray(indices.shape, indices.dtype),
        dimension_numbers=n,
        slice_sizes=slice_sizes,
    ).shape
    if 0 in out:
        return np.zeros(out, operand.dtype)
    fill = GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP
    where = places(
        operand.shape,
        indices,
        slice_sizes,
        out,
        n.offset_dims,
        (*n.collapsed_slice_dims, *n.operand_batching_dims),
        n.start_index_map,
        n.operand_batching_dims,
        n.start_indices_batching_dims,
        not fill,
    )
    if 0 in operand.shape:
        taken = np.zeros(out, operand.dtype)
        inside = np.zeros([1] * len(out), bool)
    else:
        taken, inside = (
            np.broadcast_to(operand[where.indices], out) if operand.ndim else np.broadcast_to(operand, out),
            where.inside,
        )
    if not fill or inside.all():
        return taken
    value = default_fill(operand.dtype) if fill_value is None else np.asarray(fill_value).astype(operand.dtype)
    return np.where(inside, taken, value)


def _gather_jvp(primals, tangents, **params):
    operand, indices = primals
    out = gather_p.bind(operand, indices, **params)
    if is_zero(tangents[0]):
        return out, tangent_zero(out)
    return out, gather_p.bind(tangents[0], indices, **(params | {"fill_value": 0}))


@functools.cache
def update_jaxpr_of(name: str, dtype: Any) -> ElementJaxpr | None:
    """What the scatter of a name, such as "scatter-add", does to an element and its update; None for "scatter", which
    overwrites. Libraries read it among the parameters of equations; the compiler goes by the primitive's name.
    """
    if name == "scatter":
        return None
    join = getattr(lax, name.removeprefix("scatter-") + "_p")
    x, y, out = (Var(ShapedArray((), dtype)) for _ in range(3))
    return ElementJaxpr((), (x, y), (out,), (JaxprEqn((x, y), (out,), join, {}),))


def _gather_transpose(
    out_bar,
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    unique_indices=False,
    indices_are_sorted=False,
    mode=None,
    fill_value=None,
):
    if is_zero(out_bar):
        return [tangent_zero(operand), None]
    n = dimension_numbers
    numbers = lax.ScatterDimensionNumbers(
        n.offset_dims, n.collapsed_slice_dims, n.start_index_map, n.operand_batching_dims, n.start_indices_batching_dims
    )
    zeros = lax.full(operand.aval.shape, constant(out_bar, 0))
    return [
        lax.scatter_add_p.bind(
            zeros,
            indices,
            out_bar,
            update_jaxpr=update_jaxpr_of("scatter-add", out_bar.dtype),
            update_consts=(),
            dimension_numbers=numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=GatherScatterMode.from_any(mode),
        ),
        None,
    ]


def _plus_one(dims):
    return tuple([d + 1 for d in dims])


def _gather_batch(args, dims, *, dimension_numbers, slice_sizes, **params):
    (operand, indices), (d, indices_d) = args, dims
    n = dimension_numbers
    if d is not None:
        operand = move_batch_axis(operand, d, 0)
    if indices_d is not None:
        indices = move_batch_axis(indices, indices_d, 0)
    if indices_d is None:  # the batch axis is one more window dimension
        numbers = GatherDimensionNumbers(
            (0, *_plus_one(n.offset_dims)),
            _plus_one(n.collapsed_slice_dims),
            _plus_one(n.start_index_map),
            _plus_one(n.operand_batching_dims),
            n.start_indices_batching_dims,
        )
        sizes = (operand.shape[0], *slice_sizes)
    elif d is None:
        numbers = GatherDimensionNumbers(
            _plus_one(n.offset_dims),
            n.collapsed_slice_dims,
            n.start_index_map,
            n.operand_batching_dims,
            _plus_one(n.start_indices_batching_dims),
        )
        sizes = slice_sizes
        params = params | {"unique_indices": False, "indices_are_sorted": False}
    else:
        numbers = GatherDimensionNumbers(
            _plus_one(n.offset_dims),
            _plus_one(n.collapsed_slice_dims),
            _plus_one(n.start_index_map),
            (0, *_plus_one(n.operand_batching_dims)),
            (0, *_plus_one(n.start_indices_batching_dims)),
        )
        sizes = (1 if operand.shape[0] else 0, *slice_sizes)
    return gather_p.bind(operand, indices, dimension_numbers=numbers, slice_sizes=tuple(sizes), **params), 0


def _gather_at(ctx, index):
    b, params = ctx.b, ctx.params
    operand = ctx.in_avals[0]
    n, sizes = params["dimension_numbers"], params["slice_sizes"]
    fill = GatherScatterMode.from_any(params.get("mode")) is GatherScatterMode.FILL_OR_DROP
    batch = [i for d, i in enumerate(index) if d not in n.offset_dims]
    window = iter([index[d] for d in n.offset_dims])
    dropped = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    place, inside = [], None
    for d, (size, m) in enumerate(zip(operand.shape, sizes)):
        at = None
        if d in n.start_index_map:
            k = n.start_index_map.index(d)
            start = ctx.operand(1, (*batch, b.const("i64", k)))
            start = start if start.dtype == "i64" else b.convert(start, "i64")
            if fill:
                fits = b.op("and", b.op("ge", start, 0), b.op("le", start, size - m))
                inside = fits if inside is None else b.op("and", inside, fits)
            else:
                start = b.op("min", b.op("max", start, 0), size - m)
            at = start
        if d in n.operand_batching_dims:
            at = batch[n.start_indices_batching_dims[n.operand_batching_dims.index(d)]]
        if d not in dropped:
            offset = next(window)
            at = offset if at is None else b.op("add", at, offset)
        place.append(b.const("i64", 0) if at is None else at)
    if 0 in operand.shape:
        return _fill_constant(ctx)
    x = ctx.operand(0, tuple(place))
    return x if inside is None else b.select(inside, x, _fill_constant(ctx))


def _fill_constant(ctx):
    dtype, value = ctx.out_aval.dtype, ctx.params.get("fill_value")
    value = default_fill(dtype) if value is None else np.asarray(value).astype(dtype)
    return ctx.b.const(dtypes.short_name(dtype), np.asarray(value).item())


def _gather_cases(rng):
    x = rng.normal(size=(4, 5, 3)).astype(np.float32)
    found = []
    for numbers, sizes, indices in [
        (GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 5, 3), rng.integers(-1, 6, (2, 1))),
        (GatherDimensionNumbers((0, 1), (1,), (0, 1)), (2, 1, 3), rng.integers(-1, 5, (3, 2))),
        (GatherDimensionNumbers((), (0, 1, 2), (2, 0, 1)), (1, 1, 1), rng.integers(0, 3, (2, 2, 3))),
        (GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,)), (1, 1, 3), rng.integers(-1, 6, (4, 1))),
    ]:
        for mode in (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP):
            found.append(
                Case(
                    (x, indices.astype(np.int32)),
                    {
                        "dimension_numbers": numbers,
                        "slice_sizes": sizes,
                        "mode": mode,
                        "fill_value": 7.0,
                        "unique_indices": False,
                        "indices_are_sorted": False,
                    },
                )
            )
    return found


gather_p = Primitive(
    "gather",
    doc="Windows at places given by an array of indices.",
    abstract_eval=_gather_shape,
    reference=_gather_reference,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
    lower=Pointwise(_gather_at, cost=4),
    traits={"movement"},
    samples=Samples(cases=_gather_cases),
)


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Array:
    """Windows of `slice_sizes` at the start vectors in the last dimension of `start_indices`.

    Outside of the operand, mode 'clip' (the default) moves windows inside, 'fill' gives `fill_value` (NaN, or an
    extreme integer). Raises TypeError for dimension numbers that don't fit, ValueError for an unknown mode.
    """
    operand, start_indices = as_arrays("gather", operand, start_indices)
    mode = GatherScatterMode.CLIP if mode is None else GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None  # nothing is filled in
    elif fill_value is None and config.value_of("jax_named_calls") and isinstance(operand.dtype, np.dtype):
        fill_value = default_fill(operand.dtype)  # readers see it
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=canonical_numbers(dimension_numbers),
        slice_sizes=canonical_shape(slice_sizes, "gather"),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_number("gather", fill_value, operand.dtype),
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """src at index vectors of one length along the given axes; the new axis comes first. Out of range indices are
    clamped.
    """
    src = as_array(src, "index_take")
    axes = tuple(canonical_axis(a, src.ndim, "index_take") for a in axes)
    vectors = as_arrays("index_take", *[idxs[k] for k in range(len(axes))])
    vectors = [lax.convert_element_type(v, np.int32) if v.dtype == np.bool_ else v for v in vectors]
    indices = lax.stack(vectors, 1)
    sizes = tuple(1 if d in axes else n for d, n in enumerate(src.shape))
    numbers = GatherDimensionNumbers(tuple(range(1, src.ndim - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(src, indices, numbers, sizes, mode="clip")
