"""The mesh in force: what `set_mesh` says, for functions that are not given one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pullback.sharding._mesh import AbstractMesh, Mesh

_current: ContextVar[Mesh | AbstractMesh | None] = ContextVar("pullback_mesh", default=None)


class set_mesh:
    """Make a mesh the one in force: from now on as a call, inside only as a context manager. None: no mesh."""

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh: expected a Mesh, got {mesh!r}")
        self._before, self._mesh = _current.get(), mesh
        _current.set(mesh)

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exc: Any) -> None:
        _current.set(self._before)


class use_abstract_mesh:
    """Context manager: a mesh without devices is the one in force inside."""

    def __init__(self, mesh: AbstractMesh) -> None:
        self._mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self._token = _current.set(self._mesh)
        return self._mesh

    def __exit__(self, *exc: Any) -> None:
        _current.reset(self._token)


def current_mesh() -> Mesh | AbstractMesh | None:
    """The mesh in force, or None."""
    return _current.get()


def get_mesh() -> Mesh:
    """The mesh with devices that is in force; one without axes where there is none."""
    found = _current.get()
    return found if isinstance(found, Mesh) else Mesh([], ())


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force without its devices; one without axes where there is none."""
    found = _current.get()
    if found is None:
        return AbstractMesh((), ())
    return found.abstract_mesh if isinstance(found, Mesh) else found
