"""Forward mode: every value carries its tangent, and each primitive's jvp rule pushes tangents along.

jvp(f)(x, x_dot) = (f(x), Df(x) x_dot)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from pullback.core import (
    ZERO,
    ClosedJaxpr,
    Interpreter,
    Tracer,
    Zero,
    current_interpreter,
    eval_jaxpr,
    hooks,
    trace,
    types,
    using,
)
from pullback.core.source import names_inside, user_source
from pullback.core.staging import check_alive
from pullback.transforms.zeros import instantiate, symbolic, zero_tangent
from pullback.util import dtypes

_NOTHING = nullcontext()


class RecordedTangent:
    """Mark of tangents that are recorded, for a backward pass, and not computed."""

    __slots__ = ()
    aval: Any


def _shown(value):
    return repr(value) if isinstance(value, Tracer) else str(value)


class JVPTracer(Tracer):
    """A primal with a tangent that is not known to vanish."""

    __slots__ = ("primal", "tangent")

    def __init__(self, interpreter, primal, tangent, source=None):
        self.interpreter = interpreter
        self.primal = primal
        self.tangent = tangent
        self.aval = types.type_of(primal)
        self.source = source

    def __repr__(self):
        if isinstance(self.tangent, RecordedTangent):
            return f"GradTracer(primal={_shown(self.primal)}, typeof(tangent)={self.tangent.aval.short()})"
        return f"JVPTracer(primal={_shown(self.primal)}, tangent={_shown(self.tangent)})"

    def beneath(self):
        return next((x for x in (self.primal, self.tangent) if isinstance(x, Tracer)), None)

    def to_concrete(self):
        primal = self.primal
        return primal.to_concrete() if isinstance(primal, Tracer) else primal


NUMBERS = frozenset({int, float, complex, bool})
_CONVERTED = NUMBERS | {np.ndarray, *np.sctypeDict.values()}


def _as_array(x: Any) -> Any:
    """x, as an array if it is a Python number, which `jvp` lets through, or NumPy's, of which libraries make tracers:
    rules ask for shapes and types, and programs for arrays."""
    return hooks.asarray(x) if type(x) in _CONVERTED and getattr(x, "dtype", None) != dtypes.float0 else x


class JVPInterpreter(Interpreter):
    """Runs primals and tangents under the parent."""

    transformation = "differentiation (grad, jvp)"
    lets_out = True
    differentiates = True

    def __init__(self, parent: Interpreter, tag: object = None):
        del tag  # libraries make one for each trace; here the interpreters themselves are told apart
        self.parent = parent
        self.valid = True
        self.remembers = parent.remembers

    def call(self, closed, args):
        primals, tangents, nonzeros = [], [], []
        for value in args:
            moves = type(value) is JVPTracer and value.interpreter is self
            nonzeros.append(moves)
            primals.append(_as_array(value.primal if moves else value))
            if moves:
                tangents.append(_as_array(value.tangent))
        if not tangents:
            return self.parent.call(closed, args)
        key = ("jvp", *nonzeros)
        jaxpr_dot, moves = closed.derived.get(key) or closed.cached(key, lambda: _with_tangents(closed, nonzeros))
        outs = self.parent.call(jaxpr_dot, primals + tangents)
        count = len(closed.jaxpr.outvars)
        source = user_source()
        for k, tangent in zip(moves, outs[count:]):
            outs[k] = JVPTracer(self, outs[k], tangent, source)
        return outs[:count]

    def split(self, value) -> tuple[Any, Any]:
        """(primal, tangent) of any value; what is not ours is a constant."""
        if isinstance(value, JVPTracer) and value.interpreter is self:
            return value.primal, value.tangent
        if isinstance(value, Tracer):
            check_alive(value)
        return value, zero_tangent(value)

    def join(self, primal, tangent):
        """A value with the tangent; just the primal where the tangent vanishes."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(self, primitive, args, params):
        primals, tangents = zip(*map(self.split, args)) if args else ((), ())
        if all(type(t) is Zero for t in tangents) or primitive.jvp is ZERO:
            return self.parent.process(primitive, primals, params)
        if types.in_use():
            lacking = types.missing(primitive, list(map(types.type_on_mesh, primals)), params)
            if lacking is not None:
                given = [types.with_axes(self.process, a, axes) if axes else a for a, axes in zip(args, lacking)]
                primals, tangents = zip(*map(self.split, given))
        return self.by_rule(primitive, primals, tangents, params)

    def by_rule(self, primitive, primals, tangents, params):
        """The primitive's own rule, under the parent."""
        if not primitive.takes_numbers:
            primals, tangents = map(_as_array, primals), map(_as_array, tangents)
            primals, tangents = tuple(primals), tuple(tangents)
        with using(self.parent), types.of_rule("jvp") if types.in_use() else _NOTHING:
            out, out_dot = primitive.rule("jvp")(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.join(p, t) for p, t in zip(out, out_dot)]
        return self.join(out, out_dot)

    def process_custom_jvp(self, custom, fun, jvp, args):
        primals, tangents = zip(*map(self.split, args)) if args else ((), ())
        if all(type(t) is Zero for t in tangents):
            with using(self.parent):  # a tracer of ours that the function closes over is an error
                return self.parent.process_custom_jvp(custom, fun, jvp, primals)
        with using(self.parent):
            outs, outs_dot = jvp(primals, tangents)
        return [self.join(p, symbolic(t)) for p, t in zip(outs, outs_dot)]

    def process_custom_vjp(self, custom, fun, fwd, bwd, args):
        primals, tangents = zip(*map(self.split, args)) if args else ((), ())
        if all(type(t) is Zero for t in tangents):
            with using(self.parent):
                return self.parent.process_custom_vjp(custom, fun, fwd, bwd, primals)
        with using(self.parent):
            outs, outs_dot = custom.linearize(fwd, bwd, primals, tangents)
        return [self.join(p, symbolic(t)) for p, t in zip(outs, outs_dot)]


