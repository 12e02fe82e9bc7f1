"""The devices that programs are to run on, as far as they are attached: those of absent machines can't be described.

>>> topology = get_attached_topology()
>>> make_mesh(topology, (len(topology.devices),), ("x",)).axis_names
('x',)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.experimental.mesh_utils import create_device_mesh
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.devices import devices as all_devices
from pullback.sharding import Mesh


class TopologyDescription:
    """The devices of one or several machines."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there; RuntimeError for an unknown platform."""
    return TopologyDescription(devices=all_devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """Raises: only accelerators have descriptions of machines that are not attached.

    NotImplementedError for a platform that has none, RuntimeError for accelerators, which need their own libraries.
    """
    asked = f"get_topology_desc: topology {topology_name!r} {kwargs or ''}".rstrip()
    if platform in (None, "tpu"):
        raise RuntimeError(f"{asked}: TPU support is not installed; there are no descriptions of its machines")
    if platform in ("gpu", "cuda", "rocm"):
        raise RuntimeError(f"{asked}: Unknown backend: '{platform}' requested, but only cpu is present")
    raise NotImplementedError(f"{asked}: topology not implemented for {platform}")


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of all devices of a topology; ValueError where its shape has another number of them."""
    devices = create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, axis_names)


__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
