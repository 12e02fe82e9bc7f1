"""The mesh in force: what `set_mesh` says, for functions that are not given one.

It is a flag of the configuration, so that programs traced under another mesh are not taken for those of this one.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.sharding._mesh import AbstractMesh, Mesh
from pullback.sharding._shardings import NamedSharding
from pullback.sharding._specs import PartitionSpec
from pullback.util import config

# What a higher layer does for functions of this package, and hands over when it is imported.
operations: Any = types.SimpleNamespace()


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The tree xs laid out as told: a NamedSharding with explicit axes, a PartitionSpec over the mesh in force, or a
    tree prefix of them.

    Raises TypeError for what is neither, ValueError for a spec without a mesh, axes that are not explicit, or what does
    not fit the arrays.
    """
    return operations.reshard(xs, out_shardings)


class set_mesh:
    """Make a mesh the one in force: from now on as a call, inside only as a context manager. None: no mesh.

    Raises ValueError for what is no mesh, and while a function is transformed or traced.
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh: expected a Mesh, got {mesh!r}")
        if _core.is_tracing():
            raise ValueError(
                "set_mesh: a mesh is set outside of jit, grad and other transformations only; inside, give the mesh "
                "to shard_map, or use use_abstract_mesh"
            )
        self._mesh = mesh
        self._override = config.mesh_in_force(mesh)
        self._override.__enter__()

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exc: Any) -> None:
        self._override.__exit__(*exc)


class use_abstract_mesh:
    """Context manager: a mesh without devices is the one in force inside."""

    def __init__(self, mesh: AbstractMesh) -> None:
        self._mesh = mesh
        self._override = config.mesh_in_force(mesh)

    def __enter__(self) -> AbstractMesh:
        self._override.__enter__()
        return self._mesh

    def __exit__(self, *exc: Any) -> None:
        self._override.__exit__(*exc)


def current_mesh() -> Mesh | AbstractMesh | None:
    """The mesh in force, or None."""
    return config.mesh_in_force.value


def on_current_mesh(spec: PartitionSpec, error: Exception, entered: bool = False) -> NamedSharding:
    """The spec over the mesh in force (`entered`: or the one whose `with` statement we are in), or `error`."""
    mesh = current_mesh()
    if mesh is None and entered:
        mesh = config.entered_mesh.value
    if mesh is None or mesh.empty:
        raise error
    return NamedSharding(mesh, spec)


def get_mesh() -> Mesh:
    """The mesh with devices that is in force; one without axes where there is none."""
    found = current_mesh()
    return found if isinstance(found, Mesh) else Mesh(np.empty((), object), ())


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force without its devices; one without axes where there is none."""
    found = current_mesh()
    if found is None:
        return AbstractMesh((), ())
    return found.abstract_mesh if isinstance(found, Mesh) else found
