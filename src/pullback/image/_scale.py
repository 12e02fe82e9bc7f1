"""Resampling along axes, each by a matrix of weights: result = W0 W1 ... image.

The weight of input sample i for the output sample at position p (in units of input samples) is k((p - i) / s), over the
sum of all weights; s is how many input samples an output sample covers, if that is more than 1 and `antialias` asks for
it. Output samples whose position lies outside of the image are 0. Two methods differ, as PyTorch's do: 'area' takes the
mean over what an output sample covers, and 'cubic-pytorch' without `antialias` repeats the samples at the edges.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import Tracer
from pullback.core.dimensions import is_symbolic
from pullback.core.explain import check
from pullback.core.kinds import ARRAY
from pullback.numpy._arguments import canonical_shape
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely
from pullback.util.static import check_flags


class ResizeMethod(enum.Enum):
    """How samples are interpolated; `from_string` takes the names that `resize` takes."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name; ValueError for another one."""
        try:
            return _NAMES[s]
        except (KeyError, TypeError):
            raise ValueError(f'Unknown resize method "{s}"; expected one of {sorted(_NAMES)}') from None


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' cubic convolution kernel (R. Keys, 1981): a = -0.5 is third-order accurate."""

    def kernel(x: Any) -> Any:
        inner = ((a + 2) * x - (a + 3)) * x * x + 1
        outer = a * (((x - 5) * x + 8) * x - 4)
        return jnp.where(x < 1, inner, jnp.where(x < 2, outer, 0))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        safe = jnp.where(x == 0, 1, x)
        value = radius * jnp.sin(math.pi * safe) * jnp.sin(math.pi * safe / radius) / (math.pi**2 * safe * safe)
        return jnp.where(x > radius, 0, jnp.where(x == 0, 1, value))

    return kernel


KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),  # with antialias; see `_clamped_cubic`
}


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Any:
    """The image with another shape of the same rank.

    image: [n...]; `method` is 'nearest', 'linear' (or 'bilinear', ...), 'cubic', 'cubic-pytorch', 'lanczos3',
    'lanczos5', 'area' or a ResizeMethod; with `antialias`, samples of smaller images are means over what they cover.
    ValueError for a shape of another rank and unknown methods.
    """
    check("resize", ARRAY, image=image)
    check_flags("resize", antialias=antialias)
    image, shape = jnp.asarray(image), canonical_shape(shape, "resize: argument 'shape'")
    if len(shape) != image.ndim:
        raise ValueError(
            f"resize: argument 'shape' is {shape}, {len(shape)} sizes; the image has shape {image.shape} and needs "
            f"{image.ndim}"
        )
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if method is ResizeMethod.NEAREST:
        for axis, (n, m) in enumerate(zip(image.shape, shape)):
            if n != m:
                image = jnp.take(image, _nearest(n, m), axis=axis, mode="clip")
        return image
    changed = [a for a in range(image.ndim) if image.shape[a] != shape[a]]
    (image,) = _inexact(image)
    scales = [1.0 if not image.shape[a] else shape[a] / image.shape[a] for a in changed]
    return _resample(image, shape, changed, scales, [0.0] * len(changed), method, antialias, precision)


@promoting_freely
def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Any:
    """The image moved: output sample p along `spatial_dims[k]` is at (p + 1/2 - translation[k]) / scale[k] - 1/2.

    image: [n...]; scale, translation: f[k], which may be traced and differentiated. ValueError for the method
    'nearest', and where the lengths do not fit.
    """
    check("scale_and_translate", ARRAY, image=image)
    check_flags("scale_and_translate", antialias=antialias)
    image, shape = jnp.asarray(image), canonical_shape(shape, "scale_and_translate: argument 'shape'")
    if len(shape) != image.ndim:
        raise ValueError(
            f"scale_and_translate: argument 'shape' is {shape}, {len(shape)} sizes; the image has shape {image.shape} "
            f"and needs {image.ndim}"
        )
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if method is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: argument 'method' must be one that interpolates, got nearest")
    check("scale_and_translate", ARRAY, image=image, scale=scale, translation=translation)
    axes = [d + image.ndim if d < 0 else d for d in spatial_dims]
    if len(set(axes)) != len(axes) or not all(0 <= d < image.ndim for d in axes):
        raise ValueError(
            f"scale_and_translate: argument 'spatial_dims' is {tuple(spatial_dims)}; expected different axes of an "
            f"image with {image.ndim}"
        )
    (image,) = _inexact(image)
    dtype = image.dtype
    image, scale, translation = _inexact(image, jnp.asarray(scale), jnp.asarray(translation))
    for name, value in (("scale", scale), ("translation", translation)):
        if value.shape != (len(axes),):
            raise ValueError(
                f"scale_and_translate: argument '{name}' has shape {value.shape}; expected one number for each of the "
                f"{len(axes)} axes in 'spatial_dims'"
            )
    fixed = [a for a in range(image.ndim) if a not in axes and image.shape[a] != shape[a]]
    if fixed:
        raise ValueError(f"scale_and_translate: axes {fixed} change their sizes but are not in 'spatial_dims'")
    parts = [[x[k] for k in range(len(axes))] for x in (scale, translation)]
    return _resample(image, shape, axes, parts[0], parts[1], method, antialias, precision).astype(dtype)


def _inexact(*arrays: Any) -> list[Any]:
    dtype = dtypes.to_inexact_dtype(jnp.result_type(*arrays))
    return [jnp.asarray(x, dtype) for x in arrays]


