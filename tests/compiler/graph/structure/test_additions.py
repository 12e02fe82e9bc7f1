"""Loops that read few elements of an array in each iteration: their derivatives touch few elements, too."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.core.jaxpr import jaxprs_in_params

N = 160
X = np.sin(np.arange(N, dtype="f4")) * 0.3
FEW = 32  # elements that an equation inside of a loop computes at most


def dense(jaxpr, inside=False):
    """Equations inside of backward loops that compute large arrays otherwise than by changing few elements of one."""
    found = []
    for eqn in jaxpr.eqns:
        inner = list(jaxprs_in_params(eqn.params))
        for each in inner:
            found += dense(each, inside or eqn.params.get("reverse") is True)
        small = eqn.primitive.name in (
            "dynamic_update_slice",
            "scatter-add",
            "scatter-sub",
            "broadcast_in_dim",
            "slice",
        )
        if inside and not inner and not small and any(out.aval.size > FEW for out in eqn.outvars):
            found.append(eqn.primitive.name)
    return found


def steps(step, n=N):
    def body(c, i):
        c = step(c, i)
        return c, c

    return lax.scan(body, 0.0, jnp.arange(n))[1]


def branches(x, c, i):
    return c * 0.2 + lax.switch(i % 3, [lambda: x[i] * x[i - 1], lambda: x[i - 2], lambda: 0.0])


def inner_loop(x, c, i):
    return c * 0.5 + lax.fori_loop(0, 3, lambda k, s: s * 0.5 + x[i - k] * x[i], 0.0)


def loop_in_branch(x, c, i):
    return lax.cond(i % 2 == 0, lambda c: inner_loop(x, c, i), lambda c: c + x[i] * x[i - 1], c)


def branch_in_loop(x, c, i):
    step = lambda k, s: lax.cond(k + i > 3, lambda s: s + x[i - k], lambda s: s * x[i], s)
    return c * 0.5 + lax.fori_loop(0, 3, step, 0.1)


PROGRAMS = {
    "two": lambda x: steps(lambda c, i: c * 0.5 + x[i] * x[i - 1]),
    "twelve": lambda x: steps(lambda c, i: c * 0.5 + sum(x[i - k] for k in range(12))),
    "columns": lambda x: steps(lambda c, i: c * 0.5 + x.reshape(-1, 4)[i, 1] * x.reshape(-1, 4)[i - 1, 2], N // 4),
    "turned": lambda x: steps(lambda c, i: c * 0.5 + (lambda y: y[1, i] * y[2, i - 1])(x.reshape(-1, 4).T), N // 4),
    "flat": lambda x: steps(lambda c, i: c * 0.5 + x.reshape(8, -1, 2).reshape(16, -1)[i, 1] * x[i], 16),
    "padded": lambda x: steps(lambda c, i: c * 0.5 + x[5:-7][i] * jnp.pad(x, 3)[i], N - 12),
    "joined": lambda x: steps(lambda c, i: c * 0.5 + jnp.concatenate([x, x[:9]])[i] * x[i]),
    "scaled": lambda x: steps(lambda c, i: c * 0.5 + (-2.0 * x)[i] * (x / 3)[i - 1]),
    "windows": lambda x: steps(lambda c, i: c * 0.5 + lax.dynamic_slice(x, (i,), (5,)).mean() * x[i]),
    "places": lambda x: steps(lambda c, i: c * 0.5 + (x[jnp.stack([i, i - 1])] * x[jnp.stack([i - 3, i])]).sum()),
    "masked": lambda x: steps(lambda c, i: c * 0.5 + jnp.where(c > 0, x, 0.0)[i] * x[i - 1]),
    "branches": lambda x: steps(lambda c, i: branches(x, c, i)),
    "inner": lambda x: steps(lambda c, i: inner_loop(x, c, i)),
    "loop in branch": lambda x: steps(lambda c, i: loop_in_branch(x, c, i)),
    "branch in loop": lambda x: steps(lambda c, i: branch_in_loop(x, c, i)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_passes_touch_few_elements(name):
    gradient = pb.grad(lambda x: jnp.sum(PROGRAMS[name](x) ** 2))
    assert dense(optimize_jaxpr(pb.make_jaxpr(gradient)(X)).jaxpr) == []
    got = np.asarray(pb.jit(gradient)(X))
    # Differences of a whole column, along a direction of random signs.
    way = np.where(np.random.default_rng(0).random(N) < 0.5, -1, 1).astype("f4")
    with pb.enable_x64(True):
        f = pb.jit(lambda x: jnp.sum(PROGRAMS[name](x) ** 2))
        x = jnp.asarray(X.astype("f8"))
        want = (f(x + 1e-5 * way) - f(x - 1e-5 * way)) / 2e-5
    np.testing.assert_allclose(np.dot(got.astype("f8"), way), want, rtol=2e-4, atol=2e-5 * np.abs(got).sum())


def test_sums_that_loops_carry_otherwise_are_left():
    """What a loop reads of the sum that it carries is not what it would read of a larger one."""

    def f(x, y):
        def body(s, i):
            return s.at[i].add(x[i] + s[i - 1]), s.sum()

        s, totals = lax.scan(body, jnp.zeros(N), jnp.arange(N))
        return y + s, totals

    x = X.astype("f4")
    got, totals = pb.jit(f)(x, 1 + x)
    with pb.disable_jit():
        want, sums = f(x, 1 + x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(totals, sums, rtol=1e-4, atol=1e-4)


def test_loops_that_add_start_at_the_other_summand():
    def f(x, y):
        s = lax.fori_loop(0, 9, lambda i, s: s.at[i * i].add(x[i]).at[3].add(1.0), jnp.zeros(N))
        return s, y + s

    g = lambda x, y: f(x, y)[1]
    want = X + 1
    want[np.arange(9) ** 2] += X[:9]
    want[3] += 9
    np.testing.assert_allclose(pb.jit(g)(X, X + 1), want, rtol=1e-6)
    zeros, total = pb.jit(f)(X, X + 1)  # where the sum is wanted by itself, too
    np.testing.assert_allclose(total, want, rtol=1e-6)
    np.testing.assert_allclose(zeros, want - (X + 1), atol=1e-6)


@pytest.mark.parametrize("other", [jnp.negative, lambda z: 2 * z, lambda z: z[::-1], lambda z: jnp.pad(z[9:], (0, 9))])
def test_what_a_loop_or_a_branch_has_added_is_added_once(other):
    """Whatever other rules make of the sum: that of a negative number is a difference."""

    def f(u, z, p):
        s = lax.fori_loop(0, 9, lambda i, s: s.at[i * i].add(u[i]), jnp.zeros(N))
        c = lax.cond(p > 0, lambda: jnp.zeros(N).at[3].add(u[0]), lambda: jnp.zeros(N))
        return other(z) + s, c + other(z)

    with pb.disable_jit():
        want = f(X + 1, X, 1)
    for a, b in zip(pb.jit(f)(X + 1, X, 1), want):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_is_no_sum_of_terms_is_done_to_the_sum():
    """Of numbers added at one place, the whole part and the quotient are those of their sum."""
    i = np.array([3, 3, 5], np.int32)
    u = np.array([0.6, 0.6, 2.7], "f4")

    def f(i, u):
        s = jnp.zeros(N).at[i].add(u)
        t = lax.dynamic_update_slice(jnp.zeros(N), u[2:], (i[2],))
        k = jnp.zeros(N, int).at[i].add(2)
        return s.astype(int), t.astype(int), k // 3, lax.div(k, 3), s.astype("f2"), s.astype(complex)

    with pb.disable_jit():
        want = f(i, u)
    for a, b in zip(pb.jit(f)(i, u), want):
        np.testing.assert_array_equal(a, b)


def test_numbers_that_are_not_finite_make_zeros_nan():
    x = np.array([1, np.inf, np.nan] + [1.0] * 29, "f4")
    got = pb.jit(lambda x: jnp.zeros(32).at[0].set(2.0) * x)(x)
    np.testing.assert_array_equal(got, [2, np.nan, np.nan] + [0] * 29)
    got = pb.jit(lambda x: jnp.zeros(32).at[x[0].astype(int)].add(2.0) * jnp.inf)(x)
    assert np.isnan(got[0]) and np.isinf(got[1])


@pytest.mark.parametrize("start", [-3, 0, 4, 15, 40])
def test_windows_stay_where_they_are_taken(start):
    """Starts outside of an array are moved inside before it becomes part of a larger one."""
    u = X[:4].reshape(2, 2)

    def f(u, i):
        s = lax.dynamic_update_slice(jnp.zeros((16, 16)), u, (i, i - 1))
        return (
            jnp.pad(s, ((2, 3), (0, 1))),
            s.T,
            jnp.concatenate([s, jnp.zeros((3, 16)), s]),
            s.sum(0),
            s @ jnp.arange(32.0).reshape(16, 2),
            jnp.arange(32.0).reshape(2, 16) @ s,
            lax.dynamic_update_slice(jnp.zeros((16, 16)), u[:1, :1], (i, i)).reshape(256),
            lax.dynamic_update_slice(jnp.zeros((16, 4, 1)), jnp.ones((1, 4, 1)), (i, 0, 0)).reshape(64),
        )

    with pb.disable_jit():
        want = f(u, start)
    for a, b in zip(pb.jit(f)(u, start), want):
        np.testing.assert_allclose(a, b, rtol=1e-6)
