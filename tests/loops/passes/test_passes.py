"""What each pass does to small examples; their meaning is in test_random_nests.py."""

import numpy as np
import pytest
from tests.loops.schedule.forms import tiled, vectorized

import pullback
import pullback.numpy as jnp
from pullback.compiler.pipelines import LOOP_PASSES, PROGRAM_PASSES
from pullback.loops.ir import Builder, Loop, Store
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.print import to_text
from pullback.loops.ir.visit import statements
from pullback.loops.passes.delinearize import delinearize
from pullback.loops.passes.expand_math import expand_math
from pullback.loops.passes.simplify import simplify
from pullback.loops.passes.split import split
from pullback.loops.passes.unroll import unroll


def loops(function):
    return [(stmt.role, stmt.var.name) for stmt in statements(function.body) if isinstance(stmt, Loop)]


def same_meaning(before, after, dtype=np.float32):
    check(after)
    inputs = [np.arange(b.size).astype(dtype) for b in before.buffers if b.space == "input"]
    for a, b in zip(interpret(before, inputs), interpret(after, inputs)):
        assert np.array_equal(a, b)


def body_text(function):
    return "\n".join(line.strip() for line in to_text(function).split("\n") if "= " in line and ":" not in line)


def test_simplify_index_algebra():
    b = Builder()
    x, y = b.input("x", "f32", 48), b.output("y", "f32", 48)
    with b.loop(6) as i, b.loop(8) as j, b.loop(1) as k:
        flat = i * 8 + j + k
        b.store(y, (flat // 8) * 8 + flat % 8, b.load(x, b.min(flat, 47) % 48 + (flat % 1) * 5))
    function = b.function("f")
    after = simplify(function)
    same_meaning(function, after)
    assert loops(after) == [("parallel", "i"), ("parallel", "i1")]
    assert body_text(after) == "y[i*8 + i1] = x[i*8 + i1]"


def test_simplify_conditions_and_dead_code():
    b = Builder()
    x, y = b.input("x", "f32", 10), b.output("y", "f32", 10)
    with b.loop(10) as i:
        b.let(b.load(x, i) * 3.0, "unused")
        with b.if_(i < 10):
            b.store(y, i, b.select(i < 0, 0.0, b.load(x, i)))
    with b.loop(0) as i:
        b.store(y, i, 1.0)
    with b.carried_loop(10, [((b.const("f32", 0),), "add")], "reduce") as r:
        r.update(r.var + 1.0)
    function = b.function("f")
    after = simplify(function)
    same_meaning(function, after)
    assert len(list(statements(after.body))) == 2
    assert body_text(after) == "y[i] = x[i]"


@pytest.mark.parametrize("dtype", ["u8", "i16", "i64"])
def test_integers_times_conditions_are_choices(dtype):
    b = Builder()
    x, y = b.input("x", dtype, 10), b.output("y", dtype, 10)
    with b.loop(10) as i:
        b.store(y, i, b.op("convert", b.load(x, i) > 3, dtype=dtype) * b.load(x, i))
    function = b.function("f")
    after = simplify(function)
    same_meaning(function, after, {"u8": "u1", "i16": "i2", "i64": "i8"}[dtype])
    assert "select(gt(" in to_text(after) and "mul" not in to_text(after)


@pytest.mark.parametrize("transposed", [False, True])
def test_vectorize_takes_the_contiguous_axis(transposed):
    b = Builder()
    x, y = b.input("x", "f32", 6000), b.output("y", "f32", 6000)
    with b.loop(60, name="i") as i, b.loop(100, name="j") as j:
        at = j * 60 + i if transposed else i * 100 + j
        b.store(y, at, b.load(x, at))
    after = vectorized(b.function("f"))
    check(after)
    assert loops(after) == (
        [("parallel", "j"), ("vector", "i")] if transposed else [("parallel", "i"), ("vector", "j")]
    )


@pytest.mark.parametrize("columns", [False, True])
def test_vectorize_reductions(columns):
    b = Builder()
    x, y = b.input("x", "f32", 6400), b.output("y", "f32", 64)
    with b.loop(64, name="i") as i:
        with b.carried_loop(100, [((b.const("f32", 0),), "add")], "reduce", name="r") as r:
            r.update(r.var + b.load(x, r.i * 64 + i if columns else i * 100 + r.i))
        b.store(y, i, r.result)
    after = vectorized(b.function("f"))
    check(after)
    assert loops(after) == ([("vector", "i"), ("reduce", "r")] if columns else [("parallel", "i"), ("vector", "r")])


def test_vectorize_takes_the_nearest_of_equal_loops():
    b = Builder()
    x, y = b.input("x", "f32", 64 * 64 * 32), b.output("y", "f32", 64 * 64)
    with b.loop(64) as i, b.loop(64) as j:
        with b.carried_loop(32, [((b.const("f32", 0),), None)]) as r:
            r.update(r.var * b.load(x, (i * 64 + j) * 32 + r.i) + 1.0)
        b.store(y, i * 64 + j, r.result)
    function = b.function("f")
    after = vectorized(function)
    same_meaning(function, after)
    assert [role for role, _ in loops(after)] == ["parallel", "vector", "sequential"]


def test_vectorize_walks_scratch_space_but_does_not_share_it():
    """Loops over a local buffer get lanes; the loop whose iterations each have one does not."""
    b = Builder()
    rows, n = 64, 40
    x, y, scratch = b.input("x", "f32", rows * n), b.output("y", "f32", rows * n), b.local("scratch", "f32", n)
    with b.loop(rows) as i:
        with b.loop(n) as j:
            b.store(scratch, j, b.load(x, i * n + j) * 2.0)
        with b.loop(n) as j:
            b.store(y, i * n + j, b.load(scratch, j) + b.load(scratch, n - 1 - j))
        with b.loop(n) as j:
            b.store(y, i * n + j, b.load(y, i * n + j) + b.load(scratch, j))
    function = b.function("f")
    after = vectorized(function)
    same_meaning(function, after)
    assert [role for role, _ in loops(after)] == ["parallel", "vector", "vector", "vector"]


def test_split_concatenation_into_copies():
    b = Builder()
    x, z, y = b.input("x", "f16", 1500), b.input("z", "f16", 500), b.output("y", "f16", 2000)
    with b.loop(2000) as i:
        b.store(y, i, b.select(b.lt(i, 1500), b.load(x, i), b.load(z, i - 1500)))
    function = b.function("f")
    after = split(function)
    same_meaning(function, after, np.float16)
    text = to_text(after)
    assert len(loops(after)) == 2 and "select" not in text and "] = z[" in text


def test_split_padding_in_two_dimensions():
    b = Builder()
    x, y, s = b.input("x", "i8", 200), b.output("y", "i8", 14 * 26), b.output("s", "i8", 1)

    def padded(i, j):
        inside = b.and_(b.and_(b.ge(i, 2), b.lt(i, 12)), b.and_(b.ge(j, 3), b.lt(j, 23)))
        return b.select(inside, b.load(x, (i - 2) * 20 + j - 3), b.const("i8", 7))

    with b.loop(14) as i, b.loop(26) as j:
        b.store(y, i * 26 + j, padded(i, j))
    with b.carried_loop(26, [((b.const("i8", 0),), "add")], "reduce") as r:
        r.update(r.var + padded(b.index(11), r.i))
    b.store(s, 0, r.result)
    function = b.function("f")
    after = split(simplify(function))
    same_meaning(function, after, np.int8)
    assert "select" not in to_text(after)
    assert len(loops(after)) == 2 + 4 + 2 + 3


def test_split_leaves_small_loops_of_wide_elements():
    b = Builder()
    x, y = b.input("x", "f32", 100), b.output("y", "f32", 150)
    with b.loop(150) as i:
        b.store(y, i, b.select(b.lt(i, 100), b.load(x, i), 0.0))
    function = b.function("f")
    assert to_text(split(function)) == to_text(function)


def test_split_computes_each_side_of_a_choice_where_it_is_wanted():
    def joined(count):
        b = Builder()

        def rounds(x):
            for shift in range(1, count + 1):
                x = x ^ b.shl(x, shift)
            return x

        x, y = b.input("x", "u32", 600), b.output("y", "u32", 1200)
        with b.loop(2) as i, b.loop(600) as j:
            value = b.load(x, j)
            b.store(y, i * 600 + j, b.select(b.lt(i, 1), rounds(value), rounds(value + 1)))
        return b.function("f")

    after = split(simplify(joined(10)))
    same_meaning(joined(10), after, np.uint32)
    assert len(loops(after)) == 2 and "select" not in to_text(after)
    assert "select" in to_text(split(simplify(joined(3))))  # not worth two loops


def test_unroll_tiny_reductions():
    b = Builder()
    x, y = b.input("x", "f32", 300), b.output("y", "f32", 100)
    with b.loop(100) as i:
        with b.carried_loop(3, [((b.load(x, i),), "add"), ((b.index(0),), "max")], "reduce") as r:
            square = b.let(b.load(x, i * 3 + r.i) * b.load(x, i * 3 + r.i))
            r.update(r.vars[0] + square, b.max(r.vars[1], r.i))
        b.store(y, i, r.results[0] + b.convert(r.results[1], "f32"))
    function = b.function("f")
    after = unroll(function)
    same_meaning(function, after)
    assert loops(after) == [("parallel", "i")]
    assert "x[i*3 + 2]" in to_text(after)


@pytest.mark.parametrize("steps, name, straight", [(2, "exp", True), (8, "exp", False), (8, "sqrt", True)])
def test_steps_that_call_functions_are_not_written_out(steps, name, straight):
    b = Builder()
    x, y = b.input("x", "f32", 100), b.output("y", "f32", 100)
    with b.loop(100) as i:
        with b.carried_loop(steps, [((b.load(x, i),), None)], "sequential") as step:
            step.update(b.op(name, step.var) + b.load(x, i))
        b.store(y, i, step.result)
    assert (len(loops(unroll(b.function("f")))) == 1) == straight


@pytest.mark.parametrize("n", [3, 8])
def test_rows_at_computed_places_stay_lanes_and_state_does_not(n):
    """A row that a scatter adds to is one vector; what stays where it is in all steps is kept in registers."""
    b = Builder()
    x, at = b.input("x", "f32", 20 * n), b.input("at", "f32", 20)
    y, state = b.output("y", "f32", 50 * n), b.output("state", "f32", n)
    with b.loop(n) as k:
        b.store(state, k, b.const("f32", 0))
    with b.loop(50 * n) as k:
        b.store(y, k, b.const("f32", 0))
    with b.loop(20, "sequential") as i:
        place = b.let(b.min(b.max(b.convert(b.load(at, i), "i64"), 0), 49))
        with b.loop(n) as k:
            b.store(y, place * n + k, b.load(y, place * n + k) + b.load(x, i * n + k))
        with b.loop(n) as k:
            b.store(state, k, b.load(state, k) * 0.5 + b.load(x, i * n + k))
    function = b.function("f")
    after = unroll(function)
    same_meaning(function, after)
    assert [role for role, _ in loops(after)] == ["parallel", "sequential", "parallel"]  # zeros, steps, a row in them


@pytest.mark.parametrize("count", [5, 16, 60])
def test_unroll_choices_among_the_parts_of_a_stack(count):
    b = Builder()
    x, y = b.input("x", "f32", count * 10), b.output("y", "f32", 10)
    with b.loop(10) as i:
        with b.carried_loop(count, [((b.const("f32", 0),), "add")], "reduce") as r:
            part = b.load(x, (count - 1) * 10 + i)
            for k in range(count - 2, -1, -1):
                part = b.select(b.lt(r.i, k + 1), b.load(x, k * 10 + i), part)
            r.update(r.var + part)
        b.store(y, i, r.result)
    function = b.function("stacked")
    after = unroll(function)
    assert loops(after) == [("parallel", "i")] and "select" not in to_text(after)
    same_meaning(function, after)


@pytest.mark.parametrize("n", [192, 200])
def test_tile_cuts_transposes_into_blocks(n):
    b = Builder()
    x, y = b.input("x", "f32", n * n), b.output("y", "f32", n * n)
    with b.loop(n, name="i") as i, b.loop(n, name="j") as j:
        b.store(y, i * n + j, b.load(x, j * n + i))
    function = b.function("f")
    after = tiled(vectorized(function))
    same_meaning(function, after)
    names = ["i_block", "j_block", "j_in", "i_in"]
    assert loops(after) == list(zip(["parallel", "parallel", "vector", "parallel"], names))
    assert to_text(after).count("square=True") == 1


@pytest.mark.parametrize("n, axes", [(3, []), (4, ["j"]), (5, ["j"]), (8, ["i1", "j"])])
def test_rows_of_small_matrices_among_steps_are_lanes_side_by_side(n, axes):
    """Of more elements than are kept in registers: lanes along the columns would read and store what lies apart."""
    b = Builder()
    x, y, state = b.input("x", "f32", n * n), b.output("y", "f32", 7 * n * n), b.input("state", "f32", n * n)
    with b.loop(7, "sequential") as step, b.loop(n, name="i") as i, b.loop(n, name="j") as j:
        with b.carried_loop(n, [((b.const("f32", 0),), "add")], "reduce") as r:
            r.update(r.vars[0] + b.load(x, i * n + r.i) * b.load(state, r.i * n + j))
        b.store(y, (step * n + i) * n + j, r.results[0])
    function = b.function("f")
    after = unroll(function)
    same_meaning(function, after)
    assert [name for role, name in loops(after) if role == "parallel"] == axes


def test_channels_are_written_out_inside_of_pixels():
    b = Builder()
    x, y = b.input("x", "f32", 3 * 40), b.output("y", "f32", 3 * 40)
    with b.loop(3, name="c") as c, b.loop(40, name="i") as i:
        t = b.let(b.load(x, i * 3 + c))
        b.store(y, c * 40 + i, t * t)
    function = b.function("f")
    after = tiled(vectorized(function))
    same_meaning(function, after)
    assert loops(after) == [("vector", "i")]


def test_small_transposes_are_squares_without_blocks():
    b = Builder()
    x, y = b.input("x", "f32", 20 * 30), b.output("y", "f32", 20 * 30)
    with b.loop(20, name="i") as i, b.loop(30, name="j") as j:
        b.store(y, i * 30 + j, b.load(x, j * 20 + i))
    function = b.function("f")
    after = tiled(vectorized(function))
    same_meaning(function, after)
    assert loops(after) == [("vector", "j"), ("parallel", "i")] and "square=True" in to_text(after)


@pytest.mark.parametrize(("rows", "columns"), [(1024, 40), (24, 2048), (64, 1030)])
def test_tile_copies_lines_that_compete_for_places(rows, columns):
    """Lanes 4096 or 8192 bytes apart: each line is read once, to scratch space; other strides are left in place."""
    b = Builder()
    x, y = b.input("x", "f32", rows * columns), b.output("y", "f32", rows * columns)
    with b.loop(columns, name="i") as i, b.loop(rows, name="j") as j:
        b.store(y, i * rows + j, b.load(x, j * columns + i))
    function = b.function("f")
    after = tiled(vectorized(function))
    same_meaning(function, after)
    copied = [var for _, var in loops(after) if var.endswith("_copied")]
    assert copied == (["j_in_copied", "i_in_copied"] if columns % 1024 == 0 else [])


def test_tile_copies_only_loads_that_are_always_done():
    b = Builder()
    n = 1024
    x, y, z = b.input("x", "f32", n * n), b.output("y", "f32", n * n), b.output("z", "f32", n * n)
    with b.loop(n, name="i") as i, b.loop(n, name="j") as j:
        b.store(y, i * n + j, b.select(b.lt(i, j), b.load(x, j * n + i), b.const("f32", 0)))
        b.store(z, i * n + j, b.load(y, i * n + j))
    after = tiled(vectorized(b.function("f")))
    assert not any(var.endswith("_copied") for _, var in loops(after))


def test_tile_looks_at_expressions_once_that_share_operands():
    b = Builder()
    n = 1024
    x, y = b.input("x", "i32", n * n), b.output("y", "i32", n * n)
    with b.loop(n, name="i") as i, b.loop(n, name="j") as j:
        value = b.load(x, j * n + i)
        for _ in range(64):
            value = b.add(b.mul(value, value), value)  # 3 ** 64 paths
        b.store(y, i * n + j, value)
    assert any(var.endswith("_copied") for _, var in loops(tiled(vectorized(b.function("f")))))


def test_tile_leaves_other_nests_alone():
    b = Builder()
    x, y = b.input("x", "f32", 40000), b.output("y", "f32", 40000)
    with b.loop(200, name="i") as i, b.loop(200, name="j") as j:
        b.store(y, i * 200 + j, b.load(x, i * 200 + 199 - j) + b.load(x, j))
    before = vectorized(b.function("f"))
    assert to_text(tiled(before)) == to_text(before)


def test_passes_do_not_change_what_they_are_given():
    b = Builder()
    x, y = b.input("x", "f32", 600), b.output("y", "f32", 600)
    with b.loop(20) as i, b.loop(30) as j:
        b.store(y, j * 20 + i, b.exp(b.load(x, j * 20 + i)))
    function = b.function("f")
    text = to_text(function)
    for step in (*PROGRAM_PASSES, *LOOP_PASSES):
        step.run(function)
        assert to_text(function) == text


def test_kinds_that_take_turns_are_computed_in_one_pass():
    """An axis of two elements that are computed differently disappears, as in stack(..., axis=-1)."""
    b = Builder()
    x, y = b.input("x", "f32", 600), b.output("y", "f32", 1200)
    with b.loop(600) as i, b.loop(2) as j:
        value = b.load(x, i)
        b.store(y, i * 2 + j, b.select(b.eq(j, 0), value * 2.0, value + 1.0))
    function = b.function("f")
    after = split(simplify(function))
    assert sum(isinstance(stmt, Loop) for stmt in statements(after.body)) == 1
    assert sum(isinstance(stmt, Store) for stmt in statements(after.body)) == 2
    data = np.arange(600, dtype=np.float32)
    for before, now in zip(interpret(function, [data]), interpret(after, [data])):
        np.testing.assert_array_equal(before, now)


def test_places_made_of_indices_alone_are_indices():
    """Whatever integers the program computes them in; what may wrap stays as it is."""
    v = jnp.arange(300.0)
    grid = lambda v: v[jnp.arange(50)[:, None] + 2 * jnp.arange(7)]
    assert "convert" not in pullback.jit(grid).lower(v).as_text("nests")
    np.testing.assert_array_equal(pullback.jit(grid)(v), grid(v))
    wraps = lambda v: v.at[jnp.arange(200, dtype="uint8")[:, None] + jnp.arange(100, dtype="uint8")].get(mode="fill")
    assert "256" in pullback.jit(wraps).lower(v).as_text("nests")
    np.testing.assert_array_equal(pullback.jit(wraps)(v), wraps(v))


@pytest.mark.parametrize("part", [8, 12, 24, 36])
def test_indices_that_are_taken_apart_are_two_axes(part):
    """Quotients and remainders by a part and by its multiples; nothing is divided in lanes."""
    b = Builder()
    x, y = b.input("x", "f32", 720), b.output("y", "f32", 5 * 72)
    with b.loop(5) as j, b.loop(72, "parallel") as i:
        places = [b.op(name, i, d) for d in (part, 72 // part * part, 2 * part) for name in ("floordiv", "floormod")]
        total = b.const("f32", 0.0)
        for k, place in enumerate(places):
            at = b.op("add", b.op("mul", place, k % 3 + 1), j)
            total = b.op("add", b.op("mul", total, 2.0), b.load(x, at))
        b.store(y, b.op("add", b.op("mul", j, 72), i), b.op("add", total, b.op("convert", i, dtype="f32")))
    function = simplify(b.function("f"))
    after = delinearize(function)
    check(after)
    inner = [s for s in statements(after.body) if isinstance(s, Loop)][-1]
    assert inner.extent.value == part and "floordiv{nonneg=True}(i_d2" not in to_text(after)
    data = np.arange(720, dtype="f4")
    for before, now in zip(interpret(function, [data]), interpret(after, [data])):
        np.testing.assert_array_equal(before, now)


@pytest.mark.parametrize("n, m, parts", [(20, 7, False), (20, 9, True), (20, 33, True), (7, 130, True)])
def test_reductions_over_parts_are_two(n, m, parts):
    """Statistics of whole arrays whose rows do not follow each other."""
    x = np.random.default_rng(0).normal(size=(n, 3, m)).astype("f4")
    moments = pullback.jit(lambda x: (x[:, 1].ravel().sum(), x[:, 1].std(), x[:, 1].max()))
    assert ("_d2" in moments.lower(x).as_text("nests")) == parts
    np.testing.assert_allclose(moments(x), [f(x[:, 1].astype("f8")) for f in (np.sum, np.std, np.max)], rtol=1e-5)
    largest = pullback.jit(lambda x: jnp.argmax(x[:, 1]))
    assert ("_d2" in largest.lower(x).as_text("nests")) == (m >= 128)
    for place in (0, n * m // 2, n * m - 1):
        x[:, 1].flat[...] = 0
        x[np.unravel_index(place, (n, m))[0], 1, place % m] = np.nan if place else 1
        assert largest(x) == np.argmax(x[:, 1])


def test_short_parts_stay_in_one_axis():
    x = jnp.arange(3.0 * 4 * 500).reshape(4, 500, 3)
    text = pullback.jit(lambda x: x.transpose(1, 2, 0).reshape(500, 12) + 1).lower(x).as_text("nests")
    assert "_d1" not in text


BENDS = {
    "bounds": lambda np_, u, i: u[np_.minimum(i + 1, len(u) - 1)] + u[np_.maximum(i - 2, 0)],
    "clip": lambda np_, u, i: u[np_.clip(i + 3, 0, len(u) - 1)] - u[np_.clip(i - 3, 0, len(u) - 1)],
    "period": lambda np_, u, i: u[(i + 1) % len(u)] + u[(i - 1) % len(u)],
    "reversed": lambda np_, u, i: u[(5 - i) % len(u)],
    "where": lambda np_, u, i: u[np_.where(i + 2 < len(u), i + 2, 0)],
}


@pytest.mark.parametrize("name", BENDS)
def test_indices_with_bounds_or_periods_are_neighbours_in_between(name):
    f = BENDS[name]
    for n in (1, 2, 7, 300, 1000):
        u = np.random.default_rng(n).normal(size=n).astype(np.float32)
        compiled = pullback.jit(lambda u, n=n: f(jnp, u, jnp.arange(n)))
        np.testing.assert_allclose(compiled(u), f(np, u, np.arange(n)), rtol=1e-6)
    text = compiled.lower(u).as_text("nests")
    between = [part for part in text.split("vector") if not part.startswith("{rim")]
    assert not any(word in part for part in between for word in ("rem(", "select", "max(", "floormod"))


def test_conditions_on_data_in_indices_are_asked_of_the_data():
    u, v = np.arange(400, dtype=np.float32), np.random.default_rng(0).normal(size=400).astype(np.float32)
    f = lambda np_, u, v: u[np_.where(v > 0.7, np_.arange(400), 3)]
    np.testing.assert_array_equal(pullback.jit(lambda u, v: f(jnp, u, v))(u, v), f(np, u, v))


@pytest.mark.parametrize(("offset", "products"), [(0, True), (60, False), (-1, False)])
def test_powers_by_indices_are_products(offset, products):
    """Where bounds say that the exponent is a small whole number; others go by logarithms."""
    b = Builder()
    x, y = b.input("x", "f32", 16), b.output("y", "f32", 16)
    with b.loop(16) as i:
        b.store(y, i, b.op("pow", b.load(x, i), b.convert(i + offset, "f32")))
    before = b.function("f")
    after = expand_math(before)
    assert ("div(" not in to_text(after)) == products
    given = [np.linspace(0.7, 1.3, 16).astype("f4")]
    (want,), (got,) = interpret(before, given), interpret(after, given)
    np.testing.assert_allclose(got, want, rtol=2e-7)
