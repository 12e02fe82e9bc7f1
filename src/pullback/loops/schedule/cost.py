"""How long loops take, roughly: the one model by which passes choose. Unit: one scalar op or access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pullback.loops.ir.affine import stride
from pullback.loops.ir.fold import is_math
from pullback.loops.ir.ir import RARE, Const, Expr, If, Kernel, Let, Load, Loop, Op, Run, Stmt, Store, While
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.vectors import scannable, varying_vars
from pullback.loops.ir.visit import expressions, fact, function_of, nodes, statements

from .machine import NOMINAL

LANES = 8  # nominal: the choice between axes hardly depends on the machine's width
UNKNOWN_EXTENT = 16
PREFIX = 8  # running results within a vector: shifts and combinations
NANOSECONDS = NOMINAL.op_ns

MATH = 20  # ops of a math function as long as it is one
INTEGRAL = 200  # of one by a sum over many points: gammainc of a float64 takes 270 to 480 ns
_INTEGRALS = frozenset(
    ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta", "zeta", "polygamma"]
)

CALL = 10.0  # of a function of an op: most registers go to memory and back

# Ops that take several instructions or a slow one.
_SLOW = {"div": 4, "rem": 6, "sqrt": 4, "floordiv": 4, "floormod": 4}


class Vector:
    """A candidate vector loop: what differs between lanes, and how fast memory is walked."""

    def __init__(self, loop: Loop) -> None:
        self.var = loop.var
        self.varying = varying_vars(loop)
        self.definitions = {
            stmt.var: stmt.value for stmt in statements(loop.body) if isinstance(stmt, Let) and stmt.var.dtype == "i64"
        }
        self.memo: dict[int, bool] = {}
        extent = extent_of(loop)
        self.lanes = LANES
        while self.lanes > extent:
            self.lanes //= 2

    def step(self, index: Expr) -> int | None:
        """How far apart neighbouring lanes access memory; None if that varies."""
        return stride(index, self.var, self.varying, self.definitions, self.memo)

    def access(self, index: Expr, apart: float = 1.5) -> float:
        """Cost of one element's access: shared by the lanes, or `apart` for each."""
        if self.step(index) in (0, 1, -1):
            return 1.0 / self.lanes
        return apart


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


def extent_of(loop: Loop) -> int:
    """The number of iterations, or a guess."""
    return loop.extent.value if isinstance(loop.extent, Const) else UNKNOWN_EXTENT


def known_extent(loop: Loop) -> int:
    """The number of iterations of a loop that has a fixed one."""
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def cost(body: Sequence[Stmt], vector: Vector | None = None) -> float:
    """Of running `body` once; inside a vector loop, of one lane of it."""
    total = 0.0
    for stmt in body:
        match stmt:
            case Loop():
                scan = stmt.role == "scan" and vector is None and scannable(stmt)
                lanes = vector or (Vector(stmt) if stmt.role == "vector" or scan else None)
                inner = cost(stmt.body, lanes) + _expressions(_updates(stmt), lanes)
                if scan and lanes is not None:
                    inner += PREFIX * len(stmt.carried) / lanes.lanes
                total += extent_of(stmt) * (inner + 0.5 / (lanes.lanes if lanes else 1))
            case While():
                total += UNKNOWN_EXTENT * (cost(stmt.body_cond, vector) + cost(stmt.body, vector))
            case If():
                total += _expressions(expressions(stmt), vector) + cost(stmt.then, vector) + cost(stmt.orelse, vector)
            case Store():
                total += _expressions((stmt.value,), vector) + (vector.access(stmt.index, apart=2.0) if vector else 1.0)
            case Let():
                total += _expressions((stmt.value,), vector)
            case Run():
                total += _of_kernel(stmt.kernel)
            case _:
                total += 100.0
    return total


@fact
def _of_kernel(kernel: Kernel) -> float:
    return cost(kernel.body)


def _updates(loop: Loop) -> list[Expr]:
    return [update for group in loop.carried for update in group.updates]


def _expressions(roots: Sequence[Expr], vector: Vector | None) -> float:
    """Each op and load counted once; index arithmetic is left out, since most of it is hoisted."""
    share = 1.0 / vector.lanes if vector else 1.0
    total = 0.0
    seen: set[Expr] = set()
    stack: list[Any] = list(roots)
    while stack:
        expr = stack.pop()
        kind = type(expr)
        if (kind is not Op and kind is not Load) or expr in seen:
            continue
        seen.add(expr)
        if kind is Load:
            total += vector.access(expr.index) if vector else 1.0
        elif not expr.attrs:
            total += _SLOW.get(expr.name, 1) * share
            stack += expr.args
        elif (function := function_of(expr)) is not None:
            total += CALL * share + _expressions((function.value,), None) * share
            stack += expr.args
        else:
            total += _SLOW.get(expr.name, 1) * share
            rare = expr.name == "select" and RARE in expr.attrs
            stack += (expr.args[0], expr.args[2]) if rare else expr.args
    return total


def nanoseconds(body: Sequence[Stmt]) -> float:
    """Rough time of running `body` once on one core, memory included."""
    return max(NANOSECONDS * cost(body), 0.05 * bytes_touched(body))


def bytes_touched(body: Sequence[Stmt]) -> int:
    """Upper bound of the memory that loops in `body` walk through, if every access is a new element."""
    total = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            total += extent_of(stmt) * bytes_touched(stmt.body)
        elif isinstance(stmt, If):
            total += bytes_touched(stmt.then) + bytes_touched(stmt.orelse)
        if isinstance(stmt, Store):
            total += ITEMSIZE[stmt.buffer.dtype]
        for expr in nodes(stmt):
            if isinstance(expr, Load):
                total += ITEMSIZE[expr.buffer.dtype]
    return total
