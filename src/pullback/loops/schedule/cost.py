"""How long loops take, roughly: the one model by which passes choose. Unit: one scalar op or access."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

from pullback.loops.emit.ops import ROUNDED
from pullback.loops.emit.shuffles import INTERLEAVED, WIDE, WIDE_STORED, read_in_turns
from pullback.loops.emit.types import register_bytes
from pullback.loops.ir.fold import is_math
from pullback.loops.ir.ir import (
    RARE,
    SQUARE,
    Buffer,
    Combine,
    Const,
    Expr,
    If,
    Kernel,
    Lambda,
    Let,
    Load,
    Loop,
    Op,
    Run,
    Stmt,
    Store,
    While,
)
from pullback.loops.ir.types import ITEMSIZE, REAL_OF, is_int
from pullback.loops.ir.vectors import scannable
from pullback.loops.ir.visit import (
    access_nodes,
    bound,
    expressions,
    fact,
    free_vars,
    function_of,
    loads,
    local_uses,
    nodes,
    reads,
    statements,
    stores,
)
from pullback.util.record import NamedTuple

from .machine import NOMINAL
from .space import LANES, UNKNOWN_EXTENT, Axis, extent_of

PREFIX = 8  # running results within a vector: shifts and combinations
NANOSECONDS = NOMINAL.op_ns
BYTE_NS = NOMINAL.shared_ns / NOMINAL.line  # of memory that all cores read

MATH = 20  # ops of a math function as long as it is one
INTEGRAL = 200  # of one by a sum over many points: gammainc of a float64 takes 270 to 480 ns
_INTEGRALS = frozenset(
    ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta", "zeta", "polygamma"]
)

# Measured on Zen 4 over softmax, log-sum-exp and norms of rows of 3 to 32 elements.
START, TREE, HALVES = 2.0, 16.0, 3  # of a vector loop, of what a reduction does after it, and how many halves it takes
ALONE = 3.0  # an op that waits for the one before, against one among others
SQUARE_ACCESS = 0.6  # of an element of a square that is transposed

SPILLED = 1.5  # times what shuffles take of more registers than there are, of loads or of stores; squared of both
RUN = 2.0  # of a load of which it is asked whether lanes are neighbours
APART, STORED_APART = 1.5, 2.0  # of each lane's load or store, where neighbours in the loop are not so in memory

_BY_CONSTANT = 4.0  # a division of integers: a product and shifts

CALL = 10.0  # of a function of an op: most registers go to memory and back


class _Lanes:
    """Lanes that share ops: as many as a register has of the narrowest values of 32 bits and more, or of all."""

    def __init__(self, dtypes: Iterable[str], extent: int) -> None:
        sizes = {register_bytes(dtype) for dtype in dtypes}
        self.lanes = NOMINAL.vector_bytes // min([size for size in sizes if size >= 4] or [max(sizes, default=4)])
        while self.lanes > max(extent, 1):
            self.lanes //= 2

    def share(self, size: int) -> float:
        """The registers that values of so many bytes fill, for each lane."""
        return max(1.0, self.lanes * size / NOMINAL.vector_bytes) / self.lanes

    def access(self, node: Load | Store) -> float:
        """Cost of one element's access: shared by the lanes."""
        return self.share(ITEMSIZE[node.buffer.dtype])


class Vector(Axis, _Lanes):
    """A candidate vector loop: its accesses are of all lanes at once where these are neighbours, or take turns."""

    def __init__(self, loop: Loop) -> None:
        Axis.__init__(self, loop)
        self.turns: Counter[tuple[type, Buffer, int | None]] = Counter()
        accesses = {node: None for stmt in statements(loop.body) for node in access_nodes(stmt)}
        for node in accesses:
            self.turns[type(node), node.buffer, self.step(node.index)] += 1
        self.wide = {kind for kind, _, step in self.turns if step in WIDE}  # whether loads and stores are shuffled so
        carried = [
            v.dtype for s in (loop, *statements(loop.body)) if isinstance(s, Loop) for g in s.carried for v in g.vars
        ]
        _Lanes.__init__(self, [*(node.buffer.dtype for node in accesses), *carried], extent_of(loop))

    def is_same(self, expr: Expr) -> bool:
        """Whether an expression has one value for all lanes."""
        return not self.depends(expr)

    def access(self, node: Load | Store) -> float:
        """Cost of one element's access: shared by the lanes, where several kinds of elements take turns with shuffles,
        or one for each lane."""
        step = self.step(node.index)
        if step in (0, 1, -1):
            return super().access(node)
        if step is None and type(node) is Load and self.run(node.index) is not None:
            return RUN * super().access(node)
        apart = APART if type(node) is Load else STORED_APART
        if step is None or node.buffer.dtype in REAL_OF:
            return apart
        kinds = self.turns[type(node), node.buffer, step]
        if type(node) is Store and (step < 0 or kinds % step or (step in WIDE and step not in WIDE_STORED)):
            return apart
        step = abs(step)
        if not read_in_turns(step, self.lanes, lambda: kinds):
            return apart
        spilled = 1.0 if step in INTERLEAVED else SPILLED ** len(self.wide)
        return min(apart, spilled * step * (1 + math.log2(step)) / (self.lanes * min(max(kinds, 1), step)))


