"""Loops of steps whose elements never meet: which become loops over elements, and that they mean the same."""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.loops.ir import NP_DTYPE, Builder, Loop, Store, While
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.visit import statements
from pullback.loops.passes.outline import outline
from pullback.loops.schedule import interchange as pass_module
from pullback.loops.schedule.interchange import interchange

from .test_parallelize import run, through_passes


def loops(function):
    return [stmt for stmt in statements(function.body) if isinstance(stmt, (Loop, While))]


def is_interchanged(function):
    """Whether the steps are inside of a loop over elements, and carry what they change."""
    return any(
        any(inner.role == "sequential" and inner.carried for inner in loops_of(loop.body))
        for loop in loops(function)
        if isinstance(loop, Loop) and loop.role in ("parallel", "vector")
    )


def loops_of(body):
    return [stmt for stmt in body if isinstance(stmt, Loop)]


def elementwise(n, steps, dtype="f32"):
    """y = x / 2 + k, again and again, by way of another buffer; what was before each step is added up."""
    b = Builder()
    x, k = b.input("x", dtype, n), b.input("k", dtype, n)
    y, total, t = b.output("y", dtype, n), b.output("total", dtype, n), b.temporary("t", dtype, n)
    half = b.const(dtype, 2 if dtype[0] == "i" else 0.5)
    with b.loop(n) as i:
        b.store(y, i, b.load(x, i))
    with b.loop(n) as i:
        b.store(total, i, b.const(dtype, 0))
    with b.loop(steps, "sequential"):
        with b.loop(n) as i:
            b.store(total, i, b.load(total, i) + b.load(y, i))
            b.store(t, i, b.load(y, i) * half)
        with b.loop(n) as i:
            b.store(y, i, b.load(t, i) + b.load(k, i))
    return b.function("elementwise")


def rows(n, m, steps, shift=0):
    """The matrix s (n x m) times r (m x m) at each step, copied back as one flat array; `shift` rows apart."""
    b = Builder()
    x, r = b.input("x", "f64", n * m), b.input("r", "f64", m * m)
    s, t = b.output("s", "f64", n * m), b.temporary("t", "f64", n * m)
    with b.loop(n * m) as i:
        b.store(s, i, b.load(x, i))
    with b.loop(steps, "sequential"):
        with b.loop(n) as i, b.loop(m) as j:
            with b.carried_loop(m, [((b.const("f64", 0),), "add")], "reduce") as k:
                k.update(k.var + b.load(s, ((i + shift) % n if shift else i) * m + k.i) * b.load(r, k.i * m + j))
            b.store(t, i * m + j, k.result)
        with b.loop(n * m) as i:
            b.store(s, i, b.load(t, i))
    return b.function("rows")


def same_meaning(before, exact=True):
    after = interchange(before)
    check(after)
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(-9, 9, buffer.size).astype(NP_DTYPE[buffer.dtype]) / (1 if buffer.dtype[0] == "i" else 8)
        for buffer in before.buffers
        if buffer.space == "input"
    ]
    inputs = [x.astype(NP_DTYPE[b.dtype]) for x, b in zip(inputs, [b for b in before.buffers if b.space == "input"])]
    want = interpret(before, inputs)
    close = np.array_equal if exact else np.allclose
    for a, b in zip(interpret(after, inputs), want):
        assert close(a, b)
    final = through_passes(after)
    for backwards in (False, True):
        for a, b in zip(run(final, inputs, want, 3, backwards=backwards), want):
            assert np.allclose(a, b)
    return after


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 100])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_elementwise_steps(n, dtype):
    after = same_meaning(elementwise(n, 5, dtype))
    # What would be left of a few elements would take as long as all of them.
    whole = n >= 16 or n in (2, 3, 4, 5, 7, 8)
    assert is_interchanged(after) == whole
    if whole:
        steps = next(loop for loop in loops(after) if loop.role == "sequential")
        assert len(steps.carried) == 2 and not loops_of(steps.body)


@pytest.mark.parametrize("n, m", [(3, 3), (4, 4), (16, 3), (20, 2), (8, 1)])
def test_rows_of_a_product(n, m):
    assert is_interchanged(same_meaning(rows(n, m, 6), exact=False))


def test_rows_that_meet_stay():
    assert not is_interchanged(same_meaning(rows(4, 3, 6, shift=1)))


def test_state_that_does_not_fit_stays():
    assert not is_interchanged(same_meaning(rows(4, 20, 3)))


