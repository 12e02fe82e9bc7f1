"""Arrays of devices for meshes. Devices of one machine share its memory: every order of them is as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.mesh_utils import PAGES as _PAGES
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.devices import devices as all_devices
from pullback.util.absent import listed as _listed

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
        raise ValueError(f"a mesh of shape {shape} has {math.prod(shape)} devices, got {len(found)}")
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
    """The devices of several machines as an array, whose shape is the product of both: within it, the devices of each
    machine lie together. Here machines are processes (`process_is_granule`).

    Raises ValueError without that, where there are not as many processes as `dcn_mesh_shape` asks for, or as
    create_device_mesh.
    """
    outer, inner = tuple(dcn_mesh_shape), tuple(mesh_shape)
    found = list(all_devices() if devices is None else devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    granules: dict[Any, list[Device]] = {}
    for device in found:
        if not hasattr(device, attribute):
            raise ValueError(
                f"{device} has no {attribute} to tell slices apart; process_is_granule=True takes processes"
            )
        granules.setdefault(getattr(device, attribute), []).append(device)
    if math.prod(outer) != len(granules):
        raise ValueError(
            f"dcn_mesh_shape {outer} speaks of {math.prod(outer)} slices; the devices are in {len(granules)}"
        )
    rank = max(len(outer), len(inner))
    outer, inner = ((1,) * (rank - len(shape)) + shape for shape in (outer, inner))
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    meshes = np.empty((len(keys), *inner), object)
    for mesh, key in zip(meshes, keys, strict=True):
        mesh[...] = create_device_mesh(inner, granules[key], allow_split_physical_axes=allow_split_physical_axes)
    order = [k for pair in zip(range(rank), range(rank, 2 * rank)) for k in pair]
    return meshes.reshape(*outer, *inner).transpose(order).reshape([m * n for m, n in zip(outer, inner, strict=True)])


__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
