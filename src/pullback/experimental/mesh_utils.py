"""Arrays of devices for meshes. Devices of one machine share its memory: every order of them is as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.mesh_utils import PAGES as _PAGES
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.devices import devices as all_devices

# How devices are put into order, by kind: there is no kind here for which the order matters.
device_kind_handler_dict: dict[str, Callable[..., Any]] = {}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices as an array of shape `mesh_shape`, in their order. Raises ValueError unless that uses each of them.

    The flags say how the wires of TPUs may be used.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    found = list(all_devices() if devices is None else devices)
    shape = tuple(mesh_shape)
    if math.prod(shape) != len(found):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {shape}")
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices of several machines as an array, whose shape is the product of both. One machine is all there is.

    Raises ValueError where `dcn_mesh_shape` asks for more than one, or as create_device_mesh.
    """
    machines = math.prod(dcn_mesh_shape)
    if len(tuple(dcn_mesh_shape)) != len(tuple(mesh_shape)):
        raise ValueError(f"mesh_shape {mesh_shape} and dcn_mesh_shape {dcn_mesh_shape} must be of one length")
    if machines != 1:
        raise ValueError(f"Number of slices 1 must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}")
    return create_device_mesh(mesh_shape, devices, allow_split_physical_axes=allow_split_physical_axes)


__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

_add_pages(globals(), _PAGES)
