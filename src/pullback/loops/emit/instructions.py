"""Emission of the ops that some CPUs have as one instruction: table lookups, rounding to integers, scaling by powers of
two, NaNs of one operand in place of results, products of pairs.

Such an instruction takes whole registers. Lanes are put into registers of its size, of which one may be filled up, and
the results back together. A CPU without it takes several, or code for it never has the op.
"""

from __future__ import annotations

from pullback.loops.ir.ir import Op
from pullback.loops.ir.types import BITS

from .shuffles import shuffled
from .types import float_literal, int_type
from .values import Asm, Value, element_of


def lookup(a: Asm, op: Op, x: Value) -> str:
    """One permutation for a register of lanes, which are filled up; lane by lane where there is none of that kind."""
    element, index = element_of(op.dtype), element_of(x.dtype)
    table = dict(op.attrs)["table"]
    numbers = [f"{element} {float_literal(number, element == 'float')}" for number in table]
    if len(table) > a.code.looks_up or (len(table) == 8 and element != "float"):
        return _looked_up_singly(a, element, index, f"<{len(table)} x {element}> <{', '.join(numbers)}>", x.ref)
    size = 8 if len(table) == 8 else 512 // BITS[op.dtype]
    same = int_type(op.dtype)
    places = x.ref if index == same else a.cast("zext" if index == "i32" else "trunc", index, x.ref, same)
    kind, indices = f"<{size} x {element}>", f"<{size} x {same}>"
    halves = [f"<{', '.join(numbers[k : k + size])}>" for k in range(0, len(table), size)]
    found = []
    for part in _in_vectors(a, same, places, size):
        if len(table) == 8:
            found.append(a.code.intrinsic("llvm.x86.avx2.permps", kind, (kind, halves[0]), (indices, part)))
        elif len(halves) == 1:
            name = "llvm.x86.avx512.permvar.sf.512"
            found.append(a.code.intrinsic(name, kind, (kind, halves[0]), (indices, part)))
        else:
            name = "llvm.x86.avx512.vpermi2var.pd.512"
            found.append(a.code.intrinsic(name, kind, (kind, halves[0]), (indices, part), (kind, halves[1])))
    return _of_vectors(a, element, found, size)


def _of_vectors(a: Asm, element: str, found: list[str], size: int) -> str:
    """What `_in_vectors` undoes."""
    kind = f"<{size} x {element}>"
    if a.lanes == 1:
        return a.code.inst(f"extractelement {kind} {found[0]}, i64 0", found[0])
    while len(found) > 1:
        found += ["poison"] * (len(found) % 2)
        found = [shuffled(a.code, kind, x, y, range(2 * size)) for x, y in zip(found[::2], found[1::2])]
        size *= 2
        kind = f"<{size} x {element}>"
    return found[0] if a.lanes == size else shuffled(a.code, kind, found[0], "poison", range(a.lanes))


def _in_vectors(a: Asm, element: str, ref: str, size: int) -> list[str]:
    """Lanes in vectors of `size`, of which one may be filled up."""
    kind = a.t(element)
    if a.lanes == 1:
        return [a.code.inst(f"insertelement <{size} x {element}> poison, {element} {ref}, i64 0", ref)]
    if a.lanes < size:
        return [shuffled(a.code, kind, ref, "poison", [min(k, a.lanes) for k in range(size)])]
    if a.lanes == size:
        return [ref]
    return [shuffled(a.code, kind, ref, "poison", range(k, k + size)) for k in range(0, a.lanes, size)]


def _looked_up_singly(a: Asm, element: str, index: str, table: str, ref: str) -> str:
    kind = table[: table.index(">") + 1]
    place = a.op("and", index, ref, a.imm(index, int(kind[1:].split()[0]) - 1))
    if a.lanes == 1:
        return a.code.inst(f"extractelement {kind} {table[len(kind) + 1 :]}, {index} {place}", place)
    result = "poison"
    for lane in range(a.lanes):
        at = a.code.inst(f"extractelement {a.t(index)} {place}, i64 {lane}", place)
        one = a.code.inst(f"extractelement {kind} {table[len(kind) + 1 :]}, {index} {at}", at)
        result = a.code.inst(f"insertelement {a.t(element)} {result}, {element} {one}, i64 {lane}", result, one)
    return result


def nearest(a: Asm, _op: Op, x: Value) -> str:
    """A register at a time: of more lanes LLVM calls a function for each.

    For SSE it would read operands from memory that is not aligned as that instruction wants it.
    """
    size = a.code.looks_up
    if a.lanes == 1:
        return a.code.intrinsic("llvm.lrint.i32.f32", "i32", ("float", x.ref))
    if not size:
        return a.cast("fptosi", "float", a.call("llvm.roundeven", "float", x.ref), "i32")
    kind, result, name = f"<{size} x float>", f"<{size} x i32>", f"llvm.lrint.v{size}i32.v{size}f32"
    found = [a.code.intrinsic(name, result, (kind, part)) for part in _in_vectors(a, "float", x.ref, size)]
    return _of_vectors(a, "i32", found, size)


