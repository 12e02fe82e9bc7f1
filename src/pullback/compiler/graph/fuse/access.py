"""At which indices a pointwise operation reads its operands, found by running its lowering rule on symbolic indices.

`Interner` makes structurally equal index expressions one object, so that two accesses are the same exactly if their
index tuples are equal. `accesses` runs the `at` rule of an equation at an index and reports, per operand, the index
it reads there, and whether it does so always or only in one branch of a `select` (a lazy access, whose index may lie
outside).

Why: equal equations are asked once at which indices they read, a part of what made all that comes before emission take
2.2 s instead of 3.5 (see `fact` in loops/ir/visit.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.compiler.graph.simplify.cse import params_key
from pullback.core.jaxpr import JaxprEqn
from pullback.loops.ir import NAME_OF_NP_DTYPE, Builder, Const, Expr, Load, Op, Read, Var
from pullback.loops.ir.fold import const_key
from pullback.loops.ir.visit import subexpressions
from pullback.util.record import frozen_record

Index = tuple[Expr, ...]


def ir_dtype(dtype: Any) -> str:
    """The loop IR type of a NumPy dtype; TypeError names one that programs cannot hold."""
    try:
        return NAME_OF_NP_DTYPE[dtype]
    except KeyError:
        raise TypeError(f"a compiled program cannot hold values of dtype {dtype}") from None


class Interner:
    """Gives one object for each structure of expression."""

    def __init__(self) -> None:
        self._table: dict[Any, Expr] = {}
        self._done: dict[int, Expr] = {}
        self._keep: list[Expr] = []  # ids stay valid only while their objects live
        self._axes: list[Expr] = []
        self.accesses: dict[Any, tuple[list[Access], set[Var]]] = {}  # those that are known, by what they depend on

    def axis(self, number: int) -> Expr:
        """The symbolic index along an axis of an iteration space. All spaces have the same ones, as an index always
        belongs to a known group: so what is read at an index is found once for all equal equations.
        """
        while len(self._axes) <= number:
            self._axes.append(self(Read(Var(f"a{len(self._axes)}", "i64"))))
        return self._axes[number]

    def __call__(self, expr: Expr) -> Expr:
        """The representative of `expr`."""
        done = self._done.get(id(expr))
        if done is not None:
            return done
        match expr:
            case Read():
                key: Any = id(expr.var)
            case Const():
                key = const_key(expr)
            case Op():
                args = tuple(self(arg) for arg in expr.args)
                key = (expr.name, expr.dtype, tuple(map(id, args)), expr.attrs)
                if any(new is not old for new, old in zip(args, expr.args)) and key not in self._table:
                    expr = Op(expr.name, expr.dtype, args, expr.attrs)
            case Load():
                index = self(expr.index)
                key = (id(expr.buffer), id(index))
            case _:
                raise TypeError(f"not an expression: {expr!r}")
        found = self._table.setdefault(key, expr)
        self._done[id(expr)] = found
        self._keep.append(expr)
        return found


@frozen_record
class Access:
    """Operand `operand` of an equation is read at `index`; `lazy`: only in a branch of a select; `computed`: the index
    is computed from values of operands.
    """

    operand: int
    index: Index
    lazy: bool
    computed: bool


class SymbolicContext:
    """What an `at` rule sees while its accesses are recorded; operands' values are opaque variables."""

    def __init__(self, b: Builder, eqn: JaxprEqn, intern: Interner) -> None:
        self.b = b
        self.params = eqn.params
        self.in_avals = [v.aval for v in eqn.invars]
        self.out_aval = eqn.outvars[0].aval
        self.recorded: dict[tuple, Read] = {}
        self._intern = intern

    def operand(self, k: int, index: Sequence[Any]) -> Expr:
        """A variable that stands for the k-th operand's value at `index`."""
        aval = self.in_avals[k]
        canonical = canonical_index(self.b, self._intern, aval.shape, index)
        key = (k, canonical)
        read = self.recorded.get(key)
        if read is None:
            read = self.recorded[key] = Read(Var("operand", ir_dtype(aval.dtype)))
        return read


def canonical_index(b: Builder, intern: Interner, shape: tuple[int, ...], index: Sequence[Any]) -> Index:
    """`index` with interned expressions and 0 along axes of size 1; ValueError if the rank does not fit."""
    if len(index) != len(shape):
        raise ValueError(f"an index of {len(index)} component(s) for an array of shape {shape}")
    zero = intern(b.index(0))
    return tuple(zero if n == 1 else intern(b.index(i)) for i, n in zip(index, shape))


def accesses(b: Builder, intern: Interner, eqn: JaxprEqn, index: Index) -> tuple[list[Access], set[Var]]:
    """(accesses of the operands, variables of the index that the value itself is computed from).

    Where an index is computed from what an operand holds, only equations of the same operands read at the same one.
    """
    params = params_key(eqn)
    if params is None:
        return _accesses(b, intern, eqn, index)
    key: Any = (eqn.primitive, params, tuple([v.aval for v in eqn.invars]), eqn.outvars[0].aval, index)
    found = intern.accesses.get(key)
    if found is not None and any([access.computed for access in found[0]]):
        key = (key, *map(id, eqn.invars))
        found = intern.accesses.get(key)
    if found is None:
        found = intern.accesses[key] = _accesses(b, intern, eqn, index)
    return found


def _accesses(b: Builder, intern: Interner, eqn: JaxprEqn, index: Index) -> tuple[list[Access], set[Var]]:
    ctx = SymbolicContext(b, eqn, intern)
    b.out_dtype = ir_dtype(ctx.out_aval.dtype)
    value = eqn.primitive.lower.at(ctx, index)
    always, direct = _always_read(value)
    values = {read.var for read in ctx.recorded.values()}
    found = []
    for (k, at), read in reversed(ctx.recorded.items()):  # later ones may have indices computed from earlier ones
        inside = variables(at)
        if read.var in always:
            always |= inside
        found.append(Access(k, at, read.var not in always, not values.isdisjoint(inside)))
    return found, direct


def _always_read(value: Expr) -> tuple[set[Var], set[Var]]:
    """Variables read whatever the selects choose, and all variables read."""
    always: set[Var] = set()
    every: set[Var] = set()
    stack: list[tuple[Expr, bool]] = [(value, False)]
    seen: set[tuple[int, bool]] = set()
    while stack:
        expr, lazy = stack.pop()
        if (id(expr), lazy) in seen:
            continue
        seen.add((id(expr), lazy))
        if isinstance(expr, Read):
            every.add(expr.var)
            if not lazy:
                always.add(expr.var)
        elif isinstance(expr, Load):
            stack.append((expr.index, lazy))
        elif isinstance(expr, Op):
            branches = expr.args[1:] if expr.name == "select" else ()
            stack.extend((arg, lazy or any(arg is branch for branch in branches)) for arg in expr.args)
    return always, every


def variables(index: Index) -> set[Var]:
    """The variables that the components of an index depend on."""
    return {expr.var for expr in subexpressions(index) if isinstance(expr, Read)}
