"""Algebra on operations that move elements, and on reductions: the part of the table of simplify.py for these.

    transpose(transpose(x))        one transpose
    slice(broadcast(number))       a broadcast
    sum(broadcast(x))              x times a count, where that is exact

A rule gives the atom that takes the place of an equation's result, or None where it has nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, same_type
from pullback.core.jaxpr import JaxprEqn, Literal

FEW_SUMMED = 16  # elements of a sum whose order is not asked for


def _broadcast(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, shape, dims = eqn.invars[0], eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if x.aval.shape == tuple(shape) and tuple(dims) == tuple(range(len(shape))):
        return x
    if x.aval.ndim and x.aval.size == eqn.outvars[0].aval.size:
        return r.reshape(x, shape)
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None:
        return r.broadcast(inner.invars[0], shape, [dims[d] for d in inner.params["broadcast_dimensions"]])
    inner = r.definition(x, "reshape", "squeeze")
    if inner is not None and is_plain(inner):
        kept = _matching(inner.invars[0].aval.shape, x.aval.shape)
        if kept is not None:
            return r.broadcast(inner.invars[0], shape, [dims[d] for d in kept])
    return None


def _matching(small: Sequence[int], big: Sequence[int]) -> list[int] | None:
    """The dimensions of `big` that those of `small` are, where `big` has only sizes 1 more; None otherwise."""
    found: list[int] = []
    position = 0
    for n in small:
        while position < len(big) and big[position] != n and big[position] == 1:
            position += 1
        if position == len(big) or big[position] != n:
            return None
        found.append(position)
        position += 1
    return found if all(n == 1 for n in big[position:]) else None


def is_plain(eqn: JaxprEqn) -> bool:
    """Whether a reshape takes elements in their order, not in one of its own."""
    return eqn.params.get("dimensions") is None or eqn.primitive.name == "squeeze"


def _reshape(r: Rewriter, eqn: JaxprEqn) -> Any:
    if not is_plain(eqn):
        return None
    x, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    if x.aval.shape == shape:
        return x
    inner = r.definition(x, "reshape", "squeeze", "expand_dims")
    if inner is not None and is_plain(inner):
        return r.reshape(inner.invars[0], shape)
    converted = r.definition(x, "convert_element_type")
    inner = None if converted is None else r.definition(converted.invars[0], "reshape")
    if converted is not None and inner is not None and is_plain(inner):  # with nothing left between both reshapes
        return r.emit("convert_element_type", r.reshape(inner.invars[0], shape), **converted.params)
    splat = r.splat(x) if x.aval.shape else None
    if splat is not None and shape:
        return r.broadcast(splat, shape, ())
    wide = r.definition(x, "broadcast_in_dim")
    return None if wide is None else _of_broadcast(r, wide, shape)


def _of_broadcast(r: Rewriter, wide: JaxprEqn, shape: tuple[int, ...]) -> Any:
    """A broadcast array in a shape in which only axes of size 1 come or go, as a broadcast: such are tiled rows."""
    source, dims, was = wide.invars[0], wide.params["broadcast_dimensions"], wide.outvars[0].aval.shape
    before, after = ([d for d, n in enumerate(each) if n != 1] for each in (was, shape))
    if [was[d] for d in before] != [shape[d] for d in after]:
        return None
    place = dict(zip(before, after))
    kept = [a for a, d in enumerate(dims) if d in place]
    if len(kept) < len(dims):
        source = r.reshape(source, [source.aval.shape[a] for a in kept])
    return r.broadcast(source, shape, [place[dims[a]] for a in kept])


def _squeeze(r: Rewriter, eqn: JaxprEqn) -> Any:
    return r.reshape(eqn.invars[0], eqn.outvars[0].aval.shape)


def _transpose(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, permutation = eqn.invars[0], eqn.params["permutation"]
    shape = x.aval.shape
    if tuple(permutation) == tuple(range(len(permutation))):
        return x
    real = [a for a in permutation if shape[a] != 1]
    if real == sorted(real):  # only axes of size 1 move
        return r.reshape(x, eqn.outvars[0].aval.shape)
    inner = r.definition(x, "transpose")
    if inner is not None:
        return r.emit(
            "transpose", inner.invars[0], permutation=tuple(inner.params["permutation"][a] for a in permutation)
        )
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None:
        place = {a: d for d, a in enumerate(permutation)}
        dims = [place[d] for d in inner.params["broadcast_dimensions"]]
        if dims == sorted(dims):
            return r.broadcast(inner.invars[0], eqn.outvars[0].aval.shape, dims)
    return None


def _slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return x
    splat = r.splat(x)
    return None if splat is None else r.broadcast(splat, eqn.outvars[0].aval.shape, ())


def _rev(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    if all(x.aval.shape[d] == 1 for d in eqn.params["dimensions"]) or r.splat(x) is not None:
        return x
    return None


def _split(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axis = eqn.invars[0], eqn.params["axis"]
    parts, start = [], 0
    for size in eqn.params["sizes"]:
        low = [0] * x.aval.ndim
        high = list(x.aval.shape)
        low[axis], high[axis] = start, start + size
        start += size
        parts.append(r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None))
    return parts


def _unstack(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axis = eqn.invars[0], eqn.params["axis"]
    parts = []
    for k, out in enumerate(eqn.outvars):
        low = [0] * x.aval.ndim
        high = list(x.aval.shape)
        low[axis], high[axis] = k, k + 1
        parts.append(
            r.reshape(
                r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None), out.aval.shape
            )
        )
    return parts


def _concatenate(r: Rewriter, eqn: JaxprEqn) -> Any:
    parts = [a for a in eqn.invars if a.aval.size or not eqn.outvars[0].aval.size]
    if len(parts) == 1:
        return parts[0]
    if len(parts) < len(eqn.invars):
        return r.emit("concatenate", *parts, **eqn.params)
    return None


def _pad(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, value = eqn.invars
    if all(tuple(c) == (0, 0, 0) for c in eqn.params["padding_config"]):
        return x
    splat = r.splat(x)
    if x.aval.size == 0 or (splat is not None and _equal(splat, value)):
        return r.broadcast(value, eqn.outvars[0].aval.shape, ())
    return None


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if not (isinstance(a, Literal) and isinstance(b, Literal)):
        return False
    return np.asarray(a.val).tobytes() == np.asarray(b.val).tobytes()


def _dynamic_slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, *starts = eqn.invars
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return x
    values = [r.scalar(s) for s in starts]
    if any(v is None for v in values):
        return None
    sizes = eqn.outvars[0].aval.shape
    low = [min(max(int(v), 0), n - m) for v, n, m in zip(values, x.aval.shape, sizes)]
    return r.emit(
        "slice", x, start_indices=tuple(low), limit_indices=tuple(s + m for s, m in zip(low, sizes)), strides=None
    )


def _dynamic_update_slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, update = eqn.invars[:2]
    return update if x.aval.shape == update.aval.shape else None


def _reduce_sum(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axes, out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if not axes or all(x.aval.shape[a] == 1 for a in axes):
        return r.reshape(x, out.shape)
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None and out.dtype.kind in "iuf":
        dims = inner.params["broadcast_dimensions"]
        source = inner.invars[0]
        repeated = [a for a in axes if a not in dims or source.aval.shape[dims.index(a)] == 1]
        count = math.prod(x.aval.shape[a] for a in repeated)
        exact = (
            out.dtype.kind in "iu" or count <= 2 ** np.finfo(np.float16 if out.dtype.itemsize == 2 else out.dtype).nmant
        )
        if repeated and exact and count:
            shape = [n for a, n in enumerate(x.aval.shape) if a not in repeated]
            kept = [a for a in range(x.aval.ndim) if a not in repeated]
            ones = [d for d, a in enumerate(dims) if a in repeated]
            if ones:
                source = r.reshape(source, [n for d, n in enumerate(source.aval.shape) if d not in ones])
                dims = tuple(a for a in dims if a not in repeated)
            part = r.broadcast(source, shape, [kept.index(a) for a in dims])
            factor = Literal(np.asarray(count).astype(out.dtype)[()], out.update(shape=()))
            rest = [kept.index(a) for a in axes if a not in repeated]
            total = r.emit("reduce_sum", part, axes=tuple(rest)) if rest else part
            return r.emit("mul", total, factor)
    inner = r.definition(x, "neg")
    return None if inner is None else r.emit("neg", r.emit("reduce_sum", inner.invars[0], axes=axes))


def _reduce_again(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A reduction of a reduction is one over the axes of both, where the order does not matter: of sums few elements,
    since those of floats may be rounded otherwise. Axes may be taken apart in between.
    """
    name, between = eqn.primitive.name, r.definition(eqn.invars[0], "reshape")
    inner = r.definition(eqn.invars[0] if between is None else between.invars[0], name)
    if inner is None:
        return None
    x, axes = inner.invars[0], inner.params["axes"]
    if name == "reduce_sum":
        twice = [math.prod(e.invars[0].aval.shape[a] for a in e.params["axes"]) for e in (inner, eqn)]
        if max(twice) > FEW_SUMMED or r.uses[eqn.invars[0]] > 1:
            return None
    left = [a for a in range(x.aval.ndim) if a not in axes]
    if between is not None:
        parts = _taken_apart([x.aval.shape[a] for a in left], between.outvars[0].aval.shape)
        if parts is None:
            return None
        shape: list[int] = []
        places, left = [], []
        for a, n in enumerate(x.aval.shape):
            if a in axes:
                places.append(len(shape))
                shape.append(n)
                continue
            each = parts.pop(0)
            left += range(len(shape), len(shape) + len(each))
            shape += each
        x, axes = r.reshape(x, shape), places
    both = tuple(sorted((*axes, *(left[a] for a in eqn.params["axes"]))))
    return r.emit(eqn.primitive, x, **{**eqn.params, **inner.params, "axes": both})


