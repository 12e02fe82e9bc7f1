"""Operations that move elements: broadcasts, transpositions, reshapes, slices, what joins and cuts arrays."""

from __future__ import annotations

from typing import Any

from pullback.partition.factors import Dims, Factors, LocalSize, in_place
from pullback.partition.rules import Naming, part_of, shape_of, with_sizes


def _broadcast(eqn: Any) -> Factors:
    naming, shape, before = Naming(), shape_of(eqn.outvars[0]), shape_of(eqn.invars[0])
    out = naming.dims(range(len(shape)), shape)
    places = eqn.params["broadcast_dimensions"]
    dims = tuple(out[to] if shape[to] == n else () for to, n in zip(places, before, strict=True))
    return Factors(
        tuple(naming.sizes), (dims,) + ((),) * (len(eqn.invars) - 1), (out,), local=with_sizes("shape", out, shape)
    )


def _transpose(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    dims = naming.dims(range(len(shape)), shape)
    return Factors(tuple(naming.sizes), (dims,), (tuple(dims[d] for d in eqn.params["permutation"]),))


def common_factors(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[list[int], Dims, Dims] | None:
    """(sizes, factors of the dimensions before, after) of a reshape; dimensions that share no factorization are whole.

    [6, 4] -> [2, 12]: the first 6 is 2 x 3 and 12 is 3 x 4, so factors 2, 3, 4. None for arrays without elements.
    """
    if 0 in before:
        return None
    sizes: list[int] = []
    both: tuple[list[list[int]], ...] = ([[] for _ in before], [[] for _ in after])
    shapes = before, after
    at, left = [0, 0], [1, 1]  # the dimension next to come, and what is left of the one before it
    closed: list[tuple[int, int]] = []  # (side, dimension) of those that stay whole

    def next_dimension(side: int) -> bool:
        while left[side] == 1 and at[side] < len(shapes[side]):
            left[side] = shapes[side][at[side]]
            at[side] += 1
        return left[side] > 1

    while next_dimension(0) and next_dimension(1):
        m, n = left
        if m % n == 0 or n % m == 0:
            part = min(m, n)
            for side in (0, 1):
                both[side][at[side] - 1].append(len(sizes))
                left[side] //= part
            sizes.append(part)
            continue
        closed += [(0, at[0] - 1), (1, at[1] - 1)]
        while left[0] != left[1]:  # until both end at the same element
            side = 0 if left[0] < left[1] else 1
            left[side] *= shapes[side][at[side]]
            closed.append((side, at[side]))
            at[side] += 1
        left = [1, 1]
    while closed:  # whatever shares a factor with a dimension that stays whole stays whole, too
        side, d = closed.pop()
        gone, both[side][d] = both[side][d], []
        closed += [(s, k) for s in (0, 1) for k, f in enumerate(both[s]) if set(f) & set(gone)]
    return sizes, tuple(map(tuple, both[0])), tuple(map(tuple, both[1]))


def _reshape(eqn: Any) -> Factors | None:
    before, after = shape_of(eqn.invars[0]), shape_of(eqn.outvars[0])
    found = common_factors(before, after)
    if found is None or eqn.params.get("dimensions") is not None:
        return None
    sizes, ins, outs = found
    return Factors(
        tuple(sizes), (ins,) + ((),) * (len(eqn.invars) - 1), (outs,), local=with_sizes("new_sizes", outs, after)
    )


def _squeeze(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    gone = {d % len(shape) for d in eqn.params["dimensions"]}
    dims = naming.dims([None if d in gone else d for d in range(len(shape))], shape)
    return Factors(tuple(naming.sizes), (dims,), (tuple(f for d, f in enumerate(dims) if d not in gone),))


def _slice(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    p = eqn.params
    strides = p["strides"] or (1,) * len(shape)
    names = [
        d if (start, limit, stride) == (0, n, 1) else None
        for d, (start, limit, stride, n) in enumerate(
            zip(p["start_indices"], p["limit_indices"], strides, shape, strict=True)
        )
    ]
    dims = naming.dims(names, shape)

    def local(params: dict[str, Any], size: LocalSize) -> dict[str, Any]:
        return {**params, "limit_indices": part_of(dims, params["limit_indices"], size)}

    return Factors(tuple(naming.sizes), (dims,), (dims,), local=local, follows=in_place(len(shape)))


def _pad(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    names = [d if tuple(c) == (0, 0, 0) else None for d, c in enumerate(eqn.params["padding_config"])]
    dims = naming.dims(names, shape)
    return Factors(tuple(naming.sizes), (dims, ()), (dims,), follows=in_place(len(shape)))


def _but_dimensions(key: str) -> Any:
    def rule(eqn: Any) -> Factors:
        naming, shape = Naming(), shape_of(eqn.invars[0])
        given = eqn.params[key]
        gone = {d % len(shape) for d in (given if isinstance(given, tuple) else (given,))}
        dims = naming.dims([None if d in gone else d for d in range(len(shape))], shape)
        count = len(eqn.invars), len(eqn.outvars)
        return Factors(tuple(naming.sizes), (dims,) * count[0], (dims,) * count[1], follows=in_place(len(shape)))

    return rule


def _stack(eqn: Any) -> Factors:
    naming, shape, axis = Naming(), shape_of(eqn.invars[0]), eqn.params["axis"] % len(shape_of(eqn.outvars[0]))
    dims = naming.dims(range(len(shape)), shape)
    return Factors(tuple(naming.sizes), (dims,) * len(eqn.invars), ((*dims[:axis], (), *dims[axis:]),))


def _unstack(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    axis = eqn.params["axis"] % len(shape)
    dims = naming.dims([None if d == axis else d for d in range(len(shape))], shape)
    return Factors(tuple(naming.sizes), (dims,), ((*dims[:axis], *dims[axis + 1 :]),) * len(eqn.outvars))


def _tile(eqn: Any) -> Factors:
    naming, shape, reps = Naming(), shape_of(eqn.invars[0]), eqn.params["reps"]
    dims = naming.dims([d if r == 1 else None for d, r in enumerate(reps)], shape)
    return Factors(tuple(naming.sizes), (dims,), (dims,))


RULES = {
    "tile": _tile,
    "stack": _stack,
    "unstack": _unstack,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "slice": _slice,
    "pad": _pad,
    "rev": _but_dimensions("dimensions"),
    "concatenate": _but_dimensions("dimension"),
    "split": _but_dimensions("axis"),
}
