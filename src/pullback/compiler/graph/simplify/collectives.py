"""Writes collectives over the devices as exchanges between them, for a program that each device runs by itself.

Before: b = psum[axes=('i',)] a; after: c:f32[2,3] = exchange a; b = reduce_sum[axes=(0,)] c. Runs on a flat program
(after `inline`), also inside of loops and branches, where every device must come to the same exchanges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from pullback.compiler.graph.simplify.inline import inline
from pullback.core.interpreter import extend_axis_env
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.staging import trace
from pullback.lax.collectives.exchange import DEVICE_RULES


def exchange_collectives(closed: ClosedJaxpr, name: Any, size: int) -> ClosedJaxpr:
    """The program of one of `size` devices, whose collectives over the axis `name` are exchanges.

    NotImplementedError names a collective that has no rule for devices.
    """
    with extend_axis_env(name, size):
        return _rewritten(inline(closed), name, size, itertools.count())


def _rewritten(closed: ClosedJaxpr, name: Any, size: int, sites: Iterator[int]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []
    env: dict[Var, Any] = {}
    constvars, consts = list(jaxpr.constvars), list(closed.consts)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars = [read(a) for a in eqn.invars]
        axes = eqn.primitive.collective_axes
        if axes is None or name not in axes(eqn.params):
            params = {key: _inner(value, name, size, sites) for key, value in eqn.params.items()}
            eqns.append(eqn.replace(invars=invars, params=params))
            continue
        body = _body(eqn, name, size, next(sites))
        scope: dict[Var, Any] = dict(zip(body.jaxpr.invars, invars))
        constvars += body.jaxpr.constvars
        consts += body.consts
        for inner in body.eqns:
            eqns.append(inner.replace(invars=[a if isinstance(a, Literal) else scope.get(a, a) for a in inner.invars]))
        for var, atom in zip(eqn.outvars, body.jaxpr.outvars):
            env[var] = atom if isinstance(atom, Literal) else scope.get(atom, atom)
    outvars = [read(a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)


def _inner(value: Any, name: Any, size: int, sites: Iterator[int]) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _rewritten(value, name, size, sites)
    if isinstance(value, tuple) and value and all(isinstance(v, ClosedJaxpr) for v in value):
        return tuple(_rewritten(v, name, size, sites) for v in value)
    return value


def _body(eqn: JaxprEqn, name: Any, size: int, site: int) -> ClosedJaxpr:
    rule = DEVICE_RULES.get(eqn.primitive)
    names = eqn.primitive.collective_axes(eqn.params)  # type: ignore[misc]
    if rule is None or tuple(names) != (name,):
        raise NotImplementedError(
            f"pmap: {eqn.primitive.name} over the axes {tuple(names)} is not supported for devices that run in parallel"
        )
    traced = trace(lambda *operands: rule(operands, size, site, **eqn.params), [a.aval for a in eqn.invars])
    return inline(traced)
