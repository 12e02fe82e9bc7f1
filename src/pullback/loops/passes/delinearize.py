"""Delinearize: an axis whose index is taken apart by division becomes two, so that lanes walk along memory.

Needs: simplified indices. Guarantees: the same iterations in the same order. Reshapes between movements leave such
axes: the blocks of an image, a Kronecker product, features in groups.

    parallel i < 900 {                                 parallel o < 30 {
      y[i] = x[floordiv(i, 30)] * z[floormod(i, 30)]  =>   parallel n < 30 {
                                                             y[o*30 + n] = x[o] * z[n]

Only the innermost axis, which lanes will walk along, where its parts fill them, or little is computed. A reduction
becomes two, one of values with their places if the parts are long. Parts of a few elements become straight code, so
that lanes find and store what takes turns in memory by shuffles:

    parallel i < 900 { y[i] = x[floordiv(i, 2)] }  =>  parallel o < 450 { y[o*2] = x[o]; y[o*2 + 1] = x[o] }

So do sums over what is stored meanwhile: gradients of rotary embeddings, whose pairs lie side by side, took 145 us by
slices and 206 by `at[].set`, now 51 and 43 (2 x 65 x 4 x 64, Zen 3).

Measured: a Kronecker product of 30 x 30 by einsum and reshape took 1,390 us, now 50; blocks of 4 x 4 pixels 18, now 8;
`repeat(x, 3)` of 1000 x 1000 550, now 90; the gradient of a mean over 2 x 2 pixels of 16 x 32 x 64 x 64 by slices or by
`reduce_window` 3.2 and 3.9 ms, now 0.2 and 0.3 (Zen 4). The deviation of 60 x 70 elements that lie 210 apart took 2.7
us, now 0.7, of 501 x 700 106 and 19, argmax of these, rolled, 85 and 18 (Sapphire Rapids).
Sums of squares of 300 outer products of 33 x 50, one after the other in rows, 210 us, now 14; of parts of 16 75 and 14.
Deviations of 500 rows of 8 to 31 elements that lie apart take 0.1 to 0.4 of the time (Zen 4, AVX-512 and AVX2).
300 rows of 300 elements in parts of 225, less their means, 98 us, now 20; group norm of 8 x 32 x 33 x 33 in groups of
4356 elements by a reshape 470, now 66 (Zen 3; of those the quotient is simple).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pullback.loops.ir.affine import summands, terms
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Carried, Const, Expr, Function, Let, Load, Loop, Op, Read, Stmt, Store, Var
from pullback.loops.ir.visit import (
    Rewriter,
    Substitute,
    blocks,
    expressions,
    nodes,
    reads,
    statements,
    subexpressions,
    with_blocks,
)
from pullback.loops.schedule.cost import computed, cost, operations
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.space import extent_of

from .simplify import simplify
from .split import MAX_OPS
from .unroll import MAX_ITERATIONS, side_by_side, stored_last

SHORT_PART = 8  # elements: shorter parts are as quick in lanes that jump
LONG = 16 * NOMINAL.vector_bytes // 4  # elements: lanes are compared with their places in shorter parts, too
FILLED_SHARE = 0.75  # of the lanes that the parts of an axis fill, if more is computed than
CHEAP_ADDITIONS = 12  # additions, about: there what is read counts


def delinearize(function: Function) -> Function:
    """The function with such axes as two."""
    pass_ = _Delinearize()
    body = pass_.block(function.body)
    return simplify(Function(function.name, function.buffers, body)) if pass_.changed else function


class _Delinearize:
    def __init__(self) -> None:
        self.changed = False
        self.new = Fresh("d")

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple([new for stmt in body for new in self.stmt(stmt)])

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Loop) and stmt.role == "reduce" and not any(isinstance(s, Loop) for s in stmt.body):
            return self.reduction(stmt)
        if not isinstance(stmt, Loop) or stmt.role != "parallel":
            return (with_blocks(stmt, self.block),)
        if not any(_parallel(stmt.body)):
            return self.loop(with_blocks(stmt, self.block))
        stmt = with_blocks(stmt, self.block)
        assert isinstance(stmt, Loop)
        return self.in_turns(stmt, _guarding(stmt), 2)

    def loop(self, loop: Stmt) -> tuple[Stmt, ...]:
        assert isinstance(loop, Loop)
        part = _part(loop)
        if part is None:
            return self.in_turns(loop, _finding(loop), NOMINAL.vector_bytes // 4)
        self.changed = True
        outer, inner = self.new.var(loop.var), self.new.var(loop.var)
        assert isinstance(loop.extent, Const)
        body = _Parts(loop.var, outer, inner, part).block(loop.body)
        within = self.loop(Loop(inner, const("i64", part), loop.role, body, (), loop.attrs))
        return (Loop(outer, const("i64", loop.extent.value // part), loop.role, within, (), loop.attrs),)

    def reduction(self, loop: Loop) -> tuple[Stmt, ...]:
        """A reduction over two axes as one over each; of pairs, if the parts are long."""
        part, combines = _part(loop), [group.combine for group in loop.carried]
        pairs = not all(isinstance(combine, str) for combine in combines)
        if part is None and not pairs:
            return self.reduced_in_turns(loop)
        if part is None or (pairs and part < LONG) or None in combines:
            return (loop,)
        self.changed = True
        outer, inner = self.new.var(loop.var), self.new.var(loop.var)
        assert isinstance(loop.extent, Const)
        parts = _Parts(loop.var, outer, inner, part)
        around, within = [], []
        for group in loop.carried:
            before, after = (tuple(map(self.new.var, group.vars)) for _ in range(2))
            updates = tuple(map(parts.rewrite, group.updates))
            within.append(Carried(group.vars, tuple(map(Read, before)), updates, after, group.combine))
            around.append(Carried(before, group.inits, tuple(map(Read, after)), group.results, group.combine))
        row = Loop(inner, const("i64", part), loop.role, parts.block(loop.body), tuple(within), loop.attrs)
        extent = const("i64", loop.extent.value // part)
        return (Loop(outer, extent, loop.role, (row,), tuple(around), loop.attrs),)

    def reduced_in_turns(self, loop: Loop) -> tuple[Stmt, ...]:
        """A reduction that makes an array, too, whose elements are of a few kinds: with all kinds in each iteration."""
        turns = _turns(_guarding(loop), loop, NOMINAL.vector_bytes // 4)
        running = {v for group in loop.carried for v in group.vars}
        if turns is None or not any(isinstance(stmt, Store) for stmt in loop.body):
            return (loop,)
        if any(running.intersection(reads(stmt)) for stmt in loop.body):
            return (loop,)
        self.changed = True
        assert isinstance(loop.extent, Const)
        whole, rest = divmod(loop.extent.value, turns)
        between = [tuple(map(self.new.var, group.results)) if rest else group.results for group in loop.carried]
        outer = self.new.var(loop.var)
        first = make("mul", (Read(outer), const("i64", turns)))
        copies: list[Sequence[Stmt]] = []
        updates: list[tuple[Expr, ...]] = [tuple(map(Read, group.vars)) for group in loop.carried]
        for k in range(turns):
            copy = Substitute({loop.var: make("add", (first, const("i64", k)))}, self.new.var)
            for group, values in zip(loop.carried, updates):
                copy.values.update(zip(group.vars, values))
            copies.append(copy.block(loop.body))
            updates = [tuple(map(copy.rewrite, group.updates)) for group in loop.carried]
        carried = [
            Carried(group.vars, group.inits, values, results, group.combine)
            for group, values, results in zip(loop.carried, updates, between)
        ]
        body = tuple(stored_last(loop.body, copies))
        result: list[Stmt] = [Loop(outer, const("i64", whole), loop.role, body, tuple(carried), loop.attrs)]
        if rest:
            last = self.new.var(loop.var)
            copy = Substitute({loop.var: make("add", (Read(last), const("i64", whole * turns)))}, self.new.var)
            left = []
            for group, results in zip(loop.carried, between):
                names = tuple(map(self.new.var, group.vars))
                copy.values.update(zip(group.vars, map(Read, names)))
                left.append((names, tuple(map(Read, results)), group))
            tail = copy.block(loop.body)
            groups = [
                Carried(names, inits, tuple(map(copy.rewrite, group.updates)), group.results, group.combine)
                for names, inits, group in left
            ]
            result.append(Loop(last, const("i64", rest), loop.role, tail, tuple(groups), loop.attrs))
        return tuple(result)

    def in_turns(self, loop: Loop, divisors: Iterable[Op], least: int) -> tuple[Stmt, ...]:
        """The loop with all that differ, a few, in each iteration, if `least` are left; and one for the rest."""
        turns = _turns(divisors, loop, least)
        if loop.carried or turns is None:
            return (loop,)
        self.changed = True
        assert isinstance(loop.extent, Const)
        whole, rest = divmod(loop.extent.value, turns)
        outer = self.new.var(loop.var)
        first = make("mul", (Read(outer), const("i64", turns)))
        body = side_by_side(loop, [make("add", (first, const("i64", k))) for k in range(turns)], self.new)
        result: list[Stmt] = [Loop(outer, const("i64", whole), loop.role, tuple(body), (), loop.attrs)]
        if rest:
            last = self.new.var(loop.var)
            here = {loop.var: make("add", (Read(last), const("i64", whole * turns)))}
            tail = Substitute(here, self.new.var).block(loop.body)
            result.append(Loop(last, const("i64", rest), loop.role, tail, (), loop.attrs))
        return tuple(result)


def _parallel(body: Sequence[Stmt]) -> Iterator[bool]:
    return (isinstance(stmt, Loop) and stmt.role == "parallel" for stmt in statements(body))


def _part(loop: Loop) -> int | None:
    """The extent of the inner axis, if there should be two."""
    if not isinstance(loop.extent, Const):
        return None
    divisors = {
        unit
        for stmt in statements((loop,))
        for expr in nodes(stmt)
        if isinstance(expr, Op) and expr.name in ("floordiv", "floormod") and (unit := _unit(expr, loop)) is not None
    }
    if not divisors:
        return None
    part = min(divisors)
    if loop.extent.value % part or any(d % part for d in divisors):
        return None
    lanes = NOMINAL.vector_bytes // 4
    filled = part / (-(-part // lanes) * lanes)
    return part if filled >= FILLED_SHARE or cost(loop.body) <= CHEAP_ADDITIONS else None


def _turns(divisors: Iterable[Op], loop: Loop, least: int) -> int | None:
    """How many kinds of iterations there are, if `least` of each kind and no more than a few, else None."""
    turns = math.lcm(*[d for expr in divisors if (d := _short_divisor(expr, loop.var)) is not None])
    if not isinstance(loop.extent, Const) or loop.extent.value < turns * least:
        return None
    return turns if 1 < turns < SHORT_PART and turns * _work(loop.body) <= MAX_OPS else None


def _finding(loop: Loop) -> Iterator[Op]:
    """The ops by which the statements in a loop find what they load."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Let) and stmt.var.dtype == "i64":
            yield from _ops(nodes(stmt))
        for node in nodes(stmt):
            if isinstance(node, Load):
                yield from _ops(subexpressions((node.index,)))


