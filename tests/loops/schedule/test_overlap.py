"""Large collective operations begin where operands are there, and are waited for where results are wanted."""

from pullback.loops.ir import Function, HostCall
from pullback.loops.ir.parse import parse
from pullback.loops.ir.visit import statements
from pullback.loops.schedule.overlap import overlap

PROGRAM = """
function f {
  input x: f32[65536]
  output y: f32[65536]
  output z: f32[65536]
  temporary t: f32[65536]
  temporary u: f32[65536]
  %s
}
"""
OPERATION = "call pb_collective(0, &x[0], &t[0])"
WANTS = "parallel i < 65536 { y[i] = t[i] }"
APART = "parallel j < 65536 { z[j] = sin(x[j]) }"
CHANGES = "parallel k < 65536 { x[k] = 1:f32 }"


def _order(*lines: str) -> list[str]:
    """The statements of the program after the pass, each by a word."""
    function = overlap(parse(PROGRAM % "\n".join(lines)))
    names = {"y": "wants", "z": "apart", "x": "changes", "u": "small"}
    found = []
    for stmt in function.body:
        symbol = getattr(stmt, "symbol", None)
        found.append(symbol or names[next(s.buffer.name for s in statements((stmt,)) if hasattr(s, "value"))])
    return found


BEGIN, END = "pb_collective_begin", "pb_collective_end"


def test_what_wants_the_result_comes_after_what_does_not():
    assert _order(OPERATION, WANTS, APART) == [BEGIN, "apart", END, "wants"]
    assert _order(OPERATION, APART, WANTS) == [BEGIN, "apart", END, "wants"]
    assert _order(OPERATION, APART) == [BEGIN, "apart", END]
    assert _order(OPERATION, WANTS) == ["pb_collective", "wants"]  # nothing to do meanwhile


def test_operands_are_not_changed_before_the_end():
    assert _order(OPERATION, CHANGES, APART) == ["pb_collective", "changes", "apart"]
    assert _order(OPERATION, APART, CHANGES) == [BEGIN, "apart", END, "changes"]


def test_operations_begin_before_what_they_do_not_need():
    assert _order(APART, OPERATION, WANTS) == [BEGIN, "apart", END, "wants"]
    assert _order(CHANGES, APART, OPERATION) == ["changes", BEGIN, "apart", END]
    assert _order(APART, CHANGES, OPERATION) == ["apart", "changes", "pb_collective"]  # CHANGES waits for APART
    other = "call pb_collective(1, &x[0], &u[0])"
    assert _order(other, APART, OPERATION) == [BEGIN, BEGIN, "apart", END, END]  # in the order that they had
    number = "let n: i64 = 2 * 3"
    function = overlap(parse(PROGRAM % "\n".join((number, APART, "call pb_collective(0, &x[n], &t[0])"))))
    assert [getattr(stmt, "symbol", None) for stmt in function.body] == [None, BEGIN, None, END]


def test_operations_that_follow_each_other():
    second = "call pb_collective(1, &t[0], &u[0])"
    assert _order(OPERATION, second, APART) == [BEGIN, "apart", END, "pb_collective"]
    apart = "call pb_collective(1, &x[0], &u[0])"
    assert _order(OPERATION, apart, APART, WANTS) == [BEGIN, BEGIN, "apart", END, "wants", END]


def test_nothing_passes_python():
    function = parse(PROGRAM % f"{OPERATION}\n{APART}")
    host = HostCall(0, ())
    found = overlap(Function(function.name, function.buffers, (function.body[0], host, function.body[1])))
    assert [getattr(stmt, "symbol", None) for stmt in found.body] == ["pb_collective", None, None]


def test_small_ones_are_waited_for_at_once():
    small = (PROGRAM % f"{OPERATION}\n{APART}").replace("65536", "64")
    assert overlap(parse(small)).body[0].symbol == "pb_collective"


def test_within_loops_operations_end_in_their_iteration():
    inside = "sequential n < 3 { " + OPERATION + "\n" + APART + " }"
    (loop,) = overlap(parse(PROGRAM % inside)).body
    assert [getattr(stmt, "symbol", None) for stmt in loop.body] == [BEGIN, None, END]
