"""Partial evaluation: run what depends on known values now, record the rest as a jaxpr.

    linearize(f)(x) = (f(x), x_dot -> Df(x) x_dot)

is forward mode with known primals and unknown tangents: the primal work runs, and what is recorded is linear.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    Interpreter,
    Jaxpr,
    JaxprEqn,
    Literal,
    Tracer,
    Var,
    Zero,
    current_interpreter,
    eval_jaxpr,
    tangent_aval,
    trace,
    types,
    using,
)
from pullback.core.source import names_inside, user_source
from pullback.core.staging import JitTracer, RecordingInterpreter
from pullback.transforms.jvp import JVPInterpreter, JVPTracer, RecordedTangent, jvp_jaxpr
from pullback.transforms.remembered import CallRecorder
from pullback.transforms.zeros import instantiate, symbolic
from pullback.util import config, dtypes


class UnknownTracer(JitTracer, RecordedTangent):
    """A value that is not known yet."""

    __slots__ = ()


class PartialInterpreter(RecordingInterpreter):
    """Runs primitives with known operands under the parent, and records the others."""

    tracer_type = UnknownTracer
    lets_out = True
    recorder: Any  # a CallRecorder where this remembers

    def __init__(self, parent: Interpreter, name: str = "<function>"):
        # Without jit, programs of known and of traced values hold the same constants: libraries mix the two.
        mixed = config.value_of("jax_disable_jit")
        remembers = parent.remembers and not mixed
        super().__init__(parent, name, CallRecorder() if remembers else None)
        self.remembers = remembers
        if mixed:
            self.recorder.number = sys.maxsize

    def is_unknown(self, value) -> bool:
        """True for this interpreter's own tracers."""
        return isinstance(value, UnknownTracer) and value.interpreter is self

    def call(self, closed, args):
        unknown, known_args, atoms = [], [], []
        for value in args:
            if type(value) is UnknownTracer and value.interpreter is self:
                unknown.append(True)
                atoms.append(value.jaxpr_var)
            else:
                unknown.append(False)
                known_args.append(value)
        if not atoms:
            return self.parent.call(closed, args)
        known, rest, unknown_out, residuals = split_jaxpr(closed, tuple(unknown))
        outs = self.parent.call(known, known_args)
        operands = [known_args[~r] if r < 0 else outs[r] for r in residuals]
        recorded = iter(self.recorder.call(rest, operands, atoms))
        computed, source = iter(outs), user_source()
        results = []
        for unk in unknown_out:
            if unk:
                var = next(recorded)
                results.append(UnknownTracer(self, var.aval, var, source))
            else:
                results.append(next(computed))
        return results

    def process(self, primitive, args, params):
        if not any(map(self.is_unknown, args)):
            return self.parent.process(primitive, args, params)
        if primitive.partial_eval is not None:
            with using(self.parent):
                return primitive.partial_eval(self, args, params)
        return self.default(primitive, args, params)

    def default(self, primitive, args, params):
        """Record the equation: all its results are unknown."""
        in_avals = list(map(types.type_of_operands(), args))
        avals = primitive.rule("abstract_eval")(*in_avals, **params)
        avals = list(avals) if primitive.multiple_results else [avals]
        if types.in_use() and types.concerns(in_avals, primitive, params):
            avals = types.result_types(primitive, in_avals, params, avals)
        outs = self.emit(primitive, args, params, avals)
        return outs if primitive.multiple_results else outs[0]

    def process_custom_jvp(self, custom, fun, jvp, args):
        if not any(map(self.is_unknown, args)):
            return self.parent.process_custom_jvp(custom, fun, jvp, args)
        return custom.stage_jvp(self, fun, jvp, args)

    def process_custom_vjp(self, custom, fun, fwd, bwd, args):
        if not any(map(self.is_unknown, args)):
            return self.parent.process_custom_vjp(custom, fun, fwd, bwd, args)
        return custom.stage_vjp(self, fun, fwd, bwd, args)


