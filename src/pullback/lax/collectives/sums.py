"""Operations across a named axis (of vmap, pmap or shard_map): sums, extrema, positions, and what all of them share.

Batching over the axis turns each into ordinary operations on the array that has the axis: psum is a sum over it.
Nothing is left of them in a compiled program, so they have no lowering of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import axis_env, hooks
from pullback.core import axis_size as _size_of
from pullback.core.avals import type_of_operand
from pullback.core.primitive import registry
from pullback.core.types import CheckedAxis, vma_of
from pullback.lax.records.families import *
from pullback.sharding._specs import state_of
from pullback.util import pytree

__all__ = [
    "axis_index",
    "axis_index_p",
    "axis_size",
    "pmax",
    "pmax_p",
    "pmean",
    "pmin",
    "pmin_p",
    "psum",
    "psum_invariant_p",
    "psum_p",
]

Array = Any

NO_LOWERING = NoRule(
    "a collective operation needs a named axis: call it under vmap(..., axis_name=...), pmap or shard_map"
)


def no_reference(*operands: Any, **params: Any) -> Any:
    names = params.get("axes", params.get("axis_name"))
    raise NameError(f"unbound axis name: {names}")


def names_of(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or the product of several. Raises NameError for an axis that is not there."""
    return math.prod(_size_of(name) for name in names_of(axis_name))


def as_groups(groups: Any) -> Any:
    """The groups as tuples; ValueError for none at all, and for those in which an index is missing or comes twice."""
    if groups is None:
        return None
    found = tuple(tuple(map(int, g)) for g in groups)
    check_groups(found, max(1, sum(map(len, found))), even=False)
    return found


def check_names(axes: Sequence[Any]) -> None:
    for name in axes:
        _size_of(name)


def on_leaves(function: Callable, x: Any, name: str) -> Any:
    return pytree.tree_map(lambda leaf: function(as_array(leaf, name)), x)


# ---------------------------------------------------------------------------------------------------- psum, pmax, pmin


def _reduced_avals(*avals, axes, axis_index_groups=None):
    check_names(axes)
    return list(avals)


def check_groups(groups: Any, size: int, even: bool = True) -> None:
    """ValueError unless each place of an axis is in one group, and (`even`) the groups are of one size."""
    if (even and len({len(g) for g in groups}) != 1) or sorted(i for g in groups for i in g) != list(range(size)):
        sizes = ", in groups of one size" if even else ""
        raise ValueError(
            f"axis_index_groups must have each of 0..{size - 1}, the places of the axis, once{sizes}, got {groups}"
        )


def grouped(x: Any, groups: Any, here: Callable, even: bool = True) -> Any:
    """`here` on the members of each group, [size of group, ...], the results where the members are."""
    check_groups(groups, x.shape[0], even)
    order = [i for g in groups for i in g]
    done = lax.concatenate([here(lax.stack([_member(x, i) for i in g])) for g in groups], 0)
    return lax.stack([_member(done, order.index(i)) for i in range(x.shape[0])])


def _member(x: Any, i: int) -> Any:
    return lax.index_in_dim(x, i, 0, keepdims=False)


def _like(x: Any, number: int) -> Any:
    """The number in the dtype of x, weakly typed where x is."""
    return hooks.asarray(number, dtype=x.dtype, weak_type=type_of_operand(x).weak_type)


def for_all(x: Any, size: int) -> Any:
    """x for each of `size` places."""
    return lax.broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))


def _reducing(
    name: str, doc: str, primitive: Callable[[], Primitive], combine_unmapped: Callable, jvp: Any, transpose: Any
) -> Primitive:
    def batch_axis(axis, args, dims, *, axes, axis_index_groups=None):
        grouping = {} if p is psum_invariant_p else {"axis_index_groups": axis_index_groups}
        if axis.name not in axes:
            return p.bind(*args, axes=axes, **grouping), dims
        if axis_index_groups is not None:
            return [
                grouped(
                    batch_front(x, d, axis.size),
                    axis_index_groups,
                    lambda y: for_all(primitive().bind(y, axes=(0,)), y.shape[0]),
                    even=False,
                )
                for x, d in zip(args, dims)
            ], [0] * len(args)
        outs = [
            combine_unmapped(x, axis.size) if d is None else primitive().bind(x, axes=(d,)) for x, d in zip(args, dims)
        ]
        rest = tuple(a for a in axes if a != axis.name)
        return p.bind(*outs, axes=rest, **grouping) if rest else outs, [None] * len(args)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=_reduced_avals,
        reference=no_reference,
        jvp=jvp,
        transpose=transpose,
        batch_axis=batch_axis,
        batch=NoRule("it is batched with its axis"),
        lower=NO_LOWERING,
        multiple_results=True,
        traits={"combining"},
        collective_axes=lambda params: params["axes"],
    )
    return p


