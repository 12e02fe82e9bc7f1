"""Writes collectives over the devices as exchanges between them, for a program that each device runs by itself.

Before: b = psum[axes=('i',)] a; after: c:f32[2,3] = exchange a; b = reduce_sum[axes=(0,)] c. Runs on a flat program
(after `inline`), also inside of loops and branches, where every device must come to the same exchanges.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.compiler.graph.simplify.on_mesh import MeshAxes, replace_collectives
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn
from pullback.lax.collectives.exchange import DEVICE_RULES


def exchange_collectives(closed: ClosedJaxpr, mesh: Mapping[Any, int]) -> ClosedJaxpr:
    """The program of one of the devices of a mesh (axis -> size), whose collectives over its axes are exchanges.

    NotImplementedError names a collective that has no rule for devices.
    """
    axes = MeshAxes(mesh)
    sites = itertools.count()
    size = axes.numbers.size

    def results(operands: Sequence[Any], eqn: JaxprEqn, names: Sequence[Any]) -> Sequence[Any]:
        rule = DEVICE_RULES.get(eqn.primitive)
        if rule is None or not axes.sizes.keys() >= set(names):
            raise NotImplementedError(
                f"pmap: {eqn.primitive.name} over the axes {names} is not supported for devices that run in parallel"
            )
        within = eqn.params.get("axis_index_groups")
        groups: Any = axes.groups(names, within)
        if within is None and groups == (tuple(range(size)),):
            groups = None  # all of them, in order
        return rule(operands, size, next(sites), **{**eqn.params, "axis_index_groups": groups})

    return replace_collectives(closed, axes, results)
