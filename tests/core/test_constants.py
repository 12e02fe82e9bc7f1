"""What a trace finds is a constant of its jaxpr, whatever its rank; what it makes itself of a number is a literal."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp


def counts(f, *args):
    """(constvars of the jaxpr, literals among the operands of its equations)."""
    closed = jax.make_jaxpr(f)(*args)
    literals = [a for eqn in closed.jaxpr.eqns for a in eqn.invars if hasattr(a, "val")]
    return len(closed.consts), len(literals)


def test_arrays_without_axes_are_constants():
    scalar, vector = jnp.array(2.0), jnp.arange(3.0)
    assert counts(lambda x: x * scalar, 1.0) == (1, 0)
    assert counts(lambda x: x * scalar + vector, 1.0) == (2, 0)
    assert counts(lambda x: x * scalar + scalar, 1.0) == (1, 0)


def test_numbers_are_literals():
    assert counts(lambda x: x * 2.0, 1.0) == (0, 1)
    assert counts(lambda x: x * np.float32(2), 1.0) == (0, 1)
    assert counts(lambda x: x * np.array(2.0), 1.0) == (0, 1)


def test_arrays_that_the_trace_makes_are_literals():
    assert counts(lambda x: x * jnp.array(2.0), 1.0) == (0, 1)
    assert counts(lambda x: x * jnp.zeros(()), 1.0) == (0, 1)
    assert counts(lambda x: jax.lax.full_like(x, 2.0) * x, 1.0) == (0, 1)


def test_a_trace_inside_finds_what_the_one_around_it_made():
    found = []

    def f(x):
        made = jnp.array(2.0)
        found.append(counts(lambda y: y * made, 1.0))
        return x * made

    assert counts(f, 1.0) == (0, 1)
    assert found == [(1, 0)]


def test_constants_of_loops_and_branches_are_values_of_the_program():
    scalar = jnp.array(2.0)

    def f(x):
        x = jax.lax.scan(lambda y, _: (y * scalar, None), x, None, length=3)[0]
        x = jax.lax.while_loop(lambda y: y < 100 * scalar, lambda y: y * scalar, x)
        return jax.lax.cond(x > scalar, lambda: x + scalar, lambda: x - scalar)

    assert float(jax.jit(f)(1.0)) == float(f(1.0)) == 258.0
    assert float(jax.jit(jax.jacfwd(f))(1.0)) == 256.0
