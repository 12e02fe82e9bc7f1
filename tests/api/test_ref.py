"""Mutable arrays: reads and writes outside and inside of traced functions, and where they end."""

import functools

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import ref as refs


def test_reads_and_writes():
    r = jax.new_ref(jnp.arange(3.0))
    assert isinstance(r, jax.Ref) and r.shape == (3,) and r.dtype == np.float32 and r.ndim == 1 and r.size == 3
    r[0] = 5
    r[...] += 1
    r[1:] *= 2
    np.testing.assert_array_equal(r[...], [6, 4, 6])
    np.testing.assert_array_equal(r[jnp.array([2, 0])], [6, 6])
    assert float(refs.swap(r, 1, 9.0)) == 4
    refs.set(r, None, jnp.ones(3))
    refs.addupdate(r, jnp.array([0, 0]), 1.0)
    np.testing.assert_array_equal(refs.get(r), [3, 1, 1])
    kept = r[...]
    r[...] = 0
    assert kept[0] == 3 and "Ref(" in repr(r)
    np.testing.assert_array_equal(jax.freeze(r), [0, 0, 0])
    with pytest.raises(ValueError, match="freed"):
        r[...]
    assert jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...].dtype == np.int32


def f(x):
    r = jax.new_ref(x)
    r[...] *= x
    for i in range(3):
        r[i] += i
    return r[...].sum()


def test_inside_of_transformations():
    x = jnp.arange(3.0)
    assert float(f(x)) == float(jax.jit(f)(x)) == 8
    np.testing.assert_array_equal(jax.grad(f)(x), 2 * x)
    np.testing.assert_array_equal(jax.jit(jax.grad(f))(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, 2 * x])), [8, 23])
    r = jax.new_ref(x)
    assert float(jax.grad(lambda y: (r[...] * y).sum())(1.0)) == 3


def accumulate(x):
    """Loops and branches that read and write references of the function around them."""
    r, total = jax.new_ref(x), jax.new_ref(0.0)

    def body(c, i):
        r[i] = r[i] * c
        total[...] += r[i]
        return c + r[i], r[...]

    c, seen = jax.lax.scan(body, x[0] + 1, jnp.arange(3))

    def negate():
        r[...] = -r[...]
        return total[...]

    d = jax.lax.cond(c > 5, negate, lambda: total[...] * 2)
    e = jax.lax.switch(2, [negate, lambda: 0.0, lambda: total[...] + r[0]])
    jax.lax.fori_loop(0, 3, lambda i, _: total.__setitem__(..., total[...] + r[i] * i), None)
    return c + d + e + seen.sum() + r[...].sum() + total[...]


def accumulate_by_values(x):
    r, total, c, seen = x, 0.0, x[0] + 1, []
    for i in range(3):
        r = r.at[i].multiply(c)
        total, c = total + r[i], c + r[i]
        seen.append(r)
    d, r = jnp.where(c > 5, total, total * 2), jnp.where(c > 5, -r, r)
    e = total + r[0]
    for i in range(3):
        total = total + r[i] * i
    return c + d + e + jnp.stack(seen).sum() + r.sum() + total


def test_loops_and_branches():
    for x in (jnp.arange(1.0, 4.0), jnp.arange(3.0) / 4):
        want = accumulate_by_values(x)
        for run in (accumulate, jax.jit(accumulate), jax.checkpoint(accumulate)):
            for _ in range(2):
                np.testing.assert_allclose(run(x), want, rtol=1e-6)
            np.testing.assert_allclose(jax.grad(run)(x), jax.grad(accumulate_by_values)(x), rtol=1e-5)
            np.testing.assert_allclose(jax.jit(jax.jacfwd(run))(x), jax.grad(accumulate_by_values)(x), rtol=1e-5)
        np.testing.assert_allclose(
            jax.vmap(accumulate)(jnp.stack([x, -x])), [want, accumulate_by_values(-x)], rtol=1e-5
        )


def test_loops_inside_of_loops():
    r = jax.new_ref(0.0)

    def outer(c, _):
        def inner(d, _):
            r[...] += 1
            return d + r[...], None

        return jax.lax.scan(inner, c, None, length=2)[0], r[...]

    for k in range(3):
        total, seen = jax.lax.scan(outer, 0.0, None, length=3)
        np.testing.assert_array_equal(seen, 6 * k + jnp.array([2.0, 4, 6]))
        assert float(total) == 36 * k + 21 and float(r[...]) == 6 * k + 6

    def body(c):
        r[...] -= c
        return c + 1

    assert int(jax.lax.while_loop(lambda c: r[...] > 0, body, 1)) == 7 and float(r[...]) == -3
    read_only = jax.new_ref(jnp.arange(3.0))
    np.testing.assert_array_equal(
        jax.vmap(lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + x * read_only[i], 0.0))(jnp.ones(2)), [3, 3]
    )