def scale(a: Asm, op: Op, x: Value, y: Value) -> str:
    """One instruction for a register, whole or filled up."""
    if a.code.looks_up < 16:
        raise NotImplementedError("emit: the op scale is for CPUs with AVX-512 (Target.looks_up)")
    element = element_of(op.dtype)
    size = 512 // BITS[op.dtype]
    kind, mask = f"<{size} x {element}>", f"i{size}"
    name = f"llvm.x86.avx512.mask.scalef.p{element[0].replace('f', 's')}.512"
    pairs = zip(_in_vectors(a, element, x.ref, size), _in_vectors(a, element, y.ref, size))
    current = "4"  # the rounding in force
    found = [
        a.code.intrinsic(name, kind, (kind, p), (kind, q), (kind, "zeroinitializer"), (mask, "-1"), ("i32", current))
        for p, q in pairs
    ]
    return _of_vectors(a, element, found, size)


_NANS_BITS = {4: "128", 8: "256", 16: "512"}  # of vectors of 32-bit numbers


def replaces_nans(a: Asm, element: str) -> bool:
    """Whether `nans_of` is one instruction for each register of these lanes."""
    return a.code.picks > 0 and a.lanes * (1 if element == "float" else 2) >= 4


def nans_of(a: Asm, element: str, x: str, other: str) -> str:
    """x where it is NaN, else `other`, in one instruction for a comparison and a selection.

    Maxima of rows of 24 to 48 took 1.3 times as long with those two, of windows 1.4 times.
    """
    size, bits, letter = (16, "i32", "s") if element == "float" else (8, "i64", "d")
    size = min(size, 1 << (a.lanes - 1).bit_length())  # of other lanes one is filled up
    kind, mask = f"<{size} x {element}>", f"i{max(size, 8)}"
    width = _NANS_BITS[size if element == "float" else 2 * size]
    name = f"llvm.x86.avx512.mask.fixupimm.p{letter}.{width}"
    # Four bits for each of eight classes of numbers; 1, for quiet and signalling NaNs, is to take x.
    table = Asm(a.code, size).imm(bits, 0x11)
    rest = [("i32", "0"), (mask, "-1"), *([("i32", "4")] if width == "512" else [])]
    found = [
        a.code.intrinsic(name, kind, (kind, p), (kind, q), (f"<{size} x {bits}>", table), *rest)
        for p, q in zip(_in_vectors(a, element, other, size), _in_vectors(a, element, x, size))
    ]
    return _of_vectors(a, element, found, size)


_PAIR_PRODUCTS = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd"}  # by lanes


def dot_words(a: Asm, _op: Op, total: Value, x: Value, y: Value) -> str:
    """An instruction for a register's products and an addition, which LLVM makes one where the CPU has that."""
    size = a.code.looks_up
    if not size or a.lanes < size:
        halves = [(a.op("shl", "i32", v.ref, a.imm("i32", 16)), v.ref) for v in (x, y)]
        lower, upper = ([a.op("ashr", "i32", h[k], a.imm("i32", 16)) for h in halves] for k in range(2))
        products = [a.op("mul", "i32", *pair) for pair in (lower, upper)]
        return a.op("add", "i32", total.ref, a.op("add", "i32", *products))
    kind, words = f"<{size} x i32>", f"<{2 * size} x i16>"
    found = []
    for parts in zip(*(_in_vectors(a, "i32", value.ref, size) for value in (total, x, y))):
        sides = [(words, a.code.inst(f"bitcast {kind} {part} to {words}", part)) for part in parts[1:]]
        both = a.code.intrinsic(_PAIR_PRODUCTS[size], kind, *sides)
        found.append(a.code.inst(f"add {kind} {parts[0]}, {both}", parts[0], both))
    return _of_vectors(a, "i32", found, size)


def dot_pairs(a: Asm, _op: Op, total: Value, x: Value, y: Value) -> str:
    """One instruction for a register; kernels of products alone have this op, for CPUs that have it."""
    if not a.code.dots_pairs:
        raise NotImplementedError("emit: the op dot_pairs is for CPUs with AVX512-BF16 (Target.dots_pairs)")
    name, kind, pairs = "llvm.x86.avx512bf16.dpbf16ps.512", "<16 x float>", "<32 x bfloat>"
    found = []
    for parts in zip(*(_in_vectors(a, "float", value.ref, 16) for value in (total, x, y))):
        left, right = (a.code.inst(f"bitcast {kind} {part} to {pairs}", part) for part in parts[1:])
        found.append(a.code.intrinsic(name, kind, (kind, parts[0]), (pairs, left), (pairs, right)))
    return _of_vectors(a, "float", found, 16)
