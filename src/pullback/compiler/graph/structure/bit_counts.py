"""Sums of the bits of a number, one by one along an axis, are counts of bits.

    sum((x[:, None] >> iota(32)) & 1, 1)            =>    population_count(x)
    xor over the axis                               =>    population_count(x) & 1
    sum((x[:, None] & (1 << iota(8))) != 0, 1)      =>    population_count(x & 255)
    sum(reshape(bits of x, -1))                     =>    sum(population_count(x)), as of other axes that were joined
    sum(population_count(bytes of x))               =>    sum(population_count(x))

Measured (Zen 4): bits of 100,000 numbers of 32 bits, 56 us, now 6.8; their parities 56 and 6.8; counted by
`unpackbits` of their bytes 4230, now 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.facts import known_values
from pullback.compiler.graph.structure.one_hot import without_axis
from pullback.core.jaxpr import JaxprEqn


def _total(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sum, or exclusive or, of bits along one of the axes it goes over."""
    summed, out = eqn.invars[0], eqn.outvars[0].aval
    if not summed.aval.size or summed.aval.dtype.kind not in "iufb" or out.dtype != summed.aval.dtype:
        return None
    bits, axes = _apart(r, _unconverted(r, summed), eqn.params["axes"])
    found = _bits(r, bits, axes)
    if found is None:
        return None
    x, axis, mask = found
    word = x.aval.dtype
    if mask != (1 << 8 * word.itemsize) - 1:
        x = r.emit("and", x, r.full(x.aval, np.asarray(mask, f"u{word.itemsize}").astype(word)))
    count = r.emit("population_count", x)
    if eqn.primitive.name == "reduce_xor":
        count = r.emit("and", count, r.full(count.aval, 1))
    count = r.convert(count, out.dtype, out.weak_type)
    rest = tuple(a - (a > axis) for a in axes if a != axis)
    if rest:
        count = r.emit(eqn.primitive.name, count, **eqn.params | {"axes": rest})
    return r.reshape(count, out.shape)


def _of_words(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sum of the counts of parts of numbers, whose parts lie along one of the axes it goes over."""
    out = eqn.outvars[0].aval
    counted = r.definition(_unconverted(r, eqn.invars[0], "iu"), "population_count")
    if counted is None or out.dtype.kind not in "iu":
        return None
    parts, axes = _apart(r, counted.invars[0], eqn.params["axes"])
    made = r.definition(parts, "bitcast_convert_type")
    last = parts.aval.ndim - 1
    if made is None or last not in axes or made.invars[0].aval.ndim != last:
        return None
    word = made.invars[0]
    if word.aval.dtype.kind not in "iu":
        word = r.emit("bitcast_convert_type", word, new_dtype=np.dtype(f"u{word.aval.dtype.itemsize}"))
    count = r.convert(r.emit("population_count", word), out.dtype, out.weak_type)
    rest = tuple(a for a in axes if a != last)
    if rest:
        count = r.emit("reduce_sum", count, **eqn.params | {"axes": rest})
    return r.reshape(count, out.shape)


def _unconverted(r: Rewriter, atom: Any, kinds: str = "iub") -> Any:
    """What an array of small integers was converted from, through types of some kinds."""
    while (made := r.definition(atom, "convert_element_type")) is not None:
        if made.invars[0].aval.dtype.kind not in kinds or (atom.aval.dtype.kind == "b" and kinds == "iu"):
            break
        atom = made.invars[0]
    return atom


def _apart(r: Rewriter, atom: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """An array before some of its axes were joined, or such of one element came or went, and what `axes` were then."""
    made = r.definition(atom, "reshape")
    if made is None:
        return atom, axes
    fine, found, k = made.invars[0].aval.shape, list[int](), 0
    for axis, n in enumerate(atom.aval.shape):
        size, first = 1, k
        while k < len(fine) and (size < n or fine[k] == 1):
            size, k = size * fine[k], k + 1
        if size != n:
            return atom, axes
        found += range(first, k) if axis in axes else ()
    return made.invars[0], tuple(found)


def _bits(r: Rewriter, atom: Any, axes: tuple[int, ...]) -> tuple[Any, int, int] | None:
    """(x, an axis of `axes`, a mask): along the axis, which x does not have, an array is the bits of x in the mask."""
    atom = _unconverted(r, atom)
    made = r.definition(atom)
    if made is None:
        return None
    name, operands = made.primitive.name, made.invars
    if name in ("ne", "eq", "gt") and r.is_scalar(operands[1], name == "eq"):
        inner = r.definition(operands[0], "and")
        taken = None if inner is None or name == "eq" else _masked(r, inner, atom.aval.shape, axes)
        return taken or _bits(r, operands[0], axes)
    if name == "and" or (name == "rem" and atom.aval.dtype.kind == "u"):
        one = 1 if name == "and" else 2
        for shifted, number in (operands, reversed(operands)) if name == "and" else (operands,):
            shift = r.definition(shifted, "shift_right_logical", "shift_right_arithmetic")
            if shift is not None and r.is_scalar(number, one):
                places = _along(r, shift.invars[1], atom.aval.shape, axes)
                if places is not None and np.all(places[1] < 8 * shifted.aval.dtype.itemsize):
                    return _of(r, shift.invars[0], atom.aval.shape, places[0], [1 << int(p) for p in places[1]])
    return None


def _masked(r: Rewriter, both: JaxprEqn, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """As `_bits` of x & masks, of one bit each, that is compared with 0."""
    for x, masks in (both.invars, reversed(both.invars)):
        found = _along(r, masks, shape, axes)
        if found is not None:
            values = [int(v) % (1 << 8 * x.aval.dtype.itemsize) for v in found[1]]
            return _of(r, x, shape, found[0], values)
    return None


def _along(r: Rewriter, atom: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, np.ndarray] | None:
    """(the one axis along which known numbers differ, which is among `axes`, these numbers), none of them negative."""
    values = known_values(r, atom)
    if values is None or values.dtype.kind not in "iu" or values.ndim != len(shape):
        return None
    wide = [a for a, n in enumerate(values.shape) if n > 1]
    if len(wide) != 1 or wide[0] not in axes or values.shape[wide[0]] != shape[wide[0]]:
        return None
    return wide[0], values.reshape(-1)


def _of(r: Rewriter, x: Any, shape: tuple[int, ...], axis: int, masks: list[int]) -> tuple[Any, int, int] | None:
    """(x without an axis, that axis, the masks together), if each is another bit of x, the same all along the axis."""
    if len(set(masks)) != len(masks) or any(m <= 0 or m & (m - 1) for m in masks):
        return None
    if x.aval.dtype.kind not in "iu" or not isinstance(x.aval.dtype, np.dtype) or x.aval.ndim != len(shape):
        return None
    less = (*shape[:axis], *shape[axis + 1 :])
    if x.aval.shape == (*shape[:axis], 1, *shape[axis + 1 :]):
        return r.reshape(x, less), axis, sum(masks)
    narrow = without_axis(r, x, axis) if x.aval.shape == shape else None
    return None if narrow is None else (narrow, axis, sum(masks))


BIT_COUNT_RULES: dict[str, tuple[Rule, ...]] = {"reduce_sum": (_total, _of_words), "reduce_xor": (_total,)}
