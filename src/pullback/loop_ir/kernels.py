"""Kernels of a function changed one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .ir import Buffer, Function, If, Kernel, Loop, Run, Stmt, While
from .visit import kernels


def map_kernels(function: Function, change: Callable[[Function], Function]) -> Function:
    """The function with the body of each kernel changed, as a function of the kernel's buffers.

    Temporaries that `change` adds behind those buffers become the program's, the same ones wherever the kernel runs.
    """
    new: dict[Kernel, tuple[Kernel, tuple[Buffer, ...]]] = {}
    buffers = list(function.buffers)
    for kernel in kernels(function.body):
        changed = change(Function(kernel.name, kernel.buffers, kernel.body))
        added = changed.buffers[len(kernel.buffers) :]
        buffers += [Buffer(f"{b.name}_{kernel.name}", b.dtype, b.size, "temporary") for b in added]
        given = tuple(buffers[len(buffers) - len(added) :])
        new[kernel] = Kernel(kernel.name, changed.buffers, kernel.params, changed.body), given
    return Function(function.name, tuple(buffers), _block(function.body, new)) if new else function


def _block(body: Sequence[Stmt], new: dict[Kernel, tuple[Kernel, tuple[Buffer, ...]]]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Run():
                kernel, given = new[stmt.kernel]
                stmt = Run(kernel, (*stmt.buffers, *given), stmt.args)
            case Loop(role="sequential"):
                stmt = Loop(stmt.var, stmt.extent, stmt.role, _block(stmt.body, new), stmt.carried, stmt.attrs)
            case While():
                stmt = While(_block(stmt.body_cond, new), stmt.cond, _block(stmt.body, new))
            case If():
                stmt = If(stmt.cond, _block(stmt.then, new), _block(stmt.orelse, new))
        result.append(stmt)
    return tuple(result)
