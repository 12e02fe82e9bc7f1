"""Bessel and Legendre functions and spherical harmonics against mpmath and SciPy, derivatives, ends."""

import mpmath
import numpy as np
import pytest
import scipy.special

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy import special
from pullback.util import config

mpmath.mp.dps = 40
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("v", [0, 1, 3, 40])
def test_bessel_jn(v, bits):
    z = np.concatenate([10 ** RNG.uniform(-6, 3.5, 15), RNG.uniform(0, 60, 15), [0, 1, 25, 40, 39.99]])
    z = z.astype(f"f{bits // 8}")
    z = np.concatenate([z, -z])
    expected = np.array([[float(mpmath.besselj(n, mpmath.mpf(float(x)))) for x in z] for n in range(v + 1)])
    eps, order = np.finfo(z.dtype).eps, np.arange(v + 1)[:, None]
    # Oscillations have size sqrt(2 / (pi z)); for z < n the functions only grow, from what may underflow.
    scale = np.where(abs(z) < order, 2 * abs(expected), 1 / np.sqrt(np.maximum(abs(z), 1)))
    for f in (special.bessel_jn, jax.jit(special.bessel_jn, static_argnames="v")):
        error = abs(np.asarray(f(z, v=v), float) - expected)
        assert (error <= 7 * eps * scale + np.finfo(z.dtype).tiny).all()


def test_bessel_jn_ends_and_derivatives():
    found = special.bessel_jn(np.array([[0, np.inf, -np.inf, np.nan]], "f"), v=2)
    assert found.shape == (3, 1, 4)
    np.testing.assert_array_equal(found[:, 0], [[1, 0, 0, np.nan], [0, 0, 0, np.nan], [0, 0, 0, np.nan]])
    with pytest.raises(ValueError, match="complex"):
        special.bessel_jn(1j, v=1)
    with pytest.raises(ValueError, match="negative"):
        special.bessel_jn(1.0, v=-1)
    with config.enable_x64(True):
        for z in (0.0, 0.5, -3.0, 30.0):
            slopes = jax.jacfwd(lambda z: special.bessel_jn(z, v=3))(z)
            np.testing.assert_allclose(slopes, scipy.special.jvp(np.arange(4), z), rtol=1e-12, atol=1e-15)
            second = jax.jacfwd(jax.jacrev(lambda z: special.bessel_jn(z, v=0)))(z)
            np.testing.assert_allclose(second, scipy.special.jvp([0], z, 2), rtol=1e-12)


def test_sph_harm_y(bits):
    n, m = RNG.integers(0, 30, 300), RNG.integers(-31, 32, 300)
    theta = RNG.uniform(0, np.pi, 300).astype(f"f{bits // 8}")
    phi = RNG.uniform(0, 6.28, 300).astype(theta.dtype)
    expected = scipy.special.sph_harm_y(n, m, theta.astype(float), phi.astype(float))
    found = special.sph_harm_y(n, m, theta, phi)
    assert found.dtype == f"c{bits // 4}"
    # Most of it is the rounding of m phi, and of logarithms of factorials.
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(theta.dtype).eps)
    traced = jax.jit(lambda n, m: special.sph_harm_y(n, m, theta, phi, n_max=29))(n, m)
    np.testing.assert_allclose(traced, expected, rtol=0, atol=100 * np.finfo(theta.dtype).eps)
    assert abs(found[abs(m) > n]).max() == 0


def test_sph_harm_y_derivatives_and_errors():
    with config.enable_x64(True):
        slope = jax.grad(lambda t: special.sph_harm_y(3, 2, t, 0.5).real)
        for theta in (0.0, 0.3, 2.0):
            h = 1e-5
            up, down = (scipy.special.sph_harm_y(3, 2, theta + d, 0.5).real for d in (h, -h))
            np.testing.assert_allclose(slope(theta), (up - down) / (2 * h), rtol=1e-7, atol=1e-9)
    with pytest.raises(TypeError, match="n_max"):
        jax.jit(lambda n: special.sph_harm_y(n, 1, 0.3, 0.5))(2)
    with pytest.raises(ValueError, match="integers"):
        special.sph_harm_y(1.0, 1, 0.3, 0.5)
    with pytest.raises(NotImplementedError, match="diff_n"):
        special.sph_harm_y(1, 1, 0.3, 0.5, diff_n=1)
    assert special.sph_harm_y(jnp.zeros((2, 1), int), jnp.zeros(3, int), 0.1, 0.2).shape == (2, 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n", [0, 1, 2, 7, 20])
def test_lpmn(n, bits):
    z = np.array([-0.9, -0.3, 0.0, 0.1, 0.8], f"f{bits // 8}")
    values, slopes = special.lpmn(n, n, z)
    expected = scipy.special.assoc_legendre_p_all(n, n, z.astype(float), diff_n=1)[:, :, : n + 1]
    tolerance = 200 * np.finfo(z.dtype).eps
    for found, want in zip((values, slopes), expected.transpose(0, 2, 1, 3)):
        np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    np.testing.assert_array_equal(special.lpmn_values(n, n, z, False), values)
    normal = special.lpmn_values(n, n, z, True)
    order, degree = np.indices((n + 1, n + 1))
    harmonic = scipy.special.sph_harm_y(degree[..., None], order[..., None], np.arccos(z.astype(float)), 0.0).real
    np.testing.assert_allclose(normal, harmonic, rtol=tolerance, atol=tolerance)
    slope = jax.jacfwd(lambda z: special.lpmn_values(n, n, z, False))(z)
    np.testing.assert_allclose(np.einsum("mnii->mni", slope), slopes, rtol=1e-3, atol=tolerance * np.abs(slopes).max())


def test_lpmn_at_the_ends_and_errors():
    with pytest.warns(DeprecationWarning, match="lpmn is deprecated"):
        lpmn = special.lpmn
    values, slopes = lpmn(2, 2, jnp.array([1.0, -1.0, 1.5]))
    np.testing.assert_array_equal(values[0], [[1, 1, 1], [1, -1, 1.5], [1, 1, 2.875]])
    np.testing.assert_array_equal(slopes[:, 2, :2], [[3, -3], [np.inf, np.inf], [-6, 6]])
    assert np.isnan(slopes[1:, 1:, 2]).all()
    for bad, error in [
        (lambda: lpmn(2, 3, jnp.ones(2)), NotImplementedError),
        (lambda: lpmn(2, 2, jnp.ones((2, 2))), ValueError),
        (lambda: lpmn(2, 2, jnp.ones(2, int)), TypeError),
        (lambda: lpmn(-1, -1, jnp.ones(2)), ValueError),
    ]:
        with pytest.raises(error):
            bad()


def test_derivatives_of_modified_functions_are_such_functions():
    """Of scaled ones they would cancel for small arguments, and overflow before the values do."""
    x = np.array([-90, -3, -1e-9, 0, 1e-5, 0.7, 12, 90])
    first, second = jax.vmap(jax.grad(special.i0)), jax.vmap(jax.grad(jax.grad(special.i0)))
    np.testing.assert_allclose(first(np.float32(x)), scipy.special.i1(np.float32(x).astype(float)), rtol=3e-6)
    want = scipy.special.ivp(1, np.float32(x).astype(float))
    np.testing.assert_allclose(second(np.float32(x)), want, rtol=3e-6)
    np.testing.assert_allclose(jax.grad(special.i0)(np.float16(12)), scipy.special.i1(12), rtol=2e-3)
    third = jax.grad(jax.grad(jax.grad(special.i1)))(1.5)
    np.testing.assert_allclose(third, scipy.special.ivp(1, 1.5, 3), rtol=1e-5)
