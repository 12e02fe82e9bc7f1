"""Building loop nests: hash-consing constructors of expressions, and scopes that collect statements.

    b = Builder()
    x, y = b.input("x", "f32", 100), b.output("y", "f32", 100)
    with b.loop(100) as i:
        b.store(y, i, b.load(x, i) * 2.0 + 1.0)
    function = b.function("scale")

Operators on expressions (+ - * // % < <= > >= & | ^ and unary -) build ops too; Python numbers take the type of the
other operand. `==` stays identity: use `b.eq`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .fold import coerce, const, const_key, make
from .ir import (
    TERM,
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
    Let,
    Load,
    Loop,
    Op,
    Read,
    Role,
    Space,
    Stmt,
    Store,
    Var,
    While,
)
from .ops import OPS
from .types import NAME_OF_NP_DTYPE

Number = int | float | complex | bool
Operand = Expr | Number


def _operator(name: str, swap: bool = False) -> Any:
    def method(self: Expr, other: Any) -> Expr:
        other = coerce(other, self.dtype)
        return make(name, (other, self) if swap else (self, other))

    return method


for _symbol, _name in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "floormod",
    "and": "and", "or": "or", "xor": "xor",
}.items():  # fmt: skip
    setattr(Expr, f"__{_symbol}__", _operator(_name))
    setattr(Expr, f"__r{_symbol}__", _operator(_name, swap=True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Expr, f"__{_name}__", _operator(_name))
Expr.__neg__ = lambda self: make("neg", (self,))  # type: ignore[method-assign, assignment]


class Reduction:
    """A loop with carried values under construction: `i` the index, `vars` the values so far, `results` afterwards.

    Each group given to `Builder.carried_loop` has its place in `vars`, `results` and `update`, flattened in order.
    """

    def __init__(self, i: Expr, vars: list[Expr], results: list[Expr]) -> None:
        self.i = i
        self.vars = vars
        self.results = results
        self.updates: list[Expr] | None = None

    def update(self, *values: Operand) -> None:
        """States the values of the next iteration, one for each of `vars`; call it once, at the end of the body."""
        if len(values) != len(self.vars):
            raise TypeError(f"update: the loop carries {len(self.vars)} value(s), got {len(values)}")
        self.updates = [coerce(value, var.dtype) for value, var in zip(values, self.vars)]

    @property
    def var(self) -> Expr:
        """The only carried value."""
        (var,) = self.vars
        return var

    @property
    def result(self) -> Expr:
        """The only result."""
        (result,) = self.results
        return result


class WhileScope:
    """A While under construction: statements before `test` compute the condition, those after it are the body."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.cond: Expr | None = None
        self.body_cond: tuple[Stmt, ...] = ()

    def test(self, cond: Expr) -> None:
        """Ends the condition part: the body below runs while `cond` (bool) holds."""
        block = self._builder._blocks[-1]
        self.cond = cond
        self.body_cond = tuple(block)
        block.clear()