def _sum_of_nonzero(p, values, avals, params):
    """Sums of those that are not symbolic zeros, in one operation; zeros of the types of `avals` for the others."""
    given = [v for v in values if not is_zero(v)]
    summed = iter(p.bind(*given, **params) if given else [])
    return [tangent_zero(x) if is_zero(v) else next(summed) for v, x in zip(values, avals)]


def _sum(name: str, doc: str, transpose: Callable) -> Primitive:
    """A sum over named axes: its tangents are summed as it is."""

    def jvp(primals, tangents, **params):
        outs = p.bind(*primals, **params)
        return outs, _sum_of_nonzero(p, tangents, outs, params)

    p = _reducing(name, doc, lambda: lax.reduce_sum_p, lambda x, n: lax.mul(x, _like(x, n)), jvp, transpose)
    return p


def _psum_transpose(bars, *operands, **params):
    """Each cotangent is summed over the axis."""
    return _sum_of_nonzero(psum_p, bars, operands, params)


def _invariant_transpose(bars, *operands, axes):
    """Each device has the cotangent of the sum."""
    return [bar if is_zero(bar) else registry["pvary"].bind(bar, axes=axes) for bar in bars]


psum_p = _sum("psum", "Sums over named axes.", _psum_transpose)
psum_invariant_p = _sum(
    "psum_invariant",
    "Sums over axes of shard_map along which the operands vary, as types say, and the results do not.",
    _invariant_transpose,
)

_NOT_DIFFERENTIABLE = NoRule("not implemented, as in JAX; use all_gather and a maximum or minimum")
pmax_p = _reducing(
    "pmax", "Maxima over named axes.", lambda: lax.reduce_max_p, lambda x, n: x, _NOT_DIFFERENTIABLE, NOT_LINEAR
)
pmin_p = _reducing(
    "pmin", "Minima over named axes.", lambda: lax.reduce_min_p, lambda x, n: x, _NOT_DIFFERENTIABLE, NOT_LINEAR
)


