"""With how many lanes and accumulators a vector loop is emitted, and which loops are straight code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from math import gcd

from pullback.loops.ir.affine import depends, stride
from pullback.loops.ir.ir import RARE, RIM, Const, Expr, If, Let, Load, Loop, Op, Read, Stmt, Store, Var
from pullback.loops.ir.vectors import repeatable, varying_vars
from pullback.loops.ir.visit import (
    blocks,
    bound,
    expressions,
    function_of,
    outside_indices,
    reached,
    statements,
    stored,
    subexpressions,
)

from .cpu.target import Target
from .squares import square_in, square_side
from .types import LINE, register_bytes

REST_OPS = 96  # of all shorter vectors that end a loop, where there are several
MAX_DOUBLED_OPS = 400  # ops beyond which two registers a value would not all fit


def operations(body: Sequence[Stmt], updates: Sequence[Expr] = ()) -> int:
    """Ops in `body` and in what is carried, each counted once; index arithmetic included."""
    roots = [expr for stmt in statements(body) for expr in expressions(stmt)] + list(updates)
    return sum(isinstance(expr, Op) for expr in subexpressions(roots))


def _combined(loop: Loop) -> int:
    """Ops of what a reduction combines, without those of indices, which differ between the forms of a nest.

    How many partial results a sum has hangs on them, and so its bits.
    """
    roots = [stmt.value for stmt in statements(loop.body) if isinstance(stmt, (Let, Store))]
    roots += [update for group in loop.carried for update in group.updates]
    return sum(isinstance(expr, Op) for expr in outside_indices(roots))


# A body of LONG ops or more fills the window in which a core looks for independent work, so that iterations hardly
# overlap, and two registers a value are quicker than one: tanh(x) exp(y) + sin(x) took 38 us for 20,000 elements, now
# 29; gelu's gradient with erf 63 and 46. Bodies of more than WIDE ops gain if they have less than PARALLEL independent
# ones at a time themselves (lgamma: 84 us and 60); others, such as a chain of sines and cosines, gain a tenth at most
# and take LLVM up to twice as long. A body of threefry fills a core's window by itself: 16 instead of 8 lanes make
# random bits 1.35 times and normal variables 1.45 times as fast, lgamma and Black-Scholes prices 1.4 times, an
# iteration of PLN 1.05 times.
LONG = 32
WIDE = 140
PARALLEL = 4
# Steps of a loop in lanes wait for the step before: lanes are taken together until AT_ONCE ops are independent, and
# STATE registers hold what is carried.
AT_ONCE, STATE = 9, 16
# Of loops in others that are written turn by turn. Measured on 40,000 rows of 5 and 7 elements of 8 and 16 bits
# (Sapphire Rapids, two cores): reversed, side by side or repeated they take 0.4 of the time, times the unit matrix 0.3.
FEW_TURNS, STRAIGHT_OPS = 8, 160
# The same where straight code gains nothing, and operations for each load of such a loop.
SMALL_OPS, OPS_OF_LOAD = 64, 3
# The same where lanes read places that are known in straight code alone: contiguous loads and a shuffle in place of a
# load for each. Measured (Zen 4): twice as many columns of 8 x 16 x 64 x 65 by linear interpolation 980 us, now 250.
KNOWN_TURNS, KNOWN_OPS = 32, 512
# The same of loops that take 1 / LITTLE or less of what the loops beside them do, if such of lengths that are not known
# take UNKNOWN_TURNS.
ASIDE_OPS, LITTLE, UNKNOWN_TURNS = 24, 16, 8
# The same of loops of more than two turns that run at most FEW_TIMES in a call, if they have at most READ_OPS for each
# load: straight code reads all before it computes. Measured (Zen 4): three products of 9 x 8 to 6 x 5
# compile in 20 ms, before 36, and run in 0.93 of the time.
FEW_TIMES, RARE_OPS, READ_OPS = 4, 64, 4
# What is stored in bytes and computed in 32 bits has so many registers a value without that. Twice as many take LLVM
# twice as long (random bools: 117 ms to compile, 66 without) and are no quicker.
REGISTERS = 4
# Registers up to which a loop that runs once in a call has one a value. Measured with twice as many (Zen 4): the run
# time of 36 functions of 50 to 250 float32 is 1.00 in the mean (0.93 to 1.12, 0.08 us at most); the gradient of lgamma,
# digamma and a power compiles in 0.71 of the time, 100 normal variables in 0.85, 71 programs in 0.985.
FEW_REGISTERS = 8


def depth(body: Sequence[Stmt], updates: Sequence[Expr] = ()) -> int:
    """Ops on the longest path through a body without loops, and what is carried; no branches that are seldom taken."""
    lets: dict[Var, int] = {}
    memo: dict[Expr, int] = {}

    def path(root: Expr) -> int:
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in memo:
                stack.pop()
                continue
            if isinstance(expr, Read):
                memo[expr] = lets.get(expr.var, 0)
                continue
            args: tuple[Expr, ...] = ()
            if isinstance(expr, Op):
                args = tuple(_usual(expr))
            waiting = [arg for arg in args if arg not in memo]
            if waiting:
                stack += waiting
                continue
            memo[expr] = max((memo[arg] for arg in args), default=-1) + 1
        return memo[root]

    longest = 0
    for stmt in statements(body):
        if isinstance(stmt, (Let, Store)):
            length = path(stmt.value)
            longest = max(longest, length)
            if isinstance(stmt, Let):
                lets[stmt.var] = length
    return max([longest, *map(path, updates)])


def lane_count(loop: Loop, target: Target, times: float = math.inf) -> int:
    """Lanes for the vector loop: a register of its narrowest 32- or 64-bit values, more where bodies are small.

    Wider than a register means several registers a value, which LLVM splits: it hides latency and loop overhead. A
    loop with the attr ("lanes", n) says itself how many. One that runs at most `times` in a call, and is over in
    FEW_REGISTERS, is not worth the longer code.
    """
    for key, value in loop.attrs:
        if key == "lanes":
            return int(value)
    squares = square_in(loop)
    if squares is not None:
        return square_side(loop, squares, target.vector_bytes)
    lanes = register_lanes(loop, target)
    inner = any(isinstance(stmt, Loop) for stmt in statements(loop.body))
    if not inner and not loop.carried and isinstance(loop.extent, Const):
        if times * loop.extent.value <= FEW_REGISTERS * lanes:
            return _within(loop.extent.value, lanes)
    size = target.vector_bytes // lanes
    updates = [] if inner else [update for group in loop.carried for update in group.updates]
    work = _combined(loop) if loop.carried and not inner else operations(loop.body, updates)
    if inner and work <= 24:
        lanes *= 2 if _reads_each(loop) else 4
    elif inner and work <= MAX_DOUBLED_OPS:
        lanes = max(lanes * _side_by_side(loop), LINE // size)
    elif (
        _calls(loop.body, updates)
        or (work <= 12 and not loop.carried)
        or (
            _waits(work, loop.body, updates)
            and not _leaves(loop, lanes)
            and lanes * _widest(loop.body) < REGISTERS * target.vector_bytes
        )
    ):
        lanes *= 2
    if not isinstance(loop.extent, Const):
        return lanes
    lanes = _within(loop.extent.value, lanes)
    return _without_waste(loop, loop.extent.value, lanes, register_lanes(loop, target)) if inner else lanes


def _without_waste(loop: Loop, extent: int, lanes: int, register: int) -> int:
    """Half as many lanes where the last ones would do much again that those before them have done: 96 are twice 64.

    Measured (Zen 4): 100 steps of 96 linear recurrences, and their gradient, 3.6 and 7.6 us, with 32 lanes 3.3 and 6.4.
    Of one register, short steps wait for each other: 200 steps of 41 took 1.15 us in 16 lanes, in 32 0.9; means of 41
    columns 5.2 and 4.6. Longer ones do not: the gradient of distances of 200 points of 48 numbers 124 and 138.
    """
    if lanes <= register or 1.2 * _taken(extent, lanes // 2) > _taken(extent, lanes):
        return lanes
    return lanes // 2 if lanes > 2 * register or _independent(loop) >= AT_ONCE else lanes


def _independent(loop: Loop) -> float:
    """The operations of a step inside of the loop, of those that wait for the step before, for each that does."""
    least = math.inf
    for step in statements(loop.body):
        if isinstance(step, Loop) and step.carried:
            updates = [update for group in step.carried for update in group.updates]
            waiting = 1 if step.role == "reduce" else max(depth(step.body, updates), 1)
            least = min(least, _of_each_step(step, updates) / waiting)
    return least


def _of_each_step(step: Loop, updates: Sequence[Expr]) -> int:
    """The operations of a loop that do not give the same in each of its steps, as places along the lanes do.

    Measured (Zen 4): with those, 20,000 rays of 16 steps took 86 us in two registers a value, 68 in four.
    """
    own, known = _changing(step), dict[Expr, bool]()
    roots = [expr for stmt in statements(step.body) for expr in expressions(stmt)] + list(updates)
    return sum(isinstance(expr, Op) and depends(expr, own, known) for expr in reached(roots, _usual))


def _usual(expr: Expr) -> Sequence[Expr]:
    """What an expression is computed of, but in branches that are seldom taken."""
    if isinstance(expr, Load):
        return (expr.index,)
    if not isinstance(expr, Op):
        return ()
    return (expr.args[0], expr.args[2]) if expr.name == "select" and RARE in expr.attrs else expr.args


def _changing(step: Loop) -> set[Var]:
    """What changes from one step of a loop to the next."""
    own = {step.var, *(var for group in step.carried for var in group.vars)}
    own.update(var for stmt in statements(step.body) for var in bound(stmt))
    return own


def _taken(extent: int, lanes: int) -> int:
    """Iterations of whole vectors."""
    return -(-extent // lanes) * lanes


def _side_by_side(loop: Loop) -> int:
    """How many times the lanes of a loop around steps are taken together, so that a core has enough to do at a time.

    Measured (Zen 4): 500 bytes of a CRC, bit by bit, of 64 lanes 35 us, twice as many lanes 21, four times 14.
    """
    steps = [stmt for stmt in statements(loop.body) if isinstance(stmt, Loop)]
    if len(steps) != 1 or steps[0].role != "sequential" or not steps[0].carried:
        return 1
    updates = [update for group in steps[0].carried for update in group.updates]
    alone = _independent(loop)
    roots = [expr for stmt in statements(loop.body) for expr in expressions(stmt)]
    work = sum(isinstance(expr, Op) for expr in reached(roots, _usual))
    times = 1
    while (
        2 * times * max(alone * MAX_DOUBLED_OPS / AT_ONCE, work, len(updates) * MAX_DOUBLED_OPS / STATE)
        <= MAX_DOUBLED_OPS
    ):
        times *= 2
    return times


def _within(extent: int, lanes: int) -> int:
    """No more lanes than there are iterations."""
    while lanes > max(extent, 1):
        lanes //= 2
    return lanes


def _reads_each(loop: Loop) -> bool:
    """Whether lanes are read from places apart, so that more registers a value are more code, and no quicker; what is
    the same in all steps of a loop inside is read before it.

    Measured: gradients of 128 spectral radii of 3 x 3, with 2,160 loads of single elements, compile in half the time
    and run in 0.995 of it. (With one register a value they take 1.16.) Sums and maxima of 100,000 rows of 10 compile in
    0.8 of the time and run in 0.53, on AVX2 in 0.9 (with one register the places of maxima take 1.1).
    """
    loads = _loads(loop)
    steps = [stmt for stmt in loop.body if isinstance(stmt, Loop) and stmt.role == "sequential"]
    if loads and steps and all(isinstance(stmt, (Let, Store)) or stmt in steps for stmt in loop.body):
        own, known = set[Var]().union(*map(_changing, steps)), dict[Expr, bool]()
        loads = [load for load in loads if depends(load, own, known)]
    varying = varying_vars(loop) if loads else set()
    return any(stride(load.index, loop.var, varying, {}, {}) not in (None, -1, 0, 1) for load in loads)


def is_straight(loop: Loop, turns: int, target: Target, times: float = math.inf, aside: bool = False) -> bool:
    """Whether the turns of a loop in another, and of loops inside, are so few that counting them is much of the work:
    they are written one after the other. Rows of 7 bytes are 2 turns of 4. Of what runs `aside` little is, and of what
    runs a few `times` in a call and reads much."""
    if loop.role == "sequential" or not 1 < turns <= KNOWN_TURNS or RIM in loop.attrs:
        return False
    if turns > 2 and all(_copies(stmt, target) for stmt in loop.body):
        return False
    ops = _straight_ops(loop.body, target)
    if ops is None or turns * ops > (ASIDE_OPS if aside else KNOWN_OPS):
        return False
    if times <= FEW_TIMES and turns > 2 and turns * ops > RARE_OPS and ops <= READ_OPS * len(_loads(loop)):
        return False
    if turns > FEW_TURNS or turns * ops > STRAIGHT_OPS:
        return loop.role == "vector" and _at_known_places(loop)
    return loop.role != "vector" or turns * ops <= SMALL_OPS or not _goes_along(loop, ops)


class Work:
    """What statements of one function take, beside one another."""

    def __init__(self) -> None:
        self._ops: dict[Loop, int] = {}

    def little(self, body: Sequence[Stmt]) -> set[Stmt]:
        """The loops that take little beside the others of their block."""
        loops = [stmt for stmt in body if isinstance(stmt, Loop)]
        if len(loops) < 2:
            return set()
        ops = [self._loop(loop) for loop in loops]
        most = sum(ops) // LITTLE
        return {loop for loop, of_it in zip(loops, ops) if of_it <= most}

    def _loop(self, loop: Loop) -> int:
        """Operations and stores of all turns; of turns that are not known UNKNOWN_TURNS."""
        found = self._ops.get(loop)
        if found is None:
            turns = loop.extent.value if isinstance(loop.extent, Const) else UNKNOWN_TURNS
            updates = [update for group in loop.carried for update in group.updates]
            found = self._ops[loop] = turns * (self._block(loop.body) + operations((), updates))
        return found

    def _block(self, body: Sequence[Stmt]) -> int:
        flat = [stmt for stmt in body if isinstance(stmt, (Let, Store))]
        total = len(flat) + operations(flat)
        for stmt in body:
            if isinstance(stmt, Loop):
                total += self._loop(stmt)
            elif not isinstance(stmt, (Let, Store)):
                total += sum(map(self._block, blocks(stmt)))
        return total


def _at_known_places(loop: Loop) -> bool:
    """Whether lanes read elements at places that constant arrays give."""
    if any(isinstance(stmt, Loop) for stmt in loop.body):
        return False
    varying = varying_vars(loop)
    for expr in subexpressions([expr for stmt in loop.body for expr in expressions(stmt)]):
        if isinstance(expr, Load) and stride(expr.index, loop.var, varying, {}, {}) is None:
            places = [place for place in subexpressions((expr.index,)) if isinstance(place, Load)]
            if places and all(place.buffer.data is not None for place in places):
                return True
    return False


def _loads(loop: Loop) -> list[Load]:
    found = subexpressions([expr for stmt in statements(loop.body) for expr in expressions(stmt)])
    return [expr for expr in found if isinstance(expr, Load)]


def _goes_along(loop: Loop, ops: int) -> bool:
    """Whether a loop of so many operations a turn reads much, none of it what another turn does, or what loops around
    do not change, so that straight code gains nothing.

    Measured (Zen 4): sums down 100,000 rows of 10 compile in 0.8 of the time, maxima in 0.6, and run as quick. Of what
    computes more, exponentials above all, counted turns take up to 1.1 times as long.
    """
    written, varying = stored((loop,)), varying_vars(loop)
    loads = _loads(loop)
    if any(isinstance(stmt, Loop) for stmt in loop.body) or ops > OPS_OF_LOAD * len(loads):
        return False
    inside = {var for stmt in loop.body for var in bound(stmt)} | {loop.var}
    for load in loads:
        around = any(isinstance(x, Read) and x.var not in inside for x in subexpressions((load.index,)))
        if stride(load.index, loop.var, varying, {}, {}) != 1 or not (around or load.buffer in written):
            return False
    return True


def _copies(stmt: Stmt, target: Target) -> bool:
    """Whether a statement copies whole registers, which takes longer than to count them.

    Measured: a product of 256 x 256 compiles in 0.7 of the time; 38 programs run in 0.998 of it.
    """
    return (
        isinstance(stmt, Loop)
        and stmt.role == "vector"
        and isinstance(stmt.extent, Const)
        and stmt.extent.value >= register_lanes(stmt, target)
        and all(isinstance(each, Store) and isinstance(each.value, Load) for each in stmt.body)
    )


def _straight_ops(body: Sequence[Stmt], target: Target) -> int | None:
    """Ops and stores of statements, in which loops are written turn by turn; None if one cannot be."""
    total = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            inside = _straight_ops(stmt.body, target)
            if inside is None or not isinstance(stmt.extent, Const) or stmt.role == "sequential":
                return None
            turns = -(-stmt.extent.value // (lane_count(stmt, target) if stmt.role == "vector" else 1))
            if turns > FEW_TURNS:
                return None
            total += turns * inside
        elif isinstance(stmt, (Let, Store)):
            total += 1 + sum(isinstance(expr, Op) for expr in outside_indices(expressions(stmt)))
        else:
            return None
    return total


def register_lanes(loop: Loop, target: Target) -> int:
    """Lanes that fill one register with a loop's narrowest values of 32 or 64 bits."""
    sizes = _value_bytes(loop)
    wide = [size for size in sizes if size >= 4]
    return target.vector_bytes // (min(wide) if wide else max(sizes, default=4))


