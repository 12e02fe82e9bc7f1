"""Emission of the ops on integers and booleans. Works on any number of lanes."""

from __future__ import annotations

import operator
from collections.abc import Callable

from pullback.loops.ir.ir import Const, Expr, Op
from pullback.loops.ir.types import BITS, is_int

from .code import Code
from .table import TABLE, Refs, Rule, instruction, rule
from .values import Asm, Value, broadcast, element_of

_FOLDS: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _index(opcode: str) -> Rule:
    """Of numbers known here the result: indices in loops that are written out are, and addresses are one register and
    a constant then."""
    fold = _FOLDS[opcode]

    def emit(a: Asm, op: Op, x: Value, y: Value) -> Refs:
        if a.lanes == 1 and op.dtype == "i64" and x.ref[0] != "%" and y.ref[0] != "%":
            value = fold(int(x.ref), int(y.ref))
            return str((value + (1 << 63)) % (1 << 64) - (1 << 63))
        return a.op(opcode, element_of(x.dtype), x.ref, y.ref)

    return emit


TABLE.update({
    **{(name, "signed"): _index(name) for name in _FOLDS},
    **{(name, "unsigned"): instruction(name) for name in _FOLDS},
    **{(name, kind): instruction(name) for name in ("and", "or", "xor") for kind in ("signed", "unsigned", "bool")},
    ("min", "signed"): lambda a, op, x, y: a.call("llvm.smin", element_of(x.dtype), x.ref, y.ref),
    ("max", "signed"): lambda a, op, x, y: a.call("llvm.smax", element_of(x.dtype), x.ref, y.ref),
    ("min", "unsigned"): lambda a, op, x, y: a.call("llvm.umin", element_of(x.dtype), x.ref, y.ref),
    ("max", "unsigned"): lambda a, op, x, y: a.call("llvm.umax", element_of(x.dtype), x.ref, y.ref),
    ("min", "bool"): instruction("and"),
    ("max", "bool"): instruction("or"),
    ("abs", "unsigned"): lambda a, op, x: x.ref,
    ("not", "bool"): lambda a, op, x: a.not_(x.ref),
})  # fmt: skip


