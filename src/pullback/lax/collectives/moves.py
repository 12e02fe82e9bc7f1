"""Operations that move elements along a named axis: gathers, sums whose results are dealt out, permutations, exchanges.

Like the sums (collectives/sums.py) each becomes ordinary operations on the array that has the axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.primitive import registry
from pullback.core.types import checked_axes
from pullback.lax.collectives.sums import (
    NO_LOWERING,
    as_groups,
    axis_index_p,
    axis_size,
    check_names,
    for_all,
    grouped,
    names_of,
    no_reference,
    on_leaves,
    psum_invariant_p,
    with_terms,
)
from pullback.lax.records.families import *
from pullback.util import pytree

__all__ = [
    "all_gather",
    "all_gather_p",
    "all_to_all",
    "all_to_all_p",
    "pbroadcast",
    "ppermute",
    "ppermute_p",
    "precv",
    "psend",
    "pshuffle",
    "psum_scatter",
    "pswapaxes",
    "reduce_scatter_p",
]

Array = Any

# -------------------------------------------------------------------------------------------- operations over one axis


def _single(name: str, doc: str, shape: Callable, elsewhere: Callable, here: Callable, back: Callable) -> Primitive:
    """A linear operation across one named axis.

    `elsewhere(params)`: the parameters when another axis is batched and comes first. `here(x, size, params)`: the
    result, with the axis first, from the array with the axis first. `back(params)`: (primitive, parameters) of the
    transpose.
    """

    def abstract_eval(aval, *, axis_name, **params):
        check_names(names_of(axis_name))
        return ShapedArray(shape(aval, **params), aval.dtype, aval.weak_type)

    def batch_axis(axis, args, dims, *, axis_name, **params):
        (x,), (d,) = args, dims
        names = names_of(axis_name)
        if axis.name not in names:
            if d is None:
                return p.bind(x, axis_name=axis_name, **params), None
            x = move_batch_axis(x, d, 0)
            changed = elsewhere(params)
            return p.bind(x, axis_name=axis_name, **changed), 0
        x = batch_front(x, d, axis.size)
        if len(names) > 1:
            return _over_several(x, names, axis.name, lambda every, size: _here(every, size, params)), 0
        return _here(x, axis.size, params), 0

    def _here(x, size, params):
        if params.get("axis_index_groups") is None:
            return here(x, size, params)
        groups = params["axis_index_groups"]
        return grouped(x, groups, lambda part: here(part, len(groups[0]), params))

    def transpose(bar, x, **params):
        if is_zero(bar):
            return [tangent_zero(x)]
        primitive, changed = back(params)
        return [primitive.bind(bar, **changed)]

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=no_reference,
        transpose=transpose,
        batch_axis=batch_axis,
        batch=NoRule("it is batched with its axis"),
        lower=NO_LOWERING,
        traits={"linear"},
        collective_axes=lambda params: names_of(params["axis_name"]),
    )

    def jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        return out, tangent_zero(out) if is_zero(tangents[0]) else p.bind(*tangents, **params)

    p.jvp = jvp
    return p


def _over_several(x, names, name, here):
    """An operation over several axes, numbered with the last the fastest, of which `x` has one, `name`, in front: each
    place of the others gathers what they have, computes all results, and takes its own.
    """
    others = [n for n in names if n != name]
    for n in reversed(others):
        x = all_gather_p.bind(
            x, axis_name=(n,), all_gather_dimension=0, axis_size=axis_size(n), tiled=False, axis_index_groups=None
        )
    k, count = names.index(name), len(names)
    order = list(range(count - 1))
    order.insert(k, count - 1)
    sizes = [x.shape[d] for d in order]
    every = lax.reshape(lax.transpose(x, (*order, *range(count, x.ndim))), (math.prod(sizes), *x.shape[count:]))
    y = here(every, math.prod(sizes))
    y = lax.reshape(y, (*sizes, *y.shape[1:]))
    for d in reversed(range(count)):
        if d != k:
            y = lax.dynamic_index_in_dim(y, axis_index_p.bind(axis_name=names[d]), d, keepdims=False)
    return y


def _plus_one(*keys):
    def change(params):
        return {k: v + 1 if k in keys else v for k, v in params.items()}

    return change


def _renamed(params, old, new):
    return {new if k == old else k: v for k, v in params.items()}


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
    return for_all(y, size)


def _gather_back(params):
    return reduce_scatter_p, _renamed(params, "all_gather_dimension", "scatter_dimension")


all_gather_p = _single(
    "all_gather",
    "All the values across a named axis.",
    _gather_shape,
    _plus_one("all_gather_dimension"),
    _gather_here,
    _gather_back,
)


def _scatter_shape(aval, *, scatter_dimension, axis_size, tiled, axis_index_groups=None):
    k = scatter_dimension
    if tiled:
        if aval.shape[k] % axis_size:
            raise ValueError(
                f"psum_scatter: dimension {k} has {aval.shape[k]} elements, which do not divide into {axis_size} parts"
            )
        return (*aval.shape[:k], aval.shape[k] // axis_size, *aval.shape[k + 1 :])
    if aval.shape[k] != axis_size:
        raise ValueError(
            f"psum_scatter: dimension {k} has {aval.shape[k]} elements for {axis_size} places, but without tiled=True "
            "each place takes one"
        )
    return (*aval.shape[:k], *aval.shape[k + 1 :])


def _scatter_here(x, size, params):
    k, tiled = params["scatter_dimension"], params["tiled"]
    total = lax.reduce_sum(x, (0,))
    if tiled:
        total = lax.reshape(total, (*total.shape[:k], size, total.shape[k] // size, *total.shape[k + 1 :]))
    return lax.transpose(total, (k, *[i for i in range(total.ndim) if i != k]))


def _scatter_back(params):
    return all_gather_p, _renamed(params, "scatter_dimension", "all_gather_dimension")


reduce_scatter_p = _single(
    "reduce_scatter",
    "Sums across a named axis, of which each place keeps one part.",
    _scatter_shape,
    _plus_one("scatter_dimension"),
    _scatter_here,
    _scatter_back,
)


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The values of the pytree x across a named axis, along a new axis or (tiled) one after the other. NameError for an
    unknown axis.
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f"all_gather: argument 'to' must be 'varying', 'invarying' or 'reduced', got {to!r}")
    groups = as_groups(axis_index_groups)
    size = axis_size(axis_name) if groups is None else len(groups[0])

    def one(leaf):
        return all_gather_p.bind(
            leaf,
            axis_name=names_of(axis_name),
            all_gather_dimension=canonical_axis(axis, leaf.ndim + (not tiled), "all_gather"),
            axis_size=size,
            tiled=bool(tiled),
            axis_index_groups=groups,
        )

    gathered = on_leaves(one, x, "all_gather")
    return gathered if to == "varying" else _the_same(gathered, names_of(axis_name), to)


def _the_same(xs: Any, axes: tuple[Any, ...], to: str) -> Any:
    """What varies as types say, and is the same on all devices, as values of which types say that."""
    checked = tuple(axis for axis in axes if axis in checked_axes())
    if to == "reduced" and len(checked) < len(axes):
        raise ValueError(
            "all_gather: to='reduced' is for axes along which values vary by their types, those of a shard_map with "
            f"check_vma=True, got {axes}"
        )
    cast = {"axes": checked, "source": "varying", "to": to}
    return pytree.tree_map(lambda x: registry["state_cast"].bind(x, **cast), xs) if checked else xs


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """As psum, but each place keeps only its part along scatter_dimension. ValueError for sizes that don't fit."""
    groups = as_groups(axis_index_groups)
    size = axis_size(axis_name) if groups is None else len(groups[0])
    return on_leaves(
        lambda leaf: reduce_scatter_p.bind(
            with_terms(leaf, names_of(axis_name)),
            axis_name=names_of(axis_name),
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
    rows = [lax.index_in_dim(x, i, 0, keepdims=False) for i in range(size)]
    return lax.stack([rows[source[i]] if i in source else lax.full_like(rows[i], 0) for i in range(size)])


ppermute_p = _single(
    "ppermute",
    "Values sent along a named axis.",
    lambda aval, *, perm: aval.shape,
    lambda params: params,
    _permute_here,
    lambda params: (ppermute_p, params | {"perm": tuple((dst, src) for src, dst in params["perm"])}),
)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The pytree x sent from source to destination for each (source, destination) of `perm`; zeros where nothing
    arrives.

    Raises ValueError for sources or destinations that are given twice, NameError for an unknown axis.
    """
    perm = tuple((operator.index(a), operator.index(b)) for a, b in perm)
    n = axis_size(axis_name)
    if len({a for a, _ in perm}) != len(perm) or len({b for _, b in perm}) != len(perm):
        raise ValueError(f"ppermute: a source or a destination is given twice in perm={perm}")
    if any(not (0 <= a < n and 0 <= b < n) for a, b in perm):
        raise ValueError(f"ppermute: sources and destinations must lie within the axis of size {n}, got {perm}")
    return on_leaves(lambda leaf: ppermute_p.bind(leaf, axis_name=names_of(axis_name), perm=perm), x, "ppermute")


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """`ppermute` by a permutation: place i gets the value of perm[i]. Raises ValueError for what is not a
    permutation.
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one place everywhere along a named axis."""
    return pytree.tree_map(lambda leaf: lax.index_in_dim(all_gather(leaf, axis_name), source, 0, keepdims=False), x)


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """One half of a `ppermute`; not available on a CPU."""
    raise NotImplementedError("psend is not supported; use ppermute")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The other half of a `ppermute`; not available on a CPU."""
    raise NotImplementedError("precv is not supported; use ppermute")


def _sum_cotangents(bar: Any, x: Any, *, axes: Any) -> list[Any]:
    """A value that is the same on all devices, and is used by each, has the sum of their cotangents."""
    return [bar] if is_zero(bar) else psum_invariant_p.bind(bar, axes=axes)


def _vary_type(aval: Any, *, axes: tuple[Any, ...]) -> Any:
    check_names(axes)
    return aval


def _vary_jvp(primals: Any, tangents: Any, *, axes: tuple[Any, ...]) -> Any:
    out = pvary_p.bind(*primals, axes=axes)
    return out, tangent_zero(out) if is_zero(tangents[0]) else pvary_p.bind(*tangents, axes=axes)


def _vary_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    rest = tuple(name for name in axes if name != axis.name)
    return pvary_p.bind(*args, axes=rest) if rest else args[0], dims[0]


pvary_p = Primitive(
    "pvary",
    doc="A value that is the same along axes of shard_map, as one that varies.",
    abstract_eval=_vary_type,
    reference=no_reference,
    jvp=_vary_jvp,
    transpose=_sum_cotangents,
    batch=NoRule("it is batched with its axis"),
    batch_axis=_vary_batch,
    lower=NO_LOWERING,
    collective_axes=lambda params: params["axes"],
)


# ---------------------------------------------------------------------------------------------------------- all_to_all


def _exchange_shape(aval, *, split_axis, concat_axis, tiled, axis_size, axis_index_groups=None):
    shape = list(aval.shape)
    if tiled:
        if shape[split_axis] % axis_size:
            raise ValueError(
                f"all_to_all: axis {split_axis} (split_axis) has {shape[split_axis]} elements, which do not divide "
                f"into {axis_size} parts"
            )
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return tuple(shape)
    if shape[split_axis] != axis_size:
        raise ValueError(
            f"all_to_all: the size of the mapped axis is {axis_size}, but axis {split_axis} (split_axis) has "
            f"{shape[split_axis]} elements; tiled=True takes a multiple"
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


def _exchange_back(params):
    return all_to_all_p, params | {"split_axis": params["concat_axis"], "concat_axis": params["split_axis"]}


all_to_all_p = _single(
    "all_to_all",
    "Parts exchanged across a named axis.",
    _exchange_shape,
    _plus_one("split_axis", "concat_axis"),
    _exchange_here,
    _exchange_back,
)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Parts of the pytree x along split_axis go to the places of a named axis; what arrives is put together along
    concat_axis.

    Raises ValueError for sizes that don't fit, NameError for an unknown axis.
    """
    groups = as_groups(axis_index_groups)
    n = axis_size(axis_name) if groups is None else len(groups[0])
    names = names_of(axis_name)
    name = names[0] if len(names) == 1 else names  # as JAX shows it

    def one(leaf):
        places = {
            "split_axis": canonical_axis(split_axis, leaf.ndim, "all_to_all"),
            "concat_axis": canonical_axis(concat_axis, leaf.ndim, "all_to_all"),
            "tiled": bool(tiled),
            "axis_size": n,
        }
        _exchange_shape(leaf, **places)  # under vmap nothing else asks for the shape, and checks sizes
        return all_to_all_p.bind(leaf, axis_name=name, axis_index_groups=groups, **places)

    return on_leaves(one, x, "all_to_all")


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and a positional one of the same size exchanged."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
