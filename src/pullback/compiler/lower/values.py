"""The value of a variable at an index: loaded if it is in memory, else computed by asking its operands in turn.

A `Region` is one jaxpr being lowered at one place of the program. Its levels are the loops that are open. A value
that does not depend on the inner loops is bound outside of them; what is used more than once is bound where it is
computed. Values under one branch of a `select` may be loaded from outside of arrays, so they are never bound by a Let.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import Index, Interner, ir_dtype
from pullback.compiler.graph.fuse.groups import Fusion
from pullback.compiler.lower.storage import Storage, offset_of
from pullback.core.jaxpr import JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Pointwise
from pullback.loops.ir import Builder, Const, Expr, Let, Load, Loop, Op, Read, Stmt
from pullback.loops.ir import Var as LoopVar
from pullback.loops.ir.ir import Role

MAX_DEPTH = 24  # operations in one expression
MAX_RECURSION = 100  # operations followed by recursion; those of a longer chain are found first, then computed in order


class Level:
    """One open loop (or the region itself): its statements so far and the values bound in it."""

    __slots__ = ("lazy", "memo", "statements")

    def __init__(self, statements: list[Stmt]) -> None:
        self.statements = statements
        self.memo: dict[tuple[Any, Index], Expr] = {}
        self.lazy: dict[tuple[Any, Index], Expr] = {}


class PointContext:
    """What an `at` rule sees: operands by index."""

    __slots__ = ("_dtype", "_eqn", "_lazy_operands", "_region", "b", "in_avals", "out_aval", "params")

    def __init__(self, region: Region, eqn: JaxprEqn, lazy: bool) -> None:
        self.b = region.b
        self.params = eqn.params
        self.in_avals = [v.aval for v in eqn.invars]
        self.out_aval = eqn.outvars[0].aval
        self._region = region
        self._eqn = eqn
        kind = eqn.primitive.lower
        self._lazy_operands = lazy or not (isinstance(kind, Pointwise) and not may_be_lazy(eqn))
        self._dtype = ir_dtype(self.out_aval.dtype)
        self.b.out_dtype = self._dtype

    def operand(self, k: int, index: Sequence[Any]) -> Expr:
        """The k-th operand's value at `index`."""
        value = self._region.value(self._eqn.invars[k], index, self._lazy_operands)
        self.b.out_dtype = self._dtype
        return value


def may_be_lazy(eqn: JaxprEqn) -> bool:
    """Whether operands may be read at indices that lie outside, under a select."""
    return "inside" not in eqn.primitive.traits