def test_kernels_are_taken_apart():
    b = Builder()
    x = b.output("x", "f32", 40)
    t = [b.temporary(f"t{k}", "f32", 40) for k in range(6)]
    with b.loop(40) as i:
        b.store(x, i, b.const("f32", 1))
    with b.loop(7, "sequential"):
        for source, target in zip([x, *t], [*t, x]):
            with b.loop(40) as i:
                b.store(target, i, b.load(source, i) * 0.5 + 1.0)
    outlined = outline(b.function("kernels"))
    assert len(loops(outlined)) == 2  # the start and the steps, which run a kernel
    assert is_interchanged(same_meaning(outlined))


def stacked(steps):
    """A stacked result, and a temporary that is read after the steps."""
    b = Builder()
    x, y, z = b.input("x", "f32", steps * 24), b.output("y", "f32", steps * 24), b.output("z", "f32", 24)
    c, last = b.temporary("c", "f32", 24), b.temporary("last", "f32", 24)
    with b.loop(24) as i:
        b.store(c, i, b.const("f32", 1))
    with b.loop(steps, "sequential") as step:
        with b.loop(24) as i:
            b.store(last, i, b.load(c, i))
            b.store(c, i, b.load(c, i) * 0.5 + b.load(x, step * 24 + i))
        with b.loop(24) as i:
            b.store(y, step * 24 + i, b.load(c, i))
    with b.loop(24) as i:
        b.store(z, i, b.load(last, 23 - i))
    return b.function("stacked")


@pytest.mark.parametrize(
    "n, dtype, taken", [(12, "f32", True), (7, "f64", True), (12, "f64", False), (12, "i8", False)]
)
def test_lanes_that_fill_most_of_a_register(n, dtype, taken):
    assert is_interchanged(same_meaning(elementwise(n, 5, dtype))) == taken


def test_elements_wanted_later_and_rows_in_memory():
    assert is_interchanged(same_meaning(stacked(5)))


@pytest.mark.parametrize("shift, stores, interchanged", [(0, 1, True), (24, 2, False)])
def test_rows_of_a_result_that_a_step_uses_as_scratch_space(shift, stores, interchanged):
    """What a step writes and reads again stays in registers; not what it reads of the step before."""
    b = Builder()
    x, y, c = b.input("x", "f32", 24), b.output("y", "f32", 6 * 24), b.temporary("c", "f32", 24)
    with b.loop(24) as i:
        b.store(c, i, b.load(x, i))
    with b.loop(24) as i:
        b.store(y, i, b.load(x, i))
    with b.loop(5, "sequential") as step:
        with b.loop(24) as i:
            b.store(y, step * 24 + 24 + i, b.load(c, i) * 0.5)
        with b.loop(24) as i:
            b.store(c, i, b.load(y, step * 24 + 24 - shift + i) + 1.0)
        with b.loop(24) as i:
            b.store(y, step * 24 + 24 + i, b.load(c, i) + b.load(y, step * 24 + 24 - shift + i))
    after = same_meaning(b.function("scratch"))
    assert is_interchanged(after) == interchanged
    assert sum(isinstance(s, Store) and s.buffer is y for s in statements(after.body)) == stores + 1


def nested(outer, inner):
    """Inner steps that go on from where they were: the carry stays in memory between them."""
    b = Builder()
    y, t = b.output("y", "f64", 16), b.temporary("t", "f64", 16)
    with b.loop(16) as i:
        b.store(t, i, b.const("f64", 1))
    with b.loop(outer, "sequential"):
        with b.loop(inner, "sequential"), b.loop(16) as i:
            b.store(t, i, b.load(t, i) * 1.5)
        with b.loop(16) as i:
            b.store(y, i, b.load(t, 15 - i) + 1.0)
    return b.function("nested")


def test_steps_in_steps():
    assert is_interchanged(same_meaning(nested(3, 4)))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "make, ops",
    [(stacked, 72), (partial(nested, 2), 16), (partial(rows, 17, 2), 17 * 10), (partial(elementwise, 33), 99)],
)
def test_long_loops_go_by_blocks(make, ops, size, monkeypatch):
    """Loops of so many ops a step: 12 steps are whole blocks of all these sizes, of 13 there may be some left."""
    monkeypatch.setattr(pass_module, "BLOCK", size * ops)
    for steps in (12, 13):
        after = same_meaning(make(steps), exact=False)
        assert is_interchanged(after)
        parts = [loop.extent.value for loop in loops(after) if loop.role == "sequential" and loop.carried]
        assert max(parts) == size if steps == 12 else max(parts) <= size
        assert len(parts) == (2 if steps == 13 and size > 2 else 1)