def _guarding(loop: Loop) -> Iterator[Op]:
    """The ops by which they choose."""
    for stmt in statements(loop.body):
        for node in nodes(stmt):
            if isinstance(node, Op) and node.name in COMPARES:
                yield from _ops(subexpressions((node,)))


def _ops(exprs: Iterable[Expr]) -> Iterator[Op]:
    return (expr for expr in exprs if isinstance(expr, Op))


def _work(body: Sequence[Stmt]) -> int:
    """The ops of straight code of it, as it will be: what is short is unrolled."""
    work = 0
    for stmt in body:
        work += operations(computed(expressions(stmt)))
        times = extent_of(stmt) if isinstance(stmt, Loop) and stmt.role == "reduce" else 1
        work += sum(_work(block) * (times if times <= MAX_ITERATIONS else 1) for block in blocks(stmt))
    return work


def _short_divisor(expr: Op, var: Var) -> int | None:
    """The small number by which an index, or one of its neighbours, is divided."""
    if expr.name not in ("floordiv", "floormod"):
        return None
    divisor = expr.args[1]
    if not isinstance(divisor, Const) or not 1 < divisor.value < SHORT_PART:
        return None
    found, _ = terms(expr.args[0])
    return divisor.value if any(isinstance(term, Read) and term.var is var for term in found) else None


