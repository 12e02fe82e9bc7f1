"""From expressions to values: scalars, and inside a vector loop values of several lanes.

What does not depend on the vector loop's index stays scalar. A load or store whose index grows by one from lane to lane
is one contiguous access at the address of lane 0; by zero, a broadcast; by another constant, one access per lane from a
common address; otherwise a gather or scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..loop_ir.affine import Interval, depends, interval, stride, terms
from ..loop_ir.ir import Buffer, Const, Expr, Lambda, Load, Op, Read, Store, Var
from ..loop_ir.types import ITEMSIZE, REAL_OF, is_int
from ..loop_ir.visit import function_of, subexpressions
from .code import Code
from .guards import Guard, load_guards
from .ops import emit_op
from .shuffles import INTERLEAVED, deinterleave, interleave
from .squares import Square, square_load
from .types import memory_type, register_type, splat, suffix
from .values import Asm, Value, broadcast, constant, from_bits, to_bits

# A select with this attr evaluates its first branch only where some lane takes it.
RARE = ("rare", True)


class VectorIndex:
    """The vector loop being emitted: its variable at lane 0 is `base`; `varying` variables differ between lanes."""

    def __init__(self, var: Var, base: str, lanes: int, varying: set[Var]) -> None:
        self.var = var
        self.base = base
        self.lanes = lanes
        self.varying = varying
        self.definitions: dict[Var, Expr] = {}  # integer Lets without loads, taken in where they are read
        self.values: dict[Var, Value] = {}
        self.memo: dict[int, bool] = {}

    def depends(self, expr: Expr) -> bool:
        return depends(expr, self.varying, self.memo)

    def stride(self, index: Expr) -> int | None:
        return stride(index, self.var, self.varying, self.definitions, self.memo)


# A local buffer lives on the stack of a thread; beyond this a temporary is the right thing.
MAX_LOCAL_BYTES = 1 << 18


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


class Evaluator:
    """Evaluates expressions into `code`; `env` holds scalars, `pointers` the buffers' addresses."""

    def __init__(self, code: Code, function: Callable[[Lambda, int], str]) -> None:
        self.code = code
        self.function = function  # the LLVM name of a Lambda for a number of lanes
        self.env: dict[Var, Value] = {}
        self.ranges: dict[Var, Interval] = {}
        self.pointers = Pointers(code)
        self.epoch: dict[Buffer, int] = {}  # counts stores, so that loads are not shared across them
        self.vector: VectorIndex | None = None
        self.square: Square | None = None  # copies of the body that are emitted side by side
        self.mask: str | None = None  # lanes that run, inside a branch that only some lanes take
        self._scalars: dict[int, Value] = {}
        self._vectors: dict[int, Value] = {}
        self._guards: dict[int, Guard] = {}
        self._rare: dict[int, list[Op]] = {}  # selects whose condition seldom holds, by that condition
        self._made: list[Expr] = []  # ids of expressions made here stay theirs as long as values are found by id

    def begin(self, roots: Sequence[Expr]) -> None:
        """Starts a statement: values found before are looked at afresh (their instructions are still shared)."""
        self._scalars = {}
        self._vectors = {}
        self._made = []
        self._rare = {}
        order = subexpressions(roots)
        selects = [expr for expr in order if isinstance(expr, Op) and expr.name == "select"]
        self._guards = load_guards(order, roots, self._inside) if selects else {}
        for node in selects:
            if RARE in node.attrs:
                self._rare.setdefault(id(node.args[0]), []).append(node)

    def _inside(self, load: Load) -> bool:
        bounds = interval(load.index, self.ranges)
        return bounds is not None and bounds[0] >= 0 and bounds[1] < load.buffer.size

    # Values.

    def value(self, expr: Expr) -> Value:
        """The value of `expr`, with lanes if it differs between them."""
        if self.vector is None or not self.vector.depends(expr):
            return self.scalar(expr)
        memo, vector = self._vectors, self.vector
        stack = [expr]
        while stack:
            node = stack[-1]
            if id(node) in memo:
                stack.pop()
                continue
            needed = [x for x in self._vector_operands(node) if id(x) not in memo and vector.depends(x)]
            if needed:
                stack += needed
                continue
            memo[id(node)] = self._vector_value(node)
            stack.pop()
        return memo[id(expr)]

    def _vector_operands(self, node: Expr) -> tuple[Expr, ...]:
        assert self.vector is not None
        if isinstance(node, Op):
            return () if self._affine(node) is not None else self._needed(node)
        if isinstance(node, Load):
            guard = self._guards.get(id(node))
            conds = () if guard is None else tuple(cond for cond, _ in guard.chain)
            return conds if self._regular(self.vector.stride(node.index)) else (*conds, node.index)
        if isinstance(node, Read) and node.var in self.vector.definitions:
            return (self.vector.definitions[node.var],)
        return ()

    def _needed(self, node: Op) -> tuple[Expr, ...]:
        """The operands to evaluate before an op: not what a select needs only in a branch of its own."""
        if node.name == "select" and id(node.args[0]) in self._rare and node in self._rare[id(node.args[0])]:
            return node.args[0], node.args[2]
        return node.args

    def _rare_select(self, node: Op, chosen: Value, other: Value) -> Value:
        """A select whose first branch is evaluated only if some lane takes it.

        All selects on the same condition are evaluated together, so that they share what they have in common.
        """
        group = self._rare[id(node.args[0])]
        members = {id(each) for each in group}
        now = [node]
        for each in group:
            if each is not node and not any(id(x) in members for x in subexpressions((each.args[1],))):
                now.append(each)
        if any(id(x) in members for x in subexpressions((node.args[1],))):
            now = [node]
        for each in now:
            group.remove(each)
        if chosen.ref in ("true", "false"):
            return self._choose(node, chosen, self._known_or(node.args[1]), other)
        taken = chosen.ref if chosen.lanes == 1 else self.any_lane(chosen.ref, chosen.lanes)
        code = self.code
        number = code.fresh("").strip("%.")
        before = code.block
        code.line(f"  br i1 {taken}, label %rare.{number}, label %join.{number}")
        code.open_branch()
        code.label(f"rare.{number}")
        saved = self._scalars, self._vectors
        self._scalars, self._vectors = dict(saved[0]), dict(saved[1])
        lanes = 1 if self.vector is None else self.vector.lanes
        values = [self._known_or(each.args[1]) for each in now]
        if any(value.lanes > 1 for value in values) or chosen.lanes > 1:
            values = [broadcast(code, value, lanes) for value in values]
        last = code.block
        code.line(f"  br label %join.{number}")
        self._scalars, self._vectors = saved
        code.close()
        code.label(f"join.{number}")
        for each, value in zip(now, values):
            refs = [code.here(f"phi {value.type} [ poison, %{before} ], [ {ref}, %{last} ]") for ref in value.parts]
            merged = Value(value.dtype, refs[0], value.lanes, refs[1] if len(refs) > 1 else None)
            (self._vectors if merged.lanes > 1 else self._scalars)[id(each.args[1])] = merged
        return self._choose(node, chosen, self._known_or(node.args[1]), other)

    def _known_or(self, expr: Expr) -> Value:
        """The value of an operand, evaluated now if it has not been."""
        return self._vectors.get(id(expr)) or self._scalars.get(id(expr)) or self.value(expr)

    def _choose(self, node: Op, cond: Value, x: Value, y: Value) -> Value:
        return emit_op(self.code, node, [cond, x, y])

    @staticmethod
    def _regular(step: int | None) -> bool:
        return step is not None and abs(step) <= 1 << 20

    def _known(self, expr: Expr) -> Value:
        """An operand whose value has been found."""
        found = self._vectors.get(id(expr))
        return self.scalar(expr) if found is None else found

    def _vector_value(self, node: Expr) -> Value:
        vector = self.vector
        assert vector is not None
        match node:
            case Read():
                if node.var is vector.var:
                    return self._lane_indices(vector)
                if node.var in vector.definitions:
                    return self._known(vector.definitions[node.var])
                return vector.values[node.var]
            case Op() if (step := self._affine(node)) is not None:
                return self._affine_lanes(node, step)
            case Op() if len(self._needed(node)) < len(node.args):
                return self._rare_select(node, self._known(node.args[0]), self._known(node.args[2]))
            case Op():
                return self._op(node, [self._known(arg) for arg in node.args])
            case Load():
                return self._vector_load(node)
        raise TypeError(f"not an expression: {node!r}")

    def _op(self, node: Op, args: list[Value]) -> Value:
        """The value of an op, by its function if it has one."""
        function = function_of(node)
        if function is None:
            return emit_op(self.code, node, args)
        lanes = max(arg.lanes for arg in args)
        args = [broadcast(self.code, arg, lanes) for arg in args]
        kind = register_type(node.dtype, lanes)
        given = ", ".join(f"{arg.type} {arg.ref}" for arg in args)
        text = f"call {kind} {self.function(function, lanes)}({given})"
        return Value(node.dtype, self.code.inst(text, *(arg.ref for arg in args)), lanes)

    def _lane_indices(self, vector: VectorIndex) -> Value:
        return self._counting(Value("i64", vector.base), 1)

    def _counting(self, first: Value, step: int) -> Value:
        """first, first + step, first + 2 step, ... of an integer type."""
        vector = self.vector
        assert vector is not None
        element = register_type(first.dtype)
        a = Asm(self.code, vector.lanes)
        base = broadcast(self.code, first, vector.lanes)
        steps = "<" + ", ".join(f"{element} {k * step}" for k in range(vector.lanes)) + ">"
        return Value(first.dtype, a.op("add", element, base.ref, steps), vector.lanes)

    def _affine(self, node: Op) -> int | None:
        """The constant step from lane to lane of an index expression, or of a conversion of one that fits i32."""
        assert self.vector is not None
        if node.name == "convert":
            (arg,) = node.args
            if arg.dtype != "i64" or node.dtype in ("bool", "i8", "i16", "u8", "u16", "i64", "u64"):
                return None
            bounds = self.interval(arg)
            if bounds is None or bounds[0] < -(1 << 31) or bounds[1] >= 1 << 31:
                return None
            step = self.vector.stride(arg)
        elif node.dtype == "i64":
            step = self.vector.stride(node)
        else:
            return None
        return step if step is not None and abs(step) < 1 << 20 else None

    def _affine_lanes(self, node: Op, step: int) -> Value:
        """Lane 0 as a scalar, and from there by steps; conversions go through i32, which all machines convert."""
        if node.name != "convert":
            return self._counting(self.scalar(node), step)
        first = self.scalar(node.args[0])
        short = Value("i32", Asm(self.code, 1).cast("trunc", "i64", first.ref, "i32"))
        lanes = self._counting(short, step)
        if node.dtype in ("i32", "u32"):
            return Value(node.dtype, lanes.ref, lanes.lanes)
        return emit_op(self.code, Op("convert", node.dtype, (Const("i32", 0),)), [lanes])

    def interval(self, expr: Expr) -> Interval | None:
        return interval(expr, self.ranges)

    def scalar(self, expr: Expr) -> Value:
        """The value of `expr` as a scalar; inside a vector loop, that of lane 0."""
        memo = self._scalars
        found = memo.get(id(expr))
        if found is not None:
            return found
        stack = [expr]
        while stack:
            node = stack[-1]
            if id(node) in memo:
                stack.pop()
                continue
            # The index of a load is left to `address`, which sums it up in its own order.
            needed = [x for x in self._needed(node) if id(x) not in memo] if isinstance(node, Op) else ()
            if needed:
                stack += needed
                continue
            memo[id(node)] = self._scalar_value(node)
            stack.pop()
        return memo[id(expr)]

    def _scalar_value(self, node: Expr) -> Value:
        match node:
            case Const():
                return constant(node.dtype, node.value)
            case Read():
                vector = self.vector
                if vector is not None:
                    if node.var is vector.var:
                        return Value("i64", vector.base)
                    if node.var in vector.definitions:
                        return self.scalar(vector.definitions[node.var])
                return self.env[node.var]
            case Op() if len(self._needed(node)) < len(node.args):
                return self._rare_select(node, self._scalars[id(node.args[0])], self._scalars[id(node.args[2])])
            case Op():
                return self._op(node, [self._scalars[id(arg)] for arg in node.args])
            case Load():
                return self._scalar_load(node)
        raise TypeError(f"not an expression: {node!r}")

    # Addresses.

    def address(self, buffer: Buffer, index: Expr) -> str:
        """Pointer to the element at `index` (of lane 0)."""
        pointer, offset = self.base_and_offset(buffer, index)
        return self.offset(buffer, pointer, str(offset))

    def base_and_offset(self, buffer: Buffer, index: Expr) -> tuple[str, int]:
        """The same as a pointer and a constant number of elements: the parts that change least are added first."""
        found, offset = terms(index)
        self._made += found
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
        element = self._element(buffer)
        for level in sorted(levels):
            ref = levels[level]
            pointer = code.inst(f"getelementptr inbounds {element}, ptr {pointer}, i64 {ref}", pointer, ref)
        return pointer, offset

    @staticmethod
    def _element(buffer: Buffer) -> str:
        element = memory_type(buffer.dtype)
        return f"[2 x {element}]" if buffer.dtype in REAL_OF else element

    def offset(self, buffer: Buffer, pointer: str, elements: str, part: bool = False) -> str:
        """`pointer` moved by a number of elements (of parts of complex elements)."""
        if elements == "0":
            return pointer
        element = memory_type(buffer.dtype) if part else self._element(buffer)
        return self.code.inst(f"getelementptr inbounds {element}, ptr {pointer}, i64 {elements}", pointer, elements)

    # Loads.

    def read(self, kind: str, pointer: str, buffer: Buffer) -> str:
        align = ITEMSIZE[buffer.dtype] // (2 if buffer.dtype in REAL_OF else 1)
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
            return Asm(self.code, lanes).cast("fpext", "half", ref, "float")
        return ref

    def to_memory(self, value: Value) -> tuple[str, ...]:
        """Registers as memory elements."""
        a = Asm(self.code, value.lanes)
        if value.dtype == "bool":
            return (a.cast("zext", "i1", value.ref, "i8"),)
        if value.dtype == "bf16":
            return (to_bits(self.code, value)[1],)
        if value.dtype == "f16":
            return (a.cast("fptrunc", "float", value.ref, "half"),)
        return value.parts

    def _scalar_load(self, node: Load) -> Value:
        buffer, dtype = node.buffer, node.dtype
        guard = self._guards.get(id(node))
        if buffer.size == 0:
            return constant(dtype, 0j if dtype in REAL_OF else 0)
        if guard is None:
            pointer = self.address(buffer, node.index)
        else:
            pointer = self._guarded_address(node, guard)
        return self._scalar_at(buffer, pointer)

    def _scalar_at(self, buffer: Buffer, pointer: str) -> Value:
        dtype = buffer.dtype
        kind = memory_type(dtype)
        if dtype in REAL_OF:
            im = self.offset(buffer, pointer, "1", part=True)
            return Value(dtype, self.read(kind, pointer, buffer), 1, self.read(kind, im, buffer))
        return Value(dtype, self.from_memory(dtype, self.read(kind, pointer, buffer), 1))

    def _guarded_address(self, node: Load, guard: Guard) -> str:
        """The address, or that of element 0 if the load is not needed."""
        a, buffer = Asm(self.code, 1), node.buffer
        index = self.scalar(node.index).ref
        if guard.clamp:
            index = a.call("llvm.smax", "i64", index, "0")
            index = a.call("llvm.smin", "i64", index, str(buffer.size - 1))
        elif guard.chain:
            needed = self._condition(guard, 1)
            index = a.select(needed, "i64", index, "0")
        return self.offset(buffer, self.pointers[buffer], index)

    def _condition(self, guard: Guard, lanes: int) -> str:
        """The mask of the lanes in which a guard holds; for one lane, whether it holds in any."""
        whole: str | None = None
        widest = 1
        for cond, polarity in guard.chain:
            value = self.value(cond)
            here = Asm(self.code, value.lanes)
            ref = value.ref if polarity else here.not_(value.ref)
            if value.lanes > widest:
                whole = None if whole is None else broadcast(self.code, Value("bool", whole), value.lanes).ref
                widest = value.lanes
            elif value.lanes < widest:
                ref = broadcast(self.code, Value("bool", ref), widest).ref
            whole = ref if whole is None else Asm(self.code, widest).op("and", "i1", whole, ref)
        assert whole is not None
        if lanes == 1 and widest > 1:
            return self.any_lane(whole, widest)
        if lanes > widest:
            return broadcast(self.code, Value("bool", whole), lanes).ref
        return whole

    def any_lane(self, mask: str, lanes: int) -> str:
        """Whether any lane of a mask is set."""
        bits = self.code.inst(f"bitcast <{lanes} x i1> {mask} to i{lanes}", mask)
        return self.code.inst(f"icmp ne i{lanes} {bits}, 0", bits)

    def _lane_mask(self, node: Load) -> str | None:
        """Lanes in which a vector load may be performed; None if in all."""
        vector = self.vector
        assert vector is not None
        mask = self.mask
        guard = self._guards.get(id(node))
        if guard is not None and guard.chain:
            own = self._condition(guard, vector.lanes)
            mask = own if mask is None else Asm(self.code, vector.lanes).op("and", "i1", mask, own)
        return mask

    def _vector_load(self, node: Load) -> Value:
        vector, buffer, dtype = self.vector, node.buffer, node.dtype
        assert vector is not None
        lanes = vector.lanes
        if buffer.size == 0:
            return constant(dtype, 0j if dtype in REAL_OF else 0)
        guard = self._guards.get(id(node))
        step = vector.stride(node.index)
        mask = self._lane_mask(node)
        if not self._regular(step) or (guard is not None and guard.clamp):
            return self._gather(node, guard is not None and guard.clamp, mask)
        if mask is not None and step not in (1, 0):
            return self._gather(node, False, mask)
        pointer = self.address(buffer, node.index)
        if step == 1:
            return self._contiguous(buffer, pointer, mask)
        if step == -1 and mask is None:
            first = self.offset(buffer, pointer, str(1 - lanes))
            return self._reversed(self._contiguous(buffer, first, None))
        if step in INTERLEAVED and mask is None and dtype not in REAL_OF:
            shared = self._interleaved_load(node, step)
            if shared is not None:
                return shared
        if self.square is not None and mask is None and dtype != "c128" and step:
            along = self.square.step(node.index, vector.definitions)
            if along in (1, -1):
                return square_load(self, node, step, along)
        if dtype == "c64":
            return self._paired_lanes(buffer, pointer, step or 0)
        refs: list[list[str]] = [[], []]
        for k in range(lanes):
            value = self._scalar_at(buffer, self.offset(buffer, pointer, str(k * (step or 0))))
            for part, ref in zip(refs, value.parts):
                part.append(ref)
        packed = [self._pack(dtype, part) for part in refs if part]
        return Value(dtype, packed[0], lanes, packed[1] if len(packed) > 1 else None)

    def _paired_lanes(self, buffer: Buffer, pointer: str, step: int) -> Value:
        """Elements of two 4-byte parts, `step` apart: each is loaded whole."""
        vector = self.vector
        assert vector is not None
        lanes = vector.lanes
        starts = [self.offset(buffer, pointer, str(k * step)) for k in range(lanes)]
        whole = self._pack("i64", [self.read("i64", start, buffer) for start in starts])
        return self.parts_of(buffer.dtype, whole, lanes)

    def parts_of(self, dtype: str, whole: str, lanes: int) -> Value:
        """Complex elements of 8 bytes, given as i64."""
        parts = self.code.inst(f"bitcast <{lanes} x i64> {whole} to <{2 * lanes} x float>", whole)
        both = Value("f32", parts, 2 * lanes)
        re, im = (self.shuffle(both, range(k, 2 * lanes, 2)).ref for k in (0, 1))
        return Value(dtype, re, lanes, im)

    def _interleaved_load(self, node: Load, step: int) -> Value | None:
        """Every `step`-th element, chosen from contiguous loads; None if those might leave the buffer."""
        vector, buffer = self.vector, node.buffer
        assert vector is not None
        bounds = self.interval(node.index)
        if bounds is None:
            return None
        base, offset = self.base_and_offset(buffer, node.index)
        number = offset % step  # loads of neighbours then begin at one address
        if bounds[0] < number or bounds[1] + step - 1 - number >= buffer.size:
            return None
        kind, lanes = memory_type(buffer.dtype, vector.lanes), vector.lanes
        starts = [self.offset(buffer, base, str(offset - number + k * lanes)) for k in range(step)]
        refs = deinterleave(self.code, kind, lanes, [self.read(kind, start, buffer) for start in starts])
        return Value(node.dtype, self.from_memory(buffer.dtype, refs[number], lanes), lanes)

    def _pack(self, dtype: str, refs: list[str]) -> str:
        """One vector of scalar registers."""
        kind, element = register_type(dtype, len(refs)), register_type(dtype)
        whole = "poison"
        for k, ref in enumerate(refs):
            whole = self.code.inst(f"insertelement {kind} {whole}, {element} {ref}, i64 {k}", whole, ref)
        return whole

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

    def _reversed(self, value: Value) -> Value:
        return self.shuffle(value, range(value.lanes - 1, -1, -1))

    def _contiguous(self, buffer: Buffer, pointer: str, mask: str | None) -> Value:
        vector, dtype = self.vector, buffer.dtype
        assert vector is not None
        lanes = vector.lanes
        wide = 2 * lanes if dtype in REAL_OF else lanes
        kind = memory_type(dtype, wide)
        if mask is None:
            ref = self.read(kind, pointer, buffer)
        else:
            if wide != lanes:
                mask = self._doubled(mask, lanes)
            ref = self._masked_read(kind, wide, pointer, buffer, mask)
        if dtype in REAL_OF:
            both = Value(REAL_OF[dtype], ref, wide)
            re = self.shuffle(both, range(0, wide, 2))
            return Value(dtype, re.ref, lanes, self.shuffle(both, range(1, wide, 2)).ref)
        return Value(dtype, self.from_memory(dtype, ref, lanes), lanes)

    def _doubled(self, mask: str, lanes: int) -> str:
        """A mask with each lane twice, for interleaved complex numbers."""
        return self.shuffle(Value("bool", mask, lanes), [k // 2 for k in range(2 * lanes)]).ref

    def _masked_read(self, kind: str, wide: int, pointer: str, buffer: Buffer, mask: str) -> str:
        align = ITEMSIZE[buffer.dtype] // (2 if buffer.dtype in REAL_OF else 1)
        name = f"llvm.masked.load.{suffix(kind)}.p0"
        self.code.declare(f"declare {kind} @{name}(ptr, i32, <{wide} x i1>, {kind})")
        text = f"call {kind} @{name}(ptr {pointer}, i32 {align}, <{wide} x i1> {mask}, {kind} zeroinitializer)"
        return self.code.load(text, f"{text} @{buffer.name} {self.epoch.get(buffer, 0)}", buffer, pointer, mask)

    def _gather(self, node: Load, clamp: bool, mask: str | None) -> Value:
        vector, buffer, dtype = self.vector, node.buffer, node.dtype
        assert vector is not None
        lanes = vector.lanes
        a = Asm(self.code, lanes)
        index = broadcast(self.code, self.value(node.index), lanes).ref
        if clamp:
            index = a.call("llvm.smax", "i64", index, a.imm("i64", 0))
            index = a.call("llvm.smin", "i64", index, a.imm("i64", buffer.size - 1))
        parts = []
        for part in range(2 if dtype in REAL_OF else 1):
            pointers = self._pointers(buffer, index, part)
            kind = memory_type(dtype, lanes)
            align = ITEMSIZE[dtype] // (2 if dtype in REAL_OF else 1)
            name = f"llvm.masked.gather.{suffix(kind)}.v{lanes}p0"
            self.code.declare(f"declare {kind} @{name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
            chosen = mask or splat("true", "i1", lanes)
            text = (
                f"call {kind} @{name}(<{lanes} x ptr> {pointers}, i32 {align}, <{lanes} x i1> {chosen}, "
                f"{kind} zeroinitializer)"
            )
            ref = self.code.load(text, f"{text} @{buffer.name} {self.epoch.get(buffer, 0)}", buffer, pointers, chosen)
            parts.append(self.from_memory(dtype, ref, lanes))
        return Value(dtype, parts[0], lanes, parts[1] if len(parts) > 1 else None)

    def _pointers(self, buffer: Buffer, index: str, part: int) -> str:
        lanes = self.vector.lanes if self.vector is not None else 1
        base = self.pointers[buffer]
        pointers = self.code.inst(
            f"getelementptr inbounds {self._element(buffer)}, ptr {base}, <{lanes} x i64> {index}", base, index
        )
        if part:
            element = memory_type(buffer.dtype)
            pointers = self.code.inst(f"getelementptr inbounds {element}, <{lanes} x ptr> {pointers}, i64 1", pointers)
        return pointers

    # Stores.

    def store(self, buffer: Buffer, index: Expr, expr: Expr) -> None:
        """Writes the value of `expr` at `index`, in every lane that runs."""
        value = self.value(expr)
        if self.vector is None:
            self._scalar_store(buffer, self.address(buffer, index), value)
        else:
            self._vector_store(buffer, index, value)
        self.epoch[buffer] = self.epoch.get(buffer, 0) + 1

    def interleaved_store(self, stores: Sequence[Store]) -> bool:
        """Stores to one buffer, `len(stores)` elements apart from lane to lane, that together fill a stretch of it:
        contiguous stores of shuffled vectors. False, and nothing is done, if they are not so."""
        vector, buffer, step = self.vector, stores[0].buffer, len(stores)
        if vector is None or self.mask is not None or buffer.dtype in REAL_OF:
            return False
        if any(vector.stride(store.index) != step for store in stores):
            return False
        self.begin([expr for store in stores for expr in (store.index, store.value)])
        places = [self.base_and_offset(buffer, store.index) for store in stores]
        first = min(offset for _, offset in places)
        if len({base for base, _ in places}) > 1 or sorted(o - first for _, o in places) != list(range(step)):
            return False
        lanes, refs = vector.lanes, [""] * step
        for (_, offset), store in zip(places, stores):
            value = broadcast(self.code, self.value(store.value), lanes)
            (refs[offset - first],) = self.to_memory(value)
        kind, align = memory_type(buffer.dtype, lanes), ITEMSIZE[buffer.dtype]
        for k, ref in enumerate(interleave(self.code, kind, lanes, refs)):
            at = self.offset(buffer, places[0][0], str(first + k * lanes))
            self.code.line(f"  store {kind} {ref}, ptr {at}, align {align}")
        self.epoch[buffer] = self.epoch.get(buffer, 0) + 1
        return True

    def _scalar_store(self, buffer: Buffer, pointer: str, value: Value) -> None:
        kind = memory_type(buffer.dtype)
        align = ITEMSIZE[buffer.dtype] // (2 if buffer.dtype in REAL_OF else 1)
        for part, ref in enumerate(self.to_memory(value)):
            at = self.offset(buffer, pointer, str(part), part=True)
            self.code.line(f"  store {kind} {ref}, ptr {at}, align {align}")

    def _vector_store(self, buffer: Buffer, index: Expr, value: Value) -> None:
        vector, dtype = self.vector, buffer.dtype
        assert vector is not None
        lanes = vector.lanes
        step = vector.stride(index)
        if step == 0 and self.mask is None and value.lanes == 1:
            self._scalar_store(buffer, self.address(buffer, index), value)
            return
        value = broadcast(self.code, value, lanes)
        align = ITEMSIZE[dtype] // (2 if dtype in REAL_OF else 1)
        if step == 1 or (step == -1 and self.mask is None):
            pointer = self.address(buffer, index)
            if step == -1:
                pointer = self.offset(buffer, pointer, str(1 - lanes))
                value = self._reversed(value)
            refs, wide, mask = self.to_memory(value), lanes, self.mask
            if dtype in REAL_OF:
                refs, wide = (self.parts_side_by_side(value),), 2 * lanes
                mask = None if mask is None else self._doubled(mask, lanes)
            kind = memory_type(dtype, wide)
            if mask is None:
                self.code.line(f"  store {kind} {refs[0]}, ptr {pointer}, align {align}")
                return
            name = f"llvm.masked.store.{suffix(kind)}.p0"
            self.code.declare(f"declare void @{name}({kind}, ptr, i32, <{wide} x i1>)")
            self.code.line(f"  call void @{name}({kind} {refs[0]}, ptr {pointer}, i32 {align}, <{wide} x i1> {mask})")
            return
        refs = self.to_memory(value)
        kind = memory_type(dtype, lanes)
        if self._regular(step) and self.mask is None:
            self._store_lanes(buffer, self.address(buffer, index), step or 0, refs, align)
            return
        at = broadcast(self.code, self.value(index), lanes).ref
        mask = self.mask or splat("true", "i1", lanes)
        for part, ref in enumerate(refs):
            pointers = self._pointers(buffer, at, part)
            name = f"llvm.masked.scatter.{suffix(kind)}.v{lanes}p0"
            self.code.declare(f"declare void @{name}({kind}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
            self.code.line(
                f"  call void @{name}({kind} {ref}, <{lanes} x ptr> {pointers}, i32 {align}, <{lanes} x i1> {mask})"
            )

    def _store_lanes(self, buffer: Buffer, pointer: str, step: int, refs: Sequence[str], align: int) -> None:
        """Lane by lane, `step` elements apart."""
        vector = self.vector
        assert vector is not None
        lanes, element = vector.lanes, memory_type(buffer.dtype)
        if buffer.dtype == "c64":  # both parts of an element at once
            whole = self.parts_side_by_side(Value(buffer.dtype, refs[0], lanes, refs[1]))
            kind = memory_type(buffer.dtype, 2 * lanes)
            refs, element = (self.code.inst(f"bitcast {kind} {whole} to <{lanes} x i64>", whole),), "i64"
        for k in range(lanes):
            base = self.offset(buffer, pointer, str(k * step))
            for part, ref in enumerate(refs):
                lane = self.code.inst(f"extractelement <{lanes} x {element}> {ref}, i64 {k}", ref)
                at = self.offset(buffer, base, str(part), part=True)
                self.code.line(f"  store {element} {lane}, ptr {at}, align {align}")

    def parts_side_by_side(self, value: Value) -> str:
        order = ", ".join(f"i32 {k}, i32 {k + value.lanes}" for k in range(value.lanes))
        re, im = value.parts
        return self.code.inst(
            f"shufflevector {value.type} {re}, {value.type} {im}, <{2 * value.lanes} x i32> <{order}>", re, im
        )


def is_lazy(expr: Expr) -> bool:
    """Whether a Let of this value may be evaluated where it is read: an integer computed without loads."""
    return is_int(expr.dtype) and not any(isinstance(x, Load) for x in subexpressions((expr,)))
