"""Straight code of short rows stores each element once, at its end, and reads none of them back."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.loops.ir import Builder, Store
from pullback.loops.ir.check import check
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.ir import Function, Loop
from pullback.loops.ir.print import to_text
from pullback.loops.ir.visit import loads, statements
from pullback.loops.passes.forward import forwarded
from pullback.loops.passes.unroll import unroll

N = 40


def softmax_nest(width):
    b = Builder()
    x, y = b.input("x", "f32", N * width), b.output("y", "f32", N * width)
    with b.loop(N) as i:
        with b.reduce(width, b.const("f32", 0.0), "add") as total:
            e = b.let(b.op("exp", b.load(x, i * width + total.i)))
            b.store(y, i * width + total.i, e)
            total.update(b.op("add", total.var, e))
        with b.loop(width) as k:
            b.store(y, i * width + k, b.op("div", b.load(y, i * width + k), total.result))
    return b.function("f")


def body_of(function):
    (loop,) = function.body
    return loop, loop.body


def with_body(function, loop, body):
    new = Loop(loop.var, loop.extent, loop.role, body, loop.carried, loop.attrs)
    result = Function(function.name, function.buffers, (new,))
    check(result)
    return result


def test_places_that_may_be_the_same_stay():
    """A load between the stores of what any of them may have written; and rows that overlap."""
    b = Builder()
    x, y = b.input("x", "f32", N), b.output("y", "f32", 3 * N)
    with b.loop(N) as i:
        b.store(y, i * 2, b.load(x, i))
        t = b.let(b.load(y, i * 2 + 1 - i))
        b.store(y, i * 2 + 1, t)
    _, body = body_of(b.function("f"))
    assert forwarded(body, Fresh("t")) == body


def test_last_values_count():
    b = Builder()
    x, y = b.input("x", "f32", 2 * N), b.output("y", "f32", 2 * N)
    with b.loop(N) as i:
        b.store(y, i * 2 + 1, b.load(x, i * 2))
        b.store(y, i * 2, b.op("add", b.load(y, i * 2 + 1), b.const("f32", 1.0)))
        t = b.let(b.op("mul", b.load(y, i * 2), b.load(y, i * 2 + 1)))
        b.store(y, i * 2 + 1, b.op("sub", t, b.load(x, i * 2 + 1)))
        u = b.let(b.load(y, i * 2 + 1))
        b.store(y, i * 2, b.op("add", u, b.load(y, i * 2)))
    before = b.function("f")
    loop, body = body_of(before)
    after = with_body(before, loop, forwarded(body, Fresh("t")))
    stores = [stmt for stmt in statements(after.body) if isinstance(stmt, Store)]
    assert len(stores) == 2 and "= y[" not in to_text(after).replace("(y[", "= y[")
    given = [np.random.default_rng(0).standard_normal(2 * N).astype("f4")]
    np.testing.assert_array_equal(interpret(after, given)[0], interpret(before, given)[0])


@pytest.mark.parametrize("width", [2, 3, 4])
def test_softmax(width):
    before = softmax_nest(width)
    after = unroll(before)
    stores = [stmt for stmt in statements(after.body) if isinstance(stmt, Store)]
    assert len(stores) == width
    assert all(buffer.space == "input" for stmt in statements(after.body) for buffer in loads(stmt))
    given = [np.random.default_rng(0).standard_normal(N * width).astype("f4")]
    np.testing.assert_allclose(interpret(after, given)[0], interpret(before, given)[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "c8"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8])
def test_running_results_of_short_rows(width, dtype):
    x = (np.random.default_rng(0).standard_normal((53, width)) * 3).astype(dtype)
    with jax.enable_x64(dtype == "f8"):
        sums, back, products = jax.jit(
            lambda x: (jnp.cumsum(x, 1), jax.lax.cumsum(x, 1, reverse=True), jnp.cumprod(x + 1, 1) - x)
        )(x)
        assert sums.dtype == x.dtype
    loose = {"rtol": 2e-2, "atol": 1e-1} if dtype == "f2" else {"rtol": 1e-4, "atol": 1e-3}
    np.testing.assert_allclose(sums, np.cumsum(x, 1), **loose)
    np.testing.assert_allclose(back, np.cumsum(x[:, ::-1], 1)[:, ::-1], **loose)
    if dtype != "f2":
        np.testing.assert_allclose(products, np.cumprod(x + 1, 1) - x, **loose)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scratch_space_of_straight_code_is_not_stored_to(dtype):
    """Exponentials that the result would round are in scratch space of a row, and in registers of a short one."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal((700, 7)) * 3).astype(dtype)
    f = lambda x: jax.nn.softmax(x.astype("float32")).astype(dtype)
    assert "row[" not in jax.jit(f).lower(x).as_text("nests")
    wanted = jax.nn.softmax(np.asarray(x).astype("f4")).astype(dtype)
    np.testing.assert_allclose(*(np.asarray(y).astype("f4") for y in (jax.jit(f)(x), wanted)), rtol=2**-7)
