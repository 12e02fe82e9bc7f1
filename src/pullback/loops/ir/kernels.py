"""Kernels of a function changed one by one, or written out where they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .ir import (
    Address,
    Buffer,
    Call,
    Expr,
    Function,
    HostCall,
    Kernel,
    Load,
    Loop,
    Run,
    Space,
    Stmt,
    Store,
    Var,
)
from .visit import Substitute, kernels, with_blocks

_SPACE: dict[str, Space] = {"local": "local"}


def map_kernels(function: Function, change: Callable[[Function], Function]) -> Function:
    """The function with the body of each kernel changed, as a function of the kernel's buffers.

    Temporaries that `change` adds behind those buffers become the program's, the same ones wherever the kernel runs;
    local buffers stay the kernel's own, and have no memory in the program.
    """
    new: dict[Kernel, tuple[Kernel, tuple[Buffer, ...]]] = {}
    buffers = list(function.buffers)
    for kernel in kernels(function.body):
        changed = change(Function(kernel.name, kernel.buffers, kernel.body))
        added = changed.buffers[len(kernel.buffers) :]
        buffers += [Buffer(f"{b.name}_{kernel.name}", b.dtype, b.size, _SPACE.get(b.space, "temporary")) for b in added]
        given = tuple(buffers[len(buffers) - len(added) :])
        new[kernel] = Kernel(kernel.name, changed.buffers, kernel.params, changed.body), given
    return Function(function.name, tuple(buffers), _block(function.body, new)) if new else function


def _block(body: Sequence[Stmt], new: dict[Kernel, tuple[Kernel, tuple[Buffer, ...]]]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Run):
            kernel, given = new[stmt.kernel]
            stmt = Run(kernel, (*stmt.buffers, *given), stmt.args)
        elif not isinstance(stmt, Loop) or stmt.role == "sequential":  # the only loops that may run kernels
            stmt = with_blocks(stmt, _block, new)
        result.append(stmt)
    return tuple(result)


def expand_kernels(body: Sequence[Stmt], rename: Callable[[Var], Var]) -> tuple[Stmt, ...]:
    """The statements with what kernels do in place of running them; `rename` gives a new variable for one of theirs."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Run):
            kernel = stmt.kernel
            buffers, values = dict(zip(kernel.buffers, stmt.buffers)), dict(zip(kernel.params, stmt.args))
            copy = OnOtherBuffers(buffers, values, rename)
            result += expand_kernels(copy.block(kernel.body), rename)
        else:
            result.append(with_blocks(stmt, expand_kernels, rename))
    return tuple(result)


class OnOtherBuffers(Substitute):
    """Statements on other buffers: a kernel's body where it runs, or a nest that becomes one.

    `buffers` says which take the place of which, `values` and `rename` are those of `Substitute`.
    """

    def __init__(
        self, buffers: Mapping[Buffer, Buffer], values: Mapping[Var, Expr], rename: Callable[[Var], Var]
    ) -> None:
        super().__init__(values, rename)
        self._buffers = buffers

    def _buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)

    def _argument(self, arg: Expr | Address) -> Expr | Address:
        return Address(self._buffer(arg.buffer), arg.offset) if isinstance(arg, Address) else arg

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return Load(self._buffer(expr.buffer), expr.index)
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Store():
                return [Store(self._buffer(stmt.buffer), stmt.index, stmt.value)]
            case Run():
                return [Run(stmt.kernel, tuple(map(self._buffer, stmt.buffers)), stmt.args)]
            case Call():
                return [Call(stmt.symbol, tuple(map(self._argument, stmt.args)), stmt.result)]
            case HostCall():
                raise AssertionError("kernels do not call Python")
        return [stmt]
