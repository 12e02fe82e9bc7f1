"""From statements to LLVM: loops, branches, calls. Vector loops are in vector_loops.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any, Protocol

from pullback.loops.ir.ir import (
    SINGLY,
    SQUARE,
    STEPS,
    STEPS_EACH,
    STEPS_FROM,
    Address,
    Buffer,
    Call,
    Const,
    HostCall,
    If,
    Lambda,
    Let,
    Load,
    Loop,
    Run,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.tiles import INSTRUCTIONS
from pullback.loops.ir.types import REAL_OF
from pullback.loops.ir.vectors import varying_vars
from pullback.loops.ir.visit import expressions, stored, subexpressions
from pullback.util.record import frozen_record

from .access import VectorIndex
from .code import Code
from .cpu.target import Target
from .cpu.tiles import emit_instruction
from .evaluate import Evaluator, is_lazy
from .interrupt import asks_every
from .lanes import Work, is_straight
from .parts import LONG, Parts
from .repeated import Repeated
from .shuffles import INTERLEAVED, WIDE_STORED
from .stores import emit_store, interleaved_store
from .types import register_type
from .values import Asm, Value, broadcast


def interleaved(vector: VectorIndex, body: Sequence[Stmt], k: int) -> list[Store]:
    """Store `body[k]` and those of the following ones, to its buffer, that may be made at once with it: as many as
    lanes lie apart, if that is a number that an interleaved store can have."""
    first = body[k]
    assert isinstance(first, Store)
    step = vector.stride(first.index)
    if step not in INTERLEAVED and step not in WIDE_STORED:
        return []
    group: list[Store] = []
    written: set[Buffer] = set()
    for stmt in body[k:]:
        if not isinstance(stmt, Store) or len(group) == step or loads_of(stmt) & written:
            break
        written.add(stmt.buffer)
        if stmt.buffer is first.buffer:
            group.append(stmt)
    return group if len(group) == step else []


def loads_of(store: Store) -> set[Buffer]:
    """The buffers that a store's index and value read."""
    return {x.buffer for x in subexpressions((store.index, store.value)) if isinstance(x, Load)}


@frozen_record
class Steps:
    """A loop that is counted for the user: its number in the program, and what its iterations are."""

    loop: int
    total: int  # 0: not known
    each: int = 1
    first: int = 0

    def at(self, code: Code, i: str) -> str:
        """How many steps are done before iteration `i`."""
        if i[0] != "%":
            return str(min(int(i) * self.each + self.first, self.total or 1 << 62))
        scaled = code.here(f"mul nuw nsw i64 {i}, {self.each}") if self.each != 1 else i
        return code.here(f"add nuw nsw i64 {scaled}, {self.first}") if self.first else scaled


Body = Callable[[str, list[Value]], list[Value]]  # (iteration, what is carried) -> what it is afterwards


class Surroundings(Protocol):
    """What a function asks of the module that it is in (module.py)."""

    target: Target
    repeated: Repeated

    def op_function(self, body: Lambda, lanes: int) -> str: ...
    def symbol(self, emitter: Any, name: str) -> str: ...
    def threads(self, emitter: Any, loop: Loop) -> bool: ...
    def run(self, emitter: Any, stmt: Run) -> None: ...
    def host_call(self, emitter: Any, stmt: HostCall) -> None: ...


