"""Operations across a named axis (of vmap, pmap or shard_map): sums, extrema, gathers, exchanges, positions.

Batching over the axis turns each into ordinary operations on the array that has the axis: psum is a sum over it.
Nothing is left of them in a compiled program, so they have no lowering of their own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.core import Tracer, axis_env
from pullback.core import axis_size as _size_of
from pullback.lax._families import *
from pullback.transforms.batching import BatchTracer
from pullback.util import pytree

__all__ = [
    "all_gather",
    "all_gather_p",
    "all_to_all",
    "all_to_all_p",
    "axis_index",
    "axis_index_p",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmax_p",
    "pmean",
    "pmin",
    "pmin_p",
    "ppermute",
    "ppermute_p",
    "precv",
    "psend",
    "pshuffle",
    "psum",
    "psum_p",
    "psum_scatter",
    "pswapaxes",
    "ragged_all_to_all",
    "ragged_all_to_all_p",
    "reduce_scatter_p",
]

Array = Any

_NO_LOWERING = NoRule(
    "a collective operation needs a named axis: call it under vmap(..., axis_name=...), pmap or shard_map"
)


def _no_reference(*operands: Any, **params: Any) -> Any:
    names = params.get("axes", params.get("axis_name"))
    raise NameError(f"unbound axis name: {names}")


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or the product of several. Raises NameError for an axis that is not there."""
    return math.prod(_size_of(name) for name in _names(axis_name))


def _groups(groups: Any) -> Any:
    return None if groups is None else tuple(tuple(map(int, g)) for g in groups)


def _check_names(axes: Sequence[Any]) -> None:
    for name in axes:
        _size_of(name)


def _on_leaves(function: Callable, x: Any, name: str) -> Any:
    return pytree.tree_map(lambda leaf: function(as_array(leaf, name)), x)


# ------------------------------------------------------------------------------------------------------- of shard_map


class CheckedAxis(NamedTuple):
    """In the environment of axes beside `name`: whether values vary along that axis matters to their derivatives."""

    name: Any


def check_derivatives_in(values: Sequence[Any]) -> None:
    """NotImplementedError for a value that is the same along a checked axis (of shard_map).

    Its derivative is a sum over the axis, which reverse mode inside of the mapped function does not make.
    """
    for axis in [key.name for key in axis_env() if isinstance(key, CheckedAxis)]:
        for value in values:
            inner = value
            while inner is not None and not (isinstance(inner, BatchTracer) and inner.interpreter.axis.name == axis):
                inner = inner.beneath() if isinstance(inner, Tracer) else None
            if inner is None:
                raise NotImplementedError(
                    f"shard_map: a derivative, inside of the mapped function, in a value that is not known to differ "
                    f"along mesh axis {axis!r}: with check_vma=True it is the sum over the devices, which is not "
                    "supported. Differentiate outside of shard_map, or pass check_vma=False and use lax.psum"
                )


# ---------------------------------------------------------------------------------------------------- psum, pmax, pmin


def _reduced_avals(*avals, axes, axis_index_groups=None):
    _check_names(axes)
    return list(avals)


def check_groups(groups: Any, size: int) -> None:
    """ValueError unless the groups are of one size, and each place of an axis is in one of them."""
    if len({len(g) for g in groups}) != 1 or sorted(i for g in groups for i in g) != list(range(size)):
        raise ValueError(f"axis_index_groups={groups} must cover the axis of size {size} once, in groups of one size")


def _grouped(x: Any, groups: Any, here: Callable) -> Any:
    """`here` on the members of each group, [size of group, ...], the results where the members are."""
    check_groups(groups, x.shape[0])
    order = [i for g in groups for i in g]
    done = lax.concatenate([here(lax.stack([_member(x, i) for i in g])) for g in groups], 0)
    return lax.stack([_member(done, order.index(i)) for i in range(x.shape[0])])


def _member(x: Any, i: int) -> Any:
    return lax.index_in_dim(x, i, 0, keepdims=False)


def _for_all(x: Any, size: int) -> Any:
    """x for each of `size` places."""
    return lax.broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))


