"""Without jit, the linear program of a function holds the same constants whether its argument is known or traced.

Libraries shape the state of a solver by a program of traced values, and put the constants of one of known values there.
"""

from __future__ import annotations

import pytest

import pullback as jax
import pullback.numpy as jnp


@pytest.mark.parametrize(
    "f",
    [
        lambda y: 10 * y,
        lambda y: y / 3,
        lambda y: y[0] ** 2 * y,
        lambda y: jnp.where(y[0] > 0, 10 * y, 2.0),
        lambda y: jax.vjp(lambda y: -(y**3), y)[1](y)[0],
        jax.grad(lambda y: jnp.sum(10 * jnp.sin(y) ** 2)),
        lambda y: jax.nn.gelu(jax.nn.relu(y)),
        jax.jacfwd(lambda y: jnp.sin(y) * y[0]),
        jax.jit(lambda y: 10 * jnp.sin(y) / 3),
    ],
)
def test_linear_programs_hold_the_same(f):
    programs = []

    def linear(y):
        push = jax.linearize(f, y)[1]
        closed = jax.make_jaxpr(push)(y)
        programs.append(str(closed.jaxpr))
        return closed.consts

    with jax.disable_jit():
        y = jnp.array([1.0, 2.0])
        first, again = linear(y), linear(y)  # functions are remembered from the second call on
        jax.eval_shape(linear, y)
        assert programs[0] == programs[1] == programs[2]
        assert len(first) == len(again)
