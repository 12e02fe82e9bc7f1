"""Jaxprs as users read them: arrays that bodies of loops and branches close over are operands of the equation.

    lax.scan(lambda c, x: (c + x * k, None), c, xs)    # scan[... num_consts=1] k c xs, and k is a const of the program

What runs keeps them inside the bodies, where passes see their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.jaxpr import jaxprs_in_params
from pullback.lax.control.common import KEPT

__all__ = ["with_operands"]

_Outside = Callable[[Any, Var], Var]  # (an array, the variable that it has inside) -> that which it has outside


def with_operands(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program whose loops and branches are given the arrays that they close over; itself where there are none."""
    return closed.cached("with operands", lambda: _with_operands(closed))


def _with_operands(closed: ClosedJaxpr) -> ClosedJaxpr:
    known = {_which(value, var): var for var, value in zip(closed.jaxpr.constvars, closed.consts)}
    values: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))

    def outside(value: Any, inner: Var) -> Var:
        key = _which(value, inner)
        var = known.get(key)
        if var is None:
            var = known[key] = Var(inner.aval)
            values[var] = value
        return var

    eqns = [_eqn(eqn, outside) for eqn in closed.jaxpr.eqns]
    if all(new is old for new, old in zip(eqns, closed.jaxpr.eqns)):
        return closed
    jaxpr = closed.jaxpr.replace(eqns=eqns)
    constvars = in_order_of_use(jaxpr, list(values))
    return ClosedJaxpr(jaxpr.replace(constvars=constvars), [values[v] for v in constvars])


def _which(value: Any, var: Var) -> Any:
    """Equal for what is the same array: of small ones, bodies that are remembered hold copies."""
    if type(value) in (_core.Array, np.ndarray) and value.size <= KEPT:
        return var.aval, np.asarray(value).tobytes()
    return id(value)


def in_order_of_use(jaxpr: Jaxpr, variables: Sequence[Var]) -> list[Var]:
    """The variables in the order in which equations and results name them; those that none names come last."""
    first: dict[Any, int] = {}
    for atoms in (*(eqn.invars for eqn in jaxpr.eqns), jaxpr.outvars):
        for atom in atoms:
            if type(atom) is not Literal:
                first.setdefault(atom, len(first))
    return sorted(variables, key=lambda v: first.get(v, len(first)))


