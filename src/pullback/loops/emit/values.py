"""Values during emission, and the small vocabulary of instructions that the tables are written in."""

from __future__ import annotations

from typing import Any

from pullback.loops.ir.types import BITS, REAL_OF

from .code import Code
from .types import float_literal, int_type, literal, register_type, splat, suffix

# What is as wide as a compared element, where that is no integer itself; bools have no masks.
MASKS = {"float": "i32", "double": "i64", "half": "i16", "i1": ""}


class Value:
    """A value of the loop IR as LLVM references: one register, or (re, im); `lanes` is 1 for a scalar."""

    __slots__ = ("dtype", "im", "lanes", "ref")

    def __init__(self, dtype: str, ref: str, lanes: int = 1, im: str | None = None) -> None:
        self.dtype = dtype
        self.ref = ref
        self.im = im
        self.lanes = lanes

    @property
    def parts(self) -> tuple[str, ...]:
        """The registers."""
        return (self.ref,) if self.im is None else (self.ref, self.im)

    @property
    def type(self) -> str:
        """LLVM type of each register."""
        return register_type(self.dtype, self.lanes)


def constant(dtype: str, value: Any) -> Value:
    """A scalar constant."""
    if dtype in REAL_OF:
        part = REAL_OF[dtype]
        return Value(dtype, literal(part, value.real), 1, literal(part, value.imag))
    return Value(dtype, literal(dtype, value))


class Asm:
    """Short names for pure instructions on references of one type and lane count.

    `element` types are LLVM's scalar names (float, i32, i1); `t(element)` is the type with this many lanes.
    """

    def __init__(self, code: Code, lanes: int) -> None:
        self.code = code
        self.lanes = lanes

    def t(self, element: str) -> str:
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def imm(self, element: str, value: int | float | bool) -> str:
        """A constant in all lanes."""
        if element in ("float", "double"):
            text = float_literal(float(value), element == "float")
        elif element == "i1":
            text = "true" if value else "false"
        else:
            text = str(int(value))
        return splat(text, element, self.lanes)

    def op(self, opcode: str, element: str, x: str, y: str) -> str:
        if element == "i1" and self.lanes > 1:
            return self._of_masks(opcode, x, y)
        return self.code.inst(f"{opcode} {self.t(element)} {x}, {y}", x, y)

    def _of_masks(self, opcode: str, x: str, y: str) -> str:
        """A logical operation, of what comparisons of several registers give on elements as wide as theirs.

        LLVM else packs such masks into bytes and takes them apart again, but on CPUs with registers for masks. Measured
        (Zen 3): 4,000 float32 that are chosen where three comparisons hold, 3.6 us, now 1.7; a search of 1,000 among
        1,000 9.9, now 7.
        """
        code, masks = self.code, self.code.masks
        element = masks[x][0] if x in masks else masks[y][0] if y in masks else ""
        several = element and self.lanes * int(element[1:]) > code.mask_bits
        sides = [self._mask(element, ref) for ref in (x, y)] if several else [None]
        if None in sides:
            return code.inst(f"{opcode} {self.t('i1')} {x}, {y}", x, y)
        wide = code.inst(f"{opcode} {self.t(element)} {sides[0]}, {sides[1]}", *sides)
        found = self.cmp("slt", element, wide, self.imm(element, 0))
        masks[found] = element, wide
        return found

    def _mask(self, element: str, ref: str) -> str | None:
        """A condition as elements all of whose bits it is; None if it comes from comparisons of others."""
        if ref[0] != "%":
            return self.imm(element, -1 if ref == self.imm("i1", True) else 0)
        kind, wide = self.code.masks.get(ref, ("", ""))
        if kind != element:
            return None
        return wide or self.cast("sext", "i1", ref, element)

    def cmp(self, predicate: str, element: str, x: str, y: str) -> str:
        """icmp or fcmp, by the element type."""
        opcode = "fcmp" if element in ("float", "double", "half") else "icmp"
        found = self.code.inst(f"{opcode} {predicate} {self.t(element)} {x}, {y}", x, y)
        kind = MASKS.get(element, element)
        if kind and self.lanes > 1 and self.code.mask_bits:
            self.code.masks.setdefault(found, (kind, ""))
        return found

    def select(self, cond: str, element: str, x: str, y: str) -> str:
        if x == y:
            return x
        return self.code.inst(f"select {self.t('i1')} {cond}, {self.t(element)} {x}, {self.t(element)} {y}", cond, x, y)

    def cast(self, opcode: str, source: str, x: str, target: str) -> str:
        if source == target:
            return x
        return self.code.inst(f"{opcode} {self.t(source)} {x} to {self.t(target)}", x)

    def call(self, name: str, element: str, *args: str) -> str:
        """An intrinsic overloaded on one type, all of whose arguments have it."""
        kind = self.t(element)
        return self.code.intrinsic(f"{name}.{suffix(kind)}", kind, *((kind, arg) for arg in args))

    def not_(self, x: str) -> str:
        return self.op("xor", "i1", x, self.imm("i1", True))


