"""while_loop and fori_loop: loops whose number of steps is known only when they run.

while cond(cond_consts, carry): carry = body(body_consts, carry)

Of a loop that `vmap` made, the predicate has the mapped axes, which are the first of every carry, as in JAX's programs:
libraries read them. `with_scalar_condition` writes what that means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import (
    ClosedJaxpr,
    NoRule,
    Primitive,
    Tracer,
    Var,
    Zero,
    current_interpreter,
    eval_jaxpr,
    high,
    hooks,
    is_array_like,
    trace,
    typeof,
)
from pullback.core.dimensions import Dimension
from pullback.core.explain import type_shown
from pullback.core.lowering import Nest
from pullback.core.references import has_references_among
from pullback.core.source import located
from pullback.core.typechecks import check_while
from pullback.core.types import type_of_operands
from pullback.lax.control import common as control
from pullback.lax.control.bodies import carrying
from pullback.lax.control.scan import scan
from pullback.transforms.batching import batch_jaxpr
from pullback.transforms.call import running_once
from pullback.transforms.discharge import closing_over, discharged, note, rules_get_references, values_of, with_outer
from pullback.transforms.jvp import jvp_jaxpr
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_jaxpr, split_list
from pullback.transforms.zeros import instantiate
from pullback.util import dtypes, errors
from pullback.util.pytree import tree_flatten, tree_unflatten, treedef_tuple

C = TypeVar("C")


def while_loop(cond_fun: Callable[[C], Any], body_fun: Callable[[C], C], init_val: C) -> C:
    """Run `val = body_fun(val)` while `cond_fun(val)`; gives the last val.

    cond_fun gives a boolean scalar. TypeError if the carry changes its structure, shapes or dtypes, or cond_fun gives
    anything else. Forward-mode differentiable and batchable; for reverse mode use `scan`.
    """
    control.check_callable("while_loop", "cond_fun", cond_fun)
    control.check_callable("while_loop", "body_fun", body_fun)
    _refuse_references("while_loop", init_val)
    if high.has_values(init_val):
        cond_low = high.on_arrays(cond_fun)
        return high.raised(while_loop(cond_low, high.on_arrays(body_fun), high.lowered(init_val)))
    if control.python_control_flow():
        try:
            value = _arrays("init_val", init_val)
            while bool(cond_fun(value)):
                value = _arrays("body_fun", body_fun(value))
            return value
        except errors.TracerBoolConversionError:
            pass  # the condition depends on a traced value: the loop is traced after all
    init, tree = tree_flatten(init_val)
    init = control.as_arrays("while_loop", "init_val", init)
    in_tree = treedef_tuple((tree,))
    found, init = control.settle_carry(
        body_fun, in_tree, init, (), "while_loop", lambda out_tree: len(init) if out_tree == tree else -1
    )
    body, body_consts, out_tree = found
    avals = [*map(type_of_operands(), init)]
    if out_tree != tree or not control.same_types(avals, body.out_avals):
        raise control.carry_mismatch("while_loop body", body_fun, tree, out_tree, avals, body.out_avals, init_val)
    cond, cond_consts, cond_tree = control.trace_body(cond_fun, in_tree, avals, "while_loop", "while_cond")
    outs = cond.out_avals
    if cond_tree.num_nodes != 1 or len(outs) != 1 or outs[0].shape != () or outs[0].dtype != np.bool_:
        raise TypeError(
            f"while_loop: argument 'cond_fun' must return a boolean scalar; {located(cond_fun)} gave {cond_tree} of "
            f"{[a.short() for a in outs]}"
        )
    n_cond, n_body = len(cond_consts), len(body_consts)
    # The body remembers it: conditions of many loops are one program, which must not hold what their bodies close over.
    key = ("fixed of", cond, n_cond, n_body)
    fixed = body.cached(key, lambda: _fixed(cond.jaxpr.invars[n_cond:], cond, body, n_body))
    if fixed:
        cond = cond.cached(("without", n_cond, fixed), lambda: _with_fixed(cond, n_cond, fixed, False))
        body = body.cached(("fixed", n_body, fixed), lambda: _with_fixed(body, n_body, fixed, True))
        body_consts = [*body_consts, *[init[k] for k in fixed]]
    outs = while_p.bind(
        *cond_consts,
        *body_consts,
        *[value for k, value in enumerate(init) if k not in fixed],
        cond_nconsts=len(cond_consts),
        cond_jaxpr=cond,
        body_nconsts=len(body_consts),
        body_jaxpr=body,
    )
    changed = iter(outs)
    return tree_unflatten(tree, [init[k] if k in fixed else next(changed) for k in range(len(init))])


def _arrays(argument: str, value: Any) -> Any:
    leaves, tree = tree_flatten(value)
    return tree_unflatten(tree, control.as_arrays("while_loop", argument, leaves))


def _fixed(carry: Sequence[Any], cond: ClosedJaxpr, body: ClosedJaxpr, n_consts: int) -> tuple[int, ...]:
    """Which parts of the carry no step changes, and the condition does not read: they are constants of the body.

    So what depends on them alone is no part of the carry: a derivative in such a part needs no step backwards.
    """
    read = {a for eqn in cond.jaxpr.eqns for a in eqn.invars if type(a) is Var} | {*cond.jaxpr.outvars}
    pairs = zip(carry, body.jaxpr.invars[n_consts:], body.jaxpr.outvars)
    return tuple([k for k, (seen, before, after) in enumerate(pairs) if before is after and seen not in read])


def _with_fixed(closed: ClosedJaxpr, n_consts: int, fixed: Sequence[int], is_body: bool) -> ClosedJaxpr:
    """The body with those parts of the carry after its constants, or the condition without them."""
    jaxpr = closed.jaxpr
    consts, carry = jaxpr.invars[:n_consts], jaxpr.invars[n_consts:]
    others = [v for k, v in enumerate(carry) if k not in fixed]
    if not is_body:
        return ClosedJaxpr(jaxpr.replace(invars=[*consts, *others]), closed.consts)
    outvars = [v for k, v in enumerate(jaxpr.outvars) if k not in fixed]
    return ClosedJaxpr(
        jaxpr.replace(invars=[*consts, *[carry[k] for k in fixed], *others], outvars=outvars), closed.consts
    )


def _refuse_references(name, init_val):
    if has_references_among(tree_flatten(init_val)[0]):
        raise ValueError(f"{name}: a Ref cannot be a part of the carry; let body_fun close over it")


def fori_loop(lower, upper, body_fun: Callable[[Any, C], C], init_val: C, *, unroll: int | bool | None = None) -> C:
    """Run `val = body_fun(i, val)` for i from lower to upper - 1; gives the last val.

    lower and upper are integers, traced or not; with concrete bounds the loop is reverse-mode differentiable. They may
    be floats, both. TypeError for bounds that are neither, or of different types; a Python integer goes with any
    signed one.
    """
    control.check_callable("fori_loop", "body_fun", body_fun)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not is_array_like(bound):
            raise TypeError(
                f"fori_loop: argument '{name}' must be an integer, got {bound!r} of type {type_shown(bound)}"
            )
        aval = typeof(bound)
        if aval.shape != () or dtypes.kind_of(aval.dtype) not in "iuf":
            raise TypeError(
                f"fori_loop: argument '{name}' is {aval.short()}; expected a scalar, an integer (or a float)"
            )
    types = [typeof(bound) for bound in (lower, upper)]
    first, last = (dtypes.canonicalize_dtype(t.dtype) for t in types)
    signed = all(dtypes.kind_of(t.dtype) == "i" for t in types)
    if first != last and not (signed and any(t.weak_type for t in types)):
        raise TypeError(
            f"fori_loop: 'lower' is of {first.name}, 'upper' of {last.name}; they must have equal types, so convert one"
        )
    _refuse_references("fori_loop", init_val)
    if high.has_values(init_val):
        body_low = high.on_arrays(body_fun)
        return high.raised(fori_loop(lower, upper, body_low, high.lowered(init_val), unroll=unroll))
    control.as_arrays("fori_loop", "init_val", tree_flatten(init_val)[0])
    of_floats = dtypes.kind_of(typeof(lower).dtype) == "f"
    least, most = (None, None) if of_floats else (_concrete_int(lower), _concrete_int(upper))
    dtype, weak = _counter_type(lower, upper, least is not None and most is not None)
    if control.python_control_flow() and least is not None and most is not None:
        value = init_val
        for i in range(least, most):
            value = body_fun(i, value)
        return value
    start = hooks.convert(lower, dtype, weak)
    if least is not None and most is not None:

        def step(carry, _):
            i, value = carry
            return (i + 1, body_fun(i, value)), None

        length, at_once = max(most - least, 0), 1 if unroll is None else unroll
        (_, result), _ = scan(
            carrying(step, body_fun, "fori_loop", 1), (start, init_val), None, length=length, unroll=at_once
        )
        return result
    if unroll is not None and not isinstance(unroll, bool) and unroll != 1:
        raise ValueError(
            f"fori_loop: argument 'unroll' is {unroll!r}, which needs bounds that are known while tracing; with traced "
            "ones leave it out"
        )
    stop = hooks.convert(upper, dtype, weak)

    def body(carry):
        i, stop, value = carry
        return i + 1, stop, body_fun(i, value)

    _, _, result = while_loop(_fori_cond_fun, carrying(body, body_fun, "fori_loop", 2), (start, stop, init_val))
    return result


def _fori_cond_fun(loop_carry: Any) -> Any:  # named as jaxprs name it
    return hooks.less(loop_carry[0], loop_carry[1])


def _counter_type(lower, upper, known):
    """(dtype, weak type) of the counter: weakly typed, as a Python integer is, where nothing says otherwise."""
    dtype, weak = dtypes.lattice_result_type(lower, upper)
    dtype = dtypes.canonicalize_dtype(dtype)
    default = dtypes.canonicalize_dtype(np.dtype(np.int64))
    if known:
        return default, True
    return dtype, weak or (dtype == default and typeof(lower).weak_type)


def _concrete_int(bound) -> int | None:
    if isinstance(bound, Dimension):
        return None
    value = bound.to_concrete() if isinstance(bound, Tracer) else bound
    return None if value is None or isinstance(value, Tracer) else int(np.asarray(value))


def _abstract_eval(*_avals, body_jaxpr, **_params):
    return body_jaxpr.out_avals


def _reference(*args, **params):
    operands, params = with_scalar_condition(args, params)
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    cond_consts, body_consts, carry = split_list(
        [hooks.asarray(np.asarray(a)) for a in operands], [params["cond_nconsts"], params["body_nconsts"]]
    )
    while bool(eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *cond_consts, *carry)[0]):
        carry = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *body_consts, *carry)
    return [np.asarray(c) for c in carry]


def _evaluate(*args, **params):
    return control.run_as_program(while_p, params["body_jaxpr"], args, params)


def _jvp(primals, tangents, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    nonzero = [type(t) is not Zero for t in tangents]
    _, consts_nz, carry_nz = split_list(nonzero, [cond_nconsts, body_nconsts])

    def step(carry_nz):
        return jvp_jaxpr(body_jaxpr, consts_nz + carry_nz, carry_nz)

    carry_nz, body = control.spread(carry_nz, step)
    n_carry, n_consts = len(carry_nz), body_nconsts
    n_dot = sum(consts_nz)
    first = n_consts + n_carry
    in_order = [
        *range(n_consts),
        *range(first, first + n_dot),
        *range(n_consts, first),
        *range(first + n_dot, first + n_dot + sum(carry_nz)),
    ]
    body = body.cached(("while_order", tuple(in_order)), lambda: control.permute(body, in_order))
    carry_avals = body_jaxpr.in_avals[n_consts:]
    dot_avals = [a.to_tangent_aval() for a, nz in zip(carry_avals, carry_nz) if nz]
    cond = cond_jaxpr.cached(
        ("while_extra", tuple(carry_nz)),
        lambda: control.with_extra_inputs(cond_jaxpr, len(cond_jaxpr.jaxpr.invars), dot_avals),
    )
    cond_consts, consts, carry = split_list(primals, [cond_nconsts, n_consts])
    _, consts_dot, carry_dot = split_list(tangents, [cond_nconsts, n_consts])
    operands = [
        *cond_consts,
        *consts,
        *(t for t, nz in zip(consts_dot, consts_nz) if nz),
        *carry,
        *(instantiate(t) for t, nz in zip(carry_dot, carry_nz) if nz),
    ]
    outs = while_p.bind(
        *operands, cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=cond_nconsts, body_nconsts=n_consts + n_dot
    )
    dots = iter(outs[n_carry:])
    return outs[:n_carry], [next(dots) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(carry_nz, carry_avals)]


def _batch_axis(axis, args, dims, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_b, body_b, carry_b = split_list([d is not None for d in dims], [cond_nconsts, body_nconsts])
    is_mapped = has_mapped_condition(cond_jaxpr)

    def step(carry_b):
        _, b_out = batch_jaxpr(body_jaxpr, axis, body_b + carry_b, carry_b)
        # The axes of a predicate are the first of the carry: with one more there, it has one more.
        cond, (pred_b,) = batch_jaxpr(cond_jaxpr, axis, cond_b + carry_b, is_mapped)
        return (cond, pred_b), [True] * len(carry_b) if pred_b else b_out

    carry_b, (cond, pred_b) = control.spread(carry_b, step)
    body, _ = batch_jaxpr(body_jaxpr, axis, body_b + carry_b, carry_b)
    operands = []
    for value, dim, batched in zip(args, dims, cond_b + body_b + carry_b):
        if dim is None:
            operands.append(hooks.broadcast(value, axis.size, 0) if batched else value)
        else:
            operands.append(value if dim == 0 else hooks.moveaxis(value, dim, 0))
    if pred_b:
        if running_once(body.effects | cond.effects):
            raise NotImplementedError(
                "while_loop: effects with a batched predicate: under vmap, steps run on for elements that have ended, "
                "so a callback would be called for these, too"
            )
    params = {"cond_jaxpr": cond, "body_jaxpr": body, "cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}
    if pred_b and (body.effects or cond.effects):  # a Ref has no axis in front
        operands, params = with_scalar_condition(operands, params)
    return while_p.bind(*operands, **params), [0 if b else None for b in carry_b]


def has_mapped_condition(cond: ClosedJaxpr) -> bool:
    """Whether the predicate of a loop has axes, which are the first of all its carries: `vmap` makes such loops.

    Each element goes on as long as its own predicate holds, and stays as it is from then on.
    """
    return cond.out_avals[0].shape != ()


def with_scalar_condition(operands: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Operands and parameters of a loop that goes on while any element wants to, and leaves the finished ones as they
    are; those given where the predicate is a scalar already.
    """
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    if not has_mapped_condition(cond):
        return list(operands), params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond, body = _freeze_finished(cond, body, n_cond, n_body)
    params = params | {"cond_jaxpr": cond, "body_jaxpr": body, "body_nconsts": n_cond + n_body}
    return [*operands[:n_cond], *operands], params


