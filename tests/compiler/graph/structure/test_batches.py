"""Loops whose iterations do not wait for each other give what they gave, without the loop."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


def has_loop(f, *args):
    return " scan[" in jax.jit(f).lower(*args).as_text("jaxpr")


def by_hand(f, *args):
    with jax.disable_jit():
        return f(*args)


def steps(v):
    return lax.fori_loop(0, 4, lambda i, s: jnp.sin(s) * v[0] + i, v)


def shifts(x, reverse=False):
    def body(c, v):
        return (v, c[0], c[1] * 2), v + 0.5 * c[0] - c[1] * c[2]

    return lax.scan(body, (x[0], 2 * x[0], 3 * x[1]), x, reverse=reverse)


BATCHES = {
    "rows": lambda x: lax.map(lambda v: (jnp.sin(v) @ v, v.max()), x),
    "loops inside": lambda x: lax.map(steps, x),
    "maps inside": lambda x: lax.map(lambda v: lax.map(lambda u: u * v, v), x),
    "windows": lambda x: lax.map(lambda i: lax.dynamic_slice(x, (i, 1), (2, 3)), jnp.arange(len(x))),
    "factors": lambda x: lax.map(lambda v: jnp.linalg.solve(jnp.outer(v, v) + jnp.eye(len(v)), v), x),
    "batches of the user": lambda x: lax.map(lambda v: jnp.sin(v) @ v, x, batch_size=3),
    "sums": lambda x: lax.scan(lambda c, v: (c - v.sum() + v[0], v * 2), jnp.float32(3), x),
    "sums of whole numbers": lambda x: lax.scan(lambda c, v: (c + v, ()), jnp.int8(100), (9 * x[:, 0]).astype("i1"))[0],
    "a sum over a counter": lambda x: lax.fori_loop(0, len(x), lambda i, s: s + x[i, 2] * i, 0.0),
    "counters": lambda x: lax.scan(lambda c, v: (c + 3, c * v), jnp.uint8(250), x, reverse=True),
    "the step before": shifts,
    "the step after": lambda x: shifts(x, True),
    "nothing": lambda x: lax.scan(lambda c, v: (c, c * v), x[0], x),
    "gradient": jax.grad(lambda x: lax.map(lambda v: jnp.sin(v) @ v, x).sum()),
    "gradient of what is closed over": lambda x: jax.grad(
        lambda w: (lax.map(lambda v: jnp.sin(v * w) @ v, x) ** 2).sum()
    )(x[0]),
    "vmap": lambda x: jax.vmap(lambda w: lax.map(lambda v: jnp.sin(v * w).sum(), x))(x),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_what_the_loop_gives(name):
    f = BATCHES[name]
    x = np.random.default_rng(0).normal(size=(11, 5)).astype("f4")
    for n in (2, 11):
        assert not has_loop(f, x[:n]) or name == "loops inside"
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5), jax.jit(f)(x[:n]), by_hand(f, x[:n])
        )


def test_lengths_of_nought_and_one():
    for n in (0, 1):
        x = np.ones((n, 5), "f4")
        assert jax.jit(BATCHES["rows"])(x)[0].shape == (n,)
        carry, ys = jax.jit(lambda x: lax.scan(lambda c, v: (v, c), jnp.full(5, 7.0), x))(x)
        np.testing.assert_array_equal(carry, [1.0 if n else 7.0] * 5)
        np.testing.assert_array_equal(ys, np.full((n, 5), 7.0))


WAITING = {
    "branches": lambda x: lax.map(lambda v: lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), x),
    "numbers of steps": lambda x: lax.map(lambda v: lax.while_loop(lambda s: s.sum() < 9, lambda s: s + 1, v), x),
    "a carry that is read": lambda x: lax.scan(lambda c, v: (c + v.sum(), c), 0.0, x),
    "carries that change places": lambda x: lax.scan(lambda c, v: ((c[1], c[0]), c[0] + v), (0.0, 1.0), x),
    "scattered updates": lambda x: lax.map(lambda v: jnp.asarray(x)[0].at[jnp.argmax(v)].add(v[0]), x),
    "a time": lambda x: lax.scan(lambda t, v: (t + 0.1, jnp.sin(v)), 0.0, x)[0],
    "multiples of a counter": lambda x: lax.fori_loop(0, 11, lambda i, s: s + 0.1 * i, x[0, 0]),
    "sums of short floats": lambda x: lax.fori_loop(0, 11, lambda i, s: s + i, jnp.bfloat16(250)),
    "large arrays": lambda x: lax.map(lambda v: v - v.mean(0), jnp.ones((2, 300, 500)) * x[0, 0]),
    "much to store": lambda x: lax.map(lambda v: jnp.sort(jnp.outer(jnp.ones(4000), v), 0)[:2], x),
}


@pytest.mark.parametrize("name", WAITING)
def test_loops_that_stay(name):
    f = WAITING[name]
    x = np.random.default_rng(0).normal(size=(11, 5)).astype("f4")
    assert has_loop(f, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5), jax.jit(f)(x), by_hand(f, x))


def test_effects_keep_their_order_and_python_its_calls():
    seen = []

    def traced(v):
        jax.debug.callback(lambda a: seen.append(int(a)), v, ordered=True)
        return v * 2

    np.testing.assert_array_equal(jax.jit(lambda x: lax.map(traced, x))(jnp.arange(5)), np.arange(5) * 2)
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, 4]
    calls = []

    def host(a):
        calls.append(np.shape(a))
        return np.asarray(a)

    jax.jit(lambda x: lax.map(lambda v: jax.pure_callback(host, v, v), x))(jnp.arange(3.0)).block_until_ready()
    assert calls == [()] * 3


def test_many_iterations_with_something_to_store_go_in_blocks():
    """What is stored between them stays within the last cache."""
    x = np.random.default_rng(0).normal(size=(9001, 700)).astype("f4")

    def f(x):
        return lax.map(lambda v: jnp.sort(jnp.sort(v)[::-1] * v)[2:5], x)

    assert " scan[" in jax.jit(f).lower(x).as_text("jaxpr")
    expected = np.sort(np.sort(x, 1)[:, ::-1] * x, 1)[:, 2:5]
    np.testing.assert_array_equal(jax.jit(f)(x), expected)


def test_random_numbers_are_those_of_the_loop():
    keys = jax.random.split(jax.random.key(0), 4)

    def f(keys):
        return lax.map(lambda k: jax.random.normal(k, (3,)), keys)

    np.testing.assert_array_equal(jax.jit(f)(keys), jnp.stack([jax.random.normal(k, (3,)) for k in keys]))
    rbg = jax.random.split(jax.random.key(0, impl="rbg"), 4)
    np.testing.assert_array_equal(jax.jit(f)(rbg), jnp.stack([jax.random.normal(k, (3,)) for k in rbg]))