def _taken_apart(shape: Sequence[int], parts: Sequence[int]) -> list[list[int]] | None:
    """The sizes into which each axis is taken apart by a reshape; None if it does anything else."""
    found: list[list[int]] = []
    rest = list(parts)
    for n in shape:
        each: list[int] = []
        while rest and (not each or math.prod(each) < n):
            each.append(rest.pop(0))
        if math.prod(each) != n or not n:
            return None
        found.append(each)
    if rest and (not found or any(n != 1 for n in rest)):
        return None
    if rest:
        found[-1] += rest
    return found


def _reduce_extremum(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axes, out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if all(x.aval.shape[a] == 1 for a in axes):
        return r.reshape(x, out.shape)
    splat = r.splat(x)
    if splat is not None and x.aval.size:
        return r.broadcast(splat, out.shape, ()) if out.shape else splat
    return None


def _reduce_one(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product, and the like, of one element is that."""
    x = eqn.invars[0]
    if any(x.aval.shape[a] != 1 for a in eqn.params["axes"]):
        return None
    return r.reshape(x, eqn.outvars[0].aval.shape)


def _first_place(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The first of equal elements has the extreme value, also where that is nan."""
    x, (axis,), out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if x.aval.shape[axis] == 1 or (r.splat(x) is not None and x.aval.shape[axis]):
        return r.full(out, 0)
    return None


def _along_one(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A cumulative sum, and the like, along an axis of one element."""
    return same_type(eqn, eqn.invars[0]) if eqn.invars[0].aval.shape[eqn.params["axis"]] == 1 else None


def _sort(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What has one element in a row is in order."""
    return list(eqn.invars) if eqn.invars[0].aval.shape[eqn.params["dimension"]] == 1 else None


MOVEMENT_RULES: dict[str, tuple[Callable[..., Any], ...]] = {
    "broadcast_in_dim": (_broadcast,),
    "reshape": (_reshape,),
    "squeeze": (_squeeze,),
    "expand_dims": (_squeeze,),
    "transpose": (_transpose,),
    "slice": (_slice,),
    "rev": (_rev,),
    "split": (_split,),
    "unstack": (_unstack,),
    "concatenate": (_concatenate,),
    "pad": (_pad,),
    "dynamic_slice": (_dynamic_slice,),
    "dynamic_update_slice": (_dynamic_update_slice,),
    "reduce_sum": (_reduce_sum, _reduce_again),
    "reduce_max": (_reduce_extremum, _reduce_again),
    "reduce_min": (_reduce_extremum, _reduce_again),
    "reduce_or": (_reduce_one, _reduce_again),
    "reduce_and": (_reduce_one, _reduce_again),
    "reduce_xor": (_reduce_one,),
    "reduce_prod": (_reduce_one,),
    "argmax": (_first_place,),
    "argmin": (_first_place,),
    "cumsum": (_along_one,),
    "cumprod": (_along_one,),
    "cummax": (_along_one,),
    "cummin": (_along_one,),
    "cumlogsumexp": (_along_one,),
    "sort": (_sort,),
}
