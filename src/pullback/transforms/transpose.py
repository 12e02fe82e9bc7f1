"""Reverse mode, second half: a linear jaxpr run backwards.

if y = A x then x_bar = A^T y_bar, equation by equation in reverse
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from pullback._ext import _core
from pullback.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    UndefinedPrimal,
    Var,
    Zero,
    current_interpreter,
    eval_interpreter,
    hooks,
    trace,
    typeof,
    types,
)
from pullback.core.asked import asked
from pullback.core.jaxpr import bind_again
from pullback.core.source import at_line, calling_line, names_inside
from pullback.transforms.partial_eval import partial_eval_jaxpr
from pullback.transforms.remembered import Tape, remembered_transpose
from pullback.transforms.zeros import add_cotangents, are_of_integers, cotangent_aval, instantiate, symbolic

_NOTHING = nullcontext()


def backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any] | None,
    cotangents: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Cotangents of the linear args (those that are UndefinedPrimal, or all for None; None for the others), given those
    of the results. Those of arguments that are not `wanted` are left out of the work, and may be anything.

    Cotangents in and out may be `Zero`. Equations without linear operands are evaluated on the way.
    """
    if wanted is None and type(jaxpr) is Tape and current_interpreter() is eval_interpreter():
        found = _from_memory(jaxpr, consts, cotangents)
        if found is not None:
            return found
    if wanted is not None and type(jaxpr) is Tape:  # what is left out is a part of a function
        jaxpr, more = jaxpr.spelled_out()
        consts = [*consts, *more]
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    linear: set[Var] = set(jaxpr.invars) if args is None else set()
    for var, arg in zip(jaxpr.invars, args or ()):
        if type(arg) is UndefinedPrimal:
            linear.add(var)
        else:
            known[var] = arg

    backwards = _evaluated(jaxpr, known, linear)
    if wanted is not None:
        backwards = _leading_to(backwards, [v for v, want in zip(jaxpr.invars, wanted, strict=True) if want])

    bars: dict[Var, Any] = {}

    def accumulate(atom, bar):
        if types.in_use() and type(atom) is not Literal and bar is not None and type(bar) is not Zero:
            bar = types.cut_as(bar, atom.aval, cotangent=True)
        if type(atom) is not Literal and bar is not None and type(bar) is not Zero and atom in linear:
            bars[atom] = add_cotangents(bars.get(atom), bar)

    for atom, bar in zip(jaxpr.outvars, cotangents):
        accumulate(atom, symbolic(bar))

    of_zeros, here = _transposed_of_zeros(jaxpr, backwards), calling_line()
    # Products of a rule may be ambiguous along explicit axes: what comes out is cut as its value is.
    cut = asked(True) if types.in_use() else _NOTHING
    for eqn in reversed(backwards):
        outs_bar = [bars.pop(v, None) for v in eqn.outvars]
        if all(bar is None for bar in outs_bar) and id(eqn) not in of_zeros:
            continue
        outs_bar = [Zero(v.aval.to_cotangent_aval()) if bar is None else bar for v, bar in zip(eqn.outvars, outs_bar)]
        if of_zeros and id(eqn) not in of_zeros:
            outs_bar = [_converted(bar, v.aval.to_cotangent_aval()) for v, bar in zip(eqn.outvars, outs_bar)]
        operands = [
            a.operand if type(a) is Literal else UndefinedPrimal(a.aval) if a in linear else known[a]
            for a in eqn.invars
        ]
        rule = eqn.primitive.rule("transpose")
        names = eqn.source.name_stack.inside() if eqn.source is not None else ()
        with cut, at_line(here, eqn.source), names_inside(("transpose",), *names):
            args_bar = rule(outs_bar if eqn.primitive.multiple_results else outs_bar[0], *operands, **eqn.params)
        if args_bar is None:
            continue
        for atom, bar in zip(eqn.invars, args_bar):
            accumulate(atom, bar)

    return [bars.get(v, Zero(v.aval.to_cotangent_aval())) if v in linear else None for v in jaxpr.invars]


def _evaluated(jaxpr: Jaxpr, known: dict[Any, Any], linear: set[Var]) -> list[JaxprEqn]:
    """The equations with linear operands, whose results are added to `linear`; all others are evaluated, and their
    results added to `known`.
    """
    backwards = []
    for eqn in jaxpr.eqns:
        if any(type(a) is not Literal and a in linear for a in eqn.invars):
            linear.update(eqn.outvars)
            backwards.append(eqn)
            continue
        values = [a.operand if type(a) is Literal else known[a] for a in eqn.invars]
        outs = bind_again(eqn, values)
        known.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    return backwards


def _transposed_of_zeros(jaxpr: Jaxpr, backwards: Sequence[JaxprEqn]) -> set[int]:
    """The ids of those of the linear equations whose rule is asked though all their cotangents vanish.

    A user's backward function may give more than a multiple of its cotangent: running statistics that are handed on as
    the gradient of an argument. It is asked wherever a result of the program depends on what it belongs to.
    """
    found: set[int] = set()
    if not any(["transposes zeros" in eqn.primitive.traits for eqn in backwards]):
        return found
    wanted = {a for a in jaxpr.outvars if type(a) is not Literal}
    for eqn in reversed(backwards):
        if not wanted.isdisjoint(eqn.outvars):
            wanted.update([a for a in eqn.invars if type(a) is not Literal])
            if "transposes zeros" in eqn.primitive.traits:
                found.add(id(eqn))
    return found


