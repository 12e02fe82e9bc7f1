"""scipy.signal against SciPy in double precision."""

import functools

import numpy as np
import pytest
import scipy.signal as theirs

import pullback
import pullback.numpy as jnp
from pullback.scipy import signal as ours
from pullback.scipy.signal import _windows

pytestmark = pytest.mark.usefixtures("x64")


def data(*shape, complex_=False, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex_ else 0)


SHAPES = [
    ((9,), (4,)),
    ((4,), (9,)),
    ((5,), (5,)),
    ((1,), (3,)),
    ((6, 7), (3, 2)),
    ((5, 4, 6), (2, 3, 3)),
    ((200,), (150,)),
]


@pytest.mark.parametrize("function", ["convolve", "correlate"])
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("complex_", [False, True])
def test_convolve_and_correlate(function, method, mode, complex_):
    for n, m in SHAPES:
        x, y = data(*n, complex_=complex_), data(*m, complex_=complex_, seed=1)
        got = getattr(ours, function)(x, y, mode, method)
        np.testing.assert_allclose(got, getattr(theirs, function)(x, y, mode, method), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_fftconvolve_along_some_axes(mode):
    x, y = data(3, 20), data(3, 7, seed=1)
    np.testing.assert_allclose(ours.fftconvolve(x, y, mode, 1), theirs.fftconvolve(x, y, mode, 1), atol=1e-10)
    np.testing.assert_allclose(
        ours.fftconvolve(x, y[:1], mode, [1]), theirs.fftconvolve(x, y[:1], mode, [1]), atol=1e-10
    )


@pytest.mark.parametrize("function", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_matrices(function, mode, boundary):
    for n, m in (((6, 7), (3, 2)), ((6, 6), (5, 4)), ((5, 5), (1, 3))):
        x, y = data(*n), data(*m, seed=1)
        got = getattr(ours, function)(x, y, mode, boundary, 0.5)
        np.testing.assert_allclose(got, getattr(theirs, function)(x, y, mode, boundary, 0.5), atol=1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_matrices_of_complex_numbers(mode):
    x, y = data(6, 7) + 1j * data(6, 7, seed=1), data(3, 2, seed=2) + 1j * data(3, 2, seed=3)
    for first, second in ((x, y), (y, x)):
        want = theirs.correlate2d(first, second, mode)
        np.testing.assert_allclose(ours.correlate2d(first, second, mode), want, atol=1e-10)


def test_integers_become_floats_of_the_default_precision():
    x = np.arange(6)
    assert ours.convolve(x, x).dtype == jnp.float64
    with pullback.enable_x64(False):
        assert ours.convolve(x, x).dtype == jnp.float32


@pytest.mark.parametrize("type_", ["linear", "constant"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_detrend(type_, axis):
    x = np.cumsum(data(11, 13), axis)
    np.testing.assert_allclose(ours.detrend(x, axis, type_), theirs.detrend(x, axis, type_), atol=1e-10)
    np.testing.assert_allclose(ours.detrend(x, axis, type_, [4, 7]), theirs.detrend(x, axis, type_, [4, 7]), atol=1e-10)


@pytest.mark.filterwarnings("ignore:nperseg")  # SciPy says that it shortens segments
def test_spectra():
    x, y = data(3, 200), data(3, 200, seed=1)
    for options in (
        {}, {"nperseg": 32}, {"nperseg": 33, "noverlap": 8, "nfft": 64}, {"nperseg": 32, "scaling": "spectrum"},
        {"nperseg": 32, "average": "median"}, {"nperseg": 32, "return_onesided": False}, {"nperseg": 40, "fs": 3.0},
        {"nperseg": 32, "detrend": "linear"}, {"nperseg": 32, "detrend": False, "window": "hamming"},
    ):  # fmt: skip
        for got, want in zip(ours.welch(x, **options), theirs.welch(x, **options)):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)
        for got, want in zip(ours.csd(x, y, **options), theirs.csd(x, y, **options)):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)
    for got, want in zip(ours.welch(x, nperseg=2, axis=0), theirs.welch(x, nperseg=2, axis=0)):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("boundary", ["zeros", "even", "odd", "constant", None])
@pytest.mark.parametrize("padded", [True, False])
def test_short_time_transforms(boundary, padded):
    x = data(2, 150)
    for options in ({"nperseg": 32}, {"nperseg": 33, "noverlap": 20}, {"nperseg": 32, "nfft": 50, "fs": 2.0}):
        for got, want in zip(
            ours.stft(x, boundary=boundary, padded=padded, **options),
            theirs.stft(x, boundary=boundary, padded=padded, **options),
        ):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


def test_inverse_short_time_transform():
    for shape in ((150,), (2, 150)):
        for complex_ in (False, True):
            x = data(*shape, complex_=complex_)
            for options in ({"nperseg": 32}, {"nperseg": 32, "noverlap": 24}, {"nperseg": 32, "nfft": 40}):
                one_sided = not complex_
                z = theirs.stft(x, return_onesided=one_sided, **options)[2]
                want = theirs.istft(z, input_onesided=one_sided, **options)
                got = ours.istft(z, input_onesided=one_sided, **options)
                np.testing.assert_allclose(got[1], want[1], rtol=1e-8, atol=1e-10)
                if len(shape) == 1:  # SciPy's times count along the first axis, whatever it is
                    np.testing.assert_allclose(got[0], want[0])


def test_under_transformations():
    x, y = data(3, 20), data(5, seed=1)
    batched = pullback.vmap(lambda row: ours.convolve(row, y, "same"))(x)
    np.testing.assert_allclose(batched, np.stack([np.convolve(row, y, "same") for row in x]), atol=1e-10)
    gradient = pullback.grad(lambda k: jnp.sum(ours.convolve(x[0], k) ** 2))(y)
    step = 1e-6 * np.eye(5)
    value = [np.sum(np.convolve(x[0], y + s) ** 2) - np.sum(np.convolve(x[0], y - s) ** 2) for s in step]
    np.testing.assert_allclose(gradient, np.array(value) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ours.convolve(data(3), data(2, 3)), "expected as many axes in both"),
        (lambda: ours.convolve(data(3), data(3), "middle"), "'full', 'same' or 'valid'"),
        (lambda: ours.convolve(data(3), data(3), method="x"), "expected 'auto', 'fft' or 'direct'"),
        (lambda: ours.convolve(data(3, 2), data(2, 3), "valid"), "needs one that fits into the other"),
        (lambda: ours.convolve(data(0), data(3)), "zero-size arrays"),
        (lambda: ours.convolve2d(data(3), data(3)), "takes two matrices"),
        (lambda: ours.convolve2d(data(3, 3), data(3, 3), boundary="x"), "'fill', 'wrap' or 'symm'"),
        (lambda: ours.fftconvolve(data(3, 3), data(2, 3), axes=1), "do not broadcast"),
        (lambda: ours.detrend(data(3), type="x"), "argument 'type' is 'x'"),
        (lambda: ours.detrend(data(3), bp=7), "break points"),
        (lambda: ours.welch(data(20), scaling="x"), "Unknown scaling"),
        (lambda: ours.welch(data(20), average="x"), "argument 'average' is 'x'"),
        (lambda: ours.stft(data(20), nperseg=8, noverlap=9), "noverlap is 9; expected fewer than the 8"),
        (lambda: ours.stft(data(20), nperseg=8, nfft=4), "nfft is 4, shorter than the segments of 8"),
        (lambda: ours.istft(data(5)), "two axes"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_trends_are_removed_by_functions(axis):
    x = data(40, 40)
    for name in ("welch", "csd", *(("stft",) if axis == -1 else ())):  # SciPy's stft moves the samples of others
        given = (x, x[::-1]) if name == "csd" else (x,)
        options = {"nperseg": 8, "axis": axis}
        found = getattr(ours, name)(*given, detrend=lambda s: s - jnp.mean(s, -1, keepdims=True), **options)
        want = getattr(theirs, name)(*given, detrend=lambda s: s - np.mean(s, -1, keepdims=True), **options)
        for f, w in zip(found, want, strict=True):
            np.testing.assert_allclose(f, w, rtol=1e-10, atol=1e-12)


PARAMETERS = {
    "kaiser": [(8.6,)], "gaussian": [(2.5,)], "general_gaussian": [(1.5, 3.0)], "general_hamming": [(0.6,)],
    "general_cosine": [([0.4, 0.5, 0.1],)], "tukey": [(), (0.0,), (0.3,), (1.0,)], "exponential": [(None, 3.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", _windows._BY_NAME)
def test_windows(name):
    function = _windows._BY_NAME[name][0]
    known = next((key for key in PARAMETERS if _windows._BY_NAME[key][0] is function), None)
    for parameters in [()] if known is None else PARAMETERS[known]:
        window = (name, *parameters) if parameters else name
        for n in (1, 2, 3, 8, 33):
            want = theirs.get_window(window, n)
            np.testing.assert_allclose(_windows.window_of(window, n), want, rtol=1e-12, atol=1e-14)


def test_windows_of_other_parameters():
    for window in (("hann", 1.0), "kaiser", ("tukey", 0.1, 0.2)):
        with pytest.raises(ValueError, match=r"takes .* parameters, got"):
            _windows.window_of(window, 8)


def test_windows_that_are_none():
    with pytest.raises(ValueError, match=r"no window is called 'hannn'; expected one of bart, "):
        ours.welch(jnp.ones(64), window="hannn")


@pytest.mark.parametrize("size", [64, 256])
def test_programs_of_segments_do_not_grow_with_them(size):
    """One slice for each sample of a segment took seconds to compile."""
    x = jnp.arange(1024.0)
    for noverlap in (size // 2, size - 1):
        spectrum = functools.partial(ours.stft, nperseg=size, noverlap=noverlap)
        back = functools.partial(ours.istft, nperseg=size, noverlap=noverlap)
        assert len(pullback.make_jaxpr(spectrum)(x).eqns) < 40
        assert len(pullback.make_jaxpr(back)(spectrum(x)[2]).eqns) < 40
        np.testing.assert_allclose(back(spectrum(x)[2])[1][:1024], x, atol=1e-2)


def test_transforms_of_nothing_are_zeros():
    out = ours.fftconvolve(jnp.ones((0, 5)), jnp.ones((2, 3)))
    assert out.shape == (1, 7) and not out.any() and ours.fftconvolve(jnp.ones(0), jnp.ones(1)).shape == (0,)


def test_what_is_taken_instead_is_said():
    x = jnp.ones((2, 40))
    with pytest.warns(UserWarning, match="nperseg=50 is greater"):
        ours.welch(x, nperseg=50)
    with pytest.warns(UserWarning, match="nperseg=256 is greater"):
        ours.stft(x)
    with pytest.warns(UserWarning, match="return_onesided=False"):
        ours.csd(x + 0j, x)
    ours.stft(x, nperseg=40), ours.welch(x), ours.stft(x + 0j, nperseg=10, return_onesided=False)  # warnings are errors