def _freeze_finished(
    cond: ClosedJaxpr, body: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Cond and body of the loop of `with_scalar_condition`; the body has the constants of both."""
    cond_avals = cond.in_avals[:cond_nconsts]
    body_avals, carry_avals = body.in_avals[:body_nconsts], body.in_avals[body_nconsts:]

    def any_goes_on(*flat):
        return [hooks.reduce_or(eval_jaxpr(cond.jaxpr, cond.consts, *flat)[0])]

    def step(*flat):
        ours, theirs, values = split_list(flat, [cond_nconsts, body_nconsts])
        goes_on = eval_jaxpr(cond.jaxpr, cond.consts, *ours, *values)[0]
        new = eval_jaxpr(body.jaxpr, body.consts, *theirs, *values)
        return [hooks.select(goes_on, n, old) for n, old in zip(new, values)]

    new_cond = cond.cached("any", lambda: trace(any_goes_on, cond_avals + carry_avals))
    new_body = body.cached(("frozen", cond), lambda: trace(step, cond_avals + body_avals + carry_avals))
    return new_cond, new_body


def _partial_eval(interpreter, args, params):
    """Known carries now; the unknown ones by the whole loop again, since its steps can't be counted beforehand."""
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_u, body_u, carry_u = split_list([interpreter.is_unknown(a) for a in args], [n_cond, n_body])

    def step(carry_u):
        known, _, u_out, _ = partial_eval_jaxpr(body_jaxpr, body_u + carry_u, carry_u)
        return known, u_out

    carry_u, known = control.spread(carry_u, step)
    _, _, (pred_u,), _ = partial_eval_jaxpr(cond_jaxpr, cond_u + carry_u)
    if pred_u or all(carry_u):
        return interpreter.default(while_p, args, params)
    n_known = len(carry_u) - sum(carry_u)
    known = known.cached(
        ("first", n_known),
        lambda: ClosedJaxpr(dce_jaxpr(known.jaxpr.replace(outvars=known.jaxpr.outvars[:n_known])), known.consts),
    )
    cond_known, _, _, _ = partial_eval_jaxpr(cond_jaxpr, cond_u + carry_u)
    cond_consts, body_consts, carry = split_list(args, [n_cond, n_body])
    known_consts = [a for a, u in zip(body_consts, body_u) if not u]
    outs = iter(
        while_p.bind(
            *cond_consts,
            *known_consts,
            *(a for a, u in zip(carry, carry_u) if not u),
            cond_jaxpr=cond_known,
            body_jaxpr=known,
            cond_nconsts=n_cond,
            body_nconsts=len(known_consts),
        )
    )
    recorded = interpreter.emit(while_p, args, params, body_jaxpr.out_avals)
    return [r if u else next(outs) for r, u in zip(recorded, carry_u)]


def _transpose(*_args, **_params):
    raise ValueError(
        "Reverse-mode differentiation does not work through lax.while_loop, nor lax.fori_loop with traced bounds: the "
        "number of steps, whose values it keeps, is not known. Use lax.scan, or bounds that are Python integers"
    )


def _effects(params):
    return params["cond_jaxpr"].effects | params["body_jaxpr"].effects


def _lower(ctx):
    params = ctx.params
    operands = [ctx.operand(k) for k in range(len(ctx.in_avals))]
    cond_consts, body_consts, init = split_list(operands, [params["cond_nconsts"], params["body_nconsts"]])
    results = [ctx.result(k) for k in range(len(ctx.out_avals))]
    ctx.while_loop(params["cond_jaxpr"], params["body_jaxpr"], cond_consts, body_consts, init, results)


def _outer(args, params):
    count = params["cond_nconsts"]
    cond, read = with_outer(params["cond_jaxpr"], ())
    body, outer = with_outer(params["body_jaxpr"], args[count:])
    changed = {
        "cond_jaxpr": cond,
        "cond_nconsts": len(read) + count,
        "body_jaxpr": body,
        "body_nconsts": len(outer) + params["body_nconsts"],
    }
    return (*read, *args[:count], *outer, *args[count:]), params | changed


def _discharge(*args, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    if rules_get_references(body_jaxpr):
        first = cond_nconsts + body_nconsts
        cond, read = closing_over(cond_jaxpr, args[:cond_nconsts])
        body, consts = closing_over(body_jaxpr, args[cond_nconsts:first])
        changed = {"cond_jaxpr": cond, "cond_nconsts": len(read), "body_jaxpr": body, "body_nconsts": len(consts)}
        return current_interpreter().process(while_p, (*read, *consts, *args[first:]), changed)
    cond, written_by_cond = discharged(cond_jaxpr)
    if written_by_cond:
        raise NotImplementedError("while_loop: cond_fun writes a Ref; write it in body_fun")
    body, written = discharged(body_jaxpr)
    first = cond_nconsts + body_nconsts
    kept = [n for n in range(body_nconsts) if n not in written]
    count = len(body_jaxpr.out_avals)
    in_order = [*kept, *written, *range(body_nconsts, body_nconsts + count)]
    out_order = [*range(count, count + len(written)), *range(count)]
    body = body.cached("discharge", lambda: control.permute(body, in_order, out_order))
    # Where the predicate reads what the body writes, it reads the carry.
    carried = [args[cond_nconsts + n] for n in written]
    seen = [next((n for n in range(cond_nconsts) if args[n] is ref), None) for ref in carried]
    kept_by_cond = [n for n in range(cond_nconsts) if n not in seen]

    def make():
        invars = cond.jaxpr.invars
        new = [Var(typeof(value)) if n is None else invars[n] for n, value in zip(seen, values_of(carried))]
        outer = [invars[n] for n in kept_by_cond]
        return ClosedJaxpr(cond.jaxpr.replace(invars=[*outer, *new, *invars[cond_nconsts:]]), cond.consts)

    cond = cond.cached(("discharge", *seen), make)
    values = values_of(args)
    outs = while_p.bind(
        *[values[n] for n in kept_by_cond],
        *[values[cond_nconsts + n] for n in (*kept, *written)],
        *values[first:],
        cond_nconsts=len(kept_by_cond),
        cond_jaxpr=cond,
        body_nconsts=len(kept),
        body_jaxpr=body,
    )
    note(carried, range(len(carried)), outs[: len(written)])
    return outs[len(written) :]


def _shared(params):
    first = params["cond_nconsts"] + params["body_nconsts"]
    return [(first + k, k) for k in range(len(params["body_jaxpr"].out_avals))]


while_p = Primitive(
    "while",
    doc="A loop that runs while a predicate holds.",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    reference=_reference,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=NoRule("use batch_axis"),
    batch_axis=_batch_axis,
    partial_eval=_partial_eval,
    effects=_effects,
    discharge=_discharge,
    outer=_outer,
    lower=Nest(_lower, shared=_shared),
)
while_p.typecheck = check_while
