"""The mesh in force: what `set_mesh` says, for functions that are not given one.

It is a flag of the configuration, so that programs traced under another mesh are not taken for those of this one.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.sharding._mesh import AbstractMesh, AxisType, Mesh
from pullback.sharding._shardings import NamedSharding
from pullback.sharding._specs import PartitionSpec
from pullback.util import config
from pullback.util.record import NamedTuple
from pullback.util.tracebacks import api_boundary

# What a higher layer does for functions of this package, and hands over when it is imported.
operations: Any = types.SimpleNamespace()


@api_boundary
def reshard(xs: Any, out_shardings: Any) -> Any:
    """The tree xs laid out as told: a NamedSharding with explicit axes, a PartitionSpec over the mesh in force, or a
    tree prefix of them.

    Raises TypeError for what is neither, ValueError for a spec without a mesh, axes that are not explicit, or what does
    not fit the arrays.
    """
    return operations.reshard(xs, out_shardings)


@api_boundary
def auto_axes(f: Any = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f`, inside of which axes of the mesh in force (all, if None) are Auto; results are laid out as `out_sharding`
    says, here or in the call. Without `f`, a decorator.

    Raises TypeError where neither says it, KeyError for an axis that the mesh has not.

    >>> import pullback as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))):
    ...     jax.sharding.auto_axes(lambda x: 2 * x, out_sharding=jax.P("i"))(jax.numpy.ones(2)).tolist()
    [2.0, 2.0]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    said = out_sharding

    @functools.wraps(f)
    def inside(*args: Any, **keywords: Any) -> Any:
        out_sharding = _sharding_of("auto_axes", "out_sharding", said, keywords)
        with _with_axes("auto_axes", axes, AxisType.Auto):
            given, named = operations.retyped((args, keywords))
            out = f(*given, **named)
        mesh = current_mesh()
        return out if mesh is None or not mesh.explicit_axes else reshard(out, out_sharding)

    return inside


@api_boundary
def explicit_axes(f: Any = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """`f`, inside of which axes of the mesh in force (all, if None) are Explicit; arguments by position are laid out
    as `in_sharding` says, here or in the call, one for all or a tree prefix. Results lie as they do inside, over the
    mesh in force outside. Without `f`, a decorator.

    Raises TypeError where neither says it, ValueError without a mesh, KeyError for an axis that the mesh has not.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    said = in_sharding

    @functools.wraps(f)
    def inside(*args: Any, **keywords: Any) -> Any:
        in_sharding = _sharding_of("explicit_axes", "in_sharding", said, keywords)
        if current_mesh() is None:
            raise ValueError("explicit_axes: Context mesh cannot be empty; enter one with `jax.set_mesh`")
        with _with_axes("explicit_axes", axes, AxisType.Explicit):
            out = f(*(reshard(args, in_sharding) if args else ()), **keywords)
        return operations.retyped(out)

    return inside


def _sharding_of(function: str, name: str, said: Any, keywords: dict[str, Any]) -> Any:
    """What the wrapper said; else what the call says, whose None is an answer where there is nothing to lay out."""
    if said is None and name not in keywords:
        raise TypeError(f"{function}: Missing required keyword argument: {name!r}")
    return keywords.pop(name) if said is None else said


# (mesh, its axes' types, those inside) of `auto_axes`: transformations run what is inside again outside of it.
retypings: set[tuple[Any, Any, Any]] = set()
typings: set[tuple[Any, Any, Any]] = set()  # the same of `explicit_axes`


def _with_axes(name: str, axes: Any, kind: AxisType) -> Any:
    """A context in which axes of the mesh in force are of a type; where there is no mesh, there is none inside."""
    mesh = current_mesh()
    if mesh is None:
        return config.mesh_in_force(None)
    chosen = mesh.axis_names if axes is None else axes if isinstance(axes, (tuple, list, set, frozenset)) else (axes,)
    for axis in chosen:
        if axis not in mesh.axis_names:
            raise KeyError(f"{name}: the mesh in force has no axis {axis!r}; its axes are {mesh.axis_names}")
    types = tuple(kind if n in chosen else t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True))
    (retypings if kind is AxisType.Auto else typings).add((mesh.shape_tuple, mesh.axis_types, types))
    if isinstance(mesh, Mesh):
        return config.mesh_in_force(Mesh(mesh.devices, mesh.axis_names, axis_types=types))
    return config.mesh_in_force(mesh.update(axis_types=types))


class set_mesh:
    """Make a mesh the one in force: from now on as a call, inside only as a context manager. None: no mesh.

    Raises ValueError for what is no mesh, and while a function is transformed or traced.
    """

    @api_boundary
    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh: argument 'mesh' must be a Mesh, with devices, got {type(mesh)}")
        if _core.is_tracing():
            raise ValueError(
                "set_mesh: a function is being traced, where the mesh in force stays; call it before, or give the mesh "
                "to shard_map or use_abstract_mesh"
            )
        self._mesh = mesh
        self._override = config.mesh_in_force(mesh)
        self._override.__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self._override.__exit__(*exc)


class use_abstract_mesh:
    """Context manager: a mesh without devices is the one in force inside. ValueError for others."""

    @api_boundary
    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"use_abstract_mesh: argument 'mesh' must be an AbstractMesh, got {type(mesh)}")
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


@api_boundary
def get_mesh() -> Mesh:
    """The mesh with devices that is in force; one without axes where there is none. ValueError inside of jit."""
    if _core.is_tracing():
        raise ValueError(
            "get_mesh: a function is being traced, for no devices in particular; jax.sharding.get_abstract_mesh() "
            "gives the mesh without them"
        )
    return mesh_in_force()


def mesh_in_force() -> Mesh:
    """The mesh with devices that is in force, in traced functions, too; one without axes where there is none."""
    found = current_mesh()
    return found if isinstance(found, Mesh) else _NO_MESH


_NO_MESH = Mesh(np.empty((), object), ())


class ResourceEnv(NamedTuple):
    """The mesh whose `with` statement we are in, as libraries of the time before `set_mesh` ask for it."""

    physical_mesh: Mesh

    def __repr__(self) -> str:
        return f"ResourceEnv(mesh={self.physical_mesh})"


EMPTY_ENV = ResourceEnv(_NO_MESH)


class _ThreadResources:
    @property
    def env(self) -> ResourceEnv:
        """That of this thread."""
        mesh = config.entered_mesh.value
        return EMPTY_ENV if mesh is None else ResourceEnv(mesh)


thread_resources = _ThreadResources()


@api_boundary
def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force without its devices; one without axes where there is none."""
    found = current_mesh()
    if found is None:
        return AbstractMesh((), ())
    return found.abstract_mesh if isinstance(found, Mesh) else found
