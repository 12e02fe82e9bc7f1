"""Meshes of the devices that are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.runtime.arrays.devices import devices as all_devices
from pullback.sharding import AxisType, Mesh
from pullback.util.tracebacks import api_boundary


@api_boundary
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Any,
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of this shape over the first devices, or over `devices`; its axes are Explicit unless `axis_types` says
    otherwise.

    Raises ValueError if there are not as many devices, a size is not positive, a name repeats, or shapes and names
    differ in number; TypeError for sizes that are no integers.
    """
    if not np.iterable(axis_shapes):
        raise TypeError(f"make_mesh: argument 'axis_shapes' must be a sequence of integers, got {axis_shapes!r}")
    shape = tuple(axis_shapes)
    for n in shape:
        if not hasattr(n, "__index__"):
            raise TypeError(f"make_mesh: argument 'axis_shapes' must be integers, got {shape}")
        if n < 1:
            raise ValueError(f"make_mesh: argument 'axis_shapes' must be positive, got {shape}")
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    found, wanted = list(all_devices() if devices is None else devices), math.prod(shape)
    if len(found) < wanted:
        raise ValueError(f"make_mesh: axis_shapes {shape} take {wanted} devices, but there are {len(found)}")
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(np.array(found[:wanted], dtype=object).reshape(shape), names, types)


add_pages(globals(), PAGES)
