"""Derivatives by weakly typed values are weakly typed, so that they do not widen what they are used with."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = np.arange(1, 4, dtype=np.float32)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2,
        lambda x: x**3,
        jnp.abs,
        lambda x: jnp.maximum(x, 2.0),
        lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
        jax.jit(jnp.sin),
        jax.checkpoint(jnp.sin),
        lambda x: lax.scan(lambda c, y: (c * y, None), x, X)[0],
        lambda x: lax.cond(x > 0, lambda: x**2, lambda: -x),
        lambda x: jnp.sum(x * X),
    ],
)
def test_gradients_of_python_numbers_are_weak(f):
    gradient = jax.grad(f)(2.0)
    assert gradient.weak_type and gradient.dtype == np.float32
    assert (gradient * jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    assert jax.jit(jax.grad(f))(2.0).weak_type


@pytest.mark.parametrize("f", [jnp.log2, jnp.log10, lambda x: x**2.5, lambda x: x**x, lambda x: lax.pow(x, 2.5)])
def test_strong_factors_make_strong_gradients(f):
    """As in JAX, whose rules have constants of the array's dtype here."""
    assert not jax.grad(f)(2.0).weak_type and not jax.jit(jax.grad(f))(2.0).weak_type
    assert not jax.jvp(f, (2.0,), (1.0,))[1].weak_type


def test_casts_carry_weak_types_both_ways():
    out, pull = jax.vjp(lambda x: x.astype(np.float32), 2.0)
    assert not out.weak_type and pull(jnp.float32(1))[0].weak_type
    out, pull = jax.vjp(lambda x: jnp.log(x) * jnp.float32(2), 2.0)
    assert not out.weak_type and pull(jnp.float32(1))[0].weak_type
    assert not jax.grad(lambda x: lax.div(jnp.log(x), jnp.float32(2)))(2.0).weak_type  # not cast but divided


@pytest.mark.parametrize("f", [jnp.logaddexp, jnp.logaddexp2, jax.scipy.special.xlogy])
def test_rules_of_functions_take_numbers(f):
    got, dot = jax.jvp(f, (0.5, 2.0), (1.0, 0.0))
    want, want_dot = jax.jvp(f, (np.float32(0.5), np.float32(2)), (np.float32(1), np.float32(0)))
    assert got == want and dot == want_dot
    assert jax.jvp(jax.scipy.special.expi, (0.5,), (1.0,))[1].dtype == np.float32


def test_each_leaf_has_its_own():
    gradient = jax.grad(lambda p: (p["a"] * p["b"]).sum())({"a": X, "b": 2.0})
    assert (gradient["a"].weak_type, gradient["b"].weak_type) == (False, True)


def test_jacobians_and_linear_maps():
    assert jax.jacfwd(jnp.sin)(1.0).weak_type and jax.jacrev(jnp.sin)(1.0).weak_type
    assert jax.hessian(jnp.sin)(1.0).weak_type
    assert jax.linearize(lambda x: x * x, 2.0)[1](1.0).weak_type
    assert jax.vjp(lambda x: x * x, 2.0)[1](1.0)[0].weak_type


def test_literals_keep_their_type_when_a_program_is_evaluated():
    jaxpr = jax.make_jaxpr(lambda x: x * 2.0)(1.0)
    assert jax.jvp(lambda x: jaxpr(x)[0], (1.0,), (1.0,))[0].weak_type
    strong = jax.make_jaxpr(lambda x: x * np.float32(2))(1.0)
    assert not strong(1.0)[0].weak_type


def test_counters_of_fori_loop():
    assert lax.fori_loop(0, 3, lambda i, c: c + i, 0).weak_type
    assert jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(3).weak_type
    seen = []
    lax.fori_loop(jnp.uint8(0), jnp.uint8(3), lambda i, c: (seen.append(i.dtype), c)[1], 0)
    assert seen[0] == np.int32  # as in JAX, where the number of steps is known


BOUNDS = [(jnp.uint8(0), 3), (np.uint8(0), 3), (0, jnp.uint32(3)), (jnp.int8(0), jnp.int32(3))]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_bounds_of_fori_loop_are_of_one_type(bounds):
    def run(lower, upper):
        return lax.fori_loop(lower, upper, lambda i, c: c + 1, 0)

    for call in (lambda: run(*bounds), lambda: jax.jit(run)(*bounds), lambda: jax.jit(lambda: run(*bounds))()):
        with pytest.raises(TypeError, match="must have equal types"):
            call()
    assert run(0, jnp.int8(3)) == run(np.int16(0), 3) == 3  # a Python integer goes with signed ones


def test_means_of_numbers_over_an_axis_are_weak():
    assert jax.vmap(lambda x: lax.pmean(2.0, "i"), axis_name="i")(X).weak_type
    assert not jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(X).weak_type


def test_integers_have_jacobians_of_zeros():
    found = jax.jacfwd(lambda x: x.astype(int))(X)
    assert found.dtype == np.int32 and not np.any(found) and found.shape == (3, 3)
    assert jax.jacrev(lambda x: x * 2.0, allow_int=True)(3).dtype == np.int32


def test_numpy_constants_of_other_dtypes():
    assert jax.jit(lambda x: np.arange(3))(1.0).dtype == np.int32
    assert jax.jit(lambda x: x + np.arange(3.0))(X).dtype == np.float32


@pytest.mark.parametrize("index", [0, 1])
def test_results_of_branches_are_as_weak_as_the_first_branch_says(index):
    def strong(x):
        return np.float32(2) + 0 * jnp.asarray(x, np.float32)

    def weak(x):
        return x

    for branches, expected in (((strong, weak), False), ((weak, strong), True), ((weak, weak), True)):
        for call in (lax.switch, jax.jit(lax.switch, static_argnums=1)):
            assert call(index, branches, 1.0).weak_type is expected
    assert lax.cond(True, strong, weak, 1.0).weak_type and not lax.cond(False, weak, strong, 1.0).weak_type
    assert not jax.vmap(lambda i: lax.switch(i, (weak, strong), 1.0))(np.arange(2)).weak_type