def _reducing(
    name: str, doc: str, primitive: Callable[[], Primitive], combine_unmapped: Callable, jvp: Any, transpose: Any
) -> Primitive:
    def batch_axis(axis, args, dims, *, axes, axis_index_groups=None):
        if axis.name not in axes:
            return p.bind(*args, axes=axes, axis_index_groups=axis_index_groups), dims
        if axis_index_groups is not None:
            return [
                _grouped(
                    batch_front(x, d, axis.size),
                    axis_index_groups,
                    lambda y: _for_all(primitive().bind(y, axes=(0,)), y.shape[0]),
                )
                for x, d in zip(args, dims)
            ], [0] * len(args)
        outs = [
            combine_unmapped(x, axis.size) if d is None else primitive().bind(x, axes=(d,)) for x, d in zip(args, dims)
        ]
        rest = tuple(a for a in axes if a != axis.name)
        return p.bind(*outs, axes=rest, axis_index_groups=None) if rest else outs, [None] * len(args)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=_reduced_avals,
        reference=_no_reference,
        jvp=jvp,
        transpose=transpose,
        batch_axis=batch_axis,
        batch=NoRule("it is batched with its axis"),
        lower=_NO_LOWERING,
        multiple_results=True,
        collective_axes=lambda params: params["axes"],
    )
    return p


def _psum_nonzero(values, avals, params):
    """psum of those that are not symbolic zeros, in one operation; zeros of the types of `avals` for the others."""
    summed = iter(psum_p.bind(*[v for v in values if not is_zero(v)], **params))
    return [tangent_zero(x) if is_zero(v) else next(summed) for v, x in zip(values, avals)]


def _psum_jvp(primals, tangents, **params):
    outs = psum_p.bind(*primals, **params)
    return outs, _psum_nonzero(tangents, outs, params)


def _psum_transpose(bars, *operands, **params):
    """Each cotangent is summed over the axis."""
    for name in params["axes"]:
        if CheckedAxis(name) in axis_env():
            raise NotImplementedError(
                f"shard_map: the derivative of psum over {name!r} inside of the mapped function is not supported with "
                "check_vma=True; differentiate outside of shard_map, or pass check_vma=False (then the derivative of "
                "psum is psum)"
            )
    return _psum_nonzero(bars, operands, params)


psum_p = _reducing(
    "psum",
    "Sums over named axes.",
    lambda: lax.reduce_sum_p,
    lambda x, n: lax.mul(x, constant(x, n)),
    _psum_jvp,
    _psum_transpose,
)
_NOT_DIFFERENTIABLE = NoRule("it has none in JAX either; use all_gather and a maximum or minimum")
pmax_p = _reducing(
    "pmax", "Maxima over named axes.", lambda: lax.reduce_max_p, lambda x, n: x, _NOT_DIFFERENTIABLE, NOT_LINEAR
)
pmin_p = _reducing(
    "pmin", "Minima over named axes.", lambda: lax.reduce_min_p, lambda x, n: x, _NOT_DIFFERENTIABLE, NOT_LINEAR
)


def _reduce(p: Primitive, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    axes, groups = _names(axis_name), _groups(axis_index_groups)
    if groups is not None and any(isinstance(a, int) for a in axes):
        raise ValueError(f"axis_index_groups only supported for sums over just named axes, got {axes}")
    leaves, treedef = pytree.tree_flatten(x)
    leaves = as_arrays(p.name, *leaves)
    leaves = [
        lax.convert_element_type(leaf, np.int32) if leaf.dtype == np.bool_ and p is psum_p else leaf for leaf in leaves
    ]
    positions = [a for a in axes if isinstance(a, int)]
    names = tuple(a for a in axes if not isinstance(a, int))
    if positions:  # over ordinary axes: an ordinary reduction
        local = {"psum": lax.reduce_sum_p, "pmax": lax.reduce_max_p, "pmin": lax.reduce_min_p}[p.name]
        leaves = [
            local.bind(leaf, axes=tuple(canonical_axis(a, leaf.ndim, p.name) for a in positions)) for leaf in leaves
        ]
    outs = p.bind(*leaves, axes=names, axis_index_groups=groups) if leaves and names else leaves
    return pytree.tree_unflatten(treedef, outs)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) and not isinstance(x, bool)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of the pytree x over named (and positional) axes; Python numbers are multiplied by the size of the axes.

    Raises NameError for an axis that is not there.
    """
    leaves, treedef = pytree.tree_flatten(x)
    if not any(isinstance(a, int) for a in _names(axis_name)) and any(map(_is_number, leaves)):
        groups = _groups(axis_index_groups)
        size = axis_size(axis_name) if groups is None else len(groups[0])
        summed = iter(_reduce(psum_p, [leaf for leaf in leaves if not _is_number(leaf)], axis_name, axis_index_groups))
        return pytree.tree_unflatten(treedef, [x * size if _is_number(x) else next(summed) for x in leaves])
    return _reduce(psum_p, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of the pytree x over named axes. Raises NameError for an axis that is not there."""
    names = tuple(a for a in _names(axis_name) if not isinstance(a, int))
    n = psum(1, names, axis_index_groups=axis_index_groups) if names else 1
    leaves, treedef = pytree.tree_flatten(x)
    leaves = as_arrays("pmean", *leaves)

    def mean(total, leaf):
        size = n * math.prod(leaf.shape[a] for a in _names(axis_name) if isinstance(a, int))
        if dtypes.kind_of(total.dtype) not in INEXACT:
            total = lax.convert_element_type(total, dtypes.to_inexact_dtype(total.dtype))
        return lax.div(total, constant(total, size))

    totals = _reduce(psum_p, leaves, axis_name, axis_index_groups)
    return pytree.tree_unflatten(treedef, list(map(mean, totals, leaves)))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum of the pytree x over named axes. Raises NameError for an axis that is not there."""
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum of the pytree x over named axes. Raises NameError for an axis that is not there."""
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


