"""Joining arrays and cutting them: concatenate, stack, split, insert, delete, block, pad."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Array as AnyArray
from pullback.core import Tracer
from pullback.core.explain import shown
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    dtype_of,
    is_integer,
    is_weak,
    promote_dtypes,
    refuse_out,
    static_int,
)
from pullback.numpy._indexing import rewriting_take
from pullback.numpy._shape import atleast_1d, atleast_2d, atleast_3d
from pullback.util import dtypes
from pullback.util.errors import UnhashableArgumentError

# ---- joining


def _check_axis(name: str, axis: Any) -> None:
    if type(axis) is not int and np.ndim(axis):
        raise UnhashableArgumentError(
            f"{name}: argument 'axis' must be an integer, got {shown(axis)}; several arrays go into one sequence"
        )


def _parts(name: str, given: Any) -> list[Any]:
    """The arrays to be joined."""
    try:
        parts = [*given]
    except TypeError:
        raise TypeError(
            f"{name}: argument 'arrays' must be an iterable of arrays (Value after * must be an iterable), got "
            f"{type(given).__name__}"
        ) from None
    check_arraylike(name, *parts)
    return parts


def _join_slices(
    name: str, given: Any, dtype: Any, axis_of: Callable[[int], int | None], ranks: tuple[int, int] = (0, 0)
) -> Any:
    """The slices of an array along its first axis, joined: a reshape, after which it lies as it did along other axes.

    Slices get a first axis until they have `ranks[0]`, and then a last one until they have `ranks[1]`; `axis_of` their
    rank is where they are joined.
    """
    (x,) = arrays(name, given)
    if x.ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    if x.shape[0] == 0:
        raise ValueError(f"{name}: Need at least one array to concatenate.")
    if dtype is not None:
        x = convert(x, dtypes.check_user_dtype_supported(dtype, name))
    count, *sizes = x.shape
    sizes = [1] * (ranks[0] - len(sizes)) + sizes
    sizes += [1] * (ranks[1] - len(sizes))
    axis = axis_of(len(sizes))
    if axis is None:
        return lax.reshape(x, (x.size,))
    if not sizes:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = canonical_axis(name, axis, len(sizes))
    if x.ndim != len(sizes) + 1:
        x = lax.reshape(x, (count, *sizes))
    if axis:
        x = lax.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    return lax.reshape(x, (*sizes[:axis], count * sizes[axis], *sizes[axis + 1 :]))


def _is_array(x: Any) -> bool:
    return isinstance(x, (AnyArray, np.ndarray))


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays of equal rank joined along an axis, or all their elements in C order if the axis is None.

    Raises ValueError without arrays and for scalars, TypeError if ranks or the other lengths differ.
    """
    _check_axis("concatenate", axis)
    if _is_array(arrays):
        return _join_slices("concatenate", arrays, dtype, lambda rank: axis)
    parts = _parts("concatenate", arrays)
    if not parts:
        raise ValueError("Need at least one array to concatenate.")
    return _concatenate("concatenate", parts, axis, dtype)


