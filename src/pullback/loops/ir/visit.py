"""Walking over loop IR: operands, statements, what is read and written. The one place that knows each node's fields.

Facts of statements are found once per compilation (`fact`), and passes keep what they do not change as the same
objects. Measured: with `compiler/graph/fuse/access.py` asked once for equal equations, what comes before emission took
3.5 s of processor time over `benchmarks/compile_programs.py`, now 2.2, with the same code.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

from pullback._ext import _core

from .fold import make
from .ir import (
    Address,
    Buffer,
    Call,
    Carried,
    Const,
    Expr,
    HostCall,
    If,
    Kernel,
    Lambda,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Run,
    Stmt,
    Store,
    Var,
    While,
)

T = TypeVar("T")
U = TypeVar("U")
MAX_FACTS = 1 << 18  # statements of which something is kept


_facts: list[Any] = []
_dictionaries: list[Any] = []


def fact(function: Callable[[T], U]) -> Callable[[T], U]:
    """Decorator of functions of one statement or kernel, which each pass asks anew: what they say is kept until
    `forget_facts`."""
    cached = functools.lru_cache(maxsize=MAX_FACTS)(function)
    _facts.append(cached)
    return cached


def forgotten_with_facts(known: T) -> T:
    """`known`, a dictionary that is emptied with them."""
    _dictionaries.append(known)
    return known


def forget_facts() -> None:
    """Let go of what is known of statements: a program has been compiled."""
    for cached in _facts:
        cached.cache_clear()
    for known in _dictionaries:
        known.clear()


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Direct subexpressions."""
    if isinstance(expr, Op):
        return expr.args
    return (expr.index,) if isinstance(expr, Load) else ()


def function_of(op: Op) -> Lambda | None:
    """The function that computes an op; None for most."""
    return next((value for key, value in op.attrs if key == "function"), None) if op.attrs else None


