"""Derivative rules on concrete small arrays, traced once for each kind of operands and then run as plans.

Eager `grad` runs a function anew each time, as it may depend on values; but what the rule of one primitive does for
operands of given types is always the same. So the second time that a rule is wanted it is traced: linearization gives
a plan for the primal result with the residuals, and the linear equations that are recorded; transposition gives a plan
for the cotangents. From then on an operation costs one call of each instead of the rule's Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback._ext import _core
from pullback.core import Literal, UndefinedPrimal, Zero, eval_interpreter, hooks, trace
from pullback.core.source import user_source
from pullback.util import config
from pullback.util.errors import UNTRACEABLE
from pullback.util.switches import switches

SMALL = 1 << 13  # elements; larger work is better compiled, operation by operation
MAX_RULES = 4096


@dataclass(slots=True)
class _Linearized:
    """One primitive linearized at operands of some types."""

    run: Callable[[list[Any]], list[Any]]  # primals -> results, then residuals
    residuals: list[int]  # where each residual is: primal k as ~k, otherwise its number among what `run` gives
    eqns: list[Any]  # the linear equations
    invars: list[Any]  # of those: residuals, then nonzero tangents
    outvar: Any


@dataclass(slots=True)
class _Transposed:
    """One linear equation transposed for known operands and cotangents of some types."""

    run: Callable[[list[Any]], list[Any]] | None
    places: list[int | None]  # which of what `run` gives is the cotangent of each operand; None: it vanishes


_linearized: dict[Any, Any] = {}  # False: seen once; None: stays Python
_transposed: dict[Any, Any] = {}


def clear() -> None:
    """Forget all."""
    _linearized.clear()
    _transposed.clear()


def _found(memory: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """What is remembered; made at the second time that it is asked for."""
    try:
        found = memory.get(key)
    except TypeError:  # a parameter without a hash
        return None
    if found is None:
        if key in memory:
            return None
        if len(memory) > MAX_RULES:
            memory.clear()
        memory[key] = False
        return None
    if found is False:
        try:
            found = make()
        except Exception as error:  # such a rule stays Python, which shows the error if it is one
            if switches.check and not isinstance(error, UNTRACEABLE):
                raise
            found = None
        memory[key] = found
    return found


# ---- linearization


def linearize_rule(
    partial: Any, primitive: Any, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any] | None:
    """(result, tangent) as the primitive's jvp rule gives them under `partial`; None where that must run itself."""
    if partial.parent is not eval_interpreter() or primitive.partial_eval is not None or primitive.multiple_results:
        return None
    size = 0
    for p in primals:
        if type(p) is not _core.Array:
            return None
        size += p.size
    if size > SMALL:
        return None
    avals = [p.aval for p in primals]
    nonzero = [type(t) is not Zero for t in tangents]
    key = (primitive, *avals, *nonzero, *params.items(), config.epoch())
    rule = _found(_linearized, key, lambda: _linearize(primitive, avals, nonzero, params))
    if rule is None:
        return None
    primals = list(primals)
    outs = rule.run(primals)
    recorder = partial.recorder
    env: dict[Any, Any] = {}
    residuals = rule.residuals
    for var, place in zip(rule.invars, residuals):
        env[var] = recorder.const(primals[~place] if place < 0 else outs[place])
    given = [t for t in tangents if type(t) is not Zero]
    for var, tangent in zip(rule.invars[len(residuals) :], given):
        env[var] = partial.atom(tangent)
    source = user_source()
    for eqn in rule.eqns:
        atoms = [a if type(a) is Literal else env[a] for a in eqn.invars]
        outvars = recorder.record(eqn.primitive, atoms, [v.aval for v in eqn.outvars], eqn.params, source)
        env.update(zip(eqn.outvars, outvars))
    tracer = partial.tracer_type(partial, rule.outvar.aval, env[rule.outvar])
    tracer.source = source
    return outs[0], tracer


def _linearize(primitive: Any, avals: list[Any], nonzero: list[bool], params: dict[str, Any]) -> _Linearized | None:
    n = len(avals)

    def fun(*args: Any) -> list[Any]:
        moving = iter(args[n:])
        tangents = [next(moving) if nz else Zero(a.to_tangent_aval()) for a, nz in zip(avals, nonzero)]
        return list(primitive.rule("jvp")(args[:n], tangents, **params))

    from pullback.transforms.partial_eval import partial_eval_jaxpr  # which uses this module

    closed = trace(fun, avals + [a.to_tangent_aval() for a, nz in zip(avals, nonzero) if nz])
    unknown = [False] * n + [True] * sum(nonzero)
    known, rest, unknown_out, _ = partial_eval_jaxpr(closed, unknown)
    if list(unknown_out) != [False, True] or rest.consts or type(rest.jaxpr.outvars[0]) is Literal:
        return None
    # A residual that is an operand need not be copied.
    jaxpr = known.jaxpr
    outvars, places = jaxpr.outvars[:1], []
    for var in jaxpr.outvars[1:]:
        if var in jaxpr.invars:
            places.append(~jaxpr.invars.index(var))
        else:
            places.append(len(outvars))
            outvars.append(var)
    run = hooks.plan(known.replace(jaxpr=jaxpr.replace(outvars=outvars)))
    return None if run is None else _Linearized(run, places, rest.eqns, rest.jaxpr.invars, rest.jaxpr.outvars[0])


# ---- transposition


def transpose_rule(eqn: Any, bar: Any, operands: Sequence[Any]) -> list[Any] | None:
    """The cotangents of an equation's operands as its transpose rule gives them; None where that must run itself."""
    primitive = eqn.primitive
    if type(bar) is not _core.Array or primitive.multiple_results or primitive.partial_eval is not None:
        return None
    if bar.size > SMALL:
        return None
    kinds: list[Any] = []
    values = []
    for x in operands:
        if type(x) is UndefinedPrimal:
            if x.aval.size > SMALL:
                return None
            kinds.append((x.aval,))
            continue
        if type(x) is not _core.Array:
            x = hooks.asarray(x)
            if type(x) is not _core.Array:
                return None
        kinds.append(x.aval)
        values.append(x)
    key = (primitive, bar.aval, *kinds, *eqn.params.items(), config.epoch())
    rule = _found(_transposed, key, lambda: _transpose(primitive, bar.aval, kinds, eqn.params))
    if rule is None:
        return None
    values.append(bar)
    outs = rule.run(values)
    return [None if place is None else outs[place] for place in rule.places]


def _transpose(primitive: Any, bar: Any, kinds: list[Any], params: dict[str, Any]) -> _Transposed | None:
    places: list[int | None] = []

    def fun(*args: Any) -> list[Any]:
        values = iter(args)
        operands = [UndefinedPrimal(k[0]) if isinstance(k, tuple) else next(values) for k in kinds]
        bars = primitive.rule("transpose")(args[-1], *operands, **params)
        outs: list[Any] = []
        for x in bars:
            moves = x is not None and type(x) is not Zero
            places.append(len(outs) if moves else None)
            if moves:
                outs.append(x)
        return outs

    closed = trace(fun, [k for k in kinds if not isinstance(k, tuple)] + [bar])
    run = hooks.plan(closed)
    return None if run is None else _Transposed(run, places)
