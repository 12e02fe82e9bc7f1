"""What the statements of straight code have in common is one expression."""

from pullback.loops.ir import Builder
from pullback.loops.ir.ir import Op
from pullback.loops.ir.visit import expressions, statements, subexpressions
from pullback.loops.passes.shared import shared


def roots(read):
    """The square roots in two stores that are made of elements of `read`."""
    b = Builder()
    x, y = b.input("x", "f32", 100), b.output("y", "f32", 200)
    buffers = {"x": x, "y": y}
    with b.loop(100) as i:
        for k in range(2):
            b.store(y, b.add(i, 100 * k), b.mul(b.op("sqrt", b.load(buffers[read], i)), b.const("f32", k + 2)))
    function = b.function("f")
    done = shared(function)
    every = [e for stmt in statements(done.body) for e in expressions(stmt)]
    return sum(isinstance(e, Op) and e.name == "sqrt" for e in subexpressions(every)), shared(done) is done


def test_equal_expressions_of_statements_are_one():
    assert roots("x") == (1, True)


def test_loads_of_what_is_written_stay_apart():
    assert roots("y")[0] == 2
