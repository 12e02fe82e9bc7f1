"""Jaxprs as users read them: arrays that bodies close over are operands."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X, K, L = (jnp.arange(3.0) + n for n in (1, 2, 4))
JVP = jax.custom_jvp(lambda x: x * K)
JVP.defjvp(lambda primals, tangents: (JVP(*primals), tangents[0] * K * 7))
VJP = jax.custom_vjp(lambda x: x * K)
VJP.defvjp(lambda x: (x * K, None), lambda _, ct: (ct * 5,))

PROGRAMS = {  # name: (function, how many constants the program has, how many of them operands of its first equation)
    "scan": (lambda x: lax.scan(lambda c, v: (c * K + v * L, c), x, x), 2, 2),
    "one array in two loops": (
        lambda x: lax.fori_loop(0, 2, lambda i, c: c * K, x) + lax.fori_loop(0, 2, lambda i, c: c * L * K, x), 2, 1,
    ),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 9 * L[0], lambda c: c * K * L, x), 2, 3),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda y: y * K * x, lambda y: y * L, x * 2), 2, 2),
    "switch": (lambda x: lax.switch(1, [lambda: K * x, lambda: L * x, lambda: K]), 2, 2),
    "branches in loops": (lambda x: lax.map(lambda v: lax.cond(v > 0, lambda: v * K, lambda: v + K), x), 1, 1),
    "checkpoint": (jax.checkpoint(lambda x: lax.fori_loop(0, 2, lambda i, c: c * K, x)), 1, 1),
    "solve": (lambda x: lax.custom_linear_solve(lambda v: v * K, x, lambda mv, b: b / K, lambda mv, b: b / K), 1, 4),
    "jvp rule": (JVP, 1, 1),
    "vjp rule": (VJP, 1, 1),
    "inside of jit": (jax.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: c * K, x)), 0, 0),
}  # fmt: skip


def total(fun):
    return lambda *args: sum([jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(fun(*args))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_that_bodies_close_over_are_operands(name):
    fun, constants, operands = PROGRAMS[name]
    closed = jax.make_jaxpr(fun)(X)
    assert len(closed.consts) == constants
    given = [v for eqn in closed.eqns if eqn.primitive.multiple_results for v in eqn.invars]
    first = next((eqn for eqn in closed.eqns if eqn.primitive.multiple_results), closed.eqns[0])
    assert len([v for v in first.invars if v in closed.jaxpr.constvars]) == operands
    assert set(closed.jaxpr.constvars) <= set(map(id_or_self, given))
    again = jax.extend.core.jaxpr_as_fun(closed)
    for left, right in zip(again(X), jax.tree.leaves(fun(X)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    wanted = None if name == "while" else jax.grad(total(fun))(X)
    if wanted is not None:
        np.testing.assert_allclose(jax.grad(total(again))(X), wanted, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(jax.grad(total(again)))(X), wanted, rtol=1e-5)


def id_or_self(atom):
    return atom if isinstance(atom, jax.extend.core.Var) else id(atom)


def test_operands_stand_in_the_order_of_use_and_traced_programs_say_the_same():
    def fun(x):
        return lax.fori_loop(0, 2, lambda i, c: c * L + K, x)

    closed = jax.make_jaxpr(fun)(X)
    assert [c[0] for c in closed.consts] == [4, 2]
    (eqn,) = closed.eqns
    assert eqn.params["num_consts"] == 2 and not eqn.params["jaxpr"].consts
    assert str(jax.jit(fun).trace(X).jaxpr) == str(closed)
    assert "num_consts=1\n" in str(jax.make_jaxpr(JVP)(X))


def scaled_by_jvp(a):
    scaled = jax.custom_jvp(lambda x: x * a)
    scaled.defjvp(lambda primals, tangents: (primals[0] * a, tangents[0] * a))
    return scaled


def scaled_by_vjp(a):
    scaled = jax.custom_vjp(lambda x: x * a)
    scaled.defvjp(lambda x: (x * a, None), lambda _, ct: (ct * a,))
    return scaled


BODIES = {  # name: a function of the scaling and of x that scales x twice
    "fori_loop": lambda scale, x: lax.fori_loop(0, 2, lambda i, c: scale(c), x),
    "scan": lambda scale, x: lax.scan(lambda c, _: (scale(c), None), x, None, length=2)[0],
    "map": lambda scale, x: lax.map(lambda _: scale(scale(x)), jnp.arange(1))[0],
    "cond": lambda scale, x: lax.cond(x.sum() > 0, lambda y: scale(scale(y)), lambda y: y, x),
    "checkpoint": lambda scale, x: jax.checkpoint(lambda y: scale(scale(y)))(x),
    "jit": lambda scale, x: jax.jit(lambda y: scale(scale(y)))(x),
}


@pytest.mark.parametrize("scaled", [scaled_by_jvp, scaled_by_vjp])
@pytest.mark.parametrize("name", BODIES)
def test_rules_in_bodies_close_over_values_of_an_outer_trace(name, scaled):
    def slope(a):
        return jax.grad(lambda x: BODIES[name](scaled(a), x).sum())(X)

    np.testing.assert_allclose(jax.jit(slope)(K), K**2, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda: lax.map(slope, jnp.stack([K, L])))(), [K**2, L**2], rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(jnp.stack([K, L])), [K**2, L**2], rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda a: slope(a).sum())(K), 2 * K, rtol=1e-6)


def test_rules_in_bodies_that_close_over_what_is_differentiated_say_so():
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(jax.grad(lambda a: BODIES["fori_loop"](scaled_by_jvp(a), a).sum()))(K)