def _eqn(eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    rule = _RULES.get(eqn.primitive.name)
    if rule is not None:
        return rule(eqn, outside)
    if next(iter(jaxprs_in_params(eqn.params)), None) is None:
        return eqn
    params = {k: with_operands(v) if type(v) is ClosedJaxpr else v for k, v in eqn.params.items()}
    return eqn if all(params[k] is v for k, v in eqn.params.items()) else eqn.replace(params=params)


def _opened(closed: ClosedJaxpr, operands: Sequence[Any], outside: _Outside) -> tuple[ClosedJaxpr, list[Any]]:
    """(the body without constants, its leading operands, which were these)."""
    closed = with_operands(closed)
    moved, kept = _parted(closed)
    if not moved:
        return closed, list(operands)
    jaxpr, n = closed.jaxpr, len(operands)
    pairs: dict[Any, Any] = dict(zip(jaxpr.invars[:n], operands))
    pairs |= {var: outside(value, var) for var, value in moved.items()}
    leading = in_order_of_use(jaxpr, list(pairs))
    opened = jaxpr.replace(constvars=list(kept), invars=[*leading, *jaxpr.invars[n:]])
    return ClosedJaxpr(opened, list(kept.values())), [pairs[v] for v in leading]


def _parted(closed: ClosedJaxpr) -> tuple[dict[Var, Any], dict[Var, Any]]:
    """(constants that become operands, those that stay): numbers do, as passes go by them."""
    moved: dict[Var, Any] = {}
    kept: dict[Var, Any] = {}
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        (moved if var.aval.shape else kept)[var] = value
    return moved, kept


def _leading(name: str, eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    """Of a primitive whose first `num_consts` operands are those of the body `name`."""
    n = eqn.params["num_consts"]
    body, consts = _opened(eqn.params[name], eqn.invars[:n], outside)
    if body is eqn.params[name]:
        return eqn
    return eqn.replace(invars=[*consts, *eqn.invars[n:]], params=eqn.params | {name: body, "num_consts": len(consts)})


def _while(eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    params = eqn.params
    n, m = params["cond_nconsts"], params["body_nconsts"]
    cond, cond_consts = _opened(params["cond_jaxpr"], eqn.invars[:n], outside)
    body, body_consts = _opened(params["body_jaxpr"], eqn.invars[n : n + m], outside)
    if cond is params["cond_jaxpr"] and body is params["body_jaxpr"]:
        return eqn
    said = {"cond_jaxpr": cond, "cond_nconsts": len(cond_consts), "body_jaxpr": body, "body_nconsts": len(body_consts)}
    return eqn.replace(invars=[*cond_consts, *body_consts, *eqn.invars[n + m :]], params=params | said)


def _cond(eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    """All branches take what any of them closes over, in the order in which they are traced: cond's true one first."""
    branches = [with_operands(branch) for branch in eqn.params["branches"]]
    parted = {id(branch): _parted(branch) for branch in branches}
    if all(new is old and not parted[id(new)][0] for new, old in zip(branches, eqn.params["branches"])):
        return eqn
    index, *rest = eqn.invars
    given = max([len(branch.jaxpr.debug_info.arg_names or ()) for branch in branches])  # not closed over
    n = max(len(rest) - given, 0)
    of_cond = len(branches) == 2 and branches[0].jaxpr.debug_info.traced_for == "cond"
    held: dict[Any, Any] = {}  # by what it is outside: a variable of some branch that has its type
    own: list[dict[Any, Any]] = []  # of each branch
    for branch in branches[::-1] if of_cond else branches:
        jaxpr = branch.jaxpr
        pairs: dict[Any, Any] = dict(zip(jaxpr.invars[:n], rest[:n]))
        pairs |= {var: outside(value, var) for var, value in parted[id(branch)][0].items()}
        own.append({})
        unused = {v for v in jaxpr.invars[:n] if v not in _mentioned(jaxpr)}
        for var in in_order_of_use(jaxpr, list(pairs)):
            own[-1].setdefault(pairs[var], var)
            if var not in unused:
                held.setdefault(pairs[var], var)
    opened = []
    for branch, known in zip(branches, own[::-1] if of_cond else own):
        leading = [known.get(key) or Var(var.aval) for key, var in held.items()]
        kept = parted[id(branch)][1]
        jaxpr = branch.jaxpr.replace(constvars=list(kept), invars=[*leading, *branch.jaxpr.invars[n:]])
        opened.append(ClosedJaxpr(jaxpr, list(kept.values())))
    return eqn.replace(invars=[index, *held, *rest[n:]], params=eqn.params | {"branches": tuple(opened)})


def _mentioned(jaxpr: Jaxpr) -> set[Any]:
    atoms = (*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars)
    return {a for a in atoms if type(a) is not Literal}


def _checkpoint(eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    body, consts = _opened(eqn.params["jaxpr"], (), outside)
    if body is eqn.params["jaxpr"]:
        return eqn
    return eqn.replace(invars=[*consts, *eqn.invars], params=eqn.params | {"jaxpr": body})


def _solve(eqn: JaxprEqn, outside: _Outside) -> JaxprEqn:
    at, operands, jaxprs, lengths = 0, [], [], []
    for n, closed in zip(eqn.params["const_lengths"], eqn.params["jaxprs"]):
        consts = list(eqn.invars[at : at + n])
        at += n
        if closed is not None:
            closed, consts = _opened(closed, consts, outside)
        operands += consts
        jaxprs.append(closed)
        lengths.append(len(consts))
    if all(new is old for new, old in zip(jaxprs, eqn.params["jaxprs"])):
        return eqn
    kind = type(eqn.params["jaxprs"])
    said = {"const_lengths": kind(*lengths), "jaxprs": kind(*jaxprs)}
    return eqn.replace(invars=[*operands, *eqn.invars[at:]], params=eqn.params | said)


_custom = partial(_leading, "call_jaxpr")

_RULES: dict[str, Callable[[JaxprEqn, _Outside], JaxprEqn]] = {
    "scan": partial(_leading, "jaxpr"), "while": _while, "cond": _cond, "remat2": _checkpoint,
    "custom_jvp_call": _custom, "custom_vjp_call": _custom, "custom_linear_solve": _solve,
}  # fmt: skip
