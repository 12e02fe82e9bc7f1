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


def test_conditions_stay_as_they_were():
    """Equal ones count for each statement in prices, as they did when these were measured."""
    b = Builder()
    x, y = b.input("x", "f32", 1000), b.output("y", "f32", 2000)
    with b.loop(100) as i:
        for k in range(2):
            inside = Op("lt", "bool", (Op("add", "i64", (i, b.index(2))), b.index(50)))
            root = Op("sqrt", "f32", (b.load(x, i),))
            value = b.select(inside, b.load(x, b.add(i, k)), b.const("f32", 0))
            b.store(y, b.add(i, 100 * k), b.add(value, root))

    def counts(function):
        every = [e for stmt in statements(function.body) for e in expressions(stmt)]
        names = [e.name for e in subexpressions(every) if isinstance(e, Op)]
        return names.count("lt"), names.count("sqrt")

    function = b.function("f")
    assert (counts(function), counts(shared(function))) == ((2, 2), (2, 1))
