"""Checks a function: types, scopes, roles, buffers. Run after each pass under PULLBACK_CHECK, and always in tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .ir import (
    Address,
    Buffer,
    Call,
    Carried,
    Combine,
    Const,
    Expr,
    Function,
    HostCall,
    If,
    Kernel,
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
from .ops import COMBINES, result_dtype
from .print import stmt_text
from .types import DTYPES
from .visit import expressions, forgotten_with_facts, kernels, loaded, stored, subexpressions

ROLES = ("parallel", "reduce", "scan", "sequential", "vector", "threads")
CONTEXT = 5  # statements shown on each side of a mistake


# Expressions that are right wherever their buffers are known and their variables bound, as passes pass most of them on.
_right: dict[int, Expr] = forgotten_with_facts({})


class CheckError(TypeError):
    """A function breaks a rule of the loop IR; the message shows the statement among its neighbours."""


def check(function: Function, after: str = "") -> None:
    """Raises CheckError for the first mistake in `function`; `after` names the pass that made it."""
    _Checker(function, after).run()


def _at_most(extent: Expr) -> float:
    """How many iterations a loop of this extent has at most, as far as its form says."""
    if isinstance(extent, Const):
        return extent.value  # type: ignore[return-value]
    if isinstance(extent, Op) and extent.name == "min":
        return min(map(_at_most, extent.args))
    return math.inf


class _Checker:
    def __init__(self, function: Function, after: str) -> None:
        self.function = function
        self.after = after
        self.buffers = set(function.buffers)
        self.bound: set[Var] = set()  # ever, since a variable is bound once
        self.scope: set[Var] = set()
        self.path: list[tuple[Sequence[Stmt], int]] = []
        self.shared: dict[Var, int] = {}  # variables of the parallel loops around, by bits in `follows`
        self.follows: dict[Var, int] = {}  # which of them a variable depends on

    def run(self) -> None:
        names: set[str] = set()
        for buffer in self.function.buffers:
            if buffer.name in names:
                self.fail(f"two buffers are called {buffer.name!r}")
            names.add(buffer.name)
            self.buffer(buffer)
        for kernel in kernels(self.function.body):
            self.kernel(kernel)
        self.block(self.function.body, parallel=False)

    def kernel(self, kernel: Kernel) -> None:
        """A kernel sees its own buffers and parameters only."""
        inside = _Checker(Function(f"{self.function.name}.{kernel.name}", kernel.buffers, kernel.body), self.after)
        locals_ = (loaded(kernel.body) | stored(kernel.body)) & self.buffers
        inside.buffers |= {buffer for buffer in locals_ if buffer.space == "local"}
        for var in kernel.params:
            inside.bind(var)
        inside.run()

    def fail(self, problem: str) -> None:
        """Raises with the statements around the current one."""
        where = f" after {self.after}" if self.after else ""
        lines = [f"{self.function.name}{where}: {problem}"]
        if self.path:
            body, position = self.path[-1]
            for k in range(max(0, position - CONTEXT), min(len(body), position + CONTEXT)):
                text = stmt_text(body[k], 6)
                mark = "> " if k == position else "  "
                lines += [mark + line for line in text.split("\n")]
        raise CheckError("\n".join(lines))

    def buffer(self, buffer: Buffer) -> None:
        if buffer.dtype not in DTYPES:
            self.fail(f"buffer {buffer.name!r} has the unknown type {buffer.dtype!r}")
        if buffer.size < 0:
            self.fail(f"buffer {buffer.name!r} has {buffer.size} elements")
        if (buffer.space == "constant") != (buffer.data is not None):
            self.fail(f"buffer {buffer.name!r}: constants have data, other buffers have none")
        if buffer.data is not None and buffer.data.size != buffer.size:
            self.fail(f"constant {buffer.name!r} has {buffer.size} element(s) but {buffer.data.size} value(s)")

    # Expressions.

    def expr(self, root: Expr, dtype: str | None = None, what: str = "") -> None:
        for expr in subexpressions((root,)):
            if type(expr) is Read:
                if expr.var not in self.scope:
                    self.fail(f"{expr.var.name} is read where it is not defined")
                continue
            if type(expr) is Load:
                self.known(expr.buffer)
            if id(expr) not in _right:
                self._node(expr)
                _right[id(expr)] = expr
        if dtype is not None and root.dtype != dtype:
            self.fail(f"{what} must be {dtype}, got {root.dtype}")

    def _node(self, expr: Expr) -> None:
        match expr:
            case Const():
                if expr.dtype not in DTYPES:
                    self.fail(f"constant {expr.value!r} has the unknown type {expr.dtype!r}")
            case Load():
                if expr.index.dtype != "i64":
                    self.fail(f"index of {expr.buffer.name} must be i64, got {expr.index.dtype}")
            case Op():
                try:
                    wanted = result_dtype(expr.name, tuple(arg.dtype for arg in expr.args), expr.dtype)
                except TypeError as error:
                    self.fail(str(error))
                else:
                    if expr.dtype != wanted:
                        self.fail(f"{expr.name} gives {wanted}, but the op says {expr.dtype}")
            case _:
                self.fail(f"not an expression: {type(expr).__name__}")

    def known(self, buffer: Buffer) -> None:
        if buffer not in self.buffers:
            self.fail(f"buffer {buffer.name!r} is not one of the function")

    def bind(self, var: Var) -> None:
        if var in self.bound:
            self.fail(f"{var.name} is bound twice")
        self.bound.add(var)
        self.scope.add(var)

    # Statements.

    def block(self, body: Sequence[Stmt], parallel: bool, keep: bool = False) -> None:
        outside = set(self.scope)
        for k, stmt in enumerate(body):
            self.path.append((body, k))
            self.stmt(stmt, parallel)
            self.path.pop()
        if not keep:
            self.scope = outside

    def stmt(self, stmt: Stmt, parallel: bool) -> None:
        match stmt:
            case Let():
                self.expr(stmt.value, stmt.var.dtype, f"value of {stmt.var.name}")
                self.bind(stmt.var)
                self.follows[stmt.var] = self._followed(stmt.value)
            case Store():
                self.known(stmt.buffer)
                if stmt.buffer.space in ("input", "constant"):
                    self.fail(f"store to {stmt.buffer.name}, which is an {stmt.buffer.space}")
                self.expr(stmt.index, "i64", f"index of {stmt.buffer.name}")
                self._apart(stmt)
                self.expr(stmt.value, stmt.buffer.dtype, f"value stored to {stmt.buffer.name}")
            case Loop():
                self._loop(stmt, parallel)
            case While():
                outside = set(self.scope)
                self.block(stmt.body_cond, parallel, keep=True)
                self.expr(stmt.cond, "bool", "condition of while")
                self.block(stmt.body, parallel)
                self.scope = outside
            case If():
                self.expr(stmt.cond, "bool", "condition of if")
                before, followed = self.shared, self._followed(stmt.cond)
                self.shared = {var: bit for var, bit in before.items() if not followed & bit}  # not in each iteration
                self.block(stmt.then, parallel)
                self.block(stmt.orelse, parallel)
                self.shared = before
            case Call():
                for expr in expressions(stmt):
                    self.expr(expr)
                for arg in stmt.args:
                    if isinstance(arg, Address):
                        self.known(arg.buffer)
                        self.expr(arg.offset, "i64", f"offset into {arg.buffer.name}")
                if stmt.result is not None:
                    self.bind(stmt.result)
            case HostCall():
                if parallel:
                    self.fail("a host call inside a parallel, reduce or vector loop")
                for buffer in stmt.buffers:
                    self.known(buffer)
            case Run():
                self._run(stmt, parallel)
            case _:
                self.fail(f"not a statement: {type(stmt).__name__}")

    def _followed(self, expr: Expr) -> int:
        found = 0
        if self.shared:
            for each in subexpressions((expr,)):
                if isinstance(each, Read):
                    found |= self.follows.get(each.var, 0)
        return found

    def _apart(self, store: Store) -> None:
        """Iterations of parallel loops run at the same time, so each stores to elements of its own."""
        if not self.shared or store.buffer.space == "local":
            return
        followed = self._followed(store.index)
        for var, bit in self.shared.items():
            if not followed & bit:
                self.fail(
                    f"each iteration of the parallel loop {var.name} stores to one element of {store.buffer.name}"
                )

    def _run(self, stmt: Run, parallel: bool) -> None:
        kernel = stmt.kernel
        if parallel:
            self.fail(f"kernel {kernel.name} is run inside a parallel, reduce or vector loop")
        for buffer in stmt.buffers:
            self.known(buffer)
        if len(set(stmt.buffers)) != len(stmt.buffers):
            self.fail(f"kernel {kernel.name} is given one buffer twice")
        for what, given, wanted in (
            ("buffers", [(b.dtype, b.size) for b in stmt.buffers], [(b.dtype, b.size) for b in kernel.buffers]),
            ("arguments", [e.dtype for e in stmt.args], [v.dtype for v in kernel.params]),
        ):
            if given != wanted:
                self.fail(f"kernel {kernel.name} has {what} {wanted}, got {given}")
        for arg in stmt.args:
            self.expr(arg)

    def _loop(self, loop: Loop, parallel: bool) -> None:
        if loop.role not in ROLES:
            self.fail(f"loop {loop.var.name} has the unknown role {loop.role!r}; known: {', '.join(ROLES)}")
        self.expr(loop.extent, "i64", f"extent of loop {loop.var.name}")
        if loop.carried and loop.role in ("parallel", "threads"):
            self.fail(f"loop {loop.var.name} is {loop.role}, so it cannot carry values")
        for group in loop.carried:
            self._inits(loop, group)
        outside = set(self.scope)
        if loop.var.dtype != "i64":
            self.fail(f"index {loop.var.name} must be i64, got {loop.var.dtype}")
        self.bind(loop.var)
        for group in loop.carried:
            for var in group.vars:
                self.bind(var)
        before = self.shared
        extent = _at_most(loop.extent)
        if extent == 0:  # nothing in it is ever run
            self.shared = {}
        elif loop.role in ("parallel", "threads") and extent > 1:
            bit = 1 << len(self.bound)
            self.shared = {**before, loop.var: bit}
            self.follows[loop.var] = bit
        self.block(loop.body, parallel or loop.role not in ("scan", "sequential"), keep=True)
        self.shared = before
        for group in loop.carried:
            for var, update in zip(group.vars, group.updates):
                self.expr(update, var.dtype, f"update of {var.name}")
        self.scope = outside
        for group in loop.carried:
            for var, result in zip(group.vars, group.results):
                if result.dtype != var.dtype:
                    self.fail(f"result {result.name} is {result.dtype}, but {var.name} is {var.dtype}")
                self.bind(result)

    def _inits(self, loop: Loop, group: Carried) -> None:
        sizes = {len(group.vars), len(group.inits), len(group.updates), len(group.results)}
        if len(sizes) != 1:
            self.fail(f"loop {loop.var.name} carries a group with parts of different lengths")
        for var, init in zip(group.vars, group.inits):
            self.expr(init, var.dtype, f"init of {var.name}")
        if group.combine is None:
            if loop.role in ("reduce", "scan", "vector"):
                self.fail(f"loop {loop.var.name} is {loop.role}: what it carries needs a combining function")
        elif isinstance(group.combine, Combine):
            self._combine(group.combine, group)
        elif group.combine not in COMBINES or len(group.vars) != 1:
            self.fail(f"cannot combine {len(group.vars)} value(s) by {group.combine!r}; known: {', '.join(COMBINES)}")

    def _combine(self, combine: Combine, group: Carried) -> None:
        wanted = [var.dtype for var in group.vars]
        for side in (combine.left, combine.right):
            if [var.dtype for var in side] != wanted:
                self.fail(f"the combining function takes {[v.dtype for v in side]}, the group is {wanted}")
        if [expr.dtype for expr in combine.exprs] != wanted:
            self.fail(f"the combining function gives {[e.dtype for e in combine.exprs]}, the group is {wanted}")
        outside = self.scope
        self.scope = outside | set(combine.left) | set(combine.right)
        for expr in combine.exprs:
            self.expr(expr)
        self.scope = outside
        for expr in combine.neutral:
            self.expr(expr)


__all__ = ["CheckError", "check"]
