"""Stands for jax._src.mesh: meshes and the one in force (flax, orbax: Mesh); ejkernel reads `thread_resources`,
pennylane the concrete mesh.
"""

from pullback.sharding import AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh
from pullback.sharding._current import EMPTY_ENV, ResourceEnv, thread_resources
from pullback.sharding._current import mesh_in_force as get_concrete_mesh

empty_abstract_mesh = AbstractMesh((), ())

__all__ = [
    "EMPTY_ENV", "AbstractMesh", "AxisType", "Mesh", "ResourceEnv", "empty_abstract_mesh", "get_abstract_mesh",
    "get_concrete_mesh", "thread_resources", "use_abstract_mesh",
]  # fmt: skip