@pytest.mark.parametrize("dtype", ["i64", "u64", "f64"])
def test_steps_of_many_operations_stay(dtype):
    """300 rounds within a step: unrolled, they would take long to compile. Those of int64 are no index arithmetic."""
    b = Builder()
    y = b.output("y", dtype, 16)
    with b.loop(16) as i:
        b.store(y, i, b.const(dtype, 1))
    with b.loop(2, "sequential"), b.loop(300, "sequential"), b.loop(16) as i:
        b.store(y, i, b.load(y, i) * b.const(dtype, 3) + b.const(dtype, 1))
    after = interchange(b.function("rounds"))
    assert is_interchanged(after)
    assert len(list(statements(after.body))) < 20


def test_statements_are_looked_at_a_few_times(monkeypatch):
    """However many loops of steps there are beside each other."""
    seen = 0

    def counted(body):
        nonlocal seen
        found = list(statements(body))
        seen += len(found)
        return iter(found)

    monkeypatch.setattr(pass_module, "statements", counted)
    counts = []
    for n in (10, 40):
        b = Builder()
        y = b.output("y", "f32", 16)
        for _ in range(n):
            with b.loop(5, "sequential"), b.loop(16) as i:
                b.store(y, i, b.load(y, i) * 0.5 + 1.0)
        seen = 0
        assert is_interchanged(interchange(b.function("many")))
        counts.append(seen)
    assert counts[1] < 5 * counts[0]


def test_lanes_of_all_but_powers_of_two_overlap():
    """So that vectors of any number of lanes leave no rest: 96 bytes are a vector of 64 and a half one."""
    for n in (16, 32, 64, 96, 100, 128):
        before = elementwise(n, 5, "i8")
        held = len(interchange(before).buffers) - len(before.buffers)
        assert (held > 0) == (n in (96, 100))


SHAPES = [(1,), (2,), (3,), (5,), (11,), (15,), (16,), (17,), (4, 3), (3, 33), (1000,)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
def test_compiled_scans(shape, dtype):
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(dtype)

    def step(c, k):
        if dtype == "bool":
            a = c[0] ^ (k > 1)
        else:
            a = (c[0] * k.astype(dtype) + c[1]).astype(dtype)
        return (a, c[0]), jnp.where(k % 2 == 0, a, c[1])

    def scan(x):
        return lax.scan(step, (x, x), jnp.arange(5))

    with pb.enable_x64(dtype == "float64"):
        got = pb.jit(scan)(x)
        with pb.disable_jit():
            want = scan(x)
    for a, b in zip(pb.tree.leaves(got), pb.tree.leaves(want)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 6, 17, 40])
def test_compiled_matrices_and_math(n):
    """Stacks of small products, a vector function and a reduction within each element."""
    rng = np.random.default_rng(n)
    s, r = rng.standard_normal((n, 2, 2)), rng.standard_normal((2, 2))

    def step(s, _):
        s = jnp.tanh(s @ r)
        return s / jnp.sqrt((s * s).sum((1, 2), keepdims=True)), s[:, 0, 1]

    with pb.enable_x64():
        got = pb.jit(lambda s: lax.scan(step, s, None, length=7))(s)
    outs = []
    for _ in range(7):
        s = np.tanh(s @ r)
        outs.append(s[:, 0, 1])
        s = s / np.sqrt((s * s).sum((1, 2), keepdims=True))
    np.testing.assert_allclose(got[0], s, rtol=1e-12)
    np.testing.assert_allclose(got[1], outs, rtol=1e-12)