def test_jitted_functions_close_over_references():
    r, s = jax.new_ref(0.0), jax.new_ref(jnp.ones(2))
    traced = []

    @jax.jit
    def f(x, k=1):
        traced.append(x)
        r[...] += x
        return r[...] * s[...] * k

    for i in range(1, 5):
        np.testing.assert_array_equal(f(1.0), [i, i])
    seen = len(traced)
    for i in range(5, 9):
        np.testing.assert_array_equal(f(1.0), [i, i])
    assert len(traced) == seen  # nothing is traced again
    s[...] = jnp.array([1.0, 2.0])
    np.testing.assert_array_equal(f(2.0, k=2), [20, 40])
    assert float(r[...]) == 10
    np.testing.assert_array_equal(jax.lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(2))[1], [[11, 22], [12, 24]])
    np.testing.assert_array_equal(jax.jit(lambda: f(1.0) + f(1.0))(), [27, 54])
    jax.freeze(s)
    with pytest.raises(ValueError, match="freed"):
        f(1.0)


def test_references_as_arguments_of_jitted_functions():
    traced = []

    @functools.partial(jax.jit, static_argnames="n")
    def step(state, x, n=1):
        traced.append(x)
        state["w"][0] += x * n
        state["count"][...] += 1
        return state["w"][...].sum()

    for _ in range(2):
        state = {"w": jax.new_ref(jnp.zeros(3)), "count": jax.new_ref(0)}
        for i in range(1, 4):
            assert float(step(state, 2.0)) == 2 * i and int(state["count"][...]) == i
        assert float(step(state, 2.0, n=3)) == 12
        np.testing.assert_array_equal(state["w"][...], [12, 0, 0])
    assert len(traced) <= 4

    def loop(x):
        r = jax.new_ref(x)
        jax.lax.fori_loop(0, 3, lambda i, _: jax.jit(lambda r: r.__setitem__(..., r[...] * 2))(r), None)
        return r[...]

    assert float(jax.grad(loop)(1.0)) == 8 and float(jax.jit(loop)(1.0)) == 8


def test_what_is_not_supported_says_so():
    r = jax.new_ref(jnp.zeros(3))

    def write(x):
        r[...] = x

    def write_under_vmap(c, x):
        jax.vmap(write)(jnp.ones(3))
        return c, x

    for bad in (lambda: jax.make_jaxpr(lambda: r[...] + 1)(), lambda: jax.vmap(write)(jnp.ones(3)),
                lambda: jax.jvp(write, (jnp.ones(3),), (jnp.ones(3),)), lambda: jax.jit(jax.vmap(write))(jnp.ones(3)),
                lambda: jax.vmap(jax.jit(write))(jnp.ones(3)), lambda: jax.lax.scan(write_under_vmap, 1.0, None, 3),
                lambda: jax.jit(write).lower(jnp.ones(3))):  # fmt: skip
        with pytest.raises(NotImplementedError, match="made outside of it"):
            bad()

    def write_condition(c):
        r[...] += 1
        return c < 3

    with pytest.raises(NotImplementedError, match="cond_fun writes"):
        jax.lax.while_loop(write_condition, lambda c: c + 1, 0)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda r: r)(r)
    with pytest.raises(TypeError, match="ahead of time"):
        jax.jit(lambda r: r[...]).lower(r)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.vmap(lambda r: r[...])(r)
    with pytest.raises(ValueError, match="as two arguments"):
        jax.jit(lambda r, s: r[...] + s[...])(r, r)
    for _ in range(2):
        with pytest.raises(ValueError, match="outer variable, too"):
            jax.jit(lambda s: r[...] + s[...])(r)
    np.testing.assert_array_equal(r[...], [0, 0, 0])
    with pytest.raises(ValueError, match="shape"):
        r[...] = jnp.ones(4)
    with pytest.raises(ValueError, match="dtype"):
        r[0] = jnp.complex64(1j)
    with pytest.raises(TypeError, match="Ref itself"):
        jax.new_ref(r)
    kept = []
    jax.jit(lambda x: kept.append(jax.new_ref(x)))(1.0)
    with pytest.raises(ValueError, match="has ended"):
        kept[0][...]
