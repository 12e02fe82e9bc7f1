"""Unroll: reduce and sequential loops of a few iterations become straight code, and around loops whose iterations
depend on each other also parallel ones: the state of a loop (a vector of three, a matrix of nine) is then accessed at
known places only, and the emitter keeps it in registers.

Needs: simplified indices. Guarantees: the same operations in the same order, but for sums of floats among steps: these
are made pairwise, as steps wait for each other. It comes before `vectorize`, which then sees one body whose every
access has a stride, and before `expand_math`, so that a repeated body is still small.

    parallel i < 1000 {                                parallel i < 1000 {
      reduce r < 3 carry (a = 0) {               =>      let a1 = add(0, x[i*3])
        next (add(a, x[i*3 + r]))                        let a2 = add(a1, x[i*3 + 1])
      } -> (s) by add                                    let a3 = add(a2, x[i*3 + 2])
      y[i] = s                                           y[i] = a3

A short last axis, of colours or coordinates, is straight code around which many are taken in lanes, and what takes
turns in memory is shuffled. Straight, too, is a reduction whose steps each take one side of a choice, by their number.

Measured: the mean of a stack of 16 slices chose among 16 at each element, 0.44 ms of processor time, now 0.03. Lorenz
by Runge-Kutta went from 52 to 16 ns a step, a 3 x 3 product from 12 to 5. A product of an image of 600 x 800 x 3 with a
factor for each colour: 440 us, now 70; differences of 800 and 700 points 445, now 110. 40,000 rows of three times the
unit matrix 137 us, now 24, repeated three times 60 and 22; 10,000 inverses of 3 x 3 135, now 98. 2,003 rows of 10 to
32 that are ordered by exchanges took 128 to 1,691 us by rows, now 10 to 92. The gradient of a Kalman filter, whose
state is 4 x 4: 82 us by lanes along columns, 58 by lanes along rows.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from pullback.loops.emit.shuffles import INTERLEAVED, WIDE_STORED
from pullback.loops.ir.fold import COMPARES, const, is_math, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    RIM,
    Buffer,
    Combine,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.types import ITEMSIZE, REAL_OF, is_int
from pullback.loops.ir.visit import (
    Substitute,
    accessed,
    bound,
    expressions,
    fact,
    loads,
    nodes,
    reads,
    statements,
    stores,
    subexpressions,
    with_blocks,
)
from pullback.loops.schedule.apply.partials import pairwise, plain_terms
from pullback.loops.schedule.cost import computed, cost, operations, vector_of
from pullback.loops.schedule.space import LANES, UNKNOWN_EXTENT, Axis, extent_of

from .forward import forwarded
from .simplify import simplify

Varying = frozenset[Var]  # variables that differ from step to step

MAX_ITERATIONS = 8  # of a loop that is written out
# Steps up to which those with functions of numbers are written out: each would be called, and the calls wait for each
# other. Measured (Zen 4): 8 steps of exp(-x) y + z for 20,000 numbers took 47 us, now 31, of Kepler's equation 88, now
# 60.
FEW_CALLS = 2
MAX_NARROW = 14  # the same of reductions of elements of 16 bits and fewer: lanes take turns
MAX_OPS = 96  # after unrolling
MAX_BITS = 256  # operations after unrolling where bits are moved, most of which are moved together then
MAX_CHOICES = 64  # iterations of a loop whose number chooses what it computes
MAX_AXIS = 16  # elements of an axis of which lanes take many at once
MAX_COMPUTED = 32  # the same where a price says what is better
MAX_MOVED = 12  # the same where they are only moved; beyond that rows by themselves are as quick
FEW_ELEMENTS = 4  # elements, of which each may be read by itself
LEAST_GAIN = 1.33  # of straight code of more
LEAST_OF_ALL = 40  # that all rows gain for each operation that such code has more, or it is not worth compiling
NUMBER, REGISTER = 8, 32  # bytes that one instruction moves: at most of an integer, at least worth a register
REGISTER_OF_FEW = 16  # bytes that four elements need to be worth one: lanes would put them together one by one
MAX_STATE = 9  # stores of a parallel nest, after unrolling; beyond that vectors do better


def unroll(function: Function) -> Function:
    """The function without tiny loops."""
    unroller = _Unroll(_touched(function.body))
    steps: Varying | None = frozenset() if any(map(_is_steps, function.body)) else None
    unrolled = Function(function.name, function.buffers, unroller.block(function.body, steps))
    return simplify(unrolled) if unroller.asks else unrolled


def straight_code(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements among steps, with loops of known extents and nothing else in them, without these loops; sums of floats
    are made pairwise.
    """
    unroller = _Unroll()

    def straight(body: Sequence[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop):
                inside = tuple(straight(stmt.body))
                loop = _with(stmt, inside)
                result += unroller.straight(loop, True)
            else:
                result.append(stmt)
        return result

    return straight(body)


class _Unroll:
    def __init__(self, touched: Counter[Buffer] | None = None) -> None:
        self.new = Fresh("u")
        self.touched = touched or Counter()  # how many statements of the function use some scratch space
        self.times = 1  # how often the loops around what is looked at run it
        self.asks = False  # whether something is unrolled that asks where it is, which is known then

    def block(self, body: Sequence[Stmt], steps: Varying | None, state: bool = True) -> tuple[Stmt, ...]:
        """The statements without tiny loops; `steps`: they run one after the other, in or beside a loop of steps, whose
        `state` is in parallel loops that may be straight code, too.
        """
        result: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Loop():
                    result += self.loop(stmt, steps, state)
                case If() | While():
                    block_of = functools.partial(self.inside, stmt)
                    result.append(with_blocks(stmt, block_of, _varying(stmt) if _is_steps(stmt) else steps))
                case _:
                    result.append(stmt)
        return tuple(result)

    def loop(self, loop: Loop, steps: Varying | None, state: bool) -> list[Stmt]:
        """A loop as what takes least of it: itself, one loop along its rows, or straight code."""
        inside = None  # or steps, as its iterations are known once they are straight code
        if steps is not None and loop.role in ("parallel", "reduce") and _is_short(loop):
            inside = steps - {loop.var}
        block = self.inside(loop, loop.body, _varying(loop) if _is_steps(loop) else inside)
        if inside is not None and not _is_state(_with(loop, block), inside):
            rows = self.rows(loop, self.inside(loop, loop.body, inside, state=False))
            apart = Loop(loop.var, loop.extent, "vector", block)  # reads and stores what lies a row apart
            if rows is not None and cost(_in_lanes((rows,))) < cost((apart,)):
                return [rows]
        if _is_short_axis(loop, block):
            straight = self.axis(block)
            block = straight if _are_moves(block) or self.pays(loop, block, straight) else block
        if loop.role == "parallel" and isinstance(loop.extent, Const) and loop.extent.value >= LANES:
            own = {b for b, count in _touched((loop,)).items() if count == self.touched[b]}
            block = forwarded(block, self.new, own)
        loop = _with(loop, block)
        if _is_tiny(loop) or (state and steps is not None and _is_state(loop, steps)):
            return self.straight(loop, steps is not None)
        if _chooses(loop) and operations(computed(_roots(chosen := self.straight(loop, True)))) <= MAX_OPS:
            return chosen
        if _takes_bits(loop) and operations(computed(_roots(chosen := self.straight(loop, True)))) <= MAX_BITS:
            self.asks = True
            return chosen
        return [loop]

    def inside(self, outer: Stmt, body: Sequence[Stmt], steps: Varying | None, state: bool = True) -> tuple[Stmt, ...]:
        """`block` of the body of a statement."""
        times = self.times
        self.times *= extent_of(outer) if isinstance(outer, Loop) else UNKNOWN_EXTENT if _is_steps(outer) else 1
        result = self.block(body, steps, state)
        self.times = times
        return result

    def axis(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The body of a parallel loop with the short axes in it as straight code."""
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop):
                assert isinstance(stmt.extent, Const)
                self.asks = self.asks or any(map(_asks, stmt.body))
                axis = Loop(stmt.var, stmt.extent, stmt.role, self.axis(stmt.body))
                result += side_by_side(axis, _places(axis), self.new)
            else:
                result.append(stmt)
        return tuple(result)

    def rows(self, loop: Loop, body: Sequence[Stmt]) -> Loop | None:
        """One loop along all rows at once that a loop of few iterations has; None if it has something else."""
        lets, inner = body[:-1], body[-1] if body else None
        if not isinstance(inner, Loop) or inner.role != "parallel" or not all(isinstance(s, Let) for s in lets):
            return None
        across = _with(loop, (*lets, *inner.body))
        if not all(isinstance(stmt, (Let, Store)) for stmt in inner.body):
            return None
        if operations(computed(_roots(across.body))) * extent_of(loop) > MAX_OPS:
            return None
        return _with(inner, side_by_side(across, _places(loop), self.new))

    def pays(self, loop: Loop, body: Sequence[Stmt], straight: Sequence[Stmt]) -> bool:
        """Whether lanes along a loop take less for straight code than lanes along the short axes in its body: they read
        one by one what lies far apart; and so much less, in all that the program runs of it, that it is worth
        compiling.
        """
        along = vector_of(Loop(loop.var, loop.extent, "vector", tuple(straight)))
        rows = cost(_in_lanes(body))
        if len(body) == 1 and isinstance(outer := body[0], Loop) and isinstance(inner := outer.body[0], Loop):
            across = Loop(outer.var, outer.extent, outer.role, inner.body)
            both = side_by_side(across, _places(outer), self.new)
            rows = min(rows, cost((Loop(inner.var, inner.extent, "vector", tuple(both)),)))
        rows = min(rows, _cut_rows(loop, body))
        lanes = cost(straight, along) + 0.5 / along.lanes
        if sum(isinstance(stmt, Store) for stmt in straight) <= FEW_ELEMENTS:
            return lanes <= rows + 0.5
        more = _operations(straight) - _operations(body)
        if self.times * extent_of(loop) * (rows + 0.5 - lanes) < LEAST_OF_ALL * more:
            return False
        return LEAST_GAIN * lanes <= rows + 0.5

    def straight(self, loop: Loop, steps: bool) -> list[Stmt]:
        """The iterations of a loop, one after the other; among `steps`, which wait for each other, sums are made
        pairwise, so that they wait less.
        """
        assert isinstance(loop.extent, Const)
        self.asks = self.asks or any(map(_asks, statements(loop.body)))
        terms = plain_terms(loop) if steps and loop.role == "reduce" and loop.extent.value > 2 else None
        if terms is not None:
            return self.in_pairs(loop, terms)
        carried = [var for group in loop.carried for var in group.vars]
        inits = [init for group in loop.carried for init in group.inits]
        updates = [update for group in loop.carried for update in group.updates]
        results = [var for group in loop.carried for var in group.results]
        code: list[Stmt] = []
        values = [self._pinned(code, var, init) for var, init in zip(carried, inits)]
        for k in range(loop.extent.value):
            now: dict[Var, Expr] = {loop.var: const("i64", k), **dict(zip(carried, values))}
            copy = Substitute(now, self.new.var)
            code += copy.block(loop.body)
            following = [copy.rewrite(update) for update in updates]
            values = [self._pinned(code, var, value) for var, value in zip(carried, following)]
        code += [Let(var, value) for var, value in zip(results, values)]
        return code

    def in_pairs(self, loop: Loop, terms: list[Expr]) -> list[Stmt]:
        """A reduce loop of plain sums as trees over their terms."""
        assert isinstance(loop.extent, Const)
        code: list[Stmt] = []
        columns: list[list[Expr]] = [[] for _ in terms]
        for k in range(loop.extent.value):
            copy = Substitute({loop.var: const("i64", k)}, self.new.var)
            code += copy.block(loop.body)
            for group, column, term in zip(loop.carried, columns, terms):
                column.append(self._pinned(code, group.vars[0], copy.rewrite(term)))
        for group, column in zip(loop.carried, columns):
            code.append(Let(group.results[0], make("add", (group.inits[0], pairwise(column)))))
        return code

    def _pinned(self, code: list[Stmt], var: Var, value: Expr) -> Expr:
        """`value` as of here, under a name of its own."""
        if isinstance(value, (Const, Read)):
            return value
        fresh = self.new.var(var)
        code.append(Let(fresh, value))
        return Read(fresh)


def _touched(body: Sequence[Stmt]) -> Counter[Buffer]:
    """How many statements use each local buffer."""
    found = (loads(stmt) | stores(stmt) for stmt in statements(body))
    return Counter(buffer for buffers in found for buffer in buffers if buffer.space == "local")


def _is_steps(stmt: Stmt) -> bool:
    return isinstance(stmt, While) or (isinstance(stmt, Loop) and stmt.role == "sequential")


def _varying(steps: Stmt) -> Varying:
    return frozenset(var for stmt in statements((steps,)) for var in bound(stmt))


@fact
def _asks(stmt: Stmt) -> bool:
    """Whether a statement itself compares indices, or reads a table."""
    return any(
        (isinstance(x, Op) and x.name in COMPARES and x.args[0].dtype == "i64")
        or (isinstance(x, Load) and x.buffer.data is not None)
        for x in nodes(stmt)
    )


def _with(loop: Loop, body: Sequence[Stmt]) -> Loop:
    return Loop(loop.var, loop.extent, loop.role, tuple(body), loop.carried, loop.attrs)


def _is_short(loop: Loop) -> bool:
    return isinstance(loop.extent, Const) and 1 <= loop.extent.value <= max(MAX_ITERATIONS, MAX_STATE)


def _is_state(loop: Loop, steps: Varying) -> bool:
    """Whether straight code of a parallel loop lets the emitter keep elements in registers, as they lie at the same
    places in all steps, or else takes less time than lanes."""
    if loop.role != "parallel" or not isinstance(loop.extent, Const) or not 1 <= loop.extent.value <= MAX_STATE:
        return False
    if RIM in loop.attrs:  # one vector, as what is between the ends
        return False
    n, stores = loop.extent.value, sum(isinstance(stmt, Store) for stmt in loop.body)
    if stores * n > MAX_STATE or not is_little(loop, n):
        return False
    if any(_stays(index, steps - {loop.var}) for _, index in accessed(loop.body)):
        return True
    return n * cost(loop.body) <= cost((Loop(loop.var, loop.extent, "vector", loop.body),))


def _stays(index: Expr, varying: Varying) -> bool:
    """Whether a place is the same in all steps."""
    return not any(isinstance(x, Load) or (isinstance(x, Read) and x.var in varying) for x in subexpressions((index,)))


def side_by_side(loop: Loop, places: Sequence[Expr], new: Fresh) -> list[Stmt]:
    """Iterations of a parallel loop as straight code; if that may be, all are computed before the first is stored, so
    that lanes store what takes turns in memory at once."""
    return stored_last(loop.body, [Substitute({loop.var: place}, new.var).block(loop.body) for place in places])


def stored_last(body: Sequence[Stmt], copies: Sequence[Sequence[Stmt]]) -> list[Stmt]:
    """Copies of a body, one after the other; their stores last if that may be."""
    stored = {stmt.buffer for stmt in body if isinstance(stmt, Store)}
    first = next((k for k, stmt in enumerate(body) if isinstance(stmt, Store)), len(body))
    if any(loads(stmt) & stored for stmt in body[first:] if not isinstance(stmt, Store)):
        return [stmt for copy in copies for stmt in copy]
    lets = [stmt for copy in copies for stmt in copy if not isinstance(stmt, Store)]
    return lets + [stmt for copy in copies for stmt in copy if isinstance(stmt, Store)]


def _is_short_axis(loop: Loop, body: Sequence[Stmt]) -> bool:
    """Whether all that the many iterations of a parallel loop do is one short axis, innermost, as of colours or
    coordinates, or two, as of windows, or several side by side that are only moved, whose elements lanes can store side
    by side or in turns."""
    if loop.role != "parallel" or not isinstance(loop.extent, Const) or loop.extent.value < LANES:
        return False
    along, moves = Axis(loop), _are_moves(body)
    whole = moves and all(map(_fills_lanes, body))  # rows that are as well moved by themselves
    stores = _stores_of_one(body, FEW_ELEMENTS if whole else MAX_AXIS if moves else MAX_COMPUTED)
    if stores is not None and _lie_together(along, stores, not moves):
        return not any(_is_row(store, times) and not _takes_turns(along, store) for times, store in stores)
    stores = None if whole else _moves_of_some(body)
    return stores is not None and _lie_together(along, stores) and all(_takes_turns(along, s) for _, s in stores)


def _lie_together(along: Axis, stores: Sequence[tuple[int, Store]], one_by_one: bool = False) -> bool:
    """Whether (how many, store) fill stretches of memory, side by side or in turns, which are shuffled unless lanes may
    store `one_by_one`.
    """
    counts: Counter[Buffer] = Counter()
    for times, store in stores:
        counts[store.buffer] += times
    for _, store in stores:
        step = along.step(store.index)
        if step in (1, -1):
            continue
        if not step or step < 0 or counts[store.buffer] % step:
            return False
        if not one_by_one and step not in INTERLEAVED and step not in WIDE_STORED:
            return False
    return True


def _stores_of_one(body: Sequence[Stmt], most: int) -> list[tuple[int, Store]] | None:
    """(how many, store) of those in one short axis, or two, of so many elements; None if there is more, or none."""
    n, axis, places = 1, None, list[Var]()
    while inner := [stmt for stmt in body if not isinstance(stmt, (Let, Store))]:
        if len(inner) != 1 or not isinstance(inner[0], Loop) or not isinstance(inner[0].extent, Const):
            return None
        axis = inner[0]
        places.append(axis.var)
        n *= inner[0].extent.value
        if axis.role != "parallel" or inner[0].extent.value < 2 or n > most:
            return None
        body = axis.body
    if axis is None or not _is_little_row(axis, n, places):
        return None
    return [(n, stmt) for stmt in axis.body if isinstance(stmt, Store)]


def _moves_of_some(body: Sequence[Stmt]) -> list[tuple[int, Store]] | None:
    """The same of short axes side by side, as parts of a concatenation are, or in each other, as what is repeated has,
    of which nothing is computed.
    """
    found: list[tuple[int, Store]] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            if stmt.role != "parallel" or not isinstance(stmt.extent, Const):
                return None
            inside = _moves_of_some(stmt.body)
            if inside is None:
                return None
            found += [(times * stmt.extent.value, store) for times, store in inside]
        elif isinstance(stmt, Store) and isinstance(stmt.value, (Load, Const)):
            found.append((1, stmt))
        else:
            return None
    return found if 1 <= sum(times for times, _ in found) <= MAX_MOVED else None


def _are_moves(body: Sequence[Stmt]) -> bool:
    """Whether nothing is computed, so that `_is_row` has told what is better."""
    return all(
        isinstance(stmt, Loop) or (isinstance(stmt, Store) and isinstance(stmt.value, (Load, Const)))
        for stmt in statements(body)
    )


def _in_lanes(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements with their innermost loops as vector loops."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            inside = any(isinstance(each, Loop) for each in stmt.body)
            within = tuple(_in_lanes(stmt.body)) if inside else stmt.body
            stmt = Loop(stmt.var, stmt.extent, stmt.role if inside else "vector", within)
        result.append(stmt)
    return result


def _places(loop: Loop) -> list[Expr]:
    """The indices of a loop of known extent."""
    assert isinstance(loop.extent, Const)
    return [const("i64", k) for k in range(loop.extent.value)]


def _fills_lanes(stmt: Stmt) -> bool:
    """Whether all that a statement moves is by itself what lanes hold: rows of 2, 4, 8 elements, a number of 64 bits or
    more; or one element.
    """
    if not isinstance(stmt, Loop) or not isinstance(stmt.extent, Const):
        return True
    if any(isinstance(each, Loop) for each in stmt.body):
        return all(map(_fills_lanes, stmt.body))
    n = stmt.extent.value
    sizes = [n * ITEMSIZE[each.buffer.dtype] for each in stmt.body if isinstance(each, Store)]
    return n & (n - 1) == 0 and min(sizes, default=NUMBER) >= NUMBER


def _is_row(store: Store, times: int) -> bool:
    """Whether a store moves rows that are each as well moved by themselves: as one number, or as a register."""
    if not isinstance(store.value, Load):
        return False
    size = times * ITEMSIZE[store.buffer.dtype]
    least = REGISTER_OF_FEW if times == FEW_ELEMENTS else REGISTER
    return times > FEW_ELEMENTS or (times & (times - 1) == 0 and (size <= NUMBER or size >= least))


def _takes_turns(along: Axis, store: Store) -> bool:
    """Whether what is moved is read side by side or in turns."""
    if store.buffer.dtype in REAL_OF:
        return False
    if not isinstance(store.value, Load):
        return True
    step = along.step(store.value.index)
    if step is None or (abs(step) in (5, 7) and ITEMSIZE[store.buffer.dtype] <= 2):
        return False  # of 5 or 7 small numbers, two that overlap are a row
    return abs(step) <= 1 or abs(step) in INTERLEAVED


def _is_tiny(loop: Loop) -> bool:
    if loop.role not in ("reduce", "scan", "sequential") or not isinstance(loop.extent, Const):
        return False
    most = MAX_ITERATIONS
    if loop.role == "reduce" and all(ITEMSIZE[buffer.dtype] <= 2 for buffer, _ in accessed((loop,))):
        most = MAX_AXIS if any(isinstance(group.combine, Combine) for group in loop.carried) else MAX_NARROW
    n = loop.extent.value
    if loop.role == "sequential" and n > FEW_CALLS and loop.carried:
        if any(isinstance(x, Op) and is_math(x.name) for x in subexpressions(_roots((*loop.body, loop)))):
            return False
    return 1 <= n <= most and is_little(loop, n)


def _chooses(loop: Loop) -> bool:
    """Whether each iteration of a reduction takes one of several sides, by its number: the parts of a stack."""
    if loop.role != "reduce" or not isinstance(loop.extent, Const) or not 1 < loop.extent.value <= MAX_CHOICES:
        return False
    if not all(isinstance(stmt, (Let, Store)) for stmt in loop.body):
        return False
    return any(
        isinstance(x, Op) and x.name == "select" and isinstance(c := x.args[0], Op) and _is_of(c, loop.var)
        for stmt in (*loop.body, loop)
        for x in nodes(stmt)
    )


def _takes_bits(loop: Loop) -> bool:
    """Whether each iteration of a reduction shifts whole numbers by places, or divides them by numbers, that follow
    from its number, and reads nothing by it: bits and digits, which are other instructions where these are known.
    """
    if loop.role != "reduce" or not isinstance(loop.extent, Const) or not 1 < loop.extent.value <= MAX_CHOICES:
        return False
    if not all(isinstance(stmt, Let) for stmt in loop.body):
        return False
    known = {loop.var}
    for stmt in loop.body:
        if isinstance(stmt, Let) and _follows(stmt.value, known):
            known.add(stmt.var)
    takes = False
    for stmt in (*loop.body, loop):
        for x in nodes(stmt):
            if isinstance(x, Load) and x.buffer.data is None and _reads(x.index, known):
                return False
            if isinstance(x, Op) and x.name in _BY_NUMBER and is_int(x.dtype) and not _follows(x.args[0], known):
                takes |= _follows(x.args[1], known) and _reads(x.args[1], known)
    return takes


_BY_NUMBER = frozenset({"shl", "shr_logical", "shr_arithmetic", "div", "rem", "floordiv", "floormod"})


def _follows(expr: Expr, known: set[Var]) -> bool:
    """Whether a value follows from variables and constants alone."""
    return all(
        x.var in known if isinstance(x, Read) else x.buffer.data is not None if isinstance(x, Load) else True
        for x in subexpressions((expr,))
    )


def _reads(expr: Expr, variables: set[Var]) -> bool:
    return any(isinstance(x, Read) and x.var in variables for x in subexpressions((expr,)))


def _is_of(condition: Op, var: Var) -> bool:
    """Whether a condition compares `var` with a number."""
    kinds = {type(arg) for arg in condition.args}
    return kinds == {Read, Const} and any(isinstance(arg, Read) and arg.var is var for arg in condition.args)


def is_little(loop: Loop, times: int) -> bool:
    """Whether straight code of so many iterations of a loop is short enough."""
    if not all(isinstance(stmt, (Let, Store)) for stmt in loop.body):
        return False
    work = sum(isinstance(expr, Op) for expr in subexpressions(_roots((*loop.body, loop))))
    return work * times <= MAX_OPS


def _is_little_row(loop: Loop, times: int, places: Sequence[Var]) -> bool:
    """Whether straight code of so many elements of a row, at `places`, is short enough. What is the same in all of them
    is not repeated, and which side of a choice an element takes is known if its place tells.

    Other loops are weighed with all that they compute: of differences of rolled fields in three directions (3 x 8 x 8
    x 8) straight code of the directions takes twice the time, and 2.4 times as long to compile.
    """
    if not all(isinstance(stmt, (Let, Store)) for stmt in loop.body):
        return False
    varying = {*places, *(var for group in loop.carried for var in group.vars)}
    by_number: set[Expr] = set()  # comparisons of places
    differ: set[Expr] = set()
    work = 0
    for stmt in (*loop.body, loop):
        for expr in subexpressions(expressions(stmt)):
            if isinstance(expr, Read):
                different = expr.var in varying
            elif isinstance(expr, Load):
                different = expr.index in differ
            else:
                different = isinstance(expr, Op) and not differ.isdisjoint(expr.args)
            if not different:
                continue
            if isinstance(expr, Op) and expr not in differ:
                if expr.name in COMPARES and any([_is_of(expr, place) for place in places]):
                    by_number.add(expr)
                elif expr.name != "select" or expr.args[0] not in by_number:
                    work += 1
            differ.add(expr)
        if isinstance(stmt, Let) and stmt.value in differ:
            varying.add(stmt.var)
    return work * times <= MAX_OPS


def _cut_rows(loop: Loop, body: Sequence[Stmt]) -> float:
    """What one iteration takes where all that is before the rows is computed in lanes first, and kept in memory."""
    before = tuple(stmt for stmt in body if not isinstance(stmt, Loop))
    inner = [stmt for stmt in body if isinstance(stmt, Loop)]
    wanted = {var for stmt in statements(inner) for var in reads(stmt)}
    kept = sum(var in wanted for stmt in before for var in bound(stmt))
    lanes = vector_of(Loop(loop.var, loop.extent, "vector", before))
    return cost(before, lanes) + kept * (1.0 + 1.0 / lanes.lanes) + cost(_in_lanes(inner))


def _operations(body: Sequence[Stmt]) -> float:
    """How many operations the code of statements has."""
    return operations(computed(_roots(list(statements(body)))))


def _roots(body: Sequence[Stmt]) -> list[Expr]:
    return [expr for stmt in body for expr in expressions(stmt)]
