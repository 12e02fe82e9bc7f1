"""Interpolation on grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core import Tracer
from pullback.core.explain import check, explain_methods
from pullback.core.kinds import ARRAY, ARRAYS, FLAG, NESTED, TEXT, table
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.interpolate import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import listed as _listed

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """A function of d variables between its values on a grid, linear ('linear') or of the nearest point ('nearest').

    points: d strictly increasing (or decreasing, if they are known) arrays f[n_k]; values: f[n_0, ..., n_{d-1}, ...].
    The call takes coordinates xi: f[..., d], and gives f[..., (rest of the values' axes)]: `fill_value` outside of the
    grid, or the linear continuation if that is None; ValueError there with `bounds_error`, which needs concrete values.
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined; expected 'linear' or 'nearest'")
        check("RegularGridInterpolator", ARRAY, values=values)
        values = jnp.asarray(values)
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} dimensions")
        values = values.astype(dtypes.to_inexact_dtype(values.dtype))
        if fill_value is not None:
            kind = np.asarray(fill_value).dtype if isinstance(fill_value, (int, float, complex)) else None
            if not np.can_cast(
                jnp.asarray(fill_value).dtype if kind is None else kind, values.dtype, casting="same_kind"
            ):
                raise ValueError(
                    f"RegularGridInterpolator: argument 'fill_value' is {fill_value}, which values of {values.dtype} "
                    "cannot hold"
                )
        grid, flipped = [], []
        for k, p in enumerate(points):
            # The order of points that a trace makes is not known: they are taken to ascend.
            steps = np.ones(1) if isinstance(p, Tracer) else np.diff(np.asarray(p))
            if np.all(steps < 0) and len(steps):
                flipped.append(k)
                p = jnp.flip(jnp.asarray(p))
            elif not np.all(steps > 0):
                raise ValueError(f"the points in dimension {k} must be strictly ascending or descending")
            p = jnp.asarray(p)
            if p.ndim != 1:
                raise ValueError(f"the points in dimension {k} must be 1-dimensional")
            if values.shape[k] != p.shape[0]:
                raise ValueError(f"there are {p.shape[0]} points and {values.shape[k]} values in dimension {k}")
            grid.append(p)
        self.grid, self.method = tuple(grid), method
        self.values = jnp.flip(values, flipped) if flipped else values
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined; expected 'linear' or 'nearest'")
        ndim = len(self.grid)
        xi = _points(xi)
        if xi.ndim == 1:  # one point, or the points of a grid of one dimension
            xi = xi[:, None] if ndim == 1 else xi[None]
        if not xi.ndim:
            raise ValueError("RegularGridInterpolator: argument 'xi' must be coordinates f[..., d], got a scalar")
        if xi.shape[-1] != ndim:
            raise ValueError(
                f"RegularGridInterpolator: argument 'xi' has {xi.shape[-1]} coordinates a point; the grid has {ndim} "
                "axes"
            )
        shape = xi.shape
        xi = xi.reshape(-1, ndim)
        if self.bounds_error:
            for k, p in enumerate(self.grid):
                if not np.all((np.asarray(xi[:, k]) >= p[0]) & (np.asarray(xi[:, k]) <= p[-1])):
                    raise ValueError(f"one of the requested xi is out of bounds in dimension {k}")
        cells, shares = [], []
        outside = jnp.zeros(xi.shape[0], bool)
        for k, p in enumerate(self.grid):
            x, p = xi[:, k], p.astype(dtypes.to_inexact_dtype(p.dtype))
            i = jnp.clip(jnp.searchsorted(p, x, side="right") - 1, 0, max(p.shape[0] - 2, 0))
            gap = p[i + 1] - p[i] if p.shape[0] > 1 else jnp.ones_like(x)
            cells.append(i)
            shares.append((x - p[i]) / gap)
            outside = outside | (x < p[0]) | (x > p[-1])
        rest = self.values.ndim - ndim
        if method == "nearest":
            result = self.values[tuple(jnp.where(s <= 0.5, i, i + 1) for i, s in zip(cells, shares))]
        else:
            result = jnp.zeros((), self.values.dtype)
            for corner in itertools.product((0, 1), repeat=ndim):
                weight: Any = 1.0
                for side, share in zip(corner, shares):
                    weight = weight * (share if side else 1 - share)
                value = self.values[tuple(i + side for i, side in zip(cells, corner))]
                result = result + value * weight.reshape(weight.shape + (1,) * rest)
        if not self.bounds_error and self.fill_value is not None:
            result = jnp.where(outside.reshape(outside.shape + (1,) * rest), self.fill_value, result)
        result = jnp.where(jnp.isnan(xi).any(-1).reshape(outside.shape + (1,) * rest), jnp.nan, result)
        return result.reshape(shape[:-1] + self.values.shape[ndim:])


def _points(xi: Any) -> Any:
    """Coordinates as one array, of a tuple of d arrays too."""
    if isinstance(xi, tuple):
        xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
    check("RegularGridInterpolator", ARRAY, xi=xi)
    xi = jnp.asarray(xi)
    return xi.astype(dtypes.to_inexact_dtype(xi.dtype))


explain_methods(
    RegularGridInterpolator,
    {
        "__init__": table(points=ARRAYS, values__fill_value=NESTED, method=TEXT, bounds_error=FLAG),
        "__call__": table(xi=NESTED, method=TEXT),
    },
)

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
