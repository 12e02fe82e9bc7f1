"""Writes collectives over the axes of a mesh as operations between its devices, for the program that each runs.

Before: b = psum[axes=('i',)] a; after: b = device_all_reduce[groups=((0, 1), (2, 3)) site=0] a, on a mesh of shape
(2, 2) whose second axis is 'i'. Runs on a flat program (after `inline`), also inside of loops and branches, where every
device must come to the same operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.compiler.graph.simplify.on_mesh import MeshAxes, replace_collectives
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn
from pullback.lax.collectives.exchange import device_index_p
from pullback.lax.collectives.native import collective


def entry(table: Any) -> Any:
    """The element of a table that belongs to the device that runs."""
    return lax.dynamic_index_in_dim(np.asarray(table), device_index_p.bind(), 0, keepdims=False)


def mesh_collectives(closed: ClosedJaxpr, sizes: Mapping[Any, int]) -> ClosedJaxpr:
    """The program of one device of a mesh. NotImplementedError names a collective that has no rule."""
    axes = MeshAxes(sizes)

    def results(operands: Sequence[Any], eqn: JaxprEqn, names: Sequence[Any]) -> Sequence[Any]:
        rule = RULES.get(eqn.primitive.name)
        if rule is None or not axes.sizes.keys() >= set(names):
            raise NotImplementedError(
                f"shard_map: {eqn.primitive.name} over the axes {names} is not supported between processes"
            )
        params = {k: v for k, v in eqn.params.items() if k not in ("axes", "axis_name")}
        return rule(axes, names, operands, **params)

    return replace_collectives(closed, axes, results)


# ---- rules: (axes, names, operands, **params) -> results


def _reducing(combine: str) -> Callable:
    def rule(axes, names, operands, *, axis_index_groups=None):
        groups = axes.groups(names, axis_index_groups)
        return [collective("all_reduce", x, groups, combine=combine) for x in operands]

    return rule


def _tiled(y: Any, k: int, tiled: bool) -> Any:
    """The leading axis put at k, and joined with what is there."""
    y = lax.transpose(y, (*range(1, k + 1), 0, *range(k + 1, y.ndim)))
    return lax.reshape(y, (*y.shape[:k], y.shape[k] * y.shape[k + 1], *y.shape[k + 2 :])) if tiled else y


def _split(x: Any, k: int, size: int, tiled: bool) -> Any:
    """Axis k in front; if tiled, `size` parts of it."""
    if tiled:
        x = lax.reshape(x, (*x.shape[:k], size, x.shape[k] // size, *x.shape[k + 1 :]))
    return lax.transpose(x, (k, *[i for i in range(x.ndim) if i != k]))


def _all_gather(axes, names, operands, *, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
    (x,) = operands
    y = collective("all_gather", x, axes.groups(names, axis_index_groups))
    return [_tiled(y, all_gather_dimension, tiled)]


def _reduce_scatter(axes, names, operands, *, scatter_dimension, axis_size, tiled, axis_index_groups=None):
    (x,) = operands
    rows = _split(x, scatter_dimension, axis_size, tiled)
    return [collective("reduce_scatter", rows, axes.groups(names, axis_index_groups))]


def _all_to_all(axes, names, operands, *, split_axis, concat_axis, tiled, axis_size, axis_index_groups=None):
    (x,) = operands
    rows = _split(x, split_axis, axis_size, tiled)
    y = collective("all_to_all", rows, axes.groups(names, axis_index_groups))
    return [_tiled(y, concat_axis, tiled)]


def _ppermute(axes, names, operands, *, perm):
    (x,) = operands
    pairs = [(group[a], group[b]) for group in axes.groups(names) for a, b in perm]
    return [collective("permute", x, pairs=pairs)]


def _axis_index(axes, names, operands):
    return [entry(axes.position(names))]


RULES: dict[str, Callable] = {
    "psum": _reducing("sum"),
    "psum_invariant": _reducing("sum"),
    "pmax": _reducing("max"),
    "pmin": _reducing("min"),
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "axis_index": _axis_index,
    "pvary": lambda axes, names, operands: list(operands),
    "state_cast": lambda axes, names, operands: list(operands),
}

__all__ = ["RULES", "entry", "mesh_collectives"]
