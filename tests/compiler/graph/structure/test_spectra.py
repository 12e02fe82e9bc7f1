"""Transforms of real arrays compute one half of their spectra, and back from such halves."""

import re

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.default_rng(0)
REAL = {shape: RNG.standard_normal(shape).astype("f4") for shape in ((16,), (15,), (3, 12), (5, 6, 9), (2, 3), (4, 2))}
KINDS = re.compile(r"fft_type=(\w+)")


def transforms(f, *args):
    """The types of the transforms that a program has."""
    return [int(kind) for kind in KINDS.findall(pullback.jit(f).lower(*args).as_text("jaxpr"))]


@pytest.mark.parametrize("shape", REAL)
@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "ifftn"])
def test_one_half_is_computed(shape, name):
    x, half = REAL[shape], shape[-1] // 2 + 1

    def some(x):
        return getattr(jnp.fft, name)(x)[..., :half]

    for f, want in ((getattr(jnp.fft, name), ...), (some, np.s_[..., :half])):
        assert transforms(f, x) == [2] or shape[-1] < 3
        np.testing.assert_allclose(pullback.jit(f)(x), getattr(np.fft, name)(x)[want], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", REAL)
@pytest.mark.parametrize("there, back", [("fft", "ifft"), ("fftn", "ifftn")])
def test_the_way_back_takes_a_half(shape, there, back):
    x, h = REAL[shape], REAL[shape][..., ::-1].copy()
    k = np.fft.fftfreq(shape[-1]).astype("f4")
    k[-(-len(k) // 2)] *= len(k) % 2  # of an even number the middle one has no partner

    def spelled(fft, xp):
        forth, to = getattr(fft, there), getattr(fft, back)

        def convolved(x, h):
            return to(forth(x) * forth(h)).real

        def mixed(x, h):
            return to(2 * forth(x) * forth(h).conj() - forth(h)).real

        def derivative(x, h):
            return to(1j * xp.asarray(k) * forth(x)).real

        return convolved, mixed, derivative

    for ours, plain in zip(spelled(jnp.fft, jnp), spelled(np.fft, np)):
        found = transforms(ours, x, h)
        assert shape[-1] < 3 or (found[-1] == 3 and set(found) == {2, 3}), found
        np.testing.assert_allclose(pullback.jit(ours)(x, h), plain(x, h), rtol=1e-4, atol=1e-4)


def test_other_spectra_stay_whole():
    x = REAL[16,]
    k = np.arange(16).astype("f4")
    for f, plain in (
        (lambda x: jnp.fft.ifft(jnp.fft.fft(x) * k).real, lambda x: np.fft.ifft(np.fft.fft(x) * k).real),
        (lambda x: jnp.fft.ifft(jnp.fft.fft(x) * 1j).real, lambda x: np.fft.ifft(np.fft.fft(x) * 1j).real),
        (lambda x: jnp.fft.fft(x * (1 + 1j)), lambda x: np.fft.fft(x * (1 + 1j))),
    ):
        assert 3 not in transforms(f, x)
        np.testing.assert_allclose(pullback.jit(f)(x), plain(x), rtol=1e-4, atol=1e-4)


def test_their_derivatives():
    x = REAL[16,]

    def power(x):
        return (jnp.abs(jnp.fft.fft(x)) ** 2 * jnp.arange(16.0)).sum()

    wide = x.astype("f8")
    want = 2 * np.fft.fft(np.arange(16) * np.fft.fft(wide).conj()).real
    np.testing.assert_allclose(pullback.jit(pullback.grad(power))(x), want, rtol=1e-4, atol=1e-3)
