"""Writes collectives over the devices as exchanges between them, for a program that each device runs by itself.

Before: b = psum[axes=('i',)] a; after: c:f32[2,3] = exchange a; b = reduce_sum[axes=(0,)] c. Runs on a flat program
(after `inline`), also inside of loops and branches, where every device must come to the same exchanges. The devices are
those of a mesh, numbered with its last axis the fastest; a collective over some of its axes is one over groups of them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inline import inline
from pullback.core.interpreter import extend_axis_env
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.staging import trace
from pullback.lax.collectives.exchange import DEVICE_RULES

Mesh = Mapping[Any, int]  # axis -> size


def exchange_collectives(closed: ClosedJaxpr, mesh: Mesh) -> ClosedJaxpr:
    """The program of one of the devices of a mesh, whose collectives over its axes are exchanges.

    NotImplementedError names a collective that has no rule for devices.
    """
    with contextlib.ExitStack() as stack:
        for name, size in mesh.items():
            stack.enter_context(extend_axis_env(name, size))
        return _rewritten(inline(closed), mesh, itertools.count())


def _rewritten(closed: ClosedJaxpr, mesh: Mesh, sites: Iterator[int]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []
    env: dict[Var, Any] = {}
    constvars, consts = list(jaxpr.constvars), list(closed.consts)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars = [read(a) for a in eqn.invars]
        axes = eqn.primitive.collective_axes
        if axes is None or mesh.keys().isdisjoint(axes(eqn.params)):
            params = {key: _inner(value, mesh, sites) for key, value in eqn.params.items()}
            eqns.append(eqn.replace(invars=invars, params=params))
            continue
        body = _body(eqn, mesh, next(sites))
        scope: dict[Var, Any] = dict(zip(body.jaxpr.invars, invars))
        constvars += body.jaxpr.constvars
        consts += body.consts
        for inner in body.eqns:
            eqns.append(inner.replace(invars=[a if isinstance(a, Literal) else scope.get(a, a) for a in inner.invars]))
        for var, atom in zip(eqn.outvars, body.jaxpr.outvars):
            env[var] = atom if isinstance(atom, Literal) else scope.get(atom, atom)
    outvars = [read(a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)


def _inner(value: Any, mesh: Mesh, sites: Iterator[int]) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _rewritten(value, mesh, sites)
    if isinstance(value, tuple) and value and all(isinstance(v, ClosedJaxpr) for v in value):
        return tuple(_rewritten(v, mesh, sites) for v in value)
    return value


def _groups(names: Sequence[Any], within: Any, mesh: Mesh) -> Any:
    """The devices that a collective over these axes is between, in its order, as groups of their numbers; None: all.

    within: axis_index_groups, numbers along the axes.
    """
    every = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    order = list(mesh)
    rest = [k for k, name in enumerate(order) if name not in names]
    count = math.prod(mesh[name] for name in names)
    rows = every.transpose([*rest, *[order.index(name) for name in names]]).reshape(-1, count).tolist()
    if within is not None:
        return tuple(tuple(row[i] for i in group) for row in rows for group in within)
    return None if rows == [list(range(every.size))] else tuple(map(tuple, rows))


def _body(eqn: JaxprEqn, mesh: Mesh, site: int) -> ClosedJaxpr:
    rule = DEVICE_RULES.get(eqn.primitive)
    names = tuple(eqn.primitive.collective_axes(eqn.params))  # type: ignore[misc]
    if rule is None or not set(names) <= set(mesh):
        raise NotImplementedError(
            f"pmap: {eqn.primitive.name} over the axes {names} is not supported for devices that run in parallel"
        )
    params = {k: v for k, v in eqn.params.items() if k != "axis_index_groups"}
    groups = _groups(names, eqn.params.get("axis_index_groups"), mesh)
    size = math.prod(mesh.values())
    traced = trace(
        lambda *operands: rule(operands, size, site, axis_index_groups=groups, **params), [a.aval for a in eqn.invars]
    )
    return inline(traced)
