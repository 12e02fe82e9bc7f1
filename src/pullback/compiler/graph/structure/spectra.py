"""Fourier transforms of real arrays have two equal halves, of which one is computed.

    fft(complex(x))                       =>    concatenate(rfft(x), conj(rev(rfft(x)[1:])))
    fft(complex(x))[:n // 2 + 1]          =>    rfft(x): a slice of the former
    ifft(complex(x))                      =>    conj of the former, by the number of elements
    real(ifft(fft(complex(x)) * h))       =>    irfft(rfft(x) * half of h), where h has such halves itself

A spectrum z has such halves if z[n - k] = conj(z[k]), as products, sums, quotients and conjugates of such have, and
known arrays that are found to. Of what has them but at 0 and in the middle the real part of the transform back needs no
more, since only the real parts of these two elements reach it.

Measured: the first half of the spectra of 100 rows of 1024 took 84 us, now 27.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import LOOKED_AT, Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.lax.fourier.fft import FftType

MAX_DEPTH = 16  # operations between the transforms
_PAIRS = ("mul", "add", "sub", "div")


def _of_real(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A transform of a real array."""
    lengths, kind = tuple(eqn.params["fft_lengths"]), FftType(eqn.params["fft_type"])
    x = _real_part(r, eqn.invars[0])
    if kind not in (FftType.FFT, FftType.IFFT) or x is None or not lengths or 0 in x.aval.shape:
        return None
    n, last = lengths[-1], x.aval.ndim - 1
    if n < 3:
        return None
    half = r.emit("fft", x, fft_type=FftType.RFFT, fft_lengths=lengths)
    if kind is FftType.IFFT:
        half = r.emit("mul", _conj(r, half), r.full(half.aval, 1 / math.prod(lengths)))
    full = _whole(r, half, lengths, last)
    r.notes.setdefault("half spectra", {})[full] = half, lengths
    return full


def _real_part(r: Rewriter, z: Any) -> Any:
    """The real array that a complex one is made of; None for others."""
    made = r.definition(z, "convert_element_type", "complex")
    if made is None:
        return None
    x = made.invars[0]
    if made.primitive.name == "complex":
        return x if r.is_scalar(made.invars[1], 0) and x.aval.shape == z.aval.shape else None
    wanted = {"complex64": "float32", "complex128": "float64"}.get(z.aval.dtype.name)
    if x.aval.dtype.kind not in "fiub" or wanted is None:
        return None
    return r.convert(x, np.dtype(wanted))


def _whole(r: Rewriter, half: Any, lengths: tuple[int, ...], last: int) -> Any:
    """The spectrum of which the first half along the last axis is given."""
    rest = _cut(r, half, last, 1, (lengths[-1] + 1) // 2)
    for axis in range(last - len(lengths) + 1, last):  # the frequency -k of each other axis: 0 stays where it is
        if half.aval.shape[axis] > 2:
            turned = r.emit("rev", _cut(r, rest, axis, 1, rest.aval.shape[axis]), dimensions=(axis,))
            rest = r.emit("concatenate", _cut(r, rest, axis, 0, 1), turned, dimension=axis)
    rest = _conj(r, r.emit("rev", rest, dimensions=(last,)))
    return r.emit("concatenate", half, rest, dimension=last)


def _conj(r: Rewriter, z: Any) -> Any:
    """The conjugate, where an imaginary part of 0 stays 0: a transform of zeros has no -0."""
    im = r.emit("imag", z)
    return r.emit("complex", r.emit("real", z), r.emit("sub", r.full(im.aval, 0), im))


def _cut(r: Rewriter, x: Any, axis: int, start: int, stop: int) -> Any:
    low, high = [0] * x.aval.ndim, list(x.aval.shape)
    low[axis], high[axis] = start, stop
    return r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None)


def _real(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The real part of a transform back of a spectrum that is known by its half."""
    back = r.definition(eqn.invars[0], "fft")
    if back is None or FftType(back.params["fft_type"]) is not FftType.IFFT:
        return None
    lengths = tuple(back.params["fft_lengths"])
    if not r.notes.get("half spectra") or not lengths:
        return None
    half = _half(r, back.invars[0], lengths, MAX_DEPTH)
    return None if half is None else r.emit("fft", half, fft_type=FftType.IRFFT, fft_lengths=lengths)


def _half(r: Rewriter, z: Any, lengths: tuple[int, ...], deep: int) -> Any:
    """The first half of a spectrum whose other half follows from it; None if it is not known to."""
    known = r.notes["half spectra"].get(z)
    if known is not None:
        return known[0] if known[1] == lengths else None
    count = lengths[-1] // 2 + 1
    number = r.scalar(z)
    if number is not None:
        if number.imag != 0 or not z.aval.shape:
            return z if number.imag == 0 else None
        return r.full(z.aval.update(shape=(*z.aval.shape[:-1], count)), number)
    if isinstance(z, Literal) or not deep or not z.aval.ndim:
        return None
    value = r.consts.get(z)
    if value is not None:
        return _half_of_known(r, z, np.asarray(value), lengths) if z.aval.size <= LOOKED_AT else None
    eqn = r.definition(z)
    if eqn is None:
        return None
    name = eqn.primitive.name
    if name in _PAIRS or name == "neg":
        if any(x.aval.shape not in ((), z.aval.shape) for x in eqn.invars):
            return None
        halves = [_half(r, x, lengths, deep - 1) for x in eqn.invars]
        return None if any(h is None for h in halves) else r.emit(name, *halves, **eqn.params)
    if name == "conj" and eqn.invars[0].aval.dtype == z.aval.dtype:
        half = _half(r, eqn.invars[0], lengths, deep - 1)
        return None if half is None else r.emit(name, half, **eqn.params)
    if name == "convert_element_type" and eqn.invars[0].aval.dtype.kind == "f":
        inner = eqn.invars[0]
        value = None if isinstance(inner, Literal) else r.consts.get(inner)
        if value is None or z.aval.size > LOOKED_AT:
            return None
        return _half_of_known(r, z, np.asarray(value).astype(z.aval.dtype), lengths)
    if name == "broadcast_in_dim":
        inner, dims, ndim = eqn.invars[0], eqn.params["broadcast_dimensions"], z.aval.ndim
        own = tuple(
            lengths[d - ndim + len(lengths)] for d in dims if d >= ndim - len(lengths)
        )  # it repeats along others
        if not dims or dims[-1] != ndim - 1 or inner.aval.shape[-len(own) :] != own:
            return None
        half = _half(r, inner, own, deep - 1)
        return None if half is None else r.broadcast(half, (*z.aval.shape[:-1], count), dims)
    return None


def _half_of_known(r: Rewriter, z: Any, value: np.ndarray, lengths: tuple[int, ...]) -> Any:
    n, count = lengths[-1], lengths[-1] // 2 + 1
    if value.shape[-len(lengths) :] != lengths:
        return None
    inner = np.arange(1, (n + 1) // 2)
    turned = value[..., n - inner]
    for axis, m in enumerate(lengths[:-1], value.ndim - len(lengths)):
        turned = turned.take(-np.arange(m) % m, axis)
    if not np.array_equal(value[..., inner], turned.conj()):
        return None
    return r.const(np.ascontiguousarray(value[..., :count]), z.aval.update(shape=(*z.aval.shape[:-1], count)))


SPECTRUM_RULES: dict[str, tuple[Rule, ...]] = {"fft": (_of_real,), "real": (_real,)}
