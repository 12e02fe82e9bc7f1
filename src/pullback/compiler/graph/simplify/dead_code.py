"""Drops equations whose results nobody needs, and the parts of loops that compute only such results."""

from __future__ import annotations

from pullback.compiler.graph.simplify.inner import map_inner
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.transforms.partial_eval import dce_jaxpr


def eliminate_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without unused equations and constants; arguments stay, used or not."""
    jaxpr = dce_jaxpr(closed.jaxpr)
    eqns = [map_inner(eqn, "dead_code", eliminate_dead_code) for eqn in jaxpr.eqns]
    if not closed.consts:
        return ClosedJaxpr(jaxpr.replace(eqns=eqns))
    used = {a for eqn in eqns for a in eqn.invars if type(a) is not Literal}
    used.update(a for a in jaxpr.outvars if type(a) is not Literal)
    kept = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts) if v in used]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns, constvars=[v for v, _ in kept]), [c for _, c in kept])
