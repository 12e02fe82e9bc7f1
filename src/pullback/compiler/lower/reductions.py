"""Reduce loops: all reductions of a group in one, carrying their accumulators together, with its stores inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.graph.fuse.groups import Group
from pullback.compiler.lower.storage import offset_of
from pullback.compiler.lower.values import Region, split
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Reduction
from pullback.loops.ir import Carried, Combine, Expr, Loop
from pullback.util.record import mutable_record


class ReductionContext:
    """What the rules of a general reduction see."""

    def __init__(self, region: Region, eqn: JaxprEqn) -> None:
        self.b = region.b
        self.params = eqn.params
        self.in_avals = [v.aval for v in eqn.invars]
        self.out_avals = [v.aval for v in eqn.outvars]
        self.out_aval = self.out_avals[0]
        self._region, self._eqn = region, eqn

    def operand(self, k: int, index: Sequence[Any]) -> Expr:
        """The k-th operand's value at an index of it."""
        return self._region.value(self._eqn.invars[k], index)


@mutable_record
class _Fold:
    """One reduction of a group."""

    eqn: JaxprEqn
    ctx: ReductionContext
    inits: tuple[Expr, ...]
    combine: str | Combine

    @property
    def rule(self) -> Reduction:
        return self.eqn.primitive.lower


def emit_reductions(region: Region, group: Group, index: dict[int, Expr], runs: Sequence[Sequence[int]]) -> None:
    """The reduce loops over `runs` of axes of the group, at the kept `index`; then the results are bound and stored."""
    folds = [_fold(region, region.eqns[n]) for n in group.reductions]
    results = _reduce(region, group, folds, [fold.inits for fold in folds], index, runs)
    kept = [index[a] for a in group.kept]
    for fold, accumulators in zip(folds, results):
        rule = fold.rule
        values = accumulators if rule.finish is None else tuple(rule.finish(fold.ctx, accumulators))
        if rule.combine is not None:
            values = (region.b.convert(values[0], ir_dtype(fold.ctx.out_aval.dtype)),)
        for var, value in zip(fold.eqn.outvars, values):
            at = tuple(
                region.intern(i) if n != 1 else region.intern(region.b.index(0)) for i, n in zip(kept, var.aval.shape)
            )
            value = region.keep((var, at), value, True)
            if var in region.memory:
                storage = region.memory[var]
                region.b.store(storage.buffer, offset_of(region.b, storage, at), value)


def _fold(region: Region, eqn: JaxprEqn) -> _Fold:
    rule, b = eqn.primitive.lower, region.b
    ctx = ReductionContext(region, eqn)
    b.out_dtype = ir_dtype(ctx.out_aval.dtype)
    if rule.combine is not None:
        identity = np.asarray(rule.identity(ctx.out_aval.dtype)).astype(ctx.out_aval.dtype)
        kind = b.out_dtype
        if kind in ("f16", "bf16") and rule.combine in ("add", "mul"):
            kind = "f32"  # rounded once, at the end
        return _Fold(eqn, ctx, (b.const(kind, identity.item()),), rule.combine)
    inits = tuple(_required(rule.init)(ctx))
    left = tuple(b.var("left", x.dtype) for x in inits)
    right = tuple(b.var("right", x.dtype) for x in inits)
    merged = tuple(_required(rule.merge)(ctx, [b.read(v) for v in left], [b.read(v) for v in right]))
    return _Fold(eqn, ctx, inits, Combine(left, right, merged, inits))


def _reduce(
    region: Region,
    group: Group,
    folds: list[_Fold],
    inits: list[tuple[Expr, ...]],
    index: dict[int, Expr],
    runs: Sequence[Sequence[int]],
) -> list[tuple[Expr, ...]]:
    b = region.b
    if not runs:
        return _body(region, group, folds, inits, index)
    run, rest = runs[0], runs[1:]
    extent = math.prod(group.space[a] for a in run)
    if extent == 1:
        return _reduce(region, group, folds, inits, index | {a: b.index(0) for a in run}, rest)
    var = b.var("r", "i64")
    carried = [tuple(b.var("acc", x.dtype) for x in group_inits) for group_inits in inits]
    results = [tuple(b.var("res", x.dtype) for x in group_inits) for group_inits in inits]
    with region.level() as statements:
        region.bind(var)
        for group_vars in carried:
            for v in group_vars:
                region.bind(v)
        here = index | split(region, region.intern(b.read(var)), run, group.space)
        updates = _reduce(region, group, folds, [tuple(map(b.read, vs)) for vs in carried], here, rest)
    groups = tuple(
        Carried(vs, tuple(start), tuple(update), rs, fold.combine)
        for vs, start, update, rs, fold in zip(carried, inits, updates, results, folds)
    )
    b.emit(Loop(var, b.index(extent), "reduce", tuple(statements), groups))
    for group_vars in results:
        for v in group_vars:
            region.bind(v)
    return [tuple(map(b.read, vs)) for vs in results]


def _body(
    region: Region, group: Group, folds: list[_Fold], accumulators: list[tuple[Expr, ...]], index: dict[int, Expr]
) -> list[tuple[Expr, ...]]:
    b = region.b
    full = [index[a] for a in range(len(group.space))]
    updates: list[tuple[Expr, ...]] = []
    for fold, values in zip(folds, accumulators):
        rule, eqn = fold.rule, fold.eqn
        operands = [region.value(atom, full) for atom in eqn.invars]
        if group.stores:
            operands = [region.here(x) for x in operands]  # before the stores below change what they are loaded from
        b.out_dtype = ir_dtype(fold.ctx.out_aval.dtype)
        if rule.combine is not None:
            updates.append((b.op(rule.combine, values[0], b.convert(operands[0], values[0].dtype)),))
            continue
        element = tuple(_required(rule.element)(fold.ctx, operands, full))
        step = rule.step or _required(rule.merge)
        updates.append(tuple(step(fold.ctx, list(values), list(element))))
    if group.stores:
        region.store(full, group.stores, group.row is not None)
    return updates


def _required(rule: Any) -> Any:
    if rule is None:
        raise TypeError("a reduction without `combine` needs init, element and merge")
    return rule
