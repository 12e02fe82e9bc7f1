"""Loops that write the rows of an array one after the other are batches of rows."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal((30, 4)).astype("f4")
Z = jnp.zeros((30, 4))


BATCHED = {
    "set": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[i].set(jnp.sin(x[i])), Z),
    "backwards": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[29 - i].set(jnp.sin(x[i])), Z),
    "inside": lambda x: lax.fori_loop(1, 29, lambda i, y: y.at[i].set(x[i - 1] + x[i + 1]), x),
    "inside backwards": lambda x: lax.fori_loop(2, 29, lambda i, y: y.at[30 - i].set(x[i - 1] + x[i + 1]), x),
    "columns": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[:, i].set(x[i]), jnp.ones((4, 31))),
    "slices": lambda x: lax.fori_loop(
        0, 30, lambda i, y: lax.dynamic_update_slice(y, lax.dynamic_slice(x, (i, 0), (1, 4)) * 2, (i, 0)), Z
    ),
    "added": lambda x: lax.fori_loop(0, 28, lambda i, y: y.at[i + 1].add(x[i]), x),
    "maxima": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[i].max(x[i] ** 2), x),
    "scanned places": lambda x: lax.scan(lambda y, i: (y.at[i].set(x[i] * 2), y.ndim), Z, jnp.arange(30))[0],
    "scanned rows": lambda x: lax.scan(lambda c, v: ((c[0].at[c[1]].set(v * 2), c[1] + 1), v[0]), (Z, 0), x),
    "scanned places in rows": lambda x: lax.scan(
        lambda c, i: ((c[0].at[i[0] + c[1]].set(x[c[1]]), c[1] + 1), 0), (Z, 0), jnp.zeros((30, 1), int)
    )[0],
    "places from one in an array": lambda x: lax.fori_loop(
        0, 30, lambda i, y: y.at[jnp.array([0])[0] + i].set(x[i] * 2), Z
    ),
    "two": lambda x: lax.fori_loop(
        0, 30, lambda i, c: (c[0].at[i].set(x[i] * 2), c[1].at[i].set(x[i, 0])), (Z, Z[:, 0])
    ),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 30, lambda c: (c[0] + 1, c[1].at[c[0]].set(x[c[0]])), (0, Z))[1],
}
IN_TURN = {
    "read": lambda x: lax.fori_loop(1, 30, lambda i, y: y.at[i].set(jnp.sin(y[i - 1]) + x[i]), x),
    "waits": lambda x: lax.fori_loop(0, 30, lambda i, c: (jnp.sin(c[0]) + x[i], c[1].at[i].set(c[0])), (x[0], Z)),
    "beyond": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[i + 5].set(jnp.sin(x[i])), Z),
    "the same again": lambda x: lax.fori_loop(0, 30, lambda i, y: y.at[i // 2].set(jnp.sin(x[i])), Z),
    "places of data": lambda x: lax.fori_loop(
        0, 30, lambda i, y: y.at[(x[i, 0] * 3).astype(int) % 30].set(jnp.sin(x[i])), Z
    ),
    "few": lambda x: lax.fori_loop(0, 10, lambda i, y: y.at[i].set(jnp.sin(x[i])), Z),
}


@pytest.mark.parametrize("name", BATCHED | IN_TURN)
def test_results_stay(name):
    f = (BATCHED | IN_TURN)[name]
    names = {eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(X)).jaxpr.eqns}
    assert ("scan" in names) == (name in IN_TURN)
    with pb.disable_jit():
        want = f(jnp.asarray(X))
    for got, each in zip(pb.tree.leaves(pb.jit(f)(X)), pb.tree.leaves(want)):
        np.testing.assert_allclose(got, each, rtol=1e-6)


@pytest.mark.parametrize("name", ["set", "inside", "added", "columns"])
def test_derivatives_stay(name):
    loss = lambda x: (BATCHED[name](x) ** 2).sum()
    with pb.disable_jit():
        want = pb.grad(loss)(jnp.asarray(X))
    np.testing.assert_allclose(pb.jit(pb.grad(loss))(X), want, rtol=1e-5, atol=1e-5)
    mapped = pb.jit(pb.vmap(BATCHED[name]))(np.stack([X, X + 1]))
    np.testing.assert_allclose(mapped[1], pb.jit(BATCHED[name])(X + 1), rtol=1e-6)
