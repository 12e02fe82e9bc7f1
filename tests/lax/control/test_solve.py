"""Solvers that are not differentiated: derivatives of what they solve, in all modes and compositions."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
B = RNG.normal(size=3)
WRAPS = [lambda f: f, pullback.jit]


pytestmark = pytest.mark.usefixtures("x64")


def opaque(matvec, b):
    """A solver that no derivative rule goes through: the matrix is read off the function, then inverted with a while
    loop.
    """
    matrix = jnp.stack([matvec(row) for row in jnp.eye(3, dtype=b.dtype)], 1)
    inverse = lax.while_loop(
        lambda s: s[0] < 60,
        lambda s: (s[0] + 1, s[1] @ (2 * jnp.eye(3) - matrix @ s[1])),
        (0, matrix.T / jnp.sum(matrix * matrix)),
    )[1]
    return inverse @ b


def solve(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, opaque, opaque)


@pytest.mark.parametrize("wrap", WRAPS)
def test_value_and_derivatives(wrap):
    np.testing.assert_allclose(np.asarray(wrap(solve)(A, B)), np.linalg.solve(A, B))
    a_dot, b_dot = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    x = np.linalg.solve(A, B)
    want = np.linalg.solve(A, b_dot - a_dot @ x)
    got = wrap(lambda a, b: pullback.jvp(solve, (a, b), (a_dot, b_dot))[1])(A, B)
    np.testing.assert_allclose(np.asarray(got), want)
    a_bar, b_bar = wrap(pullback.grad(lambda a, b: jnp.sum(solve(a, b)), (0, 1)))(A, B)
    y = np.linalg.solve(A.T, np.ones(3))
    np.testing.assert_allclose(np.asarray(b_bar), y)
    np.testing.assert_allclose(np.asarray(a_bar), -np.outer(y, x))


@pytest.mark.parametrize("wrap", WRAPS)
def test_second_derivative_and_vmap(wrap):
    got = wrap(pullback.hessian(lambda b: jnp.sum(solve(A, b) ** 3)))(B)
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(np.asarray(got), inverse.T @ np.diag(6 * (inverse @ B)) @ inverse, rtol=1e-6)
    many = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(
        np.asarray(wrap(pullback.vmap(lambda b: solve(A, b)))(many)), np.linalg.solve(A, many.T).T
    )
    matrices = A + RNG.normal(size=(4, 3, 3)) * 0.1
    np.testing.assert_allclose(
        np.asarray(wrap(pullback.vmap(lambda a: solve(a, B)))(matrices)),
        np.stack([np.linalg.solve(a, B) for a in matrices]),
    )


def test_transposition_needs_a_solver():
    with pytest.raises(TypeError, match="transpose_solve required"):
        pullback.grad(lambda b: jnp.sum(lax.custom_linear_solve(lambda x: A @ x, b, opaque)))(B)
    with pytest.raises(ValueError, match="matvec must give arrays of the structure and shapes"):
        lax.custom_linear_solve(lambda x: x[:2], B, opaque)


def test_aux():
    x, aux = lax.custom_linear_solve(lambda x: A @ x, B, lambda f, b: (opaque(f, b), {"n": 3}), has_aux=True)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(A, B))
    assert int(aux["n"]) == 3


def newton(f, x):
    return lax.fori_loop(0, 50, lambda _, x: x - f(x) / pullback.grad(lambda y: jnp.sum(f(y)))(x), x)


@pytest.mark.parametrize("wrap", WRAPS)
def test_root(wrap):
    def cube_root(t):
        return lax.custom_root(lambda x: x**3 - t, t, newton, lambda g, y: y / g(jnp.ones_like(y)))

    np.testing.assert_allclose(float(wrap(cube_root)(8.0)), 2.0)
    np.testing.assert_allclose(float(wrap(pullback.grad(cube_root))(8.0)), 8 ** (-2 / 3) / 3)
    np.testing.assert_allclose(float(wrap(pullback.grad(pullback.grad(cube_root)))(8.0)), -2 / 9 * 8 ** (-5 / 3))
    np.testing.assert_allclose(
        np.asarray(wrap(pullback.vmap(pullback.grad(cube_root)))(np.array([1.0, 8.0]))), [1 / 3, 1 / 12]
    )


def test_a_solution_that_is_a_number_is_an_array():
    def two(*_):
        return np.float32(2)

    x = lax.custom_linear_solve(lambda y: 2 * y, jnp.float32(4), two, two)
    root = lax.custom_root(lambda y: y - 2, 1.0, two, lambda g, y: y / g(1.0))
    assert isinstance(x, pullback.Array) and isinstance(root, pullback.Array)
    assert pullback.grad(lambda b: lax.custom_linear_solve(lambda y: 2 * y, b, two, two))(jnp.float32(4)) == 2
    assert isinstance(pullback.checkpoint(two)(1.0), pullback.Array)


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_type_of_a_solution_is_weak_where_the_solver_leaves_it(wrap):
    def of(solve):
        return wrap(lambda b: lax.custom_linear_solve(lambda y: 2 * y, b, solve, solve))

    assert of(lambda _, b: b / 2)(4.0).weak_type
    assert not of(lambda _, b: b / jnp.float32(2))(4.0).weak_type
    assert not of(lambda _, b: b / 2)(jnp.float32(4)).weak_type
    assert pullback.grad(of(lambda _, b: b / 2))(4.0).weak_type
