"""Common subexpressions: equal equations of equal operands are computed once.

Before: b = sin a; c = sin a; d = add b c; after: b = sin a; d = add b b. Barriers and equations with effects are left
alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import map_inner
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var


def eliminate_common_subexpressions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each value computed once, also inside of loops and branches."""
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = {}
    seen: dict[Any, list[Var]] = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        new = map_inner(eqn, "cse", eliminate_common_subexpressions)
        for atom in eqn.invars:
            if type(atom) is not Literal and atom in env:
                new = new.replace(invars=[a if isinstance(a, Literal) else env.get(a, a) for a in eqn.invars])
                break
        key = None if eqn.effects or "barrier" in eqn.primitive.traits else equation_key(new)
        if key is not None:
            found = seen.get(key)
            if found is not None and all(a.aval == b.aval for a, b in zip(found, eqn.outvars)):
                env.update(zip(eqn.outvars, found))
                continue
            seen[key] = eqn.outvars
        eqns.append(new)
    if not env and all(a is b for a, b in zip(eqns, jaxpr.eqns)):
        return closed
    outvars = [a if isinstance(a, Literal) else env.get(a, a) for a in jaxpr.outvars]
    return closed.replace(jaxpr=Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info))


def equation_key(eqn: JaxprEqn) -> Hashable | None:
    """Equal for equations that compute the same; None for one whose parameters cannot be compared."""
    operands = [atom_key(a) if type(a) is Literal else a for a in eqn.invars]
    if "commutative" in eqn.primitive.traits:
        operands.sort(key=_position)
    params = params_key(eqn)
    return None if params is None else (eqn.primitive, tuple(operands), params)


def params_key(eqn: JaxprEqn) -> Hashable | None:
    """Equal for equal parameters; None if they cannot be compared."""
    if not eqn.params:
        return ()
    params = tuple([(name, tuple(v) if isinstance(v, list) else v) for name, v in eqn.params.items()])
    try:
        hash(params)
    except TypeError:
        return None
    return params


def _position(operand: Any) -> int:
    return operand.count if isinstance(operand, Var) else -1


def atom_key(atom: Any) -> Any:
    """Equal for equal literals, the variable itself else."""
    if isinstance(atom, Literal):
        value = np.asarray(atom.val)
        return value.tobytes(), value.dtype.str, atom.aval
    return atom