class _Squares:
    """A loop that is taken in squares with the lanes around it, of `n` iterations."""

    def __init__(self, vector: Vector, n: int) -> None:
        self.vector, self.lanes, self.share = vector, vector.lanes, vector.share
        side = min(LANES, 1 << max(n, 1).bit_length() - 1)  # the last square overlaps the one before
        self.apart = -(-n // side) * LANES * SQUARE_ACCESS / max(n, 1)

    def access(self, node: Load | Store) -> float:
        """Cost of one element's access."""
        return self.vector.access(node) if self.vector.step(node.index) in (0, 1, -1) else self.apart


class AllLanes(_Lanes):
    """What no vector loop over `body` beats: each access shared by the lanes."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        super().__init__([node.buffer.dtype for stmt in statements(body) for node in access_nodes(stmt)], LANES)


class _Weight(NamedTuple):
    """What an op takes: additions of registers, of values of so many bytes, and what each lane takes by itself."""

    additions: float
    size: int
    each: float = 0.0


@functools.cache
def _weight(name: str, given: str, dtype: str) -> _Weight:
    """Of an op of arguments of type `given` with a result of type `dtype`."""
    costs = NOMINAL.operations
    of, result = REAL_OF.get(given, given), REAL_OF.get(dtype, dtype)
    size = max(register_bytes(of), register_bytes(result))
    long = size == 8
    parts = 2.0 if given in REAL_OF or dtype in REAL_OF else 1.0
    integer = is_int(of)
    rounded = costs.rounding if result in ("f16", "bf16") and name in ROUNDED else 0.0
    match name:
        case "div" | "rem" | "floordiv" | "floormod" if integer:
            return _Weight(1.0, size, costs.quotient[long])
        case "div" | "rem":
            return _Weight(parts * costs.divide[long] + rounded, size)
        case "sqrt":
            return _Weight(parts * costs.root[long] + rounded, size)
        case "min" | "max" if not integer and of != "bool":
            return _Weight(parts * costs.extreme, size)
        case "convert" if is_int(result) and not integer and of != "bool":
            return _Weight(costs.wide_integer if long else costs.to_integer, size)
        case "mul" | "mulhi" | "convert" if long and integer and (name != "convert" or not is_int(result)):
            return _Weight(costs.wide_integer + rounded, size)
        case "mul" if parts == 2.0:
            return _Weight(2 * parts + rounded, size)
    return _Weight(parts + rounded, size)


def operations(exprs: Iterable[Expr]) -> int:
    """How many ops there are among expressions, a math function as about as many as it becomes."""
    return sum(_ops(expr.name) for expr in exprs if isinstance(expr, Op))


def _ops(name: str) -> int:
    if not is_math(name):
        return 1
    return INTEGRAL if name in _INTEGRALS else MATH


def computed(roots: Sequence[Expr]) -> list[Expr]:
    """What is reachable from `roots`, once each, without the indices of loads: most of these are hoisted."""
    found: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if id(expr) not in found:
            found[id(expr)] = expr
            if isinstance(expr, Op):
                stack += expr.args
    return list(found.values())


def cost(body: Sequence[Stmt], vector: _Lanes | _Squares | None = None) -> float:
    """Of running `body` once; inside a vector loop, of one lane of it."""
    total = 0.0
    waiting = _waiting(tuple(body)) if vector is None else frozenset()
    seen: set[Expr] = set()  # in statements before
    for stmt in body:
        alone = ALONE if stmt in waiting else 1.0
        match stmt:
            case Loop():
                if vector is None:
                    total += _of_loop(stmt)
                    continue
                if SQUARE in stmt.attrs and isinstance(vector, Vector):
                    total += extent_of(stmt) * cost(stmt.body, _Squares(vector, extent_of(stmt)))
                    continue
                inner = cost(stmt.body, vector) + _expressions(_updates(stmt), vector)
                total += extent_of(stmt) * (inner + 0.5 / vector.lanes)
            case While():
                total += UNKNOWN_EXTENT * (cost(stmt.body_cond, vector) + cost(stmt.body, vector))
            case If():
                total += _expressions(expressions(stmt), vector) + cost(stmt.then, vector) + cost(stmt.orelse, vector)
            case Store():
                total += alone * _expressions((stmt.value,), vector, seen) + (vector.access(stmt) if vector else 1.0)
            case Let():
                total += alone * _expressions((stmt.value,), vector, seen)
            case Run():
                total += _of_kernel(stmt.kernel)
            case _:
                total += 100.0
    return total


@fact
def _waiting(body: tuple[Stmt, ...]) -> Set[Stmt]:
    """The statements among loops that wait for what these make, or that these wait for.

    Others fill the time: the first and last elements of rows, which are computed otherwise than those between them.
    Measured (Zen 4): a reaction of two fields by rolls of 256 x 256, whose edges were loops over rows: 30 us, now 22.
    """
    loops = [stmt for stmt in body if isinstance(stmt, Loop)]
    if not loops or len(loops) == len(body):
        return frozenset()
    others = [stmt for stmt in body if not isinstance(stmt, Loop)]
    scratch = local_uses(loops)  # what else they store no other statement of an iteration waits for
    made = {var for loop in loops for group in loop.carried for var in group.results}
    wanted = set(free_vars(loops))
    found = {stmt for stmt in others if not scratch.keys().isdisjoint(loads(stmt) | stores(stmt))}
    for stmt in others:
        if stmt in found or not made.isdisjoint(reads(stmt)):
            found.add(stmt)
            made.update(bound(stmt))
    for stmt in reversed(others):
        if stmt in found or not wanted.isdisjoint(bound(stmt)):
            found.add(stmt)
            wanted.update(reads(stmt))
    return found


@fact
def vector_of(loop: Loop) -> Vector:
    """A loop as a candidate vector loop."""
    return Vector(loop)


@fact
def _of_loop(loop: Loop) -> float:
    """Of a loop that is in no vector loop."""
    scan = loop.role == "scan" and scannable(loop)
    lanes = vector_of(loop) if loop.role == "vector" or scan else None
    inner = cost(loop.body, lanes) + _expressions(_updates(loop), lanes)
    if lanes is None:
        return extent_of(loop) * (inner + 0.5)
    turns, start = extent_of(loop), 0.0
    if scan:
        inner += PREFIX * len(loop.carried) / lanes.lanes
    else:
        whole, rest = divmod(turns, lanes.lanes)
        # Where no iteration may be done twice, shorter vectors do the rest.
        turns = (whole + (rest.bit_count() if loop.carried else rest > 0)) * lanes.lanes
        start = START + tree(loop)
    return start + turns * (inner + 0.5 / lanes.lanes)


def tree(loop: Loop) -> float:
    """What a reduction does after a vector loop: it combines the lanes, of pairs with as many ops for each half."""
    if not loop.carried:
        return 0.0
    pairs = [group.combine.exprs for group in loop.carried if isinstance(group.combine, Combine)]
    return TREE + HALVES * sum(_expressions(exprs, None) for exprs in pairs)


@fact
def _of_kernel(kernel: Kernel) -> float:
    return cost(kernel.body)


def updating(loop: Loop, vector: _Lanes | None) -> float:
    """Cost of what one iteration of a loop makes of the values that it carries, by one lane of a vector."""
    return _expressions(_updates(loop), vector)


def _updates(loop: Loop) -> list[Expr]:
    return [update for group in loop.carried for update in group.updates]


def _expressions(roots: Sequence[Expr], vector: _Lanes | _Squares | None, seen: set[Expr] | None = None) -> float:
    """Each op and load counted once, but those `seen` before; index arithmetic is left out: most of it is hoisted."""
    share = 1.0 / vector.lanes if vector else 1.0
    total = 0.0
    seen = set() if seen is None else seen
    stack: list[Any] = list(roots)
    while stack:
        expr = stack.pop()
        kind = type(expr)
        if (kind is not Op and kind is not Load) or expr in seen:
            continue
        seen.add(expr)
        if kind is Op and expr.dtype == "i64" and isinstance(vector, Vector) and vector.is_same(expr):
            total += share  # an index, for all lanes at once
        elif kind is Load:
            total += vector.access(expr) if vector else 1.0
        elif not expr.attrs:
            total += _op(expr, vector)
            stack += expr.args
        elif (function := function_of(expr)) is not None:
            total += (CALL + _of_function(function)) * share
            stack += expr.args
        else:
            total += _op(expr, vector)
            rare = expr.name == "select" and RARE in expr.attrs
            stack += (expr.args[0], expr.args[2]) if rare else expr.args
    return total


def _op(op: Op, vector: _Lanes | _Squares | None) -> float:
    additions, size, each = _weight(op.name, op.args[0 if op.name != "select" else 1].dtype, op.dtype)
    if each and isinstance(op.args[1], Const):
        each = 0.0  # a product and shifts
        additions = _BY_CONSTANT
    return additions + each if vector is None else additions * vector.share(size) + each


@fact
def _of_function(function: Lambda) -> float:
    return _expressions((function.value,), None)


def nanoseconds(body: Sequence[Stmt]) -> float:
    """Rough time of running `body` once on one core, memory included."""
    return max(NANOSECONDS * cost(body), BYTE_NS * bytes_touched(body))


def bytes_touched(body: Sequence[Stmt]) -> int:
    """Upper bound of the memory that loops in `body` walk through, if every access is a new element."""
    return sum(map(_touched, body))


@fact
def _touched(stmt: Stmt) -> int:
    total = sum([ITEMSIZE[expr.buffer.dtype] for expr in nodes(stmt) if type(expr) is Load])  # type: ignore[attr-defined]
    if isinstance(stmt, Store):
        total += ITEMSIZE[stmt.buffer.dtype]
    elif isinstance(stmt, Loop):
        total += extent_of(stmt) * bytes_touched(stmt.body)
    elif isinstance(stmt, If):
        total += bytes_touched(stmt.then) + bytes_touched(stmt.orelse)
    return total
