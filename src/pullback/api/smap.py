"""smap: shard_map over one axis of the mesh in force, with axes of arrays as vmap has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.api import _arguments as arguments
from pullback.api.shard_map import BY_TYPES, shard_map
from pullback.api.vmap import check_axes_tree
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.sharding import PartitionSpec
from pullback.util.pytree import broadcast_prefix, tree_leaves, tree_structure, tree_unflatten


class InferFromArgs:
    """`Infer`: the axes are those that the types of the arguments say."""

    def __repr__(self) -> str:
        return "Infer"


Infer = InferFromArgs()


def smap(f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Callable:
    """`f` mapped over the mesh axis `axis_name`: along axis `in_axes` each device has its part of an argument (None:
    all of it), along `out_axes` the parts of a result are put together. Axes as of `vmap`, but results of None must be
    the same on all devices.

    Raises TypeError for axes that are no integers, ValueError where no mesh is set.
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    arguments.check_callable("smap", f)
    if not isinstance(in_axes, InferFromArgs):
        check_axes_tree("in_axes", in_axes, "smap")
    check_axes_tree("out_axes", out_axes, "smap")
    function = f

    def wrapped(*args: Any) -> Any:
        shapes: list[Any] = []

        def noted(*parts: Any) -> Any:
            out = function(*parts)
            shapes[:] = [out]
            return out

        specs = BY_TYPES if isinstance(in_axes, InferFromArgs) else _specs(in_axes, args, axis_name)
        out_specs = _Later(lambda: _specs(out_axes, shapes[0], axis_name))
        return shard_map(noted, in_specs=specs, out_specs=out_specs, axis_names={axis_name})(*args)

    return functools.wraps(f)(wrapped)


class _Later:
    """Specs that are known when the function has run."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made = made


def _specs(axes: Any, tree: Any, name: Any) -> Any:
    given = broadcast_prefix(axes, tree, is_leaf=lambda a: a is None)
    specs = [
        PartitionSpec() if a is None else PartitionSpec(*[None] * (a % max(np.ndim(x), 1)), name)
        for a, x in zip(given, tree_leaves(tree), strict=True)
    ]
    return tree_unflatten(tree_structure(tree), specs)


__all__ = ["Infer", "InferFromArgs", "smap"]

add_pages(globals(), PAGES)
