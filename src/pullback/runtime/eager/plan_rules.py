"""How each primitive becomes steps of a plan: rule(builder, equation, *operands) -> the value of its result.

A rule raises NotImplementedError for types or parameters that it leaves to the primitive's reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.core.primitive import registry
from pullback.lax.elementwise.arithmetic import RoundingMethod
from pullback.lax.reductions.reductions import all_ones, highest, lowest
from pullback.runtime.eager.functions import has_kernel, power_steps, ufunc_of
from pullback.runtime.eager.plan_values import Value, contiguous_strides
from pullback.runtime.eager.reductions import TYPES
from pullback.runtime.programs.ahead import FUNCTIONS

Rule = Callable[..., Value]
RULES: dict[str, Rule] = {}

NANOSECONDS = 0.01  # for a byte of the operand and a unit of a primitive's cost, where a kernel computes it
POWER = 2.0  # nanoseconds for an element of one step of a power: compiled code does all steps in one pass
DOUBLE, BOOL = np.dtype(np.float64), np.dtype(np.bool_)


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


# ---- elementwise


def _by_ufunc(ufunc: np.ufunc, cost: float) -> Rule:
    def rule(b: Any, eqn: Any, *operands: Value) -> Value:
        return b.ufunc(ufunc, operands, b.target(eqn.outvars[0]), cost)

    return rule


def _by_kernel(name: str, otherwise: Rule | None) -> Rule:
    """As `reference_of`; `otherwise` for types that there is no kernel for."""

    def rule(b: Any, eqn: Any, *operands: Value) -> Value:
        dtype, out = operands[0].dtype, b.target(eqn.outvars[0])
        cost = NANOSECONDS * eqn.primitive.lower.cost * dtype.itemsize
        if has_kernel(name, [x.dtype for x in operands]):
            return b.ufunc(ufunc_of(name, dtype), operands, out, cost)
        if dtype.char == "f" and has_kernel(name, [DOUBLE]):  # in float64 alone
            wide = [b.convert(x, b.temporary(x.shape, DOUBLE)) for x in operands]
            return b.convert(b.ufunc(ufunc_of(name, DOUBLE), wide, b.temporary(out.shape, DOUBLE), 2 * cost), out)
        if otherwise is None:
            raise NotImplementedError("plan: floats of 16 bits and fewer are left to the reference")
        return otherwise(b, eqn, *operands)

    return rule


def _add_ufuncs() -> None:
    """The primitives whose reference plainly is a ufunc of NumPy's, and those that have kernels."""
    for name, primitive in registry.items():
        if isinstance(primitive.reference, np.ufunc):
            RULES.setdefault(name, _by_ufunc(primitive.reference, 0.4))
    for name in FUNCTIONS:
        RULES[name] = _by_kernel(name, RULES.get(name))


@_rule("neg")
def _neg(b: Any, eqn: Any, x: Value) -> Value:
    out = b.target(eqn.outvars[0])
    if x.dtype.char not in "if":
        return b.ufunc(np.negative, [x], out)
    # NumPy 2.4's loop for four bytes reads other elements with AVX-512 where they lie 16 bytes apart, results apart.
    if x.dtype.kind == "i":
        return b.ufunc(np.multiply, [x, b.constant(np.asarray(-1, x.dtype))], out)
    # The sign's bit, since a product would make subnormal numbers 0.
    bits, of_bits = (replace(v, dtype=np.dtype(np.uint32)) for v in (x, out))
    b.ufunc(np.bitwise_xor, [bits, b.constant(np.asarray(1 << 31, np.uint32))], of_bits)
    return out


@_rule("div")
def _div(b: Any, eqn: Any, x: Value, y: Value) -> Value:
    out = b.target(eqn.outvars[0])
    if x.dtype.kind == "c":
        raise NotImplementedError("plan: division of infinite complex numbers")
    if x.dtype.kind in "iu":
        return _quotient(b, x, y, out)
    return b.ufunc(np.divide, [x, y], out, 0.8)


