"""Exported functions over meshes: stored for meshes without devices, they get those of their arguments when called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.core import ClosedJaxpr, Jaxpr, ShapedArray
from pullback.core.tracer import Tracer
from pullback.sharding import AbstractMesh, Mesh, NamedSharding, Sharding
from pullback.sharding._current import current_mesh


def abstract(value: Any) -> Any:
    """A sharding or program whose meshes have no devices, and do not say of what kind these were."""
    return _with_meshes(value, lambda mesh: AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types))


def on_devices(value: Any, devices: Sequence[Any] | None) -> Any:
    """A sharding or program over meshes of these devices, in their order; None: as it is."""
    if devices is None:
        return value

    def filled(mesh: Any) -> Any:
        if mesh.empty:  # that in force where a constraint was said
            return mesh
        return Mesh(np.array(devices, dtype=object).reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)

    return _with_meshes(value, filled)


def number_of_devices(program: ClosedJaxpr, shardings: Sequence[Any]) -> int:
    """How many devices a program, and its arguments and results, lie on."""
    found = {s.num_devices for s in (*_shardings(program.jaxpr), *shardings) if s is not None}
    return max(found, default=1)


def devices_for(name: str, number: int, leaves: Sequence[Any]) -> tuple[Any, ...] | None:
    """The devices that a function, exported for several, runs on: those of its arguments, or of the mesh in force.

    None where it is traced, and they are not known yet. ValueError if there are not as many.
    """
    places = [getattr(getattr(x, "_base_array", x), "_device", None) for x in leaves]
    meshes = [p.mesh for p in places if isinstance(p, NamedSharding) and isinstance(p.mesh, Mesh)]
    now = current_mesh()
    meshes += [now] if isinstance(now, Mesh) else []
    if not meshes and any(isinstance(x, Tracer) for x in leaves):
        return None
    have = meshes[0].size if meshes else 1
    if have != number:
        raise ValueError(
            f"call of the exported {name}: it runs on {number} devices, but its arguments are on a mesh of {have}; "
            f"give it arguments on {number}"
        )
    return tuple(meshes[0].devices.flat)


def over(sharding: NamedSharding | None, mesh: Mesh) -> NamedSharding | None:
    """What was said of a mesh of some axes, said of one of equally many and equally long ones."""
    if sharding is None:
        return None
    sizes = sharding.mesh.axis_sizes
    if mesh.axis_sizes != sizes:
        raise ValueError(f"exported shardings are over a mesh of axes {sizes}, got one of {mesh.axis_sizes}")
    names = dict(zip(sharding.mesh.axis_names, mesh.axis_names, strict=True))

    def renamed(part: Any) -> Any:
        return tuple(map(renamed, part)) if isinstance(part, tuple) else names.get(part, part)

    return NamedSharding(mesh, type(sharding.spec)(*map(renamed, sharding.spec)))


def _shardings(jaxpr: Jaxpr) -> Iterator[NamedSharding]:
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, NamedSharding):
                    yield one
                elif isinstance(one, (ClosedJaxpr, Jaxpr)):
                    yield from _shardings(one.jaxpr if isinstance(one, ClosedJaxpr) else one)


def _with_meshes(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, NamedSharding):
        return NamedSharding(change(value.mesh), value.spec)
    if isinstance(value, (Mesh, AbstractMesh)):
        return change(value)
    if isinstance(value, ClosedJaxpr):
        jaxpr = _with_meshes(value.jaxpr, change)
        return value if jaxpr is value.jaxpr else ClosedJaxpr(jaxpr, value.consts)
    if isinstance(value, Jaxpr):
        return _changed(value, change)
    if type(value) is tuple and any(isinstance(v, (Sharding, Mesh, AbstractMesh, ClosedJaxpr, Jaxpr)) for v in value):
        return tuple(_with_meshes(v, change) for v in value)
    return value


def _changed(jaxpr: Jaxpr, change: Callable[[Any], Any]) -> Jaxpr:
    eqns = []
    for eqn in jaxpr.eqns:
        params = {k: _with_meshes(v, change) for k, v in eqn.params.items()}
        same = all(params[k] is v for k, v in eqn.params.items())
        eqns.append(eqn if same else eqn.replace(params=params))
    return jaxpr if all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)) else jaxpr.replace(eqns=eqns)


def shardings_of(avals: Sequence[Any], said: Sequence[Any]) -> tuple[Any, ...]:
    """How arguments or results lie over a mesh without devices: as was said, or their types have it; else None."""
    found = []
    for aval, one in zip(avals, said, strict=True):
        one = one if isinstance(one, NamedSharding) else aval.placing if isinstance(aval, ShapedArray) else None
        found.append(None if one is None or one.mesh.size < 2 else abstract(one))
    return tuple(found)
