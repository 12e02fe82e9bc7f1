"""odeint: solutions and gradients that are known, SciPy's elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental.ode import odeint

pytestmark = pytest.mark.usefixtures("x64")


T = np.array([0.0, 0.3, 1.0, 2.5])


def test_known_solutions():
    y = odeint(lambda y, t: -y, np.array([1.0, 2.0]), T)
    np.testing.assert_allclose(y, np.exp(-T)[:, None] * [1, 2], rtol=1e-7)
    y = odeint(lambda y, t, a: {"x": y["v"], "v": -a * y["x"]}, {"x": 1.0, "v": 0.0}, T, 4.0)
    np.testing.assert_allclose(y["x"], np.cos(2 * T), atol=1e-7)
    np.testing.assert_allclose(y["v"], -2 * np.sin(2 * T), atol=1e-7)
    backwards = odeint(lambda y, t: -y, np.array([1.0]), T[::-1].copy())
    np.testing.assert_allclose(backwards[:, 0], np.exp(T[-1] - T[::-1]), rtol=1e-7)
    np.testing.assert_allclose(odeint(lambda y, t: 1j * y, np.array([1 + 0j]), T)[:, 0], np.exp(1j * T), atol=1e-7)
    assert odeint(lambda y, t: y, np.array([3.0]), T[:1]).tolist() == [[3.0]]
    still = odeint(lambda y, t: 0 * y, np.array([3.0]), T)
    np.testing.assert_array_equal(still, np.full((4, 1), 3.0))


def test_against_scipy():
    def lorenz(y, t, s, r, b):
        return jnp.stack([s * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - b * y[2]])

    y0, args = np.array([1.0, 0.5, -0.3]), (10.0, 28.0, 8 / 3)
    want = scipy.integrate.solve_ivp(
        lambda t, y: np.asarray(lorenz(y, t, *args)), (0, 2.5), y0, t_eval=T, rtol=1e-10, atol=1e-10
    ).y.T
    np.testing.assert_allclose(jax.jit(lambda y, t: odeint(lorenz, y, t, *args))(y0, T), want, rtol=1e-5)
    loose = odeint(lorenz, y0, T, *args, rtol=1e-3, atol=1e-3)
    assert 1e-6 < float(jnp.abs(loose - want).max()) < 2.0


def test_gradients():
    """y = y0 exp(a (t - t0) + b): derivatives by start, times, argument and what the function closes over."""

    def last(y0, t, a, b):
        return odeint(lambda y, s, a, n: n * a * b * y, y0, t, {"a": a}["a"], np.int32(1))[-1, 0]

    y0, a, b = np.array([1.5]), 0.7, 1.2
    value = 1.5 * np.exp(a * b * T[-1])
    got = jax.grad(last, (0, 1, 2, 3))(y0, T, a, b)
    np.testing.assert_allclose(got[0], [value / 1.5], rtol=1e-6)
    np.testing.assert_allclose(got[1], [-a * b * value, 0, 0, a * b * value], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got[2], b * T[-1] * value, rtol=1e-6)
    np.testing.assert_allclose(got[3], a * T[-1] * value, rtol=1e-6)
    both = jax.jit(jax.vmap(jax.grad(last), (0, None, None, None)))(np.array([[1.5], [3.0]]), T, a, b)
    np.testing.assert_allclose(both, [[value / 1.5]] * 2, rtol=1e-6)


def test_gradients_of_all_times():
    def loss(p):
        y = odeint(lambda y, t, p: jnp.stack([y[1], -p[0] * jnp.sin(y[0]) - p[1] * y[1] + t]), p[2:], T, p)
        return jnp.sum(jnp.sin(y))

    p = np.array([1.2, 0.3, 0.5, -0.2])
    steps = 1e-5 * np.eye(4)
    want = [(float(loss(p + h)) - float(loss(p - h))) / 2e-5 for h in steps]
    np.testing.assert_allclose(jax.grad(loss)(p), want, rtol=1e-4, atol=1e-6)


def test_limits():
    y = odeint(lambda y, t: -y, np.array([1.0]), T, mxstep=1)
    assert np.isfinite(np.asarray(y)).all() and abs(float(y[-1, 0]) - np.exp(-2.5)) > 1e-6
    np.testing.assert_allclose(odeint(lambda y, t: -y, np.array([1.0]), T, hmax=0.05)[:, 0], np.exp(-T), rtol=1e-7)
    assert odeint(lambda y, t: -y, np.ones(1, np.float32), T.astype(np.float32), rtol=1e-5).dtype == np.float32
    # y' = y^2 from 1 ends at t = 1; what lies behind is unknown.
    blown = odeint(lambda y, t: y * y, np.array([1.0]), np.array([0.0, 0.5, 1.5]))
    np.testing.assert_allclose(blown[1, 0], 2.0, rtol=1e-6)
    assert not np.isfinite(blown[2, 0])


def test_errors():
    with pytest.raises(TypeError, match="'func' must be a function"):
        odeint(3, np.ones(1), T)
    with pytest.raises(TypeError, match="floating point"):
        odeint(lambda y, t: y, np.arange(3), T)
    with pytest.raises(ValueError, match="'t' has shape"):
        odeint(lambda y, t: y, np.ones(1), T[None])
    with pytest.raises(TypeError, match="expected arrays or numbers"):
        odeint(lambda y, t, a: y, np.ones(1), T, "a")


def test_gradients_of_gradients():
    """y = y0 exp(a t): the adjoint equation has its own."""

    def last(y0, t, a):
        return odeint(lambda y, s, a: a * y, y0, t, a)[-1, 0]

    y0, t, a = np.array([1.5]), T[[0, 2]], 0.7
    by = jax.jit(jax.jacrev(jax.grad(last, (0, 1, 2)), (0, 1, 2)))(y0, t, a)
    e = np.exp(a)
    np.testing.assert_allclose(by[2][2], 1.5 * e, rtol=1e-6)
    np.testing.assert_allclose(by[0][0], [[0]], atol=1e-6)
    np.testing.assert_allclose(by[0][2], [e], rtol=1e-6)
    np.testing.assert_allclose(by[2][0], [e], rtol=1e-6)
    np.testing.assert_allclose(by[2][1], [-1.5 * e * (1 + a), 1.5 * e * (1 + a)], rtol=1e-6)
    np.testing.assert_allclose(by[1][1], 1.5 * e * a**2 * np.array([[1, -1], [-1, 1]]), rtol=1e-6)
    third = jax.grad(jax.grad(jax.grad(last, 2), 2), 2)(y0, t, a)
    np.testing.assert_allclose(third, 1.5 * e, rtol=1e-6)
