"""Images at coordinates between their samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.ndimage import PAGES as _PAGES
from pullback.scipy import _parameters
from pullback.util import dtypes
from pullback.util.absent import listed as _listed

__all__ = ["map_coordinates"]


def _mirror(i: Any, n: int) -> Any:
    """d c b | a b c d | c b a: the edge is no sample twice."""
    period = max(2 * (n - 1), 1)
    return jnp.abs((i + n - 1) % period - (n - 1))


def _reflect(i: Any, n: int) -> Any:
    """c b a | a b c d | d c b, as the mirrored image of twice the resolution."""
    return _mirror(2 * i + 1, 2 * n + 1) // 2


_INSIDE: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirror,
    "reflect": _reflect,
}


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0) -> Any:
    """The values of `input` at coordinates: of the nearest sample (order 0), or linear between samples (order 1).

    input: [n...]; coordinates: one array for each of its axes, of one shape, which is that of the result. Outside of
    the array is `cval` (mode 'constant'), or what 'nearest', 'wrap', 'mirror' or 'reflect' make of it. ValueError for
    another number of coordinates; NotImplementedError for higher orders and other modes.
    """
    image = jnp.asarray(input)
    points = [jnp.asarray(c) for c in coordinates]
    fill = jnp.asarray(cval, image.dtype)
    if len(points) != image.ndim:
        raise ValueError(
            f"map_coordinates: {len(points)} arrays of coordinates for {image.ndim} axes of 'input'; expected one an "
            "axis"
        )
    if mode not in _INSIDE:
        raise NotImplementedError(f"map_coordinates: mode {mode!r} is not supported; accepted are {', '.join(_INSIDE)}")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: argument 'order' is {order}; supported are 0 and 1")
    axes = [_nodes(x, order) for x in points]
    total: Any = 0
    for corner in itertools.product(*axes):
        places = [_INSIDE[mode](i, n) for (i, _), n in zip(corner, image.shape)]
        value = image[tuple(jnp.clip(i, 0, n - 1) for i, n in zip(places, image.shape))]
        if mode == "constant":
            inside = jnp.asarray(True)
            for i, n in zip(places, image.shape):
                inside = inside & (i >= 0) & (i < n)
            value = jnp.where(inside, value, fill)
        weight: Any = 1
        for _, w in corner:
            weight = weight * w
        if order and not dtypes.issubdtype(value.dtype, np.inexact):
            value = value.astype(weight.dtype)
        total = total + value * weight
    if dtypes.issubdtype(image.dtype, np.integer) and dtypes.issubdtype(total.dtype, np.floating):
        total = lax.round(total)
    return total.astype(image.dtype)


def _nodes(x: Any, order: int) -> list[tuple[Any, Any]]:
    """(index, weight) of the samples that count at coordinates x along one axis."""
    if order == 0:
        nearest = lax.round(x) if dtypes.issubdtype(x.dtype, np.floating) else x
        return [(nearest.astype(np.int32), 1)]
    real = x.astype(dtypes.to_inexact_dtype(x.dtype))
    below = jnp.floor(real)
    above = real - below
    index = below.astype(np.int32)
    return [(index, 1 - above), (index + 1, above)]


_remember_all(globals(), _parameters.NDIMAGE)
_explain_all(globals(), _parameters.NDIMAGE, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
