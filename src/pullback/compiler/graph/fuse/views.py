"""Results that can be their operand's memory, read another way."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.core.jaxpr import JaxprEqn

AGAIN = 4  # times that an element is wanted, from which on it matters how far it is from the next; twice that: its cost


def memory_view(eqn: JaxprEqn) -> bool | None:
    """Whether the result can be the operand's memory: None if not, else whether contiguity is kept."""
    name = eqn.primitive.name
    if name == "reshape" and eqn.params.get("dimensions") is None:
        return True
    if name in ("squeeze", "expand_dims"):
        return True
    if name == "transpose":
        return False
    if name == "broadcast_in_dim" and eqn.invars[0].aval.size == eqn.outvars[0].aval.size:
        return True
    if name == "slice":
        return _is_run(eqn)
    return None


def takes_apart(eqn: JaxprEqn) -> bool:
    """Whether neighbours along the last axis of a view are no neighbours in its operand."""
    name = eqn.primitive.name
    if name not in ("transpose", "slice"):
        return False
    given, last = (_last_axis(v.aval.shape) for v in (eqn.invars[0], eqn.outvars[0]))
    if last is None:
        return False
    if name == "transpose":
        return eqn.params["permutation"][last] != given
    return last != given or (eqn.params["strides"] or [1] * (last + 1))[last] != 1


def _last_axis(shape: Sequence[int]) -> int | None:
    return max((k for k, n in enumerate(shape) if n != 1), default=None)


def _is_run(eqn: JaxprEqn) -> bool:
    """Whether a slice is elements that follow each other in its operand: of one axis a part, all of those behind it."""
    if any(step != 1 for step in eqn.params["strides"] or ()):
        return False
    shape, part = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    cut = next((k for k, n in enumerate(part) if n != 1), len(part))
    return part[cut + 1 :] == shape[cut + 1 :]
