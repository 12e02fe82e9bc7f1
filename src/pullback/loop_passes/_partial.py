"""Partial results of reductions that were cut: where they start, and how they are combined."""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.fold import const, make
from ..loop_ir.ir import Carried, Combine, Expr, Read, Var
from ..loop_ir.ops import neutral
from ..loop_ir.types import REAL_OF
from ..loop_ir.visit import Substitute


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