# -------------------------------------------------------------------------------------------- operations over one axis


def _single(
    name: str, doc: str, shape: Callable, elsewhere: Callable, here: Callable, transpose: Callable
) -> Primitive:
    """A linear operation across one named axis.

    `elsewhere(x, d, params) -> (params, out_dim)`: how parameters change when another axis `d` is batched. `here(x,
    size, params)`:
    the result, with the axis first, from the array with the axis first.
    """

    def abstract_eval(aval, *, axis_name, **params):
        _check_names(_names(axis_name))
        return ShapedArray(shape(aval, **params), aval.dtype, aval.weak_type)

    def batch_axis(axis, args, dims, *, axis_name, **params):
        (x,), (d,) = args, dims
        names = _names(axis_name)
        if axis.name not in names:
            if d is None:
                return p.bind(x, axis_name=axis_name, **params), None
            x = move_batch_axis(x, d, 0)
            changed = elsewhere(params)
            return p.bind(x, axis_name=axis_name, **changed), 0
        if len(names) > 1:
            raise NotImplementedError(f"{name} over several named axes at once is not supported, got {names}")
        x = batch_front(x, d, axis.size)
        if params.get("axis_index_groups") is None:
            return here(x, axis.size, params), 0
        groups = params["axis_index_groups"]
        return _grouped(x, groups, lambda part: here(part, len(groups[0]), params)), 0

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=_no_reference,
        transpose=transpose,
        batch_axis=batch_axis,
        batch=NoRule("it is batched with its axis"),
        lower=_NO_LOWERING,
        traits={"linear"},
        collective_axes=lambda params: _names(params["axis_name"]),
    )

    def jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        return out, tangent_zero(out) if is_zero(tangents[0]) else p.bind(*tangents, **params)

    p.jvp = jvp
    return p


def _plus_one(*keys):
    def change(params):
        return {k: v + 1 if k in keys else v for k, v in params.items()}

    return change


