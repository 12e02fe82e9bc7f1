"""Convolution and correlation of arrays of any rank, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.dimensions import is_symbolic
from pullback.numpy._arguments import check_arraylike, promote_dtypes_inexact

MODES = ("full", "same", "valid")
PADDING = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
# Operations of a transform, per element and power of two, in terms of the multiply-additions of a direct convolution,
# which run in lanes: from timings of 1-D and 2-D convolutions of 1e3 to 1e6 elements.
TRANSFORM = 12.0


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """Convolution of two arrays of one rank: out[n] = sum over m of in1[m] in2[n - m].

    in1: [n...], in2: [m...]; the result has n + m - 1 elements along each axis for mode 'full', as many as `in1` for
    'same' (the middle), and n - m + 1 for 'valid'. `method` is 'direct', 'fft', or 'auto', which takes what needs less
    work. Raises ValueError for another mode or method, different ranks, empty arrays, and 'valid' where neither array
    is the larger one along all axes.
    """
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"convolve: argument 'method' is {method!r}; expected 'auto', 'fft' or 'direct'")
    x, y = _operands("convolve", in1, in2, mode)
    x, y = _larger_first(x, y, mode, "convolve")
    if method == "fft" or (method == "auto" and _transform_is_cheaper(x.shape, y.shape, mode)):
        return _by_transform(x, y, mode, tuple(range(x.ndim)))
    return _direct(x, jnp.flip(y), mode, precision)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """Cross-correlation: convolution of `in1` with the reversed conjugate of `in2`; arguments and errors as there."""
    x, y = _operands("correlate", in1, in2, mode)
    if mode == "valid" and _is_smaller(x.shape, y.shape):
        # SciPy's order: the lags count along the first array, wherever the larger one stands.
        return jnp.flip(jnp.conj(convolve(y, jnp.flip(jnp.conj(x)), mode, method, precision)))
    return convolve(x, jnp.flip(jnp.conj(y)), mode, method, precision)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None) -> Any:
    """Convolution by Fourier transforms along `axes` (all by default); along others the arrays broadcast.

    Raises ValueError as `convolve` does, and where the arrays do not broadcast along the other axes.
    """
    x, y = _operands("fftconvolve", in1, in2, mode)
    chosen = tuple(range(x.ndim)) if axes is None else tuple(np.atleast_1d(axes).tolist())
    if any(not -x.ndim <= a < x.ndim for a in chosen) or len({a % x.ndim for a in chosen}) != len(chosen):
        raise ValueError(f"fftconvolve: argument 'axes' is {axes}; expected different axes of arrays of rank {x.ndim}")
    chosen = tuple(a % x.ndim for a in chosen)
    for d in range(x.ndim):
        if d not in chosen and x.shape[d] != y.shape[d] and 1 not in (x.shape[d], y.shape[d]):
            raise ValueError(f"fftconvolve: shapes {x.shape} and {y.shape} do not broadcast along axis {d}")
    if mode == "valid":
        parts = tuple(tuple(s[d] for d in chosen) for s in (x.shape, y.shape))
        if _is_smaller(*parts):
            x, y = y, x
        elif not _is_smaller(parts[1], parts[0]):
            raise ValueError(
                f"fftconvolve: mode 'valid' needs one array to be the larger one, got {x.shape}, {y.shape}"
            )
    return _by_transform(x, y, mode, chosen)


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """Convolution of matrices; outside of `in1` there is `fillvalue` ('fill'), or it repeats ('wrap') or mirrors
    ('symm').

    Raises ValueError for other ranks, modes and boundaries.
    """
    x, y = _matrices("convolve2d", in1, in2, mode, boundary)
    return _of_matrices(x, y, mode, boundary, fillvalue, precision, [(m - 1) // 2 for m in y.shape])


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """Cross-correlation of matrices: `convolve2d` with the reversed conjugate of `in2`; arguments and errors as there.

    The middle that mode 'same' gives starts one later for a kernel of even length, as in SciPy.
    """
    x, y = _matrices("correlate2d", in1, in2, mode, boundary)
    if mode == "valid" and _is_smaller(x.shape, y.shape):  # then, as in SciPy, the conjugate of `in1` is what moves
        return jnp.flip(convolve2d(y, jnp.flip(jnp.conj(x)), mode, boundary, fillvalue, precision))
    return _of_matrices(x, jnp.flip(jnp.conj(y)), mode, boundary, fillvalue, precision, [m // 2 for m in y.shape])


def _of_matrices(
    x: Any, y: Any, mode: str, boundary: str, fillvalue: float, precision: Any, starts: Sequence[int]
) -> Any:
    """Convolution whose 'same' part starts at `starts` of the full one."""
    if mode == "valid":  # nothing outside is looked at
        x, y = _larger_first(x, y, mode, "convolve2d")
        return _direct(x, jnp.flip(y), "valid", precision)
    widths = [(m - 1, m - 1) if mode == "full" else (m - 1 - start, start) for m, start in zip(y.shape, starts)]
    values = {"constant_values": fillvalue} if boundary == "fill" else {}
    return _direct(jnp.pad(x, widths, PADDING[boundary], **values), jnp.flip(y), "valid", precision)


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    """Both as inexact arrays of one dtype."""
    if mode not in MODES:
        raise ValueError(f"{name}: argument 'mode' is {mode!r}; expected 'full', 'same' or 'valid'")
    check_arraylike(name, in1, in2)
    x, y = jnp.asarray(in1), jnp.asarray(in2)
    if x.ndim != y.ndim:
        raise ValueError(f"{name}: in1 has shape {x.shape} and in2 {y.shape}; expected as many axes in both")
    if 0 in (x.size, y.size) and name != "fftconvolve":
        raise ValueError(f"{name}: in1 has shape {x.shape} and in2 {y.shape}; zero-size arrays cannot be convolved")
    x, y = promote_dtypes_inexact(x, y)
    return x, y


def _matrices(name: str, in1: Any, in2: Any, mode: str, boundary: str) -> tuple[Any, Any]:
    if boundary not in PADDING:
        raise ValueError(f"{name}: argument 'boundary' is {boundary!r}; expected 'fill', 'wrap' or 'symm'")
    check_arraylike(name, in1, in2)
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name} takes two matrices, got shapes {jnp.shape(in1)} and {jnp.shape(in2)}")
    return _operands(name, in1, in2, mode)


def _is_smaller(shape: Sequence[int], other: Sequence[int]) -> bool:
    return all(n <= m for n, m in zip(shape, other))


def _larger_first(x: Any, y: Any, mode: str, name: str) -> tuple[Any, Any]:
    """For 'valid' the kernel must fit into the other array; convolution does not care which is which."""
    if mode != "valid" or _is_smaller(y.shape, x.shape):
        return x, y
    if _is_smaller(x.shape, y.shape):
        return y, x
    raise ValueError(
        f"{name}: in1 has shape {x.shape} and in2 {y.shape}; mode 'valid' needs one that fits into the other along "
        "all axes"
    )


def _transform_is_cheaper(n: Sequence[int], m: Sequence[int], mode: str) -> bool:
    full = [a + b - 1 for a, b in zip(n, m)]
    out = {"full": full, "same": n, "valid": [a - b + 1 for a, b in zip(n, m)]}[mode]
    size = math.prod(full)
    return math.prod(out) * math.prod(m) > TRANSFORM * size * math.log2(max(size, 2))


def _direct(x: Any, reversed_kernel: Any, mode: str, precision: Any) -> Any:
    """x correlated with a kernel, by the convolution primitive."""
    if x.ndim == 0:
        return x * reversed_kernel
    padding = []
    for m in reversed_kernel.shape:
        before = {"full": m - 1, "same": m - 1 - (m - 1) // 2, "valid": 0}[mode]
        padding.append((before, {"full": m - 1, "same": m - 1 - before, "valid": 0}[mode]))
    out = lax.conv_general_dilated(
        x[None, None], reversed_kernel[None, None], (1,) * x.ndim, padding, precision=precision
    )
    return out[0, 0]


def _by_transform(x: Any, y: Any, mode: str, axes: tuple[int, ...]) -> Any:
    """The product of the transforms, at a length that has small factors, cut to what is asked for."""
    if not axes or x.ndim == 0:
        return x * y
    full = [x.shape[d] + y.shape[d] - 1 for d in axes]
    padded = [n if is_symbolic(n) else _good_length(max(n, 1)) for n in full]
    if jnp.iscomplexobj(x):
        out = jnp.fft.ifftn(jnp.fft.fftn(x, padded, axes) * jnp.fft.fftn(y, padded, axes), axes=axes)
    else:
        out = jnp.fft.irfftn(jnp.fft.rfftn(x, padded, axes) * jnp.fft.rfftn(y, padded, axes), padded, axes)
    starts, stops = [0] * out.ndim, list(out.shape)
    for d, n in zip(axes, full):
        size = {"full": n, "same": x.shape[d], "valid": x.shape[d] - y.shape[d] + 1}[mode]
        starts[d] = (n - size) // 2
        stops[d] = starts[d] + size
    return lax.slice(out, starts, stops).astype(x.dtype)


def _good_length(n: int) -> int:
    """The least number from n on whose only prime factors are 2, 3 and 5."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1
