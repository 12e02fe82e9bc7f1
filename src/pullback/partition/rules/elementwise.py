"""Operations whose results have the operands' dimensions, or some of them: elementwise ones, reductions, sorts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.partition.factors import Factors, in_place
from pullback.partition.rules import Naming, shape_of


def elementwise(eqn: Any) -> Factors | None:
    """A factor for each dimension; scalars have none, nor have dimensions of size 1 that are broadcast."""
    shape = shape_of(eqn.outvars[0])
    if any(shape_of(v) != shape for v in eqn.outvars):
        return None
    naming = Naming()
    dims = naming.dims(range(len(shape)), shape)
    operands = []
    for operand in map(shape_of, eqn.invars):
        if operand and (len(operand) != len(shape) or any(m not in (1, n) for m, n in zip(operand, shape))):
            return None
        operands.append(tuple(dim if m == n else () for dim, m, n in zip(dims, operand, shape)))
    return Factors(tuple(naming.sizes), tuple(operands), (dims,) * len(eqn.outvars))


def _bitcast(eqn: Any) -> Factors:
    """The last dimension of one side is there where elements of several are one of the other's."""
    naming, shapes = Naming(), [shape_of(a) for a in (eqn.invars[0], eqn.outvars[0])]
    shared = min(map(len, shapes))
    ins, outs = (naming.dims([d if d < shared else None for d in range(len(s))], s) for s in shapes)
    return Factors(tuple(naming.sizes), (ins,), (outs,))


def each_by_itself(eqn: Any) -> Factors:
    """Result k is of operand k."""
    naming = Naming()
    dims = tuple(naming.dims([(k, d) for d in range(len(shape_of(a)))], shape_of(a)) for k, a in enumerate(eqn.invars))
    return Factors(tuple(naming.sizes), dims, dims[: len(eqn.outvars)])


def _reduction(kind: str | None) -> Any:
    def rule(eqn: Any) -> Factors:
        naming, shape = Naming(), shape_of(eqn.invars[0])
        axes = {a % len(shape) for a in eqn.params["axes"]}
        names = [None if kind is None and d in axes else d for d in range(len(shape))]
        dims = naming.dims(names, shape)
        kept = tuple(f for d, f in enumerate(dims) if d not in axes)
        combined = {f: kind for d in axes for f in dims[d]} if kind else {}
        return Factors(tuple(naming.sizes), (dims,) * len(eqn.invars), (kept,) * len(eqn.outvars), combined)

    return rule


def _logical_reduction(kind: str) -> Any:
    """Of booleans: the extremum; of words, all bits must be there."""

    def rule(eqn: Any) -> Factors:
        return _reduction(kind if eqn.invars[0].aval.dtype == np.bool_ else None)(eqn)

    return rule


def _generic_reduction(eqn: Any) -> Factors | None:
    """`reduce` by a function of the user's: operands, then their initial values."""
    half = len(eqn.invars) // 2
    naming, shape = Naming(), shape_of(eqn.invars[0])
    axes = {a % len(shape) for a in eqn.params["dimensions"]}
    dims = naming.dims([None if d in axes else d for d in range(len(shape))], shape)
    kept = tuple(f for d, f in enumerate(dims) if d not in axes)
    return Factors(tuple(naming.sizes), (dims,) * half + ((),) * half, (kept,) * len(eqn.outvars))


def _but(key: str, follows: bool = True) -> Any:
    """All dimensions but the one that a parameter names; results may have another size there, and are then whole."""

    def rule(eqn: Any) -> Factors:
        naming, shape = Naming(), shape_of(eqn.invars[0])
        gone = {eqn.params[key] % len(shape)}
        dims = naming.dims([None if d in gone else d for d in range(len(shape))], shape)
        return Factors(
            tuple(naming.sizes),
            (dims,) * len(eqn.invars),
            (dims,) * len(eqn.outvars),
            follows=in_place(len(shape)) if follows else (),
        )

    return rule


def _transform(eqn: Any) -> Factors:
    """fft: all dimensions but the last ones."""
    shape, after = shape_of(eqn.invars[0]), shape_of(eqn.outvars[0])
    count = len(shape) - len(eqn.params["fft_lengths"])
    naming = Naming()
    names = [d if d < count else None for d in range(len(shape))]
    ins, outs = naming.dims(names, shape), naming.dims(names, after)
    return Factors(tuple(naming.sizes), (ins,), (outs,), follows=in_place(len(shape)))


def _window(eqn: Any) -> Factors | None:
    """Windows of one element are no windows."""
    p = eqn.params
    shape = shape_of(eqn.outvars[0])
    half = len(eqn.invars) // 2 if eqn.primitive.name == "reduce_window" else len(eqn.invars)
    names: list[Any] = []
    for d, n in enumerate(shape):
        still = p["window_dimensions"][d] == 1 and p["window_strides"][d] == 1 and tuple(p["padding"][d]) == (0, 0)
        names.append(d if still and shape_of(eqn.invars[0])[d] == n else None)
    naming = Naming()
    out = naming.dims(names, shape)
    ins = (out,) * half + ((),) * (len(eqn.invars) - half)
    return Factors(tuple(naming.sizes), ins, (out,) * len(eqn.outvars), follows=in_place(len(shape)))


def _routed(eqn: Any) -> Factors | None:
    """Values that go the way of windows' extrema; windows of one element are no windows."""
    p, (first, keys), out = eqn.params, map(shape_of, eqn.invars), shape_of(eqn.outvars[0])
    names: list[Any] = []
    for d in range(len(keys)):
        still = p["window_dimensions"][d] == 1 and p["window_strides"][d] == 1 and tuple(p["padding"][d]) == (0, 0)
        names.append(d if still and first[d] == keys[d] == out[d] else None)
    naming = Naming()
    ins = naming.dims(names, first), naming.dims(names, keys)
    return Factors(tuple(naming.sizes), ins, (naming.dims(names, out),), follows=in_place(len(keys)))


_cumulative = _but("axis")
RULES = {
    "reduce_sum": _reduction("sum"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    **dict.fromkeys(["reduce_prod", "reduce_xor", "argmax", "argmin"], _reduction(None)),
    "reduce_or": _logical_reduction("max"),
    "reduce_and": _logical_reduction("min"),
    "reduce": _generic_reduction,
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"], _cumulative),
    **dict.fromkeys(["partition", "argpartition"], _cumulative),
    **dict.fromkeys(["order_statistics", "top_k"], _but("axis", follows=False)),
    "sort": _but("dimension"),
    "approx_top_k": _but("reduction_dimension", follows=False),
    "fft": _transform,
    **dict.fromkeys(["reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"], _window),
    **dict.fromkeys(["select_and_gather_add", "select_and_scatter_add"], _routed),
    **dict.fromkeys(["optimization_barrier", "keep_apart"], each_by_itself),
    "bitcast_convert_type": _bitcast,
    **dict.fromkeys(["name", "copy", "copy_p", "pvary", "stage", "state_cast"], elementwise),
    **dict.fromkeys(["random_clone", "shard_alike", "rotate"], elementwise),
}
