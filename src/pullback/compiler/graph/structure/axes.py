"""Axes: work on a transposed array is work on the array itself, whose result is transposed.

    f(x.T, broadcast(s))         f(x, broadcast(s)').T, if nothing else has elements in an order of its own
    sum(x.T, axis 1)             sum(x, axis 0); of more axes what is left is transposed
    reshape(x.T)                 (reshape x).T, if each axis is only split, or joined with its neighbour in x
    f(reshape(y)), sum(reshape(y))   reshape(f(y)), sum(y) over the axes that were joined, where y is a transposed array
                                 whose joined axes are no neighbours in memory

So `moveaxis(softmax(moveaxis(x, 0, -1)), -1, 0)`, a function mapped over columns, and a layer that wants its features
first become the program that somebody who knows the order in memory would have written: transposes go down until
they meet one that undoes them, a product, which takes its operands in any order, or the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise, Reduction
from pullback.core.primitive import registry
from pullback.lax.movement.shape import inverse_permutation
from pullback.util.record import NamedTuple

_rules: dict[str, tuple[Rule, ...]] = {}


def axis_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules by primitive: for all that are elementwise or reduce."""
    if len(_rules) < len(registry):
        for name, primitive in registry.items():
            rules: tuple[Rule, ...] = ()
            if "elementwise" in primitive.traits and isinstance(primitive.lower, Elementwise):
                rules = (_elementwise,)
            elif isinstance(primitive.lower, Reduction):
                rules = (_reduction,)
            elif name in _OF_ONE_AXIS:
                rules = (_along,)
            _rules[name] = rules
        _rules["reshape"] = (_reshape,)
    return _rules


class _Merged(NamedTuple):
    """A reshape of a transposed array that joins axes: the array, and which of its axes each axis of the result is."""

    source: Any
    groups: tuple[tuple[int, ...], ...]


def _elementwise(r: Rewriter, eqn: JaxprEqn) -> Any:
    shape = eqn.outvars[0].aval.shape
    if len(shape) < 2:
        return None
    order: tuple[int, ...] | None = None
    merged: _Merged | None = None
    whole = [a for a in eqn.invars if type(a) is not Literal and a.aval.shape]
    if any(a.aval.shape != shape for a in whole):
        return None
    free = [_is_free(r, a) for a in whole]
    for atom, is_free in zip(whole, free):
        if is_free:
            continue
        eqn_of = r.definition(atom, "transpose", "reshape")
        if eqn_of is None:
            return None
        if eqn_of.primitive.name == "transpose":
            mine = tuple(eqn_of.params["permutation"])
            if merged is not None or order not in (None, mine):
                return None
            order = mine
        else:
            found = _merged(r, eqn_of)
            if found is None or order is not None:
                return None
            if merged is not None and (merged.source.aval.shape, merged.groups) != (
                found.source.aval.shape,
                found.groups,
            ):
                return None
            merged = found
    if order is None and merged is None:
        return None
    operands: list[Any] = []
    for atom in eqn.invars:
        if type(atom) is Literal or not atom.aval.shape:
            operands.append(atom)
        elif order is not None:
            operands.append(_unturned(r, atom, order))
        else:
            assert merged is not None
            operands.append(_split_up(r, atom, merged))
    result = r.emit(eqn.primitive, *operands, **eqn.params)
    if order is not None:
        return r.emit("transpose", result, permutation=order)
    return r.reshape(result, shape)


def _is_free(r: Rewriter, atom: Any) -> bool:
    """Whether an array can be made in any order of axes."""
    eqn = r.definition(atom, "broadcast_in_dim", "iota", "transpose")
    if eqn is not None and eqn.primitive.name == "transpose":
        return r.definition(eqn.invars[0], "broadcast_in_dim", "iota") is not None
    return eqn is not None


def _unturned(r: Rewriter, atom: Any, order: Sequence[int]) -> Any:
    """The array of which `atom` is the transpose by `order`."""
    shape = atom.aval.shape
    back = inverse_permutation(order)
    eqn = r.definition(atom)
    if eqn is not None and eqn.primitive.name == "iota":
        params = eqn.params | {"shape": tuple(shape[a] for a in back), "dimension": order[eqn.params["dimension"]]}
        return r.emit("iota", *eqn.invars, **params)
    if eqn is not None and eqn.primitive.name == "broadcast_in_dim":
        source = eqn.invars[0]
        places = [order[d] for d in eqn.params["broadcast_dimensions"]]
        turn = sorted(range(len(places)), key=places.__getitem__)
        if turn != list(range(len(places))):
            source = r.emit("transpose", source, permutation=tuple(turn))
        return r.broadcast(source, [shape[a] for a in back], [places[k] for k in turn])
    return r.emit("transpose", atom, permutation=back)


def _split_up(r: Rewriter, atom: Any, merged: _Merged) -> Any:
    """An operand of the joined shape with the axes that were joined."""
    fine = merged.source.aval.shape
    eqn = r.definition(atom, "broadcast_in_dim", "iota")
    if eqn is None or eqn.primitive.name == "iota":
        return r.reshape(atom, fine)
    source = eqn.invars[0]
    sizes: list[int] = []
    places: list[int] = []
    for size, axis in zip(source.aval.shape, eqn.params["broadcast_dimensions"]):
        if size == atom.aval.shape[axis]:
            sizes += [fine[a] for a in merged.groups[axis]]
            places += merged.groups[axis]
    if tuple(sizes) != source.aval.shape:
        source = r.reshape(source, sizes)
    return r.broadcast(source, fine, places)