def shorter(loop: Loop, lanes: int, register: int, rest: int | None, unit: int = 1) -> tuple[int, ...]:
    """Lanes of the shorter vectors that do what a loop of so many lanes leaves, the widest first: those with which the
    `rest` takes the fewest turns, of registers or of single iterations, within so many ops; None: any multiple of
    `unit`, which short bodies take one by one, or a unit at a time.

    Measured (Sapphire Rapids, two cores): columns of 500 x 500 divided by their sums in place, of which a strip of 64
    left 52 single ones, 96 us and now 57; of 500 x 512 58.
    """
    if rest is not None and rest < 2:
        return ()
    nested = any(isinstance(stmt, Loop) for stmt in statements(loop.body))
    most = max(1, REST_OPS // max(operations((loop,)), 1))
    if rest is None:
        most = min(most, 2) if nested else 0
    unit = gcd(unit, lanes // 2) if rest is None else 1  # in units there are no single ones: as much code as one width
    last = (unit,) if unit > 1 else ()
    widths = [1 << k for k in range(lanes.bit_length() - 2, unit.bit_length() - 1, -1)]
    rests = range(unit, lanes, unit) if rest is None else (rest,)
    most = min(most, len(widths))
    found = [(*sizes, *last) for count in range(most + 1) for sizes in itertools.combinations(widths, count)]
    return min(found, key=lambda sizes: sum(_turns(each, sizes, register) for each in rests))


def _turns(rest: int, sizes: Sequence[int], register: int) -> int:
    turns = 0
    for size in sizes:
        turns += rest // size * max(1, size // register)
        rest %= size
    return turns + rest


def _calls(body: Sequence[Stmt], updates: Sequence[Expr]) -> bool:
    """Whether functions compute some of it: a call puts all other registers on the stack.

    Measured with two registers a value in place of one (512 x 512, 25 windows with an exp each): 1804 -> 1522 us, with
    AVX2 2484 -> 1805, for a sixth more of LLVM's time; with four 1312 and 1761, for over a third more.
    """
    roots = [expr for stmt in statements(body) for expr in expressions(stmt)] + list(updates)
    return any(isinstance(expr, Op) and function_of(expr) is not None for expr in subexpressions(roots))


def _waits(work: int, body: Sequence[Stmt], updates: Sequence[Expr]) -> bool:
    """Whether a core would often wait for results of a body of that many ops, with one register a value."""
    return work >= LONG and (work <= WIDE or work < PARALLEL * depth(body, updates))


def _widest(body: Sequence[Stmt]) -> int:
    """Bytes of the widest values that ops in `body` give, leaving out what only serves as an index."""
    roots = [expr for stmt in statements(body) for expr in expressions(stmt)]
    found = [expr.dtype for expr in subexpressions(roots) if isinstance(expr, Op) and expr.dtype != "i64"]
    return max(map(register_bytes, found), default=1)


def _leaves(loop: Loop, lanes: int) -> bool:
    """Whether twice the lanes would leave a vector more to shorter ones, among so few that it counts."""
    if not isinstance(loop.extent, Const) or (repeatable(loop) and not loop.carried):
        return False
    return loop.extent.value % (2 * lanes) >= lanes and loop.extent.value < 32 * lanes


def _value_bytes(loop: Loop) -> set[int]:
    """Widths of what is loaded, stored and carried, leaving out what only serves as an index."""
    found: set[int] = set()
    for stmt in statements((loop,)):
        roots: list = []
        match stmt:
            case Store():
                roots = [stmt.value]
                found.add(register_bytes(stmt.buffer.dtype))
            case Let():
                roots = [stmt.value] if stmt.var.dtype != "i64" else []
            case Loop():
                roots = [update for group in stmt.carried for update in group.updates]
                found.update(register_bytes(update.dtype) for update in roots)
        found.update(register_bytes(x.buffer.dtype) for x in outside_indices(roots) if isinstance(x, Load))
    return found


def accumulators(loop: Loop) -> int:
    """Independent partial results of a vector reduce loop, to hide the latency of its combining op."""
    for key, value in loop.attrs:
        if key == "unroll":
            return int(value)
    if any(isinstance(stmt, (Loop, If)) for stmt in statements(loop.body)):
        return 1
    work = _combined(loop)
    return 4 if work <= 12 else 2 if work <= 30 else 1