def subexpressions(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Every expression reachable from `roots`, once each, operands before users."""
    if len(roots) == 1 and (type(roots[0]) is Const or type(roots[0]) is Read):
        return (roots[0],)
    return _core.post_order(tuple(roots), Op, Load)


def reached(roots: Sequence[Expr], next_of: Callable[[Expr], Sequence[Expr]]) -> Iterator[Expr]:
    """Every expression that is reached from `roots`, once each, where `next_of` says what each leads to."""
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            stack += next_of(expr)


def outside_indices(roots: Sequence[Expr]) -> Iterator[Expr]:
    """Every expression that `roots` are computed of, once each, but for what says where loads read."""
    return reached(roots, lambda expr: expr.args if isinstance(expr, Op) else ())


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement (not in the statements inside it)."""
    match stmt:
        case Let():
            return (stmt.value,)
        case Store():
            return (stmt.index, stmt.value)
        case Loop():
            exprs: list[Expr] = [stmt.extent]
            for group in stmt.carried:
                exprs += [*group.inits, *group.updates]
            return tuple(exprs)
        case While() | If():
            return (stmt.cond,)
        case Call():
            return tuple(arg.offset if isinstance(arg, Address) else arg for arg in stmt.args)
        case Run():
            return stmt.args
    return ()


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists inside a statement."""
    match stmt:
        case Loop():
            return (stmt.body,)
        case While():
            return (stmt.body_cond, stmt.body)
        case If():
            return (stmt.then, stmt.orelse)
    return ()


def statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Every statement of `body`, outside in, in order."""
    found: list[Stmt] = []  # nested generators would hand each statement through every loop around it
    for stmt in body:
        found.append(stmt)
        kind = type(stmt)
        if kind is not Let and kind is not Store:
            found += _inside(stmt)
    return iter(found)


@fact
def _inside(stmt: Stmt) -> tuple[Stmt, ...]:
    return tuple([inner for block in blocks(stmt) for inner in statements(block)])


def with_blocks(stmt: Stmt, block: Callable[..., tuple[Stmt, ...]], *given: Any) -> Stmt:
    """The statement with `block(statements, *given)` for each statement list inside it; itself if it has none."""
    match stmt:
        case Loop():
            return Loop(stmt.var, stmt.extent, stmt.role, block(stmt.body, *given), stmt.carried, stmt.attrs)
        case While():
            return While(block(stmt.body_cond, *given), stmt.cond, block(stmt.body, *given))
        case If():
            return If(stmt.cond, block(stmt.then, *given), block(stmt.orelse, *given))
    return stmt


def with_nests(body: Sequence[Stmt], nest: Callable[[Loop], Sequence[Stmt]]) -> tuple[Stmt, ...]:
    """The statements with each nest, the outermost loop that is not sequential, replaced by what `nest(loop)` gives."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.role != "sequential":
            result += nest(stmt)
        else:
            result.append(with_blocks(stmt, with_nests, nest))
    return tuple(result)


def bound(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement itself binds, for itself or for what follows."""
    match stmt:
        case Let():
            return (stmt.var,)
        case Loop():
            return (stmt.var, *(v for group in stmt.carried for v in (*group.vars, *group.results)))
        case Call():
            return () if stmt.result is None else (stmt.result,)
    return ()


@fact
def nodes(stmt: Stmt) -> tuple[Expr, ...]:
    """Every expression of a statement itself, once each, operands before users."""
    return subexpressions(expressions(stmt))


@fact
def reads(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that the expressions of a statement itself read, once each, in the order of `nodes`."""
    return tuple(dict.fromkeys([expr.var for expr in nodes(stmt) if type(expr) is Read]))  # type: ignore[attr-defined]


@fact
def loads(stmt: Stmt) -> Set[Buffer]:
    """Buffers that a statement reads directly, calls included."""
    found = {expr.buffer for expr in nodes(stmt) if isinstance(expr, Load)}
    return found | _passed(stmt)


def stores(stmt: Stmt) -> Set[Buffer]:
    """Buffers that a statement may write directly, calls included."""
    kind = type(stmt)
    return {stmt.buffer} if kind is Store else _passed(stmt) if kind is not Let else frozenset()  # type: ignore


def accesses(stmt: Stmt) -> Iterator[tuple[Buffer, Expr]]:
    """(buffer, index) of all that a statement itself loads and stores, calls left out."""
    for node in access_nodes(stmt):
        yield node.buffer, node.index


@fact
def access_nodes(stmt: Stmt) -> tuple[Load | Store, ...]:
    """What a statement itself loads, and the statement if it stores."""
    found: list[Load | Store] = [expr for expr in nodes(stmt) if isinstance(expr, Load)]
    return (*found, stmt) if isinstance(stmt, Store) else tuple(found)


def _passed(stmt: Stmt) -> set[Buffer]:
    match stmt:
        case Call():
            return {arg.buffer for arg in stmt.args if isinstance(arg, Address)}
        case HostCall() | Run():
            return set(stmt.buffers)
    return set()


def local_uses(body: Sequence[Stmt]) -> Counter[Buffer]:
    """How many statements load or store each local buffer."""
    found: Counter[Buffer] = Counter()
    for stmt in body:
        for buffer, count in _local_uses(stmt):
            found[buffer] += count
    return found


@fact
def _local_uses(stmt: Stmt) -> tuple[tuple[Buffer, int], ...]:
    found = Counter([buffer for buffer in loads(stmt) | stores(stmt) if buffer.space == "local"])
    for block in blocks(stmt):
        found += local_uses(block)
    return tuple(found.items())


def shares_locals(loop: Stmt, uses: Counter[Buffer]) -> bool:
    """Whether a loop has local buffers in common with what is outside of it; `uses` are those of the whole function."""
    return any(count < uses[buffer] for buffer, count in local_uses((loop,)).items())


def loaded(body: Sequence[Stmt]) -> set[Buffer]:
    """Buffers that `body` may read anywhere inside."""
    return set().union(*[_loaded(stmt) for stmt in body])


@fact
def _loaded(stmt: Stmt) -> Set[Buffer]:
    inner = blocks(stmt)
    return set(loads(stmt)).union(*map(loaded, inner)) if inner else loads(stmt)


def stored(body: Sequence[Stmt]) -> set[Buffer]:
    """Buffers that `body` may write anywhere inside."""
    found: set[Buffer] = set()
    for stmt in body:
        kind = type(stmt)
        if kind is Store:
            found.add(stmt.buffer)  # type: ignore[attr-defined]
        elif kind is not Let:
            found |= _stored(stmt)
    return found


@fact
def _stored(stmt: Stmt) -> Set[Buffer]:
    return set(stores(stmt)).union(*map(stored, blocks(stmt)))


def accessed(body: Sequence[Stmt]) -> Iterator[tuple[Buffer, Expr]]:
    """(buffer, index) of all that `body` loads and stores anywhere inside, calls left out."""
    for stmt in statements(body):
        yield from accesses(stmt)


def kernels(body: Sequence[Stmt]) -> list[Kernel]:
    """The kernels that `body` runs, in the order of their first use."""
    return list(dict.fromkeys(stmt.kernel for stmt in statements(body) if isinstance(stmt, Run)))


def free_vars(body: Sequence[Stmt]) -> list[Var]:
    """Variables that `body` reads but does not bind, in the order of their first use."""
    inside = {v for stmt in statements(body) for v in bound(stmt)}
    found: dict[Var, None] = {}
    for stmt in statements(body):
        for var in reads(stmt):
            if var not in inside:
                found[var] = None
    return list(found)


class Rewriter:
    """Copies statements while replacing expressions and statements; unchanged parts are kept as the same objects.

    Subclasses override `expr` (called on each expression after its operands were rewritten) and `stmt` (called on each
    statement after what is inside it; returns the statements that take its place).
    """

    def __init__(self) -> None:
        self._memo: dict[Expr, Expr] = {}

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        return [stmt]

    def enter(self, var: Var, extent: Expr) -> None:
        """Called before the body of a loop is rewritten."""

    def rewrite(self, root: Expr) -> Expr:
        """The rewritten expression."""
        memo = self._memo
        done = memo.get(root)
        if done is not None:
            return done
        for expr in subexpressions((root,)):
            if expr in memo:
                continue
            node: Any = expr
            kind = type(expr)
            if kind is Op:
                for x in node.args:
                    if memo[x] is not x:
                        node = make(node.name, tuple([memo[x] for x in node.args]), node.dtype, node.attrs)
                        break
            elif kind is Load and (index := memo[node.index]) is not node.index:
                node = Load(node.buffer, index)
            memo[expr] = self.expr(node)
        return memo[root]

    def _group(self, group: Carried, inits: tuple[Expr, ...], updates: tuple[Expr, ...]) -> Carried:
        if _same(inits, group.inits) and _same(updates, group.updates):
            return group
        return Carried(group.vars, inits, updates, group.results, group.combine)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The rewritten statements."""
        result: list[Stmt] = []
        for stmt in body:
            result += self.stmt(self.inside(stmt))
        return tuple(result)

    def inside(self, stmt: Stmt) -> Stmt:
        """`stmt` with its expressions and inner statements rewritten; itself if they are the same."""
        r = self.rewrite
        match stmt:
            case Let():
                value = r(stmt.value)
                return stmt if value is stmt.value else Let(stmt.var, value)
            case Store():
                index, value = r(stmt.index), r(stmt.value)
                return stmt if index is stmt.index and value is stmt.value else Store(stmt.buffer, index, value)
            case Loop():
                extent = r(stmt.extent)
                inits = [tuple(map(r, group.inits)) for group in stmt.carried]
                self.enter(stmt.var, extent)
                body = self.block(stmt.body)
                carried = tuple(
                    [self._group(group, init, tuple(map(r, group.updates))) for group, init in zip(stmt.carried, inits)]
                )
                if extent is stmt.extent and _same(body, stmt.body) and _same(carried, stmt.carried):
                    return stmt
                return Loop(stmt.var, extent, stmt.role, body, carried, stmt.attrs)
            case While():
                body_cond = self.block(stmt.body_cond)
                return While(body_cond, r(stmt.cond), self.block(stmt.body))
            case If():
                return If(r(stmt.cond), self.block(stmt.then), self.block(stmt.orelse))
            case Call():
                args = tuple(Address(a.buffer, r(a.offset)) if isinstance(a, Address) else r(a) for a in stmt.args)
                return Call(stmt.symbol, args, stmt.result)
            case Run():
                return Run(stmt.kernel, stmt.buffers, tuple(map(r, stmt.args)))
        return stmt


def _same(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(new) == len(old) and all(map(is_, new, old))


def rebuilt(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """`expr` with other operands, folded; the same object if they are the same."""
    if isinstance(expr, Op):
        if all(map(is_, args, expr.args)):
            return expr
        return make(expr.name, args, expr.dtype, expr.attrs)
    if isinstance(expr, Load):
        return expr if args[0] is expr.index else Load(expr.buffer, args[0])
    return expr


class WithoutStores(Rewriter):
    """Leaves out stores to some buffers."""

    def __init__(self, buffers: Set[Buffer]) -> None:
        super().__init__()
        self._buffers = buffers

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        return [] if isinstance(stmt, Store) and stmt.buffer in self._buffers else [stmt]


class Substitute(Rewriter):
    """Replaces readings of variables; variables bound inside are renamed afresh if `rename` is given."""

    def __init__(self, values: Mapping[Var, Expr], rename: Callable[[Var], Var] | None = None) -> None:
        super().__init__()
        self.values = dict(values)
        self.rename = rename

    def expr(self, expr: Expr) -> Expr:
        return self.values.get(expr.var, expr) if isinstance(expr, Read) else expr

    def inside(self, stmt: Stmt) -> Stmt:
        if self.rename is not None:
            for var in bound(stmt):
                self.values[var] = Read(self.rename(var))
        stmt = super().inside(stmt)
        if self.rename is None:
            return stmt

        def new(var: Var) -> Var:
            read = self.values[var]
            assert isinstance(read, Read)
            return read.var

        match stmt:
            case Let():
                return Let(new(stmt.var), stmt.value)
            case Store():  # copies may stand side by side, and are told apart by identity
                return Store(stmt.buffer, stmt.index, stmt.value)
            case Loop():
                carried = tuple(
                    replace(group, vars=tuple(map(new, group.vars)), results=tuple(map(new, group.results)))
                    for group in stmt.carried
                )
                return Loop(new(stmt.var), stmt.extent, stmt.role, stmt.body, carried, stmt.attrs)
            case Call():
                return Call(stmt.symbol, stmt.args, None if stmt.result is None else new(stmt.result))
        return stmt


class WrittenOut(Rewriter):
    """Puts places (i64, found without memory) where their names are read, so that strides can be read off indices."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[Var, Expr] = {}

    def expr(self, expr: Expr) -> Expr:
        return self._values.get(expr.var, expr) if isinstance(expr, Read) else expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Let) and stmt.var.dtype == "i64" and not loads(stmt):
            self._values[stmt.var] = stmt.value
            return []
        return [stmt]
