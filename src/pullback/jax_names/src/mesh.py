"""Stands for jax._src.mesh: meshes and the one in force (flax, orbax: Mesh); ejkernel reads `thread_resources`,
pennylane the concrete mesh.
"""

from collections.abc import Iterable

import numpy as np

from pullback.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh
from pullback.sharding._current import EMPTY_ENV, ResourceEnv, thread_resources
from pullback.sharding._current import mesh_in_force as get_concrete_mesh


def all_axis_types_match(axis_types: Iterable[AxisType], ty: AxisType) -> bool:
    """Whether there are axes, and all are of one type."""
    types = list(axis_types)
    return bool(types) and all(t is ty for t in types)


def any_axis_types_match(axis_types: Iterable[AxisType], ty: AxisType) -> bool:
    """Whether an axis is of a type."""
    return any(t is ty for t in axis_types)


empty_abstract_mesh = AbstractMesh((), ())
empty_concrete_mesh = Mesh(np.empty((), object), ())

__all__ = [
    "EMPTY_ENV", "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "ResourceEnv", "all_axis_types_match",
    "any_axis_types_match", "empty_abstract_mesh", "empty_concrete_mesh", "get_abstract_mesh",
    "get_concrete_mesh", "thread_resources", "use_abstract_mesh",
]  # fmt: skip
