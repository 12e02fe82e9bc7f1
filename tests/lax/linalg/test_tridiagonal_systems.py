"""Tridiagonal systems: two loops in compiled code, LAPACK's routine in eager code, exchanged rows in both."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.lax.linalg import tridiagonal_solve
from pullback.loops.ir import Call, HostCall
from pullback.loops.ir.visit import statements

compiled = jax.jit(tridiagonal_solve)
perturbed = jax.jit(lambda *args: tridiagonal_solve(*args, perturb_singular=True))


def system(batch, n, k, dtype):
    r = np.random.default_rng(n)

    def draw(*shape):
        x = r.normal(size=(*batch, *shape)) + (1j * r.normal(size=(*batch, *shape)) if dtype[0] == "c" else 0)
        return x.astype(dtype)

    return draw(n), draw(n), draw(n), draw(n, k)


def dense(dl, d, du):
    n = d.shape[-1]
    out, i = np.zeros((*d.shape, n), d.dtype), np.arange(n)
    out[..., i, i], out[..., i[1:], i[:-1]], out[..., i[:-1], i[1:]] = d, dl[..., 1:], du[..., :-1]
    return out


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_residuals_are_of_the_size_of_rounding(dtype):
    with jax.enable_x64(dtype in ("f8", "c16")):
        eps = np.finfo(dtype).eps
        for batch, n, k in (
            ((), 1, 1),
            ((), 2, 3),
            ((3,), 3, 1),
            ((2, 20), 30, 2),
            ((), 200, 1),
            ((0,), 3, 1),
            ((), 0, 2),
        ):
            args = system(batch, n, k, dtype)
            x = compiled(*args)
            assert x.dtype == np.dtype(dtype) and x.shape == args[3].shape
            if x.size:
                a = dense(*args[:3])
                assert np.abs(a @ np.asarray(x) - args[3]).max() <= 16 * eps * np.abs(a).max() * np.abs(x).max()
                both = perturbed(*args), tridiagonal_solve(*args, perturb_singular=True)
                np.testing.assert_allclose(*both, rtol=1e4 * eps, atol=1e4 * eps * np.abs(x).max())


def test_no_routine_is_called():
    args = system((), 5, 1, "f4")
    function = lower_program(optimize_jaxpr(jax.make_jaxpr(tridiagonal_solve)(*args))).function
    assert not any(isinstance(s, (Call, HostCall)) for s in statements(function.body))


@pytest.mark.parametrize("solve", [tridiagonal_solve, compiled])
def test_singular_matrices(solve):
    """All is nan; other matrices of the stack are not touched."""
    dl, d, du = (
        np.asarray([[0, 1, 1], [0, 1, 1]], "f4"),
        np.asarray([[0, 1, 1], [3, 3, 3]], "f4"),
        np.zeros((2, 3), "f4"),
    )
    du[:, 1] = 1
    x = np.asarray(solve(dl, d, du, np.ones((2, 3, 1), "f4")))
    assert np.isnan(x[0]).all() and np.isfinite(x[1]).all()
    assert np.isnan(solve(*np.zeros((3, 1), "f4"), np.ones((1, 2), "f4"))).all()


@pytest.mark.parametrize("solve", [lambda *args: tridiagonal_solve(*args, perturb_singular=True), perturbed])
def test_pivots_that_vanish_are_moved_if_asked_for(solve):
    """By eps times the largest element of the upper factor, away from zero, also from -0: as LAPACK's lagts."""
    dl, d, du = np.float32([0, 1, 1]), np.float32([0, 1, 1]), np.float32([0, 1, 0])
    x = np.asarray(solve(dl, d, du, np.ones((3, 1), "f4")))[:, 0]
    np.testing.assert_allclose(x, [0, 2.0**23, -(2.0**23)], rtol=1e-6, atol=1)


def test_derivatives_and_batches():
    args = system((), 20, 2, "f4")
    args[1][:] += 4

    def loss(solve, *args):
        return (solve(*args) ** 2).sum()

    def by_dense(dl, d, du, b):
        return jnp.linalg.solve(jnp.diag(d) + jnp.diag(dl[1:], -1) + jnp.diag(du[:-1], 1), b)

    for got, expected in zip(
        jax.jit(jax.grad(lambda *a: loss(tridiagonal_solve, *a), (0, 1, 2, 3)))(*args),
        jax.grad(lambda *a: loss(by_dense, *a), (0, 1, 2, 3))(*args),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
    many = [np.stack([x, 2 * x, 3 * x]) for x in args]
    each = np.stack([compiled(*(x[i] for x in many)) for i in range(3)])
    np.testing.assert_allclose(jax.jit(jax.vmap(tridiagonal_solve))(*many), each, rtol=1e-5, atol=1e-6)


def test_shapes_that_do_not_fit_are_type_errors():
    one = np.ones(2, np.float32)
    with pytest.raises(TypeError, match="b of shape"):
        tridiagonal_solve(one, one, one, np.ones((3, 1), np.float32))
    with pytest.raises(TypeError, match="must be of one shape"):
        tridiagonal_solve(one, np.ones(3, np.float32), one, np.ones((3, 1), np.float32))
