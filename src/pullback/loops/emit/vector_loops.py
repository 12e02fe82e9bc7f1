"""Vector loops: several iterations at once.

A parallel loop of n iterations on L lanes runs ceil(n / L) times; the last time it starts at n - L and does some
iterations twice, which needs neither masks nor a second copy of the body. Where iterations may not be repeated (the
loop reads what it writes) shorter vectors do the rest: a softmax of rows of 12 took 1.8 times as long with a loop of
single elements, of rows of 100 1.2 times. A reduce loop has several accumulators of L lanes each; long float sums are
made of blocks whose sums are added with compensation, so that their error does not grow with n.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pullback._ext import _core
from pullback.loops.ir.ir import STREAMED, Carried, Combine, Const, Let, Loop, Op, Read, Stmt, Store
from pullback.loops.ir.ops import neutral
from pullback.loops.ir.vectors import repeatable, scannable, vectorizable
from pullback.loops.ir.visit import expressions

from .access import VectorIndex
from .functions import Body, FunctionEmitter, interleaved
from .lanes import REST_OPS, accumulators, lane_count, operations, register_lanes, shorter
from .ops import emit_op
from .square_access import square_store
from .squares import Square, copies_of
from .stores import interleaved_store
from .streams import LEAST_STREAMED, row_start, streamed
from .sums import Sums, float_sums, plus, settled, two_sum, zero
from .values import Asm, Value, broadcast, constant, element_of

# The order of sums of floats, which loops of eager work have, too.
BLOCK = _core.SUM_BLOCK  # iterations of the main loop between two compensated additions
FEW = _core.SUM_FEW  # partial sums: chains of twice BLOCK additions of fewer would lose more than pairwise sums do
CHAIN = _core.SUM_CHAIN  # elements that are added one by one, where the sum runs one at a time
STEPS = _core.SUM_STEPS  # elements of such a sum between two compensated additions


class VectorFunctionEmitter(FunctionEmitter):
    """A FunctionEmitter that knows vector loops."""

    def vector_loop(self, loop: Loop) -> bool:
        if not (scannable(loop) if loop.role == "scan" else vectorizable(loop)):
            return False
        ev = self.eval
        lanes, bounds = lane_count(loop, self.module.target, self.times), ev.interval(loop.extent)
        if loop.carried and bounds is not None:
            while lanes > max(bounds[1], 1):
                lanes //= 2
        if lanes < 2:
            return False
        if bounds is not None:
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
            self._parallel(loop, extent, lanes, bounds[0] if bounds else 0, ev.divisor(loop.extent))
        return True

    # Parallel.

    def _parallel_known(self, loop: Loop, n: int, lanes: int) -> None:
        whole = n - n % lanes
        if STREAMED in loop.attrs and n >= LEAST_STREAMED * lanes and repeatable(loop):
            streamed(self, loop, str(n), lanes, lambda: self._whole(loop, str(n), lanes, overlap=n % lanes != 0))
            return
        if n % lanes == 0 or repeatable(loop):
            start = row_start(self, loop, n, lanes) if n % lanes else None
            self._whole(loop, str(n), lanes, overlap=n % lanes != 0, start=start or "0")
        else:
            self._whole(loop, str(whole), lanes, overlap=False)
            self._ends(loop, str(whole), str(n), lanes)

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

    def _parallel(self, loop: Loop, n: str, lanes: int, least: int, unit: int) -> None:
        """n iterations, which are known to be at least `least`, and a multiple of `unit`."""
        code = self.code
        if unit % lanes == 0:
            plain = lambda: self._whole(loop, n, lanes, overlap=False, some=least > 0)
            if STREAMED in loop.attrs and least > 0 and repeatable(loop):
                streamed(self, loop, n, lanes, plain)
            else:
                plain()
            return
        if repeatable(loop):

            def vectors() -> None:
                whole = lambda: self._whole(loop, n, lanes, overlap=True, some=True)
                if STREAMED in loop.attrs:
                    streamed(self, loop, n, lanes, whole)
                else:
                    whole()

            if least >= lanes:
                vectors()
                return
            enough = code.inst(f"icmp sge i64 {n}, {lanes}", n)
            self.branch(enough, vectors, lambda: self._ends(loop, "0", n, lanes, unit))
            return
        whole = self._floor(n, lanes)
        self._whole(loop, whole, lanes, overlap=False, some=least >= lanes)
        self._ends(loop, whole, n, lanes, unit)

    def _ends(self, loop: Loop, start: str, n: str, lanes: int, unit: int = 1) -> None:
        """Iterations from `start` to n, fewer than `lanes` and a multiple of `unit`: in shorter vectors, then one by
        one.
        """
        rest = int(n) - int(start) if n[0] != "%" else None
        for few in shorter(loop, lanes, register_lanes(loop, self.module.target), rest, unit):
            end = n if unit % few == 0 and rest is None else self._floor(n, few)  # `start` is a multiple of all of them
            self._whole(loop, end, few, overlap=False, start=start)
            start = end
        if start != n:
            self.scalar_loop(loop, start, n)

    def _whole(self, loop: Loop, n: str, lanes: int, overlap: bool, start: str = "0", some: bool = False) -> None:
        """Iterations [start, n), which are at least `lanes` if `overlap`; what is before 0 are the first ones. `some`:
        there are any.
        """

        def body(i: str, _: list[Value]) -> list[Value]:
            if overlap:
                last = str(int(n) - lanes) if n[0] != "%" else self.code.inst(f"sub i64 {n}, {lanes}", n)
                i = self.least(i, last)
                if start[0] == "%":
                    i = Asm(self.code, 1).call("llvm.smax", "i64", i, "0")
            self.instance(loop, i, lanes)
            self.block(loop.body)
            self.eval.vector = None
            return []

        self.counted(loop, start, n, lanes, [], body, some)

    # Squares.

    def square_loop(self, loop: Loop) -> bool:
        ev, vector = self.eval, self.eval.vector
        assert vector is not None
        if ev.mask is not None or not isinstance(loop.extent, Const) or loop.extent.value < vector.lanes:
            return False
        n, side = loop.extent.value, copies_of(loop, vector.lanes, vector.var, vector.varying, vector.definitions)
        overlap = n % side != 0 and repeatable(loop)
        square = Square(loop, side)
        whole = n if overlap else n - n % side
        ev.ranges[square.first] = 0, n - side

        def body(i: str, _: list[Value]) -> list[Value]:
            if overlap:
                i = self.least(i, str(n - side))
            ev.env[square.first] = Value("i64", i)
            ev.square = square
            done: set[Stmt] = set()
            for k, same in enumerate(zip(*square.bodies)):
                is_store = isinstance(same[0], Store) and same[0] not in done
                if is_store and square_store(ev, same):  # type: ignore[arg-type]
                    continue
                for square.copy, stmt in enumerate(same):
                    group = interleaved(vector, square.bodies[square.copy], k) if is_store else []
                    if group and interleaved_store(ev, group):
                        done.update(group)
                    elif stmt not in done:
                        self.stmt(stmt)
            ev.square = None
            return []

        self.counted(loop, "0", str(whole), side, [], body)
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
        done, sums = "0", Sums()
        step = lanes * count
        if any(float_sums(loop)) and (n[0] == "%" or int(n) >= BLOCK * step * (1 if step < FEW else 2)):
            done, sums = self._blocks(loop, n, lanes, count, start)
        partial = start
        if count > 1:
            end = self._floor(n, lanes * count)
            copies = self._copies(start, count)
            every = self.counted(loop, done, end, lanes * count, copies, self._body(loop, lanes, count))
            partial = self._tree(loop, every, count, lanes)
            done = end
        end = self._floor(n, lanes)
        partial = self.counted(loop, done, end, lanes, partial, self._body(loop, lanes, 1))
        # The rest comes to the partial results of the first lanes: added to their sum, it would lose more.
        parts: list[tuple[int, list[Value]]] = [(lanes, partial)]
        if n[0] == "%":
            for few in shorter(loop, lanes, register_lanes(loop, self.module.target), None):
                first, end = end, self._floor(n, few)
                sides = [broadcast(self.code, value, few) for value in neutrals]
                parts.append((few, self.counted(loop, first, end, few, sides, self._body(loop, few, 1))))
        else:
            for at, few in self._rest(loop, int(end), int(n)):
                sides = [broadcast(self.code, value, few) for value in neutrals]
                parts.append((few, self._body(loop, few, 1)(str(at), sides)))
                end = str(at + few)
        results = [v for group in loop.carried for v in group.results]
        if end != n:
            self.scalar_loop(loop, end, n, neutrals)
            parts.append((1, [ev.env[var] for var in results]))
        size, partial = parts.pop()
        for wider, values in reversed(parts):
            padded = [self._padded(value, start, size, wider) for value, start in zip(partial, neutrals)]
            size, partial = wider, self._merge(loop, values, padded, wider)
        if sums.totals:
            sums = self._add_across(loop, self._add(loop, sums, partial, lanes), lanes)
            values = settled(self.code, self._add(loop, sums, inits, 1), float_sums(loop))
        else:
            values = self._merge(loop, inits, self._across(loop, partial, lanes), 1)
        ev.env.update(zip(results, values))

    def _padded(self, value: Value, nothing: Value, size: int, lanes: int) -> Value:
        """The `size` lanes of `value`, and as many of `nothing` as make it `lanes`."""
        code, element = self.code, element_of(value.dtype)
        fill = broadcast(code, nothing, lanes if size == 1 else size)
        refs = []
        for ref, other in zip(value.parts, fill.parts):
            if size == 1:
                refs.append(code.inst(f"insertelement {fill.type} {other}, {element} {ref}, i64 0", other, ref))
                continue
            chosen = ", ".join(f"i32 {min(k, size)}" for k in range(lanes))
            kind = f"{fill.type} {ref}, {fill.type} {other}"
            refs.append(code.inst(f"shufflevector {kind}, <{lanes} x i32> <{chosen}>", ref, other))
        return Value(value.dtype, refs[0], lanes, refs[1] if len(refs) > 1 else None)

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
                self.instance(loop, base, lanes)
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
            low, high = ([self._half(value, upper) for value in values] for upper in (False, True))
            values = self._merge(loop, low, high, lanes)
        return values

    def _half(self, value: Value, upper: bool) -> Value:
        """The lower or the upper half of the lanes; of two lanes a scalar."""
        lanes = value.lanes // 2
        if lanes > 1:
            return self.eval.shuffle(value, range(lanes * upper, lanes * upper + lanes))
        return self._lane(value, int(upper))

    def _lane(self, value: Value, lane: int) -> Value:
        """One lane as a scalar."""
        refs = [self.code.inst(f"extractelement {value.type} {ref}, i64 {lane}", ref) for ref in value.parts]
        return Value(value.dtype, refs[0], 1, refs[1] if len(refs) > 1 else None)

    # Scans.

    def _scan(self, loop: Loop, n: str, lanes: int) -> None:
        """Running values: prefixes within each vector, added to what came before it, which all lanes hold."""
        ev = self.eval
        starts = [broadcast(self.code, ev.value(group.inits[0]), lanes) for group in loop.carried]
        neutrals = [broadcast(self.code, value, lanes) for value in self._neutrals(loop)]
        end = self._floor(n, lanes)

        def element(i: str) -> None:
            self.instance(loop, i, lanes)

        def prefix(group: Carried, value: Value) -> tuple[Value, Value]:
            value = self._prefix(group, value, neutrals[loop.carried.index(group)])
            return value, ev.shuffle(value, [lanes - 1] * lanes)

        totals = self._scanned(loop, end, lanes, starts, element, prefix)
        ev.vector = None
        self.scalar_loop(loop, end, n, [self._lane(total, 0) for total in totals])

    def _scanned(
        self,
        loop: Loop,
        end: str,
        step: int,
        starts: list[Value],
        begin: Callable[[str], None],
        prefix: Callable[[Carried, Value], tuple[Value, Value]],
    ) -> list[Value]:
        """A scan in steps of `step` iterations, which `begin` starts; what is carried in the end.

        `prefix` gives the running values within a step, and the last of them. Float sums run from 0 in each block of
        CHAIN steps; what came before, and what rounding lost of it, is added where they are wanted.
        """
        ev, code, lanes = self.eval, self.code, starts[0].lanes
        groups = {group.updates[0].var: group for group in loop.carried if isinstance(group.updates[0], Read)}
        flags, k = float_sums(loop), len(starts)
        outer = ev.vector

        def steps(first: str, last: str, starts: list[Value], bases: list[Value] | None) -> list[Value]:
            def body(i: str, values: list[Value]) -> list[Value]:
                begin(i)
                before = dict(zip(loop.carried, zip(values, bases or values, flags)))
                following: dict[Carried, Value] = {}
                for stmt in loop.body:
                    group = groups.get(stmt.var) if isinstance(stmt, Let) else None
                    if group is None:
                        self.stmt(stmt)
                        continue
                    assert isinstance(stmt, Let) and isinstance(stmt.value, Op)
                    so_far, base, flag = before[group]
                    x, y = stmt.value.args
                    own = y if isinstance(x, Read) and x.var is group.vars[0] else x
                    ev.begin((own,))
                    here, last_one = prefix(group, broadcast(code, ev.value(own), lanes))
                    (value,) = self._combine_apart(group, so_far, here, lanes)
                    if ev.vector is not None:
                        ev.vector.varying.add(stmt.var)
                    self._bind([stmt.var], [plus(code, base, value) if flag and bases else value])
                    # Added to the running value at once, without waiting for the lanes above.
                    same = here is last_one
                    (following[group],) = (value,) if same else self._combine_apart(group, so_far, last_one, lanes)
                ev.vector = outer
                return [following[group] for group in loop.carried]

            return self.counted(loop, first, last, step, starts, body, some=bases is not None)

        if not any(flags) or (end[0] != "%" and int(end) <= 2 * CHAIN * step):
            return steps("0", end, starts, None)

        def block(i: str, values: list[Value]) -> list[Value]:
            sums, stop = Sums.of(values, k), self.least(self.later(i, CHAIN * step), end)
            bases = settled(code, sums, flags)
            runs = [zero(code, v.dtype, v.lanes, -0.0) if flag else v for v, flag in zip(sums.totals, flags)]
            return self._kept(sums, steps(i, stop, runs, bases), flags)

        none = [zero(code, v.dtype, v.lanes) for v, flag in zip(starts, flags) if flag]
        values = self.counted(loop, "0", end, CHAIN * step, starts + none, block, chains=True)
        return settled(code, Sums.of(values, k), flags)

    def _scanned_singly(self, loop: Loop, end: str, inits: list[Value]) -> list[Value]:
        """A scan one iteration at a time, perhaps in the lanes of a loop around it."""

        def begin(i: str) -> None:
            self.eval.env[loop.var] = Value("i64", i)

        return self._scanned(loop, end, 1, inits, begin, lambda group, value: (value, value))

    def _kept(self, sums: Sums, values: list[Value], flags: list[bool]) -> list[Value]:
        """Totals and errors of float sums with `values` added; other values in place of the totals."""
        totals, errors = [], []
        lost = iter(sums.errors)
        for total, value, flag in zip(sums.totals, values, flags):
            if flag:
                value, loss = two_sum(self.code, total, value)
                errors.append(plus(self.code, next(lost), loss))
            totals.append(value)
        return totals + errors

    def _combine_apart(self, group: Carried, x: Value, y: Value, lanes: int) -> list[Value]:
        """combine(x, y), in the middle of a body."""
        saved, self.eval.vector = self.eval.vector, None
        result = self._combine(group, [x], [y], lanes)
        self.eval.vector = saved
        return result

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
            (value,) = self._combine_apart(group, shifted, value, lanes)
            step *= 2
        return value

    # Long sums.

    def _blocks(self, loop: Loop, n: str, lanes: int, count: int, start: list[Value]) -> tuple[str, Sums]:
        """The index where whole blocks end, and their sums."""
        size = BLOCK * lanes * count
        end = self._floor(n, size)
        flags, k = float_sums(loop), len(start)
        errors = [zero(self.code, value.dtype, lanes) for value, flag in zip(start, flags) if flag]

        def body(i: str, values: list[Value]) -> list[Value]:
            stop = self.later(i, size)
            inner = self.counted(
                loop, i, stop, lanes * count, self._copies(start, count), self._body(loop, lanes, count), some=True
            )
            sums = self._add(loop, Sums.of(values, k), self._tree(loop, inner, count, lanes), lanes)
            return sums.totals + sums.errors

        return end, Sums.of(self.counted(loop, "0", end, size, start + errors, body, chains=True), k)

    def accumulate(
        self, loop: Loop, start: str, end: str, inits: list[Value], body: Body, some: bool = False
    ) -> list[Value]:
        """Like counted; float sums of single elements, as those down columns are, are made of chains in blocks."""
        known, flags = end[0] != "%", float_sums(loop)
        most = int(end) if known else self.eval.ranges.get(loop.var, (0, STEPS))[1] + 1
        if loop.role not in ("reduce", "scan") or start != "0" or most <= CHAIN or not any(flags):
            return super().accumulate(loop, start, end, inits, body, some)
        if loop.role == "scan":
            return (
                self._scanned_singly(loop, end, inits)
                if scannable(loop)
                else super().accumulate(loop, start, end, inits, body, some)
            )
        code, k = self.code, len(inits)

        def fresh(values: list[Value]) -> list[Value]:
            return [zero(code, v.dtype, v.lanes, -0.0) if flag else v for v, flag in zip(values, flags)]

        def until(i: str, size: int, stop: str) -> str:
            later = self.later(i, size)
            if known and int(end) % size == 0:
                return later
            return self.least(later, stop)

        def chain(i: str, values: list[Value], stop: str) -> list[Value]:
            inner = self.counted(loop, i, until(i, CHAIN, stop), 1, fresh(values), body, some=True)
            return [plus(code, v, x) if flag else x for v, x, flag in zip(values, inner, flags)]

        if most <= STEPS:
            return self.counted(loop, "0", end, CHAIN, inits, lambda i, values: chain(i, values, end), some, True)

        def block(i: str, values: list[Value]) -> list[Value]:
            sums, stop = Sums.of(values, k), until(i, STEPS, end)
            inner = self.counted(
                loop, i, stop, CHAIN, fresh(sums.totals), lambda i, values: chain(i, values, stop), True, True
            )
            return self._kept(sums, inner, flags)

        none = [zero(code, v.dtype, v.lanes) for v, flag in zip(inits, flags) if flag]
        return settled(code, Sums.of(self.counted(loop, "0", end, STEPS, inits + none, block, some, True), k), flags)

    def _add(self, loop: Loop, sums: Sums, values: list[Value], lanes: int) -> Sums:
        """sums + values; what else the loop carries is combined."""
        result, errors, k = Sums(), iter(sums.errors), 0
        for group in loop.carried:
            size = len(group.vars)
            left, right = sums.totals[k : k + size], values[k : k + size]
            if float_sums(loop)[k]:
                total, lost = two_sum(self.code, left[0], right[0])
                result.totals.append(total)
                result.errors.append(plus(self.code, next(errors), lost))
            else:
                result.totals += self._combine(group, left, right, lanes)
            k += size
        return result

    def _add_across(self, loop: Loop, sums: Sums, lanes: int) -> Sums:
        """The sums of all lanes."""
        while lanes > 1:
            lanes //= 2
            sides = []
            for upper in (False, True):
                totals, errors = ([self._half(v, upper) for v in side] for side in (sums.totals, sums.errors))
                sides.append(Sums(totals, errors))
            low, high = sides
            merged = self._add(loop, low, high.totals, lanes)
            sums = Sums(merged.totals, [plus(self.code, e, f) for e, f in zip(merged.errors, high.errors)])
        return sums
