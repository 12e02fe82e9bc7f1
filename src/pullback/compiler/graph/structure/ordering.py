"""Few elements of what was sorted: they are selected, which takes time in proportion to the number of elements.

    b = sort x; c = b[500:502]         =>      c = order_statistics[places=(500, 501)] x
    b = partition[kth=500] x; c = b[500:501]
    b = sort x; c, d = b[49:50], b[949:950]: the elements of both by one order_statistics
    order_statistics[places=(1, 2)] x and [places=(5,)] x: quantiles one after the other, all by one
    b = partition x, of short rows     =>      b = sort x, which is a partition, too; likewise argpartition
    _, b = sort x, iota; c = b[:10]    =>      _, c = top_k[k=10] keys, which are the larger, the smaller x is
    _, b = sort x, iota; c = b[-10:]   =>      the same of x reversed, whose last ones come first
    c = sort(x)[::-1][:10]             =>      the elements at such places; so is what is sorted in the order of x
    y, b = sort x, iota; c = x[b]      =>      c = y: what is sorted, taken in its order, also along an axis
    _, b = approx_min_k x              =>      _, b = top_k keys, as well
    y, _ = sort x, z                   =>      y = sort x
    _, b = sort x, iota; _, c = sort b, z  =>  c[b] = z: the order of an order puts each element in its place
    k, b = sort mask, iota             =>      b[where(mask, count of others + place, place) - those before] = iota
    along an axis of one element       =>      x; places are 0

Only where nothing else reads what was sorted. Elements and places are those of before, bit for bit: equal elements come
as they lie, NaN comes last, and zeros keep their signs.

Up to four elements of long rows are selected by their places. Measured: `partition(x, k)[k]` of 1e6 took 6.9 ms on one
core, now 1.9, as the median does. Of 2000 rows of 500, `argsort(x)[:, -1]` took 2.3 ms and `argsort(-x)[:, 0]` 1.9, now
0.07 and 0.05; ranks by `argsort(argsort(x))` of 200 rows of 301 455 us, now 327; the places of the 100 largest of
100,000 620 us, now 70. `approx_min_k`, which ran on the host, takes 270 us for 5 of 501 distances of 700 points, before
4,500. The order of 30,000 truths takes 30 us by counting, 150 by a call, of 1,000,000 0.62 and 3.6 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.facts import counts_along
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode
from pullback.lax.movement.scatter import ScatterDimensionNumbers
from pullback.lax.ordering.row_calls import KINDS
from pullback.util import dtypes

FEW_SELECTED = 4  # elements along the sorted axis
MAX_SORTED = 1 << 12  # elements along it, up to which selecting is sorting
# Elements of a row from which on top_k is quicker, and of how many of a row one is looked for at most: measured, of
# rows sorted by themselves and of those that others follow. One element is a reduction.
LEAST_PLACED = 32  # elements of a row from which on sorting it takes longer than putting each at its place
LEAST_COUNTED = 1 << 9  # elements of a row from which on it is worth counting those that are not so
ALONE, FOLLOWED = (1 << 10, 16), (1 << 8, 8)


def _selected(r: Rewriter, eqn: JaxprEqn) -> Any:
    sorted_ = eqn.invars[0]
    made = r.definition(sorted_, "sort", "partition")
    if made is None or len(made.invars) > 1 or eqn.params["strides"] is not None:
        return None
    x = made.invars[0]
    if ir_dtype(x.aval.dtype) not in KINDS:
        return None
    low, high = list(eqn.params["start_indices"]), list(eqn.params["limit_indices"])
    if made.primitive.name == "sort":
        axis = made.params["dimension"]
        wanted = _places_read(r, sorted_, axis)
        if not 0 < len(wanted) <= FEW_SELECTED or x.aval.shape[axis] <= MAX_SORTED or low[axis] == high[axis]:
            return None
    else:
        axis = made.params["axis"]
        wanted = (made.params["kth"],)
        if not _is_read_at(r, sorted_, made):
            return None
    found = r.emit("order_statistics", x, places=wanted, axis=axis)
    first = wanted.index(low[axis])
    low[axis], high[axis] = first, first + high[axis] - low[axis]
    if found.aval.shape == eqn.outvars[0].aval.shape:
        return found
    return r.emit("slice", found, start_indices=tuple(low), limit_indices=tuple(high), strides=None)


def _together(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The elements at some places of what others are selected from as well: all by one."""
    x, axis, places = eqn.invars[0], eqn.params["axis"], eqn.params["places"]
    if isinstance(x, Literal):
        return None
    same = [
        each.params["places"]
        for each in r.readers.get(x, ())
        if each.primitive is eqn.primitive and each.params["axis"] == axis and each.invars[0] is x
    ]
    every = tuple(sorted({place for those in same for place in those}))
    if len(same) < 2 or places not in same or places == every:
        return None
    made = r.notes.setdefault("selected together", {})
    if (x, axis) not in made:
        made[x, axis] = r.emit(eqn.primitive, x, places=every, axis=axis)
    parts = []
    for place in places:
        low, high = [0] * x.aval.ndim, list(made[x, axis].aval.shape)
        low[axis] = every.index(place)
        high[axis] = low[axis] + 1
        part = r.emit("slice", made[x, axis], start_indices=tuple(low), limit_indices=tuple(high), strides=None)
        parts.append(part)
    return parts[0] if len(parts) == 1 else r.emit("concatenate", *parts, dimension=axis)