def element_of(dtype: str) -> str:
    """LLVM's scalar register type of `dtype` (of a part for complex)."""
    return register_type(dtype)


def broadcast(code: Code, value: Value, lanes: int) -> Value:
    """A scalar in all of `lanes` lanes; vectors pass through."""
    if value.lanes == lanes:
        return value
    element = register_type(value.dtype)
    refs = []
    for ref in value.parts:
        if ref[0] != "%":
            refs.append(splat(ref, element, lanes))
            continue
        kind = f"<{lanes} x {element}>"
        first = code.inst(f"insertelement {kind} poison, {element} {ref}, i64 0", ref)
        refs.append(code.inst(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer", first))
    return Value(value.dtype, refs[0], lanes, refs[1] if len(refs) > 1 else None)


def round_16(code: Code, dtype: str, ref: str, lanes: int, short_nans: bool = False) -> str:
    """An f32 register rounded to the nearest value of f16 or bf16 (ties to even), still as f32.

    `short_nans` says that the lower half of every NaN is zero: adding to it then changes nothing above.
    """
    if ref[0] != "%" and lanes == 1:
        return ref
    a = Asm(code, lanes)
    if dtype == "f16":
        return from_half(a, to_half(a, ref))
    bits = a.cast("bitcast", "float", ref, "i32")
    last = a.op("and", "i32", a.op("lshr", "i32", bits, a.imm("i32", 16)), a.imm("i32", 1))
    up = a.op("add", "i32", a.op("add", "i32", bits, a.imm("i32", 0x7FFF)), last)
    if not short_nans:
        quiet = a.op("or", "i32", bits, a.imm("i32", 0x400000))
        up = a.select(a.cmp("uno", "float", ref, ref), "i32", quiet, up)
    return a.cast("bitcast", "i32", a.op("and", "i32", up, a.imm("i32", -65536)), "float")


def narrow_to_odd(code: Code, ref: str, lanes: int) -> str:
    """f64 to f32 such that a further rounding to 16 bits is the only one that counts (round to odd)."""
    a = Asm(code, lanes)
    near = a.cast("fptrunc", "double", ref, "float")
    back = a.cast("fpext", "float", near, "double")
    bits = a.cast("bitcast", "float", near, "i32")
    even = a.cmp("eq", "i32", a.op("and", "i32", bits, a.imm("i32", 1)), a.imm("i32", 0))
    finite = a.cmp("one", "float", a.call("llvm.fabs", "float", near), a.imm("float", float("inf")))
    inexact = a.op("and", "i1", a.cmp("one", "double", back, ref), a.op("and", "i1", even, finite))
    away = a.cmp("olt", "double", a.call("llvm.fabs", "double", back), a.call("llvm.fabs", "double", ref))
    moved = a.op("add", "i32", bits, a.select(away, "i32", a.imm("i32", 1), a.imm("i32", -1)))
    return a.cast("bitcast", "i32", a.select(inexact, "i32", moved, bits), "float")


def to_half(a: Asm, ref: str) -> str:
    """An f32 register rounded to the nearest half (ties to even).

    For a CPU without an instruction LLVM would call a function of the compiler's library for each lane, which is not
    in every process. By hand: below the least normal half, adding 0.5 leaves the bits of the half at the end.
    """
    if a.code.converts_halves:
        return a.cast("fptrunc", "float", ref, "half")
    imm = lambda value: a.imm("i32", value)
    bits = a.cast("bitcast", "float", ref, "i32")
    size = a.op("and", "i32", bits, imm(0x7FFFFFFF))
    odd = a.op("and", "i32", a.op("lshr", "i32", size, imm(13)), imm(1))
    up = a.op("add", "i32", a.op("add", "i32", size, imm(0xFFF - (112 << 23))), odd)
    normal = a.op("lshr", "i32", up, imm(13))
    shifted = a.op("fadd", "float", a.cast("bitcast", "i32", size, "float"), a.imm("float", 0.5))
    small = a.op("sub", "i32", a.cast("bitcast", "float", shifted, "i32"), imm(126 << 23))
    large = a.select(a.cmp("ugt", "i32", size, imm(0x7F800000)), "i32", imm(0x7E00), imm(0x7C00))
    found = a.select(a.cmp("ult", "i32", size, imm(113 << 23)), "i32", small, normal)
    found = a.select(a.cmp("uge", "i32", size, imm(143 << 23)), "i32", large, found)
    sign = a.op("and", "i32", a.op("lshr", "i32", bits, imm(16)), imm(0x8000))
    return a.cast("bitcast", "i16", a.cast("trunc", "i32", a.op("or", "i32", found, sign), "i16"), "half")


def from_half(a: Asm, ref: str) -> str:
    """A half as an f32 register; by hand as `to_half`: shifted to an f32's place, its exponent is 112 too small."""
    if a.code.converts_halves:
        return a.cast("fpext", "half", ref, "float")
    imm = lambda value: a.imm("i32", value)
    bits = a.cast("zext", "i16", a.cast("bitcast", "half", ref, "i16"), "i32")
    size = a.op("shl", "i32", a.op("and", "i32", bits, imm(0x7FFF)), imm(13))
    scaled = a.op("fmul", "float", a.cast("bitcast", "i32", size, "float"), a.imm("float", 2.0**112))
    endless = a.op("or", "i32", size, imm(0x7F800000))
    found = a.cast("bitcast", "float", scaled, "i32")
    found = a.select(a.cmp("uge", "i32", size, imm(31 << 23)), "i32", endless, found)
    sign = a.op("shl", "i32", a.op("and", "i32", bits, imm(0x8000)), imm(16))
    return a.cast("bitcast", "i32", a.op("or", "i32", found, sign), "float")


def to_bits(code: Code, value: Value) -> tuple[str, str]:
    """(element type, reference) of the integer with the bits of a real value, as wide as its loop IR type."""
    a, dtype = Asm(code, value.lanes), value.dtype
    if dtype == "f16":
        return "i16", a.cast("bitcast", "half", to_half(a, value.ref), "i16")
    if dtype == "bf16":
        wide = a.cast("bitcast", "float", value.ref, "i32")
        return "i16", a.cast("trunc", "i32", a.op("lshr", "i32", wide, a.imm("i32", 16)), "i16")
    if dtype in ("f32", "f64"):
        element = int_type(dtype)
        return element, a.cast("bitcast", element_of(dtype), value.ref, element)
    return element_of(dtype), value.ref


def from_bits(code: Code, dtype: str, ref: str, lanes: int) -> str:
    """The register of a real value of `dtype` from the integer with its bits."""
    a = Asm(code, lanes)
    if dtype == "f16":
        return from_half(a, a.cast("bitcast", "i16", ref, "half"))
    if dtype == "bf16":
        wide = a.op("shl", "i32", a.cast("zext", "i16", ref, "i32"), a.imm("i32", 16))
        return a.cast("bitcast", "i32", wide, "float")
    if dtype in ("f32", "f64"):
        return a.cast("bitcast", int_type(dtype), ref, element_of(dtype))
    return ref


__all__ = [
    "BITS", "Asm", "Value", "broadcast", "constant", "element_of", "from_bits", "from_half", "narrow_to_odd",
    "round_16", "to_bits", "to_half"
]  # fmt: skip
