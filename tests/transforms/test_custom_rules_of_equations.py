"""Equations with a user's rules, called again by interpreters of jaxprs: through `get_bind_params` and `bind`."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.errors import UnexpectedTracerError
from pullback.interpreters.ad import CustomVJPException


def again(jaxpr, consts, *args):
    """What an interpreter does that evaluates a jaxpr, equation by equation."""
    env: dict = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    for eqn in jaxpr.eqns:
        values = [v.val if hasattr(v, "val") else env[v] for v in eqn.invars]
        outs = eqn.primitive.bind(*values, **eqn.primitive.get_bind_params(eqn.params))
        env |= zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs])
    return env[jaxpr.outvars[0]]


@jax.custom_jvp
def tenfold_jvp(x):
    return x * x


tenfold_jvp.defjvp(lambda primals, tangents: (primals[0] ** 2, 10 * tangents[0]))


@jax.custom_vjp
def tenfold_vjp(x):
    return x * x


tenfold_vjp.defvjp(lambda x: (x * x, None), lambda _, bar: (10 * bar,))


@pytest.mark.parametrize("fun", [tenfold_jvp, tenfold_vjp])
@pytest.mark.parametrize("closed_over", [False, True])
def test_rules_survive_an_interpreter(fun, closed_over):
    def whole(x):
        shift = jnp.sin(x)  # a constant of the inner call, of which the rules say nothing
        inner = type(fun)(lambda y: fun.fun(y) + shift)
        if not closed_over:
            return fun(x)
        if isinstance(fun, jax.custom_jvp):
            inner.defjvp(lambda primals, tangents: (primals[0] ** 2, 10 * tangents[0]))
        else:
            inner.defvjp(lambda y: (y * y, None), lambda _, bar: (10 * bar,))
        return inner(x)

    closed = jax.make_jaxpr(whole)(3.0)
    run = lambda x: again(closed.jaxpr, closed.consts, x)
    assert run(3.0) == whole(3.0)
    assert jax.grad(run)(3.0) == 10
    assert jax.jit(jax.grad(run))(3.0) == 10
    assert (jax.vmap(jax.grad(run))(jnp.ones(2)) == 10).all()
    (eqn,) = [e for e in closed.eqns if e.primitive.name.startswith("custom_")]
    first, *rest = eqn.primitive.get_bind_params(eqn.params)["subfuns"]
    assert len(rest) == (1 if isinstance(fun, jax.custom_jvp) else 2)
    if not closed_over:
        assert first.call_wrapped(3.0) == [9]


def closing_jvp(x):
    least = jnp.min(x)
    root = jax.custom_jvp(lambda y: y.sum() * least)
    root.defjvp(lambda primals, tangents: (root(*primals), tangents[0].sum()))
    return root(x * 2)


def closing_vjp(x):
    least = jnp.min(x)
    root = jax.custom_vjp(lambda y: y.sum() * least)
    root.defvjp(lambda y: (root(y), None), lambda _, bar: (bar * jnp.ones(2),))
    return root(x * 2)


@pytest.mark.parametrize("fun", [closing_jvp, closing_vjp])
def test_functions_with_rules_close_over_what_vmap_maps(fun):
    x = jnp.array([[1.0, 2.0], [4.0, 3.0]])
    expected = [fun(row) for row in x]
    for run in (
        jax.vmap(fun),
        jax.jit(jax.vmap(fun)),
        jax.vmap(jax.jit(fun)),
        lambda x: jax.vmap(jax.vmap(fun))(x[None])[0],
    ):
        assert run(x).tolist() == expected


def scaled_by_jvp(y):
    g = jax.custom_jvp(lambda x: jnp.sin(y) * x)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * y))
    return g


def scaled_by_vjp(y):
    g = jax.custom_vjp(lambda x: jnp.sin(y) * x)
    g.defvjp(lambda x: (g(x), y), lambda y, bar: (bar * y,))
    return g


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("make", [scaled_by_jvp, scaled_by_vjp])
def test_functions_of_no_mapped_argument_close_over_what_vmap_maps(make, wrap):
    y = jnp.arange(3.0)
    mapped = wrap(lambda x: jax.vmap(lambda y: make(y)(x))(y))
    np.testing.assert_allclose(mapped(2.0), 2 * jnp.sin(y), rtol=1e-6)
    assert wrap(jax.grad(lambda x: mapped(x).sum()))(2.0) == 3
    assert wrap(jax.vmap(lambda y: jax.grad(make(y))(2.0)))(y).tolist() == [0, 1, 2]
    assert jax.vmap(mapped)(jnp.ones(2)).shape == (2, 3)


def test_results_that_depend_on_nothing_mapped_stay_unmapped():
    g = jax.custom_jvp(lambda x: x * 2)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * 3))
    assert jax.vmap(lambda _, x: g(x), in_axes=(0, None), out_axes=None)(jnp.arange(3.0), 2.0) == 4


def test_rules_that_alone_close_over_what_vmap_maps():
    def jvp_alone(y):
        g = jax.custom_jvp(lambda x: x * 2)
        g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * y))
        return g

    def vjp_alone(y):
        g = jax.custom_vjp(lambda x: x * 2)
        g.defvjp(lambda x: (g(x), None), lambda _, bar: (bar * y,))
        return g

    y = jnp.arange(3.0)
    assert jax.grad(lambda x: jax.vmap(lambda y: jvp_alone(y)(x))(y).sum())(2.0) == 3
    with pytest.raises(UnexpectedTracerError, match="closes over a value that vmap maps"):
        jax.grad(lambda x: jax.vmap(lambda y: vjp_alone(y)(x))(y).sum())(2.0)


def scaled_by(y):
    """x y, whose rules say nothing of y."""
    g = jax.custom_vjp(lambda x: x * y)
    g.defvjp(lambda x: (x, None), lambda _, bar: (bar,))
    return g


@pytest.mark.parametrize(
    "call",
    [
        jax.jit(lambda y: scaled_by(y)(2.0)),
        jax.jit(lambda y: scaled_by(y)(3 * y)),  # its derivative would be that of the rules alone
        lambda y: jax.lax.scan(lambda x, _: (scaled_by(y)(x), None), 2.0, None, length=3)[0],
        lambda y: jax.lax.cond(y > 0, lambda: scaled_by(y)(2.0), lambda: 0.0),
        lambda y: jax.checkpoint(scaled_by(y))(2.0),
        jax.jit(lambda y: jax.vmap(scaled_by(y))(jnp.ones(2)).sum()),
    ],
)
def test_closed_over_values_are_not_differentiated(call):
    with pytest.raises(CustomVJPException, match=r"closed-over value of type f32\[\]"):
        jax.grad(call)(1.0)
    with pytest.raises(CustomVJPException):
        jax.vmap(jax.grad(call))(jnp.ones(2))


def test_closed_over_constants_may_be_anything():
    """Neither a value that is not differentiated nor one that has no derivative is refused."""
    for stopped in (jax.lax.stop_gradient, lambda y: jnp.int32(y), lambda y: y > 0):
        call = jax.jit(lambda y, stopped=stopped: scaled_by(stopped(y))(3 * y))
        assert jax.grad(call)(1.0) == 3
