"""Reads the text that print.py writes. ParseError names the line and what was expected."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .fold import const
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
from .ops import OPS, result_dtype
from .types import DTYPES, NP_DTYPE

_TOKEN = re.compile(
    r"\s*(?P<number>\d[\d.]*(?:e[+-]?\d+)?|inf\b|nan\b)|\s*(?P<name>[A-Za-z_][\w.]*|%\d+)"
    r"|\s*(?P<string>'[^']*')|\s*(?P<symbol>->|=>|[^\s\w])"
)
_ROLES = ("parallel", "reduce", "scan", "sequential", "vector", "threads")


class ParseError(ValueError):
    """The text is not loop IR; the message has the line."""


def parse(text: str) -> Function:
    """The function that `print.to_text` wrote as `text`; ParseError otherwise."""
    return _Parser(text).function()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        for number, line in enumerate(text.split("\n"), 1):
            at = 0
            while line[at:].strip():
                match = _TOKEN.match(line, at)
                if match is None:
                    raise ParseError(f"line {number}: cannot read {line[at:].strip()!r}")
                kind = str(match.lastgroup)
                self.tokens.append((kind, match.group(kind), number))
                at = match.end()
            self.tokens.append(("end", "\n", number))
        self.at = 0
        self.buffers: dict[str, Buffer] = {}
        self.vars: dict[str, Var] = {}
        self.shared: dict[str, Expr] = {}
        self.kernels: dict[str, Kernel] = {}

    # Tokens.

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index][1] if index < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}")

    def fail(self, problem: str) -> Any:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        raise ParseError(f"line {token[2]}: {problem}, got {token[1]!r}")

    def skip_lines(self) -> None:
        while self.accept("\n"):
            pass

    def listed(self, item: Callable[[], Any]) -> list[Any]:
        """( item, item, ... )"""
        self.expect("(")
        found = []
        while not self.accept(")"):
            found.append(item())
            if not self.accept(","):
                self.expect(")")
                break
        return found

    # Functions and buffers.

    def function(self) -> Function:
        self.skip_lines()
        self.expect("function")
        name = self.next()
        self.expect("{")
        self.skip_lines()
        while self.peek() in ("input", "output", "constant", "temporary", "local"):
            self.buffer()
            self.skip_lines()
        program = tuple(self.buffers.values())
        while self.peek() == "kernel":
            self.kernel()
            self.skip_lines()
        return Function(name, program, self.block())

    def kernel(self) -> None:
        self.expect("kernel")
        name = self.next()
        buffers: list[Buffer] = []
        params: list[Var] = []

        def formal() -> None:
            label = self.next()
            self.expect(":")
            dtype = self.dtype()
            if self.accept("["):
                buffers.append(Buffer(label, dtype, int(self.next()), "temporary"))
                self.buffers[label] = buffers[-1]
                self.expect("]")
            else:
                params.append(self.var(label, dtype))

        self.listed(formal)
        self.expect("{")
        self.kernels[name] = Kernel(name, tuple(buffers), tuple(params), self.block())

    def buffer(self) -> None:
        space, name = self.next(), self.next()
        self.expect(":")
        dtype = self.dtype()
        self.expect("[")
        size = int(self.next())
        self.expect("]")
        data = None
        if self.accept("="):
            values = []
            while self.peek() != "\n":
                values.append(self.number())
            data = np.array(values, NP_DTYPE[dtype])
        self.buffers[name] = Buffer(name, dtype, size, space, data)  # type: ignore[arg-type]

    def dtype(self) -> str:
        dtype = self.next()
        return dtype if dtype in DTYPES else self.fail(f"expected a type ({', '.join(DTYPES)})")

    def number(self) -> Any:
        if self.accept("("):
            re_ = self.number()
            self.expect(",")
            im = self.number()
            self.expect(")")
            return complex(re_, im)
        if self.accept("-"):
            return -self.number()
        token = self.next()
        if token in ("true", "false"):
            return token == "true"
        if token in ("inf", "nan"):
            return float(token)
        return float(token) if any(c in token for c in ".e") else int(token)

    def var(self, name: str, dtype: str) -> Var:
        var = self.vars[name] = Var(name, dtype)
        return var

    def typed(self) -> Var:
        name = self.next()
        self.expect(":")
        return self.var(name, self.dtype())

    # Statements.

    def block(self) -> tuple[Stmt, ...]:
        """Statements up to and with the closing brace."""
        body: list[Stmt] = []
        self.skip_lines()
        while not self.accept("}"):
            if self.peek() in ("next", "test"):
                break
            stmt = self.stmt()
            if stmt is not None:
                body.append(stmt)
            self.skip_lines()
        return tuple(body)

    def stmt(self) -> Stmt | None:
        head = self.peek()
        if head.startswith("%"):
            self.next()
            self.expect("=")
            self.shared[head] = self.expr()
            return None
        if head == "let":
            self.next()
            name = self.next()
            self.expect(":")
            dtype = self.dtype()
            self.expect("=")
            value = self.expr()
            return Let(self.var(name, dtype), value)
        if head in _ROLES and self.peek(1) != "[":
            return self.loop()
        if head == "while" and self.peek(1) == "{":
            return self.while_()
        if head == "if":
            self.next()
            cond = self.expr()
            self.expect("{")
            then = self.block()
            orelse: tuple[Stmt, ...] = ()
            if self.accept("else"):
                self.expect("{")
                orelse = self.block()
            return If(cond, then, orelse)
        if head == "call":
            self.next()
            symbol = self.next()
            args = self.listed(self.argument)
            return Call(symbol, tuple(args), self.typed() if self.accept("->") else None)
        if head == "host":
            self.next()
            number = int(self.next())
            return HostCall(number, tuple(self.listed(self.named_buffer)))
        if head == "run" and self.peek(1) in self.kernels:
            return self.run()
        buffer = self.named_buffer()
        self.expect("[")
        index = self.expr()
        self.expect("]")
        self.expect("=")
        return Store(buffer, index, self.expr())

    def run(self) -> Run:
        self.expect("run")
        kernel = self.kernels[self.next()]
        buffers: list[Buffer] = []

        def given() -> Expr | None:
            if len(buffers) < len(kernel.buffers):
                buffers.append(self.named_buffer())
                return None
            return self.expr()

        args = self.listed(given)[len(kernel.buffers) :]
        return Run(kernel, tuple(buffers), tuple(args))

    def argument(self) -> Expr | Address:
        if not self.accept("&"):
            return self.expr()
        buffer = self.named_buffer()
        self.expect("[")
        offset = self.expr()
        self.expect("]")
        return Address(buffer, offset)

    def named_buffer(self) -> Buffer:
        name = self.peek()
        if name not in self.buffers:
            self.fail("expected a statement or the name of a buffer")
        self.next()
        return self.buffers[name]

    def while_(self) -> While:
        self.expect("while")
        self.expect("{")
        body_cond = self.block()
        self.expect("test")
        cond = self.expr()
        return While(body_cond, cond, self.block())

    def attrs(self) -> tuple[tuple[str, Any], ...]:
        if not self.accept("{"):
            return ()
        found = []
        while not self.accept("}"):
            key = self.next()
            self.expect("=")
            sign = "-" if self.accept("-") else ""
            found.append((key, ast.literal_eval(sign + self.next())))
            self.accept(",")
        return tuple(found)

    def loop(self) -> Loop:
        role: Any = self.next()
        attrs = self.attrs()
        var = self.var(self.next(), "i64")
        self.expect("<")
        extent = self.expr()
        groups: list[tuple[list[Var], list[Expr]]] = []
        while self.accept("carry"):
            pairs = self.listed(self.init)
            groups.append(([v for v, _ in pairs], [e for _, e in pairs]))
        self.expect("{")
        body = self.block()
        updates = []
        if groups:
            self.expect("next")
            updates = [self.listed(self.expr) for _ in groups]
            self.skip_lines()
            self.expect("}")
        carried = []
        for (vars, inits), update in zip(groups, updates):
            self.expect("->")
            results = self.listed(self.typed)
            combine = self.combine() if self.accept("by") else None
            carried.append(Carried(tuple(vars), tuple(inits), tuple(update), tuple(results), combine))
        return Loop(var, extent, role, body, tuple(carried), attrs)

    def init(self) -> tuple[Var, Expr]:
        var = self.typed()
        self.expect("=")
        return var, self.expr()

    def combine(self) -> str | Combine:
        if self.peek() != "(":
            return self.next()
        self.expect("(")
        sides: list[list[Var]] = [[], []]
        for k, close in enumerate((";", ")")):
            while not self.accept(close):
                sides[k].append(self.typed())
                self.accept(",")
        self.expect("=>")
        exprs = self.listed(self.expr)
        neutral = self.listed(self.expr) if self.accept("from") else []
        return Combine(tuple(sides[0]), tuple(sides[1]), tuple(exprs), tuple(neutral))

    # Expressions.

    def expr(self) -> Expr:
        """A sum of products; i64 arithmetic is infix. Built as written, without folding."""
        left = self.product()
        while self.peek() in ("+", "-"):
            name = "add" if self.next() == "+" else "sub"
            left = Op(name, "i64", (left, self.product()))
        return left

    def product(self) -> Expr:
        left = self.factor()
        while self.accept("*"):
            left = Op("mul", "i64", (left, self.factor()))
        return left

    def factor(self) -> Expr:
        kind, token, _ = self.tokens[self.at]
        if token.startswith("%"):
            self.next()
            return self.shared[token]
        starts_complex = token == "(" and self._is_complex()
        if kind == "number" or token in ("-", "true", "false") or starts_complex:
            value = self.number()
            return const(self.dtype(), value) if self.accept(":") else Const("i64", value)
        if self.accept("("):
            inner = self.expr()
            self.expect(")")
            return inner
        if token in self.buffers and self.peek(1) == "[":
            self.next()
            self.expect("[")
            index = self.expr()
            self.expect("]")
            return Load(self.buffers[token], index)
        if token in OPS and self.peek(1) in ("(", "{", ":"):
            return self.op()
        if token in self.vars:
            self.next()
            return Read(self.vars[token])
        return self.fail("expected an expression")

    def _is_complex(self) -> bool:
        """Whether the parenthesis here opens (re,im) rather than a group."""
        ahead = 1
        while self.peek(ahead) not in ("(", ")", ",", "\n", "["):
            ahead += 1
        return self.peek(ahead) == ","

    def op(self) -> Expr:
        name = self.next()
        given = self.dtype() if self.accept(":") else None
        attrs = self.attrs()
        args = tuple(self.listed(self.expr))
        try:
            dtype = result_dtype(name, tuple(arg.dtype for arg in args), given)
        except TypeError as error:
            raise ParseError(f"line {self.tokens[self.at - 1][2]}: {error}") from None
        return Op(name, dtype, args, attrs)


__all__ = ["ParseError", "parse"]
