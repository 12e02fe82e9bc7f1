"""Trends, and spectra by transforms of overlapping segments (Welch, IEEE Trans. Audio Electroacoust. 15, 1967)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.numpy._arguments import check_arraylike
from pullback.scipy.signal._windows import window_of
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely
from pullback.util.warning import warn

EXTENSIONS = ("even", "odd", "constant", "zeros", None)


@promoting_freely
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: None = None
) -> Any:
    """`data` less its mean ('constant') or its least-squares line ('linear') along an axis.

    A line is fitted to each part between the break points `bp`. Raises ValueError for another `type`, or break points
    outside of the axis; NotImplementedError for `overwrite_data`, as arrays do not change.
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: argument 'overwrite_data' is not supported; arrays do not change")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: argument 'type' is {type!r}; accepted are 'constant' and 'linear'")
    x = jnp.asarray(data)
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    n = x.shape[axis]
    ends = sorted({0, n, *np.atleast_1d(bp).tolist()})
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(f"detrend: argument 'bp' is {bp}; expected break points from 0 to {n}")
    rows = jnp.moveaxis(x, axis, -1)
    parts = []
    for start, stop in itertools.pairwise(ends):
        part = rows[..., start:stop]
        # Least squares on an axis that is centred: slope and mean are independent of each other.
        t = np.arange(stop - start) - (stop - start - 1) / 2
        t = jnp.asarray(t, np.finfo(x.dtype).dtype)
        square = float(np.sum((np.arange(stop - start) - (stop - start - 1) / 2) ** 2))
        slope = jnp.sum(part * t, -1, keepdims=True) / (square or 1.0)
        parts.append(part - jnp.mean(part, -1, keepdims=True) - slope * t)
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


def _nothing(name: str, x: Any, y: Any) -> Any:
    """What there is of an empty signal: an empty array of its shape."""
    given = (x,) if y is None else (x, y)
    check_arraylike(name, *given)
    lead = jnp.broadcast_shapes(*(jnp.shape(s)[:-1] for s in given))
    return jnp.zeros((*lead, min(jnp.shape(s)[-1] for s in given)), jnp.result_type(*given, jnp.complex64))


@promoting_freely
def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """(frequencies, cross power spectral density of x and y), by Welch's method.

    x, y: [..., n]; results [k] and [..., k]. Segments have `nperseg` samples (256 by default, at most n) and overlap by
    `noverlap` (half of them by default). `detrend` is 'constant', 'linear', False or a function of segments
    [..., segment, sample]. Raises ValueError for lengths that do not fit, another `scaling` than 'density' and
    'spectrum', and another `average` than 'mean' and 'median'.
    """
    if average not in ("mean", "median"):
        raise ValueError(f"csd: argument 'average' is {average!r}; accepted are 'mean' and 'median'")
    if 0 in (jnp.size(x), 1 if y is None else jnp.size(y)):
        nothing = _nothing("csd", x, y)
        return nothing.real, nothing
    frequencies, _, spectrum = _segments(
        x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, "psd", None, False
    )
    if spectrum.shape[-1] > 1:
        if average == "median":
            bias = _median_bias(spectrum.shape[-1])
            if jnp.iscomplexobj(spectrum):
                middle = jnp.median(jnp.real(spectrum), -1) + 1j * jnp.median(jnp.imag(spectrum), -1)
            else:
                middle = jnp.median(spectrum, -1)
            spectrum = middle / bias
        else:
            spectrum = jnp.mean(spectrum, -1)
    else:
        spectrum = spectrum[..., 0]
    return frequencies, jnp.moveaxis(spectrum, -1, axis)


@promoting_freely
def welch(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """(frequencies, power spectral density of x), by Welch's method; arguments and errors as of `csd`."""
    frequencies, density = csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )
    return frequencies, jnp.real(density)


