"""Values in shard_map that are still to be summed over devices (unreduced), and whose cotangents will be (reduced).

    varying     differs between devices                           its cotangent: varying
    invarying   the same on all                                   invarying
    unreduced   a term on each: the value is their sum            reduced
    reduced     the same on all                                   unreduced

A cast changes what types say and no element; what sums, or makes terms of a value, is written with the operations that
are there: psum_invariant, and a choice by axis_index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.avals import typed, typeof
from pullback.core.interpreter import axis_env
from pullback.core.primitive import registry
from pullback.core.types import checked_axes, vma_of
from pullback.lax.collectives.sums import (
    NO_LOWERING,
    axis_index,
    axis_size,
    check_names,
    names_of,
    no_reference,
    on_leaves,
    psum_invariant_p,
)
from pullback.lax.records.families import *
from pullback.sharding import AxisType, NamedSharding, PartitionSpec
from pullback.sharding._current import get_abstract_mesh
from pullback.sharding._specs import says_something, state_of

__all__ = ["pcast"]

Array = Any
Axes = tuple[Any, ...]
_FROM = {"varying": {"invarying", "reduced"}, "unreduced": {"varying"}, "reduced": {"invarying"}}  # casts of users
_OF_COTANGENT = {"varying": "varying", "unreduced": "reduced", "reduced": "unreduced", "invarying": "invarying"}


def _cast_type(aval: Any, *, axes: Axes, source: str, to: str) -> Any:
    check_names(axes)
    unreduced, reduced = state_of(aval)
    found = {"varying": vma_of(aval), "unreduced": unreduced, "reduced": reduced, "invarying": frozenset()}
    found[source] = found[source].difference(axes)
    found[to] = found[to].union(axes)
    spec = PartitionSpec(*[None] * aval.ndim) if aval.placing is None else aval.placing.spec
    spec = spec.update(unreduced=found["unreduced"], reduced=found["reduced"])
    placing = NamedSharding(_mesh(axes), spec) if says_something(spec) else None
    return typed(aval, placing, found["varying"], aval.memory_space)


def _mesh(axes: Axes) -> Any:
    """The mesh in force, on which the axes are manual."""
    mesh = get_abstract_mesh()
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    others = [axis for axis in axes if kinds.get(axis) is not AxisType.Manual]
    return mesh.update_axis_types(dict.fromkeys(others, AxisType.Manual)) if others else mesh


def _cast_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    out = state_cast_p.bind(*primals, **params)
    return out, tangent_zero(out) if is_zero(tangents[0]) else state_cast_p.bind(*tangents, **params)


def _cast_back(bar: Any, x: Any, *, axes: Axes, source: str, to: str) -> list[Any]:
    if is_zero(bar):
        return [bar]
    source, to = _OF_COTANGENT[source], _OF_COTANGENT[to]
    if source == "invarying":  # each device has a term of the cotangent
        return [summed(bar, axes, to)]
    if to == "invarying":  # one cotangent, though each device has it
        for axis in axes:
            bar = _on_first(to_varying(bar, (axis,)), axis)
        return [bar]
    return [state_cast_p.bind(bar, axes=axes, source=to, to=source)]


def _cast_batch(axis: Any, args: Any, dims: Any, *, axes: Axes, source: str, to: str) -> Any:
    rest = tuple(name for name in axes if name != axis.name)
    return state_cast_p.bind(*args, axes=rest, source=source, to=to) if rest else args[0], dims[0]


state_cast_p = Primitive(
    "state_cast",
    doc="A value of which types say something else along axes of shard_map.",
    abstract_eval=_cast_type,
    reference=no_reference,
    jvp=_cast_jvp,
    transpose=_cast_back,
    batch=NoRule("it is batched with its axis"),
    batch_axis=_cast_batch,
    lower=NO_LOWERING,
    collective_axes=lambda params: params["axes"],
    traits={"own types"},
)


def _along(x: Any, axes: Sequence[Any], of: frozenset) -> Axes:
    return tuple(axis for axis in axes if axis in of)


def to_varying(x: Array, axes: Axes) -> Array:
    """x, of which each device has a term or the value, as what varies along the axes."""
    for source, found in zip(("unreduced", "reduced"), state_of(typeof(x))):
        if here := _along(x, axes, found):
            x = state_cast_p.bind(x, axes=here, source=source, to="varying")
    rest = tuple(axis for axis in axes if axis not in vma_of(typeof(x)))
    return registry["pvary"].bind(x, axes=rest) if rest else x


def to_unreduced(x: Array, axes: Axes) -> Array:
    """The terms that devices have along the axes; of a value that is the same on all, the first has it, others zero."""
    unreduced, varying = state_of(typeof(x))[0], vma_of(typeof(x))
    for axis in axes:
        if axis in unreduced:
            continue
        x = x if axis in varying else _on_first(to_varying(x, (axis,)), axis)
        x = state_cast_p.bind(x, axes=(axis,), source="varying", to="unreduced")
    return x


def _on_first(x: Array, axis: Any) -> Array:
    """x on the first device along an axis, zeros on the others."""
    first = lax.eq(axis_index(axis), np.int32(0))
    return lax.select(lax.broadcast_in_dim(first, x.shape, ()), x, lax.full_like(x, 0))


def to_reduced(x: Array, axes: Axes) -> Array:
    """What is the same along the axes, as a value whose cotangent is to be summed over them."""
    here = tuple(axis for axis in axes if axis not in state_of(typeof(x))[1])
    return state_cast_p.bind(x, axes=here, source="invarying", to="reduced") if here else x


def summed(x: Array, axes: Axes, source: str = "unreduced") -> Array:
    """The sum of the terms that devices have along the axes."""
    x = state_cast_p.bind(x, axes=axes, source=source, to="varying")
    return psum_invariant_p.bind(x, axes=axes)[0]


def entered(x: Array, spec: PartitionSpec) -> Array:
    """A part of an argument, of the state that a spec says."""
    x = to_unreduced(x, _ordered(spec.unreduced)) if spec.unreduced else x
    return to_reduced(x, _ordered(spec.reduced)) if spec.reduced else x


def left(x: Array, spec: PartitionSpec, terms: Axes) -> Array:
    """A part of a result whose spec says a state: its term, with a dimension for each of the axes, or the value, as
    one that is the same along those axes.
    """
    if terms:
        x = lax.expand_dims(to_varying(x, terms), list(range(len(terms))))
    for axis in _ordered(spec.reduced):  # types know no other way back
        x = psum_invariant_p.bind(_on_first(to_varying(x, (axis,)), axis), axes=(axis,))[0]
    return x


def _ordered(axes: frozenset) -> Axes:
    return tuple(sorted(axes, key=str))


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x, said to vary along a named axis (or several), to have terms that are still to be summed over it, or cotangents
    that are; only shard_map tells the difference, in types and derivatives.

    Raises NameError for an unknown axis, ValueError for a value that is of this state already, or cannot be, and where
    no axis is in force.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: argument 'to' must be 'varying', 'reduced' or 'unreduced', got {to!r}")
    if not axis_env():
        raise ValueError(f"pcast of axis {axis_name!r} to {to!r}: no axis is in force; call it inside of jax.shard_map")
    axis_size(axis_name)
    names = tuple(name for name in names_of(axis_name) if name in checked_axes())
    if to == "unreduced" and not names:  # without check_vma no type says of which value these are terms
        raise ValueError(f"Unsupported pcast from=invarying, to={to!r} along {names_of(axis_name)}: check_vma is False")

    def cast(leaf: Any) -> Any:
        aval = typeof(leaf)
        unreduced, reduced = state_of(aval)
        found = {"varying": vma_of(aval), "unreduced": unreduced, "reduced": reduced}
        have = {next((s for s, axes in found.items() if name in axes), "invarying") for name in names}
        if len(have) > 1 or not have <= _FROM[to]:
            raise ValueError(f"Unsupported pcast from={', '.join(sorted(have))}, to={to!r} along {names}: {aval}")
        made = {"varying": to_varying, "unreduced": to_unreduced, "reduced": to_reduced}
        return made[to](leaf, names)

    return on_leaves(cast, x, "pcast") if names else x