def _gather_shape(aval, *, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
    k = all_gather_dimension
    if tiled:
        return (*aval.shape[:k], aval.shape[k] * axis_size, *aval.shape[k + 1 :])
    return (*aval.shape[:k], axis_size, *aval.shape[k:])


def _gather_here(x, size, params):
    k = params["all_gather_dimension"]
    y = lax.transpose(x, (*range(1, k + 1), 0, *range(k + 1, x.ndim)))  # the gathered axis first -> at its place
    if params["tiled"]:
        y = lax.reshape(y, (*y.shape[:k], y.shape[k] * y.shape[k + 1], *y.shape[k + 2 :]))
    return _for_all(y, size)


def _gather_transpose(bar, x, *, all_gather_dimension, axis_name, axis_size, tiled, axis_index_groups=None):
    return [
        tangent_zero(x)
        if is_zero(bar)
        else reduce_scatter_p.bind(
            bar,
            axis_name=axis_name,
            scatter_dimension=all_gather_dimension,
            axis_size=axis_size,
            tiled=tiled,
            axis_index_groups=axis_index_groups,
        )
    ]


all_gather_p = _single(
    "all_gather",
    "All the values across a named axis.",
    _gather_shape,
    _plus_one("all_gather_dimension"),
    _gather_here,
    _gather_transpose,
)


def _scatter_shape(aval, *, scatter_dimension, axis_size, tiled, axis_index_groups=None):
    k = scatter_dimension
    if tiled:
        if aval.shape[k] % axis_size:
            raise ValueError(
                f"tiled reduce_scatter operand scatter dimension size {aval.shape[k]} must be divisible by "
                f"shard_count {axis_size}"
            )
        return (*aval.shape[:k], aval.shape[k] // axis_size, *aval.shape[k + 1 :])
    if aval.shape[k] != axis_size:
        raise ValueError(
            f"reduce_scatter operand scatter dimension size {aval.shape[k]} must match shard count {axis_size}"
        )
    return (*aval.shape[:k], *aval.shape[k + 1 :])


def _scatter_here(x, size, params):
    k, tiled = params["scatter_dimension"], params["tiled"]
    total = lax.reduce_sum(x, (0,))
    if tiled:
        total = lax.reshape(total, (*total.shape[:k], size, total.shape[k] // size, *total.shape[k + 1 :]))
    return lax.transpose(total, (k, *[i for i in range(total.ndim) if i != k]))


def _scatter_transpose(bar, x, *, scatter_dimension, axis_name, axis_size, tiled, axis_index_groups=None):
    return [
        tangent_zero(x)
        if is_zero(bar)
        else all_gather_p.bind(
            bar,
            axis_name=axis_name,
            all_gather_dimension=scatter_dimension,
            axis_size=axis_size,
            tiled=tiled,
            axis_index_groups=axis_index_groups,
        )
    ]


reduce_scatter_p = _single(
    "reduce_scatter",
    "Sums across a named axis, of which each place keeps one part.",
    _scatter_shape,
    _plus_one("scatter_dimension"),
    _scatter_here,
    _scatter_transpose,
)


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The values of the pytree x across a named axis, along a new axis or (tiled) one after the other. NameError for an
    unknown axis.
    """
    groups = _groups(axis_index_groups)
    size = axis_size(axis_name) if groups is None else len(groups[0])

    def one(leaf):
        return all_gather_p.bind(
            leaf,
            axis_name=_names(axis_name),
            all_gather_dimension=canonical_axis(axis, leaf.ndim + (not tiled), "all_gather"),
            axis_size=size,
            tiled=bool(tiled),
            axis_index_groups=groups,
        )

    return _on_leaves(one, x, "all_gather")


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """As psum, but each place keeps only its part along scatter_dimension. ValueError for sizes that don't fit."""
    groups = _groups(axis_index_groups)
    size = axis_size(axis_name) if groups is None else len(groups[0])
    return _on_leaves(
        lambda leaf: reduce_scatter_p.bind(
            leaf,
            axis_name=_names(axis_name),
            axis_size=size,
            tiled=bool(tiled),
            axis_index_groups=groups,
            scatter_dimension=canonical_axis(scatter_dimension, leaf.ndim, "psum_scatter"),
        ),
        x,
        "psum_scatter",
    )


# ------------------------------------------------------------------------------------------------------------ ppermute


def _permute_here(x, size, params):
    source = {dst: src for src, dst in params["perm"]}
    zeros = lax.full(x.shape[1:], constant(x, 0))
    return lax.stack([lax.index_in_dim(x, source[i], 0, keepdims=False) if i in source else zeros for i in range(size)])


ppermute_p = _single(
    "ppermute",
    "Values sent along a named axis.",
    lambda aval, *, perm: aval.shape,
    lambda params: params,
    _permute_here,
    lambda bar, x, *, axis_name, perm: [
        tangent_zero(x)
        if is_zero(bar)
        else ppermute_p.bind(bar, axis_name=axis_name, perm=tuple((dst, src) for src, dst in perm))
    ],
)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The pytree x sent from source to destination for each (source, destination) of `perm`; zeros where nothing
    arrives.

    Raises ValueError for sources or destinations that are given twice, NameError for an unknown axis.
    """
    perm = tuple((operator.index(a), operator.index(b)) for a, b in perm)
    n = axis_size(axis_name)
    if len({a for a, _ in perm}) != len(perm) or len({b for _, b in perm}) != len(perm):
        raise ValueError(f"ppermute: sources and destinations must be unique, got {perm}")
    if any(not (0 <= a < n and 0 <= b < n) for a, b in perm):
        raise ValueError(f"ppermute: sources and destinations must lie within the axis of size {n}, got {perm}")
    return _on_leaves(lambda leaf: ppermute_p.bind(leaf, axis_name=_names(axis_name), perm=perm), x, "ppermute")


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """`ppermute` by a permutation: place i gets the value of perm[i]. Raises ValueError for what is not a
    permutation.
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"pshuffle: perm must be a permutation, got {tuple(perm)}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one place everywhere along a named axis."""
    return pytree.tree_map(lambda leaf: lax.index_in_dim(all_gather(leaf, axis_name), source, 0, keepdims=False), x)


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """One half of a `ppermute`; not there on a CPU."""
    raise NotImplementedError("psend is not supported; use ppermute")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The other half of a `ppermute`; not there on a CPU."""
    raise NotImplementedError("precv is not supported; use ppermute")


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x, said to vary or not along a named axis; only shard_map tells the difference."""
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: argument 'to' must be 'varying', 'reduced' or 'unreduced', got {to!r}")
    return x


# ---------------------------------------------------------------------------------------------------------- all_to_all


def _exchange_shape(aval, *, split_axis, concat_axis, tiled, axis_size, axis_index_groups=None):
    shape = list(aval.shape)
    if tiled:
        if shape[split_axis] % axis_size:
            raise ValueError(
                f"all_to_all split_axis of size {shape[split_axis]} must be divisible by the size {axis_size} of the "
                f"named axis"
            )
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return tuple(shape)
    if shape[split_axis] != axis_size:
        raise ValueError(
            f"all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are "
            f"{axis_size} and "
            f"{shape[split_axis]} respectively."
        )
    del shape[split_axis]
    return (*shape[:concat_axis], axis_size, *shape[concat_axis:])


def _exchange_here(x, size, params):
    split, concat = params["split_axis"] + 1, params["concat_axis"]
    if params["tiled"]:
        shape = x.shape
        x = lax.reshape(x, (*shape[:split], size, shape[split] // size, *shape[split + 1 :]))
    # (source, ..., destination, ...) -> (destination, ..., source at the place of concat, ...)
    inner = [i for i in range(1, x.ndim) if i != split]
    order = [split, *inner[:concat], 0, *inner[concat:]]
    x = lax.transpose(x, order)
    if params["tiled"]:
        k = concat + 1
        x = lax.reshape(x, (*x.shape[:k], x.shape[k] * x.shape[k + 1], *x.shape[k + 2 :]))
    return x


def _exchange_transpose(bar, x, *, axis_name, split_axis, concat_axis, tiled, axis_size, axis_index_groups=None):
    return [
        tangent_zero(x)
        if is_zero(bar)
        else all_to_all_p.bind(
            bar,
            axis_name=axis_name,
            split_axis=concat_axis,
            concat_axis=split_axis,
            tiled=tiled,
            axis_size=axis_size,
            axis_index_groups=axis_index_groups,
        )
    ]


all_to_all_p = _single(
    "all_to_all",
    "Parts exchanged across a named axis.",
    _exchange_shape,
    _plus_one("split_axis", "concat_axis"),
    _exchange_here,
    _exchange_transpose,
)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Parts of the pytree x along split_axis go to the places of a named axis; what arrives is put together along
    concat_axis.

    Raises ValueError for sizes that don't fit, NameError for an unknown axis.
    """
    groups = _groups(axis_index_groups)
    n = axis_size(axis_name) if groups is None else len(groups[0])

    def one(leaf):
        return all_to_all_p.bind(
            leaf,
            axis_name=_names(axis_name),
            split_axis=canonical_axis(split_axis, leaf.ndim, "all_to_all"),
            concat_axis=canonical_axis(concat_axis, leaf.ndim, "all_to_all"),
            tiled=bool(tiled),
            axis_size=n,
            axis_index_groups=groups,
        )

    return _on_leaves(one, x, "all_to_all")


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and a positional one of the same size exchanged."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


ragged_all_to_all_p = Primitive(
    "ragged_all_to_all",
    doc="Ragged parts exchanged across a named axis.",
    abstract_eval=NoRule("it is not supported"),
    reference=NoRule("it is not supported"),
    jvp=NoRule("it is not supported"),
    transpose=NoRule("it is not supported"),
    batch=NoRule("it is not supported"),
    lower=_NO_LOWERING,
)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Ragged exchange across a named axis; not supported on a CPU, in JAX neither."""
    raise NotImplementedError("ragged_all_to_all is not supported on CPUs; use all_to_all with padded parts")


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
    reference=_no_reference,
    jvp=ZERO,
    transpose=NoRule("it has no operands"),
    batch=NoRule("it is batched with its axis"),
    batch_axis=_index_batch,
    lower=_NO_LOWERING,
    collective_axes=lambda params: (params["axis_name"],),
)


def axis_index(axis_name: Any) -> Array:
    """The place along a named axis, or along several in row-major order, as int32. Raises NameError for an unknown
    axis.
    """
    names = _names(axis_name)
    out = None
    for name in names:
        index = axis_index_p.bind(axis_name=name)
        out = index if out is None else lax.add(lax.mul(out, np.int32(_size_of(name))), index)
    return out
