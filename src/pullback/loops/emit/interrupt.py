"""Which loops of a program ask whether the user has pressed Ctrl-C, and how often.

A loop that may run for long asks the runtime every so many iterations; a program that is told to stop returns
INTERRUPTED. Only the program function asks, and after each loop that the thread pool runs, which stops by itself.
Calls of sorts and of LAPACK cannot ask: a program in which one may take long runs on a thread of its own
(ext/programs/apart.h).
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import Address, Call, Const, Function, HostCall, If, Loop, Stmt, While
from pullback.loops.ir.visit import statements

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


# Nanoseconds for each element of what is sorted or selected from, at most.
_SORTS = {"pb_sort": 12, "pb_sort_pairs": 25, "pb_select": 4, "pb_partition": 6, "pb_top_k": 6}
# Nanoseconds for n^3 of routines on n x n matrices; the factorizations with iterations take the most.
_ROUTINES = {
    "potrf": 0.03,
    "getrf": 0.05,
    "trsm": 0.05,
    "gemm": 0.1,
    "syrk": 0.05,
    "herk": 0.05,
    "geqrf": 0.15,
    "laswp": 0.01,
}
_ROUTINE = 1.0
_LONG_CALL = 10e6  # nanoseconds; starting the other thread takes 20,000 to 40,000


def has_long_calls(function: Function) -> bool:
    """Whether a call of a library may take so long that the user should not have to wait for its end."""
    return any(_nanoseconds(stmt) > _LONG_CALL for stmt in statements(function.body))


def _nanoseconds(call: Stmt) -> float:
    """How long a call takes at most, judged by the largest array that it is given a part of; 0 for what is no call."""
    if isinstance(call, HostCall):
        return float(max((buffer.size for buffer in call.buffers), default=0)) ** 1.5 * _ROUTINE
    if not isinstance(call, Call):
        return 0.0
    size = max((arg.buffer.size for arg in call.args if isinstance(arg, Address)), default=0)
    if call.symbol.startswith("pb_"):
        return _SORTS.get(call.symbol, 0) * size
    return float(size**1.5 * _ROUTINES.get(call.symbol[1:], _ROUTINE))


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