def _quotient(b: Any, x: Value, y: Value, out: Value) -> Value:
    """Of integers towards zero; -1 over zero. NumPy's goes down: it is one less where signs differ and something is
    left."""
    dtype = out.dtype

    def test(ufunc: np.ufunc, *operands: Value) -> Value:
        return b.ufunc(ufunc, operands, b.temporary(out.shape, BOOL))

    def step(ufunc: np.ufunc, *operands: Value) -> Value:
        return b.ufunc(ufunc, operands, b.temporary(out.shape, dtype))

    def select(which: Value, no: Value, yes: Value, to: Value) -> Value:
        return b.elementwise(("select", dtype.itemsize), [which, no, yes], to, 0.8)

    zero, one = (b.constant(np.asarray(n, dtype)) for n in (0, 1))
    is_zero = test(np.equal, y, zero)
    safe = select(is_zero, y, one, b.temporary(out.shape, dtype))
    quotient = b.ufunc(np.floor_divide, [x, safe], b.temporary(out.shape, dtype), 2.0)
    if dtype.kind == "i":
        is_inexact = test(np.not_equal, step(np.multiply, quotient, safe), x)
        differs = test(np.not_equal, test(np.less, x, zero), test(np.less, y, zero))
        up = b.convert(test(np.logical_and, is_inexact, differs), b.temporary(out.shape, dtype))
        quotient = step(np.add, quotient, up)
    return select(is_zero, quotient, b.constant(np.asarray(-1).astype(dtype)), out)


def _shift(ufunc: np.ufunc, by_zeros: bool) -> Rule:
    """Of all bits and more, as of negative amounts, NumPy's loops leave zeros, or the sign where that fills up."""

    def rule(b: Any, eqn: Any, x: Value, y: Value) -> Value:
        if x.dtype.char not in "bBhHiIlL":
            raise NotImplementedError("plan: shifts of integers of less than a byte")
        out, kind = b.target(eqn.outvars[0]), "u" if by_zeros else "i"
        as_kind = [replace(v, dtype=np.dtype(f"{kind}{v.dtype.itemsize}")) for v in (x, y, out)]
        b.ufunc(ufunc, as_kind[:2], as_kind[2])
        return out

    return rule


RULES |= {
    "shift_left": _shift(np.left_shift, True),
    "shift_right_logical": _shift(np.right_shift, True),
    "shift_right_arithmetic": _shift(np.right_shift, False),
}


def _part(x: Value, number: int) -> Value:
    """The real parts (0) or the imaginary ones of complex numbers, where they are."""
    dtype = np.dtype(x.dtype.char.lower())
    return replace(x, dtype=dtype, offset=x.offset + number * dtype.itemsize)


@_rule("real", "imag")
def _part_of(b: Any, eqn: Any, x: Value) -> Value:
    if x.dtype.kind != "c":
        raise NotImplementedError("plan: parts of real numbers")
    return b.copy(_part(x, int(eqn.primitive.name == "imag")), b.target(eqn.outvars[0]))


@_rule("complex")
def _complex(b: Any, eqn: Any, x: Value, y: Value) -> Value:
    out = b.target(eqn.outvars[0])
    if out.dtype.kind != "c" or {x.dtype.char, y.dtype.char} != {out.dtype.char.lower()}:
        raise NotImplementedError("plan: complex numbers of floats of 16 bits")
    for number, part in enumerate((x, y)):
        b.copy(part, _part(out, number))
    return out


@_rule("square")
def _square(b: Any, eqn: Any, x: Value) -> Value:
    if x.dtype.kind == "c":
        raise NotImplementedError("plan: squares of complex numbers, which NumPy takes as products")
    return b.ufunc(np.square, [x], b.target(eqn.outvars[0]))


@_rule("sign")
def _sign(b: Any, eqn: Any, x: Value) -> Value:
    out = b.target(eqn.outvars[0])
    if x.dtype.kind in "iu":
        return b.ufunc(np.sign, [x], out)
    if x.dtype.char not in "fd":
        raise NotImplementedError("plan: signs of complex numbers, and of floats of 16 bits and fewer")
    is_zero = b.ufunc(np.equal, [x, b.constant(np.asarray(0, x.dtype))], b.temporary(x.shape, BOOL))
    sign = b.ufunc(np.sign, [x], b.temporary(x.shape, x.dtype))
    return b.elementwise(("select", x.dtype.itemsize), [is_zero, sign, x], out, 0.8)  # keeps -0


