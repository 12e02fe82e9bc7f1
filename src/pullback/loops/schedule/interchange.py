"""Interchange: a loop of steps whose elements never meet becomes a loop over the elements, each with steps of its own.

What changes from step to step is then a few scalars for each element, carried in registers, and the elements run in
lanes and on threads once instead of in every step. Such loops come from `vmap` of loops, from elementwise steps and
from products with one side that stays: the rows of `s @ r` do not meet.

Needs: loop IR as it comes from `outline`. Guarantees: the same operations on each element in the same order, but for
sums within a step, which are made pairwise. It comes before all other passes, since it takes kernels apart that the
steps share. Elements are found by their places: all that is written among the steps has, in every access, the number of
the element as a digit of its index, in base `extent` and with one weight for each buffer.

    sequential step < 100 {                          parallel a < 256 {
      parallel i < 256 { t[i] = mul(y[i], x[i]) }      sequential step < 100 carry (c = y[a]) {
      parallel j < 256 { y[j] = sin(t[j]) }      =>      let t1 = mul(c, x[a])
    }                                                    next (sin(t1))
                                                       } -> (r)
                                                       y[a] = r

Lanes and threads do not ask whether the user has pressed Ctrl-C. So of a loop that may run for long there are blocks of
steps, one after the other, each as above, between which the state is in memory.

Measured: three float64 are one vector, as LLVM keeps them in a whole register: 2,000 products of 3 x 3 took 13.5 us,
now 7.9, which is the latency of a product and two fused additions (9 cycles would be the least, without fusing); 256
Lorenz systems, 100 steps of Runge-Kutta, 60 us, now 36. 8e5 steps of gammainc on 8 float64 took 3 s to hear Ctrl-C,
with blocks of 2^23 operations 0.02; blocks of 2^22 to 2^25 take as long as one of all steps. Recursive filters of
3,000 samples of 12 float32 took 36 to 95 us, in 12 lanes 29 to 31 (AVX2: 39 to 66 and 48), of 7 float64 24 to 71 and 17
to 20; 15 float64 would lose up to a third. Places that such a loop finds must be near (128 KB): far ones wait together
only in rows. Scratch space of rows is that of the elements: 500 Lorenz systems, 300 steps whose four slopes are in an
array, 188 us, now 75.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from pullback.loops.ir.fold import const, is_math, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    STEPS,
    STEPS_EACH,
    Buffer,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Run,
    Stmt,
    Store,
    Var,
)
from pullback.loops.ir.kernels import expand_kernels
from pullback.loops.ir.visit import (
    Rewriter,
    Substitute,
    WrittenOut,
    accesses,
    expressions,
    loaded,
    loads,
    local_uses,
    statements,
    stored,
    with_blocks,
)
from pullback.loops.passes.simplify import simplify
from pullback.loops.passes.unroll import straight_code
from pullback.util.record import frozen_record

from .cost import computed, operations
from .lane_steps import Lanes, LaneSteps, factors_of

MAX_OPS = 320  # of a step of one lane; more of them take longer than walking through memory saves
MAX_COPIES = 6  # of math functions, beside those written, in a step of one lane that has several elements (`_copies`)
BLOCK = 1 << 23  # ops of the steps of one block: most take some milliseconds, gammainc of a float64 20
LANES_OF_PIECE = 128  # at most: `parallelize` gives more to threads, which stop between pieces
DIVISORS = 1024  # numbers of blocks that are tried
CANDIDATES = 8  # loops that are tried


def interchange(function: Function) -> Function:
    """The function with independent elements outside of their loops of steps."""
    work = _Interchange(function)
    body = work.block(function.body, False)
    if not work.changed:
        return function
    rows = local_uses(body)
    buffers = [buffer for buffer in function.buffers if buffer.space != "local" or buffer in rows]
    return Function(function.name, (*buffers, *work.new.buffers), body)


@frozen_record
class _Access:
    """One access of a buffer that is written among the steps."""

    buffer: Buffer
    factors: dict[Var, int]  # of the variables in its index
    around: tuple[Loop, ...]  # from the steps inwards


class _Interchange:
    def __init__(self, function: Function) -> None:
        self.changed = False
        self.new = Fresh("e", function)
        self._function = function

    @cached_property
    def _readers(self) -> Counter[Buffer]:
        """How many statements read each buffer."""
        return _readers(self._function.body)

    def block(self, body: Sequence[Stmt], nested: bool) -> tuple[Stmt, ...]:
        """The statements with their loops of steps interchanged; `nested`: they run more than once."""
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop) and stmt.role != "sequential":
                result.append(stmt)
                continue
            new = self.steps(stmt, nested) if isinstance(stmt, Loop) else None
            if new is None:
                again = nested or not isinstance(stmt, If)
                new = [with_blocks(stmt, self.block, again)]
            else:
                self.changed = True
            result += new
        return tuple(result)

    def steps(self, loop: Loop, nested: bool) -> list[Stmt] | None:
        """What takes the place of `loop`, a loop over elements; None if they meet, or if there is nothing to gain."""
        if loop.carried or not isinstance(loop.extent, Const) or loop.extent.value < 2:
            return None
        # What cannot be is seen before anything is rewritten: most loops are of this kind.
        own_rows = _Rows()
        loop = Loop(loop.var, loop.extent, loop.role, own_rows.nests(loop.body), (), loop.attrs)
        inside = list(statements(loop.body))
        if any(not isinstance(stmt, Run) and not _is_plain(stmt) for stmt in inside):
            return None
        if any(isinstance(stmt, Store) for stmt in loop.body) or _work(loop.body, Lanes(1)) > MAX_OPS * _most(inside):
            return None
        own = _readers(loop.body)
        if any(isinstance(stmt, Run) for stmt in inside):
            loop = Loop(loop.var, loop.extent, loop.role, expand_kernels(loop.body, self.new.var), (), loop.attrs)
            if any(not _is_plain(stmt) for stmt in statements(loop.body)):
                return None
        simplified = simplify(Function(self._function.name, self._function.buffers, (loop,))).body
        if len(simplified) != 1:  # nothing is stored, as in a search among no elements
            return None
        (simple,) = simplified
        assert isinstance(simple, Loop)
        loop = Loop(simple.var, simple.extent, simple.role, WrittenOut().block(simple.body), (), simple.attrs)
        written = stored(loop.body)
        found = list(_accesses(loop.body, written, ()))
        if any(not access.around for access in found):
            return None
        kept = {buffer for buffer in written if buffer.space != "temporary" or self._readers[buffer] > own[buffer]}
        for seed in _candidates(found):
            lanes = _assign(found, seed)
            new = None if lanes is None else self.interchanged(loop, lanes, kept, nested)
            if new is not None and own_rows.made.isdisjoint(loaded(new) | stored(new)):
                return new
        return None

    def interchanged(self, loop: Loop, lanes: Lanes, kept: set[Buffer], nested: bool) -> list[Stmt] | None:
        assert isinstance(loop.extent, Const)
        work = _work(loop.body, lanes)
        if work > MAX_OPS or _copies(loop.body, lanes) > MAX_COPIES:
            return None
        n = loop.extent.value
        most = max(1, BLOCK // (max(1, work) * min(lanes.extent, LANES_OF_PIECE)))
        if n <= most:
            return self.around(loop, lanes, None, const("i64", 0), n, kept, nested)
        least = -(-n // most)
        # Steps that are left repeat the code, so a divisor is better.
        count = next((count for count in range(least, min(2 * least, least + DIVISORS)) if n % count == 0), least)
        size, left = divmod(n, count)
        block = self.new.var(Var("block", "i64"))
        first = make("mul", (Read(block), const("i64", size)))
        inside = self.around(loop, lanes, block, first, size, kept, True, count)
        rest = self.around(loop, lanes, None, const("i64", n - left), left, kept, True) if left and inside else []
        if inside is None or rest is None:
            return None
        known = dict(loop.attrs)
        counted = ((STEPS, known[STEPS]), (STEPS_EACH, size * known.get(STEPS_EACH, 1))) if STEPS in known else ()
        return [Loop(block, const("i64", count), "sequential", tuple(inside), (), counted), *rest]

    def around(
        self,
        loop: Loop,
        lanes: Lanes,
        block: Var | None,
        first: Expr,
        count: int,
        kept: set[Buffer],
        nested: bool,
        blocks: int = 1,
    ) -> list[Stmt] | None:
        """The loop over lanes around `count` steps of `loop` from `first`, which may depend on `block`.

        None if lanes meet, or too much changes from step to step.
        """
        lane, step = self.new.var(Var("lane", "i64")), self.new.var(loop.var)
        own = Substitute({loop.var: make("add", (first, Read(step)))}, self.new.var)
        state = LaneSteps(self.new, lane, lanes, straight_code(own.block(_one_lane(loop.body, lanes, lane))))
        attrs = tuple(attr for attr in loop.attrs if attr[0] != STEPS)  # the blocks are counted
        steps = Loop(step, const("i64", count), "sequential", (), (), attrs)
        return state.loop(steps, kept, nested) if state.fits((step, block), {step: count, block: blocks}) else None


def _readers(body: Sequence[Stmt]) -> Counter[Buffer]:
    """How many statements of `body` read each buffer."""
    return Counter(buffer for stmt in statements(body) for buffer in loads(stmt))


class _Rows:
    """Scratch space of the iterations of a nest, as arrays that hold all of theirs: rows of elements of their own."""

    def __init__(self) -> None:
        self.made: set[Buffer] = set()

    def nests(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements of a step, whose nests have no scratch space any more."""
        return tuple([self._nest(stmt) if local_uses((stmt,)) else stmt for stmt in body])

    def _nest(self, nest: Stmt) -> Stmt:
        if not isinstance(nest, Loop) or nest.role != "parallel" or not isinstance(nest.extent, Const):
            return nest
        rows = {b: Buffer(b.name, b.dtype, b.size * nest.extent.value, "temporary") for b in local_uses((nest,))}
        self.made.update(rows.values())
        (new,) = _InRows(nest.var, rows).block((nest,))
        return new


