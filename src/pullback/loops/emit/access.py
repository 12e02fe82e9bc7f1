"""What evaluation is written with: where elements lie, how they are read, and lanes of vectors.

`value` and `scalar` belong to evaluate.py, which is above loads and all else that asks for values of operands.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence

from pullback.loops.ir.affine import Interval, depends, divisor, interval, stride, terms
from pullback.loops.ir.ir import Buffer, Expr, Lambda, Load, Stmt, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import access_nodes, statements

from .code import Code
from .guards import Guard
from .repeated import Repeated
from .squares import Square
from .types import alignment, element_type, memory_type
from .values import Asm, Value, from_bits, from_half, to_bits, to_half


class VectorIndex:
    """The vector loop being emitted: its variable at lane 0 is `base`; `varying` variables differ between lanes."""

    def __init__(
        self, var: Var, base: str, lanes: int, varying: set[Var], body: Sequence[Stmt] = (), singly: bool = False
    ) -> None:
        self.var = var
        self.singly = singly  # lanes are loaded one by one that instructions would gather from far
        self.body = body
        self.base = base
        self.lanes = lanes
        self.varying = varying
        self.definitions: dict[Var, Expr] = {}  # integer Lets without loads, taken in where they are read
        self.values: dict[Var, Value] = {}
        self.differing: dict[Load, tuple[Expr | None, Interval | None]] = {}  # sums of 32 bits, by loads.py
        self.memo: dict[Expr, bool] = {}  # by the expression itself, as of those made on the way ids are used again

    def depends(self, expr: Expr) -> bool:
        return depends(expr, self.varying, self.memo)

    def stride(self, index: Expr) -> int | None:
        return stride(index, self.var, self.varying, self.definitions, self.memo)

    @functools.cached_property
    def _turns(self) -> Counter[tuple[Buffer, int | None]]:
        read = {node for stmt in statements(self.body) for node in access_nodes(stmt) if isinstance(node, Load)}
        return Counter((node.buffer, self.stride(node.index)) for node in read)

    def kinds(self, buffer: Buffer, step: int) -> int:
        """How many places of a buffer are read whose index grows by `step`."""
        return self._turns[buffer, step]


# A local buffer lives on the stack of a thread; beyond this a temporary is the right thing.
MAX_LOCAL_BYTES = 5 << 16
# What passes plan for one such array, at most; the emitter refuses more than MAX_LOCAL_BYTES.
SCRATCH_BYTES = 1 << 18


class Pointers(dict[Buffer, str]):
    """The addresses of buffers; a local one gets its place on the stack when it is first asked for."""

    def __init__(self, code: Code) -> None:
        super().__init__()
        self.code = code

    def __missing__(self, buffer: Buffer) -> str:
        if buffer.space != "local":
            raise KeyError(buffer.name)
        size = max(1, buffer.size * ITEMSIZE[buffer.dtype])
        if size > MAX_LOCAL_BYTES:
            raise NotImplementedError(f"local buffer {buffer.name!r} takes {size} bytes; at most {MAX_LOCAL_BYTES}")
        name = self.code.fresh("local")
        self.code.entry.append(f"  {name} = alloca [{size} x i8], align 64")
        self[buffer] = name
        return name


class Access:
    """Reads elements, and knows where they are; `env` holds scalars, `pointers` the buffers' addresses."""

    def __init__(
        self, code: Code, function: Callable[[Lambda, int], str], register_bytes: int, repeated: Repeated
    ) -> None:
        self.code = code
        self.repeated = repeated
        self.register_bytes = register_bytes
        self.function = function  # the LLVM name of a Lambda for a number of lanes
        self.env: dict[Var, Value] = {}
        self.ranges: dict[Var, Interval] = {}
        self.lets: dict[Var, Expr] = {}  # values of integers
        self.pointers = Pointers(code)
        self.epoch: dict[Buffer, int] = {}  # counts stores, so that loads are not shared across them
        self.vector: VectorIndex | None = None
        self.square: Square | None = None  # copies of the body that are emitted side by side
        self.mask: str | None = None  # lanes that run, inside a branch that only some lanes take
        self.vectors: dict[Expr, Value] = {}
        self.guards: dict[Expr, Guard] = {}

    def begin(self, roots: Sequence[Expr]) -> None:
        """Starts a statement."""
        raise NotImplementedError

    def value(self, expr: Expr) -> Value:
        """The value of `expr`, with lanes if it differs between them."""
        raise NotImplementedError

    def scalar(self, expr: Expr) -> Value:
        """The value of `expr` as a scalar; inside a vector loop, that of lane 0."""
        raise NotImplementedError

    def either(self, rare: str, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """One value where the condition `rare` holds, else another: only that is computed."""
        raise NotImplementedError

    def interval(self, expr: Expr) -> Interval | None:
        return interval(expr, self.ranges)

    def divisor(self, expr: Expr) -> int:
        """The largest number that is known to divide an integer."""
        return divisor(expr, self.lets)

    # Addresses.

    def address(self, buffer: Buffer, index: Expr) -> str:
        """Pointer to the element at `index` (of lane 0)."""
        pointer, offset = self.base_and_offset(buffer, index)
        return self.offset(buffer, pointer, str(offset))

    def base_and_offset(self, buffer: Buffer, index: Expr) -> tuple[str, int]:
        """The same as a pointer and a constant number of elements: the parts that change least are added first."""
        found, offset = terms(index)
        code = self.code
        pointer = self.pointers[buffer]
        levels: dict[int, str] = {}
        for term in found:
            ref = self.scalar(term).ref
            if ref[0] != "%":
                offset += int(ref)
                continue
            level = code.level.get(ref, 0)
            known = levels.get(level)
            levels[level] = ref if known is None else code.inst(f"add nsw i64 {known}, {ref}", known, ref)
        element = element_type(buffer.dtype)
        for level in sorted(levels):
            ref = levels[level]
            pointer = code.inst(f"getelementptr inbounds {element}, ptr {pointer}, i64 {ref}", pointer, ref)
        return pointer, offset

    def offset(self, buffer: Buffer, pointer: str, elements: str, part: bool = False) -> str:
        """`pointer` moved by a number of elements (of parts of complex elements)."""
        if elements == "0":
            return pointer
        element = memory_type(buffer.dtype) if part else element_type(buffer.dtype)
        return self.code.inst(f"getelementptr inbounds {element}, ptr {pointer}, i64 {elements}", pointer, elements)

    # Elements in memory.

    def read(self, kind: str, pointer: str, buffer: Buffer) -> str:
        align = alignment(buffer.dtype)
        text = f"load {kind}, ptr {pointer}, align {align}"
        return self.code.load(text, f"{text} @{buffer.name} {self.epoch.get(buffer, 0)}", buffer, pointer)

    def from_memory(self, dtype: str, ref: str, lanes: int) -> str:
        """A memory element as a register."""
        if dtype == "bool":
            a = Asm(self.code, lanes)
            return a.cmp("ne", "i8", ref, a.imm("i8", 0))
        if dtype == "bf16":
            return from_bits(self.code, dtype, ref, lanes)
        if dtype == "f16":
            return from_half(Asm(self.code, lanes), ref)
        return ref

    def to_memory(self, value: Value) -> tuple[str, ...]:
        """Registers as memory elements."""
        a = Asm(self.code, value.lanes)
        if value.dtype == "bool":
            return (a.cast("zext", "i1", value.ref, "i8"),)
        if value.dtype == "bf16":
            return (to_bits(self.code, value)[1],)
        if value.dtype == "f16":
            return (to_half(a, value.ref),)
        return value.parts

    # Lanes.

    def any_lane(self, mask: str, lanes: int) -> str:
        """Whether any lane of a mask is set."""
        bits = self.code.inst(f"bitcast <{lanes} x i1> {mask} to i{lanes}", mask)
        return self.code.inst(f"icmp ne i{lanes} {bits}, 0", bits)

    def shuffle(self, value: Value, lanes: Sequence[int]) -> Value:
        """The chosen lanes of a vector, in order."""
        refs = []
        for ref in value.parts:
            chosen = ", ".join(f"i32 {k}" for k in lanes)
            refs.append(
                self.code.inst(
                    f"shufflevector {value.type} {ref}, {value.type} poison, <{len(lanes)} x i32> <{chosen}>", ref
                )
            )
        return Value(value.dtype, refs[0], len(lanes), refs[1] if len(refs) > 1 else None)

    def reversed(self, value: Value) -> Value:
        return self.shuffle(value, range(value.lanes - 1, -1, -1))

    def doubled(self, mask: str, lanes: int) -> str:
        """A mask with each lane twice, for interleaved complex numbers."""
        return self.shuffle(Value("bool", mask, lanes), [k // 2 for k in range(2 * lanes)]).ref

    def pack(self, element: str, refs: list[str]) -> str:
        """One vector of scalars of an LLVM type."""
        kind = f"<{len(refs)} x {element}>"
        whole = "poison"
        for k, ref in enumerate(refs):
            whole = self.code.inst(f"insertelement {kind} {whole}, {element} {ref}, i64 {k}", whole, ref)
        return whole

    def parts_of(self, dtype: str, whole: str, lanes: int) -> Value:
        """Complex elements of 8 bytes, given as i64."""
        parts = self.code.inst(f"bitcast <{lanes} x i64> {whole} to <{2 * lanes} x float>", whole)
        both = Value("f32", parts, 2 * lanes)
        re, im = (self.shuffle(both, range(k, 2 * lanes, 2)).ref for k in (0, 1))
        return Value(dtype, re, lanes, im)

    def parts_side_by_side(self, value: Value) -> str:
        order = ", ".join(f"i32 {k}, i32 {k + value.lanes}" for k in range(value.lanes))
        re, im = value.parts
        return self.code.inst(
            f"shufflevector {value.type} {re}, {value.type} {im}, <{2 * value.lanes} x i32> <{order}>", re, im
        )

    def lane_pointers(self, buffer: Buffer, base: str, index: str, part: int) -> str:
        lanes = self.vector.lanes if self.vector is not None else 1
        pointers = self.code.inst(
            f"getelementptr inbounds {element_type(buffer.dtype)}, ptr {base}, <{lanes} x i64> {index}", base, index
        )
        if part:
            element = memory_type(buffer.dtype)
            pointers = self.code.inst(f"getelementptr inbounds {element}, <{lanes} x ptr> {pointers}, i64 1", pointers)
        return pointers
