"""Values that are still to be summed over mesh axes (unreduced), and those whose cotangents will be (reduced).

    x: f32[8]{U:y}    on each device along y a term: the array is their sum
    w: f32[8]{R:y}    the same on all devices along y; its cotangent has a term on each, f32[8]{U:y}

What is linear in one operand takes terms; so does a sum of two such, and a product of one with what is reduced over the
same axes. All else would need the sum first, which JAX wants to be told by `reshard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.jaxpr import Literal
from pullback.sharding._specs import State, state_of
from pullback.util import dtypes
from pullback.util.errors import ShardingTypeError

# Of terms they give the terms of their results.
_LINEAR = {
    *("add", "add_any", "broadcast_in_dim", "concatenate", "conj", "convert_element_type", "copy", "device_put"),
    *("dynamic_slice", "dynamic_update_slice", "expand_dims", "imag", "keep_apart", "name", "optimization_barrier"),
    *("pad", "pvary", "real", "reduce_precision", "reduce_scatter", "reduce_sum", "reshape", "select_n", "slice"),
    *("split", "squeeze", "stack", "tile", "transpose", "unstack"),
}
# Those of their operands that are terms; all are of others.
_COUNTED = {
    "dynamic_slice": slice(1),
    "dynamic_update_slice": slice(2),
    "pad": slice(1),
    "select_n": slice(1, None),
}
_NONE: State = (frozenset(), frozenset())


def result_state(primitive: Any, in_avals: Sequence[Any]) -> State:
    """The axes over which results of an operation are still to be summed, and those over which their cotangents will
    be. ShardingTypeError for operands that do not go together, NotImplementedError for what no sum may wait for.
    """
    states = [state_of(aval) for aval in in_avals]
    if not any(map(any, states)):
        return _NONE
    name = primitive.name
    shown = ", ".join(aval.short() for aval in in_avals)
    if name == "dot_general":
        if any(unreduced for unreduced, _ in states):
            raise ShardingTypeError(f"dot_general: operands must not be unreduced, got {shown}; use reshard on them")
        return _NONE
    if name == "mul" and any(unreduced for unreduced, _ in states):
        return _of_product(states, shown)
    unreduced = {state[0] for state in states if state[0]}
    if unreduced:
        if name not in _LINEAR:
            raise NotImplementedError(
                f"unreduced rule for {name} is not implemented: {shown} is still to be summed over mesh axes; use "
                "jax.sharding.reshard first"
            )
        _check_terms(name, states, shown)
    reduced = {state[1] for state in states if state[1]}
    if len(reduced) > 1:
        raise ShardingTypeError(f"{name} got operands that are reduced over different axes: {shown}")
    if reduced and "elementwise" in primitive.traits and name != "select_n":
        _check_reduced(name, in_avals, states, shown)
    return (next(iter(unreduced)) if unreduced else frozenset(), next(iter(reduced)) if reduced else frozenset())


def linear_in(eqn: Any) -> range | tuple[int, ...] | None:
    """Of an equation that gives terms of terms, the operands that are terms; None where the sum has to be there first,
    for numbers that are rounded or a value that is put beside it, or is smaller there.
    """
    name, count = eqn.primitive.name, len(eqn.invars)
    if name == "mul":
        return tuple(k for k, a in enumerate(eqn.invars) if state_of(a.aval)[0])
    if name not in _LINEAR or name in ("reduce_precision", "reduce_scatter"):
        return None
    if name in ("broadcast_in_dim", "tile") and eqn.outvars[0].aval.size > eqn.invars[0].aval.size:
        return None
    if name == "convert_element_type" and not _holds(eqn.outvars[0].aval.dtype, eqn.invars[0].aval.dtype):
        return None
    if name == "pad" and not (isinstance(eqn.invars[1], Literal) and eqn.invars[1].val == 0):
        return None
    return range(count)[_COUNTED.get(name, slice(None))]


def _holds(wide: Any, dtype: Any) -> bool:
    return np.promote_types(wide, dtype) == wide


def _of_product(states: Sequence[State], shown: str) -> State:
    (left, left_reduced), (right, right_reduced) = states
    if left and right:
        raise ShardingTypeError(f"mul: one operand at most may be unreduced, got {shown}")
    terms, other = (left, right_reduced) if left else (right, left_reduced)
    if terms != other:
        raise ShardingTypeError(
            f"mul: the {'second' if left else 'first'} operand must be reduced over the axes that the other is "
            f"unreduced over, got {shown}; use jax.sharding.reshard on it"
        )
    return terms, frozenset()


def _check_terms(name: str, states: Sequence[State], shown: str) -> None:
    """ShardingTypeError unless all operands that count are unreduced over the same axes."""
    counted = _COUNTED.get(name, slice(None))
    found = [unreduced for unreduced, _ in states[counted]]
    if len(set(found)) > 1:
        which = ""
        if len(found) == 2 and not all(found):
            which = f"{'lhs' if found[0] else 'rhs'} is unreduced while {'rhs' if found[0] else 'lhs'} is not: "
        raise ShardingTypeError(
            f"{name}: {which}all operands must be unreduced over the same axes, as anything else would need "
            f"communication, got {shown}; use jax.sharding.reshard on them"
        )


def _check_reduced(name: str, in_avals: Sequence[Any], states: Sequence[State], shown: str) -> None:
    """ShardingTypeError unless all operands that are no scalars are reduced over the same axes."""
    found = {reduced for aval, (_, reduced) in zip(in_avals, states) if aval.ndim and aval.dtype != dtypes.float0}
    if len(found) > 1:
        raise ShardingTypeError(
            f"{name}: operands cannot be the same on all devices along axes that another is reduced over, got {shown}; "
            "use jax.sharding.reshard on them"
        )


__all__ = ["linear_in", "result_state"]
