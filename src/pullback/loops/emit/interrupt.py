"""Which loops of a program ask whether the user has pressed Ctrl-C, and how often.

A loop that may run for long, of whatever role, goes by rounds of iterations and asks the runtime between them; what
would run in lanes or carry sums does the same in the same order. A program that is told to stop returns INTERRUPTED.
Its kernels and the bodies of its threads return early, and it asks after them, too: a yes stays a yes.
Calls of sorts and of LAPACK cannot ask: a program in which one may take long runs on a thread of its own
(ext/programs/apart.h).

The outermost loops of the user's in a program (attr STEPS, and While) say with the question how many of their steps are
done, which is what progress bars show (ext/programs/progress.h). So there is one code of a program, whether somebody
watches or not, and no loop asks more often.

Rounds are of about 2^18 operations, and `FunctionEmitter.counted` is the one place that writes iterations. Measured:
sums over windows of two long rows took 2 s to hear Ctrl-C, now 0.05; loops on the thread pool stop by themselves
(ext/programs/host_call.cpp), and the program asks after each: a nest of 3.6e9 elements ended after 32 s, now 0.1, a
loop of products after 0.35, now 0.02.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import Address, Call, Const, Function, HostCall, If, Loop, Run, Stmt, While
from pullback.loops.ir.visit import statements

INTERRUPTED = 2  # what the program returns then

# In scalar operations, about 0.3 ns each: loops that are surely shorter do not ask, and the others ask this often. A
# statement may be a whole expression of elementary functions, and its loads may miss the caches: 0.1 s at the worst.
_LONG = 1 << 20
_BETWEEN = 1 << 18  # from one question to the next
_UNKNOWN = 16  # iterations of a loop whose extent is not known
_CALL = 10_000  # of a library, or into Python
_STATEMENT = 8  # with its loads


def asks_every(stmt: Loop | While, most: int | None = None) -> int:
    """The number of iterations, a power of two, after which `stmt` asks; 0 if it is not worth asking.

    `most`: iterations of the loop, if that is known. What has no known end and no steps is work of a bounded size.
    """
    if isinstance(stmt, While):
        each = _operations((*stmt.body_cond, *stmt.body))
    else:
        if most is None and stmt.role != "sequential":
            return 0
        each = _operations(stmt.body)
        if most is not None and most * each < _LONG:
            return 0
    return 1 << max(0, (_BETWEEN // each).bit_length() - 1)


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
_ROUTINE = 1.0  # of routines that are not in the table
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
                total += max(_CALL, int(_nanoseconds(stmt) / 0.3))
            case Run():
                total += _operations(stmt.kernel.body)
            case _:
                total += _STATEMENT
    return total