def _converted(bar: Any, aval: Any) -> Any:
    """A cotangent in the dtype that a rule expects: a user's backward function may have given another."""
    if type(bar) is Zero or aval.dtype == typeof(bar).dtype:
        return bar
    return hooks.convert(bar, aval.dtype, False)


def _from_memory(tape: Tape, consts: Sequence[Any], cotangents: Sequence[Any]) -> list[Any] | None:
    """The cotangents of all arguments by a plan for the whole program, if it has been seen before."""
    cotangents = [bar if type(bar) is _core.Array else symbolic(bar) for bar in cotangents]
    found = remembered_transpose(tape, cotangents, _transposed_tape)
    if found is None:
        return None
    closed, nonzero = found
    bars = hooks.run_eagerly(closed, [*consts, *[bar for bar in cotangents if type(bar) is not Zero]])
    if len(bars) == len(nonzero):
        return bars
    given = iter(bars)
    return [next(given) if nz else Zero(v.aval.to_cotangent_aval()) for v, nz in zip(tape.invars, nonzero)]


def _transposed_tape(tape: Tape, cotangents: Sequence[Any]) -> tuple[ClosedJaxpr, list[bool]]:
    """(consts, nonzero cotangents -> those of the arguments; which arguments have one)."""
    avals = [v.aval for v in tape.constvars] + [bar.aval for bar in cotangents if type(bar) is not Zero]
    nonzero: list[bool] = []

    def fun(*flat):
        values = iter(flat[len(tape.constvars) :])
        bars = [bar if type(bar) is Zero else next(values) for bar in cotangents]
        outs = backward_pass(tape, flat[: len(tape.constvars)], None, bars)
        nonzero[:] = [type(out) is not Zero for out in outs]
        return [out for out in outs if type(out) is not Zero]

    return trace(fun, avals, tape.debug_info), nonzero


def _leading_to(eqns: Sequence[Any], wanted: Sequence[Var]) -> list[Any]:
    """The equations whose results depend on these variables: cotangents of theirs come from no others."""
    moving, found = set(wanted), []
    for eqn in eqns:
        if any(type(a) is not Literal and a in moving for a in eqn.invars):
            moving.update(eqn.outvars)
            found.append(eqn)
    return found


def backward_pass_with_residuals(closed: ClosedJaxpr, args: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """As `backward_pass` for a jaxpr that is linear in the UndefinedPrimal args but computes anything else as well.

    The part that does not depend on the linear args is evaluated first.
    """
    unknown = [type(a) is UndefinedPrimal for a in args]
    known, rest, unknown_out, res_avals = partial_eval_jaxpr(closed, unknown)
    outs = known(*[a for a, unk in zip(args, unknown) if not unk])
    residuals = outs[len(outs) - len(res_avals) :] if res_avals else []
    linear_args = [a for a, unk in zip(args, unknown) if unk]
    bars = backward_pass(
        rest.jaxpr, rest.consts, [*residuals, *linear_args], [bar for bar, unk in zip(cotangents, unknown_out) if unk]
    )
    linear_bars = iter(bars[len(residuals) :])
    return [next(linear_bars) if unk else None for unk in unknown]


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: Sequence[bool], cotangents: Sequence[Any], with_residuals: bool = False
):
    """(jaxpr', nonzero_out): jaxpr' takes the non-linear args and the nonzero cotangents, gives the linear args'
    cotangents.

    cotangents: those of the results, Zero where one vanishes; of the others the weak type matters, which may differ
    from their result's. nonzero_out says which linear arguments get one; the others' vanish and are left out. Cached on
    the jaxpr.
    """
    linear = tuple(map(bool, linear))
    nonzero = tuple([type(bar) is not Zero for bar in cotangents])
    strong = tuple(
        [a.weak_type and nz and not typeof(b).weak_type for a, b, nz in zip(closed.out_avals, cotangents, nonzero)]
    )

    integers = are_of_integers(closed.out_avals, cotangents)

    def as_cotangent(aval):
        return cotangent_aval(aval, integers)

    def make():
        nonzero_out: list[bool] = []

        def fun(*flat):
            values = iter(flat)
            args = [UndefinedPrimal(a) if lin else next(values) for a, lin in zip(closed.in_avals, linear)]
            bars = [next(values) if nz else Zero(as_cotangent(a)) for a, nz in zip(closed.out_avals, nonzero)]
            if with_residuals:
                outs = backward_pass_with_residuals(closed, args, bars)
            else:
                outs = backward_pass(closed.jaxpr, closed.consts, args, bars)
            outs = [bar for bar, lin in zip(outs, linear) if lin]
            outs = [_converted(bar, as_cotangent(a)) for bar, a in zip(outs, wanted)]
            nonzero_out[:] = [type(bar) is not Zero for bar in outs]
            return [bar for bar in outs if type(bar) is not Zero]

        wanted = [a for a, lin in zip(closed.in_avals, linear) if lin]
        avals = [a for a, lin in zip(closed.in_avals, linear) if not lin]
        bars = [a.strip_weak_type() if s else a for a, s in zip(closed.out_avals, strong)]
        avals += [as_cotangent(a) for a, nz in zip(bars, nonzero) if nz]
        return trace(fun, avals, closed.jaxpr.debug_info.without_names()), tuple(nonzero_out)

    return closed.cached(("transpose", linear, nonzero, strong, with_residuals, integers), make)


__all__ = ["backward_pass", "backward_pass_with_residuals", "instantiate", "transpose_jaxpr"]