def _merged(r: Rewriter, eqn: JaxprEqn) -> _Merged | None:
    """What a reshape is that only joins axes of a transposed array, some of which are no neighbours in memory."""
    source = eqn.invars[0]
    if eqn.params.get("dimensions") is not None or r.definition(source, "transpose") is None:
        return None
    groups = _groups(source.aval.shape, eqn.outvars[0].aval.shape)
    return None if groups is None else _Merged(source, groups)


def _groups(fine: Sequence[int], shape: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
    """The axes of `fine` that are joined to each axis of `shape`; None if an axis is split."""
    groups: list[tuple[int, ...]] = []
    k = 0
    for size in shape:
        group: list[int] = []
        while math.prod(fine[a] for a in group) < size and k < len(fine):
            group.append(k)
            k += 1
        if math.prod(fine[a] for a in group) != size:
            return None
        groups.append(tuple(group))
    if any(fine[a] != 1 for a in range(k, len(fine))):
        return None
    groups[-1] = (*groups[-1], *range(k, len(fine)))
    return tuple(groups)


def _reduction(r: Rewriter, eqn: JaxprEqn) -> Any:
    if len(eqn.invars) != 1 or "axes" not in eqn.params or type(eqn.invars[0]) is Literal:
        return None
    x, axes = eqn.invars[0], eqn.params["axes"]
    turned = r.definition(x, "transpose", "reshape")
    if turned is None or not axes:
        return None
    if turned.primitive.name == "transpose":
        order = turned.params["permutation"]
        rest = [order[a] for a in range(len(order)) if a not in axes]
        result = r.emit(eqn.primitive, turned.invars[0], **eqn.params | {"axes": tuple(sorted(order[a] for a in axes))})
        place = {a: k for k, a in enumerate(sorted(rest))}
        if rest == sorted(rest):
            return result
        return r.emit("transpose", result, permutation=tuple(place[a] for a in rest))
    lower = eqn.primitive.lower
    assert isinstance(lower, Reduction)
    merged = _merged(r, turned)
    if merged is None or lower.combine is None:
        return None
    fine = tuple(a for axis in sorted(axes) for a in merged.groups[axis])
    result = r.emit(eqn.primitive, merged.source, **eqn.params | {"axes": fine})
    return r.reshape(result, eqn.outvars[0].aval.shape)


_OF_ONE_AXIS = {"cumsum": "axis", "cumprod": "axis", "cummax": "axis", "cummin": "axis", "cumlogsumexp": "axis"}


def _along(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Running results along an axis."""
    turned = r.definition(eqn.invars[0], "transpose")
    if turned is None:
        return None
    order, name = turned.params["permutation"], _OF_ONE_AXIS[eqn.primitive.name]
    result = r.emit(eqn.primitive, turned.invars[0], **eqn.params | {name: order[eqn.params[name]]})
    return r.emit("transpose", result, permutation=order)


def _reshape(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The reshape of a transposed array as the transpose of a reshaped one, as far as its axes are only split, or
    joined with their neighbours in memory.
    """
    turned = r.definition(eqn.invars[0], "transpose")
    if turned is None or eqn.params.get("dimensions") is not None:
        return None
    x, order = turned.invars[0], turned.params["permutation"]
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if 0 in before:
        return None
    parts = _refined(before, after)
    if parts is None:
        return None
    split, groups = parts  # sizes into which each axis before is split; which of these each axis after joins
    # Places in memory: axes of x in order, each with its parts in order.
    back = inverse_permutation(order)
    start = [0]
    for sizes in split:
        start.append(start[-1] + len(sizes))
    memory = [start[a] + k for a in back for k in range(len(split[a]))]
    place = {part: k for k, part in enumerate(memory)}
    sizes = [n for each in split for n in each]
    runs: list[list[int]] = []  # parts that stay together, in the order of the result
    for group in groups:
        for k, part in enumerate(group):
            if k and place[part] == place[group[k - 1]] + 1:
                runs[-1].append(part)
            else:
                runs.append([part])
    if len(runs) == sum(map(bool, groups)):  # every axis of the result is one run, or of size 1 and lies last in memory
        heads = iter(runs)
        runs = [next(heads) if group else [] for group in groups]
    elif list(map(len, split)) == [1] * len(before) and len(runs) == len(before):
        return None  # it only joins axes that are no neighbours
    in_memory = sorted(range(len(runs)), key=lambda k: place[runs[k][0]] if runs[k] else len(place) + k)
    based = r.reshape(x, [math.prod(sizes[p] for p in runs[k]) for k in in_memory])
    where = {k: n for n, k in enumerate(in_memory)}
    result = r.emit("transpose", based, permutation=tuple(where[k] for k in range(len(runs))))
    return r.reshape(result, after)


def _refined(before: Sequence[int], after: Sequence[int]) -> tuple[list[list[int]], list[list[int]]] | None:
    """Sizes into which each axis of `before` is to be split, and which of these parts, numbered, each axis of `after`
    joins; None if the two have no common parts. Axes of size 1 have none.
    """
    split: list[list[int]] = [[] for _ in before]
    groups: list[list[int]] = [[] for _ in after]
    i = j = number = 0
    left, wanted = (before[0] if before else 1), (after[0] if after else 1)
    while True:
        while left == 1 and i < len(before) - 1:
            i += 1
            left = before[i]
        while wanted == 1 and j < len(after) - 1:
            j += 1
            wanted = after[j]
        if left == 1 or wanted == 1:
            return (split, groups) if left == wanted == 1 else None
        part = min(left, wanted)
        if left % part or wanted % part:
            return None
        split[i].append(part)
        groups[j].append(number)
        number += 1
        left, wanted = left // part, wanted // part