class Region:
    """One jaxpr at one place of the program."""

    def __init__(
        self, b: Builder, intern: Interner, eqns: list[JaxprEqn], fusion: Fusion, statements: list[Stmt]
    ) -> None:
        self.b, self.intern, self.eqns, self.fusion = b, intern, eqns, fusion
        self.memory: dict[Var, Storage] = {}  # where values lie or will lie
        self.ready: set[Var] = set()  # values that are there
        self.levels = [Level(statements)]
        self._level_of_var: dict[LoopVar, int] = {}
        self._level_of_expr: dict[Expr, int] = {}
        self._depths: dict[Expr, int] = {}
        self._canonical: dict[tuple[Any, ...], Index] = {}  # by index and shape: with 0 along axes of size 1
        self._zero = intern(b.index(0))
        self._depth = 0  # elementwise operations on the way to the value that is asked for now

    # Loops.

    @contextmanager
    def loop(self, extent: int, role: Role = "parallel") -> Iterator[Expr]:
        """An open loop; yields its index."""
        var = self.b.var("i", "i64")
        with self.level() as statements:
            self.bind(var)
            yield self.intern(self.b.read(var))
        self.b.emit(Loop(var, self.b.index(extent), role, tuple(statements)))

    @contextmanager
    def level(self) -> Iterator[list[Stmt]]:
        """Collects the statements of a loop body."""
        with self.b.block() as statements:
            self.levels.append(Level(statements))
            try:
                yield statements
            finally:
                self.levels.pop()

    def bind(self, var: LoopVar, level: int | None = None) -> None:
        """`var` is known from the level on (default: the innermost)."""
        self._level_of_var[var] = len(self.levels) - 1 if level is None else level

    # Values.

    def value(self, atom: Any, index: Sequence[Any], lazy: bool = False) -> Expr:
        """The value of an atom at an index."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        where = (tuple(index), atom.aval.shape)
        at = self._canonical.get(where)
        if at is None:
            b, intern, zero = self.b, self.intern, self._zero
            at = tuple([zero if n == 1 else intern(b.index(i)) for i, n in zip(*where)])
            self._canonical[where] = at
        key = (atom, at)
        for level in reversed(self.levels):
            found = level.memo.get(key)
            if found is not None:
                return found
        if lazy and any(not isinstance(i, Const) for i in at):
            for level in reversed(self.levels):
                found = level.lazy.get(key)
                if found is not None:
                    return found
            value = self._compute(atom, at, True)
            self.levels[-1].lazy[key] = value
            return value
        value = self._compute(atom, at, False)
        return self.keep(key, value, self.fusion.users.get(atom, 0) > 1)

    def keep(self, key: tuple[Any, Index], value: Expr, shared: bool) -> Expr:
        """Remember a value at the outermost level where it is known, bound by a Let where that pays."""
        number = self.level_of(value)
        for i in key[1]:
            number = max(number, self.level_of(i))
        level = self.levels[number]
        if not isinstance(value, (Const, Read)):
            inner = number < len(self.levels) - 1
            if inner or shared or number == 0 or self.depth_of(value) > MAX_DEPTH:
                value = self.let_at(number, value)
        level.memo[key] = value
        return value

    def let_at(self, number: int, value: Expr) -> Expr:
        """Bind a value at a level."""
        var = self.b.var("t", value.dtype)
        self.levels[number].statements.append(Let(var, value))
        self.bind(var, number)
        return self.b.read(var)

    def here(self, value: Expr) -> Expr:
        """The value, evaluated at this point of the program."""
        return value if isinstance(value, (Const, Read)) else self.let_at(len(self.levels) - 1, value)

    def store(self, index: Sequence[Expr], variables: Sequence[Var], followed: bool) -> None:
        """Compute all the values at an index, then store them: a store may overwrite what another is computed from.

        Values that other groups of the row, which `followed` says there are, want at the same index stay in registers,
        as do those without memory: computed again, they would be made of what the store has overwritten.
        """
        values = []
        for var in variables:
            value = self.value(var, index)
            if followed or len(variables) > 1 or var not in self.memory:
                value = self.here(value)
                zero = self._zero
                at = tuple(zero if n == 1 else self.intern(i) for i, n in zip(index, var.aval.shape))
                self.levels[-1].memo[var, at] = value  # those that follow read it
            values.append(value)
        for var, value in zip(variables, values):
            storage = self.memory.get(var)
            if storage is not None:
                self.b.store(storage.buffer, offset_of(self.b, storage, index), value)

    def literal(self, atom: Literal) -> Expr:
        """A literal as a constant."""
        value = np.asarray(atom.val)
        return self.b.const(
            ir_dtype(atom.aval.dtype),
            value.astype(atom.aval.dtype).item() if value.dtype != atom.aval.dtype else value.item(),
        )

    def _compute(self, var: Var, at: Index, lazy: bool) -> Expr:
        if var in self.ready:
            storage = self.memory[var]
            return self.b.load(storage.buffer, offset_of(self.b, storage, at))
        number = self.fusion.producer.get(var)
        if number is None:
            raise AssertionError(f"lower: {var} is neither in memory nor computed by an equation")
        eqn = self.eqns[number]
        kind = eqn.primitive.lower
        if isinstance(kind, Elementwise):
            self._depth += 1
            if self._depth > MAX_RECURSION:
                self._compute_chain(eqn, at, lazy)
            operands = []
            for atom in eqn.invars:
                operands.append(self.value(atom, at if atom.aval.shape else (), lazy))
            self._depth -= 1
            self.b.out_dtype = ir_dtype(var.aval.dtype)
            return kind.scalar(self.b, *operands, **eqn.params)
        if isinstance(kind, Pointwise):
            return kind.at(PointContext(self, eqn, lazy), at)
        raise AssertionError(f"lower: the result {var} of {eqn.primitive.name} is wanted before it is in memory")

    def _compute_chain(self, eqn: JaxprEqn, at: Index, lazy: bool) -> None:
        """Compute what the operands of an elementwise operation consist of, as far as that is elementwise, in the
        order in which recursion would.
        """
        stack: list[tuple[Any, Index, bool]] = [(x, at if x.aval.shape else (), False) for x in reversed(eqn.invars)]
        seen: set[tuple[Any, Index]] = set()
        depth, self._depth = self._depth, 0
        while stack:
            atom, index, visited = stack.pop()
            if isinstance(atom, Literal):
                continue
            if visited:
                self.value(atom, index, lazy)
                continue
            number = self.fusion.producer.get(atom)
            if (atom, index) in seen or atom in self.ready or number is None:
                continue
            seen.add((atom, index))
            if isinstance(self.eqns[number].primitive.lower, Elementwise) and not self._is_known(atom, index):
                stack.append((atom, index, True))
                stack += [(x, index if x.aval.shape else (), False) for x in reversed(self.eqns[number].invars)]
        self._depth = depth

    def _is_known(self, atom: Any, index: Index) -> bool:
        at = tuple([self._zero if n == 1 else i for i, n in zip(index, atom.aval.shape)])
        return any((atom, at) in level.memo or (atom, at) in level.lazy for level in self.levels)

    # How deep an expression is, and which loops it depends on.

    def level_of(self, root: Expr) -> int:
        """The innermost level that an expression depends on."""
        memo, depths = self._level_of_expr, self._depths
        done = memo.get(root)
        if done is not None:
            return done
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in memo:
                stack.pop()
                continue
            level, depth = 0, -1
            kind = type(expr)
            if kind is Op or kind is Load:
                missing = False
                for part in expr.args if kind is Op else (expr.index,):  # type: ignore[attr-defined]
                    known = memo.get(part)
                    if known is None:
                        stack.append(part)
                        missing = True
                    elif not missing:
                        if known > level:
                            level = known
                        if depths[part] > depth:
                            depth = depths[part]
                if missing:
                    continue
            elif kind is Read:
                level = self._level_of_var.get(expr.var, 0)  # type: ignore[attr-defined]
            stack.pop()
            memo[expr] = level
            depths[expr] = 1 + depth
        return memo[root]

    def depth_of(self, expr: Expr) -> int:
        """The length of the longest chain of operations in an expression."""
        self.level_of(expr)
        return self._depths[expr]


def split(region: Region, counter: Expr, run: Sequence[int], extents: Sequence[int]) -> dict[int, Expr]:
    """The indices along the axes of a run, from the counter of the one loop over them."""
    b = region.b
    real = [a for a in run if extents[a] != 1]
    index: dict[int, Expr] = {a: b.index(0) for a in run if extents[a] == 1}
    step = 1
    for position, a in enumerate(reversed(real)):
        value = counter if step == 1 else b.floordiv(counter, b.index(step))
        if position < len(real) - 1:
            value = b.floormod(value, b.index(extents[a]))
        index[a] = region.intern(value)
        step *= extents[a]
    return index
