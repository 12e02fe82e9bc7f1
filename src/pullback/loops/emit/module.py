"""From a function of the loop IR to the text of an LLVM module with one exported C function.

    int main(void** inputs, void** outputs, void* arena)      0; what a host call returned to end the program; 2: Ctrl-C

A `subroutine`, which other programs call, is `void main(void* input, ..., void* output, ...)` instead.

A kernel is an internal function that takes the buffers it uses. A `threads` loop becomes `body(ctx, begin, end)`, run
by pb_parallel_for. Everything outside the module (C functions, the host callback, big constants) is reached through the
table `pb_slots`, which the loader fills: object code holds no addresses, so it can be kept on disk. For a static
library names and table are those of a `Linkage`.

Why the text of a program is one LLVM module: nests as functions of their own, in parts that two threads generate code
for, took 1.1 to 1.3 times the processor time, and a loaded machine longer; what is gained on two idle cores did not
show. Nor did it where the second thread began with the first nest, by functions of LLVM without llvmlite's lock, and
Python's threads took turns every 0.1 ms (at the usual 5 ms it takes 2.3 times as long beside a busy one): over 183
programs 1.2 times the processor time and 0.99 of the time, as what comes before emission is half of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from pullback.loops.ir.ir import (
    Buffer,
    Call,
    Const,
    Function,
    HostCall,
    If,
    Kernel,
    Lambda,
    Let,
    Loop,
    Op,
    Run,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.print import EMBEDDED_BYTES
from pullback.loops.ir.types import ITEMSIZE, REAL_OF
from pullback.loops.ir.visit import accesses, blocks, free_vars, loaded, nodes, statements, stored
from pullback.util.record import frozen_record, mutable_record

from .access import VectorIndex
from .cpu.target import Target
from .functions import Body, FunctionEmitter, Steps
from .interrupt import INTERRUPTED
from .lanes import operations
from .repeated import Repeated
from .symbols import ENTRY, HOST_SLOT, INTERRUPT, PARALLEL_FOR, SLOTS, STEP
from .types import memory_type, register_type, result_type
from .values import Value, broadcast
from .vector_loops import VectorFunctionEmitter

# A function that only calls others, or computes a few numbers, is not worth LLVM's effort: the quick instruction
# selection, and no optimizations. Where all functions are such, LLVM does not even set up its optimizations, and takes
# half of the time (0.3 ms in place of 0.7).
_QUICK = "noinline optnone"
_FEW_OPS = 12

# More buffers than this have their addresses found again in front of each nest and call that uses them; fewer, only
# arguments that are used once. Those of 1,000 arguments, all read at the start, went to the stack and back.
# Measured: code generation for a training step of 200 layers, 800 buffers, took 215 ms, now 150.
MANY_BUFFERS = 64


@frozen_record
class Linkage:
    """What a module shows to the outside.

    `static`: a linker joins it with others, so names are hidden in the library, the table is defined by somebody else,
    and callers' buffers are aligned as their elements are.
    """

    entry: str = ENTRY
    slots: str = SLOTS
    static: bool = False


@mutable_record
class ModuleText:
    """LLVM text, and the names of what the loader writes into the slots of `pb_slots`, in order.

    A name is the symbol of a C function, 'host_call', or 'constant:<buffer position>'. `promote` says that the program
    function keeps scalars on its stack, which LLVM should put into registers; `quick`, that nothing in it is worth
    LLVM's optimizations.
    """

    text: str
    slots: list[str] = field(default_factory=list)
    promote: bool = False
    quick: bool = False


class Module:
    """Collects the functions, globals and slots of one module."""

    def __init__(
        self, function: Function, plan: Mapping[Buffer, int], target: Target, subroutine: bool, linkage: Linkage
    ) -> None:
        self.function = function
        self.linkage = linkage
        self.subroutine = subroutine
        self.plan = plan
        self.target = target
        self.repeated = Repeated()
        self.slots: list[str] = []
        self.globals: list[str] = []
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self._kernels: dict[Kernel, str] = {}
        self._asking: set[str] = set()  # kernels that may end early
        self._bodies: dict[str, str] = {}  # functions that threads run, by their text
        self._constants: dict[bytes, str] = {}
        self._functions_of_ops: dict[tuple[Lambda, int], str] = {}
        self._position = {buffer: k for k, buffer in enumerate(function.buffers)}
        self._promote = False
        self._quick = True  # all functions so far

    def build(self) -> ModuleText:
        """The text of the whole module."""
        if self.subroutine:
            self._subroutine()
        else:
            self._program()
        self.globals += ["!0 = !{}", '!1 = !{!"branch_weights", i32 1, i32 4096}']
        parts = [f'target triple = "{self.target.triple}"']
        if self.slots:
            kind, value = ("external hidden", "") if self.linkage.static else ("", " zeroinitializer")
            parts.append(f"@{self.linkage.slots} = {kind} global [{len(self.slots)} x ptr]{value}, align 8")
        parts += self.globals
        parts += self.functions
        parts += self.declarations.values()
        return ModuleText("\n".join(parts) + "\n", self.slots, self._promote, self._quick)

    def slot(self, name: str) -> int:
        """The position of a name in the slot table."""
        if name not in self.slots:
            self.slots.append(name)
        return self.slots.index(name)

    def _slot_value(self, emitter: FunctionEmitter, name: str) -> str:
        number, code = self.slot(name), emitter.code
        at = code.inst(f"getelementptr ptr, ptr @{self.linkage.slots}, i64 {number}")
        return code.inst(f"load ptr, ptr {at}", at)  # never changes while the program runs: as good as pure

    def symbol(self, emitter: FunctionEmitter, name: str) -> str:
        """A pointer to the C function `name`."""
        return self._slot_value(emitter, name)

    def _finish(self, emitter: FunctionEmitter, head: str, last: str = "  ret void", quick: bool = False) -> None:
        """Adds a finished function to the module; `quick` says that how it is compiled does not matter."""
        emitter.code.line(last)
        if emitter.stop:
            emitter.code.line(f"stop:\n{emitter.stop}")
        attributes = f"{_QUICK} {self.target.attributes}" if quick else self.target.attributes
        self._quick = self._quick and quick
        self.functions.append(f"{head} {attributes} {{\nentry:\n{emitter.code.text()}\n}}\n")
        self.declarations.update(emitter.code.declarations)

    # The program function.

    def _program(self) -> None:
        emitter = ProgramEmitter(self)
        code = emitter.code
        positions = {"input": 0, "output": 0}
        used = loaded(self.function.body) | stored(self.function.body)
        scalars = _scalars(self.function)
        read = _readers(self.function.body)
        again = len(used) > MANY_BUFFERS
        self._promote = bool(scalars)
        outputs: list[tuple[Buffer, str]] = []
        for buffer in self.function.buffers:
            pointer = None
            if buffer in scalars:
                pointer = code.fresh("scalar")
                code.entry.append(f"  {pointer} = alloca {_alloca_type(buffer)}, align 16")
            if buffer in scalars and buffer.space == "temporary":
                pass
            elif buffer.space in positions:
                k = positions[buffer.space]
                positions[buffer.space] += 1
                readers = read.get(buffer)
                if readers and pointer is None and (again or len(readers) == 1):
                    emitter.read_late(buffer, k, readers)
                elif buffer in used:
                    address = emitter.address(buffer, k)
                    if pointer is None:
                        pointer = address
                    else:
                        outputs.append((buffer, address))
            elif buffer in used and buffer.space == "temporary":
                if buffer not in self.plan:
                    raise ValueError(f"{self.function.name}: temporary {buffer.name!r} has no place in the plan")
                readers = read.get(buffer)
                if readers and again:
                    emitter.read_late(buffer, self.plan[buffer], readers)
                else:
                    pointer = code.inst(f"getelementptr i8, ptr %arena, i64 {self.plan[buffer]}")
            elif buffer in used and buffer.space == "constant":
                pointer = self._constant(emitter, buffer)
            if pointer is not None:
                emitter.eval.pointers[buffer] = pointer
        emitter.block(self.function.body)
        for buffer, address in outputs:
            emitter.copy_out(buffer, address)
        self._finish(emitter, f"define {self._entry('i32')}(ptr %inputs, ptr %outputs, ptr %arena)", "  ret i32 0",
                     _only_calls(self.function.body) or (not scalars and _is_short(self.function.body)))  # fmt: skip

    def _subroutine(self) -> None:
        """A function of the addresses of its inputs and outputs; it has no temporaries and no constants."""
        emitter = VectorFunctionEmitter(self)
        params = []
        for k, buffer in enumerate(self.function.buffers):
            if buffer.space not in ("input", "output"):
                raise NotImplementedError(f"{self.function.name}: a subroutine with the {buffer.space} {buffer.name!r}")
            params.append(f"ptr noalias nocapture %b{k}")
            emitter.eval.pointers[buffer] = f"%b{k}"
        emitter.block(self.function.body)
        self._finish(emitter, f"define {self._entry('void')}({', '.join(params)})")

    def _entry(self, result: str) -> str:
        return f"{'hidden ' if self.linkage.static else ''}{result} @{self.linkage.entry}"

    def _constant(self, emitter: FunctionEmitter, buffer: Buffer) -> str:
        assert buffer.data is not None
        if buffer.size * ITEMSIZE[buffer.dtype] > EMBEDDED_BYTES:
            return self._slot_value(emitter, f"constant:{self._position[buffer]}")
        raw = np.ascontiguousarray(buffer.data).tobytes()
        name = self._constants.get(raw)
        if name is None:
            name = self._constants[raw] = f"@const.{self._position[buffer]}"
            text = "".join(f"\\{byte:02X}" for byte in raw)
            self.globals.append(f'{name} = internal constant [{len(raw)} x i8] c"{text}", align 64')
        return name

    # Kernels.

    def run(self, emitter: FunctionEmitter, stmt: Run) -> None:
        """Calls the function of a kernel, emitting it the first time."""
        kernel, code, ev = stmt.kernel, emitter.code, emitter.eval
        name = self._kernels.get(kernel)
        if name is None:
            name = self._kernels[kernel] = f"@kernel.{len(self._kernels)}"
            if self._emit_kernel(name, kernel):
                self._asking.add(name)
        args = [("ptr", ev.pointers[buffer]) for buffer in stmt.buffers]
        ev.begin(stmt.args)
        for arg in stmt.args:
            value = ev.scalar(arg)
            args += [(value.type, ref) for ref in value.parts]
        code.line(f"  call void {name}({', '.join(f'{kind} {ref}' for kind, ref in args)})")
        for buffer in stored((stmt,)):
            ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1
        if name in self._asking:
            emitter.ask_interrupt()

    def _emit_kernel(self, name: str, kernel: Kernel) -> bool:
        """Whether it may end early."""
        emitter = KernelEmitter(self)
        params = []
        for k, buffer in enumerate(kernel.buffers):
            size = max(buffer.size * ITEMSIZE[buffer.dtype], 1)
            align = "" if self.linkage.static else " align 16"
            params.append(f"ptr noalias nocapture{align} dereferenceable_or_null({size}) %b{k}")
            emitter.eval.pointers[buffer] = f"%b{k}"
        params += self._scalar_params(emitter, kernel.params)
        emitter.block(kernel.body)
        self._finish(emitter, f"define internal void {name}({', '.join(params)})")
        return emitter.has_asked

    @staticmethod
    def _scalar_params(emitter: FunctionEmitter, free: Sequence[Var]) -> list[str]:
        params = []
        for k, var in enumerate(free):
            kind, parts = register_type(var.dtype), 2 if var.dtype in REAL_OF else 1
            names = [f"%s{k}.{part}" for part in range(parts)]
            params += [f"{kind} {name}" for name in names]
            emitter.eval.env[var] = Value(var.dtype, names[0], 1, names[1] if parts > 1 else None)
        return params

    # Functions of ops.

    def op_function(self, body: Lambda, lanes: int) -> str:
        """The function that computes `body` in so many lanes, emitted the first time."""
        name = self._functions_of_ops.get((body, lanes))
        if name is None:
            name = self._functions_of_ops[body, lanes] = f"@{body.name}.{len(self._functions_of_ops)}"
            work = VectorFunctionEmitter(self)
            values = {
                var: Value(var.dtype, f"%s{k}", lanes, f"%s{k}.im" if var.dtype in REAL_OF else None)
                for k, var in enumerate(body.params)
            }
            if lanes > 1:
                work.eval.vector = VectorIndex(Var("lane", "i64"), "0", lanes, set(body.params))
                work.eval.vector.values.update(values)
            else:
                work.eval.env.update(values)
            work.eval.begin((body.value,))
            result = broadcast(work.code, work.eval.value(body.value), lanes)
            params = ", ".join(f"{value.type} {ref}" for value in values.values() for ref in value.parts)
            kind, given = result_type(result.dtype, lanes), result.ref
            if result.im is not None:
                given = "poison"
                for part, ref in enumerate(result.parts):
                    given = work.code.here(f"insertvalue {kind} {given}, {result.type} {ref}, {part}")
            self._finish(work, f"define internal {kind} {name}({params})", f"  ret {kind} {given}")
        return name

    # Threads.

    def threads(self, emitter: FunctionEmitter, loop: Loop) -> bool:
        """Runs a loop by the thread pool: its body becomes a function of a range of iterations."""
        if loop.carried or isinstance(emitter, ThreadBodyEmitter):
            return False
        code, ev = emitter.code, emitter.eval
        ev.begin((loop.extent,))
        extent = ev.scalar(loop.extent).ref
        used = loaded(loop.body) | stored(loop.body)
        buffers = [b for b in ev.pointers if b in used and b.space != "local"]
        free = [v for v in free_vars(loop.body) if v is not loop.var]
        fields: list[tuple[str, str]] = [("ptr", ev.pointers[buffer]) for buffer in buffers]
        for var in free:
            value = ev.env[var]
            fields += [(value.type, ref) for ref in value.parts]
        context = code.fresh("ctx")
        code.entry.append(f"  {context} = alloca [{max(len(fields), 1)} x i64], align 16")
        for k, (kind, ref) in enumerate(fields):
            at = code.inst(f"getelementptr i64, ptr {context}, i64 {k}", context)
            code.line(f"  store {kind} {ref}, ptr {at}")
        name = self._emit_body(loop, buffers, free)
        function = self._slot_value(emitter, PARALLEL_FOR)
        grain = dict(loop.attrs).get("grain", 1)
        code.line(f"  call void {function}(ptr {name}, ptr {context}, i64 {extent}, i64 {grain})")
        for buffer in stored(loop.body):
            ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1
        emitter.ask_interrupt()
        return True

    def _emit_body(self, loop: Loop, buffers: Sequence[Buffer], free: Sequence[Var]) -> str:
        """The name of body(ctx, begin, end): what it needs comes from the context, so equal loops have one."""
        work = ThreadBodyEmitter(self)
        code = work.code
        position = 0

        def unpack(kind: str) -> str:
            nonlocal position
            at = code.here(f"getelementptr i64, ptr %ctx, i64 {position}")
            position += 1
            return code.here(f"load {kind}, ptr {at}")

        for buffer in buffers:
            work.eval.pointers[buffer] = unpack("ptr")
        for var in free:
            kind = register_type(var.dtype)
            ref = unpack(kind)
            im = unpack(kind) if var.dtype in REAL_OF else None
            work.eval.env[var] = Value(var.dtype, ref, 1, im)
        work.threads_loop(loop)
        text = work.code.text()
        name = self._bodies.get(text)
        if name is None:
            name = self._bodies[text] = f"@body.{len(self._bodies)}"
            head = f"define internal void {name}(ptr %ctx, i64 %begin, i64 %end)"
            self._finish(work, head, quick=_counts_calls(loop.body))
        return name

    # Host calls.

    def host_call(self, emitter: FunctionEmitter, stmt: HostCall) -> None:
        """Calls int host(i64 index, void** buffers); a non-zero result ends the program with it."""
        if not isinstance(emitter, ProgramEmitter):
            raise NotImplementedError("a host call inside a parallel, reduce or vector loop")
        code, ev = emitter.code, emitter.eval
        table = code.fresh("table")
        code.entry.append(f"  {table} = alloca [{max(len(stmt.buffers), 1)} x ptr], align 16")
        for k, buffer in enumerate(stmt.buffers):
            at = code.inst(f"getelementptr ptr, ptr {table}, i64 {k}", table)
            code.line(f"  store ptr {ev.pointers[buffer]}, ptr {at}")
            ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1
        function = self._slot_value(emitter, HOST_SLOT)
        status = code.here(f"call i32 {function}(i64 {stmt.index}, ptr {table})")
        number = code.fresh("").strip("%.")
        failed = code.here(f"icmp ne i32 {status}, 0")
        code.line(f"  br i1 {failed}, label %stop.{number}, label %go.{number}")
        code.line(f"stop.{number}:")
        code.line(f"  ret i32 {status}")
        code.label(f"go.{number}")

    def ask_interrupt(
        self, emitter: FunctionEmitter, due: str, last: str, steps: tuple[str, Steps] | None = None
    ) -> None:
        """Returns from the function by `last` if the runtime says so; asks if `due`, or always."""
        code = emitter.code
        number = code.fresh("").strip("%.")
        function, given = self._slot_value(emitter, INTERRUPT if steps is None else STEP), ""
        if steps is not None:
            given = f"i64 {steps[0]}, i64 {steps[1].total}, i64 {steps[1].loop}"
        if due:
            code.line(f"  br i1 {due}, label %ask.{number}, label %go.{number}, !prof !1")
            code.label(f"ask.{number}")
        pending = code.here(f"call i32 {function}({given}) cold nounwind")
        stop = code.here(f"icmp ne i32 {pending}, 0")
        code.line(f"  br i1 {stop}, label %stop, label %go.{number}, !prof !1")
        emitter.stop = last
        code.label(f"go.{number}")


def _readers(body: Sequence[Stmt]) -> dict[Buffer, list[Stmt]]:
    """The buffers that only loops and calls at the top of a program use, and which."""
    found: dict[Buffer, list[Stmt]] = {}
    others: set[Buffer] = set()
    for stmt in body:
        buffers = loaded((stmt,)) | stored((stmt,))
        if isinstance(stmt, (Let, Store, If, While)):
            others |= buffers
        else:
            for buffer in buffers:
                found.setdefault(buffer, []).append(stmt)
    return {buffer: stmts for buffer, stmts in found.items() if buffer not in others}


def _only_calls(body: Sequence[Stmt]) -> bool:
    """Whether all work of a program function is done by others that it calls, each once."""
    return all(
        isinstance(stmt, (Run, Call, HostCall))
        or (isinstance(stmt, Loop) and stmt.role == "threads" and not stmt.carried)
        for stmt in body
    )


def _counts_calls(body: Sequence[Stmt]) -> bool:
    """Whether loops do nothing but find out where C functions work, such as kernels of products, and call these.

    Measured (Zen 4): a convolution of 3 x 3 takes LLVM 4.7 ms, before 5.6.
    """
    return any(isinstance(stmt, Call) for stmt in statements(body)) and all(
        isinstance(stmt, (Call, Let)) or (isinstance(stmt, Loop) and stmt.role == "sequential" and not stmt.carried)
        for stmt in statements(body)
    )


def _is_short(body: Sequence[Stmt]) -> bool:
    """Whether a program function computes a few numbers, one after the other, and calls others at most."""
    if not all(isinstance(stmt, (Let, Store, Run, Call, HostCall)) for stmt in body):
        return False
    return operations(body) <= _FEW_OPS and not any(
        isinstance(x, Op) and (x.attrs or x.dtype in REAL_OF) for stmt in body for x in nodes(stmt)
    )


MAX_SCALARS = 9  # elements of a buffer that may live in registers


def _scalars(function: Function) -> set[Buffer]:
    """Small outputs and temporaries that only the program function itself accesses, at known indices, more than once.

    The state of loops is of this kind. An output must be stored whole first: else the values that it has before, as
    the place of a donated argument, would be missing.
    """
    possible = {
        buffer for buffer in function.buffers if buffer.space in ("output", "temporary") and buffer.size <= MAX_SCALARS
    }
    if not possible:
        return possible
    looped: set[Buffer] = set()

    def scan(body: Sequence[Stmt], inside: bool) -> None:
        for stmt in body:
            if isinstance(stmt, (Call, HostCall, Run)) or (isinstance(stmt, Loop) and stmt.role != "sequential"):
                possible.difference_update(loaded((stmt,)) | stored((stmt,)))
                continue
            for buffer, index in accesses(stmt):
                if not isinstance(index, Const):
                    possible.discard(buffer)
                elif inside:
                    looped.add(buffer)
            for block in blocks(stmt):
                scan(block, inside or isinstance(stmt, (Loop, While)))

    scan(function.body, False)
    left = {buffer: set(range(buffer.size)) for buffer in possible & looped}  # elements that are not stored yet
    whole = {buffer for buffer in left if buffer.space == "temporary"}
    for stmt in function.body:
        for buffer in loaded((stmt,)):
            left.pop(buffer, None)
        for buffer in stored((stmt,)) & left.keys():
            if not isinstance(stmt, Store) or not isinstance(stmt.index, Const):
                del left[buffer]
                continue
            left[buffer].discard(stmt.index.value)
            if not left[buffer]:
                whole.add(buffer)
                del left[buffer]
    return whole


def _alloca_type(buffer: Buffer) -> str:
    count = buffer.size * (2 if buffer.dtype in REAL_OF else 1)
    return f"[{count} x {memory_type(buffer.dtype)}]"


class KernelEmitter(VectorFunctionEmitter):
    """Emits a function that may end early, without a word: whoever calls it asks afterwards."""

    module: Module
    has_asked = False

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.asks = not module.subroutine

    def ask_interrupt(self, due: str = "", steps: tuple[str, Steps] | None = None) -> None:
        if self.asks:
            self.has_asked = True
            self.module.ask_interrupt(self, due, "  ret void", steps)


class ThreadBodyEmitter(KernelEmitter):
    """Emits what a thread runs: threads loops inside it are plain loops."""

    _shared: Loop | None = None  # whose iterations threads share

    def threads_loop(self, loop: Loop) -> None:
        """The iterations of one call, which the thread pool keeps short if each one is; there is at least one."""
        self._in_rounds.add(loop)
        self._shared = loop
        self.scalar_loop(loop, "%begin", "%end")

    def accumulate(
        self, loop: Loop, start: str, end: str, inits: list[Value], body: Body, some: bool = False
    ) -> list[Value]:
        if loop is self._shared:
            return self.counted(loop, start, end, 1, inits, body, some=True)
        return super().accumulate(loop, start, end, inits, body, some)


class ProgramEmitter(VectorFunctionEmitter):
    """Emits the program function, which says that it has ended early."""

    module: Module
    asks = counts = True
    times = 1

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        # By identity of a statement: buffers whose addresses are found in front of it, and where.
        self._late: dict[Stmt, list[tuple[Buffer, int]]] = {}

    def read_late(self, buffer: Buffer, place: int, readers: Sequence[Stmt]) -> None:
        """Has the address of a buffer found in front of each of the statements that use it."""
        for stmt in readers:
            self._late.setdefault(stmt, []).append((buffer, place))

    def address(self, buffer: Buffer, place: int) -> str:
        """The address of the input or output of a number, or of a temporary by its offset."""
        if buffer.space == "temporary":
            return self.code.here(f"getelementptr i8, ptr %arena, i64 {place}")
        at = self.code.here(f"getelementptr ptr, ptr %{buffer.space}s, i64 {place}")
        return self.code.here(f"load ptr, ptr {at}, !invariant.load !0")

    def stmt(self, stmt: Stmt) -> None:
        for buffer, place in self._late.get(stmt, ()):
            self.eval.pointers[buffer] = self.address(buffer, place)
        super().stmt(stmt)

    def ask_interrupt(self, due: str = "", steps: tuple[str, Steps] | None = None) -> None:
        self.module.ask_interrupt(self, due, f"  ret i32 {INTERRUPTED}", steps)

    def copy_out(self, buffer: Buffer, address: str) -> None:
        """Writes an output that was kept in registers to its place."""
        code, kind = self.code, memory_type(buffer.dtype)
        for k in range(buffer.size * (2 if buffer.dtype in REAL_OF else 1)):
            source = code.inst(f"getelementptr {kind}, ptr {self.eval.pointers[buffer]}, i64 {k}")
            target = code.inst(f"getelementptr {kind}, ptr {address}, i64 {k}")
            code.line(f"  store {kind} {code.here(f'load {kind}, ptr {source}')}, ptr {target}")


def build_module(
    function: Function,
    plan: Mapping[Buffer, int],
    target: Target,
    subroutine: bool = False,
    linkage: Linkage = Linkage(),
) -> ModuleText:
    """The LLVM text of `function`; NotImplementedError for what the emitter does not know."""
    return Module(function, plan, target, subroutine, linkage).build()
