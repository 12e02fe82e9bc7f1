"""Repeated nests become kernels that run many times, with the meaning of the program as it was."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder, Loop, Run
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.parse import parse
from pullback.loops.ir.print import to_text
from pullback.loops.ir.visit import kernels, statements
from pullback.loops.passes.outline import outline
from pullback.loops.schedule.item_loops import of_items


def runs(function):
    return [stmt for stmt in statements(function.body) if isinstance(stmt, Run)]


def chain(steps, n=100):
    """x -> x * 2 + s, `steps` times, with a sum of what each step reads."""
    b = Builder()
    arrays = [b.buffer(f"x{k}", "f64", n, "input" if k == 0 else "output") for k in range(steps + 1)]
    sums = b.output("sums", "f64", steps)
    for k in range(steps):
        with b.carried_loop(n, [((b.const("f64", 0.0),), "add")], "reduce") as r:
            r.update(r.var + b.load(arrays[k], r.i))
        total = r.result
        b.store(sums, k, total)
        with b.loop(n) as i:
            b.store(arrays[k + 1], i, b.load(arrays[k], i) * 2.0 + total * 0.25)
    return b.function("f")


def test_repeated_nests_are_kernels_with_values_in_and_out():
    before = chain(5)
    after = outline(before)
    check(after)
    assert len(kernels(after.body)) == 2 and len(runs(after)) == 10
    assert not any(isinstance(stmt, Loop) for stmt in after.body)
    x = [np.arange(-50, 50).astype(np.float64)]  # all sums are exact
    want = interpret(before, x)
    for got, expected in zip(interpret(after, x), want):
        assert np.array_equal(got, expected)
    again = parse(to_text(after))
    check(again)
    assert to_text(again) == to_text(after)
    final = optimize_loops(after)
    check(final)
    out = [np.empty_like(w) for w in want]
    assert compile_function(final, *plan_arena(final)[:1])(x, out) == 0
    for got, expected in zip(out, want):
        assert np.array_equal(got, expected)


def test_few_or_different_nests_stay():
    assert not runs(outline(chain(1)))
    b = Builder()
    x, y = b.input("x", "f32", 64), [b.output(f"y{k}", "f32", 64) for k in range(8)]
    for k in range(8):
        with b.loop(64) as i:
            b.store(y[k], i, b.load(x, i) * float(k))
    assert not runs(outline(b.function("f")))


def test_kernels_inside_loops_and_with_threads():
    """Large repeated reductions take partial sums in memory that the kernel brings along."""
    n = 200_000
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", 8)
    with b.loop(2, "sequential") as i:
        for k in range(4):
            with b.carried_loop(n, [((b.const("f32", 0.0),), "add")], "reduce") as r:
                r.update(r.var + b.load(x, r.i) * b.load(x, r.i))
            b.store(y, i * 4 + k, r.result)
    after = outline(b.function("f"))
    assert len(kernels(after.body)) == 1 and len(runs(after)) == 4
    final = optimize_loops(after)
    check(final)
    assert any(buffer.space == "temporary" for buffer in final.buffers)
    values = np.linspace(0, 1, n).astype(np.float32)
    out = [np.empty(8, np.float32)]
    assert compile_function(final, *plan_arena(final)[:1])([values], out) == 0
    np.testing.assert_allclose(out[0], np.sum(values.astype(np.float64) ** 2), rtol=1e-6)
    assert len(set(out[0].tolist())) == 1


def test_unrolled_programs_have_few_kernels():
    """jax-ml/jax 2777: code grows with what differs, not with the number of steps."""

    def f(x, steps):
        for _ in range(steps):
            x = jnp.sin(x) * 1.01 + 0.1 * x[::-1]
        return x.sum()

    x = jnp.linspace(0, 1, 64)
    sizes = {}
    for steps in (20, 40):
        compiled = jax.jit(jax.grad(lambda x, s=steps: f(x, s))).lower(x).compile()
        sizes[steps] = compiled.memory_analysis().generated_code_size_in_bytes
        assert len(compiled(x)) == 64
    assert sizes[40] < 1.3 * sizes[20]


def test_repeated_nests_with_calls_are_kernels():
    """Loops with calls of libraries, and those over the items of a batch, with local memory of their own."""
    b = Builder()
    x = b.input("x", "f64", 12)
    arrays = [b.output(f"y{k}", "f64", 12) for k in range(4)]
    for k in range(4):
        local = b.local(f"l{k}", "f64", 3)
        with b.loop(4, "sequential", attrs=of_items(4, None)) as i:
            with b.loop(3) as j:
                b.store(local, j, b.load(x if k == 0 else arrays[k - 1], i * 3 + j) + 1.0)
            b.call("double", b.address(local), b.address(arrays[k], i * 3))
    before = b.function("f")
    after = outline(before)
    check(after)
    assert len(kernels(after.body)) == 1 and len(runs(after)) == 4

    def double(source, target):
        target[0][target[1] : target[1] + 3] = 2 * source[0][source[1] : source[1] + 3]

    values = [np.arange(12.0)]
    for got, want in zip(interpret(after, values, {"double": double}), interpret(before, values, {"double": double})):
        assert np.array_equal(got, want)
    assert np.array_equal(interpret(after, values, {"double": double})[-1], 16 * np.arange(12.0) + 30)


def test_equal_layers_with_batched_products_are_compiled_once():
    def f(x, w):
        for _ in range(layers):
            x = jax.nn.softmax(x @ w, -1) @ x.swapaxes(1, 2) @ x
        return x.sum()

    x, w = jnp.linspace(0, 1, 4 * 16 * 16).reshape(4, 16, 16), jnp.eye(16)
    sizes = {}
    for layers in (4, 8):
        compiled = jax.jit(jax.grad(f)).lower(x, w).compile()
        sizes[layers] = compiled.memory_analysis().generated_code_size_in_bytes
    assert sizes[8] - sizes[4] < 4000  # four layers more: before, 5 to 17 KB of loops over the items
