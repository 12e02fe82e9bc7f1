"""Vector loops: several iterations at once.

A parallel loop of n iterations on L lanes runs ceil(n / L) times; the last time it starts at n - L and does some
iterations twice, which needs neither masks nor a second copy of the body. Where iterations may not be repeated (the
loop reads what it writes) the rest is scalar. A reduce loop has several accumulators of L lanes each; long float sums
are made of blocks whose sums are added with compensation, so that their error does not grow with n.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from ..loop_ir.ir import Carried, Combine, Const, Let, Loop, Op, Read, Store
from ..loop_ir.ops import neutral
from ..loop_ir.vectors import repeatable, scannable, varying_vars, vectorizable
from ..loop_ir.visit import expressions
from .access import VectorIndex
from .functions import FunctionEmitter
from .lanes import accumulators, lane_count, operations
from .ops import emit_op
from .square_access import square_store
from .squares import Square
from .types import literal
from .values import Asm, Value, broadcast, constant, element_of

# Iterations of a float sum's main loop between two compensated additions.
BLOCK = 16
REST_OPS = 96  # of all shorter vectors that end a loop, where there are several
STEPS = 128  # elements of a float sum that runs one at a time between two compensated additions


@dataclass(slots=True)
class _Sums:
    """Compensated sums: the values are totals + errors."""

    totals: list[Value] = field(default_factory=list)
    errors: list[Value] = field(default_factory=list)


class VectorFunctionEmitter(FunctionEmitter):
    """A FunctionEmitter that knows vector loops."""

    def vector_loop(self, loop: Loop) -> bool:
        if not (scannable(loop) if loop.role == "scan" else vectorizable(loop)):
            return False
        lanes = lane_count(loop, self.module.target)
        if lanes < 2:
            return False
        ev = self.eval
        if isinstance(loop.extent, Const):
            ev.ranges[loop.var] = 0, max(loop.extent.value - 1, 0)
        elif (bounds := ev.interval(loop.extent)) is not None:
            ev.ranges[loop.var] = 0, max(bounds[1] - 1, 0)
        ev.begin(expressions(loop)[: 1 + sum(len(group.inits) for group in loop.carried)])
        extent = ev.scalar(loop.extent).ref
        if loop.role == "scan":
            self._scan(loop, extent, lanes)
        elif loop.carried:
            self._reduce(loop, extent, lanes)
        elif extent[0] != "%":
            self._parallel_known(loop, int(extent), lanes)
        else:
            self._parallel(loop, extent, lanes)
        return True

    def _instance(self, loop: Loop, base: str, lanes: int) -> None:
        """Makes `loop.var` stand for `lanes` iterations from `base`."""
        self.eval.vector = VectorIndex(loop.var, base, lanes, varying_vars(loop))

    # Parallel.

    def _parallel_known(self, loop: Loop, n: int, lanes: int) -> None:
        whole = n - n % lanes
        if n % lanes == 0 or repeatable(loop):
            self._whole(loop, str(n), lanes, overlap=n % lanes != 0)
        else:
            self._whole(loop, str(whole), lanes, overlap=False)
            for start, few in self._rest(loop, whole, n):
                self._instance(loop, str(start), few)
                self.block(loop.body)
                self.eval.vector = None
                whole = start + few
            self.scalar_loop(loop, str(whole), str(n))

    def _rest(self, loop: Loop, start: int, n: int) -> list[tuple[int, int]]:
        """(start, lanes) of shorter vectors for the iterations that are left, if they repeat the body but a few times.

        In place of a loop of single elements, which costs as much as a vector for each of them.
        """
        rest = n - start
        sizes = [1 << k for k in range(rest.bit_length() - 1, -1, -1) if rest >> k & 1]
        if rest < 2 or len(sizes) * operations((loop,)) > max(operations((loop,)), REST_OPS):
            return []
        starts = itertools.accumulate(sizes, initial=start)
        return [(at, few) for at, few in zip(starts, sizes) if few > 1]

    def _parallel(self, loop: Loop, n: str, lanes: int) -> None:
        code = self.code
        if repeatable(loop):
            enough = code.inst(f"icmp sge i64 {n}, {lanes}", n)
            self.branch(
                enough, lambda: self._whole(loop, n, lanes, overlap=True), lambda: self.scalar_loop(loop, "0", n)
            )
            return
        whole = code.inst(f"and i64 {n}, {-lanes}", n)
        self._whole(loop, whole, lanes, overlap=False)
        self.scalar_loop(loop, whole, n)

    def _whole(self, loop: Loop, n: str, lanes: int, overlap: bool) -> None:
        """Iterations [0, n), which are at least `lanes` if `overlap`."""

        def body(i: str, _: list[Value]) -> list[Value]:
            if overlap and i[0] == "%":
                last = str(int(n) - lanes) if n[0] != "%" else self.code.inst(f"sub i64 {n}, {lanes}", n)
                i = Asm(self.code, 1).call("llvm.smin", "i64", i, last)
            self._instance(loop, i, lanes)
            self.block(loop.body)
            self.eval.vector = None
            return []

        self.counted("0", n, lanes, [], self.writes(loop), body)

    # Squares.

    def square_loop(self, loop: Loop) -> bool:
        ev, vector = self.eval, self.eval.vector
        assert vector is not None
        if ev.mask is not None or not isinstance(loop.extent, Const) or loop.extent.value < vector.lanes:
            return False
        n, side = loop.extent.value, vector.lanes
        overlap = n % side != 0 and repeatable(loop)
        square = Square(loop, side)
        whole = n if overlap else n - n % side
        ev.ranges[square.first] = 0, n - side

        def body(i: str, _: list[Value]) -> list[Value]:
            if overlap and i[0] == "%":
                i = Asm(self.code, 1).call("llvm.smin", "i64", i, str(n - side))
            elif overlap:
                i = str(min(int(i), n - side))
            ev.env[square.first] = Value("i64", i)
            ev.square = square
            for same in zip(*square.bodies):
                if isinstance(same[0], Store) and square_store(ev, same):  # type: ignore[arg-type]
                    continue
                for square.copy, stmt in enumerate(same):
                    self.stmt(stmt)
            ev.square = None
            return []

        self.counted("0", str(whole), side, [], self.writes(loop), body)
        if whole < n:
            self.scalar_loop(loop, str(whole), str(n))
        return True

    # Reduce.

    def _reduce(self, loop: Loop, n: str, lanes: int) -> None:
        """Main loop with several accumulators, a loop of single vectors, and a scalar rest."""
        ev = self.eval
        count = accumulators(loop)
        inits = [ev.value(init) for group in loop.carried for init in group.inits]
        neutrals = self._neutrals(loop)
        start = [broadcast(self.code, value, lanes) for value in neutrals]
        writes = self.writes(loop)
        done, sums = "0", _Sums()
        if self._compensated(loop, n, lanes * count):
            done, sums = self._blocks(loop, n, lanes, count, start)
        partial = start
        if count > 1:
            end = self._floor(n, lanes * count)
            copies = self._copies(start, count)
            every = self.counted(done, end, lanes * count, copies, writes, self._body(loop, lanes, count))
            partial = self._tree(loop, every, count, lanes)
            done = end
        end = self._floor(n, lanes)
        partial = self.counted(done, end, lanes, partial, writes, self._body(loop, lanes, 1))
        if sums.totals:
            sums = self._add_across(self._add(sums, partial), lanes)
        else:
            partial = self._across(loop, partial, lanes)
        # The rest on its own: added one by one to a large total, its elements would lose more.
        known = end[0] != "%" and end == n
        parts: list[list[Value]] = []
        for first, few in self._rest(loop, int(end), int(n)) if n[0] != "%" else []:
            sides = self._body(loop, few, 1)(str(first), [broadcast(self.code, value, few) for value in neutrals])
            parts.append(self._across(loop, sides, few))
            end = str(first + few)
        self.scalar_loop(loop, end, n, neutrals)
        results = [v for group in loop.carried for v in group.results]
        rest = [ev.env[var] for var in results]
        for part in reversed(parts):
            rest = self._merge(loop, part, rest, 1)
        if sums.totals:
            sums = self._add(self._add(sums, rest), inits)
            values = [self._plus(s, self._finite(e)) for s, e in zip(sums.totals, sums.errors)]
        else:
            values = self._merge(loop, inits, partial if known else self._merge(loop, partial, rest, 1), 1)
        ev.env.update(zip(results, values))

    def _floor(self, n: str, step: int) -> str:
        """The largest multiple of `step` (a power of two) up to n."""
        return str(int(n) - int(n) % step) if n[0] != "%" else self.code.inst(f"and i64 {n}, {-step}", n)

    def _copies(self, values: list[Value], count: int) -> list[Value]:
        return [value for _ in range(count) for value in values]

    def _neutrals(self, loop: Loop) -> list[Value]:
        """Where accumulators start."""
        values = []
        for group in loop.carried:
            if isinstance(group.combine, Combine):
                values += [self.eval.scalar(expr) for expr in group.combine.neutral]
                continue
            assert group.combine is not None
            dtype = group.vars[0].dtype
            start = neutral(group.combine, dtype)
            if dtype[0] == "c":
                start = complex(start, -0.0 if group.combine == "add" else 0.0)
            values.append(constant(dtype, start))
        return values

    def _body(self, loop: Loop, lanes: int, count: int):  # type: ignore[no-untyped-def]
        """The body for `count` vectors from index i on, each with accumulators of its own."""
        carried = [v for group in loop.carried for v in group.vars]
        updates = [u for group in loop.carried for u in group.updates]

        def body(i: str, values: list[Value]) -> list[Value]:
            result: list[Value] = []
            for k in range(count):
                base = i
                if k:
                    base = str(int(i) + k * lanes) if i[0] != "%" else self.code.inst(f"add i64 {i}, {k * lanes}", i)
                self._instance(loop, base, lanes)
                assert self.eval.vector is not None
                own = values[k * len(carried) : (k + 1) * len(carried)]
                self.eval.vector.values.update(zip(carried, own))
                self.block(loop.body)
                self.eval.begin(updates)
                result += [broadcast(self.code, self.eval.value(update), lanes) for update in updates]
                self.eval.vector = None
            return result

        return body

    def _merge(self, loop: Loop, left: list[Value], right: list[Value], lanes: int) -> list[Value]:
        """combine(left, right), group by group."""
        result: list[Value] = []
        for group in loop.carried:
            k = len(result)
            size = len(group.vars)
            result += self._combine(group, left[k : k + size], right[k : k + size], lanes)
        return result

    def _combine(self, group: Carried, left: list[Value], right: list[Value], lanes: int) -> list[Value]:
        code, ev = self.code, self.eval
        if isinstance(group.combine, str):
            dtype = group.vars[0].dtype
            op = Op(group.combine, dtype, (Const(dtype, 0), Const(dtype, 0)))
            return [emit_op(code, op, [left[0], right[0]])]
        combine = group.combine
        assert isinstance(combine, Combine)
        values = dict(zip((*combine.left, *combine.right), (*left, *right)))
        if lanes == 1:
            ev.env.update(values)
        else:
            # A vector index that nothing reads: only the values of the two sides have lanes here.
            ev.vector = VectorIndex(combine.left[0], "0", lanes, set(values))
            ev.vector.values.update(values)
            ev.vector.var = None  # type: ignore[assignment]
        ev.begin(combine.exprs)
        result = [broadcast(code, ev.value(expr), lanes) for expr in combine.exprs]
        ev.vector = None
        return result

    def _tree(self, loop: Loop, values: list[Value], count: int, lanes: int) -> list[Value]:
        """Combines `count` sets of accumulators pairwise."""
        size = len(values) // count
        sets = [values[k * size : (k + 1) * size] for k in range(count)]
        while len(sets) > 1:
            sets = [
                self._merge(loop, sets[k], sets[k + 1], lanes) if k + 1 < len(sets) else sets[k]
                for k in range(0, len(sets), 2)
            ]
        return sets[0]

    def _across(self, loop: Loop, values: list[Value], lanes: int) -> list[Value]:
        """Combines the lanes: upper half with lower half until one is left."""
        while lanes > 1:
            lanes //= 2
            low = [self.eval.shuffle(value, range(lanes)) for value in values]
            high = [self.eval.shuffle(value, range(lanes, 2 * lanes)) for value in values]
            if lanes == 1:
                low, high = ([self._single(value) for value in side] for side in (low, high))
            values = self._merge(loop, low, high, lanes)
        return values

    def _single(self, value: Value) -> Value:
        """The scalar in a vector of one lane."""
        element = element_of(value.dtype)
        refs = [self.code.inst(f"extractelement <1 x {element}> {ref}, i64 0", ref) for ref in value.parts]
        return Value(value.dtype, refs[0], 1, refs[1] if len(refs) > 1 else None)

    # Scans.

    def _scan(self, loop: Loop, n: str, lanes: int) -> None:
        """Running values: prefixes within each vector, added to what came before it, which all lanes hold."""
        ev = self.eval
        groups = {group.updates[0].var: group for group in loop.carried if isinstance(group.updates[0], Read)}
        starts = [broadcast(self.code, ev.value(group.inits[0]), lanes) for group in loop.carried]
        neutrals = [broadcast(self.code, value, lanes) for value in self._neutrals(loop)]
        end = self._floor(n, lanes)

        def body(i: str, values: list[Value]) -> list[Value]:
            self._instance(loop, i, lanes)
            vector = ev.vector
            assert vector is not None
            so_far = dict(zip(loop.carried, zip(values, neutrals)))
            following: dict[Carried, Value] = {}
            for stmt in loop.body:
                group = groups.get(stmt.var) if isinstance(stmt, Let) else None
                if group is None:
                    self.stmt(stmt)
                    continue
                assert isinstance(stmt, Let) and isinstance(stmt.value, Op)
                before, nothing = so_far[group]
                x, y = stmt.value.args
                element = y if isinstance(x, Read) and x.var is group.vars[0] else x
                ev.begin((element,))
                prefix = self._prefix(group, broadcast(self.code, ev.value(element), lanes), nothing)
                vector.varying.add(stmt.var)
                (vector.values[stmt.var],) = self._combine(group, [before], [prefix], lanes)
                # Added to the running value at once, without waiting for the lanes above.
                (following[group],) = self._combine(group, [before], [ev.shuffle(prefix, [lanes - 1] * lanes)], lanes)
            ev.vector = None
            return [following[group] for group in loop.carried]

        totals = self.counted("0", end, lanes, starts, self.writes(loop), body)
        self.scalar_loop(loop, end, n, [self._single(ev.shuffle(total, [0])) for total in totals])

    def _prefix(self, group: Carried, value: Value, nothing: Value) -> Value:
        """Each lane combined with all lanes below it, in log2(lanes) rounds."""
        step, lanes = 1, value.lanes
        while step < lanes:
            chosen = ", ".join(f"i32 {k - step if k >= step else lanes + k}" for k in range(lanes))
            refs = [
                self.code.inst(f"shufflevector {value.type} {x}, {value.type} {n}, <{lanes} x i32> <{chosen}>", x, n)
                for x, n in zip(value.parts, nothing.parts)
            ]
            shifted = Value(value.dtype, refs[0], lanes, refs[1] if len(refs) > 1 else None)
            saved, self.eval.vector = self.eval.vector, None
            (value,) = self._combine(group, [shifted], [value], lanes)
            self.eval.vector = saved
            step *= 2
        return value

    # Long sums.

    def _compensated(self, loop: Loop, n: str, step: int) -> bool:
        """Whether the loop is a long plain sum of floats."""
        if n[0] != "%" and int(n) < 2 * BLOCK * step:
            return False
        for group in loop.carried:
            if group.combine != "add" or group.vars[0].dtype not in ("f32", "f64"):
                return False
            update = group.updates[0]
            if not isinstance(update, Op) or update.name != "add":
                return False
            reads = [isinstance(arg, Read) and arg.var is group.vars[0] for arg in update.args]
            if reads.count(True) != 1:
                return False
        return True

    def _blocks(self, loop: Loop, n: str, lanes: int, count: int, start: list[Value]) -> tuple[str, _Sums]:
        """The index where whole blocks end, and their sums."""
        size = BLOCK * lanes * count
        end = self._floor(n, size)
        zeros = [broadcast(self.code, Value(value.dtype, literal(value.dtype, 0.0)), lanes) for value in start]
        writes = self.writes(loop)

        def body(i: str, values: list[Value]) -> list[Value]:
            stop = self.code.inst(f"add nuw nsw i64 {i}, {size}", i) if i[0] == "%" else str(int(i) + size)
            inner = self.counted(
                i, stop, lanes * count, self._copies(start, count), writes, self._body(loop, lanes, count), some=True
            )
            so_far = _Sums(values[: len(start)], values[len(start) :])
            sums = self._add(so_far, self._tree(loop, inner, count, lanes))
            return sums.totals + sums.errors

        values = self.counted("0", end, size, start + zeros, writes, body)
        return end, _Sums(values[: len(start)], values[len(start) :])

    def accumulate(
        self, loop: Loop, start: str, end: str, inits: list[Value], body: Callable[[str, list[Value]], list[Value]]
    ) -> list[Value]:
        """Like counted; a long float sum one element at a time, as those over columns are, is made of blocks."""
        if loop.role != "reduce" or start != "0" or end[0] == "%" or not self._compensated(loop, end, STEPS // BLOCK):
            return super().accumulate(loop, start, end, inits, body)
        writes, whole = self.writes(loop), int(end) - int(end) % STEPS
        zeros = [broadcast(self.code, Value(value.dtype, literal(value.dtype, 0.0)), value.lanes) for value in inits]

        def block(i: str, values: list[Value]) -> list[Value]:
            stop = self.code.inst(f"add nuw nsw i64 {i}, {STEPS}", i) if i[0] == "%" else str(int(i) + STEPS)
            inner = self.counted(i, stop, 1, zeros, writes, body, some=True)
            sums = self._add(_Sums(values[: len(zeros)], values[len(zeros) :]), inner)
            return sums.totals + sums.errors

        values = self.counted("0", str(whole), STEPS, inits + zeros, writes, block)
        rest = self.counted(str(whole), end, 1, zeros, writes, body)
        sums = self._add(_Sums(values[: len(zeros)], values[len(zeros) :]), rest)
        return [self._plus(s, self._finite(e)) for s, e in zip(sums.totals, sums.errors)]

    def _plus(self, x: Value, y: Value) -> Value:
        ref = Asm(self.code, x.lanes).op("fadd", element_of(x.dtype), x.ref, y.ref)
        return Value(x.dtype, ref, x.lanes)

    def _finite(self, error: Value) -> Value:
        """A compensation, or 0 where the sum overflowed and the compensation is NaN."""
        a, element = Asm(self.code, error.lanes), element_of(error.dtype)
        bad = a.cmp("uno", element, error.ref, error.ref)
        return Value(error.dtype, a.select(bad, element, a.imm(element, 0.0), error.ref), error.lanes)

    def _add(self, sums: _Sums, values: list[Value]) -> _Sums:
        """sums + values; what rounding loses goes to the errors (two-sum; Knuth, The Art of Computer Programming 2)."""
        result = _Sums()
        for s, error, t in zip(sums.totals, sums.errors, values):
            a, element = Asm(self.code, s.lanes), element_of(s.dtype)
            total = a.op("fadd", element, s.ref, t.ref)
            virtual = a.op("fsub", element, total, s.ref)
            left = a.op("fsub", element, s.ref, a.op("fsub", element, total, virtual))
            lost = a.op("fadd", element, left, a.op("fsub", element, t.ref, virtual))
            result.totals.append(Value(s.dtype, total, s.lanes))
            result.errors.append(self._plus(error, Value(s.dtype, lost, s.lanes)))
        return result

    def _add_across(self, sums: _Sums, lanes: int) -> _Sums:
        """The sums of all lanes."""
        while lanes > 1:
            lanes //= 2
            sides = []
            for lower in (range(lanes), range(lanes, 2 * lanes)):
                totals, errors = ([self.eval.shuffle(v, lower) for v in side] for side in (sums.totals, sums.errors))
                if lanes == 1:
                    totals, errors = ([self._single(v) for v in side] for side in (totals, errors))
                sides.append(_Sums(totals, errors))
            low, high = sides
            merged = self._add(low, high.totals)
            sums = _Sums(merged.totals, [self._plus(e, f) for e, f in zip(merged.errors, high.errors)])
        return sums
