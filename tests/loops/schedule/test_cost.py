"""What ops take, by their class and the type of their elements."""

import pytest

from pullback.loops.ir import Builder
from pullback.loops.schedule.apply.vectorize import vectorize
from pullback.loops.schedule.cost import cost
from pullback.loops.schedule.machine import NOMINAL

N = 4096


def taken(dtype, of, result=None):
    """Cost of an element of a nest in lanes that stores of(builder, x, y) for each x, y of two arrays."""
    b = Builder()
    x, y, z = b.input("x", dtype, N), b.input("y", dtype, N), b.output("z", result or dtype, N)
    with b.loop(N) as i:
        b.store(z, i, of(b, b.load(x, i), b.load(y, i)))
    body = vectorize(b.function("f").body)
    return cost(body) / N, body[-1].role


@pytest.mark.parametrize("name", ["add", "mul", "sub"])
def test_lanes_are_shared_by_width(name):
    each = {dtype: taken(dtype, lambda b, x, y: b.op(name, x, y))[0] for dtype in ("i8", "i16", "f32", "f64")}
    assert each["f64"] == pytest.approx(2 * each["f32"], rel=0.1)
    assert each["i8"] < each["i16"] < each["f32"]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_division_and_roots_are_no_additions(dtype):
    plain, _ = taken(dtype, lambda b, x, y: b.op("add", x, y))
    quotient, _ = taken(dtype, lambda b, x, y: b.op("div", x, y))
    root, _ = taken(dtype, lambda b, x, y: b.op("add", b.op("sqrt", x), y))
    assert plain < quotient < root


def test_results_of_16_bits_are_rounded_and_comparisons_are_not():
    plain, _ = taken("f32", lambda b, x, y: b.op("add", x, y))
    rounded, _ = taken("bf16", lambda b, x, y: b.op("add", x, y))
    less, _ = taken("bf16", lambda b, x, y: b.op("lt", x, y), "bool")
    assert less <= plain < rounded


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_quotients_of_integers_are_taken_lane_by_lane(dtype):
    each, _ = taken(dtype, lambda b, x, y: b.op("div", x, y))
    assert each > NOMINAL.operations.quotient[dtype == "i64"]
    by_constant, role = taken(dtype, lambda b, x, y: b.op("add", b.op("div", x, b.const(dtype, 7)), y))
    assert by_constant < each and role == "vector"


def test_complex_products_are_several_real_ones():
    total, _ = taken("c64", lambda b, x, y: b.op("add", x, y))
    product, _ = taken("c64", lambda b, x, y: b.op("mul", x, y))
    assert product > total > taken("f32", lambda b, x, y: b.op("add", x, y))[0]


def test_even_pieces_of_a_nest_are_shared_evenly():
    from pullback.loops.schedule.apply.parallelize import even_pieces

    counts = {even_pieces(task * NOMINAL.task_ns, 1000) for task in range(3, 200)}
    assert all(count % 8 == 0 or count in (2, 4) for count in counts)
    assert even_pieces(50 * NOMINAL.task_ns, 5) == 5


def test_ops_beside_a_loop_are_dear_only_where_one_waits_for_the_other():
    """The first element of a row fills the time; what is made of a sum waits for it."""

    def row(waits):
        b = Builder()
        x, y = b.input("x", "f32", N), b.output("y", "f32", N)
        with b.loop(64) as i:
            with b.reduce(64, b.const("f32", 0), "add") as r:
                r.update(b.op("add", r.var, b.load(x, i * 64 + r.i)))
            of = r.result if waits else b.load(x, i * 64)
            b.store(y, i * 64, b.op("mul", b.op("mul", of, of), of))
        return cost(b.function("f").body)

    assert row(True) > row(False)