class FunctionEmitter:
    """Writes the statements of one LLVM function."""

    asks = False  # whether a loop may end the function early
    stop = ""  # how it does, if it may
    counts = False  # whether loops say how far they are
    times = math.inf  # how often what is being written runs in a call, at most; not known in most functions

    def __init__(self, module: Surroundings) -> None:
        self.module = module
        target = module.target
        has = target.converts_halves, target.looks_up, target.dots_pairs, target.multiplies_tiles, target.fuses
        self.code = Code(*has, target.picks, 0 if target.scales else 8 * target.vector_bytes)
        self.eval = Evaluator(self.code, module.op_function, module.target.vector_bytes, module.repeated)
        self._writes: dict[Loop, Set[Buffer]] = {}
        self._loops = 0  # that are counted for the user
        self._depth = 0  # of loops that ask
        self._in_rounds: set[Loop] = set()  # loops around that ask already
        self._work = Work()
        self._aside = False  # in what takes little beside the loops that surround it

    def block(self, body: Sequence[Stmt]) -> None:
        done: set[Stmt] = set()
        parts = Parts(self.eval, body) if len(body) >= LONG else None
        aside = set() if self._aside else self._work.little(body)
        for k, stmt in enumerate(body):
            if stmt in done:
                continue
            if parts is not None:
                parts.before(k)
            if isinstance(stmt, Store) and self.eval.vector is not None:
                group = interleaved(self.eval.vector, body, k)
                if group and interleaved_store(self.eval, group):
                    done.update(group)
                    continue
            if stmt in aside:
                self._aside = True
                self.stmt(stmt)
                self._aside = False
            else:
                self.stmt(stmt)
            if parts is not None:
                parts.after(stmt)

    def stmt(self, stmt: Stmt) -> None:
        ev = self.eval
        match stmt:
            case Let():
                ev.begin((stmt.value,))
                self._let(stmt)
            case Store():
                ev.begin((stmt.index, stmt.value))
                emit_store(ev, stmt.buffer, stmt.index, stmt.value)
            case Loop():
                self.loop(stmt)
            case If():
                self._if(stmt)
            case While():
                self._while(stmt)
            case Call():
                self._call(stmt)
            case HostCall():
                self.module.host_call(self, stmt)
            case Run():
                self.module.run(self, stmt)

    def _let(self, stmt: Let) -> None:
        ev = self.eval
        if stmt.var.dtype[0] in "iu":
            ev.lets[stmt.var] = stmt.value
            bounds = ev.interval(stmt.value)
            if bounds is not None:
                ev.ranges[stmt.var] = bounds
        vector = ev.vector
        if vector is None or not vector.depends(stmt.value):
            ev.env[stmt.var] = ev.scalar(stmt.value)
        elif is_lazy(stmt.value):
            vector.varying.add(stmt.var)
            vector.definitions[stmt.var] = stmt.value
        else:
            vector.varying.add(stmt.var)
            vector.values[stmt.var] = broadcast(self.code, ev.value(stmt.value), vector.lanes)

    # Loops.

    def writes(self, loop: Loop) -> Set[Buffer]:
        """Buffers stored in the body of `loop`."""
        found = self._writes.get(loop)
        if found is None:
            found = self._writes[loop] = stored(loop.body)
        return found

    def loop(self, loop: Loop) -> None:
        """Emits a loop by its role and what surrounds it."""
        if loop.role == "threads" and self.eval.vector is None and self.module.threads(self, loop):
            return
        if loop.role in ("scan", "vector") and self.eval.vector is None and self.vector_loop(loop):
            return
        if SQUARE in loop.attrs and self.eval.vector is not None and self.square_loop(loop):
            return
        self.eval.begin(expressions(loop)[: 1 + sum(len(group.inits) for group in loop.carried)])
        extent = self.eval.scalar(loop.extent).ref
        self.scalar_loop(loop, "0", extent)

    def vector_loop(self, loop: Loop) -> bool:
        """Emits `loop` with lanes; False if it has to be scalar. See vector_loops.py."""
        raise NotImplementedError

    def square_loop(self, loop: Loop) -> bool:
        """Emits a loop of squares inside a vector loop; False if it has to go one by one. See vector_loops.py."""
        raise NotImplementedError

    def scalar_loop(self, loop: Loop, start: str, extent: str, inits: list[Value] | None = None) -> None:
        """One iteration after the other from `start`; inside a vector loop the carried values have lanes."""
        ev, some = self.eval, False
        if isinstance(loop.extent, Const):
            ev.ranges[loop.var] = 0, max(loop.extent.value - 1, 0)
        else:
            bounds = ev.interval(loop.extent)
            if bounds is not None:
                ev.ranges[loop.var] = 0, max(bounds[1] - 1, 0)
                some = start == "0" and bounds[0] > 0
        vector = ev.vector
        carried = [v for group in loop.carried for v in group.vars]
        updates = [u for group in loop.carried for u in group.updates]
        lanes = 1
        if vector is not None and carried:
            lanes = vector.lanes
            vector.varying.update(carried)
            vector.varying.update(v for group in loop.carried for v in group.results)
        if inits is None:
            inits = [ev.value(init) for group in loop.carried for init in group.inits]
        inits = [broadcast(self.code, init, lanes) for init in inits]

        def body(i: str, values: list[Value]) -> list[Value]:
            ev.env[loop.var] = Value("i64", i)
            self._bind(carried, values)
            self.block(loop.body)
            ev.begin(updates)
            return [broadcast(self.code, ev.value(update), lanes) for update in updates]

        results = self.accumulate(loop, start, extent, inits, body, some)
        self._bind([v for group in loop.carried for v in group.results], results)

    def accumulate(
        self, loop: Loop, start: str, end: str, inits: list[Value], body: Body, some: bool = False
    ) -> list[Value]:
        """Runs `body` for each iteration, at least once if `some`; what the loop carries at its end."""
        return self.counted(loop, start, end, 1, inits, body, some)

    def _bind(self, variables: Sequence[Var], values: Sequence[Value]) -> None:
        vector = self.eval.vector
        for var, value in zip(variables, values):
            if vector is not None and var in vector.varying:
                vector.values[var] = value
            else:
                self.eval.env[var] = value

    def counted(
        self,
        loop: Loop,
        start: str,
        end: str,
        step: int,
        inits: list[Value],
        body: Body,
        some: bool = False,
        chains: bool = False,
    ) -> list[Value]:
        """for i = start; i < end; i += step, carrying values; `body` gives the next ones. Returns the last ones.

        `some`: there is at least one iteration. `chains`: each turn is a loop of many iterations. All iterations of
        `loop`, of whatever role, are written here: in rounds, between which the program asks for Ctrl-C, where they
        may take long.
        """
        known = start[0] != "%" and end[0] != "%"
        turns = range(int(start), int(end), step) if known else range(0)
        times = self.times
        self.times *= len(turns) if known else math.inf
        nested = len(self.code.scopes) > 1 and not chains
        if nested and is_straight(loop, len(turns), self.module.target, times, self._aside):
            for i in turns:
                inits = body(str(i), inits)
        else:
            inits = self._in_rounds_of(loop, start, end, step, inits, body, some)
        self.times = times
        return inits

    def _in_rounds_of(
        self, loop: Loop, start: str, end: str, step: int, inits: list[Value], body: Body, some: bool
    ) -> list[Value]:
        """What `counted` says, of what is not straight code."""
        writes, every = self.writes(loop), 0
        if self.asks and loop not in self._in_rounds:
            bounds = self.eval.ranges.get(loop.var)
            if bounds is not None or self.eval.vector is None:
                every = asks_every(loop, bounds and bounds[1] + 1)
        if not every:
            return self._counted(start, end, step, inits, writes, body, some)
        size = step
        while 2 * size <= every:
            size *= 2

        steps = self.begin_count(loop)

        def round_(i: str, values: list[Value]) -> list[Value]:
            if steps is None:
                self.ask_interrupt(self.code.here(f"icmp ne i64 {i}, {start}"))
            else:
                self.ask_interrupt(steps=(steps.at(self.code, i), steps))
            if size == step:
                return body(i, values)
            stop = self.later(i, size)
            if "%" in (start[0], end[0]) or (int(end) - int(start)) % size:
                stop = self.least(stop, end)
            return self._counted(i, stop, step, values, writes, body, some=True)

        self._in_rounds.add(loop)
        results = self._counted(start, end, size, inits, writes, round_, some)
        self._in_rounds.remove(loop)
        self.end_count()
        if steps is not None:
            self.ask_interrupt(steps=(steps.at(self.code, end), steps))
        return results

    def later(self, i: str, size: int) -> str:
        """i + size."""
        return self.code.inst(f"add nuw nsw i64 {i}, {size}", i) if i[0] == "%" else str(int(i) + size)

    def least(self, x: str, y: str) -> str:
        """The smaller index."""
        if x[0] != "%" and y[0] != "%":
            return str(min(int(x), int(y)))
        return Asm(self.code, 1).call("llvm.smin", "i64", x, y)

    def _counted(
        self,
        start: str,
        end: str,
        step: int,
        inits: list[Value],
        writes: Set[Buffer],
        body: Body,
        some: bool = False,
    ) -> list[Value]:
        """What `counted` says, without questions."""
        wide = [init.dtype == "bool" and init.lanes > 1 for init in inits]
        if any(wide):
            held = [_as_bytes(self.code, v) if w else v for v, w in zip(inits, wide)]

            def with_bytes(index: str, values: list[Value]) -> list[Value]:
                updates = body(index, [_as_lanes(self.code, v) if w else v for v, w in zip(values, wide)])
                return [_as_bytes(self.code, v) if w else v for v, w in zip(updates, wide)]

            results = self._counted(start, end, step, held, writes, with_bytes, some)
            return [_as_lanes(self.code, v) if w else v for v, w in zip(results, wide)]
        code = self.code
        known = start[0] != "%" and end[0] != "%"
        if known and int(start) >= int(end):
            return inits
        if known and int(start) + step >= int(end):
            return body(start, inits)
        number = code.fresh("").strip("%.")
        guarded = not known and not some
        entered_from = ""
        if guarded:
            nonempty = code.inst(f"icmp slt i64 {start}, {end}", start, end)
            entered_from = code.block
            code.open_loop(writes, skippable=True)
            code.line(f"  br i1 {nonempty}, label %pre.{number}, label %exit.{number}")
            code.label(f"pre.{number}")
        before = code.block
        code.open_loop(writes)
        code.line(f"  br label %loop.{number}")
        code.label(f"loop.{number}")
        index = code.define(code.fresh("i"))
        phis: list = []
        code.scopes[-1].lines.append(phis)
        values = []
        for init in inits:
            refs = [code.define(code.fresh("acc")) for _ in init.parts]
            values.append(Value(init.dtype, refs[0], init.lanes, refs[1] if len(refs) > 1 else None))
        updates = body(index, values)
        following = code.here(f"add nuw nsw i64 {index}, {step}")
        again = code.here(f"icmp slt i64 {following}, {end}")
        latch = code.block
        phis.append(f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        for init, value, update in zip(inits, values, updates):
            for first, phi, last in zip(init.parts, value.parts, update.parts):
                phis.append(f"  {phi} = phi {value.type} [ {first}, %{before} ], [ {last}, %{latch} ]")
        code.line(f"  br i1 {again}, label %loop.{number}, label %done.{number}")
        code.close()
        code.label(f"done.{number}")
        results = updates
        code.leave(ref for update in updates for ref in update.parts)
        if guarded:
            code.line(f"  br label %exit.{number}")
            code.close()
            code.label(f"exit.{number}")
            results = [
                self._phi(result, [(init.parts, entered_from), (result.parts, f"done.{number}")])
                for init, result in zip(inits, results)
            ]
        return results

    def _phi(self, like: Value, sources: list[tuple[tuple[str, ...], str]]) -> Value:
        """A phi for each register of a value."""
        refs = []
        for part in range(len(like.parts)):
            incoming = ", ".join(f"[ {refs_[part]}, %{label} ]" for refs_, label in sources)
            refs.append(self.code.here(f"phi {like.type} {incoming}"))
        return Value(like.dtype, refs[0], like.lanes, refs[1] if len(refs) > 1 else None)

    # Control flow.

    def _if(self, stmt: If) -> None:
        ev = self.eval
        ev.begin((stmt.cond,))
        cond = ev.value(stmt.cond)
        if cond.lanes > 1:
            self._masked_if(stmt, cond)
        elif cond.ref in ("true", "false"):
            self.block(stmt.then if cond.ref == "true" else stmt.orelse)
        else:
            self.branch(cond.ref, lambda: self.block(stmt.then), lambda: self.block(stmt.orelse))

    def instance(self, loop: Loop, base: str, lanes: int) -> None:
        """Makes `loop.var` stand for `lanes` iterations from `base`."""
        self.eval.vector = VectorIndex(loop.var, base, lanes, varying_vars(loop), loop.body, SINGLY in loop.attrs)

    def branch(self, cond: str, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        """if (cond) then() else orelse()."""
        code = self.code
        number = code.fresh("").strip("%.")
        code.line(f"  br i1 {cond}, label %then.{number}, label %else.{number}")
        for label, emit in (("then", then), ("else", orelse)):
            code.open_branch()
            code.label(f"{label}.{number}")
            emit()
            code.line(f"  br label %end.{number}")
            code.close()
        code.label(f"end.{number}")

    def _masked_if(self, stmt: If, cond: Value) -> None:
        ev, a = self.eval, Asm(self.code, cond.lanes)
        outer = ev.mask
        for ref, body in ((cond.ref, stmt.then), (None, stmt.orelse)):
            if not body:
                continue
            own = a.not_(cond.ref) if ref is None else ref
            ev.mask = own if outer is None else a.op("and", "i1", outer, own)
            self.block(body)
        ev.mask = outer

    def _while(self, stmt: While) -> None:
        code, ev = self.code, self.eval
        number = code.fresh("").strip("%.")
        steps = self.begin_count(stmt)
        before = code.block
        code.open_loop(stored((stmt,)), skippable=True)
        code.line(f"  br label %while.{number}")
        code.label(f"while.{number}")
        phis: list = []
        code.scopes[-1].lines.append(phis)
        count = code.define(code.fresh("count"))
        times, self.times = self.times, math.inf
        self.block(stmt.body_cond)
        ev.begin((stmt.cond,))
        cond = ev.scalar(stmt.cond).ref
        code.line(f"  br i1 {cond}, label %do.{number}, label %end.{number}")
        code.label(f"do.{number}")
        self.block(stmt.body)
        self.times = times
        following = code.here(f"add i64 {count}, 1")
        every = asks_every(stmt)
        part = code.here(f"and i64 {count}, {every - 1}")
        due = code.here(f"icmp eq i64 {part}, {every - 1}")
        self.ask_interrupt(due, None if steps is None else (following, steps))
        phis.append(f"  {count} = phi i64 [ 0, %{before} ], [ {following}, %{code.block} ]")
        code.line(f"  br label %while.{number}")
        code.close()
        code.label(f"end.{number}")
        self.end_count()
        if steps is not None and every > 1:  # else the last step has said so
            self.ask_interrupt(code.here(f"icmp uge i64 {count}, {every}"), (count, steps))

    def ask_interrupt(self, due: str = "", steps: tuple[str, Steps] | None = None) -> None:
        """Ends the function if the user wants that; asks where `due`. Functions that `asks` do.

        steps: how many steps of a loop that is counted are done.
        """

    def begin_count(self, loop: Loop | While) -> Steps | None:
        """How the steps of a loop, which asks, are counted for the user; None: not. `end_count` when it is written.

        The outermost loop of the user's is: those inside it are parts of its steps.
        """
        self._depth += 1
        known = dict(loop.attrs) if isinstance(loop, Loop) else {STEPS: 0}
        if not self.counts or self._depth > 1 or STEPS not in known:
            return None
        self._loops += 1
        return Steps(self._loops, known[STEPS], known.get(STEPS_EACH, 1), known.get(STEPS_FROM, 0))

    def end_count(self) -> None:
        """The loop that has begun last has been written."""
        self._depth -= 1

    # Calls.

    def _call(self, stmt: Call) -> None:
        ev, code = self.eval, self.code
        ev.begin(expressions(stmt))
        if stmt.symbol in INSTRUCTIONS:
            emit_instruction(ev, code, stmt)
            return
        args = []
        for arg in stmt.args:
            if isinstance(arg, Address):
                args.append(("ptr", ev.address(arg.buffer, arg.offset)))
            else:
                value = ev.scalar(arg)
                if value.dtype in REAL_OF:
                    raise NotImplementedError(f"call of {stmt.symbol}: complex numbers are passed by address")
                args.append((value.type, value.ref))
        function = self.module.symbol(self, stmt.symbol)
        kind = "void" if stmt.result is None else register_type(stmt.result.dtype)
        text = f"call {kind} {function}({', '.join(f'{kind} {ref}' for kind, ref in args)})"
        if stmt.result is None:
            code.line(f"  {text}")
        else:
            ev.env[stmt.result] = Value(stmt.result.dtype, code.here(text))
        for buffer in stored((stmt,)):
            ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1


def _as_bytes(code: Code, value: Value) -> Value:
    """Truth values as bytes of zeros or ones: LLVM takes vectors of bits that go from block to block apart."""
    n = value.lanes
    return Value("i8", code.here(f"sext <{n} x i1> {value.ref} to <{n} x i8>"), n)


def _as_lanes(code: Code, value: Value) -> Value:
    """The truth values that such bytes are."""
    return Value("bool", code.here(f"icmp slt <{value.lanes} x i8> {value.ref}, zeroinitializer"), value.lanes)
