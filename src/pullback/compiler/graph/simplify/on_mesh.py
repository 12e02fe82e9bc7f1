"""The collectives of a flat program over the axes of a mesh, each replaced by other equations.

What a collective becomes, the passes `exchange_collectives` and `mesh_collectives` say. Devices are numbered row by
row, the last axis of the mesh the fastest; a collective over some of the axes is one over groups of devices.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inline import inline
from pullback.compiler.graph.simplify.inner import map_closed
from pullback.core.interpreter import extend_axis_env
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.staging import trace
from pullback.lax.collectives.sums import check_groups


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
            check_groups(within, len(found[0]), even=False)
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


Rule = Callable[..., Sequence[Any]]  # (operands of the collective, its equation and axes) -> results


def replace_collectives(closed: ClosedJaxpr, axes: MeshAxes, rule: Rule) -> ClosedJaxpr:
    """The program of one device, also inside of loops and branches, with rule(operands, eqn, names) for collectives."""
    with contextlib.ExitStack() as stack:
        for name, size in axes.sizes.items():
            stack.enter_context(extend_axis_env(name, size))
        return _replaced(inline(closed), axes, rule)


def _replaced(closed: ClosedJaxpr, axes: MeshAxes, rule: Rule) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []
    env: dict[Var, Any] = {}
    constvars, consts = list(jaxpr.constvars), list(closed.consts)

    def read(atom: Any, scope: Mapping[Var, Any]) -> Any:
        return atom if isinstance(atom, Literal) else scope.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars = [read(a, env) for a in eqn.invars]
        names = () if eqn.primitive.collective_axes is None else tuple(eqn.primitive.collective_axes(eqn.params))
        if axes.sizes.keys().isdisjoint(names):
            params = map_closed(eqn.params, lambda inner: _replaced(inner, axes, rule))
            eqns.append(eqn.replace(invars=invars, params=params))
            continue
        avals = [a.aval for a in eqn.invars]
        body = inline(trace(lambda *operands, eqn=eqn, names=names: rule(operands, eqn, names), avals))
        scope: dict[Var, Any] = dict(zip(body.jaxpr.invars, invars))
        constvars += body.jaxpr.constvars
        consts += body.consts
        source = eqn.source
        eqns += [
            inner.replace(invars=[read(a, scope) for a in inner.invars], source_info=source) for inner in body.eqns
        ]
        env.update((var, read(atom, scope)) for var, atom in zip(eqn.outvars, body.jaxpr.outvars))
    outvars = [read(a, env) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)


__all__ = ["MeshAxes", "replace_collectives"]
