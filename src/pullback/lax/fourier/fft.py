"""Discrete Fourier transforms over the last dimensions: by passes of our own, very long ones by NumPy's."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import index as size_of
from pullback.core.lowering import Nest
from pullback.lax.fourier.lower import complex_passes, generates, real_axis, real_axis_back
from pullback.lax.records.families import *

__all__ = ["FftType", "fft", "fft_p"]

Array = Any


class FftType(enum.IntEnum):
    """The transforms: complex, its inverse, of real numbers (half of the spectrum), and back to real numbers."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    @classmethod
    def _missing_(cls, value):
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


def _fft_shape(aval, *, fft_type, fft_lengths):
    k = len(fft_lengths)
    if k == 0:
        return aval
    if aval.ndim < k:
        raise ValueError(
            f"fft: fft_lengths {tuple(fft_lengths)} name {k} dimensions, but the operand has shape {aval.shape}"
        )
    kind = dtypes.kind_of(aval.dtype)
    real = {"complex64": "float32", "complex128": "float64"}
    if fft_type == FftType.RFFT:
        if aval.dtype.name not in ("float32", "float64"):
            raise TypeError(f"fft: RFFT takes float32 and float64, got {aval.dtype.name}")
        if aval.shape[-k:] != tuple(fft_lengths):
            raise ValueError(
                f"fft: with RFFT, the operand's shape must end in fft_lengths {tuple(fft_lengths)}, got {aval.shape}"
            )
        return ShapedArray(
            (*aval.shape[:-1], fft_lengths[-1] // 2 + 1),
            np.dtype("complex64" if aval.dtype == np.float32 else "complex128"),
        )
    if kind != "c":
        raise TypeError(f"fft: {FftType(fft_type).name} takes complex operands, got {aval.dtype.name}")
    if fft_type == FftType.IRFFT:
        half = fft_lengths[-1] // 2 + 1
        if aval.shape[-k:-1] != tuple(fft_lengths[:-1]) or aval.shape[-1] != half:
            raise ValueError(
                f"fft: with IRFFT and fft_lengths {tuple(fft_lengths)}, the shape of the operand must end in "
                f"{(*fft_lengths[:-1], half)}, got {aval.shape}"
            )
        return ShapedArray((*aval.shape[:-1], fft_lengths[-1]), np.dtype(real[aval.dtype.name]))
    if aval.shape[-k:] != tuple(fft_lengths):
        raise ValueError(
            f"fft: with {FftType(fft_type).name}, the shape of the operand must end in fft_lengths "
            f"{tuple(fft_lengths)}, got {aval.shape}"
        )
    return aval


def _fft_reference(x, fft_type, fft_lengths):
    if not fft_lengths:
        return x
    out = _fft_shape(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
    if x.size == 0 or out.size == 0:
        return np.zeros(out.shape, out.dtype)
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    function: Any = {
        FftType.FFT: np.fft.fftn,
        FftType.IFFT: np.fft.ifftn,
        FftType.RFFT: np.fft.rfftn,
        FftType.IRFFT: np.fft.irfftn,
    }[FftType(fft_type)]
    return function(x, s=tuple(fft_lengths), axes=axes).astype(out.dtype, copy=False)


def _fft_jvp(primals, tangents, **params):
    out = fft_p.bind(*primals, **params)
    return out, tangent_zero(out) if is_zero(tangents[0]) else fft_p.bind(*tangents, **params)


def _fft_transpose(out_bar, x, *, fft_type, fft_lengths):
    """The matrices of FFT and IFFT are symmetric. Those to and from half spectra follow from x real and y_-k =
    conj(y_k).
    """
    if is_zero(out_bar):
        return [tangent_zero(x)]
    if not fft_lengths or fft_type in (FftType.FFT, FftType.IFFT):
        return [fft_p.bind(out_bar, fft_type=fft_type, fft_lengths=fft_lengths)]
    n, ndim = fft_lengths[-1], out_bar.ndim
    if fft_type == FftType.RFFT:
        config = [(0, 0, 0)] * (ndim - 1) + [(0, n - out_bar.shape[-1], 0)]
        full = lax.pad(out_bar, constant(out_bar, 0), config)
        return [lax.real(fft_p.bind(full, fft_type=FftType.FFT, fft_lengths=fft_lengths))]
    spectrum = lax.conj(fft_p.bind(out_bar, fft_type=FftType.RFFT, fft_lengths=fft_lengths))
    k = lax.broadcasted_iota(np.int32, spectrum.shape, ndim - 1)
    once = lax.eq(k, np.int32(0)) if n % 2 else lax.bitwise_or(lax.eq(k, np.int32(0)), lax.eq(k, np.int32(n // 2)))
    scale = 1 / math.prod(fft_lengths)
    weight = lax.select_n_p.bind(once, constant(spectrum, 2 * scale), constant(spectrum, scale))
    return [lax.mul(spectrum, weight)]


def _fft_batch(args, dims, **params):
    return fft_p.bind(move_batch_axis(args[0], dims[0], 0), **params), 0


def _fft_nest(ctx):
    fft_type, lengths = FftType(ctx.params["fft_type"]), tuple(ctx.params["fft_lengths"])
    source, result = ctx.operand(0), ctx.result()
    if result.size == 0:
        return
    if source.size == 0:
        ctx.fill(result, 0)
        return
    if not lengths:
        ctx.copy(result, source)
        return
    real = fft_type in (FftType.RFFT, FftType.IRFFT)
    if not generates(lengths, real):
        ctx.by_reference()
        return
    ndim = len(result.shape)
    axes = list(range(ndim - 1, ndim - 1 - len(lengths), -1))  # the last first
    if fft_type == FftType.RFFT:
        first = result if len(axes) == 1 else ctx.temporary(result.dtype, result.shape, "spectrum")
        real_axis(ctx, source, first)
        if len(axes) > 1:
            complex_passes(ctx, first, result, axes[1:], -1, 1)
    elif fft_type == FftType.IRFFT:
        if len(axes) > 1:
            last = ctx.temporary(source.dtype, source.shape, "spectrum")
            complex_passes(ctx, source, last, axes[:0:-1], 1, 1)
            source = last
        real_axis_back(ctx, source, result, math.prod(lengths))
    else:
        forward = fft_type == FftType.FFT
        complex_passes(ctx, source, result, axes, -1 if forward else 1, 1 if forward else math.prod(lengths))


def _fft_cases(rng):
    real = rng.normal(size=(2, 3, 8))
    complex_ = real + 1j * rng.normal(size=real.shape)
    return [
        Case((complex_,), {"fft_type": FftType.FFT, "fft_lengths": (8,)}),
        Case((complex_,), {"fft_type": FftType.IFFT, "fft_lengths": (3, 8)}),
        Case((real,), {"fft_type": FftType.RFFT, "fft_lengths": (3, 8)}),
        Case((real[..., :7],), {"fft_type": FftType.RFFT, "fft_lengths": (7,)}),
        Case((complex_[..., :5],), {"fft_type": FftType.IRFFT, "fft_lengths": (3, 8)}),
        Case((complex_[..., :5],), {"fft_type": FftType.IRFFT, "fft_lengths": (9,)}),
    ]


fft_p = Primitive(
    "fft",
    doc="Discrete Fourier transform.",
    abstract_eval=_fft_shape,
    reference=_fft_reference,
    jvp=_fft_jvp,
    transpose=_fft_transpose,
    batch=_fft_batch,
    lower=Nest(_fft_nest),
    traits={"linear", "stacked", "quicker compiled"},
    samples=Samples(ulp=64, cases=_fft_cases),
)


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The transform of the last len(fft_lengths) dimensions, of the given sizes (of the full spectrum for RFFT and
    IRFFT).

    Real operands of FFT and IFFT become complex. Raises ValueError for an unknown type or shapes that don't fit,
    TypeError for dtypes that the transform does not take.
    """
    x = as_array(x, "fft")
    if not isinstance(fft_type, (str, FftType)):
        raise TypeError(f"fft: argument 'fft_type' must be an FftType or its name, got {fft_type!r}")
    fft_type = FftType(fft_type)  # type: ignore[arg-type]
    lengths = tuple([size_of(n) for n in fft_lengths])
    if fft_type == FftType.RFFT:
        if dtypes.kind_of(x.dtype) == "c":
            raise ValueError("only real valued inputs supported for rfft")
        if dtypes.kind_of(x.dtype) == "f" and x.dtype.name not in ("float32", "float64"):
            raise ValueError(f"fft: RFFT takes float32 and float64, got {x.dtype.name}")
        x = lax.convert(x, x.dtype if x.dtype.name in ("float32", "float64") else dtypes.canonicalize_dtype(np.float64))
    elif dtypes.kind_of(x.dtype) != "c":
        x = lax.convert(x, dtypes.to_complex_dtype(x.dtype))
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=lengths)
