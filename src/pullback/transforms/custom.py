"""Functions with derivative rules of the user's own.

Under evaluation such a function just runs. Forward mode calls the user's jvp, or for a custom vjp the user's fwd, whose
linear part is recorded as one `custom_lin` equation; its transpose calls the user's bwd. Inside a staged program the
call is an equation that carries the function's jaxpr and its rules.

Flat contracts: fun(*args) -> outs;  jvp(primals, tangents) -> (outs, outs_dot), tangents may be `Zero`;
fwd(*args) -> (outs, residuals);  bwd(residuals, outs_bar) -> args_bar, entries may be None or `Zero`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    NoRule,
    Primitive,
    UndefinedPrimal,
    Zero,
    current_interpreter,
    eval_jaxpr,
    hoist_tracers,
    hooks,
    tangent_aval,
    trace,
    typeof,
    types,
    using,
)
from pullback.core.avals import Reference
from pullback.core.interpreter import WrittenOut
from pullback.core.lowering import Inline
from pullback.transforms.batching import Front, batch_jaxpr, called_as, move_batch_axis, run_batched, to_front
from pullback.transforms.discharge import discharged, is_differentiated, note, values_of, with_leading
from pullback.transforms.transpose import backward_pass
from pullback.transforms.zeros import instantiate, is_float0, symbolic, zero_tangent
from pullback.util.errors import CustomVJPException


def _traced(name: str, fun: Any, args: Sequence[Any], rules: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """(program, what it closes over, which are leading arguments). References that the rules get are among these, and
    each rule notes which, by the number of the argument that it is.
    """
    names = getattr(fun, "names_of_arguments", None)
    info = DebugInfo(f"{name} fun", getattr(fun, "__name__", "<unknown>"), None if names is None else names())
    closed, consts = hoist_tracers(trace(fun, [typeof(a) for a in args], info))
    given = getattr(rules[0], "references", None)
    if given:
        (closed,), consts = with_leading([(closed, consts)], list(given.values()))
        places = {n: next(k for k, c in enumerate(consts) if c is ref) for n, ref in given.items()}
        for rule in rules:
            rule.places = places
    return closed, consts


class CustomJVP:
    """The operations of interpreters on calls with a custom jvp."""

    primitive: Primitive  # for interpreters of users

    @staticmethod
    def flat_jvp(jvp):
        """The rule as interpreters of users have it: of primals and tangents in one list, and so its results."""

        def flat(*values):
            half = len(values) // 2
            outs, outs_dot = jvp(values[:half], values[half:])
            return [*outs, *[hooks.zeros(t.aval) if type(t) is Zero else t for t in outs_dot]]

        flat.paired = jvp  # type: ignore[attr-defined]
        return flat

    @staticmethod
    def paired_jvp(flat):
        """The rule that such a one stands for."""

        def jvp(primals, tangents):
            outs = flat(*primals, *[hooks.zeros(t.aval) if type(t) is Zero else t for t in tangents])
            half = len(outs) // 2
            return outs[:half], outs[half:]

        return jvp

    @staticmethod
    def stage_jvp(interpreter, fun, jvp, args):
        """Record a custom_jvp_call equation."""
        closed, consts = _traced("custom_jvp", fun, args, [jvp])
        return interpreter.emit(
            custom_jvp_call_p,
            [*consts, *args],
            {"call_jaxpr": closed, "jvp": jvp, "num_consts": len(consts)},
            closed.out_avals,
        )

    @staticmethod
    def batch_jvp(jvp, axis, primals, tangents, dims, front):
        """(outs, outs_dot) of the user's jvp on values with the mapped axis at `dims`; results have it where `front`
        says.
        """
        nonzero = [type(t) is not Zero for t in tangents]
        n_outs: list[int] = []
        present: list[bool] = []

        def flat(*values):
            xs = values[: len(primals)]
            given = iter(values[len(primals) :])
            outs, outs_dot = jvp(xs, [next(given) if nz else zero_tangent(x) for x, nz in zip(xs, nonzero)])
            n_outs[:] = [len(outs)]
            outs_dot = [symbolic(t) for t in outs_dot]
            present[:] = [type(t) is not Zero for t in outs_dot]
            return [*outs, *(t for t in outs_dot if type(t) is not Zero)]

        found, found_dims = run_batched(
            flat,
            axis,
            [*primals, *(t for t, nz in zip(tangents, nonzero) if nz)],
            [*dims, *(d for d, nz in zip(dims, nonzero) if nz)],
        )
        found = front.moved(found, found_dims, axis.size)
        outs, rest = found[: n_outs[0]], iter(found[n_outs[0] :])
        return outs, [next(rest) if p else zero_tangent(out) for out, p in zip(outs, present)]


class CustomVJP:
    """The operations of interpreters on calls with a custom vjp."""

    primitive: Primitive

    @staticmethod
    def stage_vjp(interpreter, fun, fwd, bwd, args):
        """Record a custom_vjp_call equation."""
        closed, consts = _traced("custom_vjp", fun, args, [fwd, bwd])
        return interpreter.emit(
            custom_vjp_call_p,
            [*consts, *args],
            {"call_jaxpr": closed, "fwd": fwd, "bwd": bwd, "num_consts": len(consts)},
            closed.out_avals,
        )

    @staticmethod
    def linearize(fwd, bwd, primals, tangents):
        """(outs, outs_dot): run the user's fwd, and bind the linear map whose transpose is the user's bwd."""
        if getattr(fwd, "symbolic_zeros", False):
            outs, residuals = fwd(*primals, perturbed=[type(t) is not Zero for t in tangents])
        else:
            outs, residuals = fwd(*primals)
        given = [t for t in tangents if not (type(t) is Zero and is_float0(t.aval)) and not is_float0(t)]
        present = tuple(not is_float0(t.aval if type(t) is Zero else t) for t in tangents)
        avals = [tangent_aval(types.type_of(out)) for out in outs]
        differentiable = tuple(not is_float0(a) for a in avals)
        found = iter(
            custom_lin_p.bind(
                *residuals,
                *map(instantiate, given),
                num_res=len(residuals),
                bwd=bwd,
                present=present,
                out_avals=tuple(a for a, d in zip(avals, differentiable) if d),
                differentiable=differentiable,
                all_avals=tuple(avals),
            )
        )
        return outs, [next(found) if d else Zero(a) for a, d in zip(avals, differentiable)]

    @staticmethod
    def batch_fwd_bwd(fwd, bwd, axis, dims, front):
        """(fwd', bwd') on values with the mapped axis at `dims`; results have it where `front` says."""
        res_dims: list[int | None] = []

        def batched_fwd(*values, **perturbed):
            count: list[int] = []

            def flat(*xs):
                outs, residuals = fwd(*xs, **perturbed)
                count[:] = [len(outs)]
                return [*outs, *residuals]

            found, found_dims = run_batched(flat, axis, values, dims)
            n = count[0]
            outs = front.moved(found[:n], found_dims[:n], axis.size)
            residuals, batched = to_front(found[n:], found_dims[n:])
            res_dims[:] = [0 if b else None for b in batched]
            return outs, residuals

        def batched_bwd(residuals, outs_bar):
            absent: list[bool] = []
            bars_dims = [None if is_float0(b) else front.dim for b in outs_bar]

            def flat(*values):
                bars = bwd(list(values[: len(residuals)]), list(values[len(residuals) :]))
                bars = [None if b is None or type(b) is Zero or is_float0(b) else b for b in bars]
                absent[:] = [b is None for b in bars]
                return [b for b in bars if b is not None]

            found, found_dims = run_batched(flat, axis, [*residuals, *outs_bar], [*res_dims, *bars_dims])
            front.check(found_dims)
            pairs = iter(zip(found, found_dims))
            args_bar: list[Any] = []
            for gone, dim in zip(absent, dims):
                if gone:
                    args_bar.append(None)
                    continue
                value, found_dim = next(pairs)
                if dim is None and found_dim is not None:
                    value = hooks.sum(value, (found_dim,))
                elif dim is not None:
                    value = move_batch_axis(value, found_dim, dim, axis.size)
                args_bar.append(value)
            return args_bar

        batched_fwd.symbolic_zeros = getattr(fwd, "symbolic_zeros", False)  # type: ignore[attr-defined]
        return called_as(batched_fwd, fwd), called_as(batched_bwd, bwd)


def _call_reference(*args, call_jaxpr, **_params):
    return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


def _call_abstract(*_avals, call_jaxpr, **_params):
    return call_jaxpr.out_avals


def _call_effects(params):
    return params["call_jaxpr"].effects


def _call_transpose(outs_bar, *args, call_jaxpr, **_params):
    return backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, outs_bar)


def _custom_jvp_jvp(primals, tangents, *, call_jaxpr, jvp, num_consts):
    outs, outs_dot = jvp(primals[num_consts:], tangents[num_consts:])
    _expect_traced("JVP rule", jvp, outs, call_jaxpr)
    return outs, [symbolic(t) for t in outs_dot]


def _expect_traced(kind, rule, outs, call_jaxpr):
    """TypeError where a rule gives other types than the function has given to what was traced around it."""
    want = [(a.shape, a.dtype) for a in call_jaxpr.out_avals]
    have = [typeof(out) for out in outs]
    if [(a.shape, a.dtype) for a in have] != want:
        raise TypeError(
            f"Custom {kind} {getattr(rule, '__name__', 'rule')}: its first result takes the place of what "
            f"{call_jaxpr.jaxpr.debug_info.func_name} returns, so their types are the same; expected "
            f"{', '.join(a.short() for a in call_jaxpr.out_avals)}, got {', '.join(a.short() for a in have)}."
        )


def _custom_jvp_batch(axis, args, dims, *, call_jaxpr, jvp, num_consts):
    values, batched = to_front(args, dims)
    closed, mapped = batch_jaxpr(call_jaxpr, axis, batched, True)
    arg_dims = [0 if b else None for b in batched[num_consts:]]

    def batched_jvp(primals, tangents):
        return CustomJVP.batch_jvp(jvp, axis, primals, tangents, arg_dims, Front([0]))

    rule = called_as(batched_jvp, jvp)
    outs = custom_jvp_call_p.bind(*values, call_jaxpr=closed, jvp=rule, num_consts=num_consts)
    return outs, [0 if m else None for m in mapped]


def _custom_vjp_jvp(primals, tangents, *, call_jaxpr, fwd, bwd, num_consts):
    for value, tangent in zip(primals[:num_consts], tangents):
        if type(tangent) is not Zero and not is_float0(tangent):  # fwd and bwd would silently leave it out
            raise CustomVJPException(
                f"{call_jaxpr.jaxpr.debug_info.func_name}, a custom_vjp function, is differentiated with respect to a "
                f"closed-over value of type {typeof(value).short()}, but fwd and bwd give the derivatives of arguments "
                "alone. Make the value an argument, or use lax.stop_gradient of it if it is to count as a constant."
            )
    outs, outs_dot = CustomVJP.linearize(fwd, bwd, primals[num_consts:], tangents[num_consts:])
    _expect_traced("VJP fwd rule", fwd, outs, call_jaxpr)
    return outs, outs_dot


def _custom_vjp_batch(axis, args, dims, *, call_jaxpr, fwd, bwd, num_consts):
    values, batched = to_front(args, dims)
    closed, mapped = batch_jaxpr(call_jaxpr, axis, batched, True)
    arg_dims = [0 if b else None for b in batched[num_consts:]]
    batched_fwd, batched_bwd = CustomVJP.batch_fwd_bwd(fwd, bwd, axis, arg_dims, Front([0]))
    outs = custom_vjp_call_p.bind(*values, call_jaxpr=closed, fwd=batched_fwd, bwd=batched_bwd, num_consts=num_consts)
    return outs, [0 if m else None for m in mapped]


def _discharge(primitive, *args, call_jaxpr, num_consts, **rules):
    if is_differentiated():
        outer, given = args[:num_consts], args[num_consts:]

        def fun(*values):
            return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *outer, *values)

        process = "process_custom_jvp" if primitive is custom_jvp_call_p else "process_custom_vjp"
        operations = CustomJVP if primitive is custom_jvp_call_p else CustomVJP
        found = list(rules.values())
        if places := getattr(found[0], "places", None):
            found = found[0].rules_with({n: outer[k] for n, k in places.items()})
        return getattr(current_interpreter(), process)(operations, fun, *found, given)
    closed, written = discharged(call_jaxpr)
    if any([isinstance(a, Reference) for a in args]):
        refuse = _refusing(call_jaxpr.jaxpr.debug_info.func_name)
        rules = dict.fromkeys(rules, refuse)
    outs = primitive.bind(*values_of(args), call_jaxpr=closed, num_consts=num_consts, **rules)
    count = len(outs) - len(written)
    note(args, written, outs[count:])
    return outs[:count]


def _refusing(name):
    def rule(*_args, **_options):
        raise NotImplementedError(
            f"the custom derivative of {name}, which reads or writes a Ref, is needed outside of the jitted function, "
            "loop or branch that it is called in; differentiate inside of that, or call it outside"
        )

    return rule


def _call_by_jaxpr(params):
    return params["call_jaxpr"]


class _Ruled(Primitive):
    """A primitive whose equations hold a program and rules, and which is bound to functions as well, `subfuns`: that is
    how interpreters of jaxprs that are written for JAX call it again.
    """

    def get_bind_params(self, params: dict) -> dict:
        """The functions of an equation on its operands: the call, and its rules."""
        closed, count = params["call_jaxpr"], params["num_consts"]
        names = [name for name in params if name not in ("call_jaxpr", "num_consts")]

        def call(*args):
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)

        call.__name__ = closed.jaxpr.debug_info.func_name
        given = _of_operands([params[name] for name in names], count) if count else [params[name] for name in names]
        symbolic_zeros = any(getattr(rule, "symbolic_zeros", False) for rule in given)
        return {"subfuns": (WrittenOut(call), *map(WrittenOut, given)), "symbolic_zeros": symbolic_zeros}

    def bind(self, *args, **params):
        """`bind` of the parameters of an equation, or of the functions that `get_bind_params` makes of them."""
        if "subfuns" not in params:
            return super().bind(*args, **params)
        functions = [fun.f if isinstance(fun, WrittenOut) else fun.call_wrapped for fun in params["subfuns"]]
        if self is custom_jvp_call_p:
            fun, jvp = functions
            ours = isinstance(params["subfuns"][1], WrittenOut)
            jvp = getattr(jvp, "paired", jvp) if ours else CustomJVP.paired_jvp(jvp)
            return current_interpreter().process_custom_jvp(CustomJVP, fun, jvp, args)
        fun, fwd, bwd = functions
        return current_interpreter().process_custom_vjp(CustomVJP, fun, fwd, bwd, args)

    def bind_with_trace(self, trace, args, *rest):
        """`bind` under a given interpreter, of functions or of the parameters of an equation."""
        if "subfuns" not in rest[-1]:
            return super().bind_with_trace(trace, args, *rest)
        with using(trace):
            return self.bind(*args, **rest[-1])


def _of_operands(rules, count):
    """The rules of a call for operands that begin with `count` constants, of which they say nothing."""
    if len(rules) == 1:
        (jvp,) = rules

        def whole_jvp(primals, tangents):
            return jvp(primals[count:], tangents[count:])

        whole_jvp.symbolic_zeros = getattr(jvp, "symbolic_zeros", False)  # type: ignore[attr-defined]
        return [whole_jvp]
    fwd, bwd = rules

    def whole_fwd(*args, **perturbed):
        return fwd(*args[count:], **{name: which[count:] for name, which in perturbed.items()})

    def whole_bwd(residuals, outs_bar):
        return [None] * count + list(bwd(residuals, outs_bar))

    for whole, rule in ((whole_fwd, fwd), (whole_bwd, bwd)):
        whole.symbolic_zeros = getattr(rule, "symbolic_zeros", False)  # type: ignore[attr-defined]
    return [whole_fwd, whole_bwd]


custom_jvp_call_p = _Ruled(
    "custom_jvp_call",
    doc="A function with a jvp rule of the user's.",
    multiple_results=True,
    abstract_eval=_call_abstract,
    reference=_call_reference,
    evaluate=_call_reference,
    jvp=_custom_jvp_jvp,
    transpose=_call_transpose,
    batch=NoRule("use batch_axis"),
    batch_axis=_custom_jvp_batch,
    lower=Inline(_call_by_jaxpr),
    effects=_call_effects,
)
CustomJVP.primitive = custom_jvp_call_p
custom_jvp_call_p.discharge = functools.partial(_discharge, custom_jvp_call_p)

custom_vjp_call_p = _Ruled(
    "custom_vjp_call",
    doc="A function with a vjp rule of the user's.",
    multiple_results=True,
    abstract_eval=_call_abstract,
    reference=_call_reference,
    evaluate=_call_reference,
    jvp=_custom_vjp_jvp,
    transpose=_call_transpose,
    batch=NoRule("use batch_axis"),
    batch_axis=_custom_vjp_batch,
    lower=Inline(_call_by_jaxpr),
    effects=_call_effects,
)
CustomVJP.primitive = custom_vjp_call_p
custom_vjp_call_p.discharge = functools.partial(_discharge, custom_vjp_call_p)


def _custom_lin_abstract(*_avals, out_avals, **_params):
    return list(out_avals)


def _custom_lin_evaluate(*_args, bwd=None, **_params):
    if hasattr(bwd, "refuse_forward"):
        bwd.refuse_forward()
    raise TypeError(
        "can't apply forward-mode differentiation (jvp) to a custom_vjp function; give it a custom_jvp rule "
        "instead, or differentiate it with grad or vjp."
    )


def _custom_lin_transpose(outs_bar, *args, num_res, bwd, present, out_avals, differentiable, all_avals):
    bars = iter(outs_bar)
    full = [next(bars) if d else Zero(a) for a, d in zip(all_avals, differentiable)]
    if not getattr(bwd, "symbolic_zeros", False):
        full = list(map(instantiate, full))
    args_bar = bwd(list(args[:num_res]), full)
    args_bar = [symbolic(bar) if bar is not None else None for bar, p in zip(args_bar, present) if p]
    return [None] * num_res + [
        bar if type(arg) is UndefinedPrimal else None for arg, bar in zip(args[num_res:], args_bar)
    ]


custom_lin_p = Primitive(
    "custom_lin",
    doc="The linear map whose transpose is a user's bwd.",
    multiple_results=True,
    abstract_eval=_custom_lin_abstract,
    reference=_custom_lin_evaluate,
    evaluate=_custom_lin_evaluate,
    jvp=NoRule("forward-mode differentiation of a custom_vjp function is not defined; use custom_jvp"),
    transpose=_custom_lin_transpose,
    batch=_custom_lin_evaluate,
    lower=NoRule("can't apply forward-mode differentiation (jvp) to a custom_vjp function"),
    traits={"own types", "transposes zeros", "extended"},  # bwd may give what does not depend on the cotangent
)
