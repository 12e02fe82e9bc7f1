"""Stands for jax._src.sharding_impls: classes of shardings, and what stands where none is given.

`GSPMDSharding`, which only XLA makes, is there for those who ask whether a sharding is one.
"""

from pullback.api.mesh import make_mesh
from pullback.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    set_mesh,
)
from pullback.sharding._shardings import UNSPECIFIED, IndivisibleError, Sharding, UnspecifiedValue
from pullback.util.absent import absent_names


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """The sharding over the mesh in force that a spec stands for (jaxns); None where there is no mesh.

    ValueError for a spec where no mesh is in force, and unless `check_mesh_consistency` is off for a sharding over
    another mesh than that in force.
    """
    mesh = get_abstract_mesh()
    if isinstance(sharding, PartitionSpec):
        if mesh.empty:
            raise ValueError(f"{api_name}: {sharding} needs a mesh; set one with jax.set_mesh")
        return NamedSharding(mesh, sharding)
    if sharding is None or sharding.mesh.empty:
        return None
    if check_mesh_consistency and not mesh.empty and mesh != sharding.mesh.abstract_mesh:
        raise ValueError(f"{api_name}: {sharding} is over another mesh than the one in force, {mesh}")
    return sharding


__all__ = [
    "UNSPECIFIED", "AbstractMesh", "AxisType", "IndivisibleError", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "UnspecifiedValue", "canonicalize_sharding", "get_abstract_mesh", "get_mesh", "make_mesh",
    "make_single_device_sharding", "set_mesh",
]  # fmt: skip

__getattr__ = absent_names(__name__)
