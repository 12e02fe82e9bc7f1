"""Emission of ops: comparisons and choices, floats, conversions, complex numbers; `integer_ops.py` has the integers.

`emit_op` looks the op up in the table, and rounds the results of the ops in ROUNDED to 16-bit floats.

Why floats are divided by dividers: by a reciprocal and one correction an update by Adam took 0.7 of the time, but 0.4 %
of float32 quotients were one unit off; with the second correction, which rounds rightly, it took 1.1.
"""

from __future__ import annotations

import math
import struct

from pullback.loops.ir.ir import SHORT_NANS, TERM, Op
from pullback.loops.ir.types import BITS, REAL_OF, type_class

from . import instructions
from .code import Code
from .integer_ops import constant_int, div_uniform, is_narrow
from .table import TABLE, Refs, Rule, instruction, rule
from .values import Asm, Value, broadcast, element_of, from_bits, narrow_to_odd, round_16, to_bits

ROUNDED = frozenset({"add", "sub", "mul", "div", "rem", "sqrt", "square", "convert"})


def emit_op(code: Code, op: Op, args: list[Value]) -> Value:
    """The value of `op`; arguments of fewer lanes are broadcast. NotImplementedError if the table has no such entry."""
    lanes = max(arg.lanes for arg in args)
    if lanes > 1 and op.name in ("div", "rem") and args[1].lanes == 1 and is_narrow(op.dtype):
        if constant_int(args[1]) is None:
            return Value(op.dtype, div_uniform(code, op, args[0], args[1].ref), lanes)
    if lanes > 1:
        args = [broadcast(code, arg, lanes) for arg in args]
    first = args[1 if op.name == "select" else 0].dtype
    function = TABLE.get((op.name, type_class(first)))
    if function is None:
        raise NotImplementedError(f"emit: no emission for op {op.name!r} on {first}")
    refs = function(Asm(code, lanes), op, *args)
    if isinstance(refs, tuple):
        return Value(op.dtype, refs[0], lanes, refs[1])
    if op.dtype in ("f16", "bf16") and op.name in ROUNDED and not _keeps(op):
        refs = round_16(code, op.dtype, refs, lanes, _has_short_nans(op))
    return Value(op.dtype, refs, lanes)


def _keeps(op: Op) -> bool:
    return op.name == "convert" and (op.args[0].dtype in ("bool", "i8", "u8") and op.dtype == "f16")


def _has_short_nans(op: Op) -> bool:
    """Whether the lower half of every NaN is zero in a result about to be rounded to 16 bits.

    Arithmetic makes such ones, and else passes on those of its operands, which have 16 bits.
    """
    return op.name != "convert" or SHORT_NANS in op.attrs or type_class(op.args[0].dtype) != "float"


