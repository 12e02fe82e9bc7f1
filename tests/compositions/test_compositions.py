"""Transformations of transformations: each pair agrees with the same done another way."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

pytestmark = pytest.mark.usefixtures("x64")


def chain(x):
    return jnp.sum(jnp.tanh(x) * jnp.sin(x[::-1])) + jnp.prod(jnp.cos(x))


def with_scan(x):
    def body(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry * row

    last, rows = lax.scan(body, jnp.zeros_like(x), jnp.stack([x, 2 * x, 3 * x]))
    return jnp.sum(last) + jnp.sum(rows**2)


def with_cond(x):
    return lax.cond(jnp.sum(x) > 0, lambda v: jnp.sum(jnp.sin(v)), lambda v: jnp.sum(v**3), x)


def with_fori(x):
    return jnp.sum(lax.fori_loop(0, 4, lambda i, v: v * jnp.cos(v) + i, x))


def with_jit(x):
    return jax.jit(lambda v: jnp.sum(v * jax.jit(jnp.exp)(v)))(x)


def with_checkpoint(x):
    return jax.checkpoint(lambda v: jnp.sum(jnp.sin(jnp.sin(v))))(x)


def with_linear_algebra(x):
    a = jnp.outer(x, x) + 3 * jnp.eye(x.shape[0])
    return jnp.sum(jnp.linalg.solve(a, x)) + jnp.linalg.slogdet(a)[1]


@jax.custom_jvp
def _cube(x):
    return x**3


@_cube.defjvp
def _cube_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return _cube(x), 3 * x**2 * x_dot


def with_custom_jvp(x):
    return jnp.sum(_cube(x))


@jax.custom_vjp
def _quartic(x):
    return x**4


_quartic.defvjp(lambda x: (_quartic(x), x), lambda x, y_bar: (4 * x**3 * y_bar,))


def with_custom_vjp(x):
    return jnp.sum(_quartic(x))


FUNCTIONS = [
    chain,
    with_scan,
    with_cond,
    with_fori,
    with_jit,
    with_checkpoint,
    with_linear_algebra,
    with_custom_jvp,
    with_custom_vjp,
]
FORWARD = [f for f in FUNCTIONS if f is not with_custom_vjp]
X = np.array([0.3, -0.7, 1.1, 0.2])
V = np.array([1.0, -0.5, 0.25, 2.0])


def differences(f, x, v, step=1e-6):
    return (np.asarray(f(x + step * v)) - np.asarray(f(x - step * v))) / (2 * step)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_jit_equals_eager(f):
    np.testing.assert_allclose(jax.jit(f)(X), f(X), rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_grad_equals_differences(f):
    np.testing.assert_allclose(jax.grad(f)(X) @ V, differences(f, X, V), rtol=1e-6)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_jit_of_grad_and_grad_of_jit(f):
    want = jax.grad(f)(X)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X), want, rtol=1e-11)
    np.testing.assert_allclose(jax.grad(jax.jit(f))(X), want, rtol=1e-11)


@pytest.mark.parametrize("f", FORWARD)
def test_jvp_equals_grad(f):
    value, slope = jax.jvp(f, (X,), (V,))
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(slope, jax.grad(f)(X) @ V, rtol=1e-10)


@pytest.mark.parametrize("f", FORWARD)
def test_hessian_by_all_four_ways(f):
    ways = [jax.jacfwd(jax.jacrev(f)), jax.jacrev(jax.jacrev(f)), jax.jacfwd(jax.jacfwd(f)), jax.jacrev(jax.jacfwd(f))]
    want = np.stack([differences(jax.grad(f), X, e) for e in np.eye(4)])
    for way in ways:
        np.testing.assert_allclose(way(X), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(jax.jit(way)(X), want, rtol=1e-5, atol=1e-6)
    product = jax.jvp(jax.grad(f), (X,), (V,))[1]
    np.testing.assert_allclose(product, want @ V, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_vmap_equals_loop(f):
    xs = np.stack([X, -X, 0.5 * X])
    np.testing.assert_allclose(jax.vmap(f)(xs), [f(x) for x in xs], rtol=1e-11)
    np.testing.assert_allclose(jax.vmap(f, in_axes=1)(xs.T), [f(x) for x in xs], rtol=1e-11)
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(xs), [f(x) for x in xs], rtol=1e-11)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_vmap_of_grad_and_grad_of_vmap(f):
    xs = np.stack([X, -X, 0.5 * X])
    want = np.stack([jax.grad(f)(x) for x in xs])
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(xs), want, rtol=1e-10)
    np.testing.assert_allclose(jax.grad(lambda v: jnp.sum(jax.vmap(f)(v)))(xs), want, rtol=1e-10)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(xs), want, rtol=1e-10)


@pytest.mark.parametrize("f", FORWARD)
def test_nested_vmap(f):
    xs = np.stack([np.stack([X, -X]), np.stack([0.5 * X, 2 * X]), np.stack([X + 1, X - 1])])
    want = np.array([[f(x) for x in row] for row in xs])
    np.testing.assert_allclose(jax.vmap(jax.vmap(f))(xs), want, rtol=1e-10)


@pytest.mark.parametrize("f", FORWARD)
def test_linearize_and_its_transpose(f):
    value, linear = jax.linearize(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(linear(V), jax.jvp(f, (X,), (V,))[1], rtol=1e-11)
    (transposed,) = jax.linear_transpose(linear, X)(1.0)
    np.testing.assert_allclose(transposed, jax.grad(f)(X), rtol=1e-11)


@pytest.mark.parametrize("f", FORWARD)
def test_third_derivative_along_a_line(f):
    def line(t):
        return f(X + t * V)

    third = jax.grad(jax.grad(jax.grad(line)))
    second = jax.grad(jax.grad(line))
    np.testing.assert_allclose(third(0.1), (second(0.1 + 1e-5) - second(0.1 - 1e-5)) / 2e-5, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_checkpoint_changes_nothing(f):
    np.testing.assert_allclose(jax.grad(jax.checkpoint(f))(X), jax.grad(f)(X), rtol=1e-11)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.checkpoint(f)))(X), jax.grad(f)(X), rtol=1e-11)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_pullback_is_a_pytree(f):
    _, pull = jax.vjp(f, X)
    (got,) = jax.jit(lambda p, bar: p(bar))(pull, 1.0)
    np.testing.assert_allclose(got, jax.grad(f)(X), rtol=1e-11)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_inside_scan_and_while(f):
    def descend(x, _):
        return x - 0.01 * jax.grad(f)(x), f(x)

    x, values = lax.scan(descend, jnp.asarray(X), None, length=5)
    y = X
    for value in np.asarray(values):
        np.testing.assert_allclose(value, f(y), rtol=1e-10)
        y = y - 0.01 * np.asarray(jax.grad(f)(y))
    np.testing.assert_allclose(x, y, rtol=1e-10)
    _, z = lax.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] - 0.01 * jax.grad(f)(s[1])), (0, jnp.asarray(X))
    )
    np.testing.assert_allclose(z, y, rtol=1e-10)
