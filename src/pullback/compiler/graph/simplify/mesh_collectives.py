"""Writes collectives over the axes of a mesh as operations between its devices, for the program that each runs.

Before: b = psum[axes=('i',)] a; after: b = device_all_reduce[groups=((0, 1), (2, 3)) site=0] a, on a mesh of shape
(2, 2) whose second axis is 'i'. Runs on a flat program (after `inline`), also inside of loops and branches, where every
device must come to the same operations. Devices are numbered row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.compiler.graph.simplify.inline import inline
from pullback.core.interpreter import extend_axis_env
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.staging import trace
from pullback.lax.collectives.exchange import device_index_p
from pullback.lax.collectives.native import collective


class MeshAxes:
    """The axes of a mesh, name -> size in order, and the groups of devices along them."""

    def __init__(self, sizes: Mapping[Any, int]) -> None:
        self.sizes = dict(sizes)
        self.numbers = np.arange(int(np.prod(list(self.sizes.values()), dtype=int))).reshape(tuple(self.sizes.values()))

    def groups(self, names: Sequence[Any], within: Any = None) -> tuple[tuple[int, ...], ...]:
        """The devices that differ along these axes only, the first one the slowest; `within`: groups of positions."""
        order = list(self.sizes)
        along = [order.index(n) for n in names]
        rest = [k for k in range(len(order)) if k not in along]
        rows = self.numbers.transpose(*rest, *along).reshape(-1, *[self.numbers.shape[k] for k in along])
        found = [tuple(int(i) for i in row.ravel()) for row in rows]
        if within is not None:
            found = [tuple(group[i] for i in part) for group in found for part in within]
        return tuple(found)

    def position(self, names: Sequence[Any]) -> np.ndarray:
        """Of each device, its position along these axes."""
        groups = self.groups(names)
        table = np.zeros(self.numbers.size, np.int32)
        for group in groups:
            for place, device in enumerate(group):
                table[device] = place
        return table


def entry(table: Any) -> Any:
    """The element of a table that belongs to the device that runs."""
    return lax.dynamic_index_in_dim(np.asarray(table), device_index_p.bind(), 0, keepdims=False)


def mesh_collectives(closed: ClosedJaxpr, sizes: Mapping[Any, int]) -> ClosedJaxpr:
    """The program of one device of a mesh. NotImplementedError names a collective that has no rule."""
    axes = MeshAxes(sizes)
    env = [extend_axis_env(name, size) for name, size in axes.sizes.items()]
    for context in env:
        context.__enter__()
    try:
        return _rewritten(inline(closed), axes)
    finally:
        for context in reversed(env):
            context.__exit__()


def _rewritten(closed: ClosedJaxpr, axes: MeshAxes) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []
    env: dict[Var, Any] = {}
    constvars, consts = list(jaxpr.constvars), list(closed.consts)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars = [read(a) for a in eqn.invars]
        names = () if eqn.primitive.collective_axes is None else tuple(eqn.primitive.collective_axes(eqn.params))
        if not any(name in axes.sizes for name in names):
            params = {key: _inner(value, axes) for key, value in eqn.params.items()}
            eqns.append(eqn.replace(invars=invars, params=params))
            continue
        body = _body(eqn, axes, names)
        scope: dict[Var, Any] = dict(zip(body.jaxpr.invars, invars))
        constvars += body.jaxpr.constvars
        consts += body.consts
        for inner in body.eqns:
            eqns.append(inner.replace(invars=[a if isinstance(a, Literal) else scope.get(a, a) for a in inner.invars]))
        for var, atom in zip(eqn.outvars, body.jaxpr.outvars):
            env[var] = atom if isinstance(atom, Literal) else scope.get(atom, atom)
    outvars = [read(a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)


def _inner(value: Any, axes: MeshAxes) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _rewritten(value, axes)
    if isinstance(value, tuple) and value and all(isinstance(v, ClosedJaxpr) for v in value):
        return tuple(_rewritten(v, axes) for v in value)
    return value


def _body(eqn: JaxprEqn, axes: MeshAxes, names: Sequence[Any]) -> ClosedJaxpr:
    rule = RULES.get(eqn.primitive.name)
    if rule is None or any(name not in axes.sizes for name in names):
        raise NotImplementedError(
            f"shard_map: {eqn.primitive.name} over the axes {tuple(names)} is not supported between processes"
        )
    params = {k: v for k, v in eqn.params.items() if k not in ("axes", "axis_name")}
    return inline(trace(lambda *operands: rule(axes, names, operands, **params), [a.aval for a in eqn.invars]))


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
    "pmax": _reducing("max"),
    "pmin": _reducing("min"),
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "axis_index": _axis_index,
    "pvary": lambda axes, names, operands: list(operands),
}

__all__ = ["RULES", "MeshAxes", "entry", "mesh_collectives"]