def _reduce(p: Primitive, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    axes, groups = names_of(axis_name), as_groups(axis_index_groups)
    if groups is not None and any(isinstance(a, int) for a in axes):
        raise ValueError(f"{p.name}: axis_index_groups is for named axes alone, got {axes}")
    leaves, treedef = pytree.tree_flatten(x)
    leaves = as_arrays(p.name, *leaves)
    leaves = [
        lax.convert_element_type(leaf, np.int32) if leaf.dtype == np.bool_ and p is psum_p else leaf for leaf in leaves
    ]
    positions = [a for a in axes if isinstance(a, int)]
    names = tuple(a for a in axes if not isinstance(a, int))
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate value in 'axes' of {p.name}: {names}")
    if positions:  # over ordinary axes: an ordinary reduction
        local = {"psum": lax.reduce_sum_p, "pmax": lax.reduce_max_p, "pmin": lax.reduce_min_p}[p.name]
        leaves = [
            local.bind(leaf, axes=tuple(canonical_axis(a, leaf.ndim, p.name) for a in positions)) for leaf in leaves
        ]
    outs = _over(p, leaves, names, groups) if leaves and names else leaves
    return pytree.tree_unflatten(treedef, outs)


def _over(p: Primitive, leaves: list[Any], names: tuple[Any, ...], groups: Any) -> list[Any]:
    """The reduction over named axes; a sum over those along which types say what varies is one of its own."""
    env = axis_env()
    checked = tuple(name for name in names if CheckedAxis(name) in env) if p is psum_p else ()
    if checked and groups is not None:
        raise NotImplementedError(
            "psum: axis_index_groups over an axis of shard_map is supported with check_vma=False only: the result "
            "is the same on some devices and not on all"
        )
    if checked:
        _check_states(leaves, names)
        leaves = psum_invariant_p.bind(*[with_terms(leaf, checked) for leaf in leaves], axes=checked)
    rest = tuple(name for name in names if name not in checked)
    return p.bind(*leaves, axes=rest, axis_index_groups=groups) if rest else leaves


def with_terms(x: Any, axes: tuple[Any, ...]) -> Any:
    """x, whose terms along axes are values that vary."""
    along = tuple(axis for axis in axes if axis in state_of(type_of_operand(x))[0])
    cast = {"axes": along, "source": "unreduced", "to": "varying"}
    return registry["state_cast"].bind(x, **cast) if along else x


def _check_states(leaves: list[Any], axes: tuple[Any, ...]) -> None:
    """ValueError for what varies along some of the axes, and is the same along others."""
    for leaf in leaves:
        aval = type_of_operand(leaf)
        found = vma_of(aval) | state_of(aval)[0]
        if state_of(aval)[1].intersection(axes):
            raise ValueError(f"psum: {leaf.aval} is a sum already, over some of the axes {axes} at least")
        if 0 < len(found.intersection(axes)) < len(set(axes)):
            raise ValueError(
                f"psum: of the axes {axes}, {leaf.aval} varies only along "
                f"{sorted(map(str, found.intersection(axes)))}; sum over each kind by itself, or use lax.pcast first"
            )


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) and not isinstance(x, bool)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of the pytree x over named (and positional) axes; Python numbers are multiplied by the size of the axes.

    Raises NameError for an axis that is not there.
    """
    leaves, treedef = pytree.tree_flatten(x)
    if not any(isinstance(a, int) for a in names_of(axis_name)) and any(map(_is_number, leaves)):
        groups = as_groups(axis_index_groups)
        size = axis_size(axis_name) if groups is None else len(groups[0])
        summed = iter(_reduce(psum_p, [leaf for leaf in leaves if not _is_number(leaf)], axis_name, axis_index_groups))
        return pytree.tree_unflatten(treedef, [x * size if _is_number(x) else next(summed) for x in leaves])
    return _reduce(psum_p, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of the pytree x over named axes. Raises NameError for an axis that is not there."""
    names = tuple(a for a in names_of(axis_name) if not isinstance(a, int))
    n = psum(1, names, axis_index_groups=axis_index_groups) if names else 1
    leaves, treedef = pytree.tree_flatten(x)
    leaves = as_arrays("pmean", *leaves)

    def mean(total, leaf):
        size = n * math.prod(leaf.shape[a] for a in names_of(axis_name) if isinstance(a, int))
        if dtypes.kind_of(total.dtype) not in INEXACT:
            total = lax.convert_element_type(total, dtypes.to_inexact_dtype(total.dtype))
        return lax.div(total, _like(total, size))

    totals = _reduce(psum_p, leaves, axis_name, axis_index_groups)
    return pytree.tree_unflatten(treedef, list(map(mean, totals, leaves)))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum of the pytree x over named axes. Raises NameError for an axis that is not there."""
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum of the pytree x over named axes. Raises NameError for an axis that is not there."""
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


# ---------------------------------------------------------------------------------------------------------- axis_index


def _index_shape(*, axis_name):
    _size_of(axis_name)
    return ShapedArray((), np.int32)


def _index_batch(axis, args, dims, *, axis_name):
    return lax.iota(np.int32, axis.size), 0


axis_index_p = Primitive(
    "axis_index",
    doc="The place along a named axis.",
    abstract_eval=_index_shape,
    reference=no_reference,
    jvp=ZERO,
    transpose=NoRule("it has no operands"),
    batch=NoRule("it is batched with its axis"),
    batch_axis=_index_batch,
    lower=NO_LOWERING,
    collective_axes=lambda params: (params["axis_name"],),
)


def axis_index(axis_name: Any) -> Array:
    """The place along a named axis, or along several in row-major order, as int32. Raises NameError for an unknown
    axis.
    """
    names = names_of(axis_name)
    out = None
    for name in names:
        index = axis_index_p.bind(axis_name=name)
        out = index if out is None else lax.add(lax.mul(out, np.int32(_size_of(name))), index)
    return out
