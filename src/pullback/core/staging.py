"""Staging: running a Python function on tracers to record it as a jaxpr.

    trace(fun, avals) -> ClosedJaxpr        fun takes and gives flat lists of arrays

A `Recorder` holds the equations; the staging interpreter records every primitive, partial evaluation
(transforms/partial_eval.py) only those with unknown operands.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import extended, types
from pullback.core.avals import AbstractRef, Reference, type_of_operand, typeof
from pullback.core.dimensions import Dimension
from pullback.core.hooks import hooks
from pullback.core.interpreter import Interpreter, current_interpreter, eval_interpreter, using
from pullback.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.source import Origin, SourceInfo, located, names_inside, user_source
from pullback.core.tracer import Tracer
from pullback.util import config, dtypes, errors
from pullback.util.errors import InconclusiveDimensionOperation


class JitTracer(Tracer):
    """A value that is computed when the jaxpr runs; `jaxpr_var` is its name there."""

    __slots__ = ("jaxpr_var",)

    def __init__(self, interpreter: RecordingInterpreter, aval, var: Var, source: SourceInfo | None = None):
        self.interpreter = interpreter
        self.aval = aval
        self.jaxpr_var = var  # not `var`: that is the variance
        self.source = source

    def __repr__(self):
        shown = self.interpreter.shown
        text = None if shown is None or not self.interpreter.valid else shown(self)
        return f"JitTracer({self.aval})" if text is None else text

    def provenance(self):
        origin = self.interpreter.origin
        if origin is None:
            return None
        text = f"The error occurred while tracing {origin}."
        names = self.interpreter.names_behind(self.jaxpr_var)
        if not names:
            return text
        which = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        return f"{text} The value is computed from the argument{'s' if len(names) > 1 else ''} {which}."


_no_effects: frozenset[Any] = frozenset()


class Recorder:
    """Equations under construction, with the constants that they mention."""

    def __init__(self):
        self.eqns: list[JaxprEqn] = []
        self.number = _core.begin_trace()
        self.consts: dict[int, tuple[Any, Var, Any]] = {}  # (array, its variable, the value itself) by id of the value

    def variable(self, aval) -> Var:
        """A new variable of the program."""
        return Var(aval)

    def const(self, value) -> Atom:
        """The atom of a value from outside: a literal for scalars, a constvar for the rest.

        An array without axes that was there before the trace is one too: libraries count what a closure holds.
        """
        if not isinstance(value, Tracer):
            literal = _as_literal(value, self.number)
            if literal is not None:
                return literal
        return self.constvar(value)

    def constvar(self, value) -> Var:
        """The variable of a value from outside."""
        found = self.consts.get(id(value))
        if found is None:
            aval = types.type_on_mesh(value) if types.in_use() else type_of_operand(value)
            whole = type(value) is _core.Array or hasattr(value, "aval") or type(aval) is AbstractRef
            whole = whole or aval.dtype == dtypes.float0
            held = value if whole else hooks.asarray(value)
            found = self.consts[id(value)] = (held, self.variable(aval), value)
        return found[1]

    def record(self, primitive, invars: Sequence[Atom], out_avals: Sequence, params: dict, source=None) -> list[Var]:
        """Append an equation, and give its outvars."""
        variable = self.variable
        outvars = [variable(aval) for aval in out_avals]
        effects = _no_effects if primitive.effects is None else primitive.effects(params)
        self.eqns.append(JaxprEqn(invars, outvars, primitive, params, effects, source or user_source()))
        return outvars

    def jaxpr(self, invars: Sequence[Var], outvars: Sequence[Atom], debug_info: DebugInfo | None = None):
        """(Jaxpr, const values); constants that no equation uses any more are left out."""
        used = {a for eqn in self.eqns for a in eqn.invars if type(a) is not Literal}
        used.update(a for a in outvars if type(a) is not Literal)
        kept = [(value, var) for value, var, _ in self.consts.values() if var in used]
        effects = _no_effects.union(*[eqn.effects for eqn in self.eqns if eqn.effects])
        jaxpr = Jaxpr([var for _, var in kept], invars, outvars, self.eqns, effects, debug_info)
        return jaxpr, [value for value, _ in kept]


def _as_literal(value, trace: int) -> Literal | None:
    kind = type(value)
    if kind in (float, int, bool, complex) or isinstance(value, np.generic):
        return Literal(value)
    if (kind is np.ndarray or (kind is _core.Array and value._made >= trace)) and value.shape == ():
        aval = typeof(value)
        if kind is _core.Array and value._device is not None:
            return None  # a literal does not say where it lies, or that it is to be summed
        return Literal(np.asarray(value)[()], aval) if isinstance(aval.dtype, np.dtype) else None
    return None


class RecordingInterpreter(Interpreter):
    """Base of the interpreters that record: makes tracers, and knows leaked ones."""

    tracer_type: type = JitTracer
    origin: Origin | None = None
    arguments: Sequence[Var] = ()
    shown: Callable[[Any], str | None] | None = None  # the text of a tracer, where its value can be found already

    def __init__(self, parent: Interpreter, name: str = "<function>", recorder: Recorder | None = None):
        self.parent = parent
        self.name = name
        self.recorder = Recorder() if recorder is None else recorder
        self.valid = True

    def new_argument(self, aval) -> JitTracer:
        """A tracer for an argument."""
        kind = StagedReference if type(aval) is AbstractRef else self.tracer_type
        return kind(self, aval, self.recorder.variable(aval))

    def atom(self, value) -> Atom:
        """The atom of a value: own tracers are their variables, all else is a constant."""
        if isinstance(value, Tracer):
            if value.interpreter is self:
                return value.jaxpr_var  # type: ignore[attr-defined]
            check_alive(value)
        elif isinstance(value, Dimension):
            return self.atom(value.dimension_as_value())
        return self.recorder.const(value)

    def program_of(self, var: Var) -> ClosedJaxpr | None:
        """The program, as far as it is recorded, whose result is this variable; None if it has effects."""
        needed, eqns = {var}, []
        for eqn in reversed(self.recorder.eqns):
            if not needed.isdisjoint(eqn.outvars):
                if eqn.effects:
                    return None
                needed.update(a for a in eqn.invars if isinstance(a, Var))
                eqns.append(eqn)
        jaxpr, consts = self.recorder.jaxpr(self.arguments, [var])
        return ClosedJaxpr(jaxpr.replace(eqns=eqns[::-1], effects=_no_effects), consts)

    def names_behind(self, var: Var) -> list[str]:
        """The names of the arguments that a value depends on."""
        names = list(self.origin.names()) if self.origin is not None and self.origin.names is not None else []
        if len(names) != len(self.arguments):
            return []
        makers = {v: eqn for eqn in self.recorder.eqns for v in eqn.outvars}
        seen: set[Atom] = set()
        waiting: list[Atom] = [var]
        while waiting:
            atom = waiting.pop()
            if type(atom) is Literal or atom in seen:
                continue
            seen.add(atom)
            if atom in makers:
                waiting.extend(makers[atom].invars)
        return [name for name, v in zip(names, self.arguments) if v in seen]

    def emit(self, primitive, args, params, avals) -> list[JitTracer]:
        """Record an equation on values, and give tracers of its results."""
        if not self.valid:
            raise errors.UnexpectedTracerError(
                f"The trace of '{self.name}' is over, but an operation was recorded in it."
            )
        source = user_source()
        own = self.tracer_type
        atoms = [
            a.jaxpr_var if type(a) is own and a.interpreter is self else self.atom(a)  # type: ignore[attr-defined]
            for a in args
        ]
        outvars = self.recorder.record(primitive, atoms, avals, params, source)
        return [own(self, var.aval, var, source) for var in outvars]

    def finish(self, invars: Sequence[Var], outs: Sequence[Any], debug_info=None):
        """(Jaxpr, consts) with the given results; the trace is over."""
        outvars = [self.atom(out) for out in outs]
        self.valid = False
        return self.recorder.jaxpr(invars, outvars, debug_info)

    def invalidate(self):
        """The trace is over; its tracers may not be used any more."""
        self.valid = False


def as_staged(value):
    """An array that is made while a program is recorded as that program's: a tracer of the constant, even where a
    transformation within the program is current. Elsewhere the array itself, and where values are computed at once.
    """
    found = current_interpreter()
    while found is not None and not isinstance(found, (StagingInterpreter, ConcreteFirstInterpreter)):
        found = found.parent
    if not isinstance(found, StagingInterpreter) or not found.valid:
        return value
    atom = found.recorder.const(value)  # a literal, or the variable of a constant
    return JitTracer(found, type_of_operand(value), atom, user_source())  # type: ignore[arg-type]


def known_value(x) -> np.ndarray | None:
    """The numbers of an array, also of one that was made while a program is recorded; None where they are not known.

    For what is computed in fewer steps of known numbers: what is allowed does not depend on it.
    """
    if not isinstance(x, Tracer):
        return np.asarray(x)
    if type(x) is not JitTracer or not x.interpreter.valid:
        return None
    if type(x.jaxpr_var) is Literal:
        return np.asarray(x.jaxpr_var.val, x.dtype)
    held = next((value for value, var, _ in x.interpreter.recorder.consts.values() if var is x.jaxpr_var), None)
    return np.asarray(held) if type(held) is _core.Array else None


def literal_of(x) -> np.ndarray | None:
    """The number of a scalar that the program that is recorded has as a literal, or of one that is computed with now.

    In programs for readers a scalar that was there before the trace is none: it is a constant, as one with axes is.
    """
    if not isinstance(x, Tracer):
        if config.value_of("jax_named_calls") and type(x) is _core.Array:
            found = current_interpreter()
            recorder = getattr(found, "recorder", None)
            if recorder is not None and x._made < recorder.number:
                return None
        return np.asarray(x)
    if type(x) is JitTracer and type(x.jaxpr_var) is Literal and x.interpreter.valid:
        return np.asarray(x.jaxpr_var.val, x.dtype) if current_interpreter() is x.interpreter else None
    return None


def check_alive(tracer: Tracer) -> None:
    """Raise UnexpectedTracerError for a tracer whose trace is over."""
    if getattr(tracer.interpreter, "valid", True):
        return
    source = tracer.made_at()
    comma = "," if getattr(tracer.interpreter, "origin", None) is not None else ""  # a place was named already
    raise errors.UnexpectedTracerError(
        f"Encountered an unexpected tracer of type {tracer.aval.short()} (leaked tracer): a function kept it outside, "
        f"and with the end of its trace it stands for no value. It was made {_transformation(tracer.interpreter)}"
        + (f"{comma} at {source}" if source is not None else "")
        + (f", and used at {used}" if (used := user_source()) is not None else "")
        + ". Return the value from the function instead of storing it in a global, "
        "a list or an attribute."
    )


def _transformation(interpreter: Interpreter) -> str:
    origin = getattr(interpreter, "origin", None)
    if origin is not None:
        return f"while tracing {origin}"
    name = getattr(interpreter, "name", None)
    return f"while tracing '{name}'" if name else f"under {interpreter.transformation}"


class StagedReference(JitTracer, Reference):
    """A mutable array of the program: what is read and written when the jaxpr runs."""

    __slots__ = ("is_freed",)

    def __init__(self, interpreter: RecordingInterpreter, aval, var: Var, source: SourceInfo | None = None):
        super().__init__(interpreter, aval, var, source)
        self.is_freed = False

    @property
    def ref_aval(self) -> AbstractRef:
        return self.aval


class StagingInterpreter(RecordingInterpreter):
    """Records every primitive."""

    stages_references = True

    def __init__(self, parent: Interpreter, name: str = "<function>"):
        super().__init__(parent, name)
        self.further: list[Var] = []

    def new_arg(self, aval, source_info: SourceInfo | None = None) -> JitTracer:
        """A tracer for one more argument of the program, behind those of its function.

        Libraries with state that functions read, brainstate, make arguments of it while `make_jaxpr` traces.
        """
        tracer = self.new_argument(aval)
        tracer.source = source_info
        self.further.append(tracer.jaxpr_var)
        return tracer

    def process(self, primitive, args, params):
        type_of = types.type_on_mesh if types.in_use() else type_of_operand
        in_avals = [a.aval if type(a) is JitTracer else type_of(a) for a in args]
        if primitive.discharge is None and any([type(a) is AbstractRef for a in in_avals]):
            raise TypeError(f"{primitive}: a Ref is no array; read it, ref[...], and write what the function gives")
        if (
            extended.array_types
            and any([not isinstance(a.dtype, np.dtype) for a in in_avals])
            and any([dtypes.is_extended(a.dtype) for a in in_avals])
            and extended.handles(primitive, params)
        ):
            if extended.checks_reuse() or any([getattr(a, "placing", None) is not None for a in in_avals]):
                return extended.process(primitive, tuple(args), params)  # what is said of words is said of keys
            extended.check(primitive, in_avals)
        on_mesh = (types.in_use() or primitive.name in types.CONSTRAINTS) and types.concerns(
            in_avals, primitive, params
        )
        if on_mesh and (lacking := types.missing(primitive, in_avals, params)) is not None:
            args = [types.with_axes(self.process, a, axes) if axes else a for a, axes in zip(args, lacking)]
            in_avals = [type_of(a) for a in args]
        try:
            avals = primitive.rule("abstract_eval")(*in_avals, **params)
        except (TypeError, InconclusiveDimensionOperation) as error:
            raise (_not_symbolic(primitive, in_avals, error) or error) from error.__cause__
        avals = list(avals) if primitive.multiple_results else [avals]
        if on_mesh:
            avals = types.result_types(primitive, in_avals, params, avals)
        outs = self.emit(primitive, args, params, avals)
        return outs if primitive.multiple_results else outs[0]

    def process_custom_jvp(self, custom, fun, jvp, args):
        return custom.stage_jvp(self, fun, jvp, args)

    def process_custom_vjp(self, custom, fun, fwd, bwd, args):
        return custom.stage_vjp(self, fun, fwd, bwd, args)


def _not_symbolic(primitive, avals, error) -> Exception | None:
    """What to raise where a shape rule cannot do with symbolic dimensions; None if that was not the matter."""
    undecided = isinstance(error, InconclusiveDimensionOperation)
    if not undecided and Dimension.__name__ not in str(error):
        return None
    types = ", ".join(aval.short() for aval in avals)
    where = f"primitive '{primitive.name}' of {types}, at {user_source()}"
    if undecided:
        return InconclusiveDimensionOperation(f"{error}\nIt came up in the shape rule of {where}")
    return NotImplementedError(f"{where}: it is not there for symbolic dimensions ({error})")


def trace(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence,
    debug_info: DebugInfo | None = None,
    origin: Origin | None = None,
) -> ClosedJaxpr:
    """Record flat `fun(*tracers) -> list` as a closed jaxpr; its consts may be tracers of enclosing traces.

    `origin`: what messages say of the function and its arguments.
    """
    interpreter = StagingInterpreter(current_interpreter(), (debug_info or DebugInfo()).func_name)
    interpreter.origin = origin
    try:
        with using(interpreter), names_inside(fresh=True):
            arguments = [interpreter.new_argument(aval) for aval in avals]
            interpreter.arguments = [t.jaxpr_var for t in arguments]
            outs = fun(*arguments)
            if any([isinstance(out, Reference) for out in outs]):
                raise _returned_reference(outs, arguments, origin)
            jaxpr, consts = interpreter.finish([*interpreter.arguments, *interpreter.further], outs, debug_info)
    finally:
        interpreter.invalidate()
    if config.config.jax_check_tracer_leaks:
        kept = weakref.ref(interpreter)
        del arguments, outs, interpreter
        if (still := kept()) is not None:  # most often nothing holds it, and there is no need to look at all objects
            raise_if_kept(still)
    return ClosedJaxpr(jaxpr, consts)


def _returned_reference(outs: Sequence[Any], arguments: Sequence[Any], origin: Origin | None) -> ValueError:
    """The error for a function that returns a reference, which would be there twice afterwards."""
    found = next(out for out in outs if isinstance(out, Reference))
    of = f"function {located(origin.fun)} traced for {origin.transformation}" if origin else "a function that is traced"
    names = list(origin.names()) if origin is not None and origin.names is not None else []
    where = next((k for k, argument in enumerate(arguments) if argument is found), None)
    if where is not None and where < len(names):
        came = f"\n\nIt is the argument {names[where]}."
    elif (source := getattr(found, "source", None)) is not None:
        came = f"\n\nIt was made by {source}."
    else:
        came = ""
    return ValueError(
        f"{of} returned a mutable array reference, {found.ref_aval}, which callers cannot be given: return its value, "
        f"ref[...].{came}"
    )


def raise_if_kept(interpreter: Interpreter) -> None:
    """Raise an Exception that names the tracers of a finished trace that something still holds."""
    gc.collect()
    kept = [t for t in gc.get_objects() if isinstance(t, Tracer) and t.interpreter is interpreter]
    if kept:
        lines = "\n".join(
            f"  {tracer!r}, made at {tracer.source or 'the arguments of the function'}" for tracer in kept
        )
        name = getattr(interpreter, "name", type(interpreter).__name__)
        raise Exception(
            f"Leaked trace of '{name}'. Leaked tracer(s):\n{lines}\nSomething outside of the function holds them."
        )


def hoist_tracers(closed: ClosedJaxpr, arrays: bool = False) -> tuple[ClosedJaxpr, list[Any]]:
    """(closed', values): constants that are tracers or references (or, with `arrays`, all) become leading arguments,
    so closed' stands by itself.
    """
    outer = object if arrays else (Tracer, Reference)
    if not any(isinstance(c, outer) for c in closed.consts):
        return closed, []
    jaxpr = closed.jaxpr
    moved = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts) if isinstance(c, outer)]
    kept = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts) if not isinstance(c, outer)]
    new = jaxpr.replace(constvars=[v for v, _ in kept], invars=[v for v, _ in moved] + jaxpr.invars)
    return ClosedJaxpr(new, [c for _, c in kept]), [c for _, c in moved]


class EvalInterpreter(Interpreter):
    """Runs primitives on concrete arrays; current when no transformation is."""

    remembers = True

    def call(self, closed, args):
        return hooks.run_eagerly(closed, args)

    def process(self, primitive, args, params):
        if config.value_of("jax_no_execution"):
            raise_no_execution(primitive.name)
        for arg in args:
            if type(arg) is _core.Array:
                continue
            if isinstance(arg, Tracer):
                if arg.interpreter is self:  # an array that lies on several processes
                    return hooks.evaluate_between(primitive, args, params)
                raise_leak(arg)
            if type(arg) in extended.array_types:
                if extended.handles(primitive, params):
                    return extended.process(primitive, args, params)
                if isinstance(getattr(arg, "_base_array", None), Tracer):  # keys that lie on several processes
                    return hooks.evaluate_between(primitive, args, params)
        if primitive.evaluate is not None:
            return primitive.evaluate(*args, **params)
        return primitive.run(*args, **params)

    def process_custom_jvp(self, _custom, fun, _jvp, args):
        return fun(*args)

    def process_custom_vjp(self, _custom, fun, _fwd, _bwd, args):
        return fun(*args)


class ConcreteFirstInterpreter(Interpreter):
    """Runs primitives on concrete arrays at once; those on tracers go to the parent."""

    def __init__(self, parent: Interpreter):
        self.parent = parent

    def chosen(self, args) -> Interpreter:
        """Who runs an operation on these operands."""
        assert self.parent is not None
        return self.parent if any(isinstance(a, Tracer) for a in args) else eval_interpreter()

    def process(self, primitive, args, params):
        return self.chosen(args).process(primitive, args, params)

    def process_custom_jvp(self, custom, fun, jvp, args):
        return self.chosen(args).process_custom_jvp(custom, fun, jvp, args)

    def process_custom_vjp(self, custom, fun, fwd, bwd, args):
        return self.chosen(args).process_custom_vjp(custom, fun, fwd, bwd, args)


def raise_no_execution(name: str) -> None:
    """Raise the RuntimeError of `jax_no_execution`."""
    raise RuntimeError(f"{name} is about to run, but with jax_no_execution nothing may be executed")


def raise_leak(tracer: Tracer) -> None:
    """Raise UnexpectedTracerError for a tracer that is used outside of its transformation."""
    check_alive(tracer)
    raise errors.UnexpectedTracerError(
        f"Encountered an unexpected tracer: {tracer.describe()} is used outside of the transformation that it belongs "
        "to."
    )
