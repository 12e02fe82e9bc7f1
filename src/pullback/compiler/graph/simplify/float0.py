"""Replaces values of float0, the tangents of integers, by booleans that are False.

They have no bytes, and nothing is computed of them: they are only made, carried and returned. Needed by lowering, which
knows plain element types only; the program's results get their type back where it is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import dtypes_in, map_inner
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.primitive import registry
from pullback.util.dtypes import float0

_BOOL = np.dtype(np.bool_)


def replace_float0(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without float0, also inside of loops and branches. No value of that type is read: arguments of it
    have no memory.
    """
    jaxpr = closed.jaxpr
    if float0 not in dtypes_in(closed):
        return closed
    eqns: list[JaxprEqn] = []
    zeros: dict[tuple[int, ...], Any] = {}

    def new(var: Var) -> Var:
        return Var(ShapedArray(var.aval.shape, _BOOL)) if var.aval.dtype == float0 else var

    def read(atom: Any) -> Any:
        if atom.aval.dtype != float0:
            return atom
        shape = atom.aval.shape
        if shape not in zeros:
            zero: Any = Literal(np.False_, ShapedArray((), _BOOL))
            if shape:
                full = Var(ShapedArray(shape, _BOOL))
                params = {"shape": shape, "broadcast_dimensions": (), "sharding": None}
                eqns.append(JaxprEqn([zero], [full], registry["broadcast_in_dim"], params))
                zero = full
            zeros[shape] = zero
        return zeros[shape]

    for eqn in jaxpr.eqns:
        if eqn.outvars and not eqn.effects and all([v.aval.dtype == float0 for v in eqn.outvars]):
            continue
        eqn = map_inner(eqn, "float0", replace_float0)
        invars, outvars = [read(a) for a in eqn.invars], [new(v) for v in eqn.outvars]
        eqns.append(eqn.replace(invars=invars, outvars=outvars))
    outvars = [read(a) for a in jaxpr.outvars]
    kept = [k for k, v in enumerate(jaxpr.constvars) if v.aval.dtype != float0]
    constvars, consts = [jaxpr.constvars[k] for k in kept], [closed.consts[k] for k in kept]
    invars = [new(v) for v in jaxpr.invars]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)
