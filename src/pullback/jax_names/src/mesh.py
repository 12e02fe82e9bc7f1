"""Stands for jax._src.mesh: meshes and the one in force."""

from pullback.sharding import AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh

__all__ = ["AbstractMesh", "AxisType", "Mesh", "get_abstract_mesh", "use_abstract_mesh"]
