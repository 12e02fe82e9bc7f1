"""What a policy of `checkpoint` keeps of a program, in bodies of its calls, loops and branches, too.

A body is written twice: one that gives what is kept as further results, and one that takes it as further arguments in
place of computing it. The equation around it follows (`saving` of its primitive): a loop stacks what is kept of its
iterations, branches share the places for values of one type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import ClosedJaxpr, JaxprEqn, Var
from pullback.core.jaxpr import Jaxpr, Literal
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_jaxpr, used_inputs

Policy = Callable[..., Any]
Halves = tuple[ClosedJaxpr, ClosedJaxpr]  # the body that gives what is kept, and the one that takes it


def checkpoint_split(closed: ClosedJaxpr, unknown: tuple[bool, ...], policy: Policy | None):
    """(known, unknown_out, rest, kept) of the body of a checkpoint.

    known: known args -> known results + what of the saved is needed;   rest: that and those args that it needs ->
    unknown results. `kept` says which args these are.
    """
    jaxpr = closed.jaxpr
    giving, taking = _halves(closed, unknown, policy)
    count = len(jaxpr.outvars)
    saved = len(giving.jaxpr.outvars) - count
    known, _, unknown_all, _ = partial_eval_jaxpr(giving, unknown)
    unknown_out = unknown_all[:count]
    rest = dce_jaxpr(taking.jaxpr, unknown_out)
    kept = used_inputs(rest)
    rest = rest.replace(invars=[v for v, k in zip(rest.invars, kept) if k])
    # What follows the results and what is saved are residuals: they are recomputed instead.
    needed = [*[True] * (count - sum(unknown_out)), *kept[:saved]]
    needed += [False] * (len(known.jaxpr.outvars) - len(needed))
    known = ClosedJaxpr(dce_jaxpr(known.jaxpr, needed), known.consts)
    return known, unknown_out, ClosedJaxpr(rest, closed.consts), kept[saved:]


def _halves(closed: ClosedJaxpr, unknown: tuple[bool, ...], policy: Policy | None) -> Halves:
    """The body that gives what is saved behind its results, and the one that takes it in front of its arguments.

    A policy that answers with something that has `moves` says by which equations the value is brought elsewhere, and
    back.
    """
    jaxpr = closed.jaxpr
    unseen = {v for v, unk in zip(jaxpr.invars, unknown) if unk}
    saved: list[Var] = []
    first, again = [], []
    for eqn in jaxpr.eqns:
        unknown_in = [type(a) is not Literal and a in unseen for a in eqn.invars]
        unknown_out = _unknown_results(eqn, unknown_in)
        unseen.update(v for v, unk in zip(eqn.outvars, unknown_out) if unk)
        first.append(eqn)
        how = policy and not any(unknown_in) and policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)
        if how and hasattr(how, "moves"):
            for v in eqn.outvars:
                there, back = how.moves(v)
                first.append(there)
                again.append(back)
                saved.extend(there.outvars)
        elif how:
            saved.extend(eqn.outvars)
        elif policy and eqn.primitive.saving is not None:
            first[-1], taken, inside = _inside(eqn, unknown_in, unknown_out, policy)
            again.append(taken)
            saved.extend(inside)
        else:
            again.append(eqn)
    giving = ClosedJaxpr(jaxpr.replace(eqns=first, outvars=[*jaxpr.outvars, *saved]), closed.consts)
    return giving, ClosedJaxpr(jaxpr.replace(eqns=again, invars=[*saved, *jaxpr.invars]), closed.consts)


def _inside(
    eqn: JaxprEqn, unknown_in: Sequence[bool], unknown_out: Sequence[bool], policy: Policy
) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """The equation whose bodies give what is saved of them, the one whose bodies take it, and what that is."""

    def halves(closed: ClosedJaxpr, unknown: Sequence[bool]) -> Halves:
        return closed.cached(("saving", tuple(unknown), policy), lambda: _halves(closed, tuple(unknown), policy))

    giving, taking, saved, place = eqn.primitive.saving(eqn, unknown_in, unknown_out, halves)
    if not saved:
        return eqn, eqn, []
    names = [Var(aval) for aval in saved]
    return (
        eqn.replace(outvars=[*eqn.outvars, *names], params=giving),
        eqn.replace(invars=[*eqn.invars[:place], *names, *eqn.invars[place:]], params=taking),
        names,
    )


def _unknown_results(eqn: JaxprEqn, unknown_in: Sequence[bool]) -> Sequence[bool]:
    """Which results of an equation are unknown: all, unless it has a body that may compute some from known values."""
    if eqn.primitive.partial_eval is None or not any(unknown_in):
        return [any(unknown_in)] * len(eqn.outvars)
    unknown = {a: unk for a, unk in zip(eqn.invars, unknown_in) if isinstance(a, Var)}
    alone = Jaxpr([], list(unknown), eqn.outvars, [eqn], eqn.effects)
    return partial_eval_jaxpr(ClosedJaxpr(alone, []), list(unknown.values()))[2]
