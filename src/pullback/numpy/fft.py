"""Discrete Fourier transforms: `jax.numpy.fft`, over `lax.fft`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.api.eager import remember_all as _remember_all
from pullback.core.dimensions import is_symbolic
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.numpy.fft import PAGES as _PAGES
from pullback.numpy._arguments import (
    arrays,
    as_array,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    make_array,
    promote_dtypes_inexact,
    static_int,
)
from pullback.numpy._creation import from_list, place
from pullback.numpy._parameters import FFT, FFT_OWN
from pullback.numpy._shape import moveaxis, roll
from pullback.numpy._ufuncs import conj
from pullback.util import dtypes
from pullback.util.absent import listed as _listed

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward", None: "forward"}


def _unknown_norm(norm: Any) -> ValueError:
    return ValueError(f"Invalid norm value {norm}: accepted are None, 'backward', 'forward' and 'ortho'")


def _scale(norm: str | None, lengths: Sequence[int], inverse: bool) -> float:
    """What a transform that divides by the number of elements only when inverse (as lax's) is still to be multiplied
    by.
    """
    n = math.prod(lengths)
    if norm is None or norm == "backward":
        return 1.0
    if norm == "ortho":
        return math.sqrt(n) if inverse else 1 / math.sqrt(n)
    if norm == "forward":
        return float(n) if inverse else 1 / n
    raise _unknown_norm(norm)


def _transform(
    name: str, kind: Any, a: Any, s: Any, axes: Any, norm: str | None, default_last: int | None = None
) -> Any:
    """The transform over several axes: the array is cut or filled with zeros to lengths s, its axes
    moved to the end.
    """
    check_arraylike(name, a)
    (a,) = promote_dtypes_inexact(*arrays(name, a))
    real_in = kind == lax.FftType.RFFT
    real_out = kind == lax.FftType.IRFFT
    inverse = kind in (lax.FftType.IFFT, lax.FftType.IRFFT)
    if real_in and dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(f"only real valued inputs supported for {name.removeprefix('fft.')}")
    if a.dtype.itemsize < 4:
        a = convert(a, np.dtype(np.float32))
    if not real_in:
        a = convert(a, dtypes.to_complex_dtype(a.dtype))
    if axes is None:
        count = a.ndim if s is None else len(s)
        axes = tuple(range(a.ndim - count, a.ndim))
        if count > a.ndim:
            raise ValueError(f"{name}: {count} lengths for an array of rank {a.ndim}")
    axes = tuple(canonical_axis(name, k, a.ndim, "axes") for k in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: argument 'axes' is {axes}; each axis can be transformed once")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: {len(s)} lengths s do not go with {len(axes)} axes")
    _scale(norm, (), inverse)  # says what is wrong
    if not axes:
        return a
    if s is None:
        lengths = [a.shape[k] for k in axes]
        if real_out:
            lengths[-1] = 2 * (a.shape[axes[-1]] - 1) if default_last is None else default_last
    else:
        lengths = [static_int(n, f"{name}: argument 's'") for n in s]
    if s is not None and any(n < 1 for n in lengths):
        raise ValueError(f"Shape should be positive, got {tuple(lengths)} ({name})")
    if any(n < 1 for n in lengths):  # of an empty array, or of the one coefficient that irfft takes for none
        return _empty(a, axes, lengths, real_in, real_out)
    factor = _scale(norm, lengths, inverse)
    wanted = list(lengths)
    if real_out:
        wanted[-1] = lengths[-1] // 2 + 1
    a = _fit(a, axes, wanted)
    order = [k for k in range(a.ndim) if k not in axes] + list(axes)
    moved = order != list(range(a.ndim))
    x = lax.transpose(a, tuple(order)) if moved else a
    # lax transforms up to three axes at once; earlier ones come after (before, for real results) as complex transforms.
    more = len(axes) - 3
    if more > 0:
        x = _many(x, kind, lengths, more)
    else:
        x = lax.fft(x, kind, tuple(lengths))
    if moved:
        x = lax.transpose(x, tuple(int(k) for k in np.argsort(order)))
    return x if factor == 1.0 else lax.mul(x, const(x, factor))


def _empty(a: Any, axes: Sequence[int], lengths: Sequence[int], real_in: bool, real_out: bool) -> Any:
    shape = list(a.shape)
    for axis, n in zip(axes, lengths):
        shape[axis] = max(n, 0)
    if real_in and lengths[-1] > 0:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    complex_ = dtypes.to_complex_dtype(a.dtype)
    dtype = np.zeros((), complex_).real.dtype if real_out else complex_
    if real_in and lengths[-1] < 1:
        raise ValueError(f"rfft: axis {axes[-1]} of an array of shape {a.shape} has length 0, which has no transform")
    return lax.full(tuple(shape), 0, dtype)


def _many(x: Any, kind: Any, lengths: list[int], more: int) -> Any:
    """A transform of more than three trailing axes."""
    rank, count = x.ndim, len(lengths)
    simple = {lax.FftType.RFFT: lax.FftType.FFT, lax.FftType.IRFFT: lax.FftType.IFFT}.get(kind, kind)
    first = list(range(rank - count, rank - count + more))

    def leading(x: Any) -> Any:
        for axis in first:
            moved = moveaxis(x, axis, -1)
            x = moveaxis(lax.fft(moved, simple, (moved.shape[-1],)), -1, axis)
        return x

    if kind == lax.FftType.IRFFT:
        return lax.fft(leading(x), kind, tuple(lengths[more:]))
    return leading(lax.fft(x, kind, tuple(lengths[more:])))


def _fit(a: Any, axes: Sequence[int], lengths: Sequence[int]) -> Any:
    """The array cut or filled up with zeros at the ends of axes."""
    config = [(0, 0, 0)] * a.ndim
    for axis, n in zip(axes, lengths):
        config[axis] = (0, n - a.shape[axis], 0)  # a negative width cuts
    return lax.pad(a, const(a, 0), config) if any(c != (0, 0, 0) for c in config) else a


def _one(name: str, kind: Any, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    if isinstance(axis, (tuple, list)) or (hasattr(axis, "ndim") and axis.ndim):
        raise ValueError(f"{name}: argument 'axis' is {axis!r}; expected one axis, and several are for {name}n")
    # No axis means all of them, as in JAX, or the last where there is a length.
    axes = None if axis is None and name not in ("fft.hfft", "fft.ihfft") else [axis]
    return _transform(name, kind, a, None if n is None else [n], axes, norm)


def _two(name: str, kind: Any, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if len(axes) != 2:
        raise ValueError(f"{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Fourier transform along an axis, which is first cut or filled up with zeros to length n."""
    return _one("fft.fft", lax.FftType.FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse Fourier transform along an axis."""
    return _one("fft.ifft", lax.FftType.IFFT, a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Fourier transform of real numbers along an axis: the n // 2 + 1 terms of frequencies that are not negative."""
    return _one("fft.rfft", lax.FftType.RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse of `rfft`: n real numbers, by default 2 (m - 1) for m terms."""
    return _one("fft.irfft", lax.FftType.IRFFT, a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Fourier transform of n numbers of which the second half is the conjugate of the first: real."""
    check_arraylike("fft.hfft", a)
    return _one("fft.hfft", lax.FftType.IRFFT, conj(a), n, axis, _opposite(norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse of `hfft`."""
    a = from_list(a)
    check_arraylike("fft.ihfft", a)
    return conj(_one("fft.ihfft", lax.FftType.RFFT, a, n, axis, _opposite(norm)))


def _opposite(norm: str | None) -> str | None:
    if norm not in _OPPOSITE:
        raise _unknown_norm(norm)
    return _OPPOSITE[norm]


def fft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """Fourier transform along two axes."""
    return _two("fft.fft2", lax.FftType.FFT, a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """Inverse Fourier transform along two axes."""
    return _two("fft.ifft2", lax.FftType.IFFT, a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """Fourier transform of real numbers along two axes; the last has the frequencies that are not negative."""
    return _two("fft.rfft2", lax.FftType.RFFT, a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """Inverse of `rfft2`."""
    return _two("fft.irfft2", lax.FftType.IRFFT, a, s, axes, norm)


def fftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """Fourier transform along axes, by default all (or as many of the last as there are lengths s)."""
    return _transform("fft.fftn", lax.FftType.FFT, a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """Inverse Fourier transform along axes."""
    return _transform("fft.ifftn", lax.FftType.IFFT, a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """Fourier transform of real numbers along axes; the last has the frequencies that are not negative."""
    return _transform("fft.rfftn", lax.FftType.RFFT, a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """Inverse of `rfftn`."""
    return _transform("fft.irfftn", lax.FftType.IRFFT, a, s, axes, norm)


# ---- frequencies


def _frequencies(name: str, numbers: Callable[[float], np.ndarray], n: Any, d: Any, dtype: Any, device: Any) -> Any:
    """numbers(n) / (n d); the numbers are static."""
    if isinstance(n, (list, tuple)) or np.ndim(n):
        raise ValueError(f"fft.{name}: argument 'n' is {n}; expected one integer")
    if isinstance(d, (list, tuple)) or np.ndim(d):
        raise ValueError(f"fft.{name}: argument 'd' is {d}; expected one number")
    n = concrete_or_error(
        n, f"fft.{name}: argument 'n' sets the length of the result, which has to be known while tracing"
    )
    if not is_symbolic(n) and np.asarray(n).dtype.kind not in "biuf":
        raise TypeError(f"fft.{name}: argument 'n' is {n!r}; expected a number")
    if isinstance(d, complex):
        raise TypeError(f"fft.{name}: argument 'd' is {d!r}; expected a real number")
    if isinstance(d, str):
        raise ValueError(f"fft.{name}: argument 'd' is {d!r}; expected a number")
    n = n if is_symbolic(n) else np.asarray(n).item()
    target = np.dtype(
        dtypes.canonicalize_dtype(np.float64) if dtype is None else dtypes.check_user_dtype_supported(dtype)
    )
    if is_symbolic(n):
        values: Any = _symbolic_numbers(n, numbers is _both_signs, target)
        length = lax.mul(convert(d, target), convert(as_array(n), target))
    else:
        values = make_array(numbers(n), target)
        # Of numbers the product is rounded once: fftfreq(n, 1 / n) are integers.
        whole = isinstance(d, (int, float))
        length = convert(d * n, target) if whole else lax.mul(convert(d, target), const(values, n))
    return place(lax.div(values, lax.broadcast_in_dim(length, values.shape, ())), device)


def _symbolic_numbers(n: Any, both_signs: bool, dtype: np.dtype) -> Any:
    numbers = lax.iota(dtype, n if both_signs else n // 2 + 1)
    if not both_signs:
        return numbers
    count, half = (lax.broadcast_in_dim(convert(as_array(k), dtype), (n,), ()) for k in (n, (n + 1) // 2))
    return lax.select(lax.lt(numbers, half), numbers, lax.sub(numbers, count))


def _both_signs(n: float) -> np.ndarray:
    """0, 1, ..., -2, -1; of a number that is not whole, as many as there are numbers below it."""
    count = max(math.ceil(n), 0)
    rising = count // 2 + (n % 2 != 0)
    numbers = np.arange(count)
    return np.where(numbers < rising, numbers, numbers - n)


def _one_sign(n: float) -> np.ndarray:
    return np.arange(max(int(n // 2 + 1 if n % 2 == 0 else (n + 1) // 2), 0))


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of the terms of `fft` for n samples at distances d: 0, 1, ..., -2, -1 over n d.

    Raises ValueError unless n and d are single values, ConcretizationTypeError for a traced n.
    """
    return _frequencies("fftfreq", _both_signs, n, d, dtype, device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of the terms of `rfft` for n samples at distances d: 0, 1, ..., n // 2 over n d; errors as
    `fftfreq`.
    """
    return _frequencies("rfftfreq", _one_sign, n, d, dtype, device)


def _axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    try:
        if isinstance(axes, (tuple, list)):  # an axis that comes twice is shifted twice
            return tuple(canonical_axis(name, axis, ndim) for axis in axes)
        return canonical_axes(name, axes, ndim)
    except ValueError as error:
        raise IndexError(str(error)) from None


def fftshift(x: Any, axes: Any = None) -> Any:
    """x with frequency 0 moved to the middle of axes."""
    (x,) = arrays("fft.fftshift", x)
    chosen = _axes("fft.fftshift", axes, x.ndim)
    return roll(x, tuple(x.shape[k] // 2 for k in chosen), chosen) if chosen else x


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Inverse of `fftshift`."""
    (x,) = arrays("fft.ifftshift", x)
    chosen = _axes("fft.ifftshift", axes, x.ndim)
    return roll(x, tuple(-(x.shape[k] // 2) for k in chosen), chosen) if chosen else x


_remember_all(globals(), FFT, FFT_OWN, skip=("fftfreq", "rfftfreq"), at_once=True)
_explain_all(globals(), FFT, FFT_OWN)
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
