"""The type checker of jaxprs: variables are bound once and before use, equations have the types their primitives give.

Run after tracing and between passes when PULLBACK_CHECK is set; the message shows ten equations either side.
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from pullback.util.errors import Explained


class JaxprTypeError(Explained, TypeError):
    """A program (jaxpr) contradicts itself: a variable is missing, or has another type than its equation says.

    This is a fault of the pass that made it, which the message names, not of the program it was made from.
    """


# Equations whose types are right, by their ids, with what that was found of: passes pass most of them on.
Known: TypeAlias = dict[int, tuple[Any, ...]]


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, made_by: str = "tracing", known: Known | None = None) -> None:
    """Raise JaxprTypeError, naming `made_by`, if the jaxpr is ill-formed; `known` is of earlier calls."""
    if known is None:
        known = {}
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    bound: set[Var] = set()
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        if var in bound:
            raise JaxprTypeError(f"after {made_by}: argument {var} is bound twice")
        bound.add(var)
    for number, eqn in enumerate(jaxpr.eqns):
        try:
            _check_eqn(eqn, bound, known)
            with eqn.primitive.scope(eqn.params):
                for inner in jaxprs_in_params(eqn.params):
                    check_jaxpr(inner, made_by, known)
        except JaxprTypeError as error:
            raise JaxprTypeError(f"after {made_by}: equation {number}: {error}\n{_around(jaxpr, number)}") from None
        bound.update(eqn.outvars)
    for atom in jaxpr.outvars:
        if type(atom) is not Literal and atom not in bound:
            raise JaxprTypeError(f"after {made_by}: result {atom} is not bound\n{_around(jaxpr, len(jaxpr.eqns))}")


def _check_eqn(eqn: JaxprEqn, bound: set[Var], known: Known) -> None:
    for atom in eqn.invars:
        if type(atom) is not Literal and atom not in bound:
            raise JaxprTypeError(f"operand {atom} of {eqn.primitive.name} is not bound")
    for var in eqn.outvars:
        if var in bound:
            raise JaxprTypeError(f"result {var} of {eqn.primitive.name} is bound before")
    operands = [atom.aval for atom in eqn.invars]
    facts = (eqn, eqn.primitive, eqn.params, *operands, *[var.aval for var in eqn.outvars])
    before = known.get(id(eqn), ())
    if len(before) == len(facts) and all(map(operator.is_, before, facts)):
        return
    if eqn.primitive.typecheck is not None:
        eqn.primitive.typecheck(*operands, **eqn.params)
    if not eqn.primitive.has_rule("abstract_eval"):
        return
    avals = eqn.primitive.abstract_eval(*operands, **eqn.params)
    avals = list(avals) if eqn.primitive.multiple_results else [avals]
    if len(avals) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn.primitive.name} has {len(avals)} results, the equation binds {len(eqn.outvars)}")
    for aval, var in zip(avals, eqn.outvars):
        if (aval.shape, aval.dtype) != (var.aval.shape, var.aval.dtype):
            raise JaxprTypeError(f"{eqn.primitive.name} gives {aval.short()}, the equation says {var.aval.short()}")
    known[id(eqn)] = facts


def _around(jaxpr: Jaxpr, number: int) -> str:
    shown = range(max(0, number - 10), min(len(jaxpr.eqns), number + 11))
    return "\n".join(f"{'-> ' if i == number else '   '}{i}: {jaxpr.eqns[i]}" for i in shown)