def _product(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """Only terms of contractions are rounded together with the sums that they go into.

    Here, not by LLVM, which would go by how often a product is used, and in which block. It may fuse for processors of
    which no features are given, and asks both operations for the flag, by which such products differ from others.
    """
    term = TERM in op.attrs
    ref = a.op("fmul contract" if term else "fmul", element_of(x.dtype), x.ref, y.ref)
    if term and a.code.fuses:
        a.code.terms[ref] = x.ref, y.ref
    return ref


def _add(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """Of two terms the first is rounded, as BLAS does it."""
    element, terms = element_of(x.dtype), a.code.terms
    if x.ref == a.imm(element, -0.0):  # where sums start
        return y.ref
    for term, other in ((y.ref, x.ref), (x.ref, y.ref)):
        if term in terms:
            return a.call("llvm.fma", element, *terms[term], other)
    return a.op("fadd" if a.code.fuses else "fadd contract", element, x.ref, y.ref)


def _sub(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, terms = element_of(x.dtype), a.code.terms
    if x.ref in terms:
        return a.call("llvm.fma", element, *terms[x.ref], _negative(a, x.type, y.ref))
    if y.ref in terms:
        p, q = terms[y.ref]
        return a.call("llvm.fma", element, _negative(a, x.type, p), q, x.ref)
    return a.op("fsub" if a.code.fuses else "fsub contract", element, x.ref, y.ref)


def _negative(a: Asm, kind: str, ref: str) -> str:
    return a.code.inst(f"fneg {kind} {ref}", ref)


def _float_call(name: str) -> Rule:
    return lambda a, op, *xs: a.call(name, element_of(xs[0].dtype), *(x.ref for x in xs))


TABLE.update({
    ("add", "float"): _add,
    ("sub", "float"): _sub,
    **{(name, "float"): instruction(f"f{name}") for name in ("div", "rem")},
    ("mul", "float"): _product,
    ("floor", "float"): _float_call("llvm.floor"),
    ("ceil", "float"): _float_call("llvm.ceil"),
    ("trunc", "float"): _float_call("llvm.trunc"),
    ("round_even", "float"): _float_call("llvm.roundeven"),
    ("round_away", "float"): _float_call("llvm.round"),
    ("sqrt", "float"): _float_call("llvm.sqrt"),
    ("abs", "float"): _float_call("llvm.fabs"),
    ("fma", "float"): _float_call("llvm.fma"),
    ("neg", "float"): lambda a, op, x: _negative(a, x.type, x.ref),
    ("square", "float"): lambda a, op, x: _product(a, op, x, x),
    ("real", "float"): lambda a, op, x: x.ref,
    ("conj", "float"): lambda a, op, x: x.ref,
    ("imag", "float"): lambda a, op, x: a.imm(element_of(x.dtype), 0.0),
    ("real", "complex"): lambda a, op, x: x.ref,
    ("imag", "complex"): lambda a, op, x: x.im,
    ("complex", "float"): lambda a, op, x, y: (x.ref, y.ref),
    ("lookup", "signed"): instructions.lookup,
    ("nearest", "float"): instructions.nearest,
    ("scale", "float"): instructions.scale,
    ("dot_words", "signed"): instructions.dot_words,
    ("dot_pairs", "float"): instructions.dot_pairs,
})  # fmt: skip


# Comparisons and choice.

_PREDICATES = {
    "signed": dict(eq="eq", ne="ne", lt="slt", le="sle", gt="sgt", ge="sge"),
    "unsigned": dict(eq="eq", ne="ne", lt="ult", le="ule", gt="ugt", ge="uge"),
    "bool": dict(eq="eq", ne="ne", lt="ult", le="ule", gt="ugt", ge="uge"),
    "float": dict(eq="oeq", ne="une", lt="olt", le="ole", gt="ogt", ge="oge"),
}


def _compare(predicate: str) -> Rule:
    return lambda a, op, x, y: a.cmp(predicate, element_of(x.dtype), x.ref, y.ref)


for _kind, _names in _PREDICATES.items():
    for _name, _predicate in _names.items():
        TABLE[_name, _kind] = _compare(_predicate)
        if _kind != "float":
            TABLE[f"{_name}_total", _kind] = _compare(_predicate)


@rule("eq_total ne_total lt_total le_total gt_total ge_total", "float")
def _total(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """Sign-magnitude bits as two's complement: the total order of IEEE 754."""
    keys = []
    for value in (x, y):
        element, bits = to_bits(a.code, value)
        width = int(element[1:])
        sign = a.op("ashr", element, bits, a.imm(element, width - 1))
        keys.append(a.op("xor", element, bits, a.op("lshr", element, sign, a.imm(element, 1))))
    return a.cmp(_PREDICATES["signed"][op.name[:2]], element, *keys)


@rule("eq ne", "complex")
def _equal_complex(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, predicate = element_of(x.dtype), _PREDICATES["float"][op.name]
    re, im = (a.cmp(predicate, element, p, q) for p, q in zip(x.parts, y.parts))
    return a.op("and" if op.name == "eq" else "or", "i1", re, im)


@rule("lt le gt ge", "complex")
def _order_complex(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element = element_of(x.dtype)
    strict, last = _PREDICATES["float"][op.name[0] + "t"], _PREDICATES["float"][op.name]
    tie = a.op("and", "i1", a.cmp("oeq", element, x.ref, y.ref), a.cmp(last, element, x.parts[1], y.parts[1]))
    return a.op("or", "i1", a.cmp(strict, element, x.ref, y.ref), tie)


@rule("select", "bool signed unsigned float")
def _select(a: Asm, op: Op, c: Value, x: Value, y: Value) -> Refs:
    return a.select(c.ref, element_of(x.dtype), x.ref, y.ref)


@rule("select", "complex")
def _select_complex(a: Asm, op: Op, c: Value, x: Value, y: Value) -> Refs:
    element = element_of(x.dtype)
    return a.select(c.ref, element, x.ref, y.ref), a.select(c.ref, element, x.parts[1], y.parts[1])


@rule("min max", "float")
def _minmax(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """The compare-and-select is one maxps, which gives y if either is NaN; a NaN x is put back afterwards.

    So a constant goes first, where the second is not needed; but for zero, as y is given of zeros of either sign.
    """
    element = element_of(x.dtype)
    if _number(y) and _number(x) is None:
        x, y = y, x
    chosen = a.select(a.cmp("olt" if op.name == "min" else "ogt", element, x.ref, y.ref), element, x.ref, y.ref)
    if _number(x) is not None:
        return chosen
    if instructions.replaces_nans(a, element):
        return instructions.nans_of(a, element, x.ref, chosen)
    return a.select(a.cmp("uno", element, x.ref, x.ref), element, x.ref, chosen)


def _number(x: Value) -> float | None:
    """The number that a float is, if it is a constant other than NaN."""
    text = x.ref
    if text.startswith("splat"):
        text = text[text.index(" ", 7) + 1 : -1]
    if not text.startswith("0x"):
        return None
    (value,) = struct.unpack(">d", bytes.fromhex(text[2:]))
    return None if math.isnan(value) else value


@rule("min max", "complex")
def _minmax_complex(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element = element_of(x.dtype)
    order = Op("lt" if op.name == "min" else "gt", "bool", op.args)
    first = _order_complex(a, order, x, y)
    nan_x = a.cmp("uno", element, x.ref, x.parts[1])
    nan_y = a.cmp("uno", element, y.ref, y.parts[1])
    assert isinstance(first, str)
    take_x = a.op("or", "i1", nan_x, a.op("and", "i1", first, a.not_(nan_y)))
    return a.select(take_x, element, x.ref, y.ref), a.select(take_x, element, x.parts[1], y.parts[1])


# Floats.


@rule("sign", "float")
def _sign(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    nonzero = a.cmp("one", element, x.ref, a.imm(element, 0.0))  # false for NaN
    return a.select(nonzero, element, a.call("llvm.copysign", element, a.imm(element, 1.0), x.ref), x.ref)


@rule("is_finite", "float")
def _is_finite(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    return a.cmp("one", element, a.call("llvm.fabs", element, x.ref), a.imm(element, math.inf))


@rule("nextafter", "float")
def _nextafter(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, kind = element_of(x.dtype), op.dtype
    int_element, bits = to_bits(a.code, x)
    one = a.imm(int_element, 1)
    up = a.cmp("olt", element, x.ref, y.ref)
    negative = a.cmp("slt", int_element, bits, a.imm(int_element, 0))
    grow = a.op("xor", "i1", up, negative)  # towards larger magnitude
    moved = a.select(grow, int_element, a.op("add", int_element, bits, one), a.op("sub", int_element, bits, one))
    smallest = a.select(up, int_element, one, a.imm(int_element, -(1 << (int(int_element[1:]) - 1)) + 1))
    zero = a.cmp("oeq", element, x.ref, a.imm(element, 0.0))
    value = from_bits(a.code, kind, a.select(zero, int_element, smallest, moved), a.lanes)
    value = a.select(a.cmp("oeq", element, x.ref, y.ref), element, y.ref, value)
    nan = a.cmp("uno", element, x.ref, y.ref)
    return a.select(nan, element, a.op("fadd", element, x.ref, y.ref), value)


# Conversions.


@rule("bitcast", "bool signed unsigned float")
def _bitcast(a: Asm, op: Op, x: Value) -> Refs:
    element, bits = to_bits(a.code, x)
    target = BITS[op.dtype]
    if int(element[1:]) != target:
        raise NotImplementedError(f"bitcast: {x.dtype} to {op.dtype} differ in width")
    return from_bits(a.code, op.dtype, bits, a.lanes)


def _to_float(a: Asm, x: Value, target: str) -> str:
    """A real value as a register of the float type `target`, not yet rounded if that has 16 bits."""
    source, kind, wide = element_of(x.dtype), type_class(x.dtype), element_of(target)
    if kind == "float":
        if x.dtype == "f64" and target in ("f16", "bf16"):
            return narrow_to_odd(a.code, x.ref, a.lanes)
        if source == wide:
            return x.ref
        return a.cast("fpext" if wide == "double" else "fptrunc", source, x.ref, wide)
    opcode = "sitofp" if kind == "signed" else "uitofp"
    if target in ("f16", "bf16") and BITS[x.dtype] >= 32:
        return narrow_to_odd(a.code, a.cast(opcode, source, x.ref, "double"), a.lanes)
    return a.cast(opcode, source, x.ref, wide)


@rule("convert", "bool signed unsigned float complex")
def _convert(a: Asm, op: Op, x: Value) -> Refs:
    source, target = x.dtype, op.dtype
    kind, goal = type_class(source), type_class(target)
    if goal == "complex":
        part = REAL_OF[target]
        parts = [Value(REAL_OF.get(source, source), ref, x.lanes) for ref in x.parts]
        im = _to_float(a, parts[1], part) if len(parts) > 1 else a.imm(element_of(part), 0.0)
        return _to_float(a, parts[0], part), im
    if kind == "complex":
        part = REAL_OF[source]
        if target == "bool":
            zero = a.imm(element_of(part), 0.0)
            return a.op("or", "i1", *(a.cmp("une", element_of(part), ref, zero) for ref in x.parts))
        x, source, kind = Value(part, x.ref, x.lanes), part, "float"
    element, wide = element_of(source), element_of(target)
    if target == "bool":
        return x.ref if kind == "bool" else a.cmp("une" if kind == "float" else "ne", element, x.ref, a.imm(element, 0))
    if goal == "float":
        return _to_float(a, x, target)
    if kind == "float":
        return _saturate(a, x, target)
    if BITS[target] == BITS[source]:
        return x.ref
    if BITS[target] < BITS[source]:
        return a.cast("trunc", element, x.ref, wide)
    return a.cast("sext" if kind == "signed" else "zext", element, x.ref, wide)


def _saturate(a: Asm, x: Value, target: str) -> str:
    """Float to integer: towards zero, saturating, NaN to 0.

    LLVM's own saturating conversion takes lanes one by one; clamped before, they convert together. Where the largest
    integer is no float, the clamp is the float below it, and numbers beyond are put right afterwards. 1e6 of
    f32 to u8 took 0.99 ms, now 0.11, to u32 14 ms, now 0.2.
    """
    source, wide = element_of(x.dtype), element_of(target)
    bits, signed = BITS[target], target[0] == "i"
    precision = 24 if source == "float" else 53
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    lost = max(bits - signed - precision, 0)
    least, most = a.imm(source, float(low)), a.imm(source, float(high >> lost << lost))
    clamped = a.select(a.cmp("ogt", source, x.ref, least), source, x.ref, least)
    clamped = a.select(a.cmp("olt", source, clamped, most), source, clamped, most)
    if bits < 32:  # processors convert to 32 bits
        whole = a.cast("trunc", "i32", a.cast("fptosi", source, clamped, "i32"), wide)
    else:
        whole = a.cast("fptosi" if signed else "fptoui", source, clamped, wide)
    if lost:
        whole = a.select(a.cmp("ogt", source, x.ref, most), wide, a.imm(wide, high if signed else -1), whole)
    if low == 0:  # what is not greater than 0, NaN as well, became 0
        return whole
    return a.select(a.cmp("uno", source, x.ref, x.ref), wide, a.imm(wide, 0), whole)


# Complex arithmetic.


@rule("add sub", "complex")
def _add_complex(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    opcode, element = f"f{op.name}", element_of(x.dtype)
    return a.op(opcode, element, x.ref, y.ref), a.op(opcode, element, x.parts[1], y.parts[1])


@rule("mul", "complex")
def _mul_complex(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """Four rounded products: of z and its conjugate, the imaginary part is zero."""
    element, (p, q), (r, s) = element_of(x.dtype), x.parts, y.parts
    re = a.op("fsub", element, a.op("fmul", element, p, r), a.op("fmul", element, q, s))
    return re, a.op("fadd", element, a.op("fmul", element, p, s), a.op("fmul", element, q, r))


@rule("square", "complex")
def _square_complex(a: Asm, op: Op, x: Value) -> Refs:
    """The real part as a product, which neither cancels nor overflows where the result does not."""
    element, (p, q) = element_of(x.dtype), x.parts
    re = a.op("fmul", element, a.op("fsub", element, p, q), a.op("fadd", element, p, q))
    half = a.op("fmul", element, p, q)
    return re, a.op("fadd", element, half, half)


@rule("neg", "complex")
def _neg_complex(a: Asm, op: Op, x: Value) -> Refs:
    re, im = (_negative(a, x.type, ref) for ref in x.parts)
    return re, im


@rule("conj", "complex")
def _conj(a: Asm, op: Op, x: Value) -> Refs:
    return x.ref, _negative(a, x.type, x.parts[1])