@_rule("rem")
def _rem(b: Any, eqn: Any, x: Value, y: Value) -> Value:
    out = b.target(eqn.outvars[0])
    if x.dtype.kind not in "iu":
        return b.ufunc(np.fmod, [x, y], out, 5.0)
    zero, one = (b.constant(np.asarray(n, x.dtype)) for n in (0, 1))
    is_zero = b.ufunc(np.equal, [y, zero], b.temporary(out.shape, BOOL))
    safe = b.elementwise(("select", x.dtype.itemsize), [is_zero, y, one], b.temporary(out.shape, x.dtype), 0.8)
    rest = b.ufunc(np.fmod, [x, safe], b.temporary(out.shape, x.dtype), 2.0)
    return b.elementwise(("select", x.dtype.itemsize), [is_zero, rest, x], out, 0.8)


@_rule("round")
def _round(b: Any, eqn: Any, x: Value) -> Value:
    if x.dtype.char not in "fd":
        raise NotImplementedError("plan: floats of 16 bits and fewer are left to the reference")
    out = b.target(eqn.outvars[0])
    if eqn.params["rounding_method"] == RoundingMethod.TO_NEAREST_EVEN:
        return b.ufunc(np.rint, [x], out)

    def step(ufunc: np.ufunc, *operands: Value) -> Value:
        return b.ufunc(ufunc, operands, b.temporary(x.shape, x.dtype))

    half, one = (b.constant(np.asarray(n, x.dtype)) for n in (0.5, 1))
    whole = step(np.trunc, x)
    part = step(np.absolute, step(np.subtract, x, whole))
    is_up = b.ufunc(np.greater_equal, [part, half], b.temporary(x.shape, BOOL))
    size = step(np.absolute, whole)
    chosen = [is_up, size, step(np.add, size, one)]
    away = b.elementwise(("select", x.dtype.itemsize), chosen, b.temporary(x.shape, x.dtype), 0.8)
    return b.ufunc(np.copysign, [away, x], out)


@_rule("conj")
def _conj(b: Any, eqn: Any, x: Value) -> Value:
    if x.dtype.kind != "c":
        raise NotImplementedError("plan: floats that become complex")
    return b.ufunc(np.conjugate, [x], b.target(eqn.outvars[0]))


@_rule("integer_pow")
def _integer_pow(b: Any, eqn: Any, x: Value) -> Value:
    y = eqn.params["y"]
    if y == 2:
        return _square(b, eqn, x)
    out = b.target(eqn.outvars[0])
    if x.dtype.char not in "fdFD":
        raise NotImplementedError("plan: powers of integers, and of floats of 16 bits and fewer")
    is_complex = x.dtype.kind == "c"
    one = b.constant(np.asarray(1, x.dtype))
    if y == 0:
        return b.copy(replace(one, shape=x.shape, strides=(0,) * len(x.shape)), out)
    multiply, divide = (
        ufunc_of(name, x.dtype) if is_complex else own for name, own in (("mul", np.multiply), ("div", np.divide))
    )

    def times(left: Value, right: Value) -> Value:
        return b.ufunc(multiply, [left, right], b.temporary(x.shape, x.dtype), POWER)

    def over(value: Value) -> Value:
        return b.ufunc(divide, [one, value], b.temporary(x.shape, x.dtype), POWER)

    return b.placed(power_steps(x, y, times, over, is_complex), out)


def _but_of_halves(ufunc: np.ufunc) -> Rule:
    def rule(b: Any, eqn: Any, *operands: Value) -> Value:
        if operands[0].dtype.char == "e":
            raise NotImplementedError("plan: NumPy's rule for zeros of float16 is another")
        return b.ufunc(ufunc, operands, b.target(eqn.outvars[0]))

    return rule


RULES |= {
    "max": _but_of_halves(np.maximum),
    "min": _but_of_halves(np.minimum),
    "nextafter": _but_of_halves(np.nextafter),
}


@_rule("clamp")
def _clamp(b: Any, eqn: Any, low: Value, x: Value, high: Value) -> Value:
    if x.dtype.char == "e":
        raise NotImplementedError("plan: NumPy's rule for zeros of float16 is another")
    raised = b.ufunc(np.maximum, [x, low], b.temporary(x.shape, x.dtype))
    return b.ufunc(np.minimum, [raised, high], b.target(eqn.outvars[0]))


@_rule("convert_element_type")
def _convert(b: Any, eqn: Any, x: Value) -> Value:
    return x if eqn.params["new_dtype"] == x.dtype else b.convert(x, b.target(eqn.outvars[0]))