class LinearizeInterpreter(JVPInterpreter):
    """Forward mode over partial evaluation of concrete values: both transformations of a jaxpr in one step."""

    def call(self, closed, args):
        partial = self.parent
        primals, atoms, bits, bit = [], [], 0, 1
        for value in args:
            if type(value) is JVPTracer and value.interpreter is self:
                tangent = value.tangent
                if type(tangent) is not UnknownTracer:
                    return super().call(closed, args)
                primals.append(value.primal)
                atoms.append(tangent.jaxpr_var)
                bits += bit
            else:
                primals.append(value)
            bit += bit
        known, rest, moves, residuals = closed.derived.get(bits) or closed.cached(
            bits, lambda: _linearized(closed, bits)
        )
        if known is None:
            return super().call(closed, args)
        outs = partial.parent.call(known, primals)
        if rest is None:  # behind the results come residuals, for tangents that nothing wants
            return outs[: len(closed.jaxpr.outvars)]
        operands = [primals[~r] if r < 0 else outs[r] for r in residuals]
        source = user_source()
        for k, var in zip(moves, partial.recorder.call(rest, operands, atoms)):
            outs[k] = JVPTracer(self, outs[k], UnknownTracer(partial, var.aval, var, source))
        return outs[: len(closed.jaxpr.outvars)]


def _linearized(closed: ClosedJaxpr, bits: int):
    """(known, rest, moves, places): arguments -> results and residuals; residuals and tangents -> tangents.

    Argument k has a tangent where bit k is set, and result k if it is in `moves`. `rest` is None if no result has one,
    `known` is None if a tangent does not depend on the arguments'; places are those of `split_jaxpr`.
    """
    if not bits:
        return closed, None, (), []
    count = len(closed.jaxpr.invars)
    nonzeros = [bool(bits >> k & 1) for k in range(count)]
    jaxpr_dot, nonzeros_out = jvp_jaxpr(closed, nonzeros)
    known, rest, unknown_out, places = split_jaxpr(jaxpr_dot, (False,) * count + (True,) * sum(nonzeros))
    is_linear = list(unknown_out) == [False] * len(nonzeros_out) + [True] * sum(nonzeros_out)
    moves = [k for k, nonzero in enumerate(nonzeros_out) if nonzero]
    return (known if is_linear else None), (rest if moves else None), moves, places


def linearize_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any]):
    """(outs, jaxpr, consts, outs_dot) of flat `fun` at the primals.

    `jaxpr` takes the tangents of all primals, and gives those of the results for which outs_dot[i] is None; the other
    tangents are symbolic zeros in outs_dot.
    """
    partial = PartialInterpreter(current_interpreter(), getattr(fun, "__name__", "linearize"))
    forward = LinearizeInterpreter(partial)
    recorder = partial.recorder
    try:
        with using(forward), names_inside(("jvp",)):
            invars, joined = [], []
            type_of = types.type_of_operands()
            for p in primals:
                argument = partial.new_argument(tangent_aval(type_of(p)))
                invars.append(argument.jaxpr_var)
                joined.append(p if argument.aval.dtype == dtypes.float0 else JVPTracer(forward, p, argument))
            results = fun(*joined)
        outs, atoms, zeros = [], [], []
        for out in results:
            primal, tangent = forward.split(out)
            if type(tangent) is not UnknownTracer:
                tangent = symbolic(tangent)
            outs.append(primal)
            zeros.append(tangent if type(tangent) is Zero else None)
            if type(tangent) is not Zero:
                atoms.append(partial.atom(tangent))
        taped = recorder.tape(invars, atoms) if type(recorder) is CallRecorder else None
        if taped is not None:
            return outs, *taped, zeros
        jaxpr, consts = recorder.jaxpr(invars, atoms)
        return outs, dce_jaxpr(jaxpr), consts, zeros
    finally:
        partial.invalidate()
        forward.valid = False


def split_jaxpr(closed: ClosedJaxpr, unknown: tuple[bool, ...]):
    """(known, rest, unknown_out, places): as `partial_eval_jaxpr`, but no residual is computed that is there already.

    places: where each residual is; k: result k of `known`, ~k: its argument k.
    """

    def make():
        known, rest, unknown_out, _ = partial_eval_jaxpr(closed, unknown)
        jaxpr = known.jaxpr
        count = len(unknown_out) - sum(unknown_out)
        outvars, places = jaxpr.outvars[:count], []
        for atom in jaxpr.outvars[count:]:
            if atom in jaxpr.invars:
                places.append(~jaxpr.invars.index(atom))
                continue
            if atom not in outvars:
                outvars.append(atom)
            places.append(outvars.index(atom))
        return known.replace(jaxpr=jaxpr.replace(outvars=outvars)), rest, unknown_out, places

    return closed.cached(("split", unknown), make)


