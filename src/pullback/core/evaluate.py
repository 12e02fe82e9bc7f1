"""Running a jaxpr: bind each equation's primitive under the current interpreter."""

from __future__ import annotations

from typing import Any

from pullback.core.jaxpr import Jaxpr, Literal, Var
from pullback.core.source import names_inside


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation's number, the variables that nobody needs after it."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            if type(atom) is not Literal:
                last[atom] = i
    for atom in jaxpr.outvars:
        if type(atom) is not Literal:
            last.pop(atom, None)
    uses: dict[int, list[Var]] = {}
    for var, i in last.items():
        uses.setdefault(i, []).append(var)
    return uses


def eval_jaxpr(jaxpr: Jaxpr, consts, *args, propagate_source_info: bool = True) -> list:
    """Evaluate under the current interpreter; values are dropped after their last use.

    Raises TypeError when the number of arguments is not that of the jaxpr.
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"eval_jaxpr: the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")
    env: dict[Any, object] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    uses = last_uses(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        values = [a.operand if type(a) is Literal else env[a] for a in eqn.invars]
        source = eqn.source_info
        if source is not None and source.name_stack:
            with names_inside(*source.name_stack):
                outs = eqn.primitive.bind(*values, **eqn.params)
        else:
            outs = eqn.primitive.bind(*values, **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outs))
        else:
            env[eqn.outvars[0]] = outs
        for var in uses.get(i, ()):
            env.pop(var, None)
    return [a.operand if type(a) is Literal else env[a] for a in jaxpr.outvars]