@_rule("select_n")
def _select(b: Any, eqn: Any, which: Value, *cases: Value) -> Value:
    if which.dtype != np.bool_ or len(cases) != 2:
        raise NotImplementedError("plan: selection by numbers")
    out = b.target(eqn.outvars[0])
    return b.elementwise(("select", out.dtype.itemsize), [which, *cases], out, 0.8)


@_rule("copy", "copy_p", "stop_gradient", "keep_apart", "reduce_precision_none")
def _same(b: Any, eqn: Any, x: Value) -> Value:
    return x


# ---- views


@_rule("broadcast_in_dim")
def _broadcast_in_dim(b: Any, eqn: Any, x: Value) -> Value:
    shape = tuple(eqn.params["shape"])
    strides = [0] * len(shape)
    for n, step, d in zip(x.shape, x.strides, eqn.params["broadcast_dimensions"]):
        strides[d] = step if n == shape[d] else 0
    return replace(x, shape=shape, strides=tuple(strides))


@_rule("reshape")
def _reshape(b: Any, eqn: Any, x: Value) -> Value:
    if eqn.params.get("dimensions") is not None:
        raise NotImplementedError("plan: reshape with an order of dimensions")
    shape = tuple(eqn.params["new_sizes"])
    # Axes of length 1 come and go wherever they are.
    if [n for n in shape if n != 1] == [n for n in x.shape if n != 1]:
        left = iter([s for n, s in zip(x.shape, x.strides) if n != 1])
        return replace(x, shape=shape, strides=tuple([next(left) if n != 1 else x.dtype.itemsize for n in shape]))
    if all(s == 0 for s in x.strides):  # one element, repeated
        return replace(x, shape=shape, strides=(0,) * len(shape))
    x = b.contiguous(x)
    return replace(x, shape=shape, strides=contiguous_strides(shape, x.dtype.itemsize))


@_rule("squeeze")
def _squeeze(b: Any, eqn: Any, x: Value) -> Value:
    kept = [d for d in range(len(x.shape)) if d not in eqn.params["dimensions"]]
    return replace(x, shape=tuple([x.shape[d] for d in kept]), strides=tuple([x.strides[d] for d in kept]))


@_rule("transpose")
def _transpose(b: Any, eqn: Any, x: Value) -> Value:
    order = eqn.params["permutation"]
    return replace(x, shape=tuple([x.shape[d] for d in order]), strides=tuple([x.strides[d] for d in order]))


