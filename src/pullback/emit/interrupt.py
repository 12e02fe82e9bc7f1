"""Which loops of a program ask whether the user has pressed Ctrl-C, and how often.

A loop that may run for long asks the runtime every so many iterations; a program that is told to stop returns
INTERRUPTED. Only the program function asks, and after each loop that the thread pool runs, which stops by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.ir import Call, Const, HostCall, If, Loop, Stmt, While

INTERRUPT = "pb_interrupt_pending"
INTERRUPTED = 2  # what the program returns then

# In scalar operations, about 0.3 ns each: loops that are surely shorter do not ask, and the others ask this often.
_LONG = 1 << 22
_BETWEEN = 1 << 16
_MOST = 1 << 12  # iterations between two questions
_UNKNOWN = 16  # iterations of a loop whose extent is not known
_CALL = 10_000
_STATEMENT = 8


def asks_every(stmt: Loop | While) -> int:
    """The number of iterations, a power of two, after which `stmt` asks; 0 if it is not worth asking."""
    if isinstance(stmt, While):
        each = _operations((*stmt.body_cond, *stmt.body))
    else:
        if stmt.role != "sequential":
            return 0
        each = _operations(stmt.body)
        if isinstance(stmt.extent, Const) and stmt.extent.value * each < _LONG:
            return 0
    return 1 << max(0, min(_MOST, _BETWEEN // max(each, 1)).bit_length() - 1)


def _operations(body: Sequence[Stmt]) -> int:
    total = 1
    for stmt in body:
        match stmt:
            case Loop():
                count = stmt.extent.value if isinstance(stmt.extent, Const) else _UNKNOWN
                total += count * _operations(stmt.body)
            case While():
                total += _UNKNOWN * _operations((*stmt.body_cond, *stmt.body))
            case If():
                total += max(_operations(stmt.then), _operations(stmt.orelse))
            case Call() | HostCall():
                total += _CALL
            case _:
                total += _STATEMENT
    return total
