"""Computed places: a choice between two elements of one array is one load at a chosen place.

Needs: loops that have been split where their conditions change. Guarantees: the same values.

    select(lt(i + shift, n), x[i + shift], x[i + shift - n])    =>    x[i + shift + select(lt(i + shift, n), 0, -n)]

What is left of such choices is not known when a program is compiled: a roll by a number that it computes. Two masked
loads for each element are twice the work, and the mask of one is empty: where its address lies in no page, processors
take hundreds of cycles to find out that nothing is read.

Measured (Zen 4): 60 rolls of 3,001 numbers with a maximum took 36, 305 or 1,013 us, by where the array lay; now 22.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.affine import linear_form
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.ir import Buffer, Expr, Function, Load, Loop, Op, Read, Stmt, Var
from pullback.loops.ir.types import is_int
from pullback.loops.ir.visit import Rewriter, fact, nodes, statements, stored, subexpressions, with_blocks

from .simplify import make_sum


def computed_places(function: Function) -> Function:
    """The function with choices between elements of one array as loads at chosen places."""
    if not any(_chooses(stmt) for stmt in statements(function.body)):
        return function
    return Function(function.name, function.buffers, _block(function.body))


def _block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.role in ("parallel", "reduce"):
            if any(_chooses(each) for each in statements((stmt,))):
                inside = {each.var for each in statements((stmt,)) if isinstance(each, Loop)}
                result += _Places(stored((stmt,)), inside).block((stmt,))
                continue
        result.append(with_blocks(stmt, _block))
    return tuple(result)


@fact
def _chooses(stmt: Stmt) -> bool:
    """Whether an expression of a statement itself is a choice between elements of one array."""
    return any(_is_choice(expr) for expr in nodes(stmt))


def _is_choice(expr: Expr) -> bool:
    if not isinstance(expr, Op) or expr.name != "select" or expr.attrs:
        return False
    _, x, y = expr.args
    return isinstance(x, Load) and isinstance(y, Load) and x.buffer is y.buffer


class _Places(Rewriter):
    def __init__(self, written: set[Buffer], indices: set[Var]) -> None:
        super().__init__()
        self._written = written  # in the nest: their loads stay as they are
        self._indices = indices  # of the nest's loops

    def expr(self, expr: Expr) -> Expr:
        if not _is_choice(expr):
            return expr
        assert isinstance(expr, Op)
        condition, x, y = expr.args
        assert isinstance(x, Load) and isinstance(y, Load)
        if x.buffer in self._written or not _is_computed_place(condition, self._indices):
            return expr
        found = _common(x.index, y.index)
        if found is None:
            return expr
        common, one, other = found
        chosen = make("select", (condition, const("i64", one), const("i64", other)))
        return Load(x.buffer, make("add", (common, chosen)))


def _is_computed_place(condition: Expr, indices: set[Var]) -> bool:
    """Whether a condition is made of comparisons of integers that are not loaded in its place, one of which is known
    only when the program runs. Of others masks are known where it matters, as loops are cut there.
    """
    computed = False
    for expr in subexpressions((condition,)):
        if isinstance(expr, Load):
            return False
        if isinstance(expr, Op) and expr.name in COMPARES and not is_int(expr.args[0].dtype):
            return False
        if isinstance(expr, Read):
            if expr.dtype == "bool":
                return False
            computed |= expr.var not in indices
    return computed


def _common(x: Expr, y: Expr) -> tuple[Expr, int, int] | None:
    """Two indices as a sum that they share, with a number for each; None if they differ by more."""
    (of_x, one), (of_y, other) = linear_form(x), linear_form(y)
    if {key: factor for key, (_, factor) in of_x.items()} != {key: factor for key, (_, factor) in of_y.items()}:
        return None
    return make_sum([make("mul", (term, const("i64", factor))) for term, factor in of_x.values()]), one, other