@_rule("slice")
def _slice(b: Any, eqn: Any, x: Value) -> Value:
    starts, limits, steps = (eqn.params[k] for k in ("start_indices", "limit_indices", "strides"))
    steps = steps or (1,) * len(starts)
    shape = tuple([max(0, -(-(hi - lo) // s)) for lo, hi, s in zip(starts, limits, steps)])
    offset = x.offset + sum(lo * stride for lo, stride in zip(starts, x.strides))
    return replace(x, offset=offset, shape=shape, strides=tuple([a * s for a, s in zip(x.strides, steps)]))


@_rule("rev")
def _rev(b: Any, eqn: Any, x: Value) -> Value:
    turned = eqn.params["dimensions"]
    offset = x.offset + sum((x.shape[d] - 1) * x.strides[d] for d in turned if x.shape[d])
    return replace(x, offset=offset, strides=tuple([-s if d in turned else s for d, s in enumerate(x.strides)]))


# ---- joining


@_rule("concatenate")
def _concatenate(b: Any, eqn: Any, *operands: Value) -> Value:
    axis, out, start = eqn.params["dimension"], b.target(eqn.outvars[0]), 0
    for x in operands:
        b.copy(x, replace(out, shape=x.shape, offset=out.offset + start * out.strides[axis]))
        start += x.shape[axis]
    return out


@_rule("pad")
def _pad(b: Any, eqn: Any, x: Value, padding: Value) -> Value:
    config = eqn.params["padding_config"]
    if any(lo < 0 or hi < 0 for lo, hi, _ in config):
        raise NotImplementedError("plan: negative padding")
    out = b.target(eqn.outvars[0])
    b.copy(replace(padding, shape=out.shape, strides=(0,) * len(out.shape)), out)
    offset = out.offset + sum(lo * s for (lo, _, _), s in zip(config, out.strides))
    strides = tuple([s * (gap + 1) for (_, _, gap), s in zip(config, out.strides)])
    b.copy(x, replace(out, shape=x.shape, offset=offset, strides=strides))
    return out


# ---- reductions


def _accumulation(combine: str, ufunc: np.ufunc, identity: Callable[[np.dtype], Any]) -> Rule:
    def rule(b: Any, eqn: Any, x: Value) -> Value:
        axes, out = eqn.params["axes"], b.target(eqn.outvars[0])
        if x.dtype.char in TYPES.get(combine, "") and out.dtype == x.dtype and math.prod(x.shape):
            return b.accumulate(combine, x, axes, out)
        if x.dtype.kind not in "biufc" or (x.dtype.kind == "f" and x.dtype.itemsize < 4):
            raise NotImplementedError("plan: narrow floats are summed in wider ones")
        return b.by_ufunc(ufunc, x, axes, identity(x.dtype), out)

    return rule


RULES |= {
    "reduce_sum": _accumulation("add", np.add, lambda dtype: 0),
    "reduce_prod": _accumulation("mul", np.multiply, lambda dtype: 1),
    "reduce_max": _accumulation("max", np.maximum, lowest),
    "reduce_min": _accumulation("min", np.minimum, highest),
    "reduce_and": _accumulation("and", np.bitwise_and, all_ones),
    "reduce_or": _accumulation("or", np.bitwise_or, lambda dtype: 0),
    "reduce_xor": _accumulation("xor", np.bitwise_xor, lambda dtype: 0),
}


# ---- products


def _merged(b: Any, x: Value, groups: Sequence[Sequence[int]]) -> tuple[Value, list[tuple[int, int]]]:
    """(x or a copy of it in the order of the groups, (length, stride) of each group of axes as one axis)."""
    found = []
    for axes in groups:
        length, step = 1, x.dtype.itemsize
        for d in axes:
            n, s = x.shape[d], x.strides[d]
            if n == 1:
                continue
            if length != 1 and step != s * n:
                order = [d for group in groups for d in group]
                turned = replace(
                    x, shape=tuple([x.shape[d] for d in order]), strides=tuple([x.strides[d] for d in order])
                )
                copy, ends, place = b.copy(turned, b.temporary(turned.shape, x.dtype)), [], 0
                for group in groups:
                    ends.append(list(range(place, place + len(group))))
                    place += len(group)
                return _merged(b, copy, ends)
            length, step = length * n, s
        found.append((length, step))
    return x, found


@_rule("dot_general")
def _dot_general(b: Any, eqn: Any, x: Value, y: Value) -> Value:
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    wanted = eqn.params.get("preferred_element_type")
    out = b.target(eqn.outvars[0])
    if x.dtype != y.dtype or out.dtype != x.dtype or wanted not in (None, x.dtype) or x.dtype.char not in "ilfdFD":
        raise NotImplementedError("plan: products of mixed types")
    free_x = [d for d in range(len(x.shape)) if d not in cx and d not in bx]
    free_y = [d for d in range(len(y.shape)) if d not in cy and d not in by]
    if all(x.shape[d] == 1 for d in cx):  # nothing is summed, and a product of 1 x 1 costs as much as many elements
        of_x, of_y = [(x.shape[d], x.strides[d]) for d in free_x], [(y.shape[d], y.strides[d]) for d in free_y]
        left = [(x.shape[d], x.strides[d]) for d in bx] + of_x + [(n, 0) for n, _ in of_y]
        right = [(y.shape[d], y.strides[d]) for d in by] + [(n, 0) for n, _ in of_x] + of_y
        return b.ufunc(np.multiply, [_matrices(x, left), _matrices(y, right)], out)
    x, (*batch_x, rows, inner_x) = _merged(b, x, [*[(d,) for d in bx], free_x, cx])
    y, (*batch_y, inner_y, columns) = _merged(b, y, [*[(d,) for d in by], cy, free_y])
    shape = (*[n for n, _ in batch_x], rows[0], columns[0])
    matrices = _matrices(x, [*batch_x, rows, inner_x]), _matrices(y, [*batch_y, inner_y, columns])
    b.product(*matrices, replace(out, shape=shape, strides=contiguous_strides(shape, out.dtype.itemsize)))
    return out


def _matrices(x: Value, axes: Sequence[tuple[int, int]]) -> Value:
    return replace(x, shape=tuple([n for n, _ in axes]), strides=tuple([s for _, s in axes]))


_add_ufuncs()
