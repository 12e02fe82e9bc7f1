"""Concatenations and stacks of many arrays are copies; of few they are choices."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

SHAPES = [[(1,)] * 40, [(k % 3,) for k in range(20)], [(2, k % 4, 3) for k in range(30)]]


def pieces(shapes, dtype):
    rng = np.random.default_rng(0)
    return [(rng.normal(size=shape) * 5).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int8, np.bool_])
def test_values(dtype):
    many = pieces([(7, 5)] * 21, dtype)

    @jax.jit
    def f(xs, scalars):
        ours = [jnp.concatenate(xs, axis) for axis in (0, 1)] + [jnp.stack(xs, axis) for axis in (0, 1, 2)]
        return *ours, jnp.stack(scalars)[::-1], jnp.stack([*scalars, *[scalars[0]] * 3, jnp.array(True).astype(dtype)])

    scalars = [x[0, 0] for x in many]
    want = [np.concatenate(many, axis) for axis in (0, 1)] + [np.stack(many, axis) for axis in (0, 1, 2)]
    want += [np.stack(scalars)[::-1], np.stack([*scalars, *[scalars[0]] * 3, np.ones((), dtype)])]
    for got, each in zip(f(many, scalars), want, strict=True):
        np.testing.assert_array_equal(got, each)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_sizes_that_differ_and_derivatives(shapes):
    xs = [np.rint(x) for x in pieces(shapes, np.float32)]
    axis = 1 if len(shapes[0]) > 1 else 0
    joined = np.concatenate(xs, axis)
    weights = np.arange(joined.size, dtype=np.float32).reshape(joined.shape)

    def f(xs):
        return jnp.sum(jnp.concatenate([x * 2 for x in xs], axis) * weights)

    np.testing.assert_allclose(jax.jit(f)(xs), np.sum(2 * joined * weights), rtol=1e-5)
    bars = jax.jit(jax.grad(f))(xs)
    np.testing.assert_array_equal(np.concatenate(bars, axis), 2 * weights)
    tangent = jax.jit(lambda xs: jax.jvp(f, (xs,), (xs,))[1])(xs)
    np.testing.assert_allclose(tangent, np.sum(2 * joined * weights), rtol=1e-5)


def test_among_the_steps_of_a_loop_and_mapped():
    def step(carry, x):
        parts = [carry * 0.5 + k * x for k in range(20)]
        return jnp.sum(jnp.stack(parts) * 0.01, 0), jnp.concatenate([part[:1] for part in parts])

    def f(x):
        return lax.scan(step, x, jnp.arange(3.0))

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    carry, rows = jax.jit(jax.vmap(f))(x)
    with jax.disable_jit():
        for got, start, out in zip(rows, x, carry, strict=True):
            want, want_rows = f(start)
            np.testing.assert_allclose(got, want_rows, rtol=1e-6)
            np.testing.assert_allclose(out, want, rtol=1e-6)


def choices(f, n):
    return jax.jit(f).lower([np.ones(3, np.float32)] * n).as_text("loops").count("select")


def test_work_does_not_grow_with_the_square():
    def f(xs):
        return jnp.concatenate([x + 1 for x in xs])

    assert [choices(f, n) for n in (16, 17, 100)] == [15, 0, 0]


def test_sums_along_the_axis_stay_straight_code():
    def f(xs):
        return jnp.mean(2 * jnp.stack(xs), 0)

    assert choices(f, 40) == 39 and choices(f, 65) == 0
    np.testing.assert_array_equal(jax.jit(f)([np.ones(3, np.float32)] * 40), [2, 2, 2])


@pytest.mark.parametrize("count", [10, 24, 40, 64])
@pytest.mark.parametrize("join", [jnp.concatenate, jnp.stack])
def test_no_piece_of_rows_is_computed_where_another_lies(join, count):
    """Lanes that compute every piece for each element take as many times as long."""
    x = pieces([(40, 5)], np.float32)[0]

    def f(x):
        return join([jnp.tanh(k * x) for k in range(count)], -1)

    text = jax.jit(f).lower(x).as_text("nests")
    choices = [line for line in text.splitlines() if "select(lt(i" in line or "select(eq(i" in line]
    assert not choices
    np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-6)


def primitives(f, *args):
    return [e.primitive.name for e in optimize_jaxpr(jax.make_jaxpr(f)(*args)).jaxpr.eqns]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("count", [9, 17, 100])
def test_many_slices_at_equal_distances_are_read_where_they_lie(count, axis):
    x = np.random.default_rng(0).standard_normal((3, 250, 4)).astype("f4")
    pieces = [lambda x, k=k: x[1:, 240 - 2 * k : 249 - 2 * k, ::2] for k in range(count)]
    f = lambda x: jnp.stack([piece(x) for piece in pieces], axis)
    assert "gather" in primitives(f, x) and "join" not in primitives(f, x)
    np.testing.assert_array_equal(jax.jit(f)(x), np.stack([piece(x) for piece in pieces], axis))
    g = lambda x: jnp.concatenate([piece(x) for piece in pieces], min(axis, 1))
    np.testing.assert_array_equal(jax.jit(g)(x), np.concatenate([piece(x) for piece in pieces], min(axis, 1)))


def test_slices_at_other_distances_are_copied():
    x = np.arange(500.0, dtype="f4")
    starts = [k * k for k in range(20)]
    f = lambda x: jnp.stack([x[k : k + 30] for k in starts])
    assert "gather" not in primitives(f, x) and "join" in primitives(f, x)
    np.testing.assert_array_equal(jax.jit(f)(x), np.stack([x[k : k + 30] for k in starts]))
    strided = lambda x: jnp.stack([x[k : k + 30 : 3] for k in range(20)])
    np.testing.assert_array_equal(jax.jit(strided)(x), np.stack([x[k : k + 30 : 3] for k in range(20)]))


def test_sums_of_a_stack_of_slices_stay_choices():
    x = np.arange(500.0, dtype="f4")
    f = lambda x: jnp.stack([x[k : k + 400] for k in range(20)]).sum(0)
    assert "gather" not in primitives(f, x)
    np.testing.assert_allclose(jax.jit(f)(x), sum(x[k : k + 400] for k in range(20)))
    g = jax.jit(jax.grad(lambda x: (jnp.stack([x[k : k + 400] for k in range(20)]) ** 2).sum()))
    expected = sum(np.pad(2 * x[k : k + 400], (k, 100 - k)) for k in range(20))
    np.testing.assert_allclose(g(x), expected)
