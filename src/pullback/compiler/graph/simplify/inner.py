"""Applying a pass to the jaxprs inside equations (bodies of loops, branches), once per jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params

Pass = Callable[[ClosedJaxpr], ClosedJaxpr]


def has_inner(eqn: JaxprEqn) -> bool:
    """Whether there are closed jaxprs among an equation's parameters; most have none, and each pass asks."""
    if eqn.inner is None:
        eqn.inner = any(
            isinstance(value, ClosedJaxpr) or (isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr))
            for value in eqn.params.values()
        )
    return eqn.inner


def map_inner(eqn: JaxprEqn, name: str, rewrite: Pass) -> JaxprEqn:
    """The equation with `rewrite`, the pass called `name`, applied to every closed jaxpr in its parameters."""
    if eqn.inner is False or not has_inner(eqn):
        return eqn
    params = map_closed(eqn.params, lambda closed: closed.cached(("pass", name), lambda: rewrite(closed)))
    return eqn if params is eqn.params else eqn.replace(params=params)


def map_closed(params: dict[str, Any], rewrite: Pass) -> dict[str, Any]:
    """Parameters with `rewrite` applied to every closed jaxpr among them; the same ones if none changed."""
    changed: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, ClosedJaxpr):
            new = rewrite(value)
            if new is not value:
                changed[key] = new
        elif isinstance(value, tuple) and value and all(isinstance(v, ClosedJaxpr) for v in value):
            new_items = tuple(map(rewrite, value))
            if any(a is not b for a, b in zip(new_items, value)):
                changed[key] = new_items
    return params | changed if changed else params


def dtypes_in(closed: ClosedJaxpr) -> Set[Any]:
    """The types of all elements in a program, also inside of loops and branches; three passes ask."""
    return closed.cached("dtypes", lambda: frozenset([aval.dtype for aval in _avals_in(closed.jaxpr)]))


def _avals_in(jaxpr: Jaxpr) -> set[Any]:
    found = {atom.aval for atom in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)}
    for eqn in jaxpr.eqns:
        found.update([atom.aval for atom in eqn.invars])
        found.update([var.aval for var in eqn.outvars])
        if has_inner(eqn):
            found.update(*map(_avals_in, jaxprs_in_params(eqn.params)))
    return found
