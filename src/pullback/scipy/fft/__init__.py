"""Cosine transforms of type 2, as SciPy has them, by Fourier transforms of the same length (Makhoul, 1980)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest as _zip_longest
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.fft import PAGES as _PAGES
from pullback.numpy._arguments import check_arraylike, is_integer, static_int
from pullback.scipy import _parameters
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.errors import ArgumentError
from pullback.util.promoting import promoting_freely

__all__ = ["dct", "dctn", "idct", "idctn"]


@promoting_freely
def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """y[k] = 2 sum over j of x[j] cos(pi k (2j + 1) / (2n)) along an axis, of x cut or padded to n elements.

    x: f[...] or c[...]; norm 'ortho' makes the transform orthogonal. NotImplementedError for other types, ValueError
    for other norms and for n < 1.
    """
    x, n, axis = _operand("dct", x, type, n, axis, norm)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return jnp.add(*(unit * dct(part, type, n, axis, norm) for unit, part in ((1, x.real), (1j, x.imag))))
    x = jnp.moveaxis(x, axis, -1)
    folded = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1)
    turned = jnp.fft.fft(folded) * _turns(n, x.dtype, -1)
    out = 2 * turned.real
    if norm == "ortho":
        out = out * _orthogonal(n, x.dtype)
    return jnp.moveaxis(out, -1, axis)


@promoting_freely
def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `dct`; arguments and errors as there."""
    x, n, axis = _operand("idct", x, type, n, axis, norm)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return jnp.add(*(unit * idct(part, type, n, axis, norm) for unit, part in ((1, x.real), (1j, x.imag))))
    x = jnp.moveaxis(x, axis, -1)
    x = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    x = x / _orthogonal(n, x.dtype) / 2 if norm == "ortho" else x / 2
    other = jnp.concatenate([jnp.zeros_like(x[..., :1]), jnp.flip(x[..., 1:], -1)], -1)
    turns = _turns(n, x.dtype, 1)
    turned = lax.complex(x.astype(turns.real.dtype), -other.astype(turns.real.dtype)) * turns
    folded = jnp.fft.ifft(turned).real.astype(x.dtype)
    half = (n + 1) // 2
    even, odd = folded[..., :half], jnp.flip(folded[..., half:], -1)
    out = jnp.zeros_like(x).at[..., ::2].set(even).at[..., 1::2].set(odd)
    return jnp.moveaxis(out, -1, axis)


@promoting_freely
def dctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """`dct` along several axes (all by default), of x cut or padded to the sizes s.

    The sizes go with the axes in order; axes beyond them keep their length, sizes beyond the axes are left out.
    """
    return _along(dct, x, type, s, axes, norm)


@promoting_freely
def idctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The inverse of `dctn`."""
    return _along(idct, x, type, s, axes, norm)


def _along(transform: Any, x: Any, type: int, s: Any, axes: Any, norm: Any) -> Any:
    name = f"{transform.__name__}n"
    check_arraylike(name, x)
    x = jnp.asarray(x)
    axes = (axes,) if is_integer(axes) else axes
    s = (s,) if is_integer(s) else s
    if s is not None and len(s) > x.ndim:
        raise ValueError(f"{name}: argument 's' must have at most {x.ndim} elements, got {len(s)}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [static_int(a, f"{name}: argument 'axes'") for a in axes]
    if len({a % x.ndim for a in axes if x.ndim}) < len(axes):
        raise ValueError(f"{name}: repeated axis: {tuple(axes)}")
    for axis, size in _zip_longest(axes, (s or ())[: len(axes)]):
        x = transform(x, type, size, axis, norm)
    return x


def _operand(name: str, x: Any, type: int, n: int | None, axis: int, norm: str | None) -> tuple[Any, int, int]:
    if type != 2:
        raise NotImplementedError(f"Only DCT type 2 is implemented. {name} got type {type}")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: argument 'norm' is {norm!r}; expected None, 'backward' or 'ortho'")
    check_arraylike(name, x)
    x = jnp.asarray(x)
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{name}: argument 'axis' is {axis}, but x has {x.ndim} dimensions")
    axis = axis % x.ndim
    if n is not None:
        if n < 1:
            raise ArgumentError(f"{name}: argument 'n' is {n}; expected at least 1")
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1)[..., :n], -1, axis)
        x = jnp.pad(x, [(0, n - x.shape[a]) if a == axis else (0, 0) for a in range(x.ndim)])
    if not x.shape[axis]:
        raise ArgumentError(f"{name}: x has no elements along axis {axis}")
    return x, x.shape[axis], axis


def _turns(n: int, dtype: Any, sign: int) -> Any:
    """exp(sign i pi k / (2n)), computed in double precision."""
    turns = np.exp(sign * 0.5j * math.pi * np.arange(n) / n)
    return jnp.asarray(turns.astype(dtypes.to_complex_dtype(dtype)))


def _orthogonal(n: int, dtype: Any) -> Any:
    factors = np.full(n, math.sqrt(1 / (2 * n)))
    factors[0] = math.sqrt(1 / (4 * n))
    return jnp.asarray(factors.astype(dtype))


_remember_all(globals(), _parameters.FFT, at_once=True)
_explain_all(globals(), _parameters.FFT, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