@promoting_freely
def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = False, return_onesided: bool = True,
    boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(frequencies, times, short-time Fourier transform of x); the last axis of the transform is time.

    `boundary` says how x goes on at its ends, so that they are in the middle of a segment: 'zeros', 'even', 'odd',
    'constant' or None; `padded` adds zeros to make up a last segment. Raises ValueError as `csd` does.
    """
    if jnp.size(x) == 0:
        nothing = _nothing("stft", x, None)
        return nothing.real, nothing.real, nothing
    return _segments(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis, "stft", boundary,
        padded,
    )  # fmt: skip


@promoting_freely
def istft(
    Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:  # fmt: skip
    """(times, signal) of a short-time Fourier transform: the least-squares inverse of `stft` by overlapping additions.

    Griffin and Lim, IEEE Trans. Acoust. Speech Signal Process. 32, 1984. Raises ValueError for arrays of less than two
    axes, equal axes, and lengths that do not fit.
    """
    check_arraylike("istft", Zxx)
    z = jnp.asarray(Zxx)
    if z.ndim < 2:
        raise ValueError(f"istft: argument 'Zxx' must have two axes at least, got shape {z.shape}")
    if freq_axis % z.ndim == time_axis % z.ndim:
        raise ValueError("istft: arguments 'time_axis' and 'freq_axis' must be different axes")
    z = z.astype(jnp.result_type(z, jnp.complex64))
    z = jnp.moveaxis(z, (freq_axis, time_axis), (-2, -1))
    least = 2 * (z.shape[-2] - 1) if input_onesided else z.shape[-2]
    size = least if nperseg is None else int(nperseg)
    length = (least + 1 if input_onesided and size == least + 1 else least) if nfft is None else int(nfft)
    if nfft is None and nperseg is not None and not input_onesided:
        length = least
    if length < size:
        raise ValueError(f"istft: argument 'nfft' is {length}; it must be nperseg = {size} at least")
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise ValueError(f"istft: noverlap is {overlap}; expected fewer than the {size} elements of a segment")
    step = size - overlap
    real = jnp.finfo(z.dtype).dtype
    w, _ = _window("istft", window, size, size, real)
    parts = jnp.fft.irfft(z, length, axis=-2) if input_onesided else jnp.fft.ifft(z, axis=-2)
    parts = jnp.swapaxes(parts[..., :size, :], -1, -2) * (w * jnp.sum(w))
    signal = _overlap_add(parts, step)
    norm = _overlap_add(jnp.broadcast_to(w**2, (z.shape[-1], size)), step)
    if boundary:
        cut = slice(size // 2, signal.shape[-1] - size // 2)
        signal, norm = signal[..., cut], norm[cut]
    signal = signal / jnp.where(norm > 1e-10, norm, 1.0)
    signal = signal if not input_onesided else jnp.real(signal)
    if signal.ndim > 1 and freq_axis % Zxx.ndim != z.ndim - 1:
        # The axis of the signal stands where the outer one of the two was.
        signal = jnp.moveaxis(signal, -1, min(freq_axis % z.ndim, time_axis % z.ndim))
    return jnp.arange(norm.shape[0], dtype=real) / fs, signal


def _windows(signal: Any, size: int, step: int) -> Any:
    """[..., n] -> [..., k, size]: the segments that start at each multiple of `step` and lie within the signal."""
    starts = _starts((signal.shape[-1] - size) // step + 1, step)
    lead = signal.shape[:-1]
    axes = lax.GatherDimensionNumbers(
        offset_dims=(*range(len(lead)), len(lead) + 1), collapsed_slice_dims=(), start_index_map=(len(lead),)
    )
    return lax.gather(signal, starts, axes, (*lead, size), indices_are_sorted=True, mode="promise_in_bounds")


def _overlap_add(parts: Any, step: int) -> Any:
    """[..., k, size] -> [..., (k - 1) step + size]: the segments added where they overlap; `_windows` transposed."""
    count, size = parts.shape[-2:]
    lead = parts.shape[:-2]
    axes = lax.ScatterDimensionNumbers(
        update_window_dims=(*range(len(lead)), len(lead) + 1), inserted_window_dims=(),
        scatter_dims_to_operand_dims=(len(lead),),
    )  # fmt: skip
    empty = jnp.zeros((*lead, (count - 1) * step + size), parts.dtype)
    starts = _starts(count, step)
    return lax.scatter_add(empty, starts, parts, axes, indices_are_sorted=True, mode="promise_in_bounds")


def _starts(count: int, step: int) -> Any:
    return np.arange(0, count * step, step, dtype=np.int32)[:, None]


def _median_bias(n: int) -> float:
    """Median of n exponential variables per their mean (Allen et al., Phys. Rev. D 85, 122006, appendix B)."""
    k = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (k + 1) - 1 / k))


def _window(name: str, window: Any, nperseg: int | None, n: int, real: Any) -> tuple[Any, int]:
    """(window, its length): by name, or as given."""
    if isinstance(window, (str, tuple)):
        size = 256 if nperseg is None else int(nperseg)
        if size < 1:
            raise ValueError(f"{name}: nperseg must be a positive integer, got {size}")
        if nperseg is not None and size > n:
            warn(f"nperseg={size} is greater than the length of the signal, {n}, which is taken instead")
        size = min(size, n)
        return jnp.asarray(window_of(window, size), real), size
    w = jnp.asarray(window, real)
    if w.ndim != 1:
        raise ValueError(f"{name}: window must be 1-D, got shape {w.shape}")
    if w.shape[0] > n:
        raise ValueError(f"{name}: window is longer than x: {w.shape[0]} and {n}")
    if nperseg is not None and int(nperseg) != w.shape[0]:
        raise ValueError(f"{name}: nperseg is {nperseg}, but the window has {w.shape[0]} elements; leave nperseg out")
    return w, w.shape[0]


def _segments(
    x: Any, y: Any, fs: Any, window: Any, nperseg: int | None, noverlap: int | None, nfft: int | None,
    trend: Any, one_sided: bool, scaling: str, axis: int, mode: str, boundary: str | None, padded: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(frequencies, times, [..., frequency, segment]): spectra of windowed segments; of one signal, or of x* and y."""
    name = {"psd": "csd", "stft": "stft"}[mode]
    if boundary not in EXTENSIONS:
        raise ValueError(f"{name}: argument 'boundary' is {boundary!r}; expected one of {EXTENSIONS}")
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: Unknown scaling: {scaling!r}; expected 'density' or 'spectrum'")
    check_arraylike(name, *((x,) if y is None else (x, y)))
    if isinstance(fs, complex):
        raise TypeError(f"{name}: argument 'fs' must be real, got {fs}")
    signals = [jnp.asarray(s) for s in ((x,) if y is None else (x, y))]
    if len(signals) == 2 and signals[0].ndim != signals[1].ndim:
        raise ValueError(
            f"{name}: x has shape {signals[0].shape} and y {signals[1].shape}; expected as many axes in both"
        )
    dtype = dtypes.to_inexact_dtype(jnp.result_type(*signals))
    signals = [jnp.moveaxis(s.astype(dtype), axis, -1) for s in signals]
    n = max(s.shape[-1] for s in signals)
    signals = [jnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, n - s.shape[-1])]) for s in signals]
    real = jnp.finfo(dtype).dtype
    w, size = _window(name, window, nperseg, n, real)
    length = size if nfft is None else int(nfft)
    if length < size:
        raise ValueError(f"{name}: nfft is {length}, shorter than the segments of {size} elements")
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise ValueError(f"{name}: noverlap is {overlap}; expected fewer than the {size} elements of a segment")
    step = size - overlap
    if boundary is not None:
        signals = [_extended(s, size // 2, boundary) for s in signals]
    if padded:
        extra = (-(signals[0].shape[-1] - size) % step) % size
        signals = [jnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, extra)]) for s in signals]
    if one_sided and jnp.issubdtype(dtype, jnp.complexfloating):
        warn(f"{name}: signals are complex, and so is return_onesided=False")
        one_sided = False
    spectra = [_transformed(s, w, size, step, length, trend, one_sided) for s in signals]
    scale = 1 / jnp.sum(w) ** 2 if scaling == "spectrum" else 1 / (fs * jnp.sum(w * w))
    if mode == "stft":
        result = spectra[0] * jnp.sqrt(scale).astype(spectra[0].dtype)
    else:
        result = jnp.conj(spectra[0]) * spectra[-1] * jnp.asarray(scale, spectra[0].dtype)
        if one_sided:
            # A frequency stands for its negative too, but for zero and the highest one of an even length.
            double = np.full((result.shape[-2], 1), 2.0)
            double[0] = 1
            if length % 2 == 0:
                double[-1] = 1
            result = result * jnp.asarray(double, result.dtype)
        if y is None:
            result = jnp.real(result)
    frequencies = jnp.fft.rfftfreq(length, dtype=real) if one_sided else jnp.fft.fftfreq(length, dtype=real)
    times = (jnp.arange(result.shape[-1], dtype=real) * step + size / 2) / fs
    if boundary is not None:
        times = times - (size / 2) / fs
    if mode == "stft":
        result = jnp.moveaxis(result, -2, axis if axis >= 0 else axis - 1)
        return frequencies * fs, times.astype(real), result
    return frequencies * fs, times.astype(real), result


def _transformed(s: Any, w: Any, size: int, step: int, length: int, trend: Any, one_sided: bool) -> Any:
    """[..., n] -> [..., frequency, segment]."""
    if step == size:
        count = s.shape[-1] // size
        parts = s[..., : count * size].reshape(*s.shape[:-1], count, size)
    else:
        parts = _windows(s, size, step)
    if callable(trend):
        parts = trend(parts)
    elif trend is not False and trend is not None and trend != 0:
        if trend is True or not isinstance(trend, str):
            raise ValueError(f"argument 'detrend' is {trend!r}; expected 'constant', 'linear', False or a function")
        parts = detrend(parts, -1, trend)
    transform = jnp.fft.rfft if one_sided else jnp.fft.fft
    return jnp.swapaxes(transform(parts * w, length), -1, -2)


def _extended(s: Any, n: int, boundary: str) -> Any:
    """n samples more at either end."""
    if n == 0:
        return s
    widths = [(0, 0)] * (s.ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return jnp.pad(s, widths)
    if boundary == "constant":
        return jnp.pad(s, widths, "edge")
    return jnp.pad(s, widths, "reflect", reflect_type=boundary)
