"""Products of consecutive groups of rows, whose sizes are values: `ragged_dot` and its general form.

The elements of a group are those along one axis of the left operand, the ragged one, between two running sums of the
sizes. They are masked, so that each group is one dense product; what lies beyond the groups gives 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.lax.collectives.sharding import out_placed
from pullback.lax.products.dot import Array, PrecisionLike, RaggedDotDimensionNumbers, dot_general
from pullback.lax.records.families import *

__all__ = ["ragged_dot", "ragged_dot_general"]


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Rows of lhs[m, k] in consecutive groups of `group_sizes[g]`, group i times rhs[g, k, n]; rows beyond the groups
    give 0.

    Raises TypeError for ranks other than 2, 3 and 1.
    """
    shapes = [np.shape(x) for x in (lhs, rhs, group_sizes)]
    if [len(s) for s in shapes] != [2, 3, 1]:
        raise TypeError(f"ragged_dot: lhs, rhs and group_sizes must have 2, 3 and 1 dimensions, got shapes {shapes}")
    if shapes[1][0] != shapes[2][0] and len(shapes[2]) == 1:
        raise TypeError(f"ragged_dot: rhs must have a matrix for each of {shapes[2][0]} groups, got {shapes[1]}")
    return out_placed(
        "ragged_dot",
        ragged_dot_general(
            lhs,
            rhs,
            group_sizes,
            RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)),
            precision,
            preferred_element_type,
            group_offset,
        ),
        out_sharding,
    )


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`dot_general` of groups along one dimension of lhs, the ragged one, in one of three modes.

    Ragged free dimension: rhs has a dimension of groups, and elements of group g meet rhs[g]. Ragged contracting
    dimension: the result has a first dimension of groups, the products of each. Ragged batch dimension: `dot_general`
    itself. `group_sizes` is i[g], or i[*prefix, g] with the batch dimensions of lhs and those of the ragged one's kind
    that come before it. Raises TypeError for dimension numbers and sizes that do not fit, NotImplementedError for a
    `group_offset`.
    """
    lhs, rhs, group_sizes = as_arrays("ragged_dot_general", lhs, rhs, group_sizes)
    ((cx, cy), (bx, by)), ragged_dims, groups = (
        ragged_dot_dimension_numbers.dot_dimension_numbers,
        tuple(ragged_dot_dimension_numbers.lhs_ragged_dimensions),
        tuple(ragged_dot_dimension_numbers.rhs_group_dimensions),
    )
    cx, cy, bx, by = (tuple(d) for d in (cx, cy, bx, by))
    if not dtypes.issubdtype(group_sizes.dtype, np.integer):
        raise TypeError(f"ragged_dot: argument 'group_sizes' must be of integers, got dtype {group_sizes.dtype}")
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset is not supported")
    if len(ragged_dims) != 1:
        raise TypeError(f"ragged_dot_general: lhs_ragged_dimensions must have one entry, got {ragged_dims}")
    (ragged,) = ragged_dims
    is_free = ragged not in cx and ragged not in bx
    if is_free != (len(groups) == 1) or len(groups) > 1:
        raise TypeError(
            "ragged_dot_general requires one rhs group dimension where the ragged dimension of lhs is a free one, and "
            f"none elsewhere; got {len(groups)}"
        )
    free = tuple(d for d in range(lhs.ndim) if d not in cx and d not in bx)
    kind = bx if ragged in bx else cx if ragged in cx else free
    before = kind[: kind.index(ragged)]
    prefix = before if kind is bx else bx + before
    count = group_sizes.shape[-1] if group_sizes.ndim else 0
    if group_sizes.ndim != 1 and group_sizes.shape[:-1] != tuple(lhs.shape[d] for d in prefix):
        raise TypeError(
            f"ragged_dot_general: expected group_sizes to have shape {(*(lhs.shape[d] for d in prefix), count)} or "
            f"{(count,)}, got {group_sizes.shape}"
        )
    if is_free and rhs.shape[groups[0]] != count:
        raise TypeError(f"ragged_dot_general: expected {count} groups in rhs, got {rhs.shape[groups[0]]}")
    if ragged in bx:
        product = dot_general(lhs, rhs, ((cx, cy), (bx, by)), precision, preferred_element_type)
        return out_placed("ragged_dot_general", product, out_sharding)
    numbers: Any = ((cx, cy), (bx, by))
    if count == 0 and not is_free:
        shape = dot_general(lhs, rhs, numbers, precision, preferred_element_type)
        return out_placed("ragged_dot_general", lax.full((0, *shape.shape), 0, shape.dtype), out_sharding)
    if count == 0:  # one group of no rows
        group_sizes = lax.full((*group_sizes.shape[:-1], 1), 0, group_sizes.dtype)
        rhs = lax.full(tuple(1 if d == groups[0] else n for d, n in enumerate(rhs.shape)), 0, rhs.dtype)
        count = 1
    parts, ends = [], lax.cumsum(group_sizes, axis=group_sizes.ndim - 1)
    for g in range(count):
        part = _group(lhs, group_sizes, ends, g, ragged, prefix)
        if is_free:
            matrix = lax.index_in_dim(rhs, g, groups[0], keepdims=False)
            numbers = ((cx, _without(cy, groups[0])), (bx, _without(by, groups[0])))
        else:  # what does not count on the right may be infinite
            other = dict(zip(cx + bx, cy + by))
            matrix = _group(rhs, group_sizes, ends, g, other[ragged], tuple(other[d] for d in prefix))
        parts.append(dot_general(part, matrix, numbers, precision, preferred_element_type))
    if not is_free:
        joined = lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)
    else:
        joined = parts[0]
        for p in parts[1:]:
            joined = lax.add(joined, p)
    return out_placed("ragged_dot_general", joined, out_sharding)


def _without(dims: Sequence[int], left_out: int) -> tuple[int, ...]:
    return tuple(d - (d > left_out) for d in dims)


def _group(x: Any, sizes: Any, ends: Any, g: int, ragged: int, prefix: tuple[int, ...]) -> Any:
    """x with 0 for what is not in group g; `prefix` has the dimensions of x that the leading ones of sizes are."""
    last = sizes.ndim - 1
    end, size = (lax.index_in_dim(v, g, last, keepdims=False) for v in (ends, sizes))
    if last:
        order = sorted(range(last), key=lambda i: prefix[i])
        end, size = (lax.transpose(v, tuple(order)) for v in (end, size))
    dims = tuple(sorted(prefix)) if last else ()
    end, size = (lax.broadcast_in_dim(v, x.shape, dims) for v in (end, size))
    row = lax.broadcasted_iota(sizes.dtype, x.shape, ragged)
    inside = lax.bitwise_and(lax.ge(row, lax.sub(end, size)), lax.lt(row, end))
    return lax.select(inside, x, lax.full_like(x, 0))