def _with_tangents(closed: ClosedJaxpr, nonzeros: Sequence[bool]) -> tuple[ClosedJaxpr, list[int]]:
    """(jaxpr of primals and tangents, which results have a tangent)."""
    jaxpr_dot, nonzeros_out = jvp_jaxpr(closed, nonzeros)
    return jaxpr_dot, [k for k, nonzero in enumerate(nonzeros_out) if nonzero]


def jvp_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]):
    """(outs, outs_dot) of flat `fun`; tangents in and out may be `Zero`."""
    interpreter = JVPInterpreter(current_interpreter())
    try:
        with using(interpreter), names_inside(("jvp",)):
            outs = fun(*[interpreter.join(p, symbolic(t)) for p, t in zip(primals, tangents)])
            pairs = [interpreter.split(out) for out in outs]
    finally:
        interpreter.valid = False
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiated: bool | Sequence[bool] = False):
    """(jaxpr', nonzeros_out): jaxpr' takes primals, then the nonzero tangents, and gives primals, then nonzero
    tangents.

    `instantiated` says which results (or all) must have a tangent even where it vanishes. Cached on the jaxpr.
    """
    nonzeros = tuple(map(bool, nonzeros))
    count = len(closed.jaxpr.outvars)
    wanted = (instantiated,) * count if isinstance(instantiated, bool) else tuple(map(bool, instantiated))

    def make():
        nonzeros_out: list[bool] = []

        def fun(*args):
            primals = args[: len(nonzeros)]
            given = iter(args[len(nonzeros) :])
            tangents = [next(given) if nz else zero_tangent(p) for p, nz in zip(primals, nonzeros)]
            outs, outs_dot = jvp_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
            nonzeros_out[:] = [w or type(t) is not Zero for w, t in zip(wanted, outs_dot)]
            return outs + [instantiate(t) for t, nz in zip(outs_dot, nonzeros_out) if nz]

        in_avals = closed.in_avals
        avals = in_avals + [a.to_tangent_aval() for a, nz in zip(in_avals, nonzeros) if nz]
        return trace(fun, avals, closed.jaxpr.debug_info.without_names()), tuple(nonzeros_out)

    return closed.cached(("jvp", nonzeros, wanted), make)
