"""Discrete Fourier transforms against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import check, check_gradient

import pullback
import pullback.numpy as jnp

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]
REAL_IN = {"rfft", "ihfft", "rfft2", "rfftn"}
NORMS = [None, "backward", "ortho", "forward"]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with pullback.enable_x64(request.param):
        yield request.param


def sample(name, shape, dtype=np.complex64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if name in REAL_IN or np.dtype(dtype).kind != "c":
        return (4 * x).astype(np.float32 if np.dtype(dtype).kind == "c" else dtype)
    return (x + 1j * rng.normal(size=shape)).astype(dtype)


def both(name, **options):
    return lambda x: getattr(jnp.fft, name)(x, **options), lambda x: getattr(np.fft, name)(x, **options)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, norm, x64):
    for n in (None, 1, 4, 7, 12):
        for shape, axis in (((8,), -1), ((3, 5), 0), ((2, 3, 4), 1)):
            compiled = n is None and len(shape) == 2
            got = check(*both(name, n=n, axis=axis, norm=norm), sample(name, shape), compiled=compiled)
            assert got.dtype == (jnp.float32 if name in ("irfft", "hfft") else jnp.complex64)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.float16, np.float64, np.complex128])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_dtypes(name, dtype, x64):
    wide = x64 and np.dtype(dtype).itemsize >= 8
    x = sample(name, (6,), dtype).astype(dtype if name != "rfft" or np.dtype(dtype).kind != "c" else np.float64)
    got = check(
        *both(name), x if x64 or x.dtype.itemsize < 8 else x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    )
    assert got.dtype.itemsize == (4 if name == "irfft" else 8) * (2 if wide else 1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TWO)
def test_two_axes(name, norm):
    x = sample(name, (3, 4, 6))
    for options in ({}, {"axes": (0, 1)}, {"axes": (2, 0), "s": (5, 3)}, {"s": (2, 8)}):
        check(*both(name, norm=norm, **options), x, compiled=norm is None)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 3, 2, 4), (2, 1, 3, 2, 4)], ids=str)
@pytest.mark.parametrize("name", MANY)
def test_all_axes(name, shape, x64):
    for norm in (None, "ortho"):
        check(*both(name, norm=norm), sample(name, shape), compiled=norm is None)


@pytest.mark.parametrize("name", MANY)
def test_some_axes(name):
    x = sample(name, (2, 3, 4, 6))
    for options in (
        {"axes": (1,)},
        {"axes": (3, 0)},
        {"s": (2, 4), "axes": (-2, -1)},
        {"axes": (2, 3, 0, 1), "s": (3, 4, 2, 6)},
    ):
        check(*both(name, **options), x)


def test_inverses():
    x = sample("fft", (4, 6))
    for forward, back in (("fft", "ifft"), ("fftn", "ifftn"), ("fft2", "ifft2")):
        check(lambda x, f=forward, b=back: getattr(jnp.fft, b)(getattr(jnp.fft, f)(x)), lambda x: x, x)
    check(lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 6), lambda x: x, x.real.copy())
    check(lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x), (4, 6)), lambda x: x, x.real.copy())


def test_gradients():
    for name in ("fft", "ifft", "fftn", "rfft", "ihfft", "rfft2"):
        check_gradient(lambda x, n=name: jnp.abs(getattr(jnp.fft, n)(x)) ** 2, sample("rfft", (3, 6)))
    for name in ("irfft", "hfft", "irfftn"):
        check_gradient(lambda x, n=name: getattr(jnp.fft, n)(x + 1j * x**2), sample("rfft", (3, 4)))


def test_maps():
    x = sample("fft", (5, 3, 4))
    check(pullback.vmap(lambda x: jnp.fft.fft(x, axis=0), in_axes=1, out_axes=1), lambda x: np.fft.fft(x, axis=0), x)
    check(pullback.vmap(jnp.fft.fft2), lambda x: np.fft.fft2(x), x)


def test_empty_arrays():
    assert jnp.fft.fft(jnp.zeros(0)).shape == (0,)
    assert jnp.fft.fft(jnp.zeros((0, 3))).shape == (0, 3)
    assert jnp.fft.rfft(jnp.zeros((0, 4))).shape == (0, 3)
    assert jnp.fft.irfft(jnp.ones(1)).shape == (0,)
    assert jnp.fft.irfft(jnp.ones(1), 1).shape == (1,)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n, x64):
    for d in (1.0, 0.25, 3):
        check(lambda d, n=n: jnp.fft.fftfreq(n, d), lambda d, n=n: np.fft.fftfreq(n, d), np.float32(d))
        check(lambda d, n=n: jnp.fft.rfftfreq(n, d), lambda d, n=n: np.fft.rfftfreq(n, d), np.float32(d))
    for f in (jnp.fft.fftfreq, jnp.fft.rfftfreq):
        assert all(k == int(k) for k in f(41, 1 / 41).tolist())  # float32(1 / 41) * 41 is not 1
    assert jnp.fft.fftfreq(n).dtype == (jnp.float64 if x64 else jnp.float32)
    assert jnp.fft.fftfreq(n, dtype=jnp.float16).dtype == jnp.float16
    x = sample("rfft", (n, 3))
    for axes in (None, 0, 1, (0, 1), (1,)):
        for name in ("fftshift", "ifftshift"):
            check(*both(name, axes=axes), x)


def test_mistakes():
    x = jnp.arange(4.0)
    for error, text, call in [
        (ValueError, "Invalid norm value foo", lambda: jnp.fft.fft(x, norm="foo")),
        (ValueError, "Shape should be positive", lambda: jnp.fft.fft(x, n=0)),
        (ValueError, "axis 2 is out of bounds", lambda: jnp.fft.rfft(x, axis=2)),
        (ValueError, "expected one axis", lambda: jnp.fft.fft(x, axis=(0, 1))),
        (TypeError, "requires ndarray or scalar arguments, got <class 'list'>", lambda: jnp.fft.fft([1, 2])),
        (ValueError, "only real valued inputs supported for rfft", lambda: jnp.fft.rfft(x + 1j)),
        (ValueError, "only supports 2 axes", lambda: jnp.fft.fft2(jnp.ones((2, 2)), axes=(0,))),
        (ValueError, "each axis can be transformed once", lambda: jnp.fft.fftn(jnp.ones((2, 2)), axes=(0, 0))),
        (ValueError, "do not go with 2 axes", lambda: jnp.fft.fftn(jnp.ones((2, 2)), s=(2,), axes=(0, 1))),
        (ValueError, "fft.fftfreq: argument 'n' is", lambda: jnp.fft.fftfreq([4])),
        (ValueError, "fft.fftfreq: argument 'd' is", lambda: jnp.fft.fftfreq(4, [2])),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_no_axis_means_all_of_them_or_the_last_where_there_is_a_length():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for name in ("fft", "ifft", "rfft", "irfft"):
        one, many = getattr(jnp.fft, name), getattr(jnp.fft, name + "n")
        np.testing.assert_array_equal(one(x, axis=None), many(x))
        np.testing.assert_array_equal(one(x, 3, axis=None), one(x, 3))
