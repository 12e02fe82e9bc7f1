"""A nest as its axes and what it touches along them: which loops stand alone in each other, and how far each moves an
access. What orders are legal is read off roles (iterations of a parallel loop never meet) and off these steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pullback.loops.emit.runs import run_along
from pullback.loops.ir.affine import Interval, depends, interval, stride
from pullback.loops.ir.ir import Buffer, Const, Expr, Let, Loop, Op, Stmt
from pullback.loops.ir.vectors import varying_vars
from pullback.loops.ir.visit import accessed, statements

LANES = 8  # nominal: the choice between axes hardly depends on the machine's width
UNKNOWN_EXTENT = 16  # a guess, for loops that end when the program says so: more than once, and not long


def extent_of(loop: Loop) -> int:
    """The number of iterations, the most that is seen of it, or a guess."""
    extent = loop.extent
    if isinstance(extent, Const):
        return int(extent.value)
    found = _most(extent)
    return UNKNOWN_EXTENT if found is None else found


def _most(expr: Expr) -> int | None:
    """No less than an expression of extents; None if that is not seen."""
    if isinstance(expr, Const):
        return int(expr.value)
    if not isinstance(expr, Op):
        return None
    if expr.name == "floormod":
        divisor = _most(expr.args[1])
        return None if divisor is None else divisor - 1
    known = [_most(x) for x in expr.args[expr.name == "select" :]]
    found = [x for x in known if x is not None]
    if expr.name == "min" and found:
        return min(found)
    if len(found) < len(known):
        return None
    match expr.name:
        case "select":
            return max(found)
        case "add":
            return sum(found)
        case "floordiv" if isinstance(expr.args[1], Const) and found[1] > 0:
            return found[0] // found[1]
    return None


def known_extent(loop: Loop) -> int:
    """The number of iterations of a loop that has a fixed one."""
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def chain_of(loop: Loop) -> list[Loop] | None:
    """`loop` and the parallel loops that stand alone in one another; None if an extent is not known."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], Loop) and inner.role == "parallel":
        chain.append(inner)
    return chain if all(isinstance(each.extent, Const) and each.extent.value for each in chain) else None


def around(chain: Sequence[Loop], body: Sequence[Stmt]) -> Loop:
    """The loops of `chain`, outermost first, around `body`."""
    inner = tuple(body)
    for loop in reversed(chain):
        inner = (Loop(loop.var, loop.extent, loop.role, inner, loop.carried, loop.attrs),)
    (result,) = inner
    assert isinstance(result, Loop)
    return result


class Axis:
    """A loop as what differs between its iterations, and how far it moves each access."""

    def __init__(self, loop: Loop) -> None:
        self.var, self.extent = loop.var, extent_of(loop)
        self.varying = varying_vars(loop)
        self.definitions = {
            stmt.var: stmt.value for stmt in statements(loop.body) if isinstance(stmt, Let) and stmt.var.dtype == "i64"
        }
        self.memo: dict[Expr, bool] = {}

    def step(self, index: Expr) -> int | None:
        """How far apart neighbouring iterations access memory; None if that varies."""
        return stride(index, self.var, self.varying, self.definitions, self.memo)

    def run(self, index: Expr) -> int | None:
        """1 or -1 if an index that is no line grows by at most one between neighbours, or falls so."""
        return run_along(index, self, self.bounds)

    def bounds(self, expr: Expr) -> Interval | None:
        """Bounds of an integer, of which the axis alone is known."""
        return interval(expr, {self.var: (0, self.extent - 1)})

    def depends(self, expr: Expr) -> bool:
        """Whether an expression differs between iterations."""
        return depends(expr, self.varying, self.memo)


def axis_of(loop: Loop) -> Axis:
    """The axis of a loop, of a reduction as if its running values did not differ."""
    return Axis(Loop(loop.var, loop.extent, "parallel", loop.body))


def accesses_of(loop: Loop) -> Iterator[tuple[Buffer, Expr]]:
    """(buffer, index) of all that a loop touches, in its body or for what it carries."""
    return accessed((*loop.body, Loop(loop.var, loop.extent, "reduce", (), loop.carried)))