class _InRows(Rewriter):
    def __init__(self, var: Var, rows: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self._var, self._rows = var, rows

    def _place(self, buffer: Buffer, index: Expr) -> Expr:
        return make("add", (make("mul", (Read(self._var), const("i64", buffer.size))), index))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self._rows:
            return Load(self._rows[expr.buffer], self._place(expr.buffer, expr.index))
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Store) and stmt.buffer in self._rows:
            return [Store(self._rows[stmt.buffer], self._place(stmt.buffer, stmt.index), stmt.value)]
        return [stmt]


def _is_plain(stmt: Stmt) -> bool:
    """Whether a statement among the steps has a meaning for one element alone."""
    if isinstance(stmt, Loop):
        return stmt.role in ("parallel", "reduce", "sequential") and isinstance(stmt.extent, Const)
    if isinstance(stmt, Store) and stmt.buffer.space == "local":
        return False
    return isinstance(stmt, (Let, Store))


def _most(body: Sequence[Stmt]) -> int:
    """How many elements there can be at most."""
    extents = [stmt.extent.value for stmt in body if isinstance(stmt, Loop) and isinstance(stmt.extent, Const)]
    # Kernels have loops of their own.
    return 1 << 62 if any(isinstance(stmt, Run) for stmt in body) else max(extents, default=1)


