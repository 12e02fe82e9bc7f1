"""Fourier transforms of long lengths with large primes, as transforms of lengths that the passes do."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.lax.fourier.lower import generates

RNG = np.random.default_rng(0)


def lengths(f, *args):
    eqns = optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns
    return [eqn.params["fft_lengths"] for eqn in eqns if eqn.primitive.name == "fft"]


@pytest.mark.parametrize("n", [4099, 8219, 2 * 4127])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_with_large_primes(n, name, dtype):
    with pb.enable_x64(True):
        x = RNG.standard_normal((3, n)).astype(dtype)
        if name != "rfft":
            x = x + 1j * RNG.standard_normal((3, n)).astype(dtype)
        f = getattr(jnp.fft, name)
        want = getattr(np.fft, name)(x.astype("c16" if name != "rfft" else "f8"))
        got = pb.jit(f)(x)
        assert got.dtype == ("complex64" if dtype == "float32" else "complex128")
        eps = np.finfo(dtype).eps
        assert np.max(np.abs(np.asarray(got) - want)) <= 8 * eps * np.max(np.abs(want))
        found = lengths(f, x)
        assert len(found) == 2 and all(generates(each, False) for each in found)


def test_along_another_axis_and_back():
    x = RNG.standard_normal((4099, 2)).astype("f4")
    f = lambda x: jnp.fft.ifft(jnp.fft.fft(x, axis=0), axis=0).real
    np.testing.assert_allclose(pb.jit(f)(x), x, atol=2e-5)
    # Parseval: the derivative of the sum of squares of a spectrum.
    g = pb.jit(pb.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x[:, 0])) ** 2)))
    np.testing.assert_allclose(g(x)[:, 0], 2 * 4099 * x[:, 0], atol=0.5)


def test_what_is_no_number_reaches_all():
    x = np.ones(4099, "c8")
    x[7] = np.nan
    assert np.isnan(pb.jit(jnp.fft.fft)(x)).all()
