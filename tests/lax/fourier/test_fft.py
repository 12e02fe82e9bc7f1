"""The passes of Fourier transforms: every kind of length, type, direction; accuracy beside the library's; threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.lax.fourier import codelets, plans

# One codelet; several passes; primes that are convolutions; powers of each prime.
LENGTHS = [1, 2, 3, 5, 8, 11, 13, 15, 16, 17, 18, 27, 31, 32, 34, 49, 60, 81, 101, 121, 128, 210, 1000]
BOUND = {np.complex64: 4e-7, np.complex128: 8e-16}


def spectrum(shape, dtype=np.complex64, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def error(got, want):
    """Relative, in the root mean square."""
    return np.linalg.norm((np.asarray(got) - want).ravel()) / max(np.linalg.norm(want.ravel()), 1e-30)


def exact(name, x, **options):
    """By SciPy in extended precision."""
    return getattr(scipy.fft, name)(x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble), **options)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n):
    x = spectrum((n,) if n % 2 else (3, n))
    half = x[..., : n // 2 + 1]
    assert error(pullback.jit(jnp.fft.fft)(x), exact("fft", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.ifft)(x), exact("ifft", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.rfft)(x.real), exact("rfft", x.real)) < BOUND[np.complex64]
    back = pullback.jit(lambda h: jnp.fft.irfft(h, n))(half)
    assert error(back, exact("irfft", half, n=n)) < BOUND[np.complex64]


@pytest.mark.parametrize("n", [7, 16, 24, 37, 360, 1024])
def test_double_precision(n):
    with pullback.enable_x64(True):
        x = spectrum((2, n), np.complex128)
        for name in ("fft", "ifft"):
            assert error(pullback.jit(getattr(jnp.fft, name))(x), exact(name, x)) < BOUND[np.complex128]
        assert error(pullback.jit(jnp.fft.rfft)(x.real), exact("rfft", x.real)) < BOUND[np.complex128]
        assert error(pullback.jit(jnp.fft.irfft)(x), exact("irfft", x)) < BOUND[np.complex128]


@pytest.mark.parametrize("shape", [(3, 8), (20, 30), (64, 64), (5, 17, 3), (2, 40, 33), (7, 101, 9), (4, 18, 1)])
def test_several_axes(shape):
    x = spectrum(shape)
    half = x[..., : shape[-1] // 2 + 1]
    axes = tuple(range(len(shape)))
    assert error(pullback.jit(jnp.fft.fftn)(x), exact("fftn", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.ifftn)(x), exact("ifftn", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.rfftn)(x.real), exact("rfftn", x.real)) < BOUND[np.complex64]
    back = pullback.jit(lambda h: jnp.fft.irfftn(h, shape))(half)
    assert error(back, exact("irfftn", half, s=shape, axes=axes)) < BOUND[np.complex64]


@pytest.mark.parametrize("n", [10_000, 1 << 14, 2 * 9_999])
def test_long_ones_are_made_of_two(n):
    x = spectrum((2, n))
    half = x[..., : n // 2 + 1]
    assert error(pullback.jit(jnp.fft.fft)(x), exact("fft", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.rfft)(x.real), exact("rfft", x.real)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.irfft)(half), exact("irfft", half)) < BOUND[np.complex64]


def test_integers_become_default_floats():
    assert lax.fft(jnp.arange(4), "rfft", (4,)).dtype == jnp.complex64


def test_what_is_left_to_the_library():
    x = spectrum(20_011)  # a prime whose convolution is too long
    assert error(pullback.jit(jnp.fft.fft)(x), exact("fft", x)) < BOUND[np.complex64]


def test_no_less_accurate_than_the_library():
    for n in (64, 1000, 4096):
        x = spectrum((8, n))
        ours, theirs = error(pullback.jit(jnp.fft.fft)(x), exact("fft", x)), error(scipy.fft.fft(x), exact("fft", x))
        assert ours < 1.1 * theirs, n


def test_short_programs():
    """A transform is one call: what it takes to compile does not grow with its passes."""
    for n in (97, 256, 1000):
        text = pullback.jit(jnp.fft.fft).lower(spectrum((20, n))).compile().as_text("nests")
        assert text.count("pb_fourier_f32") == 1 and "vector" not in text


def test_few_short_transforms_are_calls():
    """Straight code for each axis took three times as long to compile; of very many it runs twice as fast."""

    def calls(f, *shape):
        return pullback.jit(f).lower(spectrum(shape)).compile().as_text("nests").count("pb_fourier_f32")

    assert calls(jnp.fft.fftn, 8, 8, 8) == calls(jnp.fft.ifftn, 3, 5, 7) == 3
    assert (
        calls(lambda x: jnp.fft.rfftn(x.real), 4, 6, 8) == calls(lambda x: jnp.fft.irfftn(x, (4, 6, 8)), 4, 6, 5) == 3
    )
    assert calls(jnp.fft.fft, 20_000, 4) == calls(lambda x: jnp.fft.rfft(x.real), 20_000, 8) == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8])
def test_small_arrays_share_vectors(n, dtype):
    """Rows of a few numbers and arrays of a few columns, less than fill vectors, as many, and some left over."""
    with pullback.enable_x64(dtype == "complex128"):
        for rows, columns in ((15, 1), (16, 1), (130, 1), (7, 3), (19, 2), (40, 4), (33, 5), (10, 30)):
            x = spectrum((rows, n, columns), dtype)
            got = pullback.jit(lambda x: (jnp.fft.fft(x, axis=1), jnp.fft.ifft(x, axis=1)))(x)
            assert error(got[0], exact("fft", x, axis=1)) < BOUND[x.dtype.type]
            assert error(got[1], exact("ifft", x, axis=1)) < BOUND[x.dtype.type]
            flat = x.reshape(rows * columns, n)
            half = flat[:, : n // 2 + 1]
            got = pullback.jit(lambda x, h: (jnp.fft.rfft(x), jnp.fft.irfft(h, n)))(flat.real, half)
            assert error(got[0], exact("rfft", flat.real)) < BOUND[x.dtype.type]
            assert error(got[1], exact("irfft", half, n=n)) < BOUND[x.dtype.type]


@pytest.mark.parametrize("n", [9, 15, 24, 31, 64, 96])
@pytest.mark.parametrize("rows", [2, 15, 16, 17, 40])
def test_rows_in_lanes_of_their_own(n, rows):
    """As many rows as a vector has lanes, fewer, and some left over; even and odd lengths; real numbers and back."""
    x = spectrum((rows, n))
    half = x[:, : n // 2 + 1]
    assert error(pullback.jit(jnp.fft.fft)(x), exact("fft", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.ifft)(x), exact("ifft", x)) < BOUND[np.complex64]
    assert error(pullback.jit(jnp.fft.rfft)(x.real), exact("rfft", x.real)) < BOUND[np.complex64]
    assert error(pullback.jit(lambda h: jnp.fft.irfft(h, n))(half), exact("irfft", half, n=n)) < BOUND[np.complex64]


def test_threads_change_nothing():
    for shape, axis in (((300, 96), 1), ((60, 1024), 1), ((500, 45), 0), ((1 << 16,), 0), ((3000, 8, 4), 1)):
        x = spectrum(shape)
        transform = pullback.jit(lambda x, axis=axis: (jnp.fft.fft(x, axis=axis), jnp.fft.rfft(x.real, axis=axis)))
        results = []
        for threads in (1, 2, 3):
            with pullback.set_num_threads(threads):
                results.append([np.asarray(part).tobytes() for part in transform(x)])
        assert results[0] == results[1] == results[2]


def test_roots_are_rounded_once():
    for n in (1, 2, 3, 8, 12, 100, 1009):
        k = np.arange(n)
        angle = 2 * np.longdouble(np.pi) * k / n + 2 * np.longdouble(1.2246467991473532e-16) * k / n
        w = codelets.roots(n)
        assert np.abs(w.real - np.cos(angle)).max() <= 2e-16 and np.abs(w.imag - np.sin(angle)).max() <= 2e-16


def test_plans():
    for n in range(1, 3000):
        if plans.has_small_primes(n):
            assert np.prod(plans.radices(n)) == n
        good = codelets.good_length(n)
        assert good >= n and plans.has_small_primes(good)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [17, 34, 73, 93, 204, 8 * 127, 19 * 17, 31 * 31])
def test_primes_that_are_loops(n, dtype):
    """One row, rows that share passes, columns of a lane's width and more; real numbers and back."""
    assert plans.has_small_primes(n) and plans.work_length(n) == n
    for shape, axis in (((n,), 0), ((5, n), 1), ((37, n), 1), ((n, 3), 0), ((n, 20), 0)):
        x = spectrum(shape).astype(dtype)
        with pullback.enable_x64(dtype == "complex128"):
            for name in ("fft", "ifft"):
                got = pullback.jit(lambda x, name=name, axis=axis: getattr(jnp.fft, name)(x, axis=axis))(x)
                assert error(got, exact(name, x, axis=axis)) < BOUND[x.dtype.type]
            if axis == len(shape) - 1:
                half = pullback.jit(jnp.fft.rfft)(x.real)
                assert error(half, exact("rfft", x.real)) < BOUND[x.dtype.type]
                assert error(pullback.jit(lambda h: jnp.fft.irfft(h, n))(half), x.real) < BOUND[x.dtype.type]