def _nearest(n: Any, m: Any) -> Any:
    """i32[m]: the sample of n that is nearest to each of m.

    Of two that are equally near, rounding chooses as in JAX: the factor n (1 / m) is one float32.
    """
    arange, number = (jnp.arange, jnp.asarray) if is_symbolic(n) or is_symbolic(m) else (np.arange, np.asarray)
    factor = number(n, np.float32) * (np.float32(1) / number(m, np.float32))
    places = (arange(m, dtype=np.float32) + np.float32(0.5)) * factor
    floor = jnp.floor if isinstance(places, Tracer) else np.floor  # known places are read without asking where they are
    return jnp.asarray(floor(places).astype(np.int32))


def _resample(
    image: Any,
    shape: Sequence[int],
    axes: Sequence[int],
    scales: Sequence[Any],
    translations: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    dtype = image.dtype
    for axis, scale, translation in zip(axes, scales, translations):
        n, m = image.shape[axis], shape[axis]
        taps = _taps(n, m, scale, method, antialias) if isinstance(scale, float) else None
        if taps is not None:
            image = _summed(image, axis, *taps)
            continue
        weights = _weights(image.shape[axis], shape[axis], scale, translation, method, antialias)
        image = jnp.moveaxis(jnp.tensordot(image, weights.astype(dtype), (axis, 0), precision=precision), -1, axis)
    return image


RADII = {
    ResizeMethod.LINEAR: 1,
    ResizeMethod.CUBIC: 2,
    ResizeMethod.CUBIC_PYTORCH: 2,
    ResizeMethod.LANCZOS3: 3,
    ResizeMethod.LANCZOS5: 5,
}
_MOST, _PART = 12, 8  # samples that an output sample is made of, and of how many it is one: else products are as quick


def _taps(n: Any, m: Any, scale: float, method: ResizeMethod, antialias: bool) -> tuple[np.ndarray, Any] | None:
    """(i32[k, m], f[k, m]): the input samples that count for each output sample, and how much; None if these are many.

    Measured: half of an image of 512 x 640 x 3 took 5.2 ms by products with all weights, most of them 0, now 0.5.
    """
    radius = RADII.get(method)
    if radius is None or is_symbolic(n) or is_symbolic(m) or not (n and m) or (method in _CLAMPED and not antialias):
        return None
    reach = radius * (max(1 / scale, 1) if antialias else 1)
    count = math.ceil(2 * reach)
    if count > _MOST or count * _PART > n:
        return None
    first = np.floor((np.arange(m) + 0.5) / scale - 0.5 - reach).astype(np.int32) + 1
    samples = first + np.arange(count, dtype=np.int32)[:, None]
    return np.clip(samples, 0, n - 1), _weights(n, m, scale, 0.0, method, antialias, samples)


_CLAMPED = (ResizeMethod.CUBIC_PYTORCH,)


def _summed(image: Any, axis: int, samples: np.ndarray, weights: Any) -> Any:
    """The sums of samples along an axis with weights: the terms of each output sample are those of one position."""
    real = jnp.promote_types(image.dtype, np.float32)
    total: Any = 0
    for at, weight in zip(samples, weights):
        each = weight.astype(real).reshape([-1 if a == axis else 1 for a in range(image.ndim)])
        total = total + each * jnp.take(image, at, axis=axis, mode="clip").astype(real)
    # What a pass along another axis reads several times is made once.
    return lax.optimization_barrier(total.astype(image.dtype))


def _weights(
    n: int, m: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool, given: np.ndarray | None = None
) -> Any:
    """f[n, m]: how much each of n input samples counts for each of m output samples; of given samples i32[k, m], those
    outside of the image do not.
    """
    real = jnp.asarray(scale).dtype
    dtype = real if dtypes.issubdtype(real, np.floating) and real.itemsize >= 4 else np.dtype(np.float32)
    inverse = 1 / jnp.asarray(scale, dtype)
    start = jnp.arange(m, dtype=dtype) * inverse - jnp.asarray(translation, dtype) * inverse
    places = start + (0.5 * inverse - 0.5)
    samples = jnp.arange(n, dtype=dtype)[:, None] if given is None else jnp.asarray(given, dtype)
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _clamped_cubic(places, n)
    if method is ResizeMethod.AREA:
        weights = jnp.maximum(jnp.minimum(start + inverse, samples + 1) - jnp.maximum(start, samples), 0)
    else:
        width = jnp.maximum(inverse, 1) if antialias else 1
        weights = KERNELS[method](jnp.abs(places[None, :] - samples) / width)
    if given is not None:
        weights = jnp.where((given >= 0) & (given < n), weights, 0)
    whole = jnp.sum(weights, axis=0, keepdims=True)
    enough = jnp.abs(whole) > 1000 * float(np.finfo(np.float32).eps)
    weights = jnp.where(enough, weights / jnp.where(enough, whole, 1), 0)
    inside = (places >= -0.5) & (places <= n - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _clamped_cubic(places: Any, n: int) -> Any:
    """Weights of Keys' kernel with a = -0.75 on the four samples around each place, those beyond an edge on it."""
    kernel = _cubic(-0.75)
    below = jnp.floor(places)
    total: Any = 0
    for k in (-1, 0, 1, 2):
        on = jnp.clip(below + k, 0, n - 1)[None, :] == jnp.arange(n, dtype=places.dtype)[:, None]
        total = total + jnp.where(on, kernel(jnp.abs(places - (below + k)))[None, :], 0)
    return total