def _places_read(r: Rewriter, sorted_: Any, axis: int) -> tuple[int, ...]:
    """The places along an axis at which an array is read; none if it is read otherwise than in few, by slices."""
    readers = r.readers.get(sorted_, ())
    found: set[int] = set()
    for eqn in readers:
        if eqn.primitive.name != "slice" or eqn.params["strides"] is not None or len(found) > FEW_SELECTED:
            return ()
        first, last = eqn.params["start_indices"][axis], eqn.params["limit_indices"][axis]
        found |= set(range(first, min(last, first + FEW_SELECTED + 1)))
    return tuple(sorted(found)) if len(readers) == r.uses[sorted_] else ()


def _is_read_at(r: Rewriter, parted: Any, made: JaxprEqn) -> bool:
    """Whether of a partition nothing is read but the element at its place."""
    return _places_read(r, parted, made.params["axis"]) == (made.params["kth"],)


def _sorted(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Partitions of short rows, of which their sorts are some."""
    x, axis = eqn.invars[0], eqn.params["axis"]
    if x.aval.shape[axis] > MAX_SORTED or ir_dtype(x.aval.dtype) not in KINDS:
        return None
    params = {"dimension": axis, "is_stable": True, "num_keys": 1}
    if eqn.primitive.name == "partition":
        return None if _is_read_at(r, eqn.outvars[0], eqn) else r.emit("sort", x, **params)[0]
    places = r.emit("iota", dtype=np.dtype(np.int32), shape=x.aval.shape, dimension=axis, sharding=None)
    return r.emit("sort", x, places, **params)[1]


def _ends(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The first or the last elements of what was sorted, or sorted and turned around."""
    turned = r.definition(eqn.invars[0], "rev")
    sorted_ = eqn.invars[0] if turned is None else turned.invars[0]
    made = r.definition(sorted_, "sort")
    if made is None or made.params["num_keys"] != 1 or ir_dtype(made.invars[0].aval.dtype) not in KINDS:
        return None
    axis, x = made.params["dimension"], made.invars[0]
    if not _is_read_at_ends(r, made) or (turned is not None and tuple(turned.params["dimensions"]) != (axis,)):
        return None
    n, low, high = x.aval.shape[axis], list(eqn.params["start_indices"]), list(eqn.params["limit_indices"])
    is_last = (n - low[axis] < high[axis]) != (turned is not None)
    k = min(n - low[axis], high[axis])
    keys = _keys(r, r.emit("rev", x, dimensions=(axis,)) if is_last else x, falls=not is_last)
    _, places = r.emit("top_k", keys, k=k, axis=axis)
    if is_last:
        places = r.emit("sub", r.full(places.aval, n - 1), places)
    # Places go on from the end that they are counted from; what is read goes on as it was read.
    found = _taken(r, made.invars[[v is sorted_ for v in made.outvars].index(True)], places, axis)
    if is_last == (turned is None):
        found = r.emit("rev", found, dimensions=(axis,))
    if n - low[axis] < high[axis]:
        low[axis], high[axis] = low[axis] - (n - k), high[axis] - (n - k)
    return r.emit(
        "slice",
        found,
        start_indices=tuple(low),
        limit_indices=tuple(high),
        strides=eqn.params["strides"],
    )


def _in_order(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What was sorted itself, taken at the places that its order gives: it is there already."""
    x, indices = eqn.invars
    places = _plain(r, indices)
    made = None if places is None else r.definition(places, "sort")
    if made is None or not any(x is each for each in made.invars) or eqn.outvars[0].aval.shape != x.aval.shape:
        return None
    axis, ndim = made.params["dimension"], x.aval.ndim
    others = tuple(d for d in range(ndim) if d != axis)
    n = eqn.params["dimension_numbers"]
    wanted = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    if n != wanted or tuple(eqn.params["slice_sizes"]) != (1,) * ndim:
        return None
    counted = made.invars[[v is places for v in made.outvars].index(True)]
    if counts_along(r, counted) != axis:
        return None
    return made.outvars[[each is x for each in made.invars].index(True)]


def _plain(r: Rewriter, places: Any) -> Any:
    """Places without what is done in case that they count from the end, or are too large, which no order's do."""
    while (made := r.definition(places, "select_n", "reshape", "convert_element_type")) is not None:
        if made.primitive.name == "select_n":
            below = r.definition(made.invars[0], "lt")
            if below is None or len(made.invars) != 3 or below.invars[0] is not made.invars[1]:
                return None
            if not r.is_scalar(below.invars[1], 0):
                return None
            places = made.invars[1]
        elif (
            made.invars[0].aval.dtype.kind not in "iu"
            or made.invars[0].aval.dtype.itemsize > places.aval.dtype.itemsize
        ):
            return None
        else:
            places = made.invars[0]
    return places


def _single(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Orders along an axis of one element, or of none."""
    axis = eqn.params["dimension"] if eqn.primitive.name == "sort" else eqn.params["axis"]
    x = eqn.invars[0]
    if isinstance(x, Literal) or x.aval.shape[axis] > 1:
        return None
    if eqn.primitive.name == "sort":
        return list(eqn.invars)
    if any(out.aval.shape != x.aval.shape for out in eqn.outvars):
        return None
    results = [r.full(out.aval, 0) for out in eqn.outvars]
    if eqn.primitive.name != "argpartition":
        results[0] = x
    return results[0] if len(results) == 1 else results


def _inverse(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What is put in the order of some order, each element at its place: no two have one."""
    places, *others = eqn.invars
    axis, aval = eqn.params["dimension"], places.aval
    if eqn.params["num_keys"] != 1 or not others or aval.shape[axis] < LEAST_PLACED or not _is_order(r, places, axis):
        return None
    found = [_put(r, places, v, axis) for v in others]
    return [r.emit("iota", dtype=aval.dtype, shape=aval.shape, dimension=axis, sharding=None), *found]


def _put(r: Rewriter, places: Any, values: Any, axis: int) -> Any:
    """Values, each at its place along an axis: no two have one."""
    shape = places.aval.shape
    rest = tuple(d for d in range(len(shape)) if d != axis)
    return r.emit(
        "scatter", r.full(values.aval, 0), r.reshape(places, (*shape, 1)), values,
        dimension_numbers=ScatterDimensionNumbers((), (axis,), (axis,), rest, rest), indices_are_sorted=False,
        unique_indices=True, mode=GatherScatterMode.PROMISE_IN_BOUNDS, update_jaxpr=None, update_consts=(),
    )  # fmt: skip


def _of_truths(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What is sorted by whether something is so: what is not comes first, each at the place that counts say."""
    keys, *others = eqn.invars
    axis, shape = eqn.params["dimension"], keys.aval.shape
    if keys.aval.dtype != np.bool_ or eqn.params["num_keys"] != 1 or not LEAST_COUNTED <= shape[axis] < 1 << 31:
        return None
    if not all(isinstance(v.aval.dtype, np.dtype) for v in others):
        return None
    first = r.emit("cumsum", r.convert(r.emit("not", keys), np.dtype(np.int32)), axis=axis, reverse=False)
    low, high = [0] * len(shape), list(shape)
    low[axis] = shape[axis] - 1
    many = r.emit("slice", first, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
    kept = [d for d in range(len(shape)) if d != axis]
    many = r.broadcast(r.reshape(many, [shape[d] for d in kept]), shape, kept)
    place = r.emit("iota", dtype=np.dtype(np.int32), shape=shape, dimension=axis, sharding=None)
    so = r.emit("sub", r.emit("add", many, place), first)
    places = r.emit("select_n", keys, r.emit("sub", first, r.full(first.aval, 1)), so)
    return [r.emit("ge", place, many), *(_put(r, places, v, axis) for v in others)]


def _is_order(r: Rewriter, places: Any, axis: int) -> bool:
    """Whether the elements along an axis are all its indices, each once: indices that were sorted along with others."""
    plain = _plain(r, places)
    while plain is not None and plain.aval.shape == places.aval.shape and plain.aval.dtype.kind in "iu":
        made = r.definition(plain, "sort")
        if made is None or made.params["dimension"] != axis:
            return False
        plain = made.invars[[v is plain for v in made.outvars].index(True)]
        if counts_along(r, plain) == axis:
            return np.iinfo(places.aval.dtype).max >= places.aval.shape[axis] - 1
    return False


def _followed(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sort without the operands that follow its keys in vain."""
    keys = eqn.params["num_keys"]
    wanted = [k for k, v in enumerate(eqn.outvars) if k < keys or r.uses[v]]
    if len(wanted) == len(eqn.outvars) or not any(r.uses[v] for v in eqn.outvars):  # none: made by another rule
        return None
    found = dict(zip(wanted, r.emit("sort", *(eqn.invars[k] for k in wanted), **eqn.params)))
    return [found.get(k, eqn.invars[k]) for k in range(len(eqn.outvars))]


def _is_read_at_ends(r: Rewriter, made: JaxprEqn) -> bool:
    """Whether nothing reads what was sorted but for few of its first and last elements, also behind reversals."""
    axis = made.params["dimension"]
    n = made.outvars[0].aval.shape[axis]
    shortest, part = ALONE if len(made.invars) == 1 else FOLLOWED
    waiting = list(made.outvars)
    while waiting:
        var = waiting.pop()
        readers = r.readers.get(var, ())
        if len(readers) != r.uses[var]:
            return False
        for eqn in readers:
            if eqn.primitive.name == "rev":
                waiting += eqn.outvars
                continue
            if eqn.primitive.name != "slice" or not eqn.outvars[0].aval.size:
                return False
            k = min(n - eqn.params["start_indices"][axis], eqn.params["limit_indices"][axis])
            if k > 1 and (n < shortest or k * part > n):
                return False
    return True


def _keys(r: Rewriter, x: Any, falls: bool) -> Any:
    """Whole numbers or bools in the order that sorting puts elements in; if it `falls`, the first is the largest."""
    if dtypes.kind_of(x.aval.dtype) == "f":
        missing = r.emit("ne", x, x)
        x = r.emit("select_n", r.emit("eq", x, r.full(x.aval, 0)), x, r.full(x.aval, 0))  # zeros are equal
        x = r.emit("select_n", missing, x, r.full(x.aval, np.nan))  # and so is what is no number
        x = _total_order(r, x)
    return r.emit("not", x) if falls else x


def _total_order(r: Rewriter, x: Any) -> Any:
    """Whole numbers in the total order of floats."""
    bits = r.emit("bitcast_convert_type", x, new_dtype=np.dtype(f"int{8 * x.aval.dtype.itemsize}"))
    other = r.emit("xor", bits, r.full(bits.aval, np.iinfo(bits.aval.dtype).max))
    return r.emit("select_n", r.emit("lt", bits, r.full(bits.aval, 0)), bits, other)


def largest_by_keys(r: Rewriter, eqn: JaxprEqn) -> list[Any]:
    """top_k of floats, by that of whole numbers."""
    x = eqn.invars[0]
    _, places = r.emit("top_k", _total_order(r, x), **eqn.params)
    return [_taken(r, x, places, eqn.params["axis"] % x.aval.ndim), places]


def _smallest(r: Rewriter, eqn: JaxprEqn) -> list[Any] | None:
    """approx_min_k, all of which a CPU finds: the largest by keys that fall."""
    if eqn.params["is_max_k"]:
        return None
    x, axis = eqn.invars[0], eqn.params["reduction_dimension"] % eqn.invars[0].aval.ndim
    _, places = r.emit("top_k", _keys(r, x, True), k=eqn.outvars[0].aval.shape[axis], axis=axis)
    return [_taken(r, x, places, axis), places]


def _taken(r: Rewriter, x: Any, places: Any, axis: int) -> Any:
    """The elements of x at places along an axis; of an index along it the places themselves."""
    if dtypes.kind_of(x.aval.dtype) in "iu":
        if counts_along(r, x) == axis:
            return _as(r, places, x.aval.dtype)
        turned = r.definition(x, "rev")
        if turned is not None and tuple(turned.params["dimensions"]) == (axis,):
            if counts_along(r, turned.invars[0]) == axis:
                last = r.full(places.aval, x.aval.shape[axis] - 1)
                return _as(r, r.emit("sub", last, places), x.aval.dtype)
    others = tuple(d for d in range(x.aval.ndim) if d != axis)
    return r.emit(
        "gather",
        x,
        r.reshape(places, (*places.aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * x.aval.ndim,
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _as(r: Rewriter, x: Any, dtype: Any) -> Any:
    return x if isinstance(x, Literal) else r.convert(x, dtype)


ORDER_RULES: dict[str, tuple[Rule, ...]] = {
    "slice": (_selected, _ends),
    "gather": (_in_order,),
    "order_statistics": (_single, _together),
    "sort": (_single, _followed, _inverse, _of_truths),
    "top_k": (_single,),
    "approx_top_k": (_smallest,),
    "partition": (_single, _sorted),
    "argpartition": (_single, _sorted),
}