def _concatenate(name: str, parts: list[Any], axis: Any, dtype: Any) -> Any:
    if dtype is None:
        parts = promote_dtypes(*parts)
    else:
        target = dtypes.check_user_dtype_supported(dtype, name)
        parts = [convert(as_array(p), target) for p in parts]
    if axis is None:
        return lax.concatenate([lax.reshape(p, (p.size,)) for p in parts], 0)
    if parts[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    ranks = {p.ndim for p in parts}
    shapes = ", ".join(str(p.shape) for p in parts)
    if len(ranks) > 1:
        raise TypeError(f"Cannot concatenate arrays of different ranks: {name} got shapes {shapes}.")
    axis = canonical_axis(name, axis, parts[0].ndim)
    rest = {p.shape[:axis] + p.shape[axis + 1 :] for p in parts}
    if len(rest) > 1:
        raise TypeError(
            f"Cannot concatenate along axis {axis}: {name} needs equal lengths of all other axes, got shapes {shapes}."
        )
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Alias of `concatenate` with the array API standard's signature."""
    return concatenate(arrays, axis=axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Arrays of equal shape joined along a new axis; ValueError without arrays or if shapes differ."""
    refuse_out("stack", out)
    _check_axis("stack", axis)
    if _is_array(arrays):
        (arrays,) = _checked("stack", arrays)
        if arrays.ndim and not arrays.shape[0]:
            raise ValueError("Need at least one array to stack.")
        axis = canonical_axis("stack", axis, arrays.ndim)
        order = list(range(1, arrays.ndim))
        order.insert(axis, 0)
        moved = arrays if axis == 0 else lax.transpose(arrays, tuple(order))
        return moved if dtype is None else convert(moved, dtypes.check_user_dtype_supported(dtype, "stack"))
    parts = _parts("stack", arrays)
    if not parts:
        raise ValueError("Need at least one array to stack.")
    shapes = [np.shape(p) for p in parts]
    if len({len(s) for s in shapes}) > 1:
        raise ValueError(f"stack: arrays must have one shape, but ranks differ: {', '.join(map(str, shapes))}")
    if len(set(shapes)) > 1:
        raise ValueError(f"stack: arrays must have one shape, got {', '.join(map(str, shapes))}")
    axis = canonical_axis("stack", axis, len(shapes[0]) + 1)
    if dtype is None:
        parts = promote_dtypes(*parts)
    else:
        target = dtypes.check_user_dtype_supported(dtype, "stack")
        parts = [convert(as_array(p), target) for p in parts]
    return lax.stack(parts, axis)


def _checked(name: str, *args: Any) -> list[Any]:
    return arrays(name, *args)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, as a tuple; ValueError for scalars."""
    (x,) = arrays("unstack", x)
    if x.ndim == 0:
        raise ValueError("unstack: argument 'x' is a scalar, which has no axis to cut")
    axis = canonical_axis("unstack", axis, x.ndim)
    return lax.unstack(x, axis)


def _stacker(
    name: str, prepare: Callable[[Any], Any], axis_of: Callable[[int], int], ranks: tuple[int, int], doc: str
) -> Callable[..., Any]:
    def fn(tup: Any, dtype: Any = None) -> Any:
        if _is_array(tup):
            return _join_slices(name, tup, dtype, axis_of, ranks)
        parts = [prepare(as_array(p)) for p in _parts(name, tup)]
        if not parts:
            error = IndexError if name == "hstack" else ValueError  # which asks the first for its rank
            raise error(f"{name}: Need at least one array to concatenate.")
        return _concatenate(name, parts, axis_of(parts[0].ndim), dtype)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    return fn


vstack = _stacker(
    "vstack", atleast_2d, lambda rank: 0, (2, 2), "Arrays joined as rows: along axis 0, vectors made matrices of a row."
)
hstack = _stacker(
    "hstack",
    atleast_1d,
    lambda rank: 0 if rank == 1 else 1,
    (1, 1),
    "Arrays joined along axis 1, vectors along axis 0.",
)
dstack = _stacker("dstack", atleast_3d, lambda rank: 2, (2, 3), "Arrays joined along a third axis.")


def column_stack(tup: Any) -> Any:
    """Vectors as the columns of a matrix; matrices joined along axis 1."""
    if _is_array(tup):
        return _join_slices("column_stack", tup, None, lambda rank: 1, (0, 2))
    parts = [as_array(p) for p in _parts("column_stack", tup)]
    if not parts:
        raise ValueError("column_stack: Need at least one array to concatenate.")
    columns = [p if p.ndim >= 2 else lax.reshape(p, (p.size, 1)) for p in parts]
    return _concatenate("column_stack", columns, 1, None)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """arr with values joined at its end, both laid out in C order without an axis."""
    check_arraylike("append", arr, values)
    return concatenate([arr, values], axis)


def block(arrays: Any) -> Any:
    """Array from nested lists of blocks: the innermost lists join along the last axis, the next along the one before,
    ...

    Raises ValueError if the lists are not all nested to one depth.
    """
    depth, parts_rank = _depth(arrays)
    return _block(arrays, depth, max(depth, parts_rank))


def _depth(nested: Any) -> tuple[int, int]:
    if not isinstance(nested, list):
        if isinstance(nested, tuple):
            raise ValueError("block: use lists for nesting, got a tuple")
        check_arraylike("block", nested)
        return 0, np.ndim(nested)
    if not nested:
        raise ValueError("block does not allow empty list arguments")
    found = [_depth(x) for x in nested]
    if len({d for d, _ in found}) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    return found[0][0] + 1, max(r for _, r in found)


def _block(nested: Any, depth: int, rank: int) -> Any:
    if not isinstance(nested, list):
        x = as_array(nested)
        return lax.reshape(x, (1,) * (rank - x.ndim) + x.shape) if x.ndim < rank else x
    return _concatenate("block", [_block(x, depth - 1, rank) for x in nested], -depth, None)


# ---- cutting


def _cut(name: str, ary: Any, where: Any, axis: int, uneven: bool) -> list[Any]:
    (ary,) = arrays(name, ary)
    axis = canonical_axis(name, axis, ary.ndim)
    n = ary.shape[axis]
    context = f"{name}: argument 'indices_or_sections'"
    where = concrete_or_error(where, context)
    if np.ndim(where) > 0:
        if not isinstance(where, (list, tuple)) and dtype_of(where) == np.bool_:
            raise TypeError(f"{name}: argument 'indices_or_sections' must be of integers, got booleans")
        bounds = [static_int(w, context) for w in where]
        if any(a > b for a, b in pairwise([0, *bounds, n])):
            raise ValueError(
                f"{name}: argument 'indices_or_sections' must ascend from 0 to {n}, the length of axis {axis}, got "
                f"{bounds}"
            )
    else:
        sections = int(where)
        if sections < 0:
            raise ValueError(f"{name}: argument 'indices_or_sections' must be positive, got {sections}")
        if sections == 0:
            raise ZeroDivisionError(f"{name}: argument 'indices_or_sections' is 0; integer division or modulo by zero")
        rest = n % sections
        if rest and not uneven:
            raise ValueError(
                f"{name}: no equal division: rest is {rest} of {n} elements in {sections} parts; array_split makes "
                "parts of two lengths"
            )
        sizes = [(n + sections - 1 - k) // sections for k in range(sections)]  # the first ones longer by one
        bounds = list(accumulate(sizes))[:-1]
    return list(lax.split(ary, [b - a for a, b in pairwise([0, *bounds, n])], axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis: a number of equal ones, or those between indices; ValueError if parts would differ."""
    return _cut("split", ary, indices_or_sections, axis, uneven=False)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As `split`; the first parts are longer by one where the length cannot be divided."""
    return _cut("array_split", ary, indices_or_sections, axis, uneven=True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 1, of a vector along axis 0."""
    return _cut("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1, uneven=False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 0."""
    return _cut("vsplit", ary, indices_or_sections, 0, uneven=False)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 2; IndexError below rank 3."""
    if np.ndim(ary) < 3:
        raise IndexError(
            f"dsplit: expected an array of rank 3 or more, got shape {np.shape(ary)}: tuple index out of range"
        )
    return _cut("dsplit", ary, indices_or_sections, 2, uneven=False)


# ---- inserting and deleting


def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Any:
    """arr without the elements (or slices along an axis) named by an index, an array of them, a slice or a mask.

    Masks, and arrays that may repeat an index, must be concrete; with `assume_unique_indices` arrays may be traced.
    """
    (arr,) = arrays("delete", arr)
    if axis is None:
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    axis = canonical_axis("delete", axis, arr.ndim)
    n = arr.shape[axis]
    before = (slice(None),) * axis
    if isinstance(obj, slice):
        kept = np.delete(np.arange(n), obj)
        return rewriting_take(arr, (*before, kept.astype(np.int32)))
    check_arraylike("delete", arr, obj)
    if is_integer(obj) and not isinstance(obj, (bool, np.bool_)):
        k = canonical_axis("delete", obj, n, "obj")
        parts = [lax.slice_in_dim(arr, 0, k, axis=axis), lax.slice_in_dim(arr, k + 1, n, axis=axis)]
        return lax.concatenate(parts, axis)
    (obj,) = arrays("delete", obj)
    traced = isinstance(obj, Tracer) and obj.to_concrete() is None
    if dtypes.issubdtype(obj.dtype, np.integer) and (assume_unique_indices or (traced and obj.ndim == 0)):
        return _delete_traced(arr, obj, axis)  # n - obj.size elements, whatever the values
    if traced:
        kind = "masks" if obj.dtype == np.bool_ else "index arrays that may contain duplicates"
        concrete_or_error(obj, f"'obj' array argument of jnp.delete(): {kind} must be concrete.")
    known = np.asarray(concrete_or_error(obj, "'obj' argument of jnp.delete()"))
    if known.dtype == np.bool_:
        if known.shape != (n,):
            raise ValueError(
                f"delete: argument 'obj' is a mask over {n} elements, and needs shape ({n},); got {known.shape}"
            )
        kept = np.flatnonzero(~known)
    else:
        if not dtypes.issubdtype(known.dtype, np.integer):
            raise ValueError(f"delete: argument 'obj' has dtype {known.dtype}; must be integer or bool.")
        flat = known.ravel().astype(np.int64)
        if flat.size and not -n <= flat.min() <= flat.max() < n:
            raise IndexError(f"delete: argument 'obj' is out of bounds for axis {axis} with size {n}, got {known}")
        flat = np.where(flat < 0, flat + n, flat)
        mask = np.ones(n, bool)
        mask[flat] = False
        kept = np.flatnonzero(mask)
    return rewriting_take(arr, (*before, kept.astype(np.int32)))


def _delete_traced(arr: Any, obj: Any, axis: int) -> Any:
    n, gone = arr.shape[axis], obj.size
    flat = convert(lax.reshape(obj, (gone,)), np.dtype(np.int32))
    flat = lax.select(lax.lt(flat, lax.full_like(flat, 0)), lax.add(flat, lax.full_like(flat, n)), flat)
    numbers = lax.broadcast_in_dim(lax.iota(np.dtype(np.int32), n), (n, gone), (0,))
    removed = lax.reduce_or(lax.eq(numbers, lax.broadcast_in_dim(flat, (n, gone), (1,))), (1,))
    # Stable sorting by "removed" brings the kept ones to the front, in order.
    order = lax.sort(
        (convert(removed, np.dtype(np.int32)), lax.iota(np.dtype(np.int32), n)), num_keys=1, is_stable=True
    )[1]
    return rewriting_take(arr, ((slice(None),) * axis) + (lax.slice_in_dim(order, 0, n - gone, axis=0),))


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """arr with values inserted before the elements (or slices along an axis) named by an index, an array of them or a
    slice.
    """
    (arr,) = arrays("insert", arr)
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    values = as_array(values)
    if axis is None:
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    axis = canonical_axis("insert", axis, arr.ndim)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    (indices,) = arrays("insert", obj)
    scalar = indices.ndim == 0
    if not dtypes.issubdtype(indices.dtype, np.integer) and indices.size:
        raise ValueError(f"insert: argument 'obj' has dtype {indices.dtype}; expected integers")
    if indices.ndim > 1:
        raise ValueError(
            f"insert: argument 'obj' must be a slice, an index or a vector of them, got shape {indices.shape}"
        )
    indices = convert(lax.reshape(indices, (indices.size,)), np.dtype(np.int32))
    values = convert(values, arr.dtype)
    if values.ndim < arr.ndim:
        values = lax.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    if scalar:
        # One index: the values' own first axis says how many are inserted.
        order = list(range(1, values.ndim))
        order.insert(axis, 0)
        values = lax.transpose(values, tuple(order))
    count = values.shape[axis] if indices.size == 1 else indices.size
    if not count:
        return arr  # nothing is written, so the values' other axes need not fit
    values = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    if indices.size == 1:
        indices = lax.broadcast_in_dim(lax.squeeze(indices, (0,)), (count,), ())
    indices = lax.select(
        lax.lt(indices, lax.full_like(indices, 0)), lax.add(indices, lax.full_like(indices, n)), indices
    )
    indices = lax.clamp(np.int32(0), indices, lax.convert_element_type(n, np.int32))
    # A value's place is before the element of its index: sorting the places stably, with the values first, gives the
    # order.
    places = lax.concatenate([indices, lax.iota(np.dtype(np.int32), n)], 0)
    order_ = lax.sort((places, lax.iota(np.dtype(np.int32), count + n)), num_keys=1, is_stable=True)[1]
    joined = lax.concatenate([values, arr], axis)
    return convert(rewriting_take(joined, ((slice(None),) * axis) + (order_,)), arr.dtype, is_weak(arr))
