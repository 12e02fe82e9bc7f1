"""Along which mesh axes results are cut, from those of operands: a rule for each primitive that has one.

A value is None, or for each dimension the tuple of mesh axes that it is cut along. A rule is (equation, values of
operands) -> values of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.sharding import PartitionSpec
from pullback.sharding._specs import names_of

Value = Any


def spread_by(spec: PartitionSpec) -> tuple[tuple[Any, ...], ...]:
    """The value of an array with this spec."""
    return tuple(map(names_of, spec))


def _full(value: Value, ndim: int) -> list[tuple[Any, ...]]:
    parts = list(value) if isinstance(value, tuple) else []
    return parts + [()] * (ndim - len(parts))


def merged(values: Sequence[Value], ndim: int) -> Value:
    """What operands of one shape agree on; where they do not, the first one wins."""
    out: list[tuple[Any, ...]] = [()] * ndim
    used: set[Any] = set()
    for value in values:
        for d, names in enumerate(_full(value, ndim)):
            if names and not out[d] and not used & set(names):
                out[d] = names
                used |= set(names)
    return tuple(out) if used else None


def elementwise(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    """Results of the operands' shape; scalars say nothing."""
    shape = eqn.outvars[0].aval.shape
    same = [v for a, v in zip(eqn.invars, operands, strict=True) if a.aval.shape == shape]
    return [merged(same, len(shape))] * len(eqn.outvars)


def _broadcast(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    shape, before = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape
    out: list[tuple[Any, ...]] = [()] * len(shape)
    for d, (to, names) in enumerate(zip(eqn.params["broadcast_dimensions"], _full(operands[0], len(before)))):
        if shape[to] == before[d]:
            out[to] = names
    return [tuple(out)]


def _transpose(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    parts = _full(operands[0], len(eqn.invars[0].aval.shape))
    return [tuple(parts[d] for d in eqn.params["permutation"])]


def _without_axes(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    ndim = len(eqn.invars[0].aval.shape)
    axes = {a % ndim for a in eqn.params["axes"]}
    kept = tuple(p for d, p in enumerate(_full(operands[0], ndim)) if d not in axes)
    return [kept] * len(eqn.outvars)


def _reshape(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    parts = _full(operands[0], len(before))
    out: list[tuple[Any, ...]] = [()] * len(after)
    if 0 in before:
        return [None]
    i = j = 0
    while i < len(before) and j < len(after):  # groups of dimensions with equal numbers of elements
        start, target, m, n = i, j, before[i], after[j]
        while m != n:
            if m < n:
                i += 1
                m *= before[i]
            else:
                j += 1
                n *= after[j]
        first = next((d for d in range(start, i + 1) if before[d] != 1), start)
        to = next((d for d in range(target, j + 1) if after[d] != 1), target)
        # The leading dimension of a group is cut as before; whether it can be is seen when results are placed.
        out[to] = parts[first]
        i, j = i + 1, j + 1
    return [tuple(out)]


def _same_extent(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    before = eqn.invars[0].aval.shape
    parts = _full(operands[0], len(before))
    return [
        tuple(p if v.aval.shape[d : d + 1] == before[d : d + 1] else () for d, p in enumerate(parts))
        for v in eqn.outvars
    ]


def _concatenate(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    ndim = len(eqn.outvars[0].aval.shape)
    found = _full(merged(operands, ndim), ndim)
    found[eqn.params["dimension"]] = ()
    return [tuple(found)]


def _dot(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    lhs, rhs = (_full(v, len(a.aval.shape)) for v, a in zip(operands, eqn.invars, strict=False))
    batch = [a or b for a, b in zip([lhs[d] for d in lhs_batch], [rhs[d] for d in rhs_batch], strict=True)]
    free = [p for d, p in enumerate(lhs) if d not in (*lhs_sum, *lhs_batch)]
    free_rhs = [p for d, p in enumerate(rhs) if d not in (*rhs_sum, *rhs_batch)]
    out: list[tuple[Any, ...]] = []
    used: set[Any] = set()
    for names in (*batch, *free, *free_rhs):
        out.append(() if used & set(names) else names)
        used |= set(names)
    return [tuple(out)]


def _sort(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    ndim = len(eqn.outvars[0].aval.shape)
    found = _full(merged(operands, ndim), ndim)
    found[eqn.params["dimension"]] = ()
    return [tuple(found)] * len(eqn.outvars)


def _squeeze(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    ndim = len(eqn.invars[0].aval.shape)
    gone = {d % ndim for d in eqn.params["dimensions"]}
    return [tuple(p for d, p in enumerate(_full(operands[0], ndim)) if d not in gone)]


def _unchanged(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    return [operands[0]] * len(eqn.outvars)


def _each(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    return list(operands)


def _by_predicate(eqn: Any, operands: Sequence[Value]) -> list[Value]:
    ndim = len(eqn.outvars[0].aval.shape)
    return [merged([v for a, v in zip(eqn.invars, operands) if len(a.aval.shape) == ndim], ndim)]


REDUCTIONS = "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin"
RULES: dict[str, Callable[[Any, Sequence[Value]], list[Value]]] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "concatenate": _concatenate,
    "dot_general": _dot,
    "sort": _sort,
    "select_n": _by_predicate,
    "optimization_barrier": _each,
    **dict.fromkeys(REDUCTIONS.split(), _without_axes),
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "rev", "copy", "copy_p"], _unchanged),
    **dict.fromkeys(["slice", "dynamic_slice", "pad"], _same_extent),
}

__all__ = ["RULES", "elementwise", "merged", "spread_by"]
