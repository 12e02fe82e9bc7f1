"""diffrax, lineax and optimistix from PyPI, unmodified: solvers with their gradients."""

from __future__ import annotations

import diffrax
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
import pytest

TIMES = np.linspace(0, 1, 5)
A = jnp.array([[2.0, 1.0], [1.0, 3.0]])
B = jnp.array([1.0, 2.0])
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


def decay(y0, **options):
    """y' = -2 y at TIMES."""
    options = {"solver": diffrax.Tsit5(), **options}
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, rate: -y * rate),
        t0=0.0, t1=1.0, dt0=0.1, y0=y0, args=2.0, saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6), **options,
    ).ys  # fmt: skip


def test_solution():
    np.testing.assert_allclose(jax.jit(decay)(jnp.array(1.0)), np.exp(-2 * TIMES), rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(decay)(jnp.arange(2.0))[1], np.exp(-2 * TIMES), rtol=1e-4)
    stiff = decay(jnp.array(1.0), solver=diffrax.Kvaerno3())
    np.testing.assert_allclose(stiff, np.exp(-2 * TIMES), rtol=2e-3)


@pytest.mark.parametrize("adjoint", ["RecursiveCheckpointAdjoint", "BacksolveAdjoint", "DirectAdjoint"])
def test_gradient(adjoint):
    gradient = jax.grad(lambda y: decay(y, adjoint=getattr(diffrax, adjoint)()).sum())(jnp.array(1.0))
    np.testing.assert_allclose(gradient, np.exp(-2 * TIMES).sum(), rtol=1e-3)


def test_noise_and_events():
    path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), jax.random.key(0))
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: jnp.array(0.1), path)
    )
    final = diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.05, 1.0).ys[-1]
    assert 0 < float(final) < 1
    half = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, _: -y), diffrax.Tsit5(), 0.0, 3.0, 0.1, 1.0,
        event=diffrax.Event(lambda t, y, args, **_: y - 0.5, optx.Newton(1e-5, 1e-5)),
    )  # fmt: skip
    np.testing.assert_allclose(half.ts, [np.log(2)], rtol=1e-3)


@pytest.mark.parametrize("name", ["LU", "QR", "SVD", "Cholesky", "CG", "GMRES", "BiCGStab"])
def test_linear_solve(name):
    solver = getattr(lx, name)(**(TOLERANCE if name in ("CG", "GMRES", "BiCGStab") else {}))
    tags = lx.positive_semidefinite_tag if name in ("Cholesky", "CG") else ()

    def solve(b):
        return lx.linear_solve(lx.MatrixLinearOperator(A, tags), b, solver).value

    np.testing.assert_allclose(solve(B), np.linalg.solve(A, B), rtol=1e-5)
    if name == "BiCGStab":
        return  # for unit vectors it divides 0 by 0 once it has met the solution, or not, as its sums happen to round
    np.testing.assert_allclose(jax.vmap(jax.jacrev(solve))(jnp.stack([B, B]))[1], np.linalg.inv(A), rtol=1e-4)


def rosenbrock(x, _):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def test_optimisation():
    found = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), jnp.zeros(2), max_steps=500).value
    np.testing.assert_allclose(found, 1, rtol=1e-2)
    residuals = optx.least_squares(
        lambda x, _: jnp.array([1 - x[0], 10 * (x[1] - x[0] ** 2)]), optx.LevenbergMarquardt(1e-5, 1e-5), jnp.zeros(2)
    )
    np.testing.assert_allclose(residuals.value, 1, rtol=1e-3)


def test_roots():
    def root(a):
        return optx.root_find(lambda x, a: x**2 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), args=a).value

    np.testing.assert_allclose(root(2.0), np.sqrt(2), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(root)(2.0), 0.5 / np.sqrt(2), rtol=1e-4)
    bounds = {"lower": 0.0, "upper": 3.0}
    found = optx.root_find(lambda x, _: x**2 - 2, optx.Bisection(1e-6, 1e-6), jnp.array(1.0), options=bounds).value
    np.testing.assert_allclose(found, np.sqrt(2), rtol=1e-4)
    fixed = optx.fixed_point(lambda x, _: jnp.cos(x), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(1.0)).value
    np.testing.assert_allclose(fixed, 0.7390851, rtol=1e-5)