def test_special_values_reach_the_result():
    x = np.ones(64, np.complex64)
    x[5] = np.nan
    assert np.isnan(np.asarray(pullback.jit(jnp.fft.fft)(x))).all()
    assert not np.asarray(pullback.jit(jnp.fft.fft)(np.zeros(64, np.complex64))).any()


@pytest.mark.parametrize("n", [8192, 8190])
def test_the_longest_columns_that_have_common_passes(n):
    x = np.random.default_rng(0).standard_normal((n, 9))
    for dtype in ("c8", "c16"):
        with pullback.enable_x64(dtype == "c16"):
            got = pullback.jit(lambda x: jnp.fft.fft(x, axis=0))(x.astype(dtype))
        np.testing.assert_allclose(got, np.fft.fft(x, axis=0), atol=1e-3 if dtype == "c8" else 1e-10)


@pytest.mark.parametrize("n", [97, 257, 509])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_one_transform_and_several_of_a_prime_length(name, n):
    x = spectrum((2, n))
    transform = pullback.jit(getattr(jnp.fft, name))
    assert error(transform(x[0]), exact(name, x[0])) < BOUND[np.complex64]
    assert error(transform(x), exact(name, x)) < BOUND[np.complex64]


@pytest.mark.sample(12)
@pytest.mark.parametrize("n", [*range(1, 18), 24, 31, 64, 90, 243, 500, 1000, 1009])
def test_transforms_of_zeros_have_no_negative_zeros(n):
    """As in NumPy, but for `ihfft`, which is a conjugate."""
    for rows in ((), (3,), (17,)):
        zeros = {False: np.zeros((*rows, n), "f4"), True: np.zeros((*rows, n), "c8")}
        for name in ("fft", "ifft", "rfft", "irfft", "hfft"):
            for is_complex, x in zeros.items():
                if (is_complex and name == "rfft") or (n == 1 and name in ("irfft", "hfft")):
                    continue
                got = np.asarray(pullback.jit(getattr(jnp.fft, name))(x))
                assert not got.any() and not np.signbit(got.real).any() and not np.signbit(got.imag).any(), name
