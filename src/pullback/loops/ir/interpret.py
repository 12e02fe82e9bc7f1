"""The meaning of the loop IR, in NumPy: slow, exact, and the oracle that compiled code is compared with.

Statements run one by one; a parallel loop whose body is only Lets and Stores runs all its iterations at once on arrays.
An index outside its buffer raises IndexError naming the statement, unless a `select` discards what was loaded there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .affine import depends
from .ir import (
    Address,
    Buffer,
    Call,
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
    Run,
    Stmt,
    Store,
    Var,
    While,
)
from .numpy_ops import evaluate
from .tiles import INSTRUCTIONS, Tiles
from .types import NP_DTYPE
from .vectors import vectorizable
from .visit import expressions, loaded, operands, statements, stored, subexpressions

Value = tuple[Any, Any]  # NumPy value of the exact dtype, and None or a mask of lanes whose value must not be used


class Interpreter:
    """Runs a function on NumPy arrays.

    `calls` maps symbols of Call to Python functions taking scalars and (array, offset) pairs; `host_calls` lists the
    Python callables of HostCall, each given the buffers' arrays.
    """

    def __init__(
        self,
        calls: Mapping[str, Callable[..., Any]] | None = None,
        host_calls: Sequence[Callable[..., Any]] = (),
    ) -> None:
        self.calls = calls or {}
        self.host_calls = host_calls
        self.memory: dict[Buffer, np.ndarray] = {}
        self.env: dict[Var, Value] = {}
        self.tiles = Tiles()
        self.at_once = False  # variables hold one value per iteration of a loop

    def run(self, function: Function, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The flat output arrays of `function` applied to `inputs`; ValueError if those do not fit."""
        given = iter(inputs)
        wanted = sum(buffer.space == "input" for buffer in function.buffers)
        if wanted != len(inputs):
            raise ValueError(f"{function.name}: takes {wanted} input(s), got {len(inputs)}")
        for buffer in function.buffers:
            if buffer.space == "input":
                array = np.ascontiguousarray(next(given)).reshape(-1)
                if array.dtype != NP_DTYPE[buffer.dtype] or array.size != buffer.size:
                    raise ValueError(
                        f"{function.name}: input {buffer.name!r} is {buffer.dtype}[{buffer.size}], "
                        f"got {array.dtype}[{array.size}]"
                    )
                self.memory[buffer] = array.copy()
            elif buffer.space == "constant":
                assert buffer.data is not None
                self.memory[buffer] = buffer.data
            else:
                self.memory[buffer] = np.zeros(buffer.size, NP_DTYPE[buffer.dtype])
        with np.errstate(all="ignore"):
            self.block(function.body)
        return [self.memory[buffer] for buffer in function.buffers if buffer.space == "output"]

    # Expressions.

    def values(self, roots: Sequence[Expr]) -> list[Value]:
        """The values of `roots` now; arrays if variables hold one value per iteration."""
        memo: dict[int, Value] = {}
        for expr in subexpressions(roots):
            memo[id(expr)] = self._value(expr, [memo[id(x)] for x in operands(expr)])
        return [memo[id(root)] for root in roots]

    def _value(self, expr: Expr, args: list[Value]) -> Value:
        match expr:
            case Const():
                return NP_DTYPE[expr.dtype].type(expr.value), None
            case Read():
                return self.env[expr.var]
            case Load():
                memory = self.memory[expr.buffer]
                (index, poison) = args[0]
                bad = (index < 0) | (index >= memory.size)
                if not np.any(bad):
                    return memory[index], poison
                poison = bad if poison is None else poison | bad
                if memory.size == 0:
                    return np.zeros(np.shape(index), memory.dtype)[()], poison
                return memory[np.where(bad, 0, index)], poison
            case Op("select"):
                (c, c_poison), (x, x_poison), (y, y_poison) = args
                value = np.asarray(np.where(c, x, y)).astype(NP_DTYPE[expr.dtype], copy=False)[()]
                poison = c_poison
                if x_poison is not None or y_poison is not None:
                    either = np.where(
                        c,
                        False if x_poison is None else x_poison,
                        False if y_poison is None else y_poison,
                    )
                    poison = either if poison is None else poison | either
                return value, poison
            case Op():
                poison = None
                for _, p in args:
                    if p is not None:
                        poison = p if poison is None else poison | p
                return evaluate(expr, [value for value, _ in args]), poison
        raise TypeError(f"not an expression: {expr!r}")

    def use(self, stmt: str, *roots: Expr) -> list[Any]:
        """The values of `roots`, which must all be loaded from inside their buffers."""
        result = []
        for (value, poison), root in zip(self.values(roots), roots):
            if poison is not None and np.any(poison):
                raise IndexError(self._out_of_bounds(stmt, root))
            result.append(value)
        return result

    def _out_of_bounds(self, stmt: str, root: Expr) -> str:
        for expr in subexpressions((root,)):
            if isinstance(expr, Load):
                index = np.asarray(self.values((expr.index,))[0][0])
                bad = index[(index < 0) | (index >= expr.buffer.size)]
                if bad.size:
                    return f"{stmt}: load of {expr.buffer.name}[{bad.flat[0]}], which has {expr.buffer.size} element(s)"
        return f"{stmt}: a load lies outside its buffer"

    # Statements.

    def block(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                (value,) = self.use(f"let {stmt.var.name}", stmt.value)
                self.env[stmt.var] = value, None
            case Store():
                self._store(stmt)
            case Loop():
                self._loop(stmt)
            case While():
                while True:
                    self.block(stmt.body_cond)
                    if not self.use("while", stmt.cond)[0]:
                        break
                    self.block(stmt.body)
            case If():
                self.block(stmt.then if self.use("if", stmt.cond)[0] else stmt.orelse)
            case Call():
                self._call(stmt)
            case HostCall():
                self.host_calls[stmt.index](*(self.memory[buffer] for buffer in stmt.buffers))
            case Run():
                self._run(stmt)

    def _store(self, stmt: Store) -> None:
        memory = self.memory[stmt.buffer]
        index, value = self.use(f"store to {stmt.buffer.name}", stmt.index, stmt.value)
        bad = np.asarray((index < 0) | (index >= memory.size))
        if np.any(bad):
            first = np.asarray(index)[bad].flat[0] if np.ndim(index) else index
            raise IndexError(f"store to {stmt.buffer.name}[{first}], which has {memory.size} element(s)")
        memory[index] = value

    def _loop(self, loop: Loop) -> None:
        extent = int(self.use(f"extent of {loop.var.name}", loop.extent)[0])
        if extent > 1 and not loop.carried and self._at_once(loop, extent):
            self.env[loop.var] = np.arange(extent, dtype=np.int64), None
            self.at_once = True
            self.block(loop.body)
            self.at_once = False
            return
        for group in loop.carried:
            for var, value in zip(group.vars, self.use(f"loop {loop.var.name}", *group.inits)):
                self.env[var] = value, None
        if extent > 1 and loop.carried and self._accumulated(loop, extent):
            return
        for i in range(extent):
            self.env[loop.var] = np.int64(i), None
            self.block(loop.body)
            updates = [update for group in loop.carried for update in group.updates]
            carried = [var for group in loop.carried for var in group.vars]
            for var, value in zip(carried, self.use(f"loop {loop.var.name}", *updates)):
                self.env[var] = value, None
        for group in loop.carried:
            for result, var in zip(group.results, group.vars):
                self.env[result] = self.env[var]

    def _at_once(self, loop: Loop, extent: int) -> bool:
        """Whether all iterations may run as arrays, statement by statement: inner loops then run for all of them."""
        if self.at_once or loop.role not in ("parallel", "vector", "threads"):
            return False
        if any(isinstance(stmt, If) for stmt in statements(loop.body)) or not vectorizable(loop):
            return False
        inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, Loop)]
        if len(inner) == 1 and isinstance(inner[0].extent, Const) and not self.leaf(loop):
            return inner[0].extent.value <= extent
        return True

    @staticmethod
    def leaf(loop: Loop) -> bool:
        """Whether the body has only Lets and Stores."""
        return all(isinstance(stmt, (Let, Store)) for stmt in loop.body)

    def _accumulated(self, loop: Loop, extent: int) -> bool:
        """Runs a plain reduce loop on arrays, still adding up in order; False if it is not one."""
        if self.at_once or loop.role not in ("reduce", "vector") or not self.leaf(loop):
            return False
        carried = {var for group in loop.carried for var in group.vars}
        memo: dict[Expr, bool] = {}
        elements = []
        for group in loop.carried:
            update = group.updates[0]
            if not isinstance(group.combine, str) or not isinstance(update, Op) or update.name != group.combine:
                return False
            x, y = update.args
            if not isinstance(x, Read) or x.var is not group.vars[0]:
                x, y = y, x
            if not isinstance(x, Read) or x.var is not group.vars[0] or depends(y, carried, memo):
                return False
            elements.append(y)
        for stmt in loop.body:
            if any(depends(expr, carried, memo) for expr in expressions(stmt)):
                return False
        if loaded(loop.body) & stored(loop.body):
            return False
        self.env[loop.var] = np.arange(extent, dtype=np.int64), None
        self.at_once = True
        self.block(loop.body)
        values = self.use(f"loop {loop.var.name}", *elements)
        self.at_once = False
        for group, value in zip(loop.carried, values):
            dtype = NP_DTYPE[group.vars[0].dtype]
            whole = np.empty(extent + 1, dtype)
            whole[0], whole[1:] = self.env[group.vars[0]][0], value
            self.env[group.results[0]] = _in_order(str(group.combine), whole), None
        return True

    def _run(self, stmt: Run) -> None:
        kernel = stmt.kernel
        args = self.use(f"run {kernel.name}", *stmt.args)
        self.env.update((var, (value, None)) for var, value in zip(kernel.params, args))
        self.memory.update([(formal, self.memory[given]) for formal, given in zip(kernel.buffers, stmt.buffers)])
        self.block(kernel.body)

    def _call(self, stmt: Call) -> None:
        if stmt.symbol in INSTRUCTIONS:
            self.tiles.call(stmt.symbol, *self._arguments(stmt))
            return
        if stmt.symbol not in self.calls:
            raise NotImplementedError(f"call of {stmt.symbol}: the interpreter was given no function of that name")
        result = self.calls[stmt.symbol](*self._arguments(stmt))
        if stmt.result is not None:
            self.env[stmt.result] = NP_DTYPE[stmt.result.dtype].type(result), None

    def _arguments(self, stmt: Call) -> list[Any]:
        args: list[Any] = []
        for arg in stmt.args:
            if isinstance(arg, Address):
                args.append((self.memory[arg.buffer], int(self.use(stmt.symbol, arg.offset)[0])))
            else:
                args.append(self.use(stmt.symbol, arg)[0])
        return args


def _in_order(combine: str, values: np.ndarray) -> Any:
    """values[0] combined with values[1], then values[2], ..."""
    ufunc = {
        "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[combine]  # fmt: skip
    if values.dtype.kind == "c" and combine in ("min", "max"):
        total = values[0]
        for value in values[1:]:
            total = evaluate(Op(combine, "c64" if values.dtype.itemsize == 8 else "c128", ()), [total, value])
        return total
    return ufunc.accumulate(values, dtype=values.dtype)[-1]


def interpret(
    function: Function,
    inputs: Sequence[np.ndarray],
    calls: Mapping[str, Callable[..., Any]] | None = None,
    host_calls: Sequence[Callable[..., Any]] = (),
) -> list[np.ndarray]:
    """The flat outputs of `function`; ValueError for inputs that do not fit, IndexError for an index out of bounds."""
    return Interpreter(calls, host_calls).run(function, inputs)
