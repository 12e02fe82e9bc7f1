"""pjit: functions that are jitted under the mesh whose `with` statement they are called in.

`with mesh:` is the older way to say which mesh is meant. Only `pjit` heeds it wholly: inside of a call that mesh is the
one in force, as if `set_mesh` had said so, and None in in_shardings or out_shardings means a copy on each device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.api.jit import Jit, jitted
from pullback.api.stages import Traced
from pullback.sharding import PartitionSpec
from pullback.sharding._shardings import UNSPECIFIED
from pullback.util import config
from pullback.util.pytree import Unspecified, tree_map
from pullback.util.static import check_flags
from pullback.util.tracebacks import api_boundary

_unspecified: Any = Unspecified()
_OPEN = (_unspecified, UNSPECIFIED)


@api_boundary
def pjit(
    fun: Callable,
    in_shardings: Any = _unspecified,
    out_shardings: Any = _unspecified,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
) -> Any:
    """`jit(fun, ...)` with `jit`'s arguments and errors; PartitionSpecs are over the mesh of the `with` statement, of
    which None means all devices.

    >>> pjit(lambda x: x + 1)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "inline": inline,
    }
    check_flags("pjit", keep_unused=keep_unused, inline=inline)
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    places = {"device": device, "backend": backend, **{k: None if v in _OPEN else v for k, v in given.items()}}
    on_mesh = {k: None if v in _OPEN else tree_map(_whole, v, is_leaf=_is_none) for k, v in given.items()}
    made = jitted(_Pjit, fun, options, places, compiler_options)
    made.on_mesh = jitted(_OnMesh, fun, options, {**on_mesh, "device": None, "backend": None}, compiler_options)
    made.asked.update(given)
    made.function._cache_size = lambda: made.function.cache_size() + made.on_mesh.function.cache_size()
    return made.function


def _is_none(x: Any) -> bool:
    return x is None


def _whole(given: Any) -> Any:
    return PartitionSpec() if given is None else given


def _pjit_again(fun: Callable, asked: dict[str, Any]) -> Any:
    return pjit(fun, **asked)


class _OnMesh(Jit):
    """A function as it is jitted for calls under an entered mesh."""

    api = "pjit"


class _Pjit(Jit):
    """A jitted function inside of whose calls the mesh that was entered is the one in force."""

    api = "pjit"
    again = staticmethod(_pjit_again)
    on_mesh: _OnMesh

    def entered_mesh(self) -> Any:
        """The mesh whose `with` statement we are in, or None; ValueError where a device is asked for, too."""
        mesh = config.entered_mesh.value
        if mesh is None or mesh.empty:
            return None
        if self.wanted.device is not None or self.wanted.backend is not None:
            raise ValueError(
                f"pjit of {self.name}: 'device' or 'backend' names one device, got {self.wanted.device} and "
                f"{self.wanted.backend!r}, but the call is inside of a mesh's `with` statement, which has others; "
                "leave them out, or call it outside"
            )
        return mesh

    @api_boundary
    def miss(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        mesh = self.entered_mesh()
        if mesh is None:
            return super().miss(args, kwargs)
        with config.mesh_in_force(mesh):
            return self.on_mesh.function(*args, **kwargs), None  # C would run it under no mesh

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        mesh = self.entered_mesh()
        if mesh is None:
            return super().trace(*args, **kwargs)
        with config.mesh_in_force(mesh):
            return self.on_mesh.trace(*args, **kwargs)