@pytest.mark.parametrize(("function", "count"), [(jnp.sin, 1), (lambda c: c * 0.5, 8)])
def test_lanes_do_not_hold_many_math_functions(function, count):
    """A row of 8 in each lane is 8 copies of the body: of a product of numbers, but not of a sine."""
    x = np.linspace(-1, 1, 64, dtype="f4").reshape(8, 8)
    f = pb.jit(lambda x: lax.scan(lambda c, y: (function(c) + y, c * 2), x, x[:5, None]))
    nests = f.lower(x).compile()._program.as_text("nests")
    assert nests.count("300000.0" if count == 1 else "0.5:f32") == count, nests
    want = x
    for k in range(5):
        want = np.asarray(function(want)) + x[k]
    np.testing.assert_allclose(f(x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("place", [lambda i: i, lambda i: 49 - i, lambda i: 2 * i, lambda i: 3 * i - 20])
@pytest.mark.parametrize("lanes", [16, 40])
def test_lanes_whose_steps_write_rows_of_their_own(place, lanes):
    """An array that each lane sets step by step, as `vmap` of a `fori_loop` has it; what lies outside is left out."""
    x = np.random.default_rng(0).standard_normal((lanes, 50)).astype("f4")

    def filtered(x):
        def step(i, state):
            y, out = state
            return y * np.float32(0.5) + x[i], out.at[place(i)].set(y)

        return lax.fori_loop(0, 50, step, (jnp.float32(0), jnp.zeros(100)))[1]

    want, y = np.zeros((lanes, 100), "f4"), np.zeros(lanes, "f4")
    for i in range(50):
        at = place(i) + 100 if place(i) < 0 else place(i)
        if at < 100:
            want[:, at] = y
        y = y * np.float32(0.5) + x[:, i]
    program = pb.jit(pb.vmap(filtered))
    np.testing.assert_array_equal(program(x), want)
    if place(49) == 49:
        text = program.lower(x).as_text("nests")
        assert text.index("lane") < text.index("sequential"), text


@pytest.mark.parametrize("n", [5, 16, 50])
def test_stages_that_are_rows_of_each_element(n):
    """The slopes of Runge-Kutta's stages, in an array: scratch space of a system, which its lane has in registers."""
    x = np.random.default_rng(0).standard_normal((n, 3)).astype("f4")

    def slope(s):
        x, y, z = s
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - z])

    def step(s, _):
        k = jnp.zeros((4, 3)).at[0].set(slope(s))
        for i, part in ((1, 0.5), (2, 0.5), (3, 1.0)):
            k = k.at[i].set(slope(s + 0.01 * part * k[i - 1]))
        return s + 0.01 * jnp.tensordot(jnp.array([1, 2, 2, 1.0]) / 6, k, 1), None

    program = pb.jit(pb.vmap(lambda s: lax.scan(step, s, None, length=20)[0]))
    text = program.lower(x).as_text("nests")
    if n == 50:
        assert "local" not in text and text.index("lane") < text.index("sequential"), text
    want = x.astype("f8")
    f = lambda s: np.stack(
        [10 * (s[:, 1] - s[:, 0]), s[:, 0] * (28 - s[:, 2]) - s[:, 1], s[:, 0] * s[:, 1] - s[:, 2]], 1
    )
    for _ in range(20):
        a = f(want)
        b = f(want + 0.005 * a)
        c = f(want + 0.005 * b)
        want = want + 0.01 / 6 * (a + 2 * b + 2 * c + f(want + 0.01 * c))
    np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [3, 16, 40, 41, 100])
@pytest.mark.parametrize("lag", [1, 2])
def test_rows_that_the_next_steps_read_stay_in_registers(n, lag):
    """Rows of a trajectory, set one after the other, also where the last lanes do again what others did."""
    x = np.random.default_rng(n).standard_normal((60, n)).astype("f4")

    def along_rows(x):
        return lax.fori_loop(lag, 60, lambda i, y: y.at[i].set(0.5 * y[i - 1] - 0.25 * y[i - lag] + x[i]), x)

    def two_rows(x):
        def step(i, y):
            y = y.at[i].set(0.5 * y[i - lag] + x[i])
            return y.at[i - 2].add(y[i])

        return lax.fori_loop(2, 60, step, x)

    one, two = x.copy(), x.copy()
    for i in range(lag, 60):
        one[i] = np.float32(0.5) * one[i - 1] - np.float32(0.25) * one[i - lag] + x[i]
    for i in range(2, 60):
        two[i] = np.float32(0.5) * two[i - lag] + x[i]
        two[i - 2] += two[i]
    np.testing.assert_allclose(pb.jit(along_rows)(x), one, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pb.jit(pb.vmap(along_rows))(x.T[:, :, None])[:, :, 0].T, one, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pb.jit(two_rows)(x), two, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pb.jit(pb.vmap(two_rows, 1, 1))(x), two, rtol=1e-5, atol=1e-6)
    text = pb.jit(along_rows).lower(x).as_text("nests")
    if n != 41:
        assert text.index("lane") < text.index("sequential"), text
