"""Operations along a dimension that is cut, of which each device needs little of others: nothing is gathered.

    rotation       concatenate(x[s:], x[:s]), which is what `roll` traces to: two parts of blocks go to other devices
    running sums   of its own elements by each device, and then the sums of those before it, one element of each

A rotation is known as one operation before the program is cut (`with_rotations`), since its halves, of odd sizes, can
be cut by nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from pullback.core.primitive import NoRule, Primitive
from pullback.partition.factors import Axes, Cut, Sizes, extent
from pullback.transforms.partial_eval import dce_jaxpr
from pullback.util import dtypes

_ONLY_HERE = NoRule("stands only in programs that are being partitioned")
rotate_p = Primitive(
    "rotate",
    doc="out[i] = x[(i + shift) % n] along an axis.",
    abstract_eval=lambda x, **params: x,
    reference=_ONLY_HERE,
    jvp=_ONLY_HERE,
    transpose=_ONLY_HERE,
    batch=_ONLY_HERE,
    lower=_ONLY_HERE,
    register=False,
)
_BODIES = ("scan", "while", "cond")


def with_rotations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program, whose rotations, also in its loops and branches, are one operation each."""

    def make() -> ClosedJaxpr:
        jaxpr = _rotated(closed.jaxpr)
        return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)

    return closed.cached("rotations", make)


def _rotated(jaxpr: Jaxpr) -> Jaxpr:
    slices = {eqn.outvars[0]: eqn for eqn in jaxpr.eqns if eqn.primitive.name == "slice"}
    eqns, changed = [], False
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "concatenate" and (found := _rotation(eqn, slices)) is not None:
            x, params = found
            eqns.append(eqn.replace(primitive=rotate_p, invars=[x], params=params))
            changed = True
            continue
        params = eqn.params
        if eqn.primitive.name in _BODIES:
            params = {k: _in_bodies(v) for k, v in params.items()}
            if any(v is not eqn.params[k] for k, v in params.items()):
                changed = True
        eqns.append(eqn.replace(params=params))
    return dce_jaxpr(jaxpr.replace(eqns=eqns)) if changed else jaxpr


def _in_bodies(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return with_rotations(value)
    if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr):
        new = tuple(map(with_rotations, value))
        return new if any(a is not b for a, b in zip(new, value)) else value
    return value


def _rotation(eqn: Any, slices: dict[Any, Any]) -> tuple[Any, dict[str, int]] | None:
    """The operand and parameters of a rotation that an equation joins of two slices."""
    axis = eqn.params["dimension"]
    if len(eqn.invars) != 2 or any(isinstance(a, Literal) or a not in slices for a in eqn.invars):
        return None
    last, first = (slices[a] for a in eqn.invars)
    (x,) = last.invars
    if isinstance(x, Literal) or first.invars[0] is not x or x.aval.shape != eqn.outvars[0].aval.shape:
        return None
    n = x.aval.shape[axis]
    shift = last.params["start_indices"][axis]
    for part, start, stop in ((last, shift, n), (first, 0, shift)):
        p = part.params
        if any(s != 1 for s in p["strides"] or ()):
            return None
        for d, m in enumerate(x.aval.shape):
            if (p["start_indices"][d], p["limit_indices"][d]) != ((start, stop) if d == axis else (0, m)):
                return None
    return x, {"axis": axis, "shift": shift}


def rotated(x: Any, axes: Axes, axis: int, shift: int, mesh: Sizes) -> Any:
    """One device's part of a rotated array, from that of the array, whose `axis` is cut along `axes`."""
    if not axes:
        n = x.shape[axis]
        parts = lax.slice_in_dim(x, shift, n, axis=axis), lax.slice_in_dim(x, 0, shift, axis=axis)
        return lax.concatenate(parts, axis)
    count, size = extent(axes, mesh), x.shape[axis]
    whole_parts, rest = divmod(shift, size)
    found = [_of_another(lax.slice_in_dim(x, rest, size, axis=axis), axes, whole_parts % count, count)]
    if rest:
        found.append(_of_another(lax.slice_in_dim(x, 0, rest, axis=axis), axes, (whole_parts + 1) % count, count))
    return lax.concatenate(found, axis) if len(found) > 1 else found[0]


def _of_another(x: Any, axes: Axes, distance: int, count: int) -> Any:
    """What the device so far behind has in the place of x."""
    return lax.ppermute(x, axes, [((k + distance) % count, k) for k in range(count)]) if distance else x


_COMBINE = {
    "cumsum": (lax.add, lax.reduce_sum),
    "cumprod": (lax.mul, lax.reduce_prod),
    "cummax": (lax.max, lax.reduce_max),
    "cummin": (lax.min, lax.reduce_min),
}


def accumulates(eqn: Any, cut: Cut) -> bool:
    """Whether an equation is a running sum, product or extremum along a dimension that is cut, and is done by
    `accumulated`.
    """
    if eqn.primitive.name not in _COMBINE or not cut[eqn.params["axis"]]:
        return False
    dtype = eqn.outvars[0].aval.dtype
    return dtypes.issubdtype(dtype, np.floating) or dtypes.issubdtype(dtype, np.integer)


def accumulated(name: str, y: Any, axes: Axes, axis: int, reverse: bool) -> Any:
    """One device's part of running sums, from those over its own elements alone."""
    combine, reduce = _COMBINE[name]
    place = 0 if reverse else y.shape[axis] - 1
    totals = lax.all_gather(lax.slice_in_dim(y, place, place + 1, axis=axis), axes, axis=axis, tiled=True)
    number = lax.broadcasted_iota(np.int32, totals.shape, axis)
    before = (lax.gt if reverse else lax.lt)(number, lax.full(totals.shape, lax.axis_index(axes), np.int32))
    kind = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}[name]
    nothing = lax.full(totals.shape, identity_of(kind, totals.dtype), totals.dtype)
    others = reduce(lax.select(before, totals, nothing), (axis,))
    return combine(y, lax.broadcast_in_dim(others, y.shape, _kept(y.ndim, axis)))


def _kept(ndim: int, axis: int) -> Sequence[int]:
    return tuple(d for d in range(ndim) if d != axis)


def identity_of(kind: str, dtype: Any) -> Any:
    """What changes nothing: of `add`, `mul`, `max`, `min`, `or`, `and`."""
    if kind in ("add", "mul"):
        return 0 if kind == "add" else 1
    if dtypes.issubdtype(dtype, np.floating):
        return -np.inf if kind == "max" else np.inf
    if dtype == np.bool_:
        return kind in ("min", "and")
    if kind in ("or", "and"):
        return 0 if kind == "or" else dtypes.iinfo(dtype).max if dtypes.issubdtype(dtype, np.unsignedinteger) else -1
    info = dtypes.iinfo(dtype)
    return info.min if kind == "max" else info.max