def _unit(expr: Op, loop: Loop) -> int | None:
    """The length of parts of the axis in which a quotient of its index, or of that and others, is the same."""
    divisor = expr.args[1]
    if not isinstance(divisor, Const) or divisor.value < SHORT_PART or not isinstance(loop.extent, Const):
        return None
    found, constant = summands(expr.args[0])
    own = [factor for x, factor in found if isinstance(x, Read) and x.var is loop.var]
    if own != [1]:
        return None
    unit = math.gcd(divisor.value, constant, *(factor for x, factor in found if factor != 1))
    if len(found) == 1 and not constant:
        return divisor.value
    alone = sum(factor == 1 for _, factor in found) == 1
    return unit if alone and SHORT_PART <= unit < loop.extent.value and loop.extent.value % unit == 0 else None


class _Parts(Rewriter):
    """Puts outer * part + inner for an index, and for its quotients and remainders what these make of them."""

    def __init__(self, var: Var, outer: Var, inner: Var, part: int) -> None:
        super().__init__()
        self.var, self.outer, self.inner, self.part = var, outer, inner, part
        self.index = self._sum(Read(outer))

    def _sum(self, outer: Expr) -> Expr:
        return make("add", (make("mul", (outer, const("i64", self.part))), Read(self.inner)))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read):
            return self.index if expr.var is self.var else expr
        if not isinstance(expr, Op) or expr.name not in ("floordiv", "floormod") or expr.args[0] is not self.index:
            return expr
        divisor = expr.args[1]
        if not isinstance(divisor, Const) or divisor.value % self.part:
            return expr
        times = divisor.value // self.part
        outer: Expr = Read(self.outer)
        if expr.name == "floordiv":
            return outer if times == 1 else make("floordiv", (outer, const("i64", times)))
        return Read(self.inner) if times == 1 else self._sum(make("floormod", (outer, const("i64", times))))