@rule("neg", "signed unsigned")
def _neg(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    return a.op("sub", element, a.imm(element, 0), x.ref)


@rule("not", "signed unsigned")
def _not(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    return a.op("xor", element, x.ref, a.imm(element, -1))


@rule("or xor", "signed unsigned")
def _mix(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """In lanes, a result of which LLVM knows no bits.

    At each op it looks for known bits among operands six ops deep, which for rounds of sums, rotations and xors took
    more than half of code generation. A fence of floats, which is no instruction and changes no bit, ends that: with
    rare.py, code generation of uniform, gamma and permutation went from 307 to 148 ms, of normal variables from 33 to
    22; random bits take 0.96 of the time, gamma variables 1.015.
    """
    element = element_of(x.dtype)
    ref = a.op(op.name, element, x.ref, y.ref)
    number = {"i32": "float", "i64": "double"}.get(element)
    if number is None or a.lanes * BITS[op.dtype] < 128 or x.ref[0] != "%" or y.ref[0] != "%":
        return ref
    fenced = a.call("llvm.arithmetic.fence", number, a.cast("bitcast", element, ref, number))
    return a.cast("bitcast", number, fenced, element)


@rule("square", "signed unsigned")
def _square(a: Asm, op: Op, x: Value) -> Refs:
    return a.op("mul", element_of(x.dtype), x.ref, x.ref)


@rule("abs", "signed")
def _abs(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    negative = a.cmp("slt", element, x.ref, a.imm(element, 0))
    return a.select(negative, element, a.op("sub", element, a.imm(element, 0), x.ref), x.ref)


@rule("sign", "signed unsigned")
def _sign_int(a: Asm, op: Op, x: Value) -> Refs:
    element = element_of(x.dtype)
    some = a.cast("zext", "i1", a.cmp("ne", element, x.ref, a.imm(element, 0)), element)
    if op.dtype[0] == "u":
        return some
    return a.op("or", element, a.op("ashr", element, x.ref, a.imm(element, BITS[op.dtype] - 1)), some)


def constant_int(value: Value) -> int | None:
    """The integer in all lanes of a constant, else None."""
    text = value.ref
    if text[0] == "%":
        return None
    if text.startswith("splat"):
        text = text[text.index(" ", 7) + 1 : -1]
    return int(text)


@rule("div rem", "signed unsigned")
def _div_int(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    """Never traps: x / 0 = -1, x rem 0 = x, smallest / -1 = smallest."""
    element, signed = element_of(x.dtype), op.dtype[0] == "i"
    opcode = ("s" if signed else "u") + op.name
    known = constant_int(y)
    if known is not None and known not in (0, -1):
        return a.op(opcode, element, x.ref, y.ref)
    narrow = a.lanes > 1 and is_narrow(op.dtype)
    zero = a.cmp("eq", element, y.ref, a.imm(element, 0))
    bad = zero
    if signed:
        smallest = a.cmp("eq", element, x.ref, a.imm(element, -(1 << (BITS[op.dtype] - 1))))
        overflow = a.op("and", "i1", smallest, a.cmp("eq", element, y.ref, a.imm(element, -1)))
        bad = a.op("or", "i1", zero, overflow)
    safe = a.select(bad, element, a.imm(element, 1), y.ref)
    result = _div_narrow(a, op.name, element, signed, x.ref, safe) if narrow else a.op(opcode, element, x.ref, safe)
    return a.select(zero, element, a.imm(element, -1) if op.name == "div" else x.ref, result)


def _div_narrow(a: Asm, name: str, element: str, signed: bool, x: str, y: str) -> str:
    """Quotient or remainder in doubles, which processors divide by vectors: a third of the time.

    With x = n y - r, 0 < r < y, x / y is below n by more than n 2^-32, so rounding to 53 bits does not reach n.
    """
    to, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    quotient = a.op("fdiv", "double", a.cast(to, element, x, "double"), a.cast(to, element, y, "double"))
    whole = a.cast(back, "double", quotient, element)
    return whole if name == "div" else a.op("sub", element, x, a.op("mul", element, whole, y))


def is_narrow(dtype: str) -> bool:
    """Whether all numbers of an integer type are doubles that vectors convert quickly."""
    return is_int(dtype) and BITS[dtype] <= (32 if dtype[0] == "i" else 16)


def div_uniform(code: Code, op: Op, x: Value, y: str) -> str:
    """Lanes by one number: times its reciprocal, found once, in doubles.

    The reciprocal of |y| is taken too large by 2^-51 of itself, more than its rounding error: quotients that are whole
    do not fall below, and others, at least 1 / y below a whole number, do not reach it, as x 2^-50 is less than 1. For
    y = 0 it is that of 1. A sieve to 10,000 by `index % i` took 1.17 ms by divisions, so it takes 0.64.
    """
    one, a, element = Asm(code, 1), Asm(code, x.lanes), element_of(x.dtype)
    signed = op.dtype[0] == "i"
    zero = one.cmp("eq", element, y, "0")
    size = y
    if signed:
        size = one.select(one.cmp("slt", element, y, "0"), element, one.op("sub", element, "0", y), y)
    size = one.op("add", element, size, one.cast("zext", "i1", zero, element))
    inverse = one.op("fdiv", "double", one.imm("double", 1.0), one.cast("uitofp", element, size, "double"))
    inverse = one.op("fmul", "double", inverse, one.imm("double", 1 + 2**-51))
    to, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")

    def lanes(dtype: str, ref: str) -> str:
        return broadcast(code, Value(dtype, ref), x.lanes).ref

    quotient = a.op("fmul", "double", a.cast(to, element, x.ref, "double"), lanes("f64", inverse))
    whole = a.cast(back, "double", quotient, element)
    never = one.cast("sext", "i1", zero, element)  # all ones for y = 0
    if op.name == "rem":
        whole = a.op("and", element, whole, lanes(op.dtype, one.op("xor", element, never, "-1")))
        return a.op("sub", element, x.ref, a.op("mul", element, whole, lanes(op.dtype, size)))
    if signed:
        sign = lanes(op.dtype, one.op("ashr", element, y, str(BITS[op.dtype] - 1)))
        whole = a.op("sub", element, a.op("xor", element, whole, sign), sign)
    return a.op("or", element, whole, lanes(op.dtype, never))


@rule("floordiv floormod", "signed unsigned")
def _floor_div(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, known = element_of(x.dtype), constant_int(y)
    if known is not None and known > 0 and known & (known - 1) == 0:
        if op.name == "floormod":
            return a.op("and", element, x.ref, a.imm(element, known - 1))
        return a.op("ashr" if op.dtype[0] == "i" else "lshr", element, x.ref, a.imm(element, known.bit_length() - 1))
    divisor = y.ref
    if known is None:  # division by zero has no meaning here, but it must not trap
        divisor = a.select(a.cmp("eq", element, y.ref, a.imm(element, 0)), element, a.imm(element, 1), y.ref)
    if ("short", True) in op.attrs and known is not None:
        narrow = a.cast("trunc", element, x.ref, "i32")
        short = a.op("udiv" if op.name == "floordiv" else "urem", "i32", narrow, a.imm("i32", known))
        return a.cast("zext", "i32", short, element)
    if op.dtype[0] == "u" or (("nonneg", True) in op.attrs):
        return a.op("udiv" if op.name == "floordiv" else "urem", element, x.ref, divisor)
    if known is not None and known > 0:  # not x of negative x is -x - 1, and not its quotient the next one down
        bits = BITS[op.dtype] - 1
        sign = a.op("ashr", element, x.ref, a.imm(element, bits))
        magnitude = a.op("and", element, a.op("xor", element, x.ref, sign), a.imm(element, (1 << bits) - 1))
        quotient = a.op("xor", element, a.op("udiv", element, magnitude, divisor), sign)
        if op.name == "floordiv":
            return quotient
        return a.op("sub", element, x.ref, a.op("mul", element, quotient, divisor))
    rest = a.op("srem", element, x.ref, divisor)
    other_sign = a.cmp("slt", element, a.op("xor", element, rest, divisor), a.imm(element, 0))
    adjust = a.op("and", "i1", other_sign, a.cmp("ne", element, rest, a.imm(element, 0)))
    if op.name == "floormod":
        return a.op("add", element, rest, a.select(adjust, element, divisor, a.imm(element, 0)))
    quotient = a.op("sdiv", element, x.ref, divisor)
    return a.op("sub", element, quotient, a.cast("zext", "i1", adjust, element))


def _is_below(amount: Expr, bits: int) -> bool:
    """Whether a mask keeps a shift's amount below `bits`."""
    if not isinstance(amount, Op) or amount.name != "and":
        return False
    return any(isinstance(mask, Const) and 0 <= mask.value < bits for mask in amount.args)


@rule("shl shr_logical shr_arithmetic", "signed unsigned")
def _shift(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, bits, known = element_of(x.dtype), BITS[op.dtype], constant_int(y)
    opcode = {"shl": "shl", "shr_logical": "lshr", "shr_arithmetic": "ashr"}[op.name]
    if (known is not None and 0 <= known < bits) or _is_below(op.args[1], bits):
        return a.op(opcode, element, x.ref, y.ref)
    small = a.cmp("ult", element, y.ref, a.imm(element, bits))
    if op.name == "shr_arithmetic":
        return a.op(opcode, element, x.ref, a.select(small, element, y.ref, a.imm(element, bits - 1)))
    return a.select(small, element, a.op(opcode, element, x.ref, y.ref), a.imm(element, 0))


@rule("popcount", "signed unsigned")
def _popcount(a: Asm, op: Op, x: Value) -> Refs:
    return a.call("llvm.ctpop", element_of(x.dtype), x.ref)


@rule("bitreverse bswap", "signed unsigned")
def _reversed(a: Asm, op: Op, x: Value) -> Refs:
    return a.call(f"llvm.{op.name}", element_of(x.dtype), x.ref)


@rule("clz", "signed unsigned")
def _clz(a: Asm, op: Op, x: Value) -> Refs:
    kind = x.type
    name = f"llvm.ctlz.{kind}" if a.lanes == 1 else f"llvm.ctlz.v{a.lanes}{element_of(x.dtype)}"
    return a.code.intrinsic(name, kind, (kind, x.ref), ("i1", "false"))


@rule("mulhi", "signed unsigned")
def _mulhi(a: Asm, op: Op, x: Value, y: Value) -> Refs:
    element, bits = element_of(x.dtype), BITS[op.dtype]
    wide, extend = f"i{2 * bits}", "sext" if op.dtype[0] == "i" else "zext"
    product = a.op("mul", wide, a.cast(extend, element, x.ref, wide), a.cast(extend, element, y.ref, wide))
    return a.cast("trunc", wide, a.op("lshr", wide, product, a.imm(wide, bits)), element)
