"""Stands for jax._src.sharding_impls: classes of shardings, and what stands where none is given."""

from pullback.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding, get_abstract_mesh
from pullback.sharding._shardings import UNSPECIFIED, IndivisibleError, Sharding, UnspecifiedValue


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """The sharding over the mesh in force that a spec stands for (jaxns); None where there is no mesh."""
    del check_mesh_consistency
    if isinstance(sharding, PartitionSpec):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError(f"{api_name}: {sharding} needs a mesh; set one with jax.set_mesh")
        return NamedSharding(mesh, sharding)
    return None if sharding is None or sharding.mesh.empty else sharding


__all__ = [
    "UNSPECIFIED", "IndivisibleError", "NamedSharding", "Sharding", "SingleDeviceSharding", "UnspecifiedValue",
    "canonicalize_sharding",
]  # fmt: skip