def partial_eval_jaxpr(closed: ClosedJaxpr, unknown: Sequence[bool], instantiated: bool | Sequence[bool] = False):
    """(known, rest, unknown_out, res_avals): split a jaxpr at the given unknown arguments.

    known: known args -> known results + residuals;   rest: residuals + unknown args -> unknown results.
    `instantiated` says which results (or all) shall count as unknown even where they are known. Cached on the jaxpr.
    """
    unknown = tuple(map(bool, unknown))
    count = len(closed.jaxpr.outvars)
    wanted = (instantiated,) * count if isinstance(instantiated, bool) else tuple(map(bool, instantiated))

    def make():
        found: list[Any] = []
        info = closed.jaxpr.debug_info.without_names()

        def fun(*known_args):
            staging = current_interpreter()
            partial = PartialInterpreter(staging, info.func_name)
            known = iter(known_args)
            unknown_args = []
            with using(partial):
                args = []
                for aval, unk in zip(closed.in_avals, unknown):
                    if unk:
                        unknown_args.append(partial.new_argument(aval))
                        args.append(unknown_args[-1])
                    else:
                        args.append(next(known))
                outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
            unknown_out = [w or partial.is_unknown(out) for w, out in zip(wanted, outs)]
            jaxpr, consts = partial.finish(
                [t.jaxpr_var for t in unknown_args], [out for out, unk in zip(outs, unknown_out) if unk], info
            )
            jaxpr = dce_jaxpr(jaxpr)  # what no tangent needs is no residual
            needed = _mentioned(jaxpr)
            held = [(v, c) for v, c in zip(jaxpr.constvars, consts) if v in needed]
            staged = [(v, c) for v, c in held if isinstance(c, Tracer)]
            fixed = [(v, c) for v, c in held if not isinstance(c, Tracer)]
            rest = jaxpr.replace(constvars=[v for v, _ in fixed], invars=[v for v, _ in staged] + jaxpr.invars)
            found[:] = [ClosedJaxpr(rest, [c for _, c in fixed]), tuple(unknown_out), [v.aval for v, _ in staged]]
            return [out for out, unk in zip(outs, unknown_out) if not unk] + [c for _, c in staged]

        known = trace(fun, [a for a, unk in zip(closed.in_avals, unknown) if not unk], info)
        return known, found[0], found[1], found[2]

    return closed.cached(("partial_eval", unknown, wanted), make)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool] | None = None) -> Jaxpr:
    """The jaxpr without equations that no kept result needs; arguments stay as they are."""
    outvars = jaxpr.outvars if used_outputs is None else [v for v, used in zip(jaxpr.outvars, used_outputs) if used]
    live = {v for v in outvars if type(v) is not Literal}
    kept: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        if not any(used) and not eqn.effects:
            continue
        if eqn.primitive.dce is not None:
            eqn = eqn.primitive.dce(eqn, used)
        kept.append(eqn)
        live.update(v for v in eqn.invars if type(v) is not Literal)
    return jaxpr.replace(outvars=outvars, eqns=kept[::-1])


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Which arguments an equation or result of the jaxpr mentions."""
    used = _mentioned(jaxpr)
    return [v in used for v in jaxpr.invars]


def _mentioned(jaxpr: Jaxpr) -> set[Var]:
    """What equations and results mention."""
    atoms: tuple[Any, ...] = (*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars)
    return {a for a in atoms if type(a) is not Literal}


def partial_eval_by_splitting(
    interpreter: PartialInterpreter,
    primitive,
    closed: ClosedJaxpr,
    args,
    params,
    rebuild: Callable[[ClosedJaxpr, dict, bool], dict],
) -> list:
    """The partial_eval rule of call-like primitives: run the known half, record the unknown half.

    `rebuild(jaxpr, params, known)` gives the params of either half.
    """
    unknown = [interpreter.is_unknown(a) for a in args]
    known, rest, unknown_out, places = split_jaxpr(closed, tuple(unknown))
    known_args = [a for a, unk in zip(args, unknown) if not unk]
    outs = primitive.bind(*known_args, **rebuild(known, params, True))
    known_outs = iter(outs)
    residuals = [outs[place] if place >= 0 else known_args[~place] for place in places]
    rest_args = residuals + [a for a, unk in zip(args, unknown) if unk]
    recorded = iter(interpreter.emit(primitive, rest_args, rebuild(rest, params, False), rest.out_avals))
    return [next(recorded) if unk else next(known_outs) for unk in unknown_out]


def split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """The items in runs of the given sizes, and one more run with what remains."""
    runs, start = [], 0
    for size in sizes:
        runs.append(list(items[start : start + size]))
        start += size
    runs.append(list(items[start:]))
    return runs


__all__ = [
    "Interpreter",
    "PartialInterpreter",
    "UnknownTracer",
    "Var",
    "dce_jaxpr",
    "instantiate",
    "linearize_flat",
    "partial_eval_by_splitting",
    "partial_eval_jaxpr",
    "split_list",
    "used_inputs",
]
