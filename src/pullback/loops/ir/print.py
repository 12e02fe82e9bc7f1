"""Loop IR as text that `parse` reads back, and as a canonical text that equal programs share whatever their names.

    function scale {
      input x: f32[100]
      output y: f32[100]
      parallel i < 100 {
        y[i] = add(mul(x[i], 2.0:f32), 1.0:f32)
      }
    }

i64 arithmetic is infix; other constants carry their type. A subexpression used more than once in a statement is written
once, as a line `%n = ...` ahead of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .ir import (
    Address,
    Buffer,
    Call,
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
from .types import ITEMSIZE
from .visit import expressions, kernels, operands

# Constants up to this size are part of the code; the values of larger ones do not tell programs apart.
EMBEDDED_BYTES = 4096

_INFIX = {"add": "+", "sub": "-", "mul": "*"}


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"({value.real!r},{value.imag!r})"
    return repr(value)


class Printer:
    """Prints one function or part of one; `canonical` numbers buffers and variables in order of appearance.

    Of constants with more elements than `most` the first are printed.
    """

    def __init__(self, canonical: bool = False, most: int | None = None) -> None:
        self.canonical = canonical
        self.most = most
        self.lines: list[str] = []
        self.indent = 0
        self._names: dict[Any, str] = {}
        self._shared: dict[int, str] = {}

    def name(self, item: Var | Buffer) -> str:
        if not self.canonical:
            return item.name
        found = self._names.get(item)
        if found is None:
            found = self._names[item] = f"{'b' if isinstance(item, Buffer) else 'v'}{len(self._names)}"
        return found

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    # Expressions.

    def share(self, roots: Sequence[Expr]) -> None:
        """Writes the lines of subexpressions that `roots` use more than once."""
        self._shared = {}
        uses: dict[int, int] = {}
        order: list[Expr] = []
        seen: set[int] = set()
        stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
        while stack:
            expr, done = stack.pop()
            if done:
                order.append(expr)
                continue
            uses[id(expr)] = uses.get(id(expr), 0) + 1
            if id(expr) not in seen:
                seen.add(id(expr))
                stack.append((expr, True))
                stack.extend((x, False) for x in reversed(operands(expr)))
        depth: dict[int, int] = {}
        for expr in order:
            if isinstance(expr, (Const, Read)):
                continue
            # Long chains are broken up too, so that neither printing nor parsing recurses deeply.
            deep = 1 + max((depth.get(id(x), 0) for x in operands(expr)), default=0)
            if uses[id(expr)] > 1 or deep > 30:
                text = self.expr(expr)
                self._shared[id(expr)] = f"%{len(self._shared)}"
                self.line(f"{self._shared[id(expr)]} = {text}")
                deep = 0
            depth[id(expr)] = deep

    def expr(self, expr: Expr) -> str:
        known = self._shared.get(id(expr))
        if known is not None:
            return known
        match expr:
            case Const():
                return str(expr.value) if expr.dtype == "i64" else f"{_number(expr.value)}:{expr.dtype}"
            case Read():
                return self.name(expr.var)
            case Load():
                return f"{self.name(expr.buffer)}[{self.expr(expr.index)}]"
            case Op():
                if expr.dtype == "i64" and expr.name in _INFIX and not expr.attrs:
                    x, y = (self._operand(arg, expr.name == "mul" or k) for k, arg in enumerate(expr.args))
                    return f"{x} {_INFIX[expr.name]} {y}" if expr.name != "mul" else f"{x}*{y}"
                given = f":{expr.dtype}" if expr.name in ("convert", "bitcast") else ""
                # Who computes an op is no part of what it means.
                given_attrs = [f"{key}={value!r}" for key, value in expr.attrs if key != "function"]
                attrs = "{" + ", ".join(given_attrs) + "}" if given_attrs else ""
                return f"{expr.name}{given}{attrs}({', '.join(map(self.expr, expr.args))})"
        raise TypeError(f"not an expression: {expr!r}")

    def _operand(self, expr: Expr, tight: bool | int) -> str:
        text = self.expr(expr)
        sums = isinstance(expr, Op) and expr.name in ("add", "sub") and id(expr) not in self._shared
        negative = isinstance(expr, Const) and expr.value < 0
        return f"({text})" if (sums and tight) or negative else text

    # Statements.

    def block(self, body: Sequence[Stmt]) -> None:
        self.indent += 1
        for stmt in body:
            self.stmt(stmt)
        self.indent -= 1

    def stmt(self, stmt: Stmt) -> None:
        if not isinstance(stmt, (Loop, While)):
            self.share(expressions(stmt))
        match stmt:
            case Let():
                value = self.expr(stmt.value)
                self.line(f"let {self.name(stmt.var)}: {stmt.var.dtype} = {value}")
            case Store():
                self.line(f"{self.name(stmt.buffer)}[{self.expr(stmt.index)}] = {self.expr(stmt.value)}")
            case Loop():
                self._loop(stmt)
            case While():
                self._while(stmt)
            case If():
                self.line(f"if {self.expr(stmt.cond)} {{")
                self.block(stmt.then)
                if stmt.orelse:
                    self.line("} else {")
                    self.block(stmt.orelse)
                self.line("}")
            case Call():
                args = ", ".join(
                    f"&{self.name(arg.buffer)}[{self.expr(arg.offset)}]" if isinstance(arg, Address) else self.expr(arg)
                    for arg in stmt.args
                )
                result = "" if stmt.result is None else f" -> {self.name(stmt.result)}: {stmt.result.dtype}"
                self.line(f"call {stmt.symbol}({args}){result}")
            case HostCall():
                self.line(f"host {stmt.index}({', '.join(map(self.name, stmt.buffers))})")
            case Run():
                given = [*map(self.name, stmt.buffers), *map(self.expr, stmt.args)]
                self.line(f"run {stmt.kernel.name}({', '.join(given)})")

    def _while(self, stmt: While) -> None:
        self.line("while {")
        self.block(stmt.body_cond)
        self.indent += 1
        self.share((stmt.cond,))
        self.line(f"test {self.expr(stmt.cond)}")
        self.indent -= 1
        self.block(stmt.body)
        self.line("}")

    def _combine(self, combine: str | Combine | None) -> str:
        if combine is None:
            return ""
        if isinstance(combine, str):
            return f" by {combine}"
        left, right = (", ".join(f"{self.name(v)}: {v.dtype}" for v in side) for side in (combine.left, combine.right))
        self._shared = {}
        neutral = f" from ({', '.join(map(self.expr, combine.neutral))})" if combine.neutral else ""
        return f" by ({left}; {right}) => ({', '.join(map(self.expr, combine.exprs))}){neutral}"

    def _loop(self, loop: Loop) -> None:
        self.share([loop.extent, *(init for group in loop.carried for init in group.inits)])
        attrs = "{" + ", ".join(f"{key}={value!r}" for key, value in loop.attrs) + "}" if loop.attrs else ""
        head = f"{loop.role}{attrs} {self.name(loop.var)} < {self.expr(loop.extent)}"
        for group in loop.carried:
            inits = [f"{self.name(var)}: {var.dtype} = {self.expr(init)}" for var, init in zip(group.vars, group.inits)]
            head += f" carry ({', '.join(inits)})"
        self.line(head + " {")
        self.block(loop.body)
        if loop.carried:
            self.indent += 1
            self.share([update for group in loop.carried for update in group.updates])
            nexts = [f"({', '.join(map(self.expr, group.updates))})" for group in loop.carried]
            self.line(f"next {' '.join(nexts)}")
            self.indent -= 1
        results = [
            f" -> ({', '.join(f'{self.name(v)}: {v.dtype}' for v in group.results)}){self._combine(group.combine)}"
            for group in loop.carried
        ]
        self.line("}" + "".join(results))

    def buffer(self, buffer: Buffer) -> None:
        data = ""
        large = buffer.size * ITEMSIZE[buffer.dtype] > EMBEDDED_BYTES
        if buffer.data is not None and not (self.canonical and large):
            values = np.asarray(buffer.data).reshape(-1)
            data = " = " + " ".join(_number(value) for value in values[: self.most].tolist())
            if self.most is not None and values.size > self.most:
                data += " ..."
        self.line(f"{buffer.space} {self.name(buffer)}: {buffer.dtype}[{buffer.size}]{data}")

    def kernel(self, kernel: Kernel) -> None:
        given = [f"{self.name(b)}: {b.dtype}[{b.size}]" for b in kernel.buffers]
        given += [f"{self.name(v)}: {v.dtype}" for v in kernel.params]
        self.line(f"kernel {kernel.name}({', '.join(given)}) {{")
        self.block(kernel.body)
        self.line("}")

    def function(self, function: Function) -> None:
        self.line(f"function {'f' if self.canonical else function.name} {{")
        self.indent += 1
        for buffer in function.buffers:
            self.buffer(buffer)
        for kernel in kernels(function.body):
            self.kernel(kernel)
        self.indent -= 1
        self.block(function.body)
        self.line("}")


def to_text(function: Function, most: int | None = None) -> str:
    """The function as text; `parse` gives it back, unless constants of more elements than `most` were cut short."""
    printer = Printer(most=most)
    printer.function(function)
    return "\n".join(printer.lines) + "\n"


def canonical(function: Function) -> str:
    """A text that two functions share exactly if they differ in names only."""
    printer = Printer(canonical=True)
    printer.function(function)
    return "\n".join(printer.lines)


def stmt_text(stmt: Stmt, limit: int = 12) -> str:
    """A statement as text, at most `limit` lines of it: for messages."""
    printer = Printer()
    printer.stmt(stmt)
    lines = printer.lines
    return "\n".join(lines if len(lines) <= limit else [*lines[:limit], "..."])
