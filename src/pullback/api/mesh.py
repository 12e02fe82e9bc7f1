"""Meshes of the devices that are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.runtime.devices import devices as all_devices
from pullback.sharding import Mesh


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of this shape over the first devices, or over `devices`.

    Raises ValueError if there are not as many devices, or shapes and names differ in number.
    """
    shape = tuple(int(n) for n in axis_shapes)
    if len(shape) != len(axis_names):
        raise ValueError(f"make_mesh: axis_shapes {shape} and axis_names {tuple(axis_names)} must have the same length")
    found, wanted = list(all_devices() if devices is None else devices), math.prod(shape)
    if len(found) < wanted:
        raise ValueError(f"Number of devices {len(found)} must be >= the product of mesh_shape {shape}")
    return Mesh(np.array(found[:wanted], dtype=object).reshape(shape), tuple(axis_names), axis_types)