def _accesses(body: Sequence[Stmt], written: set[Buffer], around: tuple[Loop, ...]) -> Iterator[_Access]:
    """Accesses of the buffers that are written, with the loops around them."""
    for stmt in body:
        inside = (*around, stmt) if isinstance(stmt, Loop) else around
        for buffer, index in accesses(stmt):
            if buffer in written:
                yield _Access(buffer, factors_of(index)[0] or {}, inside)
        if isinstance(stmt, Loop):
            yield from _accesses(stmt.body, written, inside)


def _candidates(accesses: Sequence[_Access]) -> list[Loop]:
    """Loops that might run over the elements, the longest first: few elements share more of a step."""
    found = {
        loop: loop.extent.value
        for access in accesses
        for loop in access.around
        if loop.role == "parallel" and isinstance(loop.extent, Const) and access.factors.get(loop.var, 0) > 0
    }
    return sorted((loop for loop, n in found.items() if n > 1), key=lambda loop: -found[loop])[:CANDIDATES]


def _assign(accesses: Sequence[_Access], seed: Loop) -> Lanes | None:
    """Which loop around each access runs over the elements if `seed` does; None if there is none."""
    assert isinstance(seed.extent, Const)
    lanes = Lanes(seed.extent.value, {seed: 1})
    waiting = list(accesses)
    while waiting:
        left = [access for access in waiting if not _learn(access, lanes)]
        if len(left) == len(waiting):
            return None
        waiting = left
    # All agree, and no loop over elements stands inside another.
    for access in accesses:
        over = [loop for loop in access.around if loop in lanes.inner]
        if len(over) != 1:
            return None
        if access.factors.get(over[0].var, 0) * lanes.inner[over[0]] != lanes.weight[access.buffer]:
            return None
    return lanes