class IfScope:
    """An If under construction; `with scope.otherwise():` collects the other branch, inside the first `with`'s end."""

    def __init__(self, builder: Builder, position: int) -> None:
        self._builder = builder
        self._position = position

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Scope of the statements for a false condition; opened after the `with` of the true ones has closed."""
        block = self._builder._blocks[-1]
        with self._builder.block() as statements:
            yield
        done = block[self._position]
        assert isinstance(done, If)
        block[self._position] = If(done.cond, done.then, tuple(statements))


class Builder:
    """Collects buffers and statements of one function; names are made unique."""

    out_dtype: str  # of the value that a lowering rule is asked for; set by whoever calls the rule

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._names: dict[str, int] = {}
        self._exprs: dict[Any, Expr] = {}

    if TYPE_CHECKING:  # the methods named after ops, added at the end of this file

        def __getattr__(self, name: str) -> Callable[..., Expr]: ...

    # Names, buffers, functions.

    def unique(self, name: str) -> str:
        """`name`, with a number added if it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        if count == 0:
            return name
        return self.unique(f"{name}{count}" if not name[-1:].isdigit() else f"{name}_{count}")

    def buffer(self, name: str, dtype: str, size: int, space: Space, data: np.ndarray | None = None) -> Buffer:
        """A new buffer of `size` elements."""
        buffer = Buffer(self.unique(name), dtype, int(size), space, data)
        self.buffers.append(buffer)
        return buffer

    def input(self, name: str, dtype: str, size: int) -> Buffer:
        return self.buffer(name, dtype, size, "input")

    def output(self, name: str, dtype: str, size: int) -> Buffer:
        return self.buffer(name, dtype, size, "output")

    def temporary(self, name: str, dtype: str, size: int) -> Buffer:
        return self.buffer(name, dtype, size, "temporary")

    def local(self, name: str, dtype: str, size: int) -> Buffer:
        """Scratch space of which each iteration of the outermost parallel loop around its uses has its own."""
        return self.buffer(name, dtype, size, "local")

    def constant(self, name: str, data: np.ndarray) -> Buffer:
        """A buffer holding the elements of `data` in C order."""
        flat = np.ascontiguousarray(data).reshape(-1)
        return self.buffer(name, NAME_OF_NP_DTYPE[flat.dtype], flat.size, "constant", flat)

    def var(self, name: str, dtype: str) -> Var:
        return Var(self.unique(name), dtype)

    def function(self, name: str) -> Function:
        """The function of everything built so far."""
        if len(self._blocks) != 1:
            raise ValueError(f"function {name!r}: {len(self._blocks) - 1} statement scope(s) are still open")
        order = {"input": 0, "output": 1, "constant": 2, "temporary": 3, "local": 4}
        return Function(name, tuple(sorted(self.buffers, key=lambda x: order[x.space])), tuple(self._blocks[0]))

    # Expressions.

    def const(self, dtype: str, value: Number) -> Expr:
        """A constant, wrapped or rounded to `dtype`."""
        known = self._exprs.get((dtype, value)) if type(value) is int else None
        return self._share(const(dtype, value)) if known is None else known

    def index(self, value: int | Expr) -> Expr:
        """An i64."""
        return value if isinstance(value, Expr) else self.const("i64", value)

    def read(self, var: Var) -> Expr:
        return self._share(Read(var))

    def load(self, buffer: Buffer, index: int | Expr) -> Expr:
        """The element at `index`. Two loads with equal index are one object only within a statement's reach."""
        return Load(buffer, self.index(index))

    def op(self, name: str, *args: Operand, dtype: str | None = None, attrs: tuple = ()) -> Expr:
        """Op `name` of ops.OPS; Python numbers take the type of the first argument that is an expression.

        For `select` the numbers take the type of the other branch. TypeError if types do not fit.
        """
        for arg in args:
            if not isinstance(arg, Expr):
                args = self._coerced(name, args)
                break
        return self._share(make(name, args, dtype, attrs))  # type: ignore[arg-type]

    def _coerced(self, name: str, args: tuple[Operand, ...]) -> tuple[Expr, ...]:
        typed = args[1:] if name == "select" else args
        dtype = next((arg.dtype for arg in typed if isinstance(arg, Expr)), None)
        if dtype is None:
            raise TypeError(f"{name}: at least one argument must be an expression, to know the type of the others")
        head = (coerce(args[0], "bool"),) if name == "select" else ()
        return head + tuple(coerce(arg, dtype) for arg in typed)

    def _share(self, expr: Expr) -> Expr:
        node: Any = expr
        kind = type(expr)
        if kind is Op:
            key: Any = (node.name, node.dtype, tuple([_id(arg) for arg in node.args]), node.attrs)
        elif kind is Const:
            key = const_key(node)
        elif kind is Read:
            key = id(node.var)
        else:
            return expr
        return self._exprs.setdefault(key, expr)

    def convert(self, x: Expr, dtype: str) -> Expr:
        """Value conversion: to bool `x != 0`; float to int truncates and saturates, NaN to 0; complex to real drops."""
        return self.op("convert", x, dtype=dtype)

    def bitcast(self, x: Expr, dtype: str) -> Expr:
        """The same bits as another type of the same width."""
        return self.op("bitcast", x, dtype=dtype)

    def term(self, x: Operand, y: Operand) -> Expr:
        """x * y as a term of a contraction: the sum that it goes into need not wait for it to be rounded."""
        return self.op("mul", x, y, attrs=(TERM,))

    def select(self, cond: Operand, x: Operand, y: Operand) -> Expr:
        """x where cond, else y; loads only under the other branch are not performed."""
        return self.op("select", cond, x, y)

    # Statements.

    def emit(self, stmt: Stmt) -> None:
        """Appends a statement to the current scope."""
        self._blocks[-1].append(stmt)

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """Collects statements into a list of their own instead of the current scope."""
        statements: list[Stmt] = []
        self._blocks.append(statements)
        try:
            yield statements
        finally:
            self._blocks.pop()

    def let(self, value: Expr, name: str = "t") -> Expr:
        """Evaluates `value` here and now; returns the reading of it."""
        if isinstance(value, (Const, Read)):
            return value
        var = self.var(name, value.dtype)
        self.emit(Let(var, value))
        return self.read(var)

    def store(self, buffer: Buffer, index: int | Expr, value: Operand) -> None:
        self.emit(Store(buffer, self.index(index), coerce(value, buffer.dtype)))

    @contextmanager
    def loop(
        self, extent: int | Expr, role: Role = "parallel", name: str = "i", attrs: tuple[tuple[str, Any], ...] = ()
    ) -> Iterator[Expr]:
        """A loop without carried values; yields its index."""
        var = self.var(name, "i64")
        with self.block() as statements:
            yield self.read(var)
        self.emit(Loop(var, self.index(extent), role, tuple(statements), (), attrs))

    @contextmanager
    def carried_loop(
        self,
        extent: int | Expr,
        groups: Sequence[tuple[Sequence[Expr], str | Combine | None]],
        role: Role = "sequential",
        name: str = "i",
        attrs: tuple[tuple[str, Any], ...] = (),
    ) -> Iterator[Reduction]:
        """A loop carrying groups of (inits, combine); state the next values with `.update(...)`."""
        var = self.var(name, "i64")
        made = [
            (
                tuple(self.var("acc", init.dtype) for init in inits),
                tuple(inits),
                tuple(self.var("res", init.dtype) for init in inits),
                combine,
            )
            for inits, combine in groups
        ]
        scope = Reduction(
            self.read(var),
            [self.read(v) for vars, _, _, _ in made for v in vars],
            [self.read(v) for _, _, results, _ in made for v in results],
        )
        with self.block() as statements:
            yield scope
        if scope.updates is None:
            raise ValueError("carried_loop: the body did not call .update(...)")
        updates = iter(scope.updates)
        carried = tuple(
            Carried(vars, inits, tuple(next(updates) for _ in vars), results, combine)
            for vars, inits, results, combine in made
        )
        self.emit(Loop(var, self.index(extent), role, tuple(statements), carried, attrs))

    def reduce(self, extent: int | Expr, init: Expr, combine: str, name: str = "r") -> Any:
        """A reduce loop of one value: `with b.reduce(n, zero, "add") as r: r.update(b.add(r.var, ...))`; r.result."""
        return self.carried_loop(extent, [((init,), combine)], "reduce", name)

    @contextmanager
    def while_(self) -> Iterator[WhileScope]:
        """`with b.while_() as w:` statements of the condition, `w.test(cond)`, then the body."""
        scope = WhileScope(self)
        with self.block() as statements:
            yield scope
        if scope.cond is None:
            raise ValueError("while_: the body did not call .test(cond)")
        self.emit(While(scope.body_cond, scope.cond, tuple(statements)))

    @contextmanager
    def if_(self, cond: Expr) -> Iterator[IfScope]:
        """`with b.if_(c) as branch: ...`, then if wanted `with branch.otherwise(): ...`."""
        scope = IfScope(self, len(self._blocks[-1]))
        with self.block() as statements:
            yield scope
        self.emit(If(cond, tuple(statements)))

    def address(self, buffer: Buffer, offset: int | Expr = 0) -> Address:
        return Address(buffer, self.index(offset))

    def call(self, symbol: str, *args: Expr | Address, result: str | None = None) -> Expr | None:
        """Calls a C function; with `result` (a dtype) returns the reading of what it returned."""
        var = None if result is None else self.var("r", result)
        self.emit(Call(symbol, args, var))
        return None if var is None else self.read(var)

    def host_call(self, index: int, buffers: Sequence[Buffer]) -> None:
        self.emit(HostCall(index, tuple(buffers)))


def _id(expr: Any) -> Any:
    kind = type(expr)
    if kind is Op or kind is Load:
        return id(expr)
    return const_key(expr) if kind is Const else id(expr.var)


def _named(name: str, arity: int) -> Any:
    def method(self: Builder, *args: Operand, **attrs: Any) -> Expr:
        return self.op(name, *args, attrs=tuple(attrs.items()) if attrs else ())

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Op {name!r} of {arity} argument(s); keywords become attrs."
    return method


# One method per op: b.add(x, y), b.sqrt(x), b.and_(x, y), b.integer_pow(x, y=3), ...
for _name, _info in OPS.items():
    _method = _name + "_" if _name in ("and", "or", "not") else _name
    if not hasattr(Builder, _method):
        setattr(Builder, _method, _named(_name, _info.arity))
