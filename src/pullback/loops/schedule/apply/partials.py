"""Partial results of reductions that were cut: where they start, and how they are combined or handed on."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.ir import Carried, Combine, Expr, Loop, Op, Read, Var
from pullback.loops.ir.ops import neutral
from pullback.loops.ir.types import REAL_OF
from pullback.loops.ir.visit import Substitute, nodes


def neutrals(group: Carried) -> list[Expr] | None:
    """Where a partial result starts; None if the group has no neutral values."""
    if isinstance(group.combine, Combine):
        return list(group.combine.neutral) or None
    if group.combine is None:
        return None
    dtype = group.vars[0].dtype
    value = neutral(group.combine, dtype)
    if value is None:
        return None
    if dtype in REAL_OF and group.combine == "add":
        value = complex(value, -0.0)
    return [const(dtype, value)]


def combining(group: Carried, values: list[Expr]) -> Carried:
    """The group of a loop over partial results: vars = combine(vars, values), with the inits and results of `group`."""
    fresh = tuple(Var(f"{v.name}_all", v.dtype) for v in group.vars)
    return Carried(fresh, group.inits, merged(group, [Read(v) for v in fresh], values), group.results, group.combine)


def merged(group: Carried, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
    """Two partial results of a group as one."""
    if isinstance(group.combine, str):
        return (make(group.combine, (left[0], right[0])),)
    assert isinstance(group.combine, Combine)
    sub = Substitute(dict(zip((*group.combine.left, *group.combine.right), (*left, *right))))
    return tuple(map(sub.rewrite, group.combine.exprs))


def hands_on(outer: Loop, inner: Loop) -> bool:
    """Whether the results of a reduction are those of the one inside, which begins where the last one ended."""
    if len(outer.carried) != len(inner.carried):
        return False
    for group, within in zip(outer.carried, inner.carried):
        if group.combine != within.combine:
            return False
        begins = [init.var if isinstance(init, Read) else None for init in within.inits]
        ends = [update.var if isinstance(update, Read) else None for update in group.updates]
        if begins != list(group.vars) or ends != list(within.results):
            return False
    return True


def plain_terms(loop: Loop) -> list[Expr] | None:
    """What each carried group adds in an iteration, if all are plain sums of floats; else None."""
    reads = [expr.var for stmt in (*loop.body, loop) for expr in nodes(stmt) if isinstance(expr, Read)]
    terms: list[Expr] = []
    for group in loop.carried:
        if group.combine != "add" or group.vars[0].dtype not in ("f32", "f64") or reads.count(group.vars[0]) != 1:
            return None
        update = group.updates[0]
        if not isinstance(update, Op) or update.name != "add":
            return None
        mine = [isinstance(arg, Read) and arg.var is group.vars[0] for arg in update.args]
        if mine.count(True) != 1:
            return None
        terms.append(update.args[mine.index(False)])
    return terms


def pairwise(terms: Sequence[Expr]) -> Expr:
    """The sum of terms, as a tree."""
    while len(terms) > 1:
        pairs = [make("add", (terms[k], terms[k + 1])) for k in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
    return terms[0]