def _learn(access: _Access, lanes: Lanes) -> bool:
    """Takes what is known of an access's loops for its buffer, or the other way round; False if nothing is known."""
    for loop in access.around:
        if loop in lanes.inner:
            lanes.weight.setdefault(access.buffer, access.factors.get(loop.var, 0) * lanes.inner[loop])
            return True
    weight = lanes.weight.get(access.buffer)
    if not weight:
        return False
    for loop in access.around:
        factor = access.factors.get(loop.var, 0)
        if loop.role != "parallel" or factor <= 0 or weight % factor:
            continue
        assert isinstance(loop.extent, Const)
        if loop.extent.value % (weight // factor * lanes.extent) == 0:
            lanes.inner[loop] = weight // factor
            return True
    return False


def _work(body: Sequence[Stmt], lanes: Lanes) -> int:
    """Ops of a step of one lane, after all loops in it are unrolled."""
    total = 0
    for stmt in body:
        total += operations(computed(expressions(stmt)[1:] if isinstance(stmt, Loop) else _values(stmt)))
        if isinstance(stmt, Loop):
            assert isinstance(stmt.extent, Const)
            count = stmt.extent.value // (lanes.extent if stmt in lanes.inner else 1)
            total += count * max(1, _work(stmt.body, lanes))
    return total


def _copies(body: Sequence[Stmt], lanes: Lanes, times: int = 1) -> int:
    """How many math functions unrolling adds.

    A sine is 50 instructions, or 120 with what huge arguments need, and so long that what is saved of memory around
    it does not count: 30 loops of sines of 8 x 8 elements took 2 s to compile with the 8 of a row in each lane.
    """
    total = 0
    for stmt in body:
        found = computed(expressions(stmt)[1:] if isinstance(stmt, Loop) else _values(stmt))
        total += (times - 1) * sum(isinstance(expr, Op) and is_math(expr.name) for expr in found)
        if isinstance(stmt, Loop):
            assert isinstance(stmt.extent, Const)
            count = stmt.extent.value // (lanes.extent if stmt in lanes.inner else 1)
            total += _copies(stmt.body, lanes, times * max(1, count))
    return total


def _values(stmt: Stmt) -> tuple[Expr, ...]:
    return (stmt.value,) if isinstance(stmt, (Let, Store)) else ()


def _one_lane(body: Sequence[Stmt], lanes: Lanes, lane: Var) -> list[Stmt]:
    """The statements for one element: a loop over elements is its body, for what of it belongs to the element."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        inside: tuple[Stmt, ...] = tuple(_one_lane(stmt.body, lanes, lane))
        if stmt not in lanes.inner:
            result.append(Loop(stmt.var, stmt.extent, stmt.role, inside, stmt.carried, stmt.attrs))
            continue
        assert isinstance(stmt.extent, Const)
        inner = lanes.inner[stmt]
        outer = stmt.extent.value // (inner * lanes.extent)
        over = [(Var(f"{stmt.var.name}_{k}", "i64"), n) for k, n in (("o", outer), ("b", inner))]
        o, b = (Read(var) if n > 1 else const("i64", 0) for var, n in over)
        index = make("add", (make("mul", (o, const("i64", lanes.extent))), Read(lane)))
        index = make("add", (make("mul", (index, const("i64", inner))), b))
        inside = Substitute({stmt.var: index}).block(inside)
        for var, n in reversed(over):
            if n > 1:
                inside = (Loop(var, const("i64", n), "parallel", inside),)
        result += inside
    return result
