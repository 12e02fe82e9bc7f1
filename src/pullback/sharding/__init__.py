"""How arrays lie on devices: meshes, partition specs and shardings. Data only; what moves arrays reads them."""

from pullback.sharding._mesh import AbstractMesh, AxisType, Mesh
from pullback.sharding._shardings import NamedSharding, PartitionSpec, PmapSharding, Sharding, SingleDeviceSharding

__all__ = [
    "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "PmapSharding", "Sharding",
    "SingleDeviceSharding",
]  # fmt: skip
